# SPDX-License-Identifier: MIT
"""Annotations: the instructions and source lines of functions of a profile, with their weights."""
from typing import NamedTuple

from fathom._answers import Rows
from fathom._fathom import ffi, lib
from fathom._library import flags, options_of, owned, path_bytes, paths_of, query_bytes, text, word, words
from fathom._report import ReportSums, report_options

ORIGINS = words("fathom_text_origin", lib.fathom_text_origin_name)


def annotation_options(query, limit, *, intel, demangle, instructions, source, source_dirs, sysroot, debug_dirs, **filters):
    """struct fathom_annotation_options, and what it points to."""
    asked = ffi.NULL if query is None else ffi.new("char[]", query_bytes(query))
    root = ffi.NULL if sysroot is None else ffi.new("char[]", path_bytes(sysroot))
    sources, debug, chosen = paths_of(source_dirs), paths_of(debug_dirs), report_options(**filters)
    bits = flags(ANNOTATE_INTEL=intel, ANNOTATE_NO_DEMANGLE=not demangle, ANNOTATE_NO_INSTRUCTIONS=not instructions,
                 ANNOTATE_NO_SOURCE=not source)
    options = options_of("struct fathom_annotation_options", flags=bits, limit=limit or 0xffffffff, query=asked, filters=chosen[0],
                         source_dirs=sources[0], sysroot=root, debug_dirs=debug[0])
    return options, (asked, root, sources, debug, chosen)


def index_of(number):
    """An index of a struct; None: it refers to nothing."""
    return None if number == 0xffffffff else number


def weights_of(w):
    return w.self, w.inlined, w.total, w.self_samples, w.inlined_samples, w.total_samples


class AnnotatedLine(NamedTuple):
    """A source line, as `fathom report --annotate --json` names its values."""
    file: str
    line: int
    inlined_function: "str | None"
    text: "str | None"
    has_code: bool
    self: int
    inlined: int
    total: int
    self_samples: int
    inlined_samples: int
    total_samples: int
    source_file: "str | None"
    source_origin: "str | None"
    source_proven: bool
    source_newer: bool
    source_reason: "str | None"


class AnnotatedLines(Rows):
    """The lines of a function: its own by file and number, then those of functions that are inlined into it."""
    __slots__ = ("_lines",)

    def __init__(self, owner, lines, n):
        super().__init__(owner, n)
        self._lines = lines

    def _row(self, i):
        line = self._lines[i]
        f, is_there = line.file, bool(line.text)
        return AnnotatedLine(text(f.path), line.line, text(line.function), text(line.text), bool(line.has_code), *weights_of(line.weight),
                             text(f.found) if is_there else None, word(ORIGINS, f.origin) if is_there else None,
                             is_there and bool(f.is_proven), is_there and bool(f.is_newer), None if is_there else text(f.why))


class AnnotatedCode(NamedTuple):
    """A piece of code that a function is or, if inlined_here, is a part of. elsewhere: weight at none of its instructions."""
    name: "str | None"
    module: "str | None"
    address: int
    size: "int | None"
    inlined_here: bool
    first: int
    instructions: int
    elsewhere: int
    reason: "str | None"


class AnnotatedInstruction(NamedTuple):
    """An instruction. jump, line and inlined_line are indexes: of the instruction that it jumps to, of the function's own line, and
    of the line of what is inlined there."""
    code: int
    address: int
    bytes: bytes
    text: str
    target: "int | None"
    jump: "int | None"
    line: "int | None"
    inlined_line: "int | None"
    outside: bool
    self: int
    inlined: int
    total: int
    self_samples: int
    inlined_samples: int
    total_samples: int


class AnnotatedInstructions(Rows):
    """The instructions of all pieces of code of a function."""
    __slots__ = ("_instructions",)

    def __init__(self, owner, instructions, n):
        super().__init__(owner, n)
        self._instructions = instructions

    def _row(self, i):
        at = self._instructions[i]
        return AnnotatedInstruction(at.code, at.address, ffi.buffer(at.bytes, at.size)[:], text(at.text), at.target or None,
                                    index_of(at.jump), index_of(at.line), index_of(at.inlined_line), bool(at.is_outside),
                                    *weights_of(at.weight))


class AnnotatedFunction(NamedTuple):
    """A function with its code, lines and instructions. self and inlined are weights of samples in it and in what is inlined into it,
    total that of all whose stack has it; elsewhere and no_line are at none of its instructions, and without a line."""
    name: "str | None"
    linkage_name: "str | None"
    module: "str | None"
    self: int
    inlined: int
    total: int
    self_samples: int
    inlined_samples: int
    total_samples: int
    elsewhere: int
    no_line: int
    reason: "str | None"
    code: "list[AnnotatedCode]"
    lines: AnnotatedLines
    instructions: AnnotatedInstructions


def code_of(c):
    return AnnotatedCode(text(c.name), text(c.module), c.start, c.size or None, bool(c.is_inlined_here), c.first, c.n,
                         c.elsewhere.self + c.elsewhere.inlined, text(c.why))


class Annotation(Rows):
    """Functions of a profile, those of the highest self weight first. left_out: how many more there are. It does not need the
    profile any more."""
    __slots__ = ("_functions", "left_out", "sums")

    def __init__(self, pointer):
        owner = owned(pointer, lib.fathom_annotation_free)
        n = ffi.new("size_t *")
        self._functions = lib.fathom_annotation_functions(owner, n)
        super().__init__(owner, n[0])
        self.left_out = lib.fathom_annotation_left_out(owner)
        s = lib.fathom_annotation_get_sums(owner)
        self.sums = ReportSums(s.weight, s.shown, s.hidden, s.unsampled, s.n_samples, s.n_stacks, s.n_whole)

    def _row(self, i):
        f = self._functions[i]
        name = text(f.name)
        return AnnotatedFunction(None if name == "??" else name, text(f.linkage_name), text(f.module), *weights_of(f.weight),
                                 f.elsewhere.self + f.elsewhere.inlined, f.no_line.self + f.no_line.inlined, text(f.why),
                                 [code_of(f.codes[k]) for k in range(f.n_codes)], AnnotatedLines(self._owner, f.lines, f.n_lines),
                                 AnnotatedInstructions(self._owner, f.instructions, f.n_instructions))
