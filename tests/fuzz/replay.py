#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays the kept corpora and all that was ever found through the fuzz targets. Prints TAP; BUILD names the build
folder."""
import glob
import os
import subprocess
import sys
import tarfile
import tempfile

TIMEOUT = 600
WRAPPER = os.environ.get("WRAPPER", "").split()
here = os.path.dirname(os.path.abspath(__file__))


def inputs(name, folder):
    with tarfile.open(os.path.join(here, "corpus", name + ".tar.xz")) as archive:
        archive.extractall(folder)
    found = glob.glob(os.path.join(here, "findings", name, "*"))
    return sorted(glob.glob(os.path.join(folder, "*"))) + sorted(found)


def replay(program, name):
    """None when all is well, else what is not."""
    with tempfile.TemporaryDirectory() as folder:
        files = inputs(name, folder)
        if not files:
            return "there is no input"
        try:
            run = subprocess.run([*WRAPPER, program, *files], capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return f"no end after {TIMEOUT} s"
        if run.returncode:
            return f"status {run.returncode} of {len(files)} inputs\n" + "\n".join(run.stderr.splitlines()[:40])
    return None


def main():
    programs = sorted(p for p in glob.glob(os.path.join(os.environ["BUILD"], "tests/fuzz/replay_*")) if os.path.isfile(p))
    if os.environ.get("TAP_LIST"):
        print("\n".join(f"fuzz: fuzz inputs of {os.path.basename(p).removeprefix('replay_')}" for p in programs))
        return 0
    print(f"1..{len(programs)}")
    failed = not programs
    for number, program in enumerate(programs, 1):
        name = os.path.basename(program).removeprefix("replay_")
        why = replay(program, name)
        print(f"{'not ok' if why else 'ok'} {number} - fuzz inputs of {name}")
        if why:
            failed = True
            print("".join(f"# {line}\n" for line in why.splitlines()), end="")
    return 1 if failed else 0


sys.exit(main())
