# SPDX-License-Identifier: MIT
"""Writes ELF files (gABI, chapters 4 and 5): either class, either byte order, any sections."""
from out import Out

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_386, EM_PPC64, EM_ARM, EM_X86_64, EM_AARCH64 = 3, 21, 40, 62, 183
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_REL = 1, 2, 3, 4, 7, 8, 9
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 1, 2, 4, 0x800
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION = 0, 1, 2, 3
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
PT_LOAD, PT_NOTE = 1, 4


class Section:
    def __init__(self, name, data, type, flags, addr, align, link, info, entsize):
        self.name, self.data, self.type, self.flags, self.addr = name, bytes(data), type, flags, addr
        self.align, self.link, self.info, self.entsize = align, link, info, entsize
        self.off = 0


class Elf:
    """One file; sections are numbered from 1 in the order in which they were added."""

    def __init__(self, bits=64, big=False, machine=EM_X86_64, type=ET_EXEC, flags=0, osabi=0):
        self.bits, self.big, self.machine, self.type = bits, big, machine, type
        self.flags, self.osabi = flags, osabi
        self.sections, self.symbols = [], []

    def section(self, name, data=b"", type=SHT_PROGBITS, flags=0, addr=0, align=1, link=0, info=0,
                entsize=0):
        self.sections.append(Section(name, data, type, flags, addr, align, link, info, entsize))
        return len(self.sections)

    def text(self, addr=0x1000, size=0x100, name=".text"):
        """A section of code, which nobody decodes."""
        return self.section(name, b"\x90" * size, flags=SHF_ALLOC | SHF_EXECINSTR, addr=addr, align=16)

    def symbol(self, name, value, size=0, section=1, type=STT_FUNC, bind=STB_GLOBAL):
        self.symbols.append((name, value, size, section, type, bind))

    def build_id(self, id):
        note = Out(self.big).u32(4).u32(len(id)).u32(3).raw(b"GNU\0").raw(id)
        self.section(".note.gnu.build-id", note.bytes, SHT_NOTE, SHF_ALLOC, 0x500, 4)

    def _word(self, out, value):
        return out.uint(value, self.bits // 8)

    def _symtab(self):
        """Adds .symtab and .strtab; local symbols come first, as sh_info has to say."""
        names, out = Out(self.big).u8(0), Out(self.big)
        ordered = sorted(self.symbols, key=lambda s: s[5] != STB_LOCAL)
        for name, value, size, section, type, bind in [("", 0, 0, 0, 0, 0)] + ordered:
            info = bind << 4 | type
            out.u32(len(names) if name else 0)
            if self.bits == 64:
                out.u8(info).u8(0).u16(section).u64(value).u64(size)
            else:
                out.u32(value).u32(size).u8(info).u8(0).u16(section)
            if name:
                names.cstr(name)
        n_local = 1 + sum(s[5] == STB_LOCAL for s in ordered)
        strtab = self.section(".strtab", names.bytes, SHT_STRTAB)
        self.section(".symtab", out.bytes, SHT_SYMTAB, align=8, link=strtab, info=n_local,
                     entsize=24 if self.bits == 64 else 16)

    def _segments(self):
        """One PT_LOAD for each section that is loaded: enough for tools that look for them."""
        return [s for s in self.sections if s.flags & SHF_ALLOC] if self.type != ET_REL else []

    def _header(self, shoff, phnum):
        out = Out(self.big)
        out.raw(b"\x7fELF").u8(2 if self.bits == 64 else 1).u8(2 if self.big else 1).u8(1).u8(self.osabi)
        out.align(16).u16(self.type).u16(self.machine).u32(1)
        self._word(out, 0)
        self._word(out, (64 if self.bits == 64 else 52) if phnum else 0)
        self._word(out, shoff).u32(self.flags)
        out.u16(64 if self.bits == 64 else 52).u16(56 if self.bits == 64 else 32).u16(phnum)
        return out.u16(64 if self.bits == 64 else 40).u16(len(self.sections) + 1).u16(len(self.sections))

    def _program_header(self, out, s):
        size = len(s.data)
        flags = 4 | bool(s.flags & SHF_EXECINSTR) | 2 * bool(s.flags & SHF_WRITE)
        type = PT_NOTE if s.type == SHT_NOTE else PT_LOAD
        if self.bits == 64:
            out.u32(type).u32(flags).u64(s.off).u64(s.addr).u64(s.addr).u64(size).u64(size).u64(s.align)
        else:
            out.u32(type).u32(s.off).u32(s.addr).u32(s.addr).u32(size).u32(size).u32(flags).u32(s.align)

    def build(self):
        """The bytes of the file."""
        if self.symbols:
            self._symtab()
        names = Out(self.big).u8(0)
        self.section(".shstrtab", b"", SHT_STRTAB)
        offsets = []
        for s in self.sections:
            offsets.append(len(names))
            names.cstr(s.name)
        self.sections[-1].data = bytes(names.bytes)
        segments = self._segments()
        body = Out(self.big).raw(bytes(len(self._header(0, 0))))
        body.raw(bytes(len(segments) * (56 if self.bits == 64 else 32)))
        for s in self.sections:
            s.off = len(body.align(s.align))
            body.raw(s.data)
        shoff = len(body.align(8))
        self._section_headers(body, offsets)
        head = self._header(shoff, len(segments))
        for s in segments:
            self._program_header(head, s)
        return bytes(head.bytes) + bytes(body.bytes[len(head):])

    def _section_headers(self, out, name_offsets):
        out.raw(bytes(64 if self.bits == 64 else 40))
        for s, name in zip(self.sections, name_offsets):
            out.u32(name).u32(s.type)
            for word in (s.flags, s.addr, s.off, len(s.data)):
                self._word(out, word)
            out.u32(s.link).u32(s.info)
            self._word(out, s.align)
            self._word(out, s.entsize)
