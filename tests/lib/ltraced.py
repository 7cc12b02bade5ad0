# SPDX-License-Identifier: MIT
"""Calls of libraries of a stock program, beside ltrace's, and gdb's breakpoints where ltrace sees none."""
import collections
import json
import os
import re

from ask import fathom, run


def hits_of_stubs(words):
    """Function: how often gdb sees its stub in .plt.got run."""
    path = os.path.realpath(f"/usr/bin/{words[0]}")
    code = run("objdump", "-d", "-j", ".plt.got", path)
    stubs = re.findall(r"^([0-9a-f]+) <(\w+)@plt>:", code, re.M)
    steps = [w for at, _ in stubs for w in ("-ex", f"break *(0x555555554000+0x{at})", "-ex", "ignore $bpnum 1000000")]
    log = run("gdb", "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "set exec-wrapper env -u LINES -u COLUMNS",
              "-ex", "starti", *steps, "-ex", "continue",
              "-ex", "info breakpoints", "--args", path, *words[1:])
    hits = re.findall(r"\n(\d+) +breakpoint +keep y.*(?:\n\tbreakpoint already hit (\d+) time)?", log[log.rindex("\nNum"):])
    assert len(hits) == len(stubs), log
    return {name: int(n) for (_, name), (_, n) in zip(stubs, hits) if n}


def compare(folder, words, least):
    """As many calls of each function as ltrace has, and more than @least; returns what fathom says."""
    log, theirs = os.path.join(folder, "log"), os.path.join(folder, "theirs")
    plain = run(*words)
    assert run("ltrace", "-o", theirs, *words) == plain
    with open(theirs, encoding="utf-8", errors="replace") as f:
        expected = collections.Counter(m[1] for m in (re.match(r"([A-Za-z_0-9]+)\(", line) for line in f) if m)
    done = fathom("trace", "-c", "--json", "--log", log, "--", *words, status=0)
    assert done.stdout == plain, words
    program = os.path.basename(os.path.realpath("/usr/bin/" + words[0]))
    with open(log, encoding="utf-8") as f:
        found = {r["function"]: r["calls"] for r in map(json.loads, f) if os.path.basename(r["module"]) == program}
    # ltrace does not know stubs of functions whose address is taken, too.
    stubs = hits_of_stubs(words)
    assert {n: found.pop(n, 0) for n in stubs} == stubs, (words, stubs)
    # What never returns ltrace leaves out or has, as it comes.
    for name in ("exit", "_exit", "__libc_start_main"):
        expected.pop(name, None)
        found.pop(name, None)
    assert found == expected and sum(found.values()) > least, (words, {k: (found.get(k), expected.get(k)) for k in {*found, *expected}
                                                                      if found.get(k) != expected.get(k)})
    return done.stderr
