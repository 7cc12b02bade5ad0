#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "compared": two profiles of recorded programs, and what fathom report --diff says of them."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import tap  # noqa: E402

from ask import FATHOM, execute  # noqa: E402
from building import build  # noqa: E402
from made_profile import make  # noqa: E402

SUITE = tap.Suite("compared")
test = SUITE.test

PROGRAM = r"""
static volatile unsigned sink;
static inline __attribute__((always_inline)) void inlined(unsigned x)
{
	for (unsigned i = 0; i < x; i++)
		sink += i;
}
__attribute__((noinline)) void outer(unsigned x)
{
	inlined(x);
}
__attribute__((noinline)) void parse(unsigned x)
{
	for (unsigned i = 0; i < x * SLOWNESS; i++)
		sink ^= i;
}
__attribute__((noinline)) void print(unsigned x)
{
	for (unsigned i = 0; i < x; i++)
		sink |= i;
}
int main(void)
{
	for (int i = 0; i < 2000; i++) {
		outer(300000);
		parse(300000);
		print(600000);
	}
	return 0;
}
"""


def program(folder, slowness):
    """Each build has a folder of its own, as of two versions that are installed side by side."""
    folder = os.path.join(folder, str(slowness))
    os.makedirs(folder, exist_ok=True)
    source, path = os.path.join(folder, "program.c"), os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    return build(path, source, f"-DSLOWNESS={slowness}", flags=("-O1", "-g"))


def record(folder, path, name):
    profile = os.path.join(folder, name)
    done = execute(FATHOM, "record", "-q", "-o", profile, "-e", "task-clock", "--", path)
    if done.returncode == 2 and "perf" in done.stderr:
        raise tap.Skip(f"perf events cannot be used here: {done.stderr.strip()}")
    assert not done.returncode, done
    return profile


def diff(*words):
    """The first object, and those of the functions."""
    lines = [json.loads(line) for line in execute(FATHOM, "report", "--diff", "--json", *words, status=0).stdout.splitlines()]
    assert lines[0]["type"] == "diff" and all(line["type"] == "change" for line in lines[1:])
    return lines[0], lines[1:]


def changed(rows, verdict):
    """The program's own functions of that verdict: what the kernel does depends on what else the machine does."""
    return [row["name"] for row in rows if row["verdict"] == verdict and row["module"] == "program"]


@test("one function made slower: it is named first, and it alone is slower")
def slower(folder):
    a, b = record(folder, program(folder, 1), "a"), record(folder, program(folder, 3), "b")
    header, rows = diff(a, b)
    assert rows[0]["name"] == "parse" and rows[0]["verdict"] == "slower" and rows[0]["module"] == "program", rows[:3]
    assert rows[0]["interval"][0] > 0.05 and changed(rows, "slower") == ["parse"], rows
    for verdict in ("slower", "faster"):
        assert header[verdict] == len([row for row in rows if row["verdict"] == verdict]), (header, rows)
    # The others have the same work to do, which is a smaller share now.
    assert set(changed(rows, "faster")) <= {"inlined", "print"}, rows
    said = execute(FATHOM, "report", "--diff", a, b, status=0).stdout
    first = said.split("function\n")[1].splitlines()[0]
    assert "slower" in first and first.endswith("parse  program"), said
    head = next(line for line in said.splitlines() if line.endswith("function"))
    assert first.index("parse") == head.index("function") and first.index("]") < first.index("slower"), said
    header, rows = diff(b, a)
    assert rows[0]["name"] == "parse" and rows[0]["verdict"] == "faster", rows[:3]


@test("two runs of one build: nothing is significant")
def unchanged(folder):
    path = program(folder, 1)
    # By chance alone, one pair of twenty may have a significant change: two pairs, one of four hundred.
    wrong = []
    for _ in range(2):
        header, rows = diff(record(folder, path, "a"), record(folder, path, "b"))
        if not changed(rows, "slower") + changed(rows, "faster"):
            said = execute(FATHOM, "report", "--diff", os.path.join(folder, "a"), os.path.join(folder, "b"), status=0).stdout
            assert header["slower"] + header["faster"] or ("no significant change of" in said and " slower " not in said), said
            return
        wrong.append(rows[:3])
    raise AssertionError(wrong)


@test("what cannot be compared: one line that says why")
def refused(folder):
    a = make(folder, ("about unit ns", "thread 7 7 demo", "sample 1 0 0 1 5 f", "end 10"), "a")
    b = make(folder, ("about unit cycles", "thread 7 7 demo", "sample 1 0 0 1 5 f", "end 10"), "b")
    empty = make(folder, ("about unit ns", "end 10"), "empty")
    for words, text in (([a], "--diff compares two FILEs"), ([a, a, a], "--diff compares two FILEs"), ([a, b], "different events"),
                        (["--by", "line", a, a], "--diff compares functions"), (["--export", "pprof", a, a], "does not go with --export"),
                        (["--per", "0", a, a], "--per"), (["--per", "5,", a, a], "--per"), (["--per", "x", a, a], "--per"),
                        ([a, folder + "/none"], "No such file")):
        done = execute(FATHOM, "report", "--diff", *words, status=2)
        assert text in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, (words, done)
    done = execute(FATHOM, "report", "--per", "wall", a, status=2)
    assert "--per goes with --diff only" in done.stderr, done
    execute(FATHOM, "report", "--diff", empty, empty, status=1)
    header, rows = diff("--per", "3,7", a, empty)
    assert header["divisors"] == [3, 7] and rows[0]["values"][1] == 0 and rows[0]["verdict"] == "not-significant", (header, rows)


if __name__ == "__main__":
    sys.exit(SUITE.run())
