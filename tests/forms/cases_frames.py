# SPDX-License-Identifier: MIT
"""Unwind descriptions (LSB 5.0, 10.6; DWARF 5, 6.4) as far as they bound functions: where nothing
has a name, code is named after the range of its description."""
from case import ENCODINGS, TEXT, Built, case
from cfiasm import (ABSPTR, BASES, BEFORE_TEXT, DATAREL, EH_FRAME, EH_HDR, FORMATS, GOT, INDIRECT, PCREL, SDATA4, UDATA2, UDATA4,
                    UDATA8, SDATA8, Frames, header, pointer)
from elfasm import SHF_ALLOC
from out import Out

PLAIN = ENCODINGS[0]


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


# Assembly without .size and without CFI, between functions of a compiler whose names are stripped.
@case("a symbol without a size ends where the next description begins", encodings=ENCODINGS, llvm=None)
def _before(e):
    f = Frames(e)
    two(f, f.cie()).end()
    elf = f.elf()
    elf.symbol("first", TEXT)
    elf.symbol("inside", TEXT + 0x18)
    elf.symbol("between", TEXT + 0x24)
    elf.symbol("last", TEXT + 0x48)
    return Built(elf, {TEXT: [("first", None, None)], TEXT + 0xF: [("first", None, None)], TEXT + 0x10: A,
                       TEXT + 0x18: [("inside", None, None)], TEXT + 0x1F: [("inside", None, None)],
                       TEXT + 0x20: "no-symbols", TEXT + 0x3F: [("between", None, None)], TEXT + 0x40: B, TEXT + 0x47: B,
                       TEXT + 0x48: [("last", None, None)], TEXT + 0xFF: [("last", None, None)]})


@case("a terminator in the middle, a CIE behind its FDE", encodings=ENCODINGS, llvm=None)
def _order(e):
    f = Frames(e)
    f.fde(f.cie(), TEXT + 0x10, 0x10)
    f.end()
    f.fde(f.cie(), TEXT + 0x40, 8)
    return Built(f.elf(), WANT)


@case("a description before its CIE", encodings=ENCODINGS, llvm=None)
def _behind(e):
    f = Frames(e)
    f.fde(0x1C if e.bits == 64 else 0x14, TEXT + 0x10, 0x10)
    two(f, f.cie())
    return Built(f.elf(), WANT)


# Nothing is known of what such versions have in which order; the descriptions of other CIEs count.
@case("CIEs of unknown versions are passed over", encodings=ENCODINGS, llvm=None)
def _unknown_version(e):
    f = Frames(e)
    f.fde(f.cie(version=2), TEXT, 0x10)
    two(f, f.cie()).end()
    return Built(f.elf(), WANT)


@case("pointers whose encoding stands behind an unknown letter are passed over", encodings=ENCODINGS, llvm=None)
def _unknown_letter(e):
    f = Frames(e)
    f.fde(f.cie("zXR", bytes([UDATA4])), TEXT, 0x10)
    two(f, f.cie()).end()
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


@case("debug_frame version 4 with segments", encodings=ENCODINGS, llvm=None)
def _segments(e):
    f = Frames(e, eh=False)
    two(f, f.cie("", version=4, sizes=(e.bits // 8, 2)), segment=b"\1\2")
    return Built(f.elf(), WANT)


@case("debug_frame of a function that the linker dropped", encodings=ENCODINGS, llvm=None)
def _dropped(e):
    f = Frames(e, eh=False)
    cie = f.cie("", version=3)
    f.fde(cie, 0, TEXT + 0x100)
    two(f, cie)
    return Built(f.elf(), WANT)


# .eh_frame_hdr -------------------------------------------------------------------------------------

def with_header(e, data, want=None):
    f = Frames(e)
    two(f, f.cie()).end()
    elf = f.elf()
    elf.section(".eh_frame_hdr", data(f), flags=SHF_ALLOC, addr=EH_HDR, align=4)
    return Built(elf, want or WANT)


@case("eh_frame_hdr with its table", encodings=ENCODINGS, llvm=None)
def _header(e):
    return with_header(e, lambda f: header(e, f, [TEXT + 0x10, TEXT + 0x40]))


# What the table leaves out is found by a walk over all FDEs.
@case("eh_frame_hdr whose table lacks a function", encodings=ENCODINGS, llvm=None)
def _header_lacks(e):
    return with_header(e, lambda f: header(e, f, [TEXT + 0x10]))


@case("eh_frame_hdr of another section is passed over", encodings=ENCODINGS, llvm=None)
def _header_other(e):
    def other(f):
        f.at = {low: address + 4 for low, address in f.at.items()}
        return header(e, f, [TEXT + 0x10, TEXT + 0x40], section=EH_FRAME + 4)
    return with_header(e, other)


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
