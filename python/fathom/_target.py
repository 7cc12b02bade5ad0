# SPDX-License-Identifier: MIT
"""Targets: files, processes, cores, snapshots, the kernel, this process."""
import contextlib
from array import array
from typing import NamedTuple

from fathom._answers import Answers, answer_of_one
from fathom._fathom import ffi, lib
from fathom._library import Closable, Handle, call, error, error_of, flags, made, options_of, path_bytes, paths_of, query_bytes, raise_pending, text
from fathom._rows import Instructions, Matches, value_of
from fathom._stacks import Stacks, stack_options

KINDS = {value: name.removeprefix("FATHOM_TARGET_").lower() for value, name in ffi.typeof("enum fathom_target_kind").elements.items()}
# Formats of a buffer's items that are uint64_t in the byte order of this machine.
UINT64_FORMATS = ("Q", "L", "@Q", "@L", "=Q", "<Q" if memoryview(array("H", [1])).tobytes()[0] else ">Q")


class TargetInfo(NamedTuple):
    """What a target is. kind: file, process, core, snapshot, kernel, self or reader."""
    kind: str
    path: str
    debug_path: "str | None"
    build_id: "str | None"
    pid: "int | None"
    command: "str | None"
    is_64bit: bool
    is_relocatable: bool


@contextlib.contextmanager
def buffer(kind, owner):
    """The memory of a buffer as a pointer of C. It is let go at the end of the call, not when the collector finds it: in a cycle with
    the traceback of an exception, a memoryview would be cleared first."""
    pointer = ffi.from_buffer(kind, owner)
    try:
        yield pointer
    finally:
        ffi.release(pointer)


def numbers_of(numbers):
    """Numbers as a uint64_t[], of the with statement that asks: the memory of a buffer itself, else a copy."""
    try:
        view = memoryview(numbers)
    except TypeError:
        return buffer("uint64_t[]", array("Q", numbers))
    with view:
        if view.ndim != 1 or view.itemsize != 8 or view.format not in UINT64_FORMATS:
            raise TypeError(f"addresses are a buffer of uint64 with one dimension, not of format {view.format!r} with {view.ndim}")
        return buffer("uint64_t[]", numbers if view.c_contiguous else view.tobytes())


def kinds_of(return_addresses, n):
    """The kind of each address, likewise; NULL: all are exact."""
    if return_addresses is False:
        return contextlib.nullcontext(ffi.NULL)
    if return_addresses is True:
        return buffer("uint8_t[]", bytes([lib.FATHOM_PC_RETURN]) * n)
    try:
        size = memoryview(return_addresses).nbytes
    except TypeError:
        return_addresses = bytes(return_addresses)
        size = len(return_addresses)
    if size != n:
        raise ValueError(f"{n} addresses, but return_addresses has {size} bytes")
    return buffer("uint8_t[]", return_addresses)


def parsed(target):
    """What a TARGET means: a function that opens it, and its argument. A str is read as the command reads it; a path object is a
    path."""
    if target is None:
        return lib.fathom_target_open_self, ()
    if hasattr(target, "__index__"):
        return lib.fathom_target_open_process, (target.__index__(),)
    if isinstance(target, str):
        digits = target.removeprefix("pid:")
        if target in ("kernel", "/proc/kcore"):
            return lib.fathom_target_open_kernel, ()
        if digits.isascii() and digits.isdigit():
            return lib.fathom_target_open_process, (int(digits),)
        if target.startswith("pid:"):
            raise ValueError(f"{target!r} is not the number of a process")
        target = target.removeprefix("file:")
    return lib.fathom_target_open_file, (path_bytes(target),)


class Target(Closable):
    """An address space. All methods may be called by several threads at the same time, also while one closes it."""
    __slots__ = ("_session", "_is_stored")
    _kind = "target"

    def __init__(self, session, target, exe, sysroot, debug_dirs, unverified_files):
        function, arguments = parsed(target)
        texts = [ffi.NULL if path is None else ffi.new("char[]", path_bytes(path)) for path in (exe, sysroot)]
        dirs = paths_of(debug_dirs)
        is_kernel = function is lib.fathom_target_open_kernel
        options = options_of("struct fathom_target_options", flags=flags(TARGET_UNVERIFIED_FILES=unverified_files), exe=texts[0],
                             sysroot=texts[1], debug_dirs=dirs[0], root=texts[1] if is_kernel else ffi.NULL)
        self._session = session
        self._handle = None
        self._handle = Handle(made("struct fathom_target *", function, session._handle.pointer, *arguments, options),
                              lib.fathom_target_release)
        raise_pending()
        self._is_stored = self.info.kind in ("file", "core", "snapshot")

    def _made(self, kind, function, *arguments):
        """Calls a function of the target; returns what it made, and the handle."""
        handle = self._use()
        return made(kind, function, handle.pointer, *arguments), handle

    def _check(self, handle):
        """Ends a call whose results have an owner. A file that was rewritten in place meanwhile is an error."""
        raise_pending()
        if self._is_stored:
            call(lib.fathom_target_check, handle.pointer)

    def __repr__(self):
        if self.closed:
            return "<Target closed>"
        info = self.info
        return f"<Target {info.kind} {info.pid if info.kind == 'process' else info.path!r}>"

    @property
    def info(self):
        handle = self._use()
        info = ffi.new("struct fathom_target_info *")
        lib.fathom_target_get_info(handle.pointer, info)
        build_id = ffi.buffer(info.build_id, info.build_id_size)[:].hex() if info.build_id else None
        return TargetInfo(KINDS[info.kind], text(info.path), text(info.debug_path), build_id, info.pid or None, text(info.command),
                          bool(info.is_64bit), bool(info.is_relocatable))

    @property
    def notes(self):
        """Problems met so far that no single answer tells in full, as errors that were not raised."""
        handle = self._use()
        notes = []
        while note := lib.fathom_target_note(handle.pointer, len(notes)):
            notes.append(error_of(note.err, note))
        return notes

    def addr(self, addresses, *, return_addresses=False, names_only=False, demangle=True):
        """The Answer for an int; the Answers for a buffer of uint64, or for ints."""
        options = options_of("struct fathom_symbolize_options", flags=flags(NAMES_ONLY=names_only, NO_DEMANGLE=not demangle))
        if hasattr(addresses, "__index__") and not getattr(addresses, "shape", ()):
            kind = lib.FATHOM_PC_RETURN if return_addresses else lib.FATHOM_PC_EXACT
            pc = {"address": addresses.__index__(), "kind": kind}
            answer, handle = self._made("struct fathom_answer const *", lib.fathom_lookup, pc, options)
            answers = answer_of_one(answer)
        else:
            with numbers_of(addresses) as numbers, kinds_of(return_addresses, len(numbers)) as kinds:
                pointer, handle = self._made("struct fathom_answers *", lib.fathom_symbolize, options, numbers, kinds, len(numbers))
            answers = Answers(pointer)
        self._check(handle)
        return answers

    def find(self, *queries, regex=False, literal=False, inlined=False, exported=False, linked=False, limit=0, tid=0):
        """The Matches of queries, as `fathom find` takes them. A query that finds nothing has one match, with the reason."""
        chosen = flags(FIND_REGEX=regex, FIND_LITERAL=literal, FIND_INLINED=inlined, FIND_EXPORTED=exported, FIND_LINKED=linked)
        options = options_of("struct fathom_find_options", flags=chosen, limit=limit, tid=tid)
        kept = [ffi.new("char[]", query_bytes(query)) for query in queries]
        pointer, handle = self._made("struct fathom_matches *", lib.fathom_find, options, ffi.new("char *[]", kept), len(kept))
        matches = Matches(pointer, queries)
        self._check(handle)
        return matches

    def address(self, name):
        """The address of the symbol of that name, NAME or NAME@VERSION: that of the first match of find()."""
        handle = self._use()
        address = ffi.new("uint64_t *")
        code = lib.fathom_target_find_symbol(handle.pointer, query_bytes(name), address)
        self._check(handle)
        if code:
            what = "no such symbol" if code == lib.FATHOM_E_NOT_FOUND else text(lib.fathom_err_name(code))
            raise error(code, f"{name}: {what}")
        return address[0]

    def _function(self, start):
        """The bounds of a function, by its name or an address in it."""
        if isinstance(start, str):
            start = self.address(start)
        answer = self.addr(start, names_only=True)
        if not answer.size:
            raise error(lib.FATHOM_E_NOT_FOUND, f"{start:#x}: nothing says how far its function goes: name the end")
        start = answer.address - answer.offset
        return start, start + answer.size

    def disasm(self, start, end=None, *, intel=False, lines=True, demangle=True, limit=0):
        """The Instructions from start to end; without end, of the function called start, or around it."""
        if end is None:
            start, end = self._function(start)
        chosen = flags(DISASM_INTEL=intel, DISASM_NO_LINES=not lines, DISASM_NO_DEMANGLE=not demangle)
        options = options_of("struct fathom_disasm_options", flags=chosen, max_instructions=limit)
        pointer, handle = self._made("struct fathom_disasm *", lib.fathom_disassemble, options, start, end)
        instructions = Instructions(pointer)
        self._check(handle)
        return instructions

    def stack(self, tids=None, *, stop="auto", names_only=False, demangle=True, max_frames=0, timeout=0.0,
              scripts=True):
        """The Stacks of all threads, or of those that are named; with frames of scripts, or without."""
        options, _kept = stack_options(tids, stop, names_only, demangle, max_frames, timeout, scripts)
        pointer, handle = self._made("struct fathom_stacks *", lib.fathom_stacks_capture, options)
        stacks = Stacks(pointer)
        self._check(handle)
        return stacks

    def snapshot(self, path, *, stacks=False):
        """Writes what names the addresses of a process or core when it is gone; with stacks, also those of its threads."""
        handle = self._use()
        if stacks:
            call(lib.fathom_snapshot_write_stacks, handle.pointer, ffi.NULL, path_bytes(path))
        else:
            call(lib.fathom_snapshot_write, handle.pointer, path_bytes(path))

    def values(self, type, addresses):  # pylint: disable=redefined-builtin
        """A Value of a type, as `fathom find --value` takes it, for each address."""
        handle = self._use()
        with numbers_of(addresses) as numbers:
            n = len(numbers)
            read = ffi.new("struct fathom_value[]", max(n, 1))
            call(lib.fathom_values_read, handle.pointer, query_bytes(type), numbers, n, read)
        try:
            return [value_of(read[i], type) for i in range(n)]
        finally:
            for i in range(n):
                lib.fathom_value_free(read + i)

    def value(self, type, address):  # pylint: disable=redefined-builtin
        """The value of a type at an address, or at a symbol; an Error says why there is none."""
        found, = self.values(type, [self.address(address) if isinstance(address, str) else address])
        if found.reason:
            raise error(lib.FATHOM_E_NOT_FOUND, f"{found.address:#x}: {found.reason}", found.address)
        return found.value

    def read(self, address, size):
        """Up to size bytes of memory; fewer if it ends earlier."""
        handle = self._use()
        to = bytearray(size)
        with buffer("char[]", to) as pointer:
            n = made("size_t", lib.fathom_target_read, handle.pointer, address, pointer, size)
        del to[n:]
        return bytes(to)

    def section_address(self, name, offset=0):
        """The address for the other methods of an offset in a section, as a relocatable file (.o, .ko) needs it."""
        handle = self._use()
        address = ffi.new("uint64_t *")
        if lib.fathom_target_section_address(handle.pointer, query_bytes(name), offset, address):
            raise error(lib.FATHOM_E_NOT_FOUND, f"{name}: no such section is loaded")
        return address[0]
