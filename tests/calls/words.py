# SPDX-License-Identifier: MIT
"""Tests of what options of trace mean, and of what it says of programs that it cannot record."""
import json
import os
import shutil
import subprocess
import time

from ask import FATHOM, execute, fathom, run
from attached import Server, whole_map
from traced import SHAPE_CALLS, SITES, build, calls, counts, test, trace


@test("words: a PROGRAM needs no --; what stands behind it is its own")
def _(folder):
    path, log = build(folder, "shapes.c"), os.path.join(folder, "log")
    for words in ([path], ["--", path], ["--only", "leaf", path], ["--depth=9", "--log", log, path], ["--no-fold", path, "-c", "--read", "x"]):
        done = fathom("trace", *words, status=0)
        text = open(log, encoding="utf-8").read() if log in words else done.stderr
        assert "&leaf" in text and "calls symbol" not in text, (words, text)
    file = os.path.join(folder, "file")
    fathom("trace", "-o", file, path, status=0)
    assert "&leaf" in fathom("trace", "--read", file, "-c", status=0).stdout
    assert fathom("trace", "--diff", file, file, "--depth", "2", status=0).stdout is not None
    assert "leaf" in fathom("trace", "--sites", path, "leaf", status=0).stdout
    assert fathom("trace", status=2).stderr and fathom("trace", "-p", "1", path, status=2).stderr


@test("words: --under QUERY --depth N counts from QUERY, live and from a file")
def _(folder):
    path, log = build(folder, "shapes.c"), os.path.join(folder, "log")
    _, whole, _ = trace(path, log=log, options=["--no-fold"])
    assert calls(whole) == [(name, depth, 1) for name, depth in SHAPE_CALLS]
    file = os.path.join(folder, "file")
    fathom("trace", "-o", file, path, status=0)
    # top() calls middle() twice, each of which calls leaf() twice.
    for n, names in ((1, {"top": 1}), (2, {"top": 1, "middle": 2}), (3, {"top": 1, "middle": 2, "leaf": 4})):
        words = ["--under", "top", "--depth", str(n)]
        assert counts(trace(path, log=log, options=words)[1]) == names, n
        read = fathom("trace", "--json", *words, "--read", file, status=0).stdout
        assert counts([json.loads(line) for line in read.splitlines()]) == names, n


@test("words: --last N keeps N calls, whatever else is told between them")
def _(folder):
    path, log = build(folder, "ends.c", flags=["-O1", "-finstrument-functions"]), os.path.join(folder, "log")
    for options in ([], ["--exits"], ["--at", "nothing:dump"]):
        for n in (1, 7, 40):
            events = trace(path, "many", log=log, options=["--no-fold", "--last", str(n), *options], status=7)[1]
            assert sum(counts(events).values()) == n, (options, n, len(events))


@test("words: --for counts from when a process is attached to")
def _(folder):
    with Server(build(folder, "served.c", flags=("-O1", "-pthread"))) as server:
        log = os.path.join(folder, "log")
        # Shorter than it takes to find what can be recorded.
        fathom("trace", "--json", "--log", log, "-p", str(server.pid), "--for", "2ms", status=0)
        before = time.monotonic()
        done = fathom("trace", "-c", "--json", "--log", log, "-p", str(server.pid), "--for", "400ms", status=0)
        assert time.monotonic() - before >= 0.4
        with open(log, encoding="utf-8") as f:
            assert sum(json.loads(line)["calls"] for line in f), done.stderr
        assert not [line for line in whole_map(server.pid) if "fathom-trace" in line]
        server.end()


@test("words: what cannot be recorded is said, and why: no returns, Go's programs, a limit of memory, no limit of stacks")
def _(folder):
    path, log = build(folder, "shapes.c"), os.path.join(folder, "log")
    said = fathom("trace", "--exits", "--log", log, path, status=0).stderr
    assert "has no returns that can be recorded" in said and "-finstrument-functions" in said, said
    cyg = build(folder, "shapes.c", flags=["-O1", "-finstrument-functions"], out="cyg")
    assert "returns" not in fathom("trace", "--exits", "--log", log, cyg, status=0).stderr
    # 45 MB are not enough for rings: then nothing is recorded, and that is the reason. From 1 GB on, fewer rings are.
    for kib, is_recorded in ((45000, False), (1000000, True), (8000000, True)):
        done = execute("sh", "-c", f"ulimit -v {kib}; exec {FATHOM} trace --log {log} -- {path}", status=0)
        with open(log, encoding="utf-8") as f:
            text = f.read()
        assert ("&leaf" in text) == is_recorded, (kib, text, done.stderr)
        assert is_recorded or ("not recorded" in text and "no function" not in done.stderr), (kib, text, done.stderr)
    if shutil.which("go"):
        with open(os.path.join(folder, "main.go"), "w", encoding="utf-8") as f:
            f.write("package main\n\nfunc main() { println(6 * 7) }\n")
        env = os.environ | {"HOME": folder, "GOCACHE": os.path.join(folder, "cache"), "CGO_ENABLED": "0"}
        subprocess.run(["go", "build", "-o", os.path.join(folder, "made"), os.path.join(folder, "main.go")], env=env, check=True)
        said = fathom("trace", "--log", log, os.path.join(folder, "made"), status=0).stderr
        assert "Go's compiler" in said and "-fpatchable" not in said, said
    library = build(folder, "doubled.c", "-shared", "-fPIC", "-DLIBRARY", flags=("-O2", "-finstrument-functions"), out="libdoubled.so")
    both = build(folder, "doubled.c", library, f"-Wl,-rpath,{folder}", flags=("-O2", SITES), out="doubled")
    done = execute("sh", "-c", f"ulimit -s unlimited; exec {FATHOM} trace --json --calls never --log {log} -- {both}", status=0)
    with open(log, encoding="utf-8") as f:
        found = counts([json.loads(line) for line in f])
    assert found == {"main": 1, "leaf": 16, "jumps": 8, "outer": 1} and "too far" not in done.stderr, (found, done.stderr)


@test("words: gcc's nested functions with -mnop-mcount")
def _(folder):
    path = build(folder, "nest.c", flags=["-O1", "-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie"])
    out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
    assert out == run(path)
    assert calls(events) == [("main", 0, 1)] + [("inner.0", 1, 1), ("leaf", 2, 1)] * 3, calls(events)


@test("words: columns that do not touch, and a reader of the log that wants no more")
def _(folder):
    log = os.path.join(folder, "log")
    path = build(folder, "many.c", "-pthread")
    fathom("trace", "--lossy", "--no-fold", "--log", log, path, "4", "400000", status=0)
    with open(log, encoding="utf-8") as f:
        heads = {line.split()[0] for line in f if line.startswith("LOST")}
    assert heads == {"LOST"}, heads
    file = os.path.join(folder, "file")
    fathom("trace", "-o", file, path, "4", "100000", status=0)
    with subprocess.Popen([FATHOM, "trace", "--no-fold", "--read", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline()
        reader.stdout.close()
        assert reader.stderr.read() == "" and reader.wait(timeout=60) == 0
