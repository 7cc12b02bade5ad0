# SPDX-License-Identifier: MIT
"""What stacks say beside the names: signal trampolines; what threads wait for; frames that are left out; threads without a stack."""
import contextlib
import os
import re
import signal
import time

import tap

from ask import FATHOM, HANG_SECONDS, execute, records_of, run
from building import build, build_text, core_of, need_32_bit
from running import Running, until, wait_for_name, wait_for_state
from suite import PROGRAMS, stacks_of, test

HANDLER = "<signal handler called>"
IN_HANDLER = """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void on_signal(int number)
{
	(void)number;
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}
int main(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
}
"""


def check_handler(folder, *options, name=r"__restore_rt\+0x0|.* \(no-symbols\)|func@.*", **more):
    """In a handler: gdb and fathom mark the same frame, which is named after the trampoline's first byte."""
    path = build_text(os.path.join(folder, "handler"), IN_HANDLER, *options, **more)
    with Running([path]) as running:
        assert running.line() == "done"
        wait_for_state(running.pid, "S")
        lines = [line for line in run(FATHOM, "stack", "--names-only", running.pid).splitlines() if "_syscall_cancel" not in line]
        by_gdb = run("gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "bt", "-p", running.pid)
        thread, = stacks_of(running.pid)
    marked = [line for line in lines if HANDLER in line]
    assert len(marked) == 1 and re.fullmatch(rf"#\d+ +0x[0-9a-f]+ ({name}) {HANDLER}", marked[0]), lines
    # The name of the frame before is the handler, in both.
    before = lines[lines.index(marked[0]) - 1]
    assert "on_signal+" in before and re.search(rf"on_signal .*\n#\d+ +{HANDLER}", by_gdb), (lines, by_gdb)
    frames = [f for f in thread["frames"] if f["signal_handler_called"]]
    assert len(frames) == 1 and thread["frames"][thread["frames"].index(frames[0]) - 1]["symbol"] == "on_signal", thread
    return frames[0]


@test("a signal trampoline is marked, where gdb marks it")
def handler(folder):
    frame = check_handler(folder)
    assert frame["symbol"] is None or frame["symbol"] != "on_signal", frame


@test("a signal trampoline of i386's vDSO has its own name")
def handler_32(folder):
    need_32_bit()
    frame = check_handler(folder, "-static", compiler="i686-linux-gnu-gcc", name=r"__kernel_(rt_)?sigreturn\+0x0")
    assert frame["offset"] == 0 and frame["source"] == "vdso", frame


# What threads wait for ----------------------------------------------------------------------------

LEFT = r", 9\d\d(\.\d+)? s left"


def check_locks(folder, *options, **more):
    """locks.c knows who has which lock, and how long each thread waits at most."""
    path = build(os.path.join(folder, "locks"), os.path.join(PROGRAMS, "locks.c"), "-pthread", *options, **more)
    with Running([path, folder]) as running:
        child = int(running.line().split()[1])
        lines = run(FATHOM, "stack", "--names-only", running.pid).splitlines()
        owners = {t["name"]: t["owner"] for t in stacks_of(running.pid)}
        pid = running.pid
    said = {m[2]: (int(m[1]), m[3]) for m in (re.fullmatch(r'TID (\d+): "([^"]+)", sleeping in \w+: (.*)', line) for line in lines) if m}
    mutex, rwlock = "mutex 0x[0-9a-f]+ owned by ", "rwlock 0x[0-9a-f]+ to "
    readers = rwlock + "write, held by 2 readers, of which glibc keeps no names"
    wanted = {"timed": mutex + f"{pid}{LEFT}", "clocked": mutex + f"{pid}{LEFT}", "pi": mutex + f"{pid}{LEFT}",
              "reader": rwlock + f"read, owned by writer {pid}", "timed-reader": rwlock + f"read, owned by writer {pid}{LEFT}",
              "writer": rwlock + f"write, owned by writer {pid}", "waits-readers": readers, "second": readers, "sleeper": LEFT[2:],
              "flocked": rf"lock of {folder}/flocked \(fd \d+\) held by process {child}",
              "posix": rf"lock of {folder}/posix \(fd \d+\) held by process {child}",
              "ofd": rf"lock of {folder}/ofd \(fd \d+\) held by an open file \(F_OFD_SETLK\)"}
    for name, pattern in wanted.items():
        assert re.fullmatch(pattern, said[name][1]), (name, said[name], pattern)
        owner = child if f"process {child}" in pattern else pid if f"{pid}" in pattern else None
        assert owners[name] == owner, (name, owners)
    # A circle that a time limit ends is no deadlock.
    first, second = said["circle-1"][0], said["circle-2"][0]
    assert lines[-1] == f"deadlock until a time limit: {first} waits for {second}, {second} for {first}", lines[-1]


@test("what threads wait for: owners in waits with time limits, of read-write locks, of locks of files; the time left")
def waits(folder):
    check_locks(folder)


@test("what threads wait for: the same in a program of 32 bit")
def waits_32(folder):
    need_32_bit()
    check_locks(folder, "-static", compiler="i686-linux-gnu-gcc")


# Stacks that are too long -------------------------------------------------------------------------

DEEP = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static int down(int n, volatile char *above)
{
	volatile char room[16];
	room[0] = (char)n;
	if (n == 1) {
		puts("ready");
		fflush(stdout);
		pause();
	} else if (n % 2) {
		return down(n - 1, room) + *above;
	}
	return n > 1 ? down(n - 1, room) - *above : 0;
}
int main(int argc, char **argv)
{
	volatile char top = (char)argc;
	return down(atoi(argv[1]), &top) + top;
}
"""


@test("a stack of 60,000 calls: the 10,000 innermost frames, the 50 outermost, and how many lie between")
def left_out(folder):
    path = build_text(os.path.join(folder, "deep"), DEEP, flags=("-O1", "-fno-optimize-sibling-calls"))
    calls = 60000
    with Running([path, calls]) as running:
        assert running.line() == "ready"
        wait_for_state(running.pid, "S")
        core = core_of(running.pid, folder)
        run(FATHOM, "snapshot", "--stacks", running.pid, f"{folder}/kept")
        whole, = records_of(run(FATHOM, "stack", "--json", "--names-only", "--max-frames", 100000, running.pid))
        pcs = [f["pc"] for f in whole["frames"]]
        assert whole["left_out"] is None and whole["stop"] == "entry" and [f["symbol"] for f in whole["frames"]].count("down") == calls
        for target in (running.pid, core, f"{folder}/kept"):
            thread, = records_of(run(FATHOM, "stack", "--json", "--names-only", target, status=1))
            between = len(pcs) - 10050
            assert thread["left_out"] == {"frames": between, "before": 10000, "trust": None} and thread["stop"] == "limit", thread["left_out"]
            assert [f["pc"] for f in thread["frames"]] == pcs[:10000] + pcs[-50:], target
            lines = run(FATHOM, "stack", "--names-only", target, status=1).splitlines()
            at = lines.index(f"    ... {between} frames are left out ...")
            assert lines[at - 1].startswith("#9999 ") or "times more" in lines[at - 1], lines
            assert lines[at + 1].startswith(f"#{len(pcs) - 50} "), lines
            assert lines[-2].split()[0] == f"#{len(pcs) - 1}" and " _start+" in lines[-2] and "(limit: " in lines[-1], lines
        # Who asks for a number gets that.
        few, = records_of(run(FATHOM, "stack", "--json", "--names-only", "--max-frames", 20, running.pid, status=1))
        assert [f["pc"] for f in few["frames"]] == pcs[:20] and few["left_out"] is None, few
    # No frame is missing where nearly all fit.
    with Running([path, 10020]) as running:
        assert running.line() == "ready"
        wait_for_state(running.pid, "S")
        thread, = records_of(run(FATHOM, "stack", "--json", "--names-only", running.pid))
        assert thread["left_out"] is None and thread["stop"] == "entry" and len(thread["frames"]) > 10020


# Threads without a stack --------------------------------------------------------------------------

URING = """
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	static char byte;
	struct io_uring_params p, polled;
	struct io_uring_sqe *s;
	char *queue;
	int fd, ends[2];
	memset(&p, 0, sizeof p);
	memset(&polled, 0, sizeof polled);
	polled.flags = IORING_SETUP_SQPOLL;
	fd = (int)syscall(SYS_io_uring_setup, 8, &p);
	if (fd < 0 || pipe(ends) || syscall(SYS_io_uring_setup, 8, &polled) < 0)
		return 77;
	queue = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	s = mmap(0, p.sq_entries * sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	s[0] = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = ends[0], .addr = (unsigned long)&byte, .len = 1 };
	*(unsigned *)(queue + p.sq_off.array) = 0;
	*(unsigned *)(queue + p.sq_off.tail) = 1;
	if (syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0) != 1)
		return 77;
	puts("ready");
	fflush(stdout);
	pause();
}
"""


@test("io_uring's workers: the polling one and one that reads: each is there, and has no stack but the kernel's")
def workers(folder):
    path = build_text(os.path.join(folder, "uring"), URING)
    with Running([path]) as running:
        if running.line() != "ready":
            raise tap.Skip("this kernel, or who runs it, does not allow io_uring")
        tids = sorted(int(t) for t in os.listdir(f"/proc/{running.pid}/task"))
        assert len(tids) == 3, tids
        # A new worker names itself once it has a processor.
        for tid in tids[1:]:
            wait_for_name(tid, "iou-")
        for stop in ("auto", "never", "all"):
            # The main thread's stack is whole, and the others have none: nothing is missing.
            found = {t["tid"]: t for t in records_of(run(FATHOM, "stack", "--json", "--names-only", f"--stop={stop}", running.pid))}
            assert sorted(found) == tids, (stop, found)
            assert not found[running.pid]["kernel_worker"] and found[running.pid]["stop"] == "entry"
            for tid in tids[1:]:
                t = found[tid]
                assert t["name"].startswith("iou-") and t["kernel_worker"] and not t["frames"] and t["pause_us"] == 0, t
                assert t["why"] == "kernel worker, no user stack", t
        lines = run(FATHOM, "stack", running.pid).splitlines()
        assert lines.count("    (kernel worker, no user stack)") == 2 and not any("0x0000000000000000" in line for line in lines), lines


# Processes whose first thread has ended, and what is no process -------------------------------------

ENDED = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static int worker(int i) { usleep(10000); return i + (int)getppid(); }
static void *run(void *data)
{
	puts("ready");
	fflush(stdout);
	for (int i = 0;;)
		i = worker(i);
	return data;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, run, NULL);
	pthread_exit(NULL);
}
"""


def traced_lines(folder, is_enough, *command):
    """What @command writes, which is interrupted once that is enough."""
    log = os.path.join(folder, "log")

    def written():
        with open(log, encoding="utf-8", errors="replace") as file:
            return file.read()
    if os.path.exists(log):
        os.unlink(log)
    with Running([FATHOM, command[0], "-o" if command[0] == "strace" else "--log", log, *command[1:]]) as tracer:
        until(lambda: os.path.exists(log) and is_enough(written()), "what is to be traced")
        tracer.signal(signal.SIGINT)
        assert tracer.process.wait(HANG_SECONDS) in (0, 130)
    return written()


@contextlib.contextmanager
def ended(folder):
    """Such a process, and the number of its other thread. It has come to no harm afterwards."""
    path = build_text(os.path.join(folder, "ended"), ENDED, "-pthread", flags=("-O1", "-g", "-fpatchable-function-entry=18,16"))
    with Running([path]) as running:
        assert running.line() == "ready"
        wait_for_state(running.pid, "Z")
        live, = (int(t) for t in os.listdir(f"/proc/{running.pid}/task") if int(t) != running.pid)
        yield running, live
        wait_for_state(running.pid, "Z")
        assert os.path.exists(f"/proc/{running.pid}/task/{live}")


@test("a process whose first thread has ended: trace -p, by its number and by that of a thread that lives")
def first_has_ended_traced(folder):
    tap.need_traced_programs()
    with ended(folder) as (running, live):
        for pid in (running.pid, live):
            traced_lines(folder, lambda said: said.count("worker") > 10, "trace", "-p", pid)


@test("a process whose first thread has ended: stack, addr, strace -p, by its number and by that of a thread that lives")
def first_has_ended(folder):
    with ended(folder) as (running, live):
        for pid in (running.pid, live):
            threads = {t["tid"]: t for t in records_of(run(FATHOM, "stack", "--json", "--names-only", "--stop=all", pid, status=(0, 1)))}
            assert {"worker", "run"} & {f["symbol"] for f in threads[live]["frames"]} and threads[live]["stop"] == "entry", threads
            assert run(FATHOM, "addr", "--no-cache", "--names-only", "-p", pid, "worker").split()[1] == "worker+0x0"
            traced_lines(folder, lambda said: "getppid()" in said, "strace", "-p", pid)


@test("a kernel thread and a zombie: each verb says what they are")
def no_program(folder):
    # The first one stays.
    kernel = next((p for p in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()) if flags_of(p) & 0x200000), None)
    if kernel is None:
        raise tap.Skip("no kernel thread is seen in this PID namespace")
    with Running(["sh", "-c", "sleep 0 & echo $!; exec sleep 1000"]) as running:
        zombie = int(running.line())
        wait_for_state(zombie, "Z")
        for pid, what in ((kernel, "is a kernel thread"), (zombie, "is a zombie")):
            for command in (("addr", "-p", pid, "main"), ("find", pid, "main"), ("disasm", pid, "main"), ("stack", pid),
                            ("snapshot", pid, f"{folder}/s"), ("trace", "-p", pid), ("strace", "-p", pid)):
                done = execute(FATHOM, *command, status=(1, 2))
                assert what in done.stderr and "no such process" not in done.stderr and str(pid) in done.stderr, (command, done)


def flags_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[6])
    except OSError:
        return 0


# Threads without a processor ------------------------------------------------------------------------

SPIN = """
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void spin(volatile long *n) { for (;;) ++*n; }
int main(int argc, char **argv)
{
	static volatile long n;
	cpu_set_t set;
	struct sched_param p = { .sched_priority = 0 };
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	sched_setaffinity(0, sizeof set, &set);
	if (argc > 2 && sched_setscheduler(0, SCHED_IDLE, &p))
		return 1;
	puts("ready");
	fflush(stdout);
	spin(&n);
}
"""


@test("a thread that runs when no other wants its processor: its stack is there each time; how long to wait is an option")
def busy(folder):
    path = build_text(os.path.join(folder, "spin"), SPIN, flags=("-O1", "-g", "-D_GNU_SOURCE"))
    cpu = min(os.sched_getaffinity(0))
    with Running([path, cpu, "idle"]) as idle, Running([path, cpu]) as hog, Running([path, cpu]) as other:
        assert idle.line() == hog.line() == other.line() == "ready"
        for i in range(8):
            began = time.monotonic()
            done = execute(FATHOM, "stack", "--json", "--names-only", *(("--stop=all",) if i % 2 else ()), "--stop-timeout", 300, idle.pid)
            took = time.monotonic() - began
            thread, = records_of(done.stdout)
            assert done.returncode == 0 and thread["frames"][-2]["symbol"].startswith("__libc_start") and thread["stop"] == "entry", (done, took)
            assert "no processor to stop on" not in done.stderr or took >= 1, (done, took)
        # A sample waits for it, too: none lacks its stack.
        done = execute(FATHOM, "stack", "--samples", 4, "--every", 0.01, "--stop-timeout", 300, idle.pid, status=0)
        lines = done.stdout.splitlines()
        assert sum(int(line.split()[-1]) for line in lines) == 4 and all(";main" in line for line in lines), lines
        # With little patience it may be late, which is said.
        done = execute(FATHOM, "stack", "--json", "--names-only", "--stop-timeout", 0.001, idle.pid, status=(0, 1))
        thread, = records_of(done.stdout)
        assert thread["reason"] == "timeout" or thread["stop"] == "entry", thread
