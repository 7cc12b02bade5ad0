#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tables.py OBJECT...: writes the stencils of relocatable files (ELF, x86-64, a section for each function) as C++: code, holes, and
what happens to the stack, which are the rows of the compiler's .eh_frame as events of <fathom/jit.h>."""
import re
import struct
import subprocess
import sys

KINDS = {1: "ADDRESS", 10: "ABSOLUTE", 11: "ABSOLUTE", 2: "RELATIVE", 4: "RELATIVE"}  # R_X86_64_64, 32, 32S, PC32, PLT32
NUMBERS = {"rbx": 3, "rbp": 6, "r12": 12, "r13": 13, "r14": 14, "r15": 15}  # of DWARF
SHT_SYMTAB, SHT_RELA = 2, 4


def read_object(path):
    """{section: its bytes} and {section: [(offset, kind, symbol or section, addend)]}."""
    with open(path, "rb") as file:
        data = file.read()
    at, n, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * i) for i in range(n)]

    def text(table, offset):
        return data[headers[table][4] + offset:].split(b"\0", 1)[0].decode()

    def rows(header, form):
        return struct.iter_unpack(form, data[header[4]:header[4] + header[5]])

    sections = [text(names, h[0]) for h in headers]
    symbols = [text(h[6], s[0]) or sections[s[3]] for h in headers if h[1] == SHT_SYMTAB for s in rows(h, "<IBBHQQ")]
    holes = {sections[h[7]]: [(at, KINDS[info & 0xffffffff], symbols[info >> 32], more) for at, info, more in rows(h, "<QQq")]
             for h in headers if h[1] == SHT_RELA}
    return {name: data[h[4]:h[4] + h[5]] for name, h in zip(sections, headers)}, holes


def rows_of(path, relocations):
    """{section: [(offset, register, its distance from the CFA, {saved register: its place below the CFA})]}, by readelf. The
    relocation of an FDE says of which section it is."""
    owners = {at: symbol for at, _, symbol, _ in relocations}
    shown = subprocess.run(["readelf", "-W", "--debug-dump=frames-interp", path], capture_output=True, text=True, check=True).stdout
    found = {}
    for at, table in re.findall(r"^(\w+) \w+ \w+ FDE .*\n((?:.+\n)*)", shown, re.M):
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


def braced(items):
    return f"{{ {', '.join(items)} }}"


def stencil(name, code, holes, events):
    # The jump to the next stencil is left out at the end.
    if code[-5:-4] == b"\xe9" and any(hole[0] == len(code) - 4 and hole[2] == "CONTINUE" for hole in holes):
        code, holes = code[:-5], [hole for hole in holes if hole[0] != len(code) - 4]
    return f"\t{{ // {name}\n\t\t" + ",\n\t\t".join([
        braced(map(str, code)), braced(braced([str(at), kind, "HOLE_" + symbol, str(more)]) for at, kind, symbol, more in holes),
        braced(braced([str(at), str(value), str(r), "FATHOM_JIT_" + kind, "0"]) for at, value, r, kind in events_of(events, len(code)))]) + " },\n"


found = {}
for argument in sys.argv[1:]:
    contents, relocated = read_object(argument)
    rules = rows_of(argument, relocated[".eh_frame"])
    found |= {s[6:]: stencil(s, contents[s], relocated.get(s, []), rules[s]) for s in contents if s.startswith(".text.")}
has_shim = "shim" in found
found.setdefault("shim", "\t{},\n")
print(f"// Made by tables.py.\nenum {braced('TWIG_' + name.upper() for name in found)};\n"
      f"static const bool has_shim = {str(has_shim).lower()};\nstatic const stencil stencils[] = {{\n{''.join(found.values())}}};")
