# SPDX-License-Identifier: MIT
"""The Rubies of this machine."""
import functools
import os

import tap

from ask import execute

# Those whose frames are read.
KNOWN = ("2.7", "3.0", "3.1", "3.2", "3.3", "3.4")


@functools.cache
def rubies():
    """{version: path} of the Rubies here: that of the system, and of FATHOM_RUBIES, a list like PATH of folders."""
    found = {}
    folders = [f for f in os.environ.get("FATHOM_RUBIES", "").split(os.pathsep) if f]
    for path in ("/usr/bin/ruby", *(os.path.join(f, "ruby") for f in folders)):
        if os.access(path, os.X_OK):
            asked = execute(path, "-e", "puts RUBY_VERSION[/\\d+\\.\\d+/], RUBY_ENGINE")
            version, kind = (asked.stdout.split() + ["", ""])[:2]
            if kind == "ruby":
                found.setdefault(version, path)
    return found


def each_known():
    """(version, path) of each Ruby whose frames are read; skips if there is none."""
    found = [(version, path) for version, path in rubies().items() if version in KNOWN]
    if not found or os.uname().machine != "x86_64":
        raise tap.Skip("there is no Ruby 2.7, or 3.0 to 3.4, for x86-64 (ruby)")
    return found
