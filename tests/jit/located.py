# SPDX-License-Identifier: MIT
"""Which module holds a pc, and its unwind tables, as a walk of a stack asks: of code that a program has made, too."""
import os
import re
import struct
import time

import jitfiles
from elfread import ElfFile

from amounts import amount
from ask import run
from building import core_of
from meanwhile import Churning
from running import Running
from stored import by_snapshot
from suite import PROGRAMS, Jitted, build, register, tell_in_all_ways, test

ASKED = int(os.environ.get("QUESTIONS", amount(20000))) // 5


class Holders(Running):
    """A running holders.c, in one view until it is told "again"."""

    def __init__(self, target):
        super().__init__([os.path.join(os.environ["BUILD"], "tests", "holders"), target])

    def ask(self, word):
        self.send(f"{word:x}\n" if isinstance(word, int) else word + "\n")
        return self.line()

    def symbol_file(self, address):
        """(where the symbol file is, its symbol, its FDE's bounds) for code of GDB's list."""
        said = self.ask(address)
        m = re.fullmatch(r"\[jit (0x[0-9a-f]+)\] 0 gdb-jit (\S+) (\S+) (\S+)", said)
        assert m, said
        return int(m[1], 16), m[2], None if m[3] == "-" else (int(m[3], 16), int(m[4], 16))


def frames_of(path, folder):
    """The bounds of the FDEs of an object file, from the start of their section, by readelf."""
    elf = ElfFile(path)
    data = bytearray(elf.bytes)
    for i in range(len(elf.sections)):
        # readelf adds the addresses of the sections in its own way: let them be 0.
        struct.pack_into("<Q", data, elf.shoff + i * elf.shentsize + 16, 0)
    copy = os.path.join(folder, "at-zero.o")
    with open(copy, "wb") as file:
        file.write(data)
    found = re.findall(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", run("readelf", "-wf", copy))
    assert found, f"{path}: no FDEs"
    return [(int(low, 16), int(high, 16)) for low, high in found]


def add_places(how, store):
    @test(f"a pc of JIT code, {how}: its module and its FDE are found, as readelf says, and who says so of other code")
    def _(folder):
        with Jitted([build(folder)]) as j:
            c = j.code
            _, path, functions = tell_in_all_ways(folder, j, f"{c:x} 100 by map\n", "bare")
            frames = frames_of(path, folder)
            with Holders(store(j.pid, folder)) as holders:
                # Once from the start, and again after others have read what it keeps.
                for _ in range(2):
                    check_places(holders, j, functions, frames)
                    assert holders.ask("search") == "4"
                assert holders.ask("stayed") == "yes" and holders.ask("again") == "done"
                check_places(holders, j, functions, frames)


def check_places(holders, j, functions, frames):
    c = j.code
    names = {off: name for name, (off, _) in functions.items()}
    assert {low for low, _ in frames} == set(names), (frames, names)
    for low, high in frames:
        for at in (low, high - 1):
            _, symbol, bounds = holders.symbol_file(c + 0x1000 + at)
            assert (symbol, bounds) == (names[low], (c + 0x1000 + low, c + 0x1000 + high)), (symbol, bounds)
    _, symbol, bounds = holders.symbol_file(c + 0x1f)
    assert (symbol, bounds) == ("bare", None), (symbol, bounds)
    assert holders.ask(c + 0x20) == "- - jitdump - - -"
    assert holders.ask(c + 0x40) == "- - perf-map - - -"
    assert holders.ask(c + 0x100) == holders.ask(j.places["data"]) == "- - - - - -"
    words = holders.ask(j.places["main"]).split()
    assert os.path.basename(words[0]) == "jitted" and words[2:4] == ["-", "main"], words
    assert int(words[4], 16) == j.places["main"], words


add_places("of a process", lambda pid, folder: pid)
add_places("of a core", core_of)


add_places("of a snapshot", by_snapshot)


@test("a pc of JIT code: what was told of it stayed until its symbol file has left or has other bytes")
def stayed(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        register(folder, j, jitfiles.relocatable(c, [("first", 0, 0x20)]))
        register(folder, j, jitfiles.relocatable(c + 0x40, [("second", 0, 0x20)]))
        with Holders(j.pid) as holders:
            assert holders.ask("stayed") == "yes"
            assert holders.symbol_file(c)[1] == "first"
            # Another one comes, and another one leaves.
            register(folder, j, jitfiles.relocatable(c + 0x80, [("third", 0, 0x20)]))
            assert holders.ask("stayed") == "yes"
            # The view stays as it was; a new one does not.
            assert holders.ask(c + 0x80) == "- - - - - -"
            j.tell("unregister")
            j.tell("unregister")
            assert holders.ask("stayed") == "yes"
            j.tell("unregister")
            assert holders.ask("stayed") == "no"
            assert holders.ask("again") == "done" and holders.ask("stayed") == "yes"
            assert holders.ask(c) == holders.ask(c + 0x40) == "- - - - - -"
            assert holders.ask("stayed") == "yes"
            register(folder, j, jitfiles.relocatable(c, [("fourth", 0, 0x20)]))
            holders.ask("again")
            where, symbol, _ = holders.symbol_file(c)
            assert symbol == "fourth" and holders.ask("stayed") == "yes"
            rewrite(j.pid, where, b"fourth", b"forged")
            assert holders.ask("stayed") == "no"
            assert holders.ask("again") == "done"
            assert holders.symbol_file(c)[:2] == (where, "forged") and holders.ask("stayed") == "yes"


def rewrite(pid, where, old, new):
    """Writes @new over @old in the symbol file at @where."""
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(where)
        data = memory.read(1024)
        assert data.count(old) == 1 and len(old) == len(new)
        memory.seek(where + data.index(old))
        memory.write(new)


def add_damage(how, holder):
    @test(f"a pc of JIT code, in a list damaged by \"{how}\": an answer, and no harm")
    def _(folder):
        with Jitted([build(folder)]) as j:
            for i in range(5):
                register(folder, j, jitfiles.relocatable(j.code + i * 64, [(f"f{i}", 0, 0x20)]))
            j.write(f"{j.code:x} 20 by map\n")
            j.tell(how)
            with Holders(j.pid) as holders:
                assert holder in holders.ask(j.code), holders.ask(j.code)
                assert holders.ask(j.code + 4 * 64) == "- - - - - -"
                assert holders.ask("stayed") == "yes"


add_damage("circle", "- - perf-map")
add_damage("astray", "- - perf-map")
add_damage("huge", "gdb-jit f0")


def add_churn(nanoseconds):
    @test(f"a pc of JIT code, asked {ASKED} times while GDB's list changes every {nanoseconds} ns: what stayed is true")
    def _(folder):
        named = changed = 0
        with Churning(folder, nanoseconds) as churning, churning.logged() as log, Holders(churning.pid) as holders:
            for i in range(ASKED):
                at = i * 7 % (5 * 64)
                before = time.monotonic_ns()
                holders.ask("again")
                said = holders.ask(churning.code + at)
                did_stay = holders.ask("stayed")
                after = time.monotonic_ns()
                if did_stay != "yes":
                    changed += 1
                    continue
                if said != "- - - - - -":
                    named += 1
                    place = churning.check(log, said.split()[4], before, after)
                    assert place <= at < place + 64, said
            assert churning.is_running(), "the program has ended: ask less"
        print(f"# {nanoseconds} ns: {named} had modules, {changed} changed")
        assert named > ASKED // 20 or nanoseconds < 100000, (named, changed)
        assert changed or nanoseconds > 4000, (named, changed)


for nanoseconds in (4000, 100000, 2000000):
    add_churn(nanoseconds)


def add_lli(kind):
    @test(f"lli, {kind}: the FDEs of the code that it has compiled, as readelf finds them in its symbol file")
    def _(folder):
        code = os.path.join(folder, "busy.bc")
        run("clang", "-g", "-O1", "-emit-llvm", "-c", "-o", code, os.path.join(PROGRAMS, "busy.c"))
        with Running(["lli", f"--jit-kind={kind}", code]) as process:
            leaf, outer = (int(word, 16) for word in process.line().split())
            with Holders(process.pid) as holders:
                where, symbol, bounds = holders.symbol_file(leaf)
                assert (symbol, bounds[0]) == ("hot_leaf", leaf), (symbol, bounds)
                path = os.path.join(folder, "symfile.o")
                copy_symbol_file(process.pid, where, path)
                (text,) = (s for s in ElfFile(path).sections if s.flags & 4 and s.size)
                frames = {text.addr + low: (text.addr + low, text.addr + high) for low, high in frames_of(path, folder)}
                assert leaf in frames and outer in frames, frames
                for low, high in frames.values():
                    for at in (low, high - 1):
                        assert holders.symbol_file(at)[2] == (low, high), (holders.ask(at), frames)
                assert holders.ask("stayed") == "yes"


def copy_symbol_file(pid, where, path):
    """Copies an ELF file whose section headers come last out of a process."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(where)
        head = memory.read(64)
        size = struct.unpack_from("<Q", head, 40)[0] + 64 * struct.unpack_from("<H", head, 60)[0]
        memory.seek(where)
        data = memory.read(size)
    assert len(data) == size
    with open(path, "wb") as file:
        file.write(data)


for kind in ("mcjit", "orc"):
    add_lli(kind)
