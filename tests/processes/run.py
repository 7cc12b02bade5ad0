#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "processes": programs tell where they have what; fathom has to say the same of them."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from amounts import amount  # noqa: E402
from ask import FATHOM, HANG_SECONDS, NOBODY, addr, as_user, find, refused, run  # noqa: E402
from building import add_link, build_id, keep_debug, need_32_bit  # noqa: E402
from living import PEERS, RANDOM_ADDRESSES, Living, compare, named_data, random_code, random_data, why_guessed  # noqa: E402
from running import Asked, Running, Told, in_memory, mapping_of, mappings_of, wait_for_state  # noqa: E402
from told import STYLES, build, check_places, check_vdso, library, vdso_names  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
SUITE = tap.Suite("processes", "become another user, change its root or mount")
test = SUITE.test


def add_style(name, compiler, options):
    @test(f"linked: {name}")
    def _(folder):
        with Told([build(folder, "told", *options, compiler=compiler)]) as told:
            records = check_places(told.pid, told.places)
            code = [r for r in records if r["symbol"].endswith("_code")]
            assert len(code) == 2 and all(f["file"].endswith("told.c") for r in code for f in r["frames"])
            # Far behind the end of what the file holds of it.
            (record,), _ = addr(told.pid, [told.places["large_zero_data"] + 0xfffff])
            assert (record["symbol"], record["offset"]) == ("large_zero_data", 0xfffff), record


for style in STYLES:
    add_style(*style)


@test("linked: 32 bit")
def thirty_two_bit(folder):
    need_32_bit()
    with Told([build(folder, "told", "-static", "-DPLAIN", compiler="i686-linux-gnu-gcc")]) as told:
        check_places(told.pid, told.places)


@test("stripped, with a debug file that .gnu_debuglink names")
def debug_link(folder):
    path = build(folder)
    add_link(path, keep_debug(path))
    with Told([path]) as told:
        check_places(told.pid, told.places)


@test("the module and its build-id are those of the file")
def module_of_answer(folder):
    path = build(folder, "told", "-Wl,--build-id=0x1122334455667788990011223344556677889900", "-ldl")
    with Told([path]) as told:
        (record,), _ = addr(told.pid, [told.places["main"]])
        assert record["module"] == path and record["build_id"] == "1122334455667788990011223344556677889900"
        value = next(line.split()[0] for line in run("nm", path).splitlines() if line.endswith(" T main"))
        assert int(record["module_address"], 16) == int(value, 16), record
        assert int(record["address"], 16) == told.places["main"]


@test("a library that is loaded twice, in two namespaces")
def two_namespaces(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")]) as told:
        first = told.tell(f"open {path}")
        second = told.tell(f"space {path}")
        assert first != second
        check_places(told.pid, first)
        check_places(told.pid, second)


@test("the walk over modules has each once, at each place where it is loaded")
def module_walk(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")], cwd=folder) as told:
        told.tell(f"open {path}")
        told.tell(f"space {path}")
        said = run(os.path.join(os.environ["BUILD"], "tests", "view"), "modules", told.pid).splitlines()
        maps = list(mappings_of(told.pid))
    modules = [(name, int(start, 16)) for name, _, start in (line.split() for line in said)]
    # A file that is executed begins with a mapping of its start.
    files = {m.path for m in maps if "x" in m.rights and (m.path.startswith("/") or m.path == "[vdso]")}
    assert modules == [(m.path, m.start) for m in maps if m.path in files and not m.off], (modules, maps)
    assert [name for name, _ in modules].count(path) == 2, modules


@test("libraries that take turns at one address, asked within one run")
def turns(folder):
    paths = [library(folder, "a.so"), library(folder, "b.so", "-DOTHER")]
    with Told([build(folder, "told", "-ldl")]) as told, Asked(told.pid) as fathom:
        seen = set()
        for turn in range(40):
            place = told.tell(f"open {paths[turn % 2]}")["hidden_in_library"]
            seen.add(place)
            for closed in (False, True):
                if closed:
                    told.tell("close")
                record, = fathom.ask(place)
                if closed:
                    assert (record["symbol"], record["reason"]) == (None, "unmapped"), record
                else:
                    assert record["symbol"] == ("hidden_in_library", "hidden_in_other")[turn % 2], record
        assert len(seen) < 40, "no address was used twice: the test shows nothing"


def found(pid, names):
    """Where find says that they are."""
    return {(r["query"], int(r["address"], 16)) for r in find(pid, names)[0] if r["address"]}


@test("a page of code that is mapped once more, below and above: the library stays where it is")
def mapped_twice(folder):
    for options in (["-Wl,-z,separate-code"], ["-Wl,-z,noseparate-code"], ["-fuse-ld=lld"]):
        path = library(folder, "lib.so", *options, compiler="clang" if "lld" in options[0] else "gcc")
        with Told([build(folder, "told", "-ldl")]) as told:
            places = told.tell(f"open {path}")
            again = told.tell(f"twice {path}")
            # The library lies between the two.
            assert again["low"] < min(places.values()) and again["high"] > max(places.values()), (again, places)
            check_places(told.pid, places)
            assert ("hidden_in_library", places["hidden_in_library"]) in found(told.pid, ["hidden_in_library"])
            # Where its code is run a second time it has its names, too.
            off = {name: place - again["code"] for name, place in places.items()}
            for where in ("low", "high"):
                records, _ = addr(told.pid, [again[where] + off[name] for name in sorted(off)])
                assert [r["symbol"] for r in records] in (sorted(off), [None] * len(off)), (options, records)


@test("code whose mapping is split, and a part of it that was replaced by a copy in memory")
def split_code(folder):
    for options in ([], ["-no-pie"], ["-Wl,-z,noseparate-code"]):
        with Told([build(folder, "told", "-DLARGE", *options, "-ldl")]) as told:
            for change in ("split", "move"):
                told.tell(change)
                page = told.places["visible_code"] & ~0xfff
                starts = [m.start for m in mappings_of(told.pid) if m.rights[2] == "x" and m.path.endswith("/told")]
                assert starts and (page in starts) == (change == "split") and min(starts) < page, (change, starts)
                check_places(told.pid, told.places)
                names = set(told.places.items())
                assert names <= found(told.pid, sorted(told.places)), (options, change)


@test("a file that was deleted")
def deleted(folder):
    path = build(folder)
    with Told([path]) as told:
        os.unlink(path)
        records = check_places(told.pid, told.places)
        assert {r["module"] for r in records} == {path}


@test("a process whose first thread has ended")
def first_thread_ended(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")]) as told:
        told.places |= told.tell(f"open {path}")
        made = told.tell(f"map {path}")["behind"]
        leave(told)
        check_places(told.pid, told.places)
        try:
            with open(f"/tmp/perf-{told.pid}.map", "w", encoding="ascii") as perf_map:
                perf_map.write(f"{made:x} 20 made_by_it\n")
            (record,), _ = addr(told.pid, [made])
            assert record["symbol"] == "made_by_it", record
        finally:
            os.unlink(f"/tmp/perf-{told.pid}.map")
        # By its content and from its memory, too: only a thread has these.
        os.unlink(path)
        (record,), _ = addr(told.pid, [told.places["exported_code"]])
        assert record["symbol"] == "exported_code", record
        os.unlink(told.process.args[0])
        told.tell("")


def leave(told):
    """Ends the first thread of @told; another one goes on."""
    told.send("leave\n")
    wait_for_state(told.pid, "Z")


@test("a process whose first thread has ended: every verb")
def first_thread_ended_verbs(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")]) as told:
        places = told.places | told.tell(f"open {path}")
        wanted = {}

        def ask_all():
            code = places["hidden_in_library"]
            yield "find", run(FATHOM, "find", "--no-cache", told.pid, "visible_code", "exported_code", "hidden_in_library")
            yield "find --first", run(FATHOM, "find", "--no-cache", "--first", told.pid, "exported_code", "printf")
            yield "find --read", run(FATHOM, "find", "--no-cache", "--read", "i32", told.pid, "initialised_data")
            yield "find lines", run(FATHOM, "find", "--no-cache", told.pid, "library.c:11")
            yield "disasm", run(FATHOM, "disasm", "--no-cache", told.pid, hex(code), "visible_code")
            yield "addr", run(FATHOM, "addr", "--no-cache", told.pid, *map(hex, places.values()))
            run(FATHOM, "snapshot", "--no-cache", told.pid, f"{folder}/snapshot")
            yield "snapshot", run(FATHOM, "addr", "--no-cache", f"{folder}/snapshot", *map(hex, places.values()))
            yield "find in a snapshot", run(FATHOM, "find", "--no-cache", f"{folder}/snapshot", "hidden_in_library")

        wanted.update(ask_all())
        assert " 1\n" in wanted["find --read"] and "hidden_in_library" in wanted["disasm"], wanted
        leave(told)
        for verb, got in ask_all():
            assert got == wanted[verb], (verb, wanted[verb], got)


@test("a process whose first thread has ended: a deleted library has all its names", needs_root=True)
def first_thread_ended_deleted(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")]) as told, Asked(told.pid) as asked:
        places = told.tell(f"open {path}")
        hidden = places["hidden_in_library"]
        assert asked.one(hidden)["symbol"] == "hidden_in_library"
        leave(told)
        # It is read anew, and by who had it open before.
        os.unlink(path)
        assert asked.one(hidden)["symbol"] == "hidden_in_library"
        (record,), complaint = addr(told.pid, [hidden])
        assert (record["symbol"], record["module"], complaint) == ("hidden_in_library", path, ""), (record, complaint)
        assert record["frames"][0]["line"] == 11, record
        out = run(FATHOM, "find", "--no-cache", told.pid, "hidden_in_library")
        assert int(re.search(r"0x[0-9a-f]+", out)[0], 16) == hidden, out
        out = run(FATHOM, "disasm", "--no-cache", told.pid, "hidden_in_library")
        assert f"{hidden:x}" in out and "hidden_in_library" in out, out


@test("a library that was replaced by another of the same name")
def replaced(folder):
    path = library(folder, "lib.so")
    with Told([build(folder, "told", "-ldl")]) as told:
        places = told.tell(f"open {path}")
        other = library(folder, "new.so", "-DOTHER")
        os.rename(other, path)
        check_places(told.pid, places)


@test("a program that has no file: memfd")
def memfd(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    with in_memory(path) as fd, Told([f"/proc/self/fd/{fd}"], pass_fds=[fd]) as told:
        check_places(told.pid, told.places)


@test("another root directory", needs_root=True)
def another_root(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    with Told(["chroot", folder, "/told"]) as told:
        records = check_places(told.pid, told.places)
        assert {r["module"] for r in records} == {path}


@test("a mount namespace whose files nobody else sees", needs_root=True)
def mount_namespace(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    tap.need_mount_namespaces()
    script = f'mount -t tmpfs none "{folder}/m" && cp "{path}" "{folder}/m/inside" && exec "{folder}/m/inside"'
    os.mkdir(f"{folder}/m")
    with Told(["unshare", "-m", "sh", "-c", script]) as told:
        assert not os.path.exists(f"{folder}/m/inside")
        check_places(told.pid, told.places)


@test("debug files that are in the process's mount namespace only", needs_root=True)
def debug_files_inside(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    tap.need_mount_namespaces()
    number = build_id(path)
    by_id = f"/usr/lib/debug/.build-id/{number[:2]}"
    for where in (by_id, f"/usr/lib/debug{folder}/m", f"{folder}/m/.debug"):
        run("objcopy", "--only-keep-debug", path, f"{path}.debug")
        run("objcopy", "--strip-all", f"--add-gnu-debuglink={path}.debug", path, f"{path}.bare")
        os.makedirs(f"{folder}/m", exist_ok=True)
        name = f"{number[2:]}.debug" if where == by_id else "told.debug"
        script = (f'mount -t tmpfs none "{folder}/m" && mount -t tmpfs none /usr/lib/debug && mkdir -p "{where}" && '
                  f'cp "{path}.bare" "{folder}/m/inside" && cp "{path}.debug" "{where}/{name}" && '
                  f'exec "{folder}/m/inside"')
        with Told(["unshare", "-m", "sh", "-c", script]) as told:
            assert not os.path.exists(f"{where}/{name}")
            records = check_places(told.pid, told.places)
            code = [r for r in records if r["symbol"].endswith("_code")]
            assert len(code) == 2 and all(f["file"].endswith("told.c") for r in code for f in r["frames"]), where


@test("debug files below the root that the process has in a mount namespace of its own", needs_root=True)
def debug_files_below_root(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    tap.need_mount_namespaces()
    number = build_id(path)
    run("objcopy", "--only-keep-debug", path, f"{path}.debug")
    run("objcopy", "--strip-all", path, f"{path}.bare")
    root = f"{folder}/m"
    by_id = f"{root}/usr/lib/debug/.build-id/{number[:2]}"
    os.mkdir(root)
    script = (f'mount -t tmpfs none "{root}" && mkdir -p "{by_id}" && cp "{path}.bare" "{root}/inside" && '
              f'cp "{path}.debug" "{by_id}/{number[2:]}.debug" && exec chroot "{root}" /inside')
    with Told(["unshare", "-m", "sh", "-c", script]) as told:
        records = check_places(told.pid, told.places)
        assert {r["module"] for r in records} == {"/inside"}
        # One is asked by a part of the map.
        (record,), _ = addr(told.pid, [told.places["main"]])
        assert (record["symbol"], record["module"]) == ("main", "/inside"), record


@test("[vdso]: all functions of the image that the kernel maps")
def vdso(folder):
    with Told([build(folder)]) as told:
        check_vdso(told.pid, vdso_names(told.pid, folder))


@test("asked by a user who may not use map_files: the path, when it is the same file", needs_root=True)
def by_path(folder):
    path = build(folder, "told", "-ldl")
    with Told(as_user(NOBODY, path)) as told:
        check_places(told.pid, told.places, user=NOBODY)


@test("asked by such a user: of a file replaced or deleted, what its memory says, and why", needs_root=True)
def by_memory(folder):
    path = library(folder, "lib.so")
    with Told(as_user(NOBODY, build(folder, "told", "-ldl"))) as told:
        places = told.tell(f"open {path}")
        names = sorted(places)
        os.rename(library(folder, "new.so", "-DOTHER"), path)
        for state in ("replaced", "deleted"):
            records, notes = addr(told.pid, [places[n] for n in names], user=NOBODY)
            # What is exported is in memory, what is not is only in the file.
            assert [r["symbol"] for r in records][0] == "exported_code", (state, records)
            assert records[1]["symbol"] in (None, f"func@[{hex_range(records[1])}]"), (state, records)
            assert records[1]["symbol"] is None or records[1]["source"] == "fde"
            assert path in notes and "deleted or replaced" in notes, (state, notes)
            if os.path.exists(path):
                os.unlink(path)


def hex_range(record):
    start = int(record["module_address"], 16) - (record["offset"] or 0)
    return f"{start:#x}..{start + (record['size'] or 0):#x}"


@test("a copy of the same content counts as the file; another does not", needs_root=True)
def copies(folder):
    path = library(folder, "lib.so")
    with Told(as_user(NOBODY, build(folder, "told", "-ldl"))) as told:
        # Mounted over, the path leads elsewhere, and the map does not say so.
        places = told.tell(f"open {path}")
        same, other = f"{folder}/same.so", library(folder, "other.so", "-DOTHER", "-Wl,--build-id=sha1")
        shutil.copy(path, same)
        for over, complaint in ((same, False), (other, True)):
            run("mount", "--bind", over, path)
            try:
                records, notes = addr(told.pid, [places["hidden_in_library"]], user=NOBODY)
                assert ("is not the file that was mapped" in notes) == complaint, notes
                assert (records[0]["symbol"] == "hidden_in_library") != complaint, records
                assert records[0]["symbol"] != "hidden_in_other"
            finally:
                run("umount", path)


def mapped_libc(pid):
    """The C library, whose segments lie in memory as they do in the file."""
    return next(m.path for m in mappings_of(pid) if re.search(r"/libc[.-]", m.path))


@test("a program that is mapped to be read is not loaded; nor is what lies behind it")
def mapped_as_data(folder):
    path = build(folder, "told", "-ldl")
    with Told([path]) as told:
        for read in (path, shutil.copy(path, f"{folder}/copy"), library(folder, "lib.so"), mapped_libc(told.pid)):
            places = told.tell(f"map {read}")
            size = places["behind"] - places["mapped"]
            records, _ = addr(told.pid, range(places["mapped"], places["behind"], max(1, size // 2000)))
            assert {(r["symbol"], r["reason"]) for r in records} == {(None, "no-symbols")}
            records, _ = addr(told.pid, range(places["behind"], places["behind"] + 4096, 8))
            assert {(r["symbol"], r["reason"]) for r in records} == {(None, "no-file")}
        check_places(told.pid, told.places)


@test("a compressed program that is mapped is data")
def mapped_compressed(folder):
    path = build(folder, "told", "-ldl")
    run("gzip", "-k", path)
    with Told([path]) as told:
        places = told.tell(f"map {path}.gz")
        records, _ = addr(told.pid, range(places["mapped"], places["behind"], 64))
        assert {(r["symbol"], r["reason"]) for r in records} == {(None, "no-symbols")}


@test("gaps between segments, which the loader keeps free, have no names")
def gaps(folder):
    path = library(folder, "lib.so", "-fuse-ld=lld", "-Wl,-z,max-page-size=0x10000", compiler="clang")
    with Told([build(folder, "told", "-ldl")]) as told:
        check_places(told.pid, told.tell(f"open {path}"))
        free = [(m.start, m.end) for m in mappings_of(told.pid) if m.path == path and m.rights.startswith("---")]
        assert free, "the loader has left no gaps: the test shows nothing"
        records, _ = addr(told.pid, [a for start, end in free for a in range(start, end, (end - start) // 64)])
        assert {(r["symbol"], r["reason"]) for r in records} == {(None, "unmapped")}, records[0]


@test("a library that another is copied over, asked within one run")
def copied_over(folder):
    path, other = library(folder, "lib.so"), library(folder, "other.so", "-DOTHER")
    with Told([build(folder, "told", "-ldl")]) as told, Asked(told.pid) as fathom:
        for name in ("hidden_in_library", "hidden_in_other"):
            place = told.tell(f"open {path}")["hidden_in_library"]
            # So many that an index of the symbols is made, and kept.
            records = fathom.ask(place, times=8)
            assert {r["symbol"] for r in records} == {name}, records[0]
            told.tell("close")
            # The same inode, as "cp" leaves it.
            with open(other, "rb") as source, open(path, "r+b") as target:
                target.write(source.read())
                target.truncate()


@test("another process that gets the number of one that has ended", needs_root=True)
def number_used_again(folder):
    path = build(folder, "told", "-static", "-DPLAIN")
    told = Told([path])
    with Asked(told.pid) as fathom:
        fathom.ask(0x1000)
        told.__exit__()
        # Other programs take numbers, too: it may take several attempts.
        for _ in range(200):
            with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as last:
                last.write(str(told.pid - 1))
            with Told([path]) as again:
                if again.pid != told.pid:
                    continue
                status, out, complaint = fathom.last(again.places["main"])
                assert status == 2 and not out and complaint, (status, out)
                return
        raise tap.Skip("the number was always taken by another process")


@test("without a build-id, content that looks the same is not enough", needs_root=True)
def no_build_id(folder):
    path = library(folder, "lib.so", "-Wl,--build-id=none")
    # The same code, and other names.
    other = library(folder, "other.so", "-DOTHER", "-Wl,--build-id=none")
    with Told(as_user(NOBODY, build(folder, "told", "-ldl"))) as told:
        place = told.tell(f"open {path}")["hidden_in_library"]
        run("mount", "--bind", other, path)
        try:
            (record,), notes = addr(told.pid, [place], user=NOBODY)
        finally:
            run("umount", path)
        assert record["symbol"] is None or record["source"] == "fde", record
        assert "may not be the file that was mapped" in notes, notes


@test("where memory may not be read: the files that are the same, and no others", needs_root=True)
def unreadable_memory(folder):
    path = library(folder, "lib.so")
    shutil.copy(path, f"{folder}/same.so")
    shim = build(folder, "nomemory.so", "-shared", "-fPIC", "-ldl", source=os.path.join(PROGRAMS, "nomemory.c"))
    with Told(as_user(NOBODY, build(folder, "told", "-ldl"))) as told:
        place = told.tell(f"open {path}")["hidden_in_library"]
        vdso = mapping_of(told.pid, "[vdso]").start
        # A build with AddressSanitizer wants to be first otherwise.
        environment = dict(os.environ, LD_PRELOAD=shim, ASAN_OPTIONS="verify_asan_link_order=0")
        (record,), _ = addr(told.pid, [place], user=NOBODY, env=environment)
        assert record["symbol"] == "hidden_in_library", record
        run("mount", "--bind", f"{folder}/same.so", path)
        try:
            records, notes = addr(told.pid, [place, vdso + 0x800], user=NOBODY, env=environment)
        finally:
            run("umount", path)
        assert [(r["symbol"], r["reason"]) for r in records] == [(None, "no-permission")] * 2, records
        assert "may not be the file that was mapped" in notes, notes


@test("memory without a file, and no memory at all")
def no_file(folder):
    with Told([build(folder, "told", "-ldl")]) as told:
        records, _ = addr(told.pid, [mapping_of(told.pid, "[stack]").start, 0x10])
        assert [(r["symbol"], r["reason"], r["module"], r["module_address"]) for r in records] == \
            [(None, "no-file", None, None), (None, "unmapped", None, None)], records


@test("return addresses, symbols with offsets, and what is no address")
def forms(folder):
    with Told([build(folder)]) as told:
        place = told.places["visible_code"]
        (record,), _ = addr(told.pid, [place], "--return-addresses")
        assert record["symbol"] != "visible_code", record
        (record,), _ = addr(told.pid, [place + 4], "--return-addresses")
        assert (record["symbol"], record["offset"]) == ("visible_code", 4)
        out = run(FATHOM, "addr", "--no-cache", f"pid:{told.pid}", "visible_code+0x3", "nothing", status=1)
        first, second = out.splitlines()[0], out.splitlines()[-1]
        assert first.startswith(f"{place + 3:#x} ") and "visible_code+0x3 " in out, out
        assert second == "nothing ?? (no-such-symbol)", out


@test("what cannot be asked is refused in one line", needs_root=True)
def refusals(folder):
    assert "there is no such process" in refused("addr", 4194305, 0x1000)
    assert "is not the number of a process" in refused("addr", "pid:x", 0x1000)
    assert "is not the number of a process" in refused("addr", "99999999999999999999", 0x1000)
    with Running(["true"]) as child:
        wait_for_state(child.pid, "Z")
        assert "is a zombie: it has ended" in refused("addr", child.pid, 0x1000)
    with Told([build(folder)]) as told:
        assert "belongs to another user" in refused("addr", told.pid, 0x1000, user=NOBODY)
        assert "a process or core has no sections" in refused("addr", "-j", ".text", told.pid, 0x1000)


@test("a process that ends while it is asked: the end of the answers, and why")
def ends_meanwhile(folder):
    told = Told([build(folder)])
    with Asked(told.pid) as fathom:
        assert fathom.ask(told.places["main"])[0]["symbol"] == "main"
        told.__exit__()
        status, out, complaint = fathom.last(told.places["main"])
        assert status == 2 and not out, (status, out)
        assert len(complaint.splitlines()) == 1 and str(told.pid) in complaint, complaint


QUESTIONS = int(os.environ.get("QUESTIONS", amount(100000)))
PLACES = QUESTIONS // amount(50, 20)


def ask_changing(folder, questions, how):
    """How many answers of a changing process had names, had none, came too late to be judged, were "changed", and how
    many questions were refused."""
    turns = [build(folder, f"turn{i}.so", "-shared", "-fPIC", f"-DNAME=hidden_in_{i}", source="turn.c")
             for i in range(4)]
    first = build(folder, "first", "-ldl", source=os.path.join(PROGRAMS, "changing.c"))
    other = build(folder, "other", "-ldl", "-DOTHER", source=os.path.join(PROGRAMS, "changing.c"))
    with open(f"{folder}/log", "wb") as log:
        log.truncate(1 << 20)
    with Running([first, f"{folder}/log", other, *turns]) as process:
        time.sleep(0.3)
        said = run(os.path.join(os.environ["BUILD"], "tests", "asker"), process.pid, f"{folder}/log", questions,
                   how, status=None, timeout=None)
    counts = re.fullmatch(r"(\d+) named, (\d+) not, (\d+) could not be judged, (\d+) changed, (\d+) refused\n", said)
    assert counts, said
    print(f"# {said}", end="")
    return [int(n) for n in counts.groups()]


@test(f"a process that opens, closes, makes code and becomes another, asked {QUESTIONS} times: no answer was never true")
def changing(folder):
    named, unnamed, late, changed, refused = counts = ask_changing(folder, QUESTIONS, "addr")
    assert named > QUESTIONS // 10 and unnamed > QUESTIONS // 10 and late < QUESTIONS // 100, counts
    assert changed < QUESTIONS // 10 and not refused, counts


@test(f"such a process, asked {PLACES} times where a function is: each place was true, none was left out")
def changing_places(folder):
    asked = PLACES
    found, missing, late, changed, refused = counts = ask_changing(folder, asked, "find")
    assert found > asked // 10 and missing > asked // 10 and late < asked // 10, counts
    assert changed < asked // 10 and refused <= asked // 100, counts


@test("a process that is stopped")
def stopped(folder):
    with Told([build(folder)]) as told:
        told.signal(signal.SIGSTOP)
        wait_for_state(told.pid, "T")
        check_places(told.pid, told.places)


def add_killed(verb, *query):
    @test(f"processes that are killed while they are asked ({verb}): an answer or why there is none, and no hang")
    def _(folder):
        path = build(folder, "told", "-static", "-DPLAIN")
        answered = refused_ones = 0
        # As long as about every second one is killed too early; that depends on what else this machine does.
        wait = 0.003
        rng = random.Random(3)
        for _ in range(200):
            told = Told([path])
            words = query or [hex(told.places["main"])]
            with Running([FATHOM, verb, "--json", "--no-cache", told.pid, *words], stderr=subprocess.PIPE) as fathom:
                time.sleep(rng.random() * 2 * wait)
                told.__exit__()
                out, complaint = fathom.process.communicate(timeout=HANG_SECONDS)
            if fathom.process.returncode == 2:
                refused_ones += 1
                wait *= 1.1
                assert not out and complaint.startswith("fathom: "), (out, complaint)
                continue
            wait /= 1.1
            record = json.loads(out.splitlines()[0])
            if verb == "addr":
                named = record["symbol"] == "main"
            else:
                named = record["address"] == hex(told.places["main"])
                assert named or not record["address"], record
            answered += named
            assert named or record["reason"] in ("unmapped", "no-file", "no-permission", "no-such-symbol"), record
        assert answered > 10 and refused_ones > 10, (answered, refused_ones)


add_killed("addr")
add_killed("find", "told:main")
add_killed("disasm", "main")


@test("a process that is not ours, or has no memory: every verb says what helps", needs_root=True)
def every_verb(folder):
    with Told([build(folder)]) as told:
        for verb, query in (("addr", "0x1000"), ("find", "main"), ("disasm", "main"), ("snapshot", f"{folder}/snapshot")):
            for pid, user, complaint in ((told.pid, NOBODY, "belongs to another user (run as that user or as root)"),
                                         (2, None, "is a kernel thread: it runs no program"),
                                         (4194305, None, "there is no such process")):
                said = refused(verb, pid, query, user=user)
                assert said.startswith(f"fathom: {pid}: {complaint}"), (verb, said)
        assert not os.path.exists(f"{folder}/snapshot")


@test("one by one the same answers as all at once")
def one_by_one(folder):
    with Living("perl", folder) as pid:
        addresses = random_code(pid, 400) + [0, 0x1000, 2 ** 64 - 1]
        addresses += [m.start for m in mappings_of(pid)]
        together, _ = addr(pid, addresses)
        with Asked(pid) as fathom:
            alone = [fathom.ask(address)[0] for address in addresses]
    different = [pair for pair in zip(together, alone, strict=True) if pair[0] != pair[1]]
    assert not different, different[0]
    assert sum(r["symbol"] is not None for r in together) > 100


def add_comparison(program, peer):
    @test(f"{RANDOM_ADDRESSES} random addresses of {program} beside {peer}", needs_root=True)
    def _(folder):
        compare(program, peer, folder)


def add_data(program, peer):
    @test(f"{RANDOM_ADDRESSES} random addresses of {program}'s data beside {peer}", needs_root=True)
    def _(folder):
        compare(program, peer, folder, why_guessed, random_data, 0.01)


def add_named(program, peer):
    @test(f"named data of {program} beside {peer}: all has a name, and the same one", needs_root=True)
    def _(folder):
        compare(program, peer, folder, why_guessed, named_data, 1)


# Programs with libraries that have symbols and others that have none; more are in the suite "real".
for real in ("python3", "perl"):
    for other in PEERS:
        add_comparison(real, other)
        add_data(real, other)
        add_named(real, other)


sys.exit(SUITE.run())
