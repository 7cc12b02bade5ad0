# SPDX-License-Identifier: MIT
"""Programs of Debian's that are traced: they have no sites, so it is their calls of libraries."""
import json
import os
import random
import socket
import subprocess
import threading
import time

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


def perl(folder):
    # Its hashes, and so its calls, are in another order each time.
    os.environ["PERL_HASH_SEED"] = "0"
    ltraced.compare(folder, ["perl", "-e", 'print join ",", map { $_ * 2 } 1 .. 100'], 500)


TESTS = [("redis under load: attached to 100 times, fathom killed 20 times: no answer is lost", under_load),
         ("perl: its calls of libraries are ltrace's", perl),
         ("git: its calls of libraries are ltrace's", lambda folder: ltraced.compare(folder, ["git", "--version"], 20))]
