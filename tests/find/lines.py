# SPDX-License-Identifier: MIT
"""Where the code of source lines is, and the inlined copies of functions: as llvm-dwarfdump and gdb have them."""
import os
import re

from ask import FATHOM, fathom, find, records_of, run
from building import build_text, nm
from finding import address, build, places
from suite import PROGRAMS, test

INLINED = os.path.join(PROGRAMS, "inlined.cc")


def runs_of_line(path, file, line):
    """By llvm-dwarfdump, the runs of rows of a line: (first address, first statement or None, end)."""
    text = run("llvm-dwarfdump", "--debug-line", path)
    for block in text.split("debug_line["):
        files = {int(m[1]): m[2] for m in re.finditer(r'file_names\[ *(\d+)\]:\s+name: "([^"]+)"', block)}
        rows = re.findall(r"^0x([0-9a-f]+) +(\d+) +\d+ +(\d+) +\d+ +\d+(?: +\d+)? ?(.*)$", block, re.M)
        first = statement = None
        for at, row_line, row_file, flags in rows:
            at = int(at, 16)
            if int(row_line) == line and os.path.basename(files.get(int(row_file), "")) == file \
                    and "end_sequence" not in flags:
                first = at if first is None else first
                statement = at if statement is None and "is_stmt" in flags else statement
            elif first is not None:
                yield first, statement, at
                first = statement = None


def line_oracle(path, file, line):
    """Where the code of a line starts: of each function, the best that it has of it."""
    starts = sorted(v for values in nm(path).values() for v, kind in values if kind in "tTwW")
    found = {}
    for first, statement, end in runs_of_line(path, file, line):
        at = first if statement is None else statement
        tier = 2 if statement is None else 0 if end > statement else 1
        if tier == 2 and end == first:
            continue
        function = max((s for s in starts if s <= at), default=0)
        found.setdefault(function, []).append((tier, at))
    return sorted({at for places in found.values() for tier, at in places if tier == min(places)[0]})


@test("file:line: the stretches of code that llvm-dwarfdump's rows make, of every line")
def lines(folder):
    for options in (["-O0"], ["-O2"], ["-O2", "-gdwarf-4"]):
        path = build(folder, "inlined", *options, source=INLINED, compiler="g++")
        last = len(open(INLINED, encoding="utf-8").readlines())
        queries = [f"inlined.cc:{n}" for n in range(1, last + 1)]
        got = places(path, queries)
        some = 0
        for n, query in enumerate(queries, 1):
            want = line_oracle(path, "inlined.cc", n)
            ours = [a for a in got[query] if a is not None]
            assert sorted(ours) == want, (options, query, list(map(hex, ours)), list(map(hex, want)))
            some += len(want)
        assert some > (30 if "-O0" in options else 5), (options, some)


@test("file:line: paths match by whole parts, in a library, and each match says its function")
def line_paths(folder):
    path = build(folder, "inlined", "-O0", source=INLINED, compiler="g++")
    folder_name = os.path.basename(PROGRAMS)
    want = places(path, "inlined.cc:75")["inlined.cc:75"]
    for query in [f"{folder_name}/inlined.cc:75", INLINED + ":75",
                  "inlined:inlined.cc:75", "inl*:inlined.cc:75"]:
        assert places(path, query)[query] == want, query
    for query in ["lined.cc:75", "other/inlined.cc:75", "inlined.c:75"]:
        assert places(path, query)[query] == [None], query
    records, _ = find(path, "inlined.cc:75")
    assert {r["name"] for r in records} == {"alone(int)"} and {r["type"] for r in records} == {"line"}, records
    assert all(r["file"].endswith("/inlined.cc") and r["line"] == 75 and r["size"] for r in records)


@test("file:line: gdb's info line agrees on where lines start")
def gdb_lines(folder):
    path = build(folder, "inlined", "-O0", source=INLINED, compiler="g++")
    for line in (20, 28, 44, 59, 75, 80):
        out = run("gdb", "-q", "-nx", "-batch", "-ex", f"info line inlined.cc:{line}", path)
        theirs = {int(m, 16) for m in re.findall(r"starts at address (0x[0-9a-f]+)", out)}
        ours = set(places(path, f"inlined.cc:{line}")[f"inlined.cc:{line}"])
        assert theirs and theirs <= ours, (line, out, ours)


def inlined_oracle(path):
    """{(function, caller, call line, low address)} by llvm-dwarfdump."""
    found = set()
    text = run("llvm-dwarfdump", "--debug-info", path)
    entries = []
    for m in re.finditer(r"^0x([0-9a-f]+):( +)DW_TAG_(\w+)\n((?:(?!0x).*\n)*)", text, re.M):
        entries.append((int(m[1], 16), len(m[2]), m[3], m[4]))
    names = {}
    for off, _, _, body in entries:
        m = re.search(r'DW_AT_name\s+\("([^"]+)"', body)
        names[off] = m[1] if m else None
    for off, _, _, body in entries + entries:
        m = re.search(r"DW_AT_(?:abstract_origin|specification)\s+\((0x[0-9a-f]+)", body)
        if not names[off] and m:
            names[off] = names.get(int(m[1], 16))
    stack = []
    for off, depth, tag, body in entries:
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if tag == "inlined_subroutine":
            callers = [n for d, n, t in stack if t in ("subprogram", "inlined_subroutine")]
            lines = re.search(r"DW_AT_call_line\s+\((\d+)\)", body)
            entry = re.search(r"DW_AT_entry_pc\s+\((0x[0-9a-f]+)\)", body)
            low = re.search(r"DW_AT_low_pc\s+\((0x[0-9a-f]+)\)", body)
            spans = [int(x, 16) for x in re.findall(r"\[(0x[0-9a-f]+),", body)]
            high = re.search(r"DW_AT_high_pc\s+\((0x[0-9a-f]+)\)", body)
            if low and high and low[1] == high[1]:
                stack.append((depth, names[off], tag))
                continue  # of which no code is left
            at = int(entry[1], 16) if entry else int(low[1], 16) if low else min(spans)
            found.add((names[off], callers[-1], int(lines[1]), at))
        stack.append((depth, names[off], tag))
    return found


def short(name):
    """A demangled name without scope and parameters."""
    name = name.replace("(anonymous namespace)::", "")
    if "operator()" in name:
        return "operator()"
    return name.split("(")[0].split("::")[-1].split()[-1]


@test("inlined copies: each of them, its caller and its call, as llvm-dwarfdump has them")
def inlined(folder):
    for options in (["-O1"], ["-O2"], ["-O2", "-gdwarf-4"]):
        for compiler in ("g++", "clang++"):
            path = build(folder, "inlined", *options, source=INLINED, compiler=compiler)
            want = inlined_oracle(path)
            records, _ = find(path, "*", "--inlined")
            got = {(short(r["name"]), short(r["inlined_into"]), r["line"], address(r)) for r in records}
            assert got == want and want, (options, compiler, got ^ want)
            assert {r["type"] for r in records} == {"inlined"} and all(r["size"] for r in records)
            # gcc states no linkage name for it, and so no scope.
            twice, _ = find(path, ["twice", "jit::twice"], "--inlined")
            twice = [r for r in twice if r["address"]]
            assert {address(r) for r in twice} == {a for n, _, _, a in want if n == "twice"}
            assert all(r["file"].endswith("/inlined.cc") for r in twice)


ONLY_INLINED = """
static inline __attribute__((always_inline)) int folded(int x) { return x * 3 + (x >> 2); }
__attribute__((noinline)) int one(int x) { return folded(x) + 1; }
__attribute__((noinline)) int two(int x) { return folded(x) * folded(x + 5); }
int main(int argc, char **argv) { (void)argv; return one(argc) + two(argc); }
"""


@test("inlined copies: find, disasm and addr say where they are of a function that no symbol has")
def only_inlined(folder):
    for compiler in ("gcc", "clang"):
        path = build_text(os.path.join(folder, compiler), ONLY_INLINED, compiler=compiler, flags=("-O2", "-g"))
        want = [(caller, line, at) for name, caller, line, at in sorted(inlined_oracle(path), key=lambda x: x[3]) if name == "folded"]
        rows = records_of(run(FATHOM, "find", "--json", "--no-cache", path, "folded", "one"))
        assert [r["name"] for r in rows] == ["folded"] * len(want) + ["one"] and len(want) == 3, rows
        assert sorted((r["inlined_into"], r["line"], address(r)) for r in rows[:-1]) == sorted(want), (rows, want)
        assert {(r["type"], r["reason"]) for r in rows[:-1]} == {("inlined", None)}, rows
        for verb in ("addr", "disasm"):
            done = fathom(verb, "--no-cache", path, "folded", status=1)
            said, = done.stderr.splitlines()
            assert said.startswith("fathom: folded: it is only inlined: "), said
            assert all(f"{at:#x} in {caller} " in said and f":{line}" in said for caller, line, at in want), (said, want)
            # Of several arguments each row has its own copies; what has an answer, or no copy, has none.
            rows = records_of(fathom(verb, "--json", "--no-cache", path, "folder", "folded", "one", status=1).stdout)
            lacking = {r["input"]: r for r in rows if r.get("reason") == "no-such-symbol"}
            assert sorted(lacking) == ["folded", "folder"], rows
            assert [r["input"] for r in rows if "inlined_copies" in r] == ["folded"], rows
            copies = lacking["folded"]["inlined_copies"]
            assert sorted((c["inlined_into"], c["line"], int(c["address"], 16)) for c in copies) == sorted(want), (copies, want)
            assert all(c["file"] and set(c) == {"address", "inlined_into", "file", "line"} for c in copies), copies
        # A name that nothing has still is none.
        assert "it is only inlined" not in fathom("find", "--no-cache", path, "folder", status=1).stderr
