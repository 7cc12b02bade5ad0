# SPDX-License-Identifier: MIT
"""Tests of programs whose system calls are dispatched by SIGSYS: the tracer is inside, and nobody uses ptrace(2)."""
import collections
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import building
import strict_seccomp
import tap
from amounts import amount
from ask import FATHOM, execute, fathom, run
from baked import LIBRARIES, own, read
from traced import HERE, test

PROGRAMS = os.path.join(HERE, "..", "strace", "programs")
PRELOADED = os.path.join(LIBRARIES, "libfathom-trace.so")
WAY = "--way dispatch"
# hostile.c of the suite "strace", and how each ends.
HOSTILE = {"path": 3, "unmapped": 3, "pointers": 3, "descriptors": 7, "root": 3, "blocked": 3, "trap": 3, "errno": 3, "kill": -signal.SIGSYS,
           "strict": 5, "otherwise": 3, "vfork": 3, "uring": 3, "interrupt": 3, "gs": 3}


def preloaded(options):
    """The environment in which any program traces itself."""
    building.plain(PRELOADED)
    return os.environ | {"LD_PRELOAD": PRELOADED, "STRACE": options}


def other(folder, name):
    """A program of the suite "strace"."""
    path = os.path.join(folder, name)
    run("gcc", "-O1", "-g", "-fexceptions", "-D_GNU_SOURCE", "-pthread", "-o", path, os.path.join(PROGRAMS, name + ".c"))
    return path


def read_whole(log):
    """The log of a program that is killed, or may not wait: its reader finds out that it has ended."""
    for _ in range(200):
        events = read(log)
        if any(e["type"] == "exit" and e["tid"] == events[0]["pid"] for e in events):
            break
        time.sleep(0.02)
    return events


def as_untraced(command, env, status):
    alone = execute(*command, timeout=60)
    traced = execute(*command, env=env, timeout=60)
    assert alone.returncode == traced.returncode == status, (command, alone, traced)
    assert alone.stdout == traced.stdout, (command, alone, traced)
    return alone.stdout


@test("dispatched calls: signals, masks, stacks and actions, children of all kinds, calls that are interrupted: all is as without it")
def _(folder):
    log = os.path.join(folder, "log")
    path = own(folder, source="dispatched.c", out="dispatched")
    for what in "signals", "children", "interrupt", "small":
        assert as_untraced([path, what], os.environ | {"STRACE": f"{WAY} --json --log {log}"}, 3)
        ways = collections.Counter(e["way"] for e in read(log) if e["type"] == "syscall")
        assert ways["dispatch"] > 10 and set(ways) == {"dispatch"}, ways
    for name, arguments, said in ("cancelled", ["600"], "600 cancelled, 600 cleaned up\n"), ("waits", [], "80 -60\n"):
        assert as_untraced([other(folder, name), *arguments], preloaded(f"{WAY} --log {log}"), 3) == said


@test("a program that traces itself: wherever in a page of the stack a system call is made, the function that makes it is known")
def _(folder):
    path, log = own(folder, source="../../strace/programs/saved.c", out="saved"), os.path.join(folder, "log")
    execute(path, os.path.join(folder, "file"), "pages", env=os.environ | {"STRACE": "1", "FATHOM_TRACE": f"--no-fold --json --way rewrite --log {log}"}, status=0)
    found = [(e["name"], e["depth"], e["parent"]) for e in read_whole(log) if e["type"] == "syscall" and e["name"] in ("creat", "write", "fsync", "close")]
    expected = [(name, depth, "direct") for name, depth in (("creat", 3), ("write", 4), ("fsync", 4), ("close", 3))] * 256
    assert found[-len(expected):] == expected, [wrong for wrong, right in zip(found[-len(expected):], expected) if wrong != right][:9]


@test("dispatched calls, and rewritten ones: the first thread ends, children without actions, pending signals, handlers that jump out of vfork(), filters that kill, small limits")
def _(folder):
    path = own(folder, source="dispatched.c", out="dispatched")
    for way in "dispatch", "rewrite":
        for what, status in ("thread", 3), ("actions", 3), ("jumps", 3), ("filtered", 7):
            log = os.path.join(folder, f"{what} {way}")
            as_untraced([path, what], os.environ | {"STRACE": f"--way {way} --json --log '{log}'"}, status)
            assert {e["way"] for e in read_whole(log) if e["type"] == "syscall"} == {way}, (what, way)
        # The rings are a file, which is larger than this.
        assert run("sh", "-c", f"ulimit -f 1000; STRACE='--way {way}' {path} 2>&1", status=3).startswith("fathom: not traced: ")
    # The log of a program that becomes another one is continued.
    log = os.path.join(folder, "log")
    for _ in range(5):
        execute("bash", "-c", "cd /; exec cat /etc/passwd", env=preloaded(f"{WAY} --json --log {log}"), status=0)
        # Two processes write it, each when it finds out that its program has ended.
        for _ in range(200):
            names = collections.Counter(e["name"] for e in read(log) if e["type"] == "syscall")
            if names["execve"] and names["exit_group"]:
                break
            time.sleep(0.02)
        assert names["chdir"] == 1 and names["execve"] == 1 and names["exit_group"] == 1, names
        os.remove(log)


def by_case(text):
    """What small_stacks tells of each case, and how that ended."""
    cases, told_of = {}, ""
    for line in text.splitlines():
        if line[0] == " ":
            told_of = line
        else:
            cases[line.rsplit(":", 1)[0]], told_of = (line, told_of), ""
    return cases


@test("dispatched calls, and rewritten ones: where 136 bytes to 8 KiB are left of the stack, of threads of all kinds, with signal stacks of all kinds and without: as without it")
def _(folder):
    log, path = os.path.join(folder, "log"), os.path.join(folder, "small_stacks")
    run("gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-o", path, os.path.join(HERE, "programs", "small_stacks.c"))
    for kind in "main", "pthread", "clone", "fibre":
        alone = execute(path, kind, status=3, timeout=120)
        # Where in its frame a handler finds what it has interrupted is said there, too.
        n_whole = alone.stdout.count(": 768\n")
        assert n_whole >= 80 and alone.stdout.count("jumped=1") >= 40, alone
        traced = execute(path, kind, env=preloaded(f"{WAY} --json --log {log}"), status=3, timeout=120)
        assert traced.stdout == alone.stdout, [pair for pair in zip(alone.stdout.split("\n"), traced.stdout.split("\n")) if pair[0] != pair[1]][:2]
        names = collections.Counter(e["name"] for e in read_whole(log) if e["type"] == "syscall")
        # Two of each case and one of its child; what is below it is not read of a case that is killed.
        assert names["getppid"] >= 3 * n_whole and names["vfork"] >= 80 and names["rt_sigsuspend"] >= 40, names
        # A stub takes 232 bytes, and a handler finds itself there.
        rewritten = by_case(execute(path, kind, env=preloaded(f"--way rewrite --json --log {log}"), status=3, timeout=120).stdout)
        for name, case in by_case(alone.stdout).items():
            here, there = (re.sub(r"is_call=\d+", "", " ".join(c)) for c in (case, rewritten[name]))
            assert name.startswith("0 ") or here == there, (kind, name, here, there)


def check_rare_states(folder, *states):
    path = os.path.join(folder, "rare_states")
    run("gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-o", path, os.path.join(HERE, "programs", "rare_states.c"))
    for what in states:
        alone = execute(path, what, timeout=120)
        assert alone.returncode == 0 and alone.stdout, alone
        for way in "dispatch", "rewrite":
            for _ in range(3 if what == "spawn" else 1):
                traced = execute(path, what, env=preloaded(f"--way {way} --json --log {os.path.join(folder, 'log')}"), timeout=120)
                assert (traced.returncode, traced.stdout) == (0, alone.stdout), (what, way, alone.stdout, traced)


@test("dispatched calls, and rewritten ones: masks and rights in handlers, exec() among signals, filters and children of all kinds in rare states: as without it")
def _(folder):
    check_rare_states(folder, "mask", "exec", "dispatch", "filter", "strict", "spawn")


@test("dispatched calls, and rewritten ones: a handler that interrupts 32-bit code: as without it")
def _(folder):
    building.need_32_bit()
    check_rare_states(folder, "narrow")


GO = """package main

/*
#include <unistd.h>
static int there(void) { return getppid() > 0; }
*/
import "C"
import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

func deep(n int) int {
	var a [64]byte
	a[n%64] = 1
	if n > 0 {
		return deep(n-1) + int(a[1])
	}
	if f, err := os.Open("/etc/passwd"); err == nil {
		f.Close()
	}
	return int(a[0])
}

func main() {
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < 50; k++ {
				deep(k * 3)
				C.there()
				runtime.Gosched()
			}
		}()
	}
	all.Wait()
	fmt.Println("done")
}
"""


@test(f"dispatched calls, and rewritten ones: Go with cgo, whose stacks are small, each time of {amount(20)}")
def _(folder):
    if not shutil.which("go"):
        raise tap.Skip("there is no Go compiler")
    log, path = os.path.join(folder, "log"), os.path.join(folder, "small")
    with open(path + ".go", "w", encoding="utf-8") as f:
        f.write(GO)
    run("go", "build", "-o", path, path + ".go", env=os.environ | {"HOME": folder, "GOCACHE": os.path.join(folder, "cache"), "CGO_ENABLED": "1", "GO111MODULE": "off"})
    for way in "dispatch", "rewrite":
        for _ in range(amount(20)):
            done = execute(path, env=preloaded(f"--way {way} --json --log {log}"), timeout=120)
            assert (done.returncode, done.stdout) == (0, "done\n"), (way, done)
        names = collections.Counter(e["name"] for e in read_whole(log) if e["type"] == "syscall")
        assert names["getppid"] == 1000 and 1000 <= names["openat"] < 1100, (way, names)


@test("dispatched calls: a signal at the last instruction of their handler: what it interrupts is unwound")
def _(folder):
    path, script = own(folder, source="dispatched.c", out="dispatched"), os.path.join(folder, "script")
    last = r"tbreak *((char *)&fathom_user_dispatch_restorer + 7)"
    with open(script, "w", encoding="utf-8") as f:
        f.write("set confirm off\nset breakpoint pending on\nhandle SIGSYS SIGUSR1 nostop noprint pass\nbreak calls_on\n"
                f"run unwound\n{last}\ncontinue\nsignal SIGUSR1\n")
    done = execute("gdb", "-q", "-nx", "-batch", "-x", script, path, env=os.environ | {"STRACE": f"{WAY} --log {folder}/log"}, timeout=60)
    assert "found: 1\n" in done.stdout, done


@test("dispatched calls, and rewritten ones: handlers interrupt threads that make calls and children of all kinds")
def _(folder):
    path, log = os.path.join(folder, "handled"), os.path.join(folder, "log")
    run("gcc", "-O1", "-pthread", "-D_GNU_SOURCE", "-o", path, os.path.join(HERE, "programs", "handled.c"))
    for way in "dispatch", "rewrite":
        for _ in range(3):
            assert as_untraced([path], preloaded(f"--way {way} --log {log}"), 3) == "bad: 0, handled\n"


@test("dispatched calls: gdb and fathom stack find the callers of calls that wait")
def _(folder):
    path, log = os.path.join(folder, "outer"), os.path.join(folder, "log")
    run("gcc", "-O1", "-g", "-pthread", "-o", path, os.path.join(HERE, "programs", "outer.c"))
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=preloaded(f"{WAY} --log {log}")) as process:
        assert process.stdout.readline() == b"waits\n"
        for _ in range(200):
            # A thread that has just begun has no stack as yet.
            ours = fathom("stack", str(process.pid), status=(0, 1)).stdout
            if ours.count(" read") >= 4:
                break
            time.sleep(0.02)
        theirs = execute("gdb", "-q", "-nx", "-batch", "-p", str(process.pid), "-ex", "thread apply all bt", timeout=60).stdout
        process.stdin.close()
        assert process.wait(timeout=60) == 3
    for found, end in (ours, "_start"), (theirs, "main"):
        names = re.findall(r"^#\d+ .*?\b(\w*read|inner|outer|wait_there|main|_start)\b", found, re.M)
        assert names.count("inner") == names.count("outer") == 2 and names.count("wait_there") == names.count(end) == 1, (names, found)


@test("dispatched calls: hostile programs behave and exit as without it")
def _(folder):
    log = os.path.join(folder, "log")
    path = other(folder, "hostile")
    for what, status in HOSTILE.items():
        as_untraced([path, what, folder], preloaded(f"{WAY} --json --log {log}"), status)
        names = collections.Counter(e["name"] for e in read_whole(log) if e["type"] == "syscall")
        # int $0x80 is one, of i386.
        assert names["write"] and (what != "otherwise" or names["getpid"] >= 1), (what, names)


# judged.c of the suite "strace": how each run ends, and whether the filter is one that the runtime leaves.
JUDGED = {"place": (3, True), "errno": (3, True), "trap all": (-signal.SIGSYS, True), "few": (7, True), "few, at the end": (7, True), "return": (7, False),
          "killed": (-signal.SIGSYS, True), "default trap": (-signal.SIGSYS, False), "trap": (3, False), "thread": (3, True), "all": (3, True),
          "vfork": (3, True), "bad": (3, False), "library": (3, False)}


@test("dispatched calls, and rewritten ones: filters of the program that would judge what the tracer calls: they judge the program alone, and the log says so")
def _(folder):
    path = other(folder, "judged")
    for what, (status, is_left) in JUDGED.items():
        log = os.path.join(folder, what)
        as_untraced([path, what], preloaded(f"{WAY} --json --log '{log}'"), status)
        events = read_whole(log)
        assert any(e["type"] == "note" and "its filter (seccomp)" in e["text"] for e in events) == is_left, (what, events)
        names = collections.Counter(e["name"] for e in events if e["type"] == "syscall")
        # Calls of other threads, and those before the filter, are there.
        assert names["getppid"] >= {"thread": 11, "trap": 102, "all": 101}.get(what, 1), (what, names)
        # A filter that forbids nothing of the runtime's is no reason to know less.
        assert what != "bad" or names["rt_sigprocmask"] and names["getppid"] == 2, (what, names)
        # One thread can undo the rewriting; to handlers of signals a call is made in its stub.
        if what not in ("thread", "trap"):
            as_untraced([path, what], preloaded(f"--way rewrite --json --log '{log}'"), status)
    path = other(folder, "strict")
    for what, status in strict_seccomp.kinds().items():
        log = os.path.join(folder, what)
        for way in "dispatch", "rewrite":
            # That process does not see what `int $0x80` asks.
            if (way, what) != ("rewrite", "i386"):
                as_untraced([path, what], preloaded(f"--way {way} --json --log '{log}'"), status)


@test("dispatched calls: filters for all threads while others are within calls, and what a handler of a trapped call finds: as without it")
def _(folder):
    log, path = os.path.join(folder, "log"), os.path.join(folder, "filters")
    run("gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-o", path, os.path.join(HERE, "programs", "filters.c"))
    for what, is_left in ("place", True), ("return", True), ("few", True), ("trap", False):
        said = as_untraced([path, what], preloaded(f"{WAY} --json --log {log}"), 3)
        assert "back: 8" in said or said.count("at its place 1") == said.count("on its stack 1") == 2, said
        assert any(e["type"] == "note" and "its filter (seccomp)" in e["text"] for e in read_whole(log)) == is_left, what


LINE = re.compile(r"(\d+) +\[([0-9a-f]+)\] (?:<\.\.\. )?(\w+)(.*)$")


def in_stubs(path, lines):
    """{thread: [(name, result)]} of the calls that strace -f -i saw in the stubs of the program at @path, which does not call prctl()."""
    symbols = {name: int(value, 16) for value, _, name in (line.split() for line in run("nm", path).splitlines() if len(line.split()) == 3)}
    low, high = symbols["fathom_trace_make_call"], symbols["fathom_user_dispatch_restorer"]
    clones, execs = (range(symbols["fathom_user_dispatch_" + a], symbols["fathom_user_dispatch_" + b]) for a, b in (("clone", "inline"), ("inline_exec", "inline_exec_end")))
    found, begun = collections.defaultdict(list), {}
    for line in lines:
        m = LINE.match(line)
        if not m:
            continue
        # Behind such a call, the signal stack, the mask and the action for SIGSYS become what we need.
        at = int(m[2], 16)
        inside = low < at < high and m[3] != "prctl" and "rt_sigaction(SIGSYS" not in line
        inside = inside and (at not in clones or m[3].startswith("clone")) and (at not in execs or m[3].startswith("execve"))
        if line.endswith("<unfinished ...>"):
            begun[m[1]] = m[3], inside
            continue
        # A call that returns elsewhere was made where it began.
        if " resumed>" in line:
            name, inside = begun.pop(m[1])
            assert name == m[3], line
        result = re.search(r"= (-?\w+)(?: \w+ \(.*\)| \(.*\))?$", line)
        # The kernel's inner result becomes EINTR, or the call is made again.
        if inside:
            found[int(m[1])].append((m[3], result[1] if result else "-1" if " = ? ERESTART" in line else "?"))
    for tid, (name, inside) in begun.items():
        if inside:
            found[int(tid)].append((name, "?"))
    return found


def told(event):
    """The result of a call, as strace writes it."""
    if event["result"] is None:
        return "?"
    return "-1" if -4096 < event["result"] < 0 else str(event["result"])


def number(text):
    return str(int(text, 16)) if text.startswith("0x") else text


@test("dispatched calls: beneath strace -f -i, what its instruction pointers place in our stubs is what the log has, call by call")
def _(folder):
    log, theirs = os.path.join(folder, "log"), os.path.join(folder, "theirs")
    path = own(folder, "-static", source="dispatched.c", out="dispatched")
    for what in "signals", "children", "interrupt":
        # It is traced already, so nobody has to say in which way.
        execute("strace", "-f", "-i", "-o", theirs, path, what, f"--strace=--json --log {log}", status=3, timeout=60)
        with open(theirs, encoding="utf-8", errors="surrogateescape") as f:
            seen = in_stubs(path, f.read().splitlines())
        ours = collections.defaultdict(list)
        # A handler of a signal that comes with a call runs before the call is recorded to have ended.
        # The action for SIGSYS, and which stack there is, are answered without a call.
        for e in sorted((e for e in read(log) if e["type"] == "syscall"), key=lambda e: e["ns"] - e["duration_ns"]):
            if e["name"] != "sigaltstack" and (e["name"] != "rt_sigaction" or "SIGSYS" not in json.dumps(e)):
                ours[e["tid"]].append((e["name"], told(e)))
        assert set(seen) == set(ours) and sum(map(len, ours.values())) > 10, (what, set(seen), set(ours))
        for tid, calls in seen.items():
            calls = [(name, number(result)) for name, result in calls if name != "sigaltstack" and (name != "exit_group" or result == "?")]
            assert calls == ours[tid], (what, [pair for pair in zip(calls, ours[tid]) if pair[0] != pair[1]][:5], calls[-3:], ours[tid][-3:])


@test("dispatched calls: a region of a program, with threads that were there before; what lies without is not told")
def _(folder):
    path = own(folder, source="dispatched.c", out="dispatched")
    logs = [os.path.join(folder, name) for name in ("first", "second")]
    done = execute(path, "region", *[f"--syscalls --no-functions {WAY} --json --log {log}" for log in logs], status=3)
    assert done.stdout == "\n0 0 0 0\n", done
    first, second = ([e["name"] for e in read(log) if e["type"] == "syscall"] for log in logs)
    # The main thread's in order, those of the other between them.
    apart = {"getpgid", "clock_nanosleep"}
    assert [n for n in first if n not in apart] == 5 * ["getppid"] and first.count("getpgid") >= 5, first
    assert [n for n in second if n not in apart] == ["geteuid"], second


# Calls whose results are numbers of processes.
NUMBERS = ("getpid", "gettid", "getppid", "wait4", "clone", "clone3", "vfork", "set_tid_address")
PROGRAMS_BESIDE = {
    "python3": ["/usr/bin/python3", "-c", "import os, subprocess; print(sum(range(10))); os.stat('/'); open('/etc/passwd').read(); os.system('true')"],
    "sqlite3": ["sqlite3", ":memory:", "create table t(a); insert into t values(1); select * from t;"],
    "perl": ["perl", "-e", "use POSIX; print `true`; open F, '<', '/etc/passwd'; print <F>"],
    "bash": ["bash", "-c", "cd /; echo *; [ -e /etc/passwd ] && read x < /etc/passwd; exit 3"],
    "find": ["find", "/usr/share/doc/bash", "-name", "copyright"],
    "sort": ["sort", "--parallel=2", "/etc/passwd"],
}


@test("dispatched calls: of python3, sqlite3, perl, bash, find and sort, the calls and results that strace sees of them")
def _(folder):
    log, theirs = os.path.join(folder, "log"), os.path.join(folder, "theirs")
    env = os.environ | {"PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0"}
    for name, command in PROGRAMS_BESIDE.items():
        done = execute(*command, env=env)
        traced = execute(*command, env=preloaded(f"{WAY} --json --log {log}") | env)
        assert (done.returncode, done.stdout) == (traced.returncode, traced.stdout), (name, traced)
        execute("strace", "-o", theirs, *command, env=env | {"LD_PRELOAD": PRELOADED})
        # Memory is where it is by chance, and so is how often more is asked for.
        apart = ("brk", "mmap", "munmap", "getrandom", "rt_sigreturn", "futex", "madvise", "mremap")
        with open(theirs, encoding="utf-8", errors="surrogateescape") as f:
            seen = [(m[1], m[2]) for m in (re.match(r"(\w+)\(.*= (-?\w+|\?)(?: \w+ \(.*\)| \(.*\))?$", line.rstrip("\n")) for line in f) if m and m[1] not in apart]
        events = [e for e in read(log) if e["type"] == "syscall"]
        ours = [(e["name"], told(e)) for e in events if e["tid"] == events[0]["tid"] and e["name"] not in apart]
        seen, ours = ([(call, "" if call in NUMBERS else number(result)) for call, result in calls] for calls in (seen, ours))
        # The program begins where the library has told the last of itself.
        blocks = difflib.SequenceMatcher(None, seen, ours, autojunk=False).get_matching_blocks()
        same = sum(block.size for block in blocks)
        assert len(ours) > 5 and same >= 0.995 * len(ours) and same >= 0.995 * (len(seen) - blocks[0].a), (name, len(seen), len(ours), blocks)


@test("--way=dispatch: any dynamic program traces itself, with all that it runs, in one log of whole lines; counts, files; what is refused")
def _(folder):
    building.plain(PRELOADED)
    log = os.path.join(folder, "log")
    words = ("trace", "--way=dispatch", "--no-functions")
    script = "for i in 1 2 3 4 5 6 7 8; do ls -l /usr/lib >/dev/null & done; wait; exit 3"
    # Each line is an object, or this fails; each of 9 programs has its own reader.
    fathom(*words, "--json", "--log", log, "--", "sh", "-c", script, status=3)
    events = read_whole(log)
    assert {e["way"] for e in events if e["type"] == "syscall"} == {"dispatch"}
    by_pid = collections.defaultdict(collections.Counter)
    for e in events:
        if e["type"] == "syscall":
            by_pid[e["pid"]][e["name"]] += 1
    assert len(by_pid) == 9 and sum(names["execve"] for names in by_pid.values()) == 8, by_pid
    assert sum(names["getdents64"] >= 2 and names["exit_group"] == 1 for names in by_pid.values()) == 8, by_pid
    text = fathom(*words, "-c", "--syscalls=write", "--", "/usr/bin/printf", "x", status=0)
    assert text.stdout == "x" and re.search(r"^ +1 .* &write \(\[kernel\], dispatch 1\)$", text.stderr, re.M), text
    fathom(*words, "-o", log, "--", "cat", "/etc/passwd", status=0)
    assert '"/etc/passwd"' in fathom("trace", "--read", log, status=0).stdout
    static = own(folder, "-static", source="pause.c", out="static")
    for status, more, why in ((2, ["--", static], "a static one takes none"), (2, ["--inject", "open:retval=1", "--", "true"], "lacks --stacks, --inject and --path"),
                              (127, ["--", "/nowhere"], "cannot be run"), (126, ["--", folder], "cannot be run")):
        assert why in fathom(*words, *more, status=status).stderr, more
    assert "add --no-functions" in fathom("trace", "--method=dispatch", "--", "true", status=2).stderr
    assert "fathom trace has" in execute(FATHOM, "strace", "--way=dispatch", "true", status=1).stderr


@test("libfathom.so is loaded by dlopen() also where the C library has next to no room for thread-local variables")
def _(_):
    library = os.path.join(LIBRARIES, "libfathom.so")
    building.plain(library)
    env = os.environ | {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=0"}
    run("/usr/bin/python3", "-c", f"import ctypes; ctypes.CDLL({library!r})", env=env)


def lines_of(text):
    """The calls of a log in text, of its first process from the first line on, without what differs from run to run."""
    pids = set(re.findall(r"^(?:SYS|NEW|END) +(\d+)", text, re.M)) | set(re.findall(r"(?:clone3?|v?fork|getpp?id|gettid)\(.* → (\d+)$", text, re.M))
    found = [line for line in text.splitlines() if line.startswith("SYS")]
    found = [re.sub(r"^SYS +\d+ +[\d']+ +[\d']+ +", "", line) for line in found if line.split()[1] == found[0].split()[1]]
    found = [re.sub(r"\b(" + "|".join(pids) + r")\b", "N", line) for line in found]
    found = [re.sub(r"0x[0-9a-f]+|&[0-9a-f]{6,}|\b\d{5,}\b|\d+'[\d']+", "N", line) for line in found]
    found = [re.sub(r"(st_[acm]time|st_size|tv_n?sec|ru_\w+|f_[bf]\w+|totalram|freeram|bufferram|sharedram|procs|uptime|loads)=[^,}]*", r"\1=", line) for line in found]
    # What clone3() and exec() are given is an address where nobody stops the thread.
    found = [re.sub(r"^(clone3|execve)\(.*\)", r"\1()", line) for line in found]
    # sqlite3 reads so much of /dev/urandom.
    found = [re.sub(r'^(read\(\d+, ).*(, (4|44)\) → \3)$', r"\1\2", line) for line in found]
    # Perl reads 4 bytes of it, and seeks in files whose sizes are of each run.
    found = [re.sub(r"^(lseek\(\d+, )\w+(, \w+\) → )\w+$", r"\1N\2N", line) for line in found]
    return [line for line in found if line.split("(")[0] not in ("brk", "mmap", "munmap", "getrandom", "rt_sigreturn", "futex", "madvise", "mremap", "mprotect")]


@test("system calls: with exec() the stack of a thread begins anew, wherever that of the program before it was")
def _(folder):
    log = os.path.join(folder, "log")
    # At fixed addresses the stacks of all programs overlap; else they do by chance.
    for fixed in ("setarch", "-R"), ():
        run(*fixed, FATHOM, "trace", "--syscalls", "--no-functions", "--log", log, "--", "/bin/sh", "-c", "exec /bin/true")
        with open(log, encoding="utf-8") as f:
            told = re.findall(r"^SYS +\d+ +[\d']+ +([\d']+) (\w+)\(", f.read(), re.M)
        after = [told[i + 1] for i, (_, name) in enumerate(told) if name == "execve"]
        # The first call of a program is made by ld.so, of the function that has the most outer frame of all.
        assert after == [("0", "brk")] * 2, (fixed, told)
        assert max(int(bytes_in_use.replace("'", "")) for bytes_in_use, _ in told) < 100000, told


@test("dispatched calls: of ls, cat, sqlite3, lua, perl, python3 and bash, the lines that are those of the same calls by ptrace, 99.5 %")
def _(folder):
    programs = PROGRAMS_BESIDE | {"ls": ["ls", "-la", "/usr/lib"], "cat": ["cat", "/etc/passwd", "/nowhere"],
                                  "lua": ["lua5.4", "-e", "for l in io.lines('/etc/passwd') do print(l) end; os.execute()"]}
    log = os.path.join(folder, "log")
    env = os.environ | {"PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0"}
    for name, command in programs.items():
        ours, theirs = [], []
        for found, more in (ours, preloaded(f"{WAY} --log {log}")), (theirs, {"LD_PRELOAD": PRELOADED}):
            run_by = [] if found is ours else [FATHOM, "trace", "--syscalls", "--no-functions", "--log", log, "--"]
            execute(*run_by, *command, env=more | env if found is ours else os.environ | more | env)
            with open(log, encoding="utf-8") as f:
                found += lines_of(f.read())
        blocks = difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks()
        same = sum(block.size for block in blocks)
        different = [line for line in difflib.unified_diff(theirs[blocks[0].a:], ours, n=0, lineterm="") if line[:1] in "+-"]
        assert len(ours) > 5 and same >= 0.995 * max(len(ours), len(theirs) - blocks[0].a), (name, len(ours), different[:10])
