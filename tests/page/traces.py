# SPDX-License-Identifier: MIT
"""Tests of the suite "page": traces, beside a model that is made from the lines that --read --json prints of the same file."""
import collections
import functools
import json
import os
import threading

import building
import tap

from ask import FATHOM, execute, run
from made_profile import same
from made_samples import HOSTILE
from page_file import ask, ask_model, data_of, read
from suite import test

RETURNED, UNRECORDED, NEVER = 0, 1, 2
GAP, KERNEL = "[...]", "[kernel]"
# The calls of a page: path, thread, begin, end, nanoseconds, outcome, number.
CALLS = """(() => { const { ns, weight, more, thread, node, part, count } = model.samples, tree = { ...model.nodes };
    return Array.from(ns, (end, i) => [pathOf(tree, node[i]).map(name).join(";"), model.threads.tid[thread[i]],
        end - weight[i] - more[i], end, weight[i], part[i], count[i]]); })()"""
ROWS = """Object.fromEntries(byFunction(model, sums).map((row) => [name(row.fn), [row.self[0], row.total[0], row.calls, row.without]]))"""


@functools.cache
def program():
    tap.need_traced_programs()
    path = os.path.join(os.environ["BUILD"], "tests", "page_calls")
    # Tests of other threads may be building it, or run it.
    part = f"{path}.{threading.get_ident()}"
    building.build(part, os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "calls.c"),
                          "-finstrument-functions", "-pthread", flags=("-O0", "-g"))
    os.replace(part, path)
    return path


def trace(folder, *words, arguments=(), name="trace"):
    path = os.path.join(folder, name)
    execute(FATHOM, "trace", *words, "-o", path, "--", program(), *arguments, status=0)
    return path


def page_of(folder, path, *words, name="trace.html"):
    page = os.path.join(folder, name)
    execute(FATHOM, "trace", "--read", path, *words, "-o", page, status=0)
    return page


def events_of(path, *words):
    return [json.loads(line) for line in run(FATHOM, "trace", "--read", path, "--no-fold", "--json", *words).splitlines()]


class Thread:
    """The calls of a thread that have not ended, the outermost first: (depth, path, begin)."""

    def __init__(self, tid):
        self.tid, self.now, self.open, self.calls = tid, 0, [], []

    def end(self, depth, outcome, duration=None):
        while self.open and self.open[-1][0] >= depth:
            _, path, begin = self.open.pop()
            self.calls.append([";".join(path), self.tid, begin, self.now, self.now - begin if duration is None else duration, outcome, 1])

    def call(self, event, name, at):
        self.now = max(self.now, at)
        self.end(event["depth"], UNRECORDED)
        if event["parent"]:
            self.end(event["parent_depth"] + 1, UNRECORDED)
        within = {"direct": lambda: self.open[-1][1], "gap": lambda: [*self.open[-1][1], GAP]}.get(event["parent"], lambda: [GAP] if event["depth"] else [])()
        self.open.append((event["depth"], [*within, name], self.now))

    def leave(self, event):
        self.now = max(self.now, event["ns"])
        self.end(event["depth"] + 1, UNRECORDED)
        self.end(event["depth"], RETURNED, event["duration_ns"] or None)


def calls_of(events):
    """The calls of CALLS by the model."""
    threads, calls, kernel = {}, [], set()
    for e in events:
        t = threads.setdefault((e["pid"], e["tid"]), Thread(e["tid"]))
        if e["type"] == "call":
            t.call(e, e["function"], e["ns"])
        elif e["type"] == "syscall":
            kernel.add(e["name"])
            t.call(e, e["name"], e["ns"] - e["duration_ns"])
            if e["result"] is not None:
                t.leave(e)
        elif e["type"] == "return":
            t.leave(e)
        elif e["type"] == "exit":
            t.now = max(t.now, e["ns"])
            t.end(0, NEVER)
    for t in threads.values():
        t.end(0, NEVER)
        calls += t.calls
    if not any(e["type"] == "return" for e in events):
        for call in calls:
            if call[5] == NEVER and call[0].rpartition(";")[2] not in kernel:
                call[5] = UNRECORDED
    return sorted(calls), kernel


def rows_of(calls, kernel, has_exits):
    """{function: [self, total, calls, calls without a return]}: of recursion only the outermost call counts for the total."""
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    own, paths = collections.Counter(), {}
    for path, _, _, _, took, outcome, count in calls:
        names = path.split(";")
        rows[names[-1]][2] += count
        rows[names[-1]][3] += count if outcome else 0
        if not has_exits and (names[-1] not in kernel or outcome):
            continue
        own[path] += took
        outer = [i for i in range(len(names) - 1) if names[i] != GAP]
        if has_exits and outer:
            own[";".join(names[:outer[-1] + 1])] -= took
        paths[path] = names
    for path, took in own.items():
        names = path.split(";")
        rows[names[-1]][0] += max(took, 0)
        for name in set(names):
            rows[name][1] += took
    return {name: row for name, row in rows.items() if row[1] or row[2]}


@test("calls of a trace are those of a model, with how each has ended, and functions have their counts and times; with and without returns")
def beside_model(folder):
    for words, reading in ((("--exits", "--syscalls=getppid,exit_group"), ()), ((), ()), (("--syscalls=getppid",), ()),
                           (("--exits",), ("--not", "pair")), (("--exits",), ("--only", "leaf")), (("--exits",), ("--depth", "2"))):
        path = trace(folder, *words)
        events = events_of(path, *reading)
        calls, kernel = calls_of(events)
        threads = sorted({call[1] for call in calls})
        views = [{"time": "durations"}, {"time": "calls"}, *({"time": "durations", "tid": str(tid)} for tid in threads)]
        found, *by_view = ask(page_of(folder, path, *reading), """const model = decode(bytes), name = (fn) => model.functions.name[fn];
            return [""" + CALLS + """, ...given.map((view) => { const sums = weigh(model, { ...defaultView(model), ...view }); return """ + ROWS + "; })];", views)
        same(sorted(found), calls)
        has_exits = "--exits" in words
        rows = rows_of(calls, kernel, has_exits)
        same(by_view[0], rows)
        counted = {row["function"]: row["calls"] for row in map(json.loads, run(FATHOM, "trace", "--read", path, *reading, "-c", "--json").splitlines())}
        same({name: row[2] for name, row in rows.items() if name != GAP}, counted)
        same({name: row[0] for name, row in by_view[1].items() if name != GAP}, counted)
        # Of each thread alone.
        for tid, found in zip(threads, by_view[2:]):
            same(found, rows_of([call for call in calls if call[1] == tid], kernel, has_exits))
    outcomes = {call[0].rpartition(";")[2]: call[5] for call in calls_of(events_of(trace(folder, "--exits", "--syscalls=getppid,exit_group")))[0]}
    same({name: outcomes[name] for name in ("main", "ends", "jumps", "outer", "pair", "getppid", "exit_group")},
         {"main": NEVER, "ends": NEVER, "jumps": UNRECORDED, "outer": UNRECORDED, "pair": RETURNED, "getppid": RETURNED, "exit_group": NEVER})


@test("paths of calls have the sums of --tree, thread by thread")
def beside_tree(folder):
    path = trace(folder, "--exits", "--syscalls=getppid")
    lines, expected = {}, collections.defaultdict(lambda: [0, 0, 0])
    for line in map(json.loads, run(FATHOM, "trace", "--read", path, "--tree", "--json").splitlines()):
        lines[line["id"]] = (lines[line["parent"]] + ";" if line["parent"] is not None else "") + line["function"]
        for i, key in enumerate(("calls", "total_ns", "self_ns")):
            expected[lines[line["id"]]][i] += line[key]
    found = ask_model(page_of(folder, path), """(() => { const tree = topDown(model, sums, "a"); return Array.from(tree.a.subarray(1),
        (total, i) => [pathOf(tree, i + 1).map(name).join(";"), [sums.calls[i + 1], total, tree.ownA[i + 1]]]); })()""", time="durations")
    same(dict(found), dict(expected))


@test("ranges of a trace that are next to each other have what all of it has; a call counts where it begins, its time where it is")
def ranges(folder):
    path = trace(folder, "--exits", "--syscalls=getppid")
    calls, _ = calls_of(events_of(path))
    end = max(call[3] for call in calls) + 1
    cuts = sorted({0, end, *(call[2] for call in calls[::9]), *((call[2] + call[3]) // 2 for call in calls[::5])})
    parts = ask(page_of(folder, path), """const model = decode(bytes), view = { ...defaultView(model), time: "durations" };
        return given.slice(1).map((to, i) => weigh(model, { ...view, from: given[i], to })).map((sums) => [sums.counts[0], sums.all[0]]);""", cuts)
    same(sum(count for count, _ in parts), len(calls))
    outermost = sum(call[4] for call in calls if ";" not in call[0] or call[0].count(";") == call[0].count(GAP))
    assert abs(sum(time for _, time in parts) - outermost) < 1e-3, (sum(time for _, time in parts), outermost)
    for (begin, to), (count, _) in zip(zip(cuts, cuts[1:]), parts):
        same(count, sum(begin <= call[2] < to for call in calls))


@test("the timeline of a trace: each call is a box at its depth, or in what is added up, as wide as it took; nothing is left out")
def layout(folder):
    path = trace(folder, "--exits", "--syscalls=getppid")
    calls, _ = calls_of(events_of(path))
    begin, end = min(call[2] for call in calls), max(call[3] for call in calls)
    middle = sorted(call[2] for call in calls)[len(calls) // 2]
    for lanes, pixels, (from_, to) in ((3, 1000, (begin, end)), (3, 40, (begin, end)), (1, 700, (begin, end)), (3, 3000, (middle, middle + 5000))):
        found = ask_model(page_of(folder, path), """(() => {
            const { threads, samples } = model, lanes = Array.from(threads.tid.keys()).slice(0, given.lanes);
            return fillCalls(model, lanes, { from: given.from, to: given.to }, given.pixels).map((lane, i) => [threads.tid[lanes[i]] || 0, lane.rows, lane.n,
                lane.boxes.map(({ i, row, x0, x1 }) => [name(model.nodes.fn[samples.node[i]]), row, x0, x1]),
                Array.from(lane.small, (row) => row ? Array.from(row).reduce((sum, x) => sum + x, 0) : 0)]); })()""",
                          {"lanes": lanes, "pixels": pixels, "from": from_, "to": to})
        same(len(found), lanes + 1)
        shown = {tid for tid, *_ in found[:lanes]}
        scale = pixels / (to - from_)
        for tid, rows, n, boxes, small in found:
            own = [call for call in calls if (call[1] == tid if tid else call[1] not in shown and ";" not in call[0]) and call[2] <= to and call[3] >= from_]
            widths = [(call[0].rpartition(";")[2], call[0].count(";"), (max(call[2], from_) - from_) * scale, (min(call[3], to) - from_) * scale) for call in own]
            wide = [one for one in widths if tid and one[3] - one[2] >= 1]
            same(len(boxes), len(wide))
            same(n, len(own) - len(wide))
            same(rows, max([row + 1 for _, row, *_ in widths] or [1]))
            for box, one in zip(sorted(boxes), sorted(wide)):
                assert box[:2] == list(one[:2]) and abs(box[2] - one[2]) + abs(box[3] - one[3]) < 1e-6, (box, one)
            for row, share in enumerate(small):
                expected = sum(one[3] - one[2] for one in widths if one[1] == row and not (tid and one[3] - one[2] >= 1))
                assert abs(share - expected) < 1e-3 * (expected + 1), (row, share, expected)


@test("a page says what a trace lacks: returns, lost events, threads that go on; and of a call how it has ended")
def words(folder):
    path = trace(folder, "--exits", "--syscalls=getppid")
    body = """const model = decode(bytes); return [factsOf(model.facts[0]), warningsOf(model.facts[0]), Array.from(model.samples.ns, (_, i) => callText(model, i))];"""
    scripts = ("data.js", "sums.js", "calls.js", "text.js", "view.js", "facts.js")
    known, missing, texts = ask(page_of(folder, path), body, scripts=scripts)
    same((dict(known)["returns"], missing), ("recorded", []))
    same(dict(known)["calls"], str(len(calls_of(events_of(path))[0])))
    for name, part in (("main", "never returned"), ("jumps", "no return was recorded"), ("getppid", "s"), ("pair", "s")):
        assert any(text.startswith(name + " · ") and part in text for text in texts), (name, texts)
    assert not any(text.startswith(("pair", "getppid")) and "return" in text for text in texts), texts
    known, missing, _ = ask(page_of(folder, trace(folder)), body, scripts=scripts)
    same(dict(known)["returns"], "not recorded")
    assert "--exits" in " ".join(missing), missing
    # Events that were lost, however many these are.
    lossy = trace(folder, "--lossy", "--clock=none", arguments=(300_000,))
    lost = sum(e["count"] for e in events_of(lossy) if e["type"] == "lost")
    missing = " ".join(ask(page_of(folder, lossy), body.replace("callText(model, i)", "0"), scripts=scripts)[1])
    same(f"{lost:,} events were lost" in missing, lost > 0)
    assert lost or "lost" not in missing, missing
    # A file that was cut: what it has, of threads that have not ended.
    with open(path, "rb") as f:
        whole = f.read()
    for part in (0.5, 0.8):
        cut = os.path.join(folder, "cut")
        with open(cut, "wb") as f:
            f.write(whole[:int(len(whole) * part)])
        calls, _ = calls_of(events_of(cut))
        page = page_of(folder, cut, name="cut.html")
        same(sorted(ask_model(page, CALLS)), calls)
        assert "had not ended when the trace did" in " ".join(ask(page, body, scripts=scripts)[1])


@test("names of a trace are data: what looks like markup, and what is hidden, is read back as it is")
def names(folder):
    path = trace(folder, "--exits")
    with open(path, "rb") as f:
        data = f.read()
    plain = b"a_function_whose_name_is_that_long"
    for name in HOSTILE:
        hostile = name.encode()
        if not 0 < len(hostile) <= len(plain) or b"\0" in hostile:
            continue
        hostile += b"x" * (len(plain) - len(hostile))
        with open(path, "wb") as f:
            f.write(data.replace(plain, hostile))
        page = page_of(folder, path)
        assert hostile.decode() in ask_model(page, "model.functions.name"), hostile
        html = read(page)
        same((html.count("<script"), html.count("</script")), (2, 2))
    outcome = ask(page_of(folder, path), """let errors = 0, state = 1;
        for (let i = 0; i < 3000; i++) {
            const copy = bytes.slice();
            for (let k = 0; k < 3; k++) { state = (state * 48271) % 2147483647; copy[state % copy.length] = state >> 8; }
            try {
                const model = decode(copy);
                weigh(model, defaultView(model));
                fillCalls(model, [0], { from: 0, to: model.duration }, 100);
            } catch (error) { errors++; }
        }
        return errors;""")
    assert outcome, "no damage was seen"


@test("more calls than a page has are added up, neighbours of one function below one caller, and the page says so: all are counted")
def many(folder):
    n = 2_200_000
    path = trace(folder, arguments=(n,))
    page = page_of(folder, path)
    counted = {row["function"]: row["calls"] for row in map(json.loads, run(FATHOM, "trace", "--read", path, "-c", "--json").splitlines())}
    rows, slice_ns, left = ask_model(page, f"[{ROWS}, Number(model.facts[0].get('slice')), model.samples.ns.length]")
    same({name: row[2] for name, row in rows.items()}, counted)
    assert counted["leaf"] > n and slice_ns and left < n, (counted, slice_ns, left)
    # No call is wider than a slice and all that is in it.
    longest = ask_model(page, """(({ weight, more, count }) => count.reduce((most, n, i) => (n > 1 ? Math.max(most, weight[i] + more[i]) : most), 0))(model.samples)""")
    assert 0 < longest <= 2 * slice_ns, (longest, slice_ns)
    assert len(data_of(page)) < 32 * left, (len(data_of(page)), left)


@test("a trace whose file ends in .html or .htm is a page, as --export page is; what does not go together is refused")
def command(folder):
    path = trace(folder)
    for name in ("a.html", "b.HTM"):
        assert read(page_of(folder, path, name=name)).startswith("<!doctype html>")
    same(run(FATHOM, "trace", "--read", path, "--export", "page"), read(os.path.join(folder, "a.html")))
    same(ask_model(trace(folder, "--exits", name="live.html"), f"{ROWS}.leaf[2]"), ask_model(os.path.join(folder, "a.html"), f"{ROWS}.leaf[2]"))
    execute(FATHOM, "trace", "--read", path, "-c", "-o", os.path.join(folder, "c.html"), status=2)
    assert not read(os.path.join(folder, "a.html")).startswith(run(FATHOM, "trace", "--read", path, "--tree"))
    assert "page" in execute(FATHOM, "trace", "--read", path, "--export", "pages", status=2).stderr
    execute("sh", "-c", f"exec {FATHOM} trace --read {path} --export page >/dev/full", status=(1, 2, 125))
