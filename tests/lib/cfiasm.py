# SPDX-License-Identifier: MIT
"""Writes call frame information (LSB 5.0, 10.6; DWARF 5, 6.4): .eh_frame and .debug_frame of any encoding."""
from elfasm import SHF_ALLOC
from out import Out, sleb, uleb

TEXT = 0x1000  # where the tests' code is
EH_FRAME, EH_HDR, GOT = 0x2000, 0x2800, 0x3000
BEFORE_TEXT = (0x800, 0x400)  # .eh_frame and .got: for unsigned numbers that count from them

ABSPTR, ULEB, UDATA2, UDATA4, UDATA8 = 0x00, 0x01, 0x02, 0x03, 0x04
SIGNED, SLEB, SDATA2, SDATA4, SDATA8 = 0x08, 0x09, 0x0A, 0x0B, 0x0C
PCREL, TEXTREL, DATAREL, FUNCREL, ALIGNED, INDIRECT = 0x10, 0x20, 0x30, 0x40, 0x50, 0x80
FORMATS = {"absptr": ABSPTR, "uleb128": ULEB, "udata2": UDATA2, "udata4": UDATA4, "udata8": UDATA8,
           "signed": SIGNED, "sleb128": SLEB, "sdata2": SDATA2, "sdata4": SDATA4, "sdata8": SDATA8}
BASES = {"": 0, ", pc-relative": PCREL, ", relative to .text": TEXTREL, ", relative to .got": DATAREL}


def pointer(e, value, encoding, here, got=GOT, function=0):
    """@value as an encoded pointer at address @here, of the FDE of @function."""
    value -= {0: 0, PCREL: here, TEXTREL: TEXT, DATAREL: got, FUNCREL: function}[encoding & 0x70]
    value &= (1 << e.bits) - 1
    format = encoding & 0xF
    if format == ULEB:
        return uleb(value)
    if format == SLEB:
        return sleb(value - (1 << e.bits) if value >> (e.bits - 1) else value)
    size = {ABSPTR: e.bits // 8, SIGNED: e.bits // 8, UDATA2: 2, SDATA2: 2, UDATA4: 4, SDATA4: 4, UDATA8: 8, SDATA8: 8}[format]
    return bytes(Out(e.big).uint(value, size).bytes)


class Frames:
    """A section of CIEs and FDEs; @eh: .eh_frame, else .debug_frame."""

    def __init__(self, e, eh=True, offset_size=4, places=(EH_FRAME, GOT)):
        self.e, self.eh, self.offset_size = e, eh, offset_size
        self.addr, self.got = places
        self.out = Out(e.big)
        self.at = {}  # low: address of the FDE

    def _add(self, body):
        body.align(4)
        at = len(self.out)
        self.out.length(body.bytes, self.offset_size)
        return at

    def cie(self, augmentation="zR", data=None, version=1, encoding=ABSPTR, before=b"", factors=(1, -8, 16),
            sizes=None, instructions=b""):
        """@data: the augmentation's; by default what "zR" needs. @sizes: of addresses and segments (version 4)."""
        body = Out(self.e.big)
        if self.eh:
            body.u32(0)
        else:
            body.uint(-1, self.offset_size)
        body.u8(version).cstr(augmentation).raw(before)
        if version >= 4:
            address_size, segment_size = sizes or (self.e.bits // 8, 0)
            body.u8(address_size).u8(segment_size)
        body.uleb(factors[0]).sleb(factors[1])
        if version == 1:
            body.u8(factors[2])
        else:
            body.uleb(factors[2])
        if augmentation.startswith("z"):
            data = bytes([encoding]) if data is None else data
            body.uleb(len(data)).raw(data)
        return self._add(body.raw(instructions))

    def fde(self, cie, low, size, encoding=ABSPTR, augmented=True, segment=b"", data=b"", instructions=b""):
        """@cie: its offset. @data: of the augmentation."""
        head = 4 if self.offset_size == 4 else 12
        at = len(self.out)
        body = Out(self.e.big)
        if self.eh:
            body.u32((at + head - cie) & 0xFFFFFFFF)
        else:
            body.uint(cie, self.offset_size)
        body.raw(segment)
        here = self.addr + at + head + len(body)
        body.raw(pointer(self.e, low, encoding, here, self.got))
        body.raw(pointer(self.e, size, encoding & 0xF, 0))
        if augmented and self.eh:
            body.uleb(len(data)).raw(data)
        self.at[low] = self.addr + at
        return self._add(body.raw(instructions))

    def end(self):
        self.out.u32(0)

    def elf(self):
        return self.add_to(self.e.elf())

    def add_to(self, elf):
        if self.eh:
            elf.section(".eh_frame", self.out.bytes, flags=SHF_ALLOC, addr=self.addr, align=8)
        else:
            elf.section(".debug_frame", self.out.bytes)
        elf.section(".got", bytes(8), flags=SHF_ALLOC, addr=self.got, align=8)
        return elf


def header(e, f, lows, encodings=(PCREL | SDATA4, UDATA4, DATAREL | SDATA4), section=EH_FRAME):
    """The header of .eh_frame at @section and its table, which counts from the header's own address."""
    out = Out(e.big).u8(1)
    for encoding in encodings:
        out.u8(encoding)
    out.raw(pointer(e, section, encodings[0], EH_HDR + 4))
    out.raw(pointer(e, len(lows), encodings[1], 0))
    for low in lows:
        if encodings[2] == DATAREL | SDATA4:
            out.u32(low - EH_HDR).u32(f.at[low] - EH_HDR)
        else:
            out.raw(pointer(e, low, encodings[2], EH_HDR + len(out)))
            out.raw(pointer(e, f.at[low], encodings[2], EH_HDR + len(out)))
    return bytes(out.bytes)
