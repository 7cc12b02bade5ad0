# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to; running scripts that tell their own stacks, and what fathom shows of them."""
import contextlib
import json
import os
import shutil
import signal
import tempfile

import building
import tap

from ask import fathom, records_of
from running import Running, child_of, dying, in_namespaces, kernels_core, need_kernels_cores, state_of, until

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
SUITE = tap.Suite("interpreters", "make namespaces")
test = SUITE.test


class Script(Running):
    """The script that @command runs in SHAPE; @truth: of each thread that has told of it, its frames."""

    def __init__(self, command, shape, folder, threads=1, env=None, **options):
        super().__init__([*command, shape, folder], env=os.environ | (env or {}), errors="surrogateescape", **options)
        self.truth = {}
        for _ in range(threads):
            tid, frames = json.loads(self.line())
            self.truth[tid] = frames

    def wait(self, pid=None):
        """Until its threads sleep: what they have told is what they do."""
        for tid in self.truth if pid is None else (pid,):
            until(lambda tid=tid: state_of(tid) == "S", lambda tid=tid: state_of(tid))


@contextlib.contextmanager
def spinning(start, shape, folder, **options):
    """Runs a script whose thread runs for ever: (script, tid, truth), once it has told its stack and left the function that tells."""
    with start(shape, folder, **options) as script:
        ((tid, truth),) = script.truth.items()

        def names():
            return [f[0].rpartition("#")[2] for t in stacks(script.pid) if t["tid"] == tid for f in script_frames(t)]
        until(lambda: len(found := names()) and "tell" not in found, names)
        yield script, tid, truth


def stacks(target, *options, status=(0, 1)):
    done = fathom("stack", "--json", *options, target, status=status, encoding="utf-8", errors="surrogateescape")
    return records_of(done.stdout)


def shown(name):
    """A text as JSON has it: bytes that are no UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def script_frames(thread):
    """[function, file, line] of the frames of the script."""
    return [[f["symbol"], *((f["frames"][0]["file"], f["frames"][0]["line"]) if f["frames"] else (None, None))]
            for f in thread["frames"] if f["kind"] == "script"]


# What holds of each interpreter. @start(shape, folder, **options) makes a Script; @check(found, tid, truth) compares the stack of thread
# @tid among those found with its truth.


@contextlib.contextmanager
def asleep(start, shape, folder):
    """Runs a script of one thread: (script, tid, truth), once it sleeps."""
    with start(shape, folder) as script:
        script.wait()
        ((tid, truth),) = script.truth.items()
        yield script, tid, truth


def check_forked(start, check, folder):
    with start("forked", folder) as script:
        ((child, truth),) = script.truth.items()
        try:
            script.wait(child)
            check(stacks(child), child, truth)
        finally:
            os.kill(child, signal.SIGKILL)


def check_core(start, check, folder):
    if not shutil.which("gcore"):
        raise tap.Skip("gcore is not installed")
    with asleep(start, "importing", folder) as (script, tid, truth):
        core = building.core_of(script.pid, folder)
    check(stacks(core), tid, truth)
    os.remove(core)


def check_kernels_core(start, check, folder, shape="importing"):
    """Returns all stacks of the core, and the process it is of."""
    need_kernels_cores()
    here = tempfile.mkdtemp(dir=folder)
    with start(shape, folder, wrapper=dying(), cwd=here) as script:
        script.wait()
        ((tid, truth),) = script.truth.items()
        core = kernels_core(script, here)
    found = stacks(core)
    check(found, tid, truth)
    return found, script.pid


def check_snapshot(start, check, folder):
    path = os.path.join(folder, "snapshot")
    with asleep(start, "importing", folder) as (script, tid, truth):
        fathom("snapshot", "--stacks", script.pid, path, status=0)
    check(stacks(path), tid, truth)


def check_namespaces(start, check, folder):
    wrapper = in_namespaces("--pid", "--fork", "--kill-child", "--mount-proc", then='exec "$@"')
    with start("importing", folder, wrapper=(*wrapper, "sh")) as script:
        pid = child_of(script.pid)
        script.wait(pid)
        ((tid, truth),) = script.truth.items()
        assert tid == 1
        check(stacks(pid), pid, truth)


# What holds of structures made by hand. @planted(folder, *words) runs their program.


@contextlib.contextmanager
def planted_by(path, words):
    """Runs the program at @path that has made them as @words say: its process, once it waits in its innermost function."""
    with Running([path, *words]) as process:
        assert process.line() == "ready"
        until(lambda: state_of(process.pid) == "S", lambda: state_of(process.pid))
        yield process


def check_refused(planted, folder, kinds):
    for kind, said in kinds:
        with planted(folder, kind) as process:
            (thread,) = stacks(process.pid)
            assert script_frames(thread) == [] and said in thread["script_why"], (kind, thread["script_why"])
            # It names the version, and which build that is.
            assert f", build-id {building.build_id(f'/proc/{process.pid}/exe')})" in thread["script_why"], thread["script_why"]
            assert f"(script: {thread['script_why']})" in fathom("stack", process.pid, status=(0, 1)).stdout


def check_damaged(planted, folder):
    for seed in range(50):
        with planted(folder, "damage", seed) as process:
            (thread,) = stacks(process.pid)
            (native,) = stacks(process.pid, "--frames=native")
            assert [f["pc"] for f in thread["frames"] if f["kind"] != "script"] == [f["pc"] for f in native["frames"]], seed
