# SPDX-License-Identifier: MIT
"""Stacks through code that real programs have compiled. Python 3.13 is Debian 13's, in a tree that debootstrap makes once."""
import json
import os
import subprocess
import time

import tap

from ask import FATHOM, execute
from jit import node
from running import Running

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


def tree():
    if os.geteuid():
        raise tap.Skip("only root can make a tree by debootstrap")
    if not os.path.exists(os.path.join(TREE, "usr/bin/python3.13")):
        subprocess.run(["debootstrap", "--variant=minbase", "--include=python3", SUITE, TREE], check=True,
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


TESTS = [("a stack of Python 3.13 with -X perf_jit: each function once, by the jitdump's own description", python_jitdump),
         ("a stack of Python 3.13 with -X perf: each function once, through the trampolines", python_map),
         ("stacks of node with --perf-prof-unwinding-info: down to the start of the program", node_unwinding)]
