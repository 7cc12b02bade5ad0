# SPDX-License-Identifier: MIT
"""Every form (DWARF 5, 7.5.6; DWARF 4, 7.5.4; GNU's of 0x1f..), on attributes that show in answers."""
from case import ENCODINGS, TEXT, Built, case, function, lines, one_function, root
from dwarfasm import AT, FORM, RLE, TAG, die

# Strings -------------------------------------------------------------------------------------------

for _form, _version in (("string", 2), ("string", 5), ("strp", 2), ("strp", 3), ("strp", 4),
                        ("strp", 5), ("line_strp", 5)):
    @case(f"name as {_form}, DWARF {_version}", encodings=ENCODINGS, form=_form, version=_version)
    def _name(e, form, version):
        dw = e.dwarf(version)
        dw.str("padding, so that no offset is 0")
        dw.line_str("padding")
        return one_function(e, dw, (AT.name, getattr(FORM, form), "fun"), want="fun")


def _indexed_name(e, dw, form, index, base):
    return one_function(e, dw, (AT.name, form, index), want="fun",
                        unit_attrs=[(AT.str_offsets_base, FORM.sec_offset, base)])


# Index 200 takes two bytes as LEB128.
for _form in ("strx", "strx1", "strx2", "strx3", "strx4"):
    @case(f"name as {_form}", encodings=ENCODINGS, form=_form)
    def _strx(e, form):
        dw = e.dwarf(5)
        dw.str_offsets("of another unit")
        base = dw.str_offsets(*["wrong"] * 200, "fun")
        return _indexed_name(e, dw, getattr(FORM, form), 200, base)


# DWARF 5, 7.26: without DW_AT_str_offsets_base the unit's part is behind the first header.
@case("name as strx1 without a base", encodings=ENCODINGS, llvm="reads no string without a base")
def _strx_without_base(e):
    dw = e.dwarf(5)
    dw.str_offsets("wrong", "fun")
    return one_function(e, dw, (AT.name, FORM.strx1, 1), want="fun")


@case("a string index behind the table names nothing", llvm=None)
def _strx_behind(e=ENCODINGS[0]):
    dw = e.dwarf(5)
    base = dw.str_offsets("wrong")
    built = _indexed_name(e, dw, FORM.strx4, 0xFFFFFFFF, base)
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


@case("a string offset behind .debug_str names nothing", llvm=None)
def _strp_behind(e=ENCODINGS[0]):
    dw = e.dwarf(4)
    dw.str("something")
    built = one_function(e, dw, (AT.name, FORM.strp, 0x7FFFFFFF))
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


# The offsets of GNU's split DWARF 4 have no header; the table starts the section.
@case("name as GNU_str_index", encodings=ENCODINGS, llvm="reads it in .dwo sections only")
def _gnu_str_index(e):
    dw = e.dwarf(4)
    dw.str_offsets("wrong", "fun", header=False)
    return one_function(e, dw, (AT.name, FORM.GNU_str_index, 1), want="fun")


for _form in ("string", "strp", "line_strp", "strx1"):
    @case(f"comp_dir as {_form}", encodings=ENCODINGS, form=_form)
    def _comp_dir(e, form):
        # Version 4, whose line table leaves the directory to the unit, but line_strp is of 5.
        dw = e.dwarf(5)
        base = dw.str_offsets("wrong", "/elsewhere")
        program = e.line(4, files=[("sub.c", 1)], dirs=["sub"]).sequence(0x1100, (TEXT, 10))
        stmt_list = dw.raw("debug_line", program.build())
        value = 1 if form == "strx1" else "/elsewhere"
        dw.unit(die(TAG.compile_unit, (AT.name, FORM.string, "a.c"),
                    (AT.str_offsets_base, FORM.sec_offset, base),
                    (AT.comp_dir, getattr(FORM, form), value), (AT.low_pc, FORM.addr, TEXT),
                    (AT.high_pc, FORM.data4, 0x100), (AT.stmt_list, FORM.sec_offset, stmt_list),
                    children=[function()]))
        return Built(e.elf(dw), {TEXT: [("f", "/elsewhere/sub/sub.c", 10)]})


# Addresses -----------------------------------------------------------------------------------------

def _addresses(e, form, high=None):
    dw = e.dwarf(5)
    dw.addr(0xBAD, 0xBAD)
    base = dw.addr(*[0xBAD] * 150, TEXT, TEXT + 0x40)
    return one_function(e, dw, (AT.name, FORM.string, "f"), (AT.low_pc, form, 150),
                        high or (AT.high_pc, FORM.data1, 0x40),
                        unit_attrs=[(AT.addr_base, FORM.sec_offset, base)])


for _form in ("addrx", "addrx1", "addrx2", "addrx3", "addrx4"):
    @case(f"low_pc as {_form}", encodings=ENCODINGS, form=_form)
    def _addrx(e, form):
        return _addresses(e, getattr(FORM, form))

    # DWARF 5, 2.17.2: a high_pc of class address is the address behind the code.
    @case(f"high_pc as {_form}", encodings=ENCODINGS, form=_form)
    def _high_addrx(e, form):
        return _addresses(e, FORM.addrx, (AT.high_pc, getattr(FORM, form), 151))


@case("low_pc as GNU_addr_index", encodings=ENCODINGS)
def _gnu_addr_index(e):
    dw = e.dwarf(4)
    dw.addr(0xBAD, header=False)
    base = dw.addr(0xBAD, TEXT, header=False)
    return one_function(e, dw, (AT.name, FORM.string, "f"), (AT.low_pc, FORM.GNU_addr_index, 1),
                        (AT.high_pc, FORM.data1, 0x40),
                        unit_attrs=[(AT.GNU_addr_base, FORM.sec_offset, base)])


@case("an address index behind .debug_addr is no code", llvm=None)
def _addrx_behind(e=ENCODINGS[0]):
    dw = e.dwarf(5)
    base = dw.addr(TEXT)
    built = one_function(e, dw, (AT.name, FORM.string, "f"), (AT.low_pc, FORM.addrx4, 0x7FFFFFFF),
                         (AT.high_pc, FORM.data1, 0x40),
                         unit_attrs=[(AT.addr_base, FORM.sec_offset, base)])
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


@case("a high_pc whose index is behind .debug_addr is no offset", llvm=None)
def _high_addrx_behind(e=ENCODINGS[0]):
    dw = e.dwarf(5)
    base = dw.addr(TEXT)
    built = one_function(e, dw, (AT.name, FORM.string, "f"), (AT.low_pc, FORM.addrx1, 0),
                         (AT.high_pc, FORM.addrx1, 0x40),
                         unit_attrs=[(AT.addr_base, FORM.sec_offset, base)])
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


# Constants -----------------------------------------------------------------------------------------

# As the end of the code: an offset from low_pc, since version 4.
for _form in ("data1", "data2", "data4", "data8", "udata", "sdata", "implicit_const"):
    @case(f"high_pc as {_form}", encodings=ENCODINGS, form=_form,
          version=5 if _form == "implicit_const" else 4,
          llvm=True if _form != "sdata" else "takes signed forms for no offset")
    def _high_pc(e, form, version):
        return one_function(e, e.dwarf(version), (AT.name, FORM.string, "f"),
                            (AT.low_pc, FORM.addr, TEXT), (AT.high_pc, getattr(FORM, form), 0x40))

for _version in (2, 3, 4, 5):
    @case(f"high_pc as addr, DWARF {_version}", encodings=ENCODINGS, version=_version)
    def _high_pc_addr(e, version):
        return one_function(e, e.dwarf(version), (AT.name, FORM.string, "f"),
                            (AT.low_pc, FORM.addr, TEXT), (AT.high_pc, FORM.addr, TEXT + 0x40))


def _inlined(e, dw, *call, low=TEXT + 0x10, size=0x10, origin=(FORM.ref4, "abstract"), files=2):
    """outer, which inlines inner at 0x1010; returns the entries of both."""
    inner = die(TAG.subprogram, (AT.name, FORM.string, "inner"), (AT.inline, FORM.data1, 1),
                label="abstract")
    copy = die(TAG.inlined_subroutine, (AT.abstract_origin, *origin), (AT.low_pc, FORM.addr, low),
               (AT.high_pc, FORM.data4, size) if dw.version >= 4 else
               (AT.high_pc, FORM.addr, low + size), *call)
    outer = die(TAG.subprogram, (AT.name, FORM.string, "outer"), (AT.low_pc, FORM.addr, TEXT),
                (AT.high_pc, FORM.data4, 0x40) if dw.version >= 4 else
                (AT.high_pc, FORM.addr, TEXT + 0x40), children=[copy])
    return inner, outer


def _two_files(e, dw):
    """Line 5 of b.h in the inlined call, line 10 of a.c around it."""
    files = [("a.c", 0), ("a.c", 0), ("b.h", 0)] if dw.version >= 5 else [("a.c", 0), ("b.h", 0)]
    return lines(e, dw, (TEXT, 10, 1), (TEXT + 0x10, 5, 2), (TEXT + 0x20, 11, 1), files=files)


def _called(e, dw, *call, line=77, column=None, file="a.c", **options):
    stmt_list = _two_files(e, dw)
    dw.unit(root(e, dw, *_inlined(e, dw, *call, **options), stmt_list=stmt_list))
    outer = ("outer", f"/d/{file}", line) + (() if column is None else (column,))
    return Built(e.elf(dw), {TEXT + 0xF: [("outer", "/d/a.c", 10)],
                             TEXT + 0x10: [("inner", "/d/b.h", 5), outer],
                             TEXT + 0x1F: [("inner", "/d/b.h", 5), outer],
                             TEXT + 0x20: [("outer", "/d/a.c", 11)]})


# 77 and 200: the second has its highest bit set in one byte, and needs two as LEB128.
for _form in ("data1", "data2", "data4", "data8", "udata", "sdata", "implicit_const"):
    @case(f"call_file, call_line and call_column as {_form}", encodings=ENCODINGS, form=_form,
          version=5 if _form == "implicit_const" else 4,
          llvm=True if _form != "sdata" else "takes signed forms for no line number")
    def _call(e, form, version):
        form = getattr(FORM, form)
        return _called(e, e.dwarf(version), (AT.call_file, form, 1), (AT.call_line, form, 200),
                       (AT.call_column, form, 77), line=200, column=77)


@case("call_line above 2^31 and call_column above 2^16", encodings=ENCODINGS)
def _wide_call(e):
    return _called(e, e.dwarf(4), (AT.call_file, FORM.data1, 2), (AT.call_line, FORM.data4, 0x90000001),
                   (AT.call_column, FORM.data4, 70000), line=0x90000001, column=70000, file="b.h")


@case("GNU_discriminator of a call", encodings=ENCODINGS)
def _call_discriminator(e):
    dw = e.dwarf(4)
    built = _called(e, dw, (AT.call_file, FORM.data1, 1), (AT.call_line, FORM.data1, 77),
                    (AT.GNU_discriminator, FORM.udata, 200))
    built.want[TEXT + 0x10] = [("inner", "/d/b.h", 5, None, None), ("outer", "/d/a.c", 77, None, 200)]
    return built


# 16 bytes are a constant that no line number needs: it is passed over.
@case("data16 is passed over", encodings=ENCODINGS)
def _data16(e):
    return one_function(e, e.dwarf(5), (AT.const_value, FORM.data16, 0x1122334455667788),
                        (AT.name, FORM.string, "f"))


# References ----------------------------------------------------------------------------------------

for _form in ("ref1", "ref2", "ref4", "ref8", "ref_udata", "ref_addr"):
    for _version in (2, 3, 4, 5):
        @case(f"abstract_origin as {_form}, DWARF {_version}", encodings=ENCODINGS, form=_form,
              version=_version)
        def _reference(e, form, version):
            return _called(e, e.dwarf(version), (AT.call_file, FORM.data1, 1),
                           (AT.call_line, FORM.data1, 77), origin=(getattr(FORM, form), "abstract"))


for _version in (2, 3, 4, 5):
    @case(f"abstract_origin in another unit, DWARF {_version}", encodings=ENCODINGS, version=_version)
    def _other_unit(e, version):
        dw = e.dwarf(version)
        inner, outer = _inlined(e, dw, (AT.call_file, FORM.data1, 1), (AT.call_line, FORM.data1, 77),
                                origin=(FORM.ref_addr, "abstract"))
        stmt_list = _two_files(e, dw)
        dw.unit(root(e, dw, die(TAG.base_type), inner, low=None, stmt_list=None))
        dw.unit(root(e, dw, outer, stmt_list=stmt_list))
        dw.unit(root(e, dw, die(TAG.base_type), low=None, stmt_list=None))
        return Built(e.elf(dw), {TEXT + 0x10: [("inner", "/d/b.h", 5), ("outer", "/d/a.c", 77)]})


# A signature leads to a type; no function's name stands there.
@case("ref_sig8 is passed over", encodings=ENCODINGS)
def _ref_sig8(e):
    return one_function(e, e.dwarf(4), (AT.type, FORM.ref_sig8, 0x0123456789ABCDEF),
                        (AT.name, FORM.string, "f"))


@case("a reference outside its unit leads nowhere", llvm=None)
def _reference_outside(e=ENCODINGS[0]):
    built = _called(e, e.dwarf(4), origin=(FORM.ref4, 0x7FFFFFFF))
    built.want = {TEXT: [("outer", "/d/a.c", 10)],
                  TEXT + 0x10: [(None, "/d/b.h", 5), ("outer", None, None)]}
    return built


# Blocks, flags and others that only have to be passed over -----------------------------------------

for _form, _size in (("block1", 5), ("block1", 255), ("block2", 300), ("block4", 70000),
                     ("block", 5), ("block", 300), ("exprloc", 0), ("exprloc", 300)):
    @case(f"{_form} of {_size} bytes", encodings=ENCODINGS, form=_form, size=_size)
    def _block(e, form, size):
        return one_function(e, e.dwarf(4), (AT.frame_base, getattr(FORM, form), b"\x05" * size),
                            (AT.name, FORM.string, "f"))


@case("flag, flag_present and sec_offset", encodings=ENCODINGS)
def _flags(e):
    return one_function(e, e.dwarf(4), (AT.external, FORM.flag, 1), (AT.artificial, FORM.flag_present, 1),
                        (AT.frame_base, FORM.sec_offset, 0x1234), (AT.name, FORM.string, "f"))


@case("loclistx is passed over", encodings=ENCODINGS)
def _loclistx(e):
    return one_function(e, e.dwarf(5), (AT.frame_base, FORM.loclistx, 300), (AT.name, FORM.string, "f"))


@case("implicit_const takes no bytes in the entry", encodings=ENCODINGS)
def _implicit_const(e):
    return one_function(e, e.dwarf(5), (AT.decl_line, FORM.implicit_const, -5),
                        (AT.decl_file, FORM.implicit_const, 1 << 40), (AT.name, FORM.string, "f"))


# The same shapes on entries of which nothing is read at all.
@case("an unread entry with every form of variable size", encodings=ENCODINGS)
def _unread(e):
    dw = e.dwarf(5)
    variable = die(TAG.variable, (AT.location, FORM.exprloc, b"\x03" * 200),
                   (AT.const_value, FORM.block1, b"abc"), (AT.const_value, FORM.block2, b"abc"),
                   (AT.const_value, FORM.block4, b"abc"), (AT.const_value, FORM.block, b"abc"),
                   (AT.name, FORM.string, "v"), (AT.const_value, FORM.udata, 1 << 40),
                   (AT.const_value, FORM.sdata, -(1 << 40)), (AT.type, FORM.ref_udata, 0),
                   (AT.name, FORM.strx, 300), (AT.low_pc, FORM.addrx, 300),
                   (AT.location, FORM.loclistx, 300), (AT.ranges, FORM.rnglistx, 300),
                   (AT.const_value, FORM.indirect, (FORM.block1, b"abc")),
                   (AT.const_value, FORM.implicit_const, 7), (AT.const_value, FORM.data16, 1),
                   (AT.type, FORM.ref_sig8, 1), (AT.external, FORM.flag_present, 1),
                   (AT.name, FORM.strx3, 5), (AT.low_pc, FORM.addrx3, 5))
    dw.unit(root(e, dw, variable, function()))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


# DW_FORM_indirect ----------------------------------------------------------------------------------

@case("indirect, once", encodings=ENCODINGS)
def _indirect(e):
    return one_function(e, e.dwarf(4), (AT.name, FORM.indirect, (FORM.string, "f")),
                        (AT.low_pc, FORM.indirect, (FORM.addr, TEXT)),
                        (AT.high_pc, FORM.indirect, (FORM.udata, 0x40)))


@case("indirect to indirect", encodings=ENCODINGS)
def _indirect_twice(e):
    nested = (FORM.indirect, (FORM.strp, "f"))
    return one_function(e, e.dwarf(4), (AT.frame_base, FORM.indirect, (FORM.indirect, (FORM.block1, b"abc"))),
                        (AT.name, FORM.indirect, nested))


# The constant of implicit_const stands in the abbreviation, where there is none for this.
@case("indirect to implicit_const cannot be read", llvm=None, note=".debug_info")
def _indirect_implicit(e=ENCODINGS[0]):
    built = one_function(e, e.dwarf(5), (AT.decl_line, FORM.indirect, (FORM.implicit_const, 0)),
                         (AT.name, FORM.string, "f"))
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


@case("indirect without an end cannot be read", llvm=None, note=".debug_info")
def _indirect_endless(e=ENCODINGS[0]):
    built = one_function(e, e.dwarf(4), (AT.name, FORM.indirect, (FORM.indirect, (0x99, b"\x16" * 50))))
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


@case("an unknown form cannot be passed over", llvm=None, note=".debug_info")
def _unknown_form(e=ENCODINGS[0]):
    built = one_function(e, e.dwarf(5), (AT.decl_line, 0x2D, b"\x01"), (AT.name, FORM.string, "f"))
    built.want = {TEXT: [(None, "/d/a.c", 10)]}
    return built


# Range lists by index ------------------------------------------------------------------------------

@case("ranges as rnglistx", encodings=ENCODINGS)
def _rnglistx(e):
    dw = e.dwarf(5)
    base, _ = dw.rnglists(dw.rnglist((RLE.start_length, 0xBAD, 1)),
                          dw.rnglist((RLE.start_length, TEXT, 0x40)))
    return one_function(e, dw, (AT.name, FORM.string, "f"), (AT.ranges, FORM.rnglistx, 1),
                        unit_attrs=[(AT.rnglists_base, FORM.sec_offset, base)])


@case("ranges as sec_offset, DWARF 5", encodings=ENCODINGS)
def _ranges_offset(e):
    dw = e.dwarf(5)
    _, offsets = dw.rnglists(dw.rnglist((RLE.start_length, 0xBAD, 1)),
                             dw.rnglist((RLE.start_length, TEXT, 0x40)), table=False)
    return one_function(e, dw, (AT.name, FORM.string, "f"), (AT.ranges, FORM.sec_offset, offsets[1]))


for _version in (3, 4):
    @case(f"ranges as an offset in .debug_ranges, DWARF {_version}", encodings=ENCODINGS,
          version=_version)
    def _debug_ranges(e, version):
        dw = e.dwarf(version)
        dw.ranges((0xBAD, 0xBAE))
        off = dw.ranges((0, 0x40))  # relative to the unit's low_pc
        form = FORM.sec_offset if version >= 4 else FORM.data8 if e.offset_size == 8 else FORM.data4
        return one_function(e, dw, (AT.name, FORM.string, "f"), (AT.ranges, form, off))
