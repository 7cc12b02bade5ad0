# SPDX-License-Identifier: MIT
"""The PHPs of this machine."""
import functools
import os

import tap

from ask import execute

# Those whose frames are read.
KNOWN = ("7.4", "8.1", "8.2", "8.3", "8.4")


@functools.cache
def phps():
    """{version: path} of the PHPs here: that of the system, and of FATHOM_PHPS, a list like PATH of folders."""
    found = {}
    folders = [f for f in os.environ.get("FATHOM_PHPS", "").split(os.pathsep) if f]
    for path in ("/usr/bin/php", *(os.path.join(f, "php") for f in folders)):
        if os.access(path, os.X_OK):
            asked = execute(path, "-n", "-r", "echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;")
            found.setdefault(asked.stdout.strip(), path)
    return found


def each_known():
    """(version, path) of each PHP whose frames are read; skips if there is none."""
    found = [(version, path) for version, path in phps().items() if version in KNOWN]
    if not found:
        raise tap.Skip("there is no PHP 7.4, or 8.1 to 8.4 (php-cli)")
    return found
