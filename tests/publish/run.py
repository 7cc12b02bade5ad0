#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "publish": code that programs make and publish with <fathom/jit.h>, as the real consumers see it: gdb, lldb, the
unwinders, perf. What each stack must show is known from who makes it (programs/publisher.h)."""
import glob
import os
import re
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402
import toolchain  # noqa: E402

from ask import FATHOM, execute, fathom, query, run  # noqa: E402
from building import build_text, core_of  # noqa: E402
from chain import CHAIN, KINDS, LIBRARIES, LLVM, N, NAMES, NONGNU, TOP, check_chain, environment, functions_of, program, storm, told  # noqa: E402
from counting import is_instrumented  # noqa: E402
from running import Asked, Running, Told, dying, kernels_core  # noqa: E402

SUITE = tap.Suite("publish", "trace with perf")
test = SUITE.test


class Published(Running):
    """publisher.cc, or @path made of it, which waits at the end of its chain."""

    def __init__(self, folder, consumers="", prefix=(), options=(), path="", variables=()):
        command = [*prefix, path or program("publisher", *options), "wait"]
        super().__init__(command, env=environment(consumers) | dict(variables), cwd=folder)
        while not (line := self.line()).startswith("pid "):
            assert line, "publisher ended early"
        self.pid = int(line.split()[1])


def gdb(*words, commands=("bt",)):
    return run("gdb", "-q", "-nx", "-batch", *(word for c in commands for word in ("-ex", c)), *words)


LINE = re.compile(r"in made_0_framed \(\) at (\S+)")


@test("gdb, live: each made frame once, with its line")
def _(folder):
    with Published(folder) as p:
        text = gdb("-p", p.pid)
        check_chain(functions_of(text), "gdb")
        # The call in made_0_framed ends at 12, and 9 begins the third line.
        assert LINE.search(text)[1] == "/src/inlined.lang:12", text
        assert "10" in gdb("-p", p.pid, commands=("info line *made_4_framed",)), "no line for the start"


@test("gdb, from the start: it stops in code that is published meanwhile")
def _(folder):
    text = run("gdb", "-q", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "break made_5_pushing", "-ex", "run", "-ex", "bt",
               "--args", program("publisher"), "backtrace", cwd=folder, env=environment())
    functions = functions_of(text)
    # The frames below the chain's sixth function, which is #0.
    expected = CHAIN[CHAIN.index("made_5_pushing"):]
    at = functions.index("made_5_pushing")
    assert functions[at:at + len(expected)] == expected, text


@test("gdb has the names of a library that lies between two arenas")
def _(folder):
    library = build_text(os.path.join(folder, "inside.so"), "void inside(void) { __asm__ volatile(\"nop\"); }", "-shared", "-fPIC", flags=("-O1",))
    # Without debug information it has names by sections alone.
    text = run("gdb", "-q", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "break inside", "-ex", "run", "-ex", "bt", "-ex", "x/i inside",
               "-ex", "info symbol made_below", "-ex", "info symbol made_above", "--args", program("around", "-g0"), library, env=environment())
    assert re.search(r"#0 .* in inside \(\) from .*\n#1 .* in main \(\)\n", text) and "<inside>:" in text, text
    assert "made_below in section .text" in text and "made_above in section .text" in text, text


@test("gdb and fathom, cores of gcore: the same")
def _(folder):
    with Published(folder) as p:
        core = core_of(p.pid, folder)
    check_chain(functions_of(gdb(program("publisher"), core)), "gdb")
    stack, _ = query("stack", core, [], status=0)
    check_chain([f["symbol"] for f in stack[0]["frames"]], "fathom")


@test("gdb and fathom, cores of the kernel: the same")
def _(folder):
    with Published(folder, prefix=dying()) as p:
        core = kernels_core(p, folder)
    check_chain(functions_of(gdb(program("publisher"), core)), "gdb")
    stack, _ = query("stack", core, [], status=0)
    check_chain([f["symbol"] for f in stack[0]["frames"]], "fathom")


@test("lldb, with its loader on: each made frame once")
def _(folder):
    with Published(folder) as p:
        text = run("lldb", "-b", "-o", "settings set plugin.jit-loader.gdb.enable on", "-o", f"process attach -p {p.pid}", "-o", "bt")
    text = text[text.index("(lldb) bt"):]
    check_chain(functions_of(text), "lldb")
    assert "made_0_framed at inlined.lang:12" in text, text


@test("fathom stack, addr, find and disasm: names, lines, instructions")
def _(folder):
    with Published(folder) as p:
        stack, _ = query("stack", p.pid, [], status=0)
        frames = stack[0]["frames"]
        check_chain([f["symbol"] for f in frames], "fathom")
        made = {f["symbol"]: f for f in frames if f["symbol"] in NAMES}
        assert all(f["source"] == "registered" for f in made.values()), made
        # A frame was found by the rule of the one that it called.
        assert all((f["trust"] == "jit-cfi") == (called["symbol"] in NAMES) for called, f in zip(frames, frames[1:])), frames
        assert made["made_0_framed"]["frames"][-1]["line"] == 12, made["made_0_framed"]
        (found,), _ = query("find", p.pid, ["made_1_pushing"], status=0)
        assert found["size"] == 27, found
        (answer,), _ = query("addr", p.pid, [found["address"]], status=0)
        assert (answer["symbol"], answer["frames"][0]["file"], answer["frames"][0]["line"]) == ("made_1_pushing", "/src/program.lang", 10)
        lines = fathom("disasm", str(p.pid), "made_1_pushing", status=0).stdout
        # The bytes of the source, by hand.
        for text in (r"pushq\s+%rbx", r"subq\s+\$0x10,%rsp", r"callq\s+\*%rax", r"popq\s+%rbx", r"retq"):
            assert re.search(text, lines), lines


for title, mode, words in (("glibc's backtrace()", "backtrace", ()), ("nongnu libunwind, loaded after the code", "nongnu", (NONGNU,)),
                           ("LLVM's libunwind, loaded after the code", "llvm", (LLVM,))):
    def _walk(_, mode=mode, words=words):
        said = told(mode, *words)
        check_chain(said["frame"], mode)
        assert said["frame"][-1] == "_start", said["frame"]
        assert said["returned"] == [str(2 * N)], said
    SUITE.add(f"{title}: each made frame once, to the end", _walk)


@test("exceptions of C++ are thrown through made code of all kinds")
def _(_):
    assert told("throw")["caught"] == ["1000"]


@test("FATHOM_JIT decides last: without libgcc, backtrace() ends at made code")
def _(_):
    said = told("backtrace", consumers="-libgcc")
    assert NAMES[-2] not in said["frame"] and said["consumers"] == ["41"], said
    assert told("backtrace", consumers="none")["consumers"] == ["0"]
    assert told("backtrace", consumers="none,libgcc")["consumers"] == ["2"]


@test("arenas one behind the other, of which one has a rule for all of it: each unwinder, gdb and exceptions")
def _(folder):
    command = ["env", "APART=1", program("publisher")]
    for mode, words in (("backtrace", ()), ("nongnu", (NONGNU,)), ("llvm", (LLVM,))):
        check_chain(told(mode, *words, command=command)["frame"], mode)
    assert told("throw", command=command)["caught"] == ["1000"]
    with Published(folder, variables={"APART": "1"}) as p:
        check_chain(functions_of(gdb("-p", p.pid)), "gdb")


@test("LLVM's libunwind before libgcc, whose names it has: exceptions and stacks are its own, and a note says so")
def _(_):
    command = ["env", f"LD_PRELOAD={LLVM}", program("publisher")]
    said = told("throw", command=command)
    assert said["caught"] == ["1000"] and said["consumers"] == ["45"], said
    assert said["note"] == ["libgcc: another library stands before it, with functions of the same names"], said


@test("both libunwinds and libgcc in one process: each knows the code")
def _(_):
    for mode, library, other, known in (("nongnu", NONGNU, LLVM, 0xc), ("llvm", LLVM, NONGNU, 0xe)):
        said = {}
        for line in run(program("publisher"), mode, library, env=environment() | {"LD_PRELOAD": other}).splitlines():
            key, _, rest = line.partition(" ")
            said.setdefault(key, []).append(rest)
        check_chain(said["frame"], f"{mode} beside {other}")
        assert int(said["consumers"][0], 16) & 0xe == known, said


@test("beside libLLVM, which has the same names: the descriptor is the library's own")
def _(folder):
    llvm = toolchain.libllvm()
    for first in (f"-Wl,--no-as-needed,{llvm}", ""):
        options = tuple(o for o in (first,) if o)
        preload = {} if options else {"LD_PRELOAD": llvm}
        with Published(folder, options=options, variables=preload) as p:
            check_chain(functions_of(gdb("-p", p.pid)), "gdb beside libLLVM")


@test("stripped, with a stripped library: debuggers find the code")
def _(folder):
    libraries = os.path.join(folder, "lib")
    os.mkdir(libraries)
    path = os.path.join(folder, "stripped")
    run("strip", "-o", path, program("publisher"))
    (library,) = glob.glob(os.path.join(LIBRARIES, "libfathom.so.0"))
    run("strip", "-o", os.path.join(libraries, "libfathom.so.0"), library)
    with Published(folder, path=path, variables={"LD_PRELOAD": os.path.join(libraries, "libfathom.so.0")}) as p:
        functions = functions_of(gdb("-p", p.pid))
        assert [f for f in functions if f in NAMES] == NAMES[::-1], functions


def perf(folder, *options, consumers, mode="spin"):
    able = execute("perf", "record", "-o", os.path.join(folder, "able"), "-e", "cpu-clock", "true")
    if able.returncode:
        raise tap.Skip(f"perf cannot record: {able.stderr.strip()[:80]}")
    data = os.path.join(folder, "perf.data")
    text = run("perf", "record", "-o", data, "-e", "cpu-clock", "-F", "999", *options, program("publisher"), mode,
               env=environment(consumers) | {"HOME": folder}, cwd=folder)
    return data, int(re.search(r"^pid (\d+)", text, re.M)[1])


@test("perf report by the map: the made functions")
def _(folder):
    data, pid = perf(folder, consumers="perf-map")
    try:
        text = run("perf", "report", "-i", data, "--stdio", "--sort", "symbol")
        seen = re.findall(r"\[\.\] (made_\w+)", text)
        assert len(set(seen)) == len(seen) and set(seen) <= set(NAMES) and len(seen) >= 8, text
        with open(f"/tmp/perf-{pid}.map", encoding="utf-8") as lines:
            assert [line.split(maxsplit=2)[2] for line in lines.read().splitlines()] == NAMES
    finally:
        os.unlink(f"/tmp/perf-{pid}.map")


def samples(data):
    """The functions of each sample, the innermost first. perf asks addr2line for the inlined ones, and gets them or not."""
    text = run("perf", "script", "-i", data, "-F", "ip,sym", "--no-inline")
    return [re.findall(r"^\s+[0-9a-f]+ ([^\s(]+)", sample, re.M) for sample in text.split("\n\n") if sample.strip()]


@test("perf inject --jit: names, lines, and call graphs by DWARF through all made code")
def _(folder):
    data, pid = perf(folder, "-k", "1", "--call-graph", "dwarf,4096", consumers="jitdump")
    dump = f"/tmp/jit-{pid}.dump"
    try:
        made = os.path.join(folder, "made.data")
        run("perf", "inject", "--jit", "-i", data, "-o", made, cwd=folder)
        stacks = [s for s in samples(made) if any(f in NAMES for f in s)]
        assert len(stacks) > 200, f"{len(stacks)} stacks"
        # gcc does not say that the frame pointer is the caller's at shim()'s return, and perf has nothing below the stack
        # pointer.
        # What the kernel does in an interrupt stands before.
        whole = [s for s in stacks if next(f for f in s if f in {*CHAIN, "shim"}) != "shim"]
        for stack in whole:
            inner = next(i for i, f in enumerate(stack) if f in NAMES)
            expected = CHAIN[CHAIN.index(stack[inner]):]
            assert [f for i, f in enumerate(stack[inner:]) if i < len(expected)] == expected, f"{stack}, expected {expected}"
        assert len(whole) > 0.8 * len(stacks)
        (image,) = glob.glob(f"/tmp/jitted-{pid}-4.so")
        # The code begins at 0x80 of the file that perf makes.
        assert run("addr2line", "-f", "-e", image, "0x85").split() == ["made_4_framed", "/src/program.lang:11"]
    finally:
        for path in [dump, *glob.glob(f"/tmp/jitted-{pid}-*.so")]:
            os.unlink(path)


@test("8 threads throw through made code beside commits, moves and removals in two arenas of one range")
def _(_):
    said = {key: int(value) for key, value in storm("storm", "4").items()}
    assert said["thrown"] == said["caught"] > 1000 and said["missed"] == 0 and said["commits"] > 1000, said


def check_handlers(path):
    """What the program of handlers at @path says of its made frames."""
    said = {}
    for line in run(path, "walk", env=environment()).splitlines():
        key, _, rest = line.partition(" ")
        said.setdefault(key, []).append(rest.rsplit(" ", 2))
    for word in ("function", "handler"):
        check_chain([name for name, *_ in said[word]], word)
        assert said[word][-1][0] == "_start", said[word]
        assert said[f"{word}-end"][0][1] in ("jit-cfi", "signal"), said
        # The offset behind the call, by hand.
        made = {name: (source, offset) for name, source, offset in said[word] if name in NAMES}
        assert made["made_0_framed"] == ("registered", "c") and made["made_1_pushing"] == ("registered", "12"), made
    assert said["returned"] == [[str(2 * N)]], said


@test("handlers: fathom_unwind() goes through each made frame once, by its rule, and fathom_self_lookup() names it")
def _(_):
    check_handlers(program("handlers"))


@test("handlers that unwind and ask for names beside commits, moves and removals: none is missed, none is wrong")
def _(_):
    said = {key: int(value) for key, value in (line.split() for line in run(
        program("handlers"), "storm", "4", env=environment()).splitlines())}
    assert said["missed"] == said["wrong"] == 0, said
    assert min(said[word] for word in ("walks", "handled", "named", "unnamed", "commits")) > 100, said


@test("handlers that unwind through code that is being removed: a walk is whole, or ends there")
def _(_):
    said = {key: int(value) for key, value in (line.split() for line in run(
        program("handlers"), "removed", "3", env=environment()).splitlines())}
    assert said["wrong"] == 0 and min(said[word] for word in ("whole", "cut", "handled", "commits")) > 50, said


@test("forked in mid-commit: children throw, commit, and publish under their own number")
def _(_):
    assert storm("forked", consumers="perf-map") == {"good": "50"}
    for path in glob.glob("/tmp/perf-*.map"):
        with open(path, encoding="utf-8") as lines:
            mine = " made_0_framed" in lines.readline()
        if mine:
            os.unlink(path)


@test("memory that is used again at once, by code with another rule")
def _(folder):
    with Running([program("storm"), "reused"], env=environment(), cwd=folder) as p:
        said = dict(p.line().split() for _ in range(3))
        assert said["good"] == "1000" and said["missed"] == "0", said
        names, _ = query("find", said["pid"], ["use_999", "use_998"], status=(0, 1))
        assert [n["address"] is not None for n in names] == [True, False], names


class Committing(Told):
    """storm.cc, which commits until it is killed; its chain stays."""

    def __init__(self, folder, prefix=()):
        super().__init__([*prefix, program("storm"), "killed"], env=environment(), cwd=folder)

    def _read(self):
        places = {}
        for line in self.process.stdout:
            name, value = line.split()
            if name == "done":
                return places
            if name == "pid":
                self.pid = int(value)
            else:
                places[name] = int(value, 16)
        raise AssertionError("storm ended early")


def check_kept(target, places):
    answers, _ = query("addr", target, [hex(at + 1) for at in places.values()], status=(0, 1))
    wrong = [(a["symbol"], name) for a, name in zip(answers, places) if a["symbol"] not in (name, None)]
    assert not wrong, wrong
    return sum(a["symbol"] is not None for a in answers)


@test("asked while it changes all the time: what stays has its name")
def _(folder):
    with Committing(folder) as p:
        for _ in range(40):
            assert check_kept(p.pid, p.places) == N


@test("10 readers while it changes all the time: one answer in 100 at most is \"changed\", none is wrong")
def _(folder):
    with Committing(folder) as p:
        places = "".join(f"{name} {at:x}\n" for name, at in p.places.items())
        said = dict(line.split() for line in run(program("readers"), p.pid, 10, 1000, input=places).splitlines())
        p.process.send_signal(signal.SIGTERM)
        commits = int(p.line().split()[1])
    said = {key: int(value) for key, value in said.items()}
    assert said["failed"] == said["wrong"] == 0 and said["right"] + said["changed"] == 10000, said
    assert said["changed"] <= 100 and commits > 10000, (said, commits)


@test("stacks while it changes all the time: each made function once")
def _(folder):
    with Running([program("storm"), "waiting"], env=environment(), cwd=folder) as p:
        pid = p.line().split()[1]
        for _ in range(20):
            stack, _ = query("stack", pid, [], status=(0, 1))
            (frames,) = [t["frames"] for t in stack if any(f["symbol"] == "at_rest" for f in t["frames"])]
            assert [f["symbol"] for f in frames if f["symbol"] in NAMES] == NAMES[::-1], frames


@test("killed in mid-commit: its core is read, and names what stays")
def _(folder):
    for i in range(5):
        place = os.path.join(folder, str(i))
        os.mkdir(place)
        with Committing(place, dying()) as p:
            time.sleep(0.03 * i)
            core = kernels_core(p, place)
            assert check_kept(core, p.places) == N


@test("a snapshot of a process that publishes names its code, without the process")
def _(folder):
    path = os.path.join(folder, "snapshot")
    with Published(folder) as p:
        there = {name: int(found["address"], 16) for name, (found, *_) in
                 ((name, query("find", p.pid, [name], status=0)[0]) for name in NAMES)}
        fathom("snapshot", str(p.pid), path, status=0)
    answers, _ = query("addr", path, [hex(at) for at in there.values()], status=0)
    assert [(a["symbol"], a["source"]) for a in answers] == [(name, "registered") for name in there], answers


@test("one program after another at the same addresses, asked by one run: never the name of an earlier one's code")
def _(folder):
    able = execute("setarch", "-R", "true")
    if able.returncode:
        raise tap.Skip(f"addresses cannot be fixed here: {able.stderr.strip()}")
    names = ["first_name_aaaa", "other_name_bbbb", "third_name_cccc"]
    with Running(["setarch", "-R", program("replaced"), *names], env=environment(), cwd=folder) as p, Asked(p.pid) as fathoms:
        for name in names:
            published, address = p.line().split()
            assert published == name, (published, name)
            answer = fathoms.one(int(address, 16) + 16)
            # A reason will do, but not for the first.
            assert answer["symbol"] == name or (name != names[0] and answer["symbol"] is None and answer["reason"]), (name, answer)
            p.send("\n")


def hostile(folder, n_heads, n_rows, files):
    """The command of hostile.c with such heads, rows and files."""
    program("publisher")  # Skips where it cannot be built.
    options = ("-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-I", os.path.join(TOP, "src"))
    sources = os.path.join(HERE, "programs")
    path = os.path.join(folder, "hostile")
    run("gcc", *options, os.path.join(sources, "hostile.c"), "-o", path)
    heads = [os.path.join(folder, f"head{i}.so") for i in range(n_heads)]
    for head in heads:
        # The name makes each another one.
        run("gcc", *options, "-shared", "-fPIC", f"-Wl,-soname,{head}", os.path.join(sources, "head.c"), "-o", head)
    return [path, n_rows, files, *heads]


def spent(pid):
    """Seconds of processor time, and the peak of memory in bytes, of a process that runs (proc(5))."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        peak = re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.M)[1]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"), int(peak) << 10


def ask_hostile(folder, n_heads, n_rows, files, *options):
    """What three answers cost, between which all rows change: there is no name, but a reason."""
    if is_instrumented(FATHOM):
        raise tap.Skip("an instrumented build would count its own checks, too")
    with Running(hostile(folder, n_heads, n_rows, files), cwd=folder) as p, Asked(p.pid, *options) as fathoms:
        for _ in range(3):
            answer = fathoms.one(int(p.line(), 16) + 1)
            assert answer["symbol"] is None and answer["reason"], answer
            p.send("\n")
        return spent(fathoms.pid)


for files, what in (("one", "all of one symbol file"), ("each", "each of a file of its own")):
    def _rows(folder, files=files):
        seconds, _ = ask_hostile(folder, 1, 65536, files)
        assert seconds < 3, f"{seconds} s"
    SUITE.add(f"a hostile registry of 65,536 rows, {what}: three answers take less than 3 s of processor time", _rows)


for n_rows in (65536, 262144):
    def _heads(folder, n_rows=n_rows):
        _, peak = ask_hostile(folder, 4, n_rows, "each", "--memory", "64M")
        assert peak < 200e6, f"{peak / 1e6:.0f} MB"
    SUITE.add(f"four hostile registries with one table of {n_rows:,} rows: less than 200 MB with --memory 64M", _heads)


def vendor(folder):
    """Makes the two files to vendor in @folder, and the header by the name that programs include."""
    program("publisher")  # Skips where it cannot be built.
    run("python3", os.path.join(HERE, "..", "..", "tools", "vendor_jit.py"), folder)
    os.makedirs(os.path.join(folder, "include", "fathom"))
    with open(os.path.join(folder, "include", "fathom", "jit.h"), "w", encoding="ascii") as header:
        header.write('#include "../../fathom_jit.h"\n')


@test("two files to vendor, made by a script: they build alone, without a warning, and publish the same")
def _(folder):
    vendor(folder)
    for compiler in ("gcc", "clang"):
        made = execute(compiler, "-std=c17", "-O2", "-Wall", "-Wextra", "-c", "fathom_jit.c", "-o", "fathom_jit.o", cwd=folder, status=0)
        assert not made.stderr, made.stderr
        run("g++", "-O2", "-g", "-fcf-protection=none", os.path.join(HERE, "programs", "publisher.cc"), "fathom_jit.o", "-o", "alone",
            "-I", "include", "-rdynamic", "-pthread", cwd=folder)
        alone = [os.path.join(folder, "alone")]
        assert "libfathom" not in run("ldd", *alone)
        assert told("throw", command=alone)["caught"] == ["1000"]
        check_chain(told("backtrace", command=alone)["frame"], "backtrace()")
    run("strip", *alone)
    with Published(folder, path=alone[0]) as p:
        functions = functions_of(gdb("-p", p.pid))
        assert [f for f in functions if f in NAMES] == NAMES[::-1], functions


def header_text():
    with open(os.path.join(TOP, "include", "fathom", "jit.h"), encoding="utf-8") as header:
        return header.read()


def functions_of_header():
    return re.findall(r"^FATHOM_API [^;(]*?\b(fathom_jit_\w+)\(", header_text(), re.M)


CALLS = """
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
	unsigned char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (publish(memory, 4096, memory + 64, 16))
		return 1;
	for (size_t i = 0; fathom_jit_note(i); i++)
		puts(fathom_jit_note(i));
	printf("%u\\n", fathom_jit_consumers());
	return 0;
}
"""


def example(folder, *options):
    """A program of the header's own example, and calls of it."""
    program("publisher")  # Skips where it cannot be built.
    (text,) = re.findall(r"@code\n(.*?) \* @endcode", header_text(), re.S)
    lines = [line.removeprefix(" *").removeprefix("\t") for line in text.splitlines()]
    source, path = os.path.join(folder, "example.c"), os.path.join(folder, "example")
    with open(source, "w", encoding="ascii") as file:
        file.write("\n".join(["int publish(const void *, unsigned long, const void *, unsigned long);", *lines, CALLS]))
    for compiler in ("clang", "gcc"):
        run(compiler, "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *options, "-I", os.path.join(TOP, "include"), source, "-o", path,
            "-L", LIBRARIES, "-lfathom", f"-Wl,-rpath,{LIBRARIES}")
    return path


@test("the header's own example is compiled without a warning, and publishes")
def _(folder):
    done = execute(example(folder, "-pedantic", "-Wmissing-prototypes"), env=environment(), status=0)
    assert int(done.stdout) & 1 and not done.stderr, done


@test("FATHOM_JIT with a word that is no consumer's: a note has it, and the others are heard")
def _(folder):
    path = example(folder)
    words = "gdb, libgcc, llvm, nongnu, unwinders, registry, perf-map, jitdump, files, all, none, or one of them after a -"
    for text, bogus, consumers in (("bogus", "bogus", 65), ("-libgcc,gbd,-registry", "gbd", 1), ("none,-nonsense", "-nonsense", 0),
                                   ("-libgcc,,gdb", None, 65), ("none", None, 0), ("-", "-", 65)):
        lines = run(path, env=dict(os.environ, FATHOM_JIT=text)).splitlines()
        assert lines[:-1] == ([f'FATHOM_JIT: no consumer is called "{bogus}": {words}'] if bogus else []), (text, lines)
        assert int(lines[-1]) & 65 == consumers, (text, lines)


def register_numbers(folder, assembler, prefix, names):
    """The numbers that an assembler gives to registers in call frame information."""
    source, path = os.path.join(folder, "registers.s"), os.path.join(folder, "registers.o")
    with open(source, "w", encoding="ascii") as file:
        file.write("f: .cfi_startproc\nnop\n" + "".join(f".cfi_undefined {prefix}{name}\nnop\n" for name in names) + ".cfi_endproc\n")
    run(assembler, source, "-o", path)
    return [int(number) for number in re.findall(r"DW_CFA_undefined: r(\d+)", run("readelf", "-wf", path))]


@test("registers have the numbers that the assemblers give them")
def _(folder):
    program("publisher")  # Skips where it cannot be built.
    for machine, assembler, prefix, count in (("x86_64", "as", "%", 32), ("aarch64", "aarch64-linux-gnu-as", "", 64)):
        body = re.search(rf"^enum fathom_jit_register_{machine} \{{(.*?)\}};", header_text(), re.M | re.S)[1]
        registers = {name.lower(): int(number) for name, number in re.findall(r"FATHOM_JIT_(\w+) = (\d+)", body)}
        # The low half of a vector register is all that is saved of it.
        names = [re.sub(r"^v(\d)", r"d\1", name) for name in registers]
        assert len(registers) == count and register_numbers(folder, assembler, prefix, names) == list(registers.values()), machine


TWO = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void *theirs(void);
#include INCLUDED
int main(void)
{
	void *library = dlopen("libfathom.so.0", RTLD_NOW | RTLD_NOLOAD);

	printf("%d %d\\n", dlsym(library, "fathom_jit_add") == (void *)fathom_jit_add, dlsym(library, "fathom_jit_add") == theirs());
}
"""


@test("two files to vendor: the copy's functions are its own beside libfathom, in each order of the linker; FATHOM_API makes them visible")
def _(folder):
    vendor(folder)
    for name, text in (("main.c", TWO), ("theirs.c", '#include "fathom_jit.h"\nvoid *theirs(void) { return (void *)fathom_jit_add; }\n')):
        with open(os.path.join(folder, name), "w", encoding="ascii") as source:
            source.write(text)
    run("gcc", "-c", "-DINCLUDED=<fathom/jit.h>", "-I", os.path.join(TOP, "include"), "main.c", cwd=folder)
    run("gcc", "-c", "theirs.c", "fathom_jit.c", cwd=folder)
    library = ["-L", LIBRARIES, "-Wl,--no-as-needed", "-lfathom", f"-Wl,-rpath,{LIBRARIES}"]
    objects = ["main.o", "theirs.o", "fathom_jit.o"]
    for order in ([*objects, *library], [*library, *objects], [*objects[::-1], *library]):
        run("gcc", *order, "-rdynamic", "-ldl", "-o", "two", cwd=folder)
        # main.c calls libfathom's, theirs.c the copy's.
        assert run(os.path.join(folder, "two")) == "1 0\n", order
    # What debuggers and fathom look for is all that a library with a copy exports, but for what it is told to.
    found = {"__fathom_jit_published", "__jit_debug_descriptor", "__jit_debug_register_code"}
    for options, more in (((), set()), (('-DFATHOM_API=__attribute__((visibility("default")))',), {f"fathom_copy{name[6:]}" for name in functions_of_header()})):
        run("gcc", "-shared", "-fPIC", *options, "fathom_jit.c", "-o", "copy.so", cwd=folder)
        names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", os.path.join(folder, "copy.so")).splitlines()}
        assert found | more <= names and {n for n in names - found - more if "jit" in n} == set(), names


@test("two files to vendor: with a prefix, in a folder that is not there, one file includes both headers and calls both")
def _(folder):
    program("publisher")  # Skips where it cannot be built.
    to = os.path.join(folder, "not", "there")
    run(os.path.join(TOP, "dev"), "vendor", "--prefix", "vm", to)
    for compiler in ("gcc", "clang"):
        made = execute(compiler, "-std=c17", "-O2", "-Wall", "-Wextra", "-c", "fathom_jit.c", "-o", "vm.o", cwd=to, status=0)
        assert not made.stderr, made.stderr
    names = [line.split()[-1] for line in run("nm", "-g", "--defined-only", os.path.join(to, "vm.o")).splitlines()]
    assert not [name for name in names if not name.startswith(("vm_", "__"))], names
    with open(os.path.join(to, "both.c"), "w", encoding="ascii") as source:
        source.write(TWO.replace("#include INCLUDED", """
#include <fathom/jit.h>
#include "fathom_jit.h"
void *theirs(void)
{
	const struct vm_jit_event e = { .kind = VM_JIT_PUSH };
	return e.kind == FATHOM_JIT_PUSH ? (void *)vm_jit_add : NULL;
}"""))
    run("gcc", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(TOP, "include"), "both.c", "vm.o", "-L", LIBRARIES, "-lfathom",
        f"-Wl,-rpath,{LIBRARIES}", "-ldl", "-o", "both", cwd=to)
    assert run(os.path.join(to, "both")) == "1 0\n"
    # Who is told is decided by the same variable.
    with open(os.path.join(to, "fathom_jit.c"), encoding="utf-8") as source:
        assert '"FATHOM_JIT"' in source.read()
    assert execute(os.path.join(TOP, "dev"), "vendor", "--prefix", "1x", to).returncode == 2


@test("two files to vendor: handlers of the library know what the program's own copy has published, beside commits and removals, too")
def _(folder):
    vendor(folder)
    run("gcc", "-std=c17", "-O2", "-c", "fathom_jit.c", cwd=folder)
    # The functions that publish are the copy's, all others the library's.
    with open(os.path.join(folder, "map.h"), "w", encoding="ascii") as header:
        header.write("#include <fathom/fathom.h>\n")
        for name in functions_of_header():
            header.write(f'extern "C" {{ extern decltype({name}) fathom_copy{name[6:]}; }}\n#define {name} fathom_copy{name[6:]}\n')
    path = program("handlers", os.path.join(folder, "fathom_jit.o"), "-include", os.path.join(folder, "map.h"))
    assert "U fathom_jit_" not in run("nm", path)
    check_handlers(path)
    for way, wrong, counted in (("storm", ("missed", "wrong"), ("walks", "handled", "named", "commits")),
                                ("removed", ("wrong",), ("whole", "handled", "commits"))):
        said = {key: int(value) for key, value in (line.split() for line in run(path, way, "2", env=environment()).splitlines())}
        assert not any(said[word] for word in wrong) and min(said[word] for word in counted) > 5, (way, said)


@test("aarch64, under QEMU: exceptions and backtrace() through code of each kind")
def _(folder):
    vendor(folder)
    run("aarch64-linux-gnu-gcc", "-std=c17", "-O2", "-c", "fathom_jit.c", cwd=folder)
    for options in ((), ("-mbranch-protection=standard",)):
        run("aarch64-linux-gnu-g++", "-O2", "-g", *options, os.path.join(HERE, "programs", "publisher.cc"), "fathom_jit.o", "-o", "alone",
            "-I", "include", "-rdynamic", "-pthread", cwd=folder)
        command = ["qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu", os.path.join(folder, "alone")]
        said = told("throw", command=command)
        assert said["caught"] == ["1000"], said
        said = told("backtrace", command=command)
        check_chain(said["frame"], "backtrace()")
        assert said["frame"][-1] == "_start" and said["returned"] == [str(2 * N)], said
        # gdb, libgcc and the registry.
        assert said["consumers"] == ["43"], said


def sanitized(folder, sanitizer):
    """The storm with the two files to vendor, both instrumented: what a sanitizer reports is a failure."""
    vendor(folder)
    run("gcc", "-std=c17", "-g", "-O1", f"-fsanitize={sanitizer}", "-c", "fathom_jit.c", cwd=folder)
    run("g++", "-g", "-O1", f"-fsanitize={sanitizer}", "-fcf-protection=none", os.path.join(HERE, "programs", "storm.cc"), "fathom_jit.o",
        "-o", "storm", "-I", "include", "-rdynamic", "-pthread", cwd=folder)
    said = execute(os.path.join(folder, "storm"), "storm", "3", env=environment(), status=0)
    assert not said.stderr, said.stderr
    counts = {key: int(value) for key, value in (line.split() for line in said.stdout.splitlines())}
    assert counts["thrown"] == counts["caught"] > 100 and counts["missed"] == 0 and counts["commits"] > 100, counts


@test("the same storm under ThreadSanitizer, whose allocator gives memory at multiples of 4 GiB")
def _(folder):
    sanitized(folder, "thread")


@test("the same storm under AddressSanitizer and UndefinedBehaviorSanitizer: no report, no leak")
def _(folder):
    sanitized(folder, "address,undefined")


def symbol_file(folder, path="dump"):
    run(program("publisher"), "dump", cwd=folder, env=environment())
    return os.path.join(folder, path)


@test("the symbol file, by readelf: rows of each rule, symbols, lines")
def _(folder):
    path = symbol_file(folder)
    rows = run("readelf", "-wF", path)
    tables = re.findall(r"FDE.*?pc=([0-9a-f]+)\.\.([0-9a-f]+)\n.*\n((?:[0-9a-f]{16} .*\n)+)", rows)
    assert len(tables) == N, rows
    # By hand, from the instructions in publisher.h: offset, CFA, and where rbx or rbp is.
    expected = {
        "framed": [(0, "rsp+8"), (1, "rsp+16"), (4, "rbp+16"), (16, "rsp+8")],
        "pushing": [(0, "rsp+8"), (1, "rsp+16"), (5, "rsp+32"), (25, "rsp+16"), (26, "rsp+8")],
        "reserving": [(0, "rbp+16")],
    }
    for i, (low, _, table) in enumerate(tables):
        seen = [(int(line.split()[0], 16) - int(low, 16), line.split()[1]) for line in table.splitlines()]
        if KINDS[i % 4] in expected:
            assert seen == expected[KINDS[i % 4]], f"{NAMES[i]}: {table}"
    symbols = re.findall(r"FUNC +GLOBAL +DEFAULT +1 (\S+)", run("readelf", "-sW", path))
    assert symbols == NAMES
    lines = run("readelf", "-wL", path)
    assert lines.count("program.lang") >= 2 * N and lines.count("inlined.lang") >= N, lines
    assert "Warning" not in execute("readelf", "-a", "-w", path).stderr
    problems = execute("llvm-dwarfdump", "--verify", path)
    assert "No errors." in problems.stdout, problems.stdout


@test("valgrind: nothing is read that was freed, nothing is lost")
def _(folder):
    text = execute("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite", "--error-exitcode=9", program("publisher"), "throw",
                   env=environment("all"), cwd=folder, status=0)
    for path in glob.glob("/tmp/jit-*.dump") + glob.glob("/tmp/perf-*.map"):
        with open(path, "rb") as data:
            if b"made_0_framed" in data.read(1 << 16):
                os.unlink(path)
    assert "caught 1000" in text.stdout, text.stdout


@test("files: a link, another's file, a full disk are notes, and nothing follows a link")
def _(folder):
    notes = told("refused", consumers="files")
    assert notes["note"] == ["perf-map: its file cannot be opened, or belongs to somebody else",
                             "jitdump: its file cannot be made, or belongs to somebody else"], notes
    assert notes["untouched"] == ["1"], notes


@test("the perf map of an earlier process with the same number is begun anew")
def _(_):
    path = "/tmp/perf-$$.map"
    said = told("backtrace", consumers="perf-map", command=[
        "sh", "-c", f'echo pid $$; echo "1000 10 stale" > {path}; touch -d "1 hour ago" {path}; exec "$0" "$@"', program("publisher")])
    path = f"/tmp/perf-{said['pid'][0]}.map"
    try:
        with open(path, encoding="utf-8") as lines:
            names = [line.split()[2] for line in lines]
    finally:
        os.unlink(path)
    assert names == NAMES, names


def jitdump_ids(path):
    """The numbers of the records of a jitdump."""
    with open(path, "rb") as data:
        head = data.read(40)
        assert struct.unpack("=IIII", head[:16]) == (0x4A695444, 1, 40, 62), head
        ids = []
        while prefix := data.read(16):
            number, size, _ = struct.unpack("=IIQ", prefix)
            data.read(size - 16)
            ids.append(number)
        return ids


@test("jitdump: records in their order, a move for what moves")
def _(folder):
    said = told("moved", consumers="jitdump")
    path = f"/tmp/jit-{said['pid'][0]}.dump"
    try:
        # Lines, rule, code of each; then a move.
        assert jitdump_ids(path) == [2, 4, 0] * N + [1], jitdump_ids(path)
    finally:
        os.unlink(path)


if __name__ == "__main__":
    sys.exit(SUITE.run())
