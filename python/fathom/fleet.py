# SPDX-License-Identifier: MIT
"""Rows of many machines: names for columns of build-ids and addresses, in workers of Dask, Spark, pandas or any queue.

    import fathom.fleet

    named = fathom.fleet.resolve(frame, offset="address", stores=["/net/indexes"])

Each process keeps one resolver for each choice of options, with the builds that rows have named open."""
import threading

from fathom._answers import Answer
from fathom._fathom import ffi, lib
from fathom._library import Handle, chosen, flags, made, options_of, owned, path_bytes, paths_of, process, text
from fathom._session import Session
from fathom._target import buffer, numbers_of

__all__ = ["COLUMNS", "Resolver", "resolve"]


# What an answer says of a row, by the name of the column. None is what is not known.
COLUMNS = {
    "function": lambda answer: _text_at(answer, "function") if answer._answer.frame else answer.symbol,
    "linkage_name": lambda answer: _text_at(answer, "linkage") if answer._answer.frame else answer.linkage_name,
    "file": lambda answer: _text_at(answer, "file") if answer._answer.frame else None,
    "line": lambda answer: answer._answer.frame.line or None if answer._answer.frame else None,
    # The functions that it is inlined into, the innermost first.
    "inlined_into": lambda answer: [frame.function for frame in answer.frames[1:]],
    "symbol": lambda answer: answer.symbol,
    "module_address": lambda answer: answer.module_address,
    "path": lambda answer: answer.module,
    "source": lambda answer: answer.source,
    "reason": lambda answer: answer.reason,
}
KINDS = {"exact": lib.FATHOM_PC_EXACT, "return": lib.FATHOM_PC_RETURN, 0: lib.FATHOM_PC_EXACT, 1: lib.FATHOM_PC_RETURN}
# A build-id that no file has: in place of what is none.
NO_BUILD = b"\0"


def _text_at(answer, name):
    """A text of the innermost frame of an answer that has frames."""
    f = answer._answer.frame
    if name == "linkage":
        return text(f.linkage_name, f.linkage_size)
    return text(f.function, f.function_size) if name == "function" else text(f.file, f.file_size)


def _numpy():
    """The module, if this Python has it: with it, a million rows take no loop."""
    try:
        import numpy  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    return numpy


def _bytes_of(build_id):
    if isinstance(build_id, str):
        try:
            found = bytes.fromhex(build_id)
        except ValueError:
            return NO_BUILD
    else:
        found = build_id or b""
    return found if len(found) <= lib.FATHOM_BUILD_ID_MAX else NO_BUILD


def _text_of(module):
    """A path as bytes; nothing for None and for what pandas has for it."""
    return path_bytes(module) if isinstance(module, (str, bytes)) else b""


def _numbers(values):
    """A column of numbers as numbers_of() takes it. Floats would be other addresses: pandas makes them of columns that lack some."""
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind is None or values.dtype == "uint64":
        return values
    if kind == "O":
        return values.tolist()
    if kind not in "iu":
        raise TypeError(f"the numbers of rows are integers, not {values.dtype}: a column that lacks some may be of type UInt64")
    if kind == "i" and len(values) and values.min() < 0:
        raise OverflowError("the number of a row is negative")
    return values.astype("uint64")


def _keys(column):
    """The values of a column as keys: bytes and texts as they are; what is none of these is nothing."""
    return [value if isinstance(value, (str, bytes)) else bytes(value) if isinstance(value, (bytearray, memoryview)) else None
            for value in column]


def _builds(build_ids, modules):
    """(struct fathom_build[], how many, of each row its index, what has to live as long)."""
    known: "dict[object, int]" = {}
    rows = [known.setdefault(key, len(known)) for key in zip(_keys(build_ids), _keys(modules))]
    builds, kept = ffi.new("struct fathom_build[]", max(len(known), 1)), []
    for build, (build_id, module) in zip(builds, known):
        for name, value, kind in (("build_id", _bytes_of(build_id), "uint8_t[]"), ("module", _text_of(module), "char[]")):
            if value:
                kept.append(ffi.new(kind, value))
                setattr(build, name, kept[-1])
                setattr(build, f"{name}_size", len(value))
    return builds, len(known), rows, kept


class Resolver:
    """Answers rows of any number of builds, whose files it keeps open. One call at a time: threads take turns."""
    __slots__ = ("_handle", "_session", "_lock", "_kept")

    def __init__(self, *, stores=None, store_put=False, debug_dirs=None, module_dirs=None, sysroot=None, file_offsets=False,
                 names_only=False, demangle=True, cache=True, cache_dir=None, memory_budget=0, debuginfod=False, threads=0):
        self._session = Session(cache=cache, cache_dir=cache_dir, memory_budget=memory_budget, debuginfod=debuginfod, threads=threads)
        listed = [paths_of(paths) for paths in (stores, debug_dirs, module_dirs)]
        root = ffi.NULL if sysroot is None else ffi.new("char[]", path_bytes(sysroot))
        where = options_of("struct fathom_target_options", sysroot=root, debug_dirs=listed[1][0])
        options = options_of("struct fathom_resolver_options",
                             flags=flags(RESOLVER_FILE_OFFSETS=file_offsets, RESOLVER_STORE_PUT=store_put),
                             symbolize_flags=flags(NAMES_ONLY=names_only, NO_DEMANGLE=not demangle), where=where, stores=listed[0][0],
                             module_dirs=listed[2][0])
        self._handle = Handle(made("struct fathom_resolver *", lib.fathom_resolver_create, self._session._handle.pointer, options),
                              lib.fathom_resolver_destroy)
        self._lock, self._kept = threading.Lock(), (listed, root, where)

    def answer(self, build_ids, numbers, modules=None, kinds=None):
        """(answers, rows): the different answers, and of each row the index of its own."""
        builds, n_builds, rows, kept = _builds(build_ids, [None] * len(build_ids) if modules is None else modules)
        kind_bytes = None if kinds is None else bytes(chosen(KINDS, "kind", kind) for kind in ([kinds] * len(rows) if isinstance(kinds, str) else kinds))
        if len(numbers) != len(rows) or len(build_ids) != len(rows) or (kind_bytes is not None and len(kind_bytes) != len(rows)):
            raise ValueError("the columns have different lengths")
        with numbers_of(_numbers(numbers)) as pointer, buffer("uint8_t[]", kind_bytes or b"\0") as kind_pointer, self._lock:
            asked = options_of("struct fathom_rows", n=len(rows), builds=builds, n_builds=n_builds,
                               row_builds=(row_builds := ffi.new("uint32_t[]", rows or [0])), numbers=pointer,
                               kinds=kind_pointer if kind_bytes is not None else ffi.NULL)
            answers = owned(made("struct fathom_row_answers *", lib.fathom_resolver_answer, self._handle.pointer, asked),
                            lib.fathom_row_answers_free)
        del kept, row_builds
        return _distinct(answers, len(rows))

    def columns(self, build_ids, numbers, modules=None, kinds=None, columns=("function", "file", "line", "reason")):
        """Columns of COLUMNS, by name: arrays of numpy, or lists where there is no numpy."""
        answers, rows = self.answer(build_ids, numbers, modules, kinds)
        numpy, found = _numpy(), {}
        for name in columns:
            value_of = chosen(COLUMNS, "columns", name)
            values = [value_of(answer) for answer in answers]
            if numpy is None:
                found[name] = [values[row] for row in rows]
                continue
            texts = numpy.empty(len(values), object)
            texts[:] = values
            found[name] = texts[rows]
        return found


def _distinct(answers, n):
    """The different answers of @n rows, equal ones of which are one in memory, and of each row the index of its own."""
    array = lib.fathom_row_answers_array(answers)
    form = "Q" if ffi.sizeof("void *") == 8 else "I"
    pointers = memoryview(ffi.buffer(array, n * ffi.sizeof("void *"))).cast(form) if n else memoryview(b"").cast(form)
    numpy = _numpy()
    if numpy is not None:
        different, rows = numpy.unique(numpy.frombuffer(pointers, form), return_inverse=True)
        different = different.tolist()
    else:
        known: "dict[int, int]" = {}
        rows = [known.setdefault(pointer, len(known)) for pointer in pointers]
        different = list(known)
    return [Answer(answers, ffi.cast("struct fathom_answer *", pointer)) for pointer in different], rows


_resolvers: "dict[object, Resolver]" = {}


def _resolver(options):
    """The one of this process with these options: after fork(), a child has its own."""
    key = (process[0], *sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items()))
    return _resolvers.get(key) or _resolvers.setdefault(key, Resolver(**options))


def resolve(frame, *, build_id="build_id", offset="offset", module=None, kind=None, columns=("function", "file", "line", "reason"),
            **options):
    """@frame with columns that say what its rows are: a DataFrame of pandas, or a mapping of names to columns. build_id, offset and
    module name columns of it; offset is an address as the ELF file states it or, with file_offsets, an offset in the file. kind names
    a column, or is "exact" or "return" for all rows. columns are some of COLUMNS. options are those of Resolver."""
    kinds = kind if kind in (None, "exact", "return") else frame[kind]
    found = _resolver(options).columns(frame[build_id], frame[offset], None if module is None else frame[module], kinds, columns)
    return frame.assign(**found) if hasattr(frame, "assign") else {**frame, **found}
