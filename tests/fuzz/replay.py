#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays the kept corpora through the fuzz targets. Prints TAP; BUILD names the build folder."""
import glob
import os
import subprocess
import sys

TIMEOUT = 120
here = os.path.dirname(os.path.abspath(__file__))
programs = sorted(p for p in glob.glob(os.path.join(os.environ["BUILD"], "tests/fuzz/replay_*")) if os.path.isfile(p))
print(f"1..{len(programs)}")
failed = not programs
for number, program in enumerate(programs, 1):
    name = os.path.basename(program).removeprefix("replay_")
    files = sorted(glob.glob(os.path.join(here, "corpus", name, "*")))
    try:
        run = subprocess.run([program, *files], capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
        fine, why = run.returncode == 0 and files, f"status {run.returncode}, {len(files)} inputs"
        report = run.stderr
    except subprocess.TimeoutExpired:
        fine, why, report = False, f"no end after {TIMEOUT} s", ""
    print(f"{'ok' if fine else 'not ok'} {number} - {name}: {len(files)} inputs" + ("" if fine else f" ({why})"))
    if not fine:
        failed = True
        print("".join(f"# {line}\n" for line in report.splitlines()[:40]))
sys.exit(1 if failed else 0)
