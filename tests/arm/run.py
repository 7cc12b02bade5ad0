#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "arm": programs for aarch64 that trace themselves, below QEMU's emulation of a processor (./dev aarch64)."""
import collections
import json
import os
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "calls")]

import building  # noqa: E402
import own_calls  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
import kernel  # noqa: E402
from traced import SHAPE_CALLS, TOP, calls, check_direct, check_twin, counts, twin_log  # noqa: E402

SUITE = tap.Suite("arm")
BUILD = os.path.join(os.environ["BUILD"], "src")
SHARED = os.path.join(HERE, "..", "calls", "programs")
QEMU = os.environ.get("WRAPPER", "").split()
GCC, CLANG = ("aarch64-linux-gnu-gcc",), ("clang", "--target=aarch64-linux-gnu", "-fPIE")
SITES = "-fpatchable-function-entry=7,6"
SHAPES = [(GCC, (SITES,)), (CLANG, (SITES,)), (GCC, ("-fpatchable-function-entry=5,4", "-mbranch-protection=standard")),
          (CLANG, (SITES, "-mbranch-protection=standard")), (GCC, ("-fpatchable-function-entry=1",)), (CLANG, ("-fpatchable-function-entry=3",)),
          (CLANG, ("-fxray-instrument", "-fxray-instruction-threshold=1"))]
# What a program is linked with.
DYNAMIC = [f"-L{BUILD}", "-Wl,--no-as-needed", "-lfathom-trace", "-lfathom", f"-Wl,-rpath,{BUILD}"]
STATIC = ["-static", f"-L{BUILD}", "-lfathom-trace", "-lfathom", "-Wl,-e,__fathom_trace_entry"]


def build(folder, name, *flags, compiler=GCC, level="-O1", tracer=None, out=None):
    """A program from @name, a source of this suite's or of the suite calls', with the tracer inside."""
    places = os.path.join(HERE, "programs"), SHARED, os.path.join(HERE, "..", "lib", "programs")
    source = next(p for p in (os.path.join(place, name) for place in places) if os.path.exists(p))
    path = os.path.join(folder, out or name.split(".")[0])
    # The library for XRay, which would patch by itself, is not there for this machine, and not needed.
    run(*compiler, "-g", level, *flags, "-I", os.path.join(TOP, "include"), "-c", "-o", path + ".o", source)
    run(*GCC, "-o", path, path + ".o", "-pthread", *(DYNAMIC if tracer is None else tracer))
    return path


def emulate(path, *words, status=0, **options):
    return execute(*QEMU, path, *words, status=status, **options)


def read(log):
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def written(log):
    """The events of a log that is being written: its last line may be there in part."""
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def wait_for_end(log, n=1):
    """The events of @log, when @n threads have ended: that of a program that was killed is written behind its end."""
    for _ in range(1000):
        events = written(log)
        if sum(e["type"] == "exit" for e in events) >= n:
            return events
        time.sleep(0.01)
    raise AssertionError(f"the log does not end: {events[-3:]}")


def trace(folder, path, *words, options="--no-fold", **more):
    """What the program prints, and its events."""
    log = os.path.join(folder, "log")
    if os.path.exists(log):
        os.remove(log)
    done = emulate(path, *words, f"--ftrace=--json {options} --log {log}", **more)
    return done.stdout, read(log)


@SUITE.test("each shape of an entry: names and depths are the source's, by shared objects and within a static program")
def _(folder):
    for compiler, flags in SHAPES:
        for tracer in DYNAMIC, STATIC:
            path = build(folder, "shapes.c", *flags, compiler=compiler, tracer=tracer)
            out, events = trace(folder, path)
            assert [(name, depth) for name, depth, _ in calls(events)] == SHAPE_CALLS, (compiler, flags, calls(events))
            check_direct(events)
            assert out == emulate(path).stdout, out
            assert [e["text"] for e in events if e["type"] != "call"] == ["status 0"], events


@SUITE.test("folded calls, and columns: the lines of text; stack pointers go down with each call, and times never back")
def _(folder):
    path = build(folder, "own.c", SITES)
    done = emulate(path, "words", "--ftrace")
    lines = [(line.split()[0], line[32:]) for line in done.stderr.splitlines()[1:]]
    assert lines == [("FUN", "&main"), ("FUN", "  &work"), ("FUN", "    &leaf \xd71'000"), ("END", "status 0")], done.stderr
    _, events = trace(folder, path, "words")
    own = [e for e in events if e["type"] == "call"]
    assert [e["stack"] for e in own[:2]] == sorted({e["stack"] for e in own})[:2] and own[0]["stack"] == 0, own[:3]
    assert {e["stack"] for e in own[2:]} == {own[2]["stack"]} and own[2]["stack"] > own[1]["stack"] > 0
    assert all(e["stack"] % 16 == 0 for e in own)
    times = [e["ns"] for e in events]
    assert times == sorted(times)


@SUITE.test("--ftrace: layers of dashes, --, an environment that stays; main sees neither the flag nor a wrong count; FATHOM_TRACE")
def _(folder):
    log = os.path.join(folder, "log")
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "own.c", SITES, tracer=tracer)
        env = os.environ | {"WORD": "kept"}
        for given, left in (((), []), (("--ftrace",), []), (("--ftrace", "a", "--ftrace", "b"), ["a", "b"]), (("----ftrace",), ["--ftrace"]),
                            (("a", "--ftrace", "b", "--ftrace", "c", "--ftrace"), ["a", "b", "c"]),
                            (("--ftrace", "--", "--ftrace", "----ftrace"), ["--", "--ftrace", "----ftrace"])):
            if os.path.exists(log):
                os.remove(log)
            done = emulate(path, "words", *[w + "=--log " + log if w == "--ftrace" else w for w in given], env=env)
            left = [w + "=--log " + log if w == "--ftrace" and "--" in left else w for w in left]
            expected = " ".join([str(2 + len(left)), "whole", "words", *left])
            assert done.stdout == f"{expected}\nbehind kept 4096\n-1 none 3\n" and not done.stderr, (tracer, given, done.stdout, done.stderr)
            ours = given[:given.index("--")] if "--" in given else given
            assert os.path.exists(log) == ("--ftrace" in ours), (tracer, given)
        emulate(path, "words", env=env | {"FATHOM_TRACE": f"--json --only leaf --only work --log {log}"})
        assert calls(read(log)) == [("work", 0, 1), ("leaf", 1, 1000)], read(log)


for COMPILER in GCC, CLANG:
    for LEVEL in "-O0", "-O2":
        @SUITE.test(f"each call of a program of {COMPILER[0]} {LEVEL}, beside the log of a twin built with -finstrument-functions")
        def _(folder, compiler=COMPILER, level=LEVEL):
            twin = build(folder, "twin.c", "-DTWIN", "-finstrument-functions", compiler=compiler, level=level, tracer=[], out="twin")
            expected = twin_log(folder, twin, lambda *words: emulate(*words).stdout)
            for tracer in DYNAMIC, STATIC:
                path = build(folder, "twin.c", SITES, compiler=compiler, level=level, tracer=tracer, out="traced")
                out, events = trace(folder, path)
                assert out == expected[0], (out, expected[0])
                check_twin(expected[1], events)


@SUITE.test("8 threads with 20,000 calls each: exactly so many are told, each thread by its name; three rounds")
def _(folder):
    path = build(folder, "threads.c", SITES)
    _, events = trace(folder, path, "8", "20000", "3")
    found = counts(events)
    assert found["counted"] == found["other"] == 3 * 8 * 10000 and found["run"] == 3 * 8, found
    assert not [e for e in events if e["type"] == "lost"]
    by_thread = collections.Counter(e["tid"] for e in events if e["type"] == "call" and e["function"] == "counted")
    assert len(by_thread) >= 8 and all(n % 10000 == 0 for n in by_thread.values()), by_thread
    assert sum(e["type"] == "start" for e in events) == 3 * 8


@SUITE.test("a program that is killed, or leaves by _exit(): each of its 5,000 calls is told; --last: the last of them, of one that fails only")
def _(folder):
    path = build(folder, "ends.c", SITES)
    log = os.path.join(folder, "log")
    for how, status in ("killed", (-9, 137)), ("left", 3), ("returns", 5):
        for n in 1000, 5000, 200000:
            trace(folder, path, n, how, status=status)
            found = counts(wait_for_end(log))
            assert found == {"main": 1, "one": n // 2, "other": n // 2}, (how, n, found)
        for last in 1, 5, 100, 70000:
            trace(folder, path, 200, how, status=status, options=f"--no-fold --last {last}")
            names = [e["function"] for e in wait_for_end(log)]
            assert names == (["main"] + 100 * ["one", "other"])[-last:] + [None], (how, last, names)
    own = build(folder, "own.c", SITES)
    trace(folder, own, "end", "0", options="--last 3")
    assert not read(log)


@SUITE.test("fork(): children are told as processes of their own, from there on; the parent's calls are its own; --no-children")
def _(folder):
    path = build(folder, "ends.c", SITES)
    log = os.path.join(folder, "log")
    trace(folder, path, 10, "forks", status=5)
    events = read(log)
    main = next(e["pid"] for e in events if e["function"] == "main")
    children = [e for e in events if e["pid"] != main]
    assert counts(e for e in events if e["pid"] == main) == {"main": 1, "one": 15, "other": 5}, counts(events)
    assert counts(children) == {"in_child": 10} and len({e["pid"] for e in children}) == 10, counts(children)
    assert sorted(e["type"] for e in children) == 10 * ["call"] + 10 * ["exit"] + 10 * ["start"]
    assert {e["text"] for e in children if e["type"] == "start"} == {f"process of {main}"}
    trace(folder, path, 10, "forks", status=5, options="--no-fold --no-children")
    assert {e["pid"] for e in read(log)} == {read(log)[0]["pid"]} and counts(read(log)) == {"main": 1, "one": 15, "other": 5}


@SUITE.test("each register, flag and vector is kept by the hook, with all clocks, when a ring is full, and in a handler of a signal")
def _(folder):
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "kept.c", SITES, tracer=tracer)
        for n, options in (3000, ""), (3000, "--clock sparse"), (3000, "--clock none"), (70000, "--lossy"), (70000, "--last 5"), (3000, "--scopes"):
            done = emulate(path, n, n // 2, f"--ftrace={options} --log {os.path.join(folder, 'log')}")
            assert done.stdout == f"0 wrong of {n}, 0 hooked\n", (options, done.stdout)
        # Each of them is told, so the hook was called.
        _, events = trace(folder, path, 3000, 1500)
        assert counts(events) == {"plain": 3000}, counts(events)


def site_offsets(path):
    """Offsets in the file of the instructions at which sites are, by objdump: the first NOP of leaf and middle."""
    first = building.section(path, ".text")
    found = []
    for name in "leaf", "middle":
        text = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", path)
        nop = next(int(m[1], 16) for m in re.finditer(r"^ *([0-9a-f]+):\t(\S+)", text, re.M) if m[2] == "nop")
        found.append(nop - first.addr + first.off)
    return sorted(found)


@SUITE.test("fathom_trace_start, fathom_trace_stop: 30 times: the text differs from the file at sites only, and not at all behind; each call within")
def _(folder):
    log = os.path.join(folder, "log")
    for compiler, n in (GCC, 30), (CLANG, 3):
        for tracer in DYNAMIC, STATIC:
            path = build(folder, "regions.c", SITES, compiler=compiler, tracer=tracer)
            out = emulate(path, n, f"--json --no-fold --log {log}").stdout.splitlines()
            assert out[-1] == "0 left" and [int(line, 16) for line in out[:-1]] == site_offsets(path), (out, site_offsets(path))
            # The log is that of the last time.
            assert calls(read(log)) == [("middle", 0, 1), ("leaf", 1, 1), ("leaf", 1, 1)], read(log)
            for options in "--clock none", "--last 2":
                assert emulate(path, 2, f"{options} --log {log}").stdout.splitlines()[-1] == "0 left"


@SUITE.test("fathom_trace_thread, scopes, what is told at a second start; where several threads run, and text cannot be changed, one line says so")
def _(folder):
    log = os.path.join(folder, "log")
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "own.c", SITES, tracer=tracer)
        out = emulate(path, "part", f"--json --log {log}").stdout
        assert out.splitlines() == ["1 0", "not: it is traced already", "once", "1 0"], out
        assert counts(read(log)) == {"leaf": 20 + 80, "work": 2, "begin": 1}, counts(read(log))
        out = emulate(path, "scopes", f"--json --scopes --log {log}").stdout
        assert out == "0 1\n" and counts(read(log)) == {"leaf": 7, "work": 1}, (out, counts(read(log)))
        lines = emulate(path, "toggle", "--log /dev/null", 2).stdout.splitlines()
        assert lines[:2] == 2 * ["not: writes to /proc/self/mem have no effect here, so code is changed only before a second thread begins"], lines
    for words, why in ("--max-rate 5", "--max-rate without ptrace(2)"), ("--calls always", "--calls always without ptrace(2)"), ("--nonsense", "no such option"):
        done = emulate(path, "words", f"--ftrace={words}")
        assert done.stderr.startswith("fathom: not traced: ") and why in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert done.stdout.startswith("2 whole words\n"), done.stdout


@SUITE.test("libraries that are linked are told from the start, with their names; other formats of the log; trace files")
def _(folder):
    library = os.path.join(folder, "libparts.so")
    run(*GCC, "-O1", SITES, "-shared", "-fPIC", "-o", library, "-x", "c", "-", input="""
__attribute__((noinline)) int inner(int n) { __asm__ volatile(""); return n * 2; }
int outer(int n) { return inner(n) + inner(n + 1); }
__attribute__((constructor)) static void begin(void) { inner(0); }
""")
    source = os.path.join(folder, "user.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write("int outer(int n);\nint main(void) { return outer(3) != 14; }\n")
    path = os.path.join(folder, "user")
    run(*GCC, "-O1", SITES, "-o", path, source, *DYNAMIC, library, f"-Wl,-rpath,{folder}")
    _, events = trace(folder, path)
    told = [(e["function"], e["depth"], os.path.basename(e["module"])) for e in events if e["type"] == "call"]
    assert told[-4:] == [("main", 0, "user"), ("outer", 1, "libparts.so"), ("inner", 2, "libparts.so"), ("inner", 2, "libparts.so")], told
    own, log = build(folder, "own.c", SITES), os.path.join(folder, "log")
    for word, start in ("--tree", "#       calls"), ("--export collapsed", os.path.basename(QEMU[0])[:15] + ";main"), ("--export chrome", "{"):
        emulate(own, "words", f"--ftrace={word} --log {log}")
        with open(log, encoding="utf-8") as f:
            assert f.read().startswith(start), word
    emulate(own, "words", f"--ftrace=-o {log}")
    told = [json.loads(line) for line in run(FATHOM, "trace", "--json", "--read", log).splitlines()]
    assert counts(told) == {"main": 1, "work": 1, "leaf": 1000}, counts(told)
    emulate(own, "words", f"--ftrace=-c --json --log {log}")
    assert {r["function"]: r["calls"] for r in read(log)} == {"main": 1, "work": 1, "leaf": 1000}


@SUITE.test("returns of XRay's sleds: of each call, with --exits")
def _(folder):
    path = build(folder, "shapes.c", "-fxray-instrument", "-fxray-instruction-threshold=1", compiler=CLANG)
    _, events = trace(folder, path, options="--no-fold --exits")
    assert [(name, depth) for name, depth, _ in calls(events)] == SHAPE_CALLS
    returns = [(e["function"], e["depth"]) for e in events if e["type"] == "return"]
    assert returns == [("leaf", 3), ("leaf", 3), ("middle", 2), ("leaf", 3), ("leaf", 3), ("middle", 2), ("top", 1), ("leaf", 1), ("main", 0)], returns


# What programs/sys.c does, and how many calls and arguments are compared at least.
SCENARIOS = (("files", 25, 45), ("errors", 17, 20), ("threads", 460, 90), ("processes", 20, 12), ("signals", 30, 25), ("waits", 25, 20))


def forget(log):
    """Removes a log: the reader of another program that still has it open would have the next one append to it."""
    if os.path.exists(log):
        os.remove(log)


def log_calls(folder, path, *words, options="", status=3):
    """Runs a program that logs its own system calls as JSON; the log."""
    log = os.path.join(folder, "log")
    forget(log)
    emulate(path, *words, cwd=folder, env=os.environ | {"STRACE": f"--json --log {log} {options}"}, status=status)
    return log


@SUITE.test("system calls: those of qemu-aarch64 -strace, in their order, with their results and arguments: files, errors, threads, processes, signals, cancelling")
def _(folder):
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "sys.c", tracer=tracer)
        for word, least, least_args in SCENARIOS:
            expected = own_calls.of_qemu(QEMU, path, word, cwd=folder)
            n, n_args = own_calls.compare(expected, own_calls.of_log(log_calls(folder, path, word)))
            assert n >= least and n_args >= least_args, (word, n, n_args)


@SUITE.test("system calls: eight threads at once, each of which makes those of its function")
def _(folder):
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "sys.c", tracer=tracer)
        events = [e for e in read(log_calls(folder, path, "crowd")) if e["type"] == "syscall"]
        wanted = ["openat", "dup3", "close", "write", "close", "unlinkat"] + 100 * ["getppid"]
        by_thread = collections.defaultdict(list)
        for e in events:
            by_thread[e["tid"]].append(e)
        own = [calls for calls in by_thread.values() if any(e["name"] == "exit" for e in calls)]
        names = sorted(next(e["args"][1]["value"] for e in calls if e["name"] == "openat") for calls in own)
        assert names == [f'"of thread {i}"' for i in range(8)], names
        for calls_of in own:
            assert [e["name"] for e in calls_of if e["name"] in wanted] == wanted and calls_of[-1]["name"] == "exit", calls_of
            assert [e["ns"] for e in calls_of] == sorted(e["ns"] for e in calls_of)
        assert {e["way"] for e in events} == {"rewrite"} and not [e for e in read(os.path.join(folder, "log")) if e["type"] == "lost"]


@SUITE.test("system calls: each register, flag and vector is kept but the result, when a ring is full, and in a handler of a signal; each call is told")
def _(folder):
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "kept.c", "-DCALLS", tracer=tracer)
        for n, options in (3000, ""), (30000, "--lossy"), (3000, "--last 5"), (3000, "--syscalls=!getppid"):
            log = os.path.join(folder, "log")
            forget(log)
            done = emulate(path, n, n // 2, env=os.environ | {"STRACE": f"--json --log {log} {options}"})
            assert done.stdout == f"0 wrong of {n}, 0 hooked\n", (options, done.stdout)
            found = collections.Counter(e["name"] for e in read(log) if e["type"] == "syscall")
            # The program asks for the number as often itself.
            if not options:
                assert found["getppid"] == 2 * n, found
            elif options.startswith("--syscalls"):
                assert not found["getppid"] and found["rt_sigaction"], found


# As the source has it: each function, or call, and how deep it is.
WITHIN = [("main", 0), ("leaf", 1), ("write", 1), ("tail", 1), ("write", 2), ("deep", 1), ("deep", 2), ("deep", 3), ("opens", 4), ("leaf", 5), ("openat", 5),
          ("leaf", 5), ("close", 5), ("getppid", 4), ("getppid", 3), ("getppid", 2), ("leaf", 1), ("write", 1)]


@SUITE.test("system calls: each within the function that makes it, also behind others that have returned, and in tail calls")
def _(folder):
    log = os.path.join(folder, "log")
    for compiler in GCC, CLANG:
        for level in "-O0", "-O1", "-O2":
            for tracer in DYNAMIC, STATIC:
                path = build(folder, "within.c", SITES, "-fno-omit-frame-pointer", compiler=compiler, level=level, tracer=tracer)
                for flags in ((f"--ftrace=--json --no-fold --log {log}", "--strace"), (f"--strace=--json --no-fold --log {log}", "--ftrace")):
                    forget(log)
                    emulate(path, *flags)
                    told = [(e["name"] if e["type"] == "syscall" else e["function"], e["depth"]) for e in read(log) if e["type"] in ("call", "syscall")]
                    assert told[:len(WITHIN)] == WITHIN and [name for name, _ in told[len(WITHIN):]] == ["exit_group"], (compiler, level, told)


@SUITE.test("system calls: the instructions that become branches, and those that stay: of unwinders, of threads without a stack, of cancelling")
def _(folder):
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "stays.c", tracer=tracer)
        assert emulate(path).stdout == 15 * "0 " + "\n", emulate(path).stdout
        out = emulate(path, env=os.environ | {"STRACE": f"--log {os.path.join(folder, 'log')}"}).stdout
        #              plain twice other restorer narrow unmap_self unmap leave cancel loads
        assert out == "1 " "1 1 " "0 " "0 " "0 " "0 0 " "1 1 " "1 1 " "0 " "0 " "1 \n", out


@SUITE.test("system calls: fathom_trace_start and _stop: in a static program all but a few instructions become branches, and the text is what it was behind")
def _(folder):
    log = os.path.join(folder, "log")
    path = build(folder, "regions.c", tracer=STATIC)
    out = emulate(path, 3, f"--syscalls --no-functions --json --log {log}").stdout.splitlines()
    first = building.section(path, ".text")
    text = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", "-j", ".text", path)
    every = {int(m[1], 16) - first.addr + first.off for m in re.finditer(r"^ *([0-9a-f]+):\tsvc", text, re.M)}
    changed = {int(line, 16) for line in out[:-1]}
    assert out[-1] == "0 left" and changed <= every and len(changed) > 0.97 * len(every) > 100, (len(changed), len(every), changed - every)


@SUITE.test("system calls: which are told, by sets; counts, files and ends; what this machine lacks is said in one line")
def _(folder):
    log = os.path.join(folder, "log")
    path = build(folder, "sys.c")
    for words, name, least in ("--syscalls=%file", "openat", 10), ("--syscalls=/^mk", "mkdirat", 1), ("--syscalls=!%file,exit_group", "write", 10):
        names = {e["name"] for e in read(log_calls(folder, path, "files", options=words)) if e["type"] == "syscall"}
        file_names = {"openat", "newfstatat", "renameat", "mkdirat", "symlinkat", "readlinkat", "unlinkat", "faccessat", "chdir", "getcwd"}
        assert name in names and (words[11] != "%" or names <= file_names) and (words[11] != "!" or not names & file_names), (words, names)
        assert len(read(log)) > least
    forget(log)
    emulate(path, "errors", f"--strace=-c --json --log {log}", status=3, cwd=folder)
    rows = {r["function"]: r for r in read(log)}
    assert rows["openat"]["calls"] >= 3, rows
    forget(log)
    emulate(path, "files", f"--strace=-o {log}", status=3, cwd=folder)
    told = [json.loads(line) for line in run(FATHOM, "trace", "--json", "--read", log).splitlines()]
    assert [e["name"] for e in told if e["type"] == "syscall"][-3:] == ["dup", "dup", "exit_group"]
    killed = build(folder, "ends.c")
    forget(log)
    emulate(killed, 5, "killed", f"--strace=--json --log {log}", status=(-9, 137))
    assert [e.get("name") or e["text"] for e in wait_for_end(log)][-2] == "kill", wait_for_end(log)
    for words, why in ("--inject write:retval=0", "--inject on this machine"), ("--stacks", "--stacks on this machine"), ("--way dispatch", "--method on this machine"):
        done = emulate(path, "files", f"--strace={words}", status=3, cwd=folder)
        assert done.stderr.startswith("fathom: not traced: ") and why in done.stderr and done.stderr.count("\n") == 1, done.stderr


# As the source has it: top(3) is middle(3) + 3 + middle(6), and middle(n) is leaf(n) + leaf(n + 1) * 2, where leaf(n) is n + 1.
RESULT = 4 + 5 * 2 + 3 + 7 + 8 * 2
ENTRIES = ["top(3) < (null)", "middle(3) < top", "leaf(3) < middle", "leaf(4) < middle", "middle(6) < top", "leaf(6) < middle", "leaf(7) < middle"]


def build_hooked(folder, *flags, compiler=GCC, tracer=("-rdynamic", f"-L{BUILD}", "-lfathom", f"-Wl,-rpath,{BUILD}")):
    return build(folder, "hooked.c", *flags, compiler=compiler, tracer=tracer)


@SUITE.test("hooks: each shape of an entry: the calls, with arguments and callers, until switched off, switched on, removed; and the text is what it was")
def _(folder):
    for compiler, flags in SHAPES:
        # Functions that clang has no way to leave out of XRay's are chosen away.
        only = ("leaf",) if "-fxray-instrument" in flags else ()
        path = build_hooked(folder, *flags, compiler=compiler)
        lines = emulate(path, "calls", "0", *only).stdout.splitlines()
        entries = [e for e in ENTRIES if not only or e.startswith("leaf")]
        assert lines == [f"{len(only) or 3} 0", *[f"0 {e} right" for e in entries], f"= {RESULT}", f"= {RESULT} same", "0 leaf(1) < (null) right", "= 2",
                         f"= {RESULT} changed same"], (compiler, flags, lines)


@SUITE.test("hooks: 8 threads call a hooked function: each call is counted once; hooks that are added and removed 100 times")
def _(folder):
    path = build_hooked(folder, SITES)
    assert emulate(path, "threads").stdout == f"{8 * 5000 * 7}\n"
    assert emulate(path, "often").stdout == f"{50 * 7 + 50 * 4}\n"


@SUITE.test("hooks: each register, flag and vector is kept, though the hook function spoils what a function may; it sees those of the call")
def _(folder):
    for tracer in DYNAMIC, STATIC:
        path = build(folder, "kept.c", SITES, tracer=tracer)
        assert emulate(path, 3000, 1500, "hooked").stdout == "0 wrong of 3000, 3000 hooked\n"


@SUITE.test("hooks: libgcc finds the hooked function and its callers from the hook function, also where return addresses are signed")
def _(folder):
    for compiler in GCC, CLANG:
        for flags in (), ("-mbranch-protection=standard",), ("-fomit-frame-pointer",):
            out = emulate(build_hooked(folder, SITES, *flags, compiler=compiler), "stack").stdout
            assert len(out.splitlines()) == 4 and all(line.startswith("leaf middle top ") for line in out.splitlines()), (compiler, flags, out)


@SUITE.test("code that a program changes: an instruction, parts of one, and back")
def _(folder):
    assert emulate(build_hooked(folder, SITES), "change").stdout == "1 0 2 0 0 1\n"


def disassemble(folder, word, avma):
    """What objdump says of an instruction at @avma: "b 0x1234"."""
    path = os.path.join(folder, "word")
    with open(path, "wb") as f:
        f.write(word.to_bytes(4, "little"))
    text = run("aarch64-linux-gnu-objdump", "-D", "-b", "binary", "-m", "aarch64", f"--adjust-vma={avma:#x}", path)
    return " ".join(text.splitlines()[-1].split("\t")[2:])


@SUITE.test("branches are what objdump takes them for, to the ends of their reach, and none leads further; which instructions may change under threads")
def _(folder):
    path = os.path.join(folder, "branches")
    run(*GCC, "-O1", "-I", os.path.join(TOP, "src"), "-o", path, os.path.join(HERE, "programs", "branches.c"), os.path.join(TOP, "src/host/code/aarch64/arm_instructions.c"))
    reach, numbers = 1 << 27, random.Random(7)
    near = [0, 4, -4, 8, 1 << 26, reach - 4, reach - 8, -reach, -reach + 4] + [4 * numbers.randrange(-reach // 4, reach // 4) for _ in range(21)]
    pairs = [(avma, avma + d) for d in near for avma in (0x5500000790, 0x7f00_0000_0000)]
    said = emulate(path, input="".join(f"{a:x} {b:x}\n" for a, b in pairs)).stdout.split()
    for (avma, to), *words in zip(pairs, said[::2], said[1::2]):
        assert [disassemble(folder, int(w, 16), avma) for w in words] == [f"b {to:#x}", f"bl {to:#x}"], (avma, to, words)
    far = [(0x5500000790, 0x5500000790 + d) for d in (reach, reach + 4, -reach - 4, 1 << 40, 2, -1)] + [(0x1002, 0x2000)]
    assert emulate(path, input="".join(f"{a:x} {b:x}\n" for a, b in far)).stdout.split() == 2 * len(far) * ["-"]
    may = "nop; b .; b .+8; bl .-4; brk #5; svc #1; hvc #2; smc #3; isb; isb #3".split("; ")
    may_not = "ret; br x1; blr x2; cbz x0, .; b.eq .; hint #34; yield; dsb ish; dmb ish; ldr x0, [x1]; mov x0, x1; stp x29, x30, [sp, #-16]!; hlt #1; eret; udf #0".split("; ")
    run(*GCC, "-c", "-o", path + ".o", "-x", "assembler", "-", input="".join(f"{line}\n" for line in may + may_not))
    code = run("aarch64-linux-gnu-objdump", "-d", path + ".o")
    words = re.findall(r"^ *[0-9a-f]+:\t([0-9a-f]{8})", code, re.M)
    assert len(words) == len(may) + len(may_not), code
    assert emulate(path, input="".join(f"{w}\n" for w in words)).stdout.split() == len(may) * ["1"] + len(may_not) * ["0"]


@SUITE.test("Debian's kernel, two processors: text and hooks change while threads call, and are what they were; single steps through the hook, with libgcc; the same logs")
def _(folder):
    programs = [build(folder, "init.c", tracer=["-static"])]
    programs += [build(folder, name, SITES, tracer=STATIC) for name in ("own.c", "hooked.c", "kept.c", "regions.c", "threads.c", "ends.c")]
    programs += [build(folder, "steps.c", SITES), build(folder, "sys.c", tracer=STATIC), build(folder, "kept.c", "-DCALLS", tracer=STATIC, out="keptcalls")]
    emulated = {word: own_calls.of_log(log_calls(folder, programs[-2], word)) for word in ("errors", "signals")}
    libraries = [f"/usr/aarch64-linux-gnu/lib/{name}" for name in ("ld-linux-aarch64.so.1", "libc.so.6", "libgcc_s.so.1")]
    libraries += [os.path.join(BUILD, name) for name in ("libfathom.so.0", "libfathom-trace.so.0")]
    told = kernel.boot(folder, programs, libraries, [
        "/steps trace", "/steps calls", "/steps hook", *[f"/sys {word} --strace=--json" for word in (*emulated, "waits")], "/keptcalls 3000 1500 --strace=--log_/dev/null", "/own toggle --log_/dev/null 100", "/regions 5 --log_/dev/null", "/kept 3000 1500 --ftrace=--log_/dev/null", "/kept 70000 100 --ftrace=--log_/dev/null",
        "/kept 3000 1500 hooked", "/hooked toggle 200", "/hooked threads", "/hooked change", "/hooked often", "/threads 8 20000 3 --ftrace=-c_--json",
        "/ends 5000 killed --ftrace=-c_--json", "/ends 10 forks --ftrace=-c_--json", "/own words --ftrace=--json", "/own end 7 --ftrace=--json_--last_2"])

    def counted(command):
        return {r["function"]: r["calls"] for r in map(json.loads, [line for line in told[command] if line.startswith("{")])}
    # At each instruction of stubs, hook and dispatcher libgcc finds the functions that have begun.
    for how, least in ("trace", 500), ("calls", 600), ("hook", 2000):
        found = re.fullmatch(r"(\d+) instructions, (\d+) of ours, 0 wrong ", told[f"/steps {how}"][0])
        assert found and int(found[2]) > least, told
    # System calls are those of the emulator, which has no process_vm_readv(), and no rseq(). A thread that is cancelled in one ends so.
    waits = [json.loads(line) for line in told["/sys waits --strace=--json"] if line.startswith("{")]
    assert [e["args"][0]["value"] for e in waits if e.get("name") == "umask"] == ["077"] and "rseq" in {e.get("name") for e in waits}, waits
    for word, expected in emulated.items():
        log = os.path.join(folder, "told")
        with open(log, "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in told[f"/sys {word} --strace=--json"] if line.startswith("{"))
        n, n_args = own_calls.compare(expected, own_calls.of_log(log))
        assert n >= 15 and n_args >= 20, (word, n, n_args)
    assert told["/keptcalls 3000 1500 --strace=--log_/dev/null"] == ["0 wrong of 3000, 0 hooked"], told
    assert told["/own toggle --log_/dev/null 100"] == ["0 wrong"], told
    assert [int(line, 16) for line in told["/regions 5 --log_/dev/null"][:-1]] == site_offsets(os.path.join(folder, "regions"))
    assert told["/regions 5 --log_/dev/null"][-1] == "0 left"
    for n, how in (3000, "1500 --ftrace=--log_/dev/null"), (70000, "100 --ftrace=--log_/dev/null"), (3000, "1500 hooked"):
        assert told[f"/kept {n} {how}"] == [f"0 wrong of {n}, {n if 'hooked' in how else 0} hooked"], told
    assert told["/hooked toggle 200"] == ["0 wrong"] and told["/hooked threads"] == [str(8 * 5000 * 7)], told
    assert told["/hooked change"] == ["1 0 2 0 0 1"] and told["/hooked often"] == [str(50 * 7 + 50 * 4)], told
    assert counted("/threads 8 20000 3 --ftrace=-c_--json") == {"counted": 240000, "other": 240000, "run": 24, "main": 1}, told
    assert counted("/ends 5000 killed --ftrace=-c_--json") == {"one": 2500, "other": 2500, "main": 1}, told
    assert counted("/ends 10 forks --ftrace=-c_--json") == {"one": 15, "other": 5, "in_child": 10, "main": 1}, told
    events = [json.loads(line) for line in told["/own words --ftrace=--json"] if line.startswith("{")]
    assert calls(events) == [("main", 0, 1), ("work", 1, 1), ("leaf", 2, 1000)] and events[-1]["text"] == "status 0", events
    ends = [json.loads(line) for line in told["/own end 7 --ftrace=--json_--last_2"]]
    assert [(e["function"] or e["text"], e["count"]) for e in ends] == [("work", 1), ("leaf", 3), ("status 7", 1)], ends


@SUITE.test("other programs are not traced on this machine: one line says so")
def _(folder):
    path = build(folder, "shapes.c", SITES)
    for words in ("--", path), ("-p", str(os.getpid())):
        done = execute(FATHOM, "trace", *words)
        assert done.returncode and done.stderr.count("\n") == 1 and "x86-64 only" in done.stderr, done


if __name__ == "__main__":
    sys.exit(SUITE.run())
