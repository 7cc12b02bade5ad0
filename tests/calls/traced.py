# SPDX-License-Identifier: MIT
"""What the tests of traced programs share."""
import collections
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import tap  # noqa: E402

from ask import fathom, run  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
TOP = os.path.join(HERE, "..", "..")
SITES = "-fpatchable-function-entry=18,16"
CLANG = "clang"
# What shapes.c calls, and how deep.
SHAPE_CALLS = [("main", 0), ("top", 1), ("middle", 2), ("leaf", 3), ("leaf", 3), ("middle", 2), ("leaf", 3), ("leaf", 3), ("leaf", 1)]
SUITE = tap.Suite("calls")


def test(name, needs_root=False):
    """Makes a test of the function that follows, where programs can be traced."""
    def decorate(function):
        def call(folder):
            tap.need_traced_programs()
            function(folder)
        return SUITE.test(name, needs_root=needs_root)(call)
    return decorate


def build(folder, name, *options, compiler="gcc", flags=("-O1", SITES), out=None):
    path = os.path.join(folder, out or name.split(".")[0])
    run(compiler, *flags, "-o", path, os.path.join(PROGRAMS, name), *options)
    return path


def trace(*words, status=0, options=(), **more):
    """Runs a program below fathom trace: its standard output, and the events, as JSON has them."""
    log = more.pop("log")
    done = fathom("trace", "--json", "--log", log, *options, "--", *words, status=status, **more)
    with open(log, encoding="utf-8") as f:
        return done.stdout, [json.loads(line) for line in f], done


def calls(events, *names):
    """(function, depth, count) of the calls, of these functions only if there are some."""
    return [(e["function"], e["depth"], e["count"]) for e in events
            if e["type"] == "call" and (not names or e["function"] in names)]


def check_direct(events):
    """Whether each call but the outermost ones is told to be by the one above it."""
    for e in events:
        if e["type"] == "call":
            assert (e["parent"], e["parent_depth"]) == (("direct", e["depth"] - 1) if e["depth"] else (None, None)), e


def counts(events):
    total = collections.Counter()
    for e in events:
        if e["type"] == "call":
            total[e["function"]] += e["count"]
    return total


def kinds(events):
    return collections.Counter(e["type"] for e in events)


def twin_log(folder, twin, start=run):
    """What the program @twin says it has entered, by thread, and what it prints."""
    log = os.path.join(folder, "twin.log")
    said = start(twin, log)
    symbols = building.nm(twin)
    first = symbols["main"][0][0]
    names = {value - first: name for name, found in symbols.items() for value, kind in found if kind in "tT"}
    by_thread = collections.defaultdict(list)
    with open(log, encoding="utf-8") as f:
        for line in f:
            thread, offset = line.split()
            by_thread[int(thread)].append(names[int(offset)])
    return said, by_thread


def build_twin(folder, compiler, level, *flags):
    return build(folder, "twin.c", "-DTWIN", compiler=compiler, flags=(level, "-finstrument-functions", "-pthread", *flags), out="twin")


def check_twin(expected, events):
    """Whether the calls are those that a twin has logged, by thread."""
    found = collections.defaultdict(list)
    for e in events:
        if e["type"] == "call":
            found[e["tid"]].append(e["function"])
    # The twin numbers a thread in its first function, which it so enters as main.
    starts = [e["tid"] for e in events if e["type"] == "start"]
    assert len(starts) == 3 and len(found) == 4, (starts, len(found))
    main = [e["tid"] for e in events if e["function"] == "main"][0]
    assert found[main] == [n for n in expected[0] if n != "run"], "main's calls differ"
    for number, tid in enumerate(starts, 1):
        assert found[tid] == ["run"] + expected[number], f"thread {number}'s calls differ"
