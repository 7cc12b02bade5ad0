# SPDX-License-Identifier: MIT
"""What objdump and nm say of the sites in a program: the truth that fathom's answers are compared with."""
import re
import subprocess

from ask import run
from building import nm

FUNCTIONS = ("leaf", "local", "large", "variable", "branches", "tail", "loop", "empty", "run", "main")
HOOKS = r"<_*(mcount|fentry__|cyg_profile_func_enter)\b"
LANDINGS = ("endbr64", "bti\tc")


class Instruction:
    """One line of objdump."""

    def __init__(self, address, code, text):
        self.address, self.size, self.text = address, len(code) // 2, text
        self.code = code


class Listing:
    """Functions with their instructions: those of the source and what lies between, or @whole."""

    def __init__(self, path, tools="", whole=False):
        self.path = path
        self.functions = {}
        current = None
        where = [value for name, found in nm(path).items() if name in FUNCTIONS for value, _ in found]
        part = [] if whole else [f"--start-address={max(min(where) - 512, 0)}", f"--stop-address={max(where) + 4096}"]
        for line in run(f"{tools}objdump", "-dw", *part, path).splitlines():
            head = re.match(r"([0-9a-f]+) <(.+)>:$", line)
            if head:
                current = self.functions.setdefault(head[2], [])
            m = re.match(r" *([0-9a-f]+):\t([0-9a-f ]+?) *\t(.*)", line)
            if m and current is not None:
                current.append(Instruction(int(m[1], 16), m[2].replace(" ", ""), m[3]))
        self.starts = {name: self.functions[name][0].address for name in FUNCTIONS if name in self.functions}

    def code(self, name):
        return self.functions[name]

    def body(self, name):
        """The instructions behind a landing mark."""
        code = self.code(name)
        return code[1:] if code[0].text.startswith(LANDINGS) else code


def patchable(listing, slot, prefix):
    """{(address, size, prefix, place)} of -fpatchable-function-entry, by the flag's numbers, in bytes."""
    return {(listing.body(name)[0].address, slot, prefix, "entry") for name in listing.starts}


def longer(listing, slot):
    """{address: most bytes} of slots of @slot bytes before a body that begins with NOPs of four bytes of its own, as gcc
    makes at -O0: no table says how many the flag has made."""
    bodies = [listing.body(name) for name in listing.starts]
    most = {body[0].address: 4 * next(i for i, instruction in enumerate(body) if instruction.text != "nop") for body in bodies}
    return {address: size for address, size in most.items() if size > slot}


def hooked(listing, size=None):
    """The first calls of hooks; calls of, and jumps to, what is called at returns. glibc has one function for both."""
    found = set()
    places = nm(listing.path)
    enter, leave = (places.get(f"__cyg_profile_func_{word}") for word in ("enter", "exit"))
    exits = "cyg_profile_func_e" if enter and leave and enter[0][0] == leave[0][0] else "cyg_profile_func_exit"
    for name in listing.starts:
        # A static program's hook has several names.
        calls = [i for i in listing.code(name) if re.match(r"(addr32 )?call|bl\b", i.text)]
        first = calls[0]
        assert re.search(HOOKS, first.text), f"{name}: {first.text}"
        found.add((first.address, size or first.size, 0, "entry"))
        found |= {(i.address, i.size, 0, "return") for i in listing.code(name)
                  if not size and re.match(r"(addr32 )?(call|jmp)", i.text) and i.address > first.address and re.search(exits, i.text)}
    return found


def empty_calls(listing):
    """The NOPs in place of calls: the first of five bytes that each function has."""
    found = set()
    for name in listing.starts:
        nop = next(i for i in listing.code(name) if i.code == "0f1f440000")
        found.add((nop.address, 5, 0, "entry"))
    return found


def returns(listing):
    """The NOPs or calls directly before a return or a jump out of the function."""
    found = set()
    for name in listing.starts:
        code = listing.code(name)
        for nop, end in zip(code, code[1:]):
            if nop.code != "0f1f440000" and "__return__" not in nop.text:
                continue
            if end.text.startswith("ret"):
                found.add((nop.address, nop.size, 0, "return"))
            elif end.text.startswith("jmp"):
                found.add((nop.address, nop.size, 0, "tail-call"))
    return found


def sleds(path, size):
    """XRay's own tool reads its table."""
    found = set()
    places = {"function-enter": "entry", "function-exit": "return", "tail-exit": "tail-call"}
    text = subprocess.run(["llvm-xray", "extract", path], capture_output=True, text=True, check=True).stdout
    for address, kind in re.findall(r"address: 0x([0-9A-F]+),.*?kind: ([a-z-]+)", text):
        found.add((int(address, 16), size, 0, places[kind]))
    return found


def symbols(path):
    """{address: names} of nm."""
    found = {}
    for name, places in nm(path).items():
        for value, _ in places:
            found.setdefault(value, set()).add(name)
    return found
