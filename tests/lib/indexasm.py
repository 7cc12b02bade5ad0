# SPDX-License-Identifier: MIT
"""Writes the indexes that lead to units: .gdb_index, .debug_names, and those of package files."""
from dwarfasm import FORM
from out import Out


def gdb_index(version, units, ranges, types=()):
    """.gdb_index (GDB manual, "Index Section Format"): @units are (offset, length), @ranges are
    (low, high, number of the unit). Little-endian everywhere. Its symbol table is empty."""
    head = 28 if version >= 9 else 24  # version 9 adds the shortcut table
    cu = head
    tu = cu + 16 * len(units)
    addresses = tu + 24 * len(types)
    symbols = addresses + 20 * len(ranges)
    pool = symbols + 8 * 16 + (8 if version >= 9 else 0)
    out = Out().u32(version).u32(cu).u32(tu).u32(addresses).u32(symbols)
    if version >= 9:
        out.u32(symbols + 8 * 16)
    out.u32(pool)
    for off, length in units:
        out.u64(off).u64(length)
    for off, type_off, signature in types:
        out.u64(off).u64(type_off).u64(signature)
    for low, high, unit in ranges:
        out.u64(low).u64(high).u32(unit)
    return bytes(out.raw(bytes(8 * 16 + (8 if version >= 9 else 0))).bytes)


def name_hash(name):
    """DWARF 5, 7.33, for names in ASCII."""
    value = 5381
    for c in name.lower().encode():
        value = (value * 33 + c) & 0xFFFFFFFF
    return value


COMPILE_UNIT, TYPE_UNIT, DIE_OFFSET, PARENT = 1, 2, 3, 4


def debug_names(dw, units, names, buckets, attributes=None, types=(), augmentation=b"LLVM0700"):
    """One table of .debug_names (DWARF 5, 6.1.1.4): @names are (name, [(value of each of
    @attributes)]); @attributes are (index, form). Without @buckets it has no hash table."""
    size = dw.offset_size
    attributes = attributes or [(COMPILE_UNIT, FORM.udata), (DIE_OFFSET, FORM.ref4)]
    if buckets:
        names = sorted(names, key=lambda n: (name_hash(n[0]) % buckets, name_hash(n[0])))
    pool, entries = Out(dw.big), []
    for _, series in names:
        entries.append(len(pool))
        for values in series:
            pool.uleb(1)
            for (_, form), value in zip(attributes, values):
                _pool_value(pool, form, value)
        pool.u8(0)
    abbrevs = Out(dw.big).uleb(1).uleb(0x2E)
    for index, form in attributes:
        abbrevs.uleb(index).uleb(form)
    abbrevs.raw(b"\0\0\0").align(4)
    body = Out(dw.big).u16(5).u16(0).u32(len(units)).u32(len(types)).u32(0).u32(buckets)
    body.u32(len(names)).u32(len(abbrevs)).u32(len(augmentation)).raw(augmentation)
    for off in (*units, *types):
        body.uint(off, size)
    for bucket in range(buckets):
        first = [i for i, n in enumerate(names, 1) if name_hash(n[0]) % buckets == bucket]
        body.u32(first[0] if first else 0)
    for name, _ in names if buckets else ():
        body.u32(name_hash(name))
    for name, _ in names:
        body.uint(dw.str(name), size)
    for entry in entries:
        body.uint(entry, size)
    body.raw(abbrevs.bytes).raw(pool.bytes)
    return bytes(Out(dw.big).length(body.bytes, size).bytes)


def _pool_value(out, form, value):
    sizes = {FORM.data1: 1, FORM.data2: 2, FORM.data4: 4, FORM.ref4: 4, FORM.data8: 8}
    if form == FORM.udata:
        out.uleb(value)
    elif form in sizes:
        out.uint(value, sizes[form])
    else:
        assert form == FORM.flag_present


# Sections of package files by their numbers (DWARF 5, 7.3.5.3; GNU's version 2).
PACKAGE = {2: {"debug_info": 1, "debug_abbrev": 3, "debug_line": 4, "debug_str_offsets": 6},
           5: {"debug_info": 1, "debug_abbrev": 3, "debug_line": 4, "debug_str_offsets": 6,
               "debug_rnglists": 8}}


def cu_index(version, big, columns, rows, slots):
    """.debug_cu_index: @rows are (id, {section: (offset, size)})."""
    hashes, numbers = [0] * slots, [0] * slots
    for number, (id, _) in enumerate(rows, 1):
        slot, step = id & slots - 1, id >> 32 & slots - 1 | 1
        while numbers[slot]:
            slot = slot + step & slots - 1
        hashes[slot], numbers[slot] = id, number
    out = Out(big)
    if version == 2:
        out.u32(2)
    else:
        out.u16(5).u16(0)
    out.u32(len(columns)).u32(len(rows)).u32(slots)
    for id in hashes:
        out.u64(id)
    for number in numbers:
        out.u32(number)
    for name in columns:
        out.u32(PACKAGE[version][name])
    for part in (0, 1):
        for _, row in rows:
            for name in columns:
                out.u32(row[name][part])
    return bytes(out.bytes)
