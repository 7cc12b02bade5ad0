# SPDX-License-Identifier: MIT
"""What the tests of words share: files whose names are told."""
import os

import tap
from ask import run

SUITE = tap.Suite("words", "mount, and change its user")

# Names that could be numbers, and some that could not; each is three bytes of code.
NAMES = ["add", "dead", "abba", "FADE", "a", "beef123", "beef1234", "deadbeefdead", "cafe_1", "xyz", "eight_by"]

FUNCTION = """.globl {0}
.type {0},@function
{0}: nop
nop
ret
.size {0},3
"""


def assemble(folder, text, *options, name="named", start=0x1000):
    """Links @text at @start."""
    path = os.path.join(folder, name)
    with open(path + ".s", "w", encoding="utf-8") as f:
        f.write(text)
    run("gcc", "-c", path + ".s", "-o", path + ".o")
    run("ld", f"-Ttext={start:#x}", "-e", hex(start), *options, "-o", path, path + ".o")
    return path


def named(folder):
    """A file with NAMES, three bytes apart from 0x1000 on."""
    return assemble(folder, "".join(FUNCTION.format(n) for n in NAMES), name="named")


def many_symbols(folder, names, start=0x1000):
    text = "".join(f".globl {n}\n.type {n},@function\n{n}: .skip 16,0x90\n.size {n},16\n" for n in names)
    return assemble(folder, text, name=names[0], start=start)
