# SPDX-License-Identifier: MIT
"""Matches of a search, instructions, values: their rows."""
from typing import NamedTuple

from fathom._answers import Rows
from fathom._fathom import ffi, lib
from fathom._library import NO_ADDRESS, REASONS, SOURCES, owned, text, word, words

TABLES = words("fathom_table", lib.fathom_table_name)
# STT_ and STB_ of elf.h.
TYPES = {1: "object", 2: "func", 6: "tls", 10: "ifunc"}
BINDINGS = {0: "local", 1: "global", 2: "weak", 10: "unique"}
KINDS = {lib.FATHOM_MATCH_LINE: "line", lib.FATHOM_MATCH_INLINED: "inlined"}


class Match(NamedTuple):
    """One match of a query, as `fathom find --json` names its values; without a rank it says why there is none."""
    query: str
    name: "str | None"
    linkage_name: "str | None"
    address: "int | None"
    module: "str | None"
    module_address: "int | None"
    size: "int | None"
    type: "str | None"
    binding: "str | None"
    version: "str | None"
    default_version: "bool | None"
    table: "str | None"
    rank: "int | None"
    file: "str | None"
    line: "int | None"
    inlined_into: "str | None"
    source: "str | None"
    resolver: "int | None"
    tid: "int | None"
    reason: "str | None"


def _place_of(m):
    """The frame with the file and line of a match; NULL: none."""
    return m.frame.outer if m.frame and m.kind == lib.FATHOM_MATCH_INLINED else m.frame


def _match_of(m, query):
    found = m.rank != lib.FATHOM_NO_RANK
    is_symbol = m.kind == lib.FATHOM_MATCH_SYMBOL
    place = _place_of(m)
    return Match(
        query, text(m.name), text(m.linkage_name), m.address if m.flags & lib.FATHOM_MATCH_ADDRESS else None, text(m.module),
        m.module_address if found and m.module_address != NO_ADDRESS else None, m.size or None,
        KINDS.get(m.kind) or TYPES.get(m.type, "notype") if found else None, BINDINGS.get(m.binding) if found and is_symbol else None,
        text(m.version), bool(m.flags & lib.FATHOM_MATCH_DEFAULT_VERSION) if m.version else None, word(TABLES, m.table),
        m.rank if found else None, text(place.file) if place else None, place.line or None if place else None,
        text(place.function) if place and m.kind == lib.FATHOM_MATCH_INLINED else None, word(SOURCES, m.source), m.resolver or None,
        m.tid or None, word(REASONS, m.reason))


class Matches(Rows):
    """The matches of a search, sorted by query, name, rank and address."""
    __slots__ = ("_queries",)

    def __init__(self, pointer, queries):
        super().__init__(owned(pointer, lib.fathom_matches_free), lib.fathom_matches_count(pointer))
        self._queries = queries

    def _row(self, i):
        m = lib.fathom_matches_get(self._owner, i)
        return _match_of(m, self._queries[m.query])


class Instruction(NamedTuple):
    """One instruction, as `fathom disasm --json` names its values."""
    address: int
    bytes: bytes
    text: str
    target: "int | None"
    target_name: "str | None"
    file: "str | None"
    line: "int | None"


def _target_name(i):
    """NAME, NAME+0xOFFSET or, just before it, NAME-0xOFFSET."""
    name = text(i.target_name)
    offset = i.target_offset
    if name is None or not offset:
        return name
    return f"{name}-{2 ** 64 - offset:#x}" if offset >> 63 else f"{name}+{offset:#x}"


class Instructions(Rows):
    """Instructions in the order of their addresses. next is the address after the last one: where to go on if memory ended early."""
    __slots__ = ("next",)

    def __init__(self, pointer):
        super().__init__(owned(pointer, lib.fathom_disasm_free), lib.fathom_disasm_count(pointer))
        self.next = lib.fathom_disasm_next(pointer)

    def _row(self, i):
        i = lib.fathom_disasm_get(self._owner, i)
        file = text(i.frame.file) if i.frame else None
        return Instruction(i.address, ffi.buffer(i.bytes, i.size)[:], text(i.text, i.text_size),
                           i.target if i.flags & lib.FATHOM_INSTRUCTION_TARGET else None, _target_name(i), file,
                           i.frame.line or None if file is not None else None)


class Value(NamedTuple):
    """A value of a target's memory, or the reason why there is none: then address is that of the memory that could not be read."""
    value: "int | float | str | bytes | list | None"
    address: int
    reason: "str | None"
    is_cut: bool


_ITEMS = {lib.FATHOM_VALUE_UNSIGNED: "uint64_t *", lib.FATHOM_VALUE_POINTER: "uint64_t *", lib.FATHOM_VALUE_SIGNED: "int64_t *",
          lib.FATHOM_VALUE_FLOAT: "double *"}


def value_of(v, type_text):
    """The Value of a struct fathom_value; an array is a list, even of one item."""
    if v.reason:
        return Value(None, v.address, word(REASONS, v.reason), False)
    if v.kind in _ITEMS:
        items = ffi.unpack(ffi.cast(_ITEMS[v.kind], v.items), v.count)
        value = items if type_text.rstrip().endswith("]") else items[0]
    else:
        value = ffi.buffer(v.items, v.count)[:] if v.count else b""
        value = value.decode("utf-8", "surrogateescape") if v.kind == lib.FATHOM_VALUE_TEXT else value
    return Value(value, v.address, None, bool(v.is_cut))
