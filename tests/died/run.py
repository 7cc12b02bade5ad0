#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "died": programs die with texts and of exceptions that the C and C++ libraries themselves print to stderr;
fathom has to say the same of their cores, and of those that wait in a handler, or nothing. Memory that lies must not
lead it to anything else."""
import functools
import collections
import contextlib
import glob
import os
import random
import re
import signal
import struct
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from amounts import IS_LONG, amount  # noqa: E402
from ask import execute, fathom, records_of, run  # noqa: E402
from building import build, build_text, plain, static_libraries  # noqa: E402
from fault_ways import DEATHS, FAULTS, told  # noqa: E402
from running import Running, dying, need_kernels_cores  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
SUITE = tap.Suite("died")
test = SUITE.test
NOTHING = {"abort_message": None, "abort_message_cut": False, "abort_message_why": None, "exception": None,
           "exception_why": None, "fault": None}

C_BUILDS = {
    "gcc": ("gcc", ["-O1", "-g"]),
    "gcc, stripped": ("gcc", ["-O2", "-s"]),
    "gcc, static": ("gcc", ["-O1", "-g", "-static"]),
    "gcc, no-pie": ("gcc", ["-O1", "-g", "-no-pie"]),
    "clang": ("clang", ["-O1", "-g"]),
}
CXX_BUILDS = {
    "g++": ("g++", ["-O1", "-g"]),
    "g++, stripped": ("g++", ["-O2", "-s"]),
    "g++, no-pie": ("g++", ["-O1", "-g", "-no-pie"]),
    "g++, static": ("g++", ["-O1", "-g", "-static"]),
    "g++, -static-libstdc++": ("g++", ["-O1", "-g", "-static-libstdc++"]),
    "clang++": ("clang++", ["-O1", "-g"]),
    "clang++, libc++": ("clang++", ["-O1", "-g", "-stdlib=libc++"]),
}


BUILT = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
LOCKS = collections.defaultdict(threading.Lock)


def source(name):
    return DEATHS if name == "deaths.c" else os.path.join(PROGRAMS, name)


@functools.cache
def has_libcxx(compiler):
    """Whether the compiler finds the headers of libc++."""
    return execute(compiler, "-stdlib=libc++", "-x", "c++", "-fsyntax-only", "-", input="#include <exception>\n").returncode == 0


def built(name, compiler, *options):
    """The program of source file @name, which is compiled once for all tests."""
    if "-stdlib=libc++" in options and not has_libcxx(compiler):
        raise tap.Skip("libc++ is not installed")
    key = " ".join((name, compiler, *options))
    folder = os.path.join(BUILT.name, tap.identifier(key))
    path = os.path.join(folder, "deaths")
    with LOCKS[key]:
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            build(path, source(name), "-pthread", "-w", compiler=compiler, flags=options)
    return path


def flat(how):
    return how[0], *how[1]


def core_of(folder, *command):
    """The core of a program that ends itself, and what it printed: stdout, stderr."""
    plain(os.path.join(os.environ["BUILD"], "src", "libfathom.so"))
    need_kernels_cores()
    done = execute(*dying(*command), cwd=folder, text=False)
    (core,) = glob.glob(f"{folder}/core*")
    os.rename(core, f"{folder}/the-core")
    return f"{folder}/the-core", done.stdout.decode(), done.stderr.decode(errors="surrogateescape")


def deaths(target, *options):
    """What is said of each thread that died: {tid: died}."""
    done = fathom("stack", "--json", "--no-cache", *options, target, status=(0, 1))
    return {r["tid"]: r["died"] for r in records_of(done.stdout) if r["died"]}


def death(target):
    """The same of the only one."""
    found = deaths(target)
    assert len(found) == 1, found
    return next(iter(found.values()))


def lines(target):
    """The lines of text above the frames, of all threads."""
    done = fathom("stack", "--no-cache", target, status=(0, 1))
    return [line.strip() for line in done.stdout.splitlines()
            if re.match(r"    (abort message|uncaught C|C\+\+ exception|fault)", line)]


def waiting(*command, **options):
    """A program that waits in a handler: it has said so."""
    plain(os.path.join(os.environ["BUILD"], "src", "libfathom.so"))
    running = Running(command, stderr=-1, **options)
    while (line := running.line()) != "waits":
        assert line, "it has ended without waiting"
    return running


# Ways of deaths.c that end in a text of glibc, which it prints to stderr, too.
TEXTS = ["assert", "double-free", "bad-free", "corrupt-top", "smash", "thread-assert"]
# Ways that abort without one.
NO_TEXTS = ["abort", "stale-abort"]


def add_text(name, compiler, flags, way):
    @test(f"{way}: what libc wrote, {name}")
    def _(folder):
        path = built("deaths.c", compiler, *flags, "-fstack-protector-strong")
        core, _, err = core_of(folder, path, way)
        assert err.endswith("\n") and err.count("\n") == 1, err
        found = death(core)
        assert found == NOTHING | {"abort_message": err[:-1]}, (found, err)
        assert lines(core) == [f"abort message: {err[:-1]}"], lines(core)
        with waiting(path, way, "wait") as running:
            found = death(running.pid)
            assert found == NOTHING | {"abort_message": err[:-1]}, (found, err)


def add_no_text(name, compiler, flags, way):
    @test(f"{way}: no text of libc's, {name}")
    def _(folder):
        path = built("deaths.c", compiler, *flags, "-fstack-protector-strong")
        core, _, _ = core_of(folder, path, way)
        assert death(core) == NOTHING, death(core)
        assert not lines(core)


for build_name, (who, how) in C_BUILDS.items():
    for each in TEXTS:
        add_text(build_name, who, how, each)
    for each in NO_TEXTS:
        add_no_text(build_name, who, how, each)


@test("fortify: what libc wrote")
def _(folder):
    path = built("deaths.c", "gcc", "-O2", "-D_FORTIFY_SOURCE=2", "-fno-stack-protector")
    core, _, err = core_of(folder, path, "fortify")
    assert "buffer overflow" in err, err
    assert death(core) == NOTHING | {"abort_message": err[:-1]}, death(core)


@test("a text with control characters is escaped on a terminal, whole in JSON, and cut if it is long")
def _(folder):
    program = '#include <assert.h>\nvoid __assert_fail(const char *, const char *, unsigned, const char *);\n' \
        'static char much[70000];\nint main(int argc, char **argv)\n{\n\tfor (int i = 0; i < 69999; i++)\n\t\tmuch[i] = \'m\';\n' \
        '\t__assert_fail(argc > 1 ? much : "red \\033[31m\\n\\xff", "file.c", 1, "main");\n}\n'
    path = build_text(f"{folder}/odd", program)
    core, _, err = core_of(folder, path)
    assert err == "odd: file.c:1: main: Assertion `red \x1b[31m\n\udcff' failed.\n", err
    assert lines(core) == ["abort message: odd: file.c:1: main: Assertion `red \\x1b[31m\\n\\xff' failed."], lines(core)
    os.remove(core)
    core, _, err = core_of(folder, path, "long")
    found = death(core)
    assert found["abort_message_cut"] and len(found["abort_message"]) == 65536, len(found["abort_message"])
    assert err.startswith(found["abort_message"])


@test("two threads abort: libc has the text of one, and nobody knows whose")
def _(folder):
    path = built("deaths.c", "gcc", "-O1", "-g", "-fstack-protector-strong")
    with waiting(path, "both", "wait") as running:
        while running.line() != "waits":
            pass
        found = deaths(running.pid)
        assert len(found) == 2, found
        for died in found.values():
            assert died["abort_message"] is None and "several threads" in died["abort_message_why"], died


@test("only some threads were asked for: the text may be another's")
def _(folder):
    path = built("deaths.c", "gcc", "-O1", "-g", "-fstack-protector-strong")
    core, _, _ = core_of(folder, path, "thread-assert")
    ((tid, died),) = deaths(core).items()
    assert died["abort_message"], died
    found = deaths(core, "--tid", tid)[tid]
    assert found["abort_message"] is None and "only some" in found["abort_message_why"], found


@test("musl keeps no text: none is said")
def _(folder):
    path = built("deaths.c", "musl-gcc", "-O1", "-static")
    core, _, err = core_of(folder, path, "assert")
    assert "Assertion failed" in err, err
    assert not lines(core) and death(core) == NOTHING, death(core)


def add_fault(name, compiler, flags, way, place, access, words):
    @test(f"{way}: the address of a fault, {name}")
    def _(folder):
        path = built("deaths.c", compiler, *flags, "-fstack-protector-strong")
        core, out, _ = core_of(folder, path, way)
        address = told(out, "fault")
        found = death(core)
        fault = found.pop("fault")
        assert (fault["address"], fault["place"], fault["access"]) == (hex(address), place, access), (fault, hex(address))
        assert found["abort_message"] is None and found["exception"] is None, found
        (line,) = lines(core)
        wanted = words.replace("ADDRESS", hex(address)).replace("PATH", path).replace("FOLDER", folder)
        assert line.startswith("fault: ") and wanted in line and hex(address) in line, (line, wanted)
        if way == "other-guard":
            threads = records_of(fathom("stack", "--json", core, status=(0, 1)).stdout)
            at = told(out, "stack")
            sps = {t["tid"]: int(t["frames"][-1]["sp"], 16) for t in threads if t["frames"][-1]["sp"]}
            (tid,) = [t for t, sp in sps.items() if abs(sp - at) < 65536]
            assert fault["stack_tid"] == tid, (fault, tid)


for build_name in ("gcc", "gcc, static", "clang"):
    for each, (where, kind_of, text) in FAULTS.items():
        add_fault(build_name, *C_BUILDS[build_name], each, where, kind_of, text)


def handled(path, way, folder):
    """What is said of a program in its handler of @way, {tid: record}, the lines, and what it has told."""
    with Running((path, way, "siginfo"), stderr=-1, cwd=folder) as running:
        out = []
        while not out or out[-1] != "waits":
            out.append(running.line())
            assert out[-1], out
        done = fathom("stack", "--json", "--no-cache", running.pid, status=(0, 1))
        return {r["tid"]: r for r in records_of(done.stdout)}, lines(running.pid), out, running.pid


def signal_of(record):
    return record["signal"], record["signal_code"], record["fault_address"]


# Names of the codes that the ways have, by signal and code.
CODES = {(signal.SIGSEGV, 1): "SEGV_MAPERR", (signal.SIGSEGV, 2): "SEGV_ACCERR", (signal.SIGBUS, 2): "BUS_ADRERR",
         (signal.SIGFPE, 1): "FPE_INTDIV", (signal.SIGILL, 2): "ILL_ILLOPN", (signal.SIGSEGV, 128): "SI_KERNEL"}


def check_signal(record, out):
    """The signal is what the handler itself was told."""
    (line,) = [line for line in out if line.startswith("signal ")]
    number, code, address = line.split()[1:]
    address = 0 if address == "(nil)" else int(address, 16)
    number, code = int(number), int(code)
    wanted = number, CODES[number, code], None if code == 128 else hex(address)
    assert signal_of(record) == wanted, (signal_of(record), wanted)


def add_handled_fault(name, compiler, flags, way, place, access, words):
    @test(f"{way}: a handler of the fault waits, {name}")
    def _(folder):
        path = built("deaths.c", compiler, *flags)
        records, said, out, pid = handled(path, way, folder)
        address = told("\n".join(out), "fault")
        check_signal(records[pid], out)
        fault = records[pid]["died"]["fault"]
        assert (fault["address"], fault["place"], fault["access"]) == (hex(address), place, access), (fault, hex(address))
        assert records[pid]["died"] == NOTHING | {"fault": fault}
        (line,) = said
        wanted = words.replace("ADDRESS", hex(address)).replace("PATH", path).replace("FOLDER", folder)
        assert line.startswith("fault: ") and wanted in line and hex(address) in line, (line, wanted)
        assert all(not r["died"] and not r["signal"] for tid, r in records.items() if tid != pid), records
        if way == "other-guard":
            (tid,) = [tid for tid in records if tid != pid]
            assert fault["stack_tid"] == tid, (fault, tid)


for build_name in ("gcc", "gcc, stripped", "gcc, static", "clang"):
    for each, (where, kind_of, text) in FAULTS.items():
        if each != "stale-fault":
            add_handled_fault(build_name, *C_BUILDS[build_name], each, where, kind_of, text)


@test("a handler waits in musl: where its code has no call frame information, the way to the signal is a guess, and nothing is said")
def _(folder):
    records, said, out, pid = handled(built("deaths.c", "musl-gcc", "-O1", "-static"), "null-read", folder)
    frames = records[pid]["frames"]
    (at,) = [i for i, f in enumerate(frames) if f["signal_handler_called"]]
    if all(f["trust"] in ("registers", "cfi") for f in frames[:at + 1]):
        check_signal(records[pid], out)
        assert said == ["fault: read of 0x18 (null + 0x18)"], said
    else:
        assert records[pid]["died"] is None and signal_of(records[pid]) == (None, None, None) and not said, signal_of(records[pid])


@test("a handler waits on its own stack, because the thread's is full")
def _(folder):
    records, said, out, pid = handled(built("deaths.c", *flat(C_BUILDS["gcc"])), "overflow", folder)
    check_signal(records[pid], out)
    fault = records[pid]["died"]["fault"]
    assert fault["place"] == "stack-overflow" and fault["stack_tid"] == pid, fault
    (line,) = said
    assert line.endswith(f"(stack overflow of thread {pid})"), line


@test("a handler of an address that is not canonical waits: the instruction tells the address")
def _(folder):
    records, said, out, pid = handled(built("deaths.c", *flat(C_BUILDS["gcc"])), "not-canonical", folder)
    check_signal(records[pid], out)
    assert said == ["fault: read of 0x1234567812345678 (not canonical)"], said


def add_handled_signal(way):
    @test(f"{way}: a handler waits: the signal is told, a place is none")
    def _(folder):
        records, said, out, pid = handled(built("deaths.c", *flat(C_BUILDS["gcc"])), way, folder)
        check_signal(records[pid], out)
        died = records[pid]["died"]
        assert not said and died == NOTHING | {"fault": died["fault"]} and died["fault"] is None, died


for each in ("divide", "illegal"):
    add_handled_signal(each)


# Nobody can prove what these are: a signal that was sent; a fault with a bad address or that the instruction does not explain.
def add_unproven(way, *arguments):
    @test(f"{way}: a handler of what is no fault, or cannot be proven one: nothing is said ({' '.join(arguments)})")
    def _(_):
        with waiting(built("deaths.c", *flat(C_BUILDS["gcc"])), way, *arguments) as running:
            done = fathom("stack", "--json", "--no-cache", running.pid, status=(0, 1))
            (record,) = records_of(done.stdout)
            assert any(f["signal_handler_called"] for f in record["frames"]), record
            assert record["died"] is None and signal_of(record) == (None, None, None), signal_of(record)


for each in (("sent", "siginfo"), ("misaligned", "siginfo"), ("stale-siginfo", "siginfo"), ("null-read", "wait")):
    add_unproven(*each)


def add_overflow(way):
    @test(f"{way}: a stack that is full")
    def _(folder):
        path = built("deaths.c", "gcc", "-O1", "-g", "-fstack-protector-strong")
        core, _, _ = core_of(folder, path, way)
        ((tid, found),) = deaths(core).items()
        assert found["fault"]["place"] == "stack-overflow" and found["fault"]["stack_tid"] == tid, found
        (line,) = lines(core)
        assert line.endswith(f"(stack overflow of thread {tid})"), line


for each in ("overflow", "thread-overflow"):
    add_overflow(each)


@test("an address that is not canonical: the kernel states none, the instruction does")
def _(folder):
    path = built("deaths.c", "gcc", "-O1", "-g", "-fstack-protector-strong")
    core, _, _ = core_of(folder, path, "not-canonical")
    fault = death(core)["fault"]
    assert (fault["address"], fault["place"], fault["access"]) == ("0x1234567812345678", "not-canonical", "read"), fault
    assert lines(core) == ["fault: read of 0x1234567812345678 (not canonical)"], lines(core)


@test("a general protection fault of another kind: no address is stated, nor made up")
def _(folder):
    path = built("deaths.c", "gcc", "-O1", "-g", "-fstack-protector-strong")
    core, _, _ = core_of(folder, path, "misaligned")
    fault = death(core)["fault"]
    assert (fault["address"], fault["place"], fault["access"]) == (None, "no-address", None), fault
    (line,) = lines(core)
    assert "the kernel states no address" in line, line


# Ways of deaths.cc: type and what() where the library does not print them; None: as it prints them.
UNCAUGHT = {
    "runtime_error": None, "empty": None, "at": None, "stoi": None, "system_error": None, "failure": None,
    "future_error": None, "inherits": None, "second": None, "noexcept": None, "rethrown": None, "thread": None,
    "nested": None, "again": None, "odd": None,
}
# What() is not the library's own, or its object's place is known to itself only; or there is none.
TYPES = {"bad_alloc": "std::bad_alloc", "int": "int", "text": "char const*", "plain": "Plain",
         "overrides": "space::Overrides", "virtual": "space::Virtual"}
# Exceptions that are being handled, of this type and text.
HANDLED = {"handler": ("std::underflow_error", "being handled"), "handler-fault": ("std::underflow_error", "being handled")}
# There is none any more, or never was.
NONE = ["after", "terminate"]


def printed(err):
    """Type and text of the exception as the C++ library prints them."""
    gnu = re.fullmatch(r"terminate called after throwing an instance of '(.*?)'\n(?:  what\(\):  (.*)\n)?", err, re.S)
    llvm = re.fullmatch(r"libc\+\+abi: terminating (?:with|due to) uncaught exception of type (.*?)(?:: (.*))?\n", err, re.S)
    assert gnu or llvm, err
    # libc++abi prints names with their namespaces, the two colons of which are not its own.
    if llvm:
        llvm = re.fullmatch(r"libc\+\+abi: terminating (?:with|due to) uncaught exception of type ((?:[^:]|::)*)(?:: (.*))?\n",
                            err, re.S)
    kind, text = (gnu or llvm).groups()
    return plainly(kind), text


def plainly(kind):
    """A type as all demanglers write it: some put a space between two brackets."""
    return kind.replace("> >", ">>")


def exception_of(target):
    found = death(target)
    assert found["abort_message"] is None, found
    exception = found["exception"]
    return exception and exception | {"type": plainly(exception["type"])}


def hides_thrower(target):
    """Whether the function that calls std::terminate() has no name: from gcc 13 on a part of __cxa_rethrow() stands elsewhere."""
    for record in records_of(fathom("stack", "--json", "--no-cache", target, status=(0, 1)).stdout):
        names = [f["symbol"] or "func@" for f in record["frames"]]
        for terminate, caller in zip(names, names[1:]):
            if terminate == "std::terminate()":
                return caller.startswith("func@")
    return False


def add_uncaught(name, compiler, flags, way):
    @test(f"{way}: an exception that nobody took, {name}")
    def _(folder):
        path = built("deaths.cc", compiler, *flags)
        core, _, err = core_of(folder, path, way)
        kind, text = printed(err)
        wanted = {"type": kind, "what": text or None, "what_cut": False, "uncaught": True}
        if way == "again" and hides_thrower(core):
            wanted["uncaught"] = None
        if way != "odd":
            assert exception_of(core) == wanted, (exception_of(core), wanted)
        else:
            (line,) = lines(core)
            assert line == 'uncaught C++ exception: std::runtime_error: "red \\x1b[31m, "quoted", \u00e4 and \\xff\\n"', line
        with waiting(path, way, "wait") as running:
            assert way == "odd" or exception_of(running.pid) == wanted, (exception_of(running.pid), wanted)


def add_type(name, compiler, flags, way, kind):
    @test(f"{way}: an exception whose text is not known, {name}")
    def _(folder):
        core, _, _ = core_of(folder, built("deaths.cc", compiler, *flags), way)
        wanted = {"type": kind, "what": None, "what_cut": False, "uncaught": True}
        assert exception_of(core) == wanted, exception_of(core)
        assert lines(core) == [f"uncaught C++ exception: {kind}"], lines(core)


def add_handled(name, compiler, flags, way, kind, text):
    @test(f"{way}: dies in a handler, {name}")
    def _(folder):
        core, _, _ = core_of(folder, built("deaths.cc", compiler, *flags), way)
        assert exception_of(core) == {"type": kind, "what": text, "what_cut": False, "uncaught": False}, exception_of(core)
        assert f'C++ exception being handled: {kind}: "{text}"' in lines(core), lines(core)


def add_current(name, compiler, flags):
    @test(f"an exception of which the stack does not tell whether it was taken, {name}")
    def _(folder):
        path = built("deaths.cc", compiler, *flags)
        core, _, _ = core_of(folder, path, "own-terminate")
        found = exception_of(core)
        # libc++abi's functions between have no names.
        assert found["what"] == "for a function of its own" and found["uncaught"] is (None if "libc++" in name else True), found
        for frames in ("1", "2"):
            (died,) = deaths(core, "--max-frames", frames).values()
            assert died["exception"] == found | {"uncaught": None}, died
        os.remove(core)
        core, _, _ = core_of(folder, path, "terminate-in-handler")
        found = exception_of(core)
        assert found["what"] == "taken" and found["uncaught"] is None, found
        assert lines(core) == ['C++ exception: std::runtime_error: "taken"'], lines(core)


for build_name in ("g++", "g++, static", "clang++", "clang++, libc++"):
    add_current(build_name, *CXX_BUILDS[build_name])


def add_none(name, compiler, flags, way):
    @test(f"{way}: no exception, {name}")
    def _(folder):
        core, _, _ = core_of(folder, built("deaths.cc", compiler, *flags), way)
        assert exception_of(core) is None and not lines(core), death(core)


for build_name, (who, how) in CXX_BUILDS.items():
    for each in UNCAUGHT:
        # Where libc++'s streams fail, the library has another message; and its object is of its own kind.
        add_uncaught(build_name, who, how, each)
    for each, of_type in TYPES.items():
        add_type(build_name, who, how, each, of_type)
    for each, (of_type, text) in HANDLED.items():
        add_handled(build_name, who, how, each, of_type, text)
    for each in NONE:
        add_none(build_name, who, how, each)


PRELOAD = os.path.join(os.environ["BUILD"], "src", "libfathom-crash.so")


def reported(*command, is_preloaded=True):
    """What the crash handler says of the exception of a program: (its words, type, text); None: nothing. And stderr without the
    report. Without @is_preloaded the program has it itself."""
    plain(PRELOAD)
    env = dict(os.environ, LD_PRELOAD=PRELOAD, FATHOM_CRASH="names") if is_preloaded else os.environ
    done = execute(*command, text=False, env=env)
    before, report = re.fullmatch("(.*?)(fathom: [^\n]* crashed by SIG.*)", done.stderr.decode(errors="replace"), re.S).groups()
    found = re.findall(r'^    (uncaught C\+\+ exception|C\+\+ exception being handled|C\+\+ exception): (.*?)(?:: "(.*)")?$', report, re.M)
    assert len(found) <= 1, report
    return (found or [None])[0], before


def demangled(kind):
    """A type as reports have it: those that they do not demangle, as c++filt does."""
    return plainly(run("c++filt", "-t", kind).strip())


def check_reported(*command, is_short=False, is_preloaded=True, unsure=("again",)):
    """The reports of all ways to die that @command has say what the C++ library says. Those that are @unsure may not say that
    nobody takes the exception: what shows it has no name."""
    for way in ("inherits", "noexcept", "thread") if is_short else UNCAUGHT:
        found, err = reported(*command, way, is_preloaded=is_preloaded)
        kind, text = printed(err)
        words = ("uncaught C++ exception", "C++ exception") if way in unsure else ("uncaught C++ exception",)
        assert found and found[0] in words and demangled(found[1]) == kind, (way, found, err)
        assert way == "odd" or found[2] == (text or ""), (way, found, err)
    for way, kind in () if is_short else TYPES.items():
        found = reported(*command, way, is_preloaded=is_preloaded)[0]
        assert found == ("uncaught C++ exception", kind, ""), (way, found)
    for way, (kind, text) in HANDLED.items():
        found = reported(*command, way, is_preloaded=is_preloaded)[0]
        assert found == ("C++ exception being handled", kind, text), (way, found)
    for way in ("beside",) if is_short else (*NONE, "beside"):
        assert reported(*command, way, is_preloaded=is_preloaded)[0] is None, way


def add_reported(name, compiler, flags, is_short):
    @test(f"crash reports tell the exception as the C++ library does, {name}")
    def _(_):
        check_reported(built("deaths.cc", compiler, *flags), is_short=is_short)


def later(folder, compiler, flags):
    """A program of C and deaths.cc as a library, which it loads later."""
    if "-stdlib=libc++" in flags and not has_libcxx(compiler):
        raise tap.Skip("libc++ is not installed")
    program = build(os.path.join(folder, "later"), os.path.join(PROGRAMS, "later.c"), "-ldl")
    library = build(os.path.join(folder, "deaths.so"), source("deaths.cc"), "-DAS_LIBRARY", "-shared", "-fPIC", "-pthread", "-w",
                    compiler=compiler, flags=flags)
    assert not re.search("libstdc|libc\\+\\+", run("readelf", "-d", program))
    return program, library


for build_name in ("g++", "g++, stripped", "g++, no-pie", "clang++", "clang++, libc++"):
    add_reported(build_name, *CXX_BUILDS[build_name], build_name not in amount(("g++", "clang++, libc++"), ("g++",)))


# What builds have the C++ library inside the program. Its functions are in .symtab alone.
INSIDE = {
    "g++, -static-libstdc++": ("g++", ["-O1", "-g", "-static-libstdc++"]),
    "g++, -static-libstdc++ -static-libgcc, no-pie": ("g++", ["-O1", "-g", "-static-libstdc++", "-static-libgcc", "-no-pie"]),
    "clang++, libc++ inside": ("clang++", ["-O1", "-g", "-stdlib=libc++", "-static-libstdc++"]),
}


def add_inside(name, compiler, flags, is_short):
    @test(f"crash reports tell the exception of a C++ library that is within the program, {name}")
    def _(_):
        path = built("deaths.cc", compiler, *flags)
        assert not re.search("libstdc|libc\\+\\+", run("readelf", "-d", path))
        assert "__cxa_get_globals" not in run("readelf", "--dyn-syms", "-W", path)
        check_reported(path, is_short=is_short)

    if name in CXX_BUILDS:
        return

    @test(f"an exception of a C++ library that is within the program, {name}")
    def _(folder):
        path = built("deaths.cc", compiler, *flags)
        for way in ("runtime_error", "thread", "nested"):
            core, _, err = core_of(folder, path, way)
            kind, text = printed(err)
            wanted = {"type": kind, "what": text, "what_cut": False, "uncaught": True}
            assert exception_of(core) == wanted, (way, exception_of(core), wanted)
            os.remove(core)


for build_name, (who, how) in INSIDE.items():
    add_inside(build_name, who, how, build_name not in amount(("g++, -static-libstdc++", "clang++, libc++ inside"), ("clang++, libc++ inside",)))


@test("crash reports tell no exception where the C++ library is within a program without symbols: nothing says where it is")
def _(_):
    path = built("deaths.cc", "g++", "-O2", "-s", "-static-libstdc++")
    for way in ("runtime_error", "handler", "nested"):
        assert reported(path, way)[0] is None, way


@test("crash reports of a static program, which has the library inside, tell the exception as the C++ library does")
def _(folder):
    plain(PRELOAD)
    top = os.path.join(HERE, "..", "..")
    installs = os.path.join(folder, "installs.o")
    run("gcc", "-c", "-I", os.path.join(top, "include"), "-o", installs, os.path.join(PROGRAMS, "installs.c"))
    path = build(os.path.join(folder, "deaths"), source("deaths.cc"), installs, os.path.join(os.environ["BUILD"], "src", "libfathom.a"),
                 "-pthread", "-w", *static_libraries(), compiler="g++", flags=["-O1", "-g", "-static"])
    check_reported(path, is_short=not IS_LONG, is_preloaded=False)


# C++ libraries that a program of C loads later, which brings libstdc++ or libc++, or has it inside.
LATER = {
    "g++": ("g++", ["-O1", "-g"]),
    "clang++, libc++": ("clang++", ["-O1", "-g", "-stdlib=libc++"]),
    "g++, -static-libstdc++": ("g++", ["-O1", "-g", "-static-libstdc++", "-static-libgcc"]),
}


def add_later(name, compiler, flags, is_short):
    @test(f"crash reports tell the exception of a C++ library that was loaded later, {name}")
    def _(folder):
        # Of a library that was not prepared, what is hidden has no name, as clang's __clang_call_terminate() is.
        check_reported(*later(folder, compiler, flags), is_short=is_short, unsure=("again", "noexcept" if compiler == "clang++" else ""))

    @test(f"an exception of a C++ library that was loaded later, {name}")
    def _(folder):
        command = later(folder, compiler, flags)
        for way in ("runtime_error", "noexcept", "thread"):
            core, _, err = core_of(folder, *command, way)
            kind, text = printed(err)
            wanted = {"type": kind, "what": text, "what_cut": False, "uncaught": True}
            assert exception_of(core) == wanted, (way, exception_of(core), wanted)
            os.remove(core)
            with waiting(*command, way, "wait") as running:
                assert exception_of(running.pid) == wanted, (way, exception_of(running.pid), wanted)


for build_name, (who, how) in LATER.items():
    add_later(build_name, who, how, build_name not in amount(("g++", "clang++, libc++"), ()))


@test("crash reports tell no exception where two C++ libraries have one of the thread, and that of the one that has one")
def _(folder):
    plain(PRELOAD)
    program = build(os.path.join(folder, "both"), os.path.join(PROGRAMS, "both.cc"), "-w", compiler="g++",
                    flags=["-O1", "-g", "-static-libstdc++", "-static-libgcc"])
    library = later(folder, *LATER["clang++, libc++"])[1]
    assert reported(program, library, "outer")[0] is None
    assert reported(program, library, "own")[0] == ("C++ exception being handled", "std::runtime_error", "of the program")
    assert reported(program, library, "theirs")[0] == ("C++ exception being handled", "std::underflow_error", "being handled")


def add_beside(name, compiler, flags):
    @test(f"another thread's exception is not named for the one that died, {name}")
    def _(folder):
        core, _, _ = core_of(folder, built("deaths.cc", compiler, *flags), "beside")
        assert death(core) == NOTHING, death(core)
        assert not lines(core)


for build_name, (who, how) in CXX_BUILDS.items():
    add_beside(build_name, who, how)


@test("a long text of an exception is cut")
def _(folder):
    core, _, _ = core_of(folder, built("deaths.cc", "g++", *CXX_BUILDS["g++"][1]), "long")
    found = exception_of(core)
    assert found["what_cut"] and found["what"] == 65536 * "l", len(found["what"])


class Memory:
    """The memory of a core of 64 bits, which tests change."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            data = f.read()
        (phoff,) = struct.unpack_from("<Q", data, 0x20)
        (n,) = struct.unpack_from("<H", data, 0x38)
        headers = (struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i) for i in range(n))
        self.loads = [(h[3], h[5], h[2]) for h in headers if h[0] == 1]

    def offset(self, address):
        for start, size, off in self.loads:
            if start <= address < start + size:
                return off + address - start
        raise AssertionError(f"{address:#x} is not in the core")

    def read(self, address, size=8):
        with open(self.path, "rb") as f:
            f.seek(self.offset(address))
            return int.from_bytes(f.read(size), "little")

    @contextlib.contextmanager
    def changed(self, address, value, size=8):
        """The core while @value stands at @address."""
        was = self.read(address, size)
        self.write(address, value, size)
        yield self.path
        self.write(address, was, size)

    def write(self, address, value, size):
        with open(self.path, "r+b") as f:
            f.seek(self.offset(address))
            f.write((value % (1 << 8 * size)).to_bytes(size, "little"))


LIES = [0, 1, 7, 8, 4096, 0x7fff00000000, 1 << 32, (1 << 32) - 1, (1 << 63), (1 << 64) - 1, (1 << 64) - 8, (1 << 64) - 4096]


def lying(memory, address, lies, right, accepted, size=8):
    """Each of the @lies at @address leads to the @right answer or to one of those that are @accepted."""
    for lie in lies:
        with memory.changed(address, lie, size) as core:
            found = exception_of(core)
        assert found == right or found in accepted, (hex(lie), found)


@test("memory of an exception that lies leads to nothing else")
def _(folder):
    core, out, _ = core_of(folder, built("deaths.cc", *flat(CXX_BUILDS["g++"])), "told")
    memory = Memory(core)
    thrown, kind, text = told(out, "object"), told(out, "type"), told(out, "text")
    right = {"type": "space::Told", "what": "told where it is", "what_cut": False, "uncaught": True}
    no_text = right | {"what": None}
    assert exception_of(core) == right, exception_of(core)
    links = [thrown, thrown - 112, thrown - 128, kind, kind + 8, kind + 16, text, text - 24, memory.read(kind + 16)]
    # The header: its type, its class, its count. What is no exception of C++ is none.
    lying(memory, thrown - 112, LIES + [kind + 8, thrown, thrown - 112, text, text - 24], None, [])
    lying(memory, thrown - 32, [0, memory.read(thrown - 32) + 2, memory.read(thrown - 32) ^ 1 << 40], None, [])
    lying(memory, thrown - 72, [0], None, [], 4)
    # The same class for a dependent exception: its first word is the object.
    lying(memory, thrown - 32, [memory.read(thrown - 32) + 1], None, [])
    # The type: its kind, its name, its base.
    lying(memory, kind, LIES + links, None, [])
    lying(memory, kind + 8, LIES, None, [])
    lying(memory, kind + 16, LIES + [kind, kind + 8, thrown, text], no_text, [])
    # The object: its vtable, its text.
    lying(memory, thrown, LIES + links, no_text, [])
    lying(memory, thrown + 8, LIES + [thrown, kind, thrown + 8], no_text, [])
    # The text: its length, its capacity, its references; a length that ends where no NUL is.
    lying(memory, text - 24, [1 << 32, 1 << 63, (1 << 64) - 1, 5, 17], no_text, [])
    lying(memory, text - 16, [0, 5, 1 << 62, (1 << 64) - 1], no_text, [])
    lying(memory, text - 8, [-2], no_text, [], 4)
    assert exception_of(core) == right


@test("memory of an abort message that lies leads to nothing else")
def _(folder):
    core, out, err = core_of(folder, built("deaths.c", *flat(C_BUILDS["gcc"])), "told")
    memory = Memory(core)
    pointer = told(out, "pointer")
    at = memory.read(pointer)
    assert death(core)["abort_message"] == err[:-1]
    for lie in LIES + [at + 4, at + 8, at - 4096, pointer, pointer & -4096]:
        with memory.changed(pointer, lie):
            found = death(core)
            assert found["abort_message"] is None and found["abort_message_why"], (hex(lie), found)
    for lie in [0, 1, 4, 5, 4095, 4097, (1 << 32) - 1]:
        with memory.changed(at, lie, 4):
            assert death(core)["abort_message"] is None, hex(lie)
    # A size that is more than there is, of a text that ends: it is the text.
    with memory.changed(at, (1 << 32) - 4096, 4):
        assert death(core)["abort_message"] == err[:-1]


@test("memory changed at random: no crash, no hang")
def _(folder):
    core, out, _ = core_of(folder, built("deaths.cc", *flat(CXX_BUILDS["clang++, libc++"])), "told")
    memory = Memory(core)
    thrown, kind, text = told(out, "object"), told(out, "type"), told(out, "text")
    choose = random.Random(20)
    places = [*range(thrown - 128, thrown + 16, 8), kind, kind + 8, kind + 16, text - 24, text - 16, text - 8, text]
    for _ in range(150):
        undo = []
        for _ in range(choose.randint(1, 4)):
            at = choose.choice(places)
            undo.append((at, memory.read(at)))
            memory.write(at, choose.choice(LIES + places + [choose.getrandbits(64)]), 8)
        found = death(core)
        assert found["exception"] is None or isinstance(found["exception"]["type"], str), found
        for at, was in reversed(undo):
            memory.write(at, was, 8)


sys.exit(SUITE.run())
