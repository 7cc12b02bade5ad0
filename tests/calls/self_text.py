# SPDX-License-Identifier: MIT
"""Tests of programs of x86-64 that record their functions without ptrace(2): they change their own text."""
import collections
import itertools
import json
import os
import re

import building
from amounts import amount
from ask import execute, run
from baked import LIBRARIES, own, read
from traced import CLANG, SHAPE_CALLS, SITES, build, build_twin, calls, check_direct, check_twin, counts, test, twin_log

PRELOADED = os.path.join(LIBRARIES, "libfathom-trace.so")
BY_TEXT = "--method rewrite"
XRAY = ("-fxray-instrument", "-fxray-instruction-threshold=1")


def variables(options):
    """By these any program traces itself."""
    building.plain(PRELOADED)
    return {"LD_PRELOAD": PRELOADED, "FATHOM_TRACE": options}


def refused(folder):
    """A command that runs another one where ptrace(2) is refused."""
    path = os.path.join(folder, "refused")
    return path if os.path.exists(path) else build(folder, "../../lib/programs/refused.c", flags=["-O1"], out="refused")


def by_gdb(folder, env, *words):
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8") as f:
        f.writelines(f"set environment {name} {value}\n" for name, value in env.items())
        f.write("set startup-with-shell off\nset debuginfod enabled off\nrun\n")
    return execute("gdb", "-q", "-nx", "-batch", "-x", script, "--args", *words, status=0)


def by_strace(_, env, *words):
    # Variables are for the program alone.
    return execute("strace", "-f", "-o", "/dev/null", *[word for name, value in env.items() for word in ("-E", f"{name}={value}")], *words, status=0)


def where_refused(folder, env, *words):
    return execute(refused(folder), "env", *[f"{name}={value}" for name, value in env.items()], *words, status=0)


def asked(_, env, *words):
    return execute(*words, env=os.environ | env | {"FATHOM_TRACE": BY_TEXT + " " + env["FATHOM_TRACE"]}, status=0)


HOWS = {"asked for": asked, "where ptrace is refused": where_refused, "below strace -f": by_strace, "in gdb": by_gdb}

for HOW in HOWS:
    @test(f"functions without ptrace, {HOW}: each call, beside the log of a twin built with -finstrument-functions")
    def _(folder, how=HOW):
        log = os.path.join(folder, "log")
        for compiler, level in ("gcc", "-O2"), (CLANG, "-O0"):
            said, expected = twin_log(folder, build_twin(folder, compiler, level))
            for i, sites in enumerate((SITES, "-fpatchable-function-entry=5")):
                path = build(folder, "twin.c", compiler=compiler, flags=(level, sites, "-pthread"), out=f"traced{i}")
                done = HOWS[how](folder, variables(f"--json --no-fold --log {log}"), path)
                assert said in done.stdout, (compiler, sites, said, done.stdout)
                events = read(log)
                check_twin(expected, events)
                assert not [e for e in events if e["type"] in ("note", "lost")], events[:2]
                assert (events[-1]["type"], events[-1]["text"]) == ("exit", "status 0"), events[-1]


SHAPES = (
    ("gcc", [SITES], ["", "-no-pie", "-static", "-static-pie"]),
    ("gcc", [SITES, "-fcf-protection=full"], [""]),
    ("gcc", ["-fpatchable-function-entry=7,5"], [""]),
    ("gcc", ["-fpatchable-function-entry=5"], ["", "-no-pie", "-static", "-static-pie"]),
    ("gcc", ["-fpatchable-function-entry=5", "-fcf-protection=full", "-fstack-protector-all"], ["", "-no-pie"]),
    ("gcc", ["-fpatchable-function-entry=9"], [""]),
    ("gcc", ["-pg", "-mfentry", "-mnop-mcount", "-mrecord-mcount", "-fno-pie"], ["-no-pie"]),
    (CLANG, [SITES], ["", "-no-pie"]),
    *((CLANG, [f"-fpatchable-function-entry={n}"], ["", "-no-pie"]) for n in (5, 6, 7, 8, 9, 11, 12, 15)),
    # Its jump leads two gigabytes down.
    (CLANG, ["-fpatchable-function-entry=10"], [""]),
    (CLANG, [*XRAY], ["", "-no-pie"]),
)


@test("functions without ptrace, in gdb: breakpoints in functions that are recorded stop there, by name; others are not seen")
def _(folder):
    log, script = os.path.join(folder, "log"), os.path.join(folder, "script")
    for sites in SITES, "-fpatchable-function-entry=5":
        path = own(folder, source="shapes.c", out="shapes", sites=["-O1", sites])
        with open(script, "w", encoding="utf-8") as f:
            # The first one is there before the text is changed.
            f.write("set debuginfod enabled off\nbreak *main\nrun\nbreak *middle\ncontinue\nbacktrace\ndelete\ncontinue\n")
        done = execute("gdb", "-q", "-nx", "-batch", "-x", script, path,
                       env=os.environ | {"FATHOM_TRACE": f"--json --no-fold --log {log}"}, status=0)
        frames = [line.split() for line in done.stdout.splitlines() if line.startswith("#")]
        assert [next(word for word in f if word in ("middle", "top", "main")) for f in frames[:3]] == ["middle", "top", "main"], done.stdout
        assert "45\n" in done.stdout, done.stdout
        events = read(log)
        assert [e["text"] for e in events if e["type"] == "note"] == ["not seen: 1 function"], events
        assert [f for f, _, _ in calls(events, "main", "top", "middle", "leaf")] == [f for f, _ in SHAPE_CALLS[1:]], events


@test("functions without ptrace, in gdb: at a jump in front of a function the caller is found by its row, and all functions keep their names")
def _(folder):
    script = os.path.join(folder, "script")
    # Without debug information gdb has names by sections alone.
    path = own(folder, source="shapes.c", out="shapes", sites=["-O1", "-g0", "-fpatchable-function-entry=7,5"])
    with open(script, "w", encoding="utf-8") as f:
        f.write("set debuginfod enabled off\nbreak main\nrun\nbreak *(middle - 5)\ncontinue\nx/i middle\nx/i $pc\nbacktrace\n"
                "set debug frame 1\nflushregs\nbacktrace\nset debug frame 0\ndelete\ncontinue\n")
    done = execute("gdb", "-q", "-nx", "-batch", "-x", script, path, env=os.environ | {"FATHOM_TRACE": f"--log {folder}/log"}, status=0)
    lines = [re.sub("0x[0-9a-f]+ in ", "", line).split()[1] for line in done.stdout.splitlines() if line[0:1] == "#"]
    assert lines[:3] == ["??", "top", "main"], done.stdout
    assert re.search("<middle>:.*jmp", done.stdout) and re.search("=> 0x[0-9a-f]+:.*jmp", done.stdout) and "45\n" in done.stdout, done.stdout
    assert re.search('level=0,type=NORMAL_FRAME,unwinder="dwarf2"', done.stdout + done.stderr), "gdb guesses"


@test("functions without ptrace: the same calls, of all kinds of sites, in programs at all addresses")
def _(folder):
    log = os.path.join(folder, "log")
    for compiler, sites, links in SHAPES:
        for link in links:
            pic = [] if "-fno-pie" in sites else ["-fpie"] if "no" not in link else ["-fno-pie"]
            path = own(folder, *[link] if link else [], source="shapes.c", out="shapes", sites=["-O1", *sites, *pic], compiler=compiler)
            done = execute(path, env=os.environ | {"FATHOM_TRACE": f"{BY_TEXT} --json --no-fold --log {log}"}, status=0)
            # top(3): middle(3) = 4 + 5 * 2, 3, middle(6) = 7 + 8 * 2; leaf(4) = 5
            assert done.stdout == "45\n" and not done.stderr, (compiler, sites, link, done)
            events = read(log)
            found = [(f, d) for f, d, _ in calls(events, "main", "top", "middle", "leaf")]
            assert found == SHAPE_CALLS and not [e for e in events if e["type"] == "note"], (compiler, sites, link, events)
            check_direct(events)


@test("functions without ptrace: what has no slot is told as not seen, unless it has another; the others each")
def _(folder):
    log = os.path.join(folder, "log")
    for sites, note in ("-pg", "not seen: "), ("-finstrument-functions", "not seen: "), (f"{SITES} -pg -mfentry", None), (f"{SITES} -finstrument-functions", None):
        path = own(folder, source="shapes.c", out="shapes", sites=["-O1", *sites.split()])
        execute(path, env=os.environ | {"FATHOM_TRACE": f"{BY_TEXT} --json --no-fold --log {log}"}, status=0)
        events = read(log)
        notes = [e["text"] for e in events if e["type"] == "note"]
        # Four functions; of the others nobody knows.
        assert len(notes) == (note is not None) and all(n.startswith(note) and n.endswith(" functions") for n in notes), (sites, notes)
        assert [(f, d) for f, d, _ in calls(events, "main", "top", "middle", "leaf")] == ([] if note else SHAPE_CALLS), (sites, events)
    for words, why in (f"{BY_TEXT} --max-rate 5", "--max-rate without ptrace(2)"), (f"{BY_TEXT} --calls always", "--calls always without ptrace(2)"), \
                      ("--method dispatch", "does not record functions"), ("--method dispatch --syscalls", "does not record functions"):
        done = execute(path, env=os.environ | {"FATHOM_TRACE": words}, status=0)
        assert done.stdout == "45\n" and why in done.stderr and done.stderr.count("\n") == 1, done


@test("functions without ptrace: returns of XRay and of -mrecord-return, as by ptrace")
def _(folder):
    log = os.path.join(folder, "log")
    nops = ["-minstrument-return=nop5", "-mrecord-return", "-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie"]
    for compiler, sites in (CLANG, XRAY), ("gcc", nops):
        path = own(folder, source="pause.c", out="pause", sites=["-O1", *sites], compiler=compiler)
        rows = {}
        for method in "ptrace", "rewrite":
            execute(path, env=os.environ | {"FATHOM_TRACE": f"-c --json --exits --method {method} --log {log}"}, status=0)
            rows[method] = {r["function"]: (r["calls"], r["returns"]) for r in read(log)}
        assert rows["rewrite"] == rows["ptrace"] == {"main": (1, 1), "DoStuff": (4, 4), "Pause": (40000, 40000)}, rows


@test("functions and system calls without ptrace: calls stand among those of functions, in their order")
def _(folder):
    log = os.path.join(folder, "log")
    path = own(folder, source="saves.c", out="saves")
    execute(path, os.path.join(folder, "file"), env=os.environ | {"FATHOM_TRACE": f"{BY_TEXT} --syscalls --json --log {log}"}, status=3)
    events = [e for e in read(log) if e["type"] in ("call", "syscall")]
    names = [e["function"] if e["type"] == "call" else e["name"] for e in events]
    kept = [name for name in names if name in ("main", "save", "creat", "write", "fsync", "close")]
    assert kept[:6] == ["main", "save", "creat", "write", "fsync", "close"], names
    assert {e["method"] for e in events if e["type"] == "syscall"} == {"rewrite"}, events


@test("functions without ptrace: begun and ended while threads run all of them: text is what it was, byte for byte, and nobody falls")
def _(folder):
    command = refused(folder)
    for compiler, sites in ("gcc", [SITES]), ("gcc", ["-fpatchable-function-entry=5"]), (CLANG, [SITES]), (CLANG, ["-fpatchable-function-entry=5"]), (CLANG, XRAY):
        for link in amount(("-pie", "-no-pie"), ("-pie",)):
            path = own(folder, link, sites=["-O1", *sites, "-fpie" if link == "-pie" else "-fno-pie"], compiler=compiler)
            said = run(command, path, "toggle", "--log /dev/null", 10)
            assert said == "0 wrong\n", (compiler, sites, link, said)


def groups(names):
    """How often each name follows itself."""
    return [(name, len(list(all_of))) for name, all_of in itertools.groupby(names)]


@test("functions without ptrace: 100 threads, which begin later, or run already: each call of each thread")
def _(folder):
    log = os.path.join(folder, "log")
    path = own(folder, source="threads.c", out="threads")
    done = execute(refused(folder), path, 100, 200, 2, env=os.environ | {"FATHOM_TRACE": f"--json --no-fold --log {log}"}, status=0)
    assert done.stdout == "done\n" and not done.stderr, done
    by_thread = collections.defaultdict(list)
    with open(log, encoding="utf-8") as f:
        for e in map(json.loads, f):
            if e["type"] == "call":
                by_thread[e["tid"]].append(e["function"])
    found = collections.Counter(tuple(names) for names in by_thread.values())
    # A number of a thread may be used again.
    per_thread = ("run", *["counted", "other"] * 100)
    assert sum(len(names) // len(per_thread) * n for names, n in found.items() if names[0] == "run") == 200, found.keys()
    assert all(names in (("main",), per_thread * (len(names) // len(per_thread))) for names in found), found.keys()
    # work(100) calls leaf() a hundred times.
    path = own(folder)
    said = run(refused(folder), path, "toggle", f"--json --no-fold --log {log}", 3, 30)
    assert said == "0 wrong\n", said
    events = read(log)
    assert not [e for e in events if e["type"] == "lost"] and counts(events)["leaf"] >= 100, counts(events)
    by_thread = collections.defaultdict(list)
    for e in events:
        if e["type"] == "call":
            by_thread[e["tid"]].append(e["function"])
    # Of the two functions one is recorded before the other, and after it.
    for names in by_thread.values():
        inner = groups(names)[2:-2]
        assert all(n == (100 if name == "leaf" else 1) for name, n in inner), groups(names)
