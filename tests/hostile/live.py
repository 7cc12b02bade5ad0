# SPDX-License-Identifier: MIT
"""Lies in what processes leave and say: cores, snapshots, perf maps, jitdumps, GDB's list in their memory, and
indexes in the cache."""
import contextlib
import glob
import os
import shutil
import signal
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "jit")]

import elfread  # noqa: E402
import jitfiles  # noqa: E402
import lies  # noqa: E402
import told  # noqa: E402
from ask import FATHOM, run  # noqa: E402
from running import HEADERS_ONLY, Told, dying, peek  # noqa: E402
from every import Job, questions  # noqa: E402

JITTED = os.path.join(HERE, "..", "jit", "programs", "jitted.c")
FUNCTION = 0x20
N_FUNCTIONS = 12


def _asked(places):
    return [f"ask {place + off:x}" for place in places for off in (0, 3)]


def _notes(lies_of, start, size):
    """The words of notes that state sizes and counts."""
    at = start
    while at + 12 <= start + size:
        name, desc, type = struct.unpack_from("<III", lies_of.elf.bytes, at)
        body = at + 12 + (name + 3) // 4 * 4
        lies_of.word("s", at, 4, (lies.ALL, 1 << 31, size), f"note-{type:x}.namesz")
        lies_of.word("s", at + 4, 4, (lies.ALL, 1 << 31, size), f"note-{type:x}.descsz")
        if type == 0x46494c45:  # NT_FILE
            lies_of.word("s", body, 8, (lies.ALL, 1 << 31, 1 << 40), "NT_FILE.count")
        at = body + (desc + 3) // 4 * 4


def _of_core(path):
    core = lies.ElfLies(path)
    for number in range(core.elf.phnum):
        type, _, off, _, _, size = struct.unpack_from("<IIQQQQ", core.elf.bytes, core.elf.phoff + 56 * number)
        if type == 4:
            _notes(core, off, size)
    for i in range(1, 20):
        core.cut("s", core.size * i // 20, "core")
    return core.lines


def _of_snapshot(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    snapshot = lies.Lies(end=len(data))
    snapshot.word("s", 8, 4, (0, 2, lies.ALL), "version")
    snapshot.word("s", 12, 4, (0, lies.ALL), "checksum")
    snapshot.word("s", 16, 8, (0, lies.ALL, 1 << 63, len(data)), "size")
    for i in range(24):
        snapshot.cut("s", 1 + (len(data) - 2) * i // 23, "snapshot")
        snapshot.fill("s", 24 + (len(data) - 40) * i // 23, 8, "noise", "body")
    # Sizes and counts of records, under a checksum that is right.
    at = 24
    while at + 16 <= len(data):
        _, _, size = struct.unpack_from("<IIQ", data, at)
        if at < 4000:
            for value in (lies.ALL, 1 << 63, len(data), 1 << 31):
                whole = bytearray(data)
                struct.pack_into("<Q", whole, at + 8, value)
                struct.pack_into("<I", whole, 12, zlib.crc32(whole[24:]))
                snapshot.write("s", 12, bytes(whole[12:at + 16]), f"record@{at:x}.size={value:#x}")
        at += 16 + (size + 7) // 8 * 8
    return snapshot.lines


def leave_dump(folder):
    """What a running told.c has told, the path of its snapshot, and that of its core; where the system gives cores to
    another program, there is none."""
    path = told.build(folder, "told", f"-ffile-prefix-map={folder}=/work", "-ldl")
    with Told(dying(path, core_filter=HEADERS_ONLY), cwd=folder) as program:
        snapshot = os.path.join(folder, "snapshot")
        run(FATHOM, "snapshot", program.pid, snapshot)
        program.signal(signal.SIGABRT)
        program.process.wait()
    return program.places, snapshot, *glob.glob(os.path.join(folder, "core*"))


@contextlib.contextmanager
def stored(folder):
    """A core and a snapshot of a program."""
    places, snapshot, *cores = leave_dump(folder)
    asked = _asked(places.values())
    jobs = [Job("a snapshot", snapshot, snapshot, asked, _of_snapshot(snapshot))]
    jobs += [Job("a core", core, core, asked, _of_core(core)) for core in cores]
    yield jobs


@contextlib.contextmanager
def _jitted(folder):
    path = os.path.join(folder, "jitted")
    run("gcc", "-O1", "-g", "-o", path, JITTED)
    with Told([path]) as program:
        yield program


def _names(code):
    return [(code + 2 * FUNCTION * i, f"function_{i}") for i in range(N_FUNCTIONS)]


@contextlib.contextmanager
def perf_map(folder):
    with _jitted(folder) as program:
        code, path = program.places["code"], f"/tmp/perf-{program.pid}.map"
        lines = [f"{start:x} {FUNCTION:x} {name}\n" for start, name in _names(code)]
        with open(path, "w", encoding="ascii") as file:
            file.write("".join(lines))
        told_lies, at = lies.Lies(end=sum(map(len, lines))), 0
        for number, line in enumerate(lines):
            address, size, _ = line.split()
            label = f"line{number}"
            # In the name, what is left is as sound as before.
            for cut in range(1, len(address) + len(size) + 3):
                told_lies.cut("s", at + cut, label)
            for byte in ("0", "ff", "noise"):
                told_lies.fill("s", at, len(line) - 1, byte, label)
                told_lies.fill("s", at, len(address), byte, f"{label}.address")
                told_lies.fill("s", at + len(address) + 1, len(size), byte, f"{label}.size")
            told_lies.write("s", at, b"f" * len(address), f"{label}.address=f")
            at += len(line)
        try:
            yield [Job("a perf map", program.pid, path, _asked(start for start, _ in _names(code)), told_lies.lines)]
        finally:
            os.unlink(path)


@contextlib.contextmanager
def jitdump(folder):
    with _jitted(folder) as program:
        code, path = program.places["code"], os.path.join(folder, f"jit-{program.pid}.dump")
        records = [jitfiles.dump_header(program.pid)]
        for number, (start, name) in enumerate(_names(code)):
            records.append(jitfiles.lines(start, [(0, 10 + number, "a.js"), (8, 11 + number, None)]))
            records.append(jitfiles.load(start, FUNCTION, number, name, pid=program.pid))
        data = b"".join(records)
        with open(path, "wb") as file:
            file.write(data)
        program.tell(f"mark {path}")
        told_lies, at = lies.Lies(end=len(data)), len(records[0])
        told_lies.word("s", 0, 4, (0, lies.ALL), "magic")
        told_lies.word("s", 4, 4, (0, 9, lies.ALL), "version")
        told_lies.word("s", 8, 4, (0, lies.ALL, len(data) + 1, 1 << 31), "header-size")
        for record in records[1:]:
            id, _ = struct.unpack_from("<II", record)
            told_lies.word("s", at + 4, 4, (0, 15, lies.ALL, 1 << 31, len(data)), f"record-{id}.size")
            if id == jitfiles.LOAD:
                told_lies.word("s", at + 40, 8, (lies.ALL, 1 << 63, len(data)), "load.code_size")
                told_lies.fill("l", at + 24, 24, "noise", "load")
            else:
                told_lies.word("s", at + 24, 8, (lies.ALL, 1 << 63, 1 << 31), "lines.count")
            told_lies.fill("s", at, 16, "0", f"record-{id}")
            at += len(record)
        for i in range(60):
            told_lies.cut("s", 1 + (len(data) - 2) * i // 59, "jitdump")
        yield [Job("a jitdump", program.pid, path, _asked(start for start, _ in _names(code)), told_lies.lines)]


def _descriptor(program):
    """The address of the head of GDB's list: as far from main as in the file."""
    symbols = {x.name: x.value for x in elfread.ElfFile(program.process.args[0]).symbols()}
    return program.places["main"] + symbols["__jit_debug_descriptor"] - symbols["main"]


@contextlib.contextmanager
def gdb_list(folder):
    with _jitted(folder) as program:
        code = program.places["code"]
        entries = []
        for number, (start, name) in enumerate(_names(code)[:4]):
            path = os.path.join(folder, f"symbols{number}")
            with open(path, "wb") as file:
                file.write(jitfiles.relocatable(start, [(name, 0, FUNCTION)]))
            entries.append((program.tell(f"register {path}")["entry"], path))
        memory = f"/proc/{program.pid}/mem"
        told_lies, head = lies.Lies(), _descriptor(program)
        wild = (8, code + 1, 1 << 62, lies.ALL, lies.ALL - 7)
        told_lies.word("s", head, 4, (0, 2, lies.ALL), "descriptor.version")
        told_lies.word("s", head + 16, 8, (0, *wild), "descriptor.first")
        for entry, _ in entries:
            told_lies.word("s", entry, 8, (0, entry, *wild), "entry.next")
            told_lies.word("s", entry + 16, 8, (0, *wild), "entry.symfile")
            told_lies.word("s", entry + 24, 8, (0, 1, 63, 1 << 62, lies.ALL), "entry.size")
        entry, path = entries[1]
        at, = struct.unpack("<Q", peek(program.pid, entry + 16, 8))
        for line in lies.of_elf(path):
            verb, kind, where, rest = line.split(" ", 3)
            if verb != "cut":
                told_lies.lines.append(f"{verb} {kind} {int(where, 16) + at:x} {rest}")
        yield [Job("the list for GDB", program.pid, memory, _asked(start for start, _ in _names(code)), told_lies.lines)]


@contextlib.contextmanager
def index(folder):
    """An index in the cache. Its file says where it is of: pages have checksums, all of them are looked at."""
    path, cache = told.build(folder, "told", "-ldl"), os.path.join(folder, "cache")
    asked = [f"cache {cache}", *questions(path)]
    run(FATHOM, "cache", f"--cache-dir={cache}", "build", path)
    (stored_index,) = glob.glob(os.path.join(cache, "*.fidx"))
    size = os.path.getsize(stored_index)
    told_lies = lies.Lies(end=size)
    for at in (*range(0, 256, 8), *(size * i // 97 for i in range(1, 97))):
        for byte in ("0", "ff", "noise"):
            told_lies.fill("s", at, 8, byte, f"index+{at:x}")
    for at in range(0, size, 4096):
        told_lies.fill("s", at, 4096, "0", f"page@{at:x}")
    for i in range(60):
        told_lies.cut("s", 1 + (size - 2) * i // 59, "index")
    yield [Job("an index", path, stored_index, asked, told_lies.lines)]
    shutil.rmtree(cache)


ALL = (stored, perf_map, jitdump, gdb_list, index)
