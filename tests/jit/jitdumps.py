# SPDX-License-Identifier: MIT
"""Jitdumps: records of code, with lines, that programs write and map; and what cores still have of such files."""
import os
import struct
import time

import jitfiles

from ask import NOBODY, addr, find
from finding import address
from running import Asked, dying, kernels_core
from suite import Dump, Jitted, build, check, test


@test("a jitdump: code with lines, code that moves, addresses used again")
def jitdump(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        c = j.code
        dump = Dump(folder, j)
        # Not mapped, it is nobody's.
        dump.write(jitfiles.load(c, 0x40, 0, "first one"))
        assert asker.one(c)["symbol"] is None
        j.tell(f"mark {dump.path}")
        dump.write(jitfiles.lines(c + 0x100, [(0, 7, "/src/a.js"), (8, 8, None), (16, 1, "/src/b.js")]))
        dump.write(jitfiles.record(jitfiles.UNWINDING_INFO, bytes(64)) + jitfiles.record(1000, b"unknown"))
        dump.write(jitfiles.load(c + 0x100, 0x20, 1, "with lines"))
        check(j.pid, {c: ("first one", 0, 0x40, "jitdump"), c + 0x40: None, c + 0x11f: ("with lines", 0x1f, 0x20, "jitdump")})
        for off, place in {0: ("/src/a.js", 7), 7: ("/src/a.js", 7), 8: ("/src/a.js", 8), 31: ("/src/b.js", 1)}.items():
            record = asker.one(c + 0x100 + off)
            (frame,) = record["frames"]
            assert (frame["function"], frame["file"], frame["line"]) == ("with lines", *place), record
            assert record["reason"] is None
        dump.write(jitfiles.move(c + 0x100, c + 0x200, 0x20, 1))
        assert asker.one(c + 0x100)["symbol"] is None
        record = asker.one(c + 0x208)
        assert (record["symbol"], record["offset"], record["frames"][0]["line"]) == ("with lines", 8, 8), record
        dump.write(jitfiles.load(c + 0x20, 0x10, 2, "again"))
        assert [asker.one(c + a)["symbol"] for a in (0x1f, 0x20, 0x30)] == ["first one", "again", "first one"]
        # Written by halves.
        data = jitfiles.load(c + 0x300, 0x10, 3, "late")
        dump.write(data[:30])
        assert asker.one(c + 0x300)["symbol"] is None
        dump.write(data[30:])
        assert asker.one(c + 0x300)["symbol"] == "late"
        # The perf map of the same code says less.
        j.write(f"{c:x} 400 less\n")
        assert [asker.one(c + a)["symbol"] for a in (0, 0x3ff)] == ["first one", "less"]


@test("a jitdump: a function of 250,000 lines, of which 250,000 others leave stretches, takes no time")
def jitdump_stretches(folder):
    n = 250000
    with Jitted([build(folder)]) as j:
        dump = Dump(folder, j)
        dump.write(jitfiles.lines(j.code, [(2 * i, i + 1, None if i else "/src/a.js") for i in range(n)]))
        dump.write(jitfiles.load(j.code, 2 * n, 0, "large"))
        dump.write(b"".join(jitfiles.load(j.code + 2 * i + 1, 1, i + 1, "small") for i in range(n)))
        j.tell(f"mark {dump.path}")
        records, _ = find(j.pid, "large", processor_seconds=20)
        assert [(r["address"], r["source"]) for r in records] == [(hex(j.code), "jitdump")], records
        (record,), _ = addr(j.pid, [j.code + 246])
        assert (record["symbol"], record["frames"][0]["line"]) == ("large", 124), record


@test("a jitdump that was deleted is read as long as it is mapped", needs_root=True)
def jitdump_deleted(folder):
    with Jitted([build(folder)]) as j:
        dump = Dump(folder, j)
        dump.write(jitfiles.load(j.code, 0x40, 0, "deleted"))
        j.tell(f"mark {dump.path}")
        os.unlink(dump.path)
        check(j.pid, {j.code: ("deleted", 0, 0x40, "jitdump")})


@test("a perf map and a jitdump that outgrow the memory do not name what they named before")
def outgrown(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid, "--memory", "4M") as asker:
        dump = Dump(folder, j)
        j.tell(f"mark {dump.path}")
        j.write(f"{j.code:x} 20 old\n")
        dump.write(jitfiles.load(j.code + 0x40, 0x40, 0, "old"))
        assert [asker.one(j.code)["symbol"], asker.one(j.code + 0x40)["symbol"]] == ["old", "old"]
        j.write("".join(f"{0x100000 + i:x} 1 another_function_{i:06}\n" for i in range(200000)))
        j.write(f"{j.code:x} 20 new\n")
        dump.write(b"".join(jitfiles.load(0x100000 + i, 1, i, f"another_function_{i:06}") for i in range(200000)))
        dump.write(jitfiles.load(j.code + 0x40, 0x40, 1, "new"))
        assert [asker.one(j.code)["symbol"], asker.one(j.code + 0x40)["symbol"]] == [None, None]


@test("a jitdump of another process, such as a copy has mapped by inheritance")
def jitdump_of_parent(folder):
    with Jitted([build(folder)]) as j:
        dump = Dump(folder, j)
        dump.write(jitfiles.load(j.code, 0x40, 0, "made_by_parent", pid=os.getpid()))
        os.rename(dump.path, f"{folder}/jit-{os.getpid()}.dump")
        j.tell(f"mark {folder}/jit-{os.getpid()}.dump")
        check(j.pid, {j.code: None})


@test("a jitdump of another user, and a damaged one, say why they are not used", needs_root=True)
def jitdump_refused(folder):
    with Jitted([build(folder)]) as j:
        dump = Dump(folder, j)
        dump.write(jitfiles.load(j.code, 0x40, 0, "good") + struct.pack("<IIQ", 0, 3, 0) +
                   jitfiles.load(j.code + 0x40, 0x40, 1, "behind"))
        j.tell(f"mark {dump.path}")
        records, notes = addr(j.pid, [j.code, j.code + 0x40])
        assert [r["symbol"] for r in records] == ["good", None], records
        assert "is damaged" in notes and dump.path in notes, notes
        os.chown(dump.path, NOBODY, NOBODY)
        records, notes = addr(j.pid, [j.code])
        assert records[0]["symbol"] is None and "belongs to another user" in notes, (records, notes)


@test("a core: names from the perf map and the jitdump of the process, if they can be its own", needs_root=True)
def files_of_core(folder):
    path = build(folder)
    with Jitted(dying(path), cwd=folder) as j:
        c = j.code
        dump = Dump(folder, j)
        dump.write(jitfiles.lines(c + 0x100, [(0, 7, "/src/a.js")]) + jitfiles.load(c + 0x100, 0x20, 0, "dumped"))
        j.write(f"{c:x} 20 mapped\n{c + 0x20:x} 20 last")
        written = time.time() - 60
        os.utime(j.map, (written, written))
        core = kernels_core(j, folder)
        addresses = [c, c + 0x20, c + 0x40, c + 0x100, j.places["main"]]

        def names():
            records, notes = addr(core, addresses)
            return [r["symbol"] for r in records], notes

        # A jitdump that is not mapped is nobody's.
        assert names()[0] == ["mapped", "last", None, None, "main"], names()
        assert f"{j.map}: names of JIT code are from this file, which is still there" in names()[1], names()[1]
        assert [address(r) for r in find(core, ["last", "dumped"])[0]] == [c + 0x20, None]
        for change, restore, why in (
                (lambda: os.chown(j.map, NOBODY, NOBODY), lambda: os.chown(j.map, 0, 0), "belongs to another user"),
                (lambda: os.chmod(j.map, 0o666), lambda: os.chmod(j.map, 0o600), "everybody may write to it"),
                (lambda: os.utime(j.map), lambda: os.utime(j.map, (written, written)), "written after the core")):
            os.utime(core, (written + 10, written + 10))
            change()
            assert names()[0] == [None] * 4 + ["main"] and why in names()[1], (why, names())
            restore()
            assert names()[0][0] == "mapped"
        os.unlink(j.map)
        assert names() == ([None] * 4 + ["main"], "")


@test("a core: the jitdump that was mapped")
def dump_of_core(folder):
    with Jitted(dying(build(folder)), cwd=folder) as j:
        c = j.code
        dump = Dump(folder, j)
        dump.write(jitfiles.lines(c + 0x100, [(0, 7, "/src/a.js")]) + jitfiles.load(c + 0x100, 0x20, 0, "dumped"))
        j.tell(f"mark {dump.path}")
        core = kernels_core(j, folder)
        (record,), notes = addr(core, [c + 0x11f])
        (frame,) = record["frames"]
        assert (record["symbol"], frame["file"], frame["line"]) == ("dumped", "/src/a.js", 7), record
        assert f"{dump.path}: names of JIT code are from this file" in notes, notes
        assert [address(r) for r in find(core, "dumped")[0]] == [c + 0x100]
        after = os.stat(core).st_mtime + 5
        os.utime(dump.path, (after, after))
        (record,), notes = addr(core, [c + 0x11f])
        assert record["symbol"] is None and "written after the core" in notes, (record, notes)
