# SPDX-License-Identifier: MIT
"""The Luas of this machine."""
import functools
import os

import tap

from ask import execute

# Those whose frames are read, by the names of their programs.
KNOWN = ("5.3", "5.4")


@functools.cache
def luas():
    """{(version, where): path} of the Luas here: those of the system, and of FATHOM_LUAS, a list like PATH of folders."""
    found = {}
    for folder in ("/usr/bin", *(f for f in os.environ.get("FATHOM_LUAS", "").split(os.pathsep) if f)):
        for version in KNOWN:
            path = os.path.join(folder, "lua" + version)
            if os.access(path, os.X_OK) and execute(path, "-v").stdout.startswith("Lua " + version):
                found[version, folder] = path
    return found


def each_known():
    """(version, path) of each Lua whose frames are read; skips if there is none."""
    found = [(version, path) for (version, _), path in luas().items()]
    if not found or os.uname().machine != "x86_64":
        raise tap.Skip("there is no Lua 5.3 or 5.4 for x86-64 (lua5.3 lua5.4)")
    return found
