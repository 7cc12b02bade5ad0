# SPDX-License-Identifier: MIT
"""Writes what programs say of the code that they make: jitdumps, and symbol files for GDB's interface."""
import struct

import elfasm

from ask import run

MAGIC = 0x4a695444
LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)


def dump_header(pid=1, machine=elfasm.EM_X86_64):
    return struct.pack("<IIIIIIQQ", MAGIC, 1, 40, machine, 0, pid, 1, 0)


def record(id, body, time=0):
    return struct.pack("<IIQ", id, 16 + len(body), time) + body


def load(address, size, index, name, time=0, pid=1):
    body = struct.pack("<IIQQQQ", pid, pid, address, address, size, index) + name.encode() + b"\0"
    return record(LOAD, body + b"\x90" * size, time)


def move(old, new, size, index, time=0):
    return record(MOVE, struct.pack("<IIQQQQQ", 1, 1, new, old, new, size, index), time)


def lines(address, entries):
    """@entries: (offset, line, file); the file None: as before."""
    body = [struct.pack("<QII", address + off, line, 0) + (b"\xff" if file is None else file.encode()) + b"\0"
            for off, line, file in entries]
    return record(DEBUG_INFO, struct.pack("<QQ", address, len(entries)) + b"".join(body))


def relocatable(address, functions, bits=64, machine=elfasm.EM_X86_64):
    """As LLVM, LuaJIT and V8 write them: sections say where they are, symbols count from there."""
    elf = elfasm.Elf(bits, False, machine, elfasm.ET_REL)
    elf.text(address, max(off + size for _, off, size in functions))
    for name, off, size in functions:
        elf.symbol(name, off, size)
    return elf.build()


def loaded(address, functions, type=elfasm.ET_DYN):
    """As CPython writes them: all addresses are where things are."""
    elf = elfasm.Elf(64, False, elfasm.EM_X86_64, type)
    elf.text(address, max(off + size for _, off, size in functions))
    for name, off, size in functions:
        elf.symbol(name, address + off, size)
    return elf.build()


def compiled(path, source, address, *options, compiler="gcc"):
    """The object file of @source, its code said to be at @address, its unwind tables 16 MB behind, as far as LLVM may
    place them: distances have 32 bits. Returns {function: (offset, size)}."""
    places = {b".text": address, b".eh_frame": address + (1 << 24)}
    run(compiler, "-c", "-g", "-O1", *options, "-o", path, source)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    is64 = data[4] == 2
    shoff, = struct.unpack_from("<Q" if is64 else "<I", data, 40 if is64 else 32)
    size, count, strings = struct.unpack_from("<HHH", data, 58 if is64 else 46)
    headers = [shoff + i * size for i in range(count)]
    names, = struct.unpack_from("<Q" if is64 else "<I", data, headers[strings] + (24 if is64 else 16))
    for header in headers:
        name = names + struct.unpack_from("<I", data, header)[0]
        place = places.get(bytes(data[name:data.index(b"\0", name)]))
        if place:
            struct.pack_into("<Q" if is64 else "<I", data, header + (16 if is64 else 12), place)
    with open(path, "wb") as file:
        file.write(data)
    found = {}
    for line in run("nm", "-S", path).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT":
            # binutils adds where the section says it is, or not, with its versions.
            found[words[3]] = (int(words[0], 16) % 4096, int(words[1], 16))
    return found
