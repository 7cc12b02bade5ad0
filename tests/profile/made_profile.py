# SPDX-License-Identifier: MIT
"""Profiles that are made of lines (make_profile.c)."""
import collections
import json
import os

from ask import FATHOM, execute

MAKE = os.path.join(os.environ["BUILD"], "tests", "make_profile")


def make(folder, lines, name="profile"):
    """Makes a profile of @lines; returns its path."""
    path = os.path.join(folder, name)
    done = execute(MAKE, input=("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), text=False)
    assert not done.returncode, done.stderr
    with open(path, "wb") as f:
        f.write(done.stdout)
    return path


def same(one, other):
    assert one == other, f"{one}\nis not\n{other}"


def report(path, *words, status=0):
    """What fathom report prints as JSON, by type."""
    found = collections.defaultdict(list)
    for line in execute(FATHOM, "report", "--json", "--no-cache", *words, path, status=status).stdout.splitlines():
        record = json.loads(line)
        found[record["type"]].append(record)
    return found
