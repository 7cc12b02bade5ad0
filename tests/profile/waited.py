#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "waits": how long threads wait, where and for what, beside what programs log of themselves."""
import collections
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import pprof_file  # noqa: E402
import recording  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, NOBODY, execute  # noqa: E402
from made_profile import make, report, same  # noqa: E402
from profile_file import INTERRUPT, RUNNABLE, SAMPLED, STOP_ENTRY, WAITING, WAITS, Profile  # noqa: E402
from recording import METHODS, need_perf, program, symbols_of  # noqa: E402
from running import Running, until, wait_for_state  # noqa: E402

SUITE = tap.Suite("waits", "become another user")
test = SUITE.test


def record(folder, *command, **options):
    return recording.record(folder, *command, waits=True, **options)


def fight(printed):
    """What the threads of fight have logged: {tid: [(asked, taken, left)]}, {tid: (begin, end, processor, born)}."""
    turns, threads = collections.defaultdict(list), {}
    for line in printed.splitlines():
        kind, tid, *times = line.split()
        if kind == "turn":
            turns[int(tid)].append(tuple(map(int, times)))
        else:
            threads[int(tid)] = tuple(map(int, times))
    return turns, threads


def times_of(profile, tid, begin=0, end=1 << 63):
    """{part: ns} of a thread, of samples between two moments of the monotonic clock. A sample that begins before counts in part."""
    began = int(profile.about["began"])
    found = collections.Counter()
    for s in profile.samples:
        if profile.threads[s.thread].tid == tid:
            last = s.ns + began
            share = min(last, end) - max(last - s.weight, begin)
            found[s.part] += max(0, min(share, s.weight))
    return found


def is_of_kernel(tid):
    """Whether that is a thread of the kernel now: the child of kthreadd, or that itself (proc(5))."""
    try:
        with open(f"/proc/{tid}/stat", encoding="utf-8") as stat:
            name, _, rest = stat.read().rpartition(")")
    except OSError:
        return False
    return rest.split()[1] == "2" or name.endswith("(kthreadd")


def stack_of(profile, sample, symbols):
    """The functions of the program, the outermost first, without what the thread waits for."""
    stack = [x for x in reversed(profile.stack(sample.node)) if profile.modules[x.module].kind != WAITS]
    return [profile.name_of(x, symbols) for x in stack]


# Nanoseconds that a thread of fight rests, before its turns and after them.
REST = 200000000

# Nanoseconds of a switch to another thread, which are of both, at most: of a virtual machine.
SWITCH = 25000


def check_fight(profile, printed, most_wrong):
    """
    All waits are as long as the threads have measured, and those that were seen are for the thread that held the mutex. How many
    these are.
    """
    turns, threads = fight(printed)
    began = int(profile.about["began"])
    held = sorted((taken, left, tid) for tid, all_of in turns.items() for _, taken, left in all_of)
    for tid, (begin, end, ran, _) in threads.items():
        found = times_of(profile, tid, begin, end)
        waited = end - begin - ran
        slack = most_wrong * waited + SWITCH * 2 * len(turns[tid])
        assert abs(found[WAITING] + found[RUNNABLE] - waited) <= slack, (tid, found, waited)
    n_owned = 0
    for s in profile.samples:
        reason = profile.waits_for(s)
        if s.part != WAITING or not reason or "owned by" not in reason:
            continue
        owner = int(reason.split("owned by ")[1].rstrip("]").split()[0])
        last = s.ns + began
        n_owned += 1
        assert any(tid == owner and taken < last and left > last - s.weight for taken, left, tid in held), (reason, s)
    return n_owned


@test("four threads fight for one mutex: they wait as long as they measure, for the thread that has it")
def mutex(folder):
    path = program(folder, "fight")
    profile, done = record(folder, path, 4, 40, 12000)
    n = check_fight(profile, done.stdout, 0.01)
    # Each look takes of the 1 % that all may take.
    assert n > 8, n
    symbols = symbols_of(path)
    seen = [s for s in profile.samples if s.part == WAITING and "owned by" in (profile.waits_for(s) or "")]
    assert all("fight" in stack_of(profile, s, symbols) for s in seen)
    assert sum(s.stop == STOP_ENTRY for s in seen) > 0.99 * len(seen)
    # The one that has the mutex sleeps, which is no wait for it.
    assert any("hold" in stack_of(profile, s, symbols) for s in profile.samples if s.part == WAITING)


@test("a fight for a mutex, where all processes are recorded: the same waits; none of the kernel's threads", needs_root=True)
def mutex_of_all(folder):
    path = program(folder, "fight")
    profile, done = record(folder, path, 4, 40, 12000, options=["-a"])
    kernel = {t.tid for t in profile.threads if is_of_kernel(t.tid)}
    assert not any(s.part in (WAITING, RUNNABLE) and profile.threads[s.thread].tid in kernel for s in profile.samples)
    # Others may run the same program.
    own = set(fight(done.stdout)[1])
    profile.samples = [s for s in profile.samples if profile.threads[s.thread].tid in own]
    # How many are looked at depends on how many wait besides.
    check_fight(profile, done.stdout, 0.01)


@test("all processes are recorded: a program is seen from its beginning, and the waits of children end with them", needs_root=True)
def ended(folder):
    profile, done = record(folder, "sh", "-c", "echo $$; exec sleep 0.3", options=["-a"])
    pid = int(done.stdout)
    assert 0.29e9 < times_of(profile, pid)[WAITING] <= profile.end, times_of(profile, pid)
    profile, done = record(folder, "sh", "-c", "for i in 1 2 3 4 5 6; do sh -c 'echo $$; exec sleep 0.02'; done; sleep 3", options=["-a"])
    children = [int(line) for line in done.stdout.split()]
    assert len(children) == 6
    for child in children:
        assert times_of(profile, child)[WAITING] < 2e9, (child, times_of(profile, child))


@test("a user without rights: the same waits", needs_root=True)
def user_mutex(folder):
    path = program(folder, "fight")
    profile, done = record(folder, path, 4, 40, 12000, user=NOBODY)
    assert check_fight(profile, done.stdout, 0.01)


@test("without perf events: the same waits, to what lies between two looks")
def polled_mutex(folder):
    path = program(folder, "fight")
    profile, done = record(folder, path, 4, 40, 12000, options=["--method=polling"])
    assert check_fight(profile, done.stdout, 0.05)


@test("waits of microseconds: all of their time, gathered in few samples")
def short(folder):
    path = program(folder, "fight")
    profile, done = record(folder, path, 4, 2000, 50)
    check_fight(profile, done.stdout, 0.01)
    waits = [s for s in profile.samples if s.part in (WAITING, RUNNABLE)]
    seen = [s for s in waits if s.stop]
    # Each thread has 2,000 waits or more.
    assert len(waits) - len(seen) < 20 * (profile.end / 1e8 + 1) + 20, len(waits)


def brief(printed):
    """What the threads of brief have logged: {tid: (name of their function, [(begin, end)])}."""
    found = {}
    for line in printed.splitlines():
        name, tid, begin, end = line.split()
        found.setdefault(int(tid), (name, []))[1].append((int(begin), int(end)))
    return found


# The system call in which each function of brief waits.
CALLS = {"sleeps": "clock_nanosleep", "polls": "ppoll", "reads": "read", "counts": "futex", "grows": "nanosleep"}


def of_switches(profile, tids):
    """Samples of waits that ended before anybody could look at them, and have a stack: of switches, therefore."""
    return [s for s in profile.samples
            if s.part == WAITING and s.stop and s.weight < 1000000 and profile.threads[s.thread].tid in tids]


def need_switches(profile):
    if profile.about["method"] != "perf-events" or profile.about.get("kernel-hidden") == "1":
        raise tap.Skip("perf events cannot be used here: not those of the kernel")


@test("waits of microseconds, where switches may be sampled: each stack is the function that waited just then, in its call",
      needs_root=True)
def sampled(folder):
    path = program(folder, "brief")
    profile, done = record(folder, path, 150, 300)
    need_switches(profile)
    logged, symbols, began = brief(done.stdout), symbols_of(path), int(profile.about["began"])
    assert sorted(name for name, _ in logged.values()) == sorted(CALLS)
    n_short = sum(end - begin < 1000000 for _, turns in logged.values() for begin, end in turns)
    seen = of_switches(profile, logged)
    assert len(seen) > n_short // 4, (len(seen), n_short)
    for s in seen:
        name, turns = logged[profile.threads[s.thread].tid]
        reason, last = profile.waits_for(s), s.ns + began
        # What is no turn of its function waits for the turn of another thread to print, or for memory.
        if any(begin <= last - s.weight and last <= end for begin, end in turns):
            assert reason == f"[{CALLS[name]}]" or reason.startswith("[page fault"), (name, reason, s)
            assert name in stack_of(profile, s, symbols) and s.stop == STOP_ENTRY, (name, stack_of(profile, s, symbols), s)
        else:
            assert name not in stack_of(profile, s, symbols), (name, reason, s)
    for tid, (name, _) in logged.items():
        mine = [profile.waits_for(s) for s in seen if profile.threads[s.thread].tid == tid]
        assert f"[{CALLS[name]}]" in mine, (name, mine)


@test("waits of milliseconds, where switches may be sampled: what for, as it is read from outside, and whole stacks, as the "
      "sample has all registers", needs_root=True)
def sampled_and_read(folder):
    path = program(folder, "brief")
    profile, done = record(folder, path, 20, 15000)
    need_switches(profile)
    logged, symbols = brief(done.stdout), symbols_of(path)
    for tid, (name, _) in logged.items():
        mine = [s for s in profile.samples if s.part == WAITING and s.stop and profile.threads[s.thread].tid == tid]
        named = [s for s in mine if (profile.waits_for(s) or "").startswith(f"[{CALLS[name]}")]
        assert len(named) > 10, (name, mine)
        assert all(s.stop == STOP_ENTRY and name in stack_of(profile, s, symbols) for s in named), (name, mine)
        # What was waited for stands in /proc alone.
        assert name != "reads" or any(profile.waits_for(s).startswith("[read: ") for s in named), mine


def waits_in_turns(profile, printed):
    """[(name of the turn of disk, what was waited for, weight)] of the samples that have a stack and lie in a turn that has
    read blocks, or in a sleep."""
    turns = [(name, int(begin), int(end)) for name, _, begin, end, blocks in (line.split() for line in printed.splitlines())
             if int(blocks) or name == "sleeps"]
    began, found = int(profile.about["began"]), []
    for s in profile.samples:
        last = s.ns + began
        found += [(name, profile.waits_for(s), s.weight) for name, begin, end in turns
                  if s.part == WAITING and s.stop and begin <= last - s.weight and last <= end]
    return found


# What each function of disk waits for.
DISK = {"reads": "[pread64: disk", "faults": "[page fault: disk]", "sleeps": "[clock_nanosleep]"}


@test("waits for a disk, where switches may be sampled: system calls and page faults that have read blocks say so, and "
      "nothing else does", needs_root=True)
def disk(folder):
    path, found = program(folder, "disk"), []
    for turns, size in ((40, 65536), (10, 1 << 20)):
        profile, done = record(folder, path, os.path.join(folder, "file"), turns, size)
        need_switches(profile)
        found += waits_in_turns(profile, done.stdout)
    if not any(name != "sleeps" for name, _, _ in found):
        raise tap.Skip("nothing waits for a disk here")
    wrong = [x for x in found if not x[1].startswith(DISK[x[0]])]
    assert not wrong, (wrong[:5], len(wrong), len(found))
    assert {name for name, _, _ in found} == set(DISK), collections.Counter(name for name, _, _ in found)


@test("waits for a disk of more than a millisecond, of a user without rights: they say so", needs_root=True)
def user_disk(folder):
    path = program(folder, "disk")
    os.makedirs(os.path.join(folder, "open"))
    os.chmod(os.path.join(folder, "open"), 0o777)
    profile, done = record(folder, path, os.path.join(folder, "open", "file"), 30, 4 << 20, user=NOBODY)
    found = collections.Counter((name, text) for name, text, _ in waits_in_turns(profile, done.stdout) if name != "faults")
    if sum(n for (name, _), n in found.items() if name == "reads") < 5:
        raise tap.Skip("nothing waits for a disk here for so long that it is looked at")
    # The kernel's function is read a moment after the rest: the wait may be another one by then.
    assert all(text.startswith("[pread64") == (name == "reads") for name, text in found), found
    assert any(text.startswith("[pread64: disk, ") and "/file" in text for _, text in found), found
    assert not any("disk" in text for name, text in found if name == "sleeps"), found


@test("waits of microseconds, of a user without rights: their time alone", needs_root=True)
def not_sampled(folder):
    path = program(folder, "brief")
    profile, done = record(folder, path, 150, 300, user=NOBODY)
    if profile.about.get("kernel-hidden") != "1":
        raise tap.Skip("perf events cannot be used here: kernel.perf_event_paranoid lets all users see the kernel")
    logged = brief(done.stdout)
    assert not of_switches(profile, logged)
    for tid, (_, turns) in logged.items():
        waited, found = sum(end - begin for begin, end in turns), times_of(profile, tid)
        assert found[WAITING] + found[RUNNABLE] > 0.5 * waited, (tid, found, waited)


@test("threads that switch all the time: stacks of as many switches as 1 % of a processor is enough for, all the time", needs_root=True)
def too_many(folder):
    path = program(folder, "fight")
    profile, done = record(folder, path, 8, 4096, 1)
    need_switches(profile)
    turns, threads = fight(done.stdout)
    # Each turn sleeps once, at least.
    n_waits = sum(len(all_of) for all_of in turns.values())
    n_seen = sum(s.part in (WAITING, RUNNABLE) and s.stop != 0 and s.weight < 1000000 for s in profile.samples)
    # The half of 1 %, and 10 ms besides, of which none takes less than a microsecond.
    most = (10e6 + profile.end / 200) / 1000
    assert 0 < n_seen <= most and n_seen < n_waits / 2, (n_seen, most, n_waits)
    # They do not end where what is free at the beginning has been used up.
    began, first, last = int(profile.about["began"]), min(t[0] for t in threads.values()), max(t[1] for t in threads.values())
    assert any(first + 0.75 * (last - first) < s.ns + began < last for s in of_switches(profile, turns)), (first, last)
    check_fight(profile, done.stdout, 0.01)


@test("two threads of one processor: each waits for it as long as the other one has it")
def preempted(folder):
    path = program(folder, "shares")
    cpu = min(os.sched_getaffinity(0))
    profile, done = record(folder, "/usr/bin/taskset", "-c", cpu, path, 2, 0.4)
    ran = collections.Counter()
    for line in done.stdout.splitlines()[:-1]:
        tid, _, ns = line.split()
        ran[int(tid)] += int(ns)
    assert len(ran) == 2
    for tid, ns in ran.items():
        found = times_of(profile, tid)
        # The other one has run all of that time, or a third process has.
        assert found[RUNNABLE] > 0.3 * min(ran.values()), (tid, found, ran)
        assert found[WAITING] < 0.05 * ns + 20e6, (tid, found)


def waiting(folder, method, *options):
    """Attaches to threads that wait all the time; their TIDs by name, and the profile."""
    path = program(folder, "waiter")
    out = os.path.join(folder, method)
    with Running([path, 600]) as running:
        tids = {name: int(tid) for name, tid in (running.line().split() for _ in range(8))}
        for tid in tids.values():
            wait_for_state(tid, "S")
        done = execute(FATHOM, "record", "-o", out, f"--method={method}", "--for", "1s", "-p", tids["main"], *options)
        need_perf(done)
        assert not done.returncode, done
        os.kill(tids["child"], signal.SIGKILL)
    return path, tids, Profile(out), done


@test("threads that sleep all the time: their whole stacks, and what each waits for")
def reasons(folder):
    for method in METHODS:
        path, tids, profile, _ = waiting(folder, method)
        symbols = symbols_of(path)
        for name, reason in (("reads", "[read: pipe:["), ("polls", "[poll: 1 descriptor: fd "), ("sleeps", "[clock_nanosleep]"),
                             ("locks", f"owned by {tids['main']}]"), ("counts", "[futex: "), ("waits", f"[wait4: child {tids['child']}")):
            mine = [s for s in profile.samples if profile.threads[s.thread].tid == tids[name]]
            assert mine and {s.part for s in mine} == {WAITING}, (method, name, mine)
            assert all(reason in profile.waits_for(s) for s in mine), (method, name, [profile.waits_for(s) for s in mine])
            assert all(name in stack_of(profile, s, symbols) and s.stop == STOP_ENTRY for s in mine), (method, name)
            assert 0.9 * profile.end <= sum(s.weight for s in mine) <= profile.end, (method, name, mine)


@test("a child that has run no other program since fork(): where it waits")
def forked(folder):
    path = program(folder, "waiter")
    symbols = symbols_of(path)
    for method in METHODS:
        profile, done = record(folder, path, 1, options=[f"--method={method}"])
        tids = {name: int(tid) for name, tid in (line.split() for line in done.stdout.splitlines())}
        seen = [s for s in profile.samples if profile.threads[s.thread].tid == tids["child"] and profile.waits_for(s) == "[pause: a signal]"]
        assert seen and all("main" in stack_of(profile, s, symbols) and s.stop == STOP_ENTRY for s in seen), (method, seen)
        assert sum(s.weight for s in seen) > (0.8e9 if method == "perf-events" else 0.4e9), (method, seen)


@test("hundreds of threads that sleep: the whole stacks of all, and their time")
def many(folder):
    # Each thread takes a descriptor for each processor.
    path, n = program(folder, "sleepers"), min(400, 800 // os.cpu_count())
    symbols = symbols_of(path)
    for method in METHODS:
        out = os.path.join(folder, method)
        with Running([path, n]) as running:
            assert running.line() == "ready"
            done = execute(FATHOM, "record", "-o", out, f"--method={method}", "--for", "2s", "-p", running.pid)
            need_perf(done)
            assert not done.returncode and "left out" not in done.stderr, done
        profile = Profile(out)
        waits = collections.Counter()
        for s in profile.samples:
            if s.part == WAITING and s.stop == STOP_ENTRY and "waits" in stack_of(profile, s, symbols):
                waits[profile.threads[s.thread].tid] += s.weight
        assert len(waits) == n, (method, len(waits))
        # Polling sees threads for the first time one after the other.
        assert min(waits.values()) > (0.9 if method == "perf-events" else 0.2) * profile.end, (method, min(waits.values()), profile.end)


@test("running, waiting and waiting for a processor: together the time that a thread was there")
def wall(folder):
    path = program(folder, "fight")
    for method, options in (("perf-events", ["-e", "task-clock"]), ("polling", [])):
        profile, done = record(folder, path, 3, 40, 3000, 3000, options=[f"--method={method}", *options])
        turns, threads = fight(done.stdout)
        last = max(end for _, end, _, _ in threads.values())
        for tid, (begin, end, ran, born) in threads.items():
            # Times of a switch are on both sides. Polling does not know when a wait was, and sees a thread for the first time and the
            # last time some 10 ms or more late or early.
            found, slack = times_of(profile, tid, begin, end), 0.01 * (end - begin) + SWITCH * 4 * len(turns[tid])
            there = end - begin
            if method == "polling":
                found, there, slack = times_of(profile, tid), last + REST - born, 0.05 * (last - born) + 60e6
            assert abs(sum(found.values()) - there) <= slack, (method, tid, found, there)
            assert abs(there - found[WAITING] - found[RUNNABLE] - ran) <= slack + 0.05 * ran, (method, tid, found, there, ran)


@test("a thread that runs all the time, and waits for a processor: by polling, too, it waits for nothing else")
def busy(folder):
    path, cpu = program(folder, "shares"), min(os.sched_getaffinity(0))
    with Running(["/usr/bin/taskset", "-c", cpu, path, 1, 600]):
        for method in METHODS:
            options = [f"--method={method}", *(["-e", "task-clock"] if method == "perf-events" else [])]
            profile, done = record(folder, "/usr/bin/taskset", "-c", cpu, path, 1, 1.5, options=options)
            *measured, (_, _, before, after) = (line.split() for line in done.stdout.splitlines())
            tid, ran = int(measured[0][0]), int(after) - int(before)
            found = times_of(profile, tid)
            assert found[WAITING] < 0.05 * ran + 30e6, (method, found, ran)
            # The other one has had it as long, or more have shared it.
            assert found[RUNNABLE] > 0.5 * ran, (method, found, ran)
            assert sum(found.values()) <= 1.05 * profile.end, (method, found, profile.end)


@test("a program that is stopped and goes on: it says so")
def stopped(folder):
    out = os.path.join(folder, "profile")
    with Running(["/bin/sleep", 600]) as sleeping:
        wait_for_state(sleeping.pid, "S")
        os.kill(sleeping.pid, signal.SIGSTOP)
        wait_for_state(sleeping.pid, "T")
        done = execute(FATHOM, "record", "-o", out, "--for", "500ms", "-p", sleeping.pid)
        need_perf(done)
        os.kill(sleeping.pid, signal.SIGCONT)
        profile = Profile(out)
        assert "[stopped]" in {profile.waits_for(s) for s in profile.samples}, profile.samples
        with Running([FATHOM, "record", "-q", "-o", out, "-p", sleeping.pid]) as recorder:
            until(lambda: os.path.getsize(out) > 0 and os.path.getsize(out) != profile.size, "the recording begins")
            os.kill(sleeping.pid, signal.SIGTERM)
            assert recorder.process.wait() == 0
    assert {s.part for s in Profile(out).samples} <= {SAMPLED, 2, WAITING, RUNNABLE}


# Who ends waits ------------------------------------------------------------------------------------

# A command that runs another one where tracefs is, as on most machines.
TRACED = ("unshare", "-m", "sh", "-c", 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"', "sh")


def need_tracefs():
    tap.need_mount_namespaces()
    done = execute(*TRACED, "cat", "/sys/kernel/tracing/events/sched/sched_waking/id")
    if done.returncode:
        raise tap.Skip(f"the kernel has no tracepoint of wakings here: {done.stderr.strip()}")


def wakers_of(profile, tid):
    """{TID of the waker, INTERRUPT or None: ns} of the waits of a thread."""
    found = collections.Counter()
    for s in profile.samples:
        if profile.threads[s.thread].tid == tid and s.part == WAITING:
            found[profile.threads[s.waker].tid if s.waker is not None and s.waker >= 0 else s.waker] += s.weight
    return found


def woken(printed):
    """What the threads of woken have logged: {name: (tid, slept, waited, queued)}."""
    return {name: tuple(map(int, numbers)) for name, *numbers in (line.split() for line in printed.splitlines())}


def check_wakers(profile, threads):
    """Nobody is said to have ended the waits of woken who has not. Whether nearly all are known, each thread's by who has ended most."""
    main, server, slow = (threads[name][0] for name in ("main", "server", "slow"))
    found = {name: wakers_of(profile, tid) for name, (tid, *_) in threads.items()}
    for name, mains in (("main", (INTERRUPT, server)), ("server", (main,)), ("slow", (main,))):
        counted = found[name]
        # Threads of a process wake each other when they wait for its list of mappings, for microseconds.
        assert sum(ns for waker, ns in counted.items() if waker not in (*mains, None)) < 1e6, (name, found, threads)
        _, slept, waited, _ = threads[name]
        both = sum(ns for part, ns in times_of(profile, threads[name][0]).items() if part in (WAITING, RUNNABLE))
        assert abs(both - slept - waited) <= 0.03 * (slept + waited) + SWITCH * 800, (name, both, slept, waited)
    assert found["main"][server] <= threads["main"][2] + SWITCH * 800, (found, threads)
    are_known = all(found[name][None] <= 0.02 * sum(found[name].values()) for name in ("server", "slow"))
    return are_known, are_known and found["main"][INTERRUPT] >= 0.95 * threads["main"][1], found


@test("who ends waits: the thread that each is woken by, or an interrupt; waits of seconds, too, that were written in pieces", needs_root=True)
def wakers(folder):
    need_tracefs()
    path = program(folder, "woken")
    tried = []
    # Where too many threads of the machine are woken, it is not known; nor where the kernel tells nothing of a processor that is idle.
    for cpu in 2 * sorted(os.sched_getaffinity(0)):
        profile, done = record(folder, "/usr/bin/taskset", "-c", cpu, path, 400, 4000, within=TRACED)
        threads = woken(done.stdout)
        by_threads, all_known, found = check_wakers(profile, threads)
        tried.append((cpu, by_threads, found, threads))
        if all_known:
            break
    assert any(by_threads for _, by_threads, *_ in tried), tried
    if not all_known:
        raise tap.Skip("the kernel tells of no waking by a timer, where a processor is idle")
    main, server, slow = (threads[name][0] for name in ("main", "server", "slow"))
    pieces = [s for s in profile.samples if profile.threads[s.thread].tid == slow and s.part == WAITING]
    assert len(pieces) > 1, pieces
    rows = report(os.path.join(folder, "profile"), "--by", "waker")["row"]
    assert {r["kind"] for r in rows} == {"waker"}
    totals = {r["tid"] or r["name"]: r["total"] for r in rows}
    all_of_it = collections.Counter()
    for s in profile.samples:
        if s.part == WAITING:
            all_of_it[s.waker if s.waker in (None, INTERRUPT) else profile.threads[s.waker].tid] += s.weight
    same((totals[main], totals[server], totals["[interrupt]"]), (all_of_it[main], all_of_it[server], all_of_it[INTERRUPT]))


@test("who ends waits, where all processes are recorded: the same", needs_root=True)
def wakers_of_all(folder):
    need_tracefs()
    path, shares = program(folder, "woken"), []
    # On a busy machine too many threads are woken for all to be recorded.
    for _ in range(4):
        profile, done = record(folder, path, 200, 4000, options=["-a"], within=TRACED)
        *_, found = check_wakers(profile, woken(done.stdout))
        shares.append(found["server"][None] / sum(found["server"].values()))
        if shares[-1] <= 0.05:
            break
    assert min(shares) <= 0.05, shares


@test("a thread that was woken waits for a processor, as long as the scheduler says", needs_root=True)
def woken_late(folder):
    need_tracefs()
    profile, done = record(folder, program(folder, "woken"), 100, 3000, "busy", options=["-e", "task-clock"], within=TRACED)
    tid, slept, _, queued = woken(done.stdout)["main"]
    found = times_of(profile, tid)
    assert queued > 0.05 * slept, (queued, slept)
    assert abs(found[RUNNABLE] - queued) <= 0.05 * queued + 2e6, (found, queued)
    # Where it waited: in the function that had called, with this reason in place of what it had waited for.
    stacks = [profile.stack(s.node) for s in profile.samples
              if profile.threads[s.thread].tid == tid and s.part == RUNNABLE and s.stop == STOP_ENTRY]
    symbols = symbols_of(os.path.join(folder, "woken"))
    names = [[profile.name_of(x, symbols) for x in stack] for stack in stacks]
    # Some are from before main() runs, in ld.so.
    assert all(n[0] == "[waits for a processor]" for n in names) and sum("main" in n for n in names) > max(20, 0.9 * len(names)), names[:3]


@test("a user without rights: who ends waits is not known, and how long they are is", needs_root=True)
def wakers_denied(folder):
    need_tracefs()
    profile, done = record(folder, program(folder, "woken"), 50, 4000, user=NOBODY)
    for name, (tid, slept, waited, _) in woken(done.stdout).items():
        assert set(wakers_of(profile, tid)) == {None}, name
        found = times_of(profile, tid)
        assert abs(found[WAITING] + found[RUNNABLE] - slept - waited) <= 0.05 * (slept + waited) + SWITCH * 100, (name, found)


@test("reports by waker: a wait in pieces is of who has ended it; what goes on at the end, is cut or is forgotten, of nobody")
def made_wakers(folder):
    stack = "main;read@libc;[read]@[waits]"
    lines = ["about unit ns", "thread 1 1 first", "thread 1 2 second", "thread 9 9 other",
             f"sample 10 0 0 1 5 {stack}",
             "waker goes-on", f"sample 100 0 3 1 90 {stack}", f"sample 150 1 3 1 7 {stack}", f"sample 200 0 3 1 100 {stack}",
             "waker 2", f"sample 230 0 3 1 30 {stack}", "waker unknown", f"sample 240 0 4 1 10 {stack}",
             "waker interrupt", f"sample 300 1 3 1 150 {stack}",
             # The thread runs before anybody says who has ended this wait.
             "waker goes-on", f"sample 400 0 3 1 60 {stack}", "waker unknown", f"sample 401 0 0 1 1 {stack}",
             "waker 1", f"sample 500 0 3 1 11 {stack}",
             "waker goes-on", f"sample 900 1 3 1 13 {stack}", "end 1000"]
    path = make(folder, lines)
    rows = {(r["name"], r.get("tid")): r["total"] for r in report(path, "--by", "waker")["row"]}
    same(rows, {("other", 9): 90 + 100 + 30, ("[interrupt]", None): 7 + 150, ("[waker not known]", None): 60 + 13,
                ("second", 2): 11, ("[waits for a processor]", None): 10})
    rows = {(r["name"], r.get("tid")): r["total"] for r in report(path, "--by", "waker", "--time", "cpu")["row"]}
    same(rows, {("[on a processor]", None): 6})
    # By each other key a wait is as ever.
    same(sum(r["self"] for r in report(path, "--by", "thread", "--time", "waiting")["row"]), 90 + 7 + 100 + 30 + 10 + 150 + 60 + 11 + 13)
    wrong = make(folder, ["thread 1 1 first", "waker 1", "sample 10 0 3 1 5 main", "end 20"], "wrong")
    done = execute(FATHOM, "report", wrong, status=2)
    assert "a thread was woken by one that is not defined" in done.stderr, done


@test("--no-off-cpu: no waits, the same processor time")
def none(folder):
    path = program(folder, "fight")
    profile, _ = record(folder, path, 2, 20, 5000, options=["--no-off-cpu"])
    assert not [s for s in profile.samples if s.part in (WAITING, RUNNABLE)]
    profile, _ = record(folder, path, 2, 20, 5000, options=["--no-off-cpu", "--method=polling"])
    assert not [s for s in profile.samples if s.part in (WAITING, RUNNABLE)]


# Seconds of processor time and waits, whose sums can be seen: the parts of samples are numbers of docs/profile-format.md.
MADE = ("about unit ns", "about event task-clock", "thread 7 7 demo", "thread 7 8 other",
        "sample 1000000 0 0 1 100 main;work", "sample 2000000 0 3 1 700 main;lock;[futex]@[waits]", "sample 3000000 1 3 0 30 [wait not sampled]@[waits]",
        "sample 4000000 1 4 0 9 [waits for a processor]@[waits]", "sample 5000000 1 0 1 50 main;lock", "sample 6000000 1 2 0 5", "end 9000000")


@test("reports of processor time, of waits, and of both: the sums of their samples")
def sums(folder):
    path = make(folder, MADE)
    for words, weight, rows in (
            ((), 155, {"work": (100, 100), "main": (0, 150), "lock": (50, 50), "[not sampled]": (5, 5)}),
            (("--time=waiting",), 739, {"[futex]": (700, 700), "main": (0, 700), "lock": (0, 700), "[wait not sampled]": (30, 30),
                                        "[waits for a processor]": (9, 9), "[stack not complete]": (0, 39)}),
            (("--time=wall",), 894, {"[futex]": (700, 700), "main": (0, 850), "lock": (50, 750), "work": (100, 100),
                                     "[wait not sampled]": (30, 30), "[waits for a processor]": (9, 9), "[not sampled]": (5, 5),
                                     "[stack not complete]": (0, 39)}),
            (("--time=waiting", "--by=thread"), 739, {"demo": (700, 700), "other": (39, 39)}),
            (("--time=waiting", "--from=0.0025"), 39, {"[wait not sampled]": (30, 30), "[waits for a processor]": (9, 9),
                                                       "[stack not complete]": (0, 39)})):
        found = report(path, *words)
        same({row["name"]: (row["self"], row["total"]) for row in found["row"]}, rows)
        header = found["profile"][0]
        same((header["weight"], header["waiting_ns"], header["runnable_ns"]), (weight, 730, 9))
    text = execute(FATHOM, "report", "--no-cache", path, status=0).stdout
    assert "waiting:   730 ns of all threads, and 9 ns for a processor (--time=waiting)" in text, text
    text = execute(FATHOM, "report", "--no-cache", "--time=waiting", path, status=0).stdout
    assert "waits:     3 of 739 ns" in text and "waiting:" not in text, text


@test("exports of waits: collapsed stacks and pprof have the sums of the report")
def exports(folder):
    path = make(folder, MADE)
    out = execute(FATHOM, "report", "--no-cache", "--export=collapsed", "--time=waiting", path, status=0).stdout
    same(sorted(out.splitlines()), ["demo;[stack not complete];[wait not sampled] 30", "demo;[stack not complete];[waits for a processor] 9",
                                    "demo;main;lock;[futex] 700"])
    for word, kind in (("cpu", "cpu"), ("waiting", "waiting"), ("wall", "wall")):
        data = execute(FATHOM, "report", "--no-cache", "--export=pprof", f"--time={word}", path, status=0, text=False).stdout
        read = pprof_file.Profile(data)
        same(tuple(read.sample_types[1]), (kind, "nanoseconds"))
        weight = report(path, f"--time={word}")["profile"][0]["weight"]
        same(sum(s.values[1] for s in read.samples), weight)


@test("what cannot be summed up: one line that says why")
def refused(folder):
    path = make(folder, MADE)
    cycles = make(folder, ["about unit cycles", *MADE[1:]], "cycles")
    for words, text in (((path, "--time=x"), "--time: is cpu, waiting or wall"), ((cycles, "--time=wall"), "no nanoseconds on a processor"),
                        (("--diff", "--time=wall", cycles, cycles), "no nanoseconds on a processor")):
        done = execute(FATHOM, "report", "--no-cache", *words, status=2)
        assert text in done.stderr and done.stderr.count("\n") <= 2, done
    same(report(cycles, "--time=waiting")["profile"][0]["unit"], "ns")
    for form in ("collapsed", "pprof"):
        done = execute(FATHOM, "report", "--no-cache", "--time=wall", f"--export={form}", cycles, status=2)
        assert "no nanoseconds on a processor" in done.stderr, done
        execute(FATHOM, "report", "--no-cache", "--time=waiting", f"--export={form}", "-o", folder + "/out", cycles, status=0)
    empty = make(folder, ("about unit ns", "thread 7 7 demo", "sample 1 0 0 1 5 f", "end 10"), "empty")
    execute(FATHOM, "report", "--no-cache", "--time=waiting", empty, status=1)
    execute(FATHOM, "report", "--no-cache", "--time=waiting", "--export=collapsed", empty, status=1)
    only = make(folder, (*MADE[:4], MADE[5], "end 10000000"), "only")
    execute(FATHOM, "report", "--no-cache", "--time=waiting", "--export=collapsed", only, status=0)
    execute(FATHOM, "report", "--no-cache", "--export=collapsed", only, status=1)


if __name__ == "__main__":
    sys.exit(SUITE.run())
