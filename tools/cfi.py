#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the call frame information that fathom reads with what readelf reads.

cfi.py FRAMES REPORT: compares all CIEs and FDEs of every ELF file below /usr: what FRAMES
(tests/cfi/frames.c) prints of a file with `readelf -wf`. Writes a Markdown report; ends with status 1 if
anything differs.

readelf prints the augmentation data as bytes: encodings, personality and LSDA are decoded from them here.
Of the instructions, only the first opcode is compared: it shows where instructions start.
"""
import collections
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import oracle

OMIT = 0xFF
SIZES = {2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}
OPCODES = {"nop": 0, "set_loc": 1, "advance_loc1": 2, "advance_loc2": 3, "advance_loc4": 4, "offset_extended": 5,
           "restore_extended": 6, "undefined": 7, "same_value": 8, "register": 9, "remember_state": 10,
           "restore_state": 11, "def_cfa": 12, "def_cfa_register": 13, "def_cfa_offset": 14, "def_cfa_expression": 15,
           "expression": 16, "offset_extended_sf": 17, "def_cfa_sf": 18, "def_cfa_offset_sf": 19, "val_offset": 20,
           "val_offset_sf": 21, "val_expression": 22, "MIPS_advance_loc8": 29, "GNU_window_save": 45,
           "AARCH64_negate_ra_state": 45, "GNU_args_size": 46, "GNU_negative_offset_extended": 47,
           "advance_loc": 0x40, "offset": 0x80, "restore": 0xC0}
# Only the first instruction of an entry is compared.
FIRST_ONLY = r"/^  DW_CFA/ { if (seen++) next } !/^  DW_CFA/ { seen = 0 } { print }"
ENTRY = re.compile(r"([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) (?:CIE|FDE cie=([0-9a-f]+) pc=([0-9a-f:]+)\.\.([0-9a-f]+))")
SECTION = re.compile(r"\[ *\d+\] (\S+) +(\S+) +([0-9a-f]+) ")

Cie = collections.namedtuple("Cie", "off version letters code data register sizes encodings personality first")
Fde = collections.namedtuple("Fde", "off cie low high lsda first")


class Theirs:
    """Returns what readelf says of a file: {section's name: [entries of each such section]}."""

    def __init__(self, path):
        head = subprocess.run(["readelf", "-hSW", path], capture_output=True, text=True, errors="replace", check=False).stdout
        self.relocatable = re.search(r"Type: +REL ", head) is not None
        self.big = "big endian" in head
        self.size = 8 if "ELF64" in head else 4
        self.addresses = collections.defaultdict(list)
        self.sections = collections.defaultdict(list)
        self.warnings = []
        for name, kind, address in SECTION.findall(head):
            if kind != "NOBITS":
                self.addresses[name].append(int(address, 16))
        self._read(path)

    def _read(self, path):
        with subprocess.Popen(["readelf", "-wfN", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as readelf, \
                subprocess.Popen(["awk", FIRST_ONLY], stdin=readelf.stdout, stdout=subprocess.PIPE, text=True,
                                 errors="replace", env={**os.environ, "LC_ALL": "C"}) as awk:
            readelf.stdout.close()
            block = []
            for line in awk.stdout:
                if line[:1] in " \n":
                    block.append(line)
                    continue
                self._entry(block)
                block = [line]
                if line.startswith("Contents of the "):
                    self._begin(line.split()[3])
            self._entry(block)
            self.warnings = readelf.stderr.read().decode(errors="replace").splitlines()

    def _begin(self, name):
        self.sections[name.replace(".z", ".")].append([])
        self.entries = self.sections[name.replace(".z", ".")][-1]
        at = len(self.sections[name.replace(".z", ".")]) - 1
        self.address = self.addresses[name][at] if at < len(self.addresses[name]) else 0
        self.cies = {}

    def _entry(self, block):
        match = ENTRY.match(block[0]) if block else None
        if not match:
            return
        field = {}
        for line in block[1:]:
            key, _, value = line.strip().partition(":")
            field[key.split()[0] if key.startswith("DW_CFA_") else key] = value.strip()
        first = next((OPCODES.get(k[7:]) for k in field if k.startswith("DW_CFA_")), None)
        data = bytes.fromhex(field.get("Augmentation data", ""))
        off = int(match[1], 16)
        if not match[4]:
            self._cie(off, field, data, first)
            return
        cie = self.cies.get(int(match[4], 16))
        low = int(match[5].rpartition(":")[2], 16)
        self.entries.append(Fde(off, int(match[4], 16), low, int(match[6], 16),
                                self._lsda(cie, off, data), first))

    def _cie(self, off, field, data, first):
        letters = field["Augmentation"].strip('"')
        cie = {"R": 0, "L": OMIT, "P": OMIT, "at": None, "first": first}
        # Fields before the augmentation data, whose length is one byte.
        at = off + 8 + 1 + len(letters) + 1 + (2 if field["Version"] == "4" else 0)
        at += len(leb(int(field["Code alignment factor"]))) + len(leb(int(field["Data alignment factor"]), True)) + 2
        rest = list(data) if letters[:1] == "z" else []
        for letter in letters[1:] if rest else "":
            if letter in "RL":
                cie[letter] = rest.pop(0)
            elif letter == "P":
                cie["P"] = rest.pop(0)
                value, rest = self._value(cie["P"], rest)
                cie["at"] = self._relative(value, cie["P"], at + len(data) - len(rest) - self._width(cie["P"]))
        self.cies[off] = cie
        self.entries.append(Cie(
            off, int(field["Version"]), letters, int(field["Code alignment factor"]), int(field["Data alignment factor"]),
            int(field["Return address column"]),
            (int(field.get("Pointer Size", self.size)), int(field.get("Segment Size", 0))),
            (cie["R"], cie["L"], cie["P"]), cie["at"], first))

    def _width(self, encoding):
        return self.size if encoding & 15 == 0 else SIZES[encoding & 15]

    def _value(self, encoding, data):
        width = self._width(encoding)
        value = int.from_bytes(bytes(data[:width]), "big" if self.big else "little", signed=encoding & 8 != 0)
        return value, data[width:]

    def _relative(self, value, encoding, at):
        value += self.address + at if encoding & 0x70 == 0x10 else 0
        return value & ((1 << 8 * self.size) - 1)

    def _lsda(self, cie, off, data):
        """Returns the LSDA of the FDE at @off; its augmentation data follow the bounds and their length."""
        if not cie or cie["L"] == OMIT or not data:
            return None
        value, _ = self._value(cie["L"], data)
        return self._relative(value, cie["L"], off + 8 + 2 * self._width(cie["R"]) + 1) if value else None


def leb(value, signed=False):
    out = []
    while True:
        out.append(value & 127)
        value >>= 7
        if value in (0, -1) and (not signed or (out[-1] & 64 != 0) == (value == -1)):
            return out


def opcode(text):
    """Returns the first instruction without its operand."""
    return None if text == "-" else int(text, 16) & 0xC0 or int(text, 16)


def address(text):
    return None if text == "-" else int(text, 16)


class Ours:
    """Returns the same as @frames, a command, prints it; @found counts how look-ups ended."""

    def __init__(self, frames, path):
        self.sections, self.found, self.wrong = collections.defaultdict(list), collections.Counter(), []
        self.missed = []
        out = subprocess.run([*frames, path], capture_output=True, text=True, errors="replace", check=False)
        if out.returncode:
            self.wrong.append(f"status {out.returncode}")
        entries = None
        for line in out.stdout.splitlines():
            f = line.split()
            if f[0] == "section":
                entries = []
                self.sections[f[1]].append(entries)
            elif f[0] == "C" and f[2] != "error":
                entries.append(Cie(int(f[1], 16), int(f[2], 16), f[8].strip('"'), int(f[3], 16), int(f[4]), int(f[5], 16),
                                   (int(f[6], 16), int(f[7], 16)), tuple(int(x, 16) for x in f[9].split("/")),
                                   address(f[10]), opcode(f[14])))
            elif f[0] == "F" and f[2] != "error":
                entries.append(Fde(int(f[1], 16), int(f[2], 16), int(f[3], 16), int(f[4], 16), address(f[5]), opcode(f[9])))
                self.found[f[6]] += 1
                if f[6] == "!":
                    self.missed.append(line)
            elif f[0] != "file":
                self.wrong.append(line)


def first_difference(ours, theirs, relocatable):
    """Returns the first entry that differs, as both have it, or None."""
    for name in sorted({*ours.sections, *theirs.sections}):
        mine, other = ours.sections.get(name, []), theirs.sections.get(name, [])
        # Not every version prints a section without entries.
        mine, other = [s for s in mine if s], [s for s in other if s]
        if len(mine) != len(other):
            return f"{name}: {len(mine)} sections, readelf has {len(other)}"
        for a, b in zip(mine, other):
            if relocatable:
                a, b = ([e._replace(personality=None) if isinstance(e, Cie) else e for e in s] for s in (a, b))
            if a != b:
                return next(f"{name}: {x}, readelf has {y}" for x, y in zip([*a, None], [*b, None]) if x != y)
    return None


def wide_pointers(path):
    """Returns the offsets in .debug_frame of relocations of 8 bytes."""
    out = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, errors="replace", check=False).stdout
    part = re.search(r"^Relocation section '\.rela\.debug_frame'.*?(?=^Relocation section|\Z)", out, re.M | re.S)
    return {int(m, 16) for m in re.findall(r"^([0-9a-f]+) .*R_X86_64_64 ", part[0], re.M)} if part else set()


def without_ranges(side, wide):
    """Removes the ranges of the FDEs of @side whose CIE pointers are relocated as 8 bytes. Returns their number."""
    n = 0
    for section in side.sections[".debug_frame"]:
        for i, e in enumerate(section):
            if isinstance(e, Fde) and e.off + 4 in wide:
                section[i] = e._replace(low=0, high=0)
                n += 1
    return n


class Outcome:
    """Compares one file. Returns counts of what was compared, and what differs."""

    def __init__(self, frames, path):
        self.path = path
        ours, theirs = Ours(frames, path), Theirs(path)
        self.entries = [e for sections in ours.sections.values() for s in sections for e in s]
        self.cies = sum(isinstance(e, Cie) for e in self.entries)
        self.fdes = len(self.entries) - self.cies
        self.lsdas = sum(isinstance(e, Fde) and e.lsda is not None for e in self.entries)
        self.letters = collections.Counter(e.letters for e in self.entries if isinstance(e, Cie))
        self.kinds = collections.Counter({name: sum(map(len, s)) for name, s in ours.sections.items()})
        self.found = ours.found
        self.wrong = list(ours.wrong)
        difference = first_difference(ours, theirs, theirs.relocatable)
        self.is_pascal, self.without_range = False, 0
        if difference and theirs.relocatable:
            wide = wide_pointers(path)
            self.without_range = without_ranges(ours, wide)
            without_ranges(theirs, wide)
            difference = first_difference(ours, theirs, True)
            self.is_pascal = not difference
        if difference:
            self.wrong.append(f"{difference}; {' / '.join(theirs.warnings[:2])}")
        if ours.missed:
            self.wrong.append(f"{len(ours.missed)} look-ups failed, as of: {ours.missed[0]}")
        del self.entries


def table(out, title, rows):
    out.write(f"\n| {title} |  |\n|---|---|\n")
    out.writelines(f"| {name} | {count:,} |\n" for name, count in rows)


def write_report(report, outcomes):
    total = collections.Counter()
    letters, kinds, found = collections.Counter(), collections.Counter(), collections.Counter()
    for o in outcomes:
        total += collections.Counter(files=1, cies=o.cies, fdes=o.fdes, lsdas=o.lsdas, wrong=bool(o.wrong),
                                     pascal=o.is_pascal, without_range=o.without_range)
        letters += o.letters
        kinds += o.kinds
        found += collections.Counter({(how, o.is_pascal): n for how, n in o.found.items()})
    with open(report, "w", encoding="utf-8") as out:
        out.write("# Call frame information: fathom against readelf\n\nMade by `./dev cfi`: every CIE and FDE of every ELF file "
                  "below /usr, as `readelf -wf` has it: offset, version, augmentation, alignments, return address "
                  "register, sizes, encodings, personality (not of relocatable files), ranges, LSDA, first instruction.\n")
        table(out, "compared", [("files", total["files"]), ("CIEs", total["cies"]), ("FDEs", total["fdes"]),
                                ("LSDAs", total["lsdas"]), ("files that differ", total["wrong"]),
                                ("files of Free Pascal, see below", total["pascal"]),
                                ("FDEs of these whose ranges are not compared", total["without_range"])])
        table(out, "entries of", sorted(kinds.items()))
        table(out, "CIEs with the augmentation", [(f'"{k}"', n) for k, n in letters.most_common()])
        names = {"=": "led back to it", "~": "led to another that covers the address", "!": "failed", "0": "none: it has no code",
                 "d": "none: it is in .debug_frame, and there is no code at its address"}
        table(out, "look-ups of each FDE by first and last address",
              [(names[k] + (", Free Pascal" if pascal else ""), n) for (k, pascal), n in found.most_common()])
        out.write("\nFree Pascal 3.2.2 writes 8 bytes as the CIE pointers of its 32-bit DWARF, so what stands behind is misread by every "
                  "reader. The relocated halves of these ranges depend on where a reader lays out sections: they are not compared. "
                  "In other files without code at an FDE's address, the linker has dropped its function.\n")
        for o in outcomes:
            for line in o.wrong:
                out.write(f"\n- {o.path}: {line}")
    return total


def main():
    frames, report = sys.argv[1:]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(lambda path: Outcome([frames], path), oracle.elf_files("/usr", (oracle.ET_REL, oracle.ET_EXEC, oracle.ET_DYN))))
    total = write_report(report, outcomes)
    print(f"{total['files']:,} files, {total['cies']:,} CIEs, {total['fdes']:,} FDEs; {total['wrong']} files differ")
    return 1 if total["wrong"] or not total["fdes"] else 0


if __name__ == "__main__":
    sys.exit(main())
