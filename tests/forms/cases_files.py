# SPDX-License-Identifier: MIT
"""DWARF in several files: supplementary files (GNU's .gnu_debugaltlink; DWARF 5, 7.3.6), split units
(DWARF 5, 7.3.2; GNU's of DWARF 4) and packages of them (7.3.5)."""
import struct
import zlib

import ask
from case import ENCODINGS, TEXT, Built, case, function, lines, root
from dwarfasm import AT, FORM, RLE, TAG, UT, Dwarf, die
from elfasm import SHF_COMPRESSED, Elf
from indexasm import cu_index
from out import Out

PLAIN = ENCODINGS[0]
ID, OTHER_ID = b"0123456789abcdefghij", b"jihgfedcba9876543210"
LLVM_SUP = "reads no supplementary files"

# Supplementary files -------------------------------------------------------------------------------


def alt_link(elf, name="sup", id=ID):
    elf.section(".gnu_debugaltlink", name.encode() + b"\0" + id)


def debug_sup(elf, e, is_sup, name, checksum):
    out = Out(e.big).u16(5).u8(is_sup).cstr(name).uleb(len(checksum)).raw(checksum)
    elf.section(".debug_sup", out.bytes)


def sup_file(e, dw, id=ID):
    elf = Elf(e.bits, e.big, e.machine)
    elf.build_id(id)
    for name, data in dw.finish().items():
        elf.section(name, data)
    return elf


def sup_names(e, version):
    """A supplementary file with a string at offset 8 and an abstract function."""
    sup = e.dwarf(version)
    sup.str("padding")
    assert sup.str("shared") == 8
    inner = die(TAG.subprogram, (AT.name, FORM.strp, "inner"), (AT.inline, FORM.data1, 1), label="inner")
    kind = {"type": UT.partial} if version >= 5 else {}
    sup.unit(die(TAG.partial_unit, children=[die(TAG.base_type), inner]), **kind)
    return sup, sup.labels["inner"]


def uses_sup(e, version, string_form, ref_form, link, id=ID):
    """A function named by a string of the supplementary file, which inlines one that is there."""
    sup, inner = sup_names(e, version)
    dw = e.dwarf(version)
    dw.str("not this one")
    call = die(TAG.inlined_subroutine, (AT.abstract_origin, ref_form, inner),
               (AT.low_pc, FORM.addr, TEXT + 0x10), (AT.high_pc, FORM.data4, 8),
               (AT.call_file, FORM.data1, 1), (AT.call_line, FORM.data1, 77))
    f = die(TAG.subprogram, (AT.name, string_form, 8), (AT.low_pc, FORM.addr, TEXT),
            (AT.high_pc, FORM.data4, 0x40), children=[call])
    dw.unit(root(e, dw, f))
    main = e.elf(dw)
    link(main)
    return Built(main, {TEXT: [("shared", "/d/a.c", 10)],
                        TEXT + 0x10: [("inner", "/d/a.c", 10), ("shared", "/d/a.c", 77)]},
                 files={"sup": sup_file(e, sup, id)})


@case("GNU_strp_alt and GNU_ref_alt", encodings=ENCODINGS, llvm=LLVM_SUP)
def _alt(e):
    return uses_sup(e, 4, FORM.GNU_strp_alt, FORM.GNU_ref_alt, alt_link)


for _ref in ("ref_sup4", "ref_sup8"):
    @case(f"strp_sup and {_ref}", encodings=ENCODINGS, llvm=LLVM_SUP, ref=_ref)
    def _sup(e, ref):
        built = uses_sup(e, 5, FORM.strp_sup, getattr(FORM, ref),
                         lambda elf: debug_sup(elf, e, 0, "sup", b"checksum"), id=OTHER_ID)
        sup = sup_file(e, sup_names(e, 5)[0], OTHER_ID)
        debug_sup(sup, e, 1, "", b"checksum")
        built.files["sup"] = sup.build()
        return built


@case("a supplementary file in a folder beside the file", llvm=LLVM_SUP)
def _alt_relative(e=PLAIN):
    built = uses_sup(e, 4, FORM.GNU_strp_alt, FORM.GNU_ref_alt, lambda elf: alt_link(elf, "dwz/sup"))
    built.files = {"dwz/sup": built.files["sup"]}
    return built


@case("a supplementary file found by its build-id", llvm=LLVM_SUP)
def _alt_build_id(e=PLAIN):
    built = uses_sup(e, 4, FORM.GNU_strp_alt, FORM.GNU_ref_alt, lambda elf: alt_link(elf, "/nowhere/sup"))
    hex = ID.hex()
    built.files = {f"debug/.build-id/{hex[:2]}/{hex[2:]}.debug": built.files["sup"]}
    built.options = ["--debug-dir=@/debug"]
    return built


NAMELESS = {TEXT: [(None, "/d/a.c", 10)], TEXT + 0x10: [(None, "/d/a.c", 10), (None, "/d/a.c", 77)]}


@case("a supplementary file of another build is refused", llvm=None, note="refused: its build-id is another")
def _alt_wrong(e=PLAIN):
    built = uses_sup(e, 4, FORM.GNU_strp_alt, FORM.GNU_ref_alt, alt_link, id=OTHER_ID)
    built.want = NAMELESS
    return built


@case("a supplementary file that is missing", llvm=None, note="was not found")
def _alt_missing(e=PLAIN):
    built = uses_sup(e, 4, FORM.GNU_strp_alt, FORM.GNU_ref_alt, alt_link)
    built.files, built.want = {}, NAMELESS
    return built


@case("a .debug_sup with another checksum is refused", llvm=None, note="refused")
def _sup_wrong(e=PLAIN):
    built = uses_sup(e, 5, FORM.strp_sup, FORM.ref_sup4,
                     lambda elf: debug_sup(elf, e, 0, "sup", b"checksum"), id=OTHER_ID)
    sup = sup_file(e, sup_names(e, 5)[0], OTHER_ID)
    debug_sup(sup, e, 1, "", b"other")
    built.files["sup"], built.want = sup.build(), NAMELESS
    return built


# A unit of the supplementary file refers to its own file with ref_addr.
@case("an origin in the supplementary file that leads on there", llvm=LLVM_SUP)
def _alt_chain(e=PLAIN):
    sup = e.dwarf(4)
    sup.unit(die(TAG.partial_unit, children=[die(TAG.subprogram, (AT.name, FORM.strp, "deep"),
                                                 label="deep")]))
    sup.unit(die(TAG.partial_unit, children=[
        die(TAG.base_type), die(TAG.subprogram, (AT.specification, FORM.ref_addr, "deep"), label="on")]))
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function(TEXT, 0x40, (AT.abstract_origin, FORM.GNU_ref_alt, sup.labels["on"]),
                                 name=None)))
    main = e.elf(dw)
    alt_link(main)
    return Built(main, {TEXT: [("deep", "/d/a.c", 10)]}, files={"sup": sup_file(e, sup)})


# Compressed files ----------------------------------------------------------------------------------

for _tool in ("gzip", "xz", "zstd", "lz4"):
    @case(f"a file that {_tool} has compressed in pieces", llvm=None, tool=_tool)
    def _pieces(tool, e=PLAIN):
        dw = e.dwarf(4)
        dw.unit(root(e, dw, function()))
        data = e.elf(dw).build()
        middle = len(data) // 2
        pieces = [ask.run(tool, "-c", input=part, text=False) for part in (data[:middle], data[middle:])]
        return Built(b"".join(pieces), {TEXT: [("f", "/d/a.c", 10)]})


@case("a compressed section that the file cuts off", llvm=None, note="reaches past the end of the file")
def _cut_compressed(e=PLAIN):
    dw = e.dwarf(4)
    dw.unit(root(e, dw, function()))
    elf = e.elf(dw)
    info = next(s for s in elf.sections if s.name == ".debug_info")
    info.flags, info.data = SHF_COMPRESSED, Out(e.big).u32(1).u32(0).u64(0).u64(1).bytes + zlib.compress(b"")
    data = bytearray(elf.build())
    at = data.rindex(struct.pack("<QQ", info.off, len(info.data)))  # sh_offset, sh_size
    data[at + 8:at + 16] = struct.pack("<Q", 1 << 40)
    return Built(bytes(data), {TEXT: "corrupt"})


# Split units ---------------------------------------------------------------------------------------

class Split:
    """The parts of one split unit: f at @low, in pieces, with inner inlined in the first. With @lists its
    range lists of DWARF 5 are in the main file, reached by index through the base that the skeleton states
    ("based"), by index without it ("first"), or by offset ("offset"). Its file is in @folder below
    @comp_dir, where None is a unit that does not state where it was compiled."""

    def __init__(self, e, version, id, low, name, main, strings=None, lists=None, comp_dir=".", folder=""):
        self.e, self.version, self.id, self.low, self.name = e, version, id, low, name
        self.main, self.lists, self.rnglists_base = main, lists, None
        self.comp_dir, self.folder = comp_dir, folder
        self.dwo = Dwarf(version, e.offset_size, e.bits // 8, e.big, ".dwo")
        if strings:  # one .debug_str for all units of a package
            self.dwo.pools, self.dwo.sections["debug_str"] = strings.pools, strings.section("debug_str")
        self.stmt_list = lines(e, main, (low, 10), end=low + 0x40, dirs=["."] if version >= 5 else [])
        self._split()
        self._skeleton()

    def want(self):
        inner, f = f"inner_{self.name}", self.name
        # In version 5 the line table states the directory, too.
        path = "./a.c" if self.comp_dir or self.version >= 5 else "a.c"
        return {self.low: [(f, path, 10)], self.low + 0x1F: [(f, path, 10)],
                self.low + 0x10: [(inner, path, 10), (f, path, 77)],
                self.low + 0x20: [(None, path, 10)], self.low + 0x30: [(f, path, 10)]}

    def _children(self, string, address, ranges):
        inner = die(TAG.subprogram, (AT.name, string, 2), (AT.inline, FORM.data1, 1), label="inner")
        call = die(TAG.inlined_subroutine, (AT.abstract_origin, FORM.ref4, "inner"),
                   (AT.low_pc, address, 2), (AT.high_pc, FORM.data4, 8), (AT.call_file, FORM.data1, 1),
                   (AT.call_line, FORM.data1, 77))
        return [inner, die(TAG.subprogram, (AT.name, string, 1), ranges, children=[call])]

    def _split(self):
        gnu = self.version < 5
        string, address = (FORM.GNU_str_index, FORM.GNU_addr_index) if gnu else (FORM.strx1, FORM.addrx1)
        self.dwo.str_offsets("a.c", self.name, f"inner_{self.name}", header=not gnu)
        if gnu:
            self.ranges_base = self.main.ranges((0, 0x40))
            off = self.main.ranges((0, 0x20), (0x30, 0x40)) - self.ranges_base
            ranges = (AT.ranges, FORM.sec_offset, off)
        else:
            dw = self.main if self.lists else self.dwo
            if self.lists == "based":
                dw.rnglists(dw.rnglist(), dw.rnglist())
            base, offsets = dw.rnglists(dw.rnglist(), dw.rnglist((RLE.startx_length, 1, 0x20), (RLE.offset_pair, 0x30, 0x40)))
            ranges = (AT.ranges, FORM.rnglistx, 1)
            if self.lists == "based":
                self.rnglists_base = base
            if self.lists == "offset":
                ranges = (AT.ranges, FORM.sec_offset, offsets[1])
        attrs = [(AT.name, string, 0), (AT.language, FORM.data2, 4)]
        attrs += [(AT.GNU_dwo_id, FORM.data8, self.id)] if gnu else []
        self.dwo.unit(die(TAG.compile_unit, *attrs, children=self._children(string, address, ranges)),
                      **({} if gnu else {"type": UT.split_compile, "id": self.id}))

    def _skeleton(self):
        gnu, main = self.version < 5, self.main
        main.addr(0xBAD, header=not gnu)
        addr_base = main.addr(0xBAD, self.low, self.low + 0x10, header=not gnu)
        names = (AT.GNU_dwo_name, AT.GNU_addr_base) if gnu else (AT.dwo_name, AT.addr_base)
        attrs = [(AT.stmt_list, FORM.sec_offset, self.stmt_list),
                 (names[0], FORM.string, f"{self.folder}{self.name}.dwo"), (AT.low_pc, FORM.addr, self.low),
                 (AT.high_pc, FORM.data4, 0x40), (names[1], FORM.sec_offset, addr_base)]
        attrs += [(AT.comp_dir, FORM.string, self.comp_dir)] if self.comp_dir else []
        if gnu:
            attrs += [(AT.GNU_dwo_id, FORM.data8, self.id), (AT.GNU_ranges_base, FORM.sec_offset,
                                                            self.ranges_base)]
        if self.rnglists_base is not None:
            attrs += [(AT.rnglists_base, FORM.sec_offset, self.rnglists_base)]
        main.unit(die(TAG.compile_unit if gnu else TAG.skeleton_unit, *attrs),
                  **({} if gnu else {"type": UT.skeleton, "id": self.id}))

    def file(self):
        elf = Elf(self.e.bits, self.e.big, self.e.machine)
        for name, data in self.dwo.finish().items():
            elf.section(name, data)
        return elf


def split_case(e, version, **options):
    main = e.dwarf(version)
    unit = Split(e, version, 0x1122334455667788, TEXT, "f", main, **options)
    return main, unit


for _version in (4, 5):
    @case(f"a .dwo, DWARF {_version}", encodings=ENCODINGS, version=_version)
    def _dwo(e, version):
        main, unit = split_case(e, version)
        return Built(e.elf(main), unit.want(), files={"f.dwo": unit.file()})

    # Compilers before gcc 11 had no .debug_rnglists.dwo.
    for _lists in ("based", "first", "offset") if _version == 5 else ():
        @case(f"a .dwo whose range lists are in the main file, {_lists}", encodings=ENCODINGS, lists=_lists,
              llvm="looks for them in the .dwo only")
        def _dwo_lists(e, lists):
            main, unit = split_case(e, 5, lists=lists)
            return Built(e.elf(main), unit.want(), files={"f.dwo": unit.file()})

    @case(f"a .dwo that was moved beside the file, DWARF {_version}", version=_version,
          llvm="looks where the compiler put it only")
    def _dwo_moved(version, e=PLAIN):
        main, unit = split_case(e, version)
        return Built(e.elf(main), unit.want(), files={"bin/f.dwo": unit.file()}, name="bin/main")

    @case(f"a .dwo of a unit without a compilation directory, DWARF {_version}", version=_version)
    def _dwo_without_directory(version, e=PLAIN):
        main, unit = split_case(e, version, comp_dir=None, folder="sub/")
        return Built(e.elf(main), unit.want(), files={"sub/f.dwo": unit.file()})

    @case(f"a .dwo of a unit without a compilation directory that is missing, DWARF {_version}",
          version=_version, llvm=None, note="fathom: sub/f.dwo: split debug file not found",
          reason="no-debug-info")
    def _dwo_without_directory_missing(version, e=PLAIN):
        main, unit = split_case(e, version, comp_dir=None, folder="sub/")
        return Built(e.elf(main), {TEXT: [(None, "./a.c" if version >= 5 else "a.c", 10)]})

    @case(f"a .dwo of another build is refused, DWARF {_version}", version=_version, llvm=None,
          note="belongs to another build", reason="build-id-mismatch")
    def _dwo_wrong(version, e=PLAIN):
        main, unit = split_case(e, version)
        other = Split(e, version, 99, TEXT, "f", e.dwarf(version))
        return Built(e.elf(main), {TEXT: [(None, "./a.c", 10)]}, files={"f.dwo": other.file()})

    @case(f"a .dwo that is missing, DWARF {_version}", version=_version, llvm=None,
          note="f.dwo: split debug file not found", reason="no-debug-info")
    def _dwo_missing(version, e=PLAIN):
        main, unit = split_case(e, version)
        return Built(e.elf(main), {TEXT: [(None, "./a.c", 10)]})


# Packages ------------------------------------------------------------------------------------------

def package(e, version, units, slots=8):
    """The sections of @units one behind another, and the index that tells them apart."""
    parts = [unit.dwo.finish() for unit in units]
    columns = ["debug_info", "debug_abbrev", "debug_str_offsets"]
    columns += ["debug_rnglists"] if version >= 5 else []
    joined, rows = {name: b"" for name in columns}, []
    for unit, sections in zip(units, parts):
        row = {}
        for name in columns:
            data = sections[f".{name}.dwo"]
            row[name] = (len(joined[name]), len(data))
            joined[name] += data
        rows.append((unit.id, row))
    elf = Elf(e.bits, e.big, e.machine)
    for name, data in joined.items():
        elf.section(f".{name}.dwo", data)
    elf.section(".debug_str.dwo", parts[-1][".debug_str.dwo"])
    elf.section(".debug_cu_index", cu_index(2 if version < 5 else 5, e.big, columns, rows, slots))
    return elf


# Ids that meet in one slot: the second is found at a step that its upper half gives.
IDS = (0x1122334400000003, 0x5566778800000003, 0x99AABBCC0000000B)

for _version in (4, 5):
    @case(f"a .dwp of three units, DWARF {_version}", encodings=ENCODINGS[:2], version=_version)
    def _dwp(e, version):
        main, units, want = e.dwarf(version), [], {}
        for i, id in enumerate(IDS):
            units.append(Split(e, version, id, TEXT + 0x40 * i, f"f{i}", main,
                               strings=units[0].dwo if units else None))
            want.update(units[-1].want())
        return Built(e.elf(main), want, files={"main.dwp": package(e, version, units)})

    @case(f"a .dwp that lacks the unit, DWARF {_version}", version=_version, llvm=None, note="f.dwo",
          reason="no-debug-info")
    def _dwp_lacks(version, e=PLAIN):
        main, unit = split_case(e, version)
        other = Split(e, version, 99, TEXT, "g", e.dwarf(version))
        return Built(e.elf(main), {TEXT: [(None, "./a.c", 10)]},
                     files={"main.dwp": package(e, version, [other])})

    @case(f"a .dwp with an index of another version, DWARF {_version}", version=_version, llvm=None,
          note="f.dwo")
    def _dwp_version(version, e=PLAIN):
        main, unit = split_case(e, version)
        data = bytearray(package(e, version, [unit]).build())
        index = cu_index(2 if version < 5 else 5, e.big, [], [], 0)[:2]
        at = data.rindex(unit.id.to_bytes(8, "little")) // 8 * 8
        start = data.rindex(index, 0, at)
        data[start:start + 2] = b"\x09\x00"
        return Built(e.elf(main), {TEXT: [(None, "./a.c", 10)]}, files={"main.dwp": bytes(data)})
