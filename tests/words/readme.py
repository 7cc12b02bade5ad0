# SPDX-License-Identifier: MIT
"""The sessions of README.md: what stands there is what a newcomer sees who types it."""
import glob
import os
import re
import shutil
import time

import tap
from ask import FATHOM, execute
from named import SUITE
from running import Running, core_of_dying

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def sessions():
    """The console blocks of the README: lists of (command, lines)."""
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```console\n(.*?)^```", f.read(), re.M | re.S)
    return [[(lines[0], lines[1:]) for lines in (part.splitlines() for part in re.split(r"^\$ ", block, flags=re.M)) if lines]
            for block in blocks]


def plain(text, folder):
    """@text without what differs from run to run: numbers, and the folder of sources."""
    text = text.replace(os.path.realpath(folder), "/src")
    text = re.sub(r"0x[0-9a-f]+", "0x#", text)
    # Columns are as wide as their numbers.
    return re.sub(r" +", " ", re.sub(r"\b[0-9][0-9']*\b", "#", text))


# The lines that do not depend on the release of the C library and the compiler.
OWN = re.compile(r"TID|deadlock:|/src/|inlined into sum|cook|helper|\bmain\+|^FUN|^SYS|^#$")


def own(text, folder):
    return [line for line in plain(text, folder).splitlines() if OWN.search(line) and "libc_start" not in line]


# Words of commands that differ from run to run.
WORDS = {"pid": r"\b[0-9]{4,}$", "address": r"\b0x[0-9a-f]+$"}


def check(folder, command, shown, **words):
    """Runs @command with @words in place of some of its words. What the README shows of the program itself is what is printed now, up
    to where it ends."""
    for old, new in words.items():
        command = re.sub(WORDS[old], str(new), command)
    done = execute("sh", "-c", re.sub("^fathom", FATHOM, command), cwd=folder, status=0)
    now, wanted = own(done.stdout + done.stderr, folder), own("\n".join(shown), folder)
    assert wanted and now[:len(wanted)] == wanted, (command, now, wanted)
    return done.stdout


def call_of(task):
    """The number of the system call that a thread is in."""
    with open(os.path.join(task, "syscall"), encoding="ascii") as f:
        return f.read().split()[0]


def both_wait(pid):
    tasks = glob.glob(f"/proc/{pid}/task/*")
    return len(tasks) == 2 and all(call_of(task) == "202" for task in tasks)


@SUITE.test("README: a core of a crash, a deadlock, a trace: what its sessions show is what the commands print now")
def _(folder):
    tap.need_traced_programs()
    crash, deadlock, trace = sessions()
    for source in glob.glob(os.path.join(TOP, "examples", "tour", "*.c")):
        shutil.copy(source, folder)
    for session in (crash, deadlock, trace):
        execute("sh", "-c", session[0][0], cwd=folder, status=0)
    for command, shown in trace[1:]:
        check(folder, command, shown)
    with Running([os.path.join(folder, "deadlock")]) as running:
        while not both_wait(running.pid):
            time.sleep(0.01)
        for command, shown in deadlock[1:]:
            check(folder, command, shown, pid=running.pid)
    core_of_dying(folder, os.path.join(folder, "crash"))
    (first, first_shown), (second, second_shown) = crash[1:]
    innermost = re.search(r"^#0 +0x0*([0-9a-f]+)", check(folder, first, first_shown), re.M)[1]
    check(folder, second, second_shown, address=f"0x{innermost}")
