# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to, and how they ask for stacks."""
import os

import tap

from ask import FATHOM, records_of, run
from building import build
from running import Running

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
BUILD = os.environ["BUILD"]
SUITE = tap.Suite("stacks", "become another user, and make namespaces")
test = SUITE.test


def stacks_of(pid, *options):
    """The records of fathom stack: one for each thread, of native frames. Without those that cancellation points of glibc 2.41
    have below that of the function which is called, pause() say."""
    found = records_of(run(FATHOM, "stack", "--json", "--names-only", "--no-cache", "--frames=native", *options, pid, status=(0, 1)))
    for thread in found:
        thread["frames"] = [f for f in thread["frames"] if "_syscall_cancel" not in (f["symbol"] or "")]
    return found


def functions_of(thread):
    return [f["symbol"] for f in thread["frames"]]


def threads(folder, n, depth, *options, compiler="gcc"):
    path = build(os.path.join(folder, "threads"), os.path.join(PROGRAMS, "threads.c"), "-D_GNU_SOURCE", "-pthread",
                 *options, compiler=compiler, flags=("-O2", "-fno-optimize-sibling-calls"))
    return [path, n, depth]


def rounds(folder, n):
    """Reads the stacks of a program n times whose threads come and go; what was read then."""
    with Running([*threads(folder, 1, 50), "churn"]) as program:
        assert program.line() == "ready"
        line = run(os.path.join(BUILD, "tests", "rounds"), program.pid, n)
    counts = dict(zip(line.split()[::2], map(int, line.split()[1::2])))
    assert counts["first"] > n / 2 and counts["others"] > 0 and counts["first"] + counts["missed"] + counts["changed"] == n, line
    return line.strip()
