# SPDX-License-Identifier: MIT
"""What leads from addresses to units: .debug_aranges (DWARF 5, 6.1.2), .gdb_index (GDB manual,
versions 7 to 9), .debug_names (DWARF 5, 6.1.1).

Where a unit's root claims other code than it has, only the index can lead to it; so these files show
that the index was used."""
from case import ENCODINGS, TEXT, Built, case, function, lines, root
from dwarfasm import FORM, TAG, UT, die
from indexasm import COMPILE_UNIT, DIE_OFFSET, PARENT, TYPE_UNIT, debug_names, gdb_index

PLAIN = ENCODINGS[0]


def two_units(e, dw, misled=True):
    """f at 0x1000 and g at 0x1040, each in a unit; with @misled the roots claim other code."""
    offs = []
    for i, name in enumerate("fg"):
        low = TEXT + 0x40 * i
        stmt_list = lines(e, dw, (low, 10 + i), end=low + 0x40)
        offs.append(dw.unit(root(e, dw, function(low, 0x40, name=name), stmt_list=stmt_list,
                                 low=TEXT + 0xF0 if misled else low, size=4 if misled else 0x40,
                                 label=name)))
    return offs


WANT = {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x3F: [("f", "/d/a.c", 10)],
        TEXT + 0x40: [("g", "/d/a.c", 11)]}
MISLED = "believes what the unit's root claims"

# .debug_aranges ------------------------------------------------------------------------------------


@case("aranges lead to units", encodings=ENCODINGS)
def _aranges(e):
    dw = e.dwarf(4)
    f, g = two_units(e, dw)
    dw.aranges(f, (TEXT, 0x40))
    dw.aranges(g, (TEXT + 0x40, 0x20), (TEXT + 0x60, 0x20))
    return Built(e.elf(dw), {**WANT, TEXT + 0x7F: [("g", "/d/a.c", 11)]})


# A pair of zeros ends the set, says the standard; linkers leave them in the middle.
@case("aranges with a pair of zeros in the middle", encodings=ENCODINGS)
def _aranges_zero(e):
    dw = e.dwarf(4)
    f, g = two_units(e, dw)
    dw.aranges(f, (0, 0), (TEXT, 0x40))
    dw.aranges(g, (TEXT + 0x40, 0x40), (0, 0), (0, 0))
    return Built(e.elf(dw), WANT)


@case("aranges that lack a unit", encodings=ENCODINGS)
def _aranges_missing(e):
    dw = e.dwarf(4)
    f, _ = two_units(e, dw, misled=False)
    dw.aranges(f, (TEXT, 0x40))
    return Built(e.elf(dw), WANT)


@case("aranges of dropped code", encodings=ENCODINGS,
      llvm="takes 0 for an address where code may start")
def _aranges_dead(e):
    dw = e.dwarf(4)
    f, g = two_units(e, dw)
    dw.aranges(f, (0, 0x2000), (1, 0x2000), (TEXT, 0x40))
    dw.aranges(g, (TEXT + 0x40, 0x40))
    return Built(e.elf(dw), WANT)


@case("aranges that overlap: each unit is asked", llvm="looks at one unit for each address")
def _aranges_overlap(e=PLAIN):
    dw = e.dwarf(4)
    f, g = two_units(e, dw)
    dw.aranges(f, (TEXT, 0x80))
    dw.aranges(g, (TEXT, 0x80))
    return Built(e.elf(dw), WANT)


@case("aranges of a unit that is not there", llvm=None)
def _aranges_wrong(e=PLAIN):
    dw = e.dwarf(4)
    two_units(e, dw, misled=False)
    dw.aranges(0x12345, (TEXT, 0x40))
    dw.aranges(3, (TEXT + 0x40, 0x40))
    return Built(e.elf(dw), WANT)


@case("aranges of the wrong unit", llvm="believes the aranges")
def _aranges_swapped(e=PLAIN):
    dw = e.dwarf(4)
    f, g = two_units(e, dw, misled=False)
    dw.aranges(g, (TEXT, 0x40))
    dw.aranges(f, (TEXT + 0x40, 0x40))
    return Built(e.elf(dw), WANT)


@case("aranges of a version that is not known", llvm=None, note=".debug_aranges")
def _aranges_version(e=PLAIN):
    dw = e.dwarf(4)
    f, g = two_units(e, dw, misled=False)
    dw.aranges(f, (TEXT, 0x40), version=3)
    dw.aranges(g, (TEXT + 0x40, 0x40))
    return Built(e.elf(dw), WANT)


@case("aranges cut off", llvm=None, note=".debug_aranges")
def _aranges_cut(e=PLAIN):
    dw = e.dwarf(4)
    f, g = two_units(e, dw, misled=False)
    dw.aranges(f, (TEXT, 0x40))
    dw.aranges(g, (TEXT + 0x40, 0x40))
    del dw.section("debug_aranges").bytes[-20:]
    return Built(e.elf(dw), WANT)


@case("aranges of 4-byte addresses in a file of 8", llvm=None)
def _aranges_narrow(e=PLAIN):
    dw = e.dwarf(4)
    f, g = two_units(e, dw)
    dw.aranges(f, (TEXT, 0x40), address_size=4)
    dw.aranges(g, (TEXT + 0x40, 0x40))
    return Built(e.elf(dw), WANT)


# .gdb_index ----------------------------------------------------------------------------------------

def indexed(e, version, ranges, misled=True, types=()):
    dw = e.dwarf(4)
    two_units(e, dw, misled)
    elf = e.elf(dw)
    elf.section(".gdb_index", gdb_index(version, [dw.units["f"], dw.units["g"]], ranges, types))
    return elf


for _version in (4, 7, 8, 9):
    @case(f"gdb_index {_version} leads to units", encodings=ENCODINGS, version=_version,
          llvm="reads no .gdb_index")
    def _gdb_index(e, version):
        return Built(indexed(e, version, [(TEXT, TEXT + 0x40, 0), (TEXT + 0x40, TEXT + 0x80, 1)]), WANT)

    # Numbers behind the units are those of type units.
    @case(f"gdb_index {_version} with type units and empty ranges", version=_version,
          llvm="reads no .gdb_index")
    def _gdb_index_types(version, e=PLAIN):
        return Built(indexed(e, version, [(TEXT, TEXT, 1), (TEXT, TEXT + 0x40, 2), (TEXT, TEXT + 0x40, 0),
                                          (0, TEXT + 0x40, 1), (TEXT + 0x40, TEXT + 0x80, 1)],
                             types=[(0, 0, 0)]), WANT)


# Versions up to 3 were wrong about inlined functions, and nobody knows later ones.
for _version in (3, 10):
    @case(f"gdb_index {_version} is not used", version=_version)
    def _gdb_index_unknown(version, e=PLAIN):
        return Built(indexed(e, version, [(TEXT, TEXT + 0x80, 1)], misled=False), WANT)


@case("gdb_index that lacks a unit")
def _gdb_index_missing(e=PLAIN):
    return Built(indexed(e, 8, [(TEXT, TEXT + 0x40, 0)], misled=False), WANT)


@case("gdb_index whose tables lie outside", note=".gdb_index")
def _gdb_index_outside(e=PLAIN):
    dw = e.dwarf(4)
    two_units(e, dw, misled=False)
    elf = e.elf(dw)
    index = bytearray(gdb_index(8, [dw.units["f"], dw.units["g"]], [(TEXT, TEXT + 0x80, 1)]))
    index[12:16] = b"\xff\xff\xff\x7f"
    elf.section(".gdb_index", bytes(index))
    return Built(elf, WANT)


# .debug_names --------------------------------------------------------------------------------------

def named(e, tables, misled=True, version=5):
    """@tables makes the section from the sections and the units' offsets. The name index is asked
    for few addresses only: for many, a look through all units costs less."""
    dw = e.dwarf(version)
    offs = two_units(e, dw, misled)
    dw.raw("debug_names", tables(dw, offs))
    elf = e.elf(dw)
    elf.symbol("f", TEXT, 0x40)
    elf.symbol("g", TEXT + 0x40, 0x40)
    return Built(elf, WANT, times=(1,) if misled else (1, 20))


for _buckets in (0, 1, 2, 3, 64):
    @case(f"debug_names with {_buckets} buckets", encodings=ENCODINGS, buckets=_buckets, llvm=MISLED)
    def _names(e, buckets):
        return named(e, lambda dw, offs: debug_names(
            dw, offs, [("f", [(0, 12)]), ("g", [(1, 12)]), ("other", [(0, 12)]), ("F", [(0, 1)])],
            buckets))


@case("debug_names: two tables of one unit each, which need no unit index", encodings=ENCODINGS,
      llvm=MISLED)
def _names_two_tables(e):
    return named(e, lambda dw, offs: b"".join(
        debug_names(dw, [off], [(name, [(12,)])], 1, attributes=[(DIE_OFFSET, FORM.ref4)])
        for off, name in zip(offs, "fg")))


@case("debug_names: forms of its entries", encodings=ENCODINGS, llvm=MISLED)
def _names_forms(e):
    attributes = [(DIE_OFFSET, FORM.ref4), (PARENT, FORM.flag_present), (COMPILE_UNIT, FORM.data2),
                  (0x2001, FORM.data8)]
    return named(e, lambda dw, offs: debug_names(
        dw, offs, [("f", [(12, 0, 0, 1 << 60)]), ("g", [(12, 0, 1, 0)])], 2, attributes=attributes))


# The first entry of a name may be of a unit that only declares it.
@case("debug_names: several entries of one name")
def _names_series(e=PLAIN):
    return named(e, lambda dw, offs: debug_names(
        dw, offs, [("f", [(1, 12), (0, 12)]), ("g", [(0, 12), (1, 12)])], 1), misled=False)


@case("debug_names: entries of type units")
def _names_types(e=PLAIN):
    return named(e, lambda dw, offs: debug_names(
        dw, offs, [("f", [(0, 12)]), ("g", [(0, 12)])], 1, types=[0],
        attributes=[(TYPE_UNIT, FORM.udata), (DIE_OFFSET, FORM.ref4)]), misled=False)


@case("debug_names that lack a name, and lie about another")
def _names_wrong(e=PLAIN):
    return named(e, lambda dw, offs: debug_names(dw, offs, [("f", [(1, 12)])], 1), misled=False)


@case("debug_names cut off")
def _names_cut(e=PLAIN):
    return named(e, lambda dw, offs: debug_names(dw, offs, [("f", [(0, 12)])], 1)[:-9], misled=False)


@case("debug_names of a unit that is not there")
def _names_no_unit(e=PLAIN):
    return named(e, lambda dw, offs: debug_names(dw, [0x12345678], [("f", [(0, 12)]), ("g", [(7, 12)])],
                                                 1), misled=False)


# Sizes and counts that no file holds.
for _at in range(4, 36, 4):
    @case(f"debug_names with 0xffffffff at byte {_at}", at=_at, llvm=None)
    def _names_huge(at, e=PLAIN):
        def tables(dw, offs):
            data = bytearray(debug_names(dw, offs, [("f", [(0, 12)]), ("g", [(1, 12)])], 1))
            data[at:at + 4] = b"\xff\xff\xff\xff"
            return bytes(data)
        return named(e, tables, misled=False)


# Names fold to lower case for their hash, not for their comparison.
@case("debug_names: names that differ in case only", llvm=MISLED)
def _names_case(e=PLAIN):
    dw = e.dwarf(5)
    offs = two_units(e, dw)
    dw.raw("debug_names", debug_names(dw, offs, [("FUNC", [(1, 12)]), ("func", [(0, 12)])], 1))
    elf = e.elf(dw)
    elf.symbol("func", TEXT, 0x40)
    return Built(elf, {TEXT: [("func", "/d/a.c", 10)]}, times=(1,))


@case("partial and type units among those that are looked through", encodings=ENCODINGS)
def _other_units(e):
    dw = e.dwarf(5)
    dw.unit(die(TAG.partial_unit, children=[die(TAG.base_type)]), type=UT.partial)
    dw.unit(die(TAG.type_unit, children=[die(TAG.base_type, label="t")]), type=UT.type, type_offset="t")
    two_units(e, dw, misled=False)
    return Built(e.elf(dw), WANT)
