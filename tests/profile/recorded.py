#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "record": profiles of fathom record, beside what programs measure and log of themselves."""
import bisect
import collections
import json
import os
import re
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import profile_file  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, HANG_SECONDS, NOBODY, as_user, copy_for_all, execute  # noqa: E402
from building import build, build_text  # noqa: E402
from profile_file import KERNEL, KERNEL_HIDDEN, RUNNABLE, SAMPLED, STOP_ENTRY, UNSAMPLED, WAITING, Profile  # noqa: E402
from recording import METHODS, need_perf, program, record, symbols_of, weights, whole  # noqa: E402
from running import Running, state_of, until  # noqa: E402

SUITE = tap.Suite("record", "become another user")
test = SUITE.test


def most_samples():
    """Samples a second that the kernel permits."""
    try:
        with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as file:
            return int(file.read())
    except OSError as error:
        raise tap.Skip(f"perf events cannot be used here: {error}") from error


def names_of(profile, sample, symbols):
    """The functions of a sample in the program, the outermost first; without those of the kernel."""
    stack = [x for x in reversed(profile.stack(sample.node)) if profile.modules[x.module].kind != KERNEL]
    return [profile.name_of(x, symbols) for x in stack]


# Truth --------------------------------------------------------------------------------------------

FUNCTIONS = ("tenth", "fifth", "quarter", "rest")
# A normal deviate that one in 100,000 is beyond.
DEVIATE = 4.4


def check_shares(profile, path, printed, least=300):
    """The shares of four functions are those that the program has measured, within binomial bounds."""
    symbols = symbols_of(path)
    seen = collections.Counter()
    measured = collections.Counter()
    for line in printed.splitlines():
        if not line.startswith("process"):
            _, name, ns = line.split()
            measured[name] += int(ns)
    for sample in profile.samples:
        if sample.part == SAMPLED:
            seen[next((n for n in names_of(profile, sample, symbols) if n in FUNCTIONS), None)] += 1
    n = sum(seen[name] for name in FUNCTIONS)
    assert n > least, seen
    for name in FUNCTIONS:
        share = measured[name] / sum(measured.values())
        bound = DEVIATE * (n * share * (1 - share)) ** 0.5
        assert abs(seen[name] - n * share) <= bound, f"{name}: {seen[name]} of {n}, not {n * share:.0f} +- {bound:.0f}"


# Nanoseconds of a switch to a thread, at most: of a virtual machine.
SWITCH = 50000


def check_weight(profile, printed):
    """All weights together are the processor time that the program has measured, within 1 %."""
    switches, before, after = (int(word) for word in printed.splitlines()[-1].split()[-3:])
    all_of = sum(weights(profile).values())
    # Before main() the dynamic linker runs, after it the program's end; exec() itself is not counted, nor is what it takes to switch to
    # a thread.
    least, most = 0.99 * (after - before) - SWITCH * switches, 1.01 * after + 20e6 + SWITCH / 2 * switches
    assert least <= all_of <= most, (all_of, switches, before, after)


@test("shares of processor time: those that the program measures; all weights are its time")
def shares(folder):
    path = program(folder, "shares")
    profile, done = record(folder, path, 1, 1.5)
    check_shares(profile, path, done.stdout)
    check_weight(profile, done.stdout)
    assert whole(profile) > 0.99, whole(profile)


@test("a user without rights: the same shares and the same time", needs_root=True)
def user_shares(folder):
    path = program(folder, "shares")
    profile, done = record(folder, path, 1, 1.5, user=NOBODY)
    check_shares(profile, path, done.stdout)
    check_weight(profile, done.stdout)


def check_threads(profile, printed, most=1.01):
    """The weights of four threads are the time that each has measured, or as many times of it at @most."""
    measured = collections.Counter()
    for line in printed.splitlines()[:-1]:
        tid, _, ns = line.split()
        measured[int(tid)] += int(ns)
    seen = collections.Counter()
    for sample in profile.samples:
        if sample.part not in (WAITING, RUNNABLE):
            seen[profile.threads[sample.thread].tid] += sample.weight
    assert len(measured) == 4
    # Switches are of one of them, or of the other.
    switching = SWITCH / 2 * int(printed.splitlines()[-1].split()[1])
    for tid, ns in measured.items():
        assert 0.97 * ns - 5e6 <= seen[tid] <= most * ns + 5e6 + switching, (tid, ns, seen[tid], switching)


@test("four threads: the weights of each are its time")
def threads(folder):
    path = program(folder, "shares")
    profile, done = record(folder, path, 4, 0.25)
    check_shares(profile, path, done.stdout)
    check_weight(profile, done.stdout)
    check_threads(profile, done.stdout)


@test("two recorders of one program: for each of them, the weights of its threads are their times")
def recorded_twice(folder):
    path = program(folder, "shares")
    inner = os.path.join(folder, "inner")
    profile, done = record(folder, FATHOM, "record", "-q", "-o", inner, "--", path, 4, 0.5)
    # Samples of switches take time, too: each recorder knows that of its own.
    check_threads(profile, done.stdout, most=1.3)
    check_threads(Profile(inner), done.stdout, most=1.3)


@test("without perf events: a process that runs another program is sampled there, too")
def polled_exec(folder):
    path = program(folder, "shares")
    # The shell runs long enough to be seen.
    script = f"i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec {path} 1 1"
    profile, done = record(folder, "/bin/sh", "-c", script, options=["--method=polling"])
    tid, _, ns = next(line for line in done.stdout.splitlines() if not line.startswith("process")).split()
    seen = sum(s.weight for s in profile.samples if s.part == SAMPLED and profile.threads[s.thread].tid == int(tid))
    assert seen > 0.8 * int(ns), (seen, ns, done)


@test("without perf events: threads that are looked at from outside have the same shares and the same time")
def polled(folder):
    path = program(folder, "shares")
    profile, done = record(folder, path, 1, 2, options=["--method=polling", "-F", 499])
    assert profile.about["method"] == "polling" and "perf" not in done.stderr, done
    check_shares(profile, path, done.stdout, 60)
    check_weight(profile, done.stdout)
    assert whole(profile) > 0.99, whole(profile)
    # Four threads, and children: each has its time, but for what a thread runs before it is seen, and after it was seen last.
    profile, done = record(folder, "/bin/sh", "-c", f"{path} 4 0.25; {path} 1 1", options=["--method=polling"])
    measured = collections.Counter()
    for line in done.stdout.splitlines():
        if not line.startswith("process"):
            tid, _, ns = line.split()
            measured[int(tid)] += int(ns)
    seen = collections.Counter()
    for sample in profile.samples:
        if sample.part == SAMPLED:
            seen[profile.threads[sample.thread].tid] += sample.weight
    for tid, ns in measured.items():
        assert 0.7 * ns <= seen[tid] <= 1.02 * ns + 20e6, (tid, ns, seen[tid])


@test("time in the kernel that a user may not see: counted, and shown as what it is", needs_root=True)
def hidden(folder):
    path = program(folder, "kernel")
    profile, done = record(folder, path, 1.5, user=NOBODY)
    user, system, *_ = (int(word) for word in done.stdout.split())
    check_weight(profile, done.stdout)
    found = weights(profile)
    if profile.about.get("kernel-hidden") != "1":
        raise tap.Skip("kernel.perf_event_paranoid lets all users see the kernel")
    share = found[KERNEL_HIDDEN] / sum(found.values())
    assert abs(share - system / (user + system)) < 0.06, (found, user, system)


@test("time in the kernel: its functions, called by those of the program", needs_root=True)
def kernel(folder):
    path = program(folder, "kernel")
    profile, done = record(folder, path, 1)
    check_weight(profile, done.stdout)
    symbols = symbols_of(path)
    n = 0
    for sample in profile.samples:
        stack = profile.stack(sample.node)
        if sample.part == SAMPLED and stack and profile.modules[stack[0].module].kind == KERNEL:
            n += "main" in names_of(profile, sample, symbols)
    assert n > len(profile.samples) / 2, (n, len(profile.samples))


def cgroup_of(text):
    """The cgroup that docs/profile-format.md says a process is in, of what /proc/PID/cgroup has."""
    hierarchies = [line.split(":", 2)[1:] for line in text.splitlines()]
    ranks = {"": 0, "name=systemd": 1}
    below = [(ranks.get(name, 2), number, path) for number, (name, path) in enumerate(hierarchies) if path != "/"]
    return min(below)[2] if below else "/"


def check_cgroup(folder, path, before=""):
    """Profiles by each method have the cgroup that the program reads of itself, once it has done @before."""
    for method in METHODS:
        out = os.path.join(folder, f"{method}.profile")
        done = execute("/bin/sh", "-c", before + 'cat /proc/self/cgroup; exec "$@"', "sh", FATHOM, "record", "-q", "-o", out,
                       f"--method={method}", "--", path, 1, 0.3)
        need_perf(done)
        assert not done.returncode, done
        profile = Profile(out)
        text = "".join(line + "\n" for line in done.stdout.splitlines() if re.match(r"\d+:[^:]*:/", line))
        assert text and {t.cgroup for t in profile.threads} == {cgroup_of(text)}, (text, profile.threads)
        assert len(profile.cgroups) == 2, profile.cgroups
        said = execute(FATHOM, "report", "--by", "cgroup", "--json", out, status=0).stdout.splitlines()
        rows = [line for line in map(json.loads, said) if line["type"] == "row"]
        assert [row["cgroup"] for row in rows] == [cgroup_of(text)], rows
    return cgroup_of(text)


@test("the cgroup of a process: the one that it reads of itself")
def cgroup(folder):
    check_cgroup(folder, program(folder, "shares"))


@test("the cgroup of children that live for a moment: that of their parent")
def short_cgroup(folder):
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = cgroup_of(file.read())
    profile, _ = record(folder, "/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done", waits=True)
    found = collections.Counter(thread.cgroup for thread in profile.threads)
    assert len(profile.threads) > 200 and set(found) == {own}, (found, own)


def made_cgroup():
    """A new cgroup, its folder, of the hierarchy that names one."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        hierarchies = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    for words in mounts:
        kind = words[words.index("-") + 1:]
        if kind[0] == "cgroup2" and "" in hierarchies or kind[0] == "cgroup" and "name=systemd" in kind[2].split(","):
            own = os.path.join(words[4], f"fathom-test-{os.getpid()}")
            try:
                os.mkdir(own)
            except OSError:
                continue
            if os.path.exists(own + "/cgroup.procs"):
                return own
            os.rmdir(own)
    raise tap.Skip("no cgroup can be made here")


@test("a cgroup that is made for the program", needs_root=True)
def other_cgroup(folder):
    path = program(folder, "shares")
    own = made_cgroup()
    try:
        found = check_cgroup(folder, path, f"echo $$ >{own}/cgroup.procs || exit; ")
        assert os.path.basename(found) == os.path.basename(own), (found, own)
    finally:
        until(lambda: not open(own + "/cgroup.procs", encoding="ascii").read(), "processes have left the cgroup")
        os.rmdir(own)


# Nanoseconds that an interrupt may take, before or after a sample reads its clock: a line of the log that is so near may be of the
# other side.
INTERRUPT = 100000


def calls_at(lines, when, starts):
    """The functions of a log that were open at that time, then those before and after lines that are near; None within a microsecond
    of a line."""
    at = bisect.bisect_right(starts, when)
    if when - starts[at - 1] <= 1000:
        return None
    found = [lines[at - 1][1]]
    if at > 1 and when - starts[at - 1] < INTERRUPT:
        found.append(lines[at - 2][1])
    if at < len(lines) and starts[at] - when < INTERRUPT:
        found.append(lines[at][1])
    return found


def open_calls(text):
    """[(ns, functions that are open from then on)] of a log."""
    found, calls = [], ()
    for line in text.splitlines():
        calls = calls[:-1] if line[0] == "-" else (*calls, line[0])
        found.append((int(line[2:]), calls))
    return found


@test("10,000 samples a second: each is the stack that the program's own log has at that time")
def log_of_calls(folder):
    path = program(folder, "logged", flags=("-O1", "-g", "-fno-optimize-sibling-calls"))
    # The kernel lowers it itself where interrupts take long.
    profile, done = record(folder, path, 1.2, options=["-F", min(10000, most_samples())])
    symbols = symbols_of(path)
    lines = open_calls(done.stdout)
    starts = [ns for ns, _ in lines]
    began = int(profile.about["began"])
    n = same = shifted = 0
    for sample in profile.samples:
        when = sample.ns + began
        expected = calls_at(lines, when, starts) if sample.part == SAMPLED and starts[0] < when < starts[-1] else None
        if expected is None:
            continue
        names = tuple(x[-1] for x in names_of(profile, sample, symbols) if x and x.startswith("function_"))
        n += 1
        same += names in expected
        shifted += names[:-1] == expected[0]
    assert n > 1000 and same > 0.999 * n, (same, n)
    # Of samples near a line, some are one call ahead of it.
    assert shifted < 0.1 * n, "a stack without its innermost frame must not pass"


# Programs -----------------------------------------------------------------------------------------

@test("stacks of programs without frame pointers end in their entries: perl, python3, sqlite3, sort")
def programs(folder):
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="ascii") as file:
        file.writelines(f"{i * 7919 % 1000003}\n" for i in range(1000000))
    seen = 0
    for command in (["/usr/bin/perl", "-e", "sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } f(31)"],
                    ["/usr/bin/python3", "-S", "-c", "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(32)"],
                    ["/usr/bin/sqlite3", ":memory:", "with recursive c(x) as (select 1 union all select x + 1 from c "
                     "where x < 2000000) select count(distinct x * 7 % 1000) from c"],
                    ["/usr/bin/sort", "-o", "/dev/null", text]):
        if not os.path.exists(command[0]):
            continue
        profile, _ = record(folder, *command)
        # Among so few samples of a short run those of exec() and of its end weigh more.
        assert len(profile.samples) > 150 and whole(profile) > 0.97, (command[0], whole(profile), len(profile.samples))
        seen += 1
    assert seen >= 2, seen


@test("children and exec(): each process under its name, of those that live for a moment, too")
def children(folder):
    path = program(folder, "shares")
    # It lives for some samples.
    moment = os.path.join(folder, "moment")
    shutil.copy(path, moment)
    profile, _ = record(folder, "/bin/sh", "-c", f"for i in 1 2 3; do {path} 1 0.2; done; "
                        f"i=0; while [ $i -lt 100 ]; do {moment} 1 0.003; i=$((i + 1)); done")
    by_name = collections.Counter()
    for sample in profile.samples:
        by_name[profile.threads[sample.thread].name] += sample.weight
    assert by_name["shares"] > 0.59e9 and by_name["moment"] > 0.29e9, by_name
    pids = {t.pid for t in profile.threads if t.name == "shares"}
    assert len(pids) == 3, profile.threads
    named = [s for s in profile.samples if s.part == SAMPLED and profile.threads[s.thread].name == "moment" and s.node]
    files = sum(any(profile.modules[x.module].kind == profile_file.FILE for x in profile.stack(s.node)) for s in named)
    inside = [s for s in named if any(profile.modules[x.module].kind != KERNEL for x in profile.stack(s.node))]
    assert inside and files >= 0.9 * len(inside), (files, len(inside), len(named))


@test("JIT code: node's functions by name")
def jit(folder):
    if not shutil.which("node"):
        raise tap.Skip("node is not installed")
    script = os.path.join(folder, "script.js")
    with open(script, "w", encoding="ascii") as file:
        file.write("function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }\n"
                   "for (let i = 0; i < 300; i++) fibonacci(30);\n")
    # It writes where it runs, too.
    profile, done = record(folder, "sh", "-c", 'echo $$; cd "$1" && exec node --perf-basic-prof script.js', "sh", folder)
    os.unlink(f"/tmp/perf-{int(done.stdout)}.map")
    named = sum(s.weight for s in profile.samples
                if s.node and any("fibonacci" in (profile.name_of(x, {}) or "") for x in profile.stack(s.node)))
    assert named > 0.6 * sum(weights(profile).values()), named
    assert whole(profile) > 0.99, whole(profile)


@test("a process that runs: attached to while it works, its threads as well; a signal ends the recording")
def attached(folder):
    path = program(folder, "shares")
    out = os.path.join(folder, "profile")
    with Running([path, 2, 30, "wait"]) as target, \
            Running([FATHOM, "record", "-o", out, "-p", target.pid], stderr=-1) as recorder:
        deadline = time.monotonic() + HANG_SECONDS
        while not os.path.exists(out) and time.monotonic() < deadline and recorder.is_running():
            time.sleep(0.01)
        target.send("\n")
        while os.path.getsize(out) < 2000 and time.monotonic() < deadline and recorder.is_running():
            time.sleep(0.05)
        recorder.signal(signal.SIGINT)
        said = recorder.process.stderr.read()
        status = recorder.process.wait(HANG_SECONDS)
        if status == 2 and "perf" in said:
            raise tap.Skip(f"perf events cannot be used here: {said.strip()}")
        assert status == 0 and "samples" in said, said
    profile = Profile(out)
    seen = {profile.threads[s.thread].tid for s in profile.samples if s.part == SAMPLED}
    assert len(seen) >= 2 and profile.end, seen
    assert whole(profile) > 0.97, whole(profile)
    assert profile.about["command"] == f"-p {target.pid}"


@test("all processes, as long as a program runs: those that were there before, and new ones; idle processors have no time", needs_root=True)
def everything(folder):
    path = program(folder, "shares")
    with Running([path, 1, 600, "wait"]) as older:
        older.send("\n")
        profile, done = record(folder, "sh", "-c", f"{path} 2 0.5; {path} 1 0.3", options=["-a", "-e", "task-clock"])
    measured, seen, spent = collections.Counter(), collections.Counter(), collections.Counter()
    for line in done.stdout.splitlines():
        if not line.startswith("process"):
            tid, _, ns = line.split()
            measured[int(tid)] += int(ns)
    own = {t.pid for t in profile.threads if t.tid in measured}
    for sample in profile.samples:
        seen[profile.threads[sample.thread].tid] += sample.weight
        spent[profile.threads[sample.thread].pid] += sample.weight
    assert {t.name for t in profile.threads if t.pid == older.pid} == {"shares"}
    assert 0 not in spent and profile.about["command"].startswith("-a sh -c") and profile.about["event"] == "cpu-clock"
    # Each sample counts for a period, whatever was in it: of threads in turns, chance decides.
    ran = sum(measured.values())
    assert 0.6 * ran <= sum(seen[tid] for tid in measured) <= 1.6 * ran, (ran, measured, {tid: seen[tid] for tid in measured})
    assert 0.1e9 < spent[older.pid] <= 1.1 * profile.end, (spent[older.pid], profile.end)
    assert sum(seen.values()) <= 1.1 * profile.end * os.sysconf("SC_NPROCESSORS_ONLN"), (sum(seen.values()), profile.end)
    # Others may run the same program.
    profile.samples = [s for s in profile.samples if profile.threads[s.thread].pid in own]
    check_shares(profile, path, "\n".join(line for line in done.stdout.splitlines() if not line.startswith("process")), least=200)


@test("all processes: not for a user without rights, by polling, or with -p", needs_root=True)
def not_everything(folder):
    for user, options, text in ((NOBODY, [], "perf_event_paranoid"), (None, ["--method=polling"], "without --method=polling"),
                                (None, ["-p", "1"], "either of them")):
        tool = copy_for_all(folder)
        done = execute(tool, "record", "-o", "/dev/null", "-a", "--for", "10ms", *options, user=user)
        if user is not None and done.returncode == 0:
            raise tap.Skip("perf events cannot be used here: kernel.perf_event_paranoid lets all users see all")
        assert done.returncode == 2 and text in done.stderr and len(done.stderr.splitlines()) == 1, (options, done)


@test("more threads than descriptors: as many as there are, and how many are left out")
def few_descriptors(folder):
    path = program(folder, "shares")
    out = os.path.join(folder, "profile")
    processors = os.sysconf("SC_NPROCESSORS_CONF")
    with Running([path, 16, 30, "wait"]) as target:
        target.send("\n")
        until(lambda: len(os.listdir(f"/proc/{target.pid}/task")) == 17, "16 threads")
        done = execute("sh", "-c", f'ulimit -n {16 + 6 * processors}; exec "$@"', "sh", FATHOM, "record", "-o", out, "--for", "300ms", "-p", target.pid)
        none = execute("sh", "-c", 'ulimit -n 5; exec "$@"', "sh", FATHOM, "record", "-o", out + "2", "-p", target.pid)
    need_perf(done)
    assert none.returncode == 2 and "ulimit -n" in none.stderr and len(none.stderr.splitlines()) == 1, none
    said = re.search(r"fathom: (\d+) threads were left out", done.stderr)
    assert done.returncode == 0 and said and 8 <= int(said[1]) <= 16, done
    profile = Profile(out)
    seen = {profile.threads[s.thread].tid for s in profile.samples if s.part == SAMPLED}
    # The first thread, which waits for the others, is no sample.
    assert (seen or processors == 1) and len(seen) <= 17 - int(said[1]), (seen, said[1])
    assert not seen or whole(profile) > 0.9, whole(profile)


@test("a file without a build-id names only what was recorded of it: not what was built in its place since")
def no_build_id(folder):
    source = os.path.join(folder, "program.c")
    text = "static volatile int sink;\n%s(void) { for (int i = 0; i < 400000000; i++) sink += i; }\nint main(void) { %s(); return 0; }\n"

    def build_it(name):
        with open(source, "w", encoding="ascii") as file:
            file.write(text % (f"__attribute__((noinline)) void {name}", name))
        return build(os.path.join(folder, "program"), source, "-Wl,--build-id=none")

    def functions(path):
        shown = execute(FATHOM, "report", "--json", path, status=0).stdout
        return {row.get("name") for row in map(json.loads, shown.splitlines()) if row["type"] == "row"}

    path = build_it("first_one")
    record(folder, path)
    profile = os.path.join(folder, "profile")
    assert {"first_one", "main"} <= functions(profile)
    # A copy elsewhere that keeps its time is the same file.
    root = os.path.join(folder, "root")
    os.makedirs(root + folder)
    shutil.copy2(path, root + path)
    build_it("other_one")
    assert not {"first_one", "other_one", "main"} & functions(profile), functions(profile)
    shown = execute(FATHOM, "report", "--json", "--sysroot", root, profile, status=0).stdout
    assert '"first_one"' in shown and '"other_one"' not in shown, shown


@test("libraries that come where another one was: no sample has the name of the other one")
def reloaded(folder):
    path = program(folder, "reloaded", "-ldl")
    for method in METHODS:
        factor = 1 if method == "perf-events" else 20
        libraries = [os.path.join(folder, f"{method}{number}.so") for number in range(2)]
        for number, library in enumerate(libraries):
            build_text(library, f"volatile long sink; void work(void) {{ for (long i = 0; i < {factor * (6000000 + number)}; i++) sink += i; }}\n",
                       "-shared", "-fPIC")
        profile, done = record(folder, path, 3, *libraries, options=[f"--method={method}"])
        assert done.stdout.endswith("same\n"), done.stdout[-200:]
        began, right, asked = int(profile.about["began"]), 0, 0
        calls = [tuple(map(int, line.split())) for line in done.stdout.splitlines()[:-1]]
        for sample in profile.samples:
            found = {profile.modules[x.module].path for x in profile.stack(sample.node)} & set(libraries)
            now = [n for n, begin, end in calls if sample.part == SAMPLED and begin <= sample.ns + began <= end]
            if now:
                assert found <= {libraries[now[0]]}, (method, sample, found, now)
                right, asked = right + bool(found), asked + 1
        # A sample that is unwound after the library is gone has no name.
        assert right > 10 and right > asked / 2, (method, right, asked, len(profile.samples))


# Harm ---------------------------------------------------------------------------------------------

@test("the program's output and status are its own; one that a signal ends does so here")
def own_status(folder):
    _, done = record(folder, "/bin/sh", "-c", "echo out; echo err >&2; exit 7", status=7)
    assert done.stdout == "out\n" and done.stderr.startswith("err\nfathom: "), done
    _, done = record(folder, "/bin/sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
    _, done = record(folder, "/bin/cat", options=["-q"], input="in\n")
    assert done.stdout == "in\n" and not done.stderr, done


@test("a program whose end nobody can wait for, as SIGCHLD is ignored: the recording ends with it")
def not_waited_for(folder):
    for method in METHODS:
        out = os.path.join(folder, method)
        done = execute("sh", "-c", 'trap "" CHLD; exec "$@"', "sh", FATHOM, "record", f"--method={method}", "-o", out, "--", "sleep", "0.2")
        need_perf(done)
        assert done.returncode == 0 and Profile(out).end, done


@test("a recorder that is killed leaves a profile up to there; the program runs on")
def killed(folder):
    path = program(folder, "shares")
    out = os.path.join(folder, "profile")
    with Running([FATHOM, "record", "-o", out, "--", path, 1, 5]) as recorder:
        deadline = time.monotonic() + HANG_SECONDS
        while time.monotonic() < deadline and recorder.is_running() and \
                not (os.path.exists(out) and os.path.getsize(out) > 3000):
            time.sleep(0.05)
        if not recorder.is_running() and recorder.process.wait() == 2:
            raise tap.Skip("perf events cannot be used here")
        recorder.kill()
        profile = Profile(out)
    assert len(profile.samples) > 50 and profile.end is None
    assert whole(profile) > 0.9, whole(profile)


@test("a thousand children, one after the other: each is known; their time is what they have measured")
def forks(folder):
    path = program(folder, "forks")
    for method in METHODS:
        profile, done = record(folder, path, 1000, 0.0003, options=[f"--method={method}"])
        least, most = map(int, done.stdout.split())
        found = sum(weights(profile).values())
        # Counts of perf events begin a moment after those of the process, and end a moment before them.
        bounds = (0.99 * least - 1000 * SWITCH, 1.01 * most + 20e6)
        assert bounds[0] <= found <= bounds[1], (method, found, least, most)
        pids = {t.pid for t in profile.threads if t.name == "forks"}
        assert method != "perf-events" or len(pids) == 1001, (method, len(pids))


@test("a process ID that is given again: samples of each process have its own functions", needs_root=True)
def again(folder):
    names = ("alpha", "beta", "gamma")
    paths = [build_text(os.path.join(folder, name), f"static volatile long sink;\n__attribute__((noinline)) void do_{name}(void)\n"
                        "{ for (long i = 0; i < 200000000; i++) sink += i; }\n" f"int main(void) {{ do_{name}(); return 0; }}\n")
             for name in names]
    for method in METHODS:
        profile, done = record(folder, program(folder, "again"), *paths, options=[f"--method={method}"])
        pid = int(done.stdout)
        if not pid:
            raise tap.Skip("the kernel gives no process ID that is asked for")
        seen = collections.Counter()
        for sample in profile.samples:
            thread = profile.threads[sample.thread]
            files = {os.path.basename(profile.modules[x.module].path) for x in profile.stack(sample.node)} & set(names)
            if thread.pid == pid and sample.part == SAMPLED and files:
                # Before exec() it runs the program that starts it.
                assert files == {thread.name}, (method, thread, files)
                seen[thread.name] += 1
        assert all(seen[name] for name in names), (method, seen)


@test("a program with more rights than its user: it runs as it does alone, and nothing of it is shown", needs_root=True)
def more_rights(folder):
    path = program(folder, "shares")
    os.chmod(path, 0o4755)
    os.chmod(folder, 0o755)
    for method in METHODS:
        profile, done = record(folder, "sh", "-c", f"{path} 1 0.1; echo $?", user=NOBODY, options=[f"--method={method}"])
        assert re.search(r"\nprocess .*\n0\n$", done.stdout), (method, done)
        for sample in profile.samples:
            inside = {os.path.basename(profile.modules[x.module].path) for x in profile.stack(sample.node)}
            assert "shares" not in inside, (method, sample, inside)


@test("a program that is stopped, goes on, and is killed: a whole profile, and its end here as there")
def stopped_and_killed(folder):
    path = program(folder, "shares")
    for method in METHODS:
        out = os.path.join(folder, method)
        with Running([FATHOM, "record", f"--method={method}", "-o", out, "--", path, 1, 1000], stderr=-1) as recorder:
            def is_sampled():
                return not recorder.is_running() or (os.path.exists(out) and os.path.getsize(out) > 2000)
            until(is_sampled, "samples")
            if not recorder.is_running() and recorder.process.wait() == 2:
                raise tap.Skip("perf events cannot be used here")
            with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as file:
                target = int(file.read().split()[0])
            os.kill(target, signal.SIGSTOP)
            until(lambda: state_of(target) == "T", "the program to stop")
            time.sleep(0.05)
            stopped, size = time.monotonic_ns(), os.path.getsize(out)
            os.kill(target, signal.SIGCONT)
            until(lambda: any(s.ns + int(p.about["began"]) > stopped + 20000000 and s.part == SAMPLED
                              for p in [Profile(out)] for s in p.samples), "samples after it has gone on")
            os.kill(target, signal.SIGKILL)
            assert recorder.process.wait(HANG_SECONDS) == -signal.SIGKILL, recorder.process.returncode
        profile = Profile(out)
        assert profile.end and whole(profile) > 0.9, (method, profile.end, whole(profile))


@test("a recorder that is stopped: the program runs on to its end, and what found no room is counted")
def recorder_stopped(folder):
    path = program(folder, "shares")
    out = os.path.join(folder, "profile")
    with Running([FATHOM, "record", "-e", "task-clock", "-F", 5000, "-o", out, "--", path, 1, 4], stderr=-1) as recorder:
        until(lambda: not recorder.is_running() or (os.path.exists(out) and os.path.getsize(out) > 2000), "samples")
        if not recorder.is_running() and recorder.process.wait() == 2:
            raise tap.Skip("perf events cannot be used here")
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as file:
            target = int(file.read().split()[0])
        recorder.signal(signal.SIGSTOP)
        until(lambda: state_of(target) in ("Z", None), "the program's end")
        recorder.signal(signal.SIGCONT)
        printed = recorder.process.stdout.read()
        said = recorder.process.stderr.read()
        assert recorder.process.wait(HANG_SECONDS) == 0, said
    profile = Profile(out)
    profile.samples = [s for s in profile.samples if s.part in (SAMPLED, KERNEL_HIDDEN, UNSAMPLED)]
    assert profile.end and "lost" in said, said
    check_weight(profile, printed)


@test("--for, --max-size and -F: how long, how much, how often")
def limits(folder):
    path = program(folder, "shares")
    profile, _ = record(folder, path, 1, 1, options=["--for", "300ms"])
    assert 0.25e9 < profile.end < 30e9 and sum(weights(profile).values()) < 0.9e9 + profile.end, profile.end
    profile, done = record(folder, path, 1, 1, options=["--max-size", "4K"])
    assert 4096 <= profile.size < 20000 and "--max-size" in done.stderr, (profile.size, done.stderr)
    slow, _ = record(folder, path, 1, 1, options=["-F", 99])
    fast, _ = record(folder, path, 1, 1, options=["-F", 1999])
    n_slow, n_fast = (sum(s.part == SAMPLED for s in p.samples) for p in (slow, fast))
    assert 50 < n_slow < 150 and 10 * n_slow < n_fast < 2500, (n_slow, n_fast)
    assert (slow.about["frequency"], fast.about["frequency"]) == ("99", "1999")


@test("what cannot be recorded: one line that says why")
def refused(folder):
    out = os.path.join(folder, "profile")
    lacking = os.path.join(folder, "nothing")
    done = execute(FATHOM, "record", "-o", out, "--", lacking, status=(127, 2))
    need_perf(done)
    assert done.returncode == 127 and lacking in done.stderr, done
    for arguments, word in ((["-p", "0"], "number of a process"), (["-p", "1x"], "number of a process"),
                            (["-e", "sleep", "--", "true"], "no event"), (["--method=guess", "--", "true"], "no method"), (["-F", "0", "--", "true"], "-F"),
                            (["-p", "1", "--", "true"], "either"), ([], "PROGRAM"), (["-p", "4194399"], "no such process"),
                            (["-o", f"{folder}/a/b", "--", "true"], "No such file")):
        done = execute(FATHOM, "record", "-o", out, *arguments, status=2)
        assert word in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, (arguments, done)
    most = most_samples()
    if most < 100000:
        done = execute(FATHOM, "record", "-o", out, "-F", most + 1, "--", "/bin/true", status=2)
        assert "kernel.perf_event_max_sample_rate" in done.stderr, done
    # A device is no file to be removed, and an older profile stays where none is made.
    for path in (os.path.join(folder, "null"), os.path.join(folder, "older")):
        os.symlink("/dev/null", path) if path.endswith("null") else shutil.copy(FATHOM, path)
        before = os.lstat(path), os.stat(path)
        execute(FATHOM, "record", "-o", path, "--", lacking, status=127)
        after = os.lstat(path), os.stat(path)
        assert [(s.st_ino, s.st_size, s.st_mode) for s in before] == [(s.st_ino, s.st_size, s.st_mode) for s in after], path
    filtered = build(os.path.join(folder, "refused"), os.path.join(HERE, "..", "lib", "programs", "refused.c"), "-DCALL=SYS_perf_event_open")
    done = execute(filtered, FATHOM, "record", "--method=perf-events", "-o", out, "--", "/bin/true", status=2)
    assert "perf_event_paranoid" in done.stderr and "container" in done.stderr, done
    assert not os.path.exists(out)
    done = execute(filtered, FATHOM, "record", "-o", out, "--", "/bin/true", status=0)
    assert "looked at from outside" in done.stderr and Profile(out).about["method"] == "polling", done


@test("a full disk: said, and the program runs on to its end", needs_root=True)
def full_disk(folder):
    path = program(folder, "shares")
    done = execute(FATHOM, "record", "-o", "/dev/full", "--", path, 1, 0.3)
    need_perf(done)
    assert done.returncode == 2 and "/dev/full" not in done.stdout and "process" in done.stdout, done
    assert "No space left" in done.stderr or "cannot be written" in done.stderr, done


@test("a user whose memory for rings is used up: a smaller ring, or one line", needs_root=True)
def little_memory(folder):
    path = program(folder, "shares")
    tool = copy_for_all(folder)
    done = execute("sh", "-c", 'ulimit -l 0; exec "$@"', "sh", *as_user(NOBODY - 1, tool, "record", "-q", "-o", "/dev/null", "--", path, "1", "0.3"))
    need_perf(done)
    assert done.returncode == 0 and "process" in done.stdout, done


if __name__ == "__main__":
    sys.exit(SUITE.run())
