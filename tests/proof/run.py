#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "proof": twig (examples/jit), a language whose functions are copies of stencils, in three builds: without frame pointers
("none"), with a frame in every stencil ("frames"), with a frame in a shim that stencils leave alone ("reserved"). At every instruction
of its code each unwinder's stack is that of a log of calls and returns, in each build."""
import json
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import execute, fathom, query, run  # noqa: E402
from building import nm  # noqa: E402
from running import Running  # noqa: E402
from twig import BUILDS, JIT, NEST, built, environment, expression, outcome, twig, written  # noqa: E402

SUITE = tap.Suite("proof")
test = SUITE.test


def each(name, function, builds=BUILDS):
    """A test for each build."""
    for build in builds:
        SUITE.add(f"{build}: {name}", lambda folder, build=build: function(folder, build))


# What programs do -----------------------------------------------------------------------------------


def results(folder, build):
    assert outcome(build, os.path.join(JIT, "fib.twig")) == (0, ["0", "21", "987", "46368"], "")
    # 9 calls and the sum of k * (k % 3) for k = 1..5; 6 and 7 are printed, 8 * 8 is thrown.
    assert outcome(build, NEST) == (0, [str(9 + 1 * 1 + 2 * 2 + 4 * 1 + 5 * 2), "6", "7", "64"], "")
    # From so many calls within each other an exception leads out, again and again.
    path = written(folder, "(fn deep (n) (if (= n 0) (throw 5)) (return (deep (- n 1))))\n"
                           "(fn start () (let i 0) (while (< i 20) (print (try deep (* i 500))) (set i (+ i 1))))")
    assert outcome(build, path) == (0, ["5"] * 20, "")


def expressions(folder, build):
    rng = random.Random(4)
    variables = {"a": 5, "b": -7, "c": 0, "d": 1 << 62}
    made = [expression(rng, variables, 5) for _ in range(400)]
    lets = "".join(f"\t(let {name} {value})\n" for name, value in variables.items())
    path = written(folder, "(fn same (x) (return x))\n(fn start ()\n" + lets + "".join(f"\t(print {text})\n" for text, _ in made) + ")\n")
    status, lines, complaint = outcome(build, path)
    assert status == 0 and not complaint, complaint
    for (text, value), line in zip(made, lines, strict=True):
        assert str(value) == line, f"{text} is {value}, not {line}"


def registers(folder, build):
    """With values of a caller's in rbx and r12 to r15."""
    path = written(folder, "(fn fail (n) (let m (* n 2)) (if (> m 100) (throw m)) (return (fail m)))\n(fn start () (print (guard fail 3)))")
    assert outcome(build, path, preload="guard") == (0, ["192"], "")


each("results of calls, loops, and of C++ that throws through them", results)
each("400 expressions have the values that Python finds", expressions)
each("who catches what is thrown has the registers that it had", registers)


@test("mistakes: the line of the program, or what cannot go on")
def _(folder):
    for text, complaint in (
            ("(fn start ()\n\t(print 1)\n\t(foo 2))", ":3: nothing is called 'foo'"),
            ("(fn f (a b) (return a))\n(fn start ()\n(f 1))", ":3: 'f' has another number of parameters"),
            ("(fn start ()\n(set x 1))", ":2: no variable is called 'x'"),
            ("(fn start ()\n(print y))", ":2: nothing is called 'y'"),
            ("(fn start ()\n\n(print (+ 1", ":3: expected a name or a value, not ''"),
            ("(fn start () (return 99999999999999999999))", ":1: '99999999999999999999' is too large"),
            ("(print 1)", ":1: expected fn, not 'print'"),
            ("", ":1: nothing is called 'start'"), ("(fn f (a b", ":1: expected a name or a value, not ''"),
            ("(fn f (a) (let ( 5))", ":1: expected a name or a value, not '('"), ("(fn f (a) (if))", ":1: expected a name or a value, not ')'"),
            ("(fn f () (return 0))", ":1: nothing is called 'start'"),
            ("(fn start () (print (/ 1 0)))", "twig: division by zero"),
            ("(fn start () (return (start)))", "twig: too many calls"),
            ("(fn start () (throw 42))", "twig: nobody has caught 42"),
            ("(fn start () (try 7 1))", "twig: no function with so many parameters is called")):
        for build in BUILDS:
            status, _, said = outcome(build, written(folder, text))
            assert status == 1 and said.endswith(complaint + "\n"), f"{text}: {status} {said}"


# Every instruction ----------------------------------------------------------------------------------


def counts_of(text):
    return {name: int(n) for name, n in re.findall(r"^([a-z-]+) (\d+)$", text, re.M)}


def check_frame_pointers(build, counts, text):
    """What is found by following frame pointers alone."""
    if build == "none":
        assert counts["framed-same"] + counts["bare-same"] == 0, text
        return
    # Outside of prologues and epilogues; those of "reserved" are its shims': push, mov and ret of each call.
    assert counts["framed"] == counts["framed-same"] > 450, text
    assert 0 < counts["bare"] < (60 if build == "reserved" else 700), text


def by_fathom(folder, build, by="stepper", least=500):
    begin, = (value for value, _ in nm(twig(build))["twig_entry"])
    stepper = os.path.join(os.environ["BUILD"], "tests", by)
    text = run(stepper, "-b", hex(begin), "-m", 1, "-v", 2, twig(build), NEST, env=environment(), cwd=folder)
    counts = counts_of(text)
    assert counts["walks"] >= least and counts["thrown"] == 1 and not counts["lost"], text
    return counts, text


def stepped_by_fathom(folder, build):
    counts, text = by_fathom(folder, build)
    assert counts["same"] == counts["entry"] == counts["walks"], text
    # No frame was guessed.
    assert counts["found-jit-cfi"] > 3000 and counts["frames"] == sum(counts[f"found-{t}"] for t in ("registers", "cfi", "jit-cfi")), text
    check_frame_pointers(build, counts, text)


def with_steps(folder):
    """nest.twig, which is stepped from its first call to its last."""
    with open(NEST, encoding="ascii") as file:
        text = file.read()
    return written(folder, text.replace("(fn start ()", "(fn start () (step 0)").replace("(return 0))", "(stop) (return 0))"))


def stepped_by_unwinders(folder, build):
    status, lines, complaint = outcome(build, with_steps(folder), preload="steps")
    text = "\n".join(lines) + complaint
    counts = counts_of(text)
    assert status == 0 and [line for line in lines if line.isdigit()] == ["28", "6", "7", "64"], text
    assert counts["walks"] >= 500 and counts["thrown"] == 1 and not counts["lost"], text
    assert counts["nongnu-same"] == counts["libgcc-same"] == counts["walks"], text
    check_frame_pointers(build, counts, text)


GDB_PROGRAM = """(fn sum (n)
	(let total 0)
	(while (> n 0)
		(set total (+ total (* n (% n 3))))
		(set n (- n 1)))
	(return total))
(fn nest (depth n)
	(if (= depth 0)
		(return (sum n)))
	(return (+ 1 (nest (- depth 1) n))))
(fn start ()
	(print (nest 9 2)))
"""


def by_gdb(folder, build, consumers=""):
    return run("gdb", "-q", "-nx", "-batch", "-x", os.path.join(HERE, "steps_gdb.py"), "--args", twig(build), written(folder, GDB_PROGRAM),
               env=environment(consumers=consumers), cwd=folder)


def stepped_by_gdb(folder, build):
    text = by_gdb(folder, build)
    walks, same = map(int, re.search(r"^walks (\d+) same (\d+)$", text, re.M).groups())
    assert walks == same >= 350, text


def checked(folder, build):
    """As many instructions as another stepper finds in its code."""
    counts, _ = by_fathom(folder, build)
    said = fathom("jit-check", "--need-rules", "--json", "--log", os.path.join(folder, "log"), "--", twig(build), NEST)
    with open(os.path.join(folder, "log"), encoding="utf-8") as file:
        end, = map(json.loads, file)
    assert said.returncode == 0 and said.stdout.split() == ["28", "6", "7", "64"], said
    assert end["instructions"] == counts["walks"] and (end["found"], end["undescribed"], end["unjudged"]) == (0, 0, 0), (end, counts)


each("at every instruction fathom has the frames of the log; frame pointers where there are frames", stepped_by_fathom)
each("at every instruction jit-check finds what is described", checked)
each("at every instruction libunwind and libgcc have the frames of the log", stepped_by_unwinders)
each("at every instruction of 10 calls within each other gdb has each function once, and its caller", stepped_by_gdb)


@test("at every instruction: a rule that is wrong or not there is found")
def _(folder):
    for build in BUILDS:
        counts, text = by_fathom(folder, build, "stepper_planted", 100)
        assert counts["same"] < counts["walks"] / 2, text
    path = written(folder, GDB_PROGRAM.replace("(print (nest 9 2))", "(step 0) (nest 9 2) (stop)"))
    counts = counts_of("\n".join(outcome("none", path, preload="steps", consumers="none")[1]))
    assert counts["walks"] >= 350 and counts["nongnu-same"] < 20 and not counts["libgcc-same"], counts
    assert "wrong" in by_gdb(folder, "none", "none")


# Names and lines ------------------------------------------------------------------------------------

WAITING = """(fn inner (n)
	(let m (+ n 1))
	(wait)
	(return m))

(fn outer (n)
	(if (> n 0)
		(return (outer
			(- n 1))))
	(return (inner n)))

(fn start ()
	(return (+ 1
		(try outer 2))))
"""
# A call has the line that its list begins on.
NAMES = ["inner", "outer", "outer", "outer", "twig_try", "start", "main"]
LINES = [("inner", 3), ("outer", 10), ("outer", 8), ("outer", 8), ("start", 14)]


def names_and_lines(folder, build):
    path = written(folder, WAITING)
    with Running([twig(build), path], env=environment("steps"), cwd=folder) as p:
        seen = list(iter(p.line, "ready"))
        named = fathom("addr", "--return-addresses", "--names-only", str(p.pid), *seen, status=(0, 1)).stdout
        assert re.findall(r"^0x\w+ (\w+)\+", named, re.M)[:8] == ["twig_wait", *NAMES], f"backtrace(): {named}"
        text = run("gdb", "-q", "-nx", "-batch", "-p", p.pid, "-ex", "bt")
        seen = re.findall(r"^#\d+ +0x\w+ in (\w+) \(.*?\) at (\S+?):(\d+)$", text, re.M)
        assert [(name, int(line)) for name, file, line in seen if file == path] == LINES, text
        assert "??" not in text, text
        (stack,), _ = query("stack", p.pid, [], status=0)
        made = [f for f in stack["frames"] if f["source"] == "registered"]
        assert [(f["symbol"], f["frames"][0]["line"]) for f in made] == LINES and all(f["trust"] in ("cfi", "jit-cfi") for f in made), made
        # elfutils knows no made code, and goes through it by frame pointers.
        if build != "none":
            theirs = [int(pc, 16) for pc in re.findall(r"^#\d+ +0x([0-9a-f]+)", run("eu-stack", "-p", p.pid, status=(0, 1)), re.M)]
            assert theirs == [int(f["pc"], 16) for f in stack["frames"]], (theirs, stack)
        names = [f["symbol"] for f in stack["frames"]]
        at = names.index("twig_wait")
        assert names[at + 1:at + 8] == NAMES, names
        listed = run("gdb", "-q", "-nx", "-batch", "-p", p.pid, "-ex", "list inner", "-ex", "info line *inner")
        assert "(let m (+ n 1))" in listed and f'Line 1 of "{path}"' in listed, listed


each("a stack has each function once: backtrace(), and with its line gdb and fathom", names_and_lines)


@test("stencils keep what their rule says: jit-check")
def _(_):
    folder = built()
    for register in ("rbp", "rbx", "r12", "r13", "r14", "r15"):
        said = fathom("jit-check", "--register", register, os.path.join(folder, "reserved", "stencils.o"))
        assert said.returncode == 0, said.stdout
    # In each stencil there is a frame.
    said = fathom("jit-check", os.path.join(folder, "frames", "stencils.o"))
    stencils = {name for name, found in nm(os.path.join(folder, "frames", "stencils.o")).items() if found[0][1] == "T"}
    assert {line.split()[1].split("+")[0] for line in said.stdout.splitlines()} == stencils and len(stencils) == 20, said.stdout


@test("the example is as short as it is said to be: less than 600 lines, and 40 that publish")
def _(_):
    lines = {name: open(os.path.join(JIT, name), encoding="utf-8").read().splitlines() for name in os.listdir(JIT)}
    assert sum(map(len, lines.values())) < 600, {name: len(text) for name, text in lines.items()}
    text = "\n".join(lines["twig.cc"])
    page = text[text.index("the page to copy"):text.index("// What C++ has")].splitlines()[1:]
    code = [line for line in page if line.strip(" \t{}") and not line.strip().startswith("//")]
    assert len(code) < 40, len(code)


if __name__ == "__main__":
    sys.exit(SUITE.run())
