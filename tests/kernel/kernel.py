# SPDX-License-Identifier: MIT
"""Asks fathom about the kernel."""
import json
import os
import subprocess

from ask import FATHOM

NOBODY = 65534


def test_list():
    """A list of (name, function) and what adds to it."""
    tests = []

    def test(name):
        def add(function):
            tests.append((name, function))
            return function
        return add
    return tests, test


def ask(addresses, *options, root=None, user=None, stream=False, target="kernel"):
    """fathom's answers, as records, and what it printed to standard error."""
    texts = [a if isinstance(a, str) else hex(a) for a in addresses]
    command = [FATHOM, "addr", "--json", "--no-cache", *options]
    if root is not None:
        command += ["--sysroot", root]
    command.append(target)
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    if not stream:
        command += texts
    done = subprocess.run(command, input="".join(t + "\n" for t in texts) if stream else "",
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 1), f"{command}: {done.returncode} {done.stderr}"
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(records) == len(texts), f"{len(texts)} addresses, {len(records)} answers"
    complete = all(r["symbol"] for r in records)
    assert done.returncode == (0 if complete else 1), f"status {done.returncode}"
    return records, done.stderr


def find(queries, *options, root=None, user=None):
    """The matches of fathom find, as records, those that only say why there is none too, and its complaints."""
    command = [FATHOM, "find", "--json", "--no-cache", *options]
    if root is not None:
        command += ["--sysroot", root]
    command += ["kernel", *queries]
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 1), f"{command}: {done.returncode} {done.stderr}"
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {r["query"] for r in records} == set(queries), records
    answered = {r["query"] for r in records if not r["reason"]}
    assert done.returncode == (0 if answered == set(queries) else 1), f"status {done.returncode}"
    return records, done.stderr


def at(record):
    return int(record["address"], 16)


def refused(*arguments):
    """What fathom addr says when it cannot open its target."""
    done = subprocess.run([FATHOM, "addr", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 2 and not done.stdout, f"{done.returncode} {done.stdout}"
    return done.stderr


def is_root():
    return os.geteuid() == 0
