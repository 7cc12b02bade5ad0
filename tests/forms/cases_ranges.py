# SPDX-License-Identifier: MIT
"""Range lists: .debug_ranges (DWARF 4, 2.17.3) and .debug_rnglists (DWARF 5, 2.17.3 and 7.25)."""
from case import ENCODINGS, TEXT, Built, case, function, one_function, root
from dwarfasm import AT, FORM, RLE, TAG, die

PLAIN = ENCODINGS[0]
NOWHERE = (None, "/d/a.c", 10)
HERE = ("f", "/d/a.c", 10)


def inside(*ranges):
    """What is wanted where f covers @ranges of the code: at the ends of each, and beside them."""
    want = {TEXT + 0x70: [NOWHERE]}
    for low, high in ranges:
        want.update({TEXT + low: [HERE], TEXT + high - 1: [HERE], TEXT + high: [NOWHERE]})
    return want


def listed(e, dw, off, want, form=FORM.sec_offset, attrs=(), **options):
    f = die(TAG.subprogram, (AT.name, FORM.string, "f"), (AT.ranges, form, off))
    dw.unit(root(e, dw, f, attrs=attrs, **options))
    return Built(e.elf(dw), want)


# DWARF 4 -------------------------------------------------------------------------------------------

@case("pairs relative to the unit's low_pc", encodings=ENCODINGS)
def _pairs(e):
    dw = e.dwarf(4)
    dw.ranges()
    return listed(e, dw, dw.ranges((0x10, 0x20), (0x30, 0x38)), inside((0x10, 0x20), (0x30, 0x38)))


@case("a base selection entry, and another", encodings=ENCODINGS)
def _base_selection(e):
    dw = e.dwarf(4)
    top = (1 << e.bits) - 1
    off = dw.ranges((0x10, 0x14), (top, TEXT + 0x20), (0, 4), (top, 0), (TEXT + 0x30, TEXT + 0x34))
    return listed(e, dw, off, inside((0x10, 0x14), (0x20, 0x24), (0x30, 0x34)))


# DWARF 3, 2.17.3: an entry whose two addresses are equal has no effect.
@case("empty pairs end nothing", encodings=ENCODINGS)
def _empty_pairs(e):
    dw = e.dwarf(4)
    return listed(e, dw, dw.ranges((1, 1), (0x10, 0x10), (0x10, 0x18), (5, 5), (0x20, 0x21)),
                  inside((0x10, 0x18), (0x20, 0x21)))


@case("a list whose base is a tombstone has no code", encodings=ENCODINGS)
def _dead_base(e):
    dw = e.dwarf(4)
    top = (1 << e.bits) - 1
    off = dw.ranges((top, top), (0, 0x1800), (top, top - 1), (0, 0x1800), (top, TEXT), (0x10, 0x18))
    return listed(e, dw, off, inside((0x10, 0x18)))


@case("pairs that are tombstones have no code", encodings=ENCODINGS)
def _dead_pairs(e):
    dw = e.dwarf(4)
    top = (1 << e.bits) - 1
    # ld.lld writes the pair (1, 1), since (0, 0) would end the list; gold leaves sizes.
    off = dw.ranges((top, 0), (1, 1), (top - 1, top - 1), (0, 0x10), (TEXT + 0x10, TEXT + 0x18))
    return listed(e, dw, off, inside((0x10, 0x18)))


@case("a list that the section cuts off", llvm=None, note=".debug_ranges")
def _cut_pairs(e=PLAIN):
    dw = e.dwarf(4)
    off = dw.ranges((0x10, 0x18))
    del dw.section("debug_ranges").bytes[-9:]
    return listed(e, dw, off, inside((0x10, 0x18)))


@case("a list behind the section", llvm=None, note=".debug_ranges")
def _list_behind(e=PLAIN):
    dw = e.dwarf(4)
    dw.ranges((0x10, 0x18))
    return listed(e, dw, 0x1000, {TEXT + 0x10: [NOWHERE]})


# DWARF 5: every kind of entry ----------------------------------------------------------------------

def rle(e, *entries, want, addresses=()):
    dw = e.dwarf(5)
    attrs = []
    if addresses:
        dw.addr(0xBAD)
        attrs = [(AT.addr_base, FORM.sec_offset, dw.addr(*addresses))]
    _, (off,) = dw.rnglists(dw.rnglist(*entries))
    return listed(e, dw, off, want, attrs=attrs)


@case("offset_pair, relative to the unit's low_pc", encodings=ENCODINGS)
def _offset_pair(e):
    return rle(e, (RLE.offset_pair, 0x10, 0x18), (RLE.offset_pair, 0x20, 0x28),
               want=inside((0x10, 0x18), (0x20, 0x28)))


@case("base_address", encodings=ENCODINGS)
def _base_address(e):
    return rle(e, (RLE.base_address, TEXT + 0x10), (RLE.offset_pair, 0, 8), (RLE.base_address, 0),
               (RLE.offset_pair, TEXT + 0x20, TEXT + 0x28), want=inside((0x10, 0x18), (0x20, 0x28)))


@case("base_addressx", encodings=ENCODINGS)
def _base_addressx(e):
    return rle(e, (RLE.base_addressx, 200), (RLE.offset_pair, 4, 8),
               addresses=[0xBAD] * 200 + [TEXT + 0x10], want=inside((0x14, 0x18)))


@case("startx_endx", encodings=ENCODINGS)
def _startx_endx(e):
    return rle(e, (RLE.startx_endx, 1, 0), addresses=[TEXT + 0x18, TEXT + 0x10],
               want=inside((0x10, 0x18)))


@case("startx_length", encodings=ENCODINGS)
def _startx_length(e):
    return rle(e, (RLE.startx_length, 1, 8), addresses=[0xBAD, TEXT + 0x10], want=inside((0x10, 0x18)))


@case("start_end", encodings=ENCODINGS)
def _start_end(e):
    return rle(e, (RLE.start_end, TEXT + 0x10, TEXT + 0x18), want=inside((0x10, 0x18)))


# DW_AT_ranges of the unit, not only of the function: 200 takes two bytes.
@case("start_length", encodings=ENCODINGS)
def _start_length(e):
    return rle(e, (RLE.start_length, TEXT + 0x10, 0x60 - 0x10), want=inside((0x10, 0x60)))


@case("all kinds in one list", encodings=ENCODINGS)
def _all_kinds(e):
    return rle(e, (RLE.start_length, TEXT, 4), (RLE.base_addressx, 0), (RLE.offset_pair, 0, 4),
               (RLE.startx_endx, 1, 2), (RLE.base_address, TEXT + 0x30), (RLE.offset_pair, 0, 4),
               (RLE.startx_length, 3, 4), (RLE.start_end, TEXT + 0x50, TEXT + 0x54),
               addresses=[TEXT + 0x10, TEXT + 0x20, TEXT + 0x24, TEXT + 0x40],
               want=inside(*((at, at + 4) for at in range(0, 0x60, 0x10))))


@case("an entry of a kind that is not defined ends the list", llvm=None, note=".debug_rnglists")
def _unknown_kind(e=PLAIN):
    return rle(e, (RLE.start_length, TEXT + 0x10, 8), (0x08,), (RLE.start_length, TEXT + 0x20, 8),
               want={TEXT + 0x10: [HERE], TEXT + 0x20: [NOWHERE]})


@case("tombstones in every kind of entry", encodings=ENCODINGS,
      llvm="takes 0 for an address where code may start")
def _dead_entries(e):
    top = (1 << e.bits) - 1
    return rle(e, (RLE.base_address, top), (RLE.offset_pair, 0, 0x1800), (RLE.base_address, top - 1),
               (RLE.offset_pair, 2, 0x1800), (RLE.start_length, top, 0x1800),
               (RLE.start_length, 0, 0x1800), (RLE.start_end, top - 1, TEXT + 0x80),
               (RLE.startx_length, 0, 0x1800), (RLE.base_addressx, 0), (RLE.offset_pair, 0, 0x1800),
               (RLE.start_length, TEXT + 0x10, 8), addresses=[top], want=inside((0x10, 0x18)))


@case("an address index that is not there ends the list", llvm=None, note=".debug_rnglists")
def _bad_index(e=PLAIN):
    return rle(e, (RLE.start_length, TEXT + 0x10, 8), (RLE.startx_length, 99, 8), addresses=[TEXT],
               want={TEXT + 0x10: [HERE], TEXT + 0x20: [NOWHERE]})


# Offsets tables ------------------------------------------------------------------------------------

@case("rnglistx of the second table in the section", encodings=ENCODINGS)
def _second_table(e):
    dw = e.dwarf(5)
    dw.rnglists(dw.rnglist((RLE.start_length, 0xBAD, 1)), dw.rnglist())
    base, _ = dw.rnglists(dw.rnglist((RLE.start_length, TEXT + 0x20, 8)),
                          dw.rnglist((RLE.start_length, TEXT + 0x10, 8)))
    return listed(e, dw, 1, inside((0x10, 0x18)), form=FORM.rnglistx,
                  attrs=[(AT.rnglists_base, FORM.sec_offset, base)])


@case("rnglistx behind the offsets table", llvm=None, note=".debug_rnglists")
def _index_behind(e=PLAIN):
    dw = e.dwarf(5)
    base, _ = dw.rnglists(dw.rnglist((RLE.start_length, TEXT + 0x10, 8)))
    return listed(e, dw, 1 << 40, {TEXT + 0x10: [NOWHERE]}, form=FORM.rnglistx,
                  attrs=[(AT.rnglists_base, FORM.sec_offset, base)])


@case("sec_offset beside a base: the offset is one of the section", encodings=ENCODINGS)
def _offset_beside_base(e):
    dw = e.dwarf(5)
    dw.rnglists(dw.rnglist((RLE.start_length, 0xBAD, 1)))
    base, offsets = dw.rnglists(dw.rnglist(), dw.rnglist((RLE.start_length, TEXT + 0x10, 8)))
    return listed(e, dw, offsets[1], inside((0x10, 0x18)),
                  attrs=[(AT.rnglists_base, FORM.sec_offset, base)])


# The bases may stand behind the attributes that need them.
@case("the unit's own ranges by index, its bases behind them", encodings=ENCODINGS)
def _bases_last(e):
    dw = e.dwarf(5)
    addr_base = dw.addr(TEXT)
    dw.str_offsets("wrong")
    str_base = dw.str_offsets("/d", "f")
    rng_base, _ = dw.rnglists(dw.rnglist((RLE.startx_length, 0, 0x100)),
                              dw.rnglist((RLE.startx_length, 0, 0x40)))
    stmt_list = dw.raw("debug_line", e.line(5).sequence(0x1100, (TEXT, 10)).build())
    f = die(TAG.subprogram, (AT.name, FORM.strx1, 1), (AT.ranges, FORM.rnglistx, 1))
    dw.unit(die(TAG.compile_unit, (AT.comp_dir, FORM.strx1, 0), (AT.low_pc, FORM.addrx1, 0),
                (AT.ranges, FORM.rnglistx, 0), (AT.stmt_list, FORM.sec_offset, stmt_list),
                (AT.str_offsets_base, FORM.sec_offset, str_base),
                (AT.addr_base, FORM.sec_offset, addr_base),
                (AT.rnglists_base, FORM.sec_offset, rng_base), children=[f]))
    return Built(e.elf(dw), {TEXT: [HERE], TEXT + 0x3F: [HERE], TEXT + 0x40: [NOWHERE]})


# A range has no code when its end is its start or lies before it.
@case("ranges with their ends before their starts", encodings=ENCODINGS)
def _backward(e):
    return rle(e, (RLE.start_end, TEXT + 0x28, TEXT + 0x20), (RLE.offset_pair, 0x38, 0x30),
               (RLE.start_length, TEXT + 0x40, 0), (RLE.start_length, TEXT + 0x10, 8),
               want=inside((0x10, 0x18)))


@case("a high_pc before the low_pc is no code", llvm=None)
def _high_before_low(e=PLAIN):
    built = one_function(e, e.dwarf(4), (AT.name, FORM.string, "f"), (AT.low_pc, FORM.addr, TEXT + 0x10),
                         (AT.high_pc, FORM.addr, TEXT))
    built.want = {TEXT: [NOWHERE], TEXT + 0x10: [NOWHERE]}
    return built


@case("1,000 functions, each in two pieces")
def _many_pieces(e=PLAIN):
    dw = e.dwarf(5)
    lists = [dw.rnglist((RLE.start_length, 0x10000 + 16 * i, 8), (RLE.start_length, 0x20000 + 16 * i, 8))
             for i in range(1000)]
    base, _ = dw.rnglists(*lists)
    stmt_list = dw.raw("debug_line", e.line(5).sequence(0x30000, (0x10000, 10)).build())
    functions = [die(TAG.subprogram, (AT.name, FORM.string, f"f{i}"), (AT.ranges, FORM.rnglistx, i))
                 for i in range(1000)]
    dw.unit(root(e, dw, *functions, stmt_list=stmt_list, low=0x10000, size=0x20000,
                 attrs=[(AT.rnglists_base, FORM.sec_offset, base)]))
    elf = e.elf(dw)
    elf.text(0x10000, 0x20000, ".text.large")
    want = {0x10000 + 16 * i: [(f"f{i}", "/d/a.c", 10)] for i in (0, 1, 500, 999)}
    want.update({0x20007 + 16 * i: [(f"f{i}", "/d/a.c", 10)] for i in (0, 1, 500, 999)})
    return Built(elf, {**want, 0x10008: [NOWHERE]})


# 2,000 times 20,000 pieces from 60,000 bytes: lists that entries share must not multiply.
@case("a long list that many functions share", llvm=None, note="lists of ranges are too long")
def _shared_list(e=PLAIN):
    dw = e.dwarf(5)
    _, (off,) = dw.rnglists(dw.rnglist(*[(RLE.offset_pair, 0x10, 0x11)] * 20000))
    functions = [die(TAG.subprogram, (AT.name, FORM.string, f"f{i}"), (AT.ranges, FORM.sec_offset, off))
                 for i in range(2000)]
    dw.unit(root(e, dw, function(), *functions))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


@case("a function of more than 4 GB")
def _huge(e=PLAIN):
    dw = e.dwarf(4)
    stmt_list = dw.raw("debug_line", e.line(4).sequence(0x300000000, (TEXT, 10)).build())
    f = function(TEXT, 0x200000000)
    f.attrs = tuple((at, FORM.data8 if at == AT.high_pc else form, value) for at, form, value in f.attrs)
    unit = root(e, dw, f, stmt_list=stmt_list)
    unit.attrs = tuple((at, FORM.data8, 0x200000000) if at == AT.high_pc else (at, form, value)
                       for at, form, value in unit.attrs)
    dw.unit(unit)
    return Built(e.elf(dw), {TEXT: [HERE], TEXT + 0xFF: [HERE]})
