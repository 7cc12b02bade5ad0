# SPDX-License-Identifier: MIT
"""Tests of programs from Debian's sources, beside the logs of twins that are built with -finstrument-functions."""
import glob
import os
import shutil

import entered
import tap

from amounts import amount
from ask import fathom, run
from self_text import BY_TEXT, variables
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


def check_log(log, expected):
    (found,) = entered.traced(log).values()
    entered.check_equal(found[found.index("main"):], expected)


def check(folder, compiler, sources, flags, words, least):
    """Whether a program is traced as its twin tells, call by call, from outside and by itself; at least @least of them."""
    # Names of one length: a program may copy them.
    path, twin = os.path.join(folder, "mine"), os.path.join(folder, "twin")
    # No function but those that the twin has, too: calls at the end stay calls, loops stay loops.
    flags = [*flags, "-fno-optimize-sibling-calls", "-fno-builtin", "-w", "-o"]
    run(compiler, SITES, *flags, path, *sources, "-lm")
    run(compiler, "-finstrument-functions", *flags, twin, *sources, entered.hook(folder, compiler), "-lm")
    prefix = os.path.join(folder, "theirs")
    said = run("env", f"ENTERED={prefix}", "setarch", "-R", twin, *words)
    (expected,) = entered.logs(twin, prefix).values()
    log = os.path.join(folder, "log")
    done = fathom("trace", "--no-fold", "--log", log, "--", "setarch", "-R", path, *words, status=0)
    assert done.stdout == said, (done.stdout, said)
    assert len(expected) >= least, len(expected)
    check_log(log, expected)
    # It traces itself, by changing its own text.
    env = [f"{name}={value}" for name, value in variables(f"{BY_TEXT} --no-fold --log {log}").items()]
    assert run("setarch", "-R", "env", *env, path, *words) == said
    check_log(log, expected)
    return said


def add_lua(compiler):
    @test(f"sources: each call of lua, built by {compiler}, is that which its twin tells")
    def _(folder):
        said = check(folder, compiler, files_of("lua"), LUA, [os.path.join(PROGRAMS, "work.lua")], 20000)
        # 144; 1 + 4 + ... + 400 + (1 + 2 + ... + 20) + 20; each third fails by itself, the others by nil
        assert said.split()[:3] == ["144", "3100", "20"], said


def add_sqlite(compiler):
    @test(f"sources: each call of sqlite3, built by {compiler}, is that which its twin tells")
    def _(folder):
        script = os.path.join(PROGRAMS, "work.sql")
        said = check(folder, compiler, files_of("sqlite3"), SQLITE, ["-batch", ":memory:", f".read {script}"], 50000)
        if shutil.which("sqlite3"):
            assert said == run("sqlite3", "-batch", ":memory:", f".read {script}")


for COMPILER in amount(("gcc", CLANG), ("gcc",)):
    add_lua(COMPILER)
for COMPILER in amount(("gcc", CLANG), (CLANG,)):
    add_sqlite(COMPILER)
