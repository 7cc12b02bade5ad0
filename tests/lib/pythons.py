# SPDX-License-Identifier: MIT
"""The CPythons of this machine."""
import functools
import os

import tap

from ask import execute

# Those whose frames are read.
KNOWN = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


@functools.cache
def pythons():
    """{version: path} of the CPythons here: those that the system has, and of FATHOM_PYTHONS, a list like PATH of folders."""
    found = {}
    folders = [f for f in os.environ.get("FATHOM_PYTHONS", "").split(os.pathsep) if f]
    names = ["/usr/bin/python3", *(f"/usr/bin/python3.{n}" for n in range(8, 16)), *(os.path.join(f, "python3") for f in folders)]
    for path in names:
        if os.access(path, os.X_OK):
            asked = execute(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)")
            version, _, kind = asked.stdout.strip().partition(" ")
            if kind == "cpython":
                found.setdefault(version, path)
    return found


def each_known():
    """(version, path) of each CPython whose frames are read; skips if there is none."""
    found = [(version, path) for version, path in pythons().items() if version in KNOWN]
    if not found:
        raise tap.Skip("there is no CPython 3.8 to 3.14 (python3)")
    return found
