# SPDX-License-Identifier: MIT
"""Line number programs, versions 2 to 5 (DWARF 5, 6.2; DWARF 4, 6.2), opcode by opcode."""
from case import ENCODINGS, TEXT, Built, case, function, root
from dwarfasm import AT, FORM, LNCT, LNE, LNS, TAG, die
from out import Out, uleb

PLAIN = ENCODINGS[0]
VERSIONS = (2, 3, 4, 5)


def at(line, file="/d/a.c", column=None):
    return [("f", file, line) + (() if column is None else (column,))]


def no_line():
    return [("f", None, None)]


def program(e, p, want, version=4, **options):
    """A unit whose function f covers all the code, with the line program @p."""
    dw = options.pop("dwarf", None) or e.dwarf(version)
    stmt_list = dw.raw("debug_line", p if isinstance(p, (bytes, bytearray)) else p.build())
    dw.unit(root(e, dw, function(TEXT, 0x100) if version >= 4 else
                 die(TAG.subprogram, (AT.name, FORM.string, "f"), (AT.low_pc, FORM.addr, TEXT),
                     (AT.high_pc, FORM.addr, TEXT + 0x100)), stmt_list=stmt_list, **options))
    return Built(e.elf(dw), want)


def each_version(name, **options):
    """Registers a case for each version; the function takes the encoding and an empty program."""
    def register(build):
        for version in VERSIONS:
            @case(f"{name}, line table {version}", encodings=ENCODINGS, version=version, **options)
            def _case(e, version):
                p = e.line(version)
                return program(e, p, build(p), version=version)
        return build
    return register


# Standard opcodes ----------------------------------------------------------------------------------
# line_base is -5, line_range 14, opcode_base 13 unless stated: a special opcode N adds
# (N - 13) / 14 to the address and (N - 13) % 14 - 5 to the line.

@each_version("copy, advance_pc, advance_line")
def _basics(p):
    p.set_address(TEXT).line(9).copy().advance_pc(0x10).line(-3).copy()
    p.advance_pc(0x90).line(1000000).copy().advance_pc(0x10).end()
    return {TEXT: at(10), TEXT + 0x0F: at(10), TEXT + 0x10: at(7), TEXT + 0x9F: at(7),
            TEXT + 0xA0: at(1000007), TEXT + 0xAF: at(1000007), TEXT + 0xB0: no_line()}


@each_version("special opcodes")
def _special(p):
    # 13: address +0, line -5. 18: +0, +0. 32: (19/14) = +1, 19 % 14 - 5 = 0. 255: +17, 4 - 5 = -1.
    p.set_address(TEXT).line(19).special(13).special(18 + 14).special(255)
    # 31: 18/14 = 1, 18 % 14 - 5 = -1.
    p.special(31).advance_pc(1).end()
    return {TEXT: at(15), TEXT + 1: at(15), TEXT + 18: at(14), TEXT + 19: at(13), TEXT + 20: no_line()}


@each_version("const_add_pc advances like special opcode 255")
def _const_add_pc(p):
    # (255 - 13) / 14 = 17
    p.set_address(TEXT).line(9).copy().op(LNS.const_add_pc).line(1).copy().op(LNS.const_add_pc).end()
    return {TEXT + 16: at(10), TEXT + 17: at(11), TEXT + 33: at(11), TEXT + 34: no_line()}


@each_version("fixed_advance_pc, a plain 16-bit number")
def _fixed_advance_pc(p):
    p.set_address(TEXT).line(9).copy().fixed_advance_pc(0x80).line(1).copy().fixed_advance_pc(0x10).end()
    return {TEXT + 0x7F: at(10), TEXT + 0x80: at(11), TEXT + 0x90: no_line()}


@case("fixed_advance_pc is unsigned", encodings=ENCODINGS)
def _fixed_advance_pc_large(e):
    p = e.line(4).set_address(0x10000).line(9).copy().fixed_advance_pc(0x8001).line(1).copy()
    p.fixed_advance_pc(0xFFFF).end()
    dw = e.dwarf(4)
    stmt_list = dw.raw("debug_line", p.build())
    dw.unit(root(e, dw, function(0x10000, 0x20000), stmt_list=stmt_list, low=0x10000, size=0x20000))
    elf = e.elf(dw)
    elf.text(0x10000, 0x20000, ".text.large")
    return Built(elf, {0x18000: at(10), 0x18001: at(11), 0x27FFF: at(11), 0x28000: no_line()})


@each_version("set_column")
def _set_column(p):
    p.set_address(TEXT).op(LNS.set_column, 7).copy().advance_pc(4).op(LNS.set_column, 50000).copy()
    p.advance_pc(4).op(LNS.set_column, 0).copy().advance_pc(4).end()
    return {TEXT: at(1, column=7), TEXT + 4: at(1, column=50000), TEXT + 8: at(1, column=None)}


# Statements, blocks, prologues and instruction sets do not show in answers.
@each_version("negate_stmt, set_basic_block, set_prologue_end, set_epilogue_begin, set_isa")
def _flags(p):
    p.set_address(TEXT).line(9).op(LNS.negate_stmt).copy().advance_pc(4).op(LNS.set_basic_block)
    p.op(LNS.set_prologue_end).line(1).copy().advance_pc(4).op(LNS.set_epilogue_begin)
    p.op(LNS.set_isa, 300).line(1).copy().advance_pc(4).end()
    return {TEXT: at(10), TEXT + 4: at(11), TEXT + 8: at(12), TEXT + 12: no_line()}


@each_version("a discriminator holds for one row")
def _discriminator(p):
    p.set_address(TEXT).line(9).discriminator(300).copy().advance_pc(4).line(1).copy().advance_pc(4)
    p.discriminator(1 << 20).special(18).advance_pc(4).special(18).advance_pc(4).end()
    return {TEXT: [("f", "/d/a.c", 10, None, 300)], TEXT + 4: [("f", "/d/a.c", 11, None, None)],
            TEXT + 8: [("f", "/d/a.c", 11, None, 1 << 20)], TEXT + 12: [("f", "/d/a.c", 11, None, None)]}


# Extended opcodes that vendors add say how long they are.
@each_version("an extended opcode that is not known")
def _unknown_extended(p):
    p.set_address(TEXT).line(9).ext(0x80, b"\1\2\3\4\5").copy().advance_pc(4)
    p.ext(0xFF).ext(0x99, b"x" * 300).line(1).copy().advance_pc(4).end()
    return {TEXT: at(10), TEXT + 4: at(11), TEXT + 8: no_line()}


# opcode_base and standard_opcode_lengths -----------------------------------------------------------

for _base in (10, 12, 13, 14, 24, 200):
    @case(f"opcode_base {_base}", encodings=ENCODINGS[:2], base=_base)
    def _opcode_base(e, base):
        # The opcodes behind those of the standard have operands here: 2 and 0, in turns.
        lengths = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1] + [2, 0] * 100
        p = e.line(4, opcode_base=base, lengths=lengths)
        p.set_address(TEXT).line(9).copy()
        for op in range(13, base):
            p.op(op, *([1 << 20, 3] if op % 2 else []))
        p.special(base + 14 * 2 + 6)  # address +2, line +1
        p.advance_pc(2).end()
        return program(e, p, {TEXT: at(10), TEXT + 1: at(10), TEXT + 2: at(11), TEXT + 4: no_line()})


# With opcode_base 1 there is no standard opcode at all: 1 is special.
@case("opcode_base 1", encodings=ENCODINGS)
def _opcode_base_1(e):
    p = e.line(4, opcode_base=1, line_base=0, line_range=10)
    # 15: address +1, line +4; 31: +3, +0.
    p.set_address(TEXT).special(1 + 9).special(1 + 14).special(1 + 30).end()
    return program(e, p, {TEXT: at(10), TEXT + 1: at(14), TEXT + 3: at(14), TEXT + 4: no_line()})


@case("opcode_base 4: opcodes above 3 are special", encodings=ENCODINGS)
def _opcode_base_4(e):
    p = e.line(4, opcode_base=4, line_base=-1, line_range=4)
    # 4 + 4 * 5 + 3: address +5, line +2
    p.set_address(TEXT).line(9).copy().special(4 + 4 * 5 + 3).advance_pc(1).end()
    return program(e, p, {TEXT + 4: at(10), TEXT + 5: at(12), TEXT + 6: no_line()})


# DWARF 5, 6.2.4: tools skip opcodes they do not know by the lengths in the header.
@case("standard opcodes whose lengths differ from the standard's", encodings=ENCODINGS,
      llvm="takes known opcodes for what the standard says")
def _odd_lengths(e):
    p = e.line(4, opcode_base=13, lengths=[0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 3])
    p.set_address(TEXT).line(9).copy().op(LNS.set_isa, 1, 2, 3).advance_pc(4).line(1).copy()
    p.advance_pc(4).end()
    return program(e, p, {TEXT: at(10), TEXT + 4: at(11), TEXT + 8: no_line()})


# min_inst_length, max_ops, line_base, line_range ---------------------------------------------------

for _length in (1, 2, 4, 16):
    @case(f"instructions of {_length} bytes", encodings=ENCODINGS, length=_length)
    def _min_inst(e, length):
        p = e.line(4, min_inst=length)
        # advance_pc, special opcodes and const_add_pc count instructions, fixed_advance_pc bytes.
        p.set_address(TEXT).line(9).copy().advance_pc(2).line(1).copy()
        p.special(18 + 14).fixed_advance_pc(3).line(1).copy().advance_pc(1).end()
        two, three = TEXT + 2 * length, TEXT + 3 * length
        return program(e, p, {two - 1: at(10), two: at(11), three + 2: at(11), three + 3: at(12),
                              three + 3 + length: no_line()})


@case("const_add_pc with instructions of 4 bytes", encodings=ENCODINGS)
def _const_add_4(e):
    p = e.line(4, min_inst=4, line_range=100, line_base=0)
    # (255 - 13) / 100 = 2 instructions
    p.set_address(TEXT).line(9).copy().op(LNS.const_add_pc).line(1).copy().advance_pc(1).end()
    return program(e, p, {TEXT + 7: at(10), TEXT + 8: at(11), TEXT + 12: no_line()})


# DWARF 4, 6.2.5.1: of operations, the address counts whole instructions; the rest is op_index.
@case("three operations in an instruction of 16 bytes", encodings=ENCODINGS)
def _vliw(e):
    p = e.line(4, min_inst=16, max_ops=3)
    p.set_address(TEXT).line(9).copy()  # operation 0
    p.advance_pc(2).line(1).copy()  # operation 2 of the same instruction: the row behind it wins
    p.advance_pc(2).line(1).copy()  # 2 + 2 = 4: instruction 1, operation 1
    p.special(18 + 14 * 5)  # 1 + 5 = 6: instruction 3, operation 0, the line stays
    p.op(LNS.const_add_pc)  # 17 operations: instruction 3 + 5, operation 2
    p.line(1).copy().fixed_advance_pc(16)  # 9, operation 0
    p.end()
    return program(e, p, {TEXT: at(11), TEXT + 15: at(11), TEXT + 16: at(12), TEXT + 48: at(12),
                          TEXT + 16 * 8 - 1: at(12), TEXT + 16 * 8: at(13), TEXT + 16 * 9: no_line()})


@case("set_address begins at operation 0", encodings=ENCODINGS)
def _vliw_set_address(e):
    p = e.line(4, min_inst=4, max_ops=4)
    p.set_address(TEXT).line(9).copy().advance_pc(3).set_address(TEXT + 0x10).line(1).copy()
    p.advance_pc(3).line(1).copy().advance_pc(1).line(1).copy().advance_pc(4).end()
    return program(e, p, {TEXT: at(10), TEXT + 0x10: at(12), TEXT + 0x14: at(13), TEXT + 0x18: no_line()})


@case("line_base 127 and line_range 1", encodings=ENCODINGS)
def _line_range_1(e):
    p = e.line(4, line_base=127, line_range=1)
    # Each special opcode adds 127 lines; its number less 13 is the advance. 255: 242.
    p.set_address(TEXT).special(13).special(13 + 4).special(255).advance_pc(1).end()
    return program(e, p, {TEXT: at(128), TEXT + 4: at(255), TEXT + 245: at(255), TEXT + 246: at(382),
                          TEXT + 247: no_line()})


@case("line_base -128 and line_range 255", encodings=ENCODINGS)
def _line_range_255(e):
    p = e.line(4, line_base=-128, line_range=255)
    # No special opcode advances the address; 255 adds 242 - 128 = 114 lines, 13 takes 128 away.
    p.set_address(TEXT).line(127).special(255).advance_pc(4).special(13).op(LNS.const_add_pc)
    p.advance_pc(4).end()
    return program(e, p, {TEXT: at(242), TEXT + 4: at(114), TEXT + 8: no_line()})


@case("line_range 0 is no line table", llvm=None, note=".debug_line")
def _line_range_0(e=PLAIN):
    return program(e, e.line(4, line_range=0).sequence(0x1100, (TEXT, 10)), {TEXT: no_line()})


# Files and directories -----------------------------------------------------------------------------

for _version in (2, 3, 4):
    # Files and directories count from 1; directory 0 is the unit's.
    @case(f"files in directories, line table {_version}", encodings=ENCODINGS, version=_version)
    def _old_files(e, version):
        p = e.line(version, dirs=["sub", "/abs"],
                   files=[("own.c", 0), ("rel.h", 1), ("abs.h", 2), ("/top.h", 1)])
        p.sequence(TEXT + 0x40, (TEXT, 1, 1), (TEXT + 8, 2, 2), (TEXT + 16, 3, 3), (TEXT + 24, 4, 4))
        return program(e, p, {TEXT: at(1, "/d/own.c"), TEXT + 8: at(2, "/d/sub/rel.h"),
                              TEXT + 16: at(3, "/abs/abs.h"), TEXT + 24: at(4, "/top.h")},
                       version=version)

    @case(f"define_file, line table {_version}", encodings=ENCODINGS, version=_version)
    def _define_file(e, version):
        p = e.line(version, dirs=["sub"], files=[("a.c", 0)])
        p.set_address(TEXT).line(9).copy().advance_pc(4).define_file("late.h", 1).op(LNS.set_file, 2)
        p.copy().advance_pc(4).define_file("later.h", 0).op(LNS.set_file, 3).copy().advance_pc(4).end()
        return program(e, p, {TEXT: at(10), TEXT + 4: at(10, "/d/sub/late.h"),
                              TEXT + 8: at(10, "/d/later.h")}, version=version)


# DWARF 5, 6.2.4: everything counts from 0; directory 0 is the compilation directory.
@case("files in directories, line table 5", encodings=ENCODINGS)
def _new_files(e):
    p = e.line(5, dirs=["/d", "sub", "/abs"],
               files=[("own.c", 0), ("rel.h", 1), ("abs.h", 2), ("/top.h", 1)])
    p.op(LNS.set_file, 0)
    p.set_address(TEXT).copy().advance_pc(8).op(LNS.set_file, 1).copy().advance_pc(8)
    p.op(LNS.set_file, 2).copy().advance_pc(8).op(LNS.set_file, 3).copy().advance_pc(8).end()
    return program(e, p, {TEXT: at(1, "/d/own.c"), TEXT + 8: at(1, "/d/sub/rel.h"),
                          TEXT + 16: at(1, "/abs/abs.h"), TEXT + 24: at(1, "/top.h")}, version=5)


# Before version 5 numbering starts at 1: file 0 does not exist.
@case("file 0 in a line table 4", llvm="serves no line without its file")
def _file_0(e=PLAIN):
    p = e.line(4).set_address(TEXT).op(LNS.set_file, 0).line(9).copy().advance_pc(8).end()
    return program(e, p, {TEXT: [("f", None, 10)]})


@case("a file that is not in the table", llvm=None)
def _file_behind(e=PLAIN):
    p = e.line(4).set_address(TEXT).op(LNS.set_file, 1 << 31).line(9).copy().advance_pc(8).end()
    return program(e, p, {TEXT: [("f", None, 10)]})


@case("the first row's file register is 1", encodings=ENCODINGS)
def _file_register(e):
    p = e.line(5, files=[("zero.c", 0), ("one.c", 0)]).set_address(TEXT).copy().advance_pc(8).end()
    return program(e, p, {TEXT: at(1, "/d/one.c")}, version=5)


STRING_FORMS = {"string": FORM.string, "line_strp": FORM.line_strp, "strp": FORM.strp}

for _form in STRING_FORMS:
    for _index in ("data1", "data2", "udata"):
        @case(f"file names as {_form}, directories as {_index}", encodings=ENCODINGS,
              form=STRING_FORMS[_form], index=getattr(FORM, _index))
        def _content_forms(e, form, index):
            dw = e.dwarf(5)
            p = e.line(5, dwarf=dw, dirs=["/d", "/inc"], files=[("a.c", 0), ("b.h", 1)],
                       dir_format=[(LNCT.path, form)],
                       file_format=[(LNCT.path, form), (LNCT.directory_index, index)])
            p.sequence(TEXT + 0x40, (TEXT, 5))
            return program(e, p, {TEXT: at(5, "/inc/b.h")}, version=5, dwarf=dw)


# The unit's string offsets serve its line table, too.
@case("file names as strx1", encodings=ENCODINGS)
def _names_strx(e):
    dw = e.dwarf(5)
    base = dw.str_offsets("wrong", "/inc", "b.h")
    p = e.line(5, dwarf=dw, dirs=[(1,), (1,)], files=[(0, 0), (2, 1)], dir_format=[(LNCT.path, FORM.strx1)],
               file_format=[(LNCT.path, FORM.strx1), (LNCT.directory_index, FORM.udata)])
    p.sequence(TEXT + 0x40, (TEXT, 5))
    return program(e, p, {TEXT: at(5, "/inc/b.h")}, version=5, dwarf=dw,
                   attrs=[(AT.str_offsets_base, FORM.sec_offset, base)])


# DWARF 5, 6.2.4.1: what is in an entry, and in which order, the header says.
@case("MD5, time, size, source and vendors' content", encodings=ENCODINGS)
def _content(e):
    p = e.line(5, dirs=[("/d", 7)], dir_format=[(LNCT.path, FORM.string), (LNCT.timestamp, FORM.udata)],
               file_format=[(LNCT.MD5, FORM.data16), (LNCT.directory_index, FORM.udata),
                            (LNCT.timestamp, FORM.data4), (LNCT.size, FORM.data8),
                            (LNCT.path, FORM.string), (LNCT.LLVM_source, FORM.line_strp),
                            (0x3FFF, FORM.block1), (LNCT.timestamp, FORM.block)],
               files=[(1 << 127, 0, 1, 2, "zero.c", 0, b"abc", b"1234"),
                      ((1 << 128) - 1, 0, 5, 6, "one.c", 0, b"", b"x" * 130)])
    return program(e, p.sequence(TEXT + 0x40, (TEXT, 5)), {TEXT: at(5, "/d/one.c")}, version=5)


@case("entries without a directory are in directory 0", encodings=ENCODINGS)
def _no_directory(e):
    p = e.line(5, file_format=[(LNCT.path, FORM.string)], files=[("zero.c",), ("one.c",)])
    return program(e, p.sequence(TEXT + 0x40, (TEXT, 5)), {TEXT: at(5, "/d/one.c")}, version=5)


# Directory 0 of version 5 that is relative is the compilation directory all the same.
@case("a relative directory under a relative compilation directory")
def _relative(e=PLAIN):
    p = e.line(5, dirs=["build", "sub"], files=[("a.c", 0), ("b.h", 1)])
    dw = e.dwarf(5)
    stmt_list = dw.raw("debug_line", p.op(LNS.set_file, 1).sequence(TEXT + 8, (TEXT, 5)).build())
    dw.unit(die(TAG.compile_unit, (AT.comp_dir, FORM.string, "build"), (AT.low_pc, FORM.addr, TEXT),
                (AT.high_pc, FORM.data4, 8), (AT.stmt_list, FORM.sec_offset, stmt_list),
                children=[function(TEXT, 8)]))
    return Built(e.elf(dw), {TEXT: at(5, "build/sub/b.h")})


@case("more than 65,535 files", llvm="keeps the numbers of files in 16 bits")
def _many_files(e=PLAIN):
    p = e.line(4, dirs=["sub"], files=[(f"f{i}.h", 1) for i in range(1, 70001)])
    p.sequence(TEXT + 0x40, (TEXT, 5, 70000), (TEXT + 8, 6, 65535), (TEXT + 16, 7, 65536),
               (TEXT + 24, 8, 4464))  # 4464 is 70000 in 16 bits
    return program(e, p, {TEXT: at(5, "/d/sub/f70000.h"), TEXT + 8: at(6, "/d/sub/f65535.h"),
                          TEXT + 16: at(7, "/d/sub/f65536.h"), TEXT + 24: at(8, "/d/sub/f4464.h")})


@case("a function with code of 70,000 files", llvm=None)
def _many_used_files(e=PLAIN):
    count = 70000
    p = e.line(4, files=[(f"f{i}.h", 0) for i in range(1, count + 1)])
    p.set_address(0x10000)
    for i in range(1, count + 1):
        p.op(LNS.set_file, i).copy().advance_pc(1)
    dw = e.dwarf(4)
    stmt_list = dw.raw("debug_line", p.end().build())
    dw.unit(root(e, dw, function(0x10000, count), stmt_list=stmt_list, low=0x10000, size=count))
    elf = e.elf(dw)
    elf.text(0x10000, count, ".text.large")
    return Built(elf, {0x10000 + i: at(1, f"/d/f{i + 1}.h") for i in (0, 65534, 65535, 65536, 69999)})


# Rows and sequences --------------------------------------------------------------------------------

@each_version("of several rows at one address the last counts")
def _one_address(p):
    p.set_address(TEXT).line(9).copy().line(1).copy().line(1).copy().advance_pc(4).line(1).copy()
    p.line(-10).copy().advance_pc(4).end()
    return {TEXT: at(12), TEXT + 3: at(12), TEXT + 4: at(3), TEXT + 8: no_line()}


# Line 0 is code that belongs to no line (DWARF 5, 6.2.2).
@each_version("line 0")
def _line_0(p):
    p.set_address(TEXT).line(9).copy().advance_pc(4).line(-10).copy().advance_pc(4).line(12).copy()
    p.advance_pc(4).end()
    return {TEXT: at(10), TEXT + 4: [("f", "/d/a.c", None)], TEXT + 8: at(12)}


@case("lines up to 2^32 - 1")
def _large_lines(e=PLAIN):
    p = e.line(4).set_address(TEXT).line(0x80000000).copy().advance_pc(4).line(0x7FFFFFFE).copy()
    p.advance_pc(4).end()
    return program(e, p, {TEXT: at(0x80000001), TEXT + 4: at(0xFFFFFFFF)})


@case("a column and a discriminator that do not fit 16 bits", llvm="keeps columns in 16 bits")
def _wide(e=PLAIN):
    p = e.line(4).set_address(TEXT).op(LNS.set_column, 65535).copy().advance_pc(4)
    p.op(LNS.set_column, 65536).copy().advance_pc(4).discriminator(1 << 20).op(LNS.set_column, 3).copy()
    p.advance_pc(4).end()
    return program(e, p, {TEXT: at(1, column=65535), TEXT + 4: at(1, column=65536),
                          TEXT + 8: at(1, column=3)})


@each_version("sequences out of order")
def _out_of_order(p):
    for low, line in ((0x80, 8), (0, 1), (0x40, 4)):
        p.sequence(TEXT + low + 0x10, (TEXT + low, line))
    return {TEXT: at(1), TEXT + 0x10: no_line(), TEXT + 0x40: at(4), TEXT + 0x80: at(8),
            TEXT + 0x8F: at(8), TEXT + 0x90: no_line()}


@case("sequences that touch: the second holds from its start", encodings=ENCODINGS)
def _touching(e):
    p = e.line(4).sequence(TEXT + 0x10, (TEXT, 1)).sequence(TEXT + 0x20, (TEXT + 0x10, 2))
    return program(e, p, {TEXT + 0xF: at(1), TEXT + 0x10: at(2)})


# Sequences that overlap: linkers that fold equal functions leave the sequence of each of them. f covers
# 0x1000 to 0x1100; sequences are (start, end, line) in the order of the table.
OVERLAPPING = {
    "of one range, the first holds": (
        [(0, 0x100, 10), (0, 0x100, 20)], {0: 10, 0x40: 10, 0xFF: 10}, True),
    "the one that holds the whole function, behind a short one": (
        [(0x40, 0x60, 20), (0, 0x100, 10)], {0: 10, 0x3F: 10, 0x40: 10, 0x5F: 10, 0x60: 10, 0xFF: 10},
        "it looks into one sequence only, that which ends first"),
    "the one that holds the whole function, before a short one": (
        [(0, 0x100, 10), (0x40, 0x60, 20)], {0: 10, 0x40: 10, 0x5F: 10, 0x60: 10, 0xFF: 10},
        "it looks into one sequence only, that which ends first"),
    "parts of a function, in order": (
        [(0, 0x80, 10), (0x60, 0x100, 20)], {0: 10, 0x60: 10, 0x7F: 10, 0x80: 20, 0xFF: 20}, True),
    "parts of a function, out of order": (
        [(0x60, 0x100, 20), (0, 0x80, 10)], {0: 10, 0x5F: 10, 0x60: 20, 0x7F: 20, 0x80: 20, 0xFF: 20},
        "it takes the sequence that ends first"),
    "a part within a part": (
        [(0x20, 0x30, 20), (0x10, 0x80, 10)],
        {0: None, 0x10: 10, 0x1F: 10, 0x20: 20, 0x2F: 20, 0x30: 10, 0x7F: 10, 0x80: None},
        "it looks into one sequence only, that which ends first"),
}
for _name, (_sequences, _want, _llvm) in OVERLAPPING.items():
    @case(f"overlapping sequences: {_name}", encodings=ENCODINGS[:2], sequences=_sequences, want=_want, llvm=_llvm)
    def _overlapping(e, sequences, want):
        p = e.line(4)
        for low, high, line in sequences:
            p.sequence(TEXT + high, (TEXT + low, line))
        return program(e, p, {TEXT + a: at(line) if line else no_line() for a, line in want.items()})


# Some linkers leave what they have dropped at address 0, where code may be.
@case("overlapping sequences: at address 0, the one as long as the function", encodings=ENCODINGS[:2])
def _overlapping_at_0(e):
    dw = e.dwarf(4)
    p = e.line(4).sequence(0x80, (0, 99)).sequence(0x40, (0, 10)).sequence(0x60, (0, 98))
    stmt_list = dw.raw("debug_line", p.build())
    dw.unit(root(e, dw, function(0, 0x40), stmt_list=stmt_list, low=0, size=0x40))
    elf = e.elf(dw)
    elf.text(0, 0x100, ".text.low")
    return Built(elf, {0: at(10), 0x3F: at(10)})


# end_sequence alone describes no byte of code.
@each_version("a sequence of its end only")
def _empty_sequence(p):
    p.set_address(TEXT + 8).end().set_address(TEXT + 4).copy().end()
    p.sequence(TEXT + 0x10, (TEXT, 5))
    return {TEXT: at(5), TEXT + 8: at(5)}


@case("a sequence of code that was dropped", encodings=ENCODINGS)
def _dead_sequences(e):
    p = e.line(4)
    for dead in (0, 1, -1, -2):
        dead &= (1 << e.bits) - 1
        p.set_address(dead).line(98).copy().advance_pc(TEXT * 2).end()
    return program(e, p.sequence(TEXT + 0x10, (TEXT, 5)), {TEXT: at(5)})


# The registers of the state machine begin anew with each sequence.
@each_version("registers after a sequence")
def _registers(p):
    p.set_address(TEXT).line(50).op(LNS.set_column, 9).copy().advance_pc(4).end()
    p.set_address(TEXT + 4).copy().advance_pc(4).end()
    return {TEXT: at(51, column=9), TEXT + 4: at(1, column=None)}


@case("rows that go back in one sequence", llvm=None)
def _unsorted(e=PLAIN):
    p = e.line(4).set_address(TEXT + 0x20).line(9).copy().set_address(TEXT).line(1).copy()
    p.set_address(TEXT + 0x10).line(1).copy().set_address(TEXT + 0x18).end()
    # DWARF forbids it: each row holds up to the next one, where that comes later.
    return program(e, p, {TEXT: at(11), TEXT + 0xF: at(11), TEXT + 0x10: at(12), TEXT + 0x18: no_line()})


@case("set_address of fewer and more bytes than the unit's addresses", llvm=None)
def _address_sizes(e=PLAIN):
    p = e.line(4)
    p.ext(LNE.set_address, Out().u32(TEXT).bytes).line(9).copy()
    p.ext(LNE.set_address, Out().u16(TEXT + 8).bytes).line(1).copy().advance_pc(8).end()
    return program(e, p, {TEXT: at(10), TEXT + 8: at(11)})


# LEB128 may be padded (DWARF 5, 7.6).
@each_version("padded LEB128 operands")
def _padded(p):
    p.set_address(TEXT).ops.u8(LNS.advance_pc).raw(uleb(0x10, 6))
    p.ops.u8(LNS.advance_line).raw(b"\x89\x80\x80\x00")
    p.copy().advance_pc(4).end()
    return {TEXT: no_line(), TEXT + 0x10: at(10), TEXT + 0x14: no_line()}


# Damage --------------------------------------------------------------------------------------------

@case("a line table of version 6", llvm=None, note=".debug_line")
def _version_6(e=PLAIN):
    data = bytearray(e.line(5).sequence(0x1100, (TEXT, 10)).build())
    data[4] = 6
    return program(e, data, {TEXT: no_line()}, version=5)


@case("a program that is cut off: the rows before count", llvm=None, note=".debug_line")
def _cut(e=PLAIN):
    p = e.line(4).set_address(TEXT).line(9).copy().advance_pc(8).line(1).copy()
    p.ops.u8(LNS.advance_pc).raw(b"\x80\x80")
    return program(e, p, {TEXT: at(10), TEXT + 8: no_line()})


@case("a table whose length reaches behind the section", llvm=None, note=".debug_line")
def _too_long(e=PLAIN):
    data = bytearray(e.line(4).sequence(0x1100, (TEXT, 10)).build())
    data[0] += 1
    return program(e, data, {TEXT: no_line()})


@case("an offset of the line table behind the section", llvm=None, note=".debug_line")
def _offset_behind(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(), stmt_list=0x12345))
    return Built(e.elf(dw), {TEXT: no_line()})


@case("no line table at all", encodings=ENCODINGS)
def _no_table(e):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(), stmt_list=None))
    return Built(e.elf(dw), {TEXT: no_line()})


@case("a table of 32-bit DWARF for a unit of 64-bit DWARF, version 3 for 5")
def _other_encoding(e=PLAIN):
    dw = e.dwarf(5)
    stmt_list = dw.raw("debug_line", e.line(3, dirs=["sub"], files=[("a.c", 1)])
                       .sequence(0x1100, (TEXT, 10)).build())
    dw.unit(root(e, dw, function(), stmt_list=stmt_list), offset_size=8)
    dw.offset_size = 8
    return Built(e.elf(dw), {TEXT: at(10, "/d/sub/a.c")})


# Inlined calls and rows are laid over each other, wherever either ends.
@case("rows that end inside an inlined call, and calls inside a row", encodings=ENCODINGS)
def _across(e):
    dw = e.dwarf(4)
    p = e.line(4).sequence(TEXT + 0x40, (TEXT, 1), (TEXT + 8, 2), (TEXT + 0x18, 3))
    stmt_list = dw.raw("debug_line", p.build())
    inner = die(TAG.subprogram, (AT.name, FORM.string, "inner"), label="inner")
    calls = [die(TAG.inlined_subroutine, (AT.abstract_origin, FORM.ref4, "inner"),
                 (AT.low_pc, FORM.addr, TEXT + low), (AT.high_pc, FORM.data4, 8),
                 (AT.call_file, FORM.data1, 1), (AT.call_line, FORM.data1, line))
             for low, line in ((4, 44), (0x20, 55))]
    dw.unit(root(e, dw, inner, function(children=calls), stmt_list=stmt_list))
    return Built(e.elf(dw), {
        TEXT: at(1), TEXT + 4: [("inner", "/d/a.c", 1), ("f", "/d/a.c", 44)],
        TEXT + 8: [("inner", "/d/a.c", 2), ("f", "/d/a.c", 44)], TEXT + 0xC: at(2),
        TEXT + 0x18: at(3), TEXT + 0x20: [("inner", "/d/a.c", 3), ("f", "/d/a.c", 55)],
        TEXT + 0x28: at(3)})


@case("a call's file that the program defines", encodings=ENCODINGS[:2])
def _defined_call_file(e):
    dw = e.dwarf(4)
    p = e.line(4).define_file("late.h", 0).sequence(TEXT + 0x40, (TEXT, 1))
    stmt_list = dw.raw("debug_line", p.build())
    call = die(TAG.inlined_subroutine, (AT.abstract_origin, FORM.ref4, "inner"),
               (AT.low_pc, FORM.addr, TEXT), (AT.high_pc, FORM.data4, 8),
               (AT.call_file, FORM.data1, 2), (AT.call_line, FORM.data1, 7))
    dw.unit(root(e, dw, die(TAG.subprogram, (AT.name, FORM.string, "inner"), label="inner"),
                 function(children=[call]), stmt_list=stmt_list))
    return Built(e.elf(dw), {TEXT: [("inner", "/d/a.c", 1), ("f", "/d/late.h", 7)]})
