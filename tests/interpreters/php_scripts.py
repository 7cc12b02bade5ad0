# SPDX-License-Identifier: MIT
"""Frames of PHP scripts, beside what PHP says of its own stacks: programs, PHP below another program, structures made by hand."""
import functools
import getpass
import glob
import json
import os
import signal
import socket
import struct

import building
import scripts
import tap

from amounts import amount
from ask import execute, fathom
from script_runtimes import PHP
from running import Running, state_of, until
from scripts import PROGRAMS, script_frames, shown, stacks, test
from toolchain import newest

SCRIPT = os.path.join(PROGRAMS, "stacks.php")
SPACE = "shapes\\of_calls\\"


class Script(scripts.Script):
    """The script in SHAPE, run by @php with the options @settings."""

    def __init__(self, php, shape, folder, threads=1, wrapper=(), settings=(), **options):
        super().__init__([*wrapper, php, "-n", *settings, SCRIPT], shape, folder, threads, **options)


def check(version, thread, truth, waits="sleep"):
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


def check_merge(version, thread, native, n_ending=0):
    """
    Without its frames of scripts, a thread has the native ones, in their order. After each run of frames of a script comes the
    native frame that executes them: execute_ex, or the part of it that is set apart and has no name. Of the others of that name
    @n_ending execute nothing any more.
    """
    frames = thread["frames"]
    assert [f["pc"] for f in frames if f["kind"] != "script"] == [f["pc"] for f in native["frames"]]
    n_idle = 0
    for i, frame in enumerate(frames[1:], 1):
        if frame["kind"] == "script":
            continue
        if frames[i - 1]["kind"] == "script":
            assert frame["kind"] == "runtime" and (frame["symbol"] or "").startswith(("execute_ex", "func@")) or not frame["symbol"], \
                (version, frame)
        else:
            n_idle += frame["symbol"] == "execute_ex"
    assert n_idle == n_ending, (version, n_idle)


@test("php: shapes of calls: names, files and lines are its own; before each native frame stands what it executes")
def shapes(folder):
    for version, php in PHP.each_known():
        with Script(php, "importing", folder) as script:
            script.wait()
            ((tid, truth),) = script.truth.items()
            (thread,) = stacks(script.pid)
            assert thread["tid"] == tid and len(truth) > 45, (version, truth)
            check(version, thread, truth)
            (native,) = stacks(script.pid, "--frames=native")
            # Both are of one moment: it sleeps.
            assert {f["runtime"] for f in thread["frames"] if f["kind"] == "script"} == {f"php {version}"}
            assert all(f["kind"] == "native" and f["runtime"] is None for f in native["frames"]), native
            check_merge(version, thread, native, 1)


@test("php: 300 calls deep, of which each third is by a function of C")
def deep(folder):
    for version, php in PHP.each_known():
        with Script(php, "deep", folder) as script:
            script.wait()
            (truth,) = script.truth.values()
            assert len(truth) > 500
            (thread,) = stacks(script.pid, "--max-frames=100000")
            check(version, thread, truth)
            (native,) = stacks(script.pid, "--frames=native", "--max-frames=100000")
            check_merge(version, thread, native)


@test("php: functions at the script's end, and destructors of what is global then: their frames")
def endings(folder):
    for version, php in PHP.each_known():
        for shape in ("at_end", "of_globals"):
            with Script(php, shape, folder) as script:
                script.wait()
                (truth,) = script.truth.values()
                (thread,) = stacks(script.pid)
                # PHP has no {main} below them.
                assert truth.pop() == ["{main}", None, None]
                check(version, thread, truth)


@test("php: a fiber: its frames in its own stack, then those that have resumed it, which are on another one; the reason is said")
def fibers(folder):
    for version, php in PHP.each_known():
        if version == "7.4":
            continue
        with Script(php, "in_fiber", folder) as script:
            script.wait()
            (truth,) = script.truth.values()
            (thread,) = stacks(script.pid)
            why, thread["script_why"] = thread["script_why"], None
            assert why and "native frame" in why, why
            check(version, thread, truth)


@test("php: the child of a fork: its frames")
def forked(folder):
    for version, php in PHP.each_known():
        scripts.check_forked(functools.partial(Script, php), functools.partial(check_in, version), folder)


@test("php: a thread that runs: its function, and a line of its loop, as often as it is asked")
def running(folder):
    for version, php in PHP.each_known():
        with scripts.spinning(functools.partial(Script, php), "spin", folder) as (script, _, truth):
            lines = set()

            def look(script=script, truth=truth, lines=lines, version=version):
                (thread,) = stacks(script.pid)
                got = script_frames(thread)
                assert [f[:2] for f in got] == [f[:2] for f in truth] and got[1:] == truth[1:], (version, got, truth)
                assert truth[0][2] < got[0][2] <= truth[0][2] + 4, (got[0], truth[0])
                lines.add(got[0][2])
                return len(lines) > 1
            for _ in range(amount(20, 8)):
                look()
            # The instruction is that of the loop's register, not the last one that it has saved.
            until(look, f"another line of {version}")


@test("php: a thread that calls and returns all the time: what it has called, and never what it cannot have")
def calling(folder):
    inner = [["called"], ["array_sum"], ["array_map"], ["closure", "array_map"], ["called", "closure", "array_map"], []]
    for version, php in PHP.each_known():
        with scripts.spinning(functools.partial(Script, php), "spin_calls", folder) as (script, _, truth):
            for _ in range(amount(40, 10)):
                (thread,) = stacks(script.pid)
                got = script_frames(thread)
                at = len(got) - len(truth)
                assert at >= 0 and got[at:] == truth, (version, got)
                # A closure that is destroyed before its name is read has none.
                names = [f[0] and f[0].replace(SPACE, "").split(":")[0].strip("{}") for f in got[:at]]
                assert any(len(names) == len(i) and all(a in (b, None if b == "closure" else b) for a, b in zip(names, i))
                           for i in inner), (version, names)
                assert thread["script_why"] is None, (version, thread)


@test("php: with opcache, whose memory is shared, and with its compiler (JIT): the frames; where it has made code, they may come last")
def compiled(folder):
    version, php = PHP.each_known()[0]
    cached = ["-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1"]
    if "Zend OPcache" not in execute(php, "-n", *cached, "-m").stdout:
        raise tap.Skip("there is no opcache (php-opcache)")
    for compiler in ("disable", "tracing", "function"):
        settings = [*cached, "-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit=" + compiler]
        with Script(php, "importing", folder, settings=settings) as script:
            script.wait()
            (truth,) = script.truth.values()
            (thread,) = stacks(script.pid)
            if thread["script_why"] is None:
                (native,) = stacks(script.pid, "--frames=native")
                check_merge(version, thread, native, 1)
            else:
                assert compiler != "disable" and "native frame" in thread["script_why"], (compiler, thread["script_why"])
                n = len(script_frames(thread))
                assert [f["kind"] for f in thread["frames"][-n:]] == ["script"] * n, thread
                thread["script_why"] = None
            check(version, thread, truth)


@test("php: a core of gdb: the frames that the process had")
def cores(folder):
    for version, php in PHP.each_known():
        scripts.check_core(functools.partial(Script, php), functools.partial(check_in, version), folder)


@test("php: a core of the kernel: the frames that the process had")
def kernel_cores(folder):
    for version, php in PHP.each_known():
        scripts.check_kernels_core(functools.partial(Script, php), functools.partial(check_in, version), folder)


@test("php: a snapshot with stacks: the frames that the process had, once it has gone")
def snapshots(folder):
    for version, php in PHP.each_known():
        scripts.check_snapshot(functools.partial(Script, php), functools.partial(check_in, version), folder)


@test("php: a process in PID and mount namespaces of its own: its frames", needs_root=True)
def namespaces(folder):
    for version, php in PHP.each_known():
        scripts.check_namespaces(functools.partial(Script, php), functools.partial(check_in, version), folder)


@test("php: below a program that has it as a library, on a thread of its own: the frames of the script")
def embedded(folder):
    if not glob.glob("/usr/lib/libphp8.*.so"):
        raise tap.Skip("there is no libphp (libphp-embed)")
    library = newest("/usr/lib/libphp8.*.so")
    path = os.path.join(folder, "embedding")
    building.build(path, os.path.join(PROGRAMS, "embedding_php.c"), "-Wl,--no-as-needed", library, flags=("-O1", "-g"))
    with scripts.Script([path, SCRIPT], "by_sort", folder) as script:
        script.wait()
        ((tid, truth),) = script.truth.items()
        assert tid != script.pid
        found = stacks(script.pid)
        check_in("embedded", found, tid, truth)
        assert not script_frames(next(t for t in found if t["tid"] == script.pid))


FPM = """[global]
error_log = {folder}/log
daemonize = no
[www]
listen = {folder}/socket
pm = static
pm.max_children = 1
"""


def fast_cgi(path):
    """A request to execute the script at @path, as the protocol has it (FastCGI Specification 1.0, sections 3 to 5)."""
    def record(kind, body):
        return struct.pack(">BBHHBB", 1, kind, 1, len(body), 0, 0) + body
    pairs = (("SCRIPT_FILENAME", path), ("REQUEST_METHOD", "GET"))
    parameters = b"".join(bytes((len(name), len(value))) + (name + value).encode() for name, value in pairs)
    return record(1, struct.pack(">HB5x", 1, 0)) + record(4, parameters) + record(4, b"") + record(5, b"")


@test("php: a worker of php-fpm: the frames of the script that it executes", needs_root=True)
def served(folder):
    if not glob.glob("/usr/sbin/php-fpm8.*"):
        raise tap.Skip("there is no php-fpm (php-fpm)")
    server = newest("/usr/sbin/php-fpm8.*")
    told, page, settings = (os.path.join(folder, name) for name in ("told", "page.php", "fpm.conf"))
    with open(page, "w", encoding="ascii") as file:
        file.write(f"<?php define('STDOUT', fopen('{told}', 'w')); $argv = ['', 'by_sort', '']; include '{SCRIPT}';")
    with open(settings, "w", encoding="ascii") as file:
        file.write(FPM.format(folder=folder) + f"user = {getpass.getuser()}\n")
    with Running([server, "-R", "-n", "-F", "-y", settings]) as master, socket.socket(socket.AF_UNIX) as client:
        until(lambda: os.path.exists(os.path.join(folder, "socket")), "php-fpm listens")
        client.connect(os.path.join(folder, "socket"))
        client.sendall(fast_cgi(page))
        until(lambda: os.path.exists(told) and open(told, encoding="utf-8").read().endswith("\n"), "the script has told its stack")
        with open(told, encoding="utf-8") as file:
            tid, truth = json.loads(file.read())
        try:
            until(lambda: state_of(tid) == "S", "the script sleeps")
            check_in("served", stacks(tid), tid, truth)
        finally:
            # The worker outlives its master, which would begin another one.
            master.kill()
            os.kill(tid, signal.SIGKILL)


# Structures made by hand ----------------------------------------------------------------------------

PLANTED = [["waits", None, None], ["Class->inner", "planted.php", 11], ["map", None, None], ["outer", "planted.php", 31],
           ["{main}", "planted.php", 51]]


def planted(folder, *words):
    path = os.path.join(folder, "planted_php")
    if not os.path.exists(path):
        building.build(path, os.path.join(PROGRAMS, "planted_php.c"), "-rdynamic", flags=("-O1", "-g"))
    return scripts.planted_by(path, words)


@test("php: frames made by hand in two loops, told by the words that these have saved; without them, both stacks and the reason")
def by_hand(folder):
    with planted(folder, "right") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and thread["script_why"] is None, thread
        names = [f["symbol"] for f in thread["frames"] if f["symbol"] in {"execute_ex"} | {f[0] for f in PLANTED}]
        assert names == ["waits", "Class->inner", "execute_ex", "map", "map", "outer", "{main}", "execute_ex"], names
    with planted(folder, "apart") as process:
        (thread,) = stacks(process.pid)
        assert script_frames(thread) == PLANTED and "no native frame" in thread["script_why"], thread
        assert [f["kind"] for f in thread["frames"]][-5:] == ["script"] * 5, thread


@test("php: what does not check is refused by one sentence: the version, a build for threads")
def refused(folder):
    scripts.check_refused(planted, folder, (("version", "7.4 and 8.1 to 8.4"), ("threads", "ZTS")))


@test("php: circles, sizes and pointers to nowhere: an end, and no name that is not there")
def hostile(folder):
    for kind in ("circle", "previous", "function", "kind", "ops", "length", "escapes", "generators"):
        with planted(folder, kind) as process:
            (thread,) = stacks(process.pid, "--max-frames=100")
            got = script_frames(thread)
            assert {f[0] for f in got} <= {f[0] for f in PLANTED} | {None, "Class->\x1b[31mred\x1b]0;title\x07"}, (kind, got)
            assert kind not in ("length", "kind") or "Class->inner" not in str(got), got
            assert kind != "ops" or ["Class->inner", "planted.php", None] in got, got
            assert "\x1b" not in fathom("stack", process.pid, status=(0, 1)).stdout, kind


@test("php: fifty sets of structures with damaged bytes: an end, and the native frames as they are")
def damaged(folder):
    scripts.check_damaged(planted, folder)
