# SPDX-License-Identifier: MIT
"""A million addresses from numpy, beside the same call from C (batch.c).

As a program, python_batch.py FILE ADDRESSES names|lines: prints what batch.c prints, in the same units."""
import os
import random
import statistics
import subprocess
import sys
import time
from array import array

HERE = os.path.dirname(os.path.abspath(__file__))
N = 1000000
RUNS = 5


def python_benches(command, path, folder):
    """The first call, those that follow, and one whose symbols, files and lines are wanted as columns."""
    from addresses import text_of
    from measure import Told, Tool
    build = os.path.abspath(os.path.dirname(command))
    module = os.path.join(build, "python")
    if not os.path.exists(os.path.join(module, "fathom")):
        return
    caller = os.path.join(folder, "batch")
    libraries = os.path.join(build, "src")
    subprocess.run(["gcc", "-O2", "-o", caller, os.path.join(HERE, "batch.c"), "-I", os.path.join(HERE, "..", "include"), "-L", libraries,
                    "-lfathom", "-Wl,-rpath," + libraries], check=True)
    start, size = text_of(path)
    rng = random.Random(3)
    asked = os.path.join(folder, "batch-addresses")
    with open(asked, "wb") as f:
        array("Q", (start + rng.randrange(size) for _ in range(N))).tofile(f)
    for what in ("names", "lines"):
        python = ["env", f"PYTHONPATH={module}", "/usr/bin/python3", os.path.abspath(__file__), path, asked, what]
        for part, name in enumerate(("first-call", "call", "columns")):
            yield Told(f"python-1m-{what}-{name}", part, [Tool("fathom", python), Tool("C", [caller, path, asked, what])])


def main(path, asked, what):
    import fathom
    import numpy
    addresses = numpy.fromfile(asked, numpy.uint64)
    target = fathom.Session(cache=False).open(path)
    took = []
    for _ in range(RUNS + 1):
        answers = None
        begun = time.perf_counter_ns()
        answers = target.addr(addresses, names_only=what == "names")
        took.append(time.perf_counter_ns() - begun)
    begun = time.perf_counter_ns()
    made = [answers.symbol, *([answers.file, answers.line] if what == "lines" else [])]
    columns = time.perf_counter_ns() - begun
    assert all(len(column) == len(addresses) for column in made)
    call = statistics.median(took[1:])
    print(took[0], call, call + columns)


if __name__ == "__main__":
    main(*sys.argv[1:])
