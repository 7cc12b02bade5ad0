# SPDX-License-Identifier: MIT
# The types of the public names. A row's values that are not known are None.
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import IntEnum
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, SupportsIndex, overload

__all__ = ["NO_ADDRESS", "AnnotatedCode", "AnnotatedFunction", "AnnotatedInstruction", "AnnotatedInstructions", "AnnotatedLine",
           "AnnotatedLines", "Annotation", "Answer", "Answers", "Death", "Detail", "Diff", "DiffRow", "DiffRows", "DiffSums", "Error", "ErrorCode",
           "Fault", "Frame", "Instruction", "Instructions", "LeftOut", "Location", "Locations", "Match", "Matches", "Profile",
           "ProfileInfo", "ProfileModule", "ProfileModules", "ProfileNode", "ProfileNodes", "ProfileThread", "ProfileThreads",
           "Recorded", "Recording", "Report", "ReportNode", "ReportRow", "ReportRows", "ReportSums", "ReportTree", "Sample",
           "Samples", "Session", "StackFrame", "StackFrames", "Stacks", "Target", "TargetInfo", "TextColumn", "Thread",
           "ThreadException", "Value", "ftrace", "open", "profile", "record", "recording", "start", "stop", "thread", "version"]

_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Queries = str | Iterable[str]
_Event = Literal["task-clock", "cycles"]
_Method = Literal["perf-events", "polling"]
_Frames = Literal["merged", "script", "native", "all"]
_Time = Literal["cpu", "waiting", "wall"]

NO_ADDRESS: Final[int]

class ErrorCode(IntEnum):
    ARGUMENT = -1
    MEMORY = -2
    OS = -3
    FORMAT = -4
    CORRUPT = -5
    LIMIT = -6
    UNSUPPORTED = -7
    MISMATCH = -8
    NOT_FOUND = -9
    TIMEOUT = -10
    CANCELLED = -11
    CHANGED = -12

class Detail(NamedTuple):
    what: str
    file: str | None = ...
    section: str | None = ...
    offset: int = ...
    errno: int = ...
    cause: int = ...
    part: int = ...

class Error(Exception):
    code: ErrorCode | int
    text: str
    detail: Detail
    def __init__(self, code: ErrorCode | int, text: str, detail: Detail) -> None: ...

class Frame(NamedTuple):
    function: str | None
    linkage_name: str | None
    file: str | None
    line: int | None
    column: int | None
    discriminator: int | None
    inlined: bool

class Answer:
    def __init__(self, owner: Any, answer: Any) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def module(self) -> str | None: ...
    @property
    def build_id(self) -> str | None: ...
    @property
    def module_address(self) -> int | None: ...
    @property
    def symbol(self) -> str | None: ...
    @property
    def linkage_name(self) -> str | None: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def size(self) -> int | None: ...
    @property
    def source(self) -> str | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def frames(self) -> list[Frame]: ...
    def asdict(self) -> dict[str, Any]: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class TextColumn(Sequence[str | None]):
    codes: memoryview
    texts: list[str]
    def __init__(self, codes: memoryview, texts: list[str]) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: int) -> str | None: ...
    @overload
    def __getitem__(self, i: slice) -> list[str | None]: ...
    def __iter__(self) -> Iterator[str | None]: ...

class Answers(Sequence[Answer]):
    def __init__(self, pointer: Any) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> Answer: ...
    @overload
    def __getitem__(self, i: slice) -> list[Answer]: ...
    def __iter__(self) -> Iterator[Answer]: ...
    @property
    def address(self) -> memoryview: ...
    @property
    def module_address(self) -> memoryview: ...
    @property
    def offset(self) -> memoryview: ...
    @property
    def size(self) -> memoryview: ...
    @property
    def line(self) -> memoryview: ...
    @property
    def column(self) -> memoryview: ...
    @property
    def symbol(self) -> TextColumn: ...
    @property
    def linkage_name(self) -> TextColumn: ...
    @property
    def module(self) -> TextColumn: ...
    @property
    def build_id(self) -> TextColumn: ...
    @property
    def function(self) -> TextColumn: ...
    @property
    def file(self) -> TextColumn: ...
    @property
    def source(self) -> TextColumn: ...
    @property
    def reason(self) -> TextColumn: ...

class Match(NamedTuple):
    query: str
    name: str | None
    linkage_name: str | None
    address: int | None
    module: str | None
    module_address: int | None
    size: int | None
    type: str | None
    binding: str | None
    version: str | None
    default_version: bool | None
    table: str | None
    rank: int | None
    file: str | None
    line: int | None
    inlined_into: str | None
    source: str | None
    resolver: int | None
    tid: int | None
    reason: str | None

class Matches(Sequence[Match]):
    def __init__(self, pointer: Any, queries: tuple[str, ...]) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> Match: ...
    @overload
    def __getitem__(self, i: slice) -> list[Match]: ...
    def __iter__(self) -> Iterator[Match]: ...

class Instruction(NamedTuple):
    address: int
    bytes: bytes
    text: str
    target: int | None
    target_name: str | None
    file: str | None
    line: int | None

class Instructions(Sequence[Instruction]):
    next: int
    def __init__(self, pointer: Any) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> Instruction: ...
    @overload
    def __getitem__(self, i: slice) -> list[Instruction]: ...
    def __iter__(self) -> Iterator[Instruction]: ...

class Value(NamedTuple):
    value: Any
    address: int
    reason: str | None
    is_cut: bool

class StackFrame(Answer):
    def __init__(self, owner: Any, frame: Any) -> None: ...
    @property
    def pc(self) -> int: ...
    @property
    def sp(self) -> int | None: ...
    @property
    def trust(self) -> str | None: ...
    @property
    def kind(self) -> Literal["native", "script", "runtime"]: ...
    @property
    def runtime(self) -> str | None: ...
    @property
    def is_signal_return(self) -> bool: ...

class StackFrames(Sequence[StackFrame]):
    def __init__(self, owner: Any, thread: Any) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> StackFrame: ...
    @overload
    def __getitem__(self, i: slice) -> list[StackFrame]: ...
    def __iter__(self) -> Iterator[StackFrame]: ...

class LeftOut(NamedTuple):
    frames: int
    before: int
    trust: str | None

class ThreadException(NamedTuple):
    type: str
    what: str | None
    what_cut: bool
    uncaught: bool | None

class Fault(NamedTuple):
    address: int | None
    access: str | None
    place: str | None
    stack_tid: int | None
    file: str | None
    file_offset: int | None

class Death(NamedTuple):
    abort_message: str | None
    abort_message_cut: bool
    abort_message_why: str | None
    exception: ThreadException | None
    exception_why: str | None
    fault: Fault | None

class Thread(NamedTuple):
    pid: int | None
    tid: int
    name: str | None
    state: str | None
    syscall: str | None
    waits_for: str | None
    owner: int | None
    signal: int | None
    signal_name: str | None
    signal_code: str | None
    fault_address: int | None
    died: Death | None
    registers: dict[str, int]
    frames: StackFrames
    left_out: LeftOut | None
    stop: str | None
    reason: str | None
    why: str | None
    script_why: str | None
    pause_us: int

class Stacks(Sequence[Thread]):
    def __init__(self, pointer: Any) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> Thread: ...
    @overload
    def __getitem__(self, i: slice) -> list[Thread]: ...
    def __iter__(self) -> Iterator[Thread]: ...

class TargetInfo(NamedTuple):
    kind: str
    path: str
    debug_path: str | None
    build_id: str | None
    pid: int | None
    command: str | None
    is_64bit: bool
    is_relocatable: bool

class Target:
    def __init__(self, session: Session, target: int | _Path | None, exe: _Path | None, sysroot: _Path | None,
                 debug_dirs: Iterable[_Path] | None, unverified_files: bool) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Target: ...
    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...
    @property
    def info(self) -> TargetInfo: ...
    @property
    def notes(self) -> list[Error]: ...
    @overload
    def addr(self, addresses: Iterable[int], *, return_addresses: bool | Iterable[int] = ..., names_only: bool = ...,
             demangle: bool = ...) -> Answers: ...
    @overload
    def addr(self, addresses: SupportsIndex, *, return_addresses: bool = ..., names_only: bool = ..., demangle: bool = ...) -> Answer: ...
    def find(self, *queries: str, regex: bool = ..., literal: bool = ..., inlined: bool = ..., exported: bool = ..., linked: bool = ...,
             limit: int = ..., tid: int = ...) -> Matches: ...
    def address(self, name: str) -> int: ...
    def disasm(self, start: int | str, end: int | None = ..., *, intel: bool = ..., lines: bool = ..., demangle: bool = ...,
               limit: int = ...) -> Instructions: ...
    def stack(self, tids: Iterable[int] | None = ..., *, stop: Literal["auto", "never", "all"] = ..., names_only: bool = ...,
              demangle: bool = ..., max_frames: int = ..., timeout: float = ..., scripts: bool = ...) -> Stacks: ...
    def snapshot(self, path: _Path, *, stacks: bool = ...) -> None: ...
    def values(self, type: str, addresses: Iterable[int]) -> list[Value]: ...
    def value(self, type: str, address: int | str) -> Any: ...
    def read(self, address: int, size: int) -> bytes: ...
    def section_address(self, name: str, offset: int = ...) -> int: ...

class ProfileInfo(NamedTuple):
    command: str | None
    event: str | None
    unit: str | None
    method: str | None
    machine: str | None
    kernel: str | None
    host: str | None
    frequency: int | None
    started: int | None
    duration_ns: int
    weight: int
    samples: int
    stacks: int
    whole: int | None
    waiting_ns: int
    runnable_ns: int
    waits: int
    lost: int
    throttled: int
    kernel_hidden: bool
    complete: bool

class ProfileThread(NamedTuple):
    pid: int
    tid: int
    parent: int | None
    ns: int
    name: str
    process: str
    cgroup: str | None

class ProfileThreads(Sequence[ProfileThread]):
    def __init__(self, owner: Any, threads: Any, n: int) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> ProfileThread: ...
    @overload
    def __getitem__(self, i: slice) -> list[ProfileThread]: ...
    def __iter__(self) -> Iterator[ProfileThread]: ...

class ProfileModule(NamedTuple):
    path: str
    build_id: str | None
    kind: str | None
    file_size: int | None
    changed: int | None

class ProfileModules(Sequence[ProfileModule]):
    def __init__(self, owner: Any, modules: Any, n: int) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> ProfileModule: ...
    @overload
    def __getitem__(self, i: slice) -> list[ProfileModule]: ...
    def __iter__(self) -> Iterator[ProfileModule]: ...

class Location(Answer):
    def __init__(self, owner: Any, location: Any) -> None: ...
    @property
    def trust(self) -> str | None: ...
    @property
    def is_return_address(self) -> bool: ...
    @property
    def is_signal_return(self) -> bool: ...

class Locations(Sequence[Location]):
    def __init__(self, owner: Any, locations: Any, n: int, modules: ProfileModules) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> Location: ...
    @overload
    def __getitem__(self, i: slice) -> list[Location]: ...
    def __iter__(self) -> Iterator[Location]: ...
    @property
    def address(self) -> memoryview: ...
    @property
    def module(self) -> TextColumn: ...
    @property
    def trust(self) -> TextColumn: ...
    @property
    def symbol(self) -> TextColumn: ...
    @property
    def function(self) -> TextColumn: ...

class ProfileNode(NamedTuple):
    caller: int
    location: int

class ProfileNodes(Sequence[ProfileNode]):
    def __init__(self, owner: Any, nodes: Any, n: int) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> ProfileNode: ...
    @overload
    def __getitem__(self, i: slice) -> list[ProfileNode]: ...
    def __iter__(self) -> Iterator[ProfileNode]: ...
    @property
    def caller(self) -> memoryview: ...
    @property
    def location(self) -> memoryview: ...

class Sample(NamedTuple):
    ns: int
    weight: int
    thread: int
    node: int
    part: str | None
    stop: str | None
    waker: int | str | None = ...

class Samples(Sequence[Sample]):
    def __init__(self, owner: Any, n: int) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> Sample: ...
    @overload
    def __getitem__(self, i: slice) -> list[Sample]: ...
    def __iter__(self) -> Iterator[Sample]: ...
    @property
    def ns(self) -> memoryview: ...
    @property
    def weight(self) -> memoryview: ...
    @property
    def thread(self) -> memoryview: ...
    @property
    def node(self) -> memoryview: ...
    @property
    def part(self) -> TextColumn: ...
    @property
    def stop(self) -> TextColumn: ...
    @property
    def waker(self) -> memoryview: ...

class ReportRow(NamedTuple):
    kind: str
    name: str | None
    linkage_name: str | None
    module: str | None
    file: str | None
    line: int | None
    pid: int | None
    tid: int | None
    cgroup: str | None
    stop: str | None
    self: int
    total: int
    self_samples: int
    total_samples: int

class ReportRows(Sequence[ReportRow]):
    def __init__(self, owner: Any, by: str) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> ReportRow: ...
    @overload
    def __getitem__(self, i: slice) -> list[ReportRow]: ...
    def __iter__(self) -> Iterator[ReportRow]: ...

class ReportNode(NamedTuple):
    row: ReportRow | None
    parent: int
    depth: int
    self: int
    total: int
    left_out: int
    branches_left_out: int

class ReportTree(Sequence[ReportNode]):
    def __init__(self, owner: Any, by: str) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> ReportNode: ...
    @overload
    def __getitem__(self, i: slice) -> list[ReportNode]: ...
    def __iter__(self) -> Iterator[ReportNode]: ...

class ReportSums(NamedTuple):
    weight: int
    shown: int
    hidden: int
    unsampled: int
    samples: int
    stacks: int
    whole: int

class Report:
    rows: ReportRows
    tree: ReportTree
    sums: ReportSums
    def __init__(self, pointer: Any, by: str) -> None: ...

class AnnotatedLine(NamedTuple):
    file: str
    line: int
    inlined_function: str | None
    text: str | None
    has_code: bool
    self: int
    inlined: int
    total: int
    self_samples: int
    inlined_samples: int
    total_samples: int
    source_file: str | None
    source_origin: str | None
    source_proven: bool
    source_newer: bool
    source_reason: str | None

class AnnotatedLines(Sequence[AnnotatedLine]):
    def __init__(self, owner: Any, lines: Any, n: int) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> AnnotatedLine: ...
    @overload
    def __getitem__(self, i: slice) -> list[AnnotatedLine]: ...
    def __iter__(self) -> Iterator[AnnotatedLine]: ...

class AnnotatedCode(NamedTuple):
    name: str | None
    module: str | None
    address: int
    size: int | None
    inlined_here: bool
    first: int
    instructions: int
    elsewhere: int
    reason: str | None

class AnnotatedInstruction(NamedTuple):
    code: int
    address: int
    bytes: bytes
    text: str
    target: int | None
    jump: int | None
    line: int | None
    inlined_line: int | None
    outside: bool
    self: int
    inlined: int
    total: int
    self_samples: int
    inlined_samples: int
    total_samples: int

class AnnotatedInstructions(Sequence[AnnotatedInstruction]):
    def __init__(self, owner: Any, instructions: Any, n: int) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> AnnotatedInstruction: ...
    @overload
    def __getitem__(self, i: slice) -> list[AnnotatedInstruction]: ...
    def __iter__(self) -> Iterator[AnnotatedInstruction]: ...

class AnnotatedFunction(NamedTuple):
    name: str | None
    linkage_name: str | None
    module: str | None
    self: int
    inlined: int
    total: int
    self_samples: int
    inlined_samples: int
    total_samples: int
    elsewhere: int
    no_line: int
    reason: str | None
    code: list[AnnotatedCode]
    lines: AnnotatedLines
    instructions: AnnotatedInstructions

class Annotation(Sequence[AnnotatedFunction]):
    left_out: int
    sums: ReportSums
    def __init__(self, pointer: Any) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> AnnotatedFunction: ...
    @overload
    def __getitem__(self, i: slice) -> list[AnnotatedFunction]: ...
    def __iter__(self) -> Iterator[AnnotatedFunction]: ...

class DiffRow(NamedTuple):
    kind: str
    name: str | None
    linkage_name: str | None
    module: str | None
    verdict: str | None
    self: tuple[int, int]
    self_samples: tuple[int, int]
    values: tuple[float, float]
    change: float
    interval: tuple[float, float] | None
    chance: float | None

class DiffRows(Sequence[DiffRow]):
    def __init__(self, owner: Any) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: SupportsIndex) -> DiffRow: ...
    @overload
    def __getitem__(self, i: slice) -> list[DiffRow]: ...
    def __iter__(self) -> Iterator[DiffRow]: ...

class DiffSums(NamedTuple):
    weight: tuple[int, int]
    samples: tuple[int, int]
    effective: tuple[float, float]
    divisors: tuple[float, float]
    slower: int
    faster: int

class Diff:
    rows: DiffRows
    sums: DiffSums
    def __init__(self, pointer: Any) -> None: ...

class Profile:
    def __init__(self, session: Session, path: _Path, resolve: bool, names_only: bool, demangle: bool, sysroot: _Path | None,
                 debug_dirs: Iterable[_Path] | None, frames: _Frames) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Profile: ...
    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...
    @property
    def info(self) -> ProfileInfo: ...
    @property
    def threads(self) -> ProfileThreads: ...
    @property
    def modules(self) -> ProfileModules: ...
    @property
    def locations(self) -> Locations: ...
    @property
    def nodes(self) -> ProfileNodes: ...
    @property
    def samples(self) -> Samples: ...
    def frames(self, node: SupportsIndex) -> list[Location]: ...
    def report(self, *, by: Literal["function", "line", "module", "thread", "process", "reason", "cgroup", "waker"] = ...,
               tree: Literal["top-down", "bottom-up", "callers", "callees"] = ..., of: str | None = ..., min_share: float = ...,
               time: _Time = ..., from_ns: int = ..., to_ns: int = ..., only: _Queries = ...,
               exclude: _Queries = ..., under: _Queries = ...) -> Report: ...
    def annotate(self, query: str | None = ..., *, limit: int | None = ..., intel: bool = ..., demangle: bool = ..., instructions: bool = ...,
                 source: bool = ..., source_dirs: Iterable[_Path] | None = ..., sysroot: _Path | None = ...,
                 debug_dirs: Iterable[_Path] | None = ..., time: _Time = ..., from_ns: int = ..., to_ns: int = ..., only: _Queries = ...,
                 exclude: _Queries = ..., under: _Queries = ...) -> Annotation: ...
    def diff(self, after: Profile, *, per: Literal["cpu", "wall", "count"] = ..., counts: Sequence[int] | None = ..., time: _Time = ...,
             from_ns: int = ..., to_ns: int = ..., only: _Queries = ..., exclude: _Queries = ...,
             under: _Queries = ...) -> Diff: ...
    def export(self, path: _Path, format: Literal["collapsed", "pprof", "speedscope", "firefox", "perfetto", "svg", "svg-bars", "page"],
               *, time: _Time = ..., from_ns: int = ..., to_ns: int = ..., only: _Queries = ..., exclude: _Queries = ...,
               under: _Queries = ...) -> None: ...

class Recorded(NamedTuple):
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
    event: str | None
    method: str | None
    returncode: int | None
    cut: bool
    kernel_hidden: bool
    scripts_missed: int

class Recording:
    result: Recorded | None
    def __init__(self, run: Callable[[Callable[[], bool]], Recorded]) -> None: ...
    def __enter__(self) -> Recording: ...
    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Session:
    def __init__(self, *, cache: bool = ..., debuginfod: bool = ..., threads: int = ..., memory_budget: int = ...,
                 cache_dir: _Path | None = ..., cache_limit: int = ..., debuginfod_timeout: float = ..., file_timeout: float = ...,
                 progress: Callable[[str, int, int], object] | None = ...) -> None: ...
    @property
    def memory_used(self) -> int: ...
    def open(self, target: int | _Path | None = ..., *, exe: _Path | None = ..., sysroot: _Path | None = ...,
             debug_dirs: Iterable[_Path] | None = ..., unverified_files: bool = ...) -> Target: ...
    def profile(self, path: _Path, *, resolve: bool = ..., names_only: bool = ..., demangle: bool = ..., sysroot: _Path | None = ...,
                debug_dirs: Iterable[_Path] | None = ..., frames: _Frames = ...) -> Profile: ...
    def record(self, path: _Path, program: Sequence[_Path] | None = ..., *, pids: int | Iterable[int] | Literal["all"] | None = ...,
               seconds: float | None = ..., until: Callable[[], object] | None = ..., frequency: int = ..., event: _Event | None = ...,
               method: _Method | None = ..., waits: bool = ..., max_bytes: int = ...) -> Recorded: ...
    def recording(self, path: _Path, *, pids: int | Iterable[int] | Literal["all"] | None = ..., frequency: int = ...,
                  event: _Event | None = ..., method: _Method | None = ..., waits: bool = ..., max_bytes: int = ...) -> Recording: ...

def open(target: int | _Path | None = ..., *, exe: _Path | None = ..., sysroot: _Path | None = ...,
         debug_dirs: Iterable[_Path] | None = ..., unverified_files: bool = ...) -> Target: ...
def profile(path: _Path, *, resolve: bool = ..., names_only: bool = ..., demangle: bool = ..., sysroot: _Path | None = ...,
            debug_dirs: Iterable[_Path] | None = ..., frames: _Frames = ...) -> Profile: ...
def record(path: _Path, program: Sequence[_Path] | None = ..., *, pids: int | Iterable[int] | Literal["all"] | None = ...,
           seconds: float | None = ..., until: Callable[[], object] | None = ..., frequency: int = ..., event: _Event | None = ...,
           method: _Method | None = ..., waits: bool = ..., max_bytes: int = ...) -> Recorded: ...
def recording(path: _Path, *, pids: int | Iterable[int] | Literal["all"] | None = ..., frequency: int = ...,
              event: _Event | None = ..., method: _Method | None = ..., waits: bool = ..., max_bytes: int = ...) -> Recording: ...
def version() -> str: ...
def start(options: str = ...) -> None: ...
def stop() -> None: ...
def thread(change: int) -> int: ...
def ftrace(options: str = ...) -> AbstractContextManager[None]: ...
