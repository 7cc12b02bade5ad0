# SPDX-License-Identifier: MIT
"""Recordings: of programs whose own clocks, or getrusage(2), say what they have used; how they end; of this process itself."""
import os

import tap

from building import build, build_text
from suite import MODULE, need_module, python, test

# Reads a profile without the module's help.
HEAD = """
import atexit, resource, subprocess, time
from profile_file import SAMPLED, UNSAMPLED, KERNEL_HIDDEN, WAITING, Profile


def cpu(path):
    return sum(s.weight for s in Profile(path).samples if s.part in (SAMPLED, UNSAMPLED, KERNEL_HIDDEN))


def near(got, wanted, share):
    assert abs(got - wanted) <= share * wanted, (got, wanted)


def refusal(function):
    try:
        return function()
    except fathom.Error as e:
        return e
"""
# Skips where the kernel, a container or the user's rights leave no perf events.
NEED_PERF = """
probe = refusal(lambda: fathom.record("probe", ["true"], method="perf-events"))
if isinstance(probe, fathom.Error):
    print("no perf events:", probe)
    sys.exit(77)
"""
LIBRARIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")


def recording(folder, text, *arguments):
    env = {"PYTHONPATH": os.pathsep.join((MODULE, LIBRARIES)), "PYTHONFAULTHANDLER": "1"}
    said = python(folder, HEAD + text, *arguments, env=env, cwd=folder, status=(0, 77))
    if said.startswith("no perf events:"):
        raise tap.Skip(f"perf events cannot be used here: {said.strip()}")
    return said


@test("a program is recorded into a file: its weight is what getrusage says of it; what it prints and how it ends is its own")
def _(folder):
    need_module()
    # Spends processor time, then says how much, in nanoseconds, of itself and its threads; ends with status 7.
    path = build_text(os.path.join(folder, "busy"), """
#include <stdio.h>
#include <sys/resource.h>
static long long used(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}
__attribute__((noinline)) void burn(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}
int main(void)
{
	while (used() < 400000000)
		burn();
	printf("%lld\\n", used());
	return 7;
}
""")
    recording(folder, NEED_PERF + """
reader, writer = os.pipe()
out = os.dup(1)
os.dup2(writer, 1)
got = fathom.record("busy.profile", [sys.argv[1]], event="task-clock")
os.dup2(out, 1)
used = int(os.read(reader, 100))
assert got.returncode == 7 and got.event == "task-clock" and got.method == "perf-events", got
assert got.threads == 1 and not got.cut and got.lost == 0 and got.bytes == os.path.getsize("busy.profile")
assert os.stat("busy.profile").st_mode & 0o777 == 0o600
# Starting and ending is its time, too, which it does not see itself.
near(got.weight, used, 0.05)
assert got.weight == cpu("busy.profile") and got.samples == sum(s.part == SAMPLED for s in Profile("busy.profile").samples)
with fathom.profile("busy.profile") as profile:
    assert profile.info.weight == got.weight and profile.info.command == sys.argv[1]
    burn = next(row for row in profile.report().rows if row.name == "burn")
    near(burn.self, used, 0.3)
    assert profile.info.unit == "ns" and profile.info.complete
# No waits, at another rate, and the end of a child that a signal has ended.
got = fathom.record(b"sleep.profile", ["sh", "-c", "sleep 0.2; kill -9 $$"], waits=False, frequency=1999)
assert got.returncode == -9 and got.waiting_ns == got.runnable_ns == 0 and fathom.profile("sleep.profile").info.waits == 0
assert fathom.profile("sleep.profile").info.frequency == 1999
got = fathom.record("cut.profile", [sys.argv[1]], max_bytes=500)
assert got.cut and got.returncode == 7
""", path)


@test("processes are recorded, for a time and until a function says so: the waits are those of a program that sleeps")
def _(folder):
    path = build_text(os.path.join(folder, "sleeper"), """
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void doze(void)
{
	struct timespec t = { .tv_nsec = 20000000 };
	nanosleep(&t, NULL);
}
int main(void)
{
	write(1, "x", 1);
	for (;;)
		doze();
}
""")
    recording(folder, NEED_PERF + """
child = subprocess.Popen([sys.argv[1]], stdout=subprocess.PIPE)
atexit.register(child.kill)
child.stdout.read(1)
begin = time.monotonic_ns()
got = fathom.record("timed", pids=child.pid, seconds=0.5)
took = time.monotonic_ns() - begin
assert got.returncode is None and child.poll() is None and 500000000 <= got.wall_ns <= took, (got, took)
# Its waits and its processor time are all the time that it was recorded.
near(got.waiting_ns + got.runnable_ns + sum(p.weight for p in Profile("timed").samples if p.part < WAITING and
     Profile("timed").about["unit"] == "ns"), got.wall_ns, 0.15)
rows = {row.name: row for row in fathom.profile("timed").report(time="waiting").rows}
near(rows["doze"].total, got.waiting_ns, 0.15)
asked = []
got = fathom.record("until", pids=[child.pid], until=lambda: asked.append(None) or len(asked) == 5)
assert len(asked) == 5 and child.poll() is None and fathom.profile("until").info.complete
# It is not asked again while the program runs on.
answers = iter([False, True])
assert fathom.record("over", ["sleep", "0.5"], until=lambda: next(answers)).returncode == 0
# All of the machine, as long as a program runs.
got = refusal(lambda: fathom.record("all", ["sleep", "0.3"], pids="all"))
if isinstance(got, fathom.Error):
    assert "perf" in str(got), got
else:
    assert got.returncode == 0 and {"sleep", "sleeper"} <= {t.name for t in Profile("all").threads}
# It ends with the process.
killer = threading.Thread(target=lambda: (time.sleep(0.2), child.kill()))
killer.start()
got = fathom.record("gone", pids=[child.pid])
killer.join()
assert child.wait() == -9 and fathom.profile("gone").info.complete
""", path)


@test("Ctrl-C ends a recording and keeps the file, of processes as of a program, which is ended by SIGTERM, then by SIGKILL")
def _(folder):
    recording(folder, """
def interrupted(function, times=1, raises=KeyboardInterrupt):
    def later():
        for _ in range(times):
            while not os.path.exists("begun"):
                time.sleep(0.01)
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=later)
    thread.start()
    try:
        function()
    except raises:
        pass
    else:
        raise AssertionError("it was not interrupted")
    finally:
        thread.join()


def check(path):
    profile = fathom.profile(path)
    assert profile.info.complete and Profile(path).end, profile.info
    os.unlink("begun")


program = "import os, signal, sys, time; {}; open('begun', 'w').close(); time.sleep(1000)"
child = subprocess.Popen([sys.executable, "-c", program.format("pass")])
interrupted(lambda: fathom.record("pids", pids=child.pid))
assert child.poll() is None
child.kill()
child.wait()
check("pids")
# A handler of its own notes how it was ended.
notes = "signal.signal(15, lambda *_: (open('term', 'w').close(), os._exit(0)))"
interrupted(lambda: fathom.record("program", [sys.executable, "-c", program.format(notes)]))
assert os.path.exists("term")
check("program")
# One that does not heed SIGTERM is waited for, until it is interrupted again; so is one that was recorded for a time.
ignores = "signal.signal(15, signal.SIG_IGN)"
interrupted(lambda: fathom.record("stubborn", [sys.executable, "-c", program.format(ignores)]), times=2)
check("stubborn")
interrupted(lambda: fathom.record("longer", [sys.executable, "-c", program.format("pass")], seconds=0.05))
check("longer")
# What until() raises ends it likewise.
open("begun", "w").close()
try:
    fathom.record("raised", [sys.executable, "-c", program.format("pass")], until=lambda: 1 // 0)
except ZeroDivisionError:
    check("raised")
else:
    raise AssertionError("nothing was raised")
""")


@test("with fathom.recording(): what this process does in the body, and in its threads, is in the file; and nothing else")
def _(folder):
    path = build(os.path.join(folder, "burn.so"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "burn.c"),
                 "-shared", "-fPIC")
    recording(folder, NEED_PERF + """
import ctypes
library = ctypes.CDLL(sys.argv[1])
for name in ("before", "inside", "inside_thread"):
    getattr(library, name).restype = ctypes.c_uint64
library.before(ctypes.c_uint64(200000000))
used = []
with fathom.recording("own", event="task-clock", frequency=1999) as recording:
    thread = threading.Thread(target=lambda: used.append(library.inside_thread(ctypes.c_uint64(200000000))))
    thread.start()
    inside = library.inside(ctypes.c_uint64(300000000))
    thread.join()
assert not [t for t in threading.enumerate() if t.name == "fathom.recording"]
got = recording.result
assert got.returncode is None and got.samples > 100 and got.weight == cpu("own"), got
rows = {row.name: row for row in fathom.profile("own").report().rows}
near(rows["inside"].total, inside, 0.1)
near(rows["inside_thread"].total, used[0], 0.1)
assert "before" not in rows
# It fails where it begins, and ends where the body raises.
try:
    with fathom.recording("nowhere/x"):
        raise AssertionError("it has begun")
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.OS and e.detail.file == "nowhere/x"
try:
    with fathom.recording("raised") as recording:
        raise ZeroDivisionError
except ZeroDivisionError:
    assert recording.result.wall_ns and fathom.profile("raised").info.complete
try:
    with recording:
        raise AssertionError("it has begun again")
except ValueError:
    pass
""", path)


@test("what cannot be recorded is an error, and leaves the file that was there: no such program, process, option")
def _(folder):
    recording(folder, """
open("kept", "w").write("as it was")
for path in ("kept", "new"):
    e = refusal(lambda: fathom.record(path, ["/no/such/program"]))
    assert e.code == fathom.ErrorCode.NOT_FOUND, e
    e = refusal(lambda: fathom.record(path, pids=2 ** 31 - 1))
    assert e.code == fathom.ErrorCode.NOT_FOUND, e
assert open("kept").read() == "as it was" and not os.path.exists("new")
e = refusal(lambda: fathom.record("/dev/full", ["true"]))
assert e.code == fathom.ErrorCode.OS and str(e).startswith("/dev/full: "), e
for wrong, kind in ((dict(), ValueError), (dict(program=["true"], pids=1), ValueError), (dict(program="true"), TypeError),
                    (dict(program=["true"], event="tea"), ValueError), (dict(program=["true"], method="asking"), ValueError),
                    (dict(program=["true"], seconds=0), ValueError), (dict(program=["true"], seconds=-1), ValueError),
                    (dict(program=["a\\0b"]), ValueError), (dict(program=[]), fathom.Error), (dict(pids=[]), fathom.Error),
                    (dict(program=["true"], frequency=200000), fathom.Error)):
    try:
        fathom.record("new", **wrong)
    except kind:
        assert not os.path.exists("new"), wrong
        continue
    raise AssertionError(wrong)
# A process cannot stop its own threads.
e = refusal(lambda: fathom.record("new", pids=[os.getpid()], seconds=0.1, method="polling"))
assert e.code == fathom.ErrorCode.UNSUPPORTED and "its own threads" in str(e) and not os.path.exists("new"), e
# Polling is another way to record a program, wherever a child may be traced.
got = refusal(lambda: fathom.record("polled", ["sleep", "0.3"], method="polling"))
if isinstance(got, fathom.Error):
    assert got.code in (fathom.ErrorCode.OS, fathom.ErrorCode.UNSUPPORTED), got
else:
    assert got.method == "polling" and fathom.profile("polled").info.method == "polling", got
# SIGPIPE ends a program, although Python ignores it.
got = fathom.record("pipe", ["sh", "-c", "yes | head -n 1 > /dev/null; kill -PIPE $$; exit 3"])
assert got.returncode == -signal.SIGPIPE, got
""")
