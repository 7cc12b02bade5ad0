#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""foreign.py INCLUDE LIBRARY FILE NAME ADDRESS: asks the installed library through cffi, which reads the headers as they
are and loads the shared library: one batch of arrays as numpy has them, one address, one search. FILE has function NAME
at ADDRESS. Runs with the system's Python, for which Debian packages cffi."""
import array
import os
import sys

import cffi

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from build_ffi import declarations  # noqa: E402

include, library, path, name, address = sys.argv[1:]
address = int(address, 16)

ffi = cffi.FFI()
ffi.cdef(declarations(include))
lib = ffi.dlopen(library)


def made(call, kind, *arguments):
    """What @call writes to its out parameter of type @kind."""
    made_there = ffi.new(f"{kind} *")
    error = call(*arguments, made_there, ffi.NULL)
    assert error == lib.FATHOM_OK, error
    return made_there[0]


def text(pointer):
    return ffi.string(pointer).decode() if pointer else None


session = made(lib.fathom_create, "struct fathom *", ffi.NULL)
target = made(lib.fathom_target_open_file, "struct fathom_target *", session, path.encode(), ffi.NULL)

addresses = array.array("Q", [address, address + 1, address, 1])
kinds = array.array("B", [lib.FATHOM_PC_EXACT, lib.FATHOM_PC_EXACT, lib.FATHOM_PC_RETURN, lib.FATHOM_PC_EXACT])
answers = made(lib.fathom_symbolize, "struct fathom_answers *", target, ffi.NULL, ffi.from_buffer("uint64_t[]", addresses),
               ffi.from_buffer("uint8_t[]", kinds), len(addresses))
stride = ffi.new("size_t *")
first = ffi.cast("char *", lib.fathom_answers_array(answers, stride))
assert stride[0] == ffi.sizeof("struct fathom_answer"), "the struct that cffi reads is another"
seen = [ffi.cast("struct fathom_answer *", first + i * stride[0]) for i in range(len(addresses))]
assert [a.pc.address for a in seen] == list(addresses)
assert [a.pc.kind for a in seen] == list(kinds)
assert [text(a.symbol) for a in seen[:2]] == [name, name] and [a.offset for a in seen[:2]] == [0, 1]
assert text(seen[0].frame.function) == name and text(seen[0].frame.file).endswith(".c") and seen[0].frame.line
assert text(seen[2].symbol) != name and not seen[3].symbol
lib.fathom_answers_free(answers)

one = made(lib.fathom_lookup, "const struct fathom_answer *", target, {"address": address}, ffi.NULL)
assert text(one.symbol) == name and text(one.module.path) == path
lib.fathom_answer_free(one)

queries = [ffi.new("char[]", name.encode())]
matches = made(lib.fathom_find, "struct fathom_matches *", target, ffi.NULL, queries, 1)
assert lib.fathom_matches_get(matches, 0).address == address
lib.fathom_matches_free(matches)
# A session that is given up first.
lib.fathom_destroy(session)
lib.fathom_target_release(target)
