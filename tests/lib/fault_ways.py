# SPDX-License-Identifier: MIT
"""How programs/deaths.c faults, and what is to be said of it."""
import os
import re

DEATHS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "deaths.c")

# Ways of faults, whose addresses deaths.c tells: the place, the access, words of the line.
FAULTS = {
    "null-read": ("null", "read", "read of 0x18 (null + 0x18)"),
    "null-write": ("null", "write", "write to 0x18 (null + 0x18)"),
    "null-add": ("null", None, "access to 0x18 (null + 0x18)"),
    "null-call": ("null", "execute", "jump to 0x0 (null)"),
    "unmapped": ("unmapped", "read", "read of ADDRESS (not mapped)"),
    "no-access": ("no-access", "read", "read of ADDRESS (no access permitted)"),
    "constant": ("not-writable", "write", "write to ADDRESS (no write permission: PATH + "),
    "data-call": ("not-executable", "execute", "jump to ADDRESS (no execute permission"),
    "cut-file": ("past-end", "read", "(no data there: the file was cut, or could not be read: FOLDER/cut + 0x2007)"),
    "other-guard": ("stack-guard", "write", "write to ADDRESS (below the stack of thread "),
    "stale-fault": ("null", "read", "read of 0x18 (null + 0x18)"),
}


def told(out, word):
    """The address that the program has told."""
    (text,) = re.findall(rf"^{word} (\S+)$", out, re.M)
    return 0 if text == "(nil)" else int(text, 16)
