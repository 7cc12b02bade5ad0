# SPDX-License-Identifier: MIT
"""find: where code is that programs have made, by its name."""
import os

import jitfiles
from jitfiles import relocatable

from ask import FATHOM, addr, find, run
from building import core_of
from counting import cost_of, is_instrumented
from finding import address
from running import Asked, Told
from suite import PROGRAMS, Dump, Jitted, build, check, found, register, test


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


@test("what follows an @ in a name of GDB's list is no version: addr, stack, find")
def listed_scoped(folder):
    with Jitted([build(folder)]) as j:
        c = j.code
        names = ["Foo.bar@1a2b", "Lambda$14@0x80", "JS:~f /node_modules/@babel/core/index.js:1:2"]
        register(folder, j, relocatable(c, [(name, 0x20 * i, 0x20) for i, name in enumerate(names)]))
        check(j.pid, {c + 0x20 * i + 4: (name, 4, 0x20, "gdb-jit") for i, name in enumerate(names)})
        for i, name in enumerate(names):
            assert found(j.pid, name, "-F") == {name: [(c + 0x20 * i, 0x20, "gdb-jit")]}, name
            assert not found(j.pid, name.split("@")[0], "-F"), name
        assert found(j.pid, "jit:*bar@1*") == {names[0]: [(c, 0x20, "gdb-jit")]} == found(j.pid, "/bar@1a/")
        assert run(FATHOM, "addr", "--no-cache", j.pid, "Foo.bar@1a2b+0x4").startswith(f"{c + 4:#x} Foo.bar@1a2b+0x4")
        # A core's, too, where files of the process may be gone.
        core = core_of(j.pid, folder)
        (record, *_), _ = addr(core, [c + 0x24])
        assert record["symbol"] == "Lambda$14@0x80" == record["linkage_name"], record


@test("find: after a name that was not there, the list of a program without .symtab is still read")
def list_of_stripped(folder):
    with Jitted([build(folder, "jitted.c", "-rdynamic", "-s")]) as j, Asked(j.pid) as asker:
        register(folder, j, jitfiles.relocatable(j.code, [("listed", 0, 0x20)]))
        assert asker.one("nosuchfunction")["reason"] == "no-such-symbol"
        record = asker.one(j.code + 4)
        assert (record["symbol"], record["source"]) == ("listed", "gdb-jit"), record


@test("find: code that has the name of GDB's list is found by it")
def name_of_list(folder):
    with Jitted([build(folder)]) as j:
        j.write(f"{j.code:x} 10 hot\n{j.code + 0x10:x} 10 __jit_debug_descriptor\n")
        assert found(j.pid, "hot") == {"hot": [(j.code, 0x10, "perf-map")]}
        assert found(j.pid, "jit:__jit_debug_descriptor") == {
            "__jit_debug_descriptor": [(j.code + 0x10, 0x10, "perf-map")]}


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
        with Asked(j.pid, verb="find") as fathom:
            def place(name):
                return address(fathom.one(name))
            assert [place("stays"), place("goes")] == [c, c + 0x40]
            j.tell("unregister")
            j.tell("astray")
            j.write(f"{c + 0x40:x} 20 by map\n")
            assert [place("stays"), place("goes"), place("by map")] == [None, None, c + 0x40]


@test("find: the names of 100,000 symbol files in GDB's list (5,000 in an instrumented build)")
def find_many(folder):
    is_itself = not is_instrumented(FATHOM) and not os.environ.get("WRAPPER")
    n = 100000 if is_itself else 5000
    with Told([build(folder, "many.c"), str(n)]) as program:
        name = f"f{n - 1:07}"
        assert found(program.pid, name) == {name: [(program.places["code"] + 64 * (n - 1), 64, "gdb-jit")]}
        # A comparison of each with each takes twice as long.
        _, seconds, _ = cost_of(FATHOM, "find", "--no-cache", program.pid, name)
        assert seconds < 15
        # As many as fit, a page each.
        with open(os.path.join(folder, "told"), "w+", encoding="ascii") as told:
            _, _, peak = cost_of(FATHOM, "find", "--no-cache", "--memory", f"{n // 1600}M", program.pid, name, stdout=told,
                                 stderr=told)
            told.seek(0)
            notes = told.read()
        assert "its symbol files are larger than fathom reads" in notes, notes
        assert not is_itself or peak < 300 << 20, peak
