# SPDX-License-Identifier: MIT
"""Frames of Ruby scripts, beside what Ruby says of its own stacks. There a method of C has the file and line of its caller; here it
has none. Structures made by hand show what is done with damaged ones."""
import functools
import os

import building
import scripts
import tap

from ask import fathom
from script_runtimes import RUBY
from running import Running
from scripts import PROGRAMS, script_frames, shown, stacks, test

SCRIPT = os.path.join(PROGRAMS, "stacks.rb")


class Script(scripts.Script):
    """The script in SHAPE, run by @ruby."""

    def __init__(self, ruby, shape, folder, threads=1, wrapper=(), **options):
        super().__init__([*wrapper, ruby, "-W0", SCRIPT], shape, folder, threads, {"LANG": "C.UTF-8"}, **options)


def check(version, thread, truth, waits="sleep"):
    """
    The frames of @thread are those of @truth, below the method in which it waits. A method of C has no file.
    """
    got = script_frames(thread)
    if waits:
        assert got[0][0] == ("Kernel#" if version == "3.4" else "") + waits and got[0][1] is None, got[:2]
        got = got[1:]
    want = [[shown(function), shown(file or ""), line] for function, file, line in truth]
    for i, (have, wanted) in enumerate(zip(got, want)):
        if have[1] is None:
            # Ruby says for it what it says for the next frame, and nothing where there is none.
            assert wanted[1:] == (want[i + 1] if i + 1 < len(want) else ["", "", 0])[1:], (version, i, wanted, want[i + 1:i + 2])
            have[1:] = wanted[1:]
    pairs = zip(got + [None] * len(want), want + [None] * len(got))
    assert got == want, f"{version}: " + "\n".join(f"{a}   {b}" for a, b in pairs if a != b)
    assert thread["script_why"] is None, thread["script_why"]


def stack_of(found, tid):
    """The stack of thread @tid; the interpreter may have threads of its own."""
    return next(t for t in found if t["tid"] == tid)


def check_in(version, found, tid, truth):
    check(version, stack_of(found, tid), truth)


def check_merge(version, thread, native):
    """
    Without its frames of scripts, a thread has the native ones, in their order. After each run of frames of a script comes the
    native frame that executes them: where it has a name, it is rb_vm_exec; and each rb_vm_exec executes something.
    """
    frames = thread["frames"]
    assert [f["pc"] for f in frames if f["kind"] != "script"] == [f["pc"] for f in native["frames"]]
    names = set()
    for frame, outer in zip(frames, frames[1:]):
        if frame["kind"] == "script" and outer["kind"] != "script":
            assert outer["kind"] == "runtime", outer
            names.add(outer["symbol"])
        elif frame["kind"] != "script" and outer["kind"] == "runtime" and outer["symbol"] == "rb_vm_exec":
            raise AssertionError(f"{version}: a loop that executes nothing: {outer}")
    # Since 3.3 the function has no name but its bounds.
    assert len(names) == 1 and (version in ("3.3", "3.4") or names == {"rb_vm_exec"}), names


@test("ruby: shapes of calls: labels, files and lines are its own; before each native frame stands what it executes")
def shapes(folder):
    for version, ruby in RUBY.each_known():
        with Script(ruby, "importing", folder) as script:
            script.wait()
            ((tid, truth),) = script.truth.items()
            thread = stack_of(stacks(script.pid), tid)
            assert len(truth) > 100, (version, truth)
            check(version, thread, truth)
            native = stack_of(stacks(script.pid, "--frames=native"), tid)
            # Both are of one moment: it sleeps.
            assert {f["runtime"] for f in thread["frames"] if f["kind"] == "script"} == {f"ruby {version}"}
            assert all(f["kind"] == "native" and f["runtime"] is None for f in native["frames"]), native
            check_merge(version, thread, native)


@test("ruby: 900 calls deep, a third of them by a method of C")
def deep(folder):
    for version, ruby in RUBY.each_known():
        with Script(ruby, "deep", folder) as script:
            script.wait()
            ((tid, truth),) = script.truth.items()
            assert len(truth) > 900
            thread = stack_of(stacks(script.pid, "--max-frames=100000"), tid)
            check(version, thread, truth)


@test("ruby: 50 threads: each has its own frames")
def threads(folder):
    for version, ruby in RUBY.each_known():
        with Script(ruby, "many", folder, threads=50) as script:
            script.wait()
            found = {thread["tid"]: thread for thread in stacks(script.pid)}
            assert set(found) >= set(script.truth) and len(script.truth) == 50
            for tid, truth in script.truth.items():
                if "long_method" not in str(truth):
                    check(version, found[tid], truth)
            # A thread of the interpreter itself has none.
            assert all(not script_frames(t) for tid, t in found.items() if tid not in script.truth)


@test("ruby: fibers in fibers, of an enumerator, of a thread: the frames of the fiber that runs")
def fibers(folder):
    for version, ruby in RUBY.each_known():
        for shape in ("fibers", "enumerator", "thread_in_fiber"):
            with Script(ruby, shape, folder) as script:
                script.wait()
                ((tid, truth),) = script.truth.items()
                thread = stack_of(stacks(script.pid), tid)
                check(version, thread, truth)


@test("ruby: blocks of at_exit and of a signal: their frames")
def endings(folder):
    for version, ruby in RUBY.each_known():
        for shape in ("at_exit_block", "trapped"):
            with Script(ruby, shape, folder) as script:
                script.wait()
                ((tid, truth),) = script.truth.items()
                thread = stack_of(stacks(script.pid), tid)
                check(version, thread, truth)


@test("ruby: the child of a fork: the frames that it has, and none of threads that it has not")
def forked(folder):
    for version, ruby in RUBY.each_known():
        scripts.check_forked(functools.partial(Script, ruby), functools.partial(check_in, version), folder)


@test("ruby: a thread that runs: its method, and a line of its loop, as often as it is asked")
def running(folder):
    for version, ruby in RUBY.each_known():
        with scripts.spinning(functools.partial(Script, ruby), "spin", folder) as (script, tid, truth):
            for _ in range(20):
                got = script_frames(stack_of(stacks(script.pid), tid))
                assert [f[:2] for f in got] == [f[:2] for f in truth[:len(got)]] and got[1:] == truth[1:], (version, got, truth)
                assert truth[0][2] < got[0][2] <= truth[0][2] + 4, (got[0], truth[0])


@test("ruby: a thread that calls and returns all the time: what it has called, and never what it cannot have")
def calling(folder):
    for version, ruby in RUBY.each_known():
        with scripts.spinning(functools.partial(Script, ruby), "spin_calls", folder) as (script, tid, truth):
            line = truth[0][2]
            prefix = "Object#" if version == "3.4" else ""
            outer = [f"{prefix}spin_calls", SCRIPT]
            for _ in range(40):
                got = script_frames(stack_of(stacks(script.pid), tid))
                at = next(i for i, frame in enumerate(got) if frame[:2] == outer)
                assert [f[0] for f in got[at + 1:]] == [f[0] for f in truth[1:]], (version, got)
                names = [f[0].rpartition("#")[2] for f in got[:at]]
                assert names in ([], ["each"], ["sort_by"], ["each", "sort_by"]) or \
                    names[-2:] == [f"block in {prefix}spin_calls".rpartition("#")[2], "each"] or "each" in names, (version, got)
                # The compiler's own instructions may be of no line.
                assert got[at][2] is None or line <= got[at][2] <= line + 3, (version, got)


@test("ruby: a core of gdb: the frames that the process had")
def cores(folder):
    for version, ruby in RUBY.each_known():
        scripts.check_core(functools.partial(Script, ruby), functools.partial(check_in, version), folder)


@test("ruby: a core of the kernel, of a thread in a fiber beside the main thread: the frames that the process had")
def kernel_cores(folder):
    for version, ruby in RUBY.each_known():
        compare = functools.partial(check_in, version)
        found, pid = scripts.check_kernels_core(functools.partial(Script, ruby), compare, folder, "thread_in_fiber")
        prefix = "Object#" if version == "3.4" else ""
        main = script_frames(stack_of(found, pid))
        assert [f[0] for f in main][-2:] == [f"{prefix}thread_in_fiber", "<main>"], main


@test("ruby: a snapshot with stacks: the frames that the process had, once it has gone")
def snapshots(folder):
    for version, ruby in RUBY.each_known():
        scripts.check_snapshot(functools.partial(Script, ruby), functools.partial(check_in, version), folder)


@test("ruby: a process in PID and mount namespaces of its own: its frames", needs_root=True)
def namespaces(folder):
    for version, ruby in RUBY.each_known():
        scripts.check_namespaces(functools.partial(Script, ruby), functools.partial(check_in, version), folder)


@test("ruby: as text: labels with file and line, methods of C without; the interpreter's own frames counted")
def text(folder):
    version, ruby = RUBY.each_known()[0]
    with Script(ruby, "at_exit_block", folder) as script:
        script.wait()
        (truth,) = script.truth.values()
        lines = fathom("stack", script.pid, status=(0, 1)).stdout.splitlines()
        rows = [line.split(None, 1)[1] for line in lines if line.endswith(f"(ruby {version})")]
        function, file, line = truth[0]
        prefix = "Kernel#" if version == "3.4" else ""
        assert rows[0] == f"{prefix}sleep (ruby {version})" and rows[1] == f"{function} {file}:{line} (ruby {version})", rows[:3]
        assert any(f"frames of ruby {version} ..." in line for line in lines), lines
        (names,) = [t for t in stacks(script.pid, "--names-only") if t["tid"] == script.pid]
        got = script_frames(names)
        assert [f[0] for f in got][1:] == [f[0] for f in truth] and all(f[1] is None for f in got)


@test("another Ruby, before 2.7 or after 3.4: its native frames, and one sentence")
def others(folder):
    found = [path for _, path in RUBY.others()]
    if not found:
        raise tap.Skip("there is no Ruby but 2.7, and 3.0 to 3.4")
    for ruby in found:
        with Running([ruby, "-e", "$stdout.syswrite(\"ready\\n\"); sleep"]) as running_one:
            assert running_one.line() == "ready"
            (thread, *_) = stacks(running_one.pid)
            assert script_frames(thread) == [] and "3.4" in thread["script_why"], thread["script_why"]


# Structures made by hand ----------------------------------------------------------------------------

# Three loops, of which the innermost has a method of C.
PLANTED = [["inner", "planted.rb", 10], ["*", None, None], ["outer", "planted.rb", 71], ["inner", "planted.rb", 10],
           ["middle", "planted.rb", 20], ["outer", "planted.rb", 71]]


def planted(folder, *words):
    if os.uname().machine != "x86_64":
        raise tap.Skip("there is no Ruby 2.7, or 3.0 to 3.4, for x86-64 (ruby)")
    path = os.path.join(folder, "planted_ruby")
    if not os.path.exists(path):
        building.build(path, os.path.join(PROGRAMS, "planted_ruby.c"), "-rdynamic", flags=("-O1", "-g"))
    return scripts.planted_by(path, words)


@test("ruby: frames made by hand in three loops, told by addresses, whatever the loop is called; four forms of tags")
def by_hand(folder):
    for form in ("right", "shadow", "long-tags", "guarded"):
        with planted(folder, form) as process:
            (thread,) = stacks(process.pid)
            assert script_frames(thread) == PLANTED and thread["script_why"] is None, (form, thread)
            names = [f["symbol"] for f in thread["frames"] if f["symbol"] in ("begin", "inner", "middle", "outer", "*")]
            assert names == ["inner", "*", "outer", "begin", "inner", "begin", "middle", "outer", "begin"], (form, names)


@test("ruby: a loop that has begun without its tag: its frames are innermost; two of them: nothing is guessed")
def beginning(folder):
    with planted(folder, "begun") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and thread["script_why"] is None, thread
        assert [f["kind"] for f in thread["frames"]][:2] == ["script", "script"], thread["frames"][:3]
    with planted(folder, "begun-twice") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and "no native frame" in thread["script_why"], thread
        assert [f["kind"] for f in thread["frames"]][-6:] == ["script"] * 6, thread


@test("ruby: what does not check is refused by one sentence: the version, the VM, code of YJIT")
def refused(folder):
    scripts.check_refused(planted, folder, (("version", "2.7 and 3.0 to 3.4"), ("class", "another layout"),
                                            ("thread", "another layout"), ("compiled", "YJIT")))


@test("ruby: circles, sizes and pointers to nowhere: an end, and no name that is not there")
def hostile(folder):
    for kind in ("tag-circle", "thread-circle", "thread-circle-of-nothing", "ractor-circle", "size", "frame", "ep", "length", "type",
                 "lines", "index", "symbol", "names", "escapes", "nested"):
        with planted(folder, kind) as process:
            (thread,) = stacks(process.pid, "--max-frames=100")
            names = {f[0] for f in script_frames(thread)}
            assert names <= {"inner", "middle", "outer", "*", None, "\x1b[31mred\x1b]0;title\x07"}, (kind, names)
            assert kind not in ("symbol", "names") or "*" not in names, names
            assert "\x1b" not in fathom("stack", process.pid, status=(0, 1)).stdout, kind


@test("ruby: fifty sets of structures with damaged bytes: an end, and the native frames as they are")
def damaged(folder):
    scripts.check_damaged(planted, folder)
