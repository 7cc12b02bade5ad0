# SPDX-License-Identifier: MIT
"""Profiles: their samples as columns, their stacks, reports and comparisons of them."""
from array import array
from typing import NamedTuple

from fathom._annotate import Annotation, annotation_options
from fathom._answers import Answer, Rows, TextColumn, strided
from fathom._fathom import ffi, lib
from fathom._library import Closable, Handle, call, chosen, error, flags, made, options_of, path_bytes, paths_of, raise_pending, text, word, words
from fathom._output import output_to
from fathom._report import Diff, Report, diff_options, report_options
from fathom._stacks import STOPS, TRUSTS

PARTS = words("fathom_profile_part", lib.fathom_profile_part_name)
MODULE_KINDS = {value: name.removeprefix("FATHOM_PROFILE_MODULE_").lower()
                for value, name in ffi.typeof("enum fathom_profile_module_kind").elements.items()}
FORMATS = {"collapsed": lib.FATHOM_PROFILE_COLLAPSED, "pprof": lib.FATHOM_PROFILE_PPROF, "speedscope": lib.FATHOM_PROFILE_SPEEDSCOPE,
           "firefox": lib.FATHOM_PROFILE_FIREFOX, "perfetto": lib.FATHOM_PROFILE_PERFETTO, "svg": lib.FATHOM_PROFILE_SVG,
           "svg-bars": lib.FATHOM_PROFILE_SVG_BARS, "page": lib.FATHOM_PROFILE_PAGE}
FRAMES = {"all": lib.FATHOM_PROFILE_ALL_FRAMES, "merged": lib.FATHOM_PROFILE_MERGED_FRAMES, "script": lib.FATHOM_PROFILE_SCRIPT_FRAMES,
          "native": lib.FATHOM_PROFILE_NATIVE_FRAMES}
# The samples are written at once: they need no zeros.
_new_samples = ffi.new_allocator(should_clear_after_alloc=False)


class ProfileInfo(NamedTuple):
    """How a profile was recorded, and its sums, as `fathom report --json` names them. waits are the samples that are waits; other
    counts of samples are without them."""
    command: "str | None"
    event: "str | None"
    unit: "str | None"
    method: "str | None"
    machine: "str | None"
    kernel: "str | None"
    host: "str | None"
    frequency: "int | None"
    started: "int | None"
    duration_ns: int
    weight: int
    samples: int
    stacks: int
    whole: int
    waiting_ns: int
    runnable_ns: int
    waits: int
    lost: int
    throttled: int
    kernel_hidden: bool
    complete: bool


def info_of(i):
    texts = (text(t) or None for t in (i.command, i.event, i.unit, i.method, i.machine, i.kernel, i.host))
    return ProfileInfo(*texts, i.frequency or None, i.started or None, i.duration_ns, i.weight, i.n_samples, i.n_stacks,
                       None if i.has_unknown_ends else i.n_whole, i.waiting_ns, i.runnable_ns, i.n_waits, i.lost, i.throttled,
                       bool(i.is_kernel_hidden), bool(i.is_complete))


class ProfileThread(NamedTuple):
    """A thread under one name: one that is renamed becomes another one of the same numbers, ns since the recording began."""
    pid: int
    tid: int
    parent: "int | None"
    ns: int
    name: str
    process: str
    cgroup: "str | None"


class ProfileThreads(Rows):
    """The threads of a profile, to which samples refer by index."""
    __slots__ = ("_threads",)

    def __init__(self, owner, threads, n):
        super().__init__(owner, n)
        self._threads = threads

    def _row(self, i):
        t = self._threads[i]
        return ProfileThread(t.pid, t.tid, t.parent or None, t.ns, text(t.name), text(t.process),
                             text(t.cgroup) or None)


class ProfileModule(NamedTuple):
    """A module. kind: file, vdso, jit, kernel, memory or waits. A file without a build-id is known by its size and time of
    change."""
    path: str
    build_id: "str | None"
    kind: "str | None"
    file_size: "int | None"
    changed: "int | None"


class ProfileModules(Rows):
    """The modules of a profile."""
    __slots__ = ("_modules",)

    def __init__(self, owner, modules, n):
        super().__init__(owner, n)
        self._modules = modules

    def _row(self, i):
        m = self._modules[i]
        build_id = ffi.buffer(m.build_id, m.build_id_size)[:].hex() if m.build_id else None
        return ProfileModule(text(m.path), build_id, MODULE_KINDS.get(m.kind), m.file_size or None, m.changed or None)


class Location(Answer):
    """A place in code: an answer, for the address that the file of the module states, and how the frame was found."""
    __slots__ = ("_location",)
    _fields = ("trust", "is_return_address", "is_signal_return", *Answer._fields)

    def __init__(self, owner, location):
        super().__init__(owner, location.answer)
        self._location = location

    @property
    def address(self):
        return self._location.pc.address

    @property
    def trust(self):
        return word(TRUSTS, self._location.trust)

    @property
    def is_return_address(self):
        return self._location.pc.kind == lib.FATHOM_PC_RETURN

    @property
    def is_signal_return(self):
        return bool(self._location.is_signal_return)


class Locations(Rows):
    """The places in code of a profile, to which nodes refer by index: rows by index, columns by name."""
    __slots__ = ("_locations", "_modules", "_columns")

    def __init__(self, owner, locations, n, modules):
        super().__init__(owner, n)
        self._locations, self._modules = locations, modules
        self._columns = {}

    def _row(self, i):
        return Location(self._owner, self._locations + i)

    def _member(self, name, form):
        kind = "struct fathom_profile_location"
        return strided(self._owner, self._locations, self._n, ffi.sizeof(kind), ffi.offsetof(kind, name), form)

    def _texts(self, name, text_of):
        """A column of texts. It is made once: there are few locations beside samples."""
        if name not in self._columns:
            numbers = {None: -1}
            codes = array("i", (numbers.setdefault(text_of(row), len(numbers) - 1) for row in self))
            self._columns[name] = TextColumn(memoryview(codes).toreadonly(), list(numbers)[1:])
        return self._columns[name]

    @property
    def address(self):
        # The address is the first member of pc.
        return self._member("pc", "Q")

    @property
    def module(self):
        # No module is UINT32_MAX, which is -1.
        return TextColumn(self._member("module", "i"), [module.path for module in self._modules])

    @property
    def trust(self):
        return TextColumn(self._member("trust", "B"), TRUSTS)

    @property
    def symbol(self):
        return self._texts("symbol", lambda row: row.symbol)

    @property
    def function(self):
        return self._texts("function", lambda row: row.frames[0].function if row.symbol else None)


class ProfileNode(NamedTuple):
    """A frame with all that called it: caller is the node of its caller, 0 for none; location is an index."""
    caller: int
    location: int


class ProfileNodes(Rows):
    """The nodes of a profile: all that stacks have in common is one node. A caller has a lower number; number 0 is no stack."""
    __slots__ = ("_nodes",)

    def __init__(self, owner, nodes, n):
        super().__init__(owner, n)
        self._nodes = nodes

    def _row(self, i):
        node = self._nodes[i]
        return ProfileNode(node.caller, node.location)

    def _member(self, name, form):
        kind = "struct fathom_profile_node"
        return strided(self._owner, self._nodes, self._n, ffi.sizeof(kind), ffi.offsetof(kind, name), form)

    @property
    def caller(self):
        return self._member("caller", "I")

    @property
    def location(self):
        return self._member("location", "I")


class Sample(NamedTuple):
    """A sample: ns since the recording began, its weight in the unit of the event, or nanoseconds of a wait; thread and node by
    index. part: sampled, kernel-hidden, unsampled, waiting or runnable; stop says why the stack ends, "entry": it is whole;
    waker, who has ended a wait: a thread by index, "interrupt", or None: it is not known."""
    ns: int
    weight: int
    thread: int
    node: int
    part: "str | None"
    stop: "str | None"
    waker: "int | str | None" = None


def waker_of(sample):
    """Who has ended the wait of @sample: an index of threads, "interrupt", or None: it is not known."""
    if sample.waker == lib.FATHOM_PROFILE_INTERRUPT:
        return "interrupt"
    return sample.waker - 1 if sample.waker else None


class Samples(Rows):
    """The samples of a profile, in the order of the file: rows by index, columns by name."""
    __slots__ = ()

    def _row(self, i):
        s = self._owner[i]
        return Sample(s.ns, s.weight, s.thread, s.node, word(PARTS, s.part), word(STOPS, s.stop), waker_of(s))

    def _member(self, name, form):
        kind = "struct fathom_profile_sample"
        return strided(self._owner, self._owner, self._n, ffi.sizeof(kind), ffi.offsetof(kind, name), form)

    @property
    def ns(self):
        return self._member("ns", "Q")

    @property
    def weight(self):
        return self._member("weight", "Q")

    @property
    def thread(self):
        return self._member("thread", "I")

    @property
    def node(self):
        return self._member("node", "I")

    @property
    def part(self):
        return TextColumn(self._member("part", "B"), PARTS)

    @property
    def stop(self):
        return TextColumn(self._member("stop", "B"), STOPS)

    @property
    def waker(self):
        return self._member("waker", "I")


def listed(function, handle):
    """An array of a profile: a pointer, and how many there are."""
    n = ffi.new("size_t *")
    return function(handle.pointer, n), n[0]


class Profile(Closable):
    """A profile, whose names are found when it is opened. All methods may be called by several threads at the same time."""
    __slots__ = ("_session", "_samples")
    _kind = "profile"

    def __init__(self, session, path, resolve, names_only, demangle, sysroot, debug_dirs, frames):
        self._session = session
        self._samples = None
        self._handle = None
        self._handle = Handle(made("struct fathom_profile *", lib.fathom_profile_open, session._handle.pointer, path_bytes(path)),
                              lib.fathom_profile_free)
        raise_pending()
        call(lib.fathom_profile_show_frames, self._handle.pointer, chosen(FRAMES, "frames", frames))
        if resolve:
            self._resolve(names_only, demangle, sysroot, debug_dirs)

    def _resolve(self, names_only, demangle, sysroot, debug_dirs):
        """Finds the names; later would be too late, as other threads may read them then."""
        root = ffi.NULL if sysroot is None else ffi.new("char[]", path_bytes(sysroot))
        dirs = paths_of(debug_dirs)
        bits = flags(NAMES_ONLY=names_only, NO_DEMANGLE=not demangle)
        options = options_of("struct fathom_profile_resolve_options", flags=bits, sysroot=root, debug_dirs=dirs[0])
        call(lib.fathom_profile_resolve, self._handle.pointer, options)
        raise_pending()

    def close(self):
        """Closes it once calls of other threads have returned. What it has given stays valid."""
        super().close()
        self._samples = None

    def __repr__(self):
        if self.closed:
            return "<Profile closed>"
        info = self.info
        return f"<Profile of {info.command!r}: {info.samples} samples, {info.waits} waits>"

    @property
    def info(self):
        handle = self._use()
        return info_of(lib.fathom_profile_get_info(handle.pointer))

    @property
    def threads(self):
        handle = self._use()
        return ProfileThreads(handle, *listed(lib.fathom_profile_threads, handle))

    @property
    def modules(self):
        handle = self._use()
        return ProfileModules(handle, *listed(lib.fathom_profile_modules, handle))

    @property
    def locations(self):
        handle = self._use()
        return Locations(handle, *listed(lib.fathom_profile_locations, handle), self.modules)

    @property
    def nodes(self):
        handle = self._use()
        return ProfileNodes(handle, *listed(lib.fathom_profile_nodes, handle))

    @property
    def samples(self):
        """The samples: read when they are asked for first, 32 bytes each."""
        handle = self._use()
        found = self._samples
        if found is None:
            info = lib.fathom_profile_get_info(handle.pointer)
            n = info.n_samples + info.n_waits
            items = _new_samples("struct fathom_profile_sample[]", max(n, 1))
            room = ffi.new("struct python_samples *", {"items": items, "room": n})
            call(lib.fathom_profile_each_sample, handle.pointer, ffi.addressof(lib, "python_take_sample"), room)
            if room.n != n:
                raise error(lib.FATHOM_E_CHANGED, "the profile was written to since it was opened")
            found = self._samples = Samples(items, n)
        return found

    def frames(self, node):
        """The stack that a node, such as that of a sample, stands for: a list of Location, the innermost first."""
        handle = self._use()
        (nodes, n), (locations, _) = listed(lib.fathom_profile_nodes, handle), listed(lib.fathom_profile_locations, handle)
        node = node.__index__()
        if not 0 <= node < n:
            raise IndexError("the profile has no such node")
        found = []
        while node:
            found.append(Location(handle, locations + nodes[node].location))
            node = nodes[node].caller
        return found

    def report(self, *, by="function", tree="top-down", of=None, min_share=0.0, time="cpu", from_ns=0, to_ns=0, only=(),
               exclude=(), under=()):
        """A Report: the sums by function, line, module, thread, process, reason, cgroup or waker, and a tree of what leads to what:
        top-down, bottom-up, or the callers or callees of the functions of a query. time is cpu, waiting or wall. Queries are those of
        find()."""
        handle = self._use()
        options, _kept = report_options(by, tree, of, min_share, time=time, from_ns=from_ns, to_ns=to_ns, only=only,
                                        exclude=exclude, under=under)
        pointer = made("struct fathom_report *", lib.fathom_report_create, handle.pointer, options)
        report = Report(pointer, by)
        raise_pending()
        return report

    def annotate(self, query=None, *, limit=100, intel=False, demangle=True, instructions=True, source=True, source_dirs=None,
                 sysroot=None, debug_dirs=None, time="cpu", from_ns=0, to_ns=0, only=(), exclude=(), under=()):
        """An Annotation: the instructions and source lines of the functions of a query, or of all, the heaviest first, limit of them
        at most. Instructions are those of the files with the recorded build-ids; sources are looked for in source_dirs first."""
        handle = self._use()
        options, _kept = annotation_options(query, limit, intel=intel, demangle=demangle, instructions=instructions, source=source,
                                            source_dirs=source_dirs, sysroot=sysroot, debug_dirs=debug_dirs, time=time,
                                            from_ns=from_ns, to_ns=to_ns, only=only, exclude=exclude, under=under)
        pointer = made("struct fathom_annotation *", lib.fathom_annotation_create, handle.pointer, options)
        annotation = Annotation(pointer)
        raise_pending()
        return annotation

    def diff(self, after, *, per="cpu", counts=None, time="cpu", from_ns=0, to_ns=0, only=(), exclude=(), under=()):
        """A Diff of this profile and a later one: the functions that have got slower or faster. Weights are divided by all weight
        of their profile (cpu), by the seconds that it took (wall), or by two counts, such as of requests. With time waiting or
        wall, changes are not tested: they have no interval and no chance."""
        handle, other = self._use(), after._use()
        options, _kept = diff_options(per, counts, time=time, from_ns=from_ns, to_ns=to_ns, only=only, exclude=exclude,
                                      under=under)
        pointer = made("struct fathom_diff *", lib.fathom_diff_create, handle.pointer, other.pointer, options)
        diff = Diff(pointer)
        raise_pending()
        return diff

    def export(self, path, format, *, time="cpu", from_ns=0, to_ns=0, only=(),  # pylint: disable=redefined-builtin
               exclude=(), under=()):
        """Writes a file of another program: collapsed stacks of flame graphs, or a profile of pprof, speedscope, Firefox (firefox) or
        Perfetto (perfetto); or a picture: a flame graph (svg), or bars (svg-bars); or a page for a browser."""
        handle = self._use()
        number = chosen(FORMATS, "format", format)
        options, _kept = report_options(time=time, from_ns=from_ns, to_ns=to_ns, only=only, exclude=exclude, under=under)
        with output_to(path, 0o666) as output:
            call(lib.fathom_profile_export, handle.pointer, number, options, ffi.addressof(lib, "python_write"), output)
            raise_pending()
