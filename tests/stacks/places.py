# SPDX-License-Identifier: MIT
"""Stacks of processes that are not like others: below another root, deleted, hidden from their user, held up in vfork()."""
import os
import re
import shutil

import tap

from ask import FATHOM, NOBODY, as_user, copy_for_all, execute, records_of, run
from building import build, build_text
from counting import is_instrumented
from running import Running, child_of, in_namespaces, wait_for_state
from suite import PROGRAMS, functions_of, stacks_of, test

DEEP = ["deeper"] * 11
FLAGS = ("-O2", "-fno-optimize-sibling-calls")


def program_of(folder, name, *options, compiler="gcc"):
    return build(os.path.join(folder, name), os.path.join(PROGRAMS, name + ".c"), "-D_GNU_SOURCE", *options, compiler=compiler,
                 flags=FLAGS)


def needs_of(path):
    """The dynamic linker of a program, and what it maps for it."""
    linker = re.search(r"interpreter: (/\S+)\]", run("readelf", "-lW", path))[1]
    return {linker, *re.findall(r"(/\S+) \(0x", run("ldd", path, status=None))}


def steps_of(thread):
    """What does not depend on where things are: names with offsets, and how each frame was found."""
    return [(f["symbol"], f["offset"], f["module_address"], f["trust"]) for f in thread["frames"]]


def add_container(library, compiler):
    @test(f"a process in namespaces and a root of its own, {library}: the stack that it has outside", needs_root=True)
    def _(folder):
        path = program_of(folder, "mapped", compiler=compiler)
        root = os.path.join(folder, "root")
        # The program's path is that of another program outside.
        for file, inside in [(path, "/usr/bin/env"), *((p, p) for p in needs_of(path))]:
            os.makedirs(os.path.dirname(root + inside), exist_ok=True)
            shutil.copy(file, root + inside)
        os.mkdir(f"{root}/tmp", 0o1777)
        with Running([path]) as running:
            assert running.line() == "ready"
            wait_for_state(running.pid, "S")
            try:
                outside, = stacks_of(running.pid)
            finally:
                os.unlink(f"/tmp/perf-{running.pid}.map")
        names = [name for name, *_ in steps_of(outside)]
        assert names[-1].startswith("_start") and "main" in names, names
        first = names.index("deeper")
        assert names[first:first + 15] == DEEP + ["first", "made 2", "made 1", "made 0"], names
        with Running(in_namespaces("-m", "-p", "--kill-child", then=f'exec chroot "{root}" /usr/bin/env')) as running:
            assert running.line() == "ready"
            pid = child_of(running.pid)
            wait_for_state(pid, "S")
            # In its own /tmp, by its own number.
            assert os.listdir(f"{root}/tmp") == ["perf-1.map"]
            inside, = stacks_of(pid)
        assert steps_of(inside) == steps_of(outside) and inside["stop"] == outside["stop"] == "entry", (inside, outside)


add_container("glibc", "gcc")
add_container("musl", "musl-gcc")


@test("a process whose program was deleted: its whole stack")
def deleted(folder):
    with Running([program_of(folder, "vforks"), 10]) as running:
        assert running.line() == "ready"
        os.unlink(os.path.join(folder, "vforks"))
        # It may still be on its way back from writing that.
        wait_for_state(child_of(running.pid), "S")
        thread, = stacks_of(child_of(running.pid))
        names = functions_of(thread)
        assert names[1:] == ["be_child", "spawn", *DEEP, "main", *names[-3:]] and names[-1] == "_start", names
        assert thread["stop"] == "entry", thread


@test("the parent of a vfork(), which no signal wakes, and its child, which is on the same stack")
def vfork(folder):
    with Running([program_of(folder, "vforks"), 10]) as running:
        assert running.line() == "ready"
        child = child_of(running.pid)
        wait_for_state(running.pid, "D")
        wait_for_state(child, "S")
        for option in ("auto", "never", "all"):
            parent, = stacks_of(running.pid, f"--stop={option}")
            assert (parent["state"], parent["syscall"], parent["stop"]) == ("D", "vfork", "entry"), parent
            names = functions_of(parent)
            assert names[1:] == ["spawn", *DEEP, "main", *names[-3:]] and names[0].endswith("vfork"), names
        below, = stacks_of(child)
        assert functions_of(below)[1:] == ["be_child", *names[1:]] and below["stop"] == "entry", below
        # From the same call on, frame by frame.
        assert [f["sp"] for f in below["frames"][3:]] == [f["sp"] for f in parent["frames"][2:]], (below, parent)




def as_told(folder, pid, *words):
    """(threads, what is said) to a user who is not root. @words: of env(1)."""
    done = execute("env", "XDG_CACHE_HOME=/nonexistent", *words, copy_for_all(folder), "stack", "--json", "--names-only", pid,
                   user=NOBODY, status=(0, 1, 2))
    return records_of(done.stdout), done.stderr


@test("a user's own process whose program was deleted: frames without names, why, and what helps", needs_root=True)
def deleted_for_user(folder):
    path = program_of(folder, "vforks")
    with Running(as_user(NOBODY, path, 10)) as running:
        assert running.line() == "ready"
        whole, = stacks_of(running.pid)
        os.unlink(path)
        (thread,), said = as_told(folder, running.pid)
        assert [f["pc"] for f in thread["frames"]] == [f["pc"] for f in whole["frames"]] and thread["stop"] == "entry", thread
        # Only what the dynamic linker needs is in memory.
        assert not {"deeper", "main"} & set(functions_of(thread)), thread
        assert said == f"fathom: {path}: has been deleted or replaced (run as root, who may still read what is mapped)\n"


@test("a process that is not dumpable: why its user has no stack of it, and what helps; root has it", needs_root=True)
def not_dumpable(folder):
    text = "#include <sys/prctl.h>\n#include <unistd.h>\nint main(void) { prctl(PR_SET_DUMPABLE, 0); (void)!write(1, \"ready\\n\", 6); pause(); }"
    with Running(as_user(NOBODY, build_text(os.path.join(folder, "hidden"), text))) as running:
        assert running.line() == "ready"
        wait_for_state(running.pid, "S")
        assert as_told(folder, running.pid) == \
            ([], f"fathom: {running.pid}: is not dumpable: not even its own user may look at it (run as root)\n")
        thread, = stacks_of(running.pid)
        assert functions_of(thread)[1] == "main" and thread["stop"] == "entry", thread


@test("a user whom Yama forbids to trace: each thread says so, and what helps", needs_root=True)
def yama(folder):
    """Few kernels have Yama: what it refuses is refused by a library that is preloaded."""
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer's library would have to come first")
    mode = os.path.join(folder, "ptrace_scope")
    library = build(os.path.join(folder, "yama.so"), os.path.join(PROGRAMS, "yama.c"), "-D_GNU_SOURCE", "-shared", "-fPIC",
                    f'-DYAMA_MODE_FILE="{mode}"')
    with Running(as_user(NOBODY, program_of(folder, "vforks"), 10)) as running:
        assert running.line() == "ready"
        for number in (0, 1, 2):
            with open(mode, "w", encoding="ascii") as file:
                file.write(f"{number}\n")
            (thread,), _ = as_told(folder, child_of(running.pid), f"LD_PRELOAD={library}")
            assert not thread["frames"] and thread["reason"] == "no-permission", thread
            assert ("kernel.yama.ptrace_scope forbids it (run as root, or set it to 0)" in thread["why"]) == (number > 0), thread
