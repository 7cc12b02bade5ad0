# SPDX-License-Identifier: MIT
"""Reads just so much of an ELF file as the fixtures' checks need; independent of fathom."""
import struct
import zlib

ET_REL = 1
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_DYNSYM, SHT_SYMTAB_SHNDX = 2, 4, 8, 9, 11, 18
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 0, 1, 2, 10
EM_MIPS = 8


class Section:
    def __init__(self, name, fields):
        self.name_off, self.type, self.flags, self.addr, self.off, self.size = fields[:6]
        self.link, self.info, self.align, self.entsize = fields[6:]
        self.name = name


class Symbol:
    def __init__(self, name, value, size, info, section):
        self.name, self.value, self.size, self.section = name, value, size, section
        self.type, self.bind = info & 15, info >> 4


class ElfFile:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        self._symbols = {}
        self.is64 = self.bytes[4] == 2
        self.order = ">" if self.bytes[5] == 2 else "<"
        head = self._unpack("HHIQQQIHHHHHH" if self.is64 else "HHIIIIIHHHHHH", 16)
        self.type, self.machine = head[0], head[1]
        self.phoff, self.shoff, self.shentsize, self.phnum = head[4], head[5], head[10], head[9]
        self.sections = self._sections(head[11], head[12]) if self.shoff else []

    def _unpack(self, format, off):
        return struct.unpack_from(self.order + format, self.bytes, off)

    def _sections(self, count, names):
        format = "IIQQQQIIQQ" if self.is64 else "IIIIIIIIII"
        first = self._unpack(format, self.shoff)
        count, names = count or first[5], first[6] if names == 0xFFFF else names
        found = [Section("", self._unpack(format, self.shoff + i * self.shentsize)) for i in range(count)]
        strings = self.raw(found[names]) if found else b""
        for s in found:
            s.name = _string(strings, s.name_off)
        return found

    def raw(self, section):
        if section.type == SHT_NOBITS:
            return b""
        return self.bytes[section.off:section.off + section.size]

    def section(self, name):
        return next((s for s in self.sections if s.name == name), None)

    def data(self, section):
        """The section's content, inflated if it is compressed by zlib."""
        raw = self.raw(section)
        if section.flags & SHF_COMPRESSED:
            type, *_ = struct.unpack_from(self.order + "I", raw)
            assert type == 1, f"{section.name}: compressed by other means than zlib"
            return zlib.decompress(raw[24 if self.is64 else 12:])
        if section.name.startswith(".zdebug_"):
            return zlib.decompress(raw[12:])
        return raw

    def symbols(self, type=SHT_SYMTAB):
        """The symbols of .symtab (or .dynsym), the null symbol first."""
        if type not in self._symbols:
            self._symbols[type] = self._read_symbols(type)
        return self._symbols[type]

    def _read_symbols(self, type):
        out = []
        for index, s in enumerate(self.sections):
            if s.type != type:
                continue
            raw, strings = self.raw(s), self.raw(self.sections[s.link])
            wide = next((self.raw(x) for x in self.sections
                         if x.type == SHT_SYMTAB_SHNDX and x.link == index), b"")
            for i, off in enumerate(range(0, len(raw), s.entsize)):
                out.append(self._symbol(raw, off, strings, wide[4 * i:4 * i + 4]))
        return out

    def _symbol(self, raw, off, strings, wide):
        if self.is64:
            name, info, _, section, value, size = struct.unpack_from(self.order + "IBBHQQ", raw, off)
        else:
            name, value, size, info, _, section = struct.unpack_from(self.order + "IIIBBH", raw, off)
        if section == 0xFFFF and wide:
            section, = struct.unpack(self.order + "I", wide)
        return Symbol(_string(strings, name), value, size, info, section)

    def _relocation(self, raw, off, rela):
        """(offset, symbol, addend or None) of one relocation of a debug section: all are absolute."""
        if self.is64:
            at, info = struct.unpack_from(self.order + "QQ", raw, off)
            symbol = info >> 32
            if self.machine == EM_MIPS and self.order == "<":
                symbol = info & 0xFFFFFFFF
            addend = struct.unpack_from(self.order + "q", raw, off + 16)[0] if rela else None
        else:
            at, info = struct.unpack_from(self.order + "II", raw, off)
            symbol = info >> 8
            addend = struct.unpack_from(self.order + "i", raw, off + 8)[0] if rela else None
        return at, symbol, addend

    def relocated(self, section):
        """{offset: (section number, offset in it)}: where words of @section of an ET_REL point."""
        index, points = self.sections.index(section), {}
        word = 8 if self.is64 else 4
        data = self.data(section)
        for s in self.sections:
            if s.type not in (SHT_RELA, SHT_REL) or s.info != index:
                continue
            raw, symbols = self.raw(s), self.symbols()
            for off in range(0, len(raw), s.entsize):
                at, number, addend = self._relocation(raw, off, s.type == SHT_RELA)
                if addend is None:
                    addend = int.from_bytes(data[at:at + word], "big" if self.order == ">" else "little")
                symbol = symbols[number]
                points[at] = (symbol.section, symbol.value + addend)
        return points

    def code(self):
        """(section, first address, address behind it) of each section with code."""
        both = SHF_ALLOC | SHF_EXECINSTR
        return [(s, s.addr, s.addr + s.size) for s in self.sections if s.flags & both == both and s.size]

    def dwarf_units(self):
        """(version, bytes of an offset) of each unit in .debug_info."""
        s = self.section(".debug_info") or self.section(".zdebug_info")
        data, at, units = self.data(s), 0, []
        while at < len(data):
            length, size = struct.unpack_from(self.order + "I", data, at)[0], 4
            if length == 0xFFFFFFFF:
                length, size = struct.unpack_from(self.order + "Q", data, at + 4)[0], 8
            head = at + (4 if size == 4 else 12)
            units.append((struct.unpack_from(self.order + "H", data, head)[0], size))
            at = head + length
        return units


def _string(strings, off):
    return strings[off:strings.index(b"\0", off)].decode("utf-8", "surrogateescape") if off else ""


def probes(path):
    """{name: [(section number, address)]} of .debug_probes (fixtures/src/probe.h). Where code was
    dropped, the linker has put a mark for the address; such are left out."""
    elf = ElfFile(path)
    section = elf.section(".debug_probes") or elf.section(".zdebug_probes")
    data, points = elf.data(section), elf.relocated(section) if elf.type == ET_REL else {}
    word, at, found = 8 if elf.is64 else 4, 0, {}
    ranges = [(elf.sections.index(s), low, high) for s, low, high in elf.code()]
    while at < len(data):
        address = int.from_bytes(data[at:at + word], "big" if elf.order == ">" else "little")
        number = next((i for i, low, high in ranges if low <= address < high), 0)
        if elf.type == ET_REL:
            number, address = points[at]
        end = data.index(b"\0", at + word)
        if number:
            found.setdefault(data[at + word:end].decode(), []).append((number, address))
        at = end + 1
    return found
