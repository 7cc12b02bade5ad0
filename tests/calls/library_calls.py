# SPDX-License-Identifier: MIT
"""Tests of calls from one module to another, which are told of programs that have no sites."""
import collections
import json
import os
import re
import subprocess

import ltraced

from ask import fathom, run
from attached import Server, Tracer, mappings
from traced import CLANG, SITES, build, counts, test, trace


def rows_of(log, *words, options=(), status=0):
    """(module, function): how often it was called."""
    fathom("trace", "-c", "--json", "--log", log, *options, "--", *words, status=status)
    with open(log, encoding="utf-8") as f:
        return {(os.path.basename(r["module"]), r["function"]): r["calls"] for r in map(json.loads, f)}


def relocations(path, kind):
    """Function: address of the slot that relocations of @kind fill."""
    rows = re.findall(rf"^(\w+) +\w+ R_X86_64_{kind} +\w+ (\w+)", run("readelf", "-rW", path), re.M)
    return {name: int(at, 16) for at, name in rows}


def references(path):
    """Address: whether each instruction that refers to it is a call or jump through it."""
    found = collections.defaultdict(list)
    for operation, at in re.findall(r"\t(?:bnd |notrack )?(\w+) .*# ([0-9a-f]+) <", run("objdump", "-d", "--no-show-raw-insn", path)):
        found[int(at, 16)].append(operation in ("call", "jmp"))
    return found


@test("library calls: all slots of ls, bash, python3 and sqlite3 by which functions are called are listed; 95 % are traced, others with a reason")
def _(folder):
    del folder
    for name in ("ls", "bash", "python3", "sqlite3"):
        path = os.path.realpath("/usr/bin/" + name)
        rows = [json.loads(line) for line in fathom("trace", "--sites", "--calls", "always", "--json", path, status=0).stdout.splitlines()]
        slots = {r["linkage_name"]: r for r in rows if r["type"] == "slot"}
        expected = relocations(path, "JUMP_SLOT")
        symbols = run("readelf", "--dyn-syms", "-W", path)
        for function, at in relocations(path, "GLOB_DAT").items():
            if re.search(rf" I?FUNC .* {function}(@|$)", symbols, re.M):
                expected[function] = at
        assert {n: int(r["address"], 16) for n, r in slots.items()} == expected, (name, slots.keys() ^ expected.keys())
        left_out = {n: r["reason"] for n, r in slots.items() if r["reason"]}
        uses = references(path)
        assert set(left_out.values()) <= {"pointer"} and len(left_out) <= 0.05 * len(slots), left_out
        assert all(uses[expected[n]] and not any(uses[expected[n]]) for n in left_out), left_out
        for function in relocations(path, "GLOB_DAT"):
            assert function not in slots or slots[function]["direct"]
        text = fathom("trace", "--sites", "--calls", "always", path, status=0).stdout.splitlines()
        tail = f"; left out: {len(left_out)} pointer" if left_out else ""
        assert text[-1] == f"{len(slots)} slots of calls{tail}", text[-1]
        assert sum(" slot" in line for line in text[:-1]) == len(slots)


@test("library calls: those of stock programs are as many as ltrace has, and what they print is the same")
def _(folder):
    for words in (["ls", "/"], ["sqlite3", ":memory:", "select 1+1;"], ["sort", "/etc/passwd"], ["bash", "-c", "echo $((1+1))"]):
        said = ltraced.compare(folder, words, 100)
        assert SITES in said and len(said.splitlines()) == 1, said


@test("library calls: each is told, bound now or later, chosen by resolvers, of libraries loaded later; pointers to functions stay equal")
def _(folder):
    log = os.path.join(folder, "log")
    plug = build(folder, "plugin.c", "-shared", "-fPIC", "-DNAME=plugged", out="plug.so", flags=["-O1"])
    for compiler in ("gcc", CLANG):
        library = build(folder, "crossing.c", "-shared", "-fPIC", "-DLIBRARY", out="libcrossing.so", flags=["-O1"], compiler=compiler)
        for link in (["-Wl,-z,lazy"], ["-Wl,-z,now"], ["-no-pie", "-fno-pie"], ["-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,separate-code"], ["-fuse-ld=lld"],
                     ["-fno-plt"], ["-fno-plt", "-Wl,-z,now"], ["-fno-plt", "-fuse-ld=lld"], ["-fcf-protection=full", "-Wl,-z,ibtplt"]):
            path = build(folder, "crossing.c", library, f"-Wl,-rpath,{folder}", *link, flags=["-O1"], compiler=compiler, out="program")
            out, events, _ = trace(path, "500", plug, log=log, options=["--no-fold"])
            # 2i + 1, 500 times; 1 + 2; (1 + 1) * 2
            assert out == "250003 1 1 4\n", (link, out)
            found = counts(events)
            # clang's code without linkage table loads what it calls in a loop before that.
            direct, uses = relocations(path, "GLOB_DAT"), references(path)
            seen = {n: n not in direct or all(uses[direct[n]]) for n in ("crossed", "strlen")}
            assert found["crossed"] == 500 * seen["crossed"] and found["crossed_back"] == 500, (link, found)
            assert found["strlen"] >= 500 * seen["strlen"] and (compiler == CLANG or all(seen.values())), (link, found)
            assert found["dlopen"] == found["dlsym"] == found["printf"] == 1, (link, found)
            assert found["inner_plugged"] == 1, (link, found)
            # Its slot has a pointer that is compared, too: of a stub the operand is changed, code that calls by it is left alone.
            assert found["called_by_address"] == ("-fno-plt" not in link), (link, found)
            depth = {e["function"]: e["depth"] for e in events if e["type"] == "call"}
            assert not seen["crossed"] or depth["crossed_back"] == depth["crossed"] + 1
    rows = rows_of(log, path, "3", plug, options=["--only", "crossed", "--only", "strl*"])
    assert set(rows) == {("program", "crossed"), ("program", "strlen")}, rows
    assert not rows_of(log, path, "3", plug, options=["--calls", "never"])


@test("library calls: a program with sites has its own functions only, unless it is asked for")
def _(folder):
    log = os.path.join(folder, "log")
    path = build(folder, "ends.c")
    assert set(rows_of(log, path, status=7)) == {("ends", "main")}
    rows = rows_of(log, path, options=["--calls", "always"], status=7)
    assert rows[("ends", "main")] == 1 and rows[("ends", "strcmp")] >= 3, rows
    assert "--calls" in fathom("trace", "--calls", "sometimes", "--", path, status=2).stderr


@test("library calls: of a process that runs, from when it is attached to until it is left; its tables are what they were")
def _(folder):
    path = build(folder, "served.c", flags=["-O1", "-pthread", "-Wl,-z,lazy"])
    table = re.search(r"\.rela\.plt +RELA +(\w+) \w+ (\w+)", run("readelf", "-SW", path))
    start, size = (int(n, 16) for n in table.groups())

    def relocations(server):
        with open(f"/proc/{server.pid}/maps", encoding="utf-8") as maps:
            base = int(next(line for line in maps if line.rstrip().endswith(path)).split("-")[0], 16)
        with open(f"/proc/{server.pid}/mem", "rb") as memory:
            memory.seek(base + start)
            return memory.read(size)
    with Server(path) as server:
        before = relocations(server)
        for i in range(4):
            if i == 2:
                # One that is killed leaves them changed; the next one mends that.
                tracer = Tracer(os.path.join(folder, "log"), pids=[server.pid])
                tracer.wait_until_it_records(server)
                tracer.process.kill()
                tracer.process.communicate()
                assert relocations(server) != before and server.say("thread") == "joined"
            tracer = Tracer(os.path.join(folder, "log"), "--not", "usleep", pids=[server.pid])
            tracer.wait_until_it_records(server)
            assert relocations(server) != before
            assert server.say("thread") == "joined" and server.say("fork") == "child 3"
            found = counts(tracer.leave())
            assert found["pthread_create"] == found["pthread_join"] == found["fork"] == 1, found
            assert relocations(server) == before
            assert not mappings(server.pid)
        server.end()


@test("library calls: a program whose libraries are many, threads and children: it runs as without")
def _(folder):
    code = "import subprocess, threading, json\nt = [threading.Thread(target=lambda: json.dumps([1] * 100)) for _ in range(4)]\n" \
           "[x.start() for x in t]\n[x.join() for x in t]\nprint(subprocess.run(['sh', '-c', 'echo $((6*7))'], capture_output=True).stdout)"
    with subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE, text=True) as plain:
        expected = plain.communicate()[0]
    log = os.path.join(folder, "log")
    done = fathom("trace", "-c", "--json", "--log", log, "--", "python3", "-c", code, status=0)
    assert done.stdout == expected
    with open(log, encoding="utf-8") as f:
        found = collections.Counter()
        for r in map(json.loads, f):
            found[r["function"]] += r["calls"]
    assert found["pthread_create"] >= 4 and found["waitpid"] >= 1 and sum(found.values()) > 10000, found


@test("library calls: a function that has a site and is called through slots, too, is counted once")
def _(folder):
    # 3 + 3 by the program, 5 + 5 by outer(); each jumps() ends in a call of leaf().
    truth = {"leaf": 16, "jumps": 8, "outer": 1}
    log = os.path.join(folder, "log")
    for k, flags in enumerate(([SITES], ["-pg", "-mfentry"], ["-finstrument-functions"], [SITES, "-Wl,-z,now"], [SITES, "-fno-plt"])):
        library = build(folder, "doubled.c", "-shared", "-fPIC", "-DLIBRARY", flags=("-O2", *flags), out=f"libdoubled{k}.so")
        for own in ([SITES], []):
            path = build(folder, "doubled.c", library, f"-Wl,-rpath,{folder}", flags=("-O2", *own), out="doubled")
            for options in (["always"], ["always", "--no-fold"], ["always", "--exits"], ["never"]):
                found = counts(trace(path, options=["--calls", *options], log=log)[1])
                assert {name: found[name] for name in truth} == truth, (flags, own, options, found)
