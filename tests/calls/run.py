#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "calls": programs that run under fathom trace, beside logs that they or their twins keep themselves."""
import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]

import building  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute, fathom, run  # noqa: E402
from running import content, until  # noqa: E402

import attached  # noqa: E402,F401 pylint: disable=unused-import
import baked  # noqa: E402,F401 pylint: disable=unused-import
import dispatched  # noqa: E402,F401 pylint: disable=unused-import
import files  # noqa: E402,F401 pylint: disable=unused-import
import hooks  # noqa: E402,F401 pylint: disable=unused-import
import library_calls  # noqa: E402,F401 pylint: disable=unused-import
import linked  # noqa: E402,F401 pylint: disable=unused-import
import self_text  # noqa: E402,F401 pylint: disable=unused-import
import sources  # noqa: E402,F401 pylint: disable=unused-import
import trees  # noqa: E402,F401 pylint: disable=unused-import
import words  # noqa: E402,F401 pylint: disable=unused-import
from traced import (CLANG, HERE, PROGRAMS, SHAPE_CALLS, SITES, SUITE, TOP, build, build_twin, calls, check_direct, check_twin, counts, kinds, test, trace,  # noqa: E402
                    twin_log)


@test("the example that --ftrace comes from: text, columns, folding, and a program that notices nothing")
def _(folder):
    path = build(folder, "pause.c", flags=("-O2", SITES))
    done = fathom("trace", "--", path, "word", status=0)
    assert done.stdout == "2 word\n", done.stdout
    lines = done.stderr.splitlines()
    assert lines[0] == "#     tid   nanoseconds   stack symbol", lines[0]
    shape = re.compile(r"(FUN|END) +(\d+) ([ \d']{13}) ([ \d']{7}) ( *)(\S.*)$")
    parts = [shape.match(line) for line in lines[1:]]
    assert all(parts), lines
    expected = [(0, "&main")] + 4 * [(1, "&DoStuff"), (2, "&Pause \xd710'000")]
    assert [(len(p[5]) // 2, p[6]) for p in parts[:-1]] == expected, lines
    assert parts[-1][1] == "END" and parts[-1][6] == "status 0", lines[-1]
    times = [int(p[3].replace("'", "")) for p in parts]
    assert times == sorted(times), times
    for p in parts:
        # Three digits between two marks.
        assert all(re.fullmatch(r"\d{1,3}('\d{3})*", p[k].strip()) for k in (3, 4)), p[0]
    assert len({p[2] for p in parts}) == 1
    # A return address and what is pushed are 8 bytes each: main() > DoStuff() > Pause().
    stacks = [int(p[4].replace("'", "")) for p in parts[:3]]
    assert stacks[0] < stacks[1] < stacks[2] and all(s % 8 == 0 for s in stacks), stacks


@test("--max-rate: of each function that floods so many calls are told, and a note; of the others each; also of calls of libraries, by four threads")
def _(folder):
    path = build(folder, "flood.c", flags=("-O1", SITES, "-pthread"))
    out, events, _ = trace(path, log=os.path.join(folder, "log"), options=("--max-rate", "1000", "--calls", "always", "--no-fold"))
    # Where there was a call of the hook, nothing is called any more.
    assert out == "joined 0 1\n", out
    total = counts(events)
    assert total["seldom"] == 4 * 50 and total["main"] == 1, total
    # What is told before the note is what fell into the seconds up to the one that was too much: one, or two.
    flooding = ["hot0", "hot1", "hot2", "hot3", "getppid"]
    assert all(1000 <= total[name] <= 2000 for name in flooding), total
    notes = sorted(e["text"].rsplit(" ", 1)[1] for e in events if e["type"] == "note")
    assert notes == sorted(flooding), notes
    for name in flooding:
        places = [i for i, e in enumerate(events) if e["function"] == name]
        note = next(i for i, e in enumerate(events) if e["type"] == "note" and e["text"].endswith(" " + name))
        assert max(places) < note, name


for COMPILER in ("gcc", CLANG):
    for LEVEL in ("-O0", "-O2"):
        @test(f"each call of a program of {COMPILER} {LEVEL}, beside the log of a twin built with -finstrument-functions")
        def _(folder, compiler=COMPILER, level=LEVEL):
            said, expected = twin_log(folder, build_twin(folder, compiler, level))
            path = build(folder, "twin.c", compiler=compiler, flags=(level, SITES, "-pthread"), out="traced")
            out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
            assert out == said == run(path), (out, said)
            check_twin(expected, events)

        @test(f"-finstrument-functions, {COMPILER} {LEVEL}: each call, and its depth, beside the log that the program writes itself in the same run")
        def _(folder, compiler=COMPILER, level=LEVEL):
            runs = []
            # What the twin does at returns leaves no call at the end of a function.
            alike = "-fno-optimize-sibling-calls"
            _, expected = twin_log(folder, build_twin(folder, compiler, level, alike),
                                   start=lambda *words: runs.append(trace(*words, log=os.path.join(folder, "log"), options=["--no-fold"])) or runs[0][0])
            check_twin(expected, runs[0][1])
            path = build(folder, "twin.c", compiler=compiler, flags=(level, SITES, "-pthread", alike), out="traced")
            _, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
            main = [[(e["function"], e["depth"]) for e in a if e["type"] == "call" and e["tid"] == e["pid"]] for a in (runs[0][1], events)]
            assert main[0] == main[1]


@test("folded lines are the unfolded ones, counted")
def _(folder):
    path = build(folder, "twin.c", flags=("-O2", SITES, "-pthread"))
    _, folded, _ = trace(path, log=os.path.join(folder, "a"))
    _, plain, _ = trace(path, log=os.path.join(folder, "b"), options=["--no-fold"])
    assert counts(folded) == counts(plain)
    assert {e["count"] for e in plain if e["type"] == "call"} == {1}
    assert len(folded) < len(plain)
    for a, b in zip(folded, folded[1:]):
        assert not (a["type"] == b["type"] == "call" and a["tid"] == b["tid"] and
                    (a["function"], a["stack"]) == (b["function"], b["stack"])), (a, b)


SHAPES = [(compiler, flags, links) for compiler, flags, links in (
    ("gcc", [SITES], ["-pie", "-no-pie", "-static", "-static-pie"]),
    ("gcc", ["-fpatchable-function-entry=11,9"], ["-pie"]),
    ("gcc", ["-fpatchable-function-entry=16,14", "-fcf-protection=none"], ["-pie"]),
    ("gcc", ["-fpatchable-function-entry=5"], ["-pie", "-static"]),
    ("gcc", [SITES, "-fcf-protection=full"], ["-pie"]),
    ("gcc", ["-pg"], ["-pie", "-no-pie", "-static"]),
    ("gcc", ["-pg", "-mfentry"], ["-pie", "-no-pie"]),
    ("gcc", ["-pg", "-mfentry", "-mrecord-mcount"], ["-pie"]),
    ("gcc", ["-pg", "-mfentry", "-mnop-mcount", "-fno-pie"], ["-no-pie"]),
    ("gcc", ["-pg", "-mnop-mcount", "-fno-pie"], ["-no-pie", "-static"]),
    (CLANG, [SITES], ["-pie", "-no-pie", "-static"]),
    (CLANG, ["-fpatchable-function-entry=5"], ["-pie"]),
    (CLANG, ["-pg", "-mfentry"], ["-pie"]),
    (CLANG, ["-fxray-instrument", "-fxray-instruction-threshold=1"], ["-pie"]),
    ("musl-gcc", [SITES], ["-pie", "-static"]),
)]

for COMPILER, FLAGS, LINKS in SHAPES:
    for LINK in LINKS:
        @test(f"the same calls: {COMPILER} {' '.join(FLAGS)} {LINK}")
        def _(folder, compiler=COMPILER, flags=FLAGS, link=LINK):
            pic = [] if any("pie" in f for f in flags) else ["-fpie" if "pie" in link and "no" not in link else "-fno-pie"]
            path = build(folder, "shapes.c", link, compiler=compiler, flags=["-O1", *flags, *pic])
            out, events, done = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
            # top(3): middle(3) = 4 + 5 * 2, 3, middle(6) = 7 + 8 * 2; leaf(4) = 5
            assert out == "45\n", out
            found = [(f, d) for f, d, _ in calls(events, "main", "top", "middle", "leaf")]
            assert found == SHAPE_CALLS, (found, done.stderr)
            check_direct(events)
            by_depth = {}
            for e in events:
                if e["type"] == "call":
                    by_depth.setdefault(e["depth"], set()).add(e["stack"])
            # top() has 200 bytes of its own.
            assert min(by_depth[2]) - max(by_depth[1]) >= 200, by_depth


@test("a function that was built with several kinds of sites is entered once")
def _(folder):
    for flags in (["-finstrument-functions"], ["-pg", "-mfentry", "-mrecord-mcount", "-fno-pie", "-no-pie"], ["-pg"]):
        path = build(folder, "shapes.c", flags=["-O1", SITES, *flags], out="several")
        listed = fathom("trace", "--sites", path, status=0).stdout.splitlines()[-1]
        assert "patchable" in listed and "," in listed, listed
        _, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
        found = [(name, depth) for name, depth, _ in calls(events)]
        assert found == SHAPE_CALLS, (flags, found)
        check_direct(events)


@test("returns, where compilers record them: each call has one, deeper ones first, with durations that add up")
def _(folder):
    for compiler, flags in (("gcc", [SITES, "-minstrument-return=nop5", "-mrecord-return", "-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie"]),
                            (CLANG, ["-fxray-instrument", "-fxray-instruction-threshold=1"])):
        if compiler == "gcc":
            flags.remove(SITES)
        path = build(folder, "shapes.c", compiler=compiler, flags=["-O1", *flags])
        out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--exits", "--no-fold"])
        assert out == "45\n"
        stack = []
        for e in events:
            if e["type"] == "call":
                assert e["depth"] == len(stack), (compiler, e, stack)
                stack.append(e)
            elif e["type"] == "return":
                call = stack.pop()
                assert (e["function"], e["depth"]) == (call["function"], call["depth"]), (compiler, e, call)
                assert (e["duration_ns"] or 0) == e["ns"] - call["ns"], (compiler, e, call)
        assert not stack and kinds(events)["return"] == len(SHAPE_CALLS), compiler
        rows = [json.loads(line) for line in
                fathom("trace", "-c", "--json", "--exits", "--", path, status=0).stderr.splitlines()]
        by_name = {r["function"]: r for r in rows}
        assert {n: r["calls"] for n, r in by_name.items()} == {"main": 1, "top": 1, "middle": 2, "leaf": 5}, rows
        assert all(r["calls"] == r["returns"] for r in rows)
        assert by_name["main"]["total_ns"] == sum(r["self_ns"] for r in rows), rows
        for r in rows:
            assert r["min_ns"] <= r["mean_ns"] <= r["max_ns"] and r["p99_ns"] <= r["max_ns"], r


def told_by_itself(path, log):
    """What a program of -finstrument-functions says itself that it has entered and left, but what was inlined."""
    symbols = building.nm(path)
    start = symbols["work"][0][0]
    names = {value - start: name for name, found in symbols.items() for value, kind in found if kind in "tT"}
    with open(log, encoding="utf-8") as f:
        told = [(word == "-", names.get(int(at), "in_")) for word, at in (line.split() for line in f)]
    return [(is_exit, name) for is_exit, name in told if not name.startswith("in_")]


@test("-finstrument-functions: calls and returns are those that the program tells of itself, functions that were inlined into others left out")
def _(folder):
    log = os.path.join(folder, "told")
    for compiler in ("gcc", CLANG):
        for flags in (["-O0"], ["-O1"], ["-O2"], ["-O2", "-fno-plt"], ["-Os", "-fno-omit-frame-pointer"], ["-O2", "-static"], ["-O2", "-fno-pie", "-no-pie"]):
            path = build(folder, "inlined.c", "-rdynamic", compiler=compiler, flags=["-finstrument-functions", *flags])
            out, events, _ = trace(path, log, log=os.path.join(folder, "log"), options=["--exits", "--no-fold"])
            assert out == run(path), (compiler, flags)
            found = [(e["type"] == "return", e["function"]) for e in events if e["type"] in ("call", "return")]
            assert found == told_by_itself(path, log) and len(found) == 80, (compiler, flags, found[:40], told_by_itself(path, log)[:40])
            stack = []
            for e in events:
                if e["type"] == "call":
                    assert e["depth"] == len(stack), (compiler, flags, e)
                    stack.append(e)
                elif e["type"] == "return":
                    call = stack.pop()
                    assert (e["function"], e["depth"], e["stack"]) == (call["function"], call["depth"], call["stack"]), (compiler, flags, e, call)
            assert not stack


def plugin(folder, name, *options, compiler="gcc"):
    return build(folder, "plugin.c", "-shared", "-fPIC", f"-DNAME={name}", *options, compiler=compiler, out=f"{name}.so")


@test("libraries: linked ones from their constructors on; loaded ones, two in turn at the same address, by their right names")
def _(folder):
    one, two = plugin(folder, "one"), plugin(folder, "two")
    path = build(folder, "loader.c", os.path.join(folder, "one.so"), f"-Wl,-rpath,{folder}", out="linked", flags=("-O1", SITES, "-Wl,--no-as-needed"))
    _, events, _ = trace(path, "1", two, log=os.path.join(folder, "log"))
    assert [f for f, _, _ in calls(events)] == ["begin_one", "main", "begin_two", "plug", "inner_two", "end_two", "end_one"], events
    path = build(folder, "loader.c")
    out, events, _ = trace(path, "100", one, two, log=os.path.join(folder, "log"))
    assert out == f"{2 * sum(range(1, 101))}\n", out
    expected = ["main"]
    for i in range(100):
        name = ("one", "two")[i % 2]
        expected += [f"begin_{name}", "plug", f"inner_{name}", f"end_{name}"]
    assert [f for f, _, _ in calls(events)] == expected
    modules = {(e["function"], os.path.basename(e["module"])) for e in events if e["type"] == "call"}
    assert ("plug", "one.so") in modules and ("plug", "two.so") in modules and ("inner_one", "two.so") not in modules


@test("libraries that musl loads")
def _(folder):
    one = plugin(folder, "one", compiler="musl-gcc")
    path = build(folder, "loader.c", compiler="musl-gcc")
    out, events, _ = trace(path, "3", one, log=os.path.join(folder, "log"))
    assert out == "12\n"
    # musl unloads nothing.
    assert [f for f, _, _ in calls(events)] == ["main", "begin_one"] + 3 * ["plug", "inner_one"] + ["end_one"], events


@test("100 threads with 20,000 calls each: 2,000,000 calls")
def _(folder):
    path = build(folder, "threads.c", "-pthread")
    log = os.path.join(folder, "log")
    done = fathom("trace", "--log", log, "--", path, "100", "20000", "1", status=0)
    assert done.stdout == "done\n"
    found = collections.Counter(m[1] for m in re.finditer(r"^FUN .*&(\w+)$", open(log, encoding="utf-8").read(), re.M))
    assert found == {"counted": 1000000, "other": 1000000, "run": 100, "main": 1}, found
    assert "LOST" not in open(log, encoding="utf-8").read()


@test("3,000 threads one after the other; threads by name")
def _(folder):
    path = build(folder, "threads.c", "-pthread")
    rows = fathom("trace", "-c", "--json", "--", path, "1", "2", "3000", status=0).stderr.splitlines()
    assert {r["function"]: r["calls"] for r in map(json.loads, rows)} == \
        {"counted": 3000, "other": 3000, "run": 3000, "main": 1}, rows
    _, events, _ = trace(path, "2", "400", "1", log=os.path.join(folder, "log"), options=["--depth", "1"])
    assert counts(events) == {"main": 1, "run": 2}, counts(events)


@test("children: fork, vfork, posix_spawn, a daemon's, a program that another thread becomes; each with its own number")
def _(folder):
    path = build(folder, "children.c", "-pthread")
    out, events, _ = trace(path, log=os.path.join(folder, "log"))
    assert out == "done\n"
    main = next(e["pid"] for e in events if e["function"] == "main")
    pids = collections.defaultdict(set)
    for e in events:
        if e["type"] == "call":
            pids[e["function"]].add(e["pid"])
            assert e["tid"] == e["pid"] or e["function"] == "become", e
    assert counts(events) == {"main": 1 + 31, "in_parent": 20, "in_fork": 20, "in_vfork": 20, "in_program": 31, "in_grandchild": 1,
                              "wait_for": 52, "leave_grandchild": 1, "become": 1}, counts(events)
    assert pids["in_parent"] == pids["wait_for"] == {main}
    assert len(pids["in_fork"]) == len(pids["in_vfork"]) == 20 and len(pids["in_program"]) == 31
    assert pids["in_vfork"] <= pids["in_program"] and main not in pids["in_fork"] | pids["in_program"]
    programs = [e for e in events if e["type"] == "start" and e["text"].startswith("program ")]
    assert len(programs) == 31 and {e["text"] for e in programs} == {"program " + path}
    ended = {e["pid"]: e["text"] for e in events if e["type"] == "exit" and e["tid"] == e["pid"]}
    forks = [pid for pid in sorted(ended) if pid in pids["in_fork"]]
    assert sorted(ended[pid] for pid in forks) == sorted(f"status {i}" for i in range(20)), ended
    _, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-children"])
    assert counts(events) == {"main": 1, "in_parent": 20, "wait_for": 52, "leave_grandchild": 1}, counts(events)
    assert {e["pid"] for e in events} == {next(e["pid"] for e in events if e["function"] == "main")}


@test("--no-children: nobody traces children, whose parent may do so; nothing of the tracer's is in their memory")
def _(folder):
    for flags in ([SITES], ["-pg", "-mfentry"], ["-finstrument-functions"]):
        path = build(folder, "parent.c", flags=["-O1", *flags])
        for options in ([], ["--calls", "always"], ["-c"]):
            log = os.path.join(folder, "log")
            done = fathom("trace", "--json", "--no-children", *options, "--log", log, "--", path, status=0, cwd=folder)
            assert done.stdout == "0 0 0\n", (flags, options, done.stdout)
            with open(log, encoding="utf-8") as f:
                rows = [json.loads(line) for line in f]
            assert sum(r.get("calls", r.get("count", 0)) for r in rows if r.get("function") == "counted") == 4, (flags, options)
            assert not [r for r in rows if r.get("type") == "lost" or r.get("lost")], rows


@test("-pg: what the profiler writes of a traced program is what it writes of one that is not traced")
def _(folder):
    for flags in (["-pg"], ["-pg", "-mfentry"], ["-pg", "-mfentry", "-fno-pie", "-no-pie"], ["-pg", "-fno-plt"]):
        path = build(folder, "shapes.c", flags=["-O1", *flags])
        profiles = []
        for tracer in ([], [FATHOM, "trace", "--log", "/dev/null", "--"], [FATHOM, "trace", "--log", "/dev/null", "--only", "leaf", "--"]):
            run("setarch", "-R", *tracer, path, cwd=folder)
            profile = os.path.join(folder, "gmon.out")
            # The arcs: samples of time are chance.
            profiles.append(run("gprof", "-b", "-q", "-c", path, profile))
            flat = run("gprof", "-b", "-p", "-z", path, profile)
            profiles[-1] += "\n".join(sorted(f"{line.split()[-1]} {line.split()[3]}" for line in flat.splitlines() if len(line.split()) == 7))
            os.unlink(profile)
        assert "leaf" in profiles[0] and profiles[0] == profiles[1] == profiles[2], (flags, profiles)


@test("longjmp, exceptions, handlers that jump away, signal stacks, coroutines: the depth afterwards is that of before")
def _(folder):
    path = build(folder, "control.cc", compiler="g++")
    out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
    assert out == run(path)
    assert {d for f, d, _ in calls(events, "base")} == {1}, collections.Counter(d for _, d, _ in calls(events, "base"))
    assert counts(events) == {"main": 1, "base": 2300, "dig": 10000, "throws": 2100, "rethrows": 100, "leaves": 200, "handles": 200,
                              "generates": 1, "step": 1000}, counts(events)
    assert [d for f, d, _ in calls(events, "dig")] == 1000 * list(range(1, 11))
    assert [d for f, d, _ in calls(events, "throws")] == 100 * list(range(2, 23))
    assert kinds(events)["signal"] == 400
    # On stacks of their own: within main(), and step() within its generator.
    assert {d for f, d, _ in calls(events, "handles")} == {1}
    assert {d for f, d, _ in calls(events, "step")} == {d + 1 for _, d, _ in calls(events, "generates")}
    assert all(e["stack"] < 65536 for e in events if e["type"] == "call" and e["function"] in ("step", "handles"))


@test("depths are those that the program counts itself: arguments on the stack, frames that grow, recursion; each way of a frame")
def _(folder):
    for compiler, flags in (("gcc", ["-O2", SITES]), ("gcc", ["-O0", SITES]), ("gcc", ["-O2", "-fno-omit-frame-pointer", SITES]),
                            ("gcc", ["-O2", "-pg"]), ("gcc", ["-O2", "-pg", "-mfentry"]), (CLANG, ["-O2", SITES]), (CLANG, ["-O0", SITES]),
                            (CLANG, ["-O2", "-fxray-instrument", "-fxray-instruction-threshold=1"])):
        path = build(folder, "nested.c", compiler=compiler, flags=flags)
        out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"], cwd=folder)
        told = [(name, int(depth)) for name, depth in (line.split() for line in out.splitlines())]
        found = [(e["function"], e["depth"]) for e in events if e["type"] == "call" and e["function"] not in ("chance", "enter", "leave", "use")]
        assert found == told and len(told) > 20000, (compiler, flags, [(a, b) for a, b in zip(told, found) if a != b][:3])


@test("a storm of signals: as many calls as the program counts, in handlers and beside them")
def _(folder):
    path = build(folder, "storm.c")
    out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
    in_handler, in_main = map(int, out.split())
    found = counts(events)
    assert (found["called_by_handler"], found["handle"], found["called_by_main"], found["also_called_by_main"]) == \
        (in_handler, in_handler, in_main, in_main), (out, found)
    assert kinds(events)["signal"] == in_handler and not kinds(events)["lost"]
    # The handler's calls lie within what was interrupted.
    last = None
    for e in events:
        if e["type"] == "call" and e["function"] == "called_by_handler":
            assert last["function"] == "handle" and e["depth"] == last["depth"] + 1, (last, e)
        last = e


@test("ends: by SIGKILL after 5,000 calls, abort(), a NULL pointer, an overflow of the stack, a status")
def _(folder):
    path = build(folder, "ends.c")
    log = os.path.join(folder, "log")
    _, events, _ = trace(path, "killed", log=log, status=-signal.SIGKILL)
    assert counts(events) == {"main": 1, "counted": 2500, "other": 2500}, counts(events)
    assert events[-1]["type"] == "exit" and events[-1]["text"] == "killed by SIGKILL", events[-1]
    _, events, _ = trace(path, "aborted", log=log, status=-signal.SIGABRT)
    assert [e["text"] for e in events[-2:]] == ["SIGABRT", "killed by SIGABRT"], events[-2:]
    _, events, _ = trace(path, "null", log=log, status=-signal.SIGSEGV)
    assert [e["function"] or e["text"] for e in events] == ["main", "caller", "SIGSEGV", "killed by SIGSEGV"], events
    _, events, _ = trace(path, "overflow", log=log, status=-signal.SIGSEGV)
    depths = [d for _, d, _ in calls(events, "deeper")]
    assert depths == list(range(1, len(depths) + 1)) and len(depths) > 1000, depths[-3:]
    assert [e["text"] for e in events[-2:]] == ["SIGSEGV", "killed by SIGSEGV"], events[-2:]
    trace(path, log=log, status=7)


@test("fathom is killed in the middle: the program runs to its end")
def _(folder):
    path = build(folder, "ends.c")
    for _ in range(3):
        out = os.path.join(folder, "out")
        with open(out, "wb") as f, subprocess.Popen([FATHOM, "trace", "--log", "/dev/null", "--", path, "slow"], stdout=f) as tracer:
            while not os.path.getsize(out):
                time.sleep(0.01)
            tracer.kill()
        until(lambda: content(out) == "begun\nended\n", "its end")


@test("surroundings: closed descriptors, strict seccomp, limits, no memory that becomes code, memory that is scribbled over")
def _(folder):
    path = build(folder, "hostile.c")
    log, own = os.path.join(folder, "log"), os.path.join(folder, "own")
    expected = {"main": 1, "counted": 50000, "other": 50000}
    for what in ("plain", "closed", "strict", "limits", "mdwe"):
        done = execute(path, what, own + what + "plain", status=None)
        if done.returncode == 99:
            continue
        _, events, _ = trace(path, what, own + what, log=log, status=5)
        assert counts(events) == expected, (what, counts(events))
        assert not kinds(events)["lost"], what
    with open(own + "closed", encoding="utf-8") as f:
        assert f.read() == "own data\n"
    # What is told of memory that it has overwritten may be anything, but not for ever.
    fathom("trace", "--log", log, "--", path, "scribble", status=5)


@test("a program that takes the gs base: its memory there stays as it is, what it calls is counted as lost; at 0 it is recorded on")
def _(folder):
    path = build(folder, "hostile.c")
    log = os.path.join(folder, "log")
    for options in ((), ("--clock", "sparse"), ("--syscalls", "--way=rewrite")):
        _, events, _ = trace(path, "gs", log=log, options=options, status=5)
        lost = sum(e["count"] for e in events if e["type"] == "lost")
        assert counts(events)["main"] == 1 and not counts(events)["counted"] and lost >= 100000, (options, counts(events), lost)
        _, events, _ = trace(path, "gs-0", log=log, options=options, status=5)
        assert counts(events)["counted"] == counts(events)["other"] == 50000, (options, counts(events))


@test("surroundings that its parent makes: little address space, no files, another root, a PID namespace")
def _(folder):
    path = build(folder, "hostile.c", "-static")
    log = os.path.join(folder, "log")
    for command in ("ulimit -v 262144", "ulimit -f 0"):
        done = fathom("trace", "-c", "--json", "--", "sh", "-c", f"{command}; exec {path}", status=5)
        rows = {json.loads(line)["function"]: json.loads(line)["calls"] for line in done.stderr.splitlines() if line.startswith("{")}
        # The shell has no sites: its calls of libraries are there, too.
        assert {"main": 1, "counted": 50000, "other": 50000}.items() <= rows.items() and rows["execve"] == 1, (command, done.stderr)
    if os.geteuid() == 0:
        root = os.path.join(folder, "root")
        os.mkdir(root)
        shutil.copy(path, os.path.join(root, "program"))
        tap.need_mount_namespaces()
        for command in (["chroot", root, "/program"], ["unshare", "-pf", "--mount-proc", path]):
            _, events, _ = trace(*command, log=log, status=5)
            assert counts(events)["counted"] == 50000, (command, counts(events))


@test("what is not recorded runs as it is, and is said: 32 bits")
def _(folder):
    building.need_32_bit()
    small = build(folder, "shapes.c", "-static", compiler="i686-linux-gnu-gcc", flags=["-O1"], out="small")
    out, events, _ = trace(small, log=os.path.join(folder, "log"))
    assert out == "45\n" and any(e["type"] == "note" and "32 bits" in e["text"] for e in events), events


@test("what is not recorded runs as it is, and is said: set-user-ID, no sites; what cannot run")
def _(folder):
    path = build(folder, "hostile.c")
    os.chmod(folder, 0o755)
    os.chmod(path, 0o4755)
    _, events, _ = trace(path, log=os.path.join(folder, "log"), status=5)
    assert not counts(events)
    assert any(e["type"] == "note" and "set-user-ID" in e["text"] for e in events), events
    plain = build(folder, "shapes.c", flags=["-O1"], out="plain")
    done = fathom("trace", "--log", os.path.join(folder, "log"), "--", plain, status=0)
    assert done.stdout == "45\n" and SITES in done.stderr, done.stderr
    assert "cannot be run" in fathom("trace", "--", os.path.join(folder, "nothing"), status=127).stderr
    assert "cannot be run" in fathom("trace", "--", folder, status=126).stderr
    for words in (["--depth", "0", "--", plain], ["--clock", "x", "--", plain], ["--"], ["--sites", "--", plain], ["--sites", "-c", plain]):
        assert len(fathom("trace", *words, status=2).stderr.splitlines()) == 1, words


@test("filters: --only, --not, --under, --depth, each kind of query")
def _(folder):
    path = build(folder, "shapes.c", flags=("-O1", "-g", SITES))
    log = os.path.join(folder, "log")

    def found(*options):
        return [(f, d, n) for f, d, n in calls(trace(path, log=log, options=options)[1])]

    leaf = [("leaf", 0, 1)] * 5
    for query in ("leaf", "lea*", "/^leaf$/", "shapes:leaf"):
        # Alone, the calls differ by the stack that is in use.
        assert [(f, d) for f, d, _ in found("--only", query, "--no-fold")] == [(f, d) for f, d, _ in leaf], query
    everything = [(f, d) for f, d in SHAPE_CALLS]
    # main() stands in one source file, what it calls in another.
    assert found("--only", "shapes.c:", "--no-fold") == [("main", 0, 1)]
    assert [f for f, _, _ in found("--only", "three_calls.h:", "--no-fold")] == [f for f, _ in everything[1:]]
    assert [(f, d) for f, d, _ in found("--only", "shapes.c:", "--only", "three_calls.h:", "--no-fold")] == everything
    assert [(f, d) for f, d, _ in found("--not", "leaf", "--no-fold")] == [(f, d) for f, d in everything if f != "leaf"]
    assert [(f, d) for f, d, _ in found("--under", "middle", "--no-fold")] == everything[2:8]
    assert found("--under", "middle", "--not", "leaf") == [("middle", 2, 2)]
    assert [(f, d) for f, d, _ in found("--depth", "2", "--no-fold")] == [(f, d) for f, d in everything if d < 2]
    done = fathom("trace", "--only", "nobody", "--", path, status=0)
    assert "--only" in done.stderr, done.stderr


@test("clocks: sparse and none record the same calls; times never go back within a thread")
def _(folder):
    path = build(folder, "twin.c", flags=("-O2", SITES, "-pthread"))
    sequences = []
    for clock in ("full", "sparse", "none"):
        _, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold", "--clock", clock])
        main = next(e["tid"] for e in events if e["function"] == "main")
        sequences.append([e["function"] for e in events if e["type"] == "call" and e["tid"] == main])
        times = collections.defaultdict(list)
        for e in events:
            times[e["tid"]].append(e["ns"])
        assert all(t == sorted(t) for t in times.values()), clock
    assert sequences[0] == sequences[1] == sequences[2] and len(sequences[0]) > 1000


@test("times: those of the log lie between those that the program reads, and so do their differences")
def _(folder):
    path = building.build_text(os.path.join(folder, "sleeps"), """
#include <stdio.h>
#include <time.h>
__attribute__((noinline)) void first(void) { __asm__ volatile(""); }
__attribute__((noinline)) void second(void) { __asm__ volatile(""); }
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
int main(void)
{
    long a = now(); first(); long b = now();
    nanosleep(&(struct timespec){ 0, 300000000 }, 0);
    long c = now(); second(); long d = now();
    printf("%ld %ld\\n", c - b, d - a);
}
""", flags=("-O1", SITES))
    out, events, _ = trace(path, log=os.path.join(folder, "log"))
    least, most = map(int, out.split())
    when = {e["function"]: e["ns"] for e in events if e["type"] == "call"}
    # The clocks were compared a millisecond before and after.
    assert least - 1000000 <= when["second"] - when["first"] <= most + 1000000, (out, when)


@test("a log that nobody reads: the program goes on after a second, and what is lost is counted to the last event")
def _(folder):
    path = build(folder, "ends.c")
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    for options in ([], ["--lossy"]):
        ours = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with subprocess.Popen([FATHOM, "trace", "--json", "--no-fold", *options, "--log", pipe, "--", path, "many"],
                              stdout=subprocess.PIPE, text=True) as tracer:
            os.set_blocking(ours, True)
            # Its own end does not wait for anybody who reads.
            assert tracer.stdout.readline() == "ended\n"
            with os.fdopen(ours, encoding="utf-8") as f:
                events = [json.loads(line) for line in f]
            assert tracer.wait() == 7
        told = sum(counts(events).values())
        lost = sum(e["count"] for e in events if e["type"] == "lost")
        assert lost and told + lost == 3000001, (options, told, lost)


def slowly(pipe, rate):
    """All of @pipe, read at @rate bytes per second."""
    text = b""
    begin = time.monotonic()
    while part := os.read(pipe, 32768):
        text += part
        time.sleep(max(0, begin + len(text) / rate - time.monotonic()))
    return text.decode()


@test("a log that is read slowly: a thread waits for seconds while the records of an older one are taken, and nothing is lost")
def _(folder):
    path = build(folder, "threads.c", flags=("-O1", SITES, "-pthread"))
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    # The second thread fills its ring, of 65,536 records, at once, while that of the first one is full. A tracer that does not run for a
    # second, as on a busy machine, loses events: not each time.
    for _ in range(5):
        with subprocess.Popen([FATHOM, "trace", "--no-fold", "--log", pipe, "--", path, "1", "100000", "2"], stdout=subprocess.DEVNULL) as tracer:
            ours = os.open(pipe, os.O_RDONLY)
            lines = slowly(ours, 1200000).splitlines()
            os.close(ours)
            assert tracer.wait() == 0
        names = collections.Counter(line.rsplit("&")[-1] for line in lines if line.startswith("FUN"))
        if not [line for line in lines if line.startswith("LOST")]:
            break
    assert names["counted"] == names["other"] == 100000 and not [line for line in lines if line.startswith("LOST")], names


def build_hook(folder, name):
    """A program with the runtime inside."""
    objects = []
    include = ["-I", os.path.join(TOP, "src")]
    own = ["-O2", "-ffreestanding", "-mgeneral-regs-only", "-mno-red-zone"]
    for source, flags in (*((f"src/trace/{part}.c", own) for part in ("recorder", "machine_x86_64", "ticks_x86_64")),
                          ("src/trace/hook_x86_64.S", []), (f"tests/calls/programs/{name}.c", ["-O1", SITES])):
        out = os.path.join(folder, os.path.basename(source) + ".o")
        run("gcc", "-std=gnu17", *flags, *include, "-c", os.path.join(TOP, source), "-o", out)
        objects.append(out)
    path = os.path.join(folder, name)
    run("gcc", *objects, "-pthread", "-o", path)
    return path


@test("the hook, one instruction at a time: every register, flag and vector is kept; instructions and stack are few")
def _(folder):
    path = build_hook(folder, "kept")
    for clock in ("full", "sparse", "none"):
        for place in ("", "-behind", "-own", "-own-behind"):
            said = run(path, clock + place)
            found = re.fullmatch(r"instructions (\d+), first (\d+), stack (\d+)\n", said)
            most = {"full": 47, "sparse": 50, "none": 45}[clock] + {"": 0, "-behind": 1, "-own": -1, "-own-behind": 0}[place]
            assert found and int(found[1]) <= most and int(found[3]) <= 128, (clock, place, said)


@test("the hook: records are those of a log that the program keeps; 2,000,000 of 100 threads; those of a child that is killed")
def _(folder):
    path = build_hook(folder, "records")
    assert re.fullmatch(r"records [1-9]\d+\n", run(path, "compare"))
    assert run(path, "many") == "taken 2000000 lost 0\n"
    assert run(path, "fork") == "4 5000, pids 1 1\n"


@test("the runtime imports nothing, and has no state of its own")
def _(folder):
    for compiler in ("gcc", CLANG):
        out = os.path.join(folder, compiler + ".o")
        run(os.path.join(TOP, "tools", "runtime_image"), out, compiler)
        symbols = run("nm", out)
        assert "fathom_trace_image" in symbols and " U " not in symbols, symbols


@test("what is linked into programs for aarch64 compiles for that machine")
def _(_):
    sources = [f"src/trace/{name}.c" for name in ("syscall_linked", "syscall_ranges", "syscall_recorder", "machine_aarch64", "machine_linked", "recorder", "ticks_aarch64")]
    flags = ("-std=c17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", "src", "-I", "include")
    run("aarch64-linux-gnu-gcc", *flags, "-ffreestanding", "-mgeneral-regs-only", *sources, cwd=TOP)
    own = [f"src/host/self_trace/{name}.c" for name in ("self_follow", "self_plans", "self_reader", "self_rings", "self_rewrite", "stub_aarch64", "stub_sets", "text_calls_aarch64", "text_site_aarch64")]
    own += [f"src/host/self_trace/capture_{name}.c" for name in ("method", "rows_aarch64")]
    rewriting = [f"src/host/{name}.c" for name in ("code/stub_cfi", "code/aarch64/arm_instructions", "code/aarch64/arm_stub", "patch/own_text", "patch/own_words_aarch64", "patch/text_plan", "trampoline/trampoline")]
    run("aarch64-linux-gnu-gcc", *flags, "-D_GNU_SOURCE", *own, *rewriting, cwd=TOP)


@test("the text of a traced program differs from its file in sites only")
def _(folder):
    path = build(folder, "ends.c", "-no-pie", flags=("-O1", SITES, "-fno-pie"))
    sites = [json.loads(line) for line in run(FATHOM, "trace", "--sites", "--json", path).splitlines()]
    allowed = set()
    for s in sites:
        if s["type"] == "site":
            start, entry = int(s["address"], 16), int(s["function_address"], 16)
            allowed |= set(range(start, start + s["size"])) | set(range(entry - s["prefix_size"], entry))
    with subprocess.Popen([FATHOM, "trace", "--log", "/dev/null", "--", path, "slow"], stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout.readline() == b"begun\n"
        pid = next(int(pid) for path in glob.glob(f"/proc/{tracer.pid}/task/*/children")
                   for pid in open(path, encoding="utf-8").read().split())
        text = building.section(path, ".text")
        with open(f"/proc/{pid}/mem", "rb") as memory, open(path, "rb") as file:
            memory.seek(text.addr)
            file.seek(text.off)
            now, then = memory.read(text.size), file.read(text.size)
        maps = open(f"/proc/{pid}/maps", encoding="utf-8").read()
        tracer.wait()
    changed = {text.addr + i for i, (a, b) in enumerate(zip(now, then)) if a != b}
    assert changed and changed <= allowed, sorted(changed - allowed)
    # The second word: folders have names by chance.
    assert not any(line.split()[1].startswith("rwx") for line in maps.splitlines()), maps


sys.exit(SUITE.run())
