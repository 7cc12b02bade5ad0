# SPDX-License-Identifier: MIT
"""System calls of a program that logs them itself, beside those that QEMU's user emulation for aarch64 prints (-strace), and strace of the
same run; from a mark on, by threads. docs/reports/oracle-strace.md names where they differ."""
import errno
import glob
import json
import os
import re

from ask import execute

# The first call that counts: close(12345) of programs/sys.c.
MARK = "12345"
# Whether threads wait, and how often the heap grows, is chance; the return from a handler is not seen.
LEFT_OUT = {"futex", "brk", "rt_sigreturn"}
# Results, and arguments, that are numbers of tasks.
TASKS = {"getpid", "gettid", "getppid", "clone", "wait4", "kill", "tgkill", "getpgid"}
ADDRESSES = {"mmap"}
# Results, or first arguments, that are the lowest free descriptor: QEMU's logs take some.
OPENS, MOVES = {"openat", "dup"}, {"close", "dup3"}
# The kernel's result of a call that it makes again behind the handler (ERESTARTSYS).
RESTARTS = 512

TOKEN = re.compile(r"""(?P<pid>\d+)\ (?:(?P<name>[a-z_0-9]+)\((?P<args>(?:[^()"]|"[^"]*"|\([^()]*\))*)\)|Unknown\ syscall\ (?P<number>\d+))
                     |\ =\ (?P<result>-1\ errno=\d+|-?\w+)(?:\ \([^\n]*\))?\n|---\ (?P<signal>\w+)\ [^\n]*""", re.X)


class Call:
    """A call: its name, its arguments as texts, and its result, a number or the name of an error; None: it has not returned."""

    def __init__(self, task, name, args, result=None):
        self.task, self.name, self.args, self.result = task, name, args, result

    def key(self):
        """What must be the same in both logs."""
        if isinstance(self.result, int) and self.result > 0 and self.name in TASKS | ADDRESSES | OPENS:
            return self.name, "positive"
        return self.name, self.result

    def __repr__(self):
        return f"{self.name}({', '.join(self.args)}) = {self.result}"


def split(text):
    """The arguments in @text, between commas outside of quotes and brackets."""
    return [word.strip() for word in re.findall(r'((?:[^,"{\[]|"[^"]*"|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\[[^\]]*\])+)(?:,|$)', text)]


def result_of(text):
    found = re.fullmatch(r"-1 errno=(\d+)", text)
    if found:
        return errno.errorcode.get(int(found[1]), int(found[1]))
    return int(text, 16) if text.startswith("0x") else int(text)


def give_result(waiting, text, tasks):
    """Gives a result to the call that it is of: those that wait for other processes end with the number of one."""
    result = result_of(text)
    ends_wait = result in tasks
    fitting = [call for call in waiting if (call.name in ("clone", "wait4")) == ends_wait] or waiting
    call = fitting[-1]
    call.result = result
    waiting.remove(call)


def read_log(text):
    """The calls of one log, by tasks; None stands where a signal came."""
    calls, waiting, by_task, n_new = [], [], {}, 0
    tasks = {int(pid) for pid in re.findall(r"^(\d+) ", text, re.M)}
    for token in TOKEN.finditer(text):
        if token["result"] == "0" and n_new:
            # A new process returns from the call that has made it.
            n_new -= 1
        elif token["result"]:
            if waiting:
                give_result(waiting, token["result"], tasks)
        elif token["signal"]:
            calls[-1:] = [*calls[-1:], Call(calls[-1].task if calls else None, None, [])]
        else:
            calls.append(Call(int(token["pid"]), token["name"] or f"syscall_{token['number']}", split(token["args"] or "")))
            if token["number"]:
                calls[-1].result = "ENOSYS"
            elif calls[-1].name not in ("exit", "exit_group"):
                waiting.append(calls[-1])
                n_new += token["name"] == "clone" and "CLONE_THREAD" not in token["args"]
    for call in calls:
        by_task.setdefault(call.task, []).append(call)
    return by_task


def in_their_order(calls):
    """A call at whose end a signal comes stands behind those of the handler; if the kernel makes it again, it is one call. And those
    that a handler has jumped out of."""
    found, interrupted = [], []
    for i, call in enumerate(calls):
        if call.name is None:
            continue
        follows = i + 1 < len(calls) and calls[i + 1].name is None
        if follows:
            interrupted.append(call)
        elif call.name == "rt_sigreturn":
            if interrupted:
                # strace tells only here that the call is not made again.
                result, call = call.result, interrupted.pop()
                call.result = result if result == "EINTR" else call.result
                found += [call] if call.result != RESTARTS else []
        else:
            found.append(call)
    for call in interrupted:
        call.result = None
    return found, interrupted


def of_qemu(qemu, path, *words, cwd):
    """[calls, calls that were left] of each task of an untraced run."""
    for name in glob.glob(os.path.join(cwd, "strace.*")):
        os.remove(name)
    execute(qemu[0], "-d", "strace,tid", "-D", os.path.join(cwd, "strace.%d"), *qemu[1:], path, *words, cwd=cwd, status=None)
    logs = sorted(glob.glob(os.path.join(cwd, "strace.*")), key=lambda name: int(name.rsplit(".", 1)[1]))
    found = []
    for i, name in enumerate(logs):
        with open(name, encoding="utf-8", errors="replace") as f:
            text = f.read()
        if not i:
            text = text[text.rindex("\n", 0, text.index(f"close({MARK})")) + 1:]
        found += [in_their_order(calls) for _, calls in sorted(read_log(text).items())]
    return found


def of_log(path):
    """The same of a log of the program's own (--json)."""
    by_task, begun = {}, False
    with open(path, encoding="utf-8") as f:
        for e in map(json.loads, f):
            if e["type"] != "syscall":
                continue
            args = [arg["value"] for arg in e["args"]]
            begun |= e["name"] == "close" and args == [MARK]
            if begun:
                by_task.setdefault(e["tid"], []).append(Call(e["tid"], e["name"], args, e["errno"] or e["result"]))
    last = ("exit", "exit_group")
    return [([c for c in calls if c.result is not None or c.name in last], [c for c in calls if c.result is None and c.name not in last])
            for _, calls in sorted(by_task.items())]


def same_form(a, b):
    """Whether both texts are numbers, or quoted, or names of constants without numbers between."""
    forms = r"-?\d+", r'"[^"]*"', r"[A-Z][A-Z_0-9]*(\|[A-Z][A-Z_0-9]*)*"
    return any(re.fullmatch(form, a) and re.fullmatch(form, b) for form in forms)


def compare(qemu, own):
    """Compares what of_qemu() and of_log() have found; returns how many calls, and how many arguments, are the same in both."""
    n_calls = n_args = 0
    assert len(qemu) == len(own), (len(qemu), len(own))
    for (theirs, their_left), (ours, our_left) in zip(qemu, own):
        theirs = [call for call in theirs if call.name not in LEFT_OUT]
        ours = [call for call in ours if call.name not in LEFT_OUT]
        n = next((i for i, (a, b) in enumerate(zip(theirs, ours)) if a.key() != b.key()), min(len(theirs), len(ours)))
        assert n == len(theirs) == len(ours), (n, theirs[max(n - 2, 0):n + 3], ours[max(n - 2, 0):n + 3])
        assert sorted(c.key() for c in their_left) == sorted(c.key() for c in our_left), (their_left, our_left)
        n_calls += len(theirs) + len(their_left)
        for a, b in zip(theirs, ours):
            pairs = [(x, y) for x, y in zip(a.args, b.args) if a.name not in TASKS and same_form(x, y)]
            # Modes are octal.
            pairs = [(str(int(x, 8)), str(int(y, 8))) if a.name == "umask" else (x, y) for x, y in pairs]
            pairs = pairs[1:] if a.name in MOVES and a.result != "EBADF" else pairs
            # QEMU has PF_ in place of AF_.
            assert all(sorted(x.replace("PF_", "AF_").split("|")) == sorted(y.split("|")) for x, y in pairs), (a, b)
            n_args += len(pairs)
    return n_calls, n_args


# A program that has no handler for it gets SIGCHLD without noticing.
LINE = re.compile(r"(?P<tid>\d+) +\[(?P<pc>[0-9a-f?]+)\] (?:(?:<\.\.\. )?(?P<name>\w+)(?:\(| resumed>)(?P<rest>.*)|(?P<signal>--- (?!SIGCHLD)).*|---.*|\+\+\+.*)")
END = re.compile(r"^(?P<args>.*)\) += (?P<result>-?\w+|\?)(?: (?P<error>E\w+))?")
# What the thread that ends the process calls for the tracer, when the log has its last call.
ENDING = {"futex", "kill", "getpid"}


OUTSIDE = "outside"  # a call that is not made in the stubs


def of_strace(path, ranges):
    """{thread: (calls, calls that were left)} of a file that strace -f -i has written, from the mark on: those whose instructions are in @ranges."""
    by_task, waiting, begun = {}, {}, False
    with open(path, encoding="utf-8", errors="replace") as f:
        for m in filter(None, map(LINE.match, f)):
            tid, calls = int(m["tid"]), by_task.setdefault(int(m["tid"]), [])
            begun |= m["name"] == "close" and m["rest"].startswith(MARK)
            if not begun:
                continue
            if m["signal"]:
                calls.append(Call(tid, None, []))
            if not m["name"]:
                continue
            inside = "?" not in m["pc"] and any(low < int(m["pc"], 16) <= high for low, high in ranges)
            name = m["name"].replace("syscall_0x", "")
            call = waiting.pop(tid, None) or Call(tid, m["name"] if name == m["name"] else f"syscall_{int(name, 16)}", [])
            if call not in calls and (inside or m["name"] == "rt_sigreturn"):
                calls.append(call)
            end = END.match(m["rest"])
            if not end:
                waiting[tid] = call
            elif end["result"] == "?":
                call.result = RESTARTS if end["error"] else None
                if end["error"] and call not in calls:
                    # It was made elsewhere; the signal that follows is its, not that of the call before.
                    calls.append(Call(tid, OUTSIDE, []))
            else:
                call.result = end["error"] or int(end["result"], 8 if re.fullmatch("0[0-7]+", end["result"]) else 0)
    ordered = {tid: in_their_order(calls) for tid, calls in by_task.items() if calls}
    return {tid: tuple([c for c in part if c.name != OUTSIDE] for part in parts) for tid, parts in ordered.items()
            if any(c.name != OUTSIDE for part in parts for c in part)}


def keys_of(calls):
    """Names and results; without what the tracer calls at the end."""
    keys = [(c.name, c.result) for c in calls if c.name != "rt_sigreturn"]
    if keys and keys[-1][0] == "exit_group":
        last = keys.pop()
        while keys and keys[-1][0] in ENDING:
            keys.pop()
        keys.append(last)
    return keys
