#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "growth": work grows as what is asked about, not as its square. Instructions are counted, not
seconds."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import counting  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from running import Told  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
SUITE = tap.Suite("growth")
test = SUITE.test
# Doubling the work twice: the second step costs 2 times the first where it grows as n, a little more as
# n log n, and 4 times as n * n.
MOST_STEP = 2.5
# What vm.max_map_count allows, less what a program has anyway.
MOST_MAPPINGS = 64000
# A segment of code that shares a page of the file with another: all mappings decide where it was loaded.
LIBRARIES = {"pages of their own": [], "pages that two segments share": ["-Wl,-z,noseparate-code"]}


def build(folder, name, source, *options):
    return building.build(os.path.join(folder, name), os.path.join(PROGRAMS, source), *options)


def library(folder, *options):
    return build(folder, "library.so", "library.c", "-shared", "-fPIC", *options)


def mapped(folder, number, style, path):
    return Told([build(folder, "maps", "maps.c"), str(number), style, path])


def check_growth(counts, numbers):
    """Counts for n, 2 n and 4 n."""
    step = (counts[2] - counts[1]) / (counts[1] - counts[0])
    assert step < MOST_STEP, f"{dict(zip(numbers, counts))}: the second step costs {step:.2f} times the first"


def add_mapping_tests(layout, options, style, smallest, words, title):
    def grows(folder):
        path = library(folder, *options)
        numbers = [smallest, 2 * smallest, 4 * smallest]
        counts = []
        for n in numbers:
            with mapped(folder, n, style, path) as program:
                counts.append(counting.instructions([FATHOM, *(w.format(pid=program.pid, folder=folder) for w in words)]))
        check_growth(counts, numbers)

    SUITE.add(f"{title}: many mappings of the {style} of a file with {layout}", grows)


FIND = ["find", "--no-cache", "--first", "{pid}", "exported_code"]
SNAPSHOT = ["snapshot", "--no-cache", "{pid}", "{folder}/snapshot"]
for name, flags in LIBRARIES.items():
    for what in ("code", "start"):
        first = 4000 if not flags else 500
        add_mapping_tests(name, flags, what, first, FIND, "find --first")
        add_mapping_tests(name, flags, what, first, SNAPSHOT, "snapshot")


def many_files(folder, number):
    path = library(folder)
    os.mkdir(f"{folder}/files")
    for i in range(number):
        os.link(path, f"{folder}/files/{i}.so")
    return f"{folder}/files"


def add_file_test(title, words):
    def grows(folder):
        numbers = [1000, 2000, 4000]
        files = many_files(folder, numbers[-1])
        counts = []
        for n in numbers:
            with mapped(folder, n, "files", files) as program:
                counts.append(counting.instructions([FATHOM, *(w.format(pid=program.pid, folder=folder) for w in words)]))
        check_growth(counts, numbers)

    SUITE.add(f"{title}: many files", grows)


add_file_test("find --first", FIND)
add_file_test("snapshot", SNAPSHOT)


@test("as many mappings as Linux allows are searched, stored and searched again, in the end")
def all_mappings(folder):
    path = library(folder, *LIBRARIES["pages that two segments share"])
    with mapped(folder, MOST_MAPPINGS, "code", path) as program:
        first = program.places["first"]
        # Seconds now; before, hours.
        out = run(FATHOM, "find", "--no-cache", "--first", program.pid, "exported_code", processor_seconds=120)
        code = int(re.match(r"\s*0x([0-9a-f]+) ", out)[1], 16)
        assert first <= code < first + 0x1000, (hex(first), out)
        run(FATHOM, "snapshot", "--no-cache", program.pid, f"{folder}/snapshot", processor_seconds=120)
    assert os.path.getsize(f"{folder}/snapshot") < 64 * MOST_MAPPINGS, os.path.getsize(f"{folder}/snapshot")
    for target in (f"{folder}/snapshot",):
        assert re.search(rf"0x{code:x} ", run(FATHOM, "find", "--no-cache", target, "exported_code", processor_seconds=120))
        assert f"{code:#x} exported_code+0x0 " in run(FATHOM, "addr", "--no-cache", target, hex(code), processor_seconds=120)


@test("a snapshot has one first page of each file, by which it is known again")
def one_page(folder):
    sizes = []
    for n in (100, 1100):
        with mapped(folder, n, "start", library(folder)) as program:
            run(FATHOM, "snapshot", "--no-cache", program.pid, f"{folder}/snapshot")
            sizes.append(os.path.getsize(f"{folder}/snapshot"))
    # 32 bytes for each mapping.
    assert sizes[1] - sizes[0] == 1000 * 32, sizes


@test("a snapshot of a list of JIT code that is too long reads it once, and says so")
def long_list(folder):
    limit = 1 << 18
    with Told([build(folder, "list", "list.c"), str(limit + 1000)]) as program:
        done = execute("strace", "-f", "-c", "-o", f"{folder}/calls", FATHOM, "snapshot", "--no-cache", program.pid,
                       f"{folder}/snapshot", status=0)
    assert "longer list than fathom reads" in done.stderr, done
    with open(f"{folder}/calls", encoding="ascii") as calls:
        total = int(calls.read().splitlines()[-1].split()[3])
    assert limit < total < limit * 1.1, total


@test("claims that overlap cost little more memory traffic than those that do not")
def overlapping(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("what runs under a wrapper is not counted")
    n, misses = 200000, {}
    for style in ("none", "much"):
        done = execute("valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={folder}/out", "--D1=32768,8,64",
                       "--LL=262144,8,64", os.path.join(os.environ["BUILD"], "tests", "overlap"), n, style)
        counted = re.search(r"LLd misses: +([\d,]+)", done.stderr)
        if not counted:
            raise tap.Skip(f"valgrind cannot run this build: {done.stderr.splitlines()[-1:]}")
        misses[style] = int(counted[1].replace(",", "")) / n
    assert misses["much"] < 2 * misses["none"], misses


@test("find: many functions with code of one line")
def one_line(folder):
    numbers = [500, 1000, 2000]
    counts = []
    for n in numbers:
        source, path = os.path.join(folder, f"{n}.c"), os.path.join(folder, f"{n}.so")
        with open(source, "w", encoding="ascii") as f:
            f.write("".join(f'#line 7 "same.c"\nint f{i}(int x)\n{{\n    return x + {i};\n}}\n' for i in range(n)))
        run("gcc", "-g", "-shared", "-fPIC", "-o", path, source)
        command = [FATHOM, "find", "--no-cache", "--threads", 1, path, "same.c:9"]
        assert len(run(*command).splitlines()) == n
        counts.append(counting.instructions(command))
    check_growth(counts, numbers)


@test("filter: lines with many symbols of the kernel, and with many numbers of frames")
def long_lines(_):
    numbers = [1000, 2000, 4000]
    for word in ("a+0x1/0x2 ", "#1 0x "):
        check_growth([counting.instructions([FATHOM, "filter", "--no-cache"], word * n + "\n") for n in numbers], numbers)


@test("addr: all functions of a relocatable file, with a section each, in one unit of debug information")
def many_sections(folder):
    numbers = [2000, 4000, 8000]
    counts = []
    for n in numbers:
        source, path = os.path.join(folder, f"{n}.s"), os.path.join(folder, f"{n}.o")
        with open(source, "w", encoding="ascii") as f:
            # They have no size: a name ends where its section does.
            f.write("".join(f'\t.section .text.f{i},"ax"\n\t.globl f{i}\nf{i}:\n\tnop\n\tret\n' for i in range(n)))
        run("gcc", "-g", "-c", "-o", path, source)
        command = [FATHOM, "addr", "--no-cache", "--threads", 1, path]
        names = "".join(f"f{i}\n" for i in range(n))
        answers = [line for line in execute(*command, input=names, status=0).stdout.splitlines() if line.startswith("0x")]
        assert [a.split()[1] for a in answers] == [f"f{i}+0x0" for i in range(n)], answers[:3]
        counts.append(counting.instructions(command, names))
    check_growth(counts, numbers)


def add_frame_test(member):
    def grows(_):
        numbers = [2000, 4000, 8000]
        command = [os.path.join(os.environ["BUILD"], "tests", "twins")]
        for n in numbers:
            assert run(*command, n, member).strip() == str(n)
        check_growth([counting.instructions([*command, n, member]) for n in numbers], numbers)

    SUITE.add(f"answers: many frames that differ in their {member} alone", grows)


for name in ("file", "function", "discriminator"):
    add_frame_test(name)


sys.exit(SUITE.run())
