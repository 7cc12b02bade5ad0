# SPDX-License-Identifier: MIT
"""Tests of programs from Debian's sources, beside the logs of twins that are built with -finstrument-functions."""
import array
import glob
import os
import shutil

import building
import tap

from ask import fathom, run
from traced import CLANG, PROGRAMS, SITES, test

SOURCES = os.path.join(os.environ["BUILD"], "corpus", "sources")
SQLITE = ("-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION")
# Nothing that depends on addresses: a fixed seed, and a cache of strings that has one place for all.
LUA = ("-DLUA_COMPAT_5_3", "-Dluai_makeseed(L)=0x1234", "-DSTRCACHE_N=1", "-DSTRCACHE_M=2", "-O1", "-fno-inline")


def files_of(name):
    """The program's sources, and the folder that they are in."""
    found = glob.glob(os.path.join(SOURCES, f"{name}-*"))
    if not found:
        raise tap.Skip("no source packages could be fetched")
    if name == "sqlite3":
        return [os.path.join(found[0], f) for f in ("sqlite3.c", "shell.c")]
    return [f for f in sorted(glob.glob(os.path.join(found[0], "src", "*.c"))) if os.path.basename(f) != "luac.c"]


def functions_of(path):
    """Names at each address, less that of main."""
    symbols = building.nm(path)
    start = symbols["main"][0][0]
    names = {}
    for name, found in symbols.items():
        for value, kind in found:
            if kind in "tTwW":
                names.setdefault(value - start, set()).add(name)
    return names


def entered(path, words, log, **more):
    """What the twin at @path prints, and the names of what it has entered."""
    said = run("env", f"ENTERED={log}", "setarch", "-R", path, *words, **more)
    names, addresses = functions_of(path), array.array("Q")
    with open(log, "rb") as f:
        addresses.frombytes(f.read())
    return said, [names[a - addresses[0]] for a in addresses[1:]]


def check(folder, compiler, sources, flags, words, least):
    """Whether a program is traced as its twin tells, call by call; at least @least of them."""
    # Names of one length: a program may copy them.
    path, twin = os.path.join(folder, "mine"), os.path.join(folder, "twin")
    # No function but those that the twin has, too: calls at the end stay calls, loops stay loops.
    flags = [*flags, "-fno-optimize-sibling-calls", "-fno-builtin", "-w", "-o"]
    hook = os.path.join(folder, "entered.o")
    run(compiler, "-c", "-O1", "-o", hook, os.path.join(PROGRAMS, "entered.c"))
    run(compiler, SITES, *flags, path, *sources, "-lm")
    run(compiler, "-finstrument-functions", *flags, twin, *sources, hook, "-lm")
    said, expected = entered(twin, words, os.path.join(folder, "theirs"))
    log = os.path.join(folder, "log")
    done = fathom("trace", "--no-fold", "--log", log, "--", "setarch", "-R", path, *words, status=0)
    assert done.stdout == said, (done.stdout, said)
    with open(log, encoding="utf-8") as f:
        found = [line.split("&", 1)[1].rstrip("\n") for line in f if line.startswith("FUN")]
    found = found[found.index("main"):]
    assert len(expected) >= least and len(found) == len(expected), (len(found), len(expected))
    for i, (name, names) in enumerate(zip(found, expected)):
        assert name in names, f"call {i}: {name} instead of {names}"
    return said


for COMPILER in ("gcc", CLANG):
    @test(f"sources: each call of lua, built by {COMPILER}, is that which its twin tells")
    def _(folder, compiler=COMPILER):
        said = check(folder, compiler, files_of("lua"), LUA, [os.path.join(PROGRAMS, "work.lua")], 20000)
        # 144; 1 + 4 + ... + 400 + (1 + 2 + ... + 20) + 20; each third fails by itself, the others by nil
        assert said.split()[:3] == ["144", "3100", "20"], said

    @test(f"sources: each call of sqlite3, built by {COMPILER}, is that which its twin tells")
    def _(folder, compiler=COMPILER):
        script = os.path.join(PROGRAMS, "work.sql")
        said = check(folder, compiler, files_of("sqlite3"), SQLITE, ["-batch", ":memory:", f".read {script}"], 50000)
        if shutil.which("sqlite3"):
            assert said == run("sqlite3", "-batch", ":memory:", f".read {script}")
