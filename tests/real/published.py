# SPDX-License-Identifier: MIT
"""Code that programs publish, as Debian 13's libgcc (14), libunwind (1.8), LLVM libunwind (19) and gdb see it, in the tree of
stacks.py."""
import functools
import os
import shutil
import threading

from ask import run
from chain import LIBRARIES, check_chain, environment, functions_of, program, storm, told
from stacks import TREE, tree


LOCK = threading.Lock()


@functools.lru_cache(maxsize=None)
def copied(path):
    home = os.path.join(tree(), "root")
    shutil.copy(path, home)
    return "/root/" + os.path.basename(path)


def inside(name):
    """The command that runs the program @name in the tree, with the library beside it."""
    with LOCK:
        copied(os.path.join(LIBRARIES, "libfathom.so.0"))
        return ["chroot", TREE, copied(program(name, "-Wl,-rpath,/root"))]


def walks(_):
    for mode, words in (("backtrace", ()), ("nongnu", ("libunwind.so.8",)), ("llvm", ("libunwind.so.1",))):
        said = told(mode, *words, command=inside("publisher"))
        check_chain(said["frame"], mode)
        assert said["frame"][-1] == "_start", said


def thrown(_):
    assert told("throw", command=inside("publisher"))["caught"] == ["1000"]


def storms(_):
    for _ in range(3):
        said = {key: int(value) for key, value in storm("storm", "5", command=inside("storm")).items()}
        assert said["thrown"] == said["caught"] > 1000 and said["missed"] == 0 and said["commits"] > 1000, said


def children(_):
    assert storm("forked", consumers="perf-map", command=inside("storm")) == {"good": "50"}


def by_gdb(_):
    command = inside("publisher")
    # gdb reads memory by /proc.
    mounted = ("unshare", "-m", "sh", "-c", 'mount -t proc proc "$1/proc" && exec chroot "$@"', "sh")
    text = run(*mounted, TREE, "gdb", "-q", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "break go if i == 12", "-ex", "run",
               "-ex", "bt", "--args", command[2], "backtrace", env=environment(), timeout=120)
    check_chain(functions_of(text), "gdb 16")


TESTS = [("published code in Debian 13: backtrace(), nongnu libunwind 1.8, LLVM libunwind 19", walks),
         ("published code in Debian 13: exceptions, by libgcc 14", thrown),
         ("published code in Debian 13: 8 threads throw beside commits, moves and removals", storms),
         ("published code in Debian 13: children that fork() makes in mid-commit", children),
         ("published code in Debian 13: gdb 16", by_gdb)]
