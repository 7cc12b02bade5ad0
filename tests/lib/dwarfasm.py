# SPDX-License-Identifier: MIT
"""Writes .debug_* sections by hand: DWARF 2 to 5 (the standards' chapter 7), and what GNU added.

Nothing is chosen for the caller: forms, codes, bases and opcodes are what the test says. Only what
cannot be the point of a test is done here: unit lengths, string pools, offsets of entries that are
referred to by a label.
"""
from out import Out, sleb, uleb


class TAG:
    class_type, entry_point, lexical_block, compile_unit = 0x02, 0x03, 0x0B, 0x11
    structure_type, union_type, inlined_subroutine, module = 0x13, 0x17, 0x1D, 0x1E
    with_stmt, base_type, catch_block, subprogram, variable = 0x22, 0x24, 0x25, 0x2E, 0x34
    try_block, interface_type, namespace, imported_unit = 0x32, 0x38, 0x39, 0x3D
    partial_unit, type_unit, skeleton_unit, GNU_call_site = 0x3C, 0x41, 0x4A, 0x4109
    formal_parameter = 0x05


class AT:
    sibling, location, name, stmt_list, low_pc, high_pc = 0x01, 0x02, 0x03, 0x10, 0x11, 0x12
    language, comp_dir, const_value, inline, producer = 0x13, 0x1B, 0x1C, 0x20, 0x25
    abstract_origin, decl_file, decl_line, declaration = 0x31, 0x3A, 0x3B, 0x3C
    external, specification, type, entry_pc, ranges = 0x3F, 0x47, 0x49, 0x52, 0x55
    call_column, call_file, call_line, signature = 0x57, 0x58, 0x59, 0x69
    import_, linkage_name, str_offsets_base, addr_base = 0x18, 0x6E, 0x72, 0x73
    rnglists_base, dwo_name, loclists_base = 0x74, 0x76, 0x8C
    MIPS_linkage_name, GNU_dwo_name, GNU_dwo_id = 0x2007, 0x2130, 0x2131
    GNU_ranges_base, GNU_addr_base, GNU_discriminator = 0x2132, 0x2133, 0x2136
    artificial, decl_column, frame_base, data_member_location = 0x34, 0x39, 0x40, 0x38


class FORM:
    addr, block2, block4, data2, data4, data8, string = 0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08
    block, block1, data1, flag, sdata, strp, udata = 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F
    ref_addr, ref1, ref2, ref4, ref8, ref_udata = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15
    indirect, sec_offset, exprloc, flag_present = 0x16, 0x17, 0x18, 0x19
    strx, addrx, ref_sup4, strp_sup, data16, line_strp = 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F
    ref_sig8, implicit_const, loclistx, rnglistx, ref_sup8 = 0x20, 0x21, 0x22, 0x23, 0x24
    strx1, strx2, strx3, strx4 = 0x25, 0x26, 0x27, 0x28
    addrx1, addrx2, addrx3, addrx4 = 0x29, 0x2A, 0x2B, 0x2C
    GNU_addr_index, GNU_str_index, GNU_ref_alt, GNU_strp_alt = 0x1F01, 0x1F02, 0x1F20, 0x1F21


class UT:
    compile, type, partial, skeleton, split_compile, split_type = 1, 2, 3, 4, 5, 6


class LANG:
    C89, C, C_plus_plus, Fortran77, Ada95, C99 = 0x01, 0x02, 0x04, 0x07, 0x0D, 0x0C
    D, Go, Rust, C11 = 0x13, 0x16, 0x1C, 0x1D


class RLE:
    end_of_list, base_addressx, startx_endx, startx_length = 0, 1, 2, 3
    offset_pair, base_address, start_end, start_length = 4, 5, 6, 7


class LNS:
    copy, advance_pc, advance_line, set_file, set_column, negate_stmt = 1, 2, 3, 4, 5, 6
    set_basic_block, const_add_pc, fixed_advance_pc = 7, 8, 9
    set_prologue_end, set_epilogue_begin, set_isa = 10, 11, 12


class LNE:
    end_sequence, set_address, define_file, set_discriminator = 1, 2, 3, 4


class LNCT:
    path, directory_index, timestamp, size, MD5 = 1, 2, 3, 4, 5
    LLVM_source, lo_user = 0x2001, 0x2000


class Die:
    def __init__(self, tag, attrs, children, label, code):
        self.tag, self.attrs, self.children, self.label, self.code = tag, attrs, children, label, code


def die(tag, *attrs, children=None, label=None, code=None):
    """An entry. Each attribute is (AT, FORM, value); a list of @children, even an empty one, makes
    it an entry with DW_CHILDREN_yes; @code forces the abbreviation code."""
    return Die(tag, attrs, children, label, code)


class Abbrevs:
    """One table of .debug_abbrev; codes count from @first in steps of @step."""

    def __init__(self, first=1, step=1, reverse=False):
        self.codes, self.order = {}, []
        self.first, self.step, self.reverse = first, step, reverse

    def code_of(self, d):
        shape = (d.tag, d.children is not None,
                 tuple((at, form, value if form == FORM.implicit_const else None)
                       for at, form, value in d.attrs))
        if d.code is not None:
            if (d.code, shape) not in self.order:
                self.order.append((d.code, shape))
            return d.code
        if shape not in self.codes:
            self.codes[shape] = self.first + self.step * len(self.codes)
            self.order.append((self.codes[shape], shape))
        return self.codes[shape]

    def build(self):
        out = Out()
        for code, (tag, children, attrs) in reversed(self.order) if self.reverse else self.order:
            out.uleb(code).uleb(tag).u8(children)
            for at, form, value in attrs:
                out.uleb(at).uleb(form)
                if form == FORM.implicit_const:
                    out.sleb(value)
            out.u8(0).u8(0)
        return out.u8(0).bytes


FIXED = {FORM.data1: 1, FORM.data2: 2, FORM.data4: 4, FORM.data8: 8, FORM.data16: 16, FORM.flag: 1,
         FORM.ref_sig8: 8, FORM.ref_sup4: 4, FORM.ref_sup8: 8, FORM.strx1: 1, FORM.strx2: 2,
         FORM.strx3: 3, FORM.strx4: 4, FORM.addrx1: 1, FORM.addrx2: 2, FORM.addrx3: 3,
         FORM.addrx4: 4}
OFFSETS = {FORM.strp, FORM.line_strp, FORM.sec_offset, FORM.strp_sup, FORM.GNU_ref_alt,
           FORM.GNU_strp_alt}
LEBS = {FORM.udata, FORM.strx, FORM.addrx, FORM.loclistx, FORM.rnglistx, FORM.GNU_addr_index,
        FORM.GNU_str_index}
LOCAL_REFS = {FORM.ref1: 1, FORM.ref2: 2, FORM.ref4: 4, FORM.ref8: 8, FORM.ref_udata: 0}
BLOCKS = {FORM.block1: 1, FORM.block2: 2, FORM.block4: 4}
# Padded LEB128 references: their size must be known before their value is.
LEB_REF = 4


class Unit:
    """What the encoding of values in one unit depends on."""

    def __init__(self, off, version, offset_size, address_size):
        self.off, self.version = off, version
        self.offset_size, self.address_size = offset_size, address_size


class Dwarf:
    """The sections of one file. @suffix is ".dwo" for those of split files."""

    def __init__(self, version=4, offset_size=4, address_size=8, big=False, suffix=""):
        self.version, self.offset_size, self.address_size = version, offset_size, address_size
        self.big, self.suffix = big, suffix
        self.sections = {}
        self.pools = {}
        self.labels = {}  # of entries: offsets in .debug_info
        self.units = {}  # label of a root: (offset, size) of the unit
        self.fixups = []  # (section, place, size, label, what is subtracted from it)

    def section(self, name):
        return self.sections.setdefault(name, Out(self.big))

    def _pooled(self, pool, text):
        out, known = self.section(pool), self.pools.setdefault(pool, {})
        if text not in known:
            known[text] = len(out)
            out.cstr(text)
        return known[text]

    def str(self, text):
        return self._pooled("debug_str", text)

    def line_str(self, text):
        return self._pooled("debug_line_str", text)

    def _reference(self, out, unit, form, value):
        """A reference to a label, or a plain number."""
        if form == FORM.ref_addr:
            size = unit.address_size if unit.version <= 2 else unit.offset_size
            base = 0
        else:
            size, base = LOCAL_REFS[form], unit.off
        if isinstance(value, str):
            self.fixups.append(("debug_info", len(out), size, value, base))
            value = 0
        out.uint(value, size) if size else out.uleb(value, LEB_REF)

    def _string(self, out, unit, form, value):
        if form == FORM.string:
            out.cstr(value)
        elif form == FORM.strp:
            out.uint(self.str(value) if isinstance(value, str) else value, unit.offset_size)
        else:
            out.uint(self.line_str(value) if isinstance(value, str) else value, unit.offset_size)

    def _value(self, out, unit, form, value):
        if form in (FORM.string, FORM.strp, FORM.line_strp):
            self._string(out, unit, form, value)
        elif form == FORM.addr:
            out.uint(value, unit.address_size)
        elif form in FIXED:
            out.uint(value, FIXED[form])
        elif form in OFFSETS:
            out.uint(value, unit.offset_size)
        elif form in LEBS:
            out.uleb(value)
        elif form == FORM.sdata:
            out.sleb(value)
        elif form in LOCAL_REFS or form == FORM.ref_addr:
            self._reference(out, unit, form, value)
        elif form in BLOCKS:
            out.uint(len(value), BLOCKS[form]).raw(value)
        elif form in (FORM.block, FORM.exprloc):
            out.uleb(len(value)).raw(value)
        elif form == FORM.indirect:
            out.uleb(value[0])
            self._value(out, unit, *value)
        elif form not in (FORM.flag_present, FORM.implicit_const):
            out.raw(value)  # a form nobody knows, with the bytes that the test gives it

    def _die(self, out, unit, abbrevs, d):
        if d.label:
            self.labels[d.label] = len(out)
        out.uleb(abbrevs.code_of(d))
        for _, form, value in d.attrs:
            self._value(out, unit, form, value)
        if d.children is not None:
            for child in d.children:
                self._die(out, unit, abbrevs, child)
            out.u8(0)

    def unit(self, root, version=None, offset_size=None, address_size=None, type=UT.compile, id=0,
             abbrevs=None, type_offset=None, padding=b"", section="debug_info"):
        """Adds a unit with the entries below @root; returns its offset.

        @abbrevs is a table of its own unless one that is shared is given."""
        out = self.section(section)
        unit = Unit(len(out), version or self.version, offset_size or self.offset_size,
                    address_size or self.address_size)
        own = abbrevs is None
        abbrevs = Abbrevs() if own else abbrevs
        if unit.offset_size == 8:
            out.u32(0xFFFFFFFF)
        length_at = len(out)
        out.uint(0, unit.offset_size).u16(unit.version)
        abbrev_off = getattr(abbrevs, "off", len(self.section("debug_abbrev")))
        if unit.version >= 5:
            out.u8(type).u8(unit.address_size).uint(abbrev_off, unit.offset_size)
        else:
            out.uint(abbrev_off, unit.offset_size).u8(unit.address_size)
        if type in (UT.skeleton, UT.split_compile, UT.type, UT.split_type) or section == "debug_types":
            out.u64(id)
        if type in (UT.type, UT.split_type) or section == "debug_types":
            if isinstance(type_offset, str):
                self.fixups.append((section, len(out), unit.offset_size, type_offset, unit.off))
            out.uint(0, unit.offset_size)
        self._die(out, unit, abbrevs, root)
        out.raw(padding)
        out.patch(length_at, len(out) - length_at - unit.offset_size, unit.offset_size)
        if root.label:
            self.units[root.label] = (unit.off, len(out) - unit.off)
        if own:
            self.section("debug_abbrev").raw(abbrevs.build())
        return unit.off

    def share(self, **options):
        """A table of abbreviations for several units; end() it after the last."""
        abbrevs = Abbrevs(**options)
        abbrevs.off = len(self.section("debug_abbrev"))
        return abbrevs

    def end(self, abbrevs):
        self.section("debug_abbrev").raw(abbrevs.build())

    def finish(self):
        """Resolves references; returns {section name: bytes}."""
        for section, at, size, label, base in self.fixups:
            value = self.labels[label] - base
            if size:
                self.sections[section].patch(at, value, size)
            else:
                self.sections[section].bytes[at:at + LEB_REF] = uleb(value, LEB_REF)
        self.fixups = []
        return {f".{name}{self.suffix}": bytes(out.bytes) for name, out in self.sections.items()}

    # The sections that units point into. Each method returns the offset of what it added.

    def raw(self, section, data):
        out = self.section(section)
        off = len(out)
        out.raw(data)
        return off

    def ranges(self, *pairs):
        """.debug_ranges: pairs as they stand in the section, the end-of-list pair added."""
        out = Out(self.big)
        for low, high in (*pairs, (0, 0)):
            out.uint(low, self.address_size).uint(high, self.address_size)
        return self.raw("debug_ranges", out.bytes)

    def rnglist(self, *entries):
        """The bytes of one list: (RLE, operand, operand); the end added."""
        out = Out(self.big)
        for op, *operands in (*entries, (RLE.end_of_list,)):
            out.u8(op)
            if op in (RLE.base_address, RLE.start_end):
                for address in operands:
                    out.uint(address, self.address_size)
            elif op == RLE.start_length:
                out.uint(operands[0], self.address_size).uleb(operands[1])
            else:
                for number in operands:
                    out.uleb(number)
        return bytes(out.bytes)

    def rnglists(self, *lists, table=True):
        """.debug_rnglists: one header and @lists; returns (base, offset of each list)."""
        size = self.offset_size
        offsets, at = [], len(lists) * size if table else 0
        for entries in lists:
            offsets.append(at)
            at += len(entries)
        body = Out(self.big).u16(5).u8(self.address_size).u8(0).u32(len(lists) if table else 0)
        for off in offsets if table else []:
            body.uint(off, size)
        for entries in lists:
            body.raw(entries)
        start = self.raw("debug_rnglists", Out(self.big).length(body.bytes, size).bytes)
        base = start + (20 if size == 8 else 12)
        return base, [base + off for off in offsets]

    def addr(self, *addresses, header=True):
        """.debug_addr; returns the base that DW_AT_addr_base states."""
        body = Out(self.big)
        if header:
            body.u16(5).u8(self.address_size).u8(0)
        for address in addresses:
            body.uint(address, self.address_size)
        if not header:
            return self.raw("debug_addr", body.bytes)
        start = self.raw("debug_addr", Out(self.big).length(body.bytes, self.offset_size).bytes)
        return start + (16 if self.offset_size == 8 else 8)

    def str_offsets(self, *texts, header=True):
        """.debug_str_offsets; returns the base that DW_AT_str_offsets_base states."""
        body = Out(self.big)
        if header:
            body.u16(5).u16(0)
        for text in texts:
            body.uint(self.str(text), self.offset_size)
        if not header:
            return self.raw("debug_str_offsets", body.bytes)
        start = self.raw("debug_str_offsets",
                         Out(self.big).length(body.bytes, self.offset_size).bytes)
        return start + (16 if self.offset_size == 8 else 8)

    def aranges(self, unit_off, *tuples, version=2, end=True, address_size=None):
        """A set of .debug_aranges: (address, size) as they stand there."""
        size = address_size or self.address_size
        head = (4 if self.offset_size == 4 else 12) + 4 + self.offset_size
        body = Out(self.big).u16(version).uint(unit_off, self.offset_size).u8(size).u8(0)
        body.raw(bytes(-head % (2 * size)))
        for address, length in (*tuples, (0, 0)) if end else tuples:
            body.uint(address, size).uint(length, size)
        return self.raw("debug_aranges", Out(self.big).length(body.bytes, self.offset_size).bytes)


STANDARD_LENGTHS = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]


class Line:
    """A line number program (DWARF 5, 6.2; the older standards' 6.2)."""

    def __init__(self, version=4, offset_size=4, address_size=8, big=False, min_inst=1, max_ops=1,
                 default_is_stmt=1, line_base=-5, line_range=14, opcode_base=13, lengths=None,
                 dirs=None, files=None, dir_format=None, file_format=None, dwarf=None):
        self.version, self.offset_size, self.address_size = version, offset_size, address_size
        self.big, self.min_inst, self.max_ops = big, min_inst, max_ops
        self.default_is_stmt, self.line_base, self.line_range = default_is_stmt, line_base, line_range
        self.opcode_base, self.lengths = opcode_base, lengths
        # Version 5 counts from 0, where the unit's own directory and file are.
        self.dirs = dirs if dirs is not None else ["/d"] if version >= 5 else []
        self.files = files if files is not None else [("a.c", 0)] * (2 if version >= 5 else 1)
        self.dir_format = dir_format or [(LNCT.path, FORM.string)]
        self.file_format = file_format or [(LNCT.path, FORM.string),
                                           (LNCT.directory_index, FORM.udata)]
        self.dwarf = dwarf
        self.ops = Out(big)

    # Opcodes, by their names in the standard.

    def op(self, opcode, *operands):
        """A standard opcode with LEB128 operands."""
        self.ops.u8(opcode)
        for operand in operands:
            self.ops.sleb(operand) if operand < 0 or opcode == LNS.advance_line else \
                self.ops.uleb(operand)
        return self

    def fixed_advance_pc(self, delta):
        self.ops.u8(LNS.fixed_advance_pc).u16(delta)
        return self

    def ext(self, opcode, operands=b""):
        self.ops.u8(0).uleb(1 + len(operands)).u8(opcode).raw(operands)
        return self

    def set_address(self, address):
        return self.ext(LNE.set_address, Out(self.big).uint(address, self.address_size).bytes)

    def discriminator(self, value):
        return self.ext(LNE.set_discriminator, uleb(value))

    def define_file(self, name, directory):
        return self.ext(LNE.define_file, name.encode() + b"\0" + uleb(directory) + b"\0\0")

    def end(self):
        return self.ext(LNE.end_sequence)

    def special(self, opcode):
        self.ops.u8(opcode)
        return self

    def advance_pc(self, operations):
        return self.op(LNS.advance_pc, operations)

    def line(self, delta):
        self.ops.u8(LNS.advance_line).raw(sleb(delta))
        return self

    def copy(self):
        return self.op(LNS.copy)

    def sequence(self, end, *rows):
        """One sequence of (address, line[, file[, column]]) up to @end, in plain opcodes."""
        line, file, column = 1, 1, 0
        for row in rows:
            self.set_address(row[0])
            if len(row) > 2 and row[2] != file:
                file = row[2]
                self.op(LNS.set_file, file)
            if len(row) > 3 and row[3] != column:
                column = row[3]
                self.op(LNS.set_column, column)
            if row[1] != line:
                self.line(row[1] - line)
                line = row[1]
            self.copy()
        return self.set_address(end).end()

    def _old_tables(self, out):
        for name in self.dirs:
            out.cstr(name)
        out.u8(0)
        for name, directory in self.files:
            out.cstr(name).uleb(directory).uleb(0).uleb(0)
        out.u8(0)

    def _new_table(self, out, format, entries):
        out.u8(len(format))
        for type, form in format:
            out.uleb(type).uleb(form)
        out.uleb(len(entries))
        unit = Unit(0, 5, self.offset_size, self.address_size)
        writer = self.dwarf or Dwarf(version=5, big=self.big)
        for entry in entries:
            for (_, form), value in zip(format, entry):
                writer._value(out, unit, form, value)

    def build(self):
        """The bytes of the program and its header."""
        tables = Out(self.big).u8(self.min_inst)
        if self.version >= 4:
            tables.u8(self.max_ops)
        tables.u8(self.default_is_stmt).u8(self.line_base & 0xFF).u8(self.line_range)
        tables.u8(self.opcode_base)
        lengths = self.lengths if self.lengths is not None else STANDARD_LENGTHS
        tables.raw(bytes((lengths + [0] * 255)[:max(self.opcode_base - 1, 0)]))
        if self.version >= 5:
            self._new_table(tables, self.dir_format,
                            [d if isinstance(d, tuple) else (d,) for d in self.dirs])
            self._new_table(tables, self.file_format, self.files)
        else:
            self._old_tables(tables)
        body = Out(self.big).u16(self.version)
        if self.version >= 5:
            body.u8(self.address_size).u8(0)
        body.uint(len(tables), self.offset_size).raw(tables.bytes).raw(self.ops.bytes)
        return bytes(Out(self.big).length(body.bytes, self.offset_size).bytes)
