# SPDX-License-Identifier: MIT
"""Answers: one for each address of a batch, as rows and as columns. Nothing is copied but what is asked for."""
from collections.abc import Sequence
from struct import calcsize
from typing import NamedTuple

from fathom._fathom import ffi, lib
from fathom._library import NO_ADDRESS, REASONS, SOURCES, call, owned, text, word


class Rows(Sequence):
    """A sequence whose rows are made when they are asked for."""
    __slots__ = ("_owner", "_n")

    def __init__(self, owner, n):
        self._owner, self._n = owner, n

    def _row(self, i):
        raise NotImplementedError

    def __len__(self):
        return self._n

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self._row(k) for k in range(*i.indices(self._n))]
        k = i.__index__()
        k += self._n if k < 0 else 0
        if not 0 <= k < self._n:
            raise IndexError(f"{type(self).__name__} index out of range")
        return self._row(k)

    def __iter__(self):
        return map(self._row, range(self._n))

    def __repr__(self):
        return f"<{type(self).__name__} of {self._n}>"


class Frame(NamedTuple):
    """One frame: an inlined call, or the function itself."""
    function: "str | None"
    linkage_name: "str | None"
    file: "str | None"
    line: "int | None"
    column: "int | None"
    discriminator: "int | None"
    inlined: bool


def frame_of(f):
    return Frame(text(f.function, f.function_size), text(f.linkage_name, f.linkage_size), text(f.file, f.file_size), f.line or None,
                 f.column or None, f.discriminator or None, bool(f.outer))


class Answer:
    """The answer for one address. Its values are read from the library's memory when they are asked for; None is what is not known."""
    __slots__ = ("_owner", "_answer")
    _fields: "tuple[str, ...]" = ("address", "module", "build_id", "module_address", "symbol", "linkage_name", "offset", "size", "source", "frames", "reason")

    def __init__(self, owner, answer):
        self._owner, self._answer = owner, answer

    @property
    def address(self):
        return self._answer.pc.address

    @property
    def module(self):
        module = self._answer.module
        return text(module.path) if module else None

    @property
    def build_id(self):
        module = self._answer.module
        return ffi.buffer(module.build_id, module.build_id_size)[:].hex() if module and module.build_id else None

    @property
    def module_address(self):
        address = self._answer.module_address
        return None if address == NO_ADDRESS else address

    @property
    def symbol(self):
        return text(self._answer.symbol, self._answer.symbol_size)

    @property
    def linkage_name(self):
        return text(self._answer.linkage_name, self._answer.linkage_size)

    @property
    def offset(self):
        return self._answer.offset if self._answer.symbol else None

    @property
    def size(self):
        return self._answer.size or None if self._answer.symbol else None

    @property
    def source(self):
        return word(SOURCES, self._answer.source)

    @property
    def reason(self):
        return word(REASONS, self._answer.reason)

    @property
    def frames(self):
        frames = []
        f = self._answer.frame
        if not f and self._answer.symbol:
            return [Frame(self.symbol, self.linkage_name, None, None, None, None, False)]
        while f:
            frames.append(frame_of(f))
            f = f.outer
        return frames

    def asdict(self):
        """All values, as `fathom addr --json` names them."""
        return {name: [f._asdict() for f in self.frames] if name == "frames" else getattr(self, name) for name in self._fields}

    def __eq__(self, other):
        return self.asdict() == other.asdict() if isinstance(other, Answer) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.asdict().items())})"


def answer_of_one(pointer):
    owner = owned(pointer, lib.fathom_answer_free)
    return Answer(owner, owner)


class TextColumn(Sequence):
    """A column of texts, dictionary-encoded: answer i has texts[codes[i]]. codes is a buffer; a code that is negative, or whose text
    is empty, means none."""
    __slots__ = ("codes", "texts")

    def __init__(self, codes, texts):
        self.codes, self.texts = codes, texts

    def _text(self, code):
        return self.texts[code] or None if 0 <= code < len(self.texts) else None

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self._text(code) for code in self.codes[i]]
        return self._text(self.codes[i])

    def __iter__(self):
        return map(self._text, self.codes)

    def __repr__(self):
        return f"<TextColumn of {len(self)}, {len(self.texts)} texts>"


def _view(kept, pointer, size, form):
    """A read-only view of memory that lives as long as the object @kept."""
    # The destructor does nothing; it holds the object.
    return memoryview(ffi.buffer(ffi.gc(pointer, lambda _, kept=kept: None), size)).toreadonly().cast(form)


def strided(kept, first, n, stride, offset, form):
    """A read-only column of numbers: a member of n structs that lie beside each other, as long as the object @kept lives."""
    if not n:
        return memoryview(b"").cast(form)
    size = calcsize(form)
    if offset % size or stride % size:
        # As where pointers have 32 bits: a copy.
        rows = ffi.buffer(ffi.cast("char *", first), n * stride)
        return memoryview(b"".join(rows[at:at + size] for at in range(offset, n * stride, stride))).cast(form)
    return _view(kept, ffi.cast("char *", first), n * stride, form)[offset // size::stride // size]


class Answers(Rows):
    """The answers to a batch, in its order: rows by index, and columns by name."""
    __slots__ = ("_first", "_stride", "_columns")
    _TEXTS = {"symbol": "SYMBOL", "linkage_name": "LINKAGE_NAME", "module": "MODULE", "build_id": "MODULE", "function": "FUNCTION",
              "file": "FILE"}

    def __init__(self, pointer):
        super().__init__(owned(pointer, lib.fathom_answers_free), lib.fathom_answers_count(pointer))
        stride = ffi.new("size_t *")
        self._first = ffi.cast("char *", lib.fathom_answers_array(pointer, stride))
        self._stride = stride[0]
        self._columns = {}

    def _row(self, i):
        return Answer(self._owner, ffi.cast("struct fathom_answer *", self._first + i * self._stride))

    def _member(self, name, form):
        """A column of numbers: where they are, in steps of the stride."""
        return strided(self._owner, self._first, self._n, self._stride, ffi.offsetof("struct fathom_answer", name), form)

    @property
    def address(self):
        # The address is the first member of pc.
        return self._member("pc", "Q")

    @property
    def module_address(self):
        return self._member("module_address", "Q")

    @property
    def offset(self):
        return self._member("offset", "Q")

    @property
    def size(self):
        return self._member("size", "Q")

    @property
    def source(self):
        return TextColumn(self._member("source", "B"), SOURCES)

    @property
    def reason(self):
        return TextColumn(self._member("reason", "B"), REASONS)

    def _numbers(self, count):
        """Room for a number of each answer, and a read-only view of it."""
        numbers = ffi.new("uint32_t[]", max(count, 1))
        return numbers, memoryview(ffi.buffer(numbers, 4 * count)).toreadonly()

    def _lines(self):
        if "line" not in self._columns:
            lines, line_view = self._numbers(self._n)
            columns, column_view = self._numbers(self._n)
            lib.fathom_answers_lines(self._owner, lines, columns)
            self._columns.update(line=line_view.cast("I"), column=column_view.cast("I"))

    @property
    def line(self):
        self._lines()
        return self._columns["line"]

    @property
    def column(self):
        self._lines()
        return self._columns["column"]

    def _encoded(self, name):
        """The codes of a column, and for each code a row that has it."""
        kind = self._TEXTS[name]
        if kind not in self._columns:
            codes, view = self._numbers(self._n)
            first, _ = self._numbers(self._n)
            n = ffi.new("size_t *")
            call(lib.fathom_answers_encode, self._owner, getattr(lib, f"FATHOM_COLUMN_{kind}"), codes, first, n)
            self._columns[kind] = view.cast("i"), [self._row(first[k]) for k in range(n[0])]
        return self._columns[kind]

    def _texts(self, name, text_of):
        if name not in self._columns:
            codes, rows = self._encoded(name)
            self._columns[name] = TextColumn(codes, [text_of(row) or "" for row in rows])
        return self._columns[name]

    @property
    def symbol(self):
        return self._texts("symbol", lambda row: row.symbol)

    @property
    def linkage_name(self):
        return self._texts("linkage_name", lambda row: row.linkage_name)

    @property
    def module(self):
        return self._texts("module", lambda row: row.module)

    @property
    def build_id(self):
        return self._texts("build_id", lambda row: row.build_id)

    @property
    def function(self):
        return self._texts("function", lambda row: row.frames[0].function)

    @property
    def file(self):
        return self._texts("file", lambda row: row.frames[0].file)
