#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tables.py OBJECT...: writes the stencils of relocatable files (x86-64, a section for each function) as C++: code, holes, and
what happens to the stack, which are the rows of the compiler's .eh_frame as events of <fathom/jit.h>."""
import re
import subprocess
import sys

KINDS = {"64": "8, 0", "32": "4, 0", "32S": "4, 0", "PC32": "4, 1", "PLT32": "4, 1"}  # of R_X86_64_*: bytes, is_relative
NUMBERS = {"rbx": 3, "rbp": 6, "r12": 12, "r13": 13, "r14": 14, "r15": 15}  # of DWARF


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def holes_of(path):
    """{section: [(offset, kind, symbol or section, addend)]}."""
    return {section: [(int(at, 16), KINDS[kind], symbol, int(sign + more, 16))
                      for at, kind, symbol, sign, more in re.findall(r"^(\w+) +\w+ R_X86_64_(\w+) +\w+ (\S+) ([+-]) (\w+)$", rows, re.M)]
            for section, rows in re.findall(r"^Relocation section '\.rela(\S+)'.*\n.*\n((?:\w.*\n)*)", readelf(path, "-r"), re.M)}


def rows_of(path, owners):
    """{section: [(offset, register, its distance from the CFA, {saved register: its place below the CFA})]}; an FDE has an owner."""
    found = {}
    for at, table in re.findall(r"^(\w+) \w+ \w+ FDE .*\n((?:.+\n)*)", readelf(path, "--debug-dump=frames-interp"), re.M):
        head, *lines = [line.split() for line in table.splitlines()] or [[]]
        found[owners[int(at, 16) + 8]] = [
            (int(offset, 16), *cfa.split("+"), {NUMBERS[r]: int(p[2:]) for r, p in zip(head[2:], places) if p[0] == "c" and r != "ra"})
            for offset, cfa, *places in lines]
    return found


def events_of(rows, size):
    """What changes from row to row. Behind the last instruction, which may jump back, the next stencil begins as this one did."""
    at_sp, depth, frame, saved, events = True, 8, 0, set(), []
    for offset, register, distance, places in [*rows, (size, "rsp", "8", {})]:
        was_at_sp, at_sp, distance = at_sp, register == "rsp", int(distance)
        if not at_sp and was_at_sp:
            frame = distance
            events.append((offset, depth - distance, 0, "SET_FRAME"))
        elif at_sp and not was_at_sp:
            events.append((offset, distance - frame, 0, "END_FRAME"))
        elif at_sp and distance != depth:
            events.append((offset, abs(distance - depth), 0, "SUB" if distance > depth else "ADD"))
        depth = distance if at_sp else depth
        # gcc does not say that a popped register is the caller's again.
        now = {r for r, below in places.items() if not at_sp or below <= depth}
        events += [(offset, depth - places[r], r, "SAVE") for r in sorted(now - saved)]
        events += [(offset, 0, r, "RESTORE") for r in sorted(saved - now)]
        saved = now
    return events


def stencil(code, holes, rows):
    # The jump to the next stencil is left out at the end.
    if code[-5:-4] == b"\xe9" and any(hole[0] == len(code) - 4 and hole[2] == "CONTINUE" for hole in holes):
        code, holes = code[:-5], [hole for hole in holes if hole[0] != len(code) - 4]
    return "{{ %s }, { %s }, { %s }}" % (
        ", ".join(map(str, code)), ", ".join(f"{{HOLE_{symbol}, {at}, {kind}, {more}}}" for at, kind, symbol, more in holes),
        ", ".join(f"{{{at}, {value}, {r}, FATHOM_JIT_{kind}, 0}}" for at, value, r, kind in events_of(rows, len(code))))


found = {"shim": "{}"}
for path in sys.argv[1:]:
    relocated = holes_of(path)
    for section, rows in rows_of(path, {at: section for at, _, section, _ in relocated[".eh_frame"]}).items():
        code = "".join(re.findall(r"^  0x\w+ ((?:\w+ )+)", readelf(path, "-x", section), re.M))
        found[section[len(".text."):]] = stencil(bytes.fromhex(code), relocated.get(section, []), rows)
print(f"enum {{ {', '.join('TWIG_' + name.upper() for name in found)} }};")
print("static const stencil stencils[] = {\n\t" + ",\n\t".join(found.values()) + "\n};\nstatic const bool has_shim = !stencils[TWIG_SHIM].code.empty();")
