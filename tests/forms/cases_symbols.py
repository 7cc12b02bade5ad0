# SPDX-License-Identifier: MIT
"""Symbols (gABI, chapter 4): which one names an address, by fathom's own rule (docs of addr). Few
addresses are answered by a pass over the table, many from an index: they must agree."""
import random

from case import ENCODINGS, TEXT, TEXT_END, Built, case
from elfasm import (SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_NOTYPE, STT_OBJECT,
                    Elf)

PLAIN = ENCODINGS[0]


def named(symbol, offset=0):
    return {"symbol": symbol, "offset": offset}


NAMELESS = {"symbol": None, "reason": "no-symbols"}


@case("symbols at the end of the address space", llvm=None)
def _top():
    elf = Elf()
    kernel, top = 0xffffffff81000000, 0xffffffffff600000
    for number, start in enumerate((kernel, top), 1):
        elf.text(start, 0x1000, name=f".text{number}")
        for i in range(4):
            elf.symbol(f"f{number}{i}", start + 0x10 * i, 0x10, section=number)
    return Built(elf, {start + 0x10 * i + 4: named(f"f{number}{i}", 4)
                       for number, start in enumerate((kernel, top), 1) for i in range(4)})


@case("a label inside a function ends with it", llvm=None)
def _label_at_the_end(e=PLAIN):
    elf = e.elf()
    elf.symbol("f", TEXT, 0x12)
    elf.symbol("label", TEXT + 0x10, type=STT_NOTYPE, bind=STB_LOCAL)
    elf.symbol("g", TEXT + 0x40, 0x10)
    return Built(elf, {TEXT + 0x11: named("f", 0x11), TEXT + 0x12: NAMELESS, TEXT + 0x3f: NAMELESS,
                       TEXT + 0x40: named("g")})


@case("a label at the end of a function is none inside it", llvm=None)
def _label_behind(e=PLAIN):
    elf = e.elf()
    elf.symbol("f", TEXT, 0x10)
    elf.symbol("label", TEXT + 0x10, type=STT_NOTYPE, bind=STB_LOCAL)
    elf.symbol("g", TEXT + 0x40, 0x10)
    return Built(elf, {TEXT + 0xf: named("f", 0xf), TEXT + 0x12: named("label", 2),
                       TEXT + 0x3f: named("label", 0x2f)})


# Haskell's data and assembly's has no sizes: it reaches to the next symbol, as gdb has it.
@case("a variable without a size", encodings=ENCODINGS, llvm=None)
def _sizeless_data(e):
    elf = e.elf()
    data, more = 0x2000, 0x2080
    for low, name in ((data, ".data"), (more, ".data.more")):
        elf.section(name, b"\0" * 0x80, flags=SHF_ALLOC | SHF_WRITE, addr=low, align=16)
    number = len(elf.sections) - 1
    elf.symbol("closure", data + 8, type=STT_OBJECT, section=number)
    elf.symbol("sized", data + 0x20, 8, type=STT_OBJECT, section=number)
    elf.symbol("label", data + 0x40, type=STT_NOTYPE, bind=STB_LOCAL, section=number)
    elf.symbol("label_in_sized", data + 0x24, type=STT_NOTYPE, bind=STB_LOCAL, section=number)
    elf.symbol("last", more + 0x78, type=STT_OBJECT, section=number + 1)
    return Built(elf, {data: NAMELESS, data + 8: named("closure"), data + 9: named("closure", 1),
                       data + 0x1f: named("closure", 0x17), data + 0x20: named("sized"),
                       data + 0x24: named("sized", 4), data + 0x27: named("sized", 7), data + 0x28: NAMELESS,
                       data + 0x40: named("label"), data + 0x7f: named("label", 0x3f), more: NAMELESS,
                       more + 0x78: named("last"), more + 0x7f: named("last", 7)})


# jne over a ret, ret; a hidden function: syscall, ret; then jmp to itself, and another hidden one. As assemblers leave them.
@case("a function without a size ends where its code does", llvm=None)
def _sizeless_code():
    elf = Elf()
    elf.section(".text", bytes.fromhex("7501c390c3 0f05c3 ebfe c3"), flags=SHF_ALLOC | SHF_EXECINSTR, addr=TEXT, align=16)
    elf.symbol("f", TEXT, type=STT_NOTYPE)
    elf.symbol("g", TEXT + 8, type=STT_NOTYPE)
    return Built(elf, {TEXT: named("f"), TEXT + 2: named("f", 2), TEXT + 4: named("f", 4), TEXT + 5: NAMELESS, TEXT + 7: NAMELESS,
                       TEXT + 8: named("g"), TEXT + 9: named("g", 1), TEXT + 10: NAMELESS})


@case("a symbol that is larger than its section", llvm=None)
def _beyond_section():
    elf = Elf()
    elf.text(TEXT, 0x100, name=".text1")
    elf.text(TEXT + 0x100, 0x100, name=".text2")
    elf.symbol("f", TEXT, 0x180)
    elf.symbol("g", TEXT + 0x180, 0x10, section=2)
    return Built(elf, {TEXT + 0xff: named("f", 0xff), TEXT + 0x100: NAMELESS, TEXT + 0x17f: NAMELESS,
                       TEXT + 0x180: named("g")})


@case("a function's padding after a label that a longer function covers", llvm=None)
def _label_before_the_end(e=PLAIN):
    elf = e.elf()
    elf.symbol("f", TEXT, 0x20)
    elf.symbol("label", TEXT + 8, type=STT_NOTYPE, bind=STB_LOCAL)
    elf.symbol("part", TEXT + 0x10, 8)
    return Built(elf, {TEXT + 0x17: named("part", 7), TEXT + 0x18: named("f", 0x18),
                       TEXT + 0x20: NAMELESS})


# Preferred is the name with fewer underscores: the shorter the symbol, the more it is preferred.
@case("symbols of many sizes that start together", llvm=None)
def _staircase(e=PLAIN):
    elf = e.elf()
    for size in (0x30, 0x10, 0x20, 0x40):
        elf.symbol("_" * (size >> 4) + "f", TEXT, size)
    elf.symbol("______never", TEXT, 0x18)
    return Built(elf, {TEXT + off: named("_" * ((off >> 4) + 1) + "f", off)
                       for off in (0, 0xf, 0x10, 0x1f, 0x20, 0x2f, 0x30, 0x3f)} | {TEXT + 0x40: NAMELESS})


# Each is preferred to all longer ones. Looking at all of them for each would take minutes.
@case("fifty thousand symbols of different sizes that start together", llvm=None)
def _high_staircase():
    count = 50000
    elf = Elf()
    elf.text(TEXT, count + 0x10)
    for size in range(1, count + 1):
        elf.symbol(f"f{size:05}", TEXT, size)
    return Built(elf, {TEXT + off: named(f"f{off + 1:05}", off) for off in (0, 1, 777, 40000, count - 1)}
                 | {TEXT + count: NAMELESS})


def _preference(symbol):
    name, _, size, type, bind = symbol
    return (type == STT_NOTYPE, not size, bind == STB_LOCAL, len(name) - len(name.lstrip("_")),
            bind == STB_WEAK, len(name), name)


def _by_rule(symbols, address):
    """The rule once more: of what covers the address, what starts last; else what starts last of all, if
    nothing that says where it ends covers its start."""
    covering = [s for s in symbols if s[1] <= address < s[1] + s[2]]
    started = covering or [s for s in symbols if s[1] <= address]
    last = [s for s in started if s[1] == max(s[1] for s in started)]
    if not last or not covering and any(s[1] <= last[0][1] < s[1] + s[2] for s in symbols):
        return NAMELESS
    best = min(last, key=_preference)
    return named(best[0], address - best[1])


# Few starts and ends: most tables have symbols that start together, end together, nest and overlap.
for _seed in range(24):
    @case(f"symbols at random, {_seed}", llvm=None, seed=_seed)
    def _random(seed):
        rng = random.Random(seed)
        elf = PLAIN.elf()
        symbols = []
        for i in range(rng.choice((3, 8, 20))):
            symbols.append(("_" * rng.randrange(3) + f"s{i}", TEXT + 8 * rng.randrange(12),
                            rng.choice((0, 0, 4, 8, 16, 24, 80)), rng.choice((STT_FUNC, STT_NOTYPE)),
                            rng.choice((STB_LOCAL, STB_GLOBAL, STB_WEAK))))
            name, value, size, type, bind = symbols[-1]
            elf.symbol(name, value, size, type=type, bind=bind)
        # Every other table is asked for few addresses, which takes no index.
        asked = range(TEXT, TEXT_END, 4) if seed % 2 else [TEXT + rng.randrange(0x80) for _ in range(4)]
        return Built(elf, {address: _by_rule(symbols, address) for address in asked},
                     times=(1,) if not seed % 2 else (1, 20))
