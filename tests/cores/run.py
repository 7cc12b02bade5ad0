#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "cores": programs tell where they have what, and leave a core or are kept as a snapshot; fathom
has to say the same of it when they are gone. Where it does not tell, fathom has to say why."""
import os
import random
import re
import resource
import shutil
import stat
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import finding  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, HANG_SECONDS, addr, addr_stream, execute, fathom, find, query, refused, run  # noqa: E402
from building import build_id, build_text, debug_path  # noqa: E402
from living import PEERS, PROGRAMS, RANDOM_ADDRESSES, Living, check, random_code  # noqa: E402
from running import ALL, NO_HEADERS, USUAL, Asked, Running, Told, dying, kernels_core  # noqa: E402
from told import PROGRAMS as TOLD_PROGRAMS, STYLES, build, check_places, check_vdso, library, vdso_names  # noqa: E402

SUITE = tap.Suite("cores")
test = SUITE.test
UNNAMED = r"func@\[0x[0-9a-f]+\.\.0x[0-9a-f]+\]"


def by_gcore(running, folder):
    done = execute("gcore", "-o", f"{folder}/core", running.pid)
    if "ptrace" in done.stderr and not os.path.exists(f"{folder}/core.{running.pid}"):
        raise tap.Skip(f"gdb may not attach here: {done.stderr.splitlines()[-1]}")
    running.kill()
    return f"{folder}/core.{running.pid}"


def by_snapshot(running, folder):
    run(FATHOM, "snapshot", running.pid, f"{folder}/snapshot")
    running.kill()
    return f"{folder}/snapshot"


CORES = {"the kernel": kernels_core, "gcore": by_gcore}
WRITERS = {**CORES, "fathom snapshot": by_snapshot}


def leave_core(command, folder, writer=kernels_core, tell=(), core_filter=USUAL):
    """The core of told.c, and what it has told where it is."""
    with Told(dying(*command, core_filter=core_filter), cwd=folder) as told:
        places = dict(told.places)
        for order in tell:
            places.update(told.tell(order))
        return writer(told, folder), places


def add_style(name, compiler, options, writer):
    @test(f"linked: {name}, written by {writer}")
    def _(folder):
        path = build(folder, "told", *options, compiler=compiler)
        core, places = leave_core([path], folder, WRITERS[writer])
        records = check_places(core, places)
        code = [r for r in records if r["symbol"].endswith("_code")]
        assert len(code) == 2 and all(f["file"].endswith("told.c") for r in code for f in r["frames"])
        assert {r["module"] for r in records} == {path}
        (record,), _ = addr(core, [places["large_zero_data"] + 0xfffff])
        assert (record["symbol"], record["offset"]) == ("large_zero_data", 0xfffff), record
        found = finding.places(core, places)
        assert all(place in found[name] for name, place in places.items()), (found, places)


for style in STYLES:
    for who in WRITERS:
        add_style(*style, who)


def add_32_bit(writer):
    @test(f"linked: 32 bit, written by {writer}")
    def _(folder):
        building.need_32_bit()
        path = build(folder, "told", "-static", "-DPLAIN", compiler="i686-linux-gnu-gcc")
        core, places = leave_core([path], folder, WRITERS[writer])
        check_places(core, places)


def add_library(writer):
    @test(f"a library that was loaded twice, in two namespaces, written by {writer}")
    def _(folder):
        path = library(folder, "lib.so")
        with Told(dying(build(folder, "told", "-ldl")), cwd=folder) as told:
            first = told.tell(f"open {path}")
            second = told.tell(f"space {path}")
            core = WRITERS[writer](told, folder)
        assert first != second
        check_places(core, first)
        check_places(core, second)


for who in WRITERS:
    add_32_bit(who)
    add_library(who)


# The names that eu-readelf has for registers, in the order of their DWARF numbers.
REGISTERS = {
    "x86_64": "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split(),
    "i386": "eax ecx edx ebx esp ebp esi edi eip eflags".split(),
}


def threads(target):
    """What the internal program "view" says: number -> text."""
    said = execute(os.path.join(os.environ["BUILD"], "tests", "view"), "threads", target)
    return dict(line.partition(" ")[::2] for line in said.stdout.splitlines())


def peer_threads(core, names):
    """The same by eu-readelf: number of the thread -> its registers."""
    notes = run("eu-readelf", "-n", core).split("PRSTATUS\n")[1:]
    found = {}
    for note in notes:
        note = re.split(r"^  \S", note, flags=re.M)[0]
        values = dict(re.findall(r"([a-z0-9]+):\s+(0x[0-9a-f]+|-?[0-9]+)", note))
        mask = (1 << (32 if "eip" in names else 64)) - 1
        found[values["pid"]] = " ".join(f"{i}={int(values[name], 0) & mask}" for i, name in enumerate(names))
    return found


THREADED = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *wait_for_ever(void *nothing) { for (;;) pause(); return nothing; }
int main(void)
{
	pthread_t t;
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, wait_for_ever, NULL);
	puts("done");
	fflush(stdout);
	wait_for_ever(NULL);
}
"""


def add_registers(writer, machine, *options, compiler="gcc"):
    @test(f"threads and their registers, {machine}, written by {writer}, are those of eu-readelf -n")
    def _(folder):
        if compiler != "gcc":
            building.need_32_bit()
        path = build_text(f"{folder}/threaded", THREADED, "-pthread", *options, compiler=compiler)
        core, _ = leave_core([path], folder, CORES[writer])
        peer = peer_threads(core, REGISTERS[machine])
        assert len(peer) == 4, peer
        assert threads(core) == peer, (threads(core), peer)


for who in CORES:
    add_registers(who, "x86_64")
    add_registers(who, "i386", "-static", compiler="i686-linux-gnu-gcc")


@test("only cores have stored threads; processes, snapshots and files have none")
def threads_of_others(folder):
    path = build_text(f"{folder}/threaded", THREADED, "-pthread")
    with Told([path]) as told:
        alive = threads(told.pid)
        snapshot = by_snapshot(told, folder)
    for said in (alive, threads(snapshot), threads(path)):
        assert said == {"has": "no stored threads: cores do"}, said


def check_unnamed(core, places, wanted, *options, exported=None):
    """Nothing is called but by its true name; what only the file can name is not named, because of @wanted."""
    records, notes = addr(core, [places[n] for n in sorted(places)], *options)
    for name, record in zip(sorted(places), records):
        assert record["symbol"] in (None, exported if name == exported else None) or \
            re.fullmatch(UNNAMED, record["symbol"]), (name, record)
        if record["symbol"] is None:
            assert record["reason"] in wanted, (name, record)
    return notes


def many_functions(folder, name, *options):
    """A library whose tables are so large that the kernel does not store them; and told.c's two functions."""
    source = f"{folder}/{name}.c"
    shutil.copy(os.path.join(TOLD_PROGRAMS, "library.c"), source)
    with open(source, "a", encoding="ascii") as f:
        f.writelines(f"int one_of_many_functions_{i}(int x) {{ return x * {i} + exported_code(x); }}\n"
                     for i in range(400))
    return building.build(f"{folder}/{name}", source, "-shared", "-fPIC", "-Wl,--build-id=sha1", *options)


# Where the library's own file is not there, what it exports may still be known from memory.
KNOWN_BY_MEMORY = "exported_code"


def add_missing(what, change, reason):
    def of(folder, make, writer):
        path = make(folder, "lib.so")
        with Told(dying(build(folder, "told", "-ldl")), cwd=folder) as told:
            places = told.tell(f"open {path}")
            change(folder, make, path)
            return path, WRITERS[writer](told, folder), places

    def add(writer):
        @test(f"a library that was {what}: its names are not known, written by {writer}")
        def _(folder):
            path, core, places = of(folder, many_functions, writer)
            notes = check_unnamed(core, places, [reason], exported=KNOWN_BY_MEMORY)
            assert path in notes, notes

        @test(f"a small library that was {what}: what it exports, if that, written by {writer}")
        def _(folder):
            _, core, places = of(folder, library, writer)
            check_unnamed(core, places, [reason, "no-symbols"], exported=KNOWN_BY_MEMORY)

    for who in WRITERS:
        add(who)

    @test(f"a library that was {what}, and a debug file with its build-id")
    def _(folder):
        kept = f"{folder}/kept"

        def keep(folder, make, path):
            run("objcopy", "--only-keep-debug", path, kept)
            change(folder, make, path)

        path = many_functions(folder, "lib.so")
        number = build_id(path)
        with Told(dying(build(folder, "told", "-ldl")), cwd=folder) as told:
            places = told.tell(f"open {path}")
            keep(folder, many_functions, path)
            core = kernels_core(told, folder)
        os.rename(kept, debug_path(f"{folder}/debug", number))
        records = check_places(core, places, "--debug-dir", f"{folder}/debug")
        assert {(r["source"], r["build_id"]) for r in records} == {("symtab", number)}, records


def delete(_folder, _make, path):
    os.unlink(path)


def replace(folder, make, path):
    os.rename(make(folder, "new.so", "-DOTHER"), path)


def replace_by_text(folder, _make, path):
    with open(f"{folder}/new", "w", encoding="ascii") as text:
        text.write("Not a program.\n")
    os.rename(f"{folder}/new", path)


add_missing("deleted", delete, "no-file")


@test("a library that is away for a while: what is kept of the map between two questions is not that")
def away(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")]) as told:
        places = told.tell(f"open {path}")
        snapshot = by_snapshot(told, folder)
    os.rename(path, f"{folder}/away")
    with Asked(snapshot) as fathom:
        absent = [fathom.one(places[name]) for name in sorted(places)]
        os.rename(f"{folder}/away", path)
        present = [fathom.one(places[name]) for name in sorted(places)]
    assert [(r["symbol"], r["reason"]) for r in absent] == [(None, "no-file")] * len(places), absent
    assert [r["symbol"] for r in present] == sorted(places), present


add_missing("replaced", replace, "build-id-mismatch")
add_missing("replaced by a text", replace_by_text, "build-id-mismatch")


@test("a library that was deleted and came back, the same")
def came_back(folder):
    path = library(folder, "lib.so")
    with Told(dying(build(folder, "told", "-ldl")), cwd=folder) as told:
        places = told.tell(f"open {path}")
        shutil.copy(path, f"{folder}/copy")
        os.unlink(path)
        core = kernels_core(told, folder)
    os.rename(f"{folder}/copy", path)
    check_places(core, places)


@test("a library that was replaced and loaded again, twice deleted: each is told apart by its first page")
def twins(folder):
    path = many_functions(folder, "lib.so")
    with Told(dying(build(folder, "told", "-ldl")), cwd=folder) as told:
        first = told.tell(f"open {path}")
        other = many_functions(folder, "other.so", "-DOTHER")
        os.rename(path, f"{folder}/first.so")
        shutil.copy(other, path)
        second = told.tell(f"space {path}")
        os.unlink(path)
        # The map has both as "lib.so (deleted)".
        os.unlink(f"{folder}/first.so")
        core = kernels_core(told, folder)
    shutil.copy(other, path)
    assert first["hidden_in_library"] != second["hidden_in_library"]
    (record,), _ = addr(core, [second["hidden_in_library"]])
    assert record["symbol"] == "hidden_in_other", record
    (record,), _ = addr(core, [first["hidden_in_library"]])
    assert record["symbol"] is None, record


@test("the files are elsewhere: below --sysroot, or where --exe says")
def elsewhere(folder):
    os.mkdir(f"{folder}/there")
    path = build(f"{folder}/there", "told", "-ldl")
    core, places = leave_core([path], folder)
    os.makedirs(f"{folder}/root{folder}")
    os.rename(f"{folder}/there", f"{folder}/root{folder}/there")
    here = f"{folder}/root{path}"
    check_unnamed(core, places, ["no-file", "no-symbols"])
    records = check_places(core, places, "--sysroot", f"{folder}/root")
    assert {r["module"] for r in records} == {path}
    check_places(core, places, "--exe", here)
    # Another program is not taken for it.
    other = build(folder, "other", "-ldl", "-DOTHER", "-O2")
    notes = check_unnamed(core, places, ["build-id-mismatch", "no-symbols"], "--exe", other)
    assert "is not the file that was mapped" in notes, notes


@test("--sysroot: what is not below it is not of the machine that the core is of")
def other_machine(folder):
    path = build(folder, "told", "-static", "-DPLAIN", "-Wl,--build-id=0x0123456789abcdef")
    core, places = leave_core([path], folder)
    # This machine has the program in a debug directory.
    os.makedirs(f"{folder}/debug/.build-id/01")
    os.rename(path, f"{folder}/debug/.build-id/01/23456789abcdef")
    os.makedirs(f"{folder}/root{folder}")
    check_places(core, places, "--debug-dir", f"{folder}/debug")
    check_unnamed(core, places, ["no-file", "no-symbols"], "--debug-dir", f"{folder}/debug", "--sysroot", f"{folder}/root")
    shutil.move(f"{folder}/debug", f"{folder}/root{folder}/debug")
    check_places(core, places, "--debug-dir", f"{folder}/debug", "--sysroot", f"{folder}/root")


@test("a machine without any of the files: reasons, and what memory tells")
def nothing_there(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    core, places = leave_core([path], folder)
    os.unlink(path)
    records, notes = addr(core, [places[n] for n in sorted(places)])
    assert [(r["symbol"], r["reason"]) for r in records] == [(None, "no-file")] * len(places), records
    assert path in notes and "No such file" in notes, notes


@test("a program without a build-id: by its code if that was stored, or as the user says; else not")
def no_build_id(folder):
    path = build(folder, "told", "-Wl,--build-id=none", "-ldl")
    core, places = leave_core([path], folder)
    notes = check_unnamed(core, places, ["no-file", "no-symbols"])
    assert f"{path}: may not be the file that was mapped: it has no build-id, and its code was not stored " \
        "(--unverified-files takes it all the same)" in notes, notes
    check_places(core, places, "--exe", path)
    _, notes = addr(core, [places["main"]], "--exe", path)
    assert "what was stored cannot tell" in notes, notes
    # Taken as it is, which each answer says.
    records = check_places(core, places, "--unverified-files")
    assert all(r["unverified"] is True for r in records if r["module"] == path), records
    records, notes = addr(core, [places["main"]], "--unverified-files")
    assert f"{path}: is taken although nothing that was stored proves that it was mapped" in notes, notes
    os.unlink(core)
    core, places = leave_core([path], folder, core_filter=ALL)
    check_places(core, places)
    # The same but for one instruction: as large, with the same headers.
    build(folder, "other", "-Wl,--build-id=none", "-ldl")
    with open(f"{folder}/other", "r+b") as other:
        code = other.read()
        at = code.index(b"\x8d\x04\x7f")  # lea (%rdi,%rdi,2): x * 3
        other.seek(at)
        other.write(b"\x8d\x04\xbf")
    os.rename(f"{folder}/other", path)
    check_unnamed(core, places, ["build-id-mismatch", "no-symbols"], exported="visible_code")
    # It is another one for sure.
    check_unnamed(core, places, ["build-id-mismatch", "no-symbols"], "--unverified-files", exported="visible_code")


@test("no ELF headers were stored: nothing tells whose the files are")
def no_headers(folder):
    path = build(folder, "told", "-ldl")
    core, places = leave_core([path], folder, core_filter=NO_HEADERS)
    notes = check_unnamed(core, places, ["no-file"])
    assert "may not be the file that was mapped: its build-id was not stored" in notes, notes
    check_places(core, places, "--exe", path)


@test("[vdso]: all functions of the image in the core")
def vdso(folder):
    with Told(dying(build(folder)), cwd=folder) as told:
        names = vdso_names(told.pid, folder)
        core = kernels_core(told, folder)
    check_vdso(core, names)


COMPRESSORS = {"gz": "gzip", "xz": "xz", "zst": "zstd", "lz4": "lz4"}


def add_compressor(suffix, command):
    @test(f"compressed: .{suffix}")
    def _(folder):
        core, places = leave_core([build(folder)], folder)
        run(command, "-q", "-k", core, *([f"{core}.lz4"] if command == "lz4" else []))
        check_places(f"{core}.{suffix}", places)
        assert "--memory" in refused("addr", "--memory", "1K", f"{core}.{suffix}", "main")


for one in COMPRESSORS.items():
    add_compressor(*one)


@test("symbols and sums are addresses, as in a process")
def symbols(folder):
    core, places = leave_core([build(folder, "told", "-ldl")], folder)
    records, _ = addr(core, ["main", "visible_code+0x2"])
    assert [r["address"] for r in records] == [hex(places["main"]), hex(places["visible_code"] + 2)], records
    assert "core" in refused("addr", "--section", ".text", core, "0")


def add_cuts(writer):
    @test(f"cut short at many places: never a wrong name, written by {writer}")
    def _(folder):
        core, places = leave_core([build(folder, "told", "-ldl")], folder, WRITERS[writer],
                                  [f"open {library(folder, 'lib.so')}"])
        with open(core, "rb") as f:
            whole = f.read()
        number, = struct.unpack_from("<H", whole, 56)
        bounds = [64 + 56 * i for i in range(number + 1)]
        for i in range(number):
            off, = struct.unpack_from("<Q", whole, 64 + 56 * i + 8)
            size, = struct.unpack_from("<Q", whole, 64 + 56 * i + 32)
            bounds += [off, off + size]
        rng = random.Random(1)
        cuts = {b + d for b in bounds for d in (-1, 0, 1)} | {rng.randrange(len(whole)) for _ in range(200)}
        names = sorted(places)
        named = 0
        for cut in sorted(c for c in cuts if 0 < c < len(whole)):
            with open(f"{folder}/cut", "wb") as f:
                f.write(whole[:cut])
            done = fathom("addr", "--no-cache", f"{folder}/cut", *(hex(places[n]) for n in names))
            assert done.returncode in (0, 1, 2), (cut, done)
            assert (done.stderr or cut >= max(bounds)) and (done.returncode != 2 or not done.stdout), (cut, done)
            lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
            for name, line in zip(names, lines, strict=done.returncode != 2):
                assert re.match(rf"0x\w+ ({name}\+0x0|\?\? \([a-z-]+\)|{UNNAMED})", line), (cut, name, line)
                named += f" {name}+" in line
        assert named, "nothing was named: the test shows nothing"


for who in CORES:
    add_cuts(who)


@test("gcore's list of files, at the end, was cut off: the dynamic linker's list and --exe have to do")
def list_cut_off(folder):
    path = build(folder, "told", "-ldl")
    core, places = leave_core([path], folder, by_gcore, [f"open {library(folder, 'lib.so')}"])
    with open(core, "r+b") as f:
        f.truncate(struct.unpack_from("<Q", f.read(80), 72)[0])
    in_library = {n: a for n, a in places.items() if n in ("exported_code", "hidden_in_library")}
    _, notes = addr(core, [places["main"]])
    assert "NT_FILE" in notes, notes
    assert "[unnamed]: has no path that leads to it (the core does not tell which program it is of: name it with --exe)" in notes, notes
    check_places(core, in_library)
    check_places(core, places, "--exe", path)


MANY = """
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
	char *p = mmap(NULL, 140000 * 4096L, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (long i = 0; i < 140000; i += 2)
		if (mprotect(p + i * 4096, 4096, PROT_READ))
			return 1;
	printf("main 0x%lx\\ndone\\n", (unsigned long)main);
	fflush(stdout);
	return getchar();
}
"""


@test("more than 65,535 mappings")
def many_mappings(folder):
    build_text(f"{folder}/many", MANY)
    limit = "/proc/sys/vm/max_map_count"
    with open(limit, encoding="ascii") as f:
        before = f.read()
    try:
        with open(limit, "w", encoding="ascii") as f:
            f.write("200000")
    except OSError as error:
        raise tap.Skip(f"so many mappings are not allowed here: {error}") from error
    try:
        core, places = leave_core([f"{folder}/many"], folder)
    finally:
        with open(limit, "w", encoding="ascii") as f:
            f.write(before)
    with open(core, "rb") as f:
        header = f.read(64)
    assert struct.unpack_from("<H", header, 56)[0] == 0xffff
    check_places(core, places)


def check_code(core, path):
    """The instructions of a function are those of its file."""
    there, code = ([record["bytes"] for record in query("disasm", target, "visible_code", status=0)[0]]
                   for target in (core, path))
    assert there == code and len(code) > 3, (there, code)


@test("code that was not stored is read from the file; data that was not is not")
def read_from_file(folder):
    path = build(folder, "told", "-ldl")
    core, places = leave_core([path], folder, core_filter=0x10)
    check_code(core, path)
    out = run(FATHOM, "find", "--read", "i32", core, "initialised_data", status=1)
    assert hex(places["initialised_data"]) in out, out
    os.unlink(core)
    core, places = leave_core([path], folder)
    assert re.search(r"\b1\b", run(FATHOM, "find", "--read", "i32", core, "initialised_data").split("initialised_data")[-1])


@test("a core or library of 65,000 segments, each of them all of its notes, takes no time")
def notes_over_notes(folder):
    n, size = 65000, 8 << 20
    begin = 64 + 56 * n
    notes = struct.pack("<IIQQQQQQ", 4, 4, begin, 0, 0, size, 0, 4)  # PT_NOTE
    load = struct.pack("<IIQQQQQQ", 1, 5, begin, 0x1000, 0, 4096, 4096, 4096)
    for type, name in ((4, "core"), (3, "library")):  # ET_CORE, ET_DYN
        with open(f"{folder}/{name}", "wb") as f:
            f.write(b"\x7fELF\2\1\1".ljust(16, b"\0"))
            f.write(struct.pack("<HHIQQQIHHHHHH", type, 62, 1, 0, 64, 0, 0, 64, 56, n, 0, 0, 0))
            f.write(notes * (n - 1) + load + bytes(size))
        done = fathom("addr", "--no-cache", f"{folder}/{name}", "0x1000", processor_seconds=20)
        assert done.returncode == (2 if name == "core" else 1), done
        assert name != "core" or "notes that lie over others" in done.stderr, done


@test("a core that has one piece of memory at 60,000 places is refused at once")
def memory_over_memory(folder):
    n, size, first, step = 60000, 4 << 20, 1 << 28, 1 << 28

    def header(type, count):
        return b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", type, 62, 1, 0, 64, 0, 0, 64, 56,
                                                                count, 0, 0, 0)

    def segment(type, off, address, size):
        return struct.pack("<IIQQQQQQ", type, 5, off, address, address, size, size, 4)

    library = header(3, 2) + segment(4, 4096, 4096, size - 4096) + segment(1, 0, 0, size)
    files = struct.pack("<QQ", n, 1)
    files += b"".join(struct.pack("<QQQ", first + i * step, first + i * step + size, 0) for i in range(n)) + b"/x\0" * n
    files += bytes(-len(files) % 4)
    note = struct.pack("<III8s", 5, len(files), 0x46494c45, b"CORE") + files  # NT_FILE
    begin = 64 + 56 * (n + 1)
    memory = (begin + len(note) + 4095) & ~4095
    with open(f"{folder}/core", "wb") as f:
        f.write(header(4, n + 1) + segment(4, begin, 0, len(note)))
        f.write(b"".join(segment(1, memory, first + i * step, size) for i in range(n)))
        f.write(note.ljust(memory - begin, b"\0") + library.ljust(size, b"\0"))
    assert "memory that lies over other" in refused("addr", "--no-cache", f"{folder}/core", hex(first), processor_seconds=20)


@test("a snapshot of a core is as good as one of the process")
def of_core(folder):
    path = build(folder, "told", "-ldl")
    core, places = leave_core([path], folder)
    run(FATHOM, "snapshot", core, f"{folder}/snapshot")
    os.unlink(core)
    assert os.stat(f"{folder}/snapshot").st_size < 65536
    check_places(f"{folder}/snapshot", places)
    check_places(f"{folder}/snapshot", places, "--exe", path)


def read_value(target, kind, name):
    (record, *_), _ = find(target, name, "--first", "--read", kind)
    return record["value"], record["reason"]


def add_memory(writer):
    @test(f"memory that was not stored is that of the file, if nobody writes there, written by {writer}")
    def _(folder):
        path = build(folder, "told", "-ldl")
        core, _ = leave_core([path], folder, WRITERS[writer])
        assert read_value(core, "str", "constant_data") == ("constant", None)
        value, reason = read_value(core, "i32", "initialised_data")
        assert (value, reason) == (1, None) if writer in CORES else value is None and reason, (value, reason)
        check_code(core, path)


for who in WRITERS:
    add_memory(who)


@test("a snapshot, and programs without a build-id: only the very file, unchanged")
def snapshot_no_build_id(folder):
    path = build(folder, "told", "-Wl,--build-id=none", "-ldl")
    snapshot, places = leave_core([path], folder, by_snapshot)
    check_places(snapshot, places)
    shutil.copy(path, f"{folder}/copy")
    os.chmod(path, 0o700)  # its content may have changed with this
    notes = check_unnamed(snapshot, places, ["no-file", "no-symbols"])
    assert "may not be the file" in notes, notes
    check_places(snapshot, places, "--exe", f"{folder}/copy")


@test("snapshots that are damaged, cut or of another version are refused in one line")
def bad_snapshots(folder):
    snapshot, _ = leave_core([build(folder)], folder, by_snapshot)
    with open(snapshot, "rb") as f:
        whole = f.read()
    rng = random.Random(1)
    bad = [whole[:n] for n in [8, 12, 23, 24, 25, len(whole) - 1] + rng.sample(range(26, len(whole)), 20)]
    bad += [whole + b"\0"]
    for at in list(range(8, 24)) + rng.sample(range(24, len(whole)), 60):
        bad.append(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1:])
    for data in bad:
        with open(f"{folder}/bad", "wb") as f:
            f.write(data)
        said = refused("addr", f"{folder}/bad", "main")
        assert "snapshot" in said and f"{folder}/bad" in said, said


@test("snapshots that cannot be taken are refused in one line, and what was there stays")
def no_snapshot(folder):
    path = build(folder, "told", "-ldl")
    with open(f"{folder}/kept", "w", encoding="ascii") as f:
        f.write("before")
    with Running(["true"]) as gone:
        pass
    with Told([path]) as told:
        for arguments, words in (([path, f"{folder}/kept"], "not of a file"), ([gone.pid, f"{folder}/kept"], "no such process"),
                                 ([told.pid, f"{folder}/none/file"], "No such file"), ([told.pid], "are wanted"),
                                 ([told.pid, folder], "directory"), ([f"{folder}/none", f"{folder}/kept"], "No such file")):
            said = refused("snapshot", *arguments)
            assert words in said, said
    with open(f"{folder}/kept", encoding="ascii") as f:
        assert f.read() == "before"
    assert sorted(os.listdir(folder)) == ["kept", "told"]


@test("a snapshot goes into a pipe, and to where a link leads, which stay what they are")
def snapshot_into(folder):
    os.mkfifo(f"{folder}/pipe")
    os.symlink("pointed", f"{folder}/link")
    with open(f"{folder}/pointed", "w", encoding="ascii") as f:
        f.write("before")
    with Told([build(folder, "told", "-ldl")]) as told:
        with Running(["timeout", HANG_SECONDS, "cat", f"{folder}/pipe"], text=False) as reader:
            run(FATHOM, "snapshot", told.pid, f"{folder}/pipe")
            # When the pipe is gone, nobody writes to it any more.
            os.close(os.open(f"{folder}/pipe", os.O_RDWR | os.O_NONBLOCK))
            with open(f"{folder}/piped", "wb") as f:
                f.write(reader.process.communicate(timeout=HANG_SECONDS)[0])
        run(FATHOM, "snapshot", told.pid, f"{folder}/link")
        for snapshot in ("piped", "link"):
            check_places(f"{folder}/{snapshot}", told.places)
    assert stat.S_ISFIFO(os.lstat(f"{folder}/pipe").st_mode)
    assert os.path.islink(f"{folder}/link") and os.path.getsize(f"{folder}/pointed") > 1000


def add_comparison(program, writer, peer):
    @test(f"{RANDOM_ADDRESSES} random addresses of {program}'s core by {writer} beside {peer}")
    def _(folder):
        living = Living(program, folder)
        resource.prlimit(living.process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with living as pid:
            addresses = random_code(pid)
            core = CORES[writer](living, folder)
        ours = addr_stream(core, addresses, "--names-only")
        target = [shutil.which(PROGRAMS[program][0]), core] if peer == "gdb" else [f"--core={core}"]
        check(f"{program}'s core by {writer}", peer, ours, PEERS[peer][0](target, addresses, folder))


for real in ("python3", "perl"):
    for who in CORES:
        for other in PEERS:
            add_comparison(real, who, other)


sys.exit(SUITE.run())
