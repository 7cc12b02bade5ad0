# SPDX-License-Identifier: MIT
"""GDB's interface: a list of symbol files in the program's memory."""
import os

import elfasm
import jitfiles

from ask import addr, run
from building import need_32_bit
from running import Asked, Running
from suite import PROGRAMS, Dump, Jitted, build, check, check_with_gdb, register, test


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
        records, _ = addr(j.pid, range(j.code + off, j.code + off + size))
        assert {r["symbol"] for r in records} == {"outer"} and {r["source"] for r in records} == {"gdb-jit"}
        seen = set()
        for record in records:
            frames = [(f["function"], f["line"]) for f in record["frames"]]
            assert all(f["file"] == source for f in record["frames"]), record
            seen.add(tuple(frames))
        assert (("inner", 10), ("outer", 16)) in seen, seen
        off, _ = functions["twice"]
        (record,), _ = addr(j.pid, [j.code + off])
        assert [(f["function"], f["line"]) for f in record["frames"]] == [("twice", 5)], record
        check_with_gdb(j.pid, [j.code + off, j.code + functions["outer"][0] + 1])


@test("GDB's list: of a 32-bit program")
def gdb_list_32(folder):
    need_32_bit()
    with Jitted([build(folder, "jitted.c", "-static", compiler="i686-linux-gnu-gcc")]) as j:
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
            records, notes = addr(j.pid, [j.code, j.code + 4 * 64], processor_seconds=10)
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
        records, _ = addr(j.pid, [j.code])
        assert records[0]["symbol"] == "f", records


def add_lli(kind):
    @test(f"lli, {kind}: names and lines of what it has compiled, as gdb says")
    def _(folder):
        source = os.path.join(PROGRAMS, "busy.c")
        code = os.path.join(folder, "busy.bc")
        run("clang", "-g", "-O1", "-emit-llvm", "-c", "-o", code, source)
        with Running(["lli", f"--jit-kind={kind}", code]) as process:
            leaf, outer = (int(word, 16) for word in process.line().split())
            records, _ = addr(process.pid, [leaf, outer, *range(leaf + 1, leaf + 45)])
            assert [(r["symbol"], r["offset"], r["source"]) for r in records[:2]] == \
                [("hot_leaf", 0, "gdb-jit"), ("hot_outer", 0, "gdb-jit")], records[:2]
            places = [[(f["function"], f["file"], f["line"]) for f in r["frames"]] for r in records]
            assert places[0] == [("hot_leaf", source, 13)], places[:2]
            # Of a function that begins with a loop's instructions, LLVM 22 gives the line of these.
            assert [p[:2] for p in places[1]] == [("hot_outer", source)] and places[1][0][2] in (20, 23), places[:2]
            assert all(p[-1][0] == "hot_leaf" for p in places[2:]) and len({p[-1][2] for p in places[2:]}) > 1, places
            check_with_gdb(process.pid, [leaf, outer, leaf + 5, outer + 9])


for kind in ("mcjit", "orc"):
    add_lli(kind)
