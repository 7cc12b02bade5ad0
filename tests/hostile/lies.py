# SPDX-License-Identifier: MIT
"""The lies that are told in files of each kind, as lines for the program liar.

A lie can be told from truth ("s": all answers must be true then) where the file contradicts itself or its format:

- a size, offset, count or index that leads out of what it is in, or a version, class, form or size of words that
  no specification has;
- a part that is gone: the file cut, a section named nothing, its content zeros, ones or noise where these are
  nothing that the section could hold;
- a checksum or build-id that is not that of what it belongs to.

It cannot ("l": nothing may crash, take long or grow) where the file would be as sound with another meaning:

- addresses, the machine, the type of a file or section, and whether a section is loaded;
- strings, whatever stands in them; and what leads to strings or addresses by its place in a table: offsets that
  stay inside, .debug_str_offsets, .debug_addr, relocations and tables of indexes when they are filled;
- opcodes and operands of line programs, abbreviations and entries, where they parse;
- functions that were folded into one: the first unit that has the code decides, and without it the next is as sound;
- a symbol that is larger than its section ends with that, which may not grow;
- symbols without a size reach to the next one, or to the end of the unwind description that has their start: these
  may not be taken away, nor their tables cut short.
"""
import os
import random
import re
import struct
import zlib

import elfread

ALL = (1 << 64) - 1
# Filled with other bytes they are as sound as before.
MEANING = (".debug_str", ".debug_line_str", ".debug_str_offsets", ".debug_addr", ".strtab", ".dynstr", ".shstrtab",
           ".rel", ".comment", ".text", ".data", ".rodata", ".opd", ".got", ".symtab_shndx", ".debug_probes", ".toc",
           ".gnu_debugaltlink", ".debug_cu_index", ".debug_tu_index", ".init", ".fini", ".plt")


# So many sections at either end of the table are lied about.
MOST_SECTIONS = 200
# The C library's start files have symbols without a size, which end with their sections.
STARTUP = ("_init", "_fini", "_start", "_dl_relocate_static_pie", "deregister_tm_clones", "register_tm_clones",
           "__do_global_dtors_aux", "frame_dummy", "call_weak_fn", "__x86.get_pc_thunk.bx", "_PROCEDURE_LINKAGE_TABLE_")


class Lies:
    """The lines of the lies about one file."""

    def __init__(self, order="<", end=None):
        self.order, self.end, self.lines = order, end, []

    def write(self, kind, at, data, label):
        if self.end is not None and at + len(data) > self.end:
            return
        self.lines.append(f"write {kind} {at:x} {data.hex()} {label}")

    def word(self, kind, at, size, values, label):
        # What a word cannot hold is no lie; the largest values are the largest of each word.
        for value in values:
            if value > 1 << 63:
                value &= (1 << (8 * size)) - 1
            if value >> (8 * size):
                continue
            self.write(kind, at, value.to_bytes(size, "big" if self.order == ">" else "little"), f"{label}={value:#x}")

    def fill(self, kind, at, size, byte, label):
        if self.end is not None:
            size = min(size, max(0, self.end - at))
        if size:
            self.lines.append(f"fill {kind} {at:x} {size:x} {byte} {label}={byte}")

    def cut(self, kind, size, label):
        self.lines.append(f"cut {kind} {size:x} {label}")


# Each field of the headers: (offset, size) for 32 and 64 bits.
FILE_HEADER = {"e_type": ((16, 2), (16, 2)), "e_machine": ((18, 2), (18, 2)), "e_phoff": ((28, 4), (32, 8)),
               "e_shoff": ((32, 4), (40, 8)), "e_phentsize": ((42, 2), (54, 2)), "e_phnum": ((44, 2), (56, 2)),
               "e_shentsize": ((46, 2), (58, 2)), "e_shnum": ((48, 2), (60, 2)), "e_shstrndx": ((50, 2), (62, 2))}
SECTION = {"sh_name": ((0, 4), (0, 4)), "sh_type": ((4, 4), (4, 4)), "sh_flags": ((8, 4), (8, 8)),
           "sh_addr": ((12, 4), (16, 8)), "sh_offset": ((16, 4), (24, 8)), "sh_size": ((20, 4), (32, 8)),
           "sh_link": ((24, 4), (40, 4)), "sh_info": ((28, 4), (44, 4)), "sh_addralign": ((32, 4), (48, 8)),
           "sh_entsize": ((36, 4), (56, 8))}
SEGMENT = {"p_type": ((0, 4), (0, 4)), "p_offset": ((4, 4), (8, 8)), "p_vaddr": ((8, 4), (16, 8)),
           "p_filesz": ((16, 4), (32, 8)), "p_memsz": ((20, 4), (40, 8)), "p_flags": ((24, 4), (4, 4))}
TABLES = (2, 3, 4, 9, 11)  # SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_REL, SHT_DYNSYM


class ElfLies(Lies):
    def __init__(self, path):
        self.elf = elfread.ElfFile(path)
        self.size = len(self.elf.bytes)
        super().__init__(self.elf.order, self.size)
        executable = {i for i, s in enumerate(self.elf.sections) if s.flags & elfread.SHF_EXECINSTR}
        base = self.elf.type != elfread.ET_REL
        # Sections that hold a symbol which is larger: that ends with its section.
        self.too_small = {x.section for x in self.elf.symbols() if x.section < len(self.elf.sections) and x.size and
                          x.value + x.size > base * self.elf.sections[x.section].addr + self.elf.sections[x.section].size}
        self.sizeless = any(x.size == 0 and x.section in executable and x.type in (0, 2) and x.name not in STARTUP
                            for type in (elfread.SHT_SYMTAB, elfread.SHT_DYNSYM) for x in self.elf.symbols(type))
        self._header()
        for number in range(min(self.elf.phnum, 64)):
            self._segment(number)
        sections = self.elf.sections
        for number, s in enumerate(sections):
            if 0 < number < MOST_SECTIONS or number > len(sections) - MOST_SECTIONS:
                self._section(number, s)
                if s.type not in (0, elfread.SHT_NOBITS) and s.size:
                    self._content(s)
        self._cuts()

    def _field(self, kind, table, base, name, values, label):
        at, size = table[name][self.elf.is64]
        self.word(kind, base + at, size, values, f"{label}.{name}")

    def _header(self):
        def lie(kind, name, *values):
            self._field(kind, FILE_HEADER, 0, name, values, "header")
        lie("s", "e_shoff", ALL, ALL - 7, self.size, self.size - 8, 1 << 31)
        lie("s", "e_phoff", ALL, ALL - 7, self.size, 1 << 31)
        lie("s", "e_shentsize", 0, 1, ALL)
        lie("s", "e_phentsize", 0, 1, ALL)
        lie("s", "e_shnum", 0xfeff)
        lie("s", "e_phnum", 0xfffe)
        lie("l" if self.sizeless else "s", "e_shstrndx", 0xfefe)
        lie("l", "e_shnum", 0, 1)
        lie("l", "e_type", 0, 1, 2, 3, 4)
        lie("l", "e_machine", 0, 3, 62, 183, ALL)
        self.word("s", 4, 1, (0, 3, 3 - self.elf.bytes[4]), "header.class")
        self.word("s", 5, 1, (0, 3, 3 - self.elf.bytes[5]), "header.order")
        self.fill("s", 0, 64 if self.elf.is64 else 52, "0", "header")

    def _segment(self, number):
        base = self.elf.phoff + number * (56 if self.elf.is64 else 32)

        def lie(kind, name, *values):
            self._field(kind, SEGMENT, base, name, values, f"segment{number}")
        lie("s", "p_offset", ALL, self.size + 1)
        lie("s", "p_filesz", ALL, 1 << 63, 1 << 31)
        lie("l", "p_memsz", 0, ALL)
        lie("l", "p_vaddr", 0, ALL)
        lie("l", "p_type", 0, 1, 2, ALL)

    def _section(self, number, s):
        base = self.elf.shoff + number * self.elf.shentsize
        holds = s.type != elfread.SHT_NOBITS and s.size > 0

        def lie(kind, name, *values):
            self._field(kind, SECTION, base, name, values, s.name or "section")
        told = "l" if self._is_bound(s.name) else "s"
        if holds:
            lie(told, "sh_offset", ALL, ALL - 7, self.size + 1, 1 << 63, 1 << 31)
            lie("l" if number in self.too_small else told, "sh_size", ALL, 1 << 63, 1 << 32, 1 << 31, self.size - s.off + 1)
            # Of tables of symbols and relocations what is left is as sound as before.
            kind = "l" if s.type in TABLES or s.name.startswith(MEANING) else told
            lie(kind, "sh_size", 0)
            lie(kind, "sh_name", ALL)
            lie("l", "sh_size", s.size - 1, s.size // 2)
            lie("l", "sh_offset", 0, s.off + 1)
        if s.type in (2, 4, 9, 11):
            lie(told, "sh_link", len(self.elf.sections), ALL)
            lie(told, "sh_entsize", 1, ALL)
        if s.type in (4, 9):
            lie(told, "sh_info", len(self.elf.sections), ALL)
        lie("l", "sh_link", 0, number)
        lie("l", "sh_info", 0, ALL)
        lie("l", "sh_type", 0, 1, 8, ALL)
        lie("l", "sh_flags", 0, ALL)
        lie("l", "sh_addralign", ALL)
        lie("l", "sh_addr", ALL)
        if holds and s.name.startswith(".debug_"):
            # Compressed, it would start with a header of that: no debug section starts so.
            lie("s" if s.name in (".debug_info", ".debug_line", ".debug_abbrev") else "l", "sh_flags", s.flags ^ 0x800)

    def _is_bound(self, name):
        """Whether these are unwind descriptions by which a symbol may end, what relocates or what names them."""
        return self.sizeless and name.endswith(("eh_frame", "eh_frame_hdr", ".debug_frame", ".shstrtab"))

    def _content(self, s):
        at, size, name = s.off, s.size, s.name or "section"
        fills = ("0", "ff", "noise")
        for byte in fills:
            sound = name.startswith(MEANING) or s.type in TABLES or \
                (name.startswith((".debug_ranges", ".debug_rnglists", ".debug_loc")) and byte != "0")
            sound = sound or self._is_bound(name) or name == ".note.gnu.build-id"
            self.fill("l" if sound else "s", at, size, byte, name)
            self.fill("l", at + size // 2, min(size - size // 2, 64), byte, f"{name}+half")
        if s.flags & elfread.SHF_COMPRESSED or name.startswith(".zdebug_"):
            self._compressed(s)
        elif name in READERS:
            READERS[name](self, s)
        elif name.startswith(".note"):
            # Without a build-id of its own a file may have a debug file of any build-id.
            kind = "l" if name == ".note.gnu.build-id" else "s"
            self.word(kind, at, 4, (ALL, 1 << 31, size), f"{name}.namesz")
            self.word(kind, at + 4, 4, (ALL, 1 << 31, size), f"{name}.descsz")
            if name == ".note.gnu.build-id":
                self.fill("s", at + size - 8, 8, "0", f"{name}.id")
        elif s.type in (2, 11):
            self._symbols(s)

    def _compressed(self, s):
        if s.name.startswith(".zdebug_"):
            old, self.order = self.order, ">"
            self.word("s", s.off + 4, 8, (0, ALL, 1 << 40, s.size * 2000), f"{s.name}.size")
            self.order = old
        else:
            word = 8 if self.elf.is64 else 4
            self.word("s", s.off, 4, (0, 3, ALL), f"{s.name}.ch_type")
            at = s.off + word
            real = int.from_bytes(self.elf.bytes[at:at + word], "big" if self.order == ">" else "little")
            self.word("s", at, word, (0, 1, real - 1, real + 1, ALL, 1 << 40, 1 << 31), f"{s.name}.ch_size")
        # Of zlib's the checksum tells.
        kind = "s" if s.name.startswith(".zdebug_") or self.elf.bytes[s.off + (3 if self.order == ">" else 0)] == 1 else "l"
        self.fill(kind, s.off + s.size - s.size // 4, min(8, s.size // 4), "ff", f"{s.name}.stream")
        self.fill("s", s.off + (24 if self.elf.is64 else 12), 2, "ff", f"{s.name}.stream-start")

    def _symbols(self, s):
        entry, fields = (24, {"st_name": (0, 4), "st_shndx": (6, 2), "st_size": (16, 8)}) if self.elf.is64 else \
            (16, {"st_name": (0, 4), "st_shndx": (14, 2), "st_size": (8, 4)})
        for number in sorted({1, s.size // entry // 2, s.size // entry - 1}):
            for field, value, kind in (("st_name", ALL, "l"), ("st_shndx", 0xfe00, "l"), ("st_size", ALL, "l")):
                at, size = fields[field]
                if 0 < number < s.size // entry:
                    self.word(kind, s.off + number * entry + at, size, (value,), f"{s.name}[{number}].{field}")

    def _cuts(self):
        ends = {1, 4, 16, 51, 63, self.size - 1, self.size // 2, self.elf.shoff, self.elf.shoff + 1,
                self.elf.shoff + self.elf.shentsize * len(self.elf.sections) - 1}
        for s in self.elf.sections[:MOST_SECTIONS]:
            if s.type not in (0, elfread.SHT_NOBITS):
                ends |= {s.off, s.off + s.size // 2, s.off + s.size - 1}
        for size in sorted(ends):
            if 0 < size < self.size:
                # What bounds functions may be taken away, or its name, and their symbols stay.
                table = self.elf.shoff + self.elf.shentsize * len(self.elf.sections)
                bounds = any(self._is_bound(s.name) and max(s.off + s.size, table) > size for s in self.elf.sections)
                self.cut("l" if bounds else "s", size, "file")


def _initial_length(lies, at, rest, label):
    """The length that units and tables start with: where it ends, and how wide offsets are."""
    wide = lies.elf.bytes[at:at + 4] == b"\xff\xff\xff\xff"
    lies.word("s", at, 4, (0xfffffff0, 0xfffffffe, rest, 1 << 31), f"{label}.length")
    lies.word("l", at, 4, (0, 1, 0xffffffff), f"{label}.length")
    if wide:
        lies.word("s", at + 4, 8, (ALL, ALL - 12, 1 << 63, rest), f"{label}.length")
    return (at + 12, 8) if wide else (at + 4, 4)


def _units(lies, at, end):
    """(offset, length with its own bytes) of what starts with a length, one behind the other."""
    while at + 4 <= end:
        length, = struct.unpack_from(lies.order + "I", lies.elf.bytes, at)
        own = 4
        if length == 0xffffffff and at + 12 <= end:
            length, = struct.unpack_from(lies.order + "Q", lies.elf.bytes, at + 4)
            own = 12
        if at + own + length > end:
            return
        yield at, own + length
        at += own + length


def _some(found):
    """The first, one in the middle, and the last."""
    found = list(found)
    return [found[i] for i in sorted({0, len(found) // 2, len(found) - 1})] if found else []


def _version(lies, at, label):
    lies.word("s", at, 2, (0, 1, 9, 0xffff), f"{label}.version")


def _info(lies, s):
    for at, _ in _some(_units(lies, s.off, s.off + s.size)):
        head, wide = _initial_length(lies, at, s.off + s.size - at, s.name)
        version, = struct.unpack_from(lies.order + "H", lies.elf.bytes, head)
        _version(lies, head, s.name)
        if version >= 5:
            lies.word("s", head + 2, 1, (0, 0x7f, 0xff), f"{s.name}.unit_type")
        abbrev, word = (head + 4, head + 3) if version >= 5 else (head + 2, head + 2 + wide)
        lies.word("s", abbrev, wide, (ALL, 1 << 31, ALL - 1), f"{s.name}.abbrev_offset")
        lies.word("s", word, 1, (0, 1, 3, 255), f"{s.name}.address_size")


def _line(lies, s):
    for at, _ in _some(_units(lies, s.off, s.off + s.size)):
        head, wide = _initial_length(lies, at, s.off + s.size - at, s.name)
        version, = struct.unpack_from(lies.order + "H", lies.elf.bytes, head)
        _version(lies, head, s.name)
        after = head + (4 if version >= 5 else 2)
        if version >= 5:
            lies.word("s", head + 2, 1, (0, 3, 255), f"{s.name}.address_size")
        lies.word("s", after, wide, (ALL, 1 << 31), f"{s.name}.header_length")
        program = after + wide + (2 if version >= 4 else 1)
        lies.word("s", program + 2, 1, (0,), f"{s.name}.line_range")
        lies.word("l", program, 4, (0, ALL), f"{s.name}.line_base")
        lies.word("l", program + 3, 1, (0, 1, 255), f"{s.name}.opcode_base")
        if version >= 5:
            opcodes = lies.elf.bytes[program + 3]
            lies.word("l", program + 3 + opcodes, 1, (0, 255), f"{s.name}.format_count")
            lies.word("l", program + 4 + opcodes, 4, (ALL,), f"{s.name}.format")


def _aranges(lies, s):
    for at, _ in _some(_units(lies, s.off, s.off + s.size)):
        head, wide = _initial_length(lies, at, s.off + s.size - at, s.name)
        _version(lies, head, s.name)
        lies.word("s", head + 2, wide, (ALL, 1 << 31), f"{s.name}.info_offset")
        lies.word("s", head + 2 + wide, 1, (0, 3, 255), f"{s.name}.address_size")
        lies.word("s", head + 3 + wide, 1, (3, 255), f"{s.name}.segment_size")


def _abbrev(lies, s):
    lies.fill("s", s.off, min(16, s.size), "ff", f"{s.name}.start")
    lies.fill("s", s.off, min(64, s.size), "80", f"{s.name}.start")


def _counted(lies, s):
    """A table with a version, the size of addresses and of segments behind its length."""
    for at, _ in _some(_units(lies, s.off, s.off + s.size)):
        wide = lies.elf.bytes[at:at + 4] == b"\xff\xff\xff\xff"
        # Before DWARF 5 there was no header, and GNU's addresses still have none.
        if lies.elf.bytes[at + (12 if wide else 4):][:2] != struct.pack(lies.order + "H", 5):
            continue
        head, _ = _initial_length(lies, at, s.off + s.size - at, s.name)
        _version(lies, head, s.name)
        if s.name.startswith(".debug_str_offsets"):
            continue
        lies.word("s", head + 2, 1, (0, 3, 255), f"{s.name}.address_size")
        lies.word("s", head + 3, 1, (3, 255), f"{s.name}.segment_size")
        if not s.name.startswith(".debug_addr"):
            lies.word("s", head + 4, 4, (ALL, 1 << 31), f"{s.name}.offset_count")


def _gdb_index(lies, s):
    old, lies.order = lies.order, "<"
    lies.word("s", s.off, 4, (0, 1, 99, ALL), f"{s.name}.version")
    for number in range(1, 6):
        lies.word("s", s.off + 4 * number, 4, (ALL, 1 << 31, s.size + 1), f"{s.name}[{number}]")
        lies.word("l", s.off + 4 * number, 4, (0,), f"{s.name}[{number}]")
    lies.order = old


def _names(lies, s):
    for at, _ in _some(_units(lies, s.off, s.off + s.size)):
        head, _ = _initial_length(lies, at, s.off + s.size - at, s.name)
        _version(lies, head, s.name)
        for number in range(7):
            lies.word("s", head + 4 + 4 * number, 4, (ALL, 1 << 31, 1 << 28), f"{s.name}.count{number}")


def _package(lies, s):
    lies.word("s", s.off, 2, (0, 1, 99, 0xffff), f"{s.name}.version")
    for number, field in ((1, "columns"), (2, "units"), (3, "slots")):
        lies.word("s", s.off + 4 * number, 4, (ALL, 1 << 31, 1 << 20), f"{s.name}.{field}")
        lies.word("l", s.off + 4 * number, 4, (0, 1), f"{s.name}.{field}")


def _hash(lies, s):
    for number in range(4 if s.name == ".gnu.hash" else 2):
        lies.word("s", s.off + 4 * number, 4, (ALL, 1 << 31), f"{s.name}[{number}]")
        lies.word("l", s.off + 4 * number, 4, (0,), f"{s.name}[{number}]")


def _dynamic(lies, s):
    word = 8 if lies.elf.is64 else 4
    for at in range(s.off, s.off + s.size - 2 * word + 1, 2 * word):
        tag = int.from_bytes(lies.elf.bytes[at:at + word], "big" if lies.order == ">" else "little")
        if tag in (4, 5, 6, 10, 11, 0x6ffffef5):  # HASH STRTAB SYMTAB STRSZ SYMENT GNU_HASH
            lies.word("s", at + word, word, (ALL, 1 << 31), f"{s.name}.{tag:#x}")
            lies.word("l", at + word, word, (0,), f"{s.name}.{tag:#x}")


def _frames(lies, s):
    lies.word("l" if lies.sizeless else "s", s.off, 4, (0xfffffff0, 1 << 31, s.size), f"{s.name}.length")


def _frame_header(lies, s):
    kind = "l" if lies.sizeless else "s"
    lies.word(kind, s.off, 1, (0, 255), f"{s.name}.version")
    lies.word(kind, s.off + 8, 4, (ALL, 1 << 31, 1 << 28), f"{s.name}.count")


def _debuglink(lies, s):
    lies.word("s", s.off + s.size - 4, 4, (0, ALL), f"{s.name}.crc")
    lies.fill("s", s.off, s.size - 4, "41", f"{s.name}.name")


def _altlink(lies, s):
    lies.fill("s", s.off + s.size - 4, 4, "0", f"{s.name}.id")


READERS = {".debug_info": _info, ".debug_types": _info, ".debug_line": _line, ".debug_aranges": _aranges,
           ".debug_abbrev": _abbrev, ".debug_str_offsets": _counted, ".debug_addr": _counted,
           ".debug_rnglists": _counted, ".gdb_index": _gdb_index, ".debug_names": _names,
           ".debug_cu_index": _package, ".debug_tu_index": _package, ".gnu.hash": _hash, ".hash": _hash,
           ".dynamic": _dynamic, ".eh_frame": _frames, ".debug_frame": _frames, ".eh_frame_hdr": _frame_header,
           ".gnu_debuglink": _debuglink, ".gnu_debugaltlink": _altlink}
READERS |= {f"{name}.dwo": reader for name, reader in list(READERS.items()) if name.startswith(".debug_")}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def of_stream(path):
    """Lies about a compressed file; each format can have a checksum that tells of damage."""
    with open(path, "rb") as file:
        head = file.read(5)
    # zstd states in its header whether there is one; lz4, too.
    checked = bool(head[4] & 4) if head[:4] in (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18") else True
    lies, size = Lies(), os.path.getsize(path)
    for cut in sorted({1, 4, 16, size // 4, size // 2, size - 8, size - 1}):
        lies.cut("s", cut, "stream")
    for at in sorted({2, 8, 18, 32, size // 3, size // 2, size - 16, size - 8}):
        for byte in ("0", "ff", "noise"):
            lies.fill("s" if checked else "l", at, 8, byte, f"stream+{at}")
    return lies.lines


def of_elf(path):
    return ElfLies(path).lines


def untold(lines):
    """The same lies, as such that cannot be told from truth."""
    return [re.sub("^(write|fill|cut) s ", r"\1 l ", line) for line in lines]


def aliases(symbols):
    """Lines for the symbols. Bit 0 of a function's address may say which instructions it has."""
    found = {(value, x.name.partition("@")[0]) for x in symbols if x.name and "\n" not in x.name
             for value in (x.value, x.value & ~1)}
    return [f"alias {value:x} {name}" for value, name in sorted(found)]


# Lies that have been believed: they are told in each file.
BELIEVED = re.compile(r"\.init\.sh_size|\.rela?\.debug_(line|str_offsets)\.sh_(size|link|info)|p_filesz|"
                      r" \.text\.sh_size=0xffffffff$|\.zdebug_.*=(0|noise)$")


def chosen(lines, number, name):
    """Those that have been believed, and so many others, always the same ones for one name; None: all."""
    if number is None or len(lines) <= number:
        return lines
    kept = [line for line in lines if BELIEVED.search(line)]
    others = [line for line in lines if not BELIEVED.search(line)]
    return kept + random.Random(zlib.crc32(name.encode())).sample(others, min(number, len(others)))
