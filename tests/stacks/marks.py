# SPDX-License-Identifier: MIT
"""What stacks say beside the names: signal trampolines; what threads wait for."""
import os
import re

from ask import FATHOM, run
from building import build, build_text
from running import Running, wait_for_state
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
    check_locks(folder, "-static", compiler="i686-linux-gnu-gcc")
