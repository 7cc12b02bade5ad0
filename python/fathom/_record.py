# SPDX-License-Identifier: MIT
"""Records profiles: of a program that is started, of processes, of this process."""
import contextlib
import os
import signal
import threading
from typing import NamedTuple

from fathom._fathom import ffi, lib
from fathom._library import call, chosen, flags, keep_raised, options_of, path_bytes, raise_pending, raised
from fathom._output import output_to

EVENTS = {"task-clock": lib.FATHOM_PROFILE_EVENT_TASK_CLOCK, "cycles": lib.FATHOM_PROFILE_EVENT_CYCLES}
METHODS = {"perf-events": lib.FATHOM_PROFILE_METHOD_PERF, "polling": lib.FATHOM_PROFILE_METHOD_POLLING}


class Recorded(NamedTuple):
    """What was recorded. samples are those with a stack, whole those with a whole one; hidden is the weight without a place,
    unseen_ns is of the waits whose stacks were not read, scripts_missed are samples in an interpreter without frames of its script.
    returncode is that of the program, as of subprocess; None: there is
    none."""
    samples: int
    whole: int
    lost: int
    throttled: int
    bytes: int
    weight: int
    hidden: int
    waiting_ns: int
    unseen_ns: int
    runnable_ns: int
    wall_ns: int
    recorder_ns: int
    threads: int
    left_out: int
    event: "str | None"
    method: "str | None"
    returncode: "int | None"
    cut: bool
    kernel_hidden: bool
    scripts_missed: int


def word_of(words, value):
    return next((word for word, number in words.items() if number == value), None)


def recorded_of(r, has_program):
    return Recorded(r.n_samples, r.n_whole, r.lost, r.throttled, r.bytes, r.weight, r.hidden, r.waiting_ns, r.unseen_ns,
                    r.runnable_ns, r.wall_ns, r.recorder_ns, r.n_threads, r.n_left_out, word_of(EVENTS, r.event),
                    word_of(METHODS, r.method),
                    os.waitstatus_to_exitcode(r.status) if has_program else None, bool(r.is_cut), bool(r.is_kernel_hidden),
                    r.scripts_missed)


class Asked:
    """Is asked again and again whether the recording is to end: when until() says so, or Python code has raised something, such
    as a handler of Ctrl-C. Then the program is ended, too, by SIGTERM, and by SIGKILL if something is raised again."""

    def __init__(self, until):
        self.until, self.pid = until, ffi.new("int32_t *")
        self.heeded, self.is_over = None, False

    def __call__(self):
        exception = getattr(raised, "value", None)
        if exception is None:
            self.is_over = self.is_over or bool(self.until and self.until())
            return self.is_over
        if self.pid[0] and self.heeded is not exception:
            number = signal.SIGKILL if self.heeded else signal.SIGTERM
            self.heeded = exception
            # A program with more rights may not be ended.
            with contextlib.suppress(OSError):
                os.kill(self.pid[0], number)
        return True


@ffi.def_extern(name="fathom_python_is_done", error=1, onerror=keep_raised)
def _on_round(data):
    """Is called on the thread that records: signal handlers run here, if it is the main thread."""
    return ffi.from_handle(data)()


def nanoseconds(seconds):
    """A time as an option has it, in which 0 is none."""
    if seconds is None:
        return 0
    if not seconds > 0:
        raise ValueError("seconds is a time above 0")
    return max(1, round(seconds * 1e9))


def record_options(program, pids, seconds, frequency, event, method, waits, max_bytes):
    """struct fathom_record_options, and what it points to."""
    is_all = isinstance(pids, str) and pids == "all"
    if is_all:
        pids = ()
    elif (program is None) == (pids is None):
        raise ValueError("a program or pids are recorded, either of them; or pids='all', with a program or without")
    if isinstance(program, (str, bytes)):
        raise TypeError("program is a sequence of its name and its arguments")
    texts = [ffi.new("char[]", path_bytes(argument)) for argument in program or ()]
    argv = ffi.NULL if program is None else ffi.new("char *[]", [*texts, ffi.NULL])
    numbers = [pids] if hasattr(pids, "__index__") else list(pids or ())
    listed = ffi.new("int32_t[]", numbers) if numbers else ffi.NULL
    options = options_of("struct fathom_record_options", event=0 if event is None else chosen(EVENTS, "event", event),
                         method=0 if method is None else chosen(METHODS, "method", method), frequency=frequency, argv=argv,
                         pids=listed, n_pids=len(numbers), for_ns=nanoseconds(seconds), max_bytes=max_bytes,
                         flags=flags(RECORD_NO_WAITS=not waits, RECORD_ALL=is_all, RECORD_RESTORE_SIGNALS=True))
    return options, (texts, argv, listed)


def record_to(session, path, until, program, pids, *settings):
    """Records into a file, until it is over. What was recorded is in the file, whatever ends it."""
    options, _kept = record_options(program, pids, *settings)
    asked = Asked(until)
    handle, result = ffi.new_handle(asked), ffi.new("struct fathom_record_result *")
    with output_to(path, 0o600) as output:
        output.asked = handle
        options.is_done, options.write = ffi.addressof(lib, "python_is_done"), ffi.addressof(lib, "python_write")
        options.data, options.pid = output, asked.pid
        call(lib.fathom_record_run, session._handle.pointer, options, result)
        raise_pending()
    return recorded_of(result, program is not None)


class Recording:
    """A recording of processes that goes on, in a thread of its own, while the body of a with statement runs. result is a
    Recorded afterwards."""
    __slots__ = ("result", "_run", "_thread", "_begun", "_ended", "_error")

    def __init__(self, run):
        self.result = self._error = self._thread = None
        self._run = run
        self._begun, self._ended = threading.Event(), threading.Event()

    def _is_over(self):
        self._begun.set()
        return self._ended.is_set()

    def _record(self):
        try:
            self.result = self._run(self._is_over)
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self._error = e
        finally:
            self._begun.set()

    def _end(self):
        self._ended.set()
        self._thread.join()
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            # Else its traceback leads to this frame, and this frame to it.
            del error

    def __enter__(self):
        if self._thread is not None:
            raise ValueError("the recording has begun before")
        self._thread = threading.Thread(target=self._record, name="fathom.recording", daemon=True)
        self._thread.start()
        try:
            self._begun.wait()
        except BaseException:
            self._ended.set()
            raise
        if self._error is not None:
            self._end()
        return self

    def __exit__(self, *_):
        self._end()
