# SPDX-License-Identifier: MIT
"""Reports of profiles, and comparisons of two."""
from typing import NamedTuple

from fathom._answers import Rows
from fathom._fathom import ffi, lib
from fathom._library import chosen, options_of, owned, query_bytes, text, word
from fathom._stacks import STOPS

KEYS = {"function": lib.FATHOM_REPORT_BY_FUNCTION, "line": lib.FATHOM_REPORT_BY_LINE, "module": lib.FATHOM_REPORT_BY_MODULE,
        "thread": lib.FATHOM_REPORT_BY_THREAD, "process": lib.FATHOM_REPORT_BY_PROCESS,
        "reason": lib.FATHOM_REPORT_BY_REASON, "cgroup": lib.FATHOM_REPORT_BY_CGROUP, "waker": lib.FATHOM_REPORT_BY_WAKER}
TREES = {"top-down": lib.FATHOM_REPORT_TOP_DOWN, "bottom-up": lib.FATHOM_REPORT_BOTTOM_UP, "callers": lib.FATHOM_REPORT_CALLERS,
         "callees": lib.FATHOM_REPORT_CALLEES}
TIMES = {"cpu": lib.FATHOM_REPORT_CPU, "waiting": lib.FATHOM_REPORT_WAITING, "wall": lib.FATHOM_REPORT_WALL}
ROW_KINDS = {lib.FATHOM_REPORT_ROW_THREAD: "thread", lib.FATHOM_REPORT_ROW_PROCESS: "process",
             lib.FATHOM_REPORT_ROW_KERNEL_HIDDEN: "kernel-hidden", lib.FATHOM_REPORT_ROW_UNSAMPLED: "unsampled",
             lib.FATHOM_REPORT_ROW_INCOMPLETE: "incomplete", lib.FATHOM_REPORT_ROW_REASON: "reason",
             lib.FATHOM_REPORT_ROW_CGROUP: "cgroup", lib.FATHOM_REPORT_ROW_WAKER: "waker"}
DIVISORS = {"cpu": lib.FATHOM_DIFF_PER_CPU, "wall": lib.FATHOM_DIFF_PER_WALL, "count": lib.FATHOM_DIFF_PER_COUNT}
VERDICTS = {lib.FATHOM_DIFF_NOT_SIGNIFICANT: "not-significant", lib.FATHOM_DIFF_SLOWER: "slower",
            lib.FATHOM_DIFF_FASTER: "faster", lib.FATHOM_DIFF_NOT_TESTED: "not-tested"}


def queries_of(queries):
    """Queries as members of an option struct, and what these point to. A str is one query."""
    kept = [ffi.new("char[]", query_bytes(query)) for query in ([queries] if isinstance(queries, str) else queries)]
    return ffi.new("char *[]", kept) if kept else ffi.NULL, len(kept), kept


def report_options(by="function", tree="top-down", of=None, min_share=0.0, *, time="cpu", from_ns=0, to_ns=0, only=(), exclude=(),
                   under=()):
    """struct fathom_report_options, and what it points to."""
    if not 0 <= min_share <= 1:
        raise ValueError("min_share is from 0 to 1")
    if (of is None) == (tree in ("callers", "callees")):
        raise ValueError("of is a query: for tree='callers' and tree='callees', and only for these")
    start = ffi.NULL if of is None else ffi.new("char[]", query_bytes(of))
    only, exclude, under = queries_of(only), queries_of(exclude), queries_of(under)
    options = options_of("struct fathom_report_options", key=chosen(KEYS, "by", by), shape=chosen(TREES, "tree", tree),
                         least_share=round(min_share * 1e6), time=chosen(TIMES, "time", time), from_ns=from_ns, to_ns=to_ns,
                         only=only[0], n_only=only[1], under=under[0], n_under=under[1], of=start)
    # except is a word of Python's.
    setattr(options, "except", exclude[0])
    options.n_except = exclude[1]
    return options, (start, only, exclude, under)


def diff_options(per, counts, **filters):
    """struct fathom_diff_options, and what it points to."""
    if per == "count" and (counts is None or len(counts) != 2):
        raise ValueError("counts are two numbers: of this profile, and of the other one")
    if per != "count" and counts is not None:
        raise ValueError("counts are for per='count'")
    kept = report_options(**filters)
    divisor = chosen(DIVISORS, "per", per)
    return options_of("struct fathom_diff_options", per=divisor, counts=counts or (0, 0), filters=kept[0]), kept


class ReportRow(NamedTuple):
    """What weights are summed up by, as `fathom report --json` names its values: a function, or whatever else. self is the weight
    of the samples that were in it, total that of those in it or in what it called."""
    kind: str
    name: "str | None"
    linkage_name: "str | None"
    module: "str | None"
    file: "str | None"
    line: "int | None"
    pid: "int | None"
    tid: "int | None"
    cgroup: "str | None"
    stop: "str | None"
    self: int
    total: int
    self_samples: int
    total_samples: int


def name_of(row):
    """The name of a row; None: code without a name."""
    name = text(row.name)
    return None if name == "??" and row.kind == lib.FATHOM_REPORT_ROW_CODE else name


def row_of(row, by):
    is_cut = row.kind == lib.FATHOM_REPORT_ROW_INCOMPLETE
    kind = ROW_KINDS.get(row.kind, by if by in ("line", "module") else "function")
    return ReportRow(kind, name_of(row), text(row.linkage_name), text(row.module), text(row.file), row.line or None,
                     row.pid or None, row.tid or None, text(row.cgroup), word(STOPS, row.stop) if is_cut else None,
                     row.self, row.total, row.self_samples, row.total_samples)


class ReportNode(NamedTuple):
    """A node of a tree: parent is an index. self is the weight of the stacks that end here, total that of those that lead here;
    left_out is the weight of the branches below it that are too light to be told."""
    row: "ReportRow | None"
    parent: int
    depth: int
    self: int
    total: int
    left_out: int
    branches_left_out: int


class ReportSums(NamedTuple):
    """Sums of a report: of all samples of the time, and of those that filters have left (shown)."""
    weight: int
    shown: int
    hidden: int
    unsampled: int
    samples: int
    stacks: int
    whole: int


class ReportRows(Rows):
    """Rows that have a weight, those of the highest self weight first."""
    __slots__ = ("_rows", "_by")

    def __init__(self, owner, by):
        n = ffi.new("size_t *")
        self._rows, self._by = lib.fathom_report_rows(owner, n), by
        super().__init__(owner, n[0])

    def _row(self, i):
        return row_of(self._rows[i], self._by)


class ReportTree(Rows):
    """Nodes, each followed by those below it. Node 0 stands for all, and has no row."""
    __slots__ = ("_nodes", "_by")

    def __init__(self, owner, by):
        n = ffi.new("size_t *")
        self._nodes, self._by = lib.fathom_report_nodes(owner, n), by
        super().__init__(owner, n[0])

    def _row(self, i):
        node = self._nodes[i]
        return ReportNode(row_of(node.row, self._by) if node.row else None, node.parent, node.depth, node.self, node.total,
                          node.left_out, node.n_left_out)


class Report:
    """A report of a profile, which it does not need any more."""
    __slots__ = ("rows", "tree", "sums")

    def __init__(self, pointer, by):
        owner = owned(pointer, lib.fathom_report_free)
        s = lib.fathom_report_get_sums(owner)
        self.rows, self.tree = ReportRows(owner, by), ReportTree(owner, by)
        self.sums = ReportSums(s.weight, s.shown, s.hidden, s.unsampled, s.n_samples, s.n_stacks, s.n_whole)

    def __repr__(self):
        return f"<Report of {len(self.rows)} rows, {len(self.tree)} nodes>"


class DiffRow(NamedTuple):
    """A function of two profiles, as `fathom report --diff --json` names its values. Of two values the first is the first
    profile's."""
    kind: str
    name: "str | None"
    linkage_name: "str | None"
    module: "str | None"
    verdict: "str | None"
    self: "tuple[int, int]"
    self_samples: "tuple[int, int]"
    values: "tuple[float, float]"
    change: float
    interval: "tuple[float, float] | None"
    chance: "float | None"


class DiffSums(NamedTuple):
    """Sums of a comparison, likewise."""
    weight: "tuple[int, int]"
    samples: "tuple[int, int]"
    effective: "tuple[float, float]"
    divisors: "tuple[float, float]"
    slower: int
    faster: int


class DiffRows(Rows):
    """Functions: those with a significant change first, then those with the largest change."""
    __slots__ = ("_rows",)

    def __init__(self, owner):
        n = ffi.new("size_t *")
        self._rows = lib.fathom_diff_rows(owner, n)
        super().__init__(owner, n[0])

    def _row(self, i):
        row = self._rows[i]
        is_tested = row.verdict != lib.FATHOM_DIFF_NOT_TESTED
        return DiffRow(ROW_KINDS.get(row.kind, "function"), name_of(row), text(row.linkage_name), text(row.module),
                       VERDICTS.get(row.verdict), tuple(row.self), tuple(row.self_samples), tuple(row.values), row.change,
                       (row.low, row.high) if is_tested else None, row.chance if is_tested else None)


class Diff:
    """A comparison of two profiles, which it does not need any more."""
    __slots__ = ("rows", "sums")

    def __init__(self, pointer):
        owner = owned(pointer, lib.fathom_diff_free)
        s = lib.fathom_diff_get_sums(owner)
        self.rows = DiffRows(owner)
        self.sums = DiffSums(tuple(s.weight), tuple(s.n_samples), tuple(s.effective), tuple(s.divisors), s.n_slower, s.n_faster)

    def __repr__(self):
        return f"<Diff of {len(self.rows)} functions: {self.sums.slower} slower, {self.sums.faster} faster>"
