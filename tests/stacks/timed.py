# SPDX-License-Identifier: MIT
"""Threads that a stop would end the call of are read while they sleep: of their registers, pc and sp are known."""
import itertools
import os

from ask import FATHOM, run
from building import build
from running import Running, wait_for_state
from stepped import shapes, step
from suite import PROGRAMS, functions_of, stacks_of, test

FUNCTIONS = {"epoll": ("epoll_wait", "by_epoll"), "semtimedop": ("semtimedop", "by_semaphore"), "aligned": ("epoll_wait", "by_aligned"),
             "variable": ("epoll_wait", "by_variable")}
FRAME = "-fno-omit-frame-pointer"


def waiting(folder, how, *compiler):
    path = build(os.path.join(folder, "timed"), os.path.join(PROGRAMS, "timed.c"), "-fno-optimize-sibling-calls", *compiler[1:],
                 compiler=compiler[0], flags=())
    running = Running([path, how])
    assert running.line() == "ready"
    wait_for_state(running.pid, "S")
    return running


def check_whole(thread, how):
    names = functions_of(thread)
    assert names[:10] == [*FUNCTIONS[how], "many", *["deeper"] * 6, "main"] and names[-1] == "_start", names
    assert thread["stop"] == "entry", thread


def add_timed(how, *compiler):
    @test(f"{how} with a timeout, below functions that keep a frame pointer: whole, and not stopped: {' '.join(compiler)}")
    def _(folder):
        with waiting(folder, how, *compiler) as running:
            for options in ((), ("--stop=never",)):
                thread, = stacks_of(running.pid, *options)
                check_whole(thread, how)
                assert thread["pause_us"] == 0 and "decoded" in {f["trust"] for f in thread["frames"]}, thread
            stopped, = stacks_of(running.pid, "--stop=all")
            assert [(f["pc"], f["sp"]) for f in stopped["frames"]] == [(f["pc"], f["sp"]) for f in thread["frames"]], stopped


def add_aligned(*compiler):
    @test(f"a stack that was realigned, with a timeout: of 16 many are whole, and no frame is wrong: {' '.join(compiler)}")
    def _(folder):
        whole = 0
        # How far the stack is from its alignment differs. Old return addresses in between may prove, too: then nothing does.
        for _ in range(16):
            with waiting(folder, "aligned", *compiler) as running:
                thread, = stacks_of(running.pid)
                stopped, = stacks_of(running.pid, "--stop=all")
                check_whole(stopped, "aligned")
                frames = [(f["pc"], f["sp"]) for f in thread["frames"]]
                assert frames == [(f["pc"], f["sp"]) for f in stopped["frames"]][:len(frames)], (thread, stopped)
                assert thread["stop"] == ("entry" if len(frames) == len(stopped["frames"]) else "register"), thread
                whole += thread["stop"] == "entry"
        print(f"# {whole} of 16 are whole")
        # What lies in between depends on the environment: mostly it is 16, in some it was 9.
        assert whole >= 4, whole


CELLS = (("gcc", "-O0"), ("gcc", "-O2", FRAME), ("clang", "-O1", FRAME))
for kind, cell in itertools.product(("epoll", "semtimedop"), CELLS):
    add_timed(kind, *cell)
for cell, size in itertools.product(CELLS, (64, 256)):
    add_aligned(*cell, f"-DALIGNED={size}")


@test("epoll_wait with a timeout, below a variable array: the stack ends there, and the remedy is named")
def variable_array(folder):
    with waiting(folder, "variable", "gcc", "-O0") as running:
        text = run(FATHOM, "stack", running.pid, status=1)
        assert "(register: " in text and "by_variable" in text and "--stop=all" in text, text
        thread, = stacks_of(running.pid, "--stop=all")
        check_whole(thread, "variable")


@test("every instruction, from pc and sp alone: no frame is wrong, and most walks reach the entry")
def from_two_registers(folder):
    for cell in CELLS:
        counts, shown = step("-p", 1, "-s", 1009, "-k", 5, shapes(folder, *cell))
        assert counts["walks"] >= 6000 and counts["found-decoded"] >= 600, counts
        assert not counts["wrong"] and not counts["lost"], f"{counts}\n{shown}"
        assert counts["same"] == counts["entry"] >= 0.8 * counts["walks"], f"{counts}\n{shown}"
