# SPDX-License-Identifier: MIT
"""The C library: errors, texts, pointers that are released, options."""
import enum
import os
import threading
from typing import NamedTuple

from fathom._fathom import ffi, lib

NO_ADDRESS = lib.FATHOM_NO_ADDRESS


def version():
    """The version of the C library."""
    return ffi.string(lib.fathom_version()).decode()


def words(enum_name, word):
    """The words of an enum of the C library, by its values; "" for the value that means none."""
    return [ffi.string(word(value)).decode() for value in range(max(ffi.typeof(f"enum {enum_name}").elements) + 1)]


SOURCES = words("fathom_source", lib.fathom_source_name)
REASONS = words("fathom_reason", lib.fathom_reason_name)


def word(texts, value):
    """The word for a value; None for none, and for values that this version does not know."""
    return texts[value] or None if value < len(texts) else None


def flags(**chosen_flags):
    """The bits of an option struct: the constants FATHOM_NAME whose values are true."""
    return sum(getattr(lib, f"FATHOM_{name}") for name, value in chosen_flags.items() if value)


def chosen(values, name, value):
    """The constant that a word of the option called @name stands for."""
    if value not in values:
        raise ValueError(f"{name} is one of {', '.join(map(str, values))}")
    return values[value]


class ErrorCode(enum.IntEnum):
    """Classes of errors: enum fathom_err_value."""
    ARGUMENT = lib.FATHOM_E_ARGUMENT
    MEMORY = lib.FATHOM_E_MEMORY
    OS = lib.FATHOM_E_OS
    FORMAT = lib.FATHOM_E_FORMAT
    CORRUPT = lib.FATHOM_E_CORRUPT
    LIMIT = lib.FATHOM_E_LIMIT
    UNSUPPORTED = lib.FATHOM_E_UNSUPPORTED
    MISMATCH = lib.FATHOM_E_MISMATCH
    NOT_FOUND = lib.FATHOM_E_NOT_FOUND
    TIMEOUT = lib.FATHOM_E_TIMEOUT
    CANCELLED = lib.FATHOM_E_CANCELLED
    CHANGED = lib.FATHOM_E_CHANGED


class Detail(NamedTuple):
    """Where and why a call failed: struct fathom_errinfo."""
    what: str
    file: "str | None" = None
    section: "str | None" = None
    offset: int = 0
    errno: int = 0
    cause: int = 0
    part: int = 0


class Error(Exception):
    """A call of libfathom failed. code is an ErrorCode; detail says where and why."""

    def __init__(self, code, text, detail):
        super().__init__(code, text, detail)
        self.code, self.text, self.detail = code, text, detail

    def __str__(self):
        return self.text


def text(pointer, size=None):
    """The str of a text of the library; None for NULL. Bytes that are not UTF-8 are kept as os.fsdecode() keeps them."""
    if not pointer:
        return None
    return (ffi.string(pointer) if size is None else ffi.buffer(pointer, size)[:]).decode("utf-8", "surrogateescape")


def path_bytes(path):
    """A path as the library takes it, which ends at the first NUL."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded


def paths_of(paths):
    """Paths as a member of an option struct, and what it points to; NULL for None."""
    if paths is None:
        return ffi.NULL, None
    if isinstance(paths, (str, bytes)):
        raise TypeError("a list of paths is wanted, not one")
    kept = [ffi.new("char[]", path_bytes(path)) for path in paths]
    return ffi.new("char *[]", [*kept, ffi.NULL]), kept


def query_bytes(query):
    """A text as the library takes it."""
    encoded = query.encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise ValueError("embedded null character")
    return encoded


# What Python code raised within a call of this thread.
raised = threading.local()


def keep_raised(_kind, value, _traceback):
    """Keeps what a function has raised that the library has called: onerror of cffi."""
    raised.value = value


def formatted(info):
    """One line of text for a struct fathom_errinfo."""
    buffer = ffi.new("char[]", 1024)
    lib.fathom_errinfo_format(info, buffer, len(buffer))
    return text(buffer)


def error_of(code, info):
    try:
        code = ErrorCode(code)
    except ValueError:
        pass  # of a later library
    return Error(code, formatted(info), Detail(text(info.what) or text(lib.fathom_err_name(code)), text(info.file) or None,
                                               text(info.section) or None, info.offset, info.os_errno, info.cause, info.part))


def raise_pending():
    """Raises what Python code raised within a call of this thread: a call may end well before it heeds that."""
    exception, raised.value = getattr(raised, "value", None), None
    try:
        if exception is not None:
            raise exception
    finally:
        # Else its traceback leads to this frame, and this frame to it.
        del exception


def error(code, what, offset=0):
    """An Error that this module words itself."""
    return Error(ErrorCode(code), what, Detail(what, offset=offset))


def call(function, *arguments):
    """Calls a function whose last argument is a struct fathom_errinfo; raises Error if it fails."""
    info = ffi.new("struct fathom_errinfo *")
    code = function(*arguments, info)
    if code:
        raise_pending()
        raise error_of(code, info)


def made(kind, function, *arguments):
    """Does the same, with an out parameter of a kind before; returns what was written there."""
    out = ffi.new(f"{kind} *")
    call(function, *arguments, out)
    return out[0]


def options_of(kind, **members):
    """A struct of options, with its size. What its pointers point to is the caller's to keep."""
    options = ffi.new(f"{kind} *", members)
    options.size = ffi.sizeof(kind)
    return options


# Stands for this process: a child after fork() gets another object. Numbers of processes are used again.
process = [object()]
os.register_at_fork(after_in_child=lambda: process.__setitem__(0, object()))


class Handle:
    """A pointer that is released once nobody uses it: by the process that made it. After fork() a child cannot use it, because locks
    may be held there by threads that it does not have."""
    __slots__ = ("_pointer", "_release", "_process", "_maker")

    def __init__(self, pointer, release):
        self._pointer, self._release = pointer, release
        # At exit, the module's names may be gone before the last handle.
        self._process, self._maker = process, process[0]

    @property
    def pointer(self):
        if self._process[0] is not self._maker:
            raise error(lib.FATHOM_E_ARGUMENT, "it was opened before fork(): open it again in this process")
        return self._pointer

    def __del__(self):
        if self._process[0] is self._maker:
            self._release(self._pointer)


class Closable:
    """What has a handle until it is closed, also by a with statement. _kind says in errors what it is."""
    __slots__ = ("_handle", "__weakref__")
    _kind = ""

    def _use(self):
        """The handle, which stays open as long as the caller has it."""
        handle = self._handle
        if handle is None:
            raise ValueError(f"the {self._kind} is closed")
        return handle

    def close(self):
        """Closes it once calls of other threads have returned. What it has given stays valid."""
        self._handle = None

    @property
    def closed(self):
        return self._handle is None

    def __enter__(self):
        self._use()
        return self

    def __exit__(self, *_):
        self.close()


def owned(pointer, free):
    """A pointer to results, which are plain memory: freed once nobody uses them, in any process."""
    return ffi.gc(pointer, free)
