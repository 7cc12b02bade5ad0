# SPDX-License-Identifier: MIT
"""Sessions: the options, the memory budget and the caches that targets share."""
import os

from fathom._fathom import ffi, lib
from fathom._library import Handle, flags, keep_raised, made, options_of, path_bytes, process
from fathom._profile import Profile
from fathom._record import Recording, record_to
from fathom._target import Target

PHASES = {value: name.removeprefix("FATHOM_PHASE_").lower() for value, name in ffi.typeof("enum fathom_phase").elements.items()}


@ffi.def_extern(name="fathom_python_progress", error=lib.FATHOM_CANCEL, onerror=keep_raised)
def _on_progress(data, progress):
    """Is called within long calls, on the thread that made them: signal handlers run here, so Ctrl-C ends the call."""
    function = ffi.from_handle(data)
    function(PHASES.get(progress.phase, ""), progress.done, progress.total)
    return lib.FATHOM_GO_ON


def _nothing(*_):
    """Stands for no function."""


class Session:
    """Options that targets share. All have defaults: fathom.open() needs no session."""
    __slots__ = ("_handle", "_progress")

    def __init__(self, *, cache=True, debuginfod=False, threads=0, memory_budget=0, cache_dir=None, cache_limit=0,
                 debuginfod_timeout=0.0, file_timeout=0.0, progress=None):
        function = _nothing if progress is None else progress
        # The library calls it as long as a target of the session lives: each has a reference to this pair.
        self._progress = (function, ffi.new_handle(function))
        directory = ffi.NULL if cache_dir is None else ffi.new("char[]", path_bytes(cache_dir))
        options = options_of("struct fathom_options", flags=flags(NO_CACHE=not cache, DEBUGINFOD=debuginfod), threads=threads,
                             memory_budget=memory_budget, cache_dir=directory, cache_limit=cache_limit,
                             debuginfod_timeout_ms=round(debuginfod_timeout * 1000), file_timeout_ms=round(file_timeout * 1000),
                             progress=ffi.addressof(lib, "python_progress"), progress_data=self._progress[1])
        self._handle = Handle(made("struct fathom *", lib.fathom_create, options), lib.fathom_destroy)

    @property
    def memory_used(self):
        """Bytes that count against the budget."""
        usage = ffi.new("struct fathom_usage *")
        lib.fathom_get_usage(self._handle.pointer, usage)
        return usage.memory_used

    def open(self, target=None, *, exe=None, sysroot=None, debug_dirs=None, unverified_files=False):
        """Opens a target in this session, as fathom.open() does."""
        return Target(self, target, exe, sysroot, debug_dirs, unverified_files)

    def profile(self, path, *, resolve=True, names_only=False, demangle=True, sysroot=None, debug_dirs=None, frames="merged"):
        """Reads a profile in this session, as fathom.profile() does."""
        return Profile(self, path, resolve, names_only, demangle, sysroot, debug_dirs, frames)

    def record(self, path, program=None, *, pids=None, seconds=None, until=None, frequency=0, event=None, method=None, waits=True,
               max_bytes=0):
        """Records a profile in this session, as fathom.record() does."""
        return record_to(self, path, until, program, pids, seconds, frequency, event, method, waits, max_bytes)

    def recording(self, path, *, pids=None, frequency=0, event=None, method=None, waits=True, max_bytes=0):
        """Records processes within a with statement in this session, as fathom.recording() does."""
        pids = os.getpid() if pids is None else pids
        return Recording(lambda until: self.record(path, pids=pids, until=until, frequency=frequency, event=event, method=method,
                                                   waits=waits, max_bytes=max_bytes))


# The default session of each process: after fork(), the child has its own.
_defaults: "dict[object, Session]" = {}


def default_session():
    # Of two threads that come first, one session is kept.
    return _defaults.get(process[0]) or _defaults.setdefault(process[0], Session())


def open(target=None, *, exe=None, sysroot=None, debug_dirs=None, unverified_files=False):  # pylint: disable=redefined-builtin
    """Opens a Target: an int is a process, a path a file of any kind (program, library, core, snapshot), "kernel" the running kernel,
    None this process. A str is read as the command reads TARGET: digits are a process, "file:PATH" a file of any name."""
    return default_session().open(target, exe=exe, sysroot=sysroot, debug_dirs=debug_dirs, unverified_files=unverified_files)


def profile(path, *, resolve=True, names_only=False, demangle=True, sysroot=None, debug_dirs=None, frames="merged"):
    """Reads a Profile, a file of `fathom record`, and finds the names of its locations. Without resolve they have those that the
    file has, of JIT code, scripts and the kernel. frames: of stacks in which a script has some, "merged": all but the interpreter's
    own, "script": the script's alone, "native": none of the script, or "all"."""
    return default_session().profile(path, resolve=resolve, names_only=names_only, demangle=demangle, sysroot=sysroot,
                                     debug_dirs=debug_dirs, frames=frames)


def record(path, program=None, *, pids=None, seconds=None, until=None, frequency=0, event=None, method=None, waits=True, max_bytes=0):
    """Records into a file where a program, a sequence of its name and arguments, or processes spend their time; with all threads, and
    children from now on; pids="all" are all of the machine, for a time or as long as a program runs. It ends with the program or the
    processes, after seconds, when until() returns true, or when something is raised meanwhile, as by Ctrl-C: then a program is ended.
    The file is whole in any case. Returns a Recorded."""
    return default_session().record(path, program, pids=pids, seconds=seconds, until=until, frequency=frequency, event=event,
                                    method=method, waits=waits, max_bytes=max_bytes)


def recording(path, *, pids=None, frequency=0, event=None, method=None, waits=True, max_bytes=0):
    """Records processes, by default this one, while the body of a with statement runs."""
    return default_session().recording(path, pids=pids, frequency=frequency, event=event, method=method, waits=waits,
                                       max_bytes=max_bytes)
