# SPDX-License-Identifier: MIT
"""Whether a stack is whole: those of threads that are damaged on purpose are not, and those that are made in unusual ways are."""
import glob
import itertools
import os

from ask import FATHOM, execute, query, run
from building import build, build_text, core_of, need_32_bit
from running import Running, until, wait_for_state
from suite import PROGRAMS, functions_of, stacks_of, test

LEVELS = (("-O0",), ("-O2", "-fomit-frame-pointer"), ("-O2", "-fno-omit-frame-pointer"))


def started(folder, name, compiler, *options, arguments=()):
    path = build(os.path.join(folder, name), os.path.join(PROGRAMS, f"{name}.c"), "-D_GNU_SOURCE", "-pthread", *options,
                 compiler=compiler, flags=())
    return Running([path, *arguments])


def stopped_of(pid):
    """The stacks of a process. A busy machine may not stop each thread in time."""
    def all_stopped():
        threads = stacks_of(pid)
        return all(t["reason"] != "timeout" for t in threads) and threads
    return until(all_stopped, "a stop of all threads")


def captured(running, folder, check):
    """Checks the process, its core and a snapshot of it; cores do not have the names of threads."""
    wait_for_state(running.pid, "S")
    threads = stopped_of(running.pid)
    names = {t["tid"]: t["name"] for t in threads}
    check(threads, names)
    check(stacks_of(core_of(running.pid, folder)), names)
    snapshot = os.path.join(folder, "snapshot")
    run(FATHOM, "snapshot", "--stacks", "--stop=all", running.pid, snapshot)
    check(stacks_of(snapshot), names)


def check_damaged(threads, names):
    damaged = [t for t in threads if names[t["tid"]].count("-") == 2]
    assert len(damaged) == 240, len(damaged)
    for thread in damaged:
        told = names[thread["tid"]], thread["stop"], functions_of(thread)
        assert thread["stop"] in ("no-rule", "unreadable", "register"), told
        # Up to the damage all is there, and what is no code is no frame.
        assert told[2][:3] == ["pause", "look", "damage_victim"], told
        assert all(f["module"] for f in thread["frames"]), (told, thread["frames"])


def add_damaged(*options):
    @test(f"240 stacks that were overwritten, or lost their outer pages: none is whole: {' '.join(options)}")
    def _(folder):
        with started(folder, "damaged", "gcc", *options) as running:
            assert running.line() == "ready"
            captured(running, folder, check_damaged)


for level in (*LEVELS, ("-O1", "-fsplit-stack")):
    add_damaged(*level)


def check_whole(n):
    def check(threads, names):
        kinds = [t for t in threads if names[t["tid"]].startswith("kind ")]
        assert len(kinds) == n, (len(kinds), n)
        for thread in kinds:
            functions = functions_of(thread)
            assert thread["stop"] == "entry", (names[thread["tid"]], thread["stop"], functions)
            assert "first" in functions and "deeper" in functions, (names[thread["tid"]], functions)
    return check


def add_whole(compiler, *options):
    @test(f"stacks of fibers, handlers and threads, some made by hand: each is whole: {compiler} {' '.join(options)}")
    def _(folder):
        with started(folder, "whole", compiler, *options, arguments=("12",)) as running:
            ready, n = running.line().split()
            assert ready == "ready" and int(n) == (84 if "-DNO_CONTEXT" in options else 120), n
            captured(running, folder, check_whole(int(n)))


for level in LEVELS:
    add_whole("gcc", *level)
for link in ("-static", "-pie"):
    add_whole("musl-gcc", "-O2", "-DNO_CONTEXT", "-Wl,--build-id", link)


def add_higher(kind, compiler, *options):
    @test(f"a stack that goes on at a higher address: {kind}, {compiler} {' '.join(options)}: it is whole, of the process and its snapshot")
    def _(folder):
        with started(folder, "higher", compiler, *options, "-O1", "-fno-stack-clash-protection", "-Wno-infinite-recursion",
                     arguments=(kind,)) as running:
            ready, depth = running.line().split()
            assert ready == "ready"
            wait_for_state(running.pid, "S")
            snapshot = os.path.join(folder, "snapshot")
            run(FATHOM, "snapshot", "--stacks", running.pid, snapshot)
            for how in ((running.pid, "--stop=never"), (running.pid, "--stop=all"), (snapshot,)):
                for thread in stacks_of(*how):
                    names = functions_of(thread)
                    # The last one may have faulted before it counted itself.
                    assert kind == "condition" or names.count("deep") - int(depth) in (1, 2), (depth, names)
                    assert thread["stop"] == "entry", (how, thread["stop"], names)


for cell in itertools.product(("overflow", "nested"), (("gcc",), ("gcc", "-static"), ("musl-gcc", "-Wl,--build-id"))):
    add_higher(cell[0], *cell[1])
add_higher("condition", "gcc")
add_higher("condition", "musl-gcc", "-static", "-Wl,--build-id")


WAITS = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char room[100];
__attribute__((noinline)) static void *work(void *data)
{
        memset(room, 1, sizeof room);
        (void)!write(1, "ready\\n", 6);
        pause();
        return data;
}
int main(void)
{
        pthread_t t;
        pthread_create(&t, NULL, work, NULL);
        work(NULL);
}
"""


@test("musl's C library, whose assembly has neither sizes nor rules: waits and starts of threads are not called memset")
def musl_waits(folder):
    path = build_text(os.path.join(folder, "waits"), WAITS, "-O1", compiler="musl-gcc")
    with Running([path]) as running:
        assert [running.line(), running.line()] == ["ready", "ready"]
        for tid in os.listdir(f"/proc/{running.pid}/task"):
            wait_for_state(int(tid), "S")
        threads = stacks_of(running.pid, "--stop=all")
        names = [functions_of(t) for t in threads]
        # The places are in libc's .text behind memset, of which the dynamic symbols name no part.
        assert [n[n.index("pause"):][1] for n in names] == ["work", "work"], names
        assert all("memset" not in n and n[0] is None for n in names) and names[1][-1] is None, names
        # All of memset itself has its name: up to its last return, over two others.
        libc = threads[0]["frames"][0]["module"]
        start, = (int(line.split()[0], 16) for line in run("nm", "-D", libc).splitlines() if line.split()[-1] == "memset")
        code = [line for line in run("objdump", "-d", f"--start-address={start:#x}", f"--stop-address={start + 0x400:#x}", libc).splitlines()
                if line.startswith(" ")]
        ends = [i for i, line in enumerate(code) if line.split("\t")[-1].split()[0] in ("ret", "jmp")][:3]
        places = [line.split(":")[0].strip() for line in code[:ends[2] + 1]]
        assert {r["symbol"] for r in query("addr", libc, places)[0]} == {"memset"}, places


ARM = """
#include <pthread.h>
#include <stdlib.h>
__attribute__((noinline)) int deeper(int n)
{
	volatile char room[40];

	room[0] = (char)n;
	if (n > 0)
		return deeper(n - 1) + room[0];
	abort();
}

static void *first(void *unused)
{
	deeper(5);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1 && !pthread_create(&thread, NULL, first, argv))
		pthread_join(thread, NULL);
	return deeper(7);
}
"""


def add_arm(*options):
    @test(f"static aarch64, a core of QEMU's: the stacks of the first thread and of another one are whole: {' '.join(options)}")
    def _(folder):
        program = build_text(os.path.join(folder, "program"), ARM, "-static", *options, compiler="aarch64-linux-gnu-gcc", flags=())
        for arguments, depth, ends in (("", 8, ("main", "_start")), ("thread", 6, ("first", "thread_start"))):
            for old in glob.glob(os.path.join(folder, "*.core")):
                os.remove(old)
            execute("sh", "-c", f"ulimit -c unlimited; exec qemu-aarch64 ./program {arguments}", cwd=folder)
            core, = glob.glob(os.path.join(folder, "qemu_program_*.core"))
            threads = stacks_of(core, "--exe", program)
            assert len(threads) == 1 + (arguments != ""), threads
            for thread in threads:
                names = functions_of(thread)
                assert thread["stop"] == "entry", (thread["stop"], names)
            died, = (functions_of(t) for t in threads if "deeper" in functions_of(t))
            assert died.count("deeper") == depth and ends[0] in died and died[-1] == ends[1], died


for level in LEVELS:
    add_arm(*level)


I386 = """
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>
__attribute__((noinline)) int deeper(int n)
{
	volatile char room[40];

	room[0] = (char)n;
	if (n > 0)
		return deeper(n - 1) + room[0];
	puts("ready");
	fflush(stdout);
	return pause();
}

static void first(void)
{
	(void)(deeper(5) + 1);
}

int main(void)
{
	static char room[65536];
	static ucontext_t here, there;

	getcontext(&there);
	there.uc_stack.ss_sp = room;
	there.uc_stack.ss_size = sizeof room;
	there.uc_link = &here;
	makecontext(&there, first, 0);
	return swapcontext(&here, &there);
}
"""


@test("a fiber of makecontext() in a program of i386 is whole")
def i386_context(folder):
    need_32_bit()
    program = build_text(os.path.join(folder, "program"), I386, "-static", compiler="i686-linux-gnu-gcc", flags=("-O1",))
    with Running([program]) as running:
        assert running.line() == "ready"
        wait_for_state(running.pid, "S")
        thread, = stacks_of(running.pid)
        names = functions_of(thread)
        assert thread["stop"] == "entry" and names.count("deeper") == 6 and "first" in names, (thread["stop"], names)


@test("with few files that may be open, a thread has its frames or the reason; nothing is left out in silence")
def few_files(_):
    with Running(["sleep", "100000"]) as running:
        wait_for_state(running.pid, "S")
        whole = run(FATHOM, "stack", "--no-cache", running.pid)
        seen = set()
        for n in range(5, 40):
            done = execute("sh", "-c", f'ulimit -n {n}; exec "$@"', "sh", FATHOM, "stack", "--no-cache", running.pid)
            if done.stdout == whole:
                seen.add("whole")
            elif "(limit: too many files are open (ulimit -n))" in done.stdout:
                seen.add("thread")
            elif "#0 " in done.stdout:
                # Some names lack: their files could not be opened.
                assert done.stdout.count("\n#") == whole.count("\n#"), (n, done)
            else:
                assert done.returncode == 2 and "Too many open files" in done.stderr, (n, done)
                seen.add("process")
        assert seen == {"whole", "thread", "process"}, seen
