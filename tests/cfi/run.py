#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "cfi": the CIEs and FDEs of a module. The truth about files made by hand is the standard, about
real ones readelf. tests/cfi/frames.c says what its lines mean."""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "forms"), os.path.join(HERE, "..", "..", "tools")]

import ask  # noqa: E402
import cfi  # noqa: E402
import tap  # noqa: E402
import toolchain  # noqa: E402
from case import ENCODINGS, Encoding  # noqa: E402
from cfiasm import (ABSPTR, ALIGNED, DATAREL, EH_FRAME, EH_HDR, FUNCREL, INDIRECT, PCREL, SDATA2, SDATA4, SDATA8,  # noqa: E402
                    SIGNED, SLEB, TEXTREL, UDATA2, UDATA4, UDATA8, ULEB, Frames, header, pointer)
from elfasm import SHF_ALLOC  # noqa: E402
from out import uleb  # noqa: E402

SUITE = tap.Suite("cfi")
test = SUITE.test
PROGRAM = os.path.join(os.environ["BUILD"], "tests", "frames")
WRAPPER = os.environ.get("WRAPPER", "").split()
E = ENCODINGS[0]  # 64-bit, little-endian
DEF_CFA = b"\x0c\x07\x08\x90\x01"  # DW_CFA_def_cfa r7 8, DW_CFA_offset r16 1
PUSH = b"\x41\x0e\x10"             # DW_CFA_advance_loc 1, DW_CFA_def_cfa_offset 16
UNSUPPORTED = -7  # FATHOM_E_UNSUPPORTED
PERSONALITY, LSDA = 0x3004, 0x3100


def frames_of(path, *options):
    return ask.run(*WRAPPER, PROGRAM, *options, path).splitlines()


def entries_of(folder, elf):
    """The lines of the entries of @elf, without those that say where they stand."""
    path = os.path.join(folder, "main")
    with open(path, "wb") as f:
        f.write(elf.build())
    return [line for line in frames_of(path) if not line.startswith(("file", "section"))]


def check(folder, elf, *want):
    got = entries_of(folder, elf)
    assert got == list(want), "\n".join(["got", *got, "wanted", *want])


def one(folder, f, cie_line, fde_line):
    """A section of one CIE, which starts it, and one FDE of the code at 0x1010."""
    check(folder, f.elf(), cie_line, fde_line)


@test("every field of a CIE, version 1")
def version_1(folder):
    f = Frames(E)
    f.fde(f.cie(encoding=UDATA4, factors=(4, -4, 200), instructions=DEF_CFA), 0x1010, 0x10, UDATA4, instructions=PUSH)
    one(folder, f, 'C 0 1 4 -4 c8 8 0 "zR" 3/ff/ff - z.... 11 18 c', "F 18 0 1010 1020 - = 29 2c 41")


@test("every field of a CIE, version 3")
def version_3(folder):
    f = Frames(E)
    f.fde(f.cie(encoding=UDATA4, version=3, factors=(4, -4, 200), instructions=DEF_CFA), 0x1010, 0x10, UDATA4)
    one(folder, f, 'C 0 3 4 -4 c8 8 0 "zR" 3/ff/ff - z.... 12 18 c', "F 18 0 1010 1020 - = 29 2c 0")


@test("every field of a CIE, version 4")
def version_4(folder):
    f = Frames(E, eh=False)
    f.fde(f.cie("", version=4, factors=(4, -4, 200), instructions=DEF_CFA), 0x1010, 0x10)
    one(folder, f, 'C 0 4 4 -4 c8 8 0 "" 0/ff/ff - ..... 10 18 c', "F 18 0 1010 1020 - = 30 30 -")


@test("a big-endian 32-bit file")
def big(folder):
    f = Frames(ENCODINGS[1])
    f.fde(f.cie(factors=(4, -4, 65)), 0x1010, 0x10)
    one(folder, f, 'C 0 1 4 -4 41 4 0 "zR" 0/ff/ff - z.... 11 14 0', "F 14 0 1010 1020 - = 25 28 0")


@test("segments and addresses of another size, version 4")
def sizes(folder):
    f = Frames(E, eh=False)
    f.fde(f.cie("", version=4, sizes=(8, 4)), 0x1010, 0x10, segment=b"\x44\x33\x22\x11")
    one(folder, f, 'C 0 4 1 -8 10 8 4 "" 0/ff/ff - ..... f 10 0', "F 10 0 1010 1020 - = 2c 2c -")
    f = Frames(Encoding("4-byte addresses", 32, False, 4, 62), eh=False)
    f.fde(f.cie("", version=4), 0x1010, 0x10)
    check(folder, f.add_to(E.elf()), 'C 0 4 1 -8 10 4 0 "" 0/ff/ff - ..... f 10 0', "F 10 0 1010 1020 - = 20 20 -")


@test("64-bit DWARF: .eh_frame has CIE pointers of 4 bytes, .debug_frame of 8")
def wide(folder):
    f = Frames(E, offset_size=8)
    f.fde(f.cie(encoding=UDATA4), 0x1010, 0x10, UDATA4)
    one(folder, f, 'C 0 1 1 -8 10 8 0 "zR" 3/ff/ff - z.... 19 1c 0', "F 1c 0 1010 1020 - = 35 38 0")
    f = Frames(E, eh=False, offset_size=8)
    f.fde(f.cie("", version=3), 0x1010, 0x10)
    one(folder, f, 'C 0 3 1 -8 10 8 0 "" 0/ff/ff - ..... 19 1c 0', "F 1c 0 1010 1020 - = 40 40 -")


@test("personality and LSDA")
def languages(folder):
    f = Frames(E)
    cie = f.cie("zPLR", bytes([PCREL | SDATA4]) + pointer(E, PERSONALITY, PCREL | SDATA4, EH_FRAME + 0x13) + bytes([UDATA4, UDATA4]))
    f.fde(cie, 0x1010, 0x10, UDATA4, data=pointer(E, LSDA, UDATA4, 0), instructions=PUSH)
    f.fde(cie, 0x1040, 8, UDATA4, data=bytes(4))
    check(folder, f.elf(), f'C 0 1 1 -8 10 8 0 "zPLR" 3/3/1b {PERSONALITY:x} z.... 19 1c 0',
          f"F 1c 0 1010 1020 {LSDA:x} = 31 34 41", "F 34 0 1040 1048 - = 49 4c 0")


for _encoding in (ABSPTR, ULEB, UDATA2, UDATA4, UDATA8, SIGNED, SLEB, SDATA2, SDATA4, SDATA8, PCREL | SDATA4,
                  PCREL | ABSPTR, TEXTREL | UDATA4, DATAREL | UDATA2, FUNCREL | UDATA4, FUNCREL | SLEB,
                  INDIRECT | PCREL | SDATA4, ABSPTR | INDIRECT):
    @test(f"LSDA encoded as {_encoding:#x}; 0 is none whatever its base")
    def lsda(folder, encoding=_encoding):
        f = Frames(E)
        cie = f.cie("zLR", bytes([encoding, UDATA4]))
        # The LSDA stands behind length, CIE pointer, two bounds of 4 bytes and the size of the data.
        value = pointer(E, LSDA, encoding, EH_FRAME + len(f.out) + 17, function=0x1010)
        f.fde(cie, 0x1010, 0x10, UDATA4, data=value)
        f.fde(cie, 0x1040, 8, UDATA4, data=bytes(len(value)))
        got = [line.split()[5] for line in entries_of(folder, f.elf()) if line[0] == "F"]
        assert got == [f"{LSDA:x}", "-"], got


FLAGS = {"zR": "z....", "zRS": "zS...", "zRB": "z.B..", "zRG": "z..G.", "zSBGR": "zSBG.", "zRX": "z...?", "zRXS": "z...?"}


@test("what letters of an augmentation stand for")
def letters(folder):
    for text, flags in FLAGS.items():
        f = Frames(E)
        f.fde(f.cie(text, bytes([UDATA4])), 0x1010, 0x10, UDATA4)
        got = entries_of(folder, f.elf())
        assert got[0].split()[8:12] == [f'"{text}"', "3/ff/ff", "-", flags], got
        assert got[1].split()[3:7] == ["1010", "1020", "-", "="], got


@test('augmentation "eh" of old g++')
def old(folder):
    f = Frames(E)
    f.fde(f.cie("eh", before=bytes(8)), 0x1010, 0x10, augmented=False)
    one(folder, f, 'C 0 1 1 -8 10 8 0 "eh" 0/ff/ff - ..... 17 18 0', "F 18 0 1010 1020 - = 30 30 -")


@test("personality: aligned, without base, omitted")
def personality(folder):
    f = Frames(E)  # 18 bytes into the section; the next multiple of 8 is 6 bytes on
    f.cie("zPR", bytes([ALIGNED]) + bytes(6) + pointer(E, PERSONALITY, ABSPTR, 0) + bytes([UDATA4]))
    check(folder, f.elf(), f'C 0 1 1 -8 10 8 0 "zPR" 3/ff/50 {PERSONALITY:x} z.... 21 24 0')
    f = Frames(E)
    f.cie("zPR", bytes([FUNCREL | UDATA8]) + bytes(8) + bytes([UDATA4]))
    check(folder, f.elf(), 'C 0 1 1 -8 10 8 0 "zPR" 3/ff/44 0 z...? 1b 1c 0')
    f = Frames(E)
    f.cie("zPR", bytes([0xFF, UDATA4]))
    check(folder, f.elf(), 'C 0 1 1 -8 10 8 0 "zPR" 3/ff/ff - z.... 13 14 0')


@test("what is unknown is passed over: bounds behind an unknown letter, their encoding and its base, versions")
def unknown(folder):
    for options in ({"augmentation": "zXR", "data": bytes([UDATA4])}, {"version": 2}, {"version": 5},
                    *({"encoding": e} for e in (0x05, 0x0D, FUNCREL | UDATA4, 0x60 | UDATA4, 0xFF))):
        f = Frames(E)
        f.fde(f.cie(**options), 0x1010, 0x10, UDATA4)
        known = f.cie(encoding=UDATA4)
        f.fde(known, 0x1040, 8, UDATA4)
        got = entries_of(folder, f.elf())
        assert got[0] == f"C 0 error {UNSUPPORTED}" and got[1].endswith(f" error {UNSUPPORTED}"), got
        assert got[3].split()[3:7] == ["1040", "1048", "-", "="], got


@test("a CIE behind its FDE")
def behind(folder):
    f = Frames(E)
    f.fde(0x1C, 0x1010, 0x10)
    f.cie()
    one(folder, f, "F 0 1c 1010 1020 - = 19 1c 0", 'C 1c 1 1 -8 10 8 0 "zR" 0/ff/ff - z.... 2d 30 0')


@test("terminators in the middle and at the end")
def terminators(folder):
    f = Frames(E)
    f.fde(f.cie(encoding=UDATA4), 0x1010, 0x10, UDATA4)
    f.end()
    f.fde(0, 0x1040, 8, UDATA4)
    f.end()
    got = [line.split()[1:7] for line in entries_of(folder, f.elf()) if line[0] == "F"]
    assert got == [["14", "0", "1010", "1020", "-", "="], ["2c", "0", "1040", "1048", "-", "="]], got


@test("where the instructions start behind an unknown letter without 'z' is unknown")
def unknown_without_size(folder):
    f = Frames(E)
    f.fde(f.cie("X", instructions=DEF_CFA), 0x1010, 0x10, augmented=False)
    got = entries_of(folder, f.elf())
    assert got[0].split()[11] == "....?" and got[0].endswith(" -"), got
    assert got[1].split()[3:7] == ["1010", "1020", "-", "="], got


@test("an augmentation longer than its FDE leaves the bounds")
def damaged(folder):
    f = Frames(E)
    f.fde(f.cie(encoding=UDATA4), 0x1010, 0x10, UDATA4, augmented=False, instructions=b"\x7f")
    got = entries_of(folder, f.elf())[1].split()
    assert got[3:7] == ["1010", "1020", "?", "="], got


def two_sections(eh_ranges, debug_ranges, table=None, **options):
    """.eh_frame and .debug_frame; @table: the starts in .eh_frame_hdr, whose @options header() has."""
    eh, debug = Frames(E), Frames(E, eh=False)
    cie = eh.cie()
    for low, high in eh_ranges:
        eh.fde(cie, low, high - low)
    cie = debug.cie("", version=4)
    for low, high in debug_ranges:
        debug.fde(cie, low, high - low)
    elf = eh.elf()
    elf.section(".debug_frame", debug.out.bytes)
    if table is not None:
        elf.section(".eh_frame_hdr", header(E, eh, table, **options), flags=SHF_ALLOC, addr=EH_HDR, align=4)
    return elf


A, B, C = (0x1010, 0x1020), (0x1040, 0x1048), (0x1080, 0x10C0)


def found(folder, elf):
    return [(int(line.split()[3], 16), line.split()[6]) for line in entries_of(folder, elf) if line[0] == "F"]


@test(".eh_frame and .debug_frame together: what one lacks is found in the other, and .eh_frame comes first")
def both(folder):
    want = [(A[0], "="), (B[0], "="), (B[0], "~"), (C[0], "=")]
    assert found(folder, two_sections([A, B], [B, C])) == want
    assert found(folder, two_sections([A, B], [B, C], table=[A[0], B[0]])) == want


@test("a table of .eh_frame_hdr that lacks FDEs, is not sorted, leads nowhere or is another section's hides none")
def unsound_header(folder):
    want = [(A[0], "="), (B[0], "="), (C[0], "="), (C[0], "~")]
    for table in ([], [A[0]], [B[0]], [B[0], C[0]], [C[0], B[0], A[0]]):
        assert found(folder, two_sections([A, B, C], [C], table=table)) == want, table
    for options in ({"section": EH_FRAME + 8}, {"encodings": (PCREL | SDATA4, UDATA4, ABSPTR)}):
        assert found(folder, two_sections([A, B, C], [C], table=[A[0], B[0], C[0]], **options)) == want, options


@test("where FDEs overlap, the last one to start that covers the address holds")
def overlapping(folder):
    outer, middle, inner = (0x1010, 0x1080), (0x1020, 0x1060), (0x1030, 0x1040)
    # By first and last address; the outer ones end behind those that start later.
    want = [(outer[0], "="), (middle[0], "="), (inner[0], "=")]
    assert found(folder, two_sections([outer, middle, inner], [])) == want
    assert found(folder, two_sections([outer, middle, inner], [], table=[outer[0], middle[0], inner[0]])) == want
    assert found(folder, two_sections([A, (A[0], A[1] + 8)], [])) == [(A[0], "~"), (A[0], "=")]
    covered = (0x1010, 0x1040)  # its last address is in the one that starts later
    assert found(folder, two_sections([covered, (0x1030, 0x1048)], [])) == [(covered[0], "~"), (0x1030, "=")]


def numbered(frames, cie, ranges, first):
    """An FDE for each range, with CFA offsets of its own: 16 * number, and 8 more from the fifth byte on."""
    for number, (low, high) in enumerate(ranges, first):
        later = b"\x44\x0e" + uleb(16 * number + 8) if high - low > 4 else b""
        frames.fde(cie, low, high - low, instructions=b"\x0e" + uleb(16 * number) + later)


def offset_at(svma, ranges, first):
    """What the last one to start of those that cover @svma says there; None if there is none."""
    covering = [(low, number) for number, (low, high) in enumerate(ranges, first) if low <= svma < high]
    return 16 * max(covering)[1] + 8 * (svma >= max(covering)[0] + 4) if covering else None


def rules_of(folder, elf):
    """{svma: CFA offset} of each byte of code, as the table of rules has it."""
    path = os.path.join(folder, "main")
    with open(path, "wb") as f:
        f.write(elf.build())
    found = {}
    for row in ask.records_of(ask.run(ask.FATHOM, "stack", "--rules", "--json", path)):
        register, offset = row["cfa"].split("+")
        assert register == "rsp" and row["ra"] == "c-8", row
        found |= dict.fromkeys(range(int(row["low"], 16), int(row["high"], 16)), int(offset))
    return found


@test("where FDEs overlap, the table of rules says of each address what holds there, of both sections")
def overlapping_rules(folder):
    rng = random.Random(4711)
    shared = 0
    for i in range(150):
        sections = []
        for most in ((8, 8), (8, 0), (0, 8), (40, 3))[i % 4]:
            starts = [rng.randrange(0x1000, 0x10F0) for _ in range(rng.randint(min(most, 1), most))]
            sections.append([(low, low + rng.randint(1, min(0x80, 0x1100 - low))) for low in starts])
        eh, debug = Frames(E), Frames(E, eh=False)
        numbered(eh, eh.cie(instructions=DEF_CFA), sections[0], 1)
        numbered(debug, debug.cie("", version=4, instructions=DEF_CFA), sections[1], 100)
        elf = eh.elf()
        elf.section(".debug_frame", debug.out.bytes)
        want = {}
        for svma in range(0x1000, 0x1100):
            by_eh, by_debug = offset_at(svma, sections[0], 1), offset_at(svma, sections[1], 100)
            shared += by_eh is not None and by_debug is not None
            offset = by_debug if by_eh is None else by_eh
            if offset is not None:
                want[svma] = offset
        got = rules_of(folder, elf)
        assert got == want, (sections, {hex(at): (got.get(at), want.get(at)) for at in range(0x1000, 0x1100)
                                        if got.get(at) != want.get(at)})
    assert shared > 1000, shared


@test("more FDEs than the limit over one address")
def overlap_limit(folder):
    for n, last in ((64, "="), (65, "!")):
        ranges = [(0x1000, 0x1100)] + [(0x1000 + i, 0x10F0 - i) for i in range(1, n)]
        got = found(folder, two_sections(ranges, []))
        assert got[0] == (0x1000, last) and all(how == "=" for _, how in got[1:]), got


@test(".debug_frame: what a linker dropped is not taken for what covers its address")
def dropped(folder):
    assert found(folder, two_sections([], [(0, 0x1100), A, B])) == [(0, "d"), (A[0], "="), (B[0], "=")]
    assert found(folder, two_sections([C], [(0, 0x1100), A])) == [(C[0], "="), (0, "d"), (A[0], "=")]


@test("FDEs that are not sorted, and one without code")
def unsorted(folder):
    f = Frames(E)
    cie = f.cie()
    for low, high in (C, A, (0x1030, 0x1030), B):
        f.fde(cie, low, high - low)
    assert found(folder, f.elf()) == [(C[0], "="), (A[0], "="), (0x1030, "0"), (B[0], "=")]


SOURCE = r"""
extern "C" int may_throw(int);
struct guard { ~guard(); };
int kept(int x) { guard g; return may_throw(x) + 1; }
int caught(int x) { try { return may_throw(x); } catch (...) { return 1; } }
static int plain(int x) { return x * 3; }
int main(int argc, char **) { return caught(argc) + kept(argc) + plain(argc); }
"""
UNIT = ["-g", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions", "-DPLAIN"]
DEBUG_SOURCE = "int first(int x) { return x + 1; } int second(int x) { return first(x) * first(x + 2); }\n"
BUILDS = {  # name: (compiler and options, source)
    "x86-64": (["g++", "-O2"], SOURCE),
    "x86-64, a section for each function": (["g++", "-O2", "-ffunction-sections"], SOURCE),
    "i686": (["i686-linux-gnu-g++", "-O2"], SOURCE),
    "aarch64": (["aarch64-linux-gnu-g++", "-O2"], SOURCE),
    "aarch64, signed with key B": (["aarch64-linux-gnu-g++", "-O2", "-mbranch-protection=pac-ret+b-key"], SOURCE),
    "clang": (["clang++", "-O2"], SOURCE),
    "riscv64": (["clang++", "--target=riscv64-linux-gnu", "-O2"], SOURCE),
    "s390x": (["clang++", "--target=s390x-linux-gnu", "-O2"], SOURCE),
    "powerpc64": (["clang++", "--target=powerpc64-linux-gnu", "-O2"], SOURCE),
    "powerpc": (["clang++", "--target=powerpc-linux-gnu", "-O2"], SOURCE),
    "sparc64": (["clang++", "--target=sparcv9-linux-gnu", "-O2"], SOURCE),
    "loongarch64": (["clang++", "--target=loongarch64-linux-gnu", "-mno-relax", "-O2"], SOURCE),
    ".debug_frame": (["g++", *UNIT], DEBUG_SOURCE),
    ".debug_frame, compressed": (["g++", *UNIT, "-gz"], DEBUG_SOURCE),
    ".debug_frame, 64-bit DWARF": (["g++", *UNIT, "-gdwarf64"], DEBUG_SOURCE),
    ".debug_frame, clang": (["clang++", *UNIT, "-gdwarf-4"], DEBUG_SOURCE),
    ".debug_frame, i686": (["i686-linux-gnu-g++", *UNIT], DEBUG_SOURCE),
    ".debug_frame, aarch64": (["aarch64-linux-gnu-g++", *UNIT], DEBUG_SOURCE),
}


def compare(path, least):
    """Every entry is what readelf says, and each FDE is found by its addresses."""
    o = cfi.Outcome([*WRAPPER, PROGRAM], path)
    assert not o.wrong, o.wrong
    assert o.fdes >= least, f"{o.fdes} FDEs, at least {least} expected"
    return o


def compile_to(folder, command, source):
    path = os.path.join(folder, "a.o")
    with open(os.path.join(folder, "a.cc"), "w", encoding="ascii") as f:
        f.write(source)
    ask.run(*command, "-c", "-o", path, "a.cc", cwd=folder)
    return path


for _name, (_command, _source) in BUILDS.items():
    @test(f"a relocatable file is what readelf says: {_name}")
    def built(folder, command=_command, source=_source):
        o = compare(compile_to(folder, command, source), 2)
        if source == SOURCE:
            assert o.lsdas >= 2 and o.letters["zPLR"] + o.letters["zPLRB"] == 1, (o.lsdas, o.letters)


@test("the comparison with readelf sees each field that is changed")
def comparison(folder):
    path = compile_to(folder, ["g++", "-O2"], SOURCE)
    frames = " ".join([*WRAPPER, PROGRAM])
    for change in ("s/^\\(C 0 1 \\)1/\\12/", "s/ -8 10 8 0/ -8 11 8 0/", "s/zPLR/zPR/", "s,/1b/9b,/1b/1b,", "s/ = / ! /",
                   "s/^\\(F .* \\)0 =/\\11 =/", "/^F/d", "/^C/d", "s/c$/d/"):
        o = cfi.Outcome(["sh", "-c", f"{frames} $0 | sed '{change}'"], path)
        assert o.wrong, change


@test("a relocatable file of several .eh_frame sections is what readelf says")
def several(folder):
    path = compile_to(folder, ["g++", "-O2"], SOURCE)
    other = os.path.join(folder, "b.o")
    ask.run("gcc", "-O2", "-x", "c", "-c", "-o", other, "-", input=DEBUG_SOURCE)
    merged = os.path.join(folder, "merged.o")
    ask.run("ld", "-r", "--unique=.eh_frame", "-o", merged, path, other)
    lines = frames_of(merged)
    assert sum(line.startswith("section .eh_frame ") for line in lines) == 2, lines
    compare(merged, 5)


for _target in ("mips", "mipsel", "mips64", "mips64el"):
    @test(f"a linked and a relocatable file of MIPS: {_target}")
    def mips(folder, target=_target):
        path = compile_to(folder, ["clang++", f"--target={target}-linux-gnu", "-O2"], SOURCE)
        # readelf does not know R_MIPS_PC32: of the relocatable file, the symbols are the truth.
        sizes = [line.split() for line in ask.run("nm", "-S", path).splitlines()]
        want = sorted((int(s[0], 16), int(s[0], 16) + int(s[1], 16), "=") for s in sizes if len(s) == 4 and s[2] == "T")
        fdes = [line.split() for line in frames_of(path) if line[0] == "F"]
        assert len(want) == 3 and sorted((int(f[3], 16), int(f[4], 16), f[6]) for f in fdes) == want, fdes
        linked = os.path.join(folder, "linked")
        ask.run("ld.lld", "-shared", "--eh-frame-hdr", "-o", linked, path)
        compare(linked, 3)


@test("a file without section headers: .eh_frame ends where its terminator stands")
def headerless(folder):
    path = os.path.join(folder, "a.so")
    ask.run("g++", "-O2", "-shared", "-fPIC", "-x", "c++", "-o", path, "-", input=SOURCE)
    want = frames_of(path)
    with open(path, "r+b") as f:
        for at, size in ((0x28, 8), (0x3C, 4)):  # e_shoff; e_shnum and e_shstrndx
            f.seek(at)
            f.write(bytes(size))
    got = frames_of(path)
    assert got[2:] == want[2:] and len(got) > 4, "\n".join(["got", *got, "wanted", *want])


LIB = "/usr/lib/x86_64-linux-gnu"
CORPORA = {f"{LIB}/libc.so.6": 3000, f"{LIB}/libstdc++.so.6": 4000, f"{LIB}/libm.so.6": 500, f"{LIB}/libgcc_s.so.1": 100,
           f"{LIB}/ld-linux-x86-64.so.2": 200, f"{LIB}/libz.so.1": 100, os.path.realpath(toolchain.newest(f"{LIB}/libcapstone.so.?")): 500,
           f"{LIB}/crt1.o": 1, f"{LIB}/Scrt1.o": 1, "/usr/bin/perl": 2000, "/usr/bin/bash": 1000,
           "/usr/bin/python3": 9000, "/usr/aarch64-linux-gnu/lib/libc.so.6": 2000, "/usr/i686-linux-gnu/lib/libc.so.6": 2000,
           os.path.join(os.environ["BUILD"], "src", "libfathom.so"): 1000}
for _path, _least in CORPORA.items():
    @test(f"a linked file is what readelf says: {_path.replace(os.environ['BUILD'], 'BUILD')}")
    def installed(_, path=_path, least=_least):
        compare(path, least)


sys.exit(SUITE.run())
