# SPDX-License-Identifier: MIT
"""Unwind descriptions (LSB 5.0, 10.6; DWARF 5, 6.4) as far as they bound functions: where nothing
has a name, code is named after the range of its description."""
from case import ENCODINGS, TEXT, Built, case
from elfasm import SHF_ALLOC
from out import Out, sleb, uleb

PLAIN = ENCODINGS[0]
EH_FRAME, EH_HDR, GOT = 0x2000, 0x2800, 0x3000
BEFORE_TEXT = (0x800, 0x400)  # .eh_frame and .got: for unsigned numbers that count from them

ABSPTR, ULEB, UDATA2, UDATA4, UDATA8 = 0x00, 0x01, 0x02, 0x03, 0x04
SLEB, SDATA2, SDATA4, SDATA8 = 0x09, 0x0A, 0x0B, 0x0C
PCREL, TEXTREL, DATAREL, FUNCREL, ALIGNED, INDIRECT = 0x10, 0x20, 0x30, 0x40, 0x50, 0x80
FORMATS = {"absptr": ABSPTR, "uleb128": ULEB, "udata2": UDATA2, "udata4": UDATA4, "udata8": UDATA8,
           "sleb128": SLEB, "sdata2": SDATA2, "sdata4": SDATA4, "sdata8": SDATA8}
BASES = {"": 0, ", pc-relative": PCREL, ", relative to .text": TEXTREL, ", relative to .got": DATAREL}


def pointer(e, value, encoding, here, got=GOT):
    """@value as an encoded pointer that stands at address @here."""
    value -= {0: 0, PCREL: here, TEXTREL: TEXT, DATAREL: got}[encoding & 0x70]
    value &= (1 << e.bits) - 1
    format = encoding & 0xF
    if format == ULEB:
        return uleb(value)
    if format == SLEB:
        return sleb(value - (1 << e.bits) if value >> (e.bits - 1) else value)
    size = {ABSPTR: e.bits // 8, UDATA2: 2, SDATA2: 2, UDATA4: 4, SDATA4: 4, UDATA8: 8, SDATA8: 8}[format]
    return bytes(Out(e.big).uint(value, size).bytes)


class Frames:
    """A section of descriptions; @eh: .eh_frame, else .debug_frame."""

    def __init__(self, e, eh=True, offset_size=4, places=(EH_FRAME, GOT)):
        self.e, self.eh, self.offset_size = e, eh, offset_size
        self.addr, self.got = places
        self.out = Out(e.big)
        self.at = {}  # low: address of the description

    def _add(self, body):
        body.align(4)
        at = len(self.out)
        self.out.length(body.bytes, self.offset_size)
        return at

    def cie(self, augmentation="zR", data=None, version=1, encoding=ABSPTR, before=b""):
        """@data: the augmentation's; by default what "zR" needs."""
        body = Out(self.e.big)
        if self.eh:
            body.u32(0)
        else:
            body.uint(-1, self.offset_size)
        body.u8(version).cstr(augmentation).raw(before)
        if version >= 4:
            body.u8(self.e.bits // 8).u8(0)
        body.uleb(1).sleb(-8)
        if version == 1:
            body.u8(16)
        else:
            body.uleb(16)
        if augmentation.startswith("z"):
            data = bytes([encoding]) if data is None else data
            body.uleb(len(data)).raw(data)
        return self._add(body)

    def fde(self, cie, low, size, encoding=ABSPTR, augmented=True):
        head = 4 if self.offset_size == 4 else 12
        at = len(self.out)
        body = Out(self.e.big)
        if self.eh:
            body.u32(at + head - cie)
        else:
            body.uint(cie, self.offset_size)
        here = self.addr + at + head + len(body)
        body.raw(pointer(self.e, low, encoding, here, self.got))
        body.raw(pointer(self.e, size, encoding & 0xF, 0))
        if augmented and self.eh:
            body.uleb(0)
        self.at[low] = self.addr + at
        return self._add(body)

    def end(self):
        self.out.u32(0)

    def elf(self):
        elf = self.e.elf()
        if self.eh:
            elf.section(".eh_frame", self.out.bytes, flags=SHF_ALLOC, addr=self.addr, align=8)
        else:
            elf.section(".debug_frame", self.out.bytes)
        elf.section(".got", bytes(8), flags=SHF_ALLOC, addr=self.got, align=8)
        return elf


def ranged(low, high):
    return [(f"func@[{low:#x}..{high:#x}]", None, None)]


A, B = ranged(TEXT + 0x10, TEXT + 0x20), ranged(TEXT + 0x40, TEXT + 0x48)
WANT = {TEXT: "no-symbols", TEXT + 0x10: A, TEXT + 0x1F: A, TEXT + 0x20: "no-symbols",
        TEXT + 0x40: B, TEXT + 0x47: B, TEXT + 0x48: "no-symbols"}


def two(f, cie, encoding=ABSPTR, **options):
    f.fde(cie, TEXT + 0x10, 0x10, encoding, **options)
    f.fde(cie, TEXT + 0x40, 8, encoding, **options)
    return f


for _format, _value in FORMATS.items():
    for _base, _bit in BASES.items():
        @case(f"eh_frame pointers as {_format}{_base}", encodings=ENCODINGS, llvm=None,
              encoding=_value | _bit)
        def _pointers(e, encoding):
            if e.bits == 32 and encoding & 0xF in (UDATA8, SDATA8):
                encoding = encoding & 0xF0 | UDATA4  # 8 bytes of which 4 would be dropped
            f = Frames(e, places=BEFORE_TEXT if encoding & 0xF in (UDATA2, UDATA4) else (EH_FRAME, GOT))
            two(f, f.cie(encoding=encoding), encoding).end()
            return Built(f.elf(), WANT)


AUGMENTATIONS = {
    # Personality and language data, each with its own encoding; signal frames; aarch64's keys.
    "zPLR": (lambda e: bytes([PCREL | SDATA4]) + bytes(4) + bytes([UDATA4, UDATA2])),
    "zLPR": (lambda e: bytes([UDATA4, ABSPTR]) + bytes(e.bits // 8) + bytes([UDATA2])),
    "zRS": (lambda e: bytes([UDATA2])), "zSR": (lambda e: bytes([UDATA2])),
    "zRB": (lambda e: bytes([UDATA2])), "zRG": (lambda e: bytes([UDATA2])),
    "zPR": (lambda e: bytes([INDIRECT | PCREL | UDATA8]) + bytes(8) + bytes([UDATA2])),
}

for _augmentation, _data in AUGMENTATIONS.items():
    @case(f"augmentation {_augmentation}", encodings=ENCODINGS, llvm=None, augmentation=_augmentation,
          data=_data)
    def _augmented(e, augmentation, data):
        f = Frames(e)
        two(f, f.cie(augmentation, data(e)), UDATA2).end()
        return Built(f.elf(), WANT)


@case("an empty augmentation", encodings=ENCODINGS, llvm=None)
def _no_augmentation(e):
    f = Frames(e)
    two(f, f.cie(""), augmented=False).end()
    return Built(f.elf(), WANT)


# What g++ 2 wrote: a pointer stands between the string and the alignments.
@case('augmentation "eh"', encodings=ENCODINGS, llvm=None)
def _eh(e):
    f = Frames(e)
    two(f, f.cie("eh", before=bytes(e.bits // 8)), augmented=False).end()
    return Built(f.elf(), WANT)


@case("CIE version 3", encodings=ENCODINGS, llvm=None)
def _version_3(e):
    f = Frames(e)
    two(f, f.cie(version=3)).end()
    return Built(f.elf(), WANT)


@case("a terminator in the middle, a CIE behind its FDE", encodings=ENCODINGS, llvm=None)
def _order(e):
    f = Frames(e)
    f.fde(f.cie(), TEXT + 0x10, 0x10)
    f.end()
    f.fde(f.cie(), TEXT + 0x40, 8)
    return Built(f.elf(), WANT)


@case("empty ranges are no code", encodings=ENCODINGS, llvm=None)
def _empty(e):
    f = Frames(e)
    cie = f.cie()
    f.fde(cie, TEXT, 0)
    two(f, cie).end()
    return Built(f.elf(), WANT)


for _version in (1, 3, 4):
    @case(f"debug_frame version {_version}", encodings=ENCODINGS, llvm=None, version=_version)
    def _debug_frame(e, version):
        f = Frames(e, eh=False)
        two(f, f.cie("", version=version))
        return Built(f.elf(), WANT)

    @case(f"debug_frame version {_version}, 64-bit DWARF", encodings=ENCODINGS, llvm=None,
          version=_version)
    def _debug_frame_64(e, version):
        f = Frames(e, eh=False, offset_size=8)
        two(f, f.cie("", version=version))
        return Built(f.elf(), WANT)


# .eh_frame_hdr -------------------------------------------------------------------------------------

def header(e, f, lows, encodings=(PCREL | SDATA4, UDATA4, DATAREL | SDATA4)):
    """The header and its table, which counts from the header's own address."""
    out = Out(e.big).u8(1)
    for encoding in encodings:
        out.u8(encoding)
    out.raw(pointer(e, EH_FRAME, encodings[0], EH_HDR + 4))
    out.raw(pointer(e, len(lows), encodings[1], 0))
    for low in lows:
        if encodings[2] == DATAREL | SDATA4:
            out.u32(low - EH_HDR).u32(f.at[low] - EH_HDR)
        else:
            out.raw(pointer(e, low, encodings[2], EH_HDR + len(out)))
            out.raw(pointer(e, f.at[low], encodings[2], EH_HDR + len(out)))
    return bytes(out.bytes)


def with_header(e, data, want=None):
    f = Frames(e)
    two(f, f.cie()).end()
    elf = f.elf()
    elf.section(".eh_frame_hdr", data(f), flags=SHF_ALLOC, addr=EH_HDR, align=4)
    return Built(elf, want or WANT)


@case("eh_frame_hdr with its table", encodings=ENCODINGS, llvm=None)
def _header(e):
    return with_header(e, lambda f: header(e, f, [TEXT + 0x10, TEXT + 0x40]))


# The table is believed where it is: what it leaves out is not covered. So the table was used.
@case("eh_frame_hdr whose table lacks a function", encodings=ENCODINGS, llvm=None)
def _header_lacks(e):
    want = {**WANT, TEXT + 0x40: "no-symbols", TEXT + 0x47: "no-symbols"}
    return with_header(e, lambda f: header(e, f, [TEXT + 0x10]), want)


for _table in (ABSPTR, UDATA4, PCREL | SDATA4, DATAREL | UDATA8):
    @case(f"eh_frame_hdr with a table encoded as {_table:#x} is passed over", llvm=None, table=_table)
    def _header_encoding(table, e=PLAIN):
        return with_header(e, lambda f: bytes([1, PCREL | SDATA4, UDATA4, table]) + bytes(100))


@case("eh_frame_hdr without a table", llvm=None)
def _header_empty(e=PLAIN):
    return with_header(e, lambda f: bytes([1, PCREL | SDATA4, 0xFF, 0xFF]) + bytes(4))


@case("eh_frame_hdr with a count that no file holds", llvm=None)
def _header_count(e=PLAIN):
    return with_header(e, lambda f: bytes([1, PCREL | SDATA4, UDATA4, DATAREL | SDATA4]) + bytes(4) +
                       b"\xff\xff\xff\xff" + bytes(16))


# Damage --------------------------------------------------------------------------------------------

@case("a description cut off: those before it count", llvm=None)
def _cut(e=PLAIN):
    f = Frames(e)
    two(f, f.cie())
    del f.out.bytes[-4:]
    return Built(f.elf(), {TEXT + 0x10: A, TEXT + 0x40: "no-symbols"})


@case("a description whose CIE is itself", llvm=None)
def _own_cie(e=PLAIN):
    f = Frames(e)
    f.fde(len(f.out), TEXT + 0x10, 0x10)
    return Built(f.elf(), {TEXT + 0x10: "no-symbols"})
