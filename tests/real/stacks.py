# SPDX-License-Identifier: MIT
"""Stacks through code that real programs have compiled. Python 3.13 and libgcc 14 are Debian 13's, in a tree that
debootstrap makes once."""
import contextlib
import itertools
import json
import os
import random
import subprocess
import tempfile
import threading
import time

import tap

from ask import FATHOM, execute, run
from emitted import N, PITCH, Emitted, check, check_not
from jit import node
from running import Running, mappings_of
from stepped import ARM, check_arm, check_arm_guesses
from suite import rounds

SUITE = "trixie"
TREE = os.path.join(os.environ["BUILD"], "real-" + SUITE)

# Each function waits in the next: the stack has all of them, once each.
PYTHON = """
import time
def leaf(seconds): time.sleep(seconds)
def middle(seconds): return leaf(seconds) or 1
def outer(seconds): return middle(seconds) or 2
outer(0)
# The jitdump is written through a buffer: these push the others out.
for i in range(2000):
    exec(f"def other{i}(): pass\\nother{i}()")
outer(1000)
"""


MAKING = threading.Lock()


def tree():
    if os.geteuid():
        raise tap.Skip("only root can make a tree by debootstrap")
    with MAKING:
        return made_tree()


def made_tree():
    if not os.path.exists(os.path.join(TREE, "usr/bin/python3.13")):
        # The libraries are those that libfathom needs.
        subprocess.run(["debootstrap", "--variant=minbase",
                        "--include=python3,libstdc++6,gdb,libunwind8,libunwind-19,libdeflate0,libzstd1,liblzma5,liblz4-1,zlib1g",
                        SUITE, TREE], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    return TREE


def frames_of(pid):
    done = execute(FATHOM, "stack", "--json", "--no-cache", "--tid", pid, pid)
    assert done.returncode in (0, 1), done
    (thread,) = (json.loads(line) for line in done.stdout.splitlines())
    return thread


def python(option, names_from, trust):
    with open(os.path.join(tree(), "tmp", "deep.py"), "w", encoding="ascii") as file:
        file.write(PYTHON)
    with Running(["chroot", TREE, "python3", "-X", option, "/tmp/deep.py"]) as running:
        time.sleep(3)
        thread = frames_of(running.pid)
        frames = thread["frames"]
        assert thread["stop"] == "entry" and frames[-1]["symbol"] == "_start", thread
        made = [i for i, f in enumerate(frames) if not f["module"]]
        names = [frames[i]["symbol"] for i in made]
        assert names == [f"py::{name}:/tmp/deep.py" for name in ("leaf", "middle", "outer", "<module>")], (names, frames)
        assert all(frames[i]["source"] == names_from and frames[i + 1]["trust"] == trust for i in made), frames
        assert not any(f["trust"] == "scan" for f in frames), frames


def python_jitdump(_):
    python("perf_jit", "jitdump", "jit-cfi")


def python_map(_):
    python("perf", "perf-map", "decoded")


def node_unwinding(folder):
    with node(folder, "--perf-prof", "--perf-prof-unwinding-info") as running:
        time.sleep(3)
        found = 0
        for _ in range(50):
            thread = frames_of(running.pid)
            if thread["reason"] == "timeout":  # it has no processor at the moment
                continue
            assert thread["stop"] == "entry" and thread["frames"][-1]["symbol"] == "_start", thread
            assert not any(f["trust"] == "scan" for f in thread["frames"]), thread
            found += any(f["symbol"] == "Builtins_JSEntry" for f in thread["frames"])
            if found == 5:
                return
        raise AssertionError(f"{found} stacks")


class Registering(Emitted):
    """emitter.c in the tree, which registers @number sections with the tree's libgcc: of the functions that call each
    other, and of others in between."""

    def __init__(self, folder, number):
        super().__init__(folder, TREE, max(1, number // N))
        self.tell("library libgcc_s.so.1")
        (library,) = {m.path for m in mappings_of(self.pid) if "libgcc_s" in m.path}
        # From version 13 on there is a tree.
        assert library.startswith(TREE) and "Name: GCC_13.0.0" in run("readelf", "-VW", library), library
        if number == 1:
            sections = [(True, (range(N), 0))]
        else:
            sections = [(True, ([i], 0)) for i in range(N)]
            sections += [(False, ([0], PITCH * i)) for i in range(number) if i % self.spread]
        assert len(sections) == number
        # In no order: nodes of the tree are split anywhere.
        random.Random(number).shuffle(sections)
        self.ours, self.others, data = [], [], b""
        for is_ours, (functions, moved) in sections:
            at = self.data + len(data)
            data += self.frames(at, functions, moved=moved)[0]
            data += bytes(-len(data) % 8)
            (self.ours if is_ours else self.others).append(at)
            self.poke(at, data[at - self.data:])
            self.call("__register_frame", at)

    def deregister(self, sections):
        for at in sections:
            self.call("__deregister_frame", at)


def add_registered(number):
    def check_tree(_):
        tree()
        with tempfile.TemporaryDirectory(dir=os.path.join(TREE, "tmp")) as folder, Registering(folder, number) as e:
            e.go()
            check(e, e.pid)
            half = len(e.others) // 2
            e.deregister(e.others[:half])
            check(e, e.pid)
            e.deregister(e.ours)
            check_not(e, e.pid)
            e.deregister(e.others[half:])
            check_not(e, e.pid)
    return f"a stack through code that is registered with libgcc 14, {number} registrations, until it is not", check_tree


def ten_thousand_rounds(folder):
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(Running(["sh", "-c", "while :; do :; done"]))
        print("# " + rounds(folder, 10000))


LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
POINTERS = ("-fomit-frame-pointer", "-fno-omit-frame-pointer")


def arm_cells(folder):
    for cell in itertools.product(ARM, LEVELS, POINTERS, ("-mbranch-protection=none", "-mbranch-protection=standard")):
        check_arm(folder, *cell)


def arm_guesses(folder):
    for cell in itertools.product(ARM, LEVELS, POINTERS):
        check_arm_guesses(folder, *cell)


TESTS = [("every instruction of aarch64: both compilers, -O0 to -Os, with and without frame pointers, PAC and BTI", arm_cells),
         ("every instruction of aarch64 without rules, of the same builds", arm_guesses),
         ("stacks read 10,000 times while threads come and go and others take the processors: no frame of another", ten_thousand_rounds),
         *map(add_registered, (1, 100, 5000)),
         ("a stack of Python 3.13 with -X perf_jit: each function once, by the jitdump's own description", python_jitdump),
         ("a stack of Python 3.13 with -X perf: each function once, through the trampolines", python_map),
         ("stacks of node with --perf-prof-unwinding-info: down to the start of the program", node_unwinding)]
