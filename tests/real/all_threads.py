# SPDX-License-Identifier: MIT
"""All threads of heavy programs at work, stopped at one moment: their stacks are those that gdb and eu-stack have, frame by
frame, or the difference is of a kind in KINDS; and their names are those that both have. LOOKS: at how many moments."""
import collections
import json
import os
import re
import signal
import time

import at_work
import peers
from ask import FATHOM, run
from living import PEERS, check, names_by_elfutils, names_by_gdb, why_mapped
from running import mappings_of, peek, wait_for_state

LOOKS = int(os.environ.get("LOOKS", "3"))

# What a stack may differ in: why, and who is right. Each is held against the memory of the process before it counts.
KINDS = {
    "made up": "code without call frame information, or whose information a JIT has given to libgcc alone: gdb makes frames up, whose addresses are "
               "not in code or not behind a call. Ours is right, and eu-stack, which goes by frame pointers, has it where the code keeps them",
    "ends": "compiled code of HotSpot and V8 that keeps no frame pointer: the peer ends there. Ours goes on by following the code to its return: "
            "each of its frames is behind a call",
    "passed over": "the same, also in what LLVM compiles for postgres: the peer goes on by a frame pointer, which passes over the frames of functions that keep none. It has ours but these",
    "ours ends": "the same: ours ends with the reason \"register\" or \"no-rule\", and says so, behind frames that are all behind calls; the peer has "
                 "no more of them",
}
GUESSED = ("decoded", "frame-pointer", "scan")
# What no peer has rules for.
OURS_ALONE = (*GUESSED, "jit-cfi")
# Of a call by its last bytes: direct, or through a register or memory, with a prefix or without.
DIRECT = re.compile(rb"\xe8....$", re.S)
INDIRECT = re.compile(rb"\xff(?:[\xd0-\xd7\x10-\x13\x15-\x17]|\x14.|[\x50-\x53\x55-\x57].|\x54..|[\x90-\x93\x95-\x97]....|\x94.....|\x15....|\x14\x25....)$", re.S)
# HotSpot's interpreter pushes the address that follows a jump through a table.
TABLE_JUMP = re.compile(rb"\xff(?:[\xe0-\xe7]|\x24.|\x64..|\xa4.....)$", re.S)


class Memory:
    """What is code in a process."""

    def __init__(self, pid):
        self.pid = pid
        self.code = [(m.start, m.end) for m in mappings_of(pid) if "x" in m.rights]
        self.made = [(m.start, m.end) for m in mappings_of(pid) if "x" in m.rights and not m.path]

    def is_made(self, pc):
        return any(start <= pc < end for start, end in self.made)

    def is_behind_call(self, pc):
        if not any(start + 8 <= pc < end for start, end in self.code):
            return False
        before = peek(self.pid, pc - 8, 8)
        return bool(DIRECT.search(before) or INDIRECT.search(before) or self.is_made(pc) and TABLE_JUMP.search(before))


def is_subsequence(few, many):
    rest = iter(many)
    return all(pc in rest for pc in few)


def why(peer, thread, theirs, memory):
    """The kind of the difference of a stack from that of @peer; None: it has none that is explained."""
    frames = thread["frames"]
    ours = [int(f["pc"], 16) for f in frames]
    i = next(i for i in range(max(len(ours), len(theirs)) + 1) if ours[i:i + 1] != theirs[i:i + 1])
    rest = theirs[i:]
    # All before is from rules, and the same.
    if not i or i < len(frames) and frames[i]["trust"] not in OURS_ALONE:
        return None
    if i == len(ours):
        return "ours ends" if thread["stop"] in ("register", "no-rule") and not all(map(memory.is_behind_call, rest)) else None
    if not rest:
        return "ends"
    if is_subsequence(rest, ours[i:]):
        return "passed over"
    if not all(map(memory.is_behind_call, rest)):
        return "made up" if peer == "gdb" or not frames[i]["module"] else None
    return None


def check_proven(thread, memory):
    """Each of our frames is behind a call, but the first, those of signals, and those that libraries have by rules alone."""
    for caller, callee in zip(thread["frames"][1:], thread["frames"], strict=False):
        if caller["trust"] != "signal" and not callee["signal_handler_called"] and not caller["signal_handler_called"] and caller["symbol"] != "_start":
            assert memory.is_behind_call(int(caller["pc"], 16)), (thread["tid"], caller)


def show(thread, theirs):
    return "\n".join([f"{thread['tid']} {thread['name']}: {thread['stop']} {thread['reason']}"] +
                     [f"  {f['pc']} {f['trust']} {f['symbol']} {f['module']}" for f in thread["frames"]] + ["theirs:"] + [f"  {pc:#x}" for pc in theirs])


def compare_names(title, pid, threads, folder):
    """The names of all functions of the stacks, beside those of both peers."""
    found = {}
    for thread in threads:
        exact = True
        for frame in thread["frames"]:
            # A handler returns to the first byte of a trampoline, and what a signal interrupts has not called.
            less = 0 if exact or frame["signal_handler_called"] else 1
            if frame["module"]:
                # living.py's records are of the address that is asked for: of a return address, one less.
                found[int(frame["pc"], 16) - less] = frame | {key: hex(int(frame[key], 16) - less) for key in ("address", "module_address")} | \
                    {"offset": frame["offset"] and frame["offset"] - less}
            exact = frame["signal_handler_called"]
    for peer, ask in (("gdb", names_by_gdb), ("eu-addr2line", names_by_elfutils)):
        theirs = ask(["-p", pid], list(found), folder)
        check(f"{title}'s functions", peer, list(found.values()), theirs, lambda r, o, t: why_mapped(pid, r, o, t), 0)


def ours_of(pid):
    return [json.loads(line) for line in run(FATHOM, "stack", "--json", "--no-cache", "--frames=native", pid, status=(0, 1)).splitlines()]


def pcs_of(threads):
    return {t["tid"]: [f["pc"] for f in t["frames"]] for t in threads}


def same_moment(title, pid, folder):
    """Our threads, and {peer: stacks} of the same moment: debuggers that go may let a thread run that was stopped."""
    for _ in range(5):
        os.kill(pid, signal.SIGSTOP)
        wait_for_state(pid, "T")
        threads = ours_of(pid)
        stacks = {"gdb": peers.by_gdb(["-p", pid], folder), "eu-stack": peers.by_elfutils(["-p", pid], folder)}
        if pcs_of(ours_of(pid)) == pcs_of(threads):
            return threads, stacks
        print(f"# {title}: it has run meanwhile")
    raise AssertionError(f"{title}: it does not stay stopped")


def look(title, pid, folder, counted, differ):
    """Compares all threads of a process that is stopped."""
    threads, stacks = same_moment(title, pid, folder)
    memory = Memory(pid)
    counted["threads"] += len(threads)
    counted["frames"] += sum(len(t["frames"]) for t in threads)
    for thread in threads:
        check_proven(thread, memory)
        for peer, found in stacks.items():
            theirs = [pc for pc, _ in found[thread["tid"]]]
            if theirs == [int(f["pc"], 16) for f in thread["frames"]]:
                counted[f"as {peer}"] += 1
                continue
            kind = why(peer, thread, theirs, memory)
            counted[f"{peer}: {kind}"] += 1
            if kind not in KINDS:
                differ.append(f"{title} beside {peer}: {show(thread, theirs)}")
        # Not whole only where its code is the compiler's of a running program.
        if thread["stop"] != "entry":
            counted["not whole"] += 1
            if thread["frames"][-1]["trust"] not in GUESSED:
                differ.append(f"{title}: not whole: {show(thread, [])}")
    compare_names(title, pid, threads, folder)


def all_threads(name):
    def call(folder):
        os.chmod(folder, 0o755)
        counted, differ = collections.Counter(), []
        with at_work.PROGRAMS[name](folder) as family:
            for i in range(LOOKS):
                for pid in family:
                    os.kill(pid, signal.SIGSTOP)
                for pid in family:
                    wait_for_state(pid, "T")
                for pid in family:
                    look(f"{name} ({pid})", pid, folder, counted, differ)
                for pid in reversed(family):
                    os.kill(pid, signal.SIGCONT)
                time.sleep(0.1 * i)
        print(f"# {name}: " + ", ".join(f"{n} {what}" for what, n in counted.items()))
        assert not differ, f"{len(differ)} differ: " + "\n".join(differ[:5])
    return call


TESTS = [(f"all threads of {name} at work: as gdb and eu-stack have them, each difference explained", all_threads(name)) for name in at_work.PROGRAMS]
