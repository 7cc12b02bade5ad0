# SPDX-License-Identifier: MIT
"""Stacks that lead through code that a program has made (emitted.py): its call frame information is where the program says."""
import json
import os
import shutil
import signal
import struct
import time

import cfiasm
import elfasm
import jitfiles

from amounts import amount
from ask import execute, FATHOM, run
from building import core_of
from emitted import CALL_END, N, PITCH, SIZE, Emitted, check, check_not, stack_of
from running import Running, until, wait_for_state
from toolchain import oldest_llvm
from suite import PROGRAMS, build, test

LIBGCC = os.environ.get("LIBGCC", "libgcc_s.so.1")


def add(how, tell, names=None):
    @test(f"a stack through code that a program has made, which {how}, of a process and of a core")
    def _(folder):
        with Emitted(folder) as e:
            e.go()
            check_not(e, e.pid)
        with Emitted(folder) as e:
            tell(e, folder)
            e.go()
            check(e, e.pid, names=names)
            check(e, core_of(e.pid, folder), names=names)


NAMES = [f"made{i}" for i in reversed(range(N))]


def by_gdb(e, _):
    elf = elfasm.Elf(64, False, elfasm.EM_X86_64, elfasm.ET_DYN)
    elf.text(e.code, PITCH * N)
    for i in range(N):
        elf.symbol(f"made{i}", e.at(i), SIZE)
    data, _ = e.frames(e.data)
    elf.section(".eh_frame", data, flags=elfasm.SHF_ALLOC, addr=e.data, align=8)
    file = elf.build()
    e.poke(e.data + 0x1000, file)
    e.poke(e.data + 0x800, struct.pack("<QQQQ", 0, 0, e.data + 0x1000, len(file)))
    e.poke(e.places["descriptor"] + 16, struct.pack("<Q", e.data + 0x800))


def unwinding(eh_frame, header=b"\1" + bytes(19)):
    """A record of a jitdump: .eh_frame comes first."""
    data = eh_frame + header
    body = struct.pack("<QQQ", len(data), len(header), len(data)) + data
    return jitfiles.record(jitfiles.UNWINDING_INFO, body + bytes(-len(body) % 8))


def write_dump(e, folder, records):
    path = os.path.join(folder, f"jit-{e.pid}.dump")
    with open(path, "wb") as file:
        file.write(jitfiles.dump_header(e.pid) + b"".join(records))
    e.tell(f"mark {path}")


def record_of(e, i):
    # The addresses are of the file that perf makes of the code: they say nothing of where it is.
    return unwinding(e.frames(0x80, [i], cfiasm.PCREL | cfiasm.SDATA4, 0x40 - e.at(i))[0])


def by_jitdump(e, folder):
    records = []
    for i in range(N):
        # What was there before has another size, and other rules.
        records += [record_of(e, (i + 1) % N), jitfiles.load(e.at(i), 16, i, "old")]
    for i in range(N):
        records += [record_of(e, i), jitfiles.load(e.at(i), SIZE, N + i, f"made{i}")]
    write_dump(e, folder, records)


def by_register_frame(e, _):
    data, _ = e.frames(e.data)
    e.poke(e.data, data)
    e.tell("library " + LIBGCC)
    e.call("__register_frame", e.data)


def by_many(e, _):
    e.tell("library " + LIBGCC)
    for i in range(N):
        e.poke(e.data + 0x200 * i, e.frames(e.data + 0x200 * i, [i])[0])
        e.call("__register_frame", e.data + 0x200 * i)


def by_llvm(e, _):
    data, at = e.frames(e.data)
    e.poke(e.data, data)
    e.tell("library " + oldest_llvm("lib", "libunwind.so.1"))
    for i in range(N):
        e.call("__register_frame", at[e.at(i)])


def by_seen(e, folder):
    by_many(e, folder)
    # The search makes all objects seen ones.
    e.call("_Unwind_Find_FDE", e.at(0), e.data + 0x8000)


def by_table(e, _):
    for i in range(N):
        e.poke(e.data + 0x200 * i, e.frames(e.data + 0x200 * i, [i])[0])
    e.poke(e.data + 0x4000, struct.pack(f"<{N + 1}Q", *(e.data + 0x200 * i for i in range(N)), 0))
    e.tell("library " + LIBGCC)
    e.call("__register_frame_table", e.data + 0x4000)


def by_seen_table(e, folder):
    by_table(e, folder)
    e.call("_Unwind_Find_FDE", e.at(0), e.data + 0x8000)


def dyn_info(e, format, base):
    data, at = e.frames(e.data)
    e.poke(e.data, data)
    table = b"".join(struct.pack("<ii", e.at(i) - base, at[e.at(i)] - e.data) for i in range(N))
    e.poke(e.data + 0x2000, table)
    e.poke(e.data + 0x3000, struct.pack("<QQQQQiiQQQQQ", 0, 0, e.code, e.code + PITCH * N, 0, format, 0, 0, 0,
                                        e.data, len(table) // 8, e.data + 0x2000))
    e.tell("library libunwind.so.8")
    e.call("_U_dyn_register", e.data + 0x3000)


add("registers it with GDB", by_gdb, NAMES)
add("writes a jitdump", by_jitdump, NAMES)
add("calls __register_frame of LLVM's libunwind for each function", by_llvm)
add("calls __register_frame once", by_register_frame)
add("calls __register_frame for each function", by_many)
add("calls __register_frame, and an unwinder has searched", by_seen)
add("calls __register_frame_table", by_table)
add("calls __register_frame_table, and an unwinder has searched", by_seen_table)
add("calls _U_dyn_register, offsets from a base", lambda e, _: dyn_info(e, 2, e.data))
add("calls _U_dyn_register, offsets from its first code", lambda e, _: dyn_info(e, 4, e.code))


@test("a stack through code that a program has made: what it has deregistered is not believed")
def deregistered(folder):
    with Emitted(folder) as e:
        by_many(e, folder)
        e.go()
        check(e, e.pid)
        for i in reversed(range(N)):
            e.call("__deregister_frame", e.data + 0x200 * i)
        check_not(e, e.pid)
    with Emitted(folder) as e:
        dyn_info(e, 2, e.data)
        e.go()
        check(e, e.pid)
        e.call("_U_dyn_cancel", e.data + 0x3000)
        check_not(e, e.pid)
    with Emitted(folder) as e:
        by_llvm(e, folder)
        e.go()
        check(e, e.pid)
        for address in e.frames(e.data)[1].values():
            e.call("__deregister_frame", address)
        check_not(e, e.pid)


@test("a stack through code that a program has made: gdb finds the same frames, with the same names")
def gdb_agrees(folder):
    with Emitted(folder) as e:
        by_gdb(e, folder)
        e.go()
        frames = stack_of(e.pid)["frames"]
        ours = [(int(f["pc"], 16), f["symbol"]) for f in frames if (f["symbol"] or "").startswith("made")]
        out = run("gdb", "-nx", "-batch", "-p", e.pid, "-ex", "thread apply all -q frame apply all -q -s p/x $pc", status=None)
        pcs = [int(line.split(" = ")[1], 16) for line in out.splitlines() if " = 0x" in line]
        assert [pc for pc, _ in ours] == [pc for pc in pcs if e.code <= pc < e.code + PITCH * N], out
        assert len(ours) == N


def by_long_list(e, n):
    """Registers it with GDB, behind @n entries whose symbol files have other code."""
    by_gdb(e, None)
    first, last, file = e.data + 0x10000, e.data + 0x800, e.data + 0xf0000
    other = jitfiles.relocatable(e.code + 0x80000, [("other", 0, 16)])
    places = [0, *(first + 32 * i for i in range(n)), last, 0]
    e.poke(file, other)
    e.poke(first, b"".join(struct.pack("<QQQQ", places[i + 1], places[i - 1], file, len(other)) for i in range(1, n + 1)))
    e.poke(last + 8, struct.pack("<Q", places[n]))
    e.poke(e.places["descriptor"] + 16, struct.pack("<Q", first))


@test("a stack through code of a long list of GDB's: only its entries are read one by one, once")
def long_list(folder):
    calls = []
    for n in (1000, 3000):
        with Emitted(folder) as e:
            by_long_list(e, n)
            e.go()
            check(e, e.pid, names=NAMES)
            # LeakSanitizer cannot work where it is traced.
            run("env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-f", "-c", "-o", f"{folder}/calls", FATHOM, "stack", "--no-cache", e.pid)
            with open(f"{folder}/calls", encoding="ascii") as file:
                calls.append(int(file.read().splitlines()[-1].split()[3]))
    # What an entry leads to is not known before; symbol files, and the list from then on, are read many at a time.
    assert 2000 <= calls[1] - calls[0] < 1.1 * 2000, calls


# libgcc 13 and later finds an object by its addresses, without those before it in a list: one that lies harms itself only.
HAS_TREE = int(run("gcc", "-dumpversion").split(".")[0]) >= 13


def add_lie(what, change, *, by=by_many, others=False):
    others |= HAS_TREE and by == by_many

    @test(f"a stack through code that a program has made, whose description lies: {what}: no frame, no harm")
    def _(folder):
        with Emitted(folder) as e:
            by(e, folder)
            change(e)
            e.go()
            check_not(e, e.pid, others)
            check_not(e, core_of(e.pid, folder), others)


def object_of(e):
    """The object that libgcc has made of the section registered last, by its pointer to the section."""
    wanted = struct.pack("<Q", e.data + 0x200 * (N - 1))
    for start, end, rights, path in heaps(e.pid):
        with open(f"/proc/{e.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(start)
            data = memory.read(end - start)
        at = data.find(b"\xff" * 8 + bytes(16) + wanted)
        if at >= 0:
            return start + at
    raise AssertionError("no object")


def heaps(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            words = line.split()
            if words[-1] == "[heap]":
                yield (*(int(x, 16) for x in words[0].split("-")), words[1], words[-1])


LAST = 0x200 * (N - 1)
add_lie("an entry of nearly 4 GB", lambda e: e.poke(e.data + LAST, struct.pack("<I", 0xfffffff0)))
add_lie("an entry of 64-bit DWARF", lambda e: e.poke(e.data + LAST, struct.pack("<I", 0xffffffff)))
add_lie("no CIE", lambda e: e.poke(e.data + LAST + 4, struct.pack("<I", 0x1000)))
add_lie("a section that is nowhere", lambda e: e.poke(object_of(e) + 24, struct.pack("<Q", 0x1000)))
add_lie("an object that is not aligned", lambda e: e.poke(object_of(e) + 24, struct.pack("<Q", e.data + LAST + 1)), others=True)
add_lie("bits of no object", lambda e: e.poke(object_of(e) + 32, b"\xf0\xee\xff\xff\xff\xff\xff\xff"))
add_lie("an array without end", lambda e: (e.poke(e.data + 0x10000, struct.pack("<Q", e.data + 0x20000) * 0x2000),
                                           e.poke(object_of(e) + 24, struct.pack("<QQ", e.data + 0x10000, 0x7fa))), others=True)
add_lie("a sorted object of nothing", lambda e: e.poke(object_of(e) + 32, struct.pack("<Q", 0x7f9)))
add_lie("a table of dyn_info beyond memory", lambda e: e.poke(e.data + 0x3000 + 80, struct.pack("<Q", 1 << 63)),
        by=lambda e, _: dyn_info(e, 2, e.data))
add_lie("a table of dyn_info with too many entries", lambda e: e.poke(e.data + 0x3000 + 72, struct.pack("<Q", 1 << 60)),
        by=lambda e, _: dyn_info(e, 2, e.data))
add_lie("FDEs of dyn_info that are elsewhere", lambda e: e.poke(e.data + 0x2000, struct.pack("<ii", 0, -(1 << 31)) * N),
        by=lambda e, _: dyn_info(e, 2, e.data))


@test("a stack through code that a program has made: lists that run in a circle")
def circles(folder):
    with Emitted(folder) as e:
        by_many(e, folder)
        first = object_of(e)
        e.poke(first + 40, struct.pack("<Q", first))
        e.go()
        frames = stack_of(e.pid)["frames"]
        # The first object holds, what is behind it is lost.
        assert any(int(f["pc"], 16) == e.at(N - 2) + CALL_END and f["trust"] == "jit-cfi" for f in frames), frames
    with Emitted(folder) as e:
        dyn_info(e, 2, e.data)
        e.poke(e.data + 0x3000, struct.pack("<Q", e.data + 0x3000))
        e.go()
        check(e, e.pid)


def add_record(what, records):
    @test(f"a stack through code of a jitdump, whose record lies: {what}: no frame, no harm")
    def _(folder):
        with Emitted(folder) as e:
            write_dump(e, folder, [r for i in range(N) for r in (records(e, i), jitfiles.load(e.at(i), SIZE, i, f"made{i}"))])
            e.go()
            check_not(e, e.pid)


def changed(e, i, off, data):
    record = bytearray(record_of(e, i))
    record[off:off + len(data)] = data
    return bytes(record)


add_record("a header larger than all", lambda e, i: changed(e, i, 24, struct.pack("<Q", 1 << 40)))
add_record("all larger than the record", lambda e, i: changed(e, i, 16, struct.pack("<Q", 1 << 40)))
add_record("an entry larger than all", lambda e, i: changed(e, i, 40, struct.pack("<I", 0x7fffffff)))
add_record("no entry", lambda e, i: unwinding(b""))
add_record("a CIE alone", lambda e, i: unwinding(e.frames(0x80, [])[0]))
add_record("two functions", lambda e, i: unwinding(e.frames(0x80, [0, 1])[0]))
add_record("too large", lambda e, i: unwinding(e.frames(0x80, [i])[0] + bytes(1 << 21)))
add_record("a move in between", lambda e, i: jitfiles.move(0x1000, 0x2000, 16, 1))


ROUNDS = int(os.environ.get("QUESTIONS", amount(1000, 400)))


def add_replaced(microseconds, rounds):
    @test(f"a stack read {rounds} times while the code that it is in is replaced every {microseconds} us: no wrong name")
    def _(folder):
        program = build(folder, "replaced.c", "-O1")
        with Running([program, microseconds]) as running:
            code = running.line()
            out = run(os.path.join(os.environ["BUILD"], "tests", "replacing"), running.pid, code, rounds)
        named, nameless, elsewhere, changed, unknown = (int(n) for n in out.split())
        print(f"# {microseconds} us: {named} named, {nameless} nameless, {elsewhere} elsewhere, {changed} changed, {unknown} unknown")
        assert named + nameless + elsewhere + changed + unknown == rounds and named > rounds // 20 and unknown < named, out


for microseconds in (10, 200, 3000):
    add_replaced(microseconds, ROUNDS)


def stacks_by_gdb(*target):
    """[[(pc, name)]] of gdb's physical frames, by thread; the name is None where it has none."""
    script = ("python\nimport gdb\nfor t in gdb.selected_inferior().threads():\n t.switch()\n f = gdb.newest_frame()\n"
              " print('thread')\n while f:\n  if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):\n"
              "   print('frame', hex(f.pc()), f.function() and f.function().linkage_name or f.name())\n  f = f.older()\nend\n")
    path = os.path.join(os.environ["BUILD"], f"gdb-{os.getpid()}-{target[-1]}".replace("/", "_"))
    with open(path, "w", encoding="ascii") as file:
        file.write(script)
    out = run("gdb", "-nx", "-batch", "-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on", *target,
              "-x", path, status=None)
    os.unlink(path)
    return [[(int(words[1], 16), words[2]) for words in (line.split(None, 2) for line in part.splitlines()) if words[:1] == ["frame"]]
            for part in out.split("thread\n")[1:]]


def add_lli(program, kind, *options):
    compiler = program.replace("lli", "clang")

    @test(f"a stack through code of {program}, {kind}, {' '.join(options)}: gdb finds the same, of a process and of a core")
    def _(folder):
        code = os.path.join(folder, "busy.bc")
        run(compiler, "-g", *options, "-emit-llvm", "-c", "-o", code, os.path.join(PROGRAMS, "busy.c"))
        with Running([program, f"--jit-kind={kind}", code]) as process:
            assert process.line()
            stop_inside(process)
            core = core_of(process.pid, folder)
            for target, theirs in ((process.pid, stacks_by_gdb("-p", process.pid)), (core, stacks_by_gdb(shutil.which(program), core))):
                check_lli(target, theirs)


def stop_inside(process):
    """Stops the program when it has begun its loop."""
    def is_inside():
        time.sleep(0.1)
        process.signal(signal.SIGSTOP)
        wait_for_state(process.pid, "T")
        if any(f["symbol"] == "hot_outer" for t in stacks_by_us(process.pid) for f in t):
            return True
        process.signal(signal.SIGCONT)
        return False
    until(is_inside, "its loop")


def stacks_by_us(target):
    done = execute(FATHOM, "stack", "--json", "--no-cache", target)
    assert done.returncode == 0, done
    return [json.loads(line)["frames"] for line in done.stdout.splitlines()]


def check_lli(target, theirs):
    ours = stacks_by_us(target)
    found = [t for t in ours if any(f["symbol"] == "hot_outer" for f in t)]
    assert len(found) == 1, (target, [[(f["pc"], f["symbol"], f["trust"]) for f in t] for t in ours], theirs)
    frames = found[0]
    (gdbs,) = (t for t in theirs if any(name == "hot_outer" for _, name in t))
    assert [int(f["pc"], 16) for f in frames] == [pc for pc, _ in gdbs], (frames, gdbs)
    made = [f for f in frames if f["source"] == "gdb-jit"]
    assert [f["symbol"] for f in made][-2:] == ["hot_outer", "main"], made
    assert [f["symbol"] for f in made] == [name for _, name in gdbs][:len(made)], (made, gdbs)
    # The frame behind each piece of made code is found by its own description.
    assert all(frames[i + 1]["trust"] == "jit-cfi" for i in range(len(made))), frames
    lines = {"hot_leaf": range(12, 19), "hot_outer": range(19, 28), "main": range(28, 35)}
    for f in made:
        assert f["frames"][-1]["line"] in lines[f["symbol"]] and f["frames"][-1]["file"].endswith("busy.c"), f


for program in ("lli-oldest", "lli"):
    for kind in ("mcjit", "orc"):
        add_lli(program, kind, "-O2", "-fomit-frame-pointer")
