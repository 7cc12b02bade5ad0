#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "check": programs whose made code is followed instruction by instruction. How many instructions run, and which
of them breaks its description, the programs know themselves (programs/promises.cc): it is counted by hand."""
import functools
import os
import random
import re
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402
import toolchain  # noqa: E402

from ask import FATHOM, HANG_SECONDS, execute, records_of, run  # noqa: E402
from building import nm, plain  # noqa: E402
from running import Running  # noqa: E402

TOP = os.path.join(HERE, "..", "..")
BUILD = os.environ["BUILD"]
LIBRARIES = os.path.join(BUILD, "src")
LOCK = threading.Lock()

SUITE = tap.Suite("check")
test = SUITE.test


@functools.lru_cache(maxsize=None)
def built(name):
    plain(os.path.join(LIBRARIES, "libfathom.so"))
    if "cannot be traced" in execute(FATHOM, "jit-check", "--", "true").stderr:
        raise tap.Skip("programs cannot be traced here")
    folder = os.path.join(BUILD, "check")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, os.path.splitext(name)[0])
    run("g++" if name.endswith("cc") else "gcc", "-O2", "-g", "-fcf-protection=none", "-Wall", "-Wextra",
        os.path.join(HERE, "programs", name), "-o", path,
        "-I", os.path.join(TOP, "include"), "-L", LIBRARIES, "-lfathom", f"-Wl,-rpath,{LIBRARIES}", "-pthread")
    return path


def program(name="promises.cc"):
    with LOCK:
        return built(name)


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "FATHOM_JIT"}


def checking(folder, *command, options=()):
    """The command `fathom jit-check` that runs @command, and the path of its log."""
    log = os.path.join(folder, "log")
    return [FATHOM, "jit-check", "--json", "--log", log, *options, "--", *command], log


def logged(log):
    """The findings of a log, and the record of the end."""
    with open(log, encoding="utf-8") as text:
        *findings, end = records_of(text.read())
    assert end.pop("type") == "end" and all(f.pop("type") == "finding" for f in findings), (findings, end)
    return findings, end


def checked(folder, *command, options=(), status=0, **more):
    """What a command prints that is run by `fathom jit-check`, its findings, and the record of its end."""
    words, log = checking(folder, *command, options=options)
    done = execute(*words, status=status, env=ENVIRONMENT, **more)
    assert not done.stderr, done.stderr
    return done.stdout, *logged(log)


def said(text):
    """{first word: the rest} of what promises.cc prints."""
    return dict(line.split(" ", 1) for line in text.splitlines())


def kept(folder, *words, frames=None, functions=None, unjudged=0, options=()):
    """A run of promises.cc whose promises are all kept: each instruction that it counts was compared."""
    text, findings, end = checked(folder, program(), *words, options=options)
    assert not findings, findings
    assert end["found"] == end["undescribed"] == end["status"] == 0, end
    assert end["unjudged"] == unjudged, end
    words = said(text)
    if "instructions" in words:
        assert end["instructions"] == int(words["instructions"]), (end, text)
    for name, expected in (("frames", frames), ("functions", functions)):
        assert expected is None or end[name] == expected, (name, end)


# name of the run: frames, functions, and what it shows
KEPT = {
    "frame": (1, 1, "a frame pointer"),
    "events": (1, 1, "events of a push and of a stack pointer"),
    "saves": (1, 1, "a register that is stored"),
    "popped": (1, 1, "a return address that is in a register for a while"),
    "reserved": (1, 1, "a reserved frame pointer, behind a shim of C"),
    "reserved-deep": (201, 1, "shims and code with a reserved frame pointer, 100 deep"),
    "made-shim": (10, 2, "a reserved frame pointer, behind a shim that is made, too"),
    "pushed": (2, 2, "a number of bytes on the stack, entered by a call and by a jump"),
    "tail": (30 + 10, 3, "jumps to made code and to C as the last act"),
    "recursion": (1001, 1, "1000 calls of itself"),
    "callbacks": (2000, 2, "2000 calls through C"),
    "exceptions": (500, 2, "exceptions of C++ thrown through it"),
    "longjmp": (500, 2, "longjmp() over it"),
    "reuse": (20, 2, "memory that is used again, with other code"),
    "removed": (2, 2, "code that runs when it was removed, and is not judged"),
    "toggle": (20, 20, "pages that are made writable and executable in turns"),
    "remap": (5, 1, "pages that are mapped anew"),
    "fork": (3, 1, "children, which run on their own"),
    "fault": (11, 1, "faults of its own, which the program handles"),
    "blocked": (5, 3, "while SIGTRAP and SIGSEGV are blocked or ignored, and stay so"),
    "trap": (10, 1, "breakpoints of its own, which the program handles"),
}

for name, (n_frames, n_functions, what) in KEPT.items():
    def _kept(folder, name=name, n_frames=n_frames, n_functions=n_functions):
        kept(folder, name, frames=n_frames, functions=n_functions)
    SUITE.add(f"kept: {what}: each instruction is compared", _kept)


@test("kept: coroutines on stacks of their own, which switch in C: each instruction is compared")
def _(folder):
    kept(folder, "coroutines", functions=2)


@test("kept: made code that switches stacks: what is behind the first switch is not judged")
def _(folder):
    kept(folder, "switch", functions=1, unjudged=1)


@test("kept: four threads in the same code")
def _(folder):
    kept(folder, "threads", "200", frames=800, functions=2)


@test("kept: two threads that wait for each other in made code come through, whatever the slice")
def _(folder):
    for size in ("1", "100", "1000"):
        kept(folder, "waiting", options=("--slice", size), frames=40, functions=1)


for name, where in (("signals", "the same stack"), ("signal-stack", "a stack of its own")):
    def _storm(folder, name=name):
        kept(folder, name, "100", functions=2)
    SUITE.add(f"kept: signals all the time, whose handler runs made code on {where}", _storm)


# name of the run: kind, register, whether it is seen behind the instruction, and what is wrong
LIES = {
    "lie-frame-size": ("cfa", None, False, "8 bytes too many on the stack"),
    "lie-no-event": ("cfa", None, True, "a sub that no event tells"),
    "lie-late": ("cfa", None, True, "an event one instruction late"),
    "lie-early": ("cfa", None, True, "an event one instruction early"),
    "lie-clobber": ("register", "rbx", True, "a write of a register that is kept"),
    "lie-popped": ("return-address", None, True, "a return address popped to another register"),
    "lie-slot": ("register", "rbx", True, "a register saved in another slot"),
    "lie-kept": ("register", "rbx", True, "a write of where a register is saved"),
    "lie-reserved": ("cfa", None, True, "a write of the reserved frame pointer"),
    "lie-return": ("return-address", None, True, "a write of the return address"),
}

for name, (kind, register, is_behind, what) in LIES.items():
    def _lie(folder, name=name, kind=kind, register=register, is_behind=is_behind):
        text, (finding,), end = checked(folder, program(), name, status=1)
        assert finding["address"] == said(text)["planted"], (finding, text)
        assert (finding["kind"], finding["register"]) == (kind, register), finding
        assert (finding["pc"] != finding["address"]) == is_behind, finding
        assert end["found"] == 1 and end["status"] == 0, end
    SUITE.add(f"broken: {what}: the planted instruction is shown", _lie)


@test("broken: what differs is said with both values, and the instruction with its function")
def _(folder):
    done = execute(FATHOM, "jit-check", "--", program(), "lie-clobber", status=1, env=ENVIRONMENT)
    planted = said(done.stdout)["planted"]
    finding, end = done.stderr.splitlines()
    # rbx was 12345, and the instruction makes it 7.
    assert re.fullmatch(rf"{planted} clobbers\+0xa movl +\$0x7,%ebx \(after it the caller's rbx is 0x3039, described as 0x7\)",
                        finding), finding
    assert end == ("fathom: 8 instructions checked in 1 frame of 1 function; broken: 1; without rules: 0; "
                   "frames not judged: 0; the program's status: 0"), end


@test("broken: of frames only, a clobbered register is none")
def _(folder):
    checked(folder, program(), "lie-clobber", options=("--frames-only",), status=0)
    checked(folder, program(), "lie-late", options=("--frames-only",), status=1)


@test("code that nothing describes is shown; it is a break if rules are needed")
def _(folder):
    for options, status in (((), 0), (("--need-rules",), 1)):
        text, (finding,), end = checked(folder, program(), "undescribed", options=options, status=status)
        assert (finding["address"], finding["kind"]) == (said(text)["planted"], "no-rule"), finding
        assert end["undescribed"] == 1 and end["found"] == 0 and end["instructions"] == 0, end


@test("the program ends as it does without: its status, its signal, its output")
def _(folder):
    for n in (0, 1, 9, 255):
        assert checked(folder, program(), "status", n, status=n)[2]["status"] == n
    _, _, end = checked(folder, program(), "dies", status=-15)
    assert end["signal"] == 15 and "status" not in end, end
    for name in ("recursion", "exceptions", "fork"):
        assert checked(folder, program(), name)[0] == run(program(), name, env=ENVIRONMENT), name


def alike(folder, *words):
    """What a run of alike.cc prints, which is the same directly and below jit-check: as it is its end. Nothing is
    found, and each instruction that it counts was compared."""
    direct = execute(program("alike.cc"), *words, env=ENVIRONMENT)
    text, findings, end = checked(folder, program("alike.cc"), *words, status=direct.returncode)
    assert text == direct.stdout, f"{text}, directly {direct.stdout}"
    assert not findings and end["found"] == end["undescribed"] == end["unjudged"] == 0, (findings, end)
    ended = {"status": direct.returncode} if direct.returncode >= 0 else {"signal": -direct.returncode}
    assert {key: end[key] for key in ("status", "signal") if key in end} == ended, (end, direct)
    instructions = said(text).get("instructions")
    assert instructions is None or end["instructions"] == int(instructions), (end, text)
    return direct


@test("the first thread dies in made code, alone or beside threads that wait: the same signal")
def _(folder):
    for n_idle in (0, 1, 3):
        assert alike(folder, "dies", n_idle).returncode == -signal.SIGSEGV


def add_killed(n_idle, beside):
    @test(f"killed at any moment, {beside}: that signal, and nothing is found")
    def _(folder):
        moments = random.Random(n_idle)
        for _ in range(20):
            words, log = checking(folder, program("alike.cc"), "loops", str(n_idle))
            with Running(words, env=ENVIRONMENT) as p:
                pid = int(p.line().split()[1])
                time.sleep(moments.uniform(0, 0.05))
                os.kill(pid, signal.SIGKILL)
                assert p.process.wait(HANG_SECONDS) == -signal.SIGKILL, f"status {p.process.returncode}"
            findings, end = logged(log)
            assert not findings and end["found"] == 0, (findings, end)
            assert end["signal"] == signal.SIGKILL and "status" not in end, end


add_killed(0, "a single thread")
add_killed(1, "beside an idle thread")


def add_replaced(who, other):
    @test(f"exec() by {other} thread while another is in made code: the new program's status, and nothing is found")
    def _(folder):
        moments = random.Random(who)
        for i in range(10):
            # With odd numbers the program runs itself, else a shell: both end with 7.
            moment = moments.randrange(0, 30000, 2) + i % 2
            _, findings, end = checked(folder, program("alike.cc"), f"replaced-by-{who}", moment, status=7)
            assert not findings and end["found"] == end["undescribed"] == 0 and end["status"] == 7, (moment, findings, end)


add_replaced("first", "the first")
add_replaced("other", "another")


@test("mprotect() with sizes that end within a page: each instruction is compared")
def _(folder):
    for n_idle in (0, 1):
        alike(folder, "unrounded", n_idle)


@test("memory that can only be executed is read, or not, as directly")
def _(folder):
    alike(folder, "execute-only")
    alike(folder, "execute-only-parts")


for name, what in (("flags", "pushf"), ("flags-back", "pushf and popf"), ("flags-of-call", "a system call, in r11")):
    def _flags(folder, name=name):
        alike(folder, name)
    SUITE.add(f"the trap flag is not seen by {what}", _flags)


for n_calls, what in ((0, ": what follows is compared"), (10, ", which runs made code meanwhile: both are compared")):
    def _waits(folder, n_calls=n_calls):
        for size in ("1", "1000"):
            text, findings, end = checked(folder, program("alike.cc"), "waits", n_calls, options=("--slice", size))
            assert not findings and end["instructions"] == int(said(text)["instructions"]), (findings, end, text)
    SUITE.add(f"made code waits in a system call for another thread{what}", _waits)


@test("made code waits in a system call that a signal interrupts")
def _(folder):
    alike(folder, "interrupted")


@test("made code makes children by a system call of its own")
def _(folder):
    alike(folder, "forks")


@test("a collector moves what a frame has saved: nothing is found")
def _(folder):
    alike(folder, "moves")


@test("a function returns by a jump, to made code and to C: nothing is found")
def _(folder):
    alike(folder, "returns-by-jump")


@test("signals are ignored, blocked and handled in the program as its caller has them")
def _(folder):
    built("promises.cc")
    command = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    for ignored in ("", "INT", "PIPE", "QUIT", "INT,PIPE,QUIT"):
        caller = ["env", "--default-signal", *([f"--ignore-signal={ignored}"] if ignored else [])]
        words, _ = checking(folder, *command)
        direct, below = (run(*caller, *w, env=ENVIRONMENT) for w in (command, words))
        assert below == direct, f"ignoring {ignored or 'none'}: {below}, directly {direct}"


@test("options of the other form are refused")
def _(_):
    for option, *value in (("--register", "rbp"), ("--section", ".text"), ("--decimal",)):
        done = execute(FATHOM, "jit-check", option, *value, "--", "true", status=2)
        assert not done.stdout and option in done.stderr, done
    for option, *value in (("--frames-only",), ("--need-rules",), ("--slice", "5"), ("--log", "/dev/null")):
        done = execute(FATHOM, "jit-check", option, *value, FATHOM, status=2)
        assert not done.stdout and option in done.stderr, done


@test("a program that runs another: that one's code is checked")
def _(folder):
    text, _, end = checked(folder, "sh", "-c", f"echo begin; exec '{program()}' recursion")
    assert text == "begin\ninstructions 9006\n" and end["instructions"] == 9006, (text, end)


@test("what cannot be run is said, and ends with status 2")
def _(folder):
    for words, expected in ((("--", "/nowhere"), "fathom: /nowhere: the program cannot be run (No such file or directory)\n"),
                            (("--",), None), (("x", "--", "true"), None), (("--slice", "0", "--", "true"), None)):
        done = execute(FATHOM, "jit-check", *words, status=2)
        assert not done.stdout and done.stderr.startswith("fathom: "), done
        assert expected is None or done.stderr == expected, done.stderr


@test("two interfaces in one process: libLLVM's beside the library's own")
def _(folder):
    llvm = toolchain.libllvm()
    for words in (("env", f"LD_PRELOAD={llvm}", program(), "callbacks"), ("env", f"LD_PRELOAD={llvm}", program(), "toggle")):
        text, findings, end = checked(folder, *words)
        assert not findings and end["instructions"] == int(said(text)["instructions"]), (end, text)


# Loads the library when it runs; nop, ret: the second function has 8 bytes too many in its description.
LOADS = """
import ctypes, mmap, struct, sys
library = ctypes.CDLL(sys.argv[1])
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(bytes([0x90, 0xc3]) + bytes(62) + bytes([0x90, 0xc3]))
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
arena = ctypes.c_void_p()
assert not library.fathom_jit_arena_create(ctypes.c_void_p(at), ctypes.c_size_t(4096), None, ctypes.byref(arena), None)
for offset, name, frame in ((0, b"right", 0), (64, b"wrong", 8)):
    # struct fathom_jit_unwind: size, kind (3: PUSHED), flags, from, until, frame, record; then nothing.
    rule = struct.pack("=QIIIIII", 128, 3, 0, 0, 0, frame, 0) + bytes(96)
    rule, name = ctypes.create_string_buffer(rule), ctypes.create_string_buffer(name)
    # struct fathom_jit_function: size, code, its size, name, rule; then nothing.
    function = struct.pack("=QQQQQ", 112, at + offset, 2, ctypes.addressof(name), ctypes.addressof(rule)) + bytes(72)
    assert not library.fathom_jit_add(arena, function, None)
    ctypes.CFUNCTYPE(None)(at + offset)()
    print(name.value.decode(), hex(at + offset), flush=True)
"""


@test("a library that is loaded while the program runs: Python's ctypes")
def _(folder):
    built("promises.cc")
    text, (finding,), end = checked(folder, sys.executable, "-c", LOADS, os.path.join(LIBRARIES, "libfathom.so"), status=1)
    assert (finding["function"], finding["address"]) == ("wrong", said(text)["wrong"]), (finding, text)
    assert (end["instructions"], end["frames"], end["functions"]) == (4, 2, 2), end


@test("the library: a run tells of findings, and leaves the caller's children alone")
def _(_):
    caller, words = program("caller.c"), program()
    for name, status, n_found, instructions in (("lie-clobber", 0, 1, 8), ("frame", 0, 0, 8)):
        lines = run(caller, "run", words, name, env=ENVIRONMENT).splitlines()
        text = said("\n".join(line for line in lines if not line.startswith("finding")))
        findings = [line for line in lines if line.startswith("finding")]
        assert text["err"] == "0 errno 0" and len(findings) == n_found, lines
        assert text["instructions"] == (f"{instructions}" if not n_found else text["instructions"]) or \
            text["instructions"].startswith(f"{instructions} functions 1 frames 1 found {n_found} status {status}"), lines
        for line in findings:
            planted = int(text["planted"], 16)
            # movl $7, %ebx has 5 bytes; rbx is register 3; it was seen behind the instruction.
            assert line == f"finding {planted:x} {planted + 5:x} clobbers+a kind 3 register 3 behind 1 size 5", line
        assert "the child is lost" not in lines, lines
    # FATHOM_E_OS and ENOENT.
    assert run(caller, "run", "/nowhere", env=ENVIRONMENT) == "err -3 errno 2\n"


@test("the library: a scan tells of the first instruction of each function, and ends when it is told to")
def _(folder):
    caller = program("caller.c")
    planted = os.path.join(folder, "planted")
    run("gcc", "-nostdlib", "-static", "-Wl,-e,by_mov", "-o", planted, os.path.join(HERE, "..", "cli", "programs", "planted.s"))
    at = {name: values[0][0] for name, values in nm(planted).items()}
    names = ["by_mov", "by_pop", "by_lea", "by_xchg", "by_enter", "by_leave", "by_low_byte", "by_cmov"]
    # Each function is a nop, what writes the register, and a return. rbp has the number 5, rbx 3.
    ends = [f"{at['by_mov']:x}", f"{at['by_bad_code']:x}"]
    for register, expected, more in (("5", names, ()), ("3", ["by_xchg"], ()), ("5", ["by_mov"], ("once",))):
        text = run(caller, "scan", planted, *ends, register, *more)
        assert re.findall(r"found (\w+) (\w+)", text)[:len(expected)] == [(f"{at[n] + 1:x}", n) for n in expected], text
        assert f"err 0\ninstructions {24} found {len(expected)} next " in text, text
        assert more or text.endswith(f"next {ends[1]}\n"), text
    # FATHOM_E_NOT_FOUND, FATHOM_E_ARGUMENT
    assert run(caller, "scan", planted, "10", "20", "5") == "err -9\n"
    assert run(caller, "scan", planted, "20", "10", "5") == "err -1\n"


PROGRAM = """
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int (*volatile called)(int) = fib;
int main(void) { return called(12) - 100; }
"""

THROWS = """
struct guard { ~guard() { __asm__ volatile(""); } };
__attribute__((noinline)) static int thrown(int n) { guard g; if (n > 3) throw n; return n; }
int main() {
  int sum = 0;
  for (int i = 0; i < 20; i++) try { sum += thrown(i); } catch (int value) { sum += 2 * value; }
  return sum & 127;
}
"""


def add_lli(kind, language, source, status):
    @test(f"lli, {kind}: all that LLVM describes of compiled {language} is true")
    def _(folder):
        code = os.path.join(folder, "program.bc")
        run("clang", "-x", language, "-O1", "-emit-llvm", "-c", "-o", code, "-", input=source)
        _, findings, end = checked(folder, "lli", f"--jit-kind={kind}", code, status=status)
        assert not findings and end["found"] == end["unjudged"] == 0, (findings, end)
        assert end["instructions"] > 200 and end["frames"] > 10, end


# fib(12) is 144; 0 + 1 + 2 + 3, and twice 4 to 19.
for llvm in ("mcjit", "orc"):
    add_lli(llvm, "c", PROGRAM, 44)
    add_lli(llvm, "c++", THROWS, (6 + 2 * 184) & 127)

if __name__ == "__main__":
    sys.exit(SUITE.run())
