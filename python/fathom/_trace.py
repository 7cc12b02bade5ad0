# SPDX-License-Identifier: MIT
"""Logs the functions that this process calls. Words are as for fathom_trace_start(3); lines go to standard error without --log FILE.
Where Python was compiled without sites, calls of libraries are logged."""
import contextlib

from fathom._fathom import lib
from fathom._library import call, query_bytes


def start(options=""):
    """Logs all calls of this process from now on."""
    call(lib.fathom_trace_start, query_bytes(options))


def stop():
    """Ends what start() began; the log is whole then."""
    call(lib.fathom_trace_stop)


def thread(change):
    """Adds to the count of the calling thread, which is logged while that is above 0; returns the count before."""
    return lib.fathom_trace_thread(change)


@contextlib.contextmanager
def ftrace(options=""):
    """Logs all calls of this process within a with statement."""
    start(options)
    try:
        yield
    finally:
        stop()
