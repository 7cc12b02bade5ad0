#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "stacks": the stacks of programs, beside a log of all their calls and returns, gdb and eu-stack."""
import itertools
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import ends  # noqa: E402, F401  pylint: disable=unused-import
import fibers  # noqa: E402, F401  pylint: disable=unused-import
import marks  # noqa: E402, F401  pylint: disable=unused-import
import places  # noqa: E402, F401  pylint: disable=unused-import
import timed  # noqa: E402, F401  pylint: disable=unused-import

from amounts import cells  # noqa: E402
from ask import FATHOM, HANG_SECONDS, execute, records_of, run  # noqa: E402
from building import build, build_text, core_of, need_32_bit  # noqa: E402
from living import Living  # noqa: E402
from paused import gaps, sleepers  # noqa: E402
from peers import compare, settle  # noqa: E402
from running import Running, until, wait_for_state  # noqa: E402
from stepped import GUESSES, WITHOUT, check_arm, check_arm_guesses, shapes, step  # noqa: E402
from suite import BUILD, PROGRAMS, SUITE, functions_of, rounds, stacks_of, test, threads  # noqa: E402


# Beside a log of all calls and returns (stepper.c) ------------------------------------------------

def add_cell(compiler, level, pointer, link):
    @test(f"every instruction: {compiler} {level} {pointer[2:]} {link[-1]}")
    def _(folder):
        counts, shown = step("-s", 1009, shapes(folder, compiler, level, pointer, *link))
        assert counts["walks"] >= 25000 and counts["signals"] >= 20 and counts["frames"] > 5 * counts["walks"], counts
        assert counts["same"] == counts["entry"] == counts["walks"] and not counts["lost"], f"{counts}\n{shown}"


# Each pair of options, with links that alternate.
for cell, link in zip(cells(("gcc", "clang"), ("-O0", "-O1", "-O2", "-O3", "-Os"), ("-fomit-frame-pointer", "-fno-omit-frame-pointer")),
                      itertools.cycle((["-fPIE", "-pie"], ["-static"], ["-static"], ["-fPIE", "-pie"]))):
    add_cell(*cell, link)


SIGNED = "-mbranch-protection=standard"


def add_arm_cell(*command):
    test(f"every instruction of aarch64: {' '.join(command)}")(lambda folder: check_arm(folder, *command))


add_arm_cell("gcc", "-O2", "-fomit-frame-pointer", SIGNED)
add_arm_cell("clang", "-O0", SIGNED)


@test("code of aarch64 without rules: frames that code is followed to are the log's, of all guesses 2 in 1,000 are not")
def arm_without_rules(folder):
    check_arm_guesses(folder, "gcc", "-Os", "-fomit-frame-pointer")
    check_arm_guesses(folder, "clang", "-O2")


def add_thrown(compiler, level):
    @test(f"every instruction of exceptions: {compiler} {level}")
    def _(folder):
        path = os.path.join(folder, "thrown")
        run(compiler, level, "-o", path, os.path.join(PROGRAMS, "thrown.cc"))
        counts, shown = step(path)
        assert counts["walks"] > 60000 and counts["thrown"] == 4 and counts["overwritten"] < 1000, counts
        assert counts["same"] == counts["entry"] == counts["walks"] and not counts["lost"], f"{counts}\n{shown}"


for cell in itertools.product(("g++", "clang++"), ("-O0", "-O2")):
    add_thrown(*cell)


@test("code without rules: frames that code is followed to are the log's, in handlers of signals, too")
def without_rules(folder):
    for compiler, level in (("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O2")):
        program = shapes(folder, compiler, level, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
        counts, shown = step("-s", 2003, "-k", 29, program)
        assert counts["found-decoded"] >= 1000 and counts["found-signal"] >= 40, counts
        for trust in ("registers", "cfi", "signal", "decoded"):
            assert not counts[f"wrong-{trust}"], f"{counts}\n{shown}"


def guessed(folder, every, builds):
    """How many frames were guessed in programs without rules, and how many of them are not the log's."""
    found = wrong = 0
    for compiler, *options in builds:
        counts, shown = step("-s", 2003, "-k", every, shapes(folder, compiler, *options, *WITHOUT))
        assert not any(counts[f"wrong-{trust}"] for trust in ("registers", "cfi", "signal")), f"{options} {counts}\n{shown}"
        found += sum(counts[f"found-{trust}"] for trust in GUESSES)
        wrong += sum(counts[f"wrong-{trust}"] for trust in GUESSES)
    print(f"# guessed {found} frames, {wrong} wrong")
    return found, wrong


@test("code without rules: of frames that are guessed, 2 in 1,000 are wrong at most")
def guesses(folder):
    found, wrong = guessed(folder, 17, (("gcc", "-O0"), ("clang", "-O2")))
    assert found > 8000 and wrong <= found / 500, (found, wrong)


# Old return addresses that vfprintf() of musl 1.2.5 leaves on its stack lead astray, by chance 5 to 13 times in 1,000; of musl 1.2.3
# 0.5 in 1,000 are wrong.
@test("code without rules, of musl also its libc: of frames that are guessed, 20 in 1,000 are wrong at most")
def guesses_musl(folder):
    found, wrong = guessed(folder, 17, (("musl-gcc", "-O1"), ("musl-gcc", "-Os"), ("musl-gcc", "-O0", "-static")))
    assert found > 20000 and wrong <= found / 50, (found, wrong)


@test("every instruction: a wrong rule is found")
def planted_rule(folder):
    counts, _ = step("-n", 20000, shapes(folder, "gcc", "-O2"), by="stepper_planted")
    assert counts["same"] < counts["walks"] and counts["wrong"], counts


@test("the dynamic linker from its first instruction on")
def dynamic_linker(folder):
    counts, shown = step("-a", 1, "-k", 7, shapes(folder, "gcc", "-O2"))
    assert counts["walks"] >= 15000 and counts["same"] == counts["walks"] and not counts["lost"], f"{counts}\n{shown}"


# Beside gdb and eu-stack --------------------------------------------------------------------------

PYTHON = """
import threading
event, ready = threading.Event(), threading.Barrier(21)
def deeper(n):
    if n:
        deeper(n - 1)
    else:
        ready.wait()
        event.wait()
for i in range(20):
    threading.Thread(target=deeper, args=(50,), daemon=True).start()
ready.wait()
print("ready", flush=True)
input()
"""


def check_beside(pid, folder, title, least, **more):
    settle(pid)
    check_stopped(pid, folder, title, least, **more)


def check_stopped(pid, folder, title, least, **more):
    wrong = compare(pid, {"gdb": ["-p", pid], "eu-stack": ["-p", pid]}, folder, title, least, **more)
    assert not wrong, "\n".join(wrong.values())
    # gdb has let it go on.
    core = core_of(pid, folder)
    exe = os.readlink(f"/proc/{pid}/exe")
    wrong = compare(core, {"gdb": [exe, core], "eu-stack": ["--core", core, "-e", exe]}, folder, f"core of {title}", least, **more)
    assert not wrong, "\n".join(wrong.values())


@test("beside gdb and eu-stack: 32 threads, 50 calls deep")
def many_threads(folder):
    with Running(threads(folder, 32, 50)) as program:
        assert program.line() == "ready"
        check_beside(program.pid, folder, "threads", (32, 32 * 50))


@test("beside gdb: a wrong rule is found")
def planted_beside(folder):
    with Running(threads(folder, 8, 50)) as program:
        assert program.line() == "ready"
        settle(program.pid)
        pid = program.pid
        assert not compare(pid, {"gdb": ["-p", pid]}, folder, "threads", (8, 400), peer_names=("gdb",))
        os.kill(pid, signal.SIGSTOP)
        assert compare(pid, {"gdb": ["-p", pid]}, folder, "threads with a wrong rule", (8, 8), planted=True, peer_names=("gdb",))


# Each function is called from C, but outer(), which the evaluator of the module runs itself.
PYTHON_THROUGH_C = """
import faulthandler, sys
def leaf(_): faulthandler.dump_traceback(file=sys.stdout); print("ready", flush=True); input()
def middle(n): return list(map(middle if n else leaf, [n - 1]))
def outer(): return sorted([7], key=middle)
outer()
"""


@test("python3 that calls through C: a frame of the evaluator for each function that faulthandler shows")
def python_through_c(folder):
    with Running(["/usr/bin/python3", "-c", PYTHON_THROUGH_C]) as program:
        shown = [line for line in iter(program.line, "ready") if line.startswith("  File ")]
        assert [line.split()[-1] for line in shown] == ["leaf", *["middle"] * 8, "outer", "<module>"], shown
        wait_for_state(program.pid, "S")
        thread, = stacks_of(program.pid)
        names = functions_of(thread)
        assert names.count("_PyEval_EvalFrameDefault") == len(shown) - 1, names
        assert thread["stop"] == "entry" and {f["trust"] for f in thread["frames"][1:]} == {"cfi"}, thread
        check_beside(program.pid, folder, "python3 through C", (1, 50))


@test("beside gdb and eu-stack: python3, 20 threads, 50 calls deep")
def python(folder):
    with Running(["/usr/bin/python3", "-c", PYTHON]) as program:
        assert program.line() == "ready"
        check_beside(program.pid, folder, "python3", (21, 21 * 12))


def add_program(name, least):
    @test(f"beside gdb and eu-stack: {name}")
    def _(folder):
        with Living(name, folder) as pid:
            check_beside(pid, folder, name, least)


for living, n_least in (("perl", (1, 6)), ("gdb", (2, 10)), ("lua", (1, 8)), ("sqlite3", (1, 6))):
    add_program(living, n_least)


@test("beside gdb and eu-stack: gdb that is attached to perl; perl, which nobody else may trace now, has the stack that it had")
def gdb_of_perl(folder):
    with Living("perl", folder) as perl:
        wait_for_state(perl, "S")
        before, = stacks_of(perl)
        commands = ("set debuginfod enabled off", f"attach {perl}", "python print('ready', flush=True)")
        with Running(["gdb", "-q", "-nx", *(word for c in commands for word in ("-ex", c))]) as gdb:
            while gdb.line() != "ready":
                assert gdb.is_running()
            wait_for_state(perl, "t")
            traced, = stacks_of(perl)
            assert traced["frames"] == before["frames"] and traced["stop"] == "entry", (traced, before)
            check_beside(gdb.pid, folder, "gdb", (2, 10))


CONSTRUCTOR = """
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void construct(void)
{
	puts("ready");
	fflush(stdout);
	pause();
}
int main(void) {}
"""


@test("before main, in a constructor: the stack ends where the dynamic linker has begun")
def in_constructor(folder):
    library = build_text(os.path.join(folder, "constructor.so"), CONSTRUCTOR, "-shared", "-fPIC")
    program = build_text(os.path.join(folder, "program"), CONSTRUCTOR.replace("constructor", "unused"), "-Wl,--no-as-needed", library)
    with Running([program]) as running:
        assert running.line() == "ready"
        wait_for_state(running.pid, "S")
        thread, = stacks_of(running.pid)
        names = functions_of(thread)
        assert names[1:3] == ["construct", "call_init"] and "main" not in names and thread["stop"] == "entry", thread
        assert {f["trust"] for f in thread["frames"][1:]} == {"cfi"}, thread
        # gdb goes on into the arguments.
        check_beside(running.pid, folder, "a constructor", (1, 5), peer_names=("eu-stack",))


@test("gdb while it starts: each stack that was read is whole, and no frame was looked for")
def gdb_starts(_):
    found = []
    while len(found) < 30:
        with Running(["gdb", "-q", "-nx", "-batch", "-ex", "python import json, ssl"], stdin=subprocess.DEVNULL) as gdb:
            while gdb.is_running():
                done = execute(FATHOM, "stack", "--json", "--names-only", "--no-cache", "--tid", gdb.pid, gdb.pid)
                # It may have ended, have had no processor, or have become another program meanwhile.
                found += [t for t in records_of(done.stdout) if t["frames"] and t["reason"] is None]
    for thread in found:
        assert thread["stop"] == "entry" and not any(f["trust"] == "scan" for f in thread["frames"]), thread
    assert sum(any("libc_start" in (name or "") for name in functions_of(thread)) for thread in found) >= 5, len(found)


@test("beside gdb and eu-stack: perf that waits for its input")
def perf(folder):
    with Running(["perf", "script", "-i", "-"]) as running:
        # Before, it may be in the middle of exec(), without a program.
        wait_for_state(running.pid, "S")
        deadline = time.monotonic() + HANG_SECONDS
        while not (thread := stacks_of(running.pid)[0])["syscall"] == "read" or len(thread["frames"]) < 6:
            assert time.monotonic() < deadline, thread
        check_beside(running.pid, folder, "perf", (1, 6))


@test("beside gdb and eu-stack: a program in the vDSO")
def inside_vdso(folder):
    with gaps(folder) as running:
        sleepers(running)
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            os.kill(running.pid, signal.SIGSTOP)
            wait_for_state(running.pid, "T")
            thread, = (t for t in stacks_of(running.pid) if t["tid"] == running.pid)
            if thread["frames"][0]["module"] == "[vdso]":
                break
            assert time.monotonic() < deadline, thread
            os.kill(running.pid, signal.SIGCONT)
            time.sleep(0.01)
        names = functions_of(thread)
        # The clock of some virtual machines is read by a function of its own.
        assert any(name.endswith("clock_gettime") for name in names[:2]) and names[-1] == "_start" and "note_gaps" in names, thread
        assert {f["trust"] for f in thread["frames"][1:]} == {"cfi"}, thread
        check_stopped(running.pid, folder, "vDSO", (9, 9 * 3))


# A name without dots is looked up in the file that HOSTALIASES names: who opens a pipe waits for its writer.
GETADDRINFO = """
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>

static void *look_up(void *unused)
{
	struct addrinfo *found;

	return getaddrinfo("nameless", "80", NULL, &found) ? unused : found;
}

int main(void)
{
	pthread_t thread;

	puts("ready");
	fflush(stdout);
	return pthread_create(&thread, NULL, look_up, NULL) || pthread_join(thread, NULL);
}
"""


@test("beside gdb and eu-stack: a thread inside of getaddrinfo")
def inside_getaddrinfo(folder):
    program = build_text(os.path.join(folder, "lookup"), GETADDRINFO, "-pthread", flags=("-O2",))
    aliases = os.path.join(folder, "aliases")
    os.mkfifo(aliases)
    with Running([program], env=dict(os.environ, HOSTALIASES=aliases)) as running:
        assert running.line() == "ready"
        deadline = time.monotonic() + HANG_SECONDS
        while not any({"getaddrinfo", "__GI_getaddrinfo"} & set(functions_of(t)) and t["syscall"] in ("open", "openat")
                      for t in stacks_of(running.pid)):
            assert time.monotonic() < deadline, stacks_of(running.pid)
        check_beside(running.pid, folder, "getaddrinfo", (2, 12))


@test("beside gdb and eu-stack: bash")
def bash(folder):
    with Running(["bash", "-c", "f() { if [ $1 = 0 ]; then echo ready; read x; else f $(($1 - 1)); fi; }; f 10"]) as program:
        assert program.line() == "ready"
        check_beside(program.pid, folder, "bash", (1, 50))


# What is known of a program ------------------------------------------------------------------------

LINKED = {"PIE": ("gcc", ["-fPIE", "-pie"]), "static": ("gcc", ["-static"]), "musl": ("musl-gcc", []),
          "musl, static": ("musl-gcc", ["-static"])}


def add_depth(name, pointer, depth):
    @test(f"{depth} calls deep: {name}, {pointer[2:]}")
    def _(folder):
        compiler, options = LINKED[name]
        with Running(threads(folder, 1, depth, pointer, *options, compiler=compiler)) as program:
            assert program.line() == "ready"
            wait_for_state(program.pid, "S")
            thread, = stacks_of(program.pid, "--max-frames", 20000)
            names = functions_of(thread)
            # Between them nothing else, and behind them main.
            first = names.index("deeper")
            assert names[first:first + depth + 2] == ["deeper"] * (depth + 1) + ["main"], (names.count("deeper"), names[:5], names[-5:])
            own = {f["trust"] for f in thread["frames"][first:first + depth + 2]}
            assert own <= {"cfi", "decoded"}, own
            assert thread["stop"] == "entry", (thread["stop"], names[-3:])


for linked, with_pointer, how_deep in itertools.product(LINKED, ("-fomit-frame-pointer", "-fno-omit-frame-pointer"),
                                                        (10, 100, 10000)):
    add_depth(linked, with_pointer, how_deep)


def check_unstopped(pid, title):
    """Of the threads, which sleep, at most 5 % are stopped, and 99 % end in the entry."""
    records = stacks_of(pid)
    stopped = sum(r["pause_us"] > 0 for r in records)
    whole = sum(r["stop"] == "entry" for r in records)
    print(f"# {title}: {len(records)} threads, {stopped} stopped, {whole} whole")
    assert stopped <= 0.05 * len(records) and whole >= 0.99 * len(records), (len(records), stopped, whole)


@test("threads that sleep are not stopped: python3, 21 threads")
def unstopped_python(_):
    with Running(["/usr/bin/python3", "-c", PYTHON]) as program:
        assert program.line() == "ready"
        settle(program.pid, stop=False)
        check_unstopped(program.pid, "python3")


def add_unstopped(name):
    @test(f"threads that sleep are not stopped: {name}")
    def _(folder):
        with Living(name, folder) as pid:
            settle(pid, stop=False)
            check_unstopped(pid, name)


for quiet in ("perl", "gdb"):
    add_unstopped(quiet)


@test("a first thread that has ended: the others have their stacks")
def first_thread_ended(folder):
    with Running([*threads(folder, 4, 10)[:1], 4, 10, "leave"]) as program:
        assert program.line() == "ready"
        wait_for_state(program.pid, "Z")
        # On a busy machine a thread may still have to leave the barrier that the first one has passed.
        until(lambda: all(functions_of(t).count("deeper") == 11 for t in stacks_of(program.pid)[1:]), "threads in their places")
        first, *others = stacks_of(program.pid)
        assert first["tid"] == program.pid and not first["frames"] and first["state"] == "Z", first
        assert len(others) == 3 and all(t["stop"] == "entry" and functions_of(t).count("deeper") == 11 for t in others), others


@test("threads that come and go meanwhile: who makes them has its whole stack, the others have no other's frames")
def coming_and_going(folder):
    print("# " + rounds(folder, 1000))


def odd(folder, how, *options):
    """A program that sleeps in a place whose stack is easily misread."""
    path = build(os.path.join(folder, "odd"), os.path.join(PROGRAMS, "odd.c"), "-pthread", *options, flags=("-O1",))
    return Running([path, how])


@test("a frame pointer that is a register like any other, and leads to zeros, does not end a stack")
def no_frame_pointer(folder):
    with odd(folder, "register") as program:
        assert program.line() == "done"
        settle(program.pid, stop=False)
        first, second = stacks_of(program.pid)
        assert functions_of(first)[-1] == "_start" and first["stop"] == "entry", first
        assert functions_of(second)[:2] == ["wander", "wander_in_thread"] and second["stop"] == "entry", second
        assert functions_of(second)[-1] in ("clone3", "__clone3") and second["frames"][1]["trust"] == "scan", second


@test("a call of i386's in a program of x86-64 is not taken for another of that number")
def old_call(folder):
    need_32_bit()
    with odd(folder, "old-call") as program:
        assert program.line() == "done"
        settle(program.pid, stop=False)
        for how in ("auto", "all"):
            (thread,) = stacks_of(program.pid, f"--stop={how}")
            assert functions_of(thread)[:2] == ["old_call", "main"] and not thread["syscall"], thread


if __name__ == "__main__":
    sys.exit(SUITE.run())
