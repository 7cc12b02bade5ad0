# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to, and how they run programs with the module of this build."""
import os

import building
import tap

from ask import execute

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
SUITE = tap.Suite("python")
test = SUITE.test
BUILD = os.environ["BUILD"]
MODULE = os.path.join(BUILD, "python")
# Debian packages what the module needs for its own interpreter only.
PYTHON = "/usr/bin/python3"

# Of each program: Python's own modules that all need, and how it ends.
HEAD = """
import array, gc, itertools, os, signal, sys, threading
import fathom
"""

# Of programs that must not grow: what they hold now, and that it is what they held before, but for 500 KiB.
GROWTH = """
import ctypes


def counts():
    gc.collect()
    # VmRSS may be wrong by some hundred pages, more the more processors there are; this counts the pages themselves.
    with open("/proc/self/maps", encoding="ascii") as maps, open("/proc/self/smaps_rollup", encoding="ascii") as rollup:
        memory = next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous"))
        return len(os.listdir("/proc/self/fd")), len(maps.readlines()), len(gc.get_objects()), memory


def check_growth(before):
    after = counts()
    assert after[0] == before[0] and after[1] <= before[1] + 4 and abs(after[2] - before[2]) < 100, (before, after)
    assert after[3] - before[3] < 500, (before, after)


# PR_SET_THP_DISABLE: the kernel makes no large pages of small ones.
assert ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0
"""


def need_module():
    """Builds for other machines, and instrumented ones, have no module."""
    building.plain(os.path.join(BUILD, "src", "libfathom.so"), "")


def python(folder, text, *arguments, env=None, **more):
    """Runs a program with the module; returns what it prints. Its assertions are the test's."""
    need_module()
    path = os.path.join(folder, "program.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(HEAD + text)
    env = os.environ | {"PYTHONPATH": MODULE, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": folder} | (env or {})
    return execute(PYTHON, path, *arguments, env=env, **{"status": 0} | more).stdout


PROGRAM = """#include <stdio.h>
static inline __attribute__((always_inline)) int add(int a, int b)
{
	return *(volatile int *)&a + b;
}
__attribute__((noinline)) int twice(int x)
{
	return add(x, x);
}
int counter = 42;
unsigned short table[3] = { 1, 2, 3 };
const char *greeting = "good day";
int main(void)
{
	puts(greeting);
	fflush(stdout);
	getchar();
	return twice(counter);
}
"""


def program(folder):
    """A program whose functions and variables are known."""
    need_module()
    path = os.path.join(folder, "prog")
    with open(path + ".c", "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    return building.build(path, path + ".c", "-no-pie", "-fno-pie")
