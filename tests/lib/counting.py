# SPDX-License-Identifier: MIT
"""Counts what a run costs: in instructions, the same on every machine, however busy it is; or in processor time and
memory."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import tap


def cost_of(*command, **options):
    """(status, seconds of processor time, peak of memory in bytes) of a run."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
    with tempfile.NamedTemporaryFile("r") as peak:
        launcher = os.path.join(os.environ["BUILD"], "tests", "peak_of")
        process = subprocess.Popen([launcher, peak.name, *(str(word) for word in command)], **options)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_utime + usage.ru_stime, int(peak.read()) << 10


def is_instrumented(program):
    """Whether a sanitizer is in it."""
    with open(program, "rb") as f:
        return re.search(rb"__[aut]b?san_", f.read()) is not None


def is_optimised():
    """Whether the compiler was to optimise the build."""
    with open(os.path.join(os.environ["BUILD"], "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
        return {option["name"]: option["value"] for option in json.load(f)}["optimization"] != "0"


def instructions(command, text=""):
    """How many instructions @command executes with @text as its standard input, a file: of a pipe, what is ready at
    a time varies."""
    if not shutil.which("valgrind"):
        raise tap.Skip("valgrind is not installed")
    if os.environ.get("WRAPPER"):
        raise tap.Skip("what has a wrapper is not counted")
    if is_instrumented(command[0]):
        raise tap.Skip("an instrumented build would count its own checks, too")
    if not is_optimised():
        raise tap.Skip("a build without optimisation executes more")
    with tempfile.TemporaryFile("w+") as source:
        source.write(text)
        source.seek(0)
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)],
                              stdin=source, capture_output=True, text=True, check=False)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    assert counted, done.stderr
    return int(counted[1])
