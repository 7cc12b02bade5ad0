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


def two(folder, waits):
    """Profiles of a second and of two, of these waits: their stacks, and the milliseconds of A and of B."""
    paths = []
    for side in range(2):
        lines = ["about unit ns", "thread 7 7 demo"]
        for stack, *ms in waits:
            frames = ";".join(frame if "@" in frame else f"{frame}@/bin/demo" for frame in stack[side].split(";"))
            lines.append(f"sample {len(lines)} 0 3 1 {ms[side] * 1000000} {frames}")
        paths.append(make(folder, [*lines, f"end {(side + 1) * 1000000000}"], "ab"[side]))
    return paths


@test("waits: how much more of each second, by reason whatever the addresses and TIDs are, and no verdict")
def waits(folder):
    same = "main;[read: /tmp/fifo (fd 3)]@[waits]"
    a, b = two(folder, ((("lock;[futex: mutex 0x7f10 owned by 10]@[waits]", "lock;[futex: mutex 0x55a0 owned by 2044]@[waits]"), 100, 700),
                        (("lock;[futex: mutex 0x7f20 owned by 11]@[waits]", "lock;[futex: mutex 0x55b0 owned by 2045]@[waits]"), 50, 0),
                        ((same, same), 400, 800)))
    header, rows = diff("--time", "waiting", a, b)
    assert (header["time"], header["unit"], header["per"], header["slower"], header["faster"]) == ("waiting", "ns", "wall", 0, 0), header
    assert header["weight"] == [550000000, 1500000000], header
    found = {row["name"]: (row["self"], row["values"], row["change"]) for row in rows}
    assert found == {"[futex: mutex * owned by *]": ([150000000, 700000000], [150000000, 350000000], 200000000),
                     "[read: /tmp/fifo (fd *)]": ([400000000, 800000000], [400000000, 400000000], 0)}, found
    assert {(row["verdict"], row["interval"], row["chance"]) for row in rows} == {("not-tested", None, None)}, rows
    # By the functions that wait, and of all waits.
    rows = diff("--time", "waiting", "--not", "[[]*", "--per", "cpu", a, b)[1]
    assert {row["name"]: row["self"] for row in rows} == {"lock": [150000000, 700000000], "main": [400000000, 800000000]}, rows
    said = execute(FATHOM, "report", "--diff", "--time", "waiting", a, b, status=0).stdout
    assert "\nresult:    2 functions and reasons, not tested: there are waits among them, which are no samples\n" in said, said
    assert "interval" not in said and "significant" not in said, said
    assert "\n  150.0 ms   350.0 ms   +200.0 ms  [futex: mutex * owned by *]  [waits]\n" in said, said
    assert "A:         " + a + ": 3 waits of 550.0 ms\n" in said, said


@test("libraries of two versions are one; two versions in one profile are not")
def versions(folder):
    def library(name, *versions):
        return make(folder, ["about unit ns", "thread 7 7 demo",
                             *(f"sample {i} 0 0 1 {10 ** i} f@/lib/libx.so.{version}" for i, version in enumerate(versions)), "end 9"], name)
    a, b, both = library("a", "1.2"), library("b", "1.3"), library("both", "1.2", "1.3")
    assert [(row["module"], row["self"]) for row in diff(a, b)[1]] == [("libx.so.1.2", [1, 1])]
    assert {(row["module"], *row["self"]) for row in diff(a, both)[1]} == {("libx.so.1.2", 1, 1), ("libx.so.1.3", 0, 10)}
    assert {(row["module"], *row["self"]) for row in diff(both, b)[1]} == {("libx.so.1.2", 1, 0), ("libx.so.1.3", 10, 1)}


@test("JIT code of two runs: functions of one name are one, whatever process has made them")
def jit(folder):
    files = [make(folder, ("about unit ns", f"thread {pid} {pid} node", *(f"sample {ns} 0 0 1 1000 f@[jit_of_{pid}]".replace("_", " ")
                                                                         for ns in range(1, 200)), "end 1000"), str(pid))
             for pid in (100, 2000)]
    header, rows = diff(*files)
    assert [(row["name"], row["self"]) for row in rows] == [("f", [199000, 199000])] and not header["slower"] + header["faster"], rows


@test("what cannot be compared: one line that says why")
def refused(folder):
    a = make(folder, ("about unit ns", "thread 7 7 demo", "sample 1 0 0 1 5 f", "end 10"), "a")
    b = make(folder, ("about unit cycles", "thread 7 7 demo", "sample 1 0 0 1 5 f", "end 10"), "b")
    empty = make(folder, ("about unit ns", "end 10"), "empty")
    for words, text in (([a], "--diff compares two FILEs"), ([a, a, a], "--diff compares two FILEs"), ([a, b], "different events"),
                        (["--by", "line", a, a], "--diff compares functions"), (["--export", "pprof", a, a], "goes with no --export but page"),
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
