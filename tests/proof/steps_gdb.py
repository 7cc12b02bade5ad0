# SPDX-License-Identifier: MIT
"""Runs inside gdb: steps twig through the code that it has made, one instruction at a time, from twig_entry() on.
Notes calls and returns in a log, and compares gdb's frames with it at each instruction: pc, stack pointer, name. Functions of
C++ that made code calls run without steps. A shim and the code that it calls are one frame. Prints the number of
stacks, and of those that are the log's, and the first one that is not."""
import re

import gdb

SHIM = re.compile(rb"\x55\x48\x89\xe5\xe8....\x5d\xc3", re.S)


def register(name, frame=None):
    value = frame.read_register(name) if frame else gdb.parse_and_eval(f"${name}")
    return int(value) & (1 << 64) - 1


def memory(at, size):
    return bytes(gdb.selected_inferior().read_memory(at, size))


def stack():
    """[(pc, stack pointer, name)] by gdb."""
    frames, frame = [], gdb.newest_frame()
    while frame and frame.is_valid():
        frames.append((frame.pc(), register("rsp", frame), frame.name()))
        frame = frame.older()
    return frames


def is_shim(entry):
    return SHIM.fullmatch(memory(entry[0] - 9, 11)) is not None


class Steps:
    def __init__(self):
        self.walks = self.same = 0
        self.wrong = None
        self.log = [frame[:2] for frame in stack()[:0:-1]]
        # The function that the log ends with calls made code next.
        self.n_outer = len(self.log) - 1

    def note(self, code, sp):
        code = code[1:] if code[0] & 0xf0 == 0x40 else code  # REX
        if code[0] == 0xe8 or code[0] == 0xff and code[1] >> 3 & 7 == 2:
            self.log.append((int.from_bytes(memory(register("rsp"), 8), "little"), sp))
        elif code[0] == 0xc3:
            self.returned()

    def returned(self):
        entry = self.log.pop()
        assert entry == (register("rip"), register("rsp")), f"a return to {register('rip'):x}, {entry} was called"

    def step(self):
        code, sp = memory(register("rip"), 3), register("rsp")
        gdb.execute("stepi", to_string=True)
        self.note(code, sp)

    def run_to_return(self):
        gdb.Breakpoint(f"*{self.log[-1][0]:#x}", temporary=True, internal=True)
        gdb.execute("continue", to_string=True)
        self.returned()

    def compare(self):
        expected = [(register("rip"), register("rsp")), *(entry for entry in self.log[::-1] if not is_shim(entry))]
        frames = stack()
        # Shims have names of their own.
        names = [(name or "??").removesuffix(".shim") for _, _, name in frames]
        good = [frame[:2] for frame in frames] == expected and re.fullmatch(r"(sum )?(nest )*start main ", " ".join([*names, ""]))
        self.walks += 1
        self.same += bool(good)
        if not good and not self.wrong:
            self.wrong = f"{[(hex(pc), hex(sp), name) for pc, sp, name in frames]}, log {[(hex(pc), hex(sp)) for pc, sp in expected]}"


def made_code():
    """Executable memory of no file."""
    maps = gdb.execute("info proc mappings", to_string=True)
    (low, high), = re.findall(r"^ *0x(\w+) +0x(\w+) +\w+ +\w+ +r-xp *$", maps, re.M)
    return range(int(low, 16), int(high, 16))


def main():
    gdb.execute("set pagination off")
    gdb.Breakpoint("twig_entry", temporary=True)
    gdb.execute("run", to_string=True)
    made = made_code()
    steps = Steps()
    while register("rip") not in made:
        steps.step()
    # Until it is back in main().
    while len(steps.log) > steps.n_outer:
        if register("rip") in made:
            steps.compare()
            steps.step()
        else:
            steps.run_to_return()
    print(f"walks {steps.walks} same {steps.same}")
    if steps.wrong:
        print("wrong", steps.wrong)


main()
