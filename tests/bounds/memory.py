# SPDX-License-Identifier: MIT
"""The memory budget, measured from outside: by the most memory that the process had at one time (ru_maxrss).

The rule: a run takes no more than its budget (--memory, from 16 MiB on) and BESIDE. In BESIDE are the pages of the
program and its libraries, the stacks and scratch of two threads, and the pages of the files that are being read:
those are given back behind the reader, so nothing is taken off for them. The answers of one batch, the questions and
what is printed are part of the budget, though the session does not count them: the command asks for so little at a
time that they fit."""
import os
import random

import tap
import toolchain

from ask import FATHOM, run
from building import section
from cache import many_units
from suite import test

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
MIB = 1 << 20
BESIDE = 32 * MIB
BUDGETS = (16, 64, 256)
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
LIBSTDCXX = toolchain.debug_libstdcxx()
ASKED = 300000


def questions(path, folder):
    """A file of random addresses."""
    code = section(path, ".text")
    rng = random.Random(1)
    name = os.path.join(folder, "questions")
    with open(name, "w", encoding="ascii") as file:
        file.writelines(f"{code.addr + rng.randrange(code.size):#x}\n" for _ in range(ASKED))
    return name


class Peak:
    def __init__(self, folder):
        if os.environ.get("WRAPPER") or not os.path.exists(os.path.join(os.environ["BUILD"], "tests", "lockless")):
            raise tap.Skip("what runs under a wrapper or with a sanitizer has much memory of its own")
        self.folder, self.program = folder, os.path.join(folder, "peak")
        run("gcc", "-O1", "-o", self.program, os.path.join(PROGRAMS, "peak.c"))

    def of(self, *command, stdin=os.devnull):
        """The peak of a run, in bytes, and whether it printed anything."""
        out = os.path.join(self.folder, "peak.out")
        with open(stdin, "rb") as questions_file:
            printed = run(self.program, out, *command, status=(0, 1), text=False, stdin=questions_file)
        with open(out, encoding="ascii") as file:
            return int(file.read()) * 1024, len(printed)


def check(folder, path, *commands, beside=BESIDE):
    """Runs each of the commands with each budget: none takes more than that and @beside."""
    peak, asked, over = Peak(folder), questions(path, folder), []
    for budget in BUDGETS:
        for verb, *arguments in commands:
            command = [FATHOM, verb, "--threads=2", f"--memory={budget}M", *arguments, path]
            took, printed = peak.of(*command, stdin=asked if verb == "addr" else os.devnull)
            assert printed, command
            if took > budget * MIB + beside:
                over.append(f"{' '.join(command[1:])}: {took / MIB:.1f} MiB")
    assert not over, "\n".join(over)


ways = (("addr", "--no-cache"), ("addr", "--no-cache", "--json"), ("addr", "--no-cache", "--names-only"))


@test("memory: of libc, no run takes more than its budget and 32 MiB")
def _(folder):
    check(folder, LIBC, *ways)


@test("memory: of libstdc++'s debug file, its sections compressed and not")
def _(folder):
    for name, option in (("plain", "--decompress-debug-sections"), ("compressed", "--compress-debug-sections=zlib")):
        path = os.path.join(folder, name)
        run("objcopy", option, LIBSTDCXX, path)
        # What is asked for with the smallest budget needs most sections of the file at one time.
        check(folder, path, *ways, beside=max(BESIDE, 3 * os.path.getsize(os.path.join(folder, "plain"))))


@test("memory: of a program of many units, compressed")
def _(folder):
    check(folder, many_units(folder, 300, "-gz"), *ways)
