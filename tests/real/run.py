#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "real": heavy programs of Debian's own, run for real. Too slow for every commit."""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "stacks"), os.path.join(HERE, "..", "publish"), os.path.join(HERE, "..", "..", "tools"), HERE]
# Its run.py is not ours.
sys.path.append(os.path.join(HERE, "..", "jit"))

import kernel  # noqa: E402
import kernel_log  # noqa: E402
import tap  # noqa: E402

import runtimes  # noqa: E402
import all_threads  # noqa: E402
import find  # noqa: E402
import frozen  # noqa: E402
import jit  # noqa: E402
import left  # noqa: E402
import logs  # noqa: E402
import peers  # noqa: E402
import preloaded  # noqa: E402
import profiled  # noqa: E402
import rows  # noqa: E402
import published  # noqa: E402
import stacks  # noqa: E402
import traced_calls  # noqa: E402
import traced_programs  # noqa: E402
import traced_sources  # noqa: E402
import viewer  # noqa: E402

from ask import run  # noqa: E402
from toolchain import newest  # noqa: E402
from living import PEERS, RANDOM_ADDRESSES, Living, compare, named_data, random_data, why_guessed, why_mapped  # noqa: E402

TESTS = kernel.TESTS + kernel_log.TESTS


def add_comparison(program, peer):
    def call():
        with tempfile.TemporaryDirectory(prefix="fathom-real-") as folder:
            compare(program, peer, folder, why_mapped)
    TESTS.append((f"{RANDOM_ADDRESSES} random addresses of {program} beside {peer}", call))


def add_data(program, peer):
    def call():
        with tempfile.TemporaryDirectory(prefix="fathom-real-") as folder:
            compare(program, peer, folder, why_guessed, random_data, 0.0001)
    TESTS.append((f"{RANDOM_ADDRESSES} random addresses of {program}'s data beside {peer}", call))


def add_named(program, peer):
    def call():
        with tempfile.TemporaryDirectory(prefix="fathom-real-") as folder:
            compare(program, peer, folder, why_guessed, named_data, 1)
    TESTS.append((f"named data of {program} beside {peer}: all has a name, and the same one", call))


for real in ("node", "java", "luajit", "ruby", "lua", "gdb", "sqlite3", "php", "erlang", "postgres", "nginx", "redis"):
    for other in PEERS:
        add_comparison(real, other)
        add_data(real, other)
        add_named(real, other)


def add_stacks(program, peer_names):
    """Stacks beside the peers that are an oracle there: gdb makes up frames in code without rules (V8, HotSpot)."""
    def call():
        with tempfile.TemporaryDirectory(prefix="fathom-real-") as folder, Living(program, folder) as pid:
            peers.settle(pid)
            wrong = peers.compare(pid, {peer: ["-p", pid] for peer in peer_names}, folder, program, (1, 8), peer_names=peer_names)
            assert not wrong, "\n".join(wrong.values())
    TESTS.append((f"stacks of {program} beside {' and '.join(peer_names)}", call))


for real, oracles in (("node", ("gdb", "eu-stack")), ("luajit", ("gdb", "eu-stack")), ("java", ("eu-stack",))):
    add_stacks(real, oracles)


def add_rows(name, pattern, least):
    """All rows of the file that @pattern leads to."""
    def call():
        rows.check([os.path.join(os.environ["BUILD"], "tests", "rows")], os.path.realpath(newest(pattern)), least)
    TESTS.append((f"all rows of {name} are readelf's", call))


add_rows("node", "/usr/bin/node", 100000)
add_rows("libjvm", "/usr/lib/jvm/java-*-openjdk-*/lib/server/libjvm.so", 100000)
add_rows("libLLVM", "/usr/lib/*-linux-gnu/libLLVM*.so.*", 100000)


def add_longer(suite, name, questions):
    """Tests of another suite, with more questions than each commit can wait for."""
    def call():
        out = run(sys.executable, os.path.join(HERE, "..", suite, "run.py"), name, status=None,
                  env=dict(os.environ, QUESTIONS=str(questions), RACED=str(questions)))
        results = re.findall(r"^(?:not )?ok .*", out, re.M)
        assert results and not any(r.startswith("not") for r in results), out
    TESTS.append((f"{suite}: {name}: {questions} questions", call))


add_longer("processes", "opens, closes, makes code and becomes another", 1000000)
add_longer("processes", "where a function is", 1000000)
add_longer("jit", "GDB's list changes every 100000", 400000)
add_longer("jit", "a racing writer", 1000000)
add_longer("jit", "while the code that it is in is replaced", 10000)

TESTS += find.tests()


def add_jit(name, check):
    def call():
        with tempfile.TemporaryDirectory(prefix="fathom-real-") as folder:
            check(folder)
    TESTS.append((name, call))


for title, function in jit.TESTS + stacks.TESTS + runtimes.TESTS + published.TESTS + frozen.TESTS + preloaded.TESTS + traced_calls.TESTS + traced_programs.TESTS + traced_sources.TESTS + viewer.TESTS + left.TESTS + all_threads.TESTS + logs.TESTS + profiled.TESTS:
    add_jit(title, function)

sys.exit(tap.run("real", tap.chosen(TESTS)))
