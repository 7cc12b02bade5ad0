# SPDX-License-Identifier: MIT
"""Units, abbreviations and trees of entries (DWARF 5, 3.1, 7.5.1 to 7.5.3)."""
from case import ENCODINGS, TEXT, Built, case, function, lines, one_function, root
from dwarfasm import AT, FORM, LANG, RLE, TAG, UT, die

PLAIN = ENCODINGS[0]


def named(name, **options):
    return die(TAG.subprogram, (AT.name, FORM.string, name), (AT.inline, FORM.data1, 1), **options)


def inlined(origin, low, size, *more, form=FORM.ref4, line=77, children=None):
    return die(TAG.inlined_subroutine, (AT.abstract_origin, form, origin), (AT.low_pc, FORM.addr, low),
               (AT.high_pc, FORM.data4, size), (AT.call_file, FORM.data1, 1),
               (AT.call_line, FORM.data2, line), *more, children=children)


# Kinds of units ------------------------------------------------------------------------------------

@case("a type unit before the unit, DWARF 5", encodings=ENCODINGS)
def _type_unit(e):
    dw = e.dwarf(5)
    dw.unit(die(TAG.type_unit, children=[die(TAG.base_type, label="type")]), type=UT.type, id=7,
            type_offset="type")
    dw.unit(root(e, dw, function()))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


@case("type units in .debug_types, DWARF 4", encodings=ENCODINGS)
def _debug_types(e):
    dw = e.dwarf(4)
    dw.unit(die(TAG.type_unit, children=[die(TAG.base_type, label="type")]), id=7, type_offset="type",
            section="debug_types")
    dw.unit(root(e, dw, function()))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


@case("a partial unit holds the abstract function", encodings=ENCODINGS)
def _partial_unit(e):
    dw = e.dwarf(5)
    dw.unit(die(TAG.partial_unit, (AT.stmt_list, FORM.sec_offset, 0), children=[
        named("inner", label="inner")], label="partial"), type=UT.partial)
    dw.unit(root(e, dw, die(TAG.imported_unit, (AT.import_, FORM.ref_addr, "partial")),
                 function(children=[inlined("inner", TEXT, 0x10, form=FORM.ref_addr)])))
    return Built(e.elf(dw), {TEXT: [("inner", "/d/a.c", 10), ("f", "/d/a.c", 77)]})


# A header with a version that does not exist says how long it is: the next unit can be found.
@case("a unit of version 6 between others", note=".debug_info", llvm=None)
def _unknown_version(e=PLAIN):
    dw = e.dwarf(4)
    off = dw.unit(root(e, dw, function(TEXT, 0x10), size=0x10))
    dw.section("debug_info").patch(off + 4, 6, 2)
    dw.unit(root(e, dw, function(TEXT + 0x20, 0x10, name="g"), low=TEXT + 0x20, size=0x10))
    return Built(e.elf(dw), {TEXT: "no-symbols", TEXT + 0x20: [("g", "/d/a.c", 10)]})


@case("bytes behind the tree of a unit are passed over", encodings=ENCODINGS)
def _padding(e):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(TEXT, 0x10), size=0x10), padding=bytes(7))
    dw.unit(root(e, dw, function(TEXT + 0x10, 0x10, name="g"), low=TEXT + 0x10, size=0x10))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x10: [("g", "/d/a.c", 10)]})


@case("units of all versions and widths in one section")
def _mixed(e=PLAIN):
    dw = e.dwarf(4)
    want = {}
    for i, version in enumerate((2, 3, 4, 5)):
        for offset_size in (4, 8):
            low = TEXT + 0x20 * i + (0x10 if offset_size == 8 else 0)
            dw.version, dw.offset_size = version, offset_size
            high = (AT.high_pc, FORM.addr, low + 0x10)
            f = die(TAG.subprogram, (AT.name, FORM.strp, f"f{version}_{offset_size}"),
                    (AT.low_pc, FORM.addr, low), high)
            stmt_list = lines(e, dw, (low, version), end=low + 0x10, offset_size=offset_size)
            dw.unit(root(e, dw, f, low=low, size=0x10, stmt_list=stmt_list))
            want[low] = [(f"f{version}_{offset_size}", "/d/a.c", version)]
    return Built(e.elf(dw), want)


@case("a unit without addresses in its root", encodings=ENCODINGS,
      llvm="takes it for a unit without code")
def _no_root_ranges(e):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(), low=None))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


# Split units beside a .dwo have no addresses but in their skeleton.
@case("a unit whose root has ranges in pieces", encodings=ENCODINGS)
def _root_ranges(e):
    dw = e.dwarf(5)
    stmt_list = lines(e, dw)
    _, (off,) = dw.rnglists(dw.rnglist((RLE.start_length, TEXT + 0x80, 0x10),
                                       (RLE.start_length, TEXT, 0x10)))
    dw.unit(die(TAG.compile_unit, (AT.name, FORM.string, "a.c"), (AT.comp_dir, FORM.string, "/d"),
                (AT.low_pc, FORM.addr, 0), (AT.ranges, FORM.sec_offset, off),
                (AT.stmt_list, FORM.sec_offset, stmt_list),
                children=[function(TEXT, 0x10), function(TEXT + 0x80, 0x10, name="g")]))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x8F: [("g", "/d/a.c", 10)],
                             TEXT + 0x40: "no-symbols"})


@case("two units claim the same code: the one with a function there has it",
      llvm="looks at one unit for each address")
def _two_claim(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(TEXT + 0x80, 0x10, name="elsewhere"), stmt_list=None))
    dw.unit(root(e, dw, function()))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


# Names through origins and specifications ----------------------------------------------------------

@case("abstract_origin, then specification", encodings=ENCODINGS)
def _origin_specification(e):
    dw = e.dwarf(4)
    declaration = die(TAG.subprogram, (AT.name, FORM.string, "method"),
                      (AT.linkage_name, FORM.string, "_ZN1C6methodEv"),
                      (AT.declaration, FORM.flag_present, None), label="declaration")
    abstract = die(TAG.subprogram, (AT.specification, FORM.ref4, "declaration"),
                   (AT.inline, FORM.data1, 1), label="abstract")
    concrete = function(TEXT, 0x40, (AT.abstract_origin, FORM.ref4, "abstract"), name=None,
                        children=[inlined("abstract", TEXT + 0x10, 0x10)])
    dw.unit(root(e, dw, die(TAG.class_type, (AT.name, FORM.string, "C"), children=[declaration]),
                 abstract, concrete))
    return Built(e.elf(dw), {
        TEXT: [("_ZN1C6methodEv", "/d/a.c", 10)],
        TEXT + 0x10: [("_ZN1C6methodEv", "/d/a.c", 10), ("_ZN1C6methodEv", "/d/a.c", 77)]})


# The name stands in one entry, the linkage name in another: both count.
for _at in (AT.linkage_name, AT.MIPS_linkage_name):
    @case(f"linkage name {_at:#x} beside a specification", at=_at)
    def _linkage_beside(at, e=PLAIN):
        dw = e.dwarf(4)
        declaration = die(TAG.subprogram, (AT.name, FORM.string, "m"), label="declaration")
        dw.unit(root(e, dw, declaration,
                     function(TEXT, 0x40, (at, FORM.string, "_Z1mv"),
                              (AT.specification, FORM.ref4, "declaration"), name=None)))
        return Built(e.elf(dw), {TEXT: [("_Z1mv", "/d/a.c", 10)]})


@case("a specification in another unit, its origin in a third", encodings=ENCODINGS)
def _three_units(e):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, named("deep", label="deep"), low=None, stmt_list=None))
    dw.unit(root(e, dw, die(TAG.subprogram, (AT.specification, FORM.ref_addr, "deep"), label="middle"),
                 low=None, stmt_list=None))
    dw.unit(root(e, dw, function(TEXT, 0x40, (AT.abstract_origin, FORM.ref_addr, "middle"), name=None)))
    return Built(e.elf(dw), {TEXT: [("deep", "/d/a.c", 10)]})


def _chain(dw, e, length):
    links = [named("end", label="link0")]
    links += [die(TAG.subprogram, (AT.abstract_origin, FORM.ref4, f"link{i}"), label=f"link{i + 1}")
              for i in range(length)]
    dw.unit(root(e, dw, *links, function(TEXT, 0x40, (AT.abstract_origin, FORM.ref4, f"link{length}"),
                                         name=None)))
    return e.elf(dw)


@case("a chain of ten origins")
def _long_chain(e=PLAIN):
    return Built(_chain(e.dwarf(4), e, 9), {TEXT: [("end", "/d/a.c", 10)]})


@case("a chain of 1,000 origins is given up", llvm=None)
def _endless_chain(e=PLAIN):
    return Built(_chain(e.dwarf(4), e, 1000), {TEXT: [(None, "/d/a.c", 10)]})


@case("an origin that is its own origin ends", llvm=None)
def _self_origin(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(TEXT, 0x40, (AT.abstract_origin, FORM.ref4, "f"), name=None, label="f")))
    return Built(e.elf(dw), {TEXT: [(None, "/d/a.c", 10)]})


@case("two origins of each other end", llvm=None)
def _origin_cycle(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, die(TAG.subprogram, (AT.abstract_origin, FORM.ref4, "b"), label="a"),
                 die(TAG.subprogram, (AT.specification, FORM.ref4, "a"), label="b"),
                 function(TEXT, 0x40, (AT.abstract_origin, FORM.ref4, "a"), name=None)))
    return Built(e.elf(dw), {TEXT: [(None, "/d/a.c", 10)]})


# Where functions may stand -------------------------------------------------------------------------

SPACES = [("namespace", TAG.namespace, LANG.C_plus_plus), ("class", TAG.class_type, LANG.C_plus_plus),
          ("structure", TAG.structure_type, LANG.C_plus_plus),
          ("union", TAG.union_type, LANG.C_plus_plus), ("module", TAG.module, LANG.Fortran77),
          ("interface", TAG.interface_type, LANG.D)]

for _kind, _tag, _language in SPACES:
    @case(f"a function in a {_kind}", tag=_tag, language=_language)
    def _nested(tag, language, e=PLAIN):
        dw = e.dwarf(4)
        space = die(tag, (AT.name, FORM.string, "S"), children=[die(tag, children=[function()])])
        dw.unit(root(e, dw, space, function(TEXT + 0x40, 0x40, name="g"), language=language))
        return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x40: [("g", "/d/a.c", 10)]})

# GNU C nests functions; what is inlined in the inner one is not part of the outer one.
for _tag in (None, TAG.lexical_block, TAG.try_block, TAG.catch_block, TAG.with_stmt):
    @case(f"a function in a function{'' if _tag is None else f', in block {_tag:#x}'}, language C",
          tag=_tag)
    def _in_function(tag, e=PLAIN):
        dw = e.dwarf(4)
        nested = function(TEXT + 0x40, 0x20, name="nested",
                          children=[inlined("inner", TEXT + 0x50, 0x10)])
        within = [nested] if tag is None else [die(tag, children=[nested])]
        dw.unit(root(e, dw, named("inner", label="inner"), function(children=within), language=LANG.C99))
        return Built(e.elf(dw), {
            TEXT: [("f", "/d/a.c", 10)], TEXT + 0x40: [("nested", "/d/a.c", 10)],
            TEXT + 0x50: [("inner", "/d/a.c", 10), ("nested", "/d/a.c", 77)]})

for _tag in (TAG.lexical_block, TAG.try_block, TAG.catch_block, TAG.with_stmt):
    @case(f"an inlined call in block {_tag:#x}", tag=_tag)
    def _in_block(tag, e=PLAIN):
        dw = e.dwarf(4)
        block = die(tag, (AT.low_pc, FORM.addr, TEXT + 0x10), (AT.high_pc, FORM.data4, 0x10), children=[
            die(tag, children=[inlined("inner", TEXT + 0x18, 8)])])
        dw.unit(root(e, dw, named("inner", label="inner"), function(children=[block])))
        return Built(e.elf(dw), {TEXT + 0x17: [("f", "/d/a.c", 10)],
                                 TEXT + 0x18: [("inner", "/d/a.c", 10), ("f", "/d/a.c", 77)]})


@case("three calls inlined into each other, and one beside them", encodings=ENCODINGS)
def _inline_tree(e):
    dw = e.dwarf(4)
    third = inlined("c", TEXT + 0x18, 4, line=3)
    second = inlined("b", TEXT + 0x14, 0x10, line=2, children=[third])
    first = inlined("a", TEXT + 0x10, 0x18, line=1, children=[second])
    dw.unit(root(e, dw, *(named(n, label=n) for n in "abc"),
                 function(children=[first, inlined("c", TEXT + 0x28, 8, line=4)])))
    here = ("/d/a.c", 10)
    return Built(e.elf(dw), {
        TEXT + 0x0F: [("f", *here)], TEXT + 0x10: [("a", *here), ("f", "/d/a.c", 1)],
        TEXT + 0x14: [("b", *here), ("a", "/d/a.c", 2), ("f", "/d/a.c", 1)],
        TEXT + 0x18: [("c", *here), ("b", "/d/a.c", 3), ("a", "/d/a.c", 2), ("f", "/d/a.c", 1)],
        TEXT + 0x1C: [("b", *here), ("a", "/d/a.c", 2), ("f", "/d/a.c", 1)],
        TEXT + 0x24: [("a", *here), ("f", "/d/a.c", 1)],
        TEXT + 0x28: [("c", *here), ("f", "/d/a.c", 4)], TEXT + 0x30: [("f", *here)]})


@case("64 calls inlined into each other")
def _deep_inline(e=PLAIN):
    dw = e.dwarf(4)
    call = inlined("g0", TEXT, 4, line=1000)
    for i in range(1, 64):
        call = inlined(f"g{i}", TEXT, 4, line=1000 + i, children=[call])
    dw.unit(root(e, dw, *(named(f"g{i}", label=f"g{i}") for i in range(64)), function(children=[call])))
    frames = [("g0", "/d/a.c", 10)] + [(f"g{i}", "/d/a.c", 999 + i) for i in range(1, 64)]
    return Built(e.elf(dw), {TEXT: frames + [("f", "/d/a.c", 1063)]})


# The code of an inlined call and of its function need not be in one piece.
@case("an inlined call in pieces", encodings=ENCODINGS)
def _inline_pieces(e):
    dw = e.dwarf(4)
    off = dw.ranges((0x10, 0x14), (0x18, 0x1C))
    call = die(TAG.inlined_subroutine, (AT.abstract_origin, FORM.ref4, "inner"),
               (AT.ranges, FORM.sec_offset, off), (AT.call_file, FORM.data1, 1),
               (AT.call_line, FORM.data1, 77))
    dw.unit(root(e, dw, named("inner", label="inner"), function(children=[call])))
    inner, outer = ("inner", "/d/a.c", 10), ("f", "/d/a.c", 77)
    return Built(e.elf(dw), {TEXT + 0x0F: [("f", "/d/a.c", 10)], TEXT + 0x10: [inner, outer],
                             TEXT + 0x14: [("f", "/d/a.c", 10)], TEXT + 0x18: [inner, outer],
                             TEXT + 0x1C: [("f", "/d/a.c", 10)]})


@case("a function in pieces, with a call inlined into the second", encodings=ENCODINGS)
def _function_pieces(e):
    dw = e.dwarf(4)
    off = dw.ranges((0, 0x20), (0x80, 0xA0))
    f = die(TAG.subprogram, (AT.name, FORM.string, "f"), (AT.ranges, FORM.sec_offset, off),
            children=[inlined("inner", TEXT + 0x84, 4)])
    dw.unit(root(e, dw, named("inner", label="inner"), f, function(TEXT + 0x20, 0x60, name="between")))
    return Built(e.elf(dw), {
        TEXT: [("f", "/d/a.c", 10)], TEXT + 0x20: [("between", "/d/a.c", 10)],
        TEXT + 0x80: [("f", "/d/a.c", 10)],
        TEXT + 0x84: [("inner", "/d/a.c", 10), ("f", "/d/a.c", 77)],
        TEXT + 0x88: [("f", "/d/a.c", 10)], TEXT + 0xA0: [(None, "/d/a.c", 10)]})


@case("a function inside the range of another: the one that starts last")
def _overlapping(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(TEXT, 0x80), function(TEXT + 0x20, 0x20, name="g")))
    return Built(e.elf(dw), {TEXT + 0x1F: [("f", "/d/a.c", 10)], TEXT + 0x20: [("g", "/d/a.c", 10)],
                             TEXT + 0x3F: [("g", "/d/a.c", 10)], TEXT + 0x40: [("f", "/d/a.c", 10)]})


# A low_pc alone is a label, not code (DWARF 5, 2.17.1).
@case("an entry point has no code of its own", encodings=ENCODINGS)
def _entry_point(e):
    dw = e.dwarf(4)
    entry = die(TAG.entry_point, (AT.name, FORM.string, "entry"), (AT.low_pc, FORM.addr, TEXT + 0x10))
    dw.unit(root(e, dw, function(children=[entry])))
    return Built(e.elf(dw), {TEXT + 0x10: [("f", "/d/a.c", 10)]})


# Abbreviations -------------------------------------------------------------------------------------

def _abbreviated(e, **options):
    dw = e.dwarf(4)
    table = dw.share(**options)
    filler = [die(TAG.variable, (0x2300 + i, FORM.data1, i), (AT.name, FORM.string, "v"))
              for i in range(300)]
    dw.unit(root(e, dw, *filler, named("inner", label="inner"),
                 function(children=[inlined("inner", TEXT + 0x10, 0x10)])), abbrevs=table)
    dw.end(table)
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)],
                             TEXT + 0x10: [("inner", "/d/a.c", 10), ("f", "/d/a.c", 77)]})


for _name, _options in (("from 1 on", {}), ("in reverse order", {"reverse": True}),
                        ("from 100 on, across one byte", {"first": 100}),
                        ("from 16000 on, across two bytes", {"first": 16250}),
                        ("sparse", {"step": 97}), ("sparse, in reverse order", {"step": 97, "reverse": True}),
                        ("of four bytes", {"first": 1 << 22})):
    @case(f"303 abbreviation codes {_name}", options=_options)
    def _codes(options, e=PLAIN):
        return _abbreviated(e, **options)


@case("a table of abbreviations shared by two units", encodings=ENCODINGS)
def _shared_abbreviations(e):
    dw = e.dwarf(4)
    table = dw.share()
    dw.unit(root(e, dw, function(TEXT, 0x10), size=0x10), abbrevs=table)
    dw.unit(root(e, dw, function(TEXT + 0x10, 0x10, name="g"), low=TEXT + 0x10, size=0x10),
            abbrevs=table)
    dw.end(table)
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x10: [("g", "/d/a.c", 10)]})


@case("an abbreviation code stated twice, the same way")
def _duplicate_code(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function()))
    table = dw.section("debug_abbrev").bytes
    table[-1:] = bytes(table)  # behind the table stands a copy of it, with its end
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


@case("an entry with an abbreviation that is not there", llvm=None, note=".debug_info")
def _missing_code(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(TEXT, 0x10), die(TAG.variable), function(TEXT + 0x10, 0x10, name="g")))
    info = dw.section("debug_info").bytes
    info[info.index(3, info.index(b"f\0"))] = 99
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x10: [(None, "/d/a.c", 10)]})


@case("an abbreviation with 300 attributes")
def _many_attributes(e=PLAIN):
    many = [(0x2300 + i, FORM.data2, i) for i in range(300)]
    return one_function(e, e.dwarf(4), *many, (AT.name, FORM.string, "f"))


@case("an abbreviation of 200 attributes of variable size")
def _many_variable(e=PLAIN):
    many = [(0x2300 + i, FORM.udata, i << 7) for i in range(200)]
    return one_function(e, e.dwarf(4), *many, (AT.name, FORM.string, "f"))


@case("entries larger than 64 KB", llvm="counts the bytes of an entry in 16 bits")
def _large_entry(e=PLAIN):
    dw = e.dwarf(5)
    many = [(0x2300 + i, FORM.data16, i) for i in range(4200)]
    dw.unit(root(e, dw, die(TAG.variable, *many), function()))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})


# DW_AT_sibling (DWARF 5, 2.3): where it is wrong, the tree itself counts. -------------------------

SIBLINGS = {"right": "next", "of itself": "type", "backward": "root", "past the end": 0x7FFFFF00,
            "over the next function": "last", "into the middle of an entry": "middle"}

for _form in ("ref1", "ref2", "ref4", "ref8", "ref_udata"):
    for _kind, _target in SIBLINGS.items():
        if not isinstance(_target, int) or _form in ("ref4", "ref8"):
            @case(f"a sibling {_kind}, as {_form}, language C", form=_form, target=_target)
            def _sibling(form, target, e=PLAIN):
                dw = e.dwarf(4)
                type = die(TAG.structure_type, (AT.sibling, getattr(FORM, form), target),
                           (AT.name, FORM.string, "type"), children=[die(TAG.variable)], label="type")
                dw.unit(root(e, dw, type, function(label="next"), die(TAG.base_type, label="base"),
                             function(TEXT + 0x40, 0x10, name="g", label="last"), language=LANG.C99,
                             label="root"))
                dw.labels["middle"] = dw.labels["next"] + 3
                return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)],
                                         TEXT + 0x40: [("g", "/d/a.c", 10)]})


# The walk over a function passes over blocks whose code is not asked for, by their siblings.
@case("siblings of blocks and calls lead past what is inside", encodings=ENCODINGS)
def _sibling_blocks(e):
    dw = e.dwarf(4)
    block = die(TAG.lexical_block, (AT.sibling, FORM.ref4, "call"), (AT.low_pc, FORM.addr, TEXT),
                (AT.high_pc, FORM.data4, 8), children=[inlined("inner", TEXT, 4, line=5)])
    call = inlined("inner", TEXT + 0x10, 8, (AT.sibling, FORM.ref4, "end"), line=6,
                   children=[inlined("inner", TEXT + 0x10, 4, line=7)])
    call.label = "call"
    end = inlined("inner", TEXT + 0x20, 8, line=8)
    end.label = "end"
    dw.unit(root(e, dw, named("inner", label="inner"), function(children=[block, call, end])))
    inner = ("inner", "/d/a.c", 10)
    return Built(e.elf(dw), {
        TEXT: [inner, ("f", "/d/a.c", 5)], TEXT + 4: [("f", "/d/a.c", 10)],
        TEXT + 0x10: [inner, ("inner", "/d/a.c", 7), ("f", "/d/a.c", 6)],
        TEXT + 0x14: [inner, ("f", "/d/a.c", 6)], TEXT + 0x20: [inner, ("f", "/d/a.c", 8)]})


# Below types and functions, code stands seldom: a search skips it by the siblings first, then reads all.
for _language in (LANG.C99, LANG.C_plus_plus, LANG.Rust, LANG.D):
    for _what, _name in (("a name of fixed size first", (FORM.strp, "local")), ("a name inside first", (FORM.string, "local"))):
        @case(f"a function in a type in a function, language {_language:#x}, {_what}", encodings=ENCODINGS,
              language=_language, stated=_name)
        def _local_class(e, language, stated):
            dw = e.dwarf(4)
            nested = function(TEXT + 0x40, 0x20, name="nested", children=[inlined("inner", TEXT + 0x50, 0x10)])
            local = die(TAG.structure_type, (AT.name, *stated), (AT.sibling, FORM.ref4, "site"), children=[nested])
            site = die(TAG.GNU_call_site, (AT.low_pc, FORM.addr, TEXT + 4), (AT.sibling, FORM.ref4, "call"),
                       children=[die(TAG.variable, (AT.location, FORM.exprloc, b"\x30"))], label="site")
            call = inlined("inner", TEXT + 0x10, 8)
            call.label = "call"
            dw.unit(root(e, dw, named("inner", label="inner"),
                         die(TAG.structure_type, (AT.name, *stated), (AT.sibling, FORM.ref4, "f"), children=[die(TAG.variable)]),
                         function(children=[local, site, call], label="f"), language=language))
            return Built(e.elf(dw), {
                TEXT: [("f", "/d/a.c", 10)], TEXT + 0x10: [("inner", "/d/a.c", 10), ("f", "/d/a.c", 77)],
                TEXT + 0x40: [("nested", "/d/a.c", 10)],
                TEXT + 0x50: [("inner", "/d/a.c", 10), ("nested", "/d/a.c", 77)]})


# What linkers leave of code they dropped ----------------------------------------------------------

for _version in (2, 4, 5):
    for _dead in (0, 1, -1, -2):
        @case(f"a function dropped to {_dead}, DWARF {_version}", encodings=ENCODINGS,
              version=_version, dead=_dead, llvm=None)
        def _dropped(e, version, dead):
            dw = e.dwarf(version)
            dead &= (1 << e.bits) - 1
            high = (AT.high_pc, FORM.data4, 0x1800) if version >= 4 else \
                (AT.high_pc, FORM.addr, dead + 0x1800)
            gone = die(TAG.subprogram, (AT.name, FORM.string, "gone"), (AT.low_pc, FORM.addr, dead), high,
                       children=[])
            here = die(TAG.subprogram, (AT.name, FORM.string, "f"), (AT.low_pc, FORM.addr, TEXT),
                       (AT.high_pc, FORM.data4, 0x40) if version >= 4 else
                       (AT.high_pc, FORM.addr, TEXT + 0x40))
            program = e.line(version).sequence(dead + 0x1800, (dead, 99)).sequence(TEXT + 0x100, (TEXT, 10))
            stmt_list = dw.raw("debug_line", program.build())
            dw.unit(root(e, dw, gone, here, stmt_list=stmt_list))
            return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)], TEXT + 0x50: [(None, "/d/a.c", 10)]})


@case("a call inlined at a tombstone", encodings=ENCODINGS)
def _dropped_call(e):
    dw = e.dwarf(4)
    calls = [inlined("inner", dead & (1 << e.bits) - 1, 0x1800) for dead in (0, 1, -1, -2)]
    dw.unit(root(e, dw, named("inner", label="inner"), function(children=calls[2:])))
    return Built(e.elf(dw), {TEXT: [("f", "/d/a.c", 10)]})
