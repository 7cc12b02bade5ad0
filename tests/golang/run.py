#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "golang": programs of Go without symbols and debug information, named by .gopclntab. The truth is what they say of their
own stacks, what nm, readelf and the DWARF of the same program have, and tables that are made by hand."""
import bisect
import functools
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "..", "tools")]

import building  # noqa: E402
import rows  # noqa: E402
import running  # noqa: E402
import tap  # noqa: E402
from ask import FATHOM, addr, addr_stream, execute, find, records_of  # noqa: E402
from table import TEXT, Table  # noqa: E402

SUITE = tap.Suite("golang")
test = SUITE.test
BUILD = os.environ["BUILD"]


def same(got, want):
    if isinstance(got, dict) and isinstance(want, dict):
        got, want = ({key: value for key, value in a.items() if b.get(key) != value} for a, b in ((got, want), (want, got)))
    assert got == want, f"{got}\nis not\n{want}"


@functools.cache
def go(name, *options, source="frames"):
    """A program of Go; skips where there is no Go. What its compiler has made is kept for other runs."""
    if not shutil.which("go"):
        raise tap.Skip("there is no Go compiler")
    folder = os.path.join(os.path.abspath(BUILD), "golang")
    path = os.path.join(folder, name)
    env = os.environ | {"HOME": folder, "GOCACHE": os.path.join(folder, "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0", "GOFLAGS": ""}
    execute("go", "build", *options, "-o", path, os.path.join(HERE, "programs", source + ".go"), env=env, status=0)
    return path


def stripped(folder, path, name="stripped"):
    copy = os.path.join(folder, name)
    execute("strip", "-o", copy, path, status=0)
    return copy


def headless(path):
    """A copy without section headers: the table is found by the segments."""
    copy = shutil.copy(path, path + "-headless")
    building.strip_headers(copy)
    return copy


def own_stacks(path):
    """[(pc, [(function, file, line)])] of the frames that the program prints of itself; the pc is that of the innermost."""
    stacks, was_inlined = [], False
    for line in execute(path, status=0).stdout.splitlines():
        pc, kind, function, file, number = line.split(" ")
        if not was_inlined:
            stacks.append((int(pc, 16), []))
        stacks[-1][1].append((function, file, int(number)))
        was_inlined = kind == "inlined"
    return stacks


def frames_of(record):
    return [(f["function"], f["file"], f["line"]) for f in record["frames"]]


@test("each frame that a program prints of itself, with what was inlined, has that name, file and line, however it was stripped")
def own_frames(folder):
    full = go("full")
    bare = go("bare", "-ldflags=-s -w")
    wanted = dict((pc, frames) for pc, frames in own_stacks(bare))
    assert len(wanted) > 30 and sum(len(frames) > 1 for frames in wanted.values()) > 8, wanted
    assert any(len(frames) > 3 for frames in wanted.values()), wanted
    for path in (bare, headless(bare)):
        found = addr_stream(path, list(wanted))
        same({pc: frames_of(record) for pc, record in zip(wanted, found)}, wanted)
        same({record["source"] for record in found}, {"gopclntab"})
    # The same of what strip leaves, in which the code is where it was.
    wanted = dict((pc, frames) for pc, frames in own_stacks(full))
    path = stripped(folder, full)
    same({pc: frames_of(record) for pc, record in zip(wanted, addr_stream(path, list(wanted)))}, wanted)
    # One address, for which nothing is kept, and by the stored index.
    pc, frames = next((pc, frames) for pc, frames in wanted.items() if len(frames) > 2)
    (record,), said = addr(path, [pc])
    same((frames_of(record), said), (frames, ""))


def as_told(record):
    """The answer without what only debug information knows: ABI0 of assembly, types of generic functions, and the folder "."."""
    text = [[f["function"], (f["file"] or "").removeprefix("./"), f["line"]] for f in record["frames"]]
    for frame in text:
        frame[0] = re.sub(r"\[.*\]", "[...]", (frame[0] or "").removesuffix(".abi0"))
    return record["offset"], record["size"], text


def go_lines(path, addresses):
    """{address: (file, line)} as `go tool addr2line` reads them."""
    out = execute("go", "tool", "addr2line", path, input="".join(f"{a:#x}\n" for a in addresses), status=0).stdout.splitlines()
    return {address: (place.rpartition(":")[0], int(place.rpartition(":")[2])) for address, place in zip(addresses, out[1::2])}


@test("addresses all over the code: symbol, size, lines and inlined calls are those of the same program's symbols and DWARF")
def every_address(folder):
    for options in ((), ("-buildmode=pie",)):
        full = go("pie" if options else "full", *options)
        bare = stripped(folder, full)
        text = building.section(full, ".text")
        addresses = list(range(text.addr, text.addr + text.size, 61))
        known = addr_stream(full, addresses)
        for path in (bare, headless(bare)):
            found = addr_stream(path, addresses)
            wrong = [(ours, theirs) for ours, theirs in zip(found, known) if as_told(ours) != as_told(theirs)]
            # DWARF has no code of wrappers that the compiler makes, and calls them by what is inlined there.
            wrong = [(ours, theirs) for ours, theirs in wrong if not ours["frames"] or ours["frames"][-1]["file"] != "<autogenerated>"]
            # Of a few lines DWARF lacks the row: Go's own tool reads the table, but not that of a PIE.
            assert len(addresses) > 5000 and len(wrong) < 20, (len(wrong), wrong[:3])
            lines = go_lines(bare, [int(ours["address"], 16) for ours, _ in wrong]) if not options else {}
            wrong = [(ours, theirs) for ours, theirs in wrong if lines and frames_of(ours)[0][1:] != lines[int(ours["address"], 16)]]
            assert not wrong, (len(wrong), [(as_told(ours), as_told(theirs)) for ours, theirs in wrong[:4]])
            assert sum(len(record["frames"]) > 1 for record in found) > 300


@test("a program that has symbols but no DWARF: its symbols, with the table's lines")
def symbols_only(folder):
    path = go("symbols", "-ldflags=-w")
    wanted = dict((pc, frames) for pc, frames in own_stacks(path))
    found = addr_stream(path, list(wanted))
    same({record["source"] for record in found}, {"symtab"})
    same({pc: [frame[1:] for frame in frames_of(record)] for pc, record in zip(wanted, found)},
         {pc: [frame[1:] for frame in frames] for pc, frames in wanted.items()})


@test("where functions are: all that nm has of the program before it was stripped, and the inlined copies of others")
def names(folder):
    full = go("full")
    bare = stripped(folder, full)
    wanted = {}
    for line in execute("nm", full, status=0).stdout.splitlines():
        words = line.split(" ", 2)
        if len(words) == 3 and words[1] in "tT" and re.match(r"(main|sort|strings|runtime)\.[\w.()*]+$", words[2]):
            # A function and its wrapper for assembly have one name in the table.
            wanted.setdefault(words[2].removesuffix(".abi0"), set()).add(int(words[0], 16))
    # Boundaries of the text, which are no functions.
    for name in ("runtime.text", "runtime.etext"):
        wanted.pop(name, None)
    assert len(wanted) > 500, len(wanted)
    matches, _ = find(bare, list(wanted))
    found = {}
    for match in matches:
        if match["type"] == "func":
            same(match["table"], "gopclntab")
            found.setdefault(match["name"], set()).add(int(match["address"], 16))
    same(found, wanted)
    inlined, _ = find(bare, ["main.inner"])
    known, _ = find(full, ["main.inner"])
    assert len(inlined) > 5 and {match["address"] for match in inlined} == {match["address"] for match in known}, inlined


@test("addr2line and llvm-symbolizer know nothing of the table, and neither does fathom in their place")
def personalities(folder):
    bare = go("bare", "-ldflags=-s -w")
    text = building.section(bare, ".text")
    addresses = [hex(text.addr + 64 * i) for i in range(100)]
    want = execute("addr2line", "-fi", "-e", bare, *addresses, status=0).stdout
    same(execute(FATHOM, "addr2line", "-fi", "-e", bare, *addresses, status=0).stdout, want)
    llvm = next((name for name in ("llvm-symbolizer", *(f"llvm-symbolizer-{n}" for n in range(22, 13, -1))) if shutil.which(name)), None)
    if llvm:
        want = execute(llvm, "-e", bare, *addresses, status=0).stdout
        same(execute(FATHOM, "llvm-symbolizer", "-e", bare, *addresses, status=0).stdout, want)


def frame_rows(fdes):
    """{low: (high, [(row's address, CFA)])}; rows that change nothing are one."""
    found = {}
    for section in fdes.values():
        for fde in section.values():
            kept = []
            for low, cfa, _ in fde.rows:
                if not kept or kept[-1][1] != cfa:
                    kept.append((low, cfa))
            found[fde.low] = (fde.high, kept)
    return found


@test("frames: where the caller's is, at each instruction, is as readelf has it of the program before it was stripped")
def frames(folder):
    full = go("full")
    bare = stripped(folder, full)
    ours = frame_rows(rows.Ours([os.path.join(BUILD, "tests", "rows")], bare).sections)
    theirs = frame_rows(rows.Theirs(full).sections)
    assert len(ours) > 1000 and len(theirs) > 1000, (len(ours), len(theirs))
    same({hex(low): (fde, theirs.get(low)) for low, fde in ours.items() if theirs.get(low) != fde}, {})
    assert len(set(theirs) - set(ours)) <= 0.01 * len(theirs), sorted(map(hex, set(theirs) - set(ours)))[:10]


@test("stacks of a stripped program's threads: each is whole, by its table alone, and as of the program before it was stripped")
def stacks(folder):
    building.plain(os.path.join(BUILD, "src", "libfathom.so"))
    found = {}
    full = go("waits", source="waits")
    for name, path in (("full", full), ("bare", stripped(folder, full))):
        with running.Running([path]) as program:
            program.line()
            running.until(lambda: len(threads(program.pid)) > 2 and all(stop == "entry" for stop, _, _ in threads(program.pid)), "whole stacks")
            found[name] = sorted(threads(program.pid))
            assert any("main.reads" in names for _, names, _ in found[name]), found
    assert {trust for _, _, trusts in found["bare"] for trust in trusts} <= {"registers", "cfi"}, found["bare"]
    reads = {name: [names for _, names, _ in stacks if "main.reads" in names] for name, stacks in found.items()}
    same(reads["bare"], [[name.removesuffix(".abi0") for name in names] for names in reads["full"]])


def threads(pid):
    """[(stop, functions, trusts)] of the threads of a process."""
    done = execute(FATHOM, "stack", "--json", "--no-cache", "--stop=all", str(pid))
    return [(r["stop"], [frame["function"] for f in r["frames"] for frame in f["frames"]], [f["trust"] for f in r["frames"]])
            for r in records_of(done.stdout) if r.get("frames")]


# Tables that are made by hand ---------------------------------------------------------------------

FUNCTIONS = [
    # Three lines; one call inlined into another one in the middle, which stands in another file.
    ("main.outer", 96, [(16, "/src/a.go", 10, -1), (8, "/src/b.go", 200, 0), (24, "/src/c.go", 7, 1), (16, "/src/a.go", 11, -1),
                        (8, "/src/b.go", 201, 0), (24, "/src/a.go", 12, -1)],
     [(4, 0), (88, 40), (4, 0)], [("pkg.middle", 12), ("pkg.(*T).inner", 16)]),
    ("main.plain[...]", 32, [(32, "/src/a.go", 300000, -1)], [(32, 0)], []),
    ("runtime.asm", 16, [(16, "/src/asm.s", 1, -1)], [(16, 0)], []),
]


def told(functions, gap=0):
    """{address: (symbol, size, [(function, file, line)])} by the model, at each fourth byte."""
    found, entry = {}, TEXT
    for name, size, runs, _, calls in functions:
        starts = [sum(run[0] for run in runs[:i]) for i in range(len(runs) + 1)]
        for at in range(0, size, 4):
            def run_at(off):
                return runs[bisect.bisect_right(starts, off) - 1]

            # The position of the frame further out is that of its call.
            _, file, line, call = run_at(at)
            chain = []
            while call >= 0:
                chain.append((calls[call][0], file, line))
                _, file, line, outer = run_at(calls[call][1])
                call = outer
            chain.append((name, file, line))
            found[entry + at] = (name, size, chain)
        entry += size + gap
    return found


def answers_of(path, addresses):
    return {address: (r["symbol"], r["size"], frames_of(r)) for address, r in zip(addresses, addr_stream(path, addresses))}


@test("tables of all layouts, of 32 and 64 bits, of both byte orders: names, sizes, lines, inlined calls")
def layouts(folder):
    path = os.path.join(folder, "made")
    for layout in ("1.16", "1.18", "1.20"):
        for bits, big, quantum, gap in ((64, False, 1, 0), (32, False, 1, 16), (64, True, 4, 8)):
            if layout == "1.16" and bits == 32:
                gap = 0
            Table(FUNCTIONS, layout, bits, big, quantum, gap).write(path)
            wanted = told(FUNCTIONS, gap=gap)
            same({(layout, bits, big, at): answer for at, answer in answers_of(path, list(wanted)).items()},
                 {(layout, bits, big, at): answer for at, answer in wanted.items()})
    # Layout 1.2 does not say which list tells of calls: of functions that have none, lines are known.
    simple = [(name, size, runs, moves, []) for name, size, runs, moves, _ in FUNCTIONS]
    simple[0] = (*simple[0][:2], [(size, file, line, -1) for size, file, line, _ in simple[0][2]], *simple[0][3:])
    for bits, big in ((64, False), (32, False), (64, True)):
        Table(simple, "1.2", bits, big).write(path)
        wanted = told(simple)
        same({(bits, big, at): answer for at, answer in answers_of(path, list(wanted)).items()},
             {(bits, big, at): answer for at, answer in wanted.items()})


@test("calls of which the tree cannot be found, is another one's, or leads into itself: no line of theirs is said, all others are")
def strayed(folder):
    path = os.path.join(folder, "made")
    wanted = told(FUNCTIONS)
    own = {address: answer for address, answer in wanted.items() if len(answer[2]) == 1}
    lost = {address: (answer[0], answer[1], [(answer[0], None, None)]) for address, answer in wanted.items() if len(answer[2]) > 1}

    def check(functions=FUNCTIONS, spoil=None, layout="1.20"):
        table = Table(functions, layout)
        if spoil:
            spoil(table)
        table.write(path)
        same(answers_of(path, list(wanted)), own | lost)

    def no_module(table):
        table.elf.sections[3].data = bytes(len(table.elf.sections[3].data))

    def other_text(table):
        data = bytearray(table.elf.sections[3].data)
        data[22 * 8] ^= 1
        table.elf.sections[3].data = bytes(data)

    check(spoil=no_module)
    check(spoil=other_text)
    check(spoil=no_module, layout="1.18")
    first = FUNCTIONS[0]
    for calls in ([("pkg.middle", 20), ("pkg.(*T).inner", 28)], [("pkg.middle", 96), ("pkg.(*T).inner", 96)], [("pkg.middle", 28), ("pkg.(*T).inner", 16)]):
        check([(*first[:4], calls), *FUNCTIONS[1:]])


@test("tables that are cut or damaged at any byte: no crash, no hang, and no name that is not in the table")
def damaged(folder):
    path = os.path.join(folder, "made")
    table = Table(FUNCTIONS, "1.20")
    table.write(path)
    with open(path, "rb") as f:
        whole = f.read()
    start = whole.index(table.bytes)
    addresses = [TEXT + 4 * i for i in range(36)]
    names = {f[0] for f in FUNCTIONS} | {call[0] for f in FUNCTIONS for call in f[4]}
    texts = [name[i:] for name in names for i in range(len(name))]
    for at in range(0, len(table.bytes), 7):
        for change in (0x80, 0xff):
            spoiled = bytearray(whole)
            spoiled[start + at] ^= change
            with open(path, "wb") as f:
                f.write(spoiled)
            done = execute(FATHOM, "addr", "--json", "--no-cache", path, *map(hex, addresses), status=(0, 1))
            said = {f["function"] for r in records_of(done.stdout) for f in r["frames"]} - {None}
            # A letter of a name may be what was changed.
            strange = [name for name in said if name not in texts and not any(len(name) == len(known) and
                       sum(a != b for a, b in zip(name, known)) == 1 for known in texts)]
            assert len(strange) <= (1 if start + at else 0), (at, change, strange)
            assert len(done.stderr.splitlines()) <= 3, done


sys.exit(SUITE.run())
