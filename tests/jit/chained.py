# SPDX-License-Identifier: MIT
"""Code as CPython's compiler makes it: a function that saves the frame pointer and sets it, then pieces that never touch it and
jump from one to the next. They are one function: of each call it has one frame, at whatever instruction."""
import os
import re
import struct

import cfiasm
import elfasm

from ask import run
from suite import build, test
from emitted import elfasm_kind

ADDRESS = 0x200000000000
PIECES = 6


def direct(at, target):
    return b"\xe9" + struct.pack("<i", target - at - 5)  # jmp


def indirect(_, target):
    return b"\x48\xb8" + struct.pack("<Q", ADDRESS + target) + b"\xff\xe0"  # mov $target, %rax; jmp *%rax


def piece(i):
    """Calls back with the number @i; every second one saves something meanwhile."""
    call = b"\xbf" + struct.pack("<I", i) + b"\xff\xd3"  # mov $i, %edi; call *%rbx
    return b"\x50\x51" + call + b"\x59\x58" if i % 2 else call  # push %rax; push %rcx; ...; pop %rcx; pop %rax


def make():
    """The code, and what its call frame information says."""
    # push %rbp; mov %rsp, %rbp; push %rbx; push %r12; mov %rdi, %rbx
    code = b"\x55" b"\x48\x89\xe5" b"\x53" b"\x41\x54" b"\x48\x89\xfb"
    for i in range(PIECES):
        jump = indirect if i % 2 else direct
        # Pieces lie apart.
        start = -(-(len(code) + len(jump(0, 0))) // 64) * 64
        code += jump(len(code), start)
        code = code.ljust(start, b"\xcc") + piece(i)
    end = len(code)
    code += b"\x41\x5c" b"\x5b" b"\x5d" b"\xc3"  # pop %r12; pop %rbx; pop %rbp; ret
    rules = (b"\x41\x0e\x10\x86\x02"  # advance_loc 1, def_cfa_offset 16, offset rbp 2
             b"\x43\x0d\x06"  # advance_loc 3, def_cfa_register rbp
             b"\x41\x83\x03"  # advance_loc 1, offset rbx 3
             b"\x42\x8c\x04"  # advance_loc 2, offset r12 4
             b"\x03" + struct.pack("<H", end + 2 - 7) + b"\xcc"  # advance_loc2, restore r12
             b"\x41\xc3"  # advance_loc 1, restore rbx
             b"\x41\x0c\x07\x08\xc6")  # advance_loc 1, def_cfa rsp 8, restore rbp
    return code, rules


def symbol_file(code, rules):
    frames = cfiasm.Frames(elfasm_kind(), places=(ADDRESS + 0x8000, 0))
    frames.fde(frames.cie(instructions=b"\x0c\x07\x08\x90\x01"), ADDRESS, len(code), instructions=rules)
    frames.end()
    elf = elfasm.Elf(64, False, elfasm.EM_X86_64, elfasm.ET_DYN)
    elf.text(ADDRESS, len(code))
    elf.symbol("chained", ADDRESS, len(code))
    elf.section(".eh_frame", bytes(frames.out.bytes), flags=elfasm.SHF_ALLOC, addr=ADDRESS + 0x8000, align=8)
    return elf.build()


def step(folder, is_registered):
    """What tests/stacks/stepper.c counts; and what it shows of walks that differ from its log of calls and returns."""
    code, rules = make()
    paths = [os.path.join(folder, name) for name in ("code", "symfile")]
    for path, data in zip(paths, (code, symbol_file(code, rules))):
        with open(path, "wb") as file:
            file.write(data)
    program = build(folder, "chained.c", "-fno-optimize-sibling-calls")
    out = run(os.path.join(os.environ["BUILD"], "tests", "stepper"), "-v", 3, program, *paths[:1 + is_registered])
    counts = {name: int(n) for name, n in re.findall(r"^([a-z-]+) (\d+)$", out, re.M)}
    shown = "".join(line + "\n" for line in out.splitlines() if line.startswith("#"))
    return counts, shown


@test("code with the frame pointer reserved, in pieces that jump on, registered with GDB: one frame a call, at every instruction")
def registered(folder):
    counts, shown = step(folder, True)
    # 10 calls within each other, each of so many instructions, and those of the functions that are called back.
    assert counts["walks"] >= 1000 and counts["found-jit-cfi"] >= 5000, counts
    assert counts["same"] == counts["entry"] == counts["walks"] and not counts["lost"], f"{counts}\n{shown}"


@test("code with the frame pointer reserved, in pieces that jump on, without rules: one frame a call, at every instruction")
def without_rules(folder):
    counts, shown = step(folder, False)
    assert counts["walks"] >= 1000 and counts["found-frame-pointer"] >= 5000 and not counts["found-scan"], counts
    assert counts["same"] == counts["entry"] == counts["walks"] and not counts["lost"], f"{counts}\n{shown}"
