# SPDX-License-Identifier: MIT
"""Stacks of a process or core as gdb, eu-stack and fathom have them: {tid: [(pc, sp or None)]}, innermost first."""
import os
import re
import signal

from ask import execute, run
from running import state_of, until, wait_for_state

GDB_SCRIPT = """
import gdb

def frames():
    try:
        frame = gdb.newest_frame()
        while frame is not None:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                yield f"{frame.pc():x} {int(frame.read_register('rsp')) % 2 ** 64:x}"
            frame = frame.older()
    except gdb.error as error:
        yield f"# {error}"

for thread in gdb.selected_inferior().threads():
    thread.switch()
    print(f"thread {thread.ptid[1] or thread.ptid[0]}")
    for line in frames():
        print(line)
"""


def parse(text):
    stacks = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["thread"]:
            frames = stacks.setdefault(int(words[1]), [])
        elif len(words) >= 2 and re.fullmatch("[0-9a-f]+", words[0]) and re.fullmatch("[0-9a-f]+", words[1]):
            frames.append((int(words[0], 16), int(words[1], 16)))
    return stacks


def by_gdb(target, folder):
    """@target: what gdb is told, such as ["-p", PID]. Without frames that it makes up of call sites, or inlined ones."""
    script = os.path.join(folder, "frames.py")
    with open(script, "w", encoding="ascii") as f:
        f.write(GDB_SCRIPT)
    settings = ["backtrace past-main on", "backtrace past-entry on", "debuginfod enabled off", "print inferior-events off"]
    return parse(run("gdb", "-q", "-nx", "-batch", *(w for s in settings for w in ("-ex", f"set {s}")), *target,
                     "-x", script, status=None))


def by_elfutils(target, _):
    stacks = {}
    for line in run("eu-stack", "-n", "0", *target, status=None).splitlines():
        if m := re.match(r"TID (\d+):", line):
            frames = stacks.setdefault(int(m[1]), [])
        elif m := re.match(r"#\d+ +0x([0-9a-f]+)", line):
            frames.append((int(m[1], 16), None))
    return stacks


def by_fathom(target, planted=False):
    """The stacks, and {tid: (stop, [trust of each frame])}."""
    program = os.path.join(os.environ["BUILD"], "tests", "walked_planted" if planted else "walked")
    text = execute(program, target, status=0).stdout
    how = {}
    for line in text.splitlines():
        words = line.split()
        if words[0] == "thread":
            stop, trusts = how.setdefault(int(words[1]), (words[2], []))
        else:
            trusts.append(words[2])
    return parse(text), how


def first_difference(ours, theirs):
    """The number of the first frame that differs, None: there is none. A stack pointer is compared if both have it."""
    for i in range(max(len(ours), len(theirs))):
        if i >= len(ours) or i >= len(theirs) or ours[i][0] != theirs[i][0] or \
                None not in (ours[i][1], theirs[i][1]) and ours[i][1] != theirs[i][1]:
            return i
    return None


def differences(ours, how, theirs, peer):
    """{tid: text} of the threads whose stacks differ."""
    found = {}
    assert set(ours) == set(theirs), f"{peer} has other threads: {sorted(set(ours) ^ set(theirs))}"
    for tid, frames in ours.items():
        i = first_difference(frames, theirs[tid])
        if i is not None:
            stop, trusts = how[tid]
            show = [f"{n}: ours {at(frames, n)} {trusts[n] if n < len(trusts) else ''}, {peer} {at(theirs[tid], n)}"
                    for n in range(max(0, i - 1), i + 3)]
            found[tid] = f"thread {tid}, frame {i} of {len(frames)} (stop {stop}), {peer} has {len(theirs[tid])}: " + "; ".join(show)
    return found


def at(frames, i):
    return "-" if i >= len(frames) else " ".join(f"{v:#x}" if v is not None else "?" for v in frames[i])


def compare(target, gdbs, folder, title, least, planted=False, peer_names=("gdb", "eu-stack")):
    """Compares the stacks of one state with those of two  Returns how many threads differ from one."""
    ours, how = by_fathom(target, planted)
    assert len(ours) >= least[0] and sum(map(len, ours.values())) >= least[1], \
        f"{len(ours)} threads, {sum(map(len, ours.values()))} frames"
    wrong = {}
    for name in peer_names:
        asked = (by_gdb if name == "gdb" else by_elfutils)(gdbs[name], folder)
        different = differences(ours, how, asked, name)
        print(f"# {title} beside {name}: {len(ours)} threads, {sum(map(len, ours.values()))} frames, "
              f"{len(different)} threads differ")
        wrong.update({(name, tid): text for tid, text in different.items()})
    return wrong


def settle(pid, stop=True):
    """Waits until all threads of @pid sleep, then stops them."""
    until(lambda: all(state_of(f"{pid}/task/{tid}") == "S" for tid in os.listdir(f"/proc/{pid}/task")), "rest of all threads")
    if not stop:
        return
    os.kill(pid, signal.SIGSTOP)
    wait_for_state(pid, "T")
