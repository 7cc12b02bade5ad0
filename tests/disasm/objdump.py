# SPDX-License-Identifier: MIT
"""objdump's and fathom's disassembly, as {address: text}, in one form: without names, which objdump prints
otherwise, and with addresses as objdump writes them."""
import re

import building
from ask import FATHOM, run

LINE = re.compile(r" *([0-9a-f]+):\t([^\t].*)")
COMMENT = re.compile(r"\s+(?:#|//) (.*)$")
SYMBOL = re.compile(r" <[^>]*(?:<[^>]*>[^>]*)*>$")
PREFIXES = r"(?:(?:bnd|notrack|addr32|data16|cs|ds|repz|repnz) )*"
BRANCH = re.compile(rf"^({PREFIXES}(?:j\w+(?:,p[nt])?|call\w*|loop\w*|xbegin\w*) +)0x([0-9a-f]+)$")


def gnu(tool, path, *options):
    """{address: (text, address in its comment or None)}"""
    found = {}
    for line in run(tool, "-d", "--no-show-raw-insn", *options, path, errors="replace").splitlines():
        match = LINE.match(line)
        if not match:
            continue
        text = match[2].rstrip()
        comment = COMMENT.search(text)
        address = None
        if comment:
            text = text[:comment.start()]
            number = re.match(r"([0-9a-f]+) <", comment[1])
            address = int(number[1], 16) if number else None
        found[int(match[1], 16)] = (SYMBOL.sub("", text).rstrip(), address)
    return found


def section(path, name=".text"):
    """(start, end) of a section"""
    found = building.section(path, name)
    return found.addr, found.addr + found.size


def ours(path, bounds, *options):
    """The same of fathom's text, whose form is checked on the way."""
    start, end = bounds
    found = {}
    for line in run(FATHOM, "disasm", "--no-lines", "--no-cache", *options, path, f"{start:#x}..{end:#x}").splitlines():
        match = re.match(r"  0x([0-9a-f]+)  (.*)", line)
        if not match:
            assert line.endswith(":"), line
            continue
        text = match[2]
        comment = COMMENT.search(text)
        address = None
        if comment:
            text = text[:comment.start()]
            number = re.match(r"0x([0-9a-f]+)(?: \(.*\))?(?:, 0x[0-9a-f]+ \(.*\))?$", comment[1])
            assert number, line
            address = int(number[1], 16)
        text = re.sub(r"( |,)(0x[0-9a-f]+) \(.*\)$", r"\1\2", text)
        found[int(match[1], 16)] = (BRANCH.sub(r"\1\2", text), address)
    return found


def differences(theirs, ours, classes):
    """Compares; {class: [(address, theirs, ours)]}, where @classes is {class: predicate(theirs, ours)}. Boundaries
    must be the same."""
    apart = sorted(set(theirs) ^ set(ours))
    assert not apart, f"{len(apart)} addresses start an instruction for one only, the first {apart[0]:#x}"
    found = {}
    for address, (text, comment) in theirs.items():
        own, own_comment = ours[address]
        if text == own and (comment is None or comment == own_comment):
            continue
        kind = next((name for name, fits in classes.items() if fits(text, own) and comment in (None, own_comment)), None)
        found.setdefault(kind, []).append((hex(address), text, comment, own, own_comment))
    return found
