# SPDX-License-Identifier: MIT
"""Truth while code comes, moves and goes all the time."""
import glob
import mmap
import os
import random
import re
import struct
import time

import told

from amounts import amount
from ask import FATHOM, addr, find, run
from running import Asked, Running
from suite import build, test

ASKED = int(os.environ.get("QUESTIONS", amount(20000)))


class Churning(Running):
    """A running programs/churn.c, which registers and unregisters code every @pause nanoseconds, and logs when."""

    def __init__(self, folder, pause):
        self.log = os.path.join(folder, f"log{pause}")
        super().__init__([build(folder, "churn.c"), self.log, pause])
        self.code = int(self.line(), 16)

    def logged(self):
        """The log as it is now and will be."""
        with open(self.log, "rb") as file:
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def check(self, log, name, before, after):
        """That the code called @name was there at some time between @before and @after; where, as an offset."""
        number = int(name[1:])
        came, left = struct.unpack_from("<QQ", log, number * 16)
        assert came and came <= after and (not left or left >= before), \
            f"{name} was there from {came} to {left}, asked from {before} to {after}"
        return number // 3 % 5 * 64


def ask_churn(folder, pause, asked):
    """Asks a churning program; returns how many answers had names, and how many said "changed"."""
    named = changed = 0
    with Churning(folder, pause) as churning, churning.logged() as log, Asked(churning.pid) as asker:
        rng = random.Random(2)
        for _ in range(asked):
            at = rng.randrange(5 * 64)
            before = time.monotonic_ns()
            record = asker.one(churning.code + at)
            after = time.monotonic_ns()
            if record["symbol"] is None:
                changed += record["reason"] == "changed"
                continue
            named += 1
            place = churning.check(log, record["symbol"], before, after)
            assert place <= at < place + 64 and record["offset"] == at - place, record
        assert churning.is_running(), "the program has ended: ask less"
    return named, changed


def add_churn(nanoseconds, asked):
    @test(f"GDB's list changes every {nanoseconds} ns and is asked {asked} times: no name is of code that is not there")
    def _(folder):
        named, changed = ask_churn(folder, nanoseconds, asked)
        assert named + changed > asked // 10, (named, changed)
        assert changed < asked // 10 or nanoseconds < 100000, (named, changed)


# Faster than an answer is made, as fast, and so slow that what is not there is not there all the time that it takes.
for nanoseconds in (4000, 100000, 2000000):
    add_churn(nanoseconds, ASKED // 2)


RACED = int(os.environ.get("RACED", amount(100000)))


# How an asker is told which code it asks about: enum kind of lib/programs/changing.h.
KINDS = {"libraries": 0, "GDB's list": 1, "a perf map": 2, "a jitdump": 3}


class Racing(Running):
    """A running programs/racing.c."""

    def __init__(self, folder):
        turns = [told.build(folder, f"turn{i}.so", "-shared", "-fPIC", f"-DNAME=hidden_in_{i}", source="turn.c")
                 for i in range(4)]
        self.log = os.path.join(folder, "log")
        with open(self.log, "wb") as log:
            log.truncate(1 << 20)
        super().__init__([build(folder, "racing.c", "-ldl"), self.log, folder, "100000", *turns])

    def ask(self, count, how, kind):
        """How many of @count answers had names, had none, could not be judged, were "changed"."""
        said = run(os.path.join(os.environ["BUILD"], "tests", "asker"), self.pid, self.log, count, how, kind,
                   status=None, timeout=None)
        counts = re.fullmatch(r"(\d+) named, (\d+) not, (\d+) could not be judged, (\d+) changed, 0 refused\n", said)
        assert counts, said
        return [int(n) for n in counts.groups()]

    def __exit__(self, *_):
        super().__exit__()
        for path in glob.glob(f"/tmp/perf-{self.pid}.map*"):
            os.unlink(path)


def add_race(how, kind, count):
    @test(f"a racing writer, {kind} asked {count} times by {how}: nothing is wrong, nothing is left out")
    def _(folder):
        with Racing(folder) as race:
            named, unnamed, late, changed = counts = race.ask(count, how, KINDS[kind])
        print(f"# {how}, {kind}: {named} named, {unnamed} not, {late} could not be judged, {changed} changed")
        assert named > count // 20 and unnamed > count // 20 and late <= count // 100, counts
        assert changed < count // 10, counts


for kind in KINDS:
    add_race("addr", kind, RACED * (32 if kind == "libraries" else 20) // 100)
    add_race("find", kind, RACED // amount(50, 20))


@test("GDB's list leads astray in another way all the time: it is said to change, not to be empty")
def straying(folder):
    with Running([build(folder, "straying.c")]) as program:
        code = int(program.line(), 16)
        for ask, of in (((lambda: addr(program.pid, [code])), "symbol"), ((lambda: find(program.pid, "f0000001")), "linkage_name")):
            n = asked = 0
            while asked < 20 or (not n and asked < 1000):  # the program may have no processor from one walk to the next
                asked += 1
                ((record,), notes) = ask()
                assert record[of] is None, record
                assert (record["reason"] == "changed") == ("astray" not in notes), (record, notes)
                n += record["reason"] == "changed"
            assert n, f"never said to change: {record}"


@test("find: GDB's list changes all the time: no name is of code that is not there")
def find_churn(folder):
    for pause in (4000, 100000):
        named = changed = 0
        with Churning(folder, pause) as churning, churning.logged() as log:
            for _ in range(100):
                before = time.monotonic_ns()
                records, _ = find(churning.pid, "jit:f*")
                after = time.monotonic_ns()
                for r in records:
                    if r["linkage_name"] is None:
                        changed += r["reason"] == "changed"
                        continue
                    named += 1
                    place = churning.check(log, r["linkage_name"], before, after)
                    assert int(r["address"], 16) == churning.code + place and r["size"] == 64, r
            assert churning.is_running(), "the program has ended: ask less"
        assert named + changed > 50, (pause, named, changed)


def add_stored_churn(nanoseconds):
    @test(f"snapshots while GDB's list changes every {nanoseconds} ns: no name is of code that was not there")
    def _(folder):
        taken = []
        named = 0
        with Churning(folder, nanoseconds) as churning:
            for turn in range(60):
                before = time.monotonic_ns()
                run(FATHOM, "snapshot", churning.pid, f"{folder}/snapshot{turn}")
                taken.append((f"{folder}/snapshot{turn}", before, time.monotonic_ns()))
            assert churning.is_running(), "the program has ended: take less"
            with churning.logged() as log:
                logged = bytes(log)
        for path, before, after in taken:
            records, _ = addr(path, range(churning.code, churning.code + 5 * 64, 4))
            for at, record in zip(range(0, 5 * 64, 4), records, strict=True):
                if record["symbol"] is None:
                    continue
                named += 1
                place = churning.check(logged, record["symbol"], before, after)
                assert place <= at < place + 64, record
        assert named or nanoseconds < 1000000, "nothing was named: the test shows nothing"


for nanoseconds in (4000, 100000, 2000000):
    add_stored_churn(nanoseconds)
