# SPDX-License-Identifier: MIT
"""Frames of JavaScript in node, beside what V8 says of its own stacks. They are native frames, which get a function, file and line."""
import contextlib
import functools
import os

import building
import scripts
import tap

from ask import fathom
from script_runtimes import NODE
from running import Running, until
from scripts import PROGRAMS, script_frames, shown, stacks, test

SCRIPT = os.path.join(PROGRAMS, "stacks.js")

# Compiled by Sparkplug at once; only interpreted.
BASELINE = ("--always-sparkplug", "--no-opt")
INTERPRETED = ("--no-sparkplug", "--no-opt")


class Script(scripts.Script):
    """The script in SHAPE, run by @node with @flags."""

    def __init__(self, node, shape, folder, threads=1, wrapper=(), flags=(), **options):
        # Workers have a folder each, for their modules.
        for i in range(8):
            os.makedirs(os.path.join(folder, f"w{i}"), exist_ok=True)
        super().__init__([*wrapper, node, *flags, SCRIPT], shape, folder, threads, **options)


def check(thread, truth, waits="wait"):
    """The frames of @thread are those of @truth, below the built-in function in which it waits."""
    got = script_frames(thread)
    if waits:
        assert got[0] == [waits, None, None], got[:2]
        got = got[1:]
    want = [[shown(function), file and shown(file), line] for function, file, line in truth]
    pairs = zip(got + [None] * len(want), want + [None] * len(got))
    assert got == want, "\n".join(f"{a}   {b}" for a, b in pairs if a != b)
    assert thread["script_why"] is None, thread["script_why"]


def check_in(found, tid, truth):
    check(next(t for t in found if t["tid"] == tid), truth)


def check_place(thread, native):
    """Frames of the script are native frames: of V8's built-ins, or code without a name. The others are what they are without them."""
    assert [f["sp"] for f in thread["frames"]] == [f["sp"] for f in native["frames"]]
    for frame, own in zip(thread["frames"], native["frames"]):
        if frame["kind"] == "script":
            assert own["symbol"] is None or own["symbol"].startswith("Builtins_"), own
        else:
            assert frame["pc"] == own["pc"] and frame["symbol"] == own["symbol"], (frame, own)
            assert frame["symbol"] not in ("Builtins_InterpreterEntryTrampoline", "Builtins_ArrayMap"), frame


@test("node: shapes of calls, interpreted and compiled by Sparkplug: functions, files and lines are V8's; they stand in their native frames")
def shapes(folder):
    for version, node in NODE.each_known():
        for flags in (), INTERPRETED, BASELINE:
            with Script(node, "importing", folder, flags=flags) as script:
                script.wait()
                ((tid, truth),) = script.truth.items()
                assert tid == script.pid and len(truth) > 100, (version, truth)
                thread = stacks(script.pid)[0]
                check(thread, truth)
                native = stacks(script.pid, "--frames=native")[0]
                # Both are of one moment: it sleeps.
                assert {f["runtime"] for f in thread["frames"] if f["kind"] == "script"} == {f"node {version}"}
                assert all(f["kind"] == "native" and f["runtime"] is None for f in native["frames"]), native
                if os.path.exists("/usr/bin/readelf"):
                    check_place(thread, native)


@test("node: an async function after await, called by a timer")
def asynchronous(folder):
    for _, node in NODE.each_known():
        with Script(node, "async", folder) as script:
            script.wait()
            check_in(stacks(script.pid), *next(iter(script.truth.items())))


@test("node: 900 calls deep, a third of them by a built-in function")
def deep(folder):
    for _, node in NODE.each_known():
        for flags in (), BASELINE:
            with Script(node, "deep", folder, flags=flags) as script:
                script.wait()
                ((tid, truth),) = script.truth.items()
                assert len(truth) > 900
                check_in(stacks(script.pid, "--max-frames=100000"), tid, truth)


@test("node: eight worker threads: each has its own frames, and threads that run no JavaScript have none")
def threads(folder):
    for version, node in NODE.each_known():
        with Script(node, "many", folder, threads=8) as script:
            script.wait()
            assert len(script.truth) == 8
            found = {}

            def have_lines(script=script, found=found):
                found.update((thread["tid"], thread) for thread in stacks(script.pid))
                for tid, truth in script.truth.items():
                    for frame, told in zip(script_frames(found[tid])[1:], truth, strict=True):
                        assert frame[:2] == [shown(told[0]), told[1] and shown(told[1])] and frame[2] in (None, told[2]), (frame, told)
                return all(frame[2] for tid in script.truth for frame in script_frames(found[tid])[1:] if frame[1])
            # After many threads have begun, V8 collects garbage on threads of its own: what it moves has no line meanwhile.
            until(have_lines, lambda found=found: [script_frames(thread) for thread in found.values()])
            for tid, truth in script.truth.items():
                check(found[tid], truth)
            others = [thread for tid, thread in found.items() if tid not in script.truth]
            assert len(others) > 4 and not any(script_frames(thread) for thread in others), version


@test("node: a thread that runs: its functions, as often as it is asked; a line of its loop, or none where it cannot be known")
def running(folder):
    begin = next(i for i, line in enumerate(open(SCRIPT, encoding="utf-8"), 1) if line.startswith("function spinning("))
    for version, node in NODE.each_known():
        for flags in (), INTERPRETED, BASELINE:
            with scripts.spinning(functools.partial(Script, node), "spin", folder, flags=flags) as (script, _, truth):
                lines = set()

                def look(script=script, truth=truth, lines=lines, which=(version, flags)):
                    # V8 may be compiling, or collecting garbage, on the same thread.
                    got = [f for f in script_frames(stacks(script.pid)[0]) if f[1]]
                    while got and got[0][0] == "spinning":
                        lines.add(got[0][2])
                        got = got[1:]
                    assert got[:1] in ([truth[0]], [[*truth[0][:2], None]]) and got[1:] == truth[1:], (which, got, truth)
                    return lines & {begin + 3, begin + 4}
                for _ in range(6):
                    look()
                if flags == BASELINE:
                    until(look, lambda lines=lines: lines)
                assert lines <= {None, *range(begin, begin + 7)}, (version, flags, lines)


@test("node: with --perf-basic-prof the perf map's names of compiled code stay; what is interpreted has the function's")
def perf_maps(folder):
    for version, node in NODE.each_known():
        with Script(node, "spin", folder, flags=("--perf-basic-prof",), cwd=folder) as script:
            path = f"/tmp/perf-{script.pid}.map"
            try:
                found = []

                def is_named():
                    found[:] = stacks(script.pid)[0]["frames"]
                    return any(f["source"] == "perf-map" and "spinning" in f["symbol"] for f in found)
                until(is_named, lambda: found[:3])
                by_map = [i for i, f in enumerate(found) if f["source"] == "perf-map" and "spinning" in f["symbol"]]
                assert all(found[i]["kind"] != "script" for i in by_map), (version, found[:3])
                assert "spinning" not in [f["symbol"] for f in found if f["kind"] == "script"], found[:3]
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)


@test("node: a core of gdb: the frames that the process had")
def cores(folder):
    for _, node in NODE.each_known():
        scripts.check_core(functools.partial(Script, node), check_in, folder)


@test("node: a core of the kernel: the frames that the process had")
def kernel_cores(folder):
    for _, node in NODE.each_known():
        scripts.check_kernels_core(functools.partial(Script, node), check_in, folder)


@test("node: a snapshot with stacks: the frames that the process had, once it has gone")
def snapshots(folder):
    for _, node in NODE.each_known():
        scripts.check_snapshot(functools.partial(Script, node), check_in, folder)


@test("node: a process in PID and mount namespaces of its own: its frames", needs_root=True)
def namespaces(folder):
    for _, node in NODE.each_known():
        scripts.check_namespaces(functools.partial(Script, node), check_in, folder)


@test("node: as text: functions with file and line, built-in ones without; the runtime's own frames counted; each kind of --frames")
def text(folder):
    version, node = NODE.each_known()[0]
    with Script(node, "deep", folder) as script:
        script.wait()
        (truth,) = script.truth.values()
        rows = fathom("stack", script.pid, status=(0, 1)).stdout.split("\nTID")[0].splitlines()
        named = [row.split(None, 1)[1] for row in rows if row.endswith(f"(node {version})")]
        function, file, line = truth[0]
        assert named[:2] == [f"wait (node {version})", f"{function} {file}:{line} (node {version})"], named[:3]
        assert any(f"frames of node {version} ..." in row for row in rows) and any("times more" in row for row in rows), rows
        only = fathom("stack", "--frames=script", script.pid, status=(0, 1)).stdout.split("\nTID")[0].splitlines()[1:]
        assert only and all(f"(node {version})" in row or "times more" in row for row in only), only
        native = fathom("stack", "--frames=native", script.pid, status=(0, 1)).stdout
        assert f"(node {version})" not in native and SCRIPT not in native
        names = stacks(script.pid, "--names-only")[0]
        assert [f[0] for f in script_frames(names)][1:] == [f[0] for f in truth] and all(f[1] is None for f in script_frames(names))


@test("node: another one, before 16 or after 22: its native frames, and one sentence")
def others(folder):
    found = [path for _, path in NODE.others()]
    if not found:
        raise tap.Skip("there is no node but 16, 18, 20 and 22")
    for node in found:
        with Running([node, "-e", "console.log('ready'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"]) as process:
            assert process.line() == "ready"
            thread = stacks(process.pid)[0]
            assert script_frames(thread) == [] and "node 16, 18, 20 and 22" in thread["script_why"], thread["script_why"]


# Structures made by hand ----------------------------------------------------------------------------

# The innermost is interpreted, the next one compiled: what it has left in its frame says another line.
PLANTED = [["inner", "planted.js", 2], ["middle", "planted.js", 3], ["outer", "planted.js", 5]]


def planted(folder, *words):
    if os.uname().machine != "x86_64":
        raise tap.Skip("there is no node 16, 18, 20 or 22 for x86-64 (nodejs)")
    path = os.path.join(folder, "planted_v8")
    if not os.path.exists(path):
        building.build(path, os.path.join(PROGRAMS, "planted_v8.c"), "-rdynamic", flags=("-O1", "-g", "-fno-omit-frame-pointer"))
    return scripts.planted_by(path, words)


@test("node: frames made by hand, interpreted and compiled, between functions of C: each in its own native frame, which is shown once")
def by_hand(folder):
    with planted(folder, "right") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and thread["script_why"] is None, thread
        names = [f["symbol"] for f in thread["frames"]]
        # Before it stand the functions of the C library that wait: one or more.
        at = names.index("wait_here")
        assert names[at:at + 7] == ["wait_here", "planted_frame", "inner", "between", "middle", "between", "outer"], names
        (native,) = stacks(process.pid, "--frames=native")
        assert [f["sp"] for f in thread["frames"]] == [f["sp"] for f in native["frames"]]


@test("node: what does not check is refused by one sentence: the version, pointers of 4 bytes, another layout, types that are not told")
def refused(folder):
    scripts.check_refused(planted, folder, (("version", "node 16, 18, 20 and 22"), ("compressed", "compressed"), ("layout", "another layout"),
                                            ("types", "v8dbg_")))


@test("node: what is not proven stays as it is: functions of another type, contexts, positions, code elsewhere, circles, lengths")
def hostile(folder):
    line_2, line_3, line_5 = ([name, "planted.js", line] for name, _, line in PLANTED)
    for kind, wanted in (("function", []), ("context", [line_2, line_5]), ("position", [["inner", "planted.js", None], line_3, line_5]),
                         ("code", [line_2, ["middle", "planted.js", None], line_5]), ("variables", None),
                         ("circle", [[name, None, None] for name, _, _ in PLANTED]),
                         ("cons", [[name, None, None] for name, _, _ in PLANTED]), ("long", [[name, None, None] for name, _, _ in PLANTED]),
                         ("length", [[name, "planted.js", None] for name, _, _ in PLANTED]), ("scope", None),
                         ("escapes", [["\x1b[31mred", *line_2[1:]], line_3, line_5])):
        with planted(folder, kind) as process:
            (thread,) = stacks(process.pid)
            got = script_frames(thread)
            if wanted is None:
                # A name that cannot be read is none, and never another one.
                assert all(f[0] in ("inner", "middle", "outer", "(anonymous)") for f in got), (kind, got)
            else:
                assert got == wanted, (kind, got)
            assert "\x1b" not in fathom("stack", process.pid, status=(0, 1)).stdout, kind


@test("node: fifty sets of objects with damaged bytes: an end, and the native frames that there are")
def damaged(folder):
    for seed in range(50):
        with planted(folder, "damage", seed) as process:
            (thread,) = stacks(process.pid)
            (native,) = stacks(process.pid, "--frames=native")
            assert [f["sp"] for f in thread["frames"]] == [f["sp"] for f in native["frames"]], seed
            own = {f["sp"]: f for f in native["frames"]}
            assert all(f["symbol"] == own[f["sp"]]["symbol"] for f in thread["frames"] if f["kind"] != "script"), seed
