# SPDX-License-Identifier: MIT
"""System calls of Debian's programs under load, beside strace, and a race that takes long."""
import collections
import os
import re
import socket
import time

import building
import traced_programs

from ask import FATHOM, execute

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "strace", "programs")
TIMES = 1000000
SECONDS = 3


def shape(text):
    """A call without what load and time change: its numbers, addresses and data, and how many events came at once."""
    text = re.sub(r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?', "STRING", text)
    text = re.sub(r"0x[0-9a-f]+|\b\d+\b", "N", text)
    text = re.sub(r"\{events=[A-Z|]+, data=(?:N|\{u32=N, u64=N\})\}(, )?", "EVENT", text)
    return re.sub(r"(EVENT)+|/\* .*? \*/| +(?==)", lambda m: "EVENTS" if m[1] else "", text)


def whole(path):
    """The calls of each thread, the first one's first; what was resumed stands behind what it resumes."""
    begun, threads = {}, {}
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            # How far threads come before the end is chance.
            if "SHUTDOWN" in line:
                break
            tid, text = line.rstrip("\n").split(None, 1)
            calls = threads.setdefault(tid, [])
            if text.endswith(" <unfinished ...>"):
                assert tid not in begun, line
                begun[tid] = text[:-len(" <unfinished ...>")]
            elif text.startswith("<... "):
                calls.append(begun.pop(tid) + re.match(r"<\.\.\. \w+ resumed>(.*)", text)[1])
            else:
                calls.append(text)
    # Whether a thread waits for another is chance, and which of those that the first one makes runs first.
    first, *others = ([call for call in calls if not call.startswith("futex(")] for calls in threads.values())
    return [first, *sorted(others, key=lambda calls: sorted(map(shape, calls)))]


def redis_under(tool, folder, name):
    """The calls of a server that has answered clients for some seconds."""
    log = os.path.join(folder, name)
    server, port = traced_programs.start_redis(folder, [*tool, "-f", "-o", log])
    try:
        load = traced_programs.Load(port)
        time.sleep(SECONDS)
        load.end()
        assert not load.wrong and load.answers > 100, (name, load.answers, load.wrong[:3])
    finally:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
            s.sendall(b"SHUTDOWN NOSAVE\r\n")
            s.recv(100)
        assert server.wait(timeout=60) == 0
    return whole(log)


def check_alike(theirs, ours):
    """Of each tool's lines of a thread 99.5 % have a shape that the other tool's have, too."""
    for one, other, who in (theirs, ours, "strace"), (ours, theirs, "fathom"):
        known = set(map(shape, other))
        missing = collections.Counter(s for s in map(shape, one) if s not in known)
        assert sum(missing.values()) <= 0.005 * len(one), (who, len(one), missing.most_common(10))


def redis(folder):
    """redis-server answers four clients: each thread's lines have the shapes of strace's, and no answer is wrong."""
    theirs, ours = (redis_under(tool, folder, name) for tool, name in ((["strace"], "theirs"), ([FATHOM, "strace"], "ours")))
    assert len(theirs) == len(ours) >= 4, (len(theirs), len(ours))
    assert min(len(theirs[0]), len(ours[0])) > 2000, (len(theirs[0]), len(ours[0]))
    for one, other in zip(theirs, ours):
        check_alike(one, other)


def path(folder):
    """A page that holds a path is unmapped and mapped while it is opened: all results are such as the kernel gives."""
    program = os.path.join(folder, "hostile")
    building.build(program, os.path.join(PROGRAMS, "hostile.c"), "-pthread")
    command = [program, "unmapped", folder, str(TIMES)]
    alone = execute(*command, timeout=600)
    assert alone.stdout == "other results 0 \n", alone
    for options in ["strace", "-f", "-o", "/dev/null"], ["trace", "--syscalls", "--no-functions", "--log", "/dev/null", "--"]:
        traced = execute(FATHOM, *options, *command, timeout=1800)
        assert (alone.returncode, alone.stdout) == (traced.returncode, traced.stdout), (options, traced)


TESTS = [("redis under load: the system calls of each thread are strace's", redis),
         (f"the page of a path comes and goes {TIMES} times: each call has a result that it has untraced", path)]
