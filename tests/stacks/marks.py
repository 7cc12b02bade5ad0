# SPDX-License-Identifier: MIT
"""What stacks say beside the names: signal trampolines."""
import os
import re

from ask import FATHOM, run
from building import build_text
from running import Running, wait_for_state
from suite import stacks_of, test

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
