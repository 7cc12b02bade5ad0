# SPDX-License-Identifier: MIT
"""Asks fathom where names are, and a program that knows it itself."""
import os
import shutil

import building
from ask import find
from running import Told

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


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


def build(folder, name="asked", *options, source="asked.c", compiler="gcc"):
    """A program of lib/programs, or of another folder."""
    return building.build(os.path.join(folder, name), os.path.join(PROGRAMS, source), *options, compiler=compiler)


def library(folder, name="libversions.so", *options, source="versions.c", **more):
    script = ["-Wl,--version-script=" + os.path.join(PROGRAMS, "versions.map")] if source == "versions.c" else []
    return build(folder, name, "-shared", "-fPIC", "-Wl,-soname," + os.path.basename(name), *script, *options,
                 source=source, **more)


class Asked(Told):
    """A running lib/programs/asked.c, or another that tells where it has what."""

    def default(self, name):
        """What dlsym(RTLD_DEFAULT) says of @name there; None for NULL."""
        return self.tell(f"default {name}")[name] or None


def asked(folder, *options, env=None, wrapper=(), root="", **more):
    """A running asked.c: started by @wrapper, and copied below @root, which that changes to."""
    path = build(folder, "asked", "-ldl", "-pthread", *options, **more)
    if root:
        shutil.copy(path, root + path)
    return Asked([*wrapper, path], env=dict(os.environ, **env) if env else None)

