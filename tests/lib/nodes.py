# SPDX-License-Identifier: MIT
"""The nodes of this machine."""
import functools
import os

import tap

from ask import execute

# Those whose frames are read.
KNOWN = ("16", "18", "20", "22")


@functools.cache
def nodes():
    """{version: path} of the nodes here: that of the system, and of FATHOM_NODES, a list like PATH of folders."""
    found = {}
    folders = [f for f in os.environ.get("FATHOM_NODES", "").split(os.pathsep) if f]
    for path in ("/usr/bin/node", *(os.path.join(f, "node") for f in folders)):
        if os.access(path, os.X_OK):
            asked = execute(path, "-p", "process.versions.node.split('.')[0]")
            if asked.returncode == 0:
                found.setdefault(asked.stdout.strip(), path)
    return found


def each_known():
    """(version, path) of each node whose frames are read; skips if there is none."""
    found = [(version, path) for version, path in nodes().items() if version in KNOWN]
    if not found or os.uname().machine != "x86_64":
        raise tap.Skip("there is no node 16, 18, 20 or 22 for x86-64 (nodejs)")
    return found
