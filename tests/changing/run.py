#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "changing": files that are truncated and overwritten while they are read. What comes out is the
truth of the whole file or a message that names the file, and never the end by a signal."""
import os
import random
import re
import shutil
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from building import core_of  # noqa: E402
from running import Told  # noqa: E402
from told import build as told_build, library as told_library  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
SUITE = tap.Suite("changing")
test = SUITE.test
SAYS = "was truncated or overwritten, or its disk failed, while it was being read"
# Places of one run at which the file is truncated, and runs at random moments.
MOST_CALLS = 40
RANDOM_RUNS = 150
# Small enough to be read at once; it has several units, for several threads.
SOURCES = ["told.c", "library.c", "turn.c"]


def cutter(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("what runs under a wrapper cannot be traced")
    path = os.path.join(folder, "cutter")
    run("gcc", "-O1", "-o", path, os.path.join(PROGRAMS, "cutter.c"))
    return path


def victim(folder):
    """(path, content) of the file that is read."""
    path = os.path.join(folder, "victim")
    shutil.copy(told_build(folder, "told", "-ldl", "-pthread"), path)
    with open(path, "rb") as file:
        return path, file.read()


def restore(path, content):
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate(len(content))


def verbs(path, folder):
    """{verb: (command, standard input, its status for a file that changes)}."""
    code = "visible_code\nmain\n0x10\n"
    command = [FATHOM, "addr", "--no-cache", "--threads", "4", path]
    return {
        "addr": (command, code, 2),
        "addr, JSON": (command + ["--json"], code, 2),
        "find": ([FATHOM, "find", "--no-cache", "--threads", "4", path, "visible_code", "/code/", "told.c:50"], "", 2),
        "find --inlined": ([FATHOM, "find", "--no-cache", "--threads", "4", "--inlined", path, "*code"], "", 2),
        "disasm": ([FATHOM, "disasm", "--no-cache", path, "visible_code"], "", 2),
        "cache build": ([FATHOM, "cache", "--threads", "4", "--cache-dir", f"{folder}/cache", "build", path], "", 2),
        "addr2line": ([FATHOM, "addr2line", "-f", "-i", "-e", path, "visible_code", "main"], "", 1),
        "llvm-symbolizer": ([FATHOM, "llvm-symbolizer", "-e", path], "0x1300\n0x1400\n", 1),
    }


def ask(command, given):
    done = execute(*command, input=given)
    return done.returncode, done.stdout, done.stderr


def places(count):
    """At most MOST_CALLS of the numbers below @count, the first ones and the last among them."""
    if count <= MOST_CALLS:
        return range(count)
    return sorted({i * (count - 1) // (MOST_CALLS - 1) for i in range(MOST_CALLS)})


def sweep(folder, path, content, command, given, check):
    """Truncates @path to several sizes at each place of the command's run; @check looks at (whole, outcome)."""
    cut = cutter(folder)
    tried = 0
    for size in (0, 4096, len(content) // 2 & ~4095, len(content) - 5000):
        whole = ask([cut, path, str(size), "-1", *command], given)
        shutil.rmtree(f"{folder}/cache", ignore_errors=True)
        calls = int(re.search(r"calls (\d+)\n\Z", whole[2])[1])
        assert calls > 1 and whole[0] in (0, 1), whole
        for place in places(calls):
            outcome = ask([cut, path, str(size), str(place), *command], given)
            restore(path, content)
            tried += 1
            try:
                check(whole[:2], outcome)
            except AssertionError as wrong:
                raise AssertionError(f"cut to {size} before call {place} of {calls}: {wrong}") from wrong
    return tried


def add_file_tests(verb):
    def each_call(folder):
        path, content = victim(folder)
        command, given, status = verbs(path, folder)[verb]
        refused = 0

        def check(whole, outcome):
            nonlocal refused
            shutil.rmtree(f"{folder}/cache", ignore_errors=True)
            if outcome[:2] == whole:
                return
            refused += 1
            assert outcome[0] == status and re.search(f"{path}'?: {SAYS}", outcome[2]), outcome

        sweep(folder, path, content, command, given, check)
        assert refused, "no run read the file after it was truncated"

    def any_moment(folder):
        path, content = victim(folder)
        command, given, _ = verbs(path, folder)[verb]
        rng = random.Random(verb)
        for i in range(RANDOM_RUNS):
            stop = threading.Event()
            writer = threading.Thread(target=rewrite, args=(path, content, rng, stop))
            writer.start()
            try:
                outcome = ask(command, given)
            finally:
                stop.set()
                writer.join()
            shutil.rmtree(f"{folder}/cache", ignore_errors=True)
            assert outcome[0] in (0, 1, 2), f"run {i}: {outcome}"
            # Of an empty file GNU's addr2line says nothing.
            assert outcome[1] or outcome[2] or verb == "addr2line", f"run {i} said nothing: {outcome}"

    SUITE.add(f"{verb}: a file truncated before each system call", each_call)
    SUITE.add(f"{verb}: a file truncated and written again all the time", any_moment)


def rewrite(path, content, rng, stop):
    while not stop.is_set():
        os.truncate(path, rng.choice((0, 4096, rng.randrange(len(content)))))
        stop.wait(rng.random() * 0.004)
        restore(path, content)
        stop.wait(rng.random() * 0.004)


for name in verbs("", ""):
    add_file_tests(name)


@test("cache build: nothing is stored of a file that was truncated meanwhile")
def nothing_stored(folder):
    path, content = victim(folder)
    command, given, _ = verbs(path, folder)["cache build"]
    outcomes = set()

    def check(whole, outcome):
        left = os.listdir(f"{folder}/cache") if os.path.isdir(f"{folder}/cache") else []
        shutil.rmtree(f"{folder}/cache", ignore_errors=True)
        stored = [name for name in left if name.endswith(".fidx")]
        outcomes.add(len(stored))
        assert len(stored) == (outcome[:2] == whole) and len(left) == len(stored), (outcome, left)

    sweep(folder, path, content, command, given, check)
    assert outcomes == {0, 1}, outcomes


@test("four threads that read a large file while it is truncated")
def threads(folder):
    path = os.path.join(folder, "victim")
    shutil.copy(os.path.join(os.environ["BUILD"], "fathom"), path)
    with open(path, "rb") as file:
        content = file.read()
    functions = re.findall(r"^0*([0-9a-f]+) [Tt] ", run("nm", path), re.M)
    given = "".join(f"0x{f}\n" for f in functions)
    rng = random.Random(1)
    seen = set()
    for i in range(RANDOM_RUNS):
        command = ([FATHOM, "addr", "--no-cache", "--threads", "4", path],
                   [FATHOM, "cache", "--cache-dir", f"{folder}/cache", "--threads", "4", "build", path])[i % 2]
        cut = threading.Timer(rng.random() * 0.05, os.truncate, (path, rng.randrange(len(content))))
        cut.start()
        outcome = ask(command, given)
        cut.join()
        restore(path, content)
        shutil.rmtree(f"{folder}/cache", ignore_errors=True)
        seen.add(outcome[0])
        assert outcome[0] in (0, 1, 2), f"run {i}: {outcome[0]}, {outcome[2]}"
        assert outcome[0] != 2 or SAYS in outcome[2] or "is empty" in outcome[2], outcome[2]
    assert 2 in seen, "no run read the file after it was truncated"


# What runs and what was stored.

def add_process_tests(verb, command, status):
    def each_call(folder):
        path = told_library(folder, "victim.so")
        with open(path, "rb") as file:
            content = file.read()
        with Told([told_build(folder, "told", "-ldl", "-pthread")]) as program:
            code = program.tell(f"open {path}")["exported_code"]
            words = [word.format(pid=program.pid, folder=folder, code=hex(code)) for word in command]
            refused = 0

            def check(whole, outcome):
                nonlocal refused
                answers = outcome[1].splitlines()
                if outcome[0] == 2:
                    refused += 1
                    assert re.search(f"{path}: {SAYS}", outcome[2]), outcome
                else:
                    assert outcome[0] in (0, 1), outcome
                    # An answer is that of the whole file, or has no name; what found nothing says that the file
                    # is missing.
                    wrong = [a for a in answers if a not in whole[1] and re.search(r"[a-z]+_(code|in)", a)]
                    assert all(" ?? (" in a for a in wrong) and (not wrong or path in outcome[2]), (wrong, outcome)
                    refused += outcome[:2] != whole

            sweep(folder, path, content, [FATHOM, *words], "", check)
            assert refused or verb == "snapshot", "no run read the file after it was truncated"

    SUITE.add(f"{verb} of a process: one of its libraries truncated before each system call", each_call)


for name, words in {"addr": ["addr", "--no-cache", "{pid}", "{code}"],
                    "find": ["find", "--no-cache", "{pid}", "exported_code", "/hidden_in/"],
                    "disasm": ["disasm", "--no-cache", "{pid}", "{code}"],
                    "snapshot": ["snapshot", "{pid}", "{folder}/stored"]}.items():
    add_process_tests(name, words, 2)


@test("addr of a snapshot and of a core that are truncated before each system call")
def stored(folder):
    with Told([told_build(folder, "told", "-ldl", "-pthread")]) as program:
        run(FATHOM, "snapshot", program.pid, f"{folder}/snapshot")
        core = core_of(program.pid, folder)
        code = program.places["visible_code"]
        for path in (f"{folder}/snapshot", core):
            with open(path, "rb") as file:
                content = file.read()
            refused = 0

            def check(whole, outcome, path=path):
                nonlocal refused
                if outcome[:2] != whole:
                    refused += 1
                    assert outcome[0] == 2 and f"{path}: {SAYS}" in outcome[2], outcome

            sweep(folder, path, content, [FATHOM, "addr", "--no-cache", path, hex(code)], "", check)
            assert refused


sys.exit(SUITE.run())
