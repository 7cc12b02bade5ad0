#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "crash": programs crash in each way of programs/crasher.c, with the handler installed by themselves or
preloaded. The report must say exactly what is known of the crash, and the program must end as without a handler."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, HANG_SECONDS, execute, run  # noqa: E402
from building import build_text, plain, programs_of_32_bit  # noqa: E402
from fault_ways import DEATHS, FAULTS, told  # noqa: E402
from running import dying, need_kernels_cores  # noqa: E402

TOP = os.path.join(HERE, "..", "..")
PROGRAMS = os.path.join(HERE, "programs")
BUILD = os.environ["BUILD"]
LIBRARIES = os.path.join(BUILD, "src")
PRELOAD = os.path.join(LIBRARIES, "libfathom-crash.so")
SUITE = tap.Suite("crash", "make a PID namespace")
test = SUITE.test
MAIN = ["main", "__libc_start_call_main", "__libc_start_main*", "_start"]
SEGV = ["innermost", "middle", "inlined", "way_segv"]
THREAD = ["start_thread", "clone3|__clone3|__clone|thread_start"]
END = "fathom: end of the report"
# No way takes so long, but one that hangs.


def build(folder, *options):
    plain(os.path.join(LIBRARIES, "libfathom.so"))
    path = os.path.join(folder, "crasher")
    run("gcc", "-O1", "-g", os.path.join(PROGRAMS, "crasher.c"), *options, "-o", path, "-lpthread", "-ldl")
    return path


def with_library(folder, *options):
    return build(folder, "-DWITH_LIBRARY", "-I", os.path.join(TOP, "include"), *options, "-L", LIBRARIES,
                 "-Wl,--no-as-needed", "-lfathom", f"-Wl,-rpath,{LIBRARIES}")


class Report:
    """A report, taken apart: head, frames [(name, place, mark)], registers, code, maps, and what stands beside it."""

    def __init__(self, lines):
        self.head = lines[0]
        self.frames, self.inlined, self.pcs, self.registers, self.maps = [], {}, [], {}, []
        self.end, self.code, self.repeated, self.why = None, None, {}, []
        for line in lines[1:]:
            frame = re.fullmatch(r"#(\d+) +0x([0-9a-f]{16}) (\S+?)(?:\+0x[0-9a-f]+)?((?: \S+:\d+(?::\d+)?| \S+\+0x[0-9a-f]+)?)((?: \([a-z-]+\))?)"
                                 r"((?: <signal handler called>)?(?: \[.*\])?)", line)
            if frame:
                self.pcs.append(int(frame[2], 16))
                self.frames.append((int(frame[1]), frame[3], frame[4].strip(), frame[6].strip()))
            elif line.startswith("      inlined into "):
                self.inlined[self.frames[-1][0]] = line.split()[2]
            elif line.startswith("    ... "):
                self.repeated[self.frames[-1][0]] = line.strip(" .")
            elif re.match("    (fault|abort message): ", line):
                assert not self.frames, line
                self.why.append(line[4:])
            elif line.startswith("    ("):
                self.end = line[5:].split(":")[0]
            elif line.startswith("    "):
                words = line.split()
                self.registers |= {name: int(value, 16) for name, value in zip(words[::2], words[1::2])}
            elif line.startswith("code:"):
                self.code = line[6:]
            elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                self.maps.append(line)
            else:
                assert line in ("registers:", "maps:", END), line

    def names(self):
        return [name for _, name, _, _ in self.frames]


def reports_of(text):
    """The reports in @text, and all other lines."""
    found, others = [], []
    lines = iter(text.splitlines())
    for line in lines:
        if " crashed by " not in line:
            others.append(line)
            continue
        body = [line]
        for inner in lines:
            body.append(inner)
            if inner == END:
                break
        assert body[-1] == END, f"a report has no end: {body}"
        found.append(Report(body))
    return found, others


def crash(program, way, *install, number=signal.SIGSEGV, count=1, **options):
    """The reports of a program that @number ends, or a status, and the lines beside them."""
    done = execute(program, way, *install, timeout=HANG_SECONDS, **options)
    status = -number if isinstance(number, signal.Signals) else number
    assert done.returncode == status, f"{way}: status {done.returncode}\n{done.stderr}"
    found, others = reports_of(done.stderr)
    assert len(found) == count, f"{way}: {len(found)} reports\n{done.stderr}"
    return found, others + done.stdout.splitlines()


def check_names(report, *expected):
    """Names in order; "*" at the end stands for any rest, "a|b" for one of them."""
    # Cancellation points of glibc 2.41 call functions that make the system call.
    names = [name for name in report.names() if "_syscall_cancel" not in name]
    assert len(names) == len(expected), f"{names} are not {expected}"
    for name, pattern in zip(names, expected):
        assert any(name == p or (p.endswith("*") and name.startswith(p[:-1])) for p in pattern.split("|")), \
            f"{names} are not {expected}"


def line_of(text):
    with open(os.path.join(PROGRAMS, "crasher.c"), encoding="utf-8") as source:
        return next(i for i, line in enumerate(source, 1) if text in line)


@test("a bad pointer: head, names in order, lines, an inlined call, the register, the map")
def segv(folder):
    path = with_library(folder)
    process = subprocess.Popen([path, "segv", "install"], stderr=subprocess.PIPE, text=True)
    _, text = process.communicate(timeout=HANG_SECONDS)
    (report,), others = reports_of(text)
    assert process.returncode == -signal.SIGSEGV and not others
    assert report.head == f"fathom: {path} ({process.pid}, {process.pid} crasher) crashed by SIGSEGV (SEGV_MAPERR) at 0x1234560"
    check_names(report, *SEGV, *MAIN)
    assert report.inlined == {2: "outer"} and report.end is None
    assert report.registers["rdi"] == 0x1234560 and report.registers["rip"] == report.pcs[0]
    for name, text in (("innermost", "*p = 1;"), ("middle", "sink++;")):
        _, _, place, mark = next(f for f in report.frames if f[1] == name)
        assert place.split(":")[0].endswith("crasher.c") and not mark
    assert int(report.frames[0][2].split(":")[1]) == line_of("	*p = 1;")
    (mapping,) = [m for m in report.maps if m.endswith(path) and m.split()[1] == "r-xp"]
    low, high = (int(x, 16) for x in mapping.split()[0].split("-"))
    assert low <= report.pcs[0] < high
    assert any("[stack]" in m for m in report.maps)


@test("names only: no lines, inlined calls are their function's")
def names_only(folder):
    (report,), _ = crash(with_library(folder), "segv", "names")
    check_names(report, "innermost", "middle", "outer", "way_segv", *MAIN)
    assert not any(place for _, _, place, _ in report.frames) and not report.inlined


KNOWN = {"rax": "11", "rbx": "22", "rcx": "33", "rdx": "44", "rsi": "55", "rdi": "66", "rbp": "77", "r8": "88", "r9": "99",
         "r10": "aa", "r11": "bb", "r12": "cc", "r13": "dd", "r14": "ee", "r15": "12"}


@test("every register has the value that it was given, and the code is that of the file")
def registers(folder):
    path = with_library(folder)
    (report,), _ = crash(path, "registers", "install")
    for name, digits in KNOWN.items():
        assert report.registers[name] == int(digits * 8, 16), name
    assert set(report.registers) == set(KNOWN) | {"rsp", "rip"}
    check_names(report, "way_registers", *MAIN)
    # mov %eax, 0x40
    assert "<89> 04 25 40 00 00 00" in report.code


@test("the core has the registers of the crash and its signal: gdb and fathom stack agree with the report")
def core(folder):
    path = with_library(folder)
    need_kernels_cores()
    for way, number in (("registers", signal.SIGSEGV), ("trap", signal.SIGTRAP), ("abort", signal.SIGABRT), ("kill", signal.SIGSEGV)):
        (report,), _ = crash(dying(path, way, "install")[0], *dying(path, way, "install")[1:], number=number, cwd=folder,
                             env=dict(os.environ, WANT_CORE="1"))
        (file,) = glob.glob(f"{folder}/core*")
        printed = run("gdb", "-nx", "-batch", "-ex", "info registers", "-ex", "p $_siginfo.si_code", path, file)
        theirs = {m[1]: int(m[2], 16) for m in re.finditer(r"^(r\w+) +0x([0-9a-f]+) ", printed, re.M)}
        assert {name: theirs[name] for name in report.registers} == report.registers, way
        assert f"Program terminated with signal {number.name}" in printed, printed
        records = execute(FATHOM, "stack", "--json", "--no-cache", file, status=(0, 1)).stdout
        ours = re.findall(r'"pc":"?(0x[0-9a-f]+|\d+)', records)
        assert [int(pc, 0) for pc in ours] == report.pcs, (way, ours)
        os.remove(file)


WAYS = {  # way: signal, cause, frames before main
    "general_protection": (signal.SIGSEGV, r"SIGSEGV \(SI_KERNEL\)", [*SEGV[:3], "way_general_protection"]),
    "trap": (signal.SIGTRAP, r"SIGTRAP \(SI_KERNEL\)", ["way_trap"]),
    "division": (signal.SIGFPE, r"SIGFPE \(FPE_INTDIV\) at 0x[0-9a-f]+", ["way_division"]),
    "illegal": (signal.SIGILL, r"SIGILL \(ILL_ILLOPN\) at 0x[0-9a-f]+", ["way_illegal"]),
    "bus": (signal.SIGBUS, r"SIGBUS \(BUS_ADRERR\) at 0x[0-9a-f]+", ["way_bus"]),
    "kill": (signal.SIGSEGV, r"SIGSEGV \(SI_USER\) sent by process \d+", ["kill|__kill", "way_kill"]),
    "sigsys": (signal.SIGSYS, r"SIGSYS \(SYS_SECCOMP\) in system call 4711", ["syscall", "way_sigsys"]),
    "blocked": (signal.SIGSEGV, r"SIGSEGV \(SI_TKILL\) sent by process \d+", ["sigsuspend|__sigsuspend|__GI___sigsuspend", "way_blocked"]),
    "malloc": (signal.SIGSEGV, r"SIGSEGV \(SEGV_MAPERR\) at 0x10", ["check_here", "malloc", "way_malloc"]),
}


def add_way(way, number, cause, frames):
    @test(f"a crash by {way} is reported and ends the program by {number.name}")
    def _(folder):
        (report,), _ = crash(with_library(folder), way, "install", number=number)
        assert re.fullmatch(cause, report.head.split(" crashed by ")[1]), report.head
        check_names(report, *frames, *MAIN)
        assert report.end is None and not any(mark for *_, mark in report.frames)
        place = report.frames[report.names().index(frames[-1])][2]
        assert "crasher.c:" in place, place


for _way, _known in WAYS.items():
    add_way(_way, *_known)


@test("abort(), assert() and a damaged heap: SIGABRT, and who called them")
def aborts(folder):
    path = with_library(folder)
    for way, said in (("abort", None), ("assert", "Assertion"), ("heap", "free(): ")):
        (report,), others = crash(path, way, "install", number=signal.SIGABRT)
        names = report.names()
        assert re.search(r"SIGABRT \(SI_TKILL\) sent by process \d+$", report.head)
        assert names[:3] == ["__pthread_kill_implementation", "raise", "abort"] or names.index("abort") < 4, names
        assert names.index(f"way_{way}") == len(names) - len(MAIN) - 1
        assert not said or said in others[0], others


@test("a call of address 0, and JIT code with a frame pointer: frames behind them are marked")
def guessed(folder):
    path = with_library(folder)
    (report,), _ = crash(path, "call_0", "install")
    assert report.pcs[0] == 0 and " at 0x0" in report.head
    check_names(report, "??", "way_call_0", *MAIN)
    assert [mark for *_, mark in report.frames] == ["", "[decoded]"] + ["[after decoded]"] * 4
    assert report.code == "(unreadable)"
    (report,), _ = crash(path, "jit", "install")
    assert report.pcs[0] == 0x10000004 and report.code.endswith("<89> 04 25 30 00 00 00 5d c3" + " 00" * 23)
    # The page before is not there.
    assert report.code.startswith("55 48 89 e5 <")
    check_names(report, "??", "way_jit", *MAIN)
    assert [mark for *_, mark in report.frames] == ["", "[frame-pointer]"] + ["[after frame-pointer]"] * 4


@test("a stack that is gone or consists of itself: what is known, and an end")
def corrupt(folder):
    path = with_library(folder)
    (report,), _ = crash(path, "corrupt", "install")
    check_names(report, "way_corrupt")
    assert report.end == "unreadable" and report.registers["rbp"] == 0x4141414141414141
    (report,), _ = crash(path, "cyclic", "install")
    assert report.names()[0] == "way_cyclic" and len(report.frames) < 40 and report.end, report.names()


@test("a stack overflow: of the main thread, of another one, on the program's own small stack for signals")
def overflow(folder):
    path = with_library(folder)
    for way, behind in (("overflow", ["way_overflow", *MAIN]), ("thread_overflow", ["way_overflow", "overflow_with", *THREAD]),
                        ("own_stack", ["way_overflow", "way_own_stack", *MAIN])):
        (report,), _ = crash(path, way, "install")
        check_names(report, "way_overflow_by", "way_overflow_by", *behind)
        times = int(re.fullmatch(r"this frame (\d+) times more", report.repeated[1])[1])
        assert times > 10000 and report.frames[2][0] == times + 2, report.repeated
        assert report.end is None


@test("a thread without a stack for signals reports, by its name")
def thread(folder):
    (report,), _ = crash(with_library(folder), "thread", "install")
    assert re.search(r"\(\d+, \d+ second one\) crashed", report.head)
    pid, tid = re.search(r"\((\d+), (\d+)", report.head).groups()
    assert pid != tid
    check_names(report, *SEGV, "thread_without", *THREAD)


@test("eight threads crash at once: one report")
def together(folder):
    path = with_library(folder)
    for _ in range(10):
        (report,), others = crash(path, "together", "install")
        check_names(report, *SEGV, "crash_together", *THREAD)
        assert not others
        # They crash at one place, which is reported once; each is handed to the earlier handler, which ends the program.
        _, others = crash(path, "old_together", "install", number=40 + signal.SIGSEGV)
        assert set(others) == {"old plain"}


@test("after fork() and vfork() parent and child report as themselves")
def fork(folder):
    path = with_library(folder)
    for way in ("fork", "vfork"):
        reports, others = crash(path, way, "install", count=2)
        pids = [re.search(r"\((\d+), (\d+) ", r.head).groups() for r in reports]
        assert pids[0][0] == pids[0][1] != pids[1][0] == pids[1][1], pids
        assert others == [f"child {pids[0][0]} ended by {int(signal.SIGSEGV)}"]
        for report in reports:
            check_names(report, *SEGV, f"way_{way}", *MAIN)


@test("a crash inside the handler: one line, no loop, the default action")
def nested(folder):
    done = execute(with_library(folder), "nested", "install", timeout=HANG_SECONDS)
    lines = done.stderr.splitlines()
    assert done.returncode == -signal.SIGSEGV and len(lines) == 3, lines
    assert " crashed by SIGSEGV (SEGV_MAPERR) at 0x1234560" in lines[0] and not lines[1]
    assert re.fullmatch(r"fathom: crashed again, in the handler, by SIGSEGV \(SEGV_ACCERR\) at pc 0x[0-9a-f]+", lines[2])


@test("a crash in a handler: the trampoline is marked, and named after its own first byte")
def in_handler(folder):
    (report,), _ = crash(with_library(folder), "in_handler", "install")
    marked = [i for i, frame in enumerate(report.frames) if frame[3] == "<signal handler called>"]
    names = report.names()
    assert len(marked) == 1 and names[marked[0] - 1] == "crash_in_handler" and "way_in_handler" in names[marked[0]:], report.frames
    assert names[:marked[0]].count("crash_in_handler") == 1 and "crash_in_handler" not in names[marked[0]:], names


@test("the handler that was there before is called as the kernel calls it")
def chained(folder):
    path = with_library(folder)
    _, others = crash(path, "old_plain", "install", number=40 + signal.SIGSEGV)
    assert others == ["old plain"]
    # Its own signal and its mask are blocked, others are not.
    _, others = crash(path, "old_info", "install", number=50 + signal.SIGSEGV)
    assert others == ["old 11 at 0x1234560, context 1, blocked 1 0 1"]
    reports, others = crash(path, "old_jump", "install", number=0, count=2)
    assert others == ["handled 2"] and reports[1].head.endswith("at 0x2345670")
    # It returns four times without having repaired anything.
    _, others = crash(path, "old_fix", "install", number=0)
    assert others == ["handled 5"]
    # A fault cannot be ignored.
    (report,), others = crash(path, "old_ignored", "install")
    assert others == ["ignored"] and report.head.endswith("at 0x1234560")


@test("a handler without SA_ONSTACK runs on the stack that was interrupted, in a frame as the kernel makes it")
def interrupted_stack(folder):
    path = with_library(folder)
    # What is true without our handler: the program tells the same.
    told = execute(path, "old_where", timeout=HANG_SECONDS).stdout.splitlines()
    assert told == ["on the alternate stack 0, near the crash 1, at 0x1234560, spoiled 0",
                    "vector 1, below 4712, changed 4711, blocked 0, on the alternate stack 0"], told
    (report,), others = crash(path, "old_where", "install", number=0)
    # Here there is an alternate stack, which a signal meanwhile may use from its top on.
    assert others == [told[0].replace("spoiled 0", "spoiled 1"), told[1]], others
    check_names(report, "way_old_where", *MAIN)
    # A stack goes on through it.
    reports, _ = crash(path, "old_abort", "install", number=signal.SIGABRT, count=2)
    names = reports[1].names()
    at = names.index("old_abort")
    assert names[at - 1] == "abort" and names[at + 2:at + 2 + len(SEGV)] == SEGV and names[-1] == "_start", names
    assert reports[1].end is None
    # It does not run where there is no stack left for it; one with SA_ONSTACK does.
    crash(path, "old_overflow", count=0)
    crash(path, "old_overflow", "install")
    _, others = crash(path, "old_overflow_on", "install", number=40 + signal.SIGSEGV)
    assert others == ["old plain"]


@test("a thread whose handler runs on holds up no other thread's report and handler")
def handlers_at_once(folder):
    reports, others = crash(with_library(folder), "old_wait", "names", number=0, count=2)
    assert others == ["handled 2"], others
    assert {report.head.rsplit(" ", 1)[1] for report in reports} == {"0x1234560", "0x2345670"}


@test("without the handler, after uninstalling, after installing twice, after a refused call")
def installed(folder):
    path = with_library(folder)
    crash(path, "segv", count=0)
    crash(path, "uninstalled", "install", count=0)
    _, others = crash(path, "replaced", "names", number=40 + signal.SIGSEGV, count=0)
    assert others == ["old plain"]
    (report,), _ = crash(path, "twice", "install")
    assert not any(place for _, _, place, _ in report.frames)
    (report,), others = crash(path, "refused", "install")
    assert others == ["11 11"] and report.inlined


@test("threads' stacks are there once and are freed")
def stacks(folder):
    _, others = crash(with_library(folder), "stacks", "names", number=0, count=0)
    assert others == ["1"]


@test("the report goes to a file by its pattern; else to standard error, which may be closed, full or not read")
def places(folder):
    path = with_library(folder)
    done = execute(path, "segv", "names", f"path={folder}/report.%p.%t.100%%")
    (file,) = glob.glob(f"{folder}/report.*")
    assert re.fullmatch(r"report\.(\d+)\.\1\.100%", os.path.basename(file)) and not done.stderr
    assert os.stat(file).st_mode & 0o777 == 0o600
    with open(file, encoding="utf-8") as f:
        assert len(reports_of(f.read())[0]) == 1
    _, others = crash(path, "segv", "names", f"path={folder}/no/such")
    assert others == [f"fathom: {folder}/no/such: the report cannot be written there: ENOENT"]
    os.symlink("elsewhere", f"{folder}/link")
    os.mkfifo(f"{folder}/fifo")
    for name, error in (("link", "ELOOP"), ("fifo", "ENXIO")):
        _, others = crash(path, "segv", "names", f"path={folder}/{name}")
        assert others == [f"fathom: {folder}/{name}: the report cannot be written there: {error}"]
    assert not os.path.exists(f"{folder}/elsewhere")
    for place in ("path=/dev/full", "fd=77"):
        crash(path, "segv", "names", place)
    done = execute("sh", "-c", 'exec "$0" segv names fd=1 2>&-', path)
    assert done.returncode == -signal.SIGSEGV and len(reports_of(done.stdout)[0]) == 1
    done = execute("sh", "-c", 'exec "$0" segv names >&- 2>&-', path)
    assert done.returncode == -signal.SIGSEGV and not done.stdout + done.stderr


DENIES = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
        struct sock_filter code[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 }, { BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)atoi(argv[1]) },
                                      { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM }, { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
        struct sock_fprog filter = { 4, code };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
                return 77;
        execvp(argv[2], argv + 2);
        return argc;
}
"""


@test("the report goes to a file where a filter forbids statx(2), too; never to a file of another user, or of two names")
def forbidden(folder):
    path = with_library(folder)
    denies = build_text(os.path.join(folder, "denies"), DENIES)
    statx = run("gcc", "-E", "-", input="#include <sys/syscall.h>\nSYS_statx\n").split()[-1]
    for name in ("new", "twice"):
        if name == "twice":
            with open(f"{folder}/twice", "w", encoding="ascii") as f:
                f.write("")
            os.link(f"{folder}/twice", f"{folder}/second")
        done = execute(denies, statx, path, "segv", "names", f"path={folder}/{name}")
        assert done.returncode == -signal.SIGSEGV, done
        with open(f"{folder}/{name}", encoding="utf-8") as f:
            assert len(reports_of(f.read())[0]) == (name == "new"), name
        assert len(reports_of(done.stderr)[0]) == (name != "new"), done.stderr


FACTS = """
#include <stdio.h>
#include "safe/crash/file_facts.h"
int main(void)
{
        struct fathom_file_facts f = { 0 };

        if (!fathom_file_facts_read(0, &f))
                return 1;
        printf("%u %u %u %d %d\\n", fathom_file_user(), f.user, f.links, f.is_device, f.is_file);
        return 0;
}
"""


@test("whose a report's file is: users beyond 16 bits, on 32 bits, too, by statx() and by fstat()", needs_root=True)
def owners(folder):
    denies = build_text(os.path.join(folder, "denies"), DENIES)
    os.chmod(folder, 0o755)
    user, file, safe = 100000, os.path.join(folder, "file"), os.path.join(TOP, "src", "safe")
    with open(file, "w", encoding="ascii") as f:
        os.fchown(f.fileno(), user, -1)
    os.link(file, os.path.join(folder, "second"))
    machines = [("gcc", "sys_x86_64.c"), ("i686-linux-gnu-gcc", "sys_x86.S")]
    for compiler, calls in machines[:1] if programs_of_32_bit() else machines:
        path = build_text(os.path.join(folder, compiler), FACTS, "-x", "c", os.path.join(safe, "crash", "file_facts.c"), "-x", "none",
                          os.path.join(safe, "base", calls), "-I", os.path.join(TOP, "src"), "-static", compiler=compiler)
        statx = run(compiler, "-E", "-", input="#include <sys/syscall.h>\nSYS_statx\n").split()[-1]
        for words in ([], [denies, statx]):
            for place, want in ((file, f"{user} {user} 2 0 1"), ("/dev/null", f"{user} 0 1 1 0"), (folder, f"{user} 0 2 0 0")):
                opened = os.open(place, os.O_RDONLY)
                done = execute(*words, path, stdin=opened, user=user)
                os.close(opened)
                assert (done.returncode, done.stdout.strip()) == (0, want), (compiler, words, place, done)


@test("a pipe that nobody reads holds the end up for a bound only")
def full_pipe(folder):
    path = with_library(folder)
    read, write = os.pipe()
    os.set_blocking(write, False)
    while True:
        try:
            os.write(write, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(write, True)
    began = time.monotonic()
    process = subprocess.Popen([path, "segv", "names"], stderr=write, stdout=write)
    assert process.wait(HANG_SECONDS) == -signal.SIGSEGV
    assert 1 < time.monotonic() - began
    os.close(read)
    os.close(write)


@test("a pipe whose reader is gone does not end a program that goes on after its own handler")
def broken_pipe(folder):
    path = with_library(folder)
    for way, pending in (("old_fix_unread", 0), ("old_fix_pending", 1)):
        _, others = crash(path, way, "names", number=0, count=0)
        assert others == [f"handled 5, pending {pending}"], (way, others)


def preloaded(words="", **more):
    return dict(os.environ, LD_PRELOAD=PRELOAD, FATHOM_CRASH=words, **more)


@test("preloaded: a program that knows nothing of it reports, with lines; words of FATHOM_CRASH")
def preload(folder):
    path = build(folder)
    (report,), others = crash(path, "segv", env=preloaded())
    check_names(report, *SEGV, *MAIN)
    assert not others and report.inlined == {2: "outer"}
    (report,), _ = crash(path, "segv", env=preloaded("names"))
    assert not any(place for _, _, place, _ in report.frames)
    crash(path, "segv", env=preloaded("off"), count=0)
    crash(path, "segv", env=preloaded("signals=ABRT+BUS"), count=0)
    crash(path, "abort", env=preloaded("names,signals=ABRT+BUS"), number=signal.SIGABRT)
    done = execute(path, "segv", env=preloaded(f"names,fd=1,file={folder}/a,b.%p"))
    (file,) = glob.glob(f"{folder}/a,b.*")
    assert done.returncode == -signal.SIGSEGV and os.path.getsize(file) > 1000 and not done.stdout + done.stderr
    for wrong in ("nam", "fd=", "fd=1x", "fd=-1", "signals=", "signals=SEG", "signals=SEGV+", "names,,x", "file="):
        _, others = crash(path, "segv", env=preloaded(wrong), count=0)
        assert others == [f"fathom: FATHOM_CRASH={wrong}: no such words (fathom_crash(3))"]


@test("preloaded: every thread has a stack for the handler, and no frame of it is seen")
def preloaded_overflow(folder):
    (report,), _ = crash(build(folder), "other_overflow", env=preloaded())
    check_names(report, "way_overflow_by", "way_overflow_by", "way_overflow", "overflow_without", *THREAD)


def acting(folder):
    """A program that does with signals what runtimes do. It knows nothing of the library."""
    plain(os.path.join(LIBRARIES, "libfathom.so"))
    path = os.path.join(folder, "actions")
    run("gcc", "-O1", "-g", os.path.join(PROGRAMS, "actions.c"), "-o", path, "-lpthread")
    return path


@test("preloaded: a program sees its own signal actions only, by whatever function it sets them, and so do its children")
def own_actions(folder):
    path = acting(folder)
    for way, least in (("seen", 1000), ("children", 16)):
        without, preload = execute(path, way, status=0), execute(path, way, env=preloaded("names"), status=0)
        assert without.stdout == preload.stdout and not preload.stderr, way
        assert len(preload.stdout.splitlines()) > least and "stranger" not in preload.stdout


ACTING = {  # way: what ends it, reports, innermost function of the last one's program
    "node": (signal.SIGSEGV, 1, "crash_here"), "shell": (signal.SIGSEGV, 2, "crash_here"), "vfork": (signal.SIGSEGV, 1, "crash_here"),
    "hotspot": (signal.SIGABRT, 1, "on_fault"), "asserting": (signal.SIGABRT, 1, "on_fault_asserting"),
    "own_abort": (signal.SIGABRT, 0, None), "faulthandler": (signal.SIGSEGV, 1, "on_fault_once"),
    "handled": (signal.SIGSEGV, 1, "way_handled"), "ignored": (signal.SIGSEGV, 0, None),
}


@test("preloaded: the program's own handlers with SA_ONSTACK have room, where they had the thread's stack without the library")
def deep(folder):
    path = acting(folder)
    for env in (None, preloaded("names")):
        done = execute(path, "deep", env=env, status=0)
        assert done.stdout.splitlines() == ["deep"] * 2 and not done.stderr, done


def add_acting(way, number, count, name):
    @test(f"preloaded: a program that acts as {way} does: it ends as without the library; reports: {count}")
    def _(folder):
        path = acting(folder)
        without = execute(path, way)
        assert without.returncode == -number
        reports, others = crash(path, way, env=preloaded("names"), number=number, count=count)
        assert others == (without.stderr + without.stdout).splitlines(), others
        assert not name or next(n for n in reports[-1].names() if re.match("on_|way_|crash_here", n)) == name, reports[-1].names()


for _way, _known in ACTING.items():
    add_acting(_way, *_known)


@test("preloaded: a program that installs a handler by itself, too: its own options, its own earlier handler")
def installed_twice(folder):
    path = with_library(folder)
    (report,), _ = crash(path, "segv", "install", env=preloaded("names"))
    assert report.inlined
    _, others = crash(path, "old_plain", "names", env=preloaded("names"), number=40 + signal.SIGSEGV)
    assert others == ["old plain"]
    for way in ("uninstalled", "replaced"):
        without = execute(path, way, "names")
        _, others = crash(path, way, "names", env=preloaded("names"), count=0,
                          number=without.returncode if without.returncode > 0 else signal.SIGSEGV)
        assert others == without.stdout.splitlines(), others


@test("the first process of a PID namespace ends, too, by faults, traps and abort()", needs_root=True)
def init(folder):
    path = with_library(folder)
    for way, status in (("segv", -signal.SIGSEGV), ("trap", 128 + signal.SIGTRAP), ("abort", 128 + signal.SIGABRT)):
        done = execute("unshare", "-p", "-f", path, way, "names", timeout=HANG_SECONDS)
        if "unshare:" in done.stderr:
            raise tap.Skip(f"no PID namespace here: {done.stderr.strip()}")
        (report,), others = reports_of(done.stderr)
        assert done.returncode in (status, 128 - status) and not others, (way, done.returncode)
        assert "(1, 1 crasher)" in report.head


@test("preloaded: a crash before main, in a constructor of a library, in a resolver that the dynamic linker calls")
def linker(folder):
    path = build(folder, "-DCRASH_BEFORE_MAIN")
    (report,), _ = crash(path, "segv", env=preloaded())
    assert report.names()[0] == "before_main" and "at 0x50" in report.head, report.names()
    assert report.names()[-1] == "_start" and "main" not in report.names()
    path = build(folder)
    for options in ([], ["-DBY_RESOLVER"]):
        library = os.path.join(folder, "crashing.so")
        run("gcc", "-O1", "-g", "-shared", "-fPIC", *options, "-o", library, os.path.join(PROGRAMS, "crashing_library.c"))
        address, size = next((int(words[0], 16), int(words[1], 16)) for words in map(str.split, run("nm", "-S", library).splitlines())
                             if words[-1] in ("at_load", "resolve"))
        (report,), _ = crash(path, "dlopen", env=preloaded(CRASHING_LIBRARY=library))
        # It came after the handler was installed: the bounds of its call frame information are known, and while the dynamic
        # linker does not say whose the code is, nothing.
        assert "at 0x60" in report.head
        # By what the library has in memory or, while the dynamic linker does not say whose the code is, by the frame
        # pointer, if at all.
        marks = ("", "[frame-pointer]", "[after frame-pointer]") if options else ("",)
        assert all(mark in marks for *_, mark in report.frames[1:]), report.frames
        assert report.names()[0] == ("??" if options else f"func@[{address:#x}..{address + size:#x}]"), report.names()
        # The dynamic linker calls a resolver before it can say whose it is: then the map says it.
        (mapping,) = [m.split() for m in report.maps if m.endswith(library) and m.split()[1] == "r-xp"]
        low, offset = int(mapping[0].split("-")[0], 16), int(mapping[2], 16)
        assert address <= report.pcs[0] - low + offset < address + 32, mapping


LATE = {"static": 0, "exported": 0, "constant": 1, "data": 1, "heap": 1}  # way: frames without a name


def add_late(way, unnamed, publishes):
    @test(f"preloaded: a library that came later crashes: {way}{', called by code that its copy of the publisher knows' if publishes else ''}")
    def _(folder):
        plain(os.path.join(LIBRARIES, "libfathom.so"))
        sources = [os.path.join(PROGRAMS, "late_library.c")]
        if publishes:
            run("python3", os.path.join(TOP, "tools", "vendor_jit.py"), folder)
            sources += ["-DWITH_PUBLISHER", "-I", folder, os.path.join(folder, "fathom_jit.c")]
        run("gcc", "-O1", "-g", "-fcf-protection=none", os.path.join(PROGRAMS, "late.c"), "-o", "late", "-ldl", cwd=folder)
        run("gcc", "-O1", "-g", "-fcf-protection=none", "-shared", "-fPIC", *sources, "-o", "library.so", cwd=folder)
        (low, size), = [[int(word, 16) for word in line.split()[:2]]
                        for line in run("nm", "-S", os.path.join(folder, "library.so")).splitlines() if line.endswith(" late_static")]
        (report,), _ = crash(os.path.join(folder, "late"), os.path.join(folder, "library.so"), way, env=preloaded("names"))
        names = ["??"] * unnamed + ["late_exported"] * (way == "exported") + [f"func@[{low:#x}..{low + size:#x}]"]
        check_names(report, *names, *["made@here"] * publishes, "late_go", *MAIN)
        # A return address stands after a call, so a call of data is not a guess of more than that.
        assert [mark for *_, mark in report.frames] == (["", "[decoded]"] + ["[after decoded]"] * (len(report.frames) - 2)
                                                        if unnamed else [""] * len(report.frames)), report.frames
        assert report.end is None
        # The same in the report of a handler that gives up.
        (report,), _ = crash(os.path.join(folder, "late"), os.path.join(folder, "library.so"), way, "handled", env=preloaded("names"),
                             number=signal.SIGABRT)
        again = report.names()
        # Behind the handler, its return into the kernel's frame.
        check_names(report, *again[:again.index("on_fault") + 2], *names, *["made@here"] * publishes, "late_go", *MAIN)
        assert report.end is None


for _way, _unnamed in LATE.items():
    for _publishes in (False, True):
        add_late(_way, _unnamed, _publishes)


def dying_of(folder, way, number=signal.SIGSEGV, compiler=("gcc", "-O1", "-g"), **options):
    """The report of a preloaded program that dies as @way says, and what it printed."""
    plain(PRELOAD)
    path = os.path.join(folder, "deaths")
    run(*compiler, "-w", "-pthread", "-fstack-protector-strong", DEATHS, "-o", path)
    (report,), others = crash(path, way, number=number, cwd=folder, env=os.environ | {"LD_PRELOAD": PRELOAD, "FATHOM_CRASH": "names"},
                              **options)
    return path, report, "\n".join(others)


def add_place(way, words):
    @test(f"what lies at the address of a fault: {way}")
    def _(folder):
        path, report, out = dying_of(folder, way, signal.SIGBUS if way == "cut-file" else signal.SIGSEGV)
        address = hex(told(out, "fault"))
        wanted = words.replace("ADDRESS", address).replace("PATH", path).replace("FOLDER", folder)
        (line,) = report.why
        assert line.startswith("fault: ") and wanted in line and address in line, (line, wanted)
        if way == "other-guard":
            # The other thread has told where its stack is; the report tells which one that is.
            tid = int(re.search(r"below the stack of thread (\d+)\)", line)[1])
            pid = int(re.search(r"\((\d+), (\d+) ", report.head)[1])
            assert tid != pid, (tid, pid)


for each, (_, _, text) in FAULTS.items():
    # The processor says of an addition in memory that it writes.
    add_place(each, text.replace("access to", "write to") if each == "null-add" else text)


@test("a stack that is full, of the main thread and of another one: whose")
def overflow_place(folder):
    for way in ("overflow", "thread-overflow"):
        _, report, _ = dying_of(folder, way)
        tid = re.search(r"\(\d+, (\d+) ", report.head)[1]
        (line,) = report.why
        assert line.startswith("fault: write to 0x") and line.endswith(f" (stack overflow of thread {tid})"), line


@test("signals that were sent, and faults without an address, have no place")
def no_place(folder):
    for way, number in (("sent", signal.SIGSEGV), ("misaligned", signal.SIGSEGV), ("divide", signal.SIGFPE), ("illegal", signal.SIGILL)):
        _, report, _ = dying_of(folder, way, number)
        assert not report.why, (way, report.why)


def add_text(way):
    @test(f"what libc wrote before it called abort(): {way}")
    def _(folder):
        _, report, out = dying_of(folder, way, signal.SIGABRT)
        # libc has written it to standard error, too.
        (line,) = report.why
        doubt = " (unless another thread aborts at the same time)" if way == "thread-assert" else ""
        assert line == f"abort message: {out}{doubt}", (line, out)


for each in ("assert", "double-free", "bad-free", "smash", "thread-assert"):
    add_text(each)


@test("abort() of the program itself has no text, also where libc wrote one before; nor has a fault")
def no_text(folder):
    for way, number in (("abort", signal.SIGABRT), ("stale-abort", signal.SIGABRT), ("stale-fault", signal.SIGSEGV)):
        _, report, _ = dying_of(folder, way, number)
        assert not any(line.startswith("abort message") for line in report.why), (way, report.why)


@test("the example: a thread's stack overflows")
def example(folder):
    plain(os.path.join(LIBRARIES, "libfathom.so"))
    path = os.path.join(folder, "crash_report")
    source = os.path.join(TOP, "examples", "crash_report.c")
    run("gcc", "-g", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion", "-I", os.path.join(TOP, "include"),
        "-o", path, source, "-L", LIBRARIES, "-lfathom", f"-Wl,-rpath,{LIBRARIES}")
    (report,), others = crash(path, "")
    check_names(report, "descend", "descend", "run", *THREAD)
    with open(source, encoding="utf-8") as f:
        lines = f.read().splitlines()
    assert len(lines) < 80 and not others
    number = next(i for i, text in enumerate(lines, 1) if "? descend(room)" in text)
    assert f"/crash_report.c:{number}:" in report.frames[1][2], report.frames[1]


@test("stacks that were overwritten or lost their outer pages: no report calls one whole, or has a frame that is no code")
def damaged(folder):
    plain(os.path.join(LIBRARIES, "libfathom.so"))
    path = os.path.join(folder, "damager")
    run("gcc", "-O1", "-g", os.path.join(PROGRAMS, "damager.c"), "-o", path, "-lpthread")
    for way in range(0, 240, 11):
        report, = crash(path, way, env=dict(os.environ, LD_PRELOAD=PRELOAD))[0]
        assert report.end in ("no-rule", "unreadable", "register"), (way, report.end, report.frames)
        assert report.names()[:2] == ["crash", "damage_victim"], (way, report.frames)
        assert not any(name.startswith("?") for name in report.names()), (way, report.frames)


sys.exit(SUITE.run())
