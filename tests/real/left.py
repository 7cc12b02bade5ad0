# SPDX-License-Identifier: MIT
"""Programs that are attached to and left 1,000 times (ATTACHES: another number) while they answer requests: mappings,
descriptors, memory and text are as before, and each answer is right."""
import contextlib
import os
import re
import subprocess
import threading
import time
import urllib.request

import traced_programs
from ask import FATHOM, run
from running import mappings_of, peek

ROUNDS = int(os.environ.get("ATTACHES", "1000"))
# Between two looks at the program.
STEP = 100
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

GO = """package main

/*
#include <stdlib.h>
#include <string.h>
static int work(int n) { char *p = malloc(100); memset(p, n, 100); int r = strlen("abc") + p[3]; free(p); return r; }
*/
import "C"
import ("fmt"; "net"; "net/http"; "runtime/debug")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%d", int(C.work(3))) })
	http.HandleFunc("/free", func(w http.ResponseWriter, r *http.Request) { debug.FreeOSMemory(); fmt.Fprintf(w, "6") })
	for i := 0; i < 2; i++ { go func() { for { C.work(1) } }() }
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	http.Serve(l, nil)
}
"""
NODE = """const s = require('http').createServer((q, a) => { if (q.url == '/free') gc(); a.end('6') })
s.listen(0, '127.0.0.1', () => console.log(s.address().port))"""

# Traces itself: a line has the words of a trace, and is answered by a sum over what it called meanwhile. Another thread
# works without an end, and ends the process if it finds anything wrong.
PYTHON = """
import hashlib, os, sys, threading
import fathom

EXPECTED = hashlib.sha256(bytes(1000)).digest()


def work():
    while True:
        if hashlib.sha256(bytes(1000)).digest() != EXPECTED or os.getpgid(0) != os.getpgrp():
            os._exit(9)


threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    with fathom.ftrace(line.rstrip()):
        n = sum(len(os.path.join("a", str(i))) for i in range(100))
    print(n, os.getpgid(0) == os.getpgrp(), flush=True)
"""


class Redis:
    """redis-server, and clients that set numbers and get them."""
    has_heap_of_its_own = False
    traces_itself = False

    def __init__(self, folder):
        self.server, self.port = traced_programs.start_redis(folder)
        self.load = None

    def begin(self):
        self.load = traced_programs.Load(self.port)

    def end(self):
        self.load.end()
        assert not self.load.wrong, self.load.wrong[:3]
        return self.load.answers

    def free(self):
        run("redis-cli", "-p", self.port, "memory", "purge")


class Asked:
    """A program that one client asks again and again."""
    has_heap_of_its_own = False
    traces_itself = False
    pause = 0.001

    def begin(self):
        self.is_over, self.answers, self.wrong = False, 0, []
        self.thread = threading.Thread(target=self.ask_on)
        self.thread.start()

    def ask_on(self):
        try:
            while not self.is_over:
                self.ask()
                self.answers += 1
                time.sleep(self.pause)
        except (AssertionError, OSError, ValueError) as e:
            self.wrong.append(e)

    def end(self):
        self.is_over = True
        self.thread.join()
        assert not self.wrong, (self.wrong, self.server.poll())
        return self.answers

    def free(self):
        pass


class Http(Asked):
    """A server that says its port, and answers 6; it has a collector of garbage, which maps and unmaps memory."""
    has_heap_of_its_own = True

    def __init__(self, command, folder):
        self.server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        self.port = int(self.server.stdout.readline())
        self.ask()

    def ask(self, path=""):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=30) as answer:
            assert answer.read() == b"6"

    def free(self):
        for _ in range(3):
            self.ask("free")


class Go(Http):
    def __init__(self, folder):
        source, program = os.path.join(folder, "main.go"), os.path.join(folder, "served")
        with open(source, "w", encoding="utf-8") as f:
            f.write(GO)
        env = os.environ | {"HOME": folder, "GOCACHE": os.path.join(folder, "cache"), "GOFLAGS": "-mod=mod"}
        subprocess.run(["go", "build", "-o", program, source], env=env, check=True)
        super().__init__([program], folder)


class Node(Http):
    def __init__(self, folder):
        super().__init__(["node", "--expose-gc", "-e", NODE], folder)


class Sqlite(Asked):
    """A program of Debian's that reads lines and answers each."""

    def __init__(self, folder):
        self.server = subprocess.Popen(["sqlite3", "-batch", ":memory:"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.n = 0
        self.ask()

    def ask(self):
        self.n += 1
        self.server.stdin.write(f"select {self.n} * 3, length(hex(randomblob(500)));\n")
        assert self.server.stdout.readline() == f"{self.n * 3}|1000\n", self.n


def attach_by(*words):
    """Attaches as another process does, by fathom trace -p."""
    def attach(program):
        with subprocess.Popen([FATHOM, "trace", "--log", "/dev/null", *words, "-p", str(program.server.pid), "--for", "5ms"], stderr=subprocess.PIPE, text=True) as tracer:
            said = tracer.communicate(timeout=120)[1]
        assert tracer.returncode == 0, (tracer.returncode, said)
    return attach


class Python:
    """Debian's own interpreter, which traces itself by its context manager: what answers is what attaches."""
    has_heap_of_its_own = False
    traces_itself = True

    def __init__(self, folder):
        path = os.path.join(folder, "self.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PYTHON)
        env = os.environ | {"PYTHONPATH": os.path.join(os.environ["BUILD"], "python")}
        self.server = subprocess.Popen(["/usr/bin/python3", path], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.server.stdout.readline() == "ready\n"
        self.answers = 0

    def begin(self):
        pass

    def end(self):
        return self.answers

    def free(self):
        pass


def trace_itself(*words):
    def attach(program):
        program.server.stdin.write(" ".join(["--log", "/dev/null", *words]) + "\n")
        said = program.server.stdout.readline()
        # 10 of one digit, 90 of two, "a/" before each.
        assert said == f"{10 * 3 + 90 * 4} True\n", (said, program.server.poll())
        program.answers += 1
    return attach


def file_bytes(path, offset, size):
    with open(path, "rb") as f:
        f.seek(offset)
        return f.read(size)


class State:
    """What a process is to have when it is left."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            # Stacks and heaps grow in their place: that counts as memory. A process that traces itself without ptrace(2) keeps
            # the place of its rings, and each trace has a fresh file there.
            self.lines = [re.sub(r" \d+ (?=/memfd:fathom-trace)", " N ", re.sub(" +", " ", line.strip())) for line in maps
                          if not line.endswith(("[stack]\n", "[heap]\n"))]
        self.named = [line for line in self.lines if len(line.split()) > 5]
        self.fds = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            self.resident = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))
        self.constant = {}
        self.changed = []
        for m in mappings_of(pid):
            if not m.path.startswith("/") or "w" in m.rights or m.rights[0] != "r":
                continue
            there = peek(pid, m.start, m.end - m.start)
            self.constant[m.start] = hash(there)
            text = file_bytes(m.path, m.off, m.end - m.start) if "x" in m.rights else b""
            if there[:len(text)] != text:
                self.changed.append(m)


@contextlib.contextmanager
def ended(program):
    try:
        yield program
    finally:
        program.server.kill()
        program.server.communicate()


def at_rest(pid):
    """The state once descriptors do not change any more."""
    state = State(pid)
    for _ in range(100):
        time.sleep(0.3)
        before, state = state, State(pid)
        if state.fds == before.fds:
            return state
    raise AssertionError((before.fds, state.fds))


def settled(program, before):
    """The state once requests have ended and their descriptors are closed."""
    deadline = time.monotonic() + 30
    while True:
        now = State(program.server.pid)
        if now.fds == before.fds or time.monotonic() > deadline:
            return now
        time.sleep(0.05)


def check(program, before, now, i):
    assert now.fds == before.fds, (i, now.fds, before.fds)
    assert now.named == before.named, (i, sorted(set(now.named) ^ set(before.named)))
    assert now.constant == before.constant and not now.changed, (i, now.changed)
    if not program.has_heap_of_its_own:
        assert now.lines == before.lines, (i, sorted(set(now.lines) ^ set(before.lines)))


def leave(start, attach):
    def call(folder):
        with ended(start(folder)) as program:
            pid, first, known, answers = program.server.pid, None, None, 0
            stock = at_rest(pid)
            assert not stock.changed, stock.changed
            for i in range(ROUNDS + 1):
                if i % STEP == 1:
                    program.begin()
                attach(program)
                assert program.server.poll() is None, (i, program.server.poll())
                if i % STEP == 0:
                    if i:
                        answers += program.end()
                    program.free()
                    # In its first round Python loads libfathom, which then keeps what it has mapped.
                    known = known or (State(pid) if program.traces_itself else stock)
                    now = settled(program, known)
                    check(program, known, now, i)
                    assert stock.constant.items() <= now.constant.items(), i
                    # Text that was written is the process's own copy after the first rounds.
                    first = first or (i and now)
            grown, mapped = now.resident - first.resident, len(now.lines) - len(first.lines)
            print(f"# {len(now.lines)} mappings, {answers} answers, memory {first.resident >> 10} KiB after {STEP}, {now.resident >> 10} after {ROUNDS}")
            # A page for every fourth time; a collector of garbage does not always come to the same end.
            assert grown < (1 << 20 if not program.has_heap_of_its_own else 4 << 20), (first.resident, now.resident)
            assert mapped < ROUNDS // 10, (first.lines, now.lines)
    return call


WAYS = {"": (), "system calls, ": ("--syscalls", "--no-functions"), "system calls and functions, --way=rewrite, ": ("--syscalls", "--way=rewrite")}
PROGRAMS = (("redis", Redis, attach_by, WAYS), ("node under HTTP", Node, attach_by, WAYS), ("Go and C under HTTP", Go, attach_by, WAYS),
            ("sqlite3", Sqlite, attach_by, WAYS),
            ("Python by its context manager", Python, trace_itself,
             # It has two threads: calls cannot be rewritten then, functions can.
             {"": (), "system calls, ": WAYS["system calls, "], "functions, --way=rewrite, ": ("--way=rewrite",),
              "--way=dispatch, ": ("--syscalls", "--no-functions", "--way=dispatch")}))
TESTS = [(f"{name}, {title}attached to {ROUNDS:,} times: mappings, descriptors, memory, text as before, each answer right", leave(program, way(*words)))
         for name, program, way, ways in PROGRAMS for title, words in ways.items()]
