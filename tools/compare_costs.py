#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_costs.py OLD NEW: the instructions that two builds of the command execute for the same questions, by callgrind, which
counts the same on a busy machine. Prints a line for each question; fails if one takes 3 % more than it did."""
import os
import random
import re
import subprocess
import sys
import tempfile

MOST = 1.03
# Counts that are smaller hold mostly the start of the program.
LIBRARY = "/usr/lib/x86_64-linux-gnu/libc.so.6"
PYTHON = "/usr/bin/python3"


def functions_of(path, most):
    """Addresses within functions of the file, by its dynamic symbols; the same in each run."""
    done = subprocess.run(["nm", "-D", "--defined-only", "-S", path], capture_output=True, text=True, check=True)
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [TW] ", done.stdout, re.M)
    rng = random.Random(4)
    return [hex(int(start, 16) + rng.randrange(int(size, 16))) for start, size in rng.choices(found, k=most) if int(size, 16)]


def core_of(folder):
    """A core of a python3 with some calls on its stack."""
    script = "import time\ndef f(n):\n    f(n - 1) if n else time.sleep(60)\nf(30)"
    with subprocess.Popen([PYTHON, "-c", script]) as child:
        path = os.path.join(folder, "core")
        try:
            subprocess.run(["gcore", "-o", path, str(child.pid)], capture_output=True, check=True)
        finally:
            child.kill()
        return f"{path}.{child.pid}"


def trace_of(command, folder):
    """A trace file of lua by the older build, which both read."""
    path = os.path.join(folder, "trace")
    work = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "calls", "programs", "work.lua")
    subprocess.run([command, "trace", "-o", path, "--", "lua5.4", work], capture_output=True, check=True)
    return path


def questions(old, folder):
    """(what, arguments, standard input)"""
    many = "\n".join(functions_of(LIBRARY, 2000)) + "\n"
    core = core_of(folder)
    trace = trace_of(old, folder)
    fixed = ["--no-cache", "--threads", "1"]
    yield "addr: one address of libc", ["addr", *fixed, LIBRARY, functions_of(LIBRARY, 1)[0]], ""
    yield "addr: 2,000 addresses of libc", ["addr", *fixed, LIBRARY], many
    yield "addr: 2,000 addresses of libc, JSON", ["addr", *fixed, "--json", LIBRARY], many
    yield "addr: 2,000 names of libc", ["addr", *fixed, "--names-only", LIBRARY], many
    yield "addr: 2,000 addresses of python3", ["addr", *fixed, PYTHON], "\n".join(functions_of(PYTHON, 2000)) + "\n"
    yield "find: a name of libc", ["find", "--threads", "1", LIBRARY, "malloc"], ""
    yield "find: a pattern in python3", ["find", "--threads", "1", PYTHON, "Py*_New"], ""
    yield "find: inlined copies in libc", ["find", "--threads", "1", "--inlined", LIBRARY, "tcache_get"], ""
    yield "disasm: a function of libc", ["disasm", *fixed, LIBRARY, "qsort"], ""
    yield "stack: a core of python3", ["stack", *fixed, core], ""
    yield "stack --rules: libc", ["stack", "--rules", *fixed, LIBRARY], ""
    yield "addr2line: 2,000 addresses of libc", ["addr2line", "-fi", "-e", LIBRARY], many
    yield "llvm-symbolizer: 2,000 addresses of libc", ["llvm-symbolizer", f"--obj={LIBRARY}"], many
    yield "trace --read: lua, as text", ["trace", "--read", trace], ""
    yield "trace --read: lua, counted", ["trace", "--read", trace, "-c"], ""


def count(command, words, text):
    with tempfile.TemporaryFile("w+") as source:
        source.write(text)
        source.seek(0)
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", command, *words], stdin=source, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found:
        sys.exit(f"{command} {' '.join(words)}: {done.stderr.strip().splitlines()[-1]}")
    return int(found[1])


def main():
    old, new = sys.argv[1:]
    slower = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, words, text in questions(old, folder):
            before, after = (count(command, words, text) for command in (old, new))
            slower += after > before * MOST
            print(f"{what:44} {before:14,} {after:14,} {after / before:6.3f}", flush=True)
    print(f"{slower} questions take more than {MOST:.2f} times the instructions")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
