# SPDX-License-Identifier: MIT
"""Programs of Debian's that are traced: they have no sites, so it is their calls of libraries."""
import json
import os
import random
import socket
import subprocess
import threading
import time
import urllib.request

import ltraced

from ask import FATHOM

CLIENTS = 4
ROUNDS = 100


class Load:
    """Clients of a redis server: each sets a number and reads it again, and counts answers that are not it."""

    def __init__(self, port):
        self.port, self.is_over, self.answers, self.wrong = port, False, 0, []
        self.threads = [threading.Thread(target=self.run, args=(k,)) for k in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, k):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s, s.makefile("rb") as f:
                i = 0
                while not self.is_over:
                    s.sendall(b"SET k%d %d\r\nGET k%d\r\n" % (k, i, k))
                    answer = (f.readline(), f.readline(), f.readline())
                    if answer[0] != b"+OK\r\n" or answer[2] != b"%d\r\n" % i:
                        self.wrong.append(answer)
                    self.answers += 1
                    i += 1
        except OSError as e:
            self.wrong.append(e)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def start_redis(folder, tool=()):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([*tool, "redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder], stdout=subprocess.DEVNULL)
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server, port
        except OSError:
            time.sleep(0.02)
    raise AssertionError("redis does not answer")


def under_load(folder):
    """Attached to 100 times under load, fathom killed 20 times meanwhile: no answer is lost or wrong."""
    server, port = start_redis(folder)
    log = os.path.join(folder, "log")
    draw = random.Random(20)
    try:
        load = Load(port)
        for i in range(ROUNDS):
            with subprocess.Popen([FATHOM, "trace", "-c", "--json", "--log", log, "-p", str(server.pid), "--for", "100ms"],
                                  stderr=subprocess.PIPE, text=True) as tracer:
                if i % 5 == 1:
                    time.sleep(draw.random() * 0.12)
                    tracer.kill()
                said = tracer.communicate()[1]
            assert i % 5 == 1 or tracer.returncode == 0, (i, said, server.poll())
            assert server.poll() is None, f"round {i}: redis has ended: {server.returncode}"
            if i % 5 != 1:
                with open(log, encoding="utf-8") as f:
                    found = {r["function"]: r["calls"] for r in map(json.loads, f) if "function" in r}
                assert found.get("epoll_wait") and found.get("read"), (i, found)
        before = load.answers
        time.sleep(0.5)
        load.end()
        assert not load.wrong and load.answers > before + 100, load.wrong[:3]
    finally:
        server.kill()
        server.wait()


def state(pid):
    """What a process is to have when it is left: its mappings but for stacks, and its text; bytes of memory; descriptors."""
    lines, texts = [], []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            if "[stack]" in line:
                continue
            lines.append(line)
            if " r-xp " in line and "/" in line:
                low, high = (int(n, 16) for n in line.split()[0].split("-"))
                memory.seek(low)
                texts.append(hash(memory.read(high - low)))
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        resident = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))
    return lines, texts, resident, sorted(os.listdir(f"/proc/{pid}/fd"))


def attach(pid, recording="20ms"):
    with subprocess.Popen([FATHOM, "trace", "--log", "/dev/null", "-p", str(pid), "--for", recording], stderr=subprocess.PIPE, text=True) as tracer:
        said = tracer.communicate(timeout=60)[1]
        assert tracer.returncode == 0, said


def thousand(folder):
    """Attached to 1,000 times: mappings, text and descriptors are what they were, and memory has not grown by more than text was copied."""
    server, _ = start_redis(folder)
    try:
        attach(server.pid)
        before = state(server.pid)
        for i in range(1000):
            attach(server.pid, "5ms")
            if i % 100 == 99:
                now = state(server.pid)
                assert now[0] == before[0], (i, set(now[0]) ^ set(before[0]))
                assert now[1] == before[1] and now[3] == before[3], i
                assert now[2] < before[2] + (1 << 20), (i, before[2], now[2])
    finally:
        server.kill()
        server.wait()


GO = """package main

/*
#include <stdlib.h>
#include <string.h>
static int work(int n) { char *p = malloc(100); memset(p, n, 100); int r = strlen("abc") + p[3]; free(p); return r; }
*/
import "C"
import ("fmt"; "net"; "net/http")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%d", int(C.work(3))) })
	for i := 0; i < 2; i++ { go func() { for { C.work(1) } }() }
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	http.Serve(l, nil)
}
"""
NODE = "const s = require('http').createServer((q, a) => a.end('6')); s.listen(0, '127.0.0.1', () => console.log(s.address().port))"


def serve(server):
    """Attached to 100 times while it answers: it lives, each answer is right, and no mapping of the tracer's stays."""
    try:
        port = int(server.stdout.readline())
        for i in range(100):
            attach(server.pid)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
                assert answer.read() == b"6", i
            stays = [line for line in state(server.pid)[0] if "fathom-trace" in line]
            assert not stays, (i, stays)
    finally:
        server.kill()
        server.communicate()


def go(folder):
    with open(os.path.join(folder, "main.go"), "w", encoding="utf-8") as f:
        f.write(GO)
    env = os.environ | {"HOME": folder, "GOCACHE": os.path.join(folder, "cache"), "GOFLAGS": "-mod=mod"}
    subprocess.run(["go", "build", "-o", os.path.join(folder, "served"), os.path.join(folder, "main.go")], env=env, check=True)
    with subprocess.Popen([os.path.join(folder, "served")], stdout=subprocess.PIPE, text=True) as server:
        serve(server)


def node(folder):
    with subprocess.Popen(["node", "-e", NODE], cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        serve(server)


def perl(folder):
    # Its hashes, and so its calls, are in another order each time.
    os.environ["PERL_HASH_SEED"] = "0"
    ltraced.compare(folder, ["perl", "-e", 'print join ",", map { $_ * 2 } 1 .. 100'], 500)


TESTS = [("redis under load: attached to 100 times, fathom killed 20 times: no answer is lost", under_load),
         ("redis, attached to 1,000 times, has the mappings, text, memory and descriptors that it had", thousand),
         ("a Go program that calls C and answers requests is attached to 100 times", go),
         ("node is attached to 100 times while it answers requests", node),
         ("perl: its calls of libraries are ltrace's", perl),
         ("git: its calls of libraries are ltrace's", lambda folder: ltraced.compare(folder, ["git", "--version"], 20))]
