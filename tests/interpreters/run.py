#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "interpreters": frames of scripts among native ones. The truth is what the scripts say of their own stacks; programs that
have the symbols of a runtime, and structures made by hand, show what is done with damaged ones."""
import functools
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import lua_scripts  # noqa: E402, F401  pylint: disable=unused-import
import node_scripts  # noqa: E402, F401  pylint: disable=unused-import
import php_scripts  # noqa: E402, F401  pylint: disable=unused-import
import ruby_scripts  # noqa: E402, F401  pylint: disable=unused-import
import scripts  # noqa: E402
import tap  # noqa: E402
from ask import fathom  # noqa: E402
from script_runtimes import PYTHON  # noqa: E402
from running import Running, until  # noqa: E402
from scripts import PROGRAMS, SUITE, script_frames, shown, stacks, test  # noqa: E402

SCRIPT = os.path.join(PROGRAMS, "stacks.py")


class Script(scripts.Script):
    """The script in SHAPE, run by @python; @truth: of each thread that has told of it, its frames."""

    def __init__(self, python, shape, folder, threads=1, wrapper=(), **options):
        env = {"PYTHONIOENCODING": "utf-8:surrogateescape"}
        super().__init__([*wrapper, python, SCRIPT], shape, folder, threads, env, **options)


def check(thread, truth):
    got = script_frames(thread)
    want = [[shown(function), shown(file), line] for function, file, line in truth]
    assert got == want, "\n".join(f"{a}   {b}" for a, b in zip(got + [None] * len(want), want + [None] * len(got)) if a != b)
    assert thread["script_why"] is None, thread["script_why"]


def check_only(found, tid, truth):
    (thread,) = found
    assert thread["tid"] == tid
    check(thread, truth)


def check_merge(thread, native, version):
    """
    Without its frames of scripts, a thread has the native ones, in their order; after each run of frames of a script comes the
    native frame that executes them, and nothing else does. Since 3.14 that may be many functions without a name, which jump to
    each other.
    """
    frames = thread["frames"]
    assert [f["pc"] for f in frames if f["kind"] != "script"] == [f["pc"] for f in native["frames"]]
    for frame, outer in zip(frames, frames[1:]):
        if frame["kind"] == "script" and outer["kind"] != "script":
            assert outer["kind"] == "runtime", outer
            assert version == "3.14" or outer["symbol"].startswith("_PyEval_EvalFrameDefault"), outer
        elif frame["kind"] != "script" and outer["kind"] == "runtime" and outer["symbol"] == "_PyEval_EvalFrameDefault":
            raise AssertionError(f"a loop that executes nothing: {outer}")


@test("shapes of calls: names, files and lines of the script are its own; before each native frame stands what it executes")
def shapes(folder):
    for version, python in PYTHON.each_known():
        with Script(python, "importing", folder) as script:
            script.wait()
            ((tid, truth),) = script.truth.items()
            (thread,) = stacks(script.pid)
            assert thread["tid"] == tid and len(truth) > 50, (version, truth)
            check(thread, truth)
            (native,) = stacks(script.pid, "--frames=native")
            # Both are of one moment: it sleeps.
            assert {f["runtime"] for f in thread["frames"] if f["kind"] == "script"} == {f"python {version}"}
            assert all(f["kind"] == "native" and f["runtime"] is None for f in native["frames"]), native
            check_merge(thread, native, version)


@test("a stack 900 deep, in the chunks of Python's own stack")
def deep(folder):
    for _, python in PYTHON.each_known():
        with Script(python, "deep", folder) as script:
            script.wait()
            (thread,) = stacks(script.pid)
            (truth,) = script.truth.values()
            assert len(truth) > 900
            check(thread, truth)


@test("calls from the part of a loop that the compiler has set apart: they are in that loop")
def rare(folder):
    for _, python in PYTHON.each_known():
        with Script(python, "rare", folder) as script:
            script.wait()
            ((tid, truth),) = script.truth.items()
            check_only(stacks(script.pid), tid, truth)


@test("200 threads: each has its own frames")
def threads(folder):
    for _, python in PYTHON.each_known():
        with Script(python, "many", folder, threads=200) as script:
            script.wait()
            found = {thread["tid"]: thread for thread in stacks(script.pid)}
            assert set(found) == set(script.truth) and len(found) == 200
            for tid, truth in script.truth.items():
                check(found[tid], truth)


@test("the child of a fork: the frames that it has, and none of threads that it has not")
def forked(folder):
    for _, python in PYTHON.each_known():
        scripts.check_forked(functools.partial(Script, python), check_only, folder)


@test("a thread that runs: its function, and a line of its loop, as often as it is asked")
def running(folder):
    for _, python in PYTHON.each_known():
        with scripts.spinning(functools.partial(Script, python), "spin", folder) as (script, _, truth):
            for _ in range(20):
                (thread,) = stacks(script.pid)
                got = script_frames(thread)
                assert [f[:2] for f in got] == [f[:2] for f in truth] and got[1:] == truth[1:], (got, truth)
                assert truth[0][2] < got[0][2] <= truth[0][2] + 3, (got[0], truth[0])


@test("the GIL: a thread that sleeps has it, three wait for it, and say for whom")
def gil(folder):
    for _, python in PYTHON.each_known():
        with Script(python, "busy", folder, threads=4) as script:
            (holder,) = (tid for tid, truth in script.truth.items() if not truth)

            def all_wait(script=script, holder=holder):
                found[:] = [t for t in stacks(script.pid) if t["tid"] != holder]
                return {t["waits_for"] for t in found} == {f"GIL owned by {holder}"}
            found = []
            until(all_wait, lambda: [t["waits_for"] for t in found])
            assert len(found) == 3 and {t["owner"] for t in found} == {holder}


@test("a core of gdb: the frames that the process had")
def cores(folder):
    for _, python in PYTHON.each_known():
        scripts.check_core(functools.partial(Script, python), check_only, folder)


@test("a core of the kernel: the frames that the process had")
def kernel_cores(folder):
    for _, python in PYTHON.each_known():
        scripts.check_kernels_core(functools.partial(Script, python), check_only, folder)


@test("a snapshot with stacks: the frames that the process had, once it has gone")
def snapshots(folder):
    for _, python in PYTHON.each_known():
        scripts.check_snapshot(functools.partial(Script, python), check_only, folder)


@test("a process in PID and mount namespaces of its own: its frames", needs_root=True)
def namespaces(folder):
    for _, python in PYTHON.each_known():
        scripts.check_namespaces(functools.partial(Script, python), check_only, folder)


@test("as text: functions with file and line, the interpreter's own frames counted; each kind of --frames")
def text(folder):
    version, python = PYTHON.each_known()[0]
    with Script(python, "deep", folder) as script:
        script.wait()
        (truth,) = script.truth.values()
        lines = fathom("stack", script.pid, status=(0, 1)).stdout.splitlines()
        rows = [line.split(None, 1)[1] for line in lines if line.endswith(f"(python {version})")]
        function, file, line = truth[0]
        assert rows[0] == f"{function} {file}:{line} (python {version})", rows[:3]
        assert rows[-1] == f"<module> {SCRIPT}:{truth[-1][2]} (python {version})", rows[-3:]
        assert any(f"frames of python {version} ..." in line for line in lines), lines
        assert any("times more" in line for line in lines), lines
        script_only = fathom("stack", "--frames=script", script.pid, status=(0, 1)).stdout.splitlines()[1:]
        assert all(f"(python {version})" in line or "times more" in line for line in script_only), script_only
        all_of = fathom("stack", "--frames=all", script.pid, status=(0, 1)).stdout
        assert " frames of python" not in all_of and f"(python {version})" in all_of
        native = fathom("stack", "--frames=native", script.pid, status=(0, 1)).stdout
        assert "(python" not in native and "recurse" not in native
        (names,) = stacks(script.pid, "--names-only")
        assert [f[0] for f in script_frames(names)] == [f[0] for f in truth] and all(f[1] is None for f in script_frames(names))
    wrong = fathom("stack", "--frames=most", os.getpid(), status=2).stderr
    assert "most" in wrong and "merged, script, native or all" in wrong, wrong


@test("another CPython, before 3.8 or after 3.14: its native frames, and one sentence")
def others(folder):
    # Before 3.7 it has no _PyRuntime.
    found = [path for version, path in PYTHON.others() if int(version.split(".")[1]) > 6]
    if not found:
        raise tap.Skip("there is no CPython but 3.8 to 3.14")
    for python in found:
        with Running([python, "-c", "import time; print('ready', flush=True); time.sleep(10000)"]) as running_one:
            assert running_one.line() == "ready"
            (thread,) = stacks(running_one.pid)
            assert script_frames(thread) == [] and "3.11" in thread["script_why"], thread["script_why"]


# Structures made by hand ----------------------------------------------------------------------------

PLANTED = [["inner", "planted.py", 10], ["middle", "planted.py", 20], ["outer", "planted.py", 30]] * 2


def planted(folder, *words):
    path = building.build(os.path.join(folder, "planted"), os.path.join(PROGRAMS, "planted.c"), "-rdynamic", flags=("-O1", "-g"))
    return scripts.planted_by(path, words)


@test("a chain made by hand: two frames in each of three loops, told by addresses, whatever the loop is called")
def by_hand(folder):
    with planted(folder, "right") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and thread["script_why"] is None, thread
        names = [f["symbol"] for f in thread["frames"] if f["symbol"] in ("loop", "inner", "middle", "outer")]
        assert names == ["inner", "middle", "loop", "outer", "inner", "loop", "middle", "outer", "loop"], names


@test("frames in no native frame stand after all of them, with the reason")
def elsewhere(folder):
    with planted(folder, "anchor") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED[2:] + PLANTED[:2], script_frames(thread)
        assert "no native frame" in thread["script_why"], thread
        assert [f["kind"] for f in thread["frames"]][-2:] == ["script", "script"], thread
        assert "(script: no native frame" in fathom("stack", process.pid, status=(0, 1)).stdout


@test("layouts that do not check are refused by one sentence: the version, the size of a code object, a member of it")
def refused(folder):
    scripts.check_refused(planted, folder, (("version", "3.11 to 3.14"), ("size", "another layout"), ("member", "another layout")))


@test("circles, long lists, lengths and pointers to nowhere: an end, and no name that is not there")
def hostile(folder):
    for kind in ("circle", "own-circle", "long", "type", "length", "threads", "table", "nowhere", "escapes"):
        with planted(folder, kind) as process:
            (thread,) = stacks(process.pid, "--max-frames=100")
            names = {f[0] for f in script_frames(thread)}
            assert names <= {"inner", "middle", "outer", None, "\x1b[31mred\x1b]0;title\x07"}, (kind, names)
            assert "\x1b" not in fathom("stack", process.pid, status=(0, 1)).stdout, kind


@test("fifty chains with damaged bytes: an end, and the native frames as they are")
def damaged(folder):
    scripts.check_damaged(planted, folder)


sys.exit(SUITE.run())
