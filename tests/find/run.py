#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "find": where names are, by programs that know it and tools that people use."""
import fnmatch
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import lookups  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, run  # noqa: E402
from elfasm import SHT_STRTAB, SHT_SYMTAB, Elf  # noqa: E402
from finding import Asked, address, dynamic, find, places  # noqa: E402
from told import Told, build as told_build, library as told_library  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
SUITE = tap.Suite("find", "mount and change its root")
test = SUITE.test


def build(folder, name="asked", *options, source="asked.c", compiler="gcc"):
    path = os.path.join(folder, name)
    run(compiler, "-O1", "-g", *options, "-o", path, os.path.join(PROGRAMS, source))
    return path


def library(folder, name="libversions.so", *options, source="versions.c", **more):
    script = ["-Wl,--version-script=" + os.path.join(PROGRAMS, "versions.map")] if source == "versions.c" else []
    return build(folder, name, "-shared", "-fPIC", "-Wl,-soname," + os.path.basename(name), *script, *options,
                 source=source, **more)


def asked(folder, *options, env=None, wrapper=(), root="", **more):
    """A running asked.c: started by @wrapper, and copied below @root, which that changes to."""
    path = build(folder, "asked", "-ldl", "-pthread", *options, **more)
    if root:
        shutil.copy(path, root + path)
    return Asked([*wrapper, path], env=dict(os.environ, **env) if env else None)


def nm(path, *options):
    """{name: [(value, kind)]} by nm, without versions, of what is defined."""
    found = {}
    for line in run("nm", *options, path, status=None).splitlines():
        m = re.match(r"([0-9a-f]+) (\w) (\S+)", line)
        if m and m[2] not in "UNna":
            found.setdefault(m[3].split("@")[0], []).append((int(m[1], 16), m[2]))
    return found


def names_of(records):
    return {r["linkage_name"] for r in records if r["rank"] is not None}


# Files.

@test("a file: every exported name of libc is where nm says, by hash")
def libc_names(_):
    known = nm(LIBC, "-D")
    names = sorted(known)
    assert len(names) > 2000, len(names)
    records, _ = find(LIBC, names, "--literal", "--exported")
    got = {}
    for r in records:
        got.setdefault(r["query"], set()).add(int(r["module_address"] or "0", 16))
    # Versions have symbols of their own, at 0.
    wrong = {n: (got.get(n), known[n]) for n in names
             if got.get(n) != {value for value, kind in known[n] if kind != "A"} and known[n][0][1] != "A"}
    assert not wrong, f"{len(wrong)}: {list(wrong.items())[:5]}"


@test("a file: types, sizes, bindings and versions as readelf says")
def libc_details(_):
    words = {"FUNC": "func", "OBJECT": "object", "TLS": "tls", "IFUNC": "ifunc", "NOTYPE": "notype"}
    known = set()
    for line in run("readelf", "-W", "--dyn-syms", LIBC).splitlines():
        m = re.match(r"\s*\d+: ([0-9a-f]+)\s+(\d+|0x\w+) (\w+)\s+(\w+)\s+\w+\s+(\w+) ([^@ ]+)@(@?)(\S+)", line)
        if m and m[5] not in ("UND", "ABS"):
            known.add((m[6], int(m[1], 16), int(m[2], 0), words[m[3]], m[4].lower(), m[8], m[7] == "@"))
    assert len(known) > 2000
    records, _ = find(LIBC, "*", "--exported")
    got = {(r["name"], int(r["module_address"], 16), r["size"] or 0, r["type"], r["binding"], r["version"],
            r["default_version"]) for r in records if r["version"]}
    assert got == known, f"{list(known - got)[:5]} {list(got - known)[:5]}"


@test("a file whose debug section has no unit: nothing is sorted that is not there")
def no_units(folder):
    sorted_ = build(folder, "sorted.so", "-shared", "-fPIC", source="sorted.c")
    path = build(folder, "p", "-ldl", "-pthread", "-g0")
    run("objcopy", "--add-section", ".debug_info=/dev/null", "--add-section", ".debug_abbrev=/dev/null", path)
    env = dict(os.environ, LD_PRELOAD=sorted_, ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
    for query in (["a.c:1"], ["--inlined", "main"]):
        assert "no-such-symbol" in run(FATHOM, "find", "--no-cache", path, *query, status=(1,), env=env)


@test("a file: static functions through .symtab, and all names of it as nm has them")
def symtab(folder):
    path = build(folder, "p", "-ldl", "-pthread")
    known = nm(path)
    for name, values in known.items():
        got = places(path, name, "--literal")[name]
        # Sections, files and mapping symbols are no names of anything; TLS has no address.
        want = sorted(v for v, kind in values)
        if name in ("thread_own", "thread_hidden"):
            records, _ = find(path, name, "--literal")
            assert [int(r["module_address"], 16) for r in records] == want, (name, records)
            assert records[0]["type"] == "tls" and records[0]["address"] is None, records
        else:
            assert sorted(got) == want, (name, got, want)
    assert "hidden_function" in known


@test("a file: what is not there has a reason, each one of its own")
def reasons(folder):
    path = build(folder, "p", "-ldl", "-pthread")
    stripped = os.path.join(folder, "static")
    run("gcc", "-static", "-s", "-o", stripped, "-x", "c", "-", input="int main(void){return 0;}")
    for target, query, reason in [(path, "nothing_like_it", "no-such-symbol"),
                                  (path, "libother.so:main", "no-file"),
                                  (path, "asked.c:9999", "no-such-symbol"),
                                  (LIBC, "/(/", "bad-address"),
                                  (path, "main@V_9", "no-such-symbol"),
                                  (stripped, "main", "no-symbols"),
                                  (stripped, "main.c:1", "no-debug-info")]:
        records, errors = find(target, query, status=(1,))
        assert [(r["reason"], r["address"], r["rank"]) for r in records] == [(reason, None, None)], records
        assert (reason == "bad-address") == ("expression" in errors), errors


@test("patterns and expressions find what grep finds among nm's names")
def patterns(_):
    names = set(nm(LIBC, "-D"))
    versions = {n for n, values in nm(LIBC, "-D").items() if values[0][1] == "A"}
    for pattern in ["str*", "*cpy", "mem?cpy", "pthread_[a-m]*", "[!_a-w]*", "__*_chk", "*"]:
        records, _ = find(LIBC, pattern, "--exported")
        want = {n for n in names - versions if fnmatch.fnmatchcase(n, pattern)}
        assert names_of(records) - versions == want and want, (pattern, names_of(records) ^ want)
    for pattern in ["^str.*n", "cpy$", "^(mem|str)r?chr", "64", "^[a-c][^_]+_?r$", "s{2}", "x|y{1,3}n"]:
        records, _ = find(LIBC, f"/{pattern}/", "--exported")
        want = {n for n in names - versions if re.search(pattern, n)}
        assert names_of(records) - versions == want and want, (pattern, names_of(records) ^ want)
        same, _ = find(LIBC, pattern, "--exported", "--regex")
        assert [r["linkage_name"] for r in same] == [r["linkage_name"] for r in records]


@test("an expression that repeats too much is refused at once")
def bombs(_):
    for expression in ["((((a{1,255}){1,255}){1,255}){1,255})", "(" * 4000 + "a" + ")" * 4000,
                       "a{1,255}{1,255}{1,255}",
                       "(" + "x" * 1000 + "){1,32767}", "(" * 40 + "a" + "+)" * 40]:
        start = time.monotonic()
        records, _ = find(LIBC, f"/{expression[:4000]}/", status=(1,))
        assert len(records) == 1 and time.monotonic() - start < 5, expression[:40]


MANGLED = {
    "jit::Runtime::get": ["_ZN3jit7Runtime3getEv", "_ZN3jit7Runtime3getEi"],
    "jit::Runtime::get()": ["_ZN3jit7Runtime3getEv"],
    "jit::Runtime::get( int )": ["_ZN3jit7Runtime3getEi"],
    "_ZN3jit7Runtime3getEi": ["_ZN3jit7Runtime3getEi"],
    "jit::Runtime::value": ["_ZNK3jit7Runtime5valueEPKcm"],
    "jit::Runtime::value(char const*, unsigned long) const": ["_ZNK3jit7Runtime5valueEPKcm"],
    "jit::Runtime::operator()": ["_ZNK3jit7RuntimeclEi"],
    "jit::Runtime::operator()(int) const": ["_ZNK3jit7RuntimeclEi"],
    "jit::Runtime::operator<": ["_ZNK3jit7RuntimeltERKS0_"],
    "jit::Runtime::convert<int>": ["_ZN3jit7Runtime7convertIiEET_S2_"],
    "int jit::Runtime::convert<int>(int)": ["_ZN3jit7Runtime7convertIiEET_S2_"],
    "jit::Runtime::convert<double>(double)": ["_ZN3jit7Runtime7convertIdEET_S2_"],
    "(anonymous namespace)::anonymous_code": ["_ZN12_GLOBAL__N_1L14anonymous_codeEi",
                                              "_ZN12_GLOBAL__N_114anonymous_codeEi"],
    "alone": ["_Z5alonei"],
    "alone(int)": ["_Z5alonei"],
    "jit::Runtime::c*": ["_ZN3jit7Runtime7convertIdEET_S2_", "_ZN3jit7Runtime7convertIiEET_S2_"],
    "/Runtime::get\\(/": ["_ZN3jit7Runtime3getEv", "_ZN3jit7Runtime3getEi"],
    "get": [],
}


@test("demangled names: with and without parameters and return type, patterns, fallback")
def demangled(folder):
    path = build(folder, "inlined", source="inlined.cc", compiler="g++")
    known = nm(path)
    for query, want in MANGLED.items():
        records, _ = find(path, query)
        got = {n for n in names_of(records) if not n.startswith("_ZZ") and not n.startswith("_ZGV")}
        assert got == {w for w in want if w in known}, (query, records)
        assert not want or got, query
        for r in records if got else []:
            assert r["name"] == run("c++filt", r["linkage_name"]).strip(), r


@test("tags of the ABI: names are found as they are printed; [vdso] is the name of a library")
def tags(folder):
    path = os.path.join(folder, "libtags.so")
    run("g++", "-shared", "-fPIC", "-o", path, "-x", "c++", "-",
        input='__attribute__((abi_tag("v1"))) int f(int a) { return a; }'
              'namespace n { struct [[gnu::abi_tag("zz")]] T { int x; }; T g(T t) { return t; } }')
    for query, want in [("f[abi:v1]", "_Z1fB2v1i"), ("f[abi:v1](int)", "_Z1fB2v1i"), ("libtags*:f[abi:v1]", "_Z1fB2v1i"),
                        ("n::g(n::T[abi:zz])", "_ZN1n1gENS_1TB2zzE"), ("n::g", "_ZN1n1gENS_1TB2zzE"),
                        ("f[a]", None)]:
        for options in [[], ["-F"]] if not query.startswith("lib") else [[]]:
            assert find(path, query, *options)[0][0]["linkage_name"] == want, (query, options)
    (record, *_), _ = find(os.getpid(), "[vdso]:clock_gettime")
    assert record["module"] == "[vdso]", record


@test("thousands of names, of which nothing is linked as: as each alone, and not a pass for each")
def many_names(folder):
    path = os.path.join(folder, "libplain.so")
    functions = "".join(f"int plain_{i}(int a) {{ return a; }} " for i in range(40))
    run("g++", "-shared", "-fPIC", "-o", path, "-x", "c++", "-",
        input=functions + "struct S { int x; }; S operator+(S a, S) { return a; } void *operator new[](unsigned long) { return 0; }"
              "template<class T> T of_type(T a) { return a; } template int of_type(int); namespace n { int plain_1() { return 1; } }")
    names = [f"plain_{i}" for i in range(45)] + ["operator+", "operatornew[]", "of_type", "of_type<int>", "n::plain_1", "S"]
    together = find(path, names)[0]
    assert together == [r for name in names for r in find(path, name)[0]], together
    linked = {r["query"]: r["linkage_name"] for r in together}
    assert [linked[q] for q in ("plain_1", "operator+", "plain_44")] == ["_Z7plain_1i", "_Zpl1SS_", None], linked
    start = time.monotonic()
    find(shutil.which("node") or LIBC, [f"no_such_name_{i}" for i in range(3000)])
    assert time.monotonic() - start < 10


def runs_of_line(path, file, line):
    """By llvm-dwarfdump, the runs of rows of a line: (first address, first statement or None, end)."""
    text = run("llvm-dwarfdump-19", "--debug-line", path)
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
        path = build(folder, "inlined", *options, source="inlined.cc", compiler="g++")
        last = len(open(os.path.join(PROGRAMS, "inlined.cc"), encoding="utf-8").readlines())
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
    path = build(folder, "inlined", "-O0", source="inlined.cc", compiler="g++")
    folder_name = os.path.basename(PROGRAMS)
    want = places(path, "inlined.cc:75")["inlined.cc:75"]
    for query in [f"{folder_name}/inlined.cc:75", os.path.join(PROGRAMS, "inlined.cc") + ":75",
                  "inlined:inlined.cc:75", "inl*:inlined.cc:75"]:
        assert places(path, query)[query] == want, query
    for query in ["lined.cc:75", "other/inlined.cc:75", "inlined.c:75"]:
        assert places(path, query)[query] == [None], query
    records, _ = find(path, "inlined.cc:75")
    assert {r["name"] for r in records} == {"alone(int)"} and {r["type"] for r in records} == {"line"}, records
    assert all(r["file"].endswith("/inlined.cc") and r["line"] == 75 and r["size"] for r in records)


@test("file:line: gdb's info line agrees on where lines start")
def gdb_lines(folder):
    path = build(folder, "inlined", "-O0", source="inlined.cc", compiler="g++")
    for line in (20, 28, 44, 59, 75, 80):
        out = run("gdb", "-q", "-nx", "-batch", "-ex", f"info line inlined.cc:{line}", path)
        theirs = {int(m, 16) for m in re.findall(r"starts at address (0x[0-9a-f]+)", out)}
        ours = set(places(path, f"inlined.cc:{line}")[f"inlined.cc:{line}"])
        assert theirs and theirs <= ours, (line, out, ours)


def inlined_oracle(path):
    """{(function, caller, call line, low address)} by llvm-dwarfdump."""
    found = set()
    text = run("llvm-dwarfdump-19", "--debug-info", path)
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
        for compiler in ("g++", "clang++-19"):
            path = build(folder, "inlined", *options, source="inlined.cc", compiler=compiler)
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


@test("a library with versions: default, hidden, both, and what is only hidden")
def versions(folder):
    path = library(folder)
    value = {n: v[0][0] for n, v in nm(path).items()}
    both, _ = find(path, "versioned")
    assert [(address(r), r["version"], r["default_version"], r["rank"]) for r in both] == \
        [(value["versioned_new"], "V_2", True, 0), (value["versioned_old"], "V_1", False, 1)], both
    for query, want in [("versioned@V_1", ["versioned_old"]), ("versioned@V_2", ["versioned_new"]),
                        ("versioned@@V_2", ["versioned_new"]), ("versioned@@V_1", []),
                        ("versioned@@", ["versioned_new"]), ("versioned@V_*", ["versioned_new", "versioned_old"]),
                        ("retired@V_1", ["retired_code"])]:
        assert places(path, query)[query] == ([value[w] for w in want] or [None]), query
    # dlsym() does not find what has only a hidden version; dlvsym() does.
    assert [r["rank"] for r in find(path, "retired")[0]] == [1]
    assert [r["rank"] for r in find(path, "retired@V_1")[0]] == [0]


def strip_headers(path):
    """Takes the section headers out: e_shoff, e_shnum and e_shstrndx become 0."""
    with open(path, "r+b") as f:
        f.seek(0x28)
        f.write(bytes(8))
        f.seek(0x3c)
        f.write(bytes(4))


@test("without section headers, with DT_HASH only and with both: the same answers")
def hash_styles(folder):
    answers = []
    for style in ("gnu", "sysv", "both"):
        path = library(folder, f"lib{style}.so", f"-Wl,--hash-style={style}")
        for headers in (True, False):
            if not headers:
                strip_headers(path)
            records, _ = find(path, ["versioned", "indirect", "call_indirect", "nothing"], "--exported")
            answers.append([(r["query"], r["version"], r["type"], r["rank"], r["reason"]) for r in records])
    assert all(a == answers[0] for a in answers), answers
    assert [a[0] for a in answers[0]] == ["versioned", "versioned", "indirect", "call_indirect", "nothing"]


@test("debug files and MiniDebugInfo: static functions, and which table says so")
def debug_tables(folder):
    path = build(folder, "p", "-ldl", "-pthread")
    want = nm(path)["hidden_function"][0][0]
    run("objcopy", "--only-keep-debug", path, path + ".debug")
    run("strip", path)
    assert places(path, "hidden_function")["hidden_function"] == [None]
    run("objcopy", f"--add-gnu-debuglink={path}.debug", path, cwd=folder)
    records, _ = find(path, "hidden_function")
    assert [(address(r), r["table"], r["source"]) for r in records] == [(want, "debug", "symtab")], records
    run("objcopy", "-S", "--remove-section=.debug*", path + ".debug", path + ".mini", status=None)
    run("objcopy", "--remove-section=.gnu_debuglink", path)
    mini = os.path.join(folder, "mini")
    run("objcopy", "--strip-debug", path + ".debug", mini)
    run("xz", "-f", mini)
    run("objcopy", f"--add-section=.gnu_debugdata={mini}.xz", path)
    records, _ = find(path, "hidden_function")
    assert [(address(r), r["table"], r["source"]) for r in records] == \
        [(want, "minidebuginfo", "minidebuginfo")], records


@test("relocatable files: the address that addr takes, and the offset in the section")
def relocatable(folder):
    path = os.path.join(folder, "o.o")
    run("gcc", "-c", "-g", "-ffunction-sections", "-o", path, os.path.join(PROGRAMS, "over.c"))
    records, _ = find(path, ["malloc", "free", "used"])
    assert [int(r["module_address"], 16) for r in records][:2] == [0, 0], records
    back = run(FATHOM, "addr", "--json", "--no-cache", "-j", ".text.free", path, "0")
    assert f'"symbol":"free"' in back and records[1]["address"] in back, (records, back)


@test("standard input: one answer after the other, each ended by an empty line")
def stream(_):
    out = run(FATHOM, "find", "--no-cache", LIBC, input="labs\nnothing_at_all\n\nmemcpy\n", status=(1,))
    blocks = out.split("\n\n")
    assert "labs" in blocks[0] and blocks[1] == "nothing_at_all ?? (no-such-symbol)", blocks
    assert blocks[2] == " ?? (bad-address)" and blocks[3].count("memcpy@") == 2, blocks


@test("the same question a hundred times in one session: the same answer, from tables and from their index")
def again(folder):
    path = library(folder)
    queries = ["versioned", "choose", "retired@V_1", "nothing_like_it", "frame_dummy"]
    want = {q: find(path, q)[0] for q in queries}
    with subprocess.Popen([FATHOM, "find", "--json", "--no-cache", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        for i in range(100):
            query = queries[i % len(queries)]
            process.stdin.write(query + "\n")
            process.stdin.flush()
            got = [json.loads(process.stdout.readline()) for _ in want[query]]
            assert got == want[query], (i, got, want[query])
        process.stdin.close()


def many_symbols(path, n):
    """An executable file with @n functions of one byte, called s0000000 and so on."""
    elf = Elf()
    elf.text(0x100000, n)
    names = b"\0" + b"".join(b"s%07d\0" % i for i in range(n))
    entry = struct.Struct("<IBBHQQ").pack
    table = bytes(24) + b"".join(entry(1 + 9 * i, 0x12, 0, 1, 0x100000 + i, 1) for i in range(n))
    strings = elf.section(".strtab", names, SHT_STRTAB)
    elf.section(".symtab", table, SHT_SYMTAB, align=8, link=strings, info=1, entsize=24)
    with open(path, "wb") as file:
        file.write(elf.build())


def count_lines(*command):
    """How many lines of JSON the command prints, the last of them, and what it says on standard error."""
    n, last = 0, None
    with subprocess.Popen([FATHOM, "find", "--json", "--no-cache", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        for last in process.stdout:
            n += 1
        errors = process.stderr.read().decode()
    assert process.returncode == 0, (command, process.returncode, errors)
    return n, json.loads(last)["name"], errors


@test("more than a million matches: a message says that some are left out, and --limit has them all")
def more_than_a_million(folder):
    path = os.path.join(folder, "many")
    many_symbols(path, 1000001)
    n, last, errors = count_lines(path, "s*")
    assert (n, last) == (1000000, "s0999999"), (n, last)
    assert errors.startswith("fathom: s*: more than 1,000,000 matches") and "larger limit" in errors, errors
    assert "--memory" not in errors, errors
    assert count_lines("--limit", "2000000", path, "s*") == (1000001, "s1000000", "")
    assert count_lines("--limit", "7", path, "s*") == (7, "s0000006", "")
    assert count_lines(path, "s0*") == (1000000, "s0999999", ""), "as many as may be are no more than that"


@test("what does not fit the memory budget is an error that names it; what is narrower fits")
def over_budget(folder):
    path = os.path.join(folder, "many")
    many_symbols(path, 200000)
    for memory, query in [("8M", "*"), ("8M", "/^s/"), ("1M", "s00*"), ("40M", "*")]:
        done = subprocess.run([FATHOM, "find", "--no-cache", "--memory", memory, path, query], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 2 and not done.stdout, (memory, query, done.returncode, done.stdout[:500])
        assert re.fullmatch(r"fathom: " + re.escape(query) + r": .*memory budget.*narrower.*\(.*--memory\)\n", done.stderr), done
    done = subprocess.run([FATHOM, "find", "--no-cache", "--memory", "1M", path, "s0*", "s1*"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("fathom: all queries together: "), done
    assert count_lines("--memory", "1M", path, "s0*99") == (2000, "s0199999", "")
    assert count_lines("--memory", "10K", path, "s0123456") == (1, "s0123456", "")
    assert count_lines("--memory", "200M", path, "*") == (200000, "s0199999", "")


@test("text lines up: within 80 columns, where the name is not too long for that")
def columns(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    out = run(FATHOM, "find", "--no-cache", path, "main", "hidden_function", "counted", "greeting", "thread_own",
              "asked.c:60")
    starts = set()
    for line in out.splitlines():
        assert len(line) <= 80 or "asked.c:" in line, line
        starts.add((line.index("asked"), 57))
    assert {s for s, _ in starts} == {37}, out


# Values.

@test("values in a file: numbers, text, arrays, bytes, by what the source says")
def file_values(folder):
    path = build(folder, "asked", "-ldl", "-pthread", "-no-pie")
    for query, kind, want in [("greeting", "str", "good day"), ("counted", "i64", 42), ("counted", "u8[8]", [42] + 7 * [0]),
                              ("first", "ptr->str", "first"), ("first", "+16:i64[4]", [1, -2, 3, -4]),
                              ("first", "*+0:bytes:5", "6669727374"), ("first", "+8:*str" , None),
                              ("first", "+8:**str", "second"), ("first", "+8:*+16:i64", 5),
                              ("first", "+8:*+0x30:f64", -0.5), ("first", "+48:f64", 1.5),
                              ("first", "+56:f32", -2.25), ("first", "+60:i8", -128), ("first", "+60:u8", 128),
                              ("greeting_pointer", "*str:4", "good"), ("greeting_pointer", "ptr->+5:str", "day"),
                              ("first", "+8:ptr->ptr->+1:str:2", "ec")]:
        records, _ = find(path, query, "--read", kind)
        if want is not None:
            assert records[0]["value"] == want, (query, kind, records)


@test("values in a process: as it is now, and a reason where nothing is")
def process_values(folder):
    with asked(folder) as program:
        for number in (7, -5, 2**62):
            program.tell(f"set {number}")
            records, _ = find(program.pid, "counted", "--read", "i64")
            assert records[0]["value"] == number, records
        records, _ = find(program.pid, "first", "--read", "+8:**str")
        assert records[0]["value"] == "second", records
        for kind in ("**str", "*+0x7fffffffffff:u8", "-0x7000000000000000:u8"):
            records, _ = find(program.pid, "counted", "--read", kind, status=(1,))
            assert (records[0]["value"], records[0]["reason"]) == (None, "unmapped"), (kind, records)


def opens_of_map(folder, pid, *queries):
    """How often the command opens the map of the process to read values, by strace, and how many there are."""
    log = os.path.join(folder, "opens")
    # What looks for leaks traces, too, and cannot be traced.
    done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat", "-o", log, FATHOM, "find", "--no-cache", "--json",
                           "--read", "u8", str(pid), *queries], capture_output=True, text=True, check=False,
                          env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    if "PTRACE_TRACEME" in done.stderr:
        raise tap.Skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode in (0, 1), done
    with open(log, encoding="ascii", errors="replace") as file:
        opens = sum('/maps"' in line for line in file)
    values = [json.loads(line)["value"] for line in done.stdout.splitlines()]
    return opens, sum(v is not None for v in values)


@test("values of many matches: the map is read once for a thousand of them")
def one_map(folder):
    with asked(folder) as program:
        one, n = opens_of_map(folder, program.pid, "counted")
        assert one >= 2 and n == 1, (one, n)
        opens, n = opens_of_map(folder, program.pid, "libc.so*:str*", "libc.so*:mem*", "counted", "greeting", "first")
        assert n > 100 and opens == one, (opens, one, n)
        opens, n = opens_of_map(folder, program.pid, "libc.so*:*")
        assert n > 2000 and opens <= one + n / 500, (opens, one, n)


@test("values while a process runs one program after another, of 64 and of 32 bits: each as its program has it")
def other_programs(folder):
    """Each program has 500 pointers at the same places as the other, and runs that after a moment."""
    paths = [os.path.join(folder, name) for name in ("wide", "narrow")]
    source = """
#include <unistd.h>
__asm__(".section .values, \\"aw\\", @progbits\\n.altmacro\\n"
	".macro place i\\n.globl p\\\\i\\np\\\\i:\\n.long LOW, HIGH\\n.type p\\\\i, @object\\n.size p\\\\i, 8\\n.endm\\n"
	".set n, 0\\n.rept 500\\nplace %n\\n.set n, n+1\\n.endr\\n.text\\n");
int main(int argc, char **argv)
{
	usleep(2000);
	execl(argv[argc - 1], argv[argc - 1], argv[0], (char *)0);
	return 1;
}"""
    for path, compiler, low, high in ((paths[0], "gcc", "0x22222222", "0x11111111"),
                                      (paths[1], "i686-linux-gnu-gcc", "0x33333333", "0x33333333")):
        run(compiler, "-static", "-no-pie", "-O1", "-Wl,--section-start=.values=0x20000000", "-o", path, "-x", "c", "-",
            input=source.replace("LOW", low).replace("HIGH", high))
    seen, reasons = {}, {}
    with subprocess.Popen([paths[0], paths[1]], stdin=subprocess.DEVNULL) as process:
        for _ in range(150):
            records, _ = find(process.pid, "p[0-9]*", "--read", "ptr", status=(0, 1, 2))
            for r in records:
                if r["type"] == "object":
                    seen[r["value"]] = seen.get(r["value"], 0) + 1
                    reasons[r["reason"]] = reasons.get(r["reason"], 0) + 1
        assert process.poll() is None
        process.kill()
    good = {"0x1111111122222222", "0x33333333"}
    assert good <= set(seen) <= good | {None}, (seen, reasons)
    assert set(reasons) <= {None, "changed"}, (seen, reasons)


FLIPPING = """
#include <stdio.h>
#include <string.h>
#include <time.h>
volatile unsigned long words[512];
struct pair { struct pair *other; char name[64]; } a = { &a, "aaaa" }, b = { &b, "bbbb" };
struct pair *volatile current = &a;
int main(void)
{
	struct timespec pause = { 0, 30000 };
	puts("done");
	fflush(stdout);
	for (unsigned i = 0;; i++) {
		const int letter = "ab"[i % 2];
		struct pair *p = i % 2 ? &b : &a;
		for (int k = 0; k < 512; k++)
			words[k] = i % 2;
		/* Who is not pointed to may have any name. */
		memset(p->name, letter, 60);
		current = p;
		memset((i % 2 ? &a : &b)->name, 'x', 60);
		/* What comes back within one reading, in less than a microsecond, can be mixed in two. */
		nanosleep(&pause, NULL);
	}
}
"""


@test("values that change while they are read: all of one moment, or that they changed")
def torn(folder):
    path = os.path.join(folder, "flipping")
    run("gcc", "-O2", "-o", path, "-x", "c", "-", input=FLIPPING)
    with Asked([path]) as program:
        for query, kind in (("words", "u64[512]"), ("current", "*+8:str")):
            seen = set()
            command = [FATHOM, "find", "--json", "--no-cache", "--first", "--read", kind, str(program.pid)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                for _ in range(2000):
                    process.stdin.write(query + "\n")
                    process.stdin.flush()
                    record = json.loads(process.stdout.readline())
                    value = record["value"]
                    seen.add("changed" if value is None else str(value[0]))
                    if value is None:
                        assert record["reason"] == "changed", record
                        continue
                    # The program may stand in the midst of them: new ones, then old ones.
                    turns = sum(x != y for x, y in zip(value, value[1:]))
                    assert turns == 0 if query == "current" else turns <= 1, (query, turns, value)
                    assert query != "current" or value[0] in "ab", record
                process.stdin.close()
            assert len(seen - {"changed"}) == 2, (query, seen)


@test("a program that maps a file of another machine keeps its own layout, for values and instructions")
def other_machine(folder):
    other = os.path.join(folder, "other.so")
    run("i686-linux-gnu-gcc", "-shared", "-fPIC", "-nostdlib", "-o", other, "-x", "c", "-", input="int other(void) { return 1; }")
    path = os.path.join(folder, "maps")
    run("gcc", "-O1", "-o", path, "-x", "c", "-", input=f"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
const char *text = "told";
int main(void)
{{
	int fd = open("{other}", O_RDONLY);
	mmap((void *)0x10000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	mmap((void *)0x10001000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0x1000);
	printf("main 0x%lx\\ndone\\n", (unsigned long)main);
	fflush(stdout);
	return getchar();
}}""")
    with Asked([path]) as program:
        (record,), _ = find(program.pid, "text", "--read", "*str")
        assert record["value"] == "told", record
        live, stored = ([line.split()[1] for line in run(FATHOM, "disasm", str(target), "main").splitlines()[1:4]]
                        for target in (program.pid, path))
        assert live == stored, (live, stored)


@test("values: what is no type, or too large, is refused with its place")
def bad_types(_):
    for kind, part in [("u31", "u31"), ("u32[", "number and ]"), ("bytes:", "number of bytes"), ("", "--read"),
                       ("u64[8193]", "65,536"), ("u8[0]", "65,536"), ("str:65537", "65,536"), ("*" * 17 + "u8", "16 hops"),
                       ("u8 ", "follow"), ("+:u8", "+:u8"), ("u32[99999999999999999999]", "number"), ("ptr->", "--read")]:
        done = subprocess.run([FATHOM, "find", "--read", kind, LIBC, "labs"], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2 and part in done.stderr and not done.stdout, (kind, done)


# Processes.

DLSYM_NAMES = ["malloc", "free", "memcpy", "strlen", "printf", "environ", "stdout", "main", "pthread_create",
               "dlsym", "qsort", "clock_gettime", "__vdso_clock_gettime", "_rtld_global", "nothing_like_it", "counted",
               "hidden_function", "over_only", "indirect", "versioned", "retired", "call_indirect", "exported_code"]


def check_default(program, names, skip=()):
    """Rank 0 is what dlsym(RTLD_DEFAULT) answers there."""
    for name in names:
        want = program.default(name)
        got = dynamic(program.pid, name)
        # dlsym() calls the resolver; where no slot holds its answer, we say so and no address.
        if got and got["type"] == "ifunc" and got["address"] is None and name in skip:
            assert got["reason"] == "unsupported" and got["resolver"], got
            continue
        assert (got and address(got)) == want, (name, got, want and hex(want))
    # Who wants the first only gets the same, whether all of them have such an answer or not.
    known = [name for name in names if program.default(name)]
    for asked in (known, names):
        records, _ = find(program.pid, asked)
        firsts = {r["query"]: r for r in reversed(records)}
        records, _ = find(program.pid, asked, "--first")
        assert records == [firsts[name] for name in asked], (records, firsts)


STYLES = [("PIE", "gcc", []), ("fixed addresses", "gcc", ["-no-pie"]), ("exported", "gcc", ["-rdynamic"]),
          ("lld", "clang-19", ["-fuse-ld=lld"]), ("gold", "gcc", ["-fuse-ld=gold"]),
          ("2 MiB pages", "gcc", ["-Wl,-z,max-page-size=0x200000"]),
          ("noseparate-code", "gcc", ["-Wl,-z,noseparate-code"]),
          ("code at 0x10000000", "gcc", ["-no-pie", "-Wl,-Ttext-segment=0x10000000"]),
          ("lld, segments that share pages", "clang-19", ["-fuse-ld=lld", "-Wl,-z,noseparate-code"]),
          ("bound at once", "gcc", ["-Wl,-z,now"]), ("bound lazily", "gcc", ["-Wl,-z,lazy"])]


def add_style(name, compiler, options):
    @test(f"dlsym's answers: {name}")
    def _(folder):
        with asked(folder, *options, compiler=compiler) as program:
            check_default(program, DLSYM_NAMES, skip=("memcpy", "strlen"))
            for static, place in program.places.items():
                records, _ = find(program.pid, static)
                assert place in [address(r) for r in records], (static, records)
            told = program.tell("tls")
            for name in ("thread_own", "thread_hidden"):
                records, _ = find(program.pid, name)
                want = {n: place for n, place in told.items() if n.startswith(name + ":")}
                assert {f"{name}:{r['tid']}": address(r) for r in records} == want and len(want) == 3, (records, want)


for style in STYLES:
    add_style(*style)


def add_library_style(name, compiler, options):
    @test(f"a library: {name}: exported, static, thread-local, in two namespaces")
    def _(folder):
        with asked(folder) as program, Told([told_build(folder, "told", "-ldl")]) as told:
            path = library(folder, "libversions.so", *options, compiler=compiler)
            for command in ("open", "space"):
                program.tell(f"{command} {path}")
                for query in ("versioned", "call_indirect"):
                    want = program.tell(f"of {query}")[query]
                    assert want in places(program.pid, f"libversions*:{query}")[f"libversions*:{query}"], query
                if command == "open":
                    want = program.tell("of library_thread_own")["library_thread_own"]
                    assert [address(r) for r in find(program.pid, "library_thread_own")[0]] == [want]
            path = told_library(folder, "lib.so", *options, compiler=compiler)
            first, second = told.tell(f"open {path}"), told.tell(f"space {path}")
            for query in first:
                assert set(places(told.pid, query)[query]) == {first[query], second[query]}, (query, first, second)


for style in [("pages of 2 MiB", "gcc", ["-Wl,-z,max-page-size=0x200000"]),
              ("linked to 0x10000000, as prelink does", "gcc", ["-Wl,-Ttext-segment=0x10000000"]),
              ("lld", "clang-19", ["-fuse-ld=lld"]),
              ("lld, segments that share pages", "clang-19", ["-fuse-ld=lld", "-Wl,-z,noseparate-code"]),
              ("gold", "gcc", ["-fuse-ld=gold"])]:
    add_library_style(*style)


@test("dlsym's answers: a function whose address a program at fixed addresses takes is its stub")
def canonical_stub(folder):
    source = os.path.join(folder, "s.c")
    with open(source, "w", encoding="ascii") as f:
        f.write('#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n'
                'int (*volatile p)(const char *);\n'
                'int main(void) { p = puts; printf("puts 0x%lx\\ndone\\n", (unsigned long)dlsym(RTLD_DEFAULT, "puts"));'
                'fflush(stdout); return getchar(); }\n')
    path = os.path.join(folder, "s")
    run("gcc", "-no-pie", "-fno-pic", "-O1", "-o", path, source, "-ldl")
    assert re.search(r" [1-9a-f]\w+ +0 FUNC +GLOBAL DEFAULT +UND puts|0{8,}40\w+ +0 FUNC +GLOBAL DEFAULT +UND puts",
                     run("readelf", "-W", "--dyn-syms", path)), "no stub stands for puts"
    with Asked([path]) as program:
        got = dynamic(program.pid, "puts")
        assert address(got) == program.places["puts"] and got["source"] == "plt", (got, program.places)


@test("dlsym's answers: what is preloaded comes first, RTLD_LOCAL not at all, RTLD_GLOBAL last")
def interposed(folder):
    over = library(folder, "libover.so", source="over.c")
    versions = library(folder)
    with asked(folder, env={"LD_PRELOAD": over}) as program:
        check_default(program, DLSYM_NAMES, skip=("memcpy", "strlen"))
        records, _ = find(program.pid, "malloc")
        assert os.path.basename(records[0]["module"]) == "libover.so", records
        assert "libc.so.6" in {os.path.basename(r["module"]) for r in records[1:]}
        program.tell(f"open {versions}")
        check_default(program, ["versioned", "retired", "call_indirect"])
        records, _ = find(program.pid, "versioned")
        assert [(r["rank"], r["version"]) for r in records] == [(1, "V_2"), (2, "V_1")], records
        program.tell(f"global {versions}")
        check_default(program, ["versioned", "retired", "call_indirect", "indirect"])
        assert dynamic(program.pid, "versioned")["version"] == "V_2"


@test("dlsym's answers while libraries come and go: never another than the program's own")
def while_loading(folder):
    source = ("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n"
              "int main(int argc, char **argv) { dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);"
              "printf(\"stays 0x%lx\\ndone\\n\", (unsigned long)dlsym(RTLD_DEFAULT, \"stays\")); fflush(stdout);"
              "for (;;) dlclose(dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL)); }")
    path = os.path.join(folder, "loads")
    run("gcc", "-o", path, "-x", "c", "-", "-ldl", input=source)
    stays, goes = (os.path.join(folder, name) for name in ("libstays.so", "libgoes.so"))
    run("gcc", "-shared", "-fPIC", "-o", stays, "-x", "c", "-", input="int stays(void) { return 1; }")
    run("gcc", "-shared", "-fPIC", "-o", goes, "-x", "c", "-", input="int goes(void) { return 1; }")
    with Asked([path, stays, goes]) as program:
        for _ in range(250):
            done = subprocess.run([FATHOM, "find", "--json", "--first", str(program.pid), "stays"], capture_output=True,
                                  text=True, check=True)
            record = json.loads(done.stdout)
            assert address(record) == program.places["stays"], record
            assert record["rank"] == 0 or "at work" in done.stderr, done


@test("dlsym's answers in one library, by its name: local ones, and those of another namespace")
def of_library(folder):
    versions = library(folder)
    over = library(folder, "libover.so", "-Wl,--no-as-needed", source="over.c")
    with asked(folder) as program:
        program.tell(f"open {versions}")
        for name in ("versioned", "indirect", "call_indirect"):
            want = program.tell(f"of {name}")[name]
            assert address(dynamic(program.pid, f"libversions*:{name}")) == want, name
        assert dynamic(program.pid, "libversions.so:retired") is None
        assert dynamic(program.pid, f"{folder}/*:call_indirect") is not None
        program.tell(f"space {over}")
        want = program.tell("of malloc")["malloc"]
        assert address(dynamic(program.pid, "libover.so:malloc")) == want
        # A file is called by its soname, too, where that is another.
        moved = os.path.join(folder, "libmoved.so.1.2.3")
        shutil.copy(library(folder, "libtold.so.1", source="versions.c"), moved)
        program.tell(f"open {moved}")
        want = program.tell("of versioned")["versioned"]
        for called in ("libtold.so.1", "libmoved.so.1.2.3", "libtold*", moved):
            assert address(dynamic(program.pid, f"{called}:versioned")) == want, called
        assert dynamic(program.pid, "libtold.so:versioned") is None
        # There are two of libc now, and the program's own answers.
        records, _ = find(program.pid, "libc.so.6:qsort")
        assert len({address(r) for r in records}) == 2, records
        check_default(program, DLSYM_NAMES, skip=("memcpy", "strlen"))


@test("dlvsym's answers: each version")
def dlvsym(folder):
    with asked(folder, env={"LD_PRELOAD": library(folder)}) as program:
        for name, version in [("versioned", "V_1"), ("versioned", "V_2"), ("retired", "V_1"),
                              ("memcpy", "GLIBC_2.2.5"), ("pthread_create", "GLIBC_2.2.5"),
                              ("pthread_create", "GLIBC_2.34"), ("versioned", "V_3"), ("qsort", "GLIBC_2.34")]:
            want = program.tell(f"version {name} {version}")[name] or None
            got = dynamic(program.pid, f"{name}@{version}")
            assert (got and address(got)) == want, (name, version, got, want)


@test("dlvsym's answers: a library without any versions, which is before")
def dlvsym_unversioned(folder):
    plain = os.path.join(folder, "libplain.so")
    run("gcc", "-shared", "-fPIC", "-nostdlib", "-o", plain, "-x", "c", "-", input="int versioned(int x) { return -x; }")
    with asked(folder, env={"LD_PRELOAD": f"{plain} {library(folder)}"}) as program:
        for version in ("V_1", "V_2"):
            want = program.tell(f"version versioned {version}")["versioned"]
            assert address(dynamic(program.pid, f"versioned@{version}")) == want, version
            assert address(dynamic(program.pid, f"versioned@@{version}")) == want, version


@test("what a namespace has only once: not known where a library with RTLD_LOCAL may have been first")
def unique(folder):
    source = 'inline int only_one = ID; extern "C" int *get_one() { return &only_one; }'
    one, two = (os.path.join(folder, f"lib{i}.so") for i in "12")
    for number, path in enumerate((one, two)):
        run("g++", "-std=c++17", "-shared", "-fPIC", f"-DID={number}", "-o", path, "-x", "c++", "-", input=source)
    with asked(folder) as program:
        program.tell(f"open {one}")
        program.tell(f"global {two}")
        # dlsym() answers what is in the first, though that is none that it searches.
        assert program.default("only_one") == program.tell("of only_one")["only_one"]
        for query in ("only_one", "lib2.so:only_one"):
            got = dynamic(program.pid, query)
            assert got is None or address(got) == program.default("only_one"), got
    with asked(folder, env={"LD_PRELOAD": f"{one} {two}"}) as program:
        assert address(dynamic(program.pid, "only_one")) == program.default("only_one")


@test("an IFUNC: what its slot holds; without a slot its resolver is not taken for it")
def ifunc(folder):
    versions = library(folder)
    value = {n: v[0][0] for n, v in nm(versions).items()}
    for binding in ("-Wl,-z,now", "-Wl,-z,lazy"):
        library(folder, "libversions.so", binding)
        with asked(folder, env={"LD_PRELOAD": versions}) as program:
            value = {n: v[0][0] for n, v in nm(versions).items()}
            bias = program.default("call_indirect") - value["call_indirect"]
            (record,), _ = find(program.pid, "indirect")
            if binding == "-Wl,-z,now":
                assert address(record) == program.default("indirect") == value["chosen_other"] + bias, record
            else:
                # Nobody has called it: its slot leads to a stub.
                assert address(record) in (None, program.default("indirect")), record
            assert int(record["resolver"], 16) == value["indirect"] + bias and record["type"] == "ifunc"
            (record,), _ = find(program.pid, "unused_indirect", status=(0, 1))
            assert address(record) in (None, value["chosen_other"] + bias), record
            assert record["address"] or record["reason"] == "unsupported", record


@test("an IFUNC without section headers: the way back to its own stub is not taken for it")
def ifunc_stub(folder):
    versions = library(folder, "libversions.so", "-Wl,-z,lazy")
    strip_headers(versions)
    with asked(folder, env={"LD_PRELOAD": versions}) as program:
        (record,), _ = find(program.pid, "indirect", status=(0, 1))
        assert address(record) in (None, program.default("indirect")), record
        # Called once, its slot holds it.
        program.tell("call call_indirect")
        (record,), _ = find(program.pid, "indirect")
        assert address(record) == program.default("indirect"), record


@test("an IFUNC of several versions: a reference without a version is to the oldest")
def ifunc_versions(folder):
    stub = os.path.join(folder, "stub")
    os.mkdir(stub)
    run("gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6", "-o", os.path.join(stub, "libc.so.6"),
        "-x", "c", "-", input="void copy(void) {} __asm__(\".globl memcpy; memcpy = copy; .type memcpy, @function\");")
    path = os.path.join(folder, "libuser.so")
    run("gcc", "-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-Wl,-z,now", "-o", path, "-x", "c", "-", "-x", "none",
        os.path.join(stub, "libc.so.6"), input="extern void *memcpy(); void *used = memcpy;")
    with asked(folder, env={"LD_PRELOAD": path}) as program:
        for version in ("GLIBC_2.2.5", "GLIBC_2.14"):
            want = program.tell(f"version memcpy {version}")["memcpy"]
            assert address(dynamic(program.pid, f"memcpy@{version}")) == want, version
        (record,), _ = find(program.pid, "used", "--read", "ptr")
        assert int(record["value"], 16) == program.tell("version memcpy GLIBC_2.2.5")["memcpy"], record


@test("memcpy of a process is the variant that this processor gets, as its slot says")
def memcpy_variant(folder):
    with asked(folder) as program:
        got = dynamic(program.pid, "memcpy")
        assert got["type"] == "ifunc" and address(got) == program.default("memcpy"), got
        if os.path.isdir("/usr/lib/debug/.build-id"):
            back = run(FATHOM, "addr", "--json", "--no-cache", "--names-only", program.pid, got["address"])
            assert re.search(r'"symbol":"(__)?mem(cpy|move)_\w+"', back), back


@test("TLS: each thread's own, of the program and of a library, and none of who has not used it")
def thread_local(folder):
    versions = library(folder)
    with asked(folder) as program:
        told = program.tell("tls")
        for name in ("thread_own", "thread_hidden"):
            records, _ = find(program.pid, name)
            got = {f"{name}:{r['tid']}": address(r) for r in records}
            want = {n: a for n, a in told.items() if n.startswith(name + ":")}
            assert got == want and len(got) == 3, (got, want)
            assert {r["type"] for r in records} == {"tls"}
        records, _ = find(program.pid, "thread_own", "--read", "i32")
        assert sorted(r["value"] for r in records) == [1, 42, 43], records
        program.tell(f"open {versions}")
        want = program.tell("of library_thread_own")["library_thread_own"]
        records, _ = find(program.pid, "library_thread_own", "--read", "i32")
        # Only the thread that has asked for it has a copy.
        assert [(r["tid"], address(r), r["value"]) for r in records] == [(program.pid, want, 7)], records
        program.tell("close")
        program.tell(f"open {library(folder, 'libothers.so')}")
        records, _ = find(program.pid, "library_thread_own")
        assert [(r["address"], r["tid"]) for r in records] == [(None, None)], records


@test("TLS of a file has an offset and no address")
def thread_local_file(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    (record,), _ = find(path, "thread_own")
    want = nm(path)["thread_own"][0][0]
    assert (record["address"], record["module_address"], record["reason"]) == (None, hex(want), None), record


def thread_copies(target):
    """{"NAME:TID": address} of the variables of programs/threads.c, {"NAME": address} of what all threads share."""
    records, _ = find(target, ["exported_one", "static_one", "aligned_one", "barrier"])
    return {f"{r['name']}:{r['tid']}" if r["tid"] else r["name"]: address(r) for r in records}


def add_threads(name, compiler, options):
    @test(f"TLS of a program of its own: {name}: each thread's, in the process and in its core")
    def _(folder):
        path = os.path.join(folder, "threads")
        run(compiler, "-O1", "-pthread", *options, "-o", path, os.path.join(PROGRAMS, "threads.c"))
        with Asked([path]) as program:
            assert len(program.places) == 10, program.places
            got = thread_copies(program.pid)
            assert got == program.places, (got, program.places)
            run("gcore", "-o", os.path.join(folder, "core"), str(program.pid))
        got = thread_copies(os.path.join(folder, f"core.{program.pid}"))
        assert got == program.places, (got, program.places)


@test("TLS: the main thread's copy comes first, then the others' by their numbers; --thread chooses one")
def thread_local_first(folder):
    for options in ([], ["-DOWN_STACKS"], ["-DOWN_STACKS", "-static"]):
        check_thread_order(folder, options)


def check_thread_order(folder, options):
    path = os.path.join(folder, "threads")
    run("gcc", "-O1", "-pthread", *options, "-o", path, os.path.join(PROGRAMS, "threads.c"))
    with Asked([path]) as program:
        tids = sorted(int(place.split(":")[1]) for place in program.places if place.startswith("exported_one:"))
        assert len(tids) == 3 and program.pid in tids, tids
        run("gcore", "-o", os.path.join(folder, "core"), str(program.pid))

        def check(target):
            records, _ = find(target, "exported_one", "--read", "i32")
            wanted = [program.pid] + [t for t in tids if t != program.pid]
            assert [(r["tid"], r["value"]) for r in records] == [(t, 5 + (t != program.pid)) for t in wanted], records
            for options in (["--first"], ["--limit=1"], [f"--thread={program.pid}"]):
                (record,), _ = find(target, "exported_one", *options, "--read", "i32")
                assert (record["tid"], record["value"], address(record)) == \
                    (program.pid, 5, program.places[f"exported_one:{program.pid}"]), (options, record)
            for tid in tids:
                for name in ("exported_one", "static_one", "aligned_one"):
                    (record,), _ = find(target, name, f"--thread={tid}")
                    assert (record["tid"], address(record)) == (tid, program.places[f"{name}:{tid}"]), record
            done = subprocess.run([FATHOM, "find", "--json", "--thread=2147483647", str(target), "exported_one"],
                                  capture_output=True, text=True, check=False)
            record = json.loads(done.stdout)
            assert (done.returncode, record["address"], record["reason"]) == (1, None, "unmapped"), done
            assert "the thread that was chosen has no copy" in done.stderr, done.stderr

        check(program.pid)
    check(os.path.join(folder, f"core.{program.pid}"))
    done = subprocess.run([FATHOM, "find", f"--thread={program.pid}", path, "exported_one"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and "only processes and cores have threads" in done.stderr, done


for style in (("dynamic", "gcc", []), ("static", "gcc", ["-static"]), ("static PIE", "gcc", ["-static-pie"]),
              ("static, by lld", "clang-19", ["-static", "-fuse-ld=lld"]),
              ("static, of 32 bit", "i686-linux-gnu-gcc", ["-static"])):
    add_threads(*style)


@test("TLS: a list of threads in a circle that leaves out its head: each thread once")
def thread_local_circle(folder):
    source = "#include <stdio.h>\n__thread int own_one = 5;\nextern struct list { struct list *next, *prev; } _dl_stack_user;" \
        "\nint main(void) { _dl_stack_user.next->next = _dl_stack_user.next; printf(\"own_one %p\\ndone\\n\", (void *)&own_one);" \
        " fflush(stdout); return getchar(); }"
    path = os.path.join(folder, "circle")
    run("gcc", "-static", "-o", path, "-x", "c", "-", input=source)
    with Asked([path]) as program:
        started = time.monotonic()
        records, _ = find(program.pid, "own_one")
        assert time.monotonic() - started < 10
        assert [(address(r), r["tid"]) for r in records] == [(program.places["own_one"], program.pid)], records[:3]


@test("TLS of a static program without its symbols: not known, and said so")
def thread_local_stripped(folder):
    path = os.path.join(folder, "threads")
    run("gcc", "-O1", "-pthread", "-static", "-o", path, os.path.join(PROGRAMS, "threads.c"))
    run("objcopy", "--strip-symbol=_dl_stack_user", path)
    with Asked([path]) as program:
        (record,), _ = find(program.pid, "exported_one", status=(1,))
        assert (record["address"], record["reason"], record["type"]) == (None, "unsupported", "tls"), record


@test("static programs: their own symbols, IFUNCs through their slots")
def static_program(folder):
    source = "#include <stdio.h>\n#include <string.h>\nstatic char to[64];\n__attribute__((noinline)) int own(int x)" \
             "{ memcpy(to, \"abcdefgh\", (size_t)x); return to[0]; }\n" \
             "int main(int n, char **v) { printf(\"own 0x%lx\\n\", (long)own); printf(\"memcpy 0x%lx\\ndone\\n\"," \
             "(long)memcpy); fflush(stdout); return own(n) + getchar(); }"
    for kind in ("-static", "-static-pie"):
        path = os.path.join(folder, "static" + kind)
        run("gcc", "-O1", "-fno-builtin", kind, "-fPIE" if "pie" in kind else "-fno-pie", "-o", path, "-x", "c", "-",
            input=source)
        with Asked([path]) as program:
            assert places(program.pid, "own")["own"] == [program.places["own"]], kind
            records, _ = find(program.pid, "memcpy")
            ifuncs = [r for r in records if r["type"] == "ifunc"]
            assert ifuncs and ifuncs[0]["address"], (kind, records)
            # Its address is that of its stub, which jumps to what was chosen.
            back = run(FATHOM, "addr", "--json", "--names-only", "--no-cache", program.pid, ifuncs[0]["address"])
            assert re.search(r'"symbol":"(__)?mem(cpy|move)_', back), (kind, back, records)
            assert [r for r in records if r["rank"] == 0] == []


@test("32 bit: names, dlsym's answers and pointers of 4 bytes")
def thirty_two(folder):
    sysroot = "/usr/i686-linux-gnu"
    loader = f"{sysroot}/lib/ld-linux.so.2"
    path = build(folder, "asked", "-ldl", "-pthread", compiler="i686-linux-gnu-gcc")
    try:
        program = Asked([loader, "--library-path", f"{sysroot}/lib", path])
    except OSError as error:
        raise tap.Skip(f"this kernel does not run 32-bit programs: {error}") from error
    with program:
        for name, place in program.places.items():
            records, _ = find(program.pid, name)
            assert place in [address(r) for r in records], (name, records)
        check_default(program, ["malloc", "printf", "qsort", "nothing", "main"])
        records, _ = find(program.pid, "first", "--read", "ptr->str")
        assert records[0]["value"] == "first", records
        records, _ = find(program.pid, "first", "--read", "+4:*+8:i32[4]")
        assert records[0]["value"] == [5, 6, 7, 8], records
        told = program.tell("tls")
        records, _ = find(program.pid, "thread_own")
        assert {f"thread_own:{r['tid']}": address(r) for r in records} == \
            {n: a for n, a in told.items() if n.startswith("thread_own:")}, records


@test("perl: names, types and sizes as readelf has them, addresses by the map, text as perl has it")
def perl(_):
    with subprocess.Popen(["perl", "-e", "$| = 1; print qq(ready\\n); <STDIN>"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        names = ["PL_bincompat_options", "Perl_sv_catpv_mg", "Perl_pp_ucfirst"]
        records, _ = find(process.pid, names)
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
            mapped = [line.split() for line in maps if line.rstrip("\n").endswith(" " + records[0]["module"])]
        # The first segment of a PIE or a library is at 0, and is mapped where its file begins.
        bias = next(int(f[0].split("-")[0], 16) for f in mapped if int(f[2], 16) == 0)
        for record in records[:len(names)]:
            symbols = run("readelf", "-W", "--dyn-syms", record["module"])
            m = re.search(rf"([0-9a-f]+)\s+(\d+) (\w+)\s+GLOBAL\s+\w+\s+\w+ {record['query']}$", symbols, re.M)
            assert m and int(m[1], 16) == int(record["module_address"], 16) and int(m[2]) == record["size"], record
            assert m[3].lower() == record["type"] and record["rank"] == 0
            assert address(record) == bias + int(m[1], 16), (record, hex(bias))
            back = run(FATHOM, "addr", "--json", "--no-cache", process.pid, record["address"])
            assert f'"symbol":"{record["query"]}"' in back and '"offset":0' in back
        # A text of perl's, which it also prints.
        said = run("perl", "-MConfig", "-e", "print join(q( ), Config::bincompat_options())")
        records, _ = find(process.pid, "PL_bincompat_options", "--read", "str")
        assert said and records[0]["value"].strip() == said, (records, said)
        process.kill()


def add_python(layout, make, library):
    @test(f"python3, {layout}: _PyRuntime and Py_Version of the right object, and text that a pointer leads to")
    def _(folder):
        command = make(folder)
        script = "import sys; print(sys.hexversion, flush=True); input()"
        with subprocess.Popen([command, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            version = int(process.stdout.readline())
            record = dynamic(process.pid, "_PyRuntime")
            assert record["type"] == "object" and record["size"] > 1000, record
            assert os.path.basename(record["module"]).startswith(library), record
            records, _ = find(process.pid, "Py_Version", "--read", "u64")
            assert records[0]["value"] == version and records[0]["module"] == record["module"], records
            records, _ = find(process.pid, "PyType_Type", "--read", "+24:*str")
            assert records[0]["value"] == "type", records
            process.kill()


def with_libpython(folder):
    """Python as pyenv builds it: a small PIE, and all else in libpython."""
    version = run("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    path = os.path.join(folder, "python")
    run("gcc", "-pie", "-o", path, "-x", "c", "-", f"-l:libpython{version}.so.1.0",
        input="int Py_BytesMain(int, char **); int main(int n, char **words) { return Py_BytesMain(n, words); }")
    return path


add_python("all in the program", lambda _: "/usr/bin/python3", "python3")
add_python("a PIE with libpython", with_libpython, "libpython3")


@test("addresses by gdb's info address, in a process")
def gdb_addresses(folder):
    with asked(folder) as program:
        names = ["qsort", "labs", "strtol", "getenv", "hidden_function", "main", "counted", "environ"]
        commands = [x for n in names for x in ("-ex", f"info address {n}")]
        out = run("gdb", "-q", "-nx", "-batch", "-p", program.pid, *commands, status=None)
        found = dict(re.findall(r'Symbol "(\w+)" is (?:.*?)(0x[0-9a-f]+)', out))
        assert len(found) > 5, out
        for name, theirs in found.items():
            assert int(theirs, 16) in places(program.pid, name)[name], (name, theirs)


@test("a library that is mapped late is waited for; one that never comes ends with a reason")
def late(folder):
    versions = library(folder)
    with asked(folder) as program:
        waiting = subprocess.Popen([FATHOM, "find", "--wait", "20", str(program.pid), "call_indirect"],
                                   stdout=subprocess.PIPE, text=True)
        time.sleep(0.3)
        assert waiting.poll() is None
        program.tell(f"open {versions}")
        start = time.monotonic()
        out, _ = waiting.communicate(timeout=20)
        assert waiting.returncode == 0 and "libversions.so" in out and time.monotonic() - start < 2, out
        start = time.monotonic()
        records, _ = find(program.pid, "nothing_like_it", "--wait", "1", status=(1,))
        assert records[0]["reason"] == "no-such-symbol" and 0.9 < time.monotonic() - start < 10


@test("a wrapper that runs another program late is waited for, across exec")
def late_exec(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    with subprocess.Popen(["sh", "-c", f"sleep 0.5; exec {path}"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        start = time.monotonic()
        records, _ = find(process.pid, "counted", "--wait", "20", "--read", "i64", status=(0,))
        assert records[0]["value"] == 42 and time.monotonic() - start < 2.5, records
        process.kill()


@test("a process that ends while it is waited for: a clear error, at once")
def ended(_):
    with subprocess.Popen(["sleep", "0.5"]) as process:
        done = subprocess.run([FATHOM, "find", "--wait", "20", str(process.pid), "nothing_like_it"],
                              capture_output=True, text=True, check=False, timeout=15)
        assert done.returncode == 2 and "fathom:" in done.stderr, done


@test("a stopped process is answered")
def stopped(folder):
    with asked(folder) as program:
        os.kill(program.pid, signal.SIGSTOP)
        assert places(program.pid, "main")["main"] == [program.places["main"]]
        records, _ = find(program.pid, "thread_own")
        assert records[0]["tid"] == program.pid and records[0]["address"]


@test("under change: libraries that come and go, and the answer is true or there is none")
def changing(folder):
    versions = library(folder)
    names = ["call_indirect", "versioned", "library_thread_own"]
    with asked(folder) as program:
        program.tell(f"global {versions}")
        good = {n: program.default(n) for n in names[:2]}
        program.tell("close")
        script = "".join(f"global {versions}\nclose\n" for _ in range(3000))
        thread = threading.Thread(target=lambda: (program.process.stdin.write(script),
                                                  program.process.stdin.flush()), daemon=True)
        drain = threading.Thread(target=program.process.stdout.read, daemon=True)
        drain.start()
        thread.start()
        answered = set()
        for _ in range(60):
            records, _ = find(program.pid, names[:2])
            for r in records:
                answered.add(r["rank"])
                if r["address"] and r["rank"] == 0:
                    low = good[r["query"]] & 0xfff
                    assert address(r) & 0xfff == low, (r, good)
        assert answered, answered
        program.process.kill()
        thread.join(5)
        drain.join(5)


def in_namespace(folder, script):
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]


@test("a container: another mount and pid namespace, a library that is only there", needs_root=True)
def container(folder):
    tap.need_mount_namespaces()
    inside = os.path.join(folder, "inside")
    there = os.path.join(folder, "there")
    os.mkdir(inside)
    os.mkdir(there)
    path = build(folder, "asked", "-ldl", "-pthread")
    library(inside, "libversions.so")
    command = in_namespace(folder, f"mount --bind {inside} {there} && LD_PRELOAD={there}/libversions.so exec {path}")
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = {}
        for line in program.stdout:
            if line == "done\n":
                break
            name, place = line.split()
            told[name] = int(place, 16)
        assert told, "the namespace could not be made"
        children = open(f"/proc/{program.pid}/task/{program.pid}/children", encoding="ascii").read().split()
        pid = int(children[0])
        program.stdin.write("default versioned\n")
        program.stdin.flush()
        want = int(program.stdout.readline().split()[1], 16)
        got = dynamic(pid, "versioned")
        assert address(got) == want and got["module"] == f"{there}/libversions.so", got
        for name, place in told.items():
            assert place in places(pid, name)[name], name
        assert not os.path.exists(f"{there}/libversions.so")
    finally:
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()


@test("deleted: the program and a library are gone from the disk, and are found all the same")
def deleted(folder):
    versions = library(folder)
    with asked(folder, env={"LD_PRELOAD": versions}) as program:
        want = program.default("versioned")
        os.unlink(versions)
        os.unlink(os.path.join(folder, "asked"))
        library(folder, "libversions.so", "-O0")
        assert address(dynamic(program.pid, "versioned")) == want
        assert places(program.pid, "main")["main"] == [program.places["main"]]


@test("a program that is only in memory (memfd)")
def memfd(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    fd = os.memfd_create("hidden")
    with open(path, "rb") as f:
        os.write(fd, f.read())
    program = Asked([f"/proc/self/fd/{fd}"], pass_fds=(fd,))
    with program:
        for name, place in program.places.items():
            assert place in places(program.pid, name)[name], name


@test("libffi's trampolines: a page of it that is mapped twice does not move it")
def trampolines(_):
    # Debian's libffi is built without trampolines of its own: what they do, the program does itself. The first
    # mapping is below the library, as py-spy's report has it.
    script = ("import ctypes, mmap, os\nF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)\nf = F(lambda x: x)\n"
              "lib = ctypes.CDLL('libffi.so.8')\n"
              "map = ctypes.CDLL(None).mmap\nmap.restype = ctypes.c_void_p\n"
              "map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\n"
              "line = next(l for l in open('/proc/self/maps') if 'libffi' in l and 'r-xp' in l).split()\n"
              "fd = os.open(line[5], os.O_RDONLY)\n"
              "for at in (0x20000000, 0x7ffff0000000):\n"
              "    print(hex(map(at, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, int(line[2], 16) + 4096)))\n"
              "print(hex(ctypes.cast(lib.ffi_call, ctypes.c_void_p).value), flush=True)\ninput()\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        low, high, want = (int(process.stdout.readline(), 16) for _ in range(3))
        assert low < want < high, "the page is not on both sides: the test shows nothing"
        got = places(process.pid, "libffi*:ffi_call")["libffi*:ffi_call"]
        # Where a second mapping holds the function, it is that of the same bytes.
        assert got[0] == want and len(got) <= 3, (got, want)
        back = json.loads(run(FATHOM, "addr", "--json", "--no-cache", process.pid, hex(want)))
        assert (back["symbol"], back["offset"]) == ("ffi_call", 0), back
        process.kill()


@test("the number of an ended process, a kernel thread: what and why")
def not_ours(_):
    done = subprocess.run([FATHOM, "find", "2", "main"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("fathom: 2: "), done
    done = subprocess.run([FATHOM, "find", "4194303", "main"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no such process" in done.stderr, done


# Cores and snapshots.

@test("a core: names, dlsym's answers, TLS and values, as they were in the process")
def core(folder):
    with asked(folder, env={"LD_PRELOAD": library(folder)}) as program:
        told = program.tell("tls")
        names = [*DLSYM_NAMES, "thread_own", "library_thread_own", "greeting", "first"]
        live, _ = find(program.pid, names)
        values, _ = find(program.pid, "first", "--read", "+8:**str")
        run("gcore", "-o", os.path.join(folder, "core"), program.pid)
        path = os.path.join(folder, f"core.{program.pid}")
        dead, _ = find(path, names)
        assert dead == live, [pair for pair in zip(dead, live) if pair[0] != pair[1]][:2]
        assert {address(r) for r in dead if r["query"] == "thread_own"} >= \
            {a for n, a in told.items() if n.startswith("thread_own:")}
        assert find(path, "first", "--read", "+8:**str")[0] == values and values[0]["value"] == "second", values
        records, _ = find(path, "greeting", "--read", "str")
        assert records[0]["value"] == "good day", records


# Hostile.

@test("damaged tables: every byte of hash, versions and dynamic section changed, and nothing hangs")
def damaged(folder):
    path = library(folder)
    sections = re.findall(r"\] (\.gnu\.hash|\.gnu\.version\S*|\.dynamic|\.dynsym)\s+\w+\s+\w+ (\w+) (\w+)",
                          run("readelf", "-W", "-S", path))
    assert len(sections) >= 4, sections
    data = open(path, "rb").read()
    rng = random.Random(3)
    bad = os.path.join(folder, "bad.so")
    for name, off, size in sections:
        off, size = int(off, 16), int(size, 16)
        for at in range(off, off + size, 1 if size < 400 else 7):
            changed = bytearray(data)
            changed[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff])
            with open(bad, "wb") as f:
                f.write(changed)
            done = subprocess.run([FATHOM, "find", "--no-cache", bad, "versioned", "retired@V_1", "v*"],
                                  capture_output=True, text=True, check=False, timeout=20)
            assert done.returncode in (0, 1, 2), (name, at - off, done)


lookups.add(test, library, asked)
sys.exit(SUITE.run())
