# SPDX-License-Identifier: MIT
"""Tests of trace files: what -o writes, --read tells, --diff compares; and of --last and --at."""
import collections
import json
import os
import re
import signal
import subprocess
import time

from ask import FATHOM, fathom, run
from running import content, until
from traced import CLANG, HERE, SHAPE_CALLS, SITES, build, calls, counts, kinds, test, trace

MAGIC = b"\x7fftrace\n"
TYPES = {1: "call", 2: "return", 3: "signal", 4: "start", 5: "exit", 6: "lost", 7: "note", 8: "caller"}


class Cut(Exception):
    """The file ends in the middle of an item."""


class Decoder:
    """Reads a trace file by the description of its format alone."""

    def __init__(self, data):
        assert data.startswith(MAGIC), data[:8]
        self.data, self.at = data, len(MAGIC)
        self.modules, self.functions, self.threads, self.end = [], [], [], None
        self.thread, self.ns, self.events = None, 0, []
        self.parent = None  # of the next call: None, "unknown", or how many levels are left out

    def byte(self):
        if self.at == len(self.data):
            raise Cut
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.number()
        return -(value + 1) // 2 if value & 1 else value // 2

    def text(self):
        size = self.number()
        if self.at + size > len(self.data):
            raise Cut
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def define(self, what):
        if what == 0:
            assert self.number() == 2
            assert abs(self.number() - time.time_ns()) < 3600 * 10**9
        elif what == 1:
            self.modules.append(self.text())
        elif what == 2:
            module = self.modules[self.number()]
            self.functions.append({"module": module, "function": self.text(), "linked": self.text(), "address": self.number(),
                                   "stated": self.number()})
        elif what == 3:
            self.threads.append({"pid": self.signed(), "tid": self.signed(), "name": self.text(), "stack": 0, "depth": 0, "number": 0,
                                 "calls": {}})
        elif what == 7:
            self.parent = "unknown"
        elif what == 8:
            self.parent = self.number()
        else:
            assert what == 4, what
            self.end = {"status": self.signed(), "sites": self.number(), "lost": self.number()}
            for _ in range(self.number()):
                self.number()

    def stack(self):
        value = self.number()
        delta = -(value // 2 + 1) // 2 if value // 2 & 1 else value // 4
        self.thread["stack"] += delta if value & 1 else 8 * delta
        return self.thread["stack"]

    def event(self, kind, deeper):
        t = self.thread
        t["depth"] += -(deeper + 1) // 2 if deeper & 1 else deeper // 2
        self.ns += self.signed()
        e = {"pid": t["pid"], "tid": t["tid"], "ns": self.ns, "depth": t["depth"], "count": 1, "function": None, "module": None}
        function = None
        if kind in (1, 2, 3):
            function = self.functions[self.number()]
            e["stack"] = self.stack()
            e["type"] = "return" if kind == 3 else "call"
            if kind == 2:
                e["count"] = self.number()
            if kind == 3:
                e["duration_ns"] = self.number()
            else:
                t["calls"][t["depth"]] = (e, function)
        elif kind == 4:
            call, function = t["calls"][t["depth"]]
            e["type"] = "return"
            t["stack"] = e["stack"] = call["stack"]
            e["duration_ns"] = e["ns"] - call["ns"]
        else:
            e["stack"] = self.stack()
            e["type"] = TYPES[self.number()]
            e["count"] = self.number()
            number = self.number()
            text = self.text()
            if number:
                function = self.functions[number - 1]
            else:
                e["text"] = text
        if function:
            e.update({k: function[k] for k in ("function", "module")})
        if e["type"] == "return":
            e["duration_ns"] = e["duration_ns"] or None
        if e["type"] == "call":
            is_known = e["depth"] and self.parent != "unknown"
            e["parent"] = (None if not is_known else "direct" if self.parent is None else "gap")
            e["parent_depth"] = e["depth"] - 1 - (self.parent or 0) if is_known else None
            self.parent = None
        self.events.append(e)

    def item(self):
        tag = self.byte()
        kind, upper = tag & 7, tag >> 3
        if upper == 31:
            upper = self.number()
        if kind == 0:
            self.define(upper)
        elif kind == 6:
            self.thread = self.threads[upper]
        elif kind == 7:
            self.thread["number"] = upper
        else:
            self.event(kind, upper)

    def whole(self):
        """Reads all items; where the file is cut, up to there."""
        try:
            while self.at < len(self.data):
                self.item()
        except Cut:
            pass
        return self.events


def decode(path):
    with open(path, "rb") as f:
        decoder = Decoder(f.read())
    decoder.whole()
    return decoder


def read(path, *options, status=0):
    done = fathom("trace", "--json", *options, "--read", path, status=status)
    return [json.loads(line) for line in done.stdout.splitlines()]


def record(path, log, *words, options=(), status=0, **more):
    return fathom("trace", "-o", log, *options, "--", path, *words, status=status, **more)


def shown(events):
    """What two runs of one program have in common."""
    return [(e["type"], e["function"], e["depth"], e["count"], e.get("text")) for e in events]


XRAY = ["-fxray-instrument", "-fxray-instruction-threshold=1"]


@test("files: what an independent reader finds is what --read tells, of threads, children, handlers, returns, two stacks")
def _(folder):
    log = os.path.join(folder, "log")
    for name, words, flags, options in (("twin.c", (), ("-O2", SITES, "-pthread"), ()), ("threads.c", ("20", "100", "3"), ("-O1", SITES, "-pthread"), ()),
                                        ("children.c", (), ("-O1", SITES, "-pthread"), ()), ("shapes.c", (), ["-O1", *XRAY], ("--exits",)),
                                        ("control.cc", (), ("-O1", SITES, "-pthread"), ())):
        path = build(folder, name, flags=flags, compiler=CLANG if flags[1:] == XRAY else "g++" if name.endswith("cc") else "gcc")
        record(path, log, *words, options=options, status=None)
        decoder = decode(log)
        assert len(decoder.events) > 10 and decoder.at == len(decoder.data), (name, len(decoder.events))
        assert decoder.end["lost"] == 0
        assert decoder.events == read(log, "--no-fold"), name
        # Order is exact in files.
        assert [e["ns"] for e in decoder.events] == sorted(e["ns"] for e in decoder.events), name


@test("files: told again, they are what the same program's log is: folded, as text, counted")
def _(folder):
    path = build(folder, "twin.c", flags=("-O2", SITES, "-pthread"))
    log = os.path.join(folder, "log")
    _, live, _ = trace(path, log=os.path.join(folder, "live"))
    record(path, log)
    told = read(log)

    def by_thread(events):
        order = {}
        for e in events:
            order.setdefault(e["tid"], []).append(shown([e])[0])
        return sorted(map(repr, order.values()))
    # The numbers of processes differ.
    strip = [dict(e, text=re.sub(r"\d+", "N", e["text"])) if "text" in e else e for e in live]
    again = [dict(e, text=re.sub(r"\d+", "N", e["text"])) if "text" in e else e for e in told]
    assert by_thread(strip) == by_thread(again)
    rows = [json.loads(line) for line in fathom("trace", "-c", "--json", "--read", log, status=0).stdout.splitlines()]
    assert {r["function"]: r["calls"] for r in rows} == counts(live)
    text = fathom("trace", "--read", log, status=0).stdout.splitlines()
    assert len(text) == len(told) + 1
    for line, e in zip(text[1:], told):
        if e["type"] == "call":
            assert line.split("&", 1)[1].split(" \xd7")[0] == e["function"], (line, e)


@test("files: those of version 1 are read: each call is by the one above it")
def _(folder):
    log, old = os.path.join(folder, "log"), os.path.join(folder, "old")
    record(build(folder, "shapes.c"), log)
    with open(log, "rb") as f:
        data = f.read()
    # Magic, the tag, the version: nothing that version 1 lacks is in this file.
    assert data[8:10] == b"\x00\x02"
    with open(old, "wb") as f:
        f.write(data[:9] + b"\x01" + data[10:])
    events = read(old, "--no-fold")
    assert events == read(log, "--no-fold")
    assert [(e["parent"], e["parent_depth"]) for e in events if e["type"] == "call" and e["depth"]] == [("direct", d - 1) for _, d in SHAPE_CALLS if d]
    for version in (b"\x00", b"\x03"):
        with open(old, "wb") as f:
            f.write(data[:9] + version + data[10:])
        assert "newer" in fathom("trace", "--read", old, status=2).stderr


def number(value):
    """LEB128 without sign."""
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


def item(kind, above):
    """A tag: the kind in three bits, a number above them."""
    return bytes([kind | above << 3]) if above < 31 else bytes([kind | 31 << 3]) + number(above)


UNKNOWN = 7  # what defines that the parent of the next call is not known


def calls_file(path, threads, calls, stack=0):
    """A trace file of @threads, (tid, name), and @calls on a stack, (thread by number, depth, function, whether the parent is not known): else it is
    the call above."""
    with open(path, "wb") as f:
        f.write(b"\x7fftrace\n" + item(0, 0) + number(2) + number(0) + item(0, 1) + number(2) + b"/m")
        for name in b"rec", b"leaf":
            f.write(item(0, 2) + number(0) + number(len(name)) + name + number(0) + number(0x1000) + number(0x1000))
        for tid, name in threads:
            f.write(item(0, 3) + number(2) + number(2 * tid) + number(len(name)) + name)
        before, current = collections.Counter(), None
        for thread, depth, function, is_unknown in calls:
            if thread != current:
                f.write(item(6, thread) + (item(7, stack) if stack else b""))
            change, before[thread], current = depth - before[thread], depth, thread
            f.write(item(0, UNKNOWN) if is_unknown else b"")
            f.write(item(1, 2 * change if change >= 0 else -2 * change - 1) + number(2) + number(function) + number(0))


@test("files: calls at great depths, of few bytes: as much memory as the file is large; callers that are left out are found at once")
def _(folder):
    path = os.path.join(folder, "deep")
    calls_file(path, [(i, b"t") for i in range(1, 201)], [(i, depth, f, False) for i in range(200) for f, depth in enumerate(((1 << 20) - 2, (1 << 20) - 1))])
    script = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True); " \
             "print(done.returncode, len(done.stdout.splitlines()), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    status, lines, peak = map(int, run("python3", "-c", script, FATHOM, "trace", "--read", path, "--no-fold").split())
    # 200 threads of 16 MiB each would be 3 GiB.
    assert (status, lines) == (0, 401) and peak < 64 << 10, (status, lines, peak)
    # The last stack that there may be, of many threads: those before it take no room, which would be 6 KiB for each thread more.
    n = 30000
    calls_file(path, [(i, b"t") for i in range(1, n + 1)], [(i, 0, 0, False) for i in range(n)], stack=255)
    status, lines, peak = map(int, run("python3", "-c", script, FATHOM, "trace", "--read", path, "--no-fold").split())
    assert (status, lines) == (0, n + 1) and peak < 220 << 10, (status, lines, peak)
    depth = 30000
    calls_file(path, [(1, b"t")], [(0, i + f, f, False) for i in range(depth) for f in (0, 1)])
    told = read(path, "--no-fold", "--only", "leaf")
    # No caller of leaf() is told of.
    assert len(told) == depth and all(e["function"] == "leaf" and e["parent"] is None for e in told), told[:3]
    told = [e for e in read(path, "--no-fold", "--not", "leaf")]
    assert [(e["parent"], e["parent_depth"]) for e in told[1:]] == [("direct", i) for i in range(depth - 1)], told[:3]


@test("files: a thread that changes its name is still within its calls")
def _(folder):
    path = os.path.join(folder, "names")
    calls_file(path, [(1, b"first"), (1, b"second")], [(0, 0, 0, False), (0, 1, 0, False), (1, 2, 1, False), (1, 2, 1, False)])
    told = read(path, "--no-fold")
    assert [(e["function"], e["parent"], e["parent_depth"]) for e in told] == \
        [("rec", None, None), ("rec", "direct", 0), ("leaf", "direct", 1), ("leaf", "direct", 1)], told
    assert [(e["function"], e["parent"]) for e in read(path, "--no-fold", "--only", "leaf")] == 2 * [("leaf", None)]


@test("files: --diff: calls of one function by different callers are steps of their own")
def _(folder):
    a, b = os.path.join(folder, "a"), os.path.join(folder, "b")
    for is_unknown, lines in (False, 2), (True, 3):
        calls = [(0, 0, 0, False), (0, 1, 1, False), (0, 1, 1, is_unknown)]
        calls_file(a, [(1, b"t")], calls)
        calls_file(b, [(1, b"t")], [*calls, (0, 1, 0, False)])
        text = fathom("trace", "--diff", a, b, status=1).stdout
        assert text.startswith(f"thread 1 (t): after {lines} lines\n  in &rec\n"), text


@test("files: a call takes less than 8 bytes, a return less than 5")
def _(folder):
    path = build(folder, "threads.c", flags=("-O1", SITES, "-pthread"))
    log = os.path.join(folder, "log")
    record(path, log, "4", "50000", "1")
    assert os.path.getsize(log) < 8 * 200000, os.path.getsize(log)
    path = build(folder, "shapes.c", "-DROUNDS=20000", compiler=CLANG, flags=["-O1", *XRAY])
    record(path, log, options=["--exits"])
    n = len(decode(log).events)
    assert os.path.getsize(log) < 13 * n / 2 + 1000, (os.path.getsize(log), n)


@test("files: each prefix is read up to its last whole item; what is broken is said, with its place; nothing else is a trace file")
def _(folder):
    path = build(folder, "children.c", flags=("-O1", SITES, "-pthread"))
    log, cut = os.path.join(folder, "log"), os.path.join(folder, "cut")
    record(path, log, status=None)
    with open(log, "rb") as f:
        data = f.read()
    whole = decode(log).events
    step = max(1, len(data) // 150)
    for size in range(8, len(data), step):
        with open(cut, "wb") as f:
            f.write(data[:size])
        expected = Decoder(data[:size]).whole()
        assert expected == whole[:len(expected)]
        assert read(cut, "--no-fold", status=0 if expected else 1) == expected, size
    for size in range(8):
        with open(cut, "wb") as f:
            f.write(data[:size])
        assert "no trace file" in fathom("trace", "--read", cut, status=2).stderr
    for bad, said in ((b"\x01\x00\x00\x00", "no thread"), (b"\x28", "newer"), (b"\xff" * 12, "64 bits"), (b"\x10\x05" + 4 * b"\x00", "not defined")):
        with open(cut, "wb") as f:
            f.write(MAGIC + (b"\x00\x07\x00" if said == "newer" else bad))
        done = fathom("trace", "--read", cut, status=2)
        assert said in done.stderr, (bad, done.stderr)
    assert "trace file" in fathom("trace", "--read", path, status=2).stderr
    assert fathom("trace", "--read", os.path.join(folder, "nothing"), status=2).stderr
    assert fathom("trace", "--read", folder, status=2).stderr


@test("files: of a program that is killed all 5,001 calls are there; of fathom that is killed, what it had written")
def _(folder):
    path = build(folder, "ends.c")
    log = os.path.join(folder, "log")
    record(path, "killed", options=[], log=log, status=-signal.SIGKILL) if False else \
        fathom("trace", "-o", log, "--", path, "killed", status=-signal.SIGKILL)
    decoder = decode(log)
    assert counts(decoder.events) == {"main": 1, "counted": 2500, "other": 2500}
    assert decoder.events[-1]["text"] == "killed by SIGKILL" and decoder.end["status"] == signal.SIGKILL
    with subprocess.Popen([FATHOM, "trace", "-o", log, "--", path, "slow"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as tracer:
        while not os.path.exists(log) or os.path.getsize(log) < 100000:
            time.sleep(0.01)
        tracer.kill()
    events = decode(log).events
    assert len(events) > 10000 and {e["function"] for e in events[1:]} <= {"main", "counted", "other", None}
    assert read(log, "--no-fold") == events


@test("files: filters of --read are those of a run: --only, --not, --under, --depth, --thread, --no-children")
def _(folder):
    path = build(folder, "twin.c", flags=("-O2", SITES, "-pthread"))
    log, live = os.path.join(folder, "log"), os.path.join(folder, "live")
    record(path, log)
    whole = read(log, "--no-fold")
    names = sorted(counts(whole), key=lambda n: -counts(whole)[n])
    for options in (["--only", names[0]], ["--only", "/^" + names[1][:3] + "/"], ["--not", names[0], "--not", names[1]], ["--under", names[2]],
                    ["--under", "main", "--depth", "2"], ["--only", "twin:" + names[0]]):
        _, events, _ = trace(path, log=live, options=[*options, "--no-fold"])
        told = read(log, *options, "--no-fold")
        assert counts(told) == counts(events) and counts(told), options
    tids = sorted({e["tid"] for e in whole})
    assert read(log, "--no-fold", "--thread", str(tids[-1])) == [e for e in whole if e["tid"] == tids[-1]]
    path = build(folder, "threads.c", flags=("-O1", SITES, "-pthread"))
    record(path, log, "4", "100000", "1")
    assert counts(read(log, "--thread", "odd", "--not", "run")) == {"counted": 100000, "other": 100000}
    path = build(folder, "children.c", flags=("-O1", SITES, "-pthread"))
    record(path, log, status=None)
    whole = read(log, "--no-fold")
    first = [e for e in whole if e["pid"] == whole[0]["pid"]]
    assert len(first) < len(whole) and read(log, "--no-fold", "--no-children") == first
    assert "has no lines" in fathom("trace", "--only", "twin.c:", "--read", log, status=2).stderr
    record(build(folder, "shapes.c"), log)
    assert not fathom("trace", "--only", "nobody", "--thread", "nobody", "--json", "--read", log, status=1).stdout


@test("files: --diff: where two runs part, by thread; the same program twice is the same")
def _(folder):
    a, b = os.path.join(folder, "a"), os.path.join(folder, "b")
    path = build(folder, "threads.c", flags=("-O1", SITES, "-pthread"))
    record(path, a, "3", "100", "1")
    record(path, b, "3", "100", "1")
    assert fathom("trace", "--diff", a, b, status=0).stdout == ""
    record(path, b, "3", "90", "1")
    rows = [json.loads(line) for line in fathom("trace", "--json", "--diff", a, b, status=1).stdout.splitlines()]
    # The two alternate: 45 pairs in b, 50 in a.
    assert [r["thread"] for r in rows] == [2, 3, 4], rows
    for r in rows:
        assert r["same"] == 91 and r["b"] is None and r["a"]["function"] == "counted" and r["path"] == ["run"], r
    text = fathom("trace", "--diff", a, b, status=1).stdout
    assert text.count("(nothing more)") == 3 and "in &run" in text, text
    record(path, b, "2", "100", "1")
    rows = [json.loads(line) for line in fathom("trace", "--json", "--diff", a, b, status=1).stdout.splitlines()]
    assert [(r["thread"], r["same"], r["b"]) for r in rows] == [(4, 0, None)], rows
    shapes = build(folder, "shapes.c")
    record(shapes, b)
    done = fathom("trace", "--diff", a, b, status=1)
    assert "after 1 lines" in done.stdout or "from the beginning" in done.stdout, done.stdout
    assert fathom("trace", "--diff", a, path, status=2).stderr and fathom("trace", "--diff", a, status=2).stderr


def spans(rows):
    """How often each name begins; all that begins ends, innermost first, within its thread."""
    total, stacks = collections.Counter(), collections.defaultdict(list)
    for thread, what, name, ns in rows:
        stack = stacks[thread]
        if what == "B":
            assert not stack or ns >= stack[-1][1]
            total[name] += 1
            stack.append((name, ns))
        else:
            begun = stack.pop()
            assert begun[1] <= ns
    assert not any(stacks.values())
    return total


def perfetto(path):
    """(thread, "B" or "E", name, ns) of the slices in a file, by protoc and a description of the format of our own."""
    with open(path, "rb") as f:
        text = subprocess.run(["protoc", "--decode=Trace", "-I", HERE, "perfetto.proto"], stdin=f, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"^ *\d+[: ]", text, re.M), "fields that are unknown"
    names = {}
    for packet in text.split("packet {")[1:]:
        for iid, name in re.findall(r'event_names \{\s+iid: (\d+)\s+name: "((?:[^"\\]|\\.)*)"', packet):
            names[iid] = name
        kind = re.search(r"type: TYPE_SLICE_(BEGIN|END)", packet)
        if kind:
            track = re.search(r"track_uuid: (\d+)", packet)[1]
            iid, name = re.search(r"name_iid: (\d+)", packet), re.search(r'^ +name: "(.*)"', packet, re.M)
            yield track, kind[1][0], names[iid[1]] if iid else name[1] if name else None, int(re.search(r"timestamp: (\d+)", packet)[1])


@test("exports: Perfetto by protoc, Chrome as JSON, collapsed stacks, a graph by dot, trees: each call is there, within its caller")
def _(folder):
    log, out = os.path.join(folder, "log"), os.path.join(folder, "out")
    for name, flags, options in (("twin.c", ("-O2", SITES, "-pthread"), ()), ("children.c", ("-O1", SITES, "-pthread"), ()),
                                 ("shapes.c", ["-O1", *XRAY], ("--exits",))):
        path = build(folder, name, flags=flags, compiler=CLANG if flags[1:] == XRAY else "gcc")
        record(path, log, options=options, status=None)
        expected = counts(read(log))

        def export(word):
            fathom("trace", "--read", log, "--export", word, "-o", out, status=0)
            return out
        with open(export("chrome"), encoding="utf-8") as f:
            rows = [(e["tid"], e["ph"], e.get("name"), e["ts"]) for e in json.load(f)["traceEvents"] if e["ph"] in "BE"]
        # Around each call whose caller is not known there is a slice that says so.
        n_unknown = sum(e["type"] == "call" and e["parent"] is None and e["depth"] > 0 for e in read(log, "--no-fold"))
        marked = expected + collections.Counter({"[?]": n_unknown})
        assert spans(rows) == marked, name
        assert spans(perfetto(export("perfetto"))) == marked, name
        with open(export("collapsed"), encoding="utf-8") as f:
            total = collections.Counter()
            for line in f:
                stack, weight = line.rstrip("\n").rsplit(" ", 1)
                total[stack.split(";")[-1]] += int(weight)
        assert options or total == expected, name
        assert "[...]" not in total
        assert set(total) <= set(expected)
        plain = run("dot", "-Tplain", export("dot"))
        nodes = [line for line in plain.splitlines() if line.startswith("node ")]
        assert len(nodes) == len(expected) + bool(n_unknown), name
        rows = [json.loads(line) for line in fathom("trace", "--tree", "--json", "--read", log, status=0).stdout.splitlines()]
        total = collections.Counter()
        for r in rows:
            if r["function"]:
                total[r["function"]] += r["calls"]
                assert r["parent"] is None or rows[r["parent"]]["depth"] == r["depth"] - 1
        assert total.pop("[...]", 0) == 0 and total == expected, name
        if options:
            by = {r["function"]: r for r in rows}
            assert by["middle"]["total_ns"] >= sum(r["total_ns"] for r in rows if r["parent"] == by["middle"]["id"]) > 0, rows
        assert "main" in fathom("trace", "--tree", "--read", log, status=0).stdout


@test("--last: the end of a program that fails, in order, with what is kept of each thread; nothing of one that does not")
def _(folder):
    path = build(folder, "ends.c")
    log = os.path.join(folder, "log")
    for how, end in (("null", ["SIGSEGV", "killed by SIGSEGV"]), ("aborted", ["SIGABRT", "killed by SIGABRT"]), ("killed", ["killed by SIGKILL"]),
                     ("many", ["status 7"])):
        for clock in ("full", "sparse", "none"):
            _, events, _ = trace(path, how, log=log, options=["--last", "6", "--no-fold", "--clock", clock], status=None)
            assert len(events) == 6 + len(end) or how in ("null", "aborted"), (how, clock, events)
            assert [e.get("text") for e in events[-len(end):]] == end, (how, clock, events)
            before = [e["function"] for e in events[:-len(end)]]
            if how in ("null", "aborted"):
                assert before == ["main"] + ["caller"] * (how == "null"), (how, before)
            else:
                assert before == (["counted", "other"] * 5)[-len(before):], (how, clock, before)
    # 3,000,000 calls; of so many as are asked for, none is missing.
    _, events, _ = trace(path, "many", log=log, options=["--last", "65000", "--no-fold"], status=7)
    assert counts(events) == {"counted": 32500, "other": 32500}, counts(events)
    threads = build(folder, "threads.c", flags=("-O1", SITES, "-pthread"))
    _, events, _ = trace(threads, "4", "200000", "2", log=log, options=["--last", "100"])
    assert events == []
    # More than rings keep: they are read all the time.
    _, events, _ = trace(path, "killed", log=log, options=["--last", "100000", "--no-fold"], status=-signal.SIGKILL)
    assert counts(events) == {"main": 1, "counted": 2500, "other": 2500}, counts(events)


@test("--last: SIGUSR1 asks for it while the program runs, more than once")
def _(folder):
    path = build(folder, "ends.c")
    log, over = os.path.join(folder, "log"), os.path.join(folder, "over")
    with subprocess.Popen([FATHOM, "trace", "--json", "--no-fold", "--last", "1000", "--log", log, "--", path, "slow", over], stdout=subprocess.PIPE,
                          text=True) as tracer:
        assert tracer.stdout.readline() == "begun\n"
        for i in (1, 2, 3):
            time.sleep(0.2)
            tracer.send_signal(signal.SIGUSR1)
            until(lambda n=i * 1000: content(log).count("\n") >= n, "the last events")
        with open(over, "w", encoding="utf-8"):
            pass
        assert tracer.wait() == 7
    with open(log, encoding="utf-8") as f:
        events = [json.loads(line) for line in f]
    # At the end of the program the last calls, and that.
    assert len(events) == 4001, len(events)
    for part in range(0, 3000, 1000):
        names = [e["function"] for e in events[part:part + 1000]]
        assert all({a, b} == {"counted", "other"} for a, b in zip(names, names[1:])), part
    times = [e["ns"] for e in events]
    assert times == sorted(times)


@test("--at: start, stop, stack and dump, in a run and of a file")
def _(folder):
    path = build(folder, "shapes.c")
    log = os.path.join(folder, "log")
    file = os.path.join(folder, "file")
    record(path, file)

    def ask(*options):
        _, events, _ = trace(path, log=log, options=[*options, "--no-fold"])
        assert shown(events) == shown(read(file, *options, "--no-fold")), options
        return [(e["type"], e["function"], e["depth"]) for e in events if e["function"]]
    # main(top(middle(leaf leaf) middle(leaf leaf)) leaf)
    c = "call"
    assert ask("--at", "middle:start") == [(c, "middle", 2), (c, "leaf", 3), (c, "leaf", 3), (c, "middle", 2), (c, "leaf", 3), (c, "leaf", 3),
                                           (c, "leaf", 1)]
    assert ask("--at", "middle:stop") == [(c, "main", 0), (c, "top", 1), (c, "middle", 2)]
    assert ask("--at", "middle:start", "--at", "leaf:stop") == [(c, "middle", 2), (c, "leaf", 3)] * 2
    assert ask("--at", "middle:stack", "--only", "main", "--only", "middle", "--only", "top") == [
        (c, "main", 0), (c, "top", 1)] + 2 * [(c, "middle", 2), ("caller", "top", 1), ("caller", "main", 0)]
    done = fathom("trace", "--last", "3", "--at", "leaf:dump", "--no-fold", "--read", file, status=0)
    lines = [line.rsplit("&", 1)[-1] for line in done.stdout.splitlines() if line.startswith("FUN")]
    assert lines == ["top", "middle", "leaf", "leaf", "middle", "leaf", "leaf", "leaf"], lines
    _, events, _ = trace(path, log=log, options=["--last", "3", "--at", "leaf:dump", "--no-fold"])
    assert [e["function"] for e in events] == lines, events
    for word in ("middle", "middle:", ":stack", "middle:jump"):
        assert "--at" in fathom("trace", "--at", word, "--", path, status=2).stderr


@test("each form says what was lost: its calls and that are all there were; 1,500 threads at once lose nothing")
def _(folder):
    path = build(folder, "many.c")
    log, file = os.path.join(folder, "log"), os.path.join(folder, "file")

    def told(form, text):
        """(calls, lost events) of a log in this form."""
        # Digits are grouped.
        text = text.replace("'", "")
        if "--json" in form:
            rows = [json.loads(line) for line in text.splitlines()]
            return sum(r.get("calls", 0) for r in rows), sum(r.get("lost", 0) for r in rows)
        if form[-1] == "collapsed":
            rows = [line.rsplit(" ", 1) for line in text.splitlines()]
            return sum(int(n) for path, n in rows if path != "[lost]"), sum(int(n) for path, n in rows if path == "[lost]")
        if form[-1] == "dot":
            lost = re.search(r'^\tlabel="lost: (\d+) events?"$', text, re.M)
            return sum(int(n) for n in re.findall(r"(\d+) calls?\"\]", text)), int(lost[1]) if lost else 0
        lost = re.search(r"^# lost: (\d+) events?, ", text, re.M)
        return sum(int(n) for n in re.findall(r"^ *(\d+) ", text, re.M)), int(lost[1]) if lost else 0

    forms = [[*json_word, *form] for form in (["-c"], ["--tree"]) for json_word in ([], ["--json"])] + [["--export", "collapsed"], ["--export", "dot"]]
    for n, calls, options, may_lose in ((4, 400000, ["--lossy"], True), (1500, 20, [], False)):
        losses = 0
        truth = 1 + n + n * calls
        for form in forms:
            fathom("trace", *options, *form, "--log", log, "--", path, str(n), str(calls), status=0)
            with open(log, encoding="utf-8") as f:
                counted, lost = told(form, f.read())
            assert counted + lost == truth, (options, form, counted, lost, truth)
            assert may_lose or not lost, (form, lost)
            losses += lost
        assert bool(losses) == may_lose, losses
        # From a file, all are of one run.
        fathom("trace", *options, "-o", file, "--", path, str(n), str(calls), status=0)
        assert len({told(form, fathom("trace", *form, "--read", file, status=0).stdout) for form in forms}) == 1
        # Where two such files part may be what was lost of them.
        lost = told(forms[0], fathom("trace", "-c", "--read", file, status=0).stdout)[1]
        said = fathom("trace", "--diff", file, file, status=0).stdout
        assert said == (f"# lost: {lost} events of A, {lost} of B: what parts may be such a gap\n" if may_lose else ""), said
        rows = [json.loads(line) for line in fathom("trace", "--diff", "--json", file, file, status=0).stdout.splitlines()]
        assert rows == ([{"lost": {"a": lost, "b": lost}}] if may_lose else []), rows


def nameless_bytes(pid, folder):
    """How much the files of a process take that are in the folder, and have no name."""
    total = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            place, status = os.readlink(f"/proc/{pid}/fd/{fd}"), os.stat(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
        if place.startswith(folder + "/") and not status.st_nlink:
            total += status.st_blocks * 512
    return total


@test("records wait in a file without a name beside the log, which is the same then; not those of system calls, nor for a pipe")
def _(folder):
    path = build(folder, "many.c", flags=("-O1", SITES, "-pthread"))
    log = os.path.join(folder, "log")

    def most_waiting(*options, calls_each=1500000):
        most = 0
        with subprocess.Popen([FATHOM, "trace", *options, "--", path, "2", str(calls_each)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as tracer:
            while tracer.poll() is None:
                most = max(most, nameless_bytes(tracer.pid, os.path.realpath(folder)))
                time.sleep(0.001)
        assert tracer.returncode == 0
        return most

    # Two threads write faster than one reader takes what they write.
    assert most_waiting("-o", log) >= 65536 * 24
    found = json.loads(fathom("trace", "-c", "--json", "--only", "counted", "--read", log, status=0).stdout.splitlines()[0])
    assert (found["function"], found["calls"]) == ("counted", 3000000), found
    assert os.listdir(folder).count("log") == 1 and not [name for name in os.listdir(folder) if name.startswith("#")]
    assert not most_waiting("-o", log, "--syscalls", calls_each=100000)
    assert not most_waiting("--max-rate", "100000000", "-o", log, calls_each=100000)
    assert not most_waiting("--no-fold", calls_each=100000)


@test("where a disk has little room, few records wait on it, and nothing is lost", needs_root=True)
def _(folder):
    path = build(folder, "many.c", flags=("-O1", SITES, "-pthread"))
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    done = run("unshare", "-m", "sh", "-ec", f"mount -t tmpfs -o size=24M none {disk}; {FATHOM} trace -o {disk}/log -- {path} 2 1000000 >&2; "
               f"{FATHOM} trace -c --json --only counted --read {disk}/log")
    found = json.loads(done.splitlines()[0])
    assert (found["function"], found["calls"]) == ("counted", 2000000), found


@test("while records wait: threads that begin, name themselves and end are named so; of 70 threads at once, whose records do not wait, none is lost")
def _(folder):
    path = build(folder, "busy.c", flags=("-O1", SITES, "-pthread"))
    log = os.path.join(folder, "log")
    truth = {"main": 1, "busy": 10000000, "end_soon": 1, "seldom": 5, "call": 70, "counted": 7000000}
    fathom("trace", "-o", log, "--", path, "5000000", "70", status=0)
    rows = [json.loads(line) for line in fathom("trace", "-c", "--json", "--read", log, status=0).stdout.splitlines()]
    assert {r["function"]: r["calls"] for r in rows if r.get("function")} == truth and not [r for r in rows if r.get("lost")], rows
    rows = [json.loads(line) for line in fathom("trace", "-c", "--json", "--thread", "short", "--read", log, status=0).stdout.splitlines()]
    assert ("seldom", 5) in [(r.get("function"), r.get("calls")) for r in rows], rows


@test("Ctrl-C while only the rest is written ends that: the log has what was written until then, and standard error says so")
def _(folder):
    path = build(folder, "many.c", flags=("-O1", SITES, "-pthread"))
    log = os.path.join(folder, "log")
    # On a quiet machine all may have been written before: then all is there.
    for _ in range(10):
        with subprocess.Popen([FATHOM, "trace", "-o", log, "--", path, "1", "30000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stdout.readline() == "done\n"
            # Before its end, signals of the terminal are the program's.
            while tracer.poll() is None:
                time.sleep(0.01)
                tracer.send_signal(signal.SIGINT)
            assert tracer.returncode == 0
            said = tracer.stderr.read().splitlines()
        found = json.loads(fathom("trace", "-c", "--json", "--only", "counted", "--read", log, status=0).stdout.splitlines()[0])
        assert found["function"] == "counted", found
        if said:
            break
        assert found["calls"] == 30000000, found
    assert said[-1] == f"fathom: {log}: is not complete: its end was not written" and 0 < found["calls"] < 30000000, (said, found)
