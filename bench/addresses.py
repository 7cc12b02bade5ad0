# SPDX-License-Identifier: MIT
"""Questions: random addresses of functions, and the tools that are asked for them."""
import os
import random
import re
import subprocess

from measure import Tool

LLVM = "llvm-symbolizer-19"
EMPTY_LINE = r"^\n"  # ends each answer


def functions_of(path):
    out = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, errors="replace", check=False).stdout
    found = []
    for line in out.splitlines():
        f = line.split()
        if len(f) >= 8 and f[3] in ("FUNC", "IFUNC") and f[6] not in ("UND", "ABS") and int(f[2], 0):
            found.append((int(f[1], 16), int(f[2], 0)))
    return found


def text_of(path):
    """The start and size of .text."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    return tuple(int(n, 16) for n in re.search(r" \.text +\w+ +(\w+) \w+ (\w+)", out).groups())


def address_file(folder, name, symbols, n, seed):
    """A file of @n random addresses of @symbols, [(start, size)], a line each."""
    path = os.path.join(folder, f"{name}-{n}")
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(n):
            start, size = rng.choice(symbols)
            f.write(f"{start + rng.randrange(size):#x}\n")
    return path


def one_address(path):
    with open(path, encoding="ascii") as f:
        return f.readline().strip()


def fathom(command, path, n, *options):
    """`fathom addr` for @n addresses from a stream; some may have no name."""
    return Tool("fathom", [command, "addr", *options, path], EMPTY_LINE, (0, 1), n)


def llvm(path, n, *options):
    return Tool(LLVM, [LLVM, *options, "-e", path], EMPTY_LINE, expect=n)


def addr2line(path, n, options="-afi"):
    return Tool("addr2line", ["addr2line", options, "-e", path], r"^0x", expect=n)


def eu_addr2line(path, n, *options):
    return Tool("eu-addr2line", ["eu-addr2line", "-a", *options, "-e", path], r"^0x", expect=n)
