#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "timers": programs that are sampled by CPU timers, which they must not notice. What holds of each method is in "record"."""
import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import recording  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, NOBODY, as_user, copy_for_all, execute  # noqa: E402
from building import build  # noqa: E402
from profile_file import SAMPLED, Profile  # noqa: E402
from recorded import check_shares, check_threads, check_weight  # noqa: E402
from recording import METHODS, program, symbols_of, whole  # noqa: E402
from running import Running, until  # noqa: E402

SUITE = tap.Suite("timers", "become another user")


def test(*words, **options):
    """A test, where programs get timers."""
    def add(function):
        def needing(folder):
            if "timers" not in METHODS:
                raise tap.Skip("programs get CPU timers on x86-64 only")
            function(folder)
        return SUITE.test(*words, **options)(needing)
    return add


def record(folder, *command, options=(), **more):
    return recording.record(folder, *command, options=("--method=timers", *options), **more)


def sampled(profile, path, name):
    """Samples in function @name of the program at @path."""
    symbols = symbols_of(path)
    return sum(any(profile.name_of(x, symbols) == name for x in profile.stack(s.node)) for s in profile.samples if s.part == SAMPLED)


@test("shares of processor time and all of it, of one thread and of four; each stack is whole, at each tick")
def shares(folder):
    path = program(folder, "shares")
    profile, done = record(folder, path, 1, 2)
    assert profile.about["method"] == "timers", profile.about
    check_shares(profile, path, done.stdout, 150)
    check_weight(profile, done.stdout)
    assert whole(profile) > 0.99, whole(profile)
    profile, done = record(folder, path, 4, 0.25)
    check_shares(profile, path, done.stdout, 150)
    check_weight(profile, done.stdout)
    check_threads(profile, done.stdout)


@test("a user without rights, who asks for it: the same shares and the same time", needs_root=True)
def user_shares(folder):
    path = program(folder, "shares")
    profile, done = record(folder, path, 1, 2, user=NOBODY)
    check_shares(profile, path, done.stdout, 150)
    check_weight(profile, done.stdout)


@test("a program with signals and timers of its own: each comes, and no call without a timeout ends with EINTR")
def own_signals(folder):
    path = program(folder, "signals")
    alone = execute(path, "own", status=0).stdout.split()
    _, done = record(folder, path, "own")
    windows, profiles, interrupted = done.stdout.split()
    assert (windows, interrupted) == (alone[0], alone[2]) == ("300", "0"), (done.stdout, alone)
    # The kernel sends it at its ticks, of which some have both.
    assert 0.7 * int(alone[1]) <= int(profiles) <= 1.3 * int(alone[1]), (done.stdout, alone)


@test("calls with a timeout that a sample ends with EINTR: as many as are said, at most")
def timeouts(folder):
    path = program(folder, "signals")
    assert execute(path, "timeouts", status=0).stdout == "0\n"
    _, done = record(folder, path, "timeouts")
    said = re.search(r"(\d+) system calls with a timeout ended with EINTR", done.stderr)
    assert int(done.stdout) <= int(said[1] if said else 0), done


@test("a thread that blocks the signal: it is sampled, and can read it a few times at first, then no more")
def blocked(folder):
    path = program(folder, "signals")
    profile, done = record(folder, path, "blocked")
    first, then = map(int, done.stdout.split())
    assert first <= 1 and then == 0, done.stdout
    assert sampled(profile, path, "work") > 10, done


@test("a program that forbids itself timers on pain of death: it lives, and its threads are sampled")
def filtered(folder):
    path = program(folder, "signals")
    profile, done = record(folder, path, "filtered")
    assert done.stdout == "filtered\n", done
    assert sampled(profile, path, "work") > 5, done


@test("a program that runs on after its recording: no timer is left, and nobody traces it")
def left(folder):
    path = program(folder, "signals")
    profile, done = record(folder, path, "left", options=["--for", "300ms"])
    assert done.stdout == "works\n0 0\n", done
    assert 0.25e9 < profile.end < 0.95e9 and sampled(profile, path, "work") > 10, profile.end


@test("a recorder that is killed: the program runs on to its own end")
def killed(folder):
    path = program(folder, "signals")
    out = os.path.join(folder, "profile")
    with Running([FATHOM, "record", "--method=timers", "-o", out, "--", path, "left"]) as recorder:
        assert recorder.line() == "works"
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as file:
            target = int(file.read().split()[0])
        until(lambda: os.path.exists(f"/proc/{target}/timers") and timers_of(target), "a timer")
        os.kill(recorder.pid, signal.SIGKILL)
        # Its timer goes on, and its signal does nothing.
        assert recorder.line() == "1 0"


def timers_of(pid):
    with open(f"/proc/{pid}/timers", encoding="ascii") as file:
        return file.read().count("ID:")


@test("a program of 32 bits has no timers, and is sampled")
def of_32_bits(folder):
    path = os.path.join(folder, "shares32")
    if execute("i686-linux-gnu-gcc", "-O2", "-g", "-pthread", "-static", "-o", path, os.path.join(HERE, "programs", "shares.c")).returncode:
        raise tap.Skip("there is no compiler for i386 (gcc-i686-linux-gnu)")
    profile, done = record(folder, path, 1, 0.5)
    check_weight(profile, done.stdout)
    assert sampled(profile, path, "work") > 10, done


@test("where perf events are forbidden: polling, as timers have to be asked for", needs_root=True)
def chosen(folder):
    out, path = os.path.join(folder, "open", "profile"), program(folder, "shares")
    os.makedirs(os.path.dirname(out))
    os.chmod(folder, 0o755)
    os.chmod(os.path.dirname(out), 0o777)
    tool = copy_for_all(folder)
    where = [build(os.path.join(folder, name), os.path.join(HERE, "..", "lib", "programs", "refused.c"), "-DCALL=SYS_perf_event_open",
                   f"-DKEEPS_RIGHTS={keeps}") for name, keeps in (("none", 0), ("some", 1))]
    own = ["record", "-o", out, "--", path, "1", "0.1"]
    for command, method, said in (([where[0], tool, *own], "polling", "looked at from outside"), ([where[1], tool, *own], "polling", "looked at from outside"),
                                  ([where[1], *as_user(NOBODY, tool, *own)], "polling", "looked at from outside"),
                                  ([where[0], *as_user(NOBODY, tool, *own)], "polling", "looked at from outside")):
        done = execute(*command, status=0)
        assert said in done.stderr and Profile(out).about["method"] == method, (command, done)
        os.remove(out)


@test("processes that run already, and all of them: not by timers, in one sentence")
def refused(folder):
    for options in (["-p", os.getpid()], ["-a", "--for", "100ms"]):
        done = execute(FATHOM, "record", "--method=timers", "-o", os.path.join(folder, "none"), *options, status=2)
        assert "programs that are started" in done.stderr and len(done.stderr.splitlines()) == 1, done


if __name__ == "__main__":
    sys.exit(SUITE.run())
