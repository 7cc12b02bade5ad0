# SPDX-License-Identifier: MIT
"""How long a program is held up while its stacks are read, by its own clock and by the kernel's counts."""
import mmap
import os
import re
import statistics
import time

from ask import HANG_SECONDS
from building import build
from peers import by_gdb
from running import Running
from suite import PROGRAMS, functions_of, stacks_of, test

SLEEPERS = 8


def gaps(folder):
    path = build(os.path.join(folder, "gaps"), os.path.join(PROGRAMS, "gaps.c"), "-D_GNU_SOURCE", "-pthread", flags=("-O2",))
    return Running([path, os.path.join(folder, "longest"), SLEEPERS])


def longest_gaps(folder, rounds, work):
    """The longest gap in microseconds of each round, while @work is done."""
    found = []
    with open(os.path.join(folder, "longest"), "r+b") as file, mmap.mmap(file.fileno(), 4096) as shared:
        for _ in range(rounds):
            shared[:8] = bytes(8)
            work()
            found.append(int.from_bytes(shared[:8], "little") / 1000)
    return found


@test("the longest gap in a program that reads the clock: by fathom, all threads stopped or those that run, shorter than by gdb")
def shorter_than_gdb(folder):
    with gaps(folder) as running:
        assert running.line() == "ready"
        pauses = {"auto": [], "all": []}

        def ask(option):
            thread = next(t for t in stacks_of(running.pid, f"--stop={option}") if t["tid"] == running.pid)
            if thread["reason"] != "timeout":  # it has no processor at the moment
                assert "note_gaps" in functions_of(thread) and thread["pause_us"] > 0, thread
                pauses[option].append(thread["pause_us"])

        kinds = {"nobody asks": (9, lambda: time.sleep(0.1)), "--stop=auto": (25, lambda: ask("auto")),
                 "--stop=all": (25, lambda: ask("all")), "gdb": (5, lambda: by_gdb(["-p", running.pid], folder))}
        least = {}
        for kind, (rounds, work) in kinds.items():
            found = longest_gaps(folder, rounds, work)
            # Other programs make gaps longer, never shorter: the least is what the work itself takes.
            least[kind] = min(found)
            print(f"# {kind}: the longest gap is {least[kind]:.0f} us at least, {statistics.median(found):.0f} in the median of {rounds}")
        for option, told in pauses.items():
            if told:
                print(f"# --stop={option}: {len(told)} times, {statistics.median(told)} us by its own account")
            assert least[f"--stop={option}"] < least["gdb"], least


def switches(pid):
    """{tid: how often each thread has given its processor away by itself}."""
    found = {}
    for tid in map(int, os.listdir(f"/proc/{pid}/task")):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as status:
            found[tid] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])
    return found


def sleepers(running):
    """The numbers of the threads that sleep, once they do."""
    assert running.line() == "ready"
    deadline = time.monotonic() + HANG_SECONDS
    while len(tids := [t["tid"] for t in stacks_of(running.pid, "--stop=never") if t["syscall"] == "pause"]) < SLEEPERS:
        assert time.monotonic() < deadline, tids
    return tids


def asleep(pid, tids, option):
    """{tid: its stack}, of which those of the sleepers are whole."""
    stacks = {t["tid"]: t for t in stacks_of(pid, f"--stop={option}")}
    for tid in tids:
        thread = stacks[tid]
        assert thread["reason"] == "timeout" and option == "all" or \
            "wait_for_ever" in functions_of(thread) and thread["stop"] == "entry", thread
    return stacks


@test("threads that sleep do not run while their stacks are read, by the kernel's count of switches; stopped ones do")
def sleepers_sleep_on(folder):
    with gaps(folder) as running:
        tids = sleepers(running)
        for option in ("never", "auto", "all"):
            before = switches(running.pid)
            stacks = asleep(running.pid, tids, option)
            after = switches(running.pid)
            woken = {tid for tid in tids if after[tid] > before[tid]}
            if option == "all":
                # One may have had no processor in time.
                assert woken and woken >= {tid for tid in tids if stacks[tid]["pause_us"]}, (before, after, stacks)
            else:
                assert not woken and not any(stacks[tid]["pause_us"] for tid in tids), (option, before, after, stacks)
