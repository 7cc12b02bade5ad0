# SPDX-License-Identifier: MIT
"""programs/emitter.c with functions of code that call each other, and stacks that lead through them.

The code keeps no frame pointer, never returns, and leaves a wrong return address on the stack: without call frame
information nothing leads through it. The truth is how it was made."""
import json
import os
import struct

import building
import cfiasm

from ask import FATHOM, execute
from out import Out
from running import Told

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "emitter.c")

N = 5  # functions
PITCH = 64
CALL_END = 40  # of the call in each function
SIZE = 42


class Emitted(Told):
    """A running emitter.c, with N functions of code that call each other and then stay(). @root: the root directory that
    it runs in, with @folder in it; @spread: room for so many functions from each to the next."""

    def __init__(self, folder, root="", spread=1):
        path = building.build(os.path.join(folder, "emitter"), PROGRAM, "-ldl", "-pthread")
        super().__init__(["chroot", root, path.removeprefix(root)] if root else [path])
        self.code, self.data, self.spread = self.places["code"], self.places["data"], spread
        for i in range(N):
            self.poke(self.at(i), self.function(i))

    def at(self, i):
        return self.code + PITCH * self.spread * i

    @staticmethod
    def room(i):
        """Bytes of stack that function i takes, beside what it saves."""
        return 32 + 16 * i

    def function(self, i):
        target = self.at(i + 1) if i + 1 < N else self.places["stay"]
        code = (b"\x55" b"\xbd\xef\xbe\xad\xde"  # push %rbp; mov $0xdeadbeef, %ebp
                b"\x48\x81\xec" + struct.pack("<I", self.room(i)) +  # sub $room, %rsp
                b"\x49\xbb" + struct.pack("<Q", self.places["decoy"]) +  # mov $decoy, %r11
                b"\x4c\x89\x5c\x24\x08"  # mov %r11, 8(%rsp)
                b"\x48\xb8" + struct.pack("<Q", target) +  # mov $target, %rax
                b"\xff\xd0\xeb\xfe")  # call *%rax; jmp .
        assert len(code) == SIZE and code.index(b"\xff\xd0") + 2 == CALL_END
        return code

    def rules(self, i):
        """What the call frame information of function i says."""
        return (b"\x41\x0e\x10\x86\x02"  # advance_loc 1, def_cfa_offset 16, offset rbp 2
                b"\x4c\x0e" + bytes(Out(False).uleb(16 + self.room(i)).bytes))  # advance_loc 12, def_cfa_offset

    def frames(self, address, functions=range(N), encoding=cfiasm.ABSPTR, moved=0, end=True):
        """.eh_frame at @address of these functions; it says that they are @moved."""
        f = cfiasm.Frames(elfasm_kind(), places=(address, 0))
        # def_cfa rsp 8, offset rip 1
        cie = f.cie(encoding=encoding, instructions=b"\x0c\x07\x08\x90\x01")
        for i in functions:
            f.fde(cie, self.at(i) + moved, SIZE, encoding=encoding, instructions=self.rules(i))
        if end:
            f.end()
        return bytes(f.out.bytes), f.at

    def poke(self, address, data):
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            assert memory.write(data) == len(data)

    def call(self, name, *numbers):
        self.tell(" ".join(["call", name, *(f"{n:x}" for n in numbers)]))

    def go(self):
        self.tell(f"go {self.code:x}")


def elfasm_kind():
    class Kind:
        bits, big = 64, False
    return Kind()


def stack_of(target, *options):
    """The thread in the code."""
    done = execute(FATHOM, "stack", "--json", "--no-cache", *options, target)
    assert done.returncode in (0, 1), done
    threads = [json.loads(line) for line in done.stdout.splitlines()]
    found = [t for t in threads if any(f["symbol"] == "stay" for f in t["frames"])]
    assert len(found) == 1, done.stdout
    return found[0]


def check(e, target, *options, names=None, trust="jit-cfi"):
    """All frames from stay() to enter(): where they are, and their stack pointers, are as they were made."""
    thread = stack_of(target, *options)
    frames = thread["frames"]
    at = next(i for i, f in enumerate(frames) if f["symbol"] == "stay")
    made = frames[at + 1:at + 1 + N]
    assert [int(f["pc"], 16) for f in made] == [e.at(i) + CALL_END for i in reversed(range(N))], frames
    assert [f["trust"] for f in made[1:]] == [trust] * (N - 1), frames
    assert frames[at + 1 + N]["symbol"] == "enter" and frames[at + 1 + N]["trust"] == trust, frames
    pointers = [int(f["sp"], 16) for f in frames[at + 1:at + 2 + N]]
    # The caller's stack pointer: behind what a function takes, the saved register and the return address.
    assert [b - a for a, b in zip(pointers, pointers[1:])] == [e.room(i) + 16 for i in reversed(range(N))], frames
    assert thread["stop"] == "entry" and frames[-1]["module"].endswith("/libc.so.6"), thread
    # Debian 13's libc has no symbol for it.
    assert frames[-1]["symbol"] in ("clone3", "__clone3", "clone", "thread_start") or frames[-1]["source"] == "fde", frames[-1]
    assert [f["symbol"] for f in made] == (names or [None] * N), made


def check_not(e, target, others=False):
    """
    Nothing tells how to unwind the code: no frame of it but the first is found, except by looking for one; with @others
    what calls it may be described.
    """
    frames = stack_of(target)["frames"]
    first = [i for i, f in enumerate(frames) if not f["module"]][0]
    assert not any(f["trust"] == "jit-cfi" for f in frames[:first + 2 if others else None]), frames
    assert not any(int(f["pc"], 16) == e.at(N - 2) + CALL_END and f["trust"] != "scan" for f in frames), frames
