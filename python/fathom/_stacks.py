# SPDX-License-Identifier: MIT
"""Stacks of threads."""
from typing import NamedTuple

from fathom._answers import Answer, Rows
from fathom._fathom import ffi, lib
from fathom._library import NO_ADDRESS, REASONS, chosen, owned, text, word, words

TRUSTS = words("fathom_trust", lib.fathom_trust_name)
FAULT_PLACES = words("fathom_fault_place", lib.fathom_fault_place_name)
ACCESSES = words("fathom_access", lib.fathom_access_name)
# Whether no handler took an exception; None: the stack does not tell.
UNCAUGHT = {lib.FATHOM_EXCEPTION_UNCAUGHT: True, lib.FATHOM_EXCEPTION_CAUGHT: False}
STOPS = words("fathom_stop", lib.fathom_stop_name)
FRAME_KINDS = {lib.FATHOM_FRAME_NATIVE: "native", lib.FATHOM_FRAME_SCRIPT: "script", lib.FATHOM_FRAME_RUNTIME: "runtime"}
# Which threads may be stopped while they are read.
STOP_MODES = {"auto": lib.FATHOM_STACK_STOP_AUTO, "never": lib.FATHOM_STACK_STOP_NEVER, "all": lib.FATHOM_STACK_STOP_ALL}


class StackFrame(Answer):
    """One physical frame: an answer, with pc, sp and how the frame was found."""
    __slots__ = ("_frame",)
    _fields = ("pc", "sp", "trust", "kind", "runtime", "is_signal_return", *Answer._fields)

    def __init__(self, owner, frame):
        super().__init__(owner, frame.answer)
        self._frame = frame

    @property
    def pc(self):
        return self._frame.pc.address

    @property
    def sp(self):
        return None if self._frame.sp == NO_ADDRESS else self._frame.sp

    @property
    def trust(self):
        return word(TRUSTS, self._frame.trust)

    @property
    def kind(self):
        """"native", "script": a function that an interpreter executes, or "runtime": native, of that interpreter."""
        return FRAME_KINDS[self._frame.kind]

    @property
    def runtime(self):
        """The interpreter, such as "python 3.11"; None: there is none."""
        return text(self._frame.runtime)

    @property
    def is_signal_return(self):
        return bool(self._frame.is_signal_return)


class StackFrames(Rows):
    """The frames of a thread, the innermost first."""
    __slots__ = ("_frames",)

    def __init__(self, owner, thread):
        super().__init__(owner, thread.n_frames)
        self._frames = thread.frames

    def _row(self, i):
        return StackFrame(self._owner, self._frames + i)


class LeftOut(NamedTuple):
    """The frames that are left out of a stack: how many, before which index, and how the first guess among them was found."""
    frames: int
    before: int
    trust: "str | None"


class ThreadException(NamedTuple):
    """The C++ exception of a thread; uncaught is None if the stack does not tell."""
    type: str
    what: "str | None"
    what_cut: bool
    uncaught: "bool | None"


class Fault(NamedTuple):
    """The fault of a thread, as `fathom stack --json` names its values."""
    address: "int | None"
    access: "str | None"
    place: "str | None"
    stack_tid: "int | None"
    file: "str | None"
    file_offset: "int | None"


class Death(NamedTuple):
    """Why a thread died, or is about to; None: absent, abort_message_why and exception_why tell why."""
    abort_message: "str | None"
    abort_message_cut: bool
    abort_message_why: "str | None"
    exception: "ThreadException | None"
    exception_why: "str | None"
    fault: "Fault | None"


class Thread(NamedTuple):
    """One thread. Its stack is whole if stop is "entry"."""
    pid: "int | None"
    tid: int
    name: "str | None"
    state: "str | None"
    syscall: "str | None"
    waits_for: "str | None"
    owner: "int | None"
    signal: "int | None"
    signal_name: "str | None"
    signal_code: "str | None"
    fault_address: "int | None"
    died: "Death | None"
    registers: "dict[str, int]"
    frames: StackFrames
    left_out: "LeftOut | None"
    stop: "str | None"
    reason: "str | None"
    why: "str | None"
    script_why: "str | None"
    pause_us: int


def _registers_of(registers):
    named = ((i, text(lib.fathom_register_name(registers.machine, i))) for i in range(registers.n) if registers.known >> i & 1)
    return {name: registers.value[i] for i, name in named if name}


def _fault_of(d):
    address = None if d.fault_address == NO_ADDRESS else d.fault_address
    if not d.fault_place and address is None:
        return None
    return Fault(address, word(ACCESSES, d.fault_access), word(FAULT_PLACES, d.fault_place), d.stack_tid or None, text(d.file),
                 d.file_offset if d.file else None)


def _death_of(d):
    if not d:
        return None
    exception = None
    if d.exception_state:
        exception = ThreadException(text(d.exception), text(d.what), bool(d.what_is_cut), UNCAUGHT.get(d.exception_state))
    return Death(text(d.abort_message), bool(d.abort_is_cut), text(d.abort_failed), exception, text(d.exception_failed), _fault_of(d))


class Stacks(Rows):
    """The threads of a target, as they were when they were read."""
    __slots__ = ()

    def __init__(self, pointer):
        super().__init__(owned(pointer, lib.fathom_stacks_free), lib.fathom_stacks_count(pointer))

    def _row(self, i):
        t = lib.fathom_stacks_get(self._owner, i)
        left_out = LeftOut(t.n_left_out, t.left_out_at, word(TRUSTS, t.left_out_trust) if t.left_out_trust else None)
        return Thread(
            t.pid or None, t.tid, text(t.name), t.state.decode("ascii") if t.state != b"\0" else None, text(t.syscall), text(t.waits_for),
            t.owner or None, t.signal or None, text(lib.fathom_signal_name(t.signal)) if t.signal else None,
            text(lib.fathom_signal_code_name(t.signal, t.signal_code)) if t.signal else None,
            None if t.fault_address == NO_ADDRESS else t.fault_address, _death_of(t.died), _registers_of(t.registers),
            StackFrames(self._owner, t), left_out if t.n_left_out else None, word(STOPS, t.stop), word(REASONS, t.reason), text(t.failed), text(t.script_failed),
            (t.pause_ns + 999) // 1000)


def stack_options(tids, stop, names_only, demangle, max_frames, timeout, scripts):
    """struct fathom_stack_options, and what it points to."""
    kept = ffi.NULL if tids is None else ffi.new("int32_t[]", list(tids))
    options = ffi.new("struct fathom_stack_options *")
    options.size = ffi.sizeof("struct fathom_stack_options")
    options.flags = (lib.FATHOM_STACK_NAMES_ONLY if names_only else 0) | (0 if demangle else lib.FATHOM_STACK_NO_DEMANGLE)
    options.flags |= 0 if scripts else lib.FATHOM_STACK_NATIVE
    options.stop = chosen(STOP_MODES, "stop", stop)
    options.tids, options.n_tids = kept, 0 if tids is None else len(kept)
    options.max_frames, options.deadline_ms = max_frames, round(timeout * 1000)
    return options, kept
