#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "jit": programs say what code they have made; fathom has to say the same of it, as long as it is true."""
import glob
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import elfasm  # noqa: E402
import jitfiles  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, run  # noqa: E402
from finding import address, find  # noqa: E402
from told import Asked, Told, ask, build as build_program  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
NOBODY = 65534
ASKED = int(os.environ.get("QUESTIONS", "20000"))
# Not in /tmp, which some of them have of their own.
SUITE = tap.Suite("jit", "give files away and make namespaces", parent=os.environ["BUILD"])
test = SUITE.test


def build(folder, source="jitted.c", *options, compiler="gcc"):
    path = os.path.join(folder, source.removesuffix(".c"))
    run(compiler, "-O1", "-g", *options, "-o", path, os.path.join(PROGRAMS, source))
    return path


class Jitted(Told):
    """A running programs/jitted.c; what it writes to /tmp is removed."""

    def __init__(self, command, **options):
        super().__init__(command, **options)
        self.map = f"/tmp/perf-{self.pid}.map"
        self.code = self.places["code"]
        self.remove()

    def remove(self):
        for path in (self.map, self.map + ".other"):
            if os.path.lexists(path):
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

    def write(self, text, mode="a"):
        with open(self.map, mode, encoding="utf-8") as file:
            file.write(text)

    def __exit__(self, *_):
        super().__exit__()
        self.remove()


def check(pid, expected, *options):
    """@expected: {address: (symbol, offset, size, source), or None for no name}."""
    records, _ = ask(pid, expected, *options)
    for record, (address, wanted) in zip(records, expected.items(), strict=True):
        got = (record["symbol"], record["offset"], record["size"], record["source"])
        assert got == (wanted or (None, None, None, None)), f"{address:#x}: {got}, not {wanted}"
        assert record["module"] is None and record["module_address"] is None, record
    return records


# Perf maps.

@test("a perf map: both dialects, names with blanks")
def perf_map(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        j.write(f"{c:x} 20 JS:*hot /a b.js:1:2\n0x{c + 0x40:016x} 0x00000010 void Object::<init>(int, long)\r\n")
        (record,) = check(j.pid, {c: ("JS:*hot /a b.js:1:2", 0, 0x20, "perf-map")})
        assert record["reason"] == "no-debug-info" and len(record["frames"]) == 1, record
        check(j.pid, {c + 0x1f: ("JS:*hot /a b.js:1:2", 0x1f, 0x20, "perf-map"), c + 0x20: None,
                      c + 0x4f: ("void Object::<init>(int, long)", 0xf, 0x10, "perf-map"), c + 0x50: None})
        # A return address behind the last instruction is of what was called.
        check(j.pid, {c + 0x20: ("JS:*hot /a b.js:1:2", 0x20, 0x20, "perf-map"), c: None}, "--return-addresses")
        (record,), _ = ask(j.pid, [c], "--names-only")
        assert (record["symbol"], record["reason"]) == ("JS:*hot /a b.js:1:2", None), record


@test("a perf map: names that compilers mangle are demangled")
def perf_map_mangled(folder):
    with Jitted([build(folder)]) as j:
        j.write(f"{j.code:x} 20 _ZN3foo3barEi\n")
        (record,), _ = ask(j.pid, [j.code])
        assert (record["symbol"], record["linkage_name"]) == ("foo::bar(int)", "_ZN3foo3barEi"), record


@test("a perf map: the last line holds, also when it was written after the question before")
def perf_map_overlap(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        rng = random.Random(1)
        truth = {}
        for turn in range(60):
            for _ in range(rng.randrange(6)):
                start, size = rng.randrange(400), rng.randrange(1, 80)
                name = f"f{turn}_{start}"
                j.write(f"{j.code + start:x} {size:x} {name}\n")
                truth |= dict.fromkeys(range(start, start + size), (name, start))
            at = rng.randrange(420)
            record = asker.one(j.code + at)
            name, start = truth.get(at, (None, None))
            assert (record["symbol"], record["offset"]) == (name, at - start if name else None), record


@test("a perf map: a line that is being written does not count, damage does no harm")
def perf_map_damaged(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        c = j.code
        j.write(f"{c:x} 20 whole\n\0\0\0\0\n\nxyz\n{c + 0x20:x} 20 ha")
        assert asker.one(c)["symbol"] == "whole"
        assert asker.one(c + 0x20)["symbol"] is None
        j.write("lf\n")
        assert asker.one(c + 0x20)["symbol"] == "half"


@test("a perf map: its last line counts without a line break when nobody writes it")
def perf_map_last_line(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        c = j.code
        j.write(f"{c:x} 20 first\n{c + 0x10:x} 20 last")
        assert asker.one(c + 0x10)["symbol"] == "first"
        written = time.time() - 3
        os.utime(j.map, (written, written))
        assert [asker.one(c + off)["symbol"] for off in (0xf, 0x10, 0x2f, 0x30)] == ["first", "last", "last", None]
        assert [r["symbol"] for r in ask(j.pid, [c + 0x10])[0]] == ["last"]
        out = run(FATHOM, "find", "--no-cache", j.pid, "last", "first")
        assert [int(a, 16) for a in re.findall(r"0x([0-9a-f]+) ", out)] == [c + 0x10, c], out


@test("a perf map: one that is written anew, replaced or removed")
def perf_map_replaced(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        c = j.code
        j.write(f"{c:x} 20 one\n{c + 0x20:x} 20 two\n")
        assert asker.one(c + 0x20)["symbol"] == "two"
        j.write(f"{c:x} 20 six\n{c + 0x20:x} 20 ten\n", "w")
        assert [asker.one(c)["symbol"], asker.one(c + 0x20)["symbol"]] == ["six", "ten"]
        with open(j.map + ".other", "w", encoding="ascii") as file:
            file.write(f"{c + 0x40:x} 20 other\n")
        os.rename(j.map + ".other", j.map)
        assert [asker.one(c)["symbol"], asker.one(c + 0x40)["symbol"]] == [None, "other"]
        os.unlink(j.map)
        assert asker.one(c + 0x40)["symbol"] is None


@test("a perf map: only memory that may be run now has names, and modules keep theirs")
def perf_map_memory(folder):
    with Jitted([build(folder)]) as j:
        names = {j.code: "code", j.places["data"]: "data", j.places["shared"]: "shared", j.places["main"] & ~0xfff: "lie"}
        j.write("".join(f"{a:x} 1000 {n}\n" for a, n in names.items()))
        check(j.pid, {j.code: ("code", 0, 4096, "perf-map"), j.places["data"]: None,
                      j.places["shared"]: ("shared", 0, 4096, "perf-map")})
        (record,), _ = ask(j.pid, [j.places["main"]])
        assert (record["symbol"], record["source"]) == ("main", "symtab"), record
        j.tell("unmap")
        (record,), _ = ask(j.pid, [j.code])
        assert (record["symbol"], record["reason"]) == (None, "unmapped"), record


@test("a perf map names code in a file that has no symbol for it, and no other")
def perf_map_in_file(folder):
    path = build(folder)
    with Jitted([path]) as j, Asked(j.pid) as asker:
        b, main = j.places["builtins"], j.places["main"]
        assert asker.one(b)["symbol"] is None
        j.write(f"{b:x} 40 Builtin:First\n{b + 0x40:x} 20 Builtin:Second\n{main:x} 10 Wrong\n")
        sections = run("readelf", "-SW", path)
        start = int(re.search(r"\.builtins +PROGBITS +([0-9a-f]+)", sections)[1], 16)
        for off, wanted in {0: ("Builtin:First", 0, 0x40), 0x3f: ("Builtin:First", 0x3f, 0x40),
                            0x5f: ("Builtin:Second", 0x1f, 0x20), 0x60: (None, None, None)}.items():
            for record in (asker.one(b + off), ask(j.pid, [b + off])[0][0]):
                assert (record["symbol"], record["offset"], record["size"]) == wanted, record
                assert (record["module"], int(record["module_address"], 16)) == (path, start + off), record
                assert record["source"] == ("perf-map" if wanted[0] else None), record
        record = asker.one(main)
        assert (record["symbol"], record["source"]) == ("main", "symtab"), record
        records, _ = find(j.pid, ["jit:Builtin:Second", "jit:Wrong", "main"])
        assert [address(r) for r in records] == [b + 0x40, None, main], records


def left_core(j, folder):
    """The core that the kernel writes of @j, started by a shell that has set it up so."""
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as pattern:
        if re.match(r"\||.*/", pattern.read()):
            raise tap.Skip("this system gives cores of the kernel to another program (core_pattern)")
    j.process.send_signal(signal.SIGABRT)
    j.process.wait()
    (core,) = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("core")]
    return core


def dying(path):
    return ["sh", "-c", 'ulimit -c unlimited && exec "$@"', "sh", path]


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
        core = left_core(j, folder)
        addresses = [c, c + 0x20, c + 0x40, c + 0x100, j.places["main"]]

        def names():
            records, notes = ask(core, addresses)
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
        core = left_core(j, folder)
        (record,), notes = ask(core, [c + 0x11f])
        (frame,) = record["frames"]
        assert (record["symbol"], frame["file"], frame["line"]) == ("dumped", "/src/a.js", 7), record
        assert f"{dump.path}: names of JIT code are from this file" in notes, notes
        assert [address(r) for r in find(core, "dumped")[0]] == [c + 0x100]
        after = os.stat(core).st_mtime + 5
        os.utime(dump.path, (after, after))
        (record,), notes = ask(core, [c + 0x11f])
        assert record["symbol"] is None and "written after the core" in notes, (record, notes)


def add_refusal(name, make, why, needs_root=False):
    @test(f"a perf map that is not believed: {name}", needs_root)
    def _(folder):
        with Jitted([build(folder)]) as j:
            make(j)
            started = time.monotonic()
            records, notes = ask(j.pid, [j.code])
            assert time.monotonic() - started < 10
            assert records[0]["symbol"] is None, records
            assert why in notes and j.map in notes, notes


def fill(j, path=None):
    with open(path or j.map, "w", encoding="ascii") as file:
        file.write(f"{j.code:x} 20 lie\n")


def make_foreign(j):
    fill(j)
    os.chown(j.map, NOBODY, NOBODY)


def make_writable(j):
    fill(j)
    os.chmod(j.map, 0o666)


def make_link(j):
    fill(j, j.map + ".other")
    os.symlink(j.map + ".other", j.map)


add_refusal("of another user", make_foreign, "belongs to another user", True)
add_refusal("everybody may write to it", make_writable, "everybody may write")
add_refusal("a symbolic link", make_link, "symbolic link")
add_refusal("a FIFO, which has no writer", lambda j: os.mkfifo(j.map), "no regular file")
add_refusal("a directory", lambda j: os.mkdir(j.map), "no regular file")


@test("a perf map of the process's own user is believed when root asks", needs_root=True)
def perf_map_of_user(folder):
    with Jitted(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", build(folder)]) as j:
        j.tell(f"append {j.map} {j.code:x} 20 mine")
        assert os.stat(j.map).st_uid == NOBODY
        check(j.pid, {j.code: ("mine", 0, 32, "perf-map")})


def unshare(*options, then):
    """A command that runs the shell script @then in namespaces of its own."""
    able = subprocess.run(["unshare", *options, "true"], capture_output=True, text=True, check=False)
    if able.returncode:
        raise tap.Skip(f"namespaces cannot be made here: {able.stderr.strip()}")
    return ["unshare", *options, "sh", "-c", then]


def hidden_tmp(folder, then):
    """A script that has a /tmp of its own, where the program may have been before, and it as descriptor 9."""
    return f"exec 9<{build(folder)} && mount -t tmpfs none /tmp && {then}"


def pid_inside(j):
    """The process that unshare has started, its number as it is known outside."""
    with open(f"/proc/{j.pid}/task/{j.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    return int(children[0]) if children else j.pid


@test("a perf map in a pid and mount namespace: by the inner number, in its own /tmp", needs_root=True)
def perf_map_namespace(folder):
    command = unshare("-p", "-m", "-f", then=hidden_tmp(folder, "exec /proc/self/fd/9"))
    with Jitted(command) as j:
        pid = pid_inside(j)
        assert pid != j.pid
        j.tell(f"append /tmp/perf-1.map {j.code:x} 20 inside")
        # What stands in our /tmp is of somebody else.
        with open(f"/tmp/perf-{pid}.map", "w", encoding="ascii") as file:
            file.write(f"{j.code:x} 20 lie\n")
        try:
            check(pid, {j.code: ("inside", 0, 32, "perf-map")})
        finally:
            os.unlink(f"/tmp/perf-{pid}.map")
        # A link in its root leads inside of it.
        j.tell("append /tmp/map-of-another-name x")
        check(pid, {j.code: ("inside", 0, 32, "perf-map")})


@test("a perf map in a pid namespace that shares /tmp: also by the outer number", needs_root=True)
def perf_map_pid_namespace(folder):
    with Jitted(unshare("-p", "-f", then=f"exec {build(folder)}")) as j:
        pid = pid_inside(j)
        path = f"/tmp/perf-{pid}.map"
        try:
            j.tell(f"append {path} {j.code:x} 20 by an agent")
            check(pid, {j.code: ("by an agent", 0, 32, "perf-map")})
        finally:
            os.unlink(path)


@test("a perf map that is older than the process: of another with its number", needs_root=True)
def perf_map_stale(folder):
    # The number of the process is 1, and so can be known before it starts.
    then = "echo '0 ffffffffffff lie' >/tmp/perf-1.map && sleep 4 && exec unshare -pf /proc/self/fd/9"
    with Jitted(unshare("-m", then=hidden_tmp(folder, then))) as j:
        pid = pid_inside(j)
        records, notes = ask(pid, [j.code])
        assert records[0]["symbol"] is None and "older than the process" in notes, (records, notes)
        j.tell(f"append /tmp/perf-1.map {j.code:x} 20 fresh")
        check(pid, {j.code: ("fresh", 0, 32, "perf-map")})


# Jitdumps.

class Dump:
    def __init__(self, folder, j):
        self.path = os.path.join(folder, f"jit-{j.pid}.dump")
        self.write(jitfiles.dump_header(j.pid))

    def write(self, data):
        with open(self.path, "ab") as file:
            file.write(data)


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
        records, notes = ask(j.pid, [j.code, j.code + 0x40])
        assert [r["symbol"] for r in records] == ["good", None], records
        assert "is damaged" in notes and dump.path in notes, notes
        os.chown(dump.path, NOBODY, NOBODY)
        records, notes = ask(j.pid, [j.code])
        assert records[0]["symbol"] is None and "belongs to another user" in notes, (records, notes)


# GDB's interface.

def register(folder, j, data, name="symfile"):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return j.tell(f"register {path}")


def gdb_symbols(pid, addresses):
    """What gdb says is at @addresses: "name" or "name + offset", None for nothing."""
    commands = [word for a in addresses for word in ("-ex", f"info symbol {a:#x}")]
    out = run("gdb", "-nx", "-batch", "-p", str(pid), *commands, status=None, stdin=subprocess.DEVNULL)
    answers = [line for line in out.splitlines() if " in section " in line or line.startswith("No symbol matches")]
    assert len(answers) == len(addresses), out
    return [None if a.startswith("No symbol") else a.split(" in section ")[0] for a in answers]


def check_with_gdb(pid, addresses):
    records, _ = ask(pid, addresses)
    ours = [r["symbol"] and r["symbol"] + (f" + {r['offset']}" if r["offset"] else "") for r in records]
    theirs = gdb_symbols(pid, addresses)
    assert ours == theirs, f"{ours}\ngdb: {theirs}"


@test("GDB's list: symbol files whose symbols count from sections, and such that do not; as gdb says")
def gdb_list(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        register(folder, j, jitfiles.relocatable(c, [("a", 0, 0x10), ("b", 0x10, 0x20)]))
        register(folder, j, jitfiles.loaded(c + 0x1000, [("dyn", 0, 0x10), ("amic", 0x20, 0x10)]))
        register(folder, j, jitfiles.loaded(c + 0x2000, [("exec", 0, 0x10)], elfasm.ET_EXEC))
        check(j.pid, {c: ("a", 0, 0x10, "gdb-jit"), c + 0x10: ("b", 0, 0x20, "gdb-jit"),
                      c + 0x2f: ("b", 0x1f, 0x20, "gdb-jit"), c + 0x30: None,
                      c + 0x100f: ("dyn", 0xf, 0x10, "gdb-jit"), c + 0x1010: None, c + 0x1028: ("amic", 8, 0x10, "gdb-jit"),
                      c + 0x2000: ("exec", 0, 0x10, "gdb-jit")})
        check_with_gdb(j.pid, [c, c + 0x10, c + 0x2f, c + 0x1000, c + 0x1028, c + 0x2001])


@test("GDB's list: lines and inlined calls of compiled code")
def gdb_list_lines(folder):
    source = os.path.join(PROGRAMS, "lines.c")
    with Jitted([build(folder)]) as j:
        path = os.path.join(folder, "lines.o")
        functions = jitfiles.compiled(path, source, j.code)
        j.tell(f"register {path}")
        off, size = functions["outer"]
        records, _ = ask(j.pid, range(j.code + off, j.code + off + size))
        assert {r["symbol"] for r in records} == {"outer"} and {r["source"] for r in records} == {"gdb-jit"}
        seen = set()
        for record in records:
            frames = [(f["function"], f["line"]) for f in record["frames"]]
            assert all(f["file"] == source for f in record["frames"]), record
            seen.add(tuple(frames))
        assert (("inner", 10), ("outer", 16)) in seen, seen
        off, _ = functions["twice"]
        (record,), _ = ask(j.pid, [j.code + off])
        assert [(f["function"], f["line"]) for f in record["frames"]] == [("twice", 5)], record
        check_with_gdb(j.pid, [j.code + off, j.code + functions["outer"][0] + 1])


@test("GDB's list: of a 32-bit program")
def gdb_list_32(folder):
    try:
        j = Jitted([build(folder, "jitted.c", "-static", compiler="i686-linux-gnu-gcc")])
    except OSError as error:
        raise tap.Skip(f"this kernel does not run 32-bit programs: {error}") from error
    with j:
        for i in range(3):
            register(folder, j, jitfiles.relocatable(j.code + i * 64, [(f"f{i}", 0, 0x20)], 32, elfasm.EM_386))
        check(j.pid, {j.code + i * 64 + 4: (f"f{i}", 4, 0x20, "gdb-jit") for i in range(3)})


@test("GDB's list: what was taken out is gone, what is at its place is what it is, within one run")
def gdb_list_gone(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        c = j.code
        entries = set()
        for turn in range(30):
            name = f"turn{turn:03}"
            entries.add(register(folder, j, jitfiles.relocatable(c, [(name, 0, 0x40)]))["entry"])
            record = asker.one(c + 5)
            assert (record["symbol"], record["offset"]) == (name, 5), record
            # A newer one covers part of it.
            register(folder, j, jitfiles.relocatable(c + 4, [("newer", 0, 0x10)]), "newer")
            assert asker.one(c + 5)["symbol"] == "newer" and asker.one(c + 0x20)["symbol"] == name
            j.tell("unregister")
            assert asker.one(c + 5)["symbol"] == name
            j.tell("unregister")
            assert asker.one(c + 5)["symbol"] is None
        assert len(entries) < 30, "no entry was used twice: the test shows nothing"


@test("GDB's list: it says more than a jitdump, and that more than a perf map")
def precedence(folder):
    with Jitted([build(folder)]) as j:
        j.write(f"{j.code:x} 100 by map\n")
        dump = Dump(folder, j)
        dump.write(jitfiles.load(j.code, 0x40, 0, "by dump"))
        j.tell(f"mark {dump.path}")
        register(folder, j, jitfiles.relocatable(j.code, [("by_list", 0, 0x20)]))
        check(j.pid, {j.code: ("by_list", 0, 0x20, "gdb-jit"), j.code + 0x20: ("by dump", 0x20, 0x40, "jitdump"),
                      j.code + 0x40: ("by map", 0x40, 0x100, "perf-map")})


def add_damage(how, why):
    @test(f"GDB's list, damaged: {how}")
    def _(folder):
        with Jitted([build(folder)]) as j:
            for i in range(5):
                register(folder, j, jitfiles.relocatable(j.code + i * 64, [(f"f{i}", 0, 0x20)]))
            j.write(f"{j.code:x} 20 by map\n")
            j.tell(how)
            started = time.monotonic()
            records, notes = ask(j.pid, [j.code, j.code + 4 * 64])
            assert time.monotonic() - started < 10
            assert records[1]["symbol"] is None, records
            assert records[0]["symbol"] == ("f0" if how == "huge" else "by map"), records
            assert why in notes, notes


add_damage("circle", "leads astray")
add_damage("astray", "leads astray")
add_damage("huge", "larger than fathom reads")


@test("GDB's list: symbol files cut anywhere, and of bytes that are none, do no harm")
def gdb_list_cut(folder):
    with Jitted([build(folder)]) as j:
        whole = jitfiles.relocatable(j.code, [("f", 0, 0x20)])
        for i, cut in enumerate([*range(1, len(whole), 37), len(whole)]):
            register(folder, j, whole[:cut], f"cut{i}")
        register(folder, j, os.urandom(1000), "random")
        records, _ = ask(j.pid, [j.code])
        assert records[0]["symbol"] == "f", records


# Truth while the list changes all the time.

def ask_churn(folder, pause, asked):
    """Asks a churning program; returns how many answers had names, and how many said "changed"."""
    log_path = os.path.join(folder, "log")
    process = subprocess.Popen([build(folder, "churn.c"), log_path, str(pause)], stdout=subprocess.PIPE, text=True)
    named = changed = 0
    try:
        code = int(process.stdout.readline(), 16)
        with open(log_path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as log, \
                Asked(process.pid) as asker:
            rng = random.Random(2)
            for _ in range(asked):
                at = rng.randrange(5 * 64)
                before = time.monotonic_ns()
                record = asker.one(code + at)
                after = time.monotonic_ns()
                if record["symbol"] is None:
                    changed += record["reason"] == "changed"
                    continue
                named += 1
                number = int(record["symbol"][1:])
                came, left = struct.unpack_from("<QQ", log, number * 16)
                place = number // 3 % 5 * 64
                assert came and came <= after and (not left or left >= before), \
                    f"{record['symbol']} was there from {came} to {left}, asked from {before} to {after}"
                assert place <= at < place + 64 and record["offset"] == at - place, record
        assert process.poll() is None, "the program has ended: ask less"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
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


# Truth while all kinds of code come, move and go, told by everything there is.

RACED = int(os.environ.get("RACED", "100000"))
# How an asker is told which code it asks about: enum kind of processes/programs/changing.h.
KINDS = {"libraries": 0, "GDB's list": 1, "a perf map": 2, "a jitdump": 3}


class Racing:
    """A running programs/racing.c; entered, a function that asks it."""

    def __init__(self, folder):
        turns = [build_program(folder, f"turn{i}.so", "-shared", "-fPIC", f"-DNAME=hidden_in_{i}", source="turn.c")
                 for i in range(4)]
        self.log = os.path.join(folder, "log")
        with open(self.log, "wb") as log:
            log.truncate(1 << 20)
        self.process = subprocess.Popen([build(folder, "racing.c", "-ldl"), self.log, folder, "100000", *turns])

    def ask(self, count, how, kind):
        """How many of @count answers had names, had none, could not be judged, were "changed"."""
        said = run(os.path.join(os.environ["BUILD"], "tests", "asker"), self.process.pid, self.log, count, how, kind,
                   status=None)
        counts = re.fullmatch(r"(\d+) named, (\d+) not, (\d+) could not be judged, (\d+) changed, 0 refused\n", said)
        assert counts, said
        return [int(n) for n in counts.groups()]

    def __enter__(self):
        return self.ask

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for path in glob.glob(f"/tmp/perf-{self.process.pid}.map*"):
            os.unlink(path)


def add_race(how, kind, count):
    @test(f"a racing writer, {kind} asked {count} times by {how}: nothing is wrong, nothing is left out")
    def _(folder):
        with Racing(folder) as race:
            named, unnamed, late, changed = counts = race(count, how, KINDS[kind])
        print(f"# {how}, {kind}: {named} named, {unnamed} not, {late} could not be judged, {changed} changed")
        assert named > count // 20 and unnamed > count // 20 and late <= count // 100, counts
        assert changed < count // 10, counts


for kind in KINDS:
    add_race("addr", kind, RACED * (32 if kind == "libraries" else 20) // 100)
    add_race("find", kind, RACED * 2 // 100)


# By name.

def found(target, query, *options):
    """{name: [(address, size, source)]} of the code that programs have made themselves."""
    records, _ = find(target, query, *options)
    places = {}
    for r in records:
        if r["module"] == "[jit]":
            assert r["type"] == "func" and r["table"] is None and r["module_address"] is None and r["rank"] > 0, r
            places.setdefault(r["linkage_name"], []).append((int(r["address"], 16), r["size"], r["source"]))
    return places


@test("find: names of a perf map, as it holds now")
def find_perf_map(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        j.write(f"{c:x} 20 JS:*hot /a.js:1:2\n{c + 0x40:x} 40 gone\n{c + 0x40:x} 10 newer\n{c + 0x100:x} 10 _ZN3foo3barEi\n")
        j.write(f"{c + 0x200:x} 40 kept\n{c + 0x210:x} 10 inner\n{c + 0x300:x} 8 twice\n{c + 0x308:x} 8 twice\n{j.places['data']:x} 8 data\n")
        j.write(f"{j.places['main'] & ~0xfff:x} 1000 lie\n")
        hot = {"JS:*hot /a.js:1:2": [(c, 0x20, "perf-map")]}
        assert found(j.pid, "*hot*") == hot == found(j.pid, "JS:*hot /a.js:1:2", "-F") == found(j.pid, "/^JS:.hot /")
        # Of what was at its start something else is; what it still has elsewhere has no place by name.
        assert found(j.pid, ["gone", "newer", "kept", "inner", "twice", "foo::bar", "foo::bar(int)", "data", "lie"]) == {
            "newer": [(c + 0x40, 0x10, "perf-map")], "kept": [(c + 0x200, 0x40, "perf-map")],
            "inner": [(c + 0x210, 0x10, "perf-map")], "twice": [(c + 0x300, 8, "perf-map"), (c + 0x308, 8, "perf-map")],
            "_ZN3foo3barEi": 2 * [(c + 0x100, 0x10, "perf-map")]}
        assert set(found(j.pid, "jit:*")) == {*hot, "newer", "kept", "inner", "twice", "_ZN3foo3barEi"}
        assert not found(j.pid, "jit*:main") and not found(j.pid, "*hot*", "--exported") and not found(j.pid, "libc*:*hot*")
        # What is of a file goes before.
        j.write(f"{c + 0x400:x} 10 main\n")
        records, _ = find(j.pid, "main")
        assert [(r["module"] == "[jit]", int(r["address"], 16)) for r in records] == [(False, j.places["main"]), (True, c + 0x400)]
        assert run(FATHOM, "addr", "--no-cache", j.pid, "kept+0x4").startswith(f"{c + 0x204:#x} kept+0x4")
        # One of two places is data.
        places = sorted([j.places["data"] + 0x40, c + 0x500])
        j.write(f"{places[0]:x} 8 either\n{places[1]:x} 8 either\n")
        assert run(FATHOM, "addr", "--no-cache", j.pid, "either+0x4").startswith(f"{c + 0x504:#x} either+0x4")
        j.tell("unmap")
        assert not found(j.pid, "jit:*")


@test("find: what follows an @ in a name that a program has made is no version")
def find_scoped(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        name = "JS:~f /node_modules/@babel/core/index.js:1:2"
        j.write(f"{c:x} 20 {name}\n{c + 0x40:x} 10 one@two\n{c + 0x80:x} 10 @three@@four\n")
        whole = {name: [(c, 0x20, "perf-map")]}
        assert found(j.pid, name, "-F") == whole == found(j.pid, "jit:*f*/core/*") == found(j.pid, "/@babel/core/")
        assert found(j.pid, "jit:JS*@babel*") == whole
        assert found(j.pid, "one@two") == {"one@two": [(c + 0x40, 0x10, "perf-map")]} == found(j.pid, "one@two", "-F")
        assert not found(j.pid, ["one", "one@three", "@three", "jit:*babel"])
        assert not found(j.pid, "JS:~f /node_modules/", "-F")
        records, _ = find(j.pid, "jit:*")
        assert {(r["linkage_name"], r["version"]) for r in records} == {(name, None), ("one@two", None), ("@three@@four", None)}
        assert run(FATHOM, "addr", "--no-cache", j.pid, "one@two+0x4").startswith(f"{c + 0x44:#x} one@two+0x4")


@test("find: names of a jitdump, also of code that has moved")
def find_jitdump(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        dump = Dump(folder, j)
        j.tell(f"mark {dump.path}")
        dump.write(jitfiles.load(c, 0x40, 0, "stays") + jitfiles.load(c + 0x100, 0x20, 1, "moves"))
        j.write(f"{c:x} 40 by map\n{c + 0x200:x} 10 map only\n")
        assert found(j.pid, ["stays", "moves", "by map", "map only"]) == {
            "stays": [(c, 0x40, "jitdump")], "moves": [(c + 0x100, 0x20, "jitdump")],
            "map only": [(c + 0x200, 0x10, "perf-map")]}
        dump.write(jitfiles.move(c + 0x100, c + 0x400, 0x20, 1) + jitfiles.load(c, 0x10, 2, "other"))
        assert found(j.pid, ["stays", "moves", "other"]) == {
            "moves": [(c + 0x400, 0x20, "jitdump")], "other": [(c, 0x10, "jitdump")]}


@test("find: names, lines and inlined calls of what GDB's list has; disasm takes the names")
def find_gdb_list(folder):
    source = os.path.join(PROGRAMS, "lines.c")
    with Jitted([build(folder)]) as j:
        c = j.code
        path = os.path.join(folder, "lines.o")
        functions = jitfiles.compiled(path, source, c)
        j.tell(f"register {path}")
        outer = c + functions["outer"][0]
        j.write(f"{outer:x} 10 of the map\n")
        register(folder, j, jitfiles.loaded(c + 0x1000, [("dyn", 0, 0x10), ("amic", 0x20, 0x10)]))
        assert found(j.pid, ["outer", "dyn", "amic", "of the map"]) == {
            "outer": [(outer, functions["outer"][1], "gdb-jit")], "dyn": [(c + 0x1000, 0x10, "gdb-jit")],
            "amic": [(c + 0x1020, 0x10, "gdb-jit")]}
        records, _ = find(j.pid, f"{source}:5")
        assert [(int(r["address"], 16), r["name"], r["module"], r["line"]) for r in records] == \
            [(c + functions["twice"][0], "twice", "[jit]", 5)], records
        copies, _ = find(j.pid, "inner", "--inlined")
        assert [(r["inlined_into"], r["line"], outer <= int(r["address"], 16) < outer + functions["outer"][1])
                for r in copies] == [("outer", 16, True)], copies
        code = run(FATHOM, "disasm", "--no-cache", j.pid, "dyn").splitlines()
        assert code[0] == "dyn:" and f" {c + 0x1000:#x} " in code[1] and len(code) > 1, code
        # A newer entry at the same place; then it goes.
        register(folder, j, jitfiles.relocatable(c + 0x1000, [("newer", 0, 0x10)]), "second")
        assert found(j.pid, ["dyn", "newer"]) == {"newer": [(c + 0x1000, 0x10, "gdb-jit")]}
        j.tell("unregister")
        assert found(j.pid, ["dyn", "newer"]) == {"dyn": [(c + 0x1000, 0x10, "gdb-jit")]}


@test("find: of a list that leads astray nothing is left that it said before, within one run")
def find_astray(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        register(folder, j, jitfiles.relocatable(c, [("stays", 0, 0x20)]))
        register(folder, j, jitfiles.relocatable(c + 0x40, [("goes", 0, 0x20)]), "second")
        command = [FATHOM, "find", "--json", "--no-cache", str(j.pid)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as fathom:
            def place(name):
                fathom.stdin.write(f"{name}\n")
                fathom.stdin.flush()
                return address(json.loads(fathom.stdout.readline()))
            assert [place("stays"), place("goes")] == [c, c + 0x40]
            j.tell("unregister")
            j.tell("astray")
            j.write(f"{c + 0x40:x} 20 by map\n")
            assert [place("stays"), place("goes"), place("by map")] == [None, None, c + 0x40]
            fathom.stdin.close()


@test("find: the names of 100,000 symbol files in GDB's list (5,000 in an instrumented build)")
def find_many(folder):
    with open(FATHOM, "rb") as binary:
        is_itself = re.search(rb"__asan_|__tsan_|__ubsan_", binary.read()) is None and not os.environ.get("WRAPPER")
    n = 100000 if is_itself else 5000
    with Told([build(folder, "many.c"), str(n)]) as program:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        name = f"f{n - 1:07}"
        assert found(program.pid, name) == {name: [(program.places["code"] + 64 * (n - 1), 64, "gdb-jit")]}
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # A comparison of each with each takes twice as long.
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 15
        # As many as fit, a page each.
        with open(os.path.join(folder, "told"), "w+", encoding="ascii") as told:
            process = subprocess.Popen([FATHOM, "find", "--no-cache", "--memory", f"{n // 1600}M", str(program.pid), name],
                                       stdout=told, stderr=told)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            told.seek(0)
            notes = told.read()
        assert "its symbol files are larger than fathom reads" in notes, notes
        assert not is_itself or used.ru_maxrss < 300 << 10, used


@test("find: GDB's list changes all the time: no name is of code that is not there")
def find_churn(folder):
    for pause in (4000, 100000):
        log_path = os.path.join(folder, f"log{pause}")
        process = subprocess.Popen([build(folder, "churn.c"), log_path, str(pause)], stdout=subprocess.PIPE, text=True)
        named = changed = 0
        try:
            code = int(process.stdout.readline(), 16)
            with open(log_path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as log:
                for _ in range(100):
                    before = time.monotonic_ns()
                    records, _ = find(process.pid, "jit:f*")
                    after = time.monotonic_ns()
                    for r in records:
                        if r["linkage_name"] is None:
                            changed += r["reason"] == "changed"
                            continue
                        named += 1
                        number = int(r["linkage_name"][1:])
                        came, left = struct.unpack_from("<QQ", log, number * 16)
                        assert came and came <= after and (not left or left >= before), (r, came, left, before, after)
                        assert int(r["address"], 16) == code + number // 3 % 5 * 64 and r["size"] == 64, r
            assert process.poll() is None, "the program has ended: ask less"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        assert named + changed > 50, (pause, named, changed)


# A real compiler.

def add_lli(kind):
    @test(f"lli-19, {kind}: names and lines of what it has compiled, as gdb says")
    def _(folder):
        source = os.path.join(PROGRAMS, "busy.c")
        code = os.path.join(folder, "busy.bc")
        run("clang-19", "-g", "-O1", "-emit-llvm", "-c", "-o", code, source)
        process = subprocess.Popen(["lli-19", f"--jit-kind={kind}", code], stdout=subprocess.PIPE, text=True)
        try:
            leaf, outer = (int(word, 16) for word in process.stdout.readline().split())
            records, _ = ask(process.pid, [leaf, outer, *range(leaf + 1, leaf + 45)])
            assert [(r["symbol"], r["offset"], r["source"]) for r in records[:2]] == \
                [("hot_leaf", 0, "gdb-jit"), ("hot_outer", 0, "gdb-jit")], records[:2]
            places = [[(f["function"], f["file"], f["line"]) for f in r["frames"]] for r in records]
            assert places[0] == [("hot_leaf", source, 13)] and places[1] == [("hot_outer", source, 20)], places[:2]
            assert all(p[-1][0] == "hot_leaf" for p in places[2:]) and len({p[-1][2] for p in places[2:]}) > 1, places
            check_with_gdb(process.pid, [leaf, outer, leaf + 5, outer + 9])
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


for kind in ("mcjit", "orc"):
    add_lli(kind)


# What ran: a snapshot has all three, a core what is in its memory.

def add_stored(how, store, has_files):
    @test(f"{how}: the same answers when the process is gone")
    def _(folder):
        with Jitted([build(folder)]) as j:
            c = j.code
            j.write(f"{c:x} 100 by map\n{c + 0x80:x} 10 newer\n{c + 0x300:x} 20 far\n{c + 0x308:x} 8 inner\n")
            dump = Dump(folder, j)
            dump.write(jitfiles.load(c, 0x40, 0, "by dump"))
            j.tell(f"mark {dump.path}")
            register(folder, j, jitfiles.relocatable(c, [("by_list", 0, 0x20)]))
            path = os.path.join(folder, "lines.o")
            functions = jitfiles.compiled(path, os.path.join(PROGRAMS, "lines.c"), c + 0x1000)
            j.tell(f"register {path}")
            off, size = functions["outer"]
            addresses = list(range(c - 8, c + 0x340, 4)) + list(range(c + 0x1000 + off - 2, c + 0x1000 + off + size + 2))
            living, _ = ask(j.pid, addresses)
            assert {r["source"] for r in living} == {None, "perf-map", "jitdump", "gdb-jit"}
            names = found(j.pid, "jit:*")
            assert set(names) == {"by_list", "newer", "far", "inner", "outer", "twice"}, names
            stored = store(folder, j.pid)
            if not has_files:
                os.unlink(j.map)
                os.unlink(dump.path)
            check_stored(folder, stored, addresses, living, names, has_files)


def check_stored(folder, stored, addresses, living, names, has_files):
    records, notes = ask(stored, addresses)
    assert "changes" not in notes, notes
    for then, now in zip(living, records, strict=True):
        if then["source"] == "gdb-jit" or has_files and then["symbol"] is None:
            assert now == then, (then, now)
        elif has_files:
            assert all(now[k] == then[k] for k in ("symbol", "offset", "size", "source")), (then, now)
        else:
            assert now["symbol"] is None, now
    kept = {name: places for name, places in names.items() if has_files or places[0][2] == "gdb-jit"}
    assert found(stored, "jit:*") == kept, kept
    # What is kept of it again is as good.
    run(FATHOM, "snapshot", stored, f"{folder}/again")
    assert found(f"{folder}/again", "jit:*") == kept, kept
    again, _ = ask(f"{folder}/again", addresses)
    assert [(r["symbol"], r["offset"]) for r in again] == [(r["symbol"], r["offset"]) for r in records]


def by_snapshot(folder, pid):
    run(FATHOM, "snapshot", pid, f"{folder}/snapshot")
    return f"{folder}/snapshot"


def by_gcore(folder, pid):
    run("gcore", "-o", f"{folder}/core", pid)
    return f"{folder}/core.{pid}"


def add_stored_churn(nanoseconds):
    @test(f"snapshots while GDB's list changes every {nanoseconds} ns: no name is of code that was not there")
    def _(folder):
        log_path = os.path.join(folder, "log")
        process = subprocess.Popen([build(folder, "churn.c"), log_path, str(nanoseconds)], stdout=subprocess.PIPE, text=True)
        taken = []
        named = 0
        try:
            code = int(process.stdout.readline(), 16)
            for turn in range(60):
                before = time.monotonic_ns()
                run(FATHOM, "snapshot", process.pid, f"{folder}/snapshot{turn}")
                taken.append((f"{folder}/snapshot{turn}", before, time.monotonic_ns()))
            assert process.poll() is None, "the program has ended: take less"
            with open(log_path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as log:
                logged = bytes(log)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        for path, before, after in taken:
            records, _ = ask(path, range(code, code + 5 * 64, 4))
            for at, record in zip(range(0, 5 * 64, 4), records, strict=True):
                if record["symbol"] is None:
                    continue
                named += 1
                number = int(record["symbol"][1:])
                came, left = struct.unpack_from("<QQ", logged, number * 16)
                assert came and came <= after and (not left or left >= before), (record, came, left, before, after)
                assert number // 3 % 5 * 64 <= at < number // 3 % 5 * 64 + 64, record
        assert named or nanoseconds < 1000000, "nothing was named: the test shows nothing"


for nanoseconds in (4000, 100000, 2000000):
    add_stored_churn(nanoseconds)


add_stored("a snapshot", by_snapshot, True)
add_stored("a core, and what the process wrote is still there", by_gcore, True)
add_stored("a core, GDB's list only", by_gcore, False)


sys.exit(SUITE.run())
