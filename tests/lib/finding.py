# SPDX-License-Identifier: MIT
"""Asks fathom where names are, and programs that know it themselves."""
import json
import subprocess

from ask import FATHOM
from told import Told


def find(target, queries, *options, status=(0, 1), **more):
    """fathom's matches, as records, and what it printed to standard error."""
    queries = [queries] if isinstance(queries, str) else list(queries)
    command = [FATHOM, "find", "--json", "--no-cache", *options, str(target), *queries]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=120, **more)
    assert done.returncode in status, f"{command}: {done.returncode} {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def address(record):
    return record["address"] and int(record["address"], 16)


def places(target, queries, *options):
    """The addresses of all matches of each query: {query: [address]}."""
    records, _ = find(target, queries, *options)
    found = {}
    for record in records:
        found.setdefault(record["query"], []).append(address(record))
    return found


def dynamic(target, query, *options):
    """The match that the dynamic linker would answer, or None."""
    records, _ = find(target, query, *options)
    first = [r for r in records if r["rank"] == 0]
    assert len(first) <= 1, first
    assert not first or records[0] == first[0], records
    return first[0] if first else None


class Asked(Told):
    """A running find/programs/asked.c."""

    def default(self, name):
        """What dlsym(RTLD_DEFAULT) says of @name there; None for NULL."""
        return self.tell(f"default {name}")[name] or None
