# SPDX-License-Identifier: MIT
"""Logs the functions that this process calls, from Python:

    import fathom
    with fathom.ftrace("--only 'PyList_*'"):
        weird_function()

Words are as for fathom_trace_start(3); lines go to standard error without --log FILE. Needs libfathom only; where Python was
compiled without sites, calls of libraries are logged.
"""
import contextlib
import ctypes
import os

__all__ = ["Error", "ftrace", "start", "stop", "thread"]


class Error(Exception):
    """What libfathom has to say."""


# Where libfathom is below the prefix that this file is installed in, which may be any.
_LIBDIR = "@LIBDIR@"
_library = None


def _library_path():
    """libfathom of the same installation; else that which the dynamic linker finds."""
    prefix = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    path = os.path.join(prefix, _LIBDIR, "libfathom.so.0")
    return path if os.path.exists(path) else "libfathom.so.0"


def _lib():
    global _library
    if _library is None:
        lib = ctypes.CDLL(_library_path())
        lib.fathom_trace_start.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        lib.fathom_trace_stop.argtypes = [ctypes.c_void_p]
        lib.fathom_errinfo_format.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        _library = lib
    return _library


# More than struct fathom_errinfo has.
_ERRINFO_SIZE = 1 << 14


def _call(function, *words):
    info = ctypes.create_string_buffer(_ERRINFO_SIZE)
    if function(*words, info):
        text = ctypes.create_string_buffer(1024)
        _lib().fathom_errinfo_format(info, text, len(text))
        raise Error(text.value.decode(errors="replace"))


def start(options=""):
    """Logs all calls of this process from now on."""
    _call(_lib().fathom_trace_start, options.encode())


def stop():
    """Ends what start() began; the log is whole then."""
    _call(_lib().fathom_trace_stop)


def thread(change):
    """Adds to the count of the calling thread, which is logged while that is above 0; returns the count before."""
    return _lib().fathom_trace_thread(change)


@contextlib.contextmanager
def ftrace(options=""):
    """Logs all calls of this process within a with statement."""
    start(options)
    try:
        yield
    finally:
        stop()
