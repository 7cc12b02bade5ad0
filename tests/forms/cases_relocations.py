# SPDX-License-Identifier: MIT
"""Relocatable files of machines by hand: debug sections wait for plain data relocations. The numbers of
their types are those of each psABI; that they have these names GNU's or LLVM's readelf says."""
import tempfile

import ask
from case import Built, case
from dwarfasm import AT, FORM, LANG, TAG, Dwarf, Line, die
from elfasm import (ET_REL, SHF_ALLOC, SHF_WRITE, SHT_REL, SHT_RELA, STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_OBJECT,
                    STT_SECTION, Elf)
from out import Out


class Machine:
    """Addresses have @address bytes in the debug information; the types of relocations for them and for
    offsets in sections are (number, name)."""

    def __init__(self, machine, bits, big, address, for_address, for_offset, flags=0, osabi=0, rela=True):
        self.machine, self.bits, self.big, self.address, self.rela = machine, bits, big, address, rela
        self.flags, self.osabi = flags, osabi
        self.for_address, self.for_offset = for_address, for_offset


UA32, M68K_32, LANAI_32 = (23, "R_SPARC_UA32"), (1, "R_68K_32"), (4, "R_LANAI_32")
BPF_64, BPF_32, STANDALONE = (2, "R_BPF_64_ABS64"), (3, "R_BPF_64_ABS32"), 255
AVR_32, AVR_16, HEX_32 = (1, "R_AVR_32"), (4, "R_AVR_16"), (6, "R_HEX_32")
MACHINES = {
    "SPARC": Machine(2, 32, True, 4, UA32, UA32),
    "SPARC, aligned": Machine(2, 32, True, 4, (3, "R_SPARC_32"), (3, "R_SPARC_32")),
    "SPARC V8+": Machine(18, 32, True, 4, UA32, UA32),
    "m68k": Machine(4, 32, True, 4, M68K_32, M68K_32),
    "IA-64": Machine(50, 64, False, 8, (0x27, "R_IA64_DIR64LSB"), (0x65, "R_IA64_SECREL32LSB")),
    "IA-64, big-endian": Machine(50, 64, True, 8, (0x26, "R_IA64_DIR64MSB"), (0x64, "R_IA64_SECREL32MSB")),
    "AVR": Machine(83, 32, False, 4, AVR_32, AVR_32),
    "AVR, addresses of 16 bits": Machine(83, 32, False, 2, AVR_16, AVR_32),
    "MSP430": Machine(105, 32, False, 2, (5, "R_MSP430_16_BYTE"), (1, "R_MSP430_32"), osabi=STANDALONE),
    "MSP430, words": Machine(105, 32, False, 2, (3, "R_MSP430_16"), (1, "R_MSP430_32"), osabi=STANDALONE),
    "MSP430X": Machine(105, 32, False, 4, (1, "R_MSP430_ABS32"), (1, "R_MSP430_ABS32"), flags=45, osabi=STANDALONE),
    "MSP430X, TI's": Machine(105, 32, False, 4, (1, "R_MSP430_ABS32"), (1, "R_MSP430_ABS32")),
    "MSP430X, addresses of 16 bits": Machine(105, 32, False, 2, (2, "R_MSP430_ABS16"), (1, "R_MSP430_ABS32"), flags=45,
                                             osabi=STANDALONE),
    "Hexagon": Machine(164, 32, False, 4, HEX_32, HEX_32),
    "Lanai": Machine(244, 32, True, 4, LANAI_32, LANAI_32),
    "BPF": Machine(247, 64, False, 8, BPF_64, BPF_32, rela=False),
    "BPF, big-endian": Machine(247, 64, True, 8, BPF_64, BPF_32, rela=False),
    "VE": Machine(251, 64, False, 8, (2, "R_VE_REFQUAD"), (1, "R_VE_REFLONG")),
    "C-SKY": Machine(252, 32, False, 4, (1, "R_CKCORE_ADDR32"), (1, "R_CKCORE_ADDR32")),
}

# Stand where relocations are for: nothing else looks like them.
ADDRESS, LINES, NAME = 0x5A51525354555657, 0x5B61626364656667, 0x5C71727374757677


def _relocated(data, marks, m):
    """@data with each mark {(value, size): (type, symbol, addend)} relocated: the bytes, and the table."""
    data, order, table = bytearray(data), "big" if m.big else "little", Out(m.big)
    for (value, size), (type, symbol, addend) in marks.items():
        mark = (value & ((1 << 8 * size) - 1)).to_bytes(size, order)
        assert data.count(mark) == 1, f"{mark} is there {data.count(mark)} times"
        at = data.index(mark)
        # With the addend in the table, what stands at the place does not count.
        data[at:at + size] = (0 if m.rela else addend).to_bytes(size, order)
        if m.bits == 64:
            table.u64(at).u64(symbol << 32 | type)
        else:
            table.u32(at).u32(symbol << 8 | type)
        if m.rela:
            table.uint(addend, m.bits // 8)
    return bytes(data), table.bytes


def _names(path):
    said = [ask.run(tool, "-rW", path, status=None) for tool in ("readelf", "llvm-readelf")]
    return {word for word in " ".join(said).split() if word.startswith("R_")}


def _check_names(elf, m):
    """That both types are called as they are meant."""
    wanted = {name for _, name in (m.for_address, m.for_offset)}
    with tempfile.NamedTemporaryFile() as f:
        f.write(elf)
        f.flush()
        names = _names(f.name)
    assert wanted <= names, f"readelf calls them {names}, not {wanted}"


def _build(m):
    dw = Dwarf(4, 4, m.address, m.big)
    # Nothing that is relocated is at the start of its section.
    dw.str("filler")
    name = dw.str("f")
    dw.raw("debug_line", Line(4, address_size=m.address, big=m.big).build())
    lines = Line(4, address_size=m.address, big=m.big)
    lines.set_address(ADDRESS & ((1 << 8 * m.address) - 1)).line(9).copy().advance_pc(8).line(1).copy().advance_pc(8).end()
    stmt_list = dw.raw("debug_line", lines.build())
    function = die(TAG.subprogram, (AT.name, FORM.strp, NAME & 0xFFFFFFFF),
                   (AT.low_pc, FORM.addr, ADDRESS & ((1 << 8 * m.address) - 1)), (AT.high_pc, FORM.data4, 0x10))
    dw.unit(die(TAG.compile_unit, (AT.name, FORM.string, "a.c"), (AT.comp_dir, FORM.string, "/d"),
                (AT.language, FORM.data2, LANG.C99), (AT.stmt_list, FORM.sec_offset, LINES & 0xFFFFFFFF),
                children=[function]))
    sections = dw.finish()
    elf = Elf(m.bits, m.big, m.machine, type=ET_REL, flags=m.flags, osabi=m.osabi)
    elf.text(0, 0x20, ".text.first")
    text = elf.text(0, 0x40)
    places = {}
    in_text = (m.for_address[0], 1, 0x20)
    marks = {".debug_info": {(ADDRESS, m.address): in_text, (LINES, 4): (m.for_offset[0], 2, stmt_list),
                             (NAME, 4): (m.for_offset[0], 3, name)},
             ".debug_line": {(ADDRESS, m.address): in_text}}
    tables = {}
    for section, data in sections.items():
        data, tables[section] = _relocated(data, marks.get(section, {}), m)
        places[section] = elf.section(section, data)
    tables = {section: table for section, table in tables.items() if table}
    symtab = len(elf.sections) + len(tables) + 2
    for section, table in tables.items():
        entry = m.bits // 8 * (3 if m.rela else 2)
        elf.section((".rela" if m.rela else ".rel") + section, table, SHT_RELA if m.rela else SHT_REL, align=8,
                    link=symtab, info=places[section], entsize=entry)
    for place in (text, places[".debug_line"], places[".debug_str"]):
        elf.symbol("", 0, 0, place, STT_SECTION, STB_LOCAL)
    elf.symbol("f", 0x20, 0x10, text, STT_FUNC, STB_GLOBAL)
    return elf


# Files that are written by hand: what nothing relocates is as it stands.
UNRELOCATED = {"sections at 0": (0, 0, (0x10, 0x30)), "sections with addresses": (0x4000, 0x5000, (0x10, 0x30)),
               "larger than the layout's start": (0, 0, (0x10, 0x20010))}

for _name, (_text, _data, _places) in UNRELOCATED.items():
    @case(f"a relocatable file without relocations: {_name}", llvm=None if _text else True, text=_text, data=_data,
          places=_places)
    def _unrelocated(text, data, places):
        dw = Dwarf(4, 4, 8)
        line = Line(4)
        functions = []
        for number, at in enumerate(places):
            line.sequence(text + at + 0x10, (text + at, 10 + number))
            functions.append(die(TAG.subprogram, (AT.name, FORM.string, f"f{number}"), (AT.low_pc, FORM.addr, text + at),
                                 (AT.high_pc, FORM.data4, 0x10)))
        dw.unit(die(TAG.compile_unit, (AT.name, FORM.string, "a.c"), (AT.comp_dir, FORM.string, "/d"),
                    (AT.language, FORM.data2, LANG.C99), (AT.low_pc, FORM.addr, text), (AT.high_pc, FORM.data4, 0x30000),
                    (AT.stmt_list, FORM.sec_offset, dw.raw("debug_line", line.build())), children=functions))
        elf = Elf(type=ET_REL)
        elf.text(text, 0x30000)
        elf.section(".data", b"\0" * 16, flags=SHF_ALLOC | SHF_WRITE, addr=data)
        for section, content in dw.finish().items():
            elf.section(section, content)
        elf.symbol("f0", places[0], 0x10)
        elf.symbol("f1", places[1], 0x10)
        elf.symbol("variable", 4, 4, 2, STT_OBJECT)
        want = {at + more: [(f"f{number}", "/d/a.c", 10 + number)] for number, at in enumerate(places) for more in (0, 0xF)}
        return Built(elf, {**want, "variable": {"symbol": "variable", "offset": 0}} if text else want)


for _name, _machine in MACHINES.items():
    @case(f"relocations of {_name}", llvm=None, m=_machine)
    def _machines(m):
        elf = _build(m).build()
        _check_names(elf, m)
        return Built(elf, {0x20: [("f", "/d/a.c", 10)], 0x28: [("f", "/d/a.c", 11)], 0x2F: [("f", "/d/a.c", 11)],
                           0x1F: "no-symbols"}, options=("-j", ".text"))
