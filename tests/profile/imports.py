#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "imports": profiles of other programs have the sums that these programs state, or that follow from their files."""
import collections
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import tap  # noqa: E402

from ask import FATHOM, execute  # noqa: E402
from made_profile import report, same  # noqa: E402

SUITE = tap.Suite("imports")
test = SUITE.test


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path


def sums(stacks):
    """{function: (self, total)} of (stack, weight), the outermost first; a function counts once for each stack."""
    own, total = collections.Counter(), collections.Counter()
    for stack, weight in stacks:
        if stack:
            own[stack[-1]] += weight
        for function in set(stack):
            total[function] += weight
    return {function: (own[function], total[function]) for function in total}


def rows(path, *words):
    """{function: (self, total)} of the report."""
    return {row["name"] or "??": (row["self"], row["total"]) for row in report(path, *words)["row"]}


def by_process(path):
    return {row["name"]: row["total"] for row in report(path, "--by", "process")["row"]}


def export(path, form, *words):
    return execute(FATHOM, "report", "--export", form, "--no-cache", *words, path, status=0, text=False).stdout


def refusal(path):
    done = execute(FATHOM, "report", "--json", path, status=2)
    assert not done.stdout and len(done.stderr.splitlines()) == 1, done
    return done.stderr


@test("collapsed stacks, with and without processes, with empty lines, CRLF and fractions: the sums of their lines")
def collapsed(folder):
    stacks = [(["main", "a", "b c(int, char const*)"], 10), (["main", "a"], 5), (["main", "read"], 4), (["start_thread"], 7)]
    lines = [f"{';'.join(stack)} {weight}" for stack, weight in stacks]
    same(rows(write(folder, "plain", "\n".join(lines) + "\n")), sums(stacks))
    same(rows(write(folder, "lines", "\r\n\r\n" + "\r\n \t\r\n".join(lines))), sums(stacks))
    path = write(folder, "processes", "\n".join("demo;" + line for line in lines) + "\nother;main 3\nother;main;x 1.5\nother;y 1.4\n")
    same(rows(path), sums(stacks + [(["main"], 3), (["main", "x"], 2), (["y"], 1)]))
    same(by_process(path), {"demo": 26, "other": 6})
    path = write(folder, "pids", "demo-7/8;main 3\nother-9/9;main 2\n")
    same({(row["name"], row["pid"], row["tid"]): row["total"] for row in report(path, "--by", "thread")["row"]},
         {("demo", 7, 8): 3, ("other", 9, 9): 2})


@test("collapsed stacks: suffixes say what is of the kernel, of JIT code, and inlined")
def suffixes(folder):
    path = write(folder, "suffixes", "demo;main;f;g_[i];h_[i];sys_[k] 3\ndemo;main;f;g_[i] 2\ndemo;main;f 4\ndemo;main;Loop_[j] 1\n")
    found = report(path)
    same({row["name"]: (row["self"], row["total"], row["module"]) for row in found["row"]},
         {"main": (0, 10, None), "f": (4, 9, None), "g": (2, 5, None), "h": (0, 3, None), "sys": (3, 3, "[kernel]"),
          "Loop": (1, 1, "[jit]")})


@test("collapsed stacks: what is exported of what was imported is what was imported, hidden characters too")
def again(folder):
    rng = random.Random(7)
    names = ["a", "b;c", "d e", "operator new(unsigned long) 7", "\x1b[31m", "z\u202e", "main", "[unknown]", "_[k", "r\\x41", "\\name"]
    lines = collections.Counter()
    for _ in range(200):
        stack = ";".join(rng.choice(names).replace(";", "\\x3b").replace(") 7", ")\\x207").replace("\x1b", "\\x1b")
                         .replace("\u202e", "\\u202e") for _ in range(rng.randint(1, 9)))
        lines["demo;" + stack] += rng.randint(1, 99)
    content = "".join(f"{line} {lines[line]}\n" for line in sorted(lines))
    exported = export(write(folder, "again", content), "collapsed")
    same(sorted(exported.decode().splitlines()), sorted(content.splitlines()))
    same(export(write(folder, "twice", exported), "collapsed"), exported)


@test("what is no profile, and lines that are no stacks: an error with their number")
def no_stacks(folder):
    assert "is no profile" in refusal(write(folder, "text", "This is a text.\na;b 3\n"))
    assert "is no profile" in refusal(write(folder, "empty-lines", "\n\n \n"))
    assert "is no profile" in refusal(write(folder, "nul", "a;b\0 3\n"))
    for line in ("a;b", "5", "a;b 5x", "a;b -5", "a;b 99999999999999999999", "a;\0b 5"):
        text = refusal(write(folder, "line", f"a;b 1\n\nmain;c 2\n{line}\n"))
        assert "line 4: is not of the form" in text, (line, text)
    deep = write(folder, "deep", ";".join(f"f{i}" for i in range(10000)) + " 1\n")
    found = rows(deep)
    assert len(found) == 4096 and found["f9999"] == (1, 1), len(found)


if __name__ == "__main__":
    sys.exit(SUITE.run())
