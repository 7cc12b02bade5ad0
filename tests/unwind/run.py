#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "unwind": all rows of real files. The truth is readelf's. tests/unwind/rows.c says what its lines mean."""
import bisect
import glob
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "..", "tools")]

import ask  # noqa: E402
import building  # noqa: E402
import elfread  # noqa: E402
import rows  # noqa: E402
import running  # noqa: E402
import tap  # noqa: E402

SUITE = tap.Suite("unwind")
test = SUITE.test
BUILD = os.environ["BUILD"]
PROGRAM = os.path.join(BUILD, "tests", "rows")
WRAPPER = os.environ.get("WRAPPER", "").split()


def compare(path, least, section=".eh_frame"):
    return rows.check([*WRAPPER, PROGRAM], path, least, section)


def library(name):
    """The file of a library of this system, which ldconfig's folders have."""
    found = [path for folder in ("/lib", "/usr/lib") for path in glob.glob(f"{folder}/*-linux-gnu*/{name}")]
    machine = os.uname().machine
    return next(os.path.realpath(path) for path in sorted(found) if f"/{machine}-" in path)


@test("all rows of libc are readelf's")
def libc(_):
    compare(library("libc.so.6"), 10000)


@test("all rows of libstdc++ are readelf's")
def libstdcxx(_):
    compare(library("libstdc++.so.6"), 10000)


@test("all rows of libfathom are readelf's")
def own(_):
    compare(os.path.join(BUILD, "src", "libfathom.so"), 5000)


@test("all rows of a libc for i686 are readelf's")
def i686(_):
    compare("/usr/i686-linux-gnu/lib/libc.so.6", 10000)


@test("all rows of a libc for aarch64 are readelf's")
def aarch64(_):
    compare("/usr/aarch64-linux-gnu/lib/libc.so.6", 10000)


KINDS = ["none", "sp", "fp", "register", "at-fp", "plt", "signal", "end", "other"]


def rules(*arguments):
    """What tests/unwind/rules.c says of each file: a dictionary, and the rows of each kind."""
    found = []
    for line in ask.run(*WRAPPER, os.path.join(BUILD, "tests", "rules"), *arguments).splitlines():
        words = line.split()
        if words[0] == "rows":
            at = words.index("kinds")
            kinds = dict(zip(KINDS, map(int, words[at + 1:at + 1 + len(KINDS)])))
            rest = words[:at] + words[at + 1 + len(KINDS):]
            found.append(dict(zip(rest[::2], map(int, rest[1::2]))) | {"kinds": kinds})
        else:
            assert words[0] == "wrong" or (words[0] == "file" and words[2] == "0"), line
    return found


def compare_rules(path, least, other):
    """The rules of the file at @path lead where its rows lead; at most @other rows have none."""
    (found,) = rules(path)
    print(f"# {path}: {found}")
    assert found["wrong"] == 0 and found["rows"] >= least and found["gaps"] > 100 and not found["hidden"], found
    assert found["kinds"]["other"] <= other and sum(found["kinds"].values()) == found["rows"], found
    assert found["bytes"] <= 4.5 * found["kept"], found


RULES = {  # rows, and those of them that no rule can say: expressions of hand-written code
    "libc": (lambda: library("libc.so.6"), 10000, 10),
    "libstdc++": (lambda: library("libstdc++.so.6"), 10000, 0),
    "libfathom": (lambda: os.path.join(BUILD, "src", "libfathom.so"), 5000, 40),  # src/host/hook/dispatch_x86_64.S
    "python": (lambda: "/usr/bin/python3", 5000, 0),
    "a libc for i686": (lambda: "/usr/i686-linux-gnu/lib/libc.so.6", 10000, 20),
    "a libc for aarch64": (lambda: "/usr/aarch64-linux-gnu/lib/libc.so.6", 10000, 10),
}

for _name, (_path, _least, _other) in RULES.items():
    @test(f"the rules of {_name} lead where its rows lead, at the first and the last byte of each row")
    def rules_of(_, path=_path, least=_least, other=_other):
        compare_rules(path(), least, other)


@test("the comparison finds a rule that is wrong")
def spoiled(_):
    (found,) = rules("--spoil", library("libc.so.6"))
    assert found["wrong"] > 100, found


SOURCE = r"""
extern int printf(const char *, ...);
__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g)
{ return printf("%d%d%d%d%d%d%d", a, b, c, d, e, f, g) + printf("%d", g) * a; }
__attribute__((noinline)) int early(int x) { if (x < 3) return 1; return many(x, x, x, x, x, x, x) + many(1, 2, 3, 4, 5, 6, x); }
__attribute__((noipa)) int room(int x) { char *p = __builtin_alloca(x); p[0] = 1; return many(p[0], x, 1, 2, 3, 4, 5); }
int main(int argc, char **argv) { (void)argv; return early(argc) + room(argc); }
"""
PLAIN = ["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"]
BUILDS = {  # name: compiler and options
    ".debug_frame": ["gcc", "-O2", *PLAIN],
    ".debug_frame, 64-bit DWARF": ["gcc", "-O1", *PLAIN, "-gdwarf64"],
    ".debug_frame, compressed": ["gcc", "-O2", *PLAIN, "-gz"],
    ".debug_frame, clang": ["clang", "-O2", *PLAIN],
    ".debug_frame, i686": ["i686-linux-gnu-gcc", "-O1", *PLAIN],
    ".debug_frame, i686 with stack realignment": ["i686-linux-gnu-gcc", "-O1", *PLAIN, "-mstackrealign", "-mincoming-stack-boundary=2",
                                                  "-mpreferred-stack-boundary=5"],
    ".debug_frame, aarch64": ["aarch64-linux-gnu-gcc", "-O2", *PLAIN],
}


def build(folder, command):
    path = os.path.join(folder, "a.so")
    ask.run(*command, "-shared", "-fPIC", "-nostdlib", "-x", "c", "-o", path, "-", input=SOURCE)
    return path


for _name, _command in BUILDS.items():
    @test(f"all rows of a linked file are readelf's: {_name}")
    def built(folder, command=_command):
        compare(build(folder, command), 10, ".debug_frame")


@test("return addresses are signed from behind paciasp to behind autiasp")
def signed(folder):
    path = build(folder, ["aarch64-linux-gnu-gcc", "-O2", "-mbranch-protection=pac-ret"])
    assert compare(path, 10).signed
    code = [line.split("\t") for line in ask.run("aarch64-linux-gnu-objdump", "-d", path).splitlines() if ":\t" in line]
    behind = {int(fields[0].strip(" :"), 16) + 4: fields[2].strip() for fields in code}
    found = {"paciasp": [], "autiasp": [], "ret": []}
    for line in ask.run(*WRAPPER, PROGRAM, path).splitlines():
        if line[0] == "R":
            found.setdefault(behind.get(int(line.split()[1], 16)), []).append(line.endswith(" signed"))
    assert len(found["paciasp"]) >= 3 and all(found["paciasp"]), found
    assert len(found["autiasp"]) >= 3 and not any(found["autiasp"]), found
    # Behind a return, or what fills up to the next function, a function starts, or the state is as it was before the return.
    starts = found["ret"] + found.get("nop", [])
    assert starts and not all(starts), found


CHANGES = {  # what is planted in one row of a libc for i686: a command of sed
    "another offset of the CFA": r"0,/ r4+16 /s// r4+20 /",
    "another register of the CFA": r"0,/ r4+16 /s// r5+16 /",
    "another place of a register": r"0,/ 3:c-8 /s// 3:c-12 /",
    "another place of the return address": r"0,/ 8:c-4$/s// 8:c-8/",
    "a rule that is missing": r"0,/ 5:c-8 /s// /",
    "a rule too many": r"0,/ 8:c-4$/s// 7:s 8:c-4/",
    "another kind of rule": r"0,/ 3:c-8 /s// 3:v-8 /",
    "an address that is one byte later": r"0,/^R \([0-9a-f]*\)0 /s//R \11 /",
    "a row that is missing": r"0,/^R .* r4+24 /{/^R .* r4+24 /d}",
    "an FDE that is missing": r"0,/^F /{/^F /d}",
    "an expression that is none": r"0,/ exp /s// r4+8 /",
    "an error": r"0,/^\(F .*\) 0$/s//\1 -2/",
}


@test("the comparison finds each difference in one row")
def planted(_):
    path = "/usr/i686-linux-gnu/lib/libc.so.6"
    theirs = rows.Theirs(path)
    command = " ".join([*WRAPPER, PROGRAM])
    for what, change in CHANGES.items():
        wrong = rows.differences(rows.Ours(["sh", "-c", f"{command} $0 | sed '{change}'"], path), theirs)
        assert 1 <= len(wrong) <= 2, (what, wrong[:5])


TOP = os.path.join(HERE, "..", "..")
SOURCES = ["src/safe/unwind/step.c", "src/safe/unwind/row.c", "src/safe/unwind/expression.c", "src/safe/dwarf/cfi.c",
           "src/safe/base/error.c", "src/safe/base/strings.c", "src/safe/base/text.c", "src/safe/base/bytes.c", "src/safe/base/nops.c"]
MACHINES = {"x86-64": "gcc", "i686": "i686-linux-gnu-gcc"}

for _name, _compiler in MACHINES.items():
    @test(f"a step over the frame that the kernel makes finds every register: {_name}")
    def kernel(folder, compiler=_compiler):
        if os.uname().machine != "x86_64":
            raise tap.Skip("not an x86-64 kernel")
        if compiler != "gcc":
            building.need_32_bit()
        path = os.path.join(folder, "handler")
        sources = [os.path.join(TOP, name) for name in [*SOURCES, *glob.glob("src/safe/unwind/arch/*.c", root_dir=TOP)]]
        ask.run(compiler, "-O1", "-static", "-no-pie", "-I", os.path.join(TOP, "include"), "-I", os.path.join(TOP, "src"), "-o", path,
                os.path.join(HERE, "programs", "handler.c"), *sources)
        for kind in ([], ["plain"]):
            assert ask.run(path, *kind) == "ok\n", kind


# Linux's own headers, where there is no kernel to ask.
LAYOUT = """
#include <asm/sigcontext.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>
_Static_assert(sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext) + offsetof(struct sigcontext, regs) == 312, "x0");
_Static_assert(offsetof(struct sigcontext, sp) - offsetof(struct sigcontext, regs) == 31 * 8, "sp");
_Static_assert(offsetof(struct sigcontext, pc) - offsetof(struct sigcontext, regs) == 32 * 8, "pc");
"""


@test("the frame of a signal of aarch64 is laid out as Linux's headers have it")
def layout(_):
    ask.run("aarch64-linux-gnu-gcc", "-fsyntax-only", "-x", "c", "-", input=LAYOUT)
    lied = LAYOUT.replace("312", "320")
    assert "static assertion failed" in ask.execute("aarch64-linux-gnu-gcc", "-fsyntax-only", "-x", "c", "-", input=lied, status=1).stderr


def living_state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


SFRAME = r"""
#include <stdio.h>
#include <alloca.h>
#include <unistd.h>
__attribute__((noipa)) int deepest(int x) { volatile char c[40]; c[0] = (char)x; pause(); return c[0]; }
__attribute__((noipa)) int room(int x) { char *p = alloca((size_t)x * 16 + 16); p[0] = (char)x; return deepest(p[0]) + p[0]; }
__attribute__((noipa)) int again(int x) { if (x > 3) return room(x) + again(x - 1); return printf("%d", x) + x; }
int main(int argc, char **argv) { (void)argv; return again(argc + 6) + again(argc); }
"""


def readelf_sframe(path):
    """[(low, high, CFA, FP, RA)] of readelf --sframe. Rows of a PLT are given for each of its entries."""
    found = []
    size = start = rows_of = None
    for line in ask.run("readelf", "--sframe", path).splitlines() + ["    func idx [0]: pc = 0x0, size = 0 bytes"]:
        if m := re.match(r"\s+func idx \[\d+\]: pc = 0x([0-9a-f]+), size = (\d+)", line):
            if rows_of:
                starts = [row[0] for row in rows_of[1:]]
                if rows_of[0][0] >= start:
                    found += [(low, high, *rest) for (low, *rest), high in zip(rows_of, [*starts, start + size])]
                else:
                    # An entry of .plt.got has 8 bytes.
                    found += [(start + block + low, start + block + high, *rest) for block in range(0, size, 16)
                              for (low, *rest), high in zip(rows_of, [*starts, min(16, size)])]
            start, size, rows_of = int(m[1], 16), int(m[2]), []
        elif m := re.match(r"\s+([0-9a-f]{16})\s+(\S+)\s+(\S+)\s+(\S+)", line):
            rows_of.append((int(m[1], 16), m[2], m[3], "c-8" if m[4] in ("u", "f") else m[4]))
    return found


def sframe_program(folder, *options):
    path = os.path.join(folder, "program")
    ask.run("gcc", "-O2", "-Wa,--gsframe", *options, "-o", path, "-x", "c", "-", input=SFRAME)
    return path


@test("all rows of an SFrame section are readelf's, at their first and last byte")
def sframe(folder):
    path = sframe_program(folder, "-fno-omit-frame-pointer")
    rows_ = readelf_sframe(path)
    assert len(rows_) > 20 and any(row[2].startswith("fp") for row in rows_), rows_
    asked = [at for low, high, *_ in rows_ for at in (low, high - 1)]
    lines = ask.run(*WRAPPER, os.path.join(BUILD, "tests", "sframe_rows"), path,
                    input="".join(f"{at:x}\n" for at in asked)).splitlines()[1:]
    expected = [f"{low:x} {high:x} {cfa} {fp} {ra}" for low, high, cfa, fp, ra in rows_ for _ in range(2)]
    assert lines == expected, [pair for pair in zip(lines, expected) if pair[0] != pair[1]][:5]


@test("code that no SFrame function covers has no row, nor has a damaged section")
def sframe_none(folder):
    path = sframe_program(folder)
    program = os.path.join(BUILD, "tests", "sframe_rows")
    assert ask.run(*WRAPPER, program, path, input="10\nffffffffffff\n").splitlines()[1:] == ["error 1"] * 2
    place = elfread.ElfFile(path).section(".sframe")
    with open(path, "rb") as file:
        whole = file.read()
    low = readelf_sframe(path)[0][0]
    for i in range(28):
        damaged = os.path.join(folder, "damaged")
        with open(damaged, "wb") as file:
            file.write(whole[:place.off + i] + bytes([whole[place.off + i] ^ 0xff]) + whole[place.off + i + 1:])
        done = ask.execute(*WRAPPER, program, damaged, input=f"{low:x}\n")
        assert done.returncode == 0, (i, done)


@test("a stack goes on by SFrame where there is no call frame information")
def sframe_stack(folder):
    path = sframe_program(folder)
    ask.run("objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", path)
    with running.Running([path]) as program:
        while living_state(program.pid) != "S":
            time.sleep(0.01)
        stack, = ask.records_of(ask.fathom("stack", "--json", program.pid, status=None).stdout)
    frames = [(f["symbol"], f["trust"]) for f in stack["frames"]]
    ours = [f for f in frames if f[0] in ("deepest", "room", "again", "main")]
    assert ours == [(name, "cfi") for name in ("deepest", "room", "again", "main")], frames



@test("stack --rules prints what readelf has, of every row of libc")
def printed_rules(_):
    path = library("libc.so.6")
    printed = ask.records_of(ask.run(ask.FATHOM, "stack", "--rules", "--json", path))
    assert all(a["high"] == b["low"] or int(a["high"], 16) < int(b["low"], 16) for a, b in zip(printed, printed[1:]))
    starts = [int(row["low"], 16) for row in printed]
    compared = 0
    for fde in rows.Theirs(path).sections[".eh_frame"].values():
        for low, cfa, stated in fde.rows:
            rules = dict(stated)
            row = printed[bisect.bisect_right(starts, low) - 1]
            m = re.match(r"r(\d+)([+-]\d+)$", cfa)
            # The rules of signals, of the PLT and of aligned stacks are written otherwise.
            if not m or rules.get(16) != "c-8" or rules.get(6, "s") not in ("s", "c-16", "c-24", "c-32", "c-40", "c-48", "c-56"):
                continue
            name = {"7": "rsp", "6": "rbp"}.get(m[1])
            if not name:
                continue
            saved = rules.get(6, "s")
            wanted = {"cfa": name + m[2], "fp": "same" if saved == "s" else saved, "ra": "c-8"}
            assert {key: row[key] for key in wanted} == wanted, (hex(low), row, cfa, rules)
            assert int(row["low"], 16) <= low < int(row["high"], 16), (hex(low), row)
            compared += 1
    assert compared > 20000, compared


sys.exit(SUITE.run())
