# SPDX-License-Identifier: MIT
"""Perf maps: names that programs append to /tmp/perf-PID.map, and which of those files are believed."""
import os
import random
import re
import time

from ask import FATHOM, NOBODY, addr, as_user, find, run
from finding import address
from running import Asked, child_of, in_namespaces
from suite import Jitted, build, check, test


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
        (record,), _ = addr(j.pid, [c], "--names-only")
        assert (record["symbol"], record["reason"]) == ("JS:*hot /a b.js:1:2", None), record


@test("a perf map: names that compilers mangle are demangled")
def perf_map_mangled(folder):
    with Jitted([build(folder)]) as j:
        j.write(f"{j.code:x} 20 _ZN3foo3barEi\n")
        (record,), _ = addr(j.pid, [j.code])
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
        j.write_part(f"{c:x} 20 whole\n\0\0\0\0\n\nxyz\n{c + 0x20:x} 20 ha")
        assert asker.one(c)["symbol"] == "whole"
        assert asker.one(c + 0x20)["symbol"] is None
        j.write("lf\n")
        assert asker.one(c + 0x20)["symbol"] == "half"


@test("a perf map: its last line counts without a line break when nobody writes it")
def perf_map_last_line(folder):
    with Jitted([build(folder)]) as j, Asked(j.pid) as asker:
        c = j.code
        j.write_part(f"{c:x} 20 first\n{c + 0x10:x} 20 last")
        assert asker.one(c + 0x10)["symbol"] == "first"
        written = time.time() - 3
        os.utime(j.map, (written, written))
        assert [asker.one(c + off)["symbol"] for off in (0xf, 0x10, 0x2f, 0x30)] == ["first", "last", "last", None]
        assert [r["symbol"] for r in addr(j.pid, [c + 0x10])[0]] == ["last"]
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
        (record,), _ = addr(j.pid, [j.places["main"]])
        assert (record["symbol"], record["source"]) == ("main", "symtab"), record
        j.tell("unmap")
        (record,), _ = addr(j.pid, [j.code])
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
            for record in (asker.one(b + off), addr(j.pid, [b + off])[0][0]):
                assert (record["symbol"], record["offset"], record["size"]) == wanted, record
                assert (record["module"], int(record["module_address"], 16)) == (path, start + off), record
                assert record["source"] == ("perf-map" if wanted[0] else None), record
        record = asker.one(main)
        assert (record["symbol"], record["source"]) == ("main", "symtab"), record
        records, _ = find(j.pid, ["jit:Builtin:Second", "jit:Wrong", "main"])
        assert [address(r) for r in records] == [b + 0x40, None, main], records


def add_refusal(name, make, why, needs_root=False):
    @test(f"a perf map that is not believed: {name}", needs_root)
    def _(folder):
        with Jitted([build(folder)]) as j:
            make(j)
            records, notes = addr(j.pid, [j.code], processor_seconds=10)
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
    with Jitted(as_user(NOBODY, build(folder))) as j:
        j.tell(f"append {j.map} {j.code:x} 20 mine")
        assert os.stat(j.map).st_uid == NOBODY
        check(j.pid, {j.code: ("mine", 0, 32, "perf-map")})


def hidden_tmp(folder, then):
    """A script that has a /tmp of its own, where the program may have been before, and it as descriptor 9."""
    return f"exec 9<{build(folder)} && mount -t tmpfs none /tmp && {then}"


@test("a perf map in a pid and mount namespace: by the inner number, in its own /tmp", needs_root=True)
def perf_map_namespace(folder):
    command = in_namespaces("-p", "-m", "-f", then=hidden_tmp(folder, "exec /proc/self/fd/9"))
    with Jitted(command) as j:
        pid = child_of(j.pid)
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


@test("a perf map in a pid namespace, of a process in 2,000 groups: by the inner number", needs_root=True)
def perf_map_many_groups(folder):
    groups = ",".join(str(4000000000 + i) for i in range(2000))
    command = in_namespaces("-p", "-m", "-f", then=hidden_tmp(folder, f"exec setpriv --groups {groups} /proc/self/fd/9"))
    with Jitted(command) as j:
        pid = child_of(j.pid)
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            assert file.read().index("\nNSpid:") > 20000
        j.tell(f"append /tmp/perf-1.map {j.code:x} 20 inside")
        check(pid, {j.code: ("inside", 0, 32, "perf-map")})


@test("a perf map in a pid namespace that shares /tmp: also by the outer number", needs_root=True)
def perf_map_pid_namespace(folder):
    with Jitted(in_namespaces("-p", "-f", then=f"exec {build(folder)}")) as j:
        pid = child_of(j.pid)
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
    with Jitted(in_namespaces("-m", then=hidden_tmp(folder, then))) as j:
        pid = child_of(j.pid)
        records, notes = addr(pid, [j.code])
        assert records[0]["symbol"] is None and "older than the process" in notes, (records, notes)
        j.tell(f"append /tmp/perf-1.map {j.code:x} 20 fresh")
        check(pid, {j.code: ("fresh", 0, 32, "perf-map")})
