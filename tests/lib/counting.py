# SPDX-License-Identifier: MIT
"""Counts what a run costs, in instructions: the same on every machine, however busy it is."""
import os
import re
import shutil
import subprocess
import tempfile

import tap


def instructions(command, text=""):
    """How many instructions @command executes with @text as its standard input, a file: of a pipe, what is ready at
    a time varies."""
    if not shutil.which("valgrind"):
        raise tap.Skip("valgrind is not installed")
    if os.environ.get("WRAPPER"):
        raise tap.Skip("what has a wrapper is not counted")
    with tempfile.TemporaryFile("w+") as source:
        source.write(text)
        source.seek(0)
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)],
                              stdin=source, capture_output=True, text=True, check=False)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    # An instrumented build has a memory of its own, which valgrind does not run.
    if not counted and ("Sanitizer" in done.stderr or "libasan" in done.stderr or done.returncode < 0):
        raise tap.Skip("valgrind does not run an instrumented build")
    assert counted, done.stderr
    return int(counted[1])
