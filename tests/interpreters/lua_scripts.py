# SPDX-License-Identifier: MIT
"""Frames of Lua scripts, beside what Lua says of its own stacks: programs, Lua as a library, structures made by hand."""
import functools
import os

import building
import scripts
import tap

from amounts import amount
from ask import fathom
from script_runtimes import LUA
from scripts import PROGRAMS, script_frames, shown, stacks, test

SCRIPT = os.path.join(PROGRAMS, "stacks.lua")


class Script(scripts.Script):
    """The script in SHAPE, run by @lua."""

    def __init__(self, lua, shape, folder, threads=1, wrapper=(), **options):
        super().__init__([*wrapper, lua, SCRIPT], shape, folder, threads, **options)


def check(version, thread, truth, waits="io.read"):
    """The frames of @thread are those of @truth, below the function in which it waits."""
    got = script_frames(thread)
    if waits:
        assert got[0] == [waits, None, None], got[:2]
        got = got[1:]
    want = [[shown(function), file and shown(file), line] for function, file, line in truth]
    pairs = zip(got + [None] * len(want), want + [None] * len(got))
    assert got == want, f"{version}: " + "\n".join(f"{a}   {b}" for a, b in pairs if a != b)
    assert thread["script_why"] is None, thread["script_why"]


def check_in(version, found, tid, truth):
    check(version, next(t for t in found if t["tid"] == tid), truth)


def check_merge(version, thread, native, n_resumed=0):
    """
    Without its frames of scripts, a thread has the native ones, in their order. After each run of frames of a script comes the
    native frame that executes them: of one function without a name, which executes something each time; but for those of a coroutine
    whose loops have not begun again, @n_resumed times, and those that C code has called first.
    """
    frames = thread["frames"]
    assert [f["pc"] for f in frames if f["kind"] != "script"] == [f["pc"] for f in native["frames"]]
    def function(frame):
        return frame["symbol"] or hex(int(frame["pc"], 16) if isinstance(frame["pc"], str) else frame["pc"])
    after = [function(f) for inner, f in zip(frames, frames[1:]) if inner["kind"] == "script" and f["kind"] != "script"]
    loop = max(set(after), key=after.count)
    others = [name for name in after if name != loop]
    assert len(others) == n_resumed + 1, (version, loop, others)
    assert sum(function(f) == loop for f in frames if f["kind"] != "script") == after.count(loop), (version, after)


@test("lua: shapes of calls: functions, files and lines are its own, of coroutines in coroutines; before each native frame what it executes")
def shapes(folder):
    for version, lua in LUA.each_known():
        with Script(lua, "importing", folder) as script:
            script.wait()
            ((tid, truth),) = script.truth.items()
            (thread,) = stacks(script.pid)
            assert thread["tid"] == tid and len(truth) > 45, (lua, truth)
            check(lua, thread, truth)
            (native,) = stacks(script.pid, "--frames=native")
            # Both are of one moment: it sleeps.
            assert {f["runtime"] for f in thread["frames"] if f["kind"] == "script"} == {f"lua {version}"}
            assert all(f["kind"] == "native" and f["runtime"] is None for f in native["frames"]), native
            check_merge(lua, thread, native, 1)


@test("lua: 150 calls deep, each fifth by pcall; a finalizer, which nothing has called")
def deep(folder):
    for _, lua in LUA.each_known():
        for shape in ("deep", "finalizer"):
            with Script(lua, shape, folder) as script:
                script.wait()
                (truth,) = script.truth.values()
                (thread,) = stacks(script.pid, "--max-frames=100000")
                check(lua, thread, truth)


@test("lua: a thread that runs: its function, and a line of its loop, as often as it is asked")
def running(folder):
    n_lines = []
    for _, lua in LUA.each_known():
        with scripts.spinning(functools.partial(Script, lua), "spin", folder) as (script, _, truth):
            lines = set()
            for i in range(100):
                if i >= amount(15, 8) and max(len(lines), *n_lines, 0) > 1:
                    break
                (thread,) = stacks(script.pid)
                got = script_frames(thread)
                assert [f[:2] for f in got] == [f[:2] for f in truth] and got[1:] == truth[1:], (lua, got, truth)
                # Where the loop has the instruction in no register, there is no line.
                assert got[0][2] is None or truth[0][2] < got[0][2] <= truth[0][2] + 5, (lua, got[0], truth[0])
                lines.add(got[0][2])
            n_lines.append(len(lines))
    # The instruction is that of the loop's register, not the last one that it has saved; where the compiler keeps it in one.
    assert max(n_lines) > 1, n_lines


@test("lua: a thread that calls and returns all the time: what it has called, and never what it cannot have")
def calling(folder):
    for _, lua in LUA.each_known():
        with scripts.spinning(functools.partial(Script, lua), "spin_calls", folder) as (script, _, truth):
            line = truth[0][2]
            inner = ([], ["called"], ["string.gsub"], ["closure", "string.gsub"], ["called", "closure", "string.gsub"])
            for _ in range(amount(30, 10)):
                (thread,) = stacks(script.pid)
                got = script_frames(thread)
                at = len(got) - len(truth)
                if at >= 0 and got[at][2] is None:
                    got[at][2] = line
                assert at >= 0 and got[at:] == truth, (lua, got)
                # A closure that is collected before its name is read has none.
                names = [{f"<{SCRIPT}:{line}>": "closure"}.get((f[0] or "closure").split(" ")[-1], "called" if f[0] and f"{SCRIPT}:" in f[0]
                         else f[0] or "closure") for f in got[:at]]
                assert names in inner, (lua, names, got)


@test("lua: a core of gdb: the frames that the process had")
def cores(folder):
    for _, lua in LUA.each_known():
        scripts.check_core(functools.partial(Script, lua), functools.partial(check_in, lua), folder)


@test("lua: a core of the kernel: the frames that the process had")
def kernel_cores(folder):
    for _, lua in LUA.each_known():
        scripts.check_kernels_core(functools.partial(Script, lua), functools.partial(check_in, lua), folder)


@test("lua: a snapshot with stacks: the frames that the process had, once it has gone")
def snapshots(folder):
    for _, lua in LUA.each_known():
        scripts.check_snapshot(functools.partial(Script, lua), functools.partial(check_in, lua), folder)


@test("lua: a process in PID and mount namespaces of its own: its frames", needs_root=True)
def namespaces(folder):
    for _, lua in LUA.each_known():
        scripts.check_namespaces(functools.partial(Script, lua), functools.partial(check_in, lua), folder)


@test("lua: below a program that has it as a library, on two threads, one of them without lua_pcall: each has its own frames")
def embedded(folder):
    n = 0
    for version in ("5.3", "5.4"):
        library = f"/usr/lib/x86_64-linux-gnu/liblua{version}.so.0"
        if not os.path.exists(library):
            continue
        path = os.path.join(folder, "embedding" + version)
        building.build(path, os.path.join(PROGRAMS, "embedding_lua.c"), "-Wl,--no-as-needed", library, flags=("-O1", "-g", "-D_GNU_SOURCE"))
        for shape in ("importing", "sort"):
            # One of them waits for the input, the other for the lock that the first one has on it.
            with scripts.Script([path, SCRIPT], shape, folder, threads=2) as script:
                script.wait()
                found = stacks(script.pid)
                for tid, truth in script.truth.items():
                    check_in("embedded", found, tid, truth)
                assert not script_frames(next(t for t in found if t["tid"] == script.pid))
        n += 1
    if not n:
        raise tap.Skip("there is no Lua 5.3 or 5.4 for x86-64 (lua5.3 lua5.4)")


# Structures made by hand ----------------------------------------------------------------------------

PLANTED = [["library.of_c", None, None], ["main chunk", "planted.lua", 3], ["function <planted.lua:10>", "planted.lua", 13],
           ["(...tail calls...)", None, None], ["main chunk", "planted.lua", 3]]


def planted(folder, *words):
    if os.uname().machine != "x86_64":
        raise tap.Skip("there is no Lua 5.3 or 5.4 for x86-64 (lua5.3 lua5.4)")
    path = os.path.join(folder, "planted_lua")
    if not os.path.exists(path):
        building.build(path, os.path.join(PROGRAMS, "planted_lua.c"), "-rdynamic", flags=("-O1", "-g"))
    return scripts.planted_by(path, words)


@test("lua: calls made by hand in two loops, told by the words that these have saved; without them, both stacks and the reason")
def by_hand(folder):
    with planted(folder, "right") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and thread["script_why"] is None, thread
        names = [f["symbol"] for f in thread["frames"] if f["symbol"] in {"luaV_execute", "of_c_calls"} | {f[0] for f in PLANTED}]
        assert names == ["library.of_c", "main chunk", "luaV_execute", "of_c_calls", "function <planted.lua:10>", "(...tail calls...)",
                         "main chunk", "luaV_execute"], names
    with planted(folder, "returning") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED[1:] and thread["script_why"] is None, thread
    with planted(folder, "apart") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and "no native frame" in thread["script_why"], thread
        assert [f["kind"] for f in thread["frames"]][-5:] == ["script"] * 5, thread


@test("lua: a version that is not known is refused by one sentence")
def refused(folder):
    scripts.check_refused(planted, folder, (("version", "5.4.4 to 5.4.9"),))


@test("lua: circles, sizes and pointers to nowhere: an end, and no name that is not there")
def hostile(folder):
    known = {f[0] for f in PLANTED}
    for kind in ("circle", "previous", "function", "closure", "type", "length", "bits", "lines", "base-lines", "global", "escapes"):
        with planted(folder, kind) as process:
            (thread,) = stacks(process.pid, "--max-frames=100")
            got = script_frames(thread)
            assert {f[0] for f in got} <= known | {None, "?", "function <[string]:10>", "function <\x1b[31mred\x1b]0;title\x07:10>"}, (kind, got)
            # Calls that do not lead to the state's outermost one are of no state.
            assert kind not in ("circle", "previous", "function", "type", "global") or got == [], (kind, got)
            assert kind not in ("lines", "base-lines") or got[2] == ["function <planted.lua:10>", "planted.lua", None], (kind, got)
            assert "\x1b" not in fathom("stack", process.pid, status=(0, 1)).stdout, kind


@test("lua: fifty sets of structures with damaged bytes: an end, and the native frames as they are")
def damaged(folder):
    scripts.check_damaged(planted, folder)
