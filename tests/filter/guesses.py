# SPDX-License-Identifier: MIT
"""Stacks of which nothing tells where their module was: it is guessed if one place alone explains them, and never wrong."""
import os
import random
import re
import shutil
import struct

import tap

from ask import execute, llvm, run
from built import FOLDER
from suite import added, names_of, need_x86, objects, once, test

# Programs, and how often each of them runs.
PROGRAMS, RUNS, FUNCTIONS = 20, 50, 40

HEAD = """
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

extern char __executable_start[];

static unsigned state;

static unsigned pick(void)
{
	state = state * 1103515245 + 12345;
	return state >> 16;
}

__attribute__((noinline)) static int show(void)
{
	void *frames[64];
	const int n = backtrace(frames, 64);

	for (int i = 0; i < n; i++)
		printf("%4d: %18p - <unknown>\\n", i, frames[i]);
	printf("at %p\\n", (void *)__executable_start);
	exit(0);
}

static int (*const table[])(int);
"""


def source(seed):
    """A program whose functions call each other, directly and by a table, as its argument says; the last one shows its stack."""
    numbers = random.Random(seed)
    names = [f"f{i}" for i in range(FUNCTIONS)]
    text = HEAD + "".join(f"static int {name}(int depth);\n" for name in names)
    for name in names:
        one, two = numbers.choices(names, k=2)
        work = "".join(f"\tstate ^= {numbers.randrange(1 << 20)} << (state & 3);\n" for _ in range(numbers.randrange(12)))
        text += (f"__attribute__((noinline)) static int {name}(int depth)\n{{\n{work}\tif (!depth)\n\t\treturn show() + 1;\n\tswitch (pick() % 4) {{\n"
                 f"\tcase 0:\n\t\treturn {one}(depth - 1) + {numbers.randrange(99)};\n\tcase 1:\n\t\treturn {two}(depth - 1) * 3;\n"
                 f"\tcase 2:\n\t\treturn {one}(depth - 1) ^ {two}(0);\n\tdefault:\n\t\treturn table[pick() % {FUNCTIONS}](depth - 1) + 1;\n\t}}\n}}\n")
    return (text + "static int (*const table[])(int) = { " + ", ".join(names) + " };\n"
            "int main(int n, char **words)\n{\n\tstate = (unsigned)atoi(words[1]);\n\treturn table[pick() % " + str(FUNCTIONS) +
            "](n > 2 ? atoi(words[2]) : 5) == 1;\n}\n")


@once
def programs():
    """The unstripped programs, built in different ways."""
    need_x86()
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    made = []
    for seed in range(PROGRAMS):
        path = os.path.join(FOLDER, f"tree{seed}")
        with open(path + ".c", "w", encoding="ascii") as file:
            file.write(source(seed))
        run(compilers[seed % len(compilers)], "-g", f"-O{seed % 3}", "-w", "-fPIE", "-pie", "-fno-optimize-sibling-calls", "-o", path, path + ".c")
        made.append(path)
    return made


class Run:
    """What one run of a program has printed: its stack, as Rust prints it, and where the program was."""

    def __init__(self, path, seed):
        lines = run(path, seed, 2 + seed % 9).splitlines()
        end = len(lines) - 1
        self.path, self.lines, self.base = path, lines[:end], int(lines[end].split()[1], 16)
        self.live = [int(line.split()[1], 16) for line in self.lines]
        self.stated = [live - self.base if 0 <= live - self.base < 1 << 24 else None for live in self.live]
        self.log = "".join(line + "\n" for line in self.lines)


@once
def runs():
    return [[Run(path, 1000 * i + k) for k in range(RUNS)] for i, path in enumerate(programs())]


@test(f"guessed: {PROGRAMS * RUNS} stacks of {PROGRAMS} programs: each name is that of llvm-symbolizer where the program says that it was; at most one of ten has none")
def right(_):
    unguessed = total = 0
    for of_program in runs():
        path = of_program[0].path
        stated = sorted({a for r in of_program for a in r.stated if a})
        truth = dict(zip(stated, [[(f[0], f[2]) for f in answer.frames] for answer in llvm(path, [a - 1 for a in stated])]))
        records = iter(objects("".join(r.log for r in of_program), path))
        for r in of_program:
            found = 0
            for live, want in zip(r.live, r.stated):
                record = next(records)
                assert int(record["text"], 16) == live
                if record["symbol"] is None:
                    continue
                assert want and record["base_guessed"] is True, (record, r.log)
                frames = [(f["function"], f["line"]) for f in record["frames"]]
                assert frames == [(name, line or None) for name, line in truth[want]] or record["symbol"] == "_start", (frames, truth[want])
                found += 1
            inside = sum(want is not None for want in r.stated)
            if inside >= 4:
                total += 1
                unguessed += found == 0
                assert found in (0, inside), r.log
    assert total > PROGRAMS * RUNS * 9 // 10, total
    print(f"# {unguessed} of {total} stacks with four frames or more have no names")
    assert unguessed <= total // 10, f"{unguessed} of {total}"


@test("guessed: nothing of another program's stack, of one that mixes two, that lacks a frame's call, or has three")
def nothing(_):
    everything = runs()
    for i, of_program in enumerate(everything):
        other = everything[(i + 1) % PROGRAMS]
        path = of_program[0].path
        assert set(names_of("".join(r.log for r in other), path)) == {None}
        mixed = "".join(a + "\n" + b + "\n" for one, two in zip(of_program[:9], other) for a, b in zip(one.lines, two.lines))
        mixed = "".join(f"{k:4}:" + line.partition(":")[2] + "\n" for k, line in enumerate(mixed.splitlines()))
        assert set(names_of(mixed, path)) == {None}, path
        for r in of_program[:5]:
            moved = r.log.replace(f"{r.live[1]:#x}", f"{r.live[1] + 1:#x}", 1)
            assert set(names_of(moved, path)) == {None}, moved
            assert set(names_of("".join(line + "\n" for line in r.lines[:3]), path)) == {None}


@test("guessed: a line that knows better comes first; text and objects say what is guessed, and nothing else does")
def marks(_):
    r = next(r for r in runs()[0] if len(r.lines) > 7)
    names = names_of(r.log, r.path)
    assert [name.endswith(" (base guessed)") for name in names if name] and any(names)
    assert all(name is None or name.endswith(" (base guessed)") for name in names), names
    frames = [i for i, a in enumerate(r.stated) if a]
    pair = f"{r.path}(+{r.stated[frames[0]]:#x}) [{r.live[frames[0]]:#x}]\n"
    told = names_of(r.log + pair)
    assert not any("guessed" in (name or "") for name in told), told
    for i in frames:
        assert told[i] == names[i].replace("base guessed", "by path"), (told[i], names[i])
    assert {record["base_guessed"] for record in objects(r.log + pair)} == {False}
    # A stack of addresses as the file states them needs no guess.
    plain = "".join(f"{i:4}: {a:#18x} - <unknown>\n" for i, a in enumerate(a for a in r.stated if a))
    assert all(name and "guessed" not in name for name in names_of(plain, r.path))


@test("guessed: nothing of one address that a stack repeats, nor of foreign addresses that do")
def repeated(_):
    numbers = random.Random(3)
    for of_program in runs():
        r = of_program[0]
        inside = [i for i, a in enumerate(r.stated) if a]
        own = r.live[inside[1]]
        stacks = [[own] * 6, [own, r.live[inside[-1]]] * 4] + [[numbers.randrange(1 << 46)] * 6 for _ in range(20)]
        log = "".join(f"{i:4}: {a:#18x} - <unknown>\n" for stack in stacks for i, a in enumerate(stack))
        assert set(names_of(log, r.path)) == {None}, r.path


@test("guessed: a file whose code claims to be larger than the file is searched as far as it goes")
def claims(folder):
    r = next(r for r in runs()[0] if len(r.lines) > 7)
    with open(r.path, "rb") as file:
        data = bytearray(file.read())
    (at, size), = [(at, size) for at, size in segments_with_code(data)]
    for claimed in (size + 1, 1 << 40, (1 << 63) - 4096, (1 << 64) - 1):
        struct.pack_into("<QQ", data, at + 32, claimed, claimed)
        with open(f"{folder}/claims", "wb") as file:
            file.write(data)
        names = names_of(r.log, f"{folder}/claims", processor_seconds=30)
        assert all(name is None or name.endswith(" (base guessed)") for name in names), names


def segments_with_code(data):
    """(offset of the header, bytes in the file) of each such segment of a program of 64 bits."""
    start, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for at in range(start, start + size * count, size):
        kind, flags = struct.unpack_from("<II", data, at)
        if kind == 1 and flags & 1:
            yield at, struct.unpack_from("<Q", data, at + 32)[0]


VALGRIND = """
#include <stdlib.h>

__attribute__((noinline)) static int use(int n) { volatile int *p = malloc(4); free((void *)p); return *p + n; }
__attribute__((noinline)) static int one(int n) { return use(n) + 1; }
__attribute__((noinline)) static int two(int n) { return one(n) * 2; }
__attribute__((noinline)) static int three(int n) { return two(n) + 3; }
__attribute__((noinline)) static int four(int n) { return three(n) + 4; }

int main(int n, char **words)
{
	return four(n) == 12345 && words;
}
"""


@test("guessed: valgrind, of a stripped program: the functions and lines that it prints of the same program with symbols")
def valgrind(folder):
    need_x86()
    if not shutil.which("valgrind"):
        raise tap.Skip("valgrind is not installed")
    os.mkdir(f"{folder}/whole")
    with open(f"{folder}/lost.c", "w", encoding="ascii") as file:
        file.write(VALGRIND)
    run("gcc", "-g", "-O1", "-fPIE", "-pie", "-o", f"{folder}/lost", f"{folder}/lost.c")
    truth = execute("valgrind", f"{folder}/lost").stderr
    shutil.copy(f"{folder}/lost", f"{folder}/whole/lost")
    run("strip", f"{folder}/lost")
    log = execute("valgrind", f"{folder}/lost").stderr
    os.unlink(f"{folder}/lost")
    if "Invalid read" not in log:
        raise tap.Skip(f"valgrind does not run here: {log.strip().splitlines()[-1:]}")
    wanted = re.findall(r"(?:at|by) 0x\w+: (\w+) \(lost\.c:(\d+)\)", truth)
    found = []
    for line, name in zip(log.splitlines(), added(log, "--module-dir", f"{folder}/whole")):
        if "/lost)" not in line:
            assert name is None, (line, name)
            continue
        assert name and name.endswith(" (by path, base guessed)"), (line, name)
        found.append(re.match(r"(\w+)\+0x[0-9a-f]+ \S*lost\.c:(\d+)", name).groups())
    assert found == wanted and len(found) > 15, (found, wanted)
