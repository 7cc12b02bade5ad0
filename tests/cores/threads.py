#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "core-stacks": the stacks of cores, whole, cut short, compressed, of missing and other programs. What
eu-stack says of the whole core is the truth; of less than that, fathom says the first frames, and why no more."""
import glob
import gzip
import os
import random
import re
import shutil
import signal
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, NOBODY, addr, execute, fathom, records_of, refused, run  # noqa: E402
from running import ALL, NO_HEADERS, USUAL, Running, core_of_dying, dying, kernels_core, wait_for_state  # noqa: E402

SUITE = tap.Suite("core-stacks")
test = SUITE.test

# DEPTH times down() in each of five threads; then the main thread does what it is told.
DEEP = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifndef DEPTH
#define DEPTH 40
#endif
static pthread_barrier_t all;
static const char *what;
int DOWN(int n, int (*f)(int));
static int __attribute__((noinline)) end(int n)
{
	volatile int zero = 0;
	pthread_barrier_wait(&all);
	puts("done");
	fflush(stdout);
	if (!what)
		for (;;) pause();
	if (!strcmp(what, "null")) return *(volatile int *)(zero + 0L);
	if (!strcmp(what, "wild")) return *(volatile int *)(zero + 0x123450L);
	if (!strcmp(what, "const")) *(volatile char *)mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
	if (!strcmp(what, "odd")) return *(volatile int *)(unsigned long)(0x8000ULL << 48 >> (sizeof(long) == 4) * 32);
	if (!strcmp(what, "trap")) __builtin_trap();
	if (!strcmp(what, "divide")) return n / zero;
	abort();
}
static int wait_for_ever(int n) { pthread_barrier_wait(&all); for (;;) pause(); return n; }
static void *worker(void *x) { DOWN(DEPTH, wait_for_ever); return x; }
int main(int argc, char **argv)
{
	pthread_t t;
	what = argv[1];
	pthread_barrier_init(&all, NULL, 5);
	for (int i = 0; i < 4; i++) pthread_create(&t, NULL, worker, NULL);
	return argc > 9 ? 0 : DOWN(DEPTH, end);
}
"""
DOWN = """
int __attribute__((noinline)) DOWN(int n, int (*f)(int))
{
	volatile int x = n;
	return n ? DOWN(n - 1, f) + x : f(x) + x;
}
"""


def deep(folder, *options, compiler="gcc", name="deep"):
    return building.build_text(f"{folder}/{name}", DEEP.replace("DOWN", "down") + DOWN.replace("DOWN", "down"), "-pthread",
                               *options, compiler=compiler)


def by_gcore(folder, *command):
    with Running(command) as running:
        assert running.line() == "done"
        wait_for_state(running.pid, "S")
        done = execute("gcore", "-o", f"{folder}/core", running.pid)
        if "ptrace" in done.stderr and not os.path.exists(f"{folder}/core.{running.pid}"):
            raise tap.Skip(f"gdb may not attach here: {done.stderr.splitlines()[-1]}")
        return f"{folder}/core.{running.pid}"


def stacks(core, *options, status=(0, 1)):
    """Thread number -> record, and what was said on standard error."""
    done = fathom("stack", "--json", "--no-cache", *options, core, status=status)
    return {r["tid"]: r for r in records_of(done.stdout)}, done.stderr


def frames(record):
    return [(f["pc"], f["sp"]) for f in record["frames"]]


def short(record):
    """A record with frames that fit into a message."""
    return {**record, "registers": None,
            "frames": [(f["pc"], f["sp"], f["symbol"], f["trust"]) for f in record["frames"]]}


def eu_stacks(core, *options):
    """Thread number -> its pcs, by eu-stack."""
    found = {}
    for line in execute("eu-stack", f"--core={core}", *options).stdout.splitlines():
        if line.startswith("TID"):
            pcs = found[int(line.split()[1].rstrip(":"))] = []
        elif line.startswith("#"):
            pcs.append(int(line.split()[1], 16))
    return found


def pcs(record):
    return [int(f["pc"], 16) for f in record["frames"]]


def check_whole(core, n=5):
    """The stacks of a core of deep(): as eu-stack has them, with all the calls, to the entry."""
    found, _ = stacks(core)
    assert len(found) == n and {r["stop"] for r in found.values()} == {"entry"}, [short(r) for r in found.values()]
    assert {tid: pcs(r) for tid, r in found.items()} == eu_stacks(core)
    for r in found.values():
        assert sum(f["symbol"] == "down" for f in r["frames"]) == 41, short(r)
        assert {f["trust"] for f in r["frames"]} <= {"registers", "cfi"}, short(r)
    return found


def check_prefix(whole, part):
    """Each stack is whole, or its first frames, and says that the rest could not be read."""
    assert set(part) == set(whole), (set(part), set(whole))
    for tid, r in part.items():
        assert frames(r) == frames(whole[tid])[:len(r["frames"])] and r["frames"], (short(whole[tid]), short(r))
        assert r["stop"] == ("entry" if len(r["frames"]) == len(whole[tid]["frames"]) else "unreadable"), short(r)
    return sum(len(r["frames"]) for r in part.values())


ABOUT = {  # what it does: signal, name, code, address; None: that of the instruction
    "null": (11, "SIGSEGV", "SEGV_MAPERR", "0x0"),
    "wild": (11, "SIGSEGV", "SEGV_MAPERR", "0x123450"),
    "odd": (11, "SIGSEGV", "SI_KERNEL", False),  # no address is told of one that is not canonical
    "trap": (4, "SIGILL", "ILL_ILLOPN", None),
    "divide": (8, "SIGFPE", "FPE_INTDIV", None),
    "abort": (6, "SIGABRT", "SI_TKILL", False),
}


def check_signal(folder, path, what):
    number, name, code, address = ABOUT[what]
    found, _ = stacks(core_of_dying(folder, path, what))
    first, *others = found.values()
    if address is None:
        address = first["frames"][0]["pc"]
    assert (first["signal"], first["signal_name"], first["signal_code"], first["fault_address"]) == \
        (number, name, code, address or None), short(first)
    assert first["name"] == "deep" and first["pid"] == first["tid"], short(first)
    assert len(others) == 4
    for r in others:
        assert not r["signal"] and r["signal_name"] is r["signal_code"] is r["fault_address"] is None, short(r)
    head = fathom("stack", f"{folder}/core").stdout.splitlines()[0]
    if code.startswith("SI_T"):
        assert head.endswith(f'"deep", {name}'), head
    else:
        assert head.endswith(f'"deep", {name} ({code})' + (f" at {address}" if address else "")), head


def add_signal(what):
    @test(f"what ended it, and where: {what}")
    def _(folder):
        check_signal(folder, deep(folder), what)


for each in ABOUT:
    add_signal(each)


@test("what ended it, and where: a write to memory that is read-only, of a program of 32 bit")
def narrow(folder):
    building.need_32_bit()
    path = deep(folder, "-static", compiler="i686-linux-gnu-gcc")
    check_signal(folder, path, "wild")
    check_signal(folder, path, "trap")
    found, _ = stacks(core_of_dying(folder, path, "const"))
    first = next(iter(found.values()))
    assert (first["signal_name"], first["signal_code"]) == ("SIGSEGV", "SEGV_ACCERR"), short(first)
    assert first["fault_address"] and int(first["fault_address"], 16) % 4096 == 0, short(first)


@test("whole cores of the kernel and of gcore: all frames are those of eu-stack")
def whole(folder):
    path = deep(folder)
    check_whole(core_of_dying(folder, path, "null"))
    found = check_whole(by_gcore(folder, path))
    # gcore stops what it writes.
    assert {r["signal_name"] for r in found.values()} == {"SIGSTOP"}


@test("a core of a program of 32 bit: all frames are those of eu-stack")
def narrow_whole(folder):
    building.need_32_bit()
    core = core_of_dying(folder, deep(folder, "-static", compiler="i686-linux-gnu-gcc"), "null")
    found, _ = stacks(core)
    peer = eu_stacks(core)
    assert {tid: pcs(r) for tid, r in found.items()} == peer and len(peer) == 5, peer


PARTS = (10, 30, 60, 90)


def cut(path, percent):
    with open(path, "rb") as whole_file, open(f"{path}.cut", "wb") as part:
        part.write(whole_file.read(os.path.getsize(path) * percent // 100))
    return f"{path}.cut"


@test("cores that are cut short: the first frames, and that the rest is missing")
def cut_short(folder):
    path = deep(folder)
    core = core_of_dying(folder, path, "null")
    full = check_whole(core)
    for percent in PARTS:
        part, said = stacks(cut(core, percent), status=1)
        check_prefix(full, part)
        assert "cut short" in said, said
    # A static program needs no other file: only stacks are lost.
    core = core_of_dying(folder, deep(folder, "-static"), "null")
    full, _ = stacks(core)
    known = [check_prefix(full, stacks(cut(core, percent))[0]) for percent in PARTS]
    assert known == sorted(known) and known[0] < known[-1], known
    core = by_gcore(folder, path)
    for percent in PARTS:
        done = fathom("stack", cut(core, percent), status=2)
        assert "tells of no threads" in done.stderr and not done.stdout, done


COMPRESSORS = {"gz": ["gzip", "-kf1"], "xz": ["xz", "-kf0"], "zst": ["zstd", "-qf1"], "lz4": ["lz4", "-qf1"]}


def compress(core, how):
    execute(*COMPRESSORS[how], core, *([f"{core}.lz4"] if how == "lz4" else []), status=0)
    return f"{core}.{how}"


@test("a compressed core that does not fit the budget, of 65,000 segments of notes over each other, takes no time")
def notes_over_notes(folder):
    n, size, begin = 65000, 4 << 20, 64 + 56 * 65000
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 4, 62, 1, 0, 64, 0, 0, 64, 56, n, 0, 0, 0)
    notes = struct.pack("<IIQQQQQQ", 4, 4, begin, 0, 0, size, 0, 4)  # PT_NOTE
    memory = struct.pack("<IIQQQQQQ", 1, 5, begin + size, 0x1000, 0, 48 << 20, 48 << 20, 4096)  # PT_LOAD
    with open(f"{folder}/core.gz", "wb") as f:
        f.write(gzip.compress(header + notes * (n - 1) + memory + bytes(size + (48 << 20)), 1))
    said = refused("stack", "--memory=48M", f"{folder}/core.gz", processor_seconds=20)
    assert "notes that lie over others" in said, said


def add_compressed(how):
    @test(f"compressed cores that do not fit the budget have all their stacks: {how}")
    def _(folder):
        path = deep(folder)
        for core in (core_of_dying(folder, path, "null"), *([by_gcore(folder, path)] if how == "gz" else [])):
            full, _ = stacks(core)
            packed = compress(core, how)
            assert os.path.getsize(core) > 32 << 20
            for budget in ("1G", "16M", "4M", "1M"):
                part, said = stacks(packed, f"--memory={budget}")
                assert {t: frames(r) for t, r in part.items()} == {t: frames(r) for t, r in full.items()}
                assert {r["stop"] for r in part.values()} == {"entry"}, [short(r) for r in part.values()]
                assert ("does not fit the memory budget" in said) == (budget != "1G"), said
                assert "cut short" not in said, said
            (record,), _ = addr(packed, ["down"], "--memory=4M")
            assert record["symbol"] == "down", record
            # Even the headers do not fit.
            said = refused("stack", packed, "--memory=4K")
            assert "does not fit the memory budget" in said, said

    @test(f"compressed cores that are cut short: the first frames: {how}")
    def _(folder):
        core = core_of_dying(folder, deep(folder, "-static"), "null")
        full, _ = stacks(core)
        packed = compress(core, how)
        known = []
        for percent in PARTS:
            for budget in ("1G", "4M"):
                done = fathom("stack", "--json", "--no-cache", cut(packed, percent), f"--memory={budget}")
                if "data is damaged" in done.stderr:  # not even one block
                    known.append(0)
                    continue
                assert "cut short" in done.stderr, done.stderr
                known.append(check_prefix(full, {r["tid"]: r for r in records_of(done.stdout)}))
        assert max(known) > 5, known

    @test(f"compressed cores that are damaged are refused: {how}")
    def _(folder):
        packed = compress(core_of_dying(folder, deep(folder, "-static"), "null"), how)
        with open(packed, "r+b") as f:
            f.seek(os.path.getsize(packed) // 2)
            bad = bytes(byte ^ 0xff for byte in f.read(64))
            f.seek(-len(bad), os.SEEK_CUR)
            f.write(bad)
        for budget in ("1G", "4M"):
            done = fathom("stack", packed, f"--memory={budget}")
            # With a small budget, all that is wanted may come before the damage.
            assert "damaged" in done.stderr or (budget == "4M" and done.returncode < 2), done


for each in COMPRESSORS:
    add_compressed(each)


def with_library(folder, *options):
    library = building.build_text(f"{folder}/libdown.so", DOWN.replace("DOWN", "down"), "-shared", "-fPIC",
                                  "-Wl,--build-id=sha1", *options)
    return library, building.build_text(f"{folder}/deep", DEEP.replace("DOWN", "down"), "-pthread", library)


def replace(library):
    other = building.build_text(f"{library}.new", DOWN.replace("DOWN", "down").replace("+ x", "- x"), "-shared", "-fPIC",
                                "-Wl,--build-id=sha1")
    os.rename(other, library)


LOST = {"no-file": os.unlink, "build-id-mismatch": replace}


def add_lost(reason):
    @test(f"a library is not there, {reason}: by memory, by build-id, else the frames before it")
    def _(folder):
        for core_filter in (USUAL, ALL):
            library, path = with_library(folder)
            core = core_of_dying(folder, path, "null", core_filter=core_filter)
            full = check_whole(core)
            kept = building.debug_path(f"{folder}/debug", building.build_id(library)).removesuffix(".debug")
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            shutil.copy(library, kept)
            LOST[reason](library)
            part, said = stacks(core)
            check_prefix(full, part)
            assert library in said, said
            if core_filter == ALL:
                assert {r["stop"] for r in part.values()} == {"entry"}, [short(r) for r in part.values()]
            else:
                first = part[next(iter(full))]
                assert [f["symbol"] for f in first["frames"]] == ["end", "down"], short(first)
                assert (first["stop"], first["reason"]) == ("unreadable", "no-file"), short(first)
            found, _ = stacks(core, "--debug-dir", f"{folder}/debug")
            assert {t: frames(r) for t, r in found.items()} == {t: frames(r) for t, r in full.items()}
            assert all(f["frames"][0]["file"] for r in found.values() for f in r["frames"] if f["symbol"] == "down")
            shutil.rmtree(f"{folder}/debug")


for each in LOST:
    add_lost(each)


@test("a core without ELF headers, which tells nothing of its files: no frame is guessed")
def no_headers(folder):
    path = deep(folder)
    part, said = stacks(core_of_dying(folder, path, "null", core_filter=NO_HEADERS), status=1)
    assert len(part) == 5 and all(len(r["frames"]) == 1 for r in part.values())
    assert {(r["stop"], r["reason"]) for r in part.values()} == {("unreadable", "no-file")}
    assert "may not be the file that was mapped" in said, said
    # Taken as they are, which each frame says.
    taken, _ = stacks(f"{folder}/core", "--unverified-files")
    assert all(r["stop"] == "entry" for r in taken.values()) and \
        all(f["unverified"] for r in taken.values() for f in r["frames"]), taken
    # The user says which program it is: its frames come, up to the C library.
    named, _ = stacks(f"{folder}/core", "--exe", path)
    first = next(iter(named.values()))
    assert [f["symbol"] for f in first["frames"]][:42] == ["end"] + ["down"] * 41, short(first)


ARM = r"""
#include <signal.h>
#include <stdlib.h>
int __attribute__((noinline)) down(int n, int (*f)(int)) { volatile int x = n; return n ? down(n - 1, f) + x : f(x) + x; }
static int end(int n) { abort(); return n; }
static void handler(int s) { down(s - s + 3, end); }
int main(int c, char **v) { (void)v; if (c > 1) { signal(SIGUSR1, handler); raise(SIGUSR1); } return down(9, end); }
"""


def has_vdso():
    """Whether QEMU gives programs for aarch64 a vDSO, as it does since 8.2."""
    major, minor = re.search(r"version (\d+)\.(\d+)", run("qemu-aarch64", "--version")).groups()
    return (int(major), int(minor)) >= (8, 2)


def add_arm(name, *options):
    @test(f"a core of an aarch64 program, by qemu, read on this machine: {name}")
    def _(folder):
        path = building.build_text(f"{folder}/arm", ARM, "-static", *options, compiler="aarch64-linux-gnu-gcc")
        for words, calls in (([], ["end"] + ["down"] * 10 + ["main"]),
                             (["x"], ["end"] + ["down"] * 4 + ["handler", None, "raise", "main"])):
            done = execute("sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh", "qemu-aarch64", path, *words, cwd=folder)
            (core,) = glob.glob(f"{folder}/qemu_*.core")
            # Nothing in it tells which program it is of; who says so is believed.
            found, said = stacks(core, "--exe", path)
            (record,) = found.values()
            names = [f["symbol"] for f in record["frames"] if not f["symbol"] or "pthread_kill" not in f["symbol"]]
            at = names.index("end")
            if words and has_vdso():
                # Its cores lack the vDSO, where handlers return to: what lies above is not known.
                assert names[at:] == calls[:calls.index(None) + 1] and record["frames"][-1]["reason"] == "no-file", short(record)
                assert record["stop"] == "unreadable", short(record)
                os.unlink(core)
                continue
            assert record["stop"] == "entry" and record["signal_name"] == "SIGABRT", (short(record), said, done)
            assert names[at:at + len(calls)] == calls, short(record)
            assert names[-1] == "_start", short(record)
            assert {f["trust"] for f in record["frames"]} <= {"registers", "cfi", "signal"}, short(record)
            # Without a word, nothing is guessed.
            (record,) = stacks(core)[0].values()
            assert len(record["frames"]) == 1 and record["stop"] == "unreadable", short(record)
            os.unlink(core)


add_arm("plain")
add_arm("signed return addresses", "-mbranch-protection=standard")
add_arm("no frame pointers", "-fomit-frame-pointer")


def notes_of(core):
    """(type, offset of the description, size) of each note of a 64-bit core."""
    with open(core, "rb") as f:
        data = f.read()
    phoff, = struct.unpack_from("<Q", data, 32)
    count, = struct.unpack_from("<H", data, 56)
    for i in range(count):
        kind, _, off, _, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i)
        at = off
        while kind == 4 and at + 12 <= off + size:
            name, length, note = struct.unpack_from("<III", data, at)
            at += 12 + (name + 3) // 4 * 4
            yield note, at, length
            at += (length + 3) // 4 * 4


def patched(core, changes):
    """A copy of @core with other bytes: {offset: bytes}."""
    shutil.copy(core, f"{core}.patched")
    with open(f"{core}.patched", "r+b") as f:
        for off, data in changes.items():
            f.seek(off)
            f.write(data)
    return f"{core}.patched"


# Where struct user_regs_struct has them: words behind the 112 bytes before.
RBP, RIP, RSP = 112 + 8 * 4, 112 + 8 * 16, 112 + 8 * 19
PRSTATUS, SIGINFO = 1, 0x53494749


@test("registers that lie: cyclic, misaligned and wild stacks end, quickly")
def lies(folder):
    core = core_of_dying(folder, deep(folder, "-static", "-fno-omit-frame-pointer"), "null")
    full, _ = stacks(core)
    status = [at for kind, at, _ in notes_of(core) if kind == PRSTATUS][0]
    tid = next(iter(full))
    sp = int(full[tid]["frames"][0]["sp"], 16)
    heap = int(full[tid]["frames"][5]["sp"], 16)
    rng = random.Random(16)
    wild = [0, 1, 8, sp + 1, sp - 8, heap, heap + 3, 0xfff, 1 << 47, (1 << 64) - 8, (1 << 64) - 1] + \
        [rng.randrange(1 << 64) for _ in range(20)]
    for value in wild:
        for register in (RBP, RSP, RIP):
            found, _ = stacks(patched(core, {status + register: struct.pack("<Q", value & (1 << 64) - 1)}))
            assert len(found) == 5 and all(r["stop"] for r in found.values()), (value, register)
            assert {t: frames(r) for t, r in found.items() if t != tid} == \
                {t: frames(r) for t, r in full.items() if t != tid}, (value, register)
    # pc in no code and without call frame information, a frame pointer that leads to itself.
    found, _ = stacks(patched(core, {status + RBP: struct.pack("<Q", sp), status + RIP: struct.pack("<Q", heap)}))
    assert len(found[tid]["frames"]) < 500, short(found[tid])


@test("notes of threads that are damaged: no crash, and the other threads are whole")
def damaged_notes(folder):
    core = core_of_dying(folder, deep(folder, "-static"), "null")
    full, _ = stacks(core)
    rng = random.Random(17)
    notes = list(notes_of(core))
    for _ in range(60):
        kind, at, size = rng.choice(notes)
        before = rng.choice([0, 0, 20])  # 20: from the note's own sizes, type and name on
        length = min(size, rng.choice([1, 4, 64]))
        bad = patched(core, {at - before + rng.randrange(size - length + 1): rng.randbytes(length)})
        done = fathom("stack", "--json", "--no-cache", bad, processor_seconds=60)
        assert done.returncode in (0, 1, 2), done
        same = sum(frames(r) == frames(full[r["tid"]]) for r in records_of(done.stdout) if r["tid"] in full)
        assert before or kind not in (PRSTATUS, SIGINFO) or same >= 4, (kind, at, done.returncode, done.stderr)


@test("300,000 notes of threads, each with a deep stack: frames have a bound")
def many_notes(folder):
    n = 300000
    status = bytearray(336)
    notes = bytearray()
    for tid in range(1, n + 1):
        struct.pack_into("<i", status, 32, tid)
        notes += struct.pack("<III8s", 5, 336, PRSTATUS, b"CORE") + status
    begin = 64 + 56 * 2
    with open(f"{folder}/core", "wb") as f:
        f.write(b"\x7fELF\2\1\1".ljust(16, b"\0"))
        f.write(struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0))
        f.write(struct.pack("<IIQQQQQQ", 4, 4, begin, 0, 0, len(notes), 0, 4))
        f.write(struct.pack("<IIQQQQQQ", 1, 6, begin + len(notes), 0x1000, 0, 4096, 4096, 4096))
        f.write(notes + bytes(4096))
    done = fathom("stack", f"{folder}/core", processor_seconds=120)
    assert done.returncode in (1, 2), (done.returncode, done.stderr)
    assert done.returncode == 2 or done.stdout.count("TID ") == n


def told_stacks(target, *options):
    """The records of all threads, but for how long they were stopped."""
    records = records_of(fathom("stack", "--json", "--no-cache", *options, target, status=(0, 1)).stdout)
    return [{key: value for key, value in r.items() if key != "pause_us"} for r in records]


@test("a snapshot with stacks says the same later as fathom stack says of the stopped process")
def kept(folder):
    path = deep(folder)
    for stop in ("auto", "never", "all"):
        with Running([path]) as running:
            assert running.line() == "done"
            wait_for_state(running.pid, "S")
            running.signal(signal.SIGSTOP)
            for tid in os.listdir(f"/proc/{running.pid}/task"):
                wait_for_state(int(tid), "T")
            now = told_stacks(running.pid, f"--stop={stop}")
            run(FATHOM, "snapshot", "--stacks", f"--stop={stop}", running.pid, f"{folder}/kept")
            run(FATHOM, "snapshot", running.pid, f"{folder}/bare")
        then = told_stacks(f"{folder}/kept")
        assert len(now) == 5 and then == now, [(short(a), short(b)) for a, b in zip(now, then) if a != b]
        assert now[0]["registers"]["rip"] == now[0]["frames"][0]["pc"]
        assert stop == "never" or {r["stop"] for r in now} == {"entry"}, [short(r) for r in now]
        tid = now[-1]["tid"]
        assert told_stacks(f"{folder}/kept", "--tid", tid) == [now[-1]]
        (record,), _ = addr(f"{folder}/bare", ["down"])
        (other,), _ = addr(f"{folder}/kept", ["down"])
        assert record == other
    assert "taken without --stacks" in refused("stack", f"{folder}/bare")
    assert "no thread of this number" in refused("stack", "--tid", 1, f"{folder}/kept")


@test("a snapshot keeps all stacks that a thread is on: in a handler on another stack")
def kept_pieces(folder):
    path = building.build(f"{folder}/odd", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stacks", "programs", "odd.c"), "-pthread")
    with Running([path, "handler"]) as running:
        assert running.line() == "done"
        wait_for_state(running.pid, "S")
        run(FATHOM, "snapshot", "--stacks", running.pid, f"{folder}/kept")
        (now,) = told_stacks(running.pid)
    run(FATHOM, "snapshot", "--stacks", f"{folder}/kept", f"{folder}/again")
    names = [f["symbol"] for f in now["frames"]]
    assert now["stop"] == "entry" and "on_signal" in names and names[-3:] != names and names[-1] == "_start", names
    assert names.index("on_signal") < names.index("in_handler") < names.index("main"), names
    assert told_stacks(f"{folder}/kept") == [now] == told_stacks(f"{folder}/again")


@test("a thread that waits is kept with what it waits for, also in a snapshot of a snapshot")
def kept_waits(folder):
    with Running(["sh", "-c", "sleep 1000 & echo done; wait"]) as running:
        assert running.line() == "done"
        wait_for_state(running.pid, "S")
        with open(f"/proc/{running.pid}/task/{running.pid}/children", encoding="ascii") as file:
            child = int(file.read())
        try:
            run(FATHOM, "snapshot", "--stacks", running.pid, f"{folder}/kept")
            now = told_stacks(running.pid)
        finally:
            os.kill(child, signal.SIGKILL)
    run(FATHOM, "snapshot", "--stacks", f"{folder}/kept", f"{folder}/again")
    assert now[0]["syscall"] and now[0]["waits_for"], short(now[0])
    assert told_stacks(f"{folder}/kept") == now == told_stacks(f"{folder}/again")


@test("a snapshot of a core keeps its stacks and signals")
def kept_core(folder):
    core = core_of_dying(folder, deep(folder), "wild")
    now = told_stacks(core)
    run(FATHOM, "snapshot", "--stacks", core, f"{folder}/kept")
    os.unlink(core)
    assert now[0]["fault_address"] == "0x123450" and told_stacks(f"{folder}/kept") == now
    assert os.path.getsize(f"{folder}/kept") < 1 << 20


def snapshot_parts(path):
    """The header and the body of a snapshot."""
    with open(path, "rb") as f:
        return f.read(24), f.read()


def write_snapshot(path, header, body):
    """Writes a snapshot with the right checksum."""
    with open(path, "wb") as f:
        f.write(header[:12] + struct.pack("<I", zlib.crc32(body)) + header[16:] + body)


def records_of_threads(body):
    """Where the records of threads in the body of a snapshot are, and their sizes."""
    records, at = [], 0
    while at < len(body):
        kind, _, size = struct.unpack_from("<IIQ", body, at)
        if kind == 6:
            records.append((at + 16, size))
        at += 16 + (size + 7) // 8 * 8
    return records


@test("texts of a snapshot's threads do not reach the terminal as they are")
def kept_escapes(folder):
    with Running([deep(folder)]) as running:
        assert running.line() == "done"
        wait_for_state(running.pid, "S")
        run(FATHOM, "snapshot", "--stacks", running.pid, f"{folder}/kept")
    header, body = snapshot_parts(f"{folder}/kept")
    start, size = records_of_threads(body)[0]
    thread = body[start:start + size]
    for text, evil in ((b"deep", b"\x1b[2J"), (b"pause", b"\x1b[31m"), (b"a signal", b"\x1b]0;evil")):
        field = struct.pack("<I", len(text)) + text
        assert field in thread and len(evil) == len(text), (text, thread)
        thread = thread.replace(field, struct.pack("<I", len(evil)) + evil, 1)
    write_snapshot(f"{folder}/evil", header, body[:start] + thread + body[start + size:])
    told = run(FATHOM, "stack", "--no-cache", f"{folder}/evil", status=(0, 1))
    assert told.startswith(f'TID {running.pid}: "\\x1b[2J", sleeping in \\x1b[31m: \\x1b]0;evil\n'), told
    assert "\x1b" not in told, told


@test("threads of a snapshot that lie, with a right checksum: no crash, and an end")
def kept_lies(folder):
    core = core_of_dying(folder, deep(folder, "-static"), "null")
    run(FATHOM, "snapshot", "--stacks", core, f"{folder}/kept")
    header, body = snapshot_parts(f"{folder}/kept")
    records = records_of_threads(body)
    assert len(records) == 5, records
    rng = random.Random(18)
    for _ in range(60):
        start, size = rng.choice(records)
        bad = bytearray(body)
        off = start + rng.randrange(min(size, 320) - 8)
        bad[off:off + 8] = rng.choice([rng.randbytes(8), b"\xff" * 8, bytes(8)])
        write_snapshot(f"{folder}/bad", header, bad)
        done = fathom("stack", "--json", "--no-cache", f"{folder}/bad", processor_seconds=60)
        assert done.returncode in (0, 1, 2), done
        assert done.returncode == 2 or len(done.stdout.splitlines()) >= 4, done.stderr


@test("what has no stacks says so: a file, a process of another user")
def none_there(folder):
    path = deep(folder)
    said = refused("stack", path)
    assert path in said and "is a file" in said, said
    said = refused("snapshot", "--stacks", path, f"{folder}/none")
    assert "not of a file" in said and not os.path.exists(f"{folder}/none"), said
    assert "--stop" in refused("snapshot", "--stop=some", path, f"{folder}/none")
    if os.geteuid():
        raise tap.Skip("only root can ask as another user")
    with Running([path]) as running:
        assert running.line() == "done"
        said = refused("stack", running.pid, user=NOBODY)
        assert "another user" in said and "root" in said, said


sys.exit(SUITE.run())
