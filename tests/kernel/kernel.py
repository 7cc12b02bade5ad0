# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to, and how fathom is asked about the kernel."""
import tap

from ask import fathom, records_of


SUITE = tap.Suite("kernel", "become another user")
test = SUITE.test


def below(root):
    return [] if root is None else ["--sysroot", root]


def ask(addresses, *options, root=None, user=None, stream=False, target="kernel", **more):
    """fathom's answers, as records, and what it printed to standard error."""
    texts = [a if isinstance(a, str) else hex(a) for a in addresses]
    words, given = ([], {"input": "".join(t + "\n" for t in texts)}) if stream else (texts, {})
    done = fathom("addr", "--json", "--no-cache", *options, *below(root), target, *words, status=(0, 1), user=user, **given, **more)
    records = records_of(done.stdout)
    assert len(records) == len(texts), f"{len(texts)} addresses, {len(records)} answers"
    complete = all(r["symbol"] for r in records)
    assert done.returncode == (0 if complete else 1), f"status {done.returncode}"
    return records, done.stderr


def find(queries, *options, root=None, user=None, **more):
    """The matches of fathom find, as records, those that only say why there is none too, and its complaints."""
    done = fathom("find", "--json", "--no-cache", *options, *below(root), "kernel", *queries, status=(0, 1), user=user, **more)
    records = records_of(done.stdout)
    assert {r["query"] for r in records} == set(queries), records
    answered = {r["query"] for r in records if not r["reason"]}
    assert done.returncode == (0 if answered == set(queries) else 1), f"status {done.returncode}"
    return records, done.stderr


def at(record):
    return int(record["address"], 16)
