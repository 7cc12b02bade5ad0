# SPDX-License-Identifier: MIT
"""Stacks that a program has allocated itself: how deep they are and how they end is known."""
import os

from building import build, core_of
from running import Running, wait_for_state
from suite import PROGRAMS, functions_of, stacks_of, test

DEPTH = 30
# How each kind ends: what its first function returns to, and why there is no more.
ENDS = {"context": (["__start_context"], "entry"), "top": ([], "entry"), "zero": ([], "no-rule"), "nowhere": ([], "no-rule"),
        "data": ([], "no-rule"), "finish": (["fiber_finish"], "no-rule")}


def check(target, kind):
    thread, = stacks_of(target)
    last, stop = ENDS[kind]
    names = functions_of(thread)
    assert names[1:] == ["deeper"] * (DEPTH + 1) + ["fiber_main"] + last, names
    assert {f["trust"] for f in thread["frames"][1:]} == {"cfi"} and thread["stop"] == stop, thread
    # All are on the stack that the program has allocated, one behind the other.
    stack = [int(f["sp"], 16) for f in thread["frames"]]
    assert stack == sorted(set(stack)) and stack[-1] - stack[0] < 1 << 20, stack
    return thread["frames"]


def add_fiber(kind, pointer):
    @test(f"a fiber, {kind}, {pointer[2:]}: its frames and its end, of the process and of its core")
    def _(folder):
        program = build(os.path.join(folder, "fibers"), os.path.join(PROGRAMS, "fibers.c"), "-D_GNU_SOURCE", pointer,
                        flags=("-O2", "-fno-optimize-sibling-calls"))
        with Running([program, kind, DEPTH]) as running:
            assert running.line() == "ready"
            wait_for_state(running.pid, "S")
            frames = check(running.pid, kind)
            core = core_of(running.pid, folder)
        stored = check(core, kind)
        assert [(f["pc"], f["sp"]) for f in stored] == [(f["pc"], f["sp"]) for f in frames], (stored, frames)


for how in ENDS:
    for fp in ("-fomit-frame-pointer", "-fno-omit-frame-pointer"):
        add_fiber(how, fp)
