#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "imports": profiles of other programs have the sums that these programs state, or that follow from their files."""
import collections
import json
import os
import platform
import random
import re
import shutil
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE, os.path.join(HERE, "..", "jit")]

import jitfiles  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute  # noqa: E402
from building import build  # noqa: E402
from made_profile import make, report, same  # noqa: E402

SUITE = tap.Suite("imports")
test = SUITE.test


DUMP = os.path.join(os.environ["BUILD"], "tests", "dump_profile")
Sample = collections.namedtuple("Sample", "ns pid tid name weight part stop pcs")


def dump(path, status=0):
    """The samples of a profile."""
    lines = execute(DUMP, path, status=status).stdout.splitlines()
    found = [line.split("\t") for line in lines]
    return [Sample(int(ns), int(pid), int(tid), name, int(weight), int(part), int(stop), [int(pc, 16) for pc in pcs.split()])
            for ns, pid, tid, name, weight, part, stop, pcs in found]


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path


def sums(stacks):
    """{function: (self, total)} of (stack, weight), the outermost first; a function counts once for each stack."""
    own, total = collections.Counter(), collections.Counter()
    for stack, weight in stacks:
        if stack:
            own[stack[-1]] += weight
        for function in set(stack):
            total[function] += weight
    return {function: (own[function], total[function]) for function in total}


def rows(path, *words):
    """{function: (self, total)} of the report."""
    return {row["name"] or "??": (row["self"], row["total"]) for row in report(path, *words)["row"]}


def by_process(path):
    return {row["name"]: row["total"] for row in report(path, "--by", "process")["row"]}


def export(path, form, *words):
    return execute(FATHOM, "report", "--export", form, "--no-cache", *words, path, status=0, text=False).stdout


def refusal(path):
    done = execute(FATHOM, "report", "--json", path, status=2)
    assert not done.stdout and len(done.stderr.splitlines()) == 1, done
    return done.stderr


@test("collapsed stacks, with and without processes, with empty lines, CRLF and fractions: the sums of their lines")
def collapsed(folder):
    stacks = [(["main", "a", "b c(int, char const*)"], 10), (["main", "a"], 5), (["main", "read"], 4), (["start_thread"], 7)]
    lines = [f"{';'.join(stack)} {weight}" for stack, weight in stacks]
    same(rows(write(folder, "plain", "\n".join(lines) + "\n")), sums(stacks))
    same(rows(write(folder, "lines", "\r\n\r\n" + "\r\n \t\r\n".join(lines))), sums(stacks))
    path = write(folder, "processes", "\n".join("demo;" + line for line in lines) + "\nother;main 3\nother;main;x 1.5\nother;y 1.4\n")
    same(rows(path), sums(stacks + [(["main"], 3), (["main", "x"], 2), (["y"], 1)]))
    same(by_process(path), {"demo": 26, "other": 6})
    path = write(folder, "pids", "demo-7/8;main 3\nother-9/9;main 2\n")
    same({(row["name"], row["pid"], row["tid"]): row["total"] for row in report(path, "--by", "thread")["row"]},
         {("demo", 7, 8): 3, ("other", 9, 9): 2})


@test("collapsed stacks: suffixes say what is of the kernel, of JIT code, and inlined")
def suffixes(folder):
    path = write(folder, "suffixes", "demo;main;f;g_[i];h_[i];sys_[k] 3\ndemo;main;f;g_[i] 2\ndemo;main;f 4\ndemo;main;Loop_[j] 1\n")
    found = report(path)
    same({row["name"]: (row["self"], row["total"], row["module"]) for row in found["row"]},
         {"main": (0, 10, None), "f": (4, 9, None), "g": (2, 5, None), "h": (0, 3, None), "sys": (3, 3, "[kernel]"),
          "Loop": (1, 1, "[jit]")})


@test("collapsed stacks: what is exported of what was imported is what was imported, hidden characters too")
def again(folder):
    rng = random.Random(7)
    names = ["a", "b;c", "d e", "operator new(unsigned long) 7", "\x1b[31m", "z\u202e", "main", "[unknown]", "_[k", "r\\x41", "\\name"]
    lines = collections.Counter()
    for _ in range(200):
        stack = ";".join(rng.choice(names).replace(";", "\\x3b").replace(") 7", ")\\x207").replace("\x1b", "\\x1b")
                         .replace("\u202e", "\\u202e") for _ in range(rng.randint(1, 9)))
        lines["demo;" + stack] += rng.randint(1, 99)
    content = "".join(f"{line} {lines[line]}\n" for line in sorted(lines))
    exported = export(write(folder, "again", content), "collapsed")
    same(sorted(exported.decode().splitlines()), sorted(content.splitlines()))
    same(export(write(folder, "twice", exported), "collapsed"), exported)


@test("what is no profile, and lines that are no stacks: an error with their number")
def no_stacks(folder):
    assert "is no profile" in refusal(write(folder, "text", "This is a text.\na;b 3\n"))
    assert "is no profile" in refusal(write(folder, "empty-lines", "\n\n \n"))
    assert "is no profile" in refusal(write(folder, "nul", "a;b\0 3\n"))
    for line in ("a;b", "5", "a;b 5x", "a;b -5", "a;b 99999999999999999999", "a;\0b 5"):
        text = refusal(write(folder, "line", f"a;b 1\n\nmain;c 2\n{line}\n"))
        assert "line 4: is not of the form" in text, (line, text)
    deep = write(folder, "deep", ";".join(f"f{i}" for i in range(10000)) + " 1\n")
    found = rows(deep)
    same(found.pop("[stack not complete: limit]"), (0, 1))
    assert len(found) == 4096 and found["f9999"] == (1, 1), len(found)


def perf_record(folder, program, *options, name="perf.data", output=None):
    """What perf record writes of a run of @program; skips where it may not, or is not there."""
    if not shutil.which("perf"):
        raise tap.Skip("there is no perf")
    path = os.path.join(folder, name)
    # perf 6.1 aborts while it reads build-ids of files whose paths have some lengths.
    for suffix in range(9):
        copy = program + suffix * "_"
        if suffix:
            shutil.copy(program, copy)
        with open(output or os.devnull, "wb") as f:
            done = execute("perf", "record", "-q", "-N", "-F", "997", *options, "-o", "-" if output else path, "--", copy, stdout=f, text=False)
        if not done.returncode and not execute("perf", "script", "-F", "tid,ip", "-i", output or path).returncode:
            break
    else:
        raise tap.Skip("perf events cannot be used here: " + done.stderr.decode().strip()[-80:])
    return output or path


def perf_script(path):
    """(tid, ns, period, pcs) of each sample, as perf script has them."""
    done = execute("perf", "script", "--no-inline", "-F", "tid,time,period,ip", "--ns", "-i", path, status=0)
    found = []
    for line in done.stdout.splitlines():
        head = re.fullmatch(r"\s*(\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+([0-9a-f]+)?\s*", line + " ")
        if head:
            pcs = [int(head[5], 16)] if head[5] else []
            found.append((int(head[1]), int(head[2]) * 10**9 + int(head[3]), int(head[4]), pcs))
        elif line.strip():
            found[-1][3].append(int(line.split()[0], 16))
    return found


def program(folder, *flags):
    return build(os.path.join(folder, "imported"), os.path.join(HERE, "programs", "imported.c"), "-pthread", *flags)


def distance(own, pc):
    """Of callers, some versions of perf print the address before the one that is returned to; some print addresses in memory, which
    are those of the file at a distance of whole pages. Returns that; None: they are of two places."""
    return (pc - own + 1) & ~0xfff if (own - pc) & 0xfff in (0, 1) else None


def same_samples(path, least=0.99):
    """The samples of @path are those of perf script, in the order of time, with its pcs as far as it has any."""
    ours, theirs = dump(path), sorted(perf_script(path), key=lambda sample: sample[1])
    assert len(ours) == len(theirs) > 30, (len(ours), len(theirs))
    began = theirs[0][1] - ours[0].ns
    others, distances = [], set()
    for mine, (tid, ns, period, pcs) in zip(ours, theirs):
        same((mine.tid, mine.ns + began, mine.weight), (tid, ns, period))
        while pcs and pcs[-1] in (0, 2**64 - 1):
            pcs.pop()
        found = {distance(own, pc) for own, pc in zip(mine.pcs, pcs)}
        if len(mine.pcs) < len(pcs) or None in found:
            others.append((mine.pcs, pcs))
        else:
            distances |= found
    for mine, pcs in others:
        print("# differs:", [hex(pc) for pc in mine], [hex(pc) for pc in pcs])
    assert len(others) <= (1 - least) * len(ours), (len(others), len(ours))
    # Of the kernel, the program, libc, the dynamic linker and the vDSO.
    assert len(distances) <= 5, distances
    return ours


@test("perf.data with frame pointers: each sample has the thread, the time, the period and the pcs that perf script has")
def frame_pointers(folder):
    path = perf_record(folder, program(folder, "-O1", "-fno-omit-frame-pointer"), "-e", "cpu-clock", "-g")
    samples = same_samples(path)
    found = report(path)
    same(found["profile"][0]["event"], "cpu-clock")
    names = {row["name"] for row in found["row"]}
    same({"leaf", "deeper", "main", "run"} - names, set())
    assert len({sample.pid for sample in samples}) == 2 and len({sample.tid for sample in samples}) == 3
    weight = sum(sample.weight for sample in samples)
    same(sum(row["self"] for row in found["row"]), weight)


@test("perf.data with copies of stacks: the pcs of perf script, and stacks are whole")
def stack_copies(folder):
    path = perf_record(folder, program(folder, "-O2"), "-e", "cpu-clock", "--call-graph", "dwarf,16384")
    samples = same_samples(path)
    whole = sum(sample.stop == 1 for sample in samples)
    assert whole >= 0.99 * len(samples), (whole, len(samples))


@test("perf record in pipe mode, with compressed records, without stacks, and of some events: as perf script says")
def forms(folder):
    made = program(folder, "-O1", "-fno-omit-frame-pointer")
    same_samples(perf_record(folder, made, "-e", "cpu-clock", "-g", output=os.path.join(folder, "pipe.data")))
    flat = same_samples(perf_record(folder, made, "-e", "cpu-clock", name="flat.data"))
    assert all(len(sample.pcs) == 1 for sample in flat)
    same_samples(perf_record(folder, made, "-e", "cpu-clock", "-g", "-d", "--phys-data", "-W", "-s", name="fields.data"))
    try:
        path = perf_record(folder, made, "-e", "cpu-clock", "-g", "-z", name="packed.data")
    except tap.Skip:
        path = None
    if path:
        same_samples(path)
    path = perf_record(folder, made, "-e", "task-clock,page-faults", "-g", name="two.data")
    head = report(path)["profile"][0]
    same(head["event"], "task-clock")
    left_out = re.fullmatch(r"perf record \((\d+) samples of other events are left out\)", head["method"])
    same(int(left_out[1]) + len(dump(path)), len(perf_script(path)))


@test("perf record --threads: a directory, also with compressed records, has the samples of perf script")
def directories(folder):
    made = program(folder, "-O1", "-fno-omit-frame-pointer")
    if shutil.which("perf") and "--threads" not in execute("perf", "record", "-h").stderr:
        raise tap.Skip("perf has no --threads")
    path = perf_record(folder, made, "-e", "cpu-clock", "-g", "--threads", name="threads.data")
    ours = same_samples(path)
    assert os.path.isdir(path) and sum(os.path.getsize(f"{path}/data.{i}") > 0 for i in range(len(os.listdir(path)) - 1)) > 0
    assert len({sample.tid for sample in ours}) >= 3, ours
    head = report(path)["profile"][0]
    same((head["event"], head["complete"], head["host"]), ("cpu-clock", True, platform.node()))
    # Each thread of perf has a stream of its own.
    path = perf_record(folder, made, "-e", "cpu-clock", "-g", "--threads", "-z", name="packed.data")
    ours_packed = same_samples(path)
    # Of one that was killed, "data" has no sizes, and no facts.
    with open(f"{path}/data", "r+b") as data:
        off, size = struct.unpack_from("<QQ", data.read(56), 40)
        data.truncate(off + size)
        data.seek(48)
        data.write(bytes(8))
    again = report(path)["profile"][0]
    assert again["samples"] == len(ours_packed) and not again["complete"], again


@test("directories that are none of perf record, or damaged: one line of error, or what is left")
def damaged_directories(folder):
    path = f"{folder}/made.data"
    os.mkdir(path)
    assert "is a directory" in refusal(path)
    write(path, "data", b"no profile")
    assert "none of perf record --threads" in refusal(path)
    # Records of two threads, whose times are mixed; one file is empty.
    single = perf_file(folder, [mapped(0x400000, 0x20000, "/nowhere/a"), sampled([0x401000], ns=3000)], name="single.data")
    shutil.copy(single, f"{path}/data")
    parts = [b"".join(sampled([0x402000 + i], ns=2000 + 100 * i + k) for i in range(20)) for k in (0, 50)]
    write(path, "data.0", parts[0])
    write(path, "data.1", b"")
    write(path, "data.2", parts[1])
    write(path, "data.4", parts[1])
    expected = sorted([(2000, 0x401000)] + [(1000 + 100 * i + k, 0x402000 + i) for i in range(20) for k in (0, 50)])
    same([(sample.ns, sample.pcs[0]) for sample in dump(path)], expected)
    rng = random.Random(9)
    with open(single, "rb") as f:
        contents = {"data": f.read(), "data.0": parts[0], "data.2": parts[1]}
    for turn in range(60):
        name = rng.choice(sorted(contents))
        damaged = bytearray(contents[name])
        if turn % 2:
            for _ in range(rng.randint(1, 10)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0x7f, 0xff, rng.randrange(256)))
        else:
            del damaged[rng.randrange(len(damaged)):]
        write(path, name, bytes(damaged))
        done = execute(DUMP, path, processor_seconds=20, errors="replace")
        assert done.returncode in (0, 1) and (not done.returncode) == (not done.stderr), done
        assert len(done.stdout.splitlines()) <= 100 and len(done.stderr.splitlines()) <= 1, done
        write(path, name, contents[name])
    os.unlink(f"{path}/data.0")
    os.mkfifo(f"{path}/data.0")
    assert execute(DUMP, path, status=1).stderr


@test("perf.data that is cut anywhere, or damaged: what is left, or one line of error")
def cut_perf_data(folder):
    path = perf_record(folder, program(folder, "-O1", "-fno-omit-frame-pointer"), "-e", "cpu-clock", "-g")
    with open(path, "rb") as f:
        content = f.read()
    rng = random.Random(5)
    whole = len(dump(path))
    for turn in range(60):
        damaged = bytearray(content)
        if turn % 2:
            for _ in range(rng.randint(1, 20)):
                damaged[rng.randrange(min(len(damaged), 20000))] = rng.choice((0, 1, 0x7f, 0xff, rng.randrange(256)))
        else:
            del damaged[rng.randrange(len(damaged)):]
        done = execute(DUMP, write(folder, "damaged", bytes(damaged)), processor_seconds=20, errors="replace")
        assert done.returncode in (0, 1) and (not done.returncode) == (not done.stderr), done
        assert len(done.stdout.splitlines()) <= whole + 100 and len(done.stderr.splitlines()) <= 1, done


PC_CHAIN, PC_STACK = 1 | 2 | 4 | 32 | 256, 1 | 2 | 4 | 256 | 4096 | 8192
USER, FORKED_OFF = 2**64 - 512, 1 << 13


def perf_record_of(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def perf_event(sample_type=PC_CHAIN, registers=0, most=0, is_monotonic=False):
    """struct perf_event_attr of cpu-clock, with a period, and times in all records; maybe of the monotonic clock."""
    flags = 1 << 18 | is_monotonic << 25
    head = struct.pack("<IIQQQQQ", 1, 112, 0, 1000, sample_type, 0, flags) + bytes(32)
    return (head + struct.pack("<QIi", registers, 64, is_monotonic)).ljust(108, b"\0") + struct.pack("<HH", most, 0)


def perf_file(folder, records, event=None, machine=None, name="made.data", ids=None, copies=1):
    """A file of perf record: one event, or @copies of it with @ids, where the numbers of each are in the file."""
    event = event or perf_event()
    data = b"".join(records)
    events = copies * (event + struct.pack("<QQ", *(ids or (0, 0))))
    features = struct.pack("<I", len(machine) + 1) + machine.encode() + b"\0" if machine else b""
    head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, len(event) + 16, 104, len(events), 104 + len(events), len(data), 0, 0) + \
        struct.pack("<QQQQ", 1 << 6 if machine else 0, 0, 0, 0)
    after = struct.pack("<QQ", 104 + len(events) + len(data) + 16, len(features)) if machine else b""
    return write(folder, name, head + events + data + after + features)


def trailer(ns, pid=7):
    return struct.pack("<IIQ", pid, pid, ns)


def mapped(start, size, path, pid=7, build_id=b"", ns=1000):
    """A map of code, maybe with a build-id."""
    ident = struct.pack("<B3x20s", len(build_id), build_id) if build_id else bytes(24)
    name = path.encode().ljust(len(path) // 8 * 8 + 8, b"\0")
    return perf_record_of(10, struct.pack("<IIQQQ", pid, pid, start, size, 0) + ident + bytes(8) + name + trailer(ns, pid),
                          2 | (1 << 14 if build_id else 0))


def sampled(chain, pid=7, ns=2000):
    """A sample with a call chain, which may have markers."""
    chain = [USER] + chain
    return perf_record_of(9, struct.pack("<QIIQQQ", chain[1], pid, pid, ns, 1000, len(chain)) + struct.pack(f"<{len(chain)}Q", *chain), 2)


def modules(path):
    """{module: self} of the functions of the report."""
    found = collections.Counter()
    for row in report(path)["row"]:
        found[row["module"]] += row["self"]
    return {module: weight for module, weight in found.items() if weight}


@test("perf.data whose files are not there: frames are of the modules that the maps state, and only code of no file is of the JIT's")
def missing_files(folder):
    maps = [mapped(0x400000, 0x20000, "/nowhere/a", build_id=bytes(range(1, 21))), mapped(0x410000, 0x1000, "/nowhere/b"),
            mapped(0x7f0000, 0x2000, "[vdso]"), mapped(0x800000, 0x1000, "//anon"), mapped(0x900000, 0x1000, "/memfd:code (deleted)")]
    pcs = [0x401000, 0x410800, 0x415000, 0x7f0100, 0x800100, 0x900100]
    own = {"/nowhere/a": 2000, "/nowhere/b": 1000, "[vdso]": 1000}
    path = perf_file(folder, maps + [sampled([pc]) for pc in pcs])
    same(modules(path), own | {"[memory]": 2000})
    same([sample.pcs for sample in dump(path)], [[pc] for pc in pcs])
    # With one file that is there, the process can be looked at.
    maps.append(mapped(0xa00000, 0x1000, program(folder)))
    path = perf_file(folder, maps + [sampled([pc]) for pc in pcs])
    same(modules(path), own | {"[jit of 7]": 2000})
    same([sample.pcs for sample in dump(path)], [[pc] for pc in pcs])
    # The same again.
    same(modules(perf_file(folder, maps + maps + [sampled([pc]) for pc in pcs]))["/nowhere/b"], 1000)
    path = perf_file(folder, [mapped(0x400000, 0x20000, program(folder), build_id=b"other build"), sampled([0x401000])])
    same(modules(path), {program(folder): 1000})


JIT_CODE, MS = 0x800000, 1000000


def functions_at(path, ns):
    """The stack of the sample at @ns since the first record: its functions, the outermost first."""
    times = ("--from", f"{ns / 1e9 - 1e-4:.6f}s", "--to", f"{ns / 1e9 + 1e-4:.6f}s")
    done = execute(FATHOM, "report", "--no-cache", "--export", "collapsed", *times, path, status=0)
    (line,) = done.stdout.splitlines()
    return [re.sub(r"_\[.\]$", "", name) for name in line.rpartition(" ")[0].split(";")[1:]]


def jit_samples(folder, dump_path, event, *records):
    """{milliseconds: the functions of a sample then} of samples in JIT code of process 7, which has mapped @dump_path."""
    maps = [mapped(JIT_CODE, 0x10000, "//anon"), mapped(0x700000, 0x1000, dump_path), mapped(0x400000, 0x1000, "/nowhere/a")]
    path = perf_file(folder, [*maps, *records], event)
    found = {}
    for ns in sorted({sample.ns for sample in dump(path)}):
        found[round(ns / MS)] = functions_at(path, ns)
    return found


@test("perf.data with a jitdump: JIT code has the name that it had at the time of the sample; code of files has none from there")
def jit_times(folder):
    path = f"{folder}/jit-7.dump"
    content = jitfiles.dump_header(7) + jitfiles.load(JIT_CODE, 0x100, 1, "first", 20 * MS) + jitfiles.load(JIT_CODE + 0x100, 0x100, 2, "other", 21 * MS) + \
        jitfiles.load(JIT_CODE, 0x100, 3, "second", 40 * MS) + jitfiles.move(JIT_CODE, JIT_CODE + 0x200, 0x100, 3, 60 * MS) + \
        jitfiles.load(0x400000, 0x1000, 4, "in a file", 60 * MS)
    write(folder, "jit-7.dump", content)
    samples = [sampled([JIT_CODE + 8, JIT_CODE + 0x110, 0x400010], ns=ms * MS) for ms in (15, 20, 39, 40, 65)] + \
        [sampled([JIT_CODE + 0x208], ns=70 * MS)]
    monotonic = perf_event(is_monotonic=True)
    none = ["[a]", "[[memory]]", "[[memory]]"]
    expected = {15: none, 20: [*none[:2], "first"], 39: ["[a]", "other", "first"], 40: ["[a]", "other", "second"],
                65: ["[a]", "other", "[[memory]]"], 70: ["second"]}
    found = jit_samples(folder, path, monotonic, *samples)
    same({ms: stack[-len(expected[ms]):] for ms, stack in found.items()}, expected)
    # Times of another clock, and of the processor's ticks, cannot be compared: what is there at the end.
    last = {ms: ["[a]", "other", "[[memory]]"] for ms in expected} | {70: ["second"]}
    same({ms: stack[-len(expected[ms]):] for ms, stack in jit_samples(folder, path, perf_event(), *samples).items()}, last)
    write(folder, "jit-7.dump", content[:32] + b"\1" + content[33:])
    same({ms: stack[-len(expected[ms]):] for ms, stack in jit_samples(folder, path, monotonic, *samples).items()}, last)
    # Of another process, or of no name of jitdumps.
    unnamed = {ms: none[-len(stack):] for ms, stack in expected.items()}
    write(folder, "jit-7.dump", content[:20] + b"\2" + content[21:])
    same({ms: stack[-len(expected[ms]):] for ms, stack in jit_samples(folder, path, monotonic, *samples).items()}, unnamed)
    write(folder, "jat-7.dump", content)
    same({ms: stack[-len(expected[ms]):] for ms, stack in jit_samples(folder, f"{folder}/jat-7.dump", monotonic, *samples).items()}, unnamed)


@test("perf.data with a jitdump: a child has its parent's code, a program that it becomes has not; a damaged one names less")
def jit_processes(folder):
    def fork(pid):
        return perf_record_of(7, struct.pack("<IIIIQ", pid, 7, pid, 7, 2500) + trailer(25 * MS, pid))

    def became(pid):
        return perf_record_of(3, struct.pack("<II8s", pid, pid, b"other") + trailer(35 * MS, pid), 1 << 13)

    content = jitfiles.dump_header(7) + b"".join(jitfiles.load(JIT_CODE + 0x100 * i, 0x100, i, f"f{i}", 2000 + i) for i in range(40))
    path = write(folder, "jit-7.dump", content)
    records = (fork(8), sampled([JIT_CODE + 8], 8, 30 * MS), became(8), sampled([JIT_CODE + 8], 8, 40 * MS))
    found = jit_samples(folder, path, perf_event(is_monotonic=True), *records)
    same({ms: stack[-1] for ms, stack in found.items()}, {30: "f0", 40: "[[memory]]"})
    rng = random.Random(3)
    for turn in range(40):
        damaged = bytearray(content)
        if turn % 2:
            for _ in range(rng.randint(1, 20)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0x7f, 0xff, rng.randrange(256)))
        else:
            del damaged[rng.randrange(len(damaged)):]
        write(folder, "jit-7.dump", bytes(damaged))
        records = [mapped(JIT_CODE, 0x10000, "//anon"), mapped(0x700000, 0x1000, path, ns=1100)] + \
            [sampled([JIT_CODE + 0x100 * i + 8], ns=3000 + i) for i in range(40)]
        made = perf_file(folder, records, perf_event(is_monotonic=True))
        done = execute(DUMP, made, status=0, processor_seconds=20)
        assert len(done.stdout.splitlines()) == 40 and not done.stderr, done


@test("perf.data of node with its jitdump: each function of JavaScript has the samples that it has after perf inject")
def jit_of_node(folder):
    if not shutil.which("node") or not shutil.which("perf"):
        raise tap.Skip("there is no node, or no perf")
    script = write(folder, "fibonacci.js", "function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }\n"
                                           "for (let i = 0; i < 60; i++) fibonacci(27);\n")
    path, injected = f"{folder}/perf.data", f"{folder}/injected.data"
    done = execute("perf", "record", "-q", "-N", "-k", "mono", "-F", "997", "-e", "cpu-clock", "-g", "-o", path, "--", "node", "--perf-prof",
                   script, cwd=folder)
    if done.returncode or execute("perf", "inject", "--jit", "-i", path, "-o", injected, cwd=folder).returncode:
        raise tap.Skip("perf events cannot be used here, or perf knows no jitdumps")

    def is_of_script(name):
        # node 20 has one kind for the three of node 18.
        return name.startswith(("JS:", "LazyCompile:", "Function:", "Script:")) and script in name

    theirs = collections.Counter()
    done = execute("perf", "script", "--no-inline", "-F", "ip,sym", "-i", injected, status=0)
    for block in done.stdout.strip().split("\n\n"):
        names = {line.split(maxsplit=1)[1] for line in block.splitlines() if len(line.split(maxsplit=1)) == 2}
        theirs.update(name.strip() for name in names if is_of_script(name))
    data = report(path)
    period = data["profile"][0]["weight"] // data["profile"][0]["samples"]
    ours = {row["name"]: row["total"] // period for row in data["row"] if row["name"] and is_of_script(row["name"])}
    assert max(theirs.values()) > 50, theirs
    same(ours, dict(theirs))


@test("perf.data of another machine, or without the registers of a walk: the pc that the sample states, and no whole stack")
def other_machines(folder):
    def sample(*values):
        registers = struct.pack(f"<Q{len(values)}Q", 2, *values)
        stack = struct.pack("<Q", 64) + struct.pack("<QQ", 0x401010, 0) * 4 + struct.pack("<Q", 64)
        return perf_record_of(9, struct.pack("<QIIQQ", 0x401000, 7, 7, 2000, 1000) + registers + stack, 2)

    maps = [mapped(0x400000, 0x20000, "/nowhere/a")]
    path = perf_file(folder, maps + [sample(1, 2, 3)], perf_event(PC_STACK, 1 << 6 | 1 << 7 | 1 << 8), machine="riscv64")
    same([(found.pcs, found.stop) for found in dump(path)], [([0x401000], 7)])
    path = perf_file(folder, maps + [sample(5)], perf_event(PC_STACK, 1 << 0))
    same([(found.pcs, found.stop) for found in dump(path)], [([0x401000], 7)])
    same(modules(path), {"/nowhere/a": 1000})
    # The stack pointer, then the pc: they are enough, and what cannot be walked has the module of its map, too.
    enough = {"x86_64": 3 << 7, "aarch64": 3 << 31}.get(platform.machine())
    if enough:
        path = perf_file(folder, maps + [sample(0x7ffe0000, 0x401008)], perf_event(PC_STACK, enough), machine=platform.machine())
        same([found.pcs for found in dump(path)], [[0x401008]])
        same(modules(path), {"/nowhere/a": 1000})
    text = refusal(write(folder, "big", b"2ELIFREP" + bytes(200)))
    assert "another byte order" in text and "stackcollapse" in text, text


@test("perf.data: a process that ran before perf began has its own maps, and a child those of its parent")
def forks(folder):
    def fork(pid, misc):
        return perf_record_of(7, struct.pack("<IIIIQ", pid, 7, pid, 7, 1500) + trailer(1500, pid), misc)

    path = perf_file(folder, [mapped(0x400000, 0x20000, "/nowhere/a"), fork(8, 0), fork(9, FORKED_OFF), sampled([0x401000], 8),
                              mapped(0x800000, 0x1000, "/nowhere/b", 9, ns=1600), sampled([0x401000], 9), sampled([0x800010], 9)])
    same(modules(path), {"/nowhere/a": 1000, "[memory]": 1000, "/nowhere/b": 1000})
    # A child that has its own maps, and the same: their files are looked at, and addresses are those of a file.
    made = program(folder)
    path = perf_file(folder, [mapped(0xa00000, 0x3000, made), fork(8, 0), mapped(0xa00000, 0x3000, made, 8, ns=1600), sampled([0xa01010], 8)])
    (found,) = dump(path)
    assert found.pcs[0] < 0xa00000, found


@test("perf.data: children that each have the maps of their parent, and one more: they fit the memory budget, or are refused")
def many_maps(folder):
    records = [mapped(0x400000 + 0x1000 * i, 0x1000, f"/nowhere/{i}") for i in range(1000)]
    for pid in range(100, 500):
        records.append(perf_record_of(7, struct.pack("<IIIIQ", pid, 7, pid, 7, 1500) + trailer(1500, pid)))
        records.append(mapped(0x10000, 0x1000, "/nowhere/own", pid, ns=1600))
    path = perf_file(folder, records + [sampled([0x401000])])
    done = execute(FATHOM, "report", "--json", "--memory", "16M", path, status=2)
    assert "does not fit the memory budget" in done.stderr and "--memory" in done.stderr, done
    same(modules(path), {"/nowhere/1": 1000})


@test("call chains, stacks of lines and of pprof that are longer than what is kept, or go on in what is not known, are not whole")
def parts(folder):
    pcs = list(range(0x401000, 0x401000 + 200))
    for most, n, stop in ((0, 126, 2), (0, 127, 7), (130, 127, 2), (130, 130, 7)):
        path = perf_file(folder, [sampled(pcs[:n])], perf_event(most=most))
        same([(len(found.pcs), found.stop) for found in dump(path)], [(n, stop)])
    same([found.stop for found in dump(perf_file(folder, [sampled([0x401000, 2**64 - 2048, 0x401010])]))], [2])
    for n, stop in ((4096, 1), (4097, 7)):
        path = write(folder, "lines", ";".join(["main()"] * n) + " 3\n")
        same([(len(found.pcs), found.stop) for found in dump(path)], [(4096, stop)])
        path = write(folder, "deep.pb", message((1, message((1, 1), (2, 2))), (2, message((1, b"\1" * n), (2, b"\1"))),
                                                (4, message((1, 1), (3, 16))), *((6, s) for s in STRINGS)))
        same([(len(found.pcs), found.stop) for found in dump(path)], [(4096, stop)])


@test("call chains are whole where their last function begins stacks: at _start, but not in main or in what is not there")
def whole_chains(folder):
    made = program(folder, "-O1", "-fno-omit-frame-pointer")
    at = {line.split()[2]: 0xa00000 + int(line.split()[0], 16) for line in execute("nm", made, status=0).stdout.splitlines() if len(line.split()) == 3}
    maps = [mapped(0xa00000, 0x3000, made), mapped(0x10000, 0x1000, "/nowhere/a")]
    for chain, stop in (([at["leaf"] + 4, at["main"] + 9, at["_start"] + 9], 1), ([at["_start"] + 9], 1), ([at["leaf"] + 4, at["main"] + 9], 2),
                        ([at["leaf"] + 4, 0x10100], 2), ([0x10100, at["_start"] + 9, 0], 2)):
        (found,) = dump(perf_file(folder, maps + [sampled(chain)]))
        same((len(found.pcs), found.stop), (len([pc for pc in chain if pc]), stop))


@test("collapsed stacks and pprof do not say which stacks are whole, and neither does a report of them; .cpuprofile does")
def unknown_ends(folder):
    nodes = [{"id": 1, "callFrame": frame("(root)"), "children": [2]}, {"id": 2, "callFrame": frame("a"), "hitCount": 1}]
    known = json.dumps({"nodes": nodes, "startTime": 0, "endTime": 9, "samples": [2, 2], "timeDeltas": [0, 9]})
    for name, content, whole in (("lines", "main;a 3\n", None), ("made.pb", made_pprof(), None), ("made.cpuprofile", known, 1)):
        path = write(folder, name, content)
        same(report(path)["profile"][0]["whole"], whole)
        text = execute(FATHOM, "report", path, status=0).stdout
        same(("of the stacks are whole" in text, "does not say which stacks are whole" in text), (whole == 1, not whole))
        same(b"of the stacks whole" in export(path, "svg"), whole == 1)


@test("perf.data: events whose numbers are the same bytes of the file, many times, are refused")
def shared_numbers(folder):
    assert "numbers of others" in refusal(perf_file(folder, [sampled([0x401000])], ids=(104, 2000), copies=200))


@test("a compressed file that is cut: the lines that are whole, and it is not said to be complete")
def cut_compressed(folder):
    lines = "".join(f"main();f{i} {i + 100000}\n" for i in range(2000))
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(lines.encode()) + packer.flush()
    found = rows(write(folder, "whole.gz", packed))
    assert report(write(folder, "whole.gz", packed))["profile"][0]["complete"]
    for size in range(len(packed) // 2, len(packed) // 2 + 8):
        path = write(folder, "cut.gz", packed[:size])
        functions = {name: row for name, row in rows(path).items() if name != "main()"}
        assert len(functions) > 100 and functions.items() <= found.items(), set(functions.items()) - set(found.items())
        assert not report(path)["profile"][0]["complete"]


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def message(*fields):
    """A protocol buffer: (number, int or bytes or str)."""
    out = b""
    for field, value in fields:
        if isinstance(value, int):
            out += varint(field << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(field << 3 | 2) + varint(len(value)) + value
    return out


STRINGS = ["", "samples", "count", "cpu", "microseconds", "outer", "_Z5outerv", "inner", "a.c", "/bin/x", "0123abcd", "thread", "tid", "one", "pid"]


def made_pprof(default=0, weight=7, packed=True):
    """One sample of 2 and @weight us, in inner(), which is inlined into outer(), and in an address without a name."""
    text = STRINGS.index
    sample = [(1, varint(1) + varint(2)), (2, varint(2) + varint(weight))] if packed else [(1, 1), (1, 2), (2, 2), (2, weight)]
    labels = [(3, message((1, text("thread")), (2, text("one")))), (3, message((1, text("tid")), (3, 9))),
              (3, message((1, text("pid")), (3, 8)))]
    return message((1, message((1, text("samples")), (2, text("count")))), (1, message((1, text("cpu")), (2, text("microseconds")))),
                   (2, message(*sample, *labels)), (3, message((1, 3), (3, 2**63), (5, text("/bin/x")), (6, text("0123abcd")))),
                   (4, message((1, 1), (2, 3), (3, 0x1234), (4, message((1, 5), (2, 10), (3, 4))), (4, message((1, 4), (2, 20))))),
                   (4, message((1, 2), (2, 3), (3, 0x4321))),
                   (5, message((1, 4), (2, text("outer")), (3, text("_Z5outerv")), (4, text("a.c")))),
                   (5, message((1, 5), (2, text("inner")), (3, text("inner")), (4, text("a.c")))),
                   *((6, s) for s in STRINGS), (9, 10**18), (10, 5000000), (14, default))


@test("pprof: inlined functions, lines, modules and threads; the default type of samples, and its unit")
def pprof(folder):
    for packed in (True, False):
        path = write(folder, "made.pb", made_pprof(packed=packed))
        found = report(path)
        same({row["name"]: (row["self"], row["total"], row["module"]) for row in found["row"]},
             {"inner": (7000, 7000, "/bin/x"), "outer": (0, 7000, "/bin/x"), None: (0, 7000, "/bin/x")})
        same({(row["name"], row["file"], row["line"]) for row in report(path, "--by", "line")["row"] if row["name"]},
             {("inner", "a.c", 10), ("outer", "a.c", 20)})
        same([(row["name"], row["pid"], row["tid"]) for row in report(path, "--by", "thread")["row"]], [("one", 8, 9)])
        same([(sample.pcs, sample.weight) for sample in dump(path)], [([0x1234, 0x4321], 7000)])
    same(found["profile"][0]["unit"], "ns")
    path = write(folder, "default.pb", made_pprof(default=STRINGS.index("samples")))
    same((report(path)["profile"][0]["unit"], [sample.weight for sample in dump(path)]), ("samples", [2]))
    assert "below 0" in refusal(write(folder, "negative.pb", made_pprof(weight=-1)))
    head = [(1, message((1, 1), (2, 2))), (4, message((1, 1), (3, 16)))] + [(6, s) for s in STRINGS]
    path = write(folder, "nameless.pb", message(*head, (2, message((1, b"\1"), (2, b"\1")))))
    same([row["name"] for row in report(path, "--by", "thread")["row"]], ["[unknown]"])
    for fields in (((1, b"\1\x80"), (2, b"\1")), ((1, b"\1"), (2, b"\1\x80"))):
        assert "a sample is damaged" in refusal(write(folder, "damaged.pb", message(*head, (2, message(*fields)))))
    content = made_pprof()
    for size in range(1, len(content)):
        done = execute(DUMP, write(folder, "cut.pb", content[:size]))
        assert done.returncode in (0, 1) and len(done.stderr.splitlines()) == done.returncode, (size, done)


@test("pprof: what is exported of a profile has its sums by function, thread and line when it is read again")
def round_trip(folder):
    rng = random.Random(3)
    lines = ["thread 7 7 demo", "thread 7 8 worker"]
    for number in range(300):
        stack = [rng.choice("abcdef") + "@/bin/demo" for _ in range(rng.randint(1, 9))]
        lines.append(f"sample {number} {number % 2} 0 1 {rng.randint(1, 1000)} " + ";".join(stack))
    first = make(folder, lines + ["end 100000"])
    second = write(folder, "again.pb.gz", export(first, "pprof"))
    same(rows(second), rows(first))
    for key in ("thread", "process"):
        same({(row["name"], row["tid"]): row["total"] for row in report(second, "--by", key)["row"]},
             {(row["name"], row["tid"]): row["total"] for row in report(first, "--by", key)["row"]})
    same(export(second, "collapsed"), export(first, "collapsed"))


def stacks_of_nodes(profile):
    """(stack, ns) of each sample of a .cpuprofile, which counts for the time up to the next one; functions as (name, url)."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", ())}
    times, now = [], profile["startTime"]
    for delta in profile["timeDeltas"]:
        now += delta
        times.append(max([now] + times[-1:]))
    found = []
    for sample, start, end in zip(profile["samples"], times, times[1:] + [profile["endTime"]]):
        stack = []
        while sample is not None:
            frame = nodes[sample]["callFrame"]
            if frame["functionName"] != "(root)":
                stack.append((frame["functionName"] or "(anonymous)", frame["url"].removeprefix("file://") or None))
            sample = parents.get(sample)
        if end > start:
            found.append((stack[::-1], 1000 * (end - start)))
    return found


def rows_and_modules(path):
    return {(row["name"], row["module"]): (row["self"], row["total"]) for row in report(path)["row"]}


PROGRAM = """
function inner(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
function outer(n) { return [1, 2].map(x => inner(n * x)).reduce((a, b) => a + b); }
for (let i = 0; i < 60; i++) outer(100000);
for (let i = 0, all = []; i < 200000; i++) all.push({ i });
"""


@test(".cpuprofile of node: each function has the sums that its own file states")
def cpuprofile(folder):
    if not shutil.which("node"):
        raise tap.Skip("there is no node")
    script = write(folder, "script.js", PROGRAM)
    execute("node", "--cpu-prof", "--cpu-prof-interval", "200", "--cpu-prof-dir", folder, "--cpu-prof-name", "made.cpuprofile", script, status=0)
    path = os.path.join(folder, "made.cpuprofile")
    with open(path, encoding="utf-8") as f:
        stacks = stacks_of_nodes(json.load(f))
    assert len(stacks) > 50 and any(("inner", script) in stack for stack, _ in stacks)
    same(rows_and_modules(path), sums(stacks))
    lines = {(row["name"], row["line"]) for row in report(path, "--by", "line")["row"] if row["file"] == script}
    assert {("inner", 2), ("outer", 3)} <= lines, lines


def frame(name, url="", line=-1):
    return {"functionName": name, "scriptId": "0", "url": url, "lineNumber": line, "columnNumber": line}


@test(".cpuprofile made by hand: any order of members, parents instead of children, hits without samples, and the older form")
def cpuprofiles(folder):
    nodes = [{"id": 3, "callFrame": frame("f\u00e9\U0001f600\n\"", "file:///a.js", 6), "hitCount": 2},
             {"children": [2, 4], "hitCount": 0, "callFrame": frame("(root)"), "id": 1},
             {"id": 2, "children": [3], "callFrame": frame("", "node:vm", 0), "hitCount": 1}, {"id": 4, "callFrame": frame("(idle)")}]
    made = {"timeDeltas": [5, 10, -3, 7], "samples": [3, 2, 4, 3], "extra": [{"a": [1, {}]}, "]}"], "nodes": nodes, "endTime": 1100, "startTime": 1000}
    for ascii_only in (True, False):
        path = write(folder, "made.cpuprofile", "\ufeff" * (not ascii_only) + json.dumps(made, ensure_ascii=ascii_only, indent=ascii_only or None))
        same(rows_and_modules(path), sums(stacks_of_nodes(made)))
    up = [{key: value for key, value in node.items() if key != "children"} | ({"parent": parent} if parent else {})
          for node, parent in zip(nodes, (2, None, 1, 1))]
    same(rows_and_modules(write(folder, "up.cpuprofile", json.dumps(made | {"nodes": up}))), sums(stacks_of_nodes(made)))
    hits = write(folder, "hits.cpuprofile", json.dumps({"nodes": nodes, "startTime": 1, "endTime": 2}))
    same({name: row for (name, _), row in rows_and_modules(hits).items()},
         {"(anonymous)": (1, 3), "f\u00e9\U0001f600\n\"": (2, 2)})
    head = {"functionName": "(root)", "url": "", "lineNumber": 0, "id": 1, "hitCount": 0, "children": [
        {"functionName": "a", "url": "x.js", "lineNumber": 5, "children": [{"functionName": "b", "url": "x.js", "lineNumber": 9, "id": 3, "children": []}],
         "id": 2}]}
    old = write(folder, "old.cpuprofile", json.dumps({"head": head, "startTime": 1.5, "endTime": 1.6, "samples": [3, 2, 3], "timestamps": [100, 104, 110]}))
    same(rows_and_modules(old), {("a", "x.js"): (6000, 10000), ("b", "x.js"): (4000, 4000)})
    same({(row["name"], row["line"]) for row in report(old, "--by", "line")["row"]}, {("a", 5), ("b", 9)})


@test(".cpuprofile that is cut, loops, or has what is too deep: an error, or what is left")
def bad_cpuprofiles(folder):
    loop = {"nodes": [{"id": 1, "callFrame": frame("a"), "children": [2]}, {"id": 2, "callFrame": frame("b"), "children": [1]}],
            "samples": [1, 2], "timeDeltas": [1, 1], "startTime": 0, "endTime": 10}
    assert "in a circle" in refusal(write(folder, "loop", json.dumps(loop)))
    head = '{"functionName":"f","id":1,"children":[' * 100000
    assert "within each other" in refusal(write(folder, "deep", '{"head":' + head))
    refusal(write(folder, "brackets", '{"nodes":' + "[" * 1000000))
    nodes = '"nodes":[{"id":1,"callFrame":{"functionName":"f"}}]'
    assert report(write(folder, "extra", '{"x":' + "[" * 100000 + "]" * 100000 + "," + nodes + "}"), status=1) is not None
    same(rows(write(folder, "nameless", '{"nodes":[{"id":1,"hitCount":3},{"id":2,"functionName":"f","children":[1]}]}')), {"(anonymous)": (3, 3), "f": (0, 3)})
    same(rows(write(folder, "power", '{"startTime":0,"endTime":1.5e3,"samples":[1],"timeDeltas":[2.5e+2],' + nodes + "}")), {"f": (1250000, 1250000)})
    for other in ('{"snapshot":{"meta":{}},"nodes":[9,1,1,0],"edges":[],"strings":[]}', '{"nodes":[{"id":1,"label":"a"}],"links":[]}', '{"nodes":[]}',
                  '{"head":{"callFrame":{"functionName":"f","lineNumber":1},"selfSize":0,"id":1,"children":[]},"samples":[{"size":1,"nodeId":1}]}'):
        assert "is no CPU profile" in refusal(write(folder, "other", other)), other
    assert "without a time" in refusal(write(folder, "few", json.dumps(loop | {"nodes": loop["nodes"][:1], "timeDeltas": [1]})))
    big = '{"nodes":[{"id":1,"hitCount":1e999999999999999999,"callFrame":{"functionName":"f"}}]}'
    same(rows(write(folder, "big", big)), {"f": (2**62, 2**62)})
    content = json.dumps(loop | {"nodes": loop["nodes"][:1]})
    for size in range(1, len(content)):
        done = execute(DUMP, write(folder, "cut", content[:size]))
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (size, done)


if __name__ == "__main__":
    sys.exit(SUITE.run())
