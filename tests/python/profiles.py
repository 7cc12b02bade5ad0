# SPDX-License-Identifier: MIT
"""Profiles: those that are made by hand have the sums that are worked out here, recorded ones what a reader of its own finds."""
import json
import os

import pprof_file
import viewers

from ask import FATHOM, run
from lifetimes import while_others_run
from made_profile import make, same
from profile_file import Profile
from recording import program, record, symbols_of
from suite import GROWTH, MODULE, TOP, need_module, python, test

ENTRY, NO_RULE = 1, 2
SAMPLED, KERNEL_HIDDEN, UNSAMPLED, WAITING, RUNNABLE = range(5)

# Two threads: 224 ns of the event in 6 samples, of which one has no stack and one none that is whole; 1,500 ns of waits.
SAMPLES = [
    (1000, 0, SAMPLED, ENTRY, 100, "main@/app;work@/app!/src/work.c:7"),
    (2000, 0, SAMPLED, ENTRY, 50, "main@/app;work@/app!/src/work.c:7"),
    (3000, 1, SAMPLED, ENTRY, 30, "start@/lib;main@/app;leaf@/lib"),
    (4000, 1, SAMPLED, NO_RULE, 20, "main@/app"),
    (5000, 1, KERNEL_HIDDEN, ENTRY, 11, "main@/app"),
    (6000, 0, UNSAMPLED, 0, 13, ""),
    (7000, 1, WAITING, ENTRY, 1000, "main@/app;leaf@/lib"),
    (8000, 1, RUNNABLE, 0, 500, ""),
]
LINES = ["about command ./shop --fast", "about event task-clock", "about unit ns", "about method perf-events",
         "about frequency 997", "about started 1700000000000000000", "about kernel-hidden 1",
         "thread 10 10 shop", "cgroup /app.slice", "thread 10 11 worker",
         *(f"sample {ns} {thread} {part} {stop} {weight} {stack}" for ns, thread, part, stop, weight, stack in SAMPLES),
         "lost 9000 3", "throttled 9100", "end 10000"]
HEAD = """
def expect(got, wanted):
    assert got == wanted, f"{got}\\nis not\\n{wanted}"


profile = fathom.profile(sys.argv[1])
"""


def made(folder):
    need_module()
    return make(folder, LINES)


@test("facts, threads, modules, samples and frames of a profile that is made by hand")
def _(folder):
    python(folder, HEAD + f"SAMPLES = {SAMPLES}\n" + """
expect(profile.info._asdict(), dict(
    command="./shop --fast", event="task-clock", unit="ns", method="perf-events", machine=None, kernel=None, host=None,
    frequency=997, started=1700000000000000000, duration_ns=10000, weight=224, samples=6, stacks=5, whole=4, waiting_ns=1000,
    runnable_ns=500, waits=2, lost=3, throttled=1, kernel_hidden=True, complete=True))
expect(list(profile.threads), [(10, 10, None, 0, "shop", "shop", None), (10, 11, None, 0, "worker", "shop", "/app.slice")])
expect(list(profile.modules), [("/app", None, "jit", None, None), ("/lib", None, "jit", None, None)])
parts, stops = ["sampled", "kernel-hidden", "unsampled", "waiting", "runnable"], [None, "entry", "no-rule"]
rows = list(profile.samples)
expect([(row.ns, row.thread, row.part, row.stop, row.weight) for row in rows],
       [(ns, thread, parts[part], stops[stop], weight) for ns, thread, part, stop, weight, _ in SAMPLES])
for row, sample in zip(rows, SAMPLES):
    names = [name.partition("@")[0] for name in sample[-1].split(";")] if sample[-1] else []
    expect([location.symbol for location in profile.frames(row.node)], names[::-1])
    assert bool(row.node) == bool(names)
# Stacks share what they have in common.
assert rows[0].node == rows[1].node and profile.nodes[rows[6].node].caller == rows[3].node
work, main = profile.frames(rows[0].node)
expect((work.module, work.source, work.trust, work.is_return_address), ("/app", "jitdump", "registers", False))
expect([(f.function, f.file, f.line) for f in work.frames], [("work", "/src/work.c", 7)])
assert main.frames[0].file is None and work.asdict()["symbol"] == "work" and profile.frames(0) == []
for wrong in (-1, len(profile.nodes), 2 ** 40):
    try:
        profile.frames(wrong)
    except IndexError:
        continue
    raise AssertionError(wrong)
assert repr(profile) == "<Profile of './shop --fast': 6 samples, 2 waits>" and profile.samples[-1] == rows[-1]
""", made(folder))


@test("who has ended waits: threads by index, interrupts, nobody; reports by waker")
def _(folder):
    need_module()
    lines = ["about unit ns", "thread 1 1 one", "thread 2 2 two", "waker goes-on", "sample 10 0 3 1 5 main", "waker 1", "sample 20 0 3 1 10 main",
             "waker interrupt", "sample 30 1 3 1 30 main", "waker unknown", "sample 40 1 3 1 7 main", "end 50"]
    python(folder, HEAD + """
import numpy
samples = profile.samples
expect([row.waker for row in samples], [1, 1, "interrupt", None])
expect(numpy.asarray(samples.waker).tolist(), [2, 2, 0xffffffff, 0])
rows = {row.name: (row.kind, row.pid, row.tid, row.total) for row in profile.report(by="waker", time="waiting").rows}
expect(rows, {"two": ("waker", 2, 2, 15), "[interrupt]": ("waker", None, None, 30), "[waker not known]": ("waker", None, None, 7)})
""", make(folder, lines))


@test("who has ended a wait, rewritten to a thread that is not there: CHANGED")
def _(folder):
    need_module()
    path = make(folder, ["about unit ns", "thread 1 1 one", "thread 2 2 two", "waker 1", "sample 10 0 3 1 5 main", "end 50"])
    python(folder, """
profile = fathom.profile(sys.argv[1])
assert profile.report(by="waker", time="waiting").rows[0].name == "two"
with open(sys.argv[1], "r+b") as f:
    data = f.read()
    # A SAMPLE: its tag, 6 bytes, of which the last one is 3 and the number of the thread.
    at = data.index(b"\x07\x06")
    assert data[at + 7] == 4, data[at:]
    f.seek(at + 7)
    f.write(b"\x7f")
for ask in (lambda: profile.report(by="waker", time="waiting"), lambda: profile.samples):
    try:
        ask()
    except fathom.Error as error:
        assert error.code == fathom.ErrorCode.CHANGED, error
        continue
    raise AssertionError("it was not noticed")
""", path)


@test("columns of samples, nodes and locations are what their rows have: memory that nobody can write to")
def _(folder):
    python(folder, HEAD + """
import numpy
samples, nodes, locations = profile.samples, profile.nodes, profile.locations
for name, form in (("ns", "uint64"), ("weight", "uint64"), ("thread", "uint32"), ("node", "uint32")):
    column = numpy.asarray(getattr(samples, name))
    expect(column.tolist(), [getattr(row, name) for row in samples])
    assert column.dtype == form and not column.flags.writeable and not column.flags.owndata
    assert numpy.shares_memory(column, numpy.asarray(getattr(profile.samples, name)))
expect(numpy.asarray(samples.waker).tolist(), [0] * len(samples))
expect([row.waker for row in samples], [None] * len(samples))
for name in ("part", "stop"):
    expect(list(getattr(samples, name)), [getattr(row, name) for row in samples])
for name in ("caller", "location"):
    expect(numpy.asarray(getattr(nodes, name)).tolist(), [getattr(row, name) for row in nodes])
for name in ("address", "symbol", "module", "trust"):
    expect(list(getattr(locations, name)), [getattr(row, name) for row in locations])
expect(list(locations.function), [row.frames[0].function for row in locations])
assert len(set(locations.symbol.texts)) == len(locations.symbol.texts) == 4
# Self weights of all samples, waits included, by symbol: one line of numpy for each step.
node = numpy.asarray(samples.node)
where = numpy.asarray(nodes.location)[node[node > 0]]
sums = numpy.bincount(numpy.asarray(locations.symbol.codes)[where], numpy.asarray(samples.weight)[node > 0])
expect(dict(zip(locations.symbol.texts, sums.tolist())), {"main": 31, "work": 150, "start": 0, "leaf": 1030})
""", made(folder))


@test("reports: sums by function, by line, module, thread and process, trees, waits, filters: as they are worked out by hand")
def _(folder):
    python(folder, HEAD + """
def rows(**options):
    return {row.name: (row.self, row.total, row.self_samples, row.total_samples) for row in profile.report(**options).rows}


def tree(**options):
    paths, found = {0: ()}, {}
    for number, node in enumerate(profile.report(**options).tree):
        if number:
            paths[number] = (*paths[node.parent], node.row.name)
            found[paths[number]] = node.total
            assert node.depth == len(paths[number])
        else:
            assert node.row is None
    return found


code = {"work": (150, 150, 2, 2), "main": (20, 211, 1, 5), "leaf": (30, 30, 1, 1), "start": (0, 30, 0, 1)}
report = profile.report()
expect({name: sums for name, sums in rows().items() if name in code}, code)
expect(sorted((row.kind, row.self, row.stop) for row in report.rows if row.kind != "function"),
       [("incomplete", 0, "no-rule"), ("kernel-hidden", 11, None), ("unsampled", 13, None)])
expect(report.sums, (224, 224, 11, 13, 6, 5, 4))
expect([row.self for row in report.rows], sorted((row.self for row in report.rows), reverse=True))
assert report.rows[0] == next(iter(report.rows)) and report.rows[0].module == "/app" and report.rows[0].file is None
by_line = next(row for row in profile.report(by="line").rows if row.name == "work")
expect((by_line.kind, by_line.file, by_line.line, by_line.self), ("line", "/src/work.c", 7, 150))
expect({row.name: row.self for row in profile.report(by="module").rows if row.kind == "module"}, {"/app": 170, "/lib": 30})
expect({(row.kind, row.pid, row.tid, row.self) for row in profile.report(by="thread").rows},
       {("thread", 10, 10, 163), ("thread", 10, 11, 61)})
expect({(row.kind, row.pid, row.tid, row.self) for row in profile.report(by="process").rows}, {("process", 10, None, 224)})
expect({(row.kind, row.cgroup, row.self) for row in profile.report(by="cgroup").rows},
       {("cgroup", None, 163), ("cgroup", "/app.slice", 61)})
expect({(row.kind, row.name, row.self) for row in profile.report(by="reason", time="wall").rows},
       {("reason", "[on a processor]", 224), ("reason", "[reason not known]", 1000), ("reason", "[waits for a processor]", 500)})
assert tree(only="main") == tree(only=["main"]) == {("main",): 211}
expect(tree(under="main", exclude=("work", "leaf")), {("main",): 211, ("main", "[kernel, stack not permitted]"): 11})
expect(tree(tree="callers", of="leaf"), {("leaf",): 30, ("leaf", "main"): 30, ("leaf", "main", "start"): 30})
expect(tree(tree="callees", of="start"), {("start",): 30, ("start", "main"): 30, ("start", "main", "leaf"): 30})
assert tree(tree="bottom-up")[("work", "main")] == 150
expect(rows(from_ns=2000, to_ns=4000, only=("work", "leaf")), {"work": (50, 50, 1, 1), "leaf": (30, 30, 1, 1)})
expect(profile.report(time="waiting").sums[::4], (1500, 2))
expect(profile.report(time="wall").sums.weight, 1724)
expect(rows(time="waiting")["leaf"], (1000, 1000, 1, 1))
# Of 224, a tenth: 'leaf' has 30.
assert profile.report(min_share=0.1).tree[0].branches_left_out > 0 and ("start",) in tree(min_share=0.1)
assert ("start",) not in tree(min_share=0.2)
for wrong in (dict(by="colour"), dict(tree="sideways"), dict(time="tea"), dict(of="main"), dict(tree="callers"),
              dict(min_share=2), dict(only="a\\0b")):
    try:
        profile.report(**wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
try:
    profile.report(only="nobody")
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.NOT_FOUND, e
else:
    raise AssertionError("nobody was found")
""", made(folder))


@test("annotations: functions, code, lines and instructions as the command prints them, and as they are worked out by hand")
def _(folder):
    need_module()
    path = program(folder, "brief")
    identity = json.loads(run(FATHOM, "addr", "--json", path, "main"))
    address = int(identity["module_address"], 16)
    profile = make(folder, ["about unit ns", "thread 7 7 demo", f"file {path} {identity['build_id']}",
                            f"sample 1 0 0 1 50 {address:#x}@{path}", f"sample 2 0 0 1 7 work@/bin/jit!{path}.c:3", "end 10"])
    lines = [json.loads(line) for line in run(FATHOM, "report", "--json", "--annotate", "/^/", profile).splitlines()]
    python(folder, HEAD + f"LINES = {lines!r}\n" + """
annotation = profile.annotate()
expect(([(f.name, f.self, f.total, f.reason) for f in annotation], annotation.left_out, annotation.sums.weight),
       ([("main", 50, 50, None), ("work", 7, 7, "JIT code: its instructions are gone")], 0, 57))
for number, f in enumerate(annotation):
    def those(kind):
        return [line for line in LINES if line["type"] == kind and line["function"] == number]
    (own,) = those("annotated")
    expect({key: own[key] for key in own if key not in ("type", "function")},
           {key: value for key, value in f._asdict().items() if key not in ("code", "lines", "instructions")})
    for line, wanted in zip(f.lines, those("source"), strict=True):
        expect(line._asdict(), {key: wanted[key] for key in wanted if key not in ("type", "function")})
    for code, wanted in zip(f.code, those("code"), strict=True):
        expect((code.name, hex(code.address), code.size, code.instructions), (wanted["name"], wanted["address"], wanted["size"], wanted["instructions"]))
    for at, wanted in zip(f.instructions, those("instruction"), strict=True):
        expect((hex(at.address), at.bytes.hex(), at.text, at.self, at.outside),
               (wanted["address"], wanted["bytes"], wanted["text"], wanted["self"], wanted["outside"]))
        expect(None if at.line is None else f.lines[at.line].line, wanted["line"])
        expect(None if at.jump is None else hex(f.instructions[at.jump].address), wanted["jump"])
expect([at.self for at in annotation[0].instructions if at.self], [50])
assert len(profile.annotate("main", instructions=False)[0].instructions) == 0 and profile.annotate(limit=1).left_out == 1
assert all(line.text is None for line in profile.annotate("main", source=False)[0].lines)
assert any("%rsp" in at.text for at in annotation[0].instructions) and all("%" not in at.text for at in profile.annotate("main", intel=True)[0].instructions)
try:
    profile.annotate("nobody")
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.NOT_FOUND, e
else:
    raise AssertionError("nobody was found")
""", profile)


@test("a comparison: values, changes and verdicts of functions that have more, less and as much as before")
def _(folder):
    need_module()
    # 1,000 samples each, of weight 10: of parse 100 and 400 of them, of print 500 and 200, of rest 400 and 400.
    paths = [make(folder, ["about unit ns", "thread 7 7 demo",
                           *(line for name, n in (("parse", parse), ("print", 600 - parse), ("rest", 400))
                             for line in (f"sample 1 0 0 1 10 main@/v/app;{name}@/v/app", f"times {n - 1}")),
                           "end 2000000000"], name)
             for name, parse in (("a", 100), ("b", 400))]
    python(folder, HEAD + """
diff = profile.diff(fathom.profile(sys.argv[2]))
found = {row.name: row for row in diff.rows}
expect({name: (row.verdict, row.self, row.self_samples, row.module) for name, row in found.items()},
       {"parse": ("slower", (1000, 4000), (100, 400), "app"), "print": ("faster", (5000, 2000), (500, 200), "app"),
        "rest": ("not-significant", (4000, 4000), (400, 400), "app")})
expect({name: tuple(round(value, 9) for value in (*row.values, row.change)) for name, row in found.items()},
       {"parse": (0.1, 0.4, 0.3), "print": (0.5, 0.2, -0.3), "rest": (0.4, 0.4, 0)})
assert all(row.interval[0] < row.change < row.interval[1] and row.kind == "function" for row in diff.rows)
assert found["parse"].chance < 1e-6 < found["rest"].chance <= 1
expect(diff.sums, ((10000, 10000), (1000, 1000), (1000, 1000), (10000, 10000), 1, 1))
assert {row.verdict for row in diff.rows[:2]} == {"slower", "faster"}
# A second profile of itself has no change, by requests neither; the recordings have taken two seconds.
assert fathom.profile(sys.argv[1]).diff(profile).sums[-2:] == (0, 0)
by_count = {row.name: row.values for row in profile.diff(fathom.profile(sys.argv[2]), per="count", counts=(10, 20)).rows}
expect(by_count["parse"], (100, 200))
expect(next(row.values for row in profile.diff(profile, per="wall").rows if row.name == "rest"), (2000, 2000))
expect({(row.verdict, row.interval, row.chance) for row in profile.diff(profile, time="wall").rows}, {("not-tested", None, None)})
for wrong in (dict(per="moon"), dict(per="count"), dict(counts=(1, 2)), dict(per="count", counts=(1, 2, 3))):
    try:
        profile.diff(profile, **wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
""", *paths)


@test("exports: collapsed stacks by line, pprof's sums by a reader of its own; a failure leaves the file that was there")
def _(folder):
    os.mkdir(os.path.join(folder, "closed"))
    python(folder, HEAD + """
import errno
profile.export("stacks", "collapsed")
profile.export("stacks.pb.gz", "pprof", under=["start"])
profile.export("page.html", "page")
assert open("page.html").read().startswith("<!doctype html>")
open("kept", "w").write("as it was")
for path, error, code, number in (("kept", dict(only="nobody"), fathom.ErrorCode.NOT_FOUND, 0),
                                  ("new", dict(only="nobody"), fathom.ErrorCode.NOT_FOUND, 0),
                                  ("closed", {}, fathom.ErrorCode.OS, errno.EISDIR),
                                  ("nowhere/x", {}, fathom.ErrorCode.OS, errno.ENOENT),
                                  ("/dev/full", {}, fathom.ErrorCode.OS, errno.ENOSPC)):
    try:
        profile.export(path, "collapsed", **error)
    except fathom.Error as e:
        assert (e.code, e.detail.errno) == (code, number) and (not number or str(e).startswith(path + ": ")), (e, e.detail)
    else:
        raise AssertionError(path)
assert open("kept").read() == "as it was" and not os.path.exists("new")
profile.export("kept", "collapsed", only=["leaf"])
assert open("kept").read() == "shop;leaf 30\\n"
try:
    profile.export("x", "moon")
except ValueError:
    pass
else:
    raise AssertionError("moon")
for name in ("speedscope", "firefox", "perfetto", "svg", "svg-bars"):
    profile.export(name, name, under=["start"])
""", made(folder), cwd=folder)
    with open(os.path.join(folder, "stacks"), encoding="utf-8") as f:
        lines = dict(line.rsplit(" ", 1) for line in f.read().splitlines())
    wanted = {"shop;main;work": 150, "shop;start;main;leaf": 30, "shop;main;[kernel, stack not permitted]": 11}
    same({path: int(lines[path]) for path in wanted}, wanted)
    same(sum(map(int, lines.values())), 224)
    with open(os.path.join(folder, "stacks.pb.gz"), "rb") as f:
        pprof = pprof_file.Profile(f.read())
    same([sum(values) for values in zip(*(sample.values for sample in pprof.samples))][:2], [1, 30])
    for name, reader in (("speedscope", viewers.Speedscope), ("firefox", viewers.Firefox), ("perfetto", viewers.Perfetto)):
        with open(os.path.join(folder, name), "rb") as f:
            same([(sample.stack[-1].name, sample.weight) for sample in reader(f.read()).samples], [("leaf", 30)])
    for name in ("svg", "svg-bars"):
        with open(os.path.join(folder, name), "rb") as f:
            assert "leaf" in {box.name for box in viewers.Picture(f.read()).boxes}


@test("a recorded profile beside a reader of its own: each thread, module, place, node and sample; names beside nm")
def _(folder):
    need_module()
    path = program(folder, "shares")
    file = os.path.join(folder, "recorded")
    truth, _ = record(folder, path, "2", "0.3", waits=True, name="recorded")
    symbols = symbols_of(path)
    names = [truth.name_of(location, symbols) if truth.modules[location.module].path == os.path.realpath(path) else None
             for location in truth.locations]
    assert {"tenth", "fifth", "quarter", "rest"} <= set(names)
    python(folder, HEAD + f"NAMES = {names}\n" + """
from profile_file import Profile
truth = Profile(sys.argv[1])
expect([(t.pid, t.tid, t.parent or 0, t.ns, t.name, t.cgroup) for t in profile.threads], [tuple(t) for t in truth.threads])
expect([(m.path, m.build_id or "") for m in profile.modules], [(m.path, m.build_id) for m in truth.modules])
expect(list(profile.locations.address), [location.address for location in truth.locations])
expect([code if code >= 0 else -1 for code in profile.locations.module.codes], [location.module for location in truth.locations])
expect([location.is_return_address for location in profile.locations], [location.kind == 1 for location in truth.locations])
expect(list(zip(profile.nodes.caller, profile.nodes.location))[1:], truth.nodes[1:])
samples = profile.samples
expect(list(zip(samples.part.codes, samples.stop.codes, samples.ns, samples.thread, samples.node, samples.weight)), [s[:6] for s in truth.samples])
expect(profile.info.duration_ns, truth.end)
# Stubs of the PLT, which nm does not know, lie after _init().
own = [(at, name) for at, name in enumerate(NAMES) if name and name != "_init"]
expect([(at, profile.locations[at].linkage_name) for at, _ in own], own)
# Without the search for names there are only those that the file has.
plain = fathom.profile(sys.argv[1], resolve=False)
assert all(plain.locations[at].symbol is None and plain.locations[at].reason == "no-symbols" for at, _ in own)
assert [row for row in plain.locations if row.symbol]
elsewhere = fathom.profile(sys.argv[1], sysroot="/nowhere", debug_dirs=["/nowhere"])
assert len(elsewhere.locations) == len(NAMES)
""", file, env={"PYTHONPATH": os.pathsep.join((MODULE, os.path.join(TOP, "tests", "lib")))})


@test("what a profile has given stays when it is closed; a closed one says so, whatever it is asked; with closes it")
def _(folder):
    python(folder, HEAD + """
with profile as same:
    assert same is profile
    kept = (profile.threads, profile.modules, profile.locations, profile.nodes, profile.samples, profile.report(),
            profile.diff(profile))
    frames = profile.frames(profile.samples[0].node)
    columns = profile.samples.weight, profile.nodes.caller, profile.locations.address
assert profile.closed and repr(profile) == "<Profile closed>"
wanted = [len(x) for x in kept[:5]]
for ask in (lambda: profile.info, lambda: profile.threads, lambda: profile.modules, lambda: profile.locations,
            lambda: profile.nodes, lambda: profile.samples, lambda: profile.frames(1), profile.report, profile.__enter__,
            lambda: profile.diff(profile), lambda: fathom.profile(sys.argv[1]).diff(profile),
            lambda: profile.export("x", "collapsed")):
    try:
        ask()
    except ValueError as e:
        assert str(e) == "the profile is closed"
        continue
    raise AssertionError(ask)
profile.close()
del profile, same
gc.collect()
# It takes the memory that was freed.
junk = [b"x" * n for n in range(1, 100000, 100)]
threads, modules, locations, nodes, samples, report, diff = kept
assert wanted == [2, 2, 4, len(nodes), 8] and threads[1].name == "worker" and modules[1].path == "/lib"
expect([frame.symbol for frame in frames], ["work", "main"])
expect(list(columns[0]), [100, 50, 30, 20, 11, 13, 1000, 500])
expect(list(columns[1]), [row.caller for row in nodes])
assert list(columns[2]) == [row.address for row in locations] and report.rows[0].name == "work" and len(diff.rows) >= 3
""", made(folder))


@test("what is no profile, is of a later version, damaged or cut short: an Error with its file, or what is left")
def _(folder):
    path = made(folder)
    with open(path, "rb") as f:
        whole = f.read()
    for name, data in (("no", b"\x7fELF" + bytes(100)), ("later", whole.replace(b"prof1", b"prof9")), ("empty", b""),
                       ("cut", whole[:whole.rindex(b"\x09") - 20]), ("damaged", whole[:8] + b"\x06\x02\x05\x05" + whole[8:])):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    python(folder, HEAD + """
for path, code in (("no", "FORMAT"), ("later", "FORMAT"), ("empty", "FORMAT"), ("damaged", "CORRUPT"), ("nowhere", "OS")):
    try:
        fathom.profile(path)
    except fathom.Error as e:
        assert e.code.name == code and e.detail.file == path and str(e).startswith(path + ": "), (path, e, e.detail)
        continue
    raise AssertionError(path)
cut = fathom.profile("cut")
assert not cut.info.complete and 0 < len(cut.samples) < 8 and cut.samples[0] == profile.samples[0]
try:
    fathom.Session(memory_budget=1000).profile(sys.argv[1])
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.LIMIT, e
else:
    raise AssertionError("a budget of 1000 bytes")
""", path, cwd=folder)


@test("a file that is written to after it was opened: CHANGED, never samples of something else")
def _(folder):
    path = make(folder, ["thread 7 7 demo", "sample 1 0 0 1 10 main@/v/app", "times 1000", "end 2000"])
    python(folder, HEAD + """
data = bytearray(open(sys.argv[1], "rb").read())
with open(sys.argv[1], "r+b") as f:
    f.seek(len(data) - 200)
    f.write(b"\\xff" * 100)
try:
    profile.samples
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.CHANGED, e
else:
    raise AssertionError("it was answered")
""", path)


@test("other threads run Python while a profile is opened, named, read, reported, compared, exported: that gives up the GIL")
def _(folder):
    functions = [f"fathom_profile_{name}" for name in ("open", "resolve", "each_sample", "export")]
    while_others_run(folder, [*functions, "fathom_report_create", "fathom_annotation_create", "fathom_diff_create"], """
    profile = fathom.profile(sys.argv[1])
    assert sum(profile.samples.weight) == 1724 and profile.report().sums.weight == profile.annotate().sums.weight == 224 and profile.diff(profile).sums.slower == 0
    profile.export("stacks", "collapsed")
    done.append("done")
""", made(folder))


@test("2,000 profiles are opened, asked, reported and closed: no descriptor, no mapping, no object and no memory stays")
def _(folder):
    python(folder, GROWTH + """
session = fathom.Session()


def work(n):
    for i in range(n):
        with session.profile(sys.argv[1]) as profile:
            assert sum(profile.samples.weight) == 1724 and profile.frames(profile.samples[0].node)[0].symbol == "work"
            assert profile.report().rows[0].self == profile.annotate()[0].self == 150 and profile.diff(profile).sums.slower == 0
            profile.export("/dev/null", "collapsed")


work(500)
before = counts()
work(2000)
# 250 bytes for each would be seen.
check_growth(before)
""", made(folder))
