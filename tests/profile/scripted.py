#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "scripts": functions of scripts in profiles, beside what the scripts measure of themselves."""
import collections
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import recording  # noqa: E402
import tap  # noqa: E402
from ask import FATHOM, execute  # noqa: E402
from script_runtimes import LUA, NODE, PHP, PYTHON, RUBY  # noqa: E402
from running import Running, state_of, until  # noqa: E402

SUITE = tap.Suite("scripts")
test = SUITE.test
SCRIPT = os.path.join(HERE, "programs", "busy_script.py")


def record(folder, python, what, seconds, *options):
    """Records the script: the path of its profile, and what was printed."""
    _, done = recording.record(folder, python, SCRIPT, what, str(seconds), options=options, waits=True)
    return os.path.join(folder, "profile"), done


def stacks(path, *options):
    """{(functions, the outermost first): weight} as collapsed stacks; the program's name is left out."""
    done = execute(FATHOM, "report", "--no-cache", "--export=collapsed", *options, path)
    assert done.returncode == 0, done
    found = collections.Counter()
    for line in done.stdout.splitlines():
        names, _, weight = line.rpartition(" ")
        # A blank before digits at the end would be the weight's.
        found[tuple(names.replace("\\x20", " ").split(";")[1:])] += int(weight)
    return found


def total(found, name):
    return sum(weight for names, weight in found.items() if name in names)


def check_shares(path, printed, which):
    """
    The functions have the shares that the script has measured. There are some 100 looks for each second of its processor time: four
    standard deviations of such a share are 10 %. On a busy machine polling comes late, and more is without a sample.
    """
    hot, cool = (int(word) for word in printed.split())
    found = stacks(path, "--frames=script")
    seen = [total(found, name) for name in ("hot", "cool")]
    share = seen[0] / sum(seen)
    assert abs(share - hot / (hot + cool)) < 0.15, (share, hot, cool, seen, which)
    # What is in none of the two is Python's own beginning, and the loop around them.
    assert 0.6 * (hot + cool) < sum(seen) < 1.1 * (hot + cool) + 50e6, (seen, hot, cool, which)


@test("functions have the processor time that the script measures of itself, by each method; so has the child of a fork")
def shares(folder):
    for version, python in PYTHON.each_known():
        for method in recording.METHODS:
            for what in ("shares", "forks"):
                path, done = record(folder, python, what, 2, "--method=" + method)
                check_shares(path, done.stdout, (version, method, what, done.stderr))


def check_hot(folder, command, which, least=0.6, methods=recording.METHODS):
    """The functions hot and cool of the script that @command runs have the shares of time that it has measured, by each of @methods, and
    together @least of its time."""
    for method in methods:
        # Polling leaves a stack incomplete whose thread had no processor for long: then what code it is of is not certain.
        for _ in range(4):
            _, done = recording.record(folder, *command, "2", options=["--method=" + method], waits=True)
            found = stacks(os.path.join(folder, "profile"), "--frames=script")
            # Ruby 3.4 names the class, too.
            hot, cool = (sum(weight for names, weight in found.items() if {name, "Object#" + name} & set(names)) for name in ("hot", "cool"))
            wanted = [int(word) for word in done.stdout.split()]
            if hot + cool > least * sum(wanted):
                break
        assert abs(hot / (hot + cool) - wanted[0] / sum(wanted)) < 0.15, (which, method, hot, cool, wanted, done.stderr)
        assert least * sum(wanted) < hot + cool < 1.1 * sum(wanted) + 50e6, (which, method, hot, cool, wanted)


@test("Ruby: methods have the processor time that the script measures of itself, by each method")
def ruby_shares(folder):
    for version, ruby in RUBY.each_known():
        check_hot(folder, [ruby, os.path.join(HERE, "programs", "busy_script.rb")], version)


@test("PHP: functions have the processor time that the script measures of itself, by each method")
def php_shares(folder):
    for version, php in PHP.each_known():
        check_hot(folder, [php, "-n", os.path.join(HERE, "programs", "busy_script.php")], version)


@test("Lua: functions have the processor time that the script measures of itself, by each method")
def lua_shares(folder):
    for _, lua in LUA.each_known():
        check_hot(folder, [lua, os.path.join(HERE, "programs", "busy_script.lua")], lua)


@test("node: functions have the processor time that the script measures of itself, by each method; compiled code is not shown twice")
def node_shares(folder):
    path = os.path.join(folder, "profile")
    for version, node in NODE.each_known():
        for method in recording.METHODS:
            # V8 optimizes, and collects garbage, on threads of its own, too, which the script counts as its own.
            check_hot(folder, [node, os.path.join(HERE, "programs", "busy_script.js")], version, 0.5, [method])
            # Compiled code has no name but the function's.
            by_hot = [names for names in stacks(path) if "hot" in names]
            assert by_hot and not any(name.startswith(("[", "0x", "?")) and not name.startswith("[f") for names in by_hot
                                      for name in names[:names.index("hot")]), (version, by_hot)
            kinds = {kind: sum(stacks(path, "--frames=" + kind).values()) for kind in ("merged", "script", "native", "all")}
            assert len(set(kinds.values())) == 1, kinds


@test("a hundred pairs of functions that call only each other, by way of C: no stack has a pair that never was, each has a whole one")
def pairs(folder):
    for version, python in PYTHON.each_known():
        for method in recording.METHODS:
            path, done = record(folder, python, "pairs", 3, "--method=" + method, "-F", "499")
            found = stacks(path, "--frames=script")
            n = 0
            for names in found:
                numbers = [name.split("_")[1] for name in names if re.fullmatch(r"(inner|outer)_\d+", name)]
                assert len(set(numbers)) <= 1 and len(numbers) <= 2, (version, method, names)
                if numbers:
                    assert names.index("outer_" + numbers[0]) == names.index("pairs") + 1, names
                    n += 1
            assert n > 10, (version, method, n, done.stderr)
            # The function of C that calls the inner one stands between, and calls it.
            merged = [names for names in stacks(path, "--frames=all") if any(name.startswith("inner_") for name in names)]
            assert merged
            for names in merged:
                inner = next(i for i, name in enumerate(names) if name.startswith("inner_"))
                outer = next(i for i, name in enumerate(names) if name.startswith("outer_"))
                assert inner > outer + 1, names


@test("kinds of frames: merged has no function of the interpreter around the script, script nothing else, native no script; equal sums")
def kinds(folder):
    for _, python in PYTHON.each_known():
        path, _ = record(folder, python, "shares", 1)
        found = {kind: stacks(path, "--frames=" + kind) for kind in ("merged", "script", "native", "all")}
        assert len({sum(f.values()) for f in found.values()}) == 1
        assert stacks(path) == found["merged"]
        script = {"<module>", "shares", "hot", "cool"}

        def names_of(kind, found=found):
            return {name for names in found[kind] if "shares" in names or kind == "native" for name in names}
        assert script <= names_of("merged") and "_PyEval_EvalFrameDefault" not in names_of("merged")
        assert names_of("script") >= script and not any(name.startswith("_Py") or name == "_start" for name in names_of("script"))
        assert not script & names_of("native") and names_of("all") >= script | {"_PyEval_EvalFrameDefault"}
    done = execute(FATHOM, "report", "--frames=some", path)
    assert done.returncode == 2 and "merged, script, native or all" in done.stderr, done


@test("two threads: each has its own functions; what waits for the GIL says so, and for whom")
def threads(folder):
    n_owned = 0
    for _, python in PYTHON.each_known():
        path, _ = record(folder, python, "threads", 2)
        for names in stacks(path, "--frames=script"):
            assert not {"first", "second"} <= set(names), names
            assert not ("first" in names and "cool" in names or "second" in names and "hot" in names), names
        waits = stacks(path, "--frames=script", "--time=waiting")
        of_script = [names[-1] for names in waits if {"first", "second"} & set(names) and names[-1].startswith("[futex")]
        assert all(re.fullmatch(r"\[futex: GIL( owned by \d+)?\]", name) for name in of_script), of_script
        n_owned += sum("owned" in name for name in of_script)
    assert n_owned


@test("a wait is in the function of the script that waits, by each method: of a process that sleeps, its first look has it")
def sleeps(folder):
    for _, python in PYTHON.each_known():
        with Running([python, SCRIPT, "sleeps", "120"]) as script:
            assert script.line() == "nap"
            until(lambda script=script: state_of(script.pid) == "S", "sleep")
            for method in recording.METHODS:
                path = os.path.join(folder, "profile")
                done = execute(FATHOM, "record", "-q", "-o", path, "--method=" + method, "--for", "1s", "-p", script.pid)
                recording.need_perf(done)
                assert done.returncode == 0, done
                waits = stacks(path, "--frames=script", "--time=waiting")
                (names, slept), = waits.items()
                assert names[-4:-1] == ("<module>", "sleeps", "nap"), (method, waits)
                assert re.match(r"\[(clock_nanosleep|p?select6?)", names[-1]), (method, waits)
                assert slept > 0.9e9, (method, waits)


@test("where time goes now (top), and the lines of a function beside the source: the script's, and none of the interpreter's around it")
def top_and_lines(folder):
    for version, python in PYTHON.each_known():
        done = execute(FATHOM, "top", "--json", "--count", "3", "--interval", "1s", "--", python, SCRIPT, "shares", "5")
        recording.need_perf(done)
        assert done.returncode == 0, done
        last = json.loads(done.stdout.splitlines()[-1])
        functions = {f["name"]: f for f in last["functions"]}
        assert functions["hot"]["module"] == f"[python {version}]" and functions["hot"]["total_ns"] > functions["cool"]["total_ns"] > 0
        assert functions["shares"]["total_ns"] > 0.5 * last["running_ns"], last
        assert sum(f["self_ns"] for f in last["functions"] if (f["name"] or "").startswith("_Py")) < 0.3 * last["running_ns"], last
        path, _ = record(folder, python, "shares", 1)
        done = execute(FATHOM, "report", "--no-cache", "--annotate", "hot", path)
        assert done.returncode == 0, done
        with open(SCRIPT, encoding="utf-8") as source:
            lines = source.read().splitlines()
        # Shares, and how many samples, where there are any; the line's number; the line.
        shown = [match.groups() for match in (re.match(r"[ \d.]* (\d+) (.*)", line) for line in done.stdout.splitlines()) if match]
        begin = lines.index("def hot(ns):") + 1
        assert shown, done.stdout
        for number, text in shown:
            assert begin < int(number) < begin + 6 and text == lines[int(number) - 1], (number, text)


if __name__ == "__main__":
    sys.exit(SUITE.run())
