#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how long a client of redis waits while the server is attached to and left.

pauses.py FATHOM REPORT [ROUNDS]: in each round, the longest request while fathom trace -p attaches, records for 0.1 s and
leaves, and the longest of as long a time untraced, right before it. Writes a Markdown report.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

FEW_MS = 30
WAYS = (("calls of libraries", ()), ("system calls", ("--syscalls", "--no-functions")), ("both, --way=rewrite", ("--syscalls", "--way=rewrite")))


def start(folder):
    path = os.path.join(folder, "socket")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
    client = socket.socket(socket.AF_UNIX)
    for _ in range(500):
        try:
            client.connect(path)
            return server, client, client.makefile("rb")
        except OSError:
            time.sleep(0.02)
    raise SystemExit("redis does not answer")


def longest(client, answers, is_over):
    """The longest of the requests until @is_over(), and how long all took, in seconds."""
    begun, most, n = time.perf_counter(), 0, 0
    while n % 16 or not is_over():
        asked = time.perf_counter()
        client.sendall(b"SET k %d\r\nGET k\r\n" % n)
        answer = (answers.readline(), answers.readline(), answers.readline())
        most = max(most, time.perf_counter() - asked)
        assert answer[2] == b"%d\r\n" % n, answer
        n += 1
    return most, time.perf_counter() - begun


def rounds(fathom, words, server, client, answers, n):
    """Pairs of the longest request untraced and attached, in milliseconds."""
    pairs, seconds = [], 0.3
    for i in range(n + 1):
        end = time.perf_counter() + seconds
        plain = longest(client, answers, lambda end=end: time.perf_counter() >= end)[0]
        with subprocess.Popen([fathom, "trace", "--log", "/dev/null", *words, "-p", str(server.pid), "--for", "0.1s"], stderr=subprocess.DEVNULL) as tracer:
            attached, seconds = longest(client, answers, lambda tracer=tracer: tracer.poll() is not None)
        assert tracer.returncode == 0
        # The first has files to read.
        if i:
            pairs.append((plain * 1000, attached * 1000))
    return pairs


def part(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def row(title, pairs):
    cells = [f"{part(column, share):.1f}" for column in zip(*pairs, strict=True) for share in (0.5, 0.98, 1)]
    few = sum(attached <= plain + FEW_MS for plain, attached in pairs)
    return f"| {title} | {' | '.join(cells)} | {few} of {len(pairs)} |"


def main():
    fathom, report = sys.argv[1:3]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    before = os.getloadavg()[0]
    lines = []
    for title, words in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            server, client, answers = start(folder)
            try:
                lines.append(row(title, rounds(shutil.which(fathom) or os.path.abspath(fathom), words, server, client, answers, n)))
            finally:
                server.kill()
                server.wait()
        print(lines[-1], flush=True)
    with open(report, "w", encoding="utf-8") as out:
        out.write(f"""# How long a client waits while a server is attached to

Made by `./dev pauses`: one client asks redis-server without a pause. In each of {n} rounds, the longest request (a SET and a GET) while
`fathom trace -p` attaches, records for 0.1 s and leaves, beside the longest of as long a time untraced, right before. Milliseconds; {os.cpu_count()}
processors; all ran with niceness {os.nice(0)}. Load average {before:.1f} when it began, {os.getloadavg()[0]:.1f} when it ended: server, client and fathom are 2 to 3 of it,
what is above that is other work on the same processors, for which a request waits, too. The goal, 99 of 100, is for a quiet machine.

| recorded | untraced: median | 98 % | longest | attached: median | 98 % | longest | at most {FEW_MS} ms above untraced |
|---|---|---|---|---|---|---|---|
""" + "\n".join(lines) + "\n")


main()
