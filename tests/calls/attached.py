# SPDX-License-Identifier: MIT
"""Tests of -p: processes that are attached to while they run, and are left as they were."""
import contextlib
import glob
import json
import os
import random
import re
import signal
import subprocess
import time

import building

from amounts import amount
from ask import FATHOM, execute, fathom
from running import state_of, tracer_of, until
from traced import CLANG, SITES, build, counts, test


def mappings(pid):
    """Those of the runtime, also of one that was left."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return [line for line in maps if "memfd:fathom-trace" in line]


class Server:
    """The program that serves lines."""

    def __init__(self, path, *words):
        self.process = subprocess.Popen([path, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.path = path
        assert self.answer() == "ready"

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(f"the program has ended, status {self.process.wait()}") from None
        return self.answer()

    def text(self):
        """Its text, and that of the dynamic linker."""
        found = {}
        with open(f"/proc/{self.pid}/mem", "rb") as memory, open(f"/proc/{self.pid}/maps", encoding="utf-8") as maps:
            for line in maps:
                words = line.split()
                if len(words) > 5 and "x" in words[1] and (words[5] == self.path or "ld-linux" in words[5]):
                    low, high = (int(n, 16) for n in words[0].split("-"))
                    memory.seek(low)
                    found[low] = memory.read(high - low)
        return found

    def end(self):
        assert self.say("sum") == "summed"
        assert self.say("end") == "0 wrong"
        assert self.process.wait() == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class Tracer:
    """fathom trace -p, until it is interrupted."""

    def __init__(self, log, *options, pids):
        self.log = log
        self.before = {pid: set(mappings(pid)) for pid in pids}
        self.process = subprocess.Popen([FATHOM, "trace", "--json", "--log", log, *options, *(w for pid in pids for w in ("-p", str(pid)))],
                                        stderr=subprocess.PIPE, text=True)

    def wait_until_it_records(self, server):
        until(lambda: self.process.poll() is not None or set(mappings(server.pid)) - self.before[server.pid], "a mapping of the tracer's")
        assert self.process.poll() is None, self.process.stderr.read()
        # Text is changed while all threads are stopped: what is answered comes after that.
        server.say("calls 0")

    def leave(self, how=signal.SIGINT):
        self.process.send_signal(how)
        said = self.process.communicate(timeout=60)[1]
        assert self.process.returncode == 0, said
        with open(self.log, encoding="utf-8") as f:
            return [json.loads(line) for line in f]


def differences(before, now):
    """Where two texts differ: address, and bytes of both."""
    return [(hex(low + i), before[low][i:i + 8].hex(), now[low][i:i + 8].hex())
            for low in before for i in range(len(before[low])) if low in now and before[low][i] != now[low][i]] or before.keys() ^ now.keys()


def wait_for_state(pid, state):
    """True, once all its threads are in this state."""
    return until(lambda: {state_of(tid) for tid in os.listdir(f"/proc/{pid}/task")} == {state}, f"state {state} of {pid}")


def serve(folder, *words):
    return Server(build(folder, "served.c", flags=("-O1", SITES, "-pthread")), *words)


@test("attached: each call from then on is told, of threads, children and libraries that come later; Ctrl-C leaves what was there before")
def _(folder):
    plugin = build(folder, "plugin.c", "-shared", "-fPIC", "-DNAME=plugged", out="plugin.so")
    with serve(folder) as server:
        before, maps = server.text(), len(open(f"/proc/{server.pid}/maps", encoding="utf-8").readlines())
        tracer = Tracer(os.path.join(folder, "log"), "--not", "compute", "--not", "mixed", pids=[server.pid])
        tracer.wait_until_it_records(server)
        assert server.text() != before
        assert server.say("calls 12345") == "did 12345"
        assert server.say("thread") == "joined" and server.say("fork") == "child 3"
        loaded = server.say("load " + plugin)
        assert loaded.startswith("loaded") and loaded != "loaded -1", loaded
        events = tracer.leave()
        main = [e for e in events if e["tid"] == server.pid]
        assert counts(main)["counted"] == 12345, counts(main)
        assert counts(main)["do_calls"] == 2 and counts(main)["plug"] == 1, counts(main)
        assert counts([e for e in events if e["function"] == "call_once"])["call_once"] == 1
        child = [e for e in events if e["pid"] != server.pid]
        assert counts(child) == {"counted": 1} and child[-1]["text"] == "status 3", child
        assert server.text() == before and not mappings(server.pid)
        with open(f"/proc/{server.pid}/maps", encoding="utf-8") as f:
            # The library has five.
            assert len(f.readlines()) <= maps + 8
        server.end()


@test(f"attached: {amount(60)} times under load, {amount(60) // 3} times fathom is killed: nothing is interrupted, each answer comes, the text is mended")
def _(folder):
    with serve(folder) as server:
        before = server.text()
        draw = random.Random(7)
        for i in range(amount(60)):
            tracer = Tracer(os.path.join(folder, "log"), "-c", pids=[server.pid])
            for k in range(draw.randrange(1, 4)):
                assert server.say(f"calls {k}") == f"did {k}"
            if i % 3 == 1:
                time.sleep(draw.random() * 0.06)
                tracer.process.kill()
                tracer.process.communicate()
            else:
                tracer.wait_until_it_records(server)
                tracer.leave(draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)))
                assert server.text() == before, (i, differences(before, server.text()))
            assert server.say(f"calls {i}") == f"did {i}"
        server.end()


@test("attached: calls that wait for ever, and that a stop ends, are made once more: no program sees EINTR")
def _(folder):
    path = build(folder, "waiting.c", flags=("-O1", "-g", "-pthread"))
    for how in (["trace", "--json", "--only", "usleep"], ["strace", "-f"]):
        with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout.readline() == "ready\n" and wait_for_state(waiting.pid, "S")
            for _ in range(5):
                log = os.path.join(folder, "log")
                with subprocess.Popen([FATHOM, *how, "-o" if how[0] == "strace" else "--log", log, "-p", str(waiting.pid)],
                                      stderr=subprocess.DEVNULL) as tracer:
                    until(lambda: tracer_of(waiting.pid), "the tracer")
                    time.sleep(0.05)
                    tracer.send_signal(signal.SIGINT)
            said = waiting.communicate("end\n", timeout=60)[0]
        found = dict(line.split() for line in said.splitlines())
        assert set(found.values()) == {"0"} and len(found) == 5, (how, found)


@test(f"attached: {amount(40, 20)} times fathom is killed while it leaves: each answer comes, and the text is mended")
def _(folder):
    with serve(folder) as server:
        before = server.text()
        draw = random.Random(11)
        for i in range(amount(40, 20)):
            tracer = Tracer(os.path.join(folder, "log"), "-c", pids=[server.pid])
            tracer.wait_until_it_records(server)
            tracer.process.send_signal(signal.SIGINT)
            time.sleep(draw.random() * 0.006)
            tracer.process.kill()
            tracer.process.communicate()
            assert server.say(f"calls {i}") == f"did {i}"
        tracer = Tracer(os.path.join(folder, "log"), "-c", pids=[server.pid])
        tracer.wait_until_it_records(server)
        tracer.leave(signal.SIGINT)
        assert server.text() == before, differences(before, server.text())
        server.end()


@test(f"attached: slots of long NOPs, and sleds: left, or fathom killed, {amount(24, 6)} times: the program runs on, and its text is as before")
def _(folder):
    # In the midst of what was there a hook that returns to its own call would come out.
    for flags, options in ((["-fxray-instrument", "-fxray-instruction-threshold=1"], ["--exits"]),
                           (["-fpatchable-function-entry=11"], []), (["-fpatchable-function-entry=13,11"], [])):
        with Server(build(folder, "served.c", compiler=CLANG, flags=["-O1", "-pthread", *flags])) as server:
            before = server.text()
            for i in range(amount(24, 6)):
                tracer = Tracer(os.path.join(folder, "log"), "-c", *options, pids=[server.pid])
                tracer.wait_until_it_records(server)
                assert server.text() != before, flags
                if i % 6 == 5:
                    tracer.process.kill()
                    tracer.process.communicate()
                else:
                    assert {c.get("function") for c in tracer.leave()} >= {"counted", "mixed"}, (flags, i)
                    assert server.text() == before, (flags, i, differences(before, server.text()))
                assert server.say(f"calls {i}") == f"did {i}", (flags, i)
            server.end()


@test("attached: a thread stands in the midst of NOPs that are replaced: of a slot, or in front of the function, where a stub comes")
def _(folder):
    for shape, offs in (("16", range(1, 16)), ("5", range(1, 5)), ("18,16", [*range(-15, 0), 1])):
        path = build(folder, "midst.c", flags=["-O1", f"-fpatchable-function-entry={shape}"])
        for off in offs:
            with Server(path, str(off)) as server:
                before = server.text()
                server.process.stdin.write("\n")
                server.process.stdin.flush()
                wait_for_state(server.pid, "T")
                tracer = Tracer(os.path.join(folder, "log"), "-c", pids=[server.pid])
                until(lambda server=server, before=before: server.text() != before, "the change of its text")
                server.process.send_signal(signal.SIGCONT)
                assert server.answer() == "went on", (shape, off)
                tracer.leave()
                assert server.text() == before
                server.process.stdin.close()
                assert server.process.wait() == 0, (shape, off)


def whole_map(pid):
    """Its mappings, but where the heap and stacks end."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return [line.split("-", 1)[0] + line.split(" ", 1)[1] for line in maps if "[stack]" not in line]


@test("attached: a program without sites has the mappings and descriptors that it had, however often it is left, or fathom killed")
def _(folder):
    for lazy in "-Wl,-z,lazy", "-Wl,-z,now":
        with Server(build(folder, "served.c", flags=["-O1", "-pthread", lazy])) as server:
            assert server.say("calls 1") == "did 1" and server.say("thread") == "joined"
            before = (whole_map(server.pid), sorted(os.listdir(f"/proc/{server.pid}/fd")), server.text())
            for i in range(12):
                tracer = Tracer(os.path.join(folder, "log"), *(("--only", "usleep") if i % 4 == 3 else ()), pids=[server.pid])
                tracer.wait_until_it_records(server)
                assert server.say("thread") == "joined"
                if i % 4 == 2:
                    # What it leaves, the next one puts in order, whatever that is to record.
                    tracer.process.kill()
                    tracer.process.communicate()
                    assert server.say("thread") == "joined"
                    continue
                tracer.leave()
                now = (whole_map(server.pid), sorted(os.listdir(f"/proc/{server.pid}/fd")), server.text())
                assert now == before, (i, set(now[0]) ^ set(before[0]), now[1])
            server.end()


@test("attached: a program that has little of a processor others use, and is always in the hook, is left with no mapping")
def _(folder):
    # On one processor: one that is nice runs when the others have had their turns.
    processor = max(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        def start(command, nice, **options):
            process = stack.enter_context(subprocess.Popen(["taskset", "-c", str(processor), "nice", "-n", str(nice), *command], **options))
            stack.callback(process.kill)
            return process
        program = start([build(folder, "hot.c")], 10, stdout=subprocess.PIPE, text=True)
        assert program.stdout.readline() == "ready\n"
        for _ in range(3):
            start(["sh", "-c", "while :; do :; done"], 0)
        for i in range(10):
            fathom("trace", "--lossy", "-c", "-p", program.pid, "--for", "50ms", status=0)
            assert not mappings(program.pid), i
        assert program.poll() is None


@test("attached: the first thread ends, before or while it is traced: all is left as it was")
def _(folder):
    path = build(folder, "leaderless.c", flags=["-O1", "-fno-builtin", "-pthread", "-Wl,-z,now"])
    for ends_before in True, False:
        with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            def say(line, process=process):
                process.stdin.write(line + "\n")
                process.stdin.flush()
                return process.stdout.readline().rstrip("\n")

            def maps(say=say, process=process):
                return [say("maps"), *iter(lambda: process.stdout.readline().rstrip("\n"), ".")]
            assert say("call 3") == "3"
            if ends_before:
                assert say("end") == "ended"
            maps()
            before = maps()
            tracer = Tracer(os.path.join(folder, "log"), "--only", "getppid", pids=[process.pid])
            until(lambda: maps() != before, "a mapping of the tracer's")
            if not ends_before:
                assert say("end") == "ended"
            assert say("call 1000") == "1000"
            events = tracer.leave()
            assert sum(e["count"] for e in events if e["type"] == "call" and e["function"] == "getppid") == 1000, events[-5:]
            now = maps()
            assert now == before, (ends_before, set(now) ^ set(before))
            assert say("call 2") == "2"
            process.stdin.close()
            assert process.wait() == 0


@test("attached: a thread on a stack that lies in other memory of the program: nothing of that changes")
def _(folder):
    # Binding a function takes more of a stack than there is.
    path = build(folder, "fibre.c", "-Wl,-z,now")
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(3):
            assert fathom("trace", "-p", str(process.pid), "--for", "100ms", status=0)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "whole\n"
        process.stdin.close()
        assert process.wait() == 0


@test("attached: several processes; --for; a process that ends; one that is stopped")
def _(folder):
    log = os.path.join(folder, "log")
    with serve(folder) as a, serve(folder) as b:
        tracer = Tracer(log, "--only", "do_calls", pids=[a.pid, b.pid])
        tracer.wait_until_it_records(a)
        tracer.wait_until_it_records(b)
        assert a.say("calls 3") == "did 3" and b.say("calls 4") == "did 4" and b.say("calls 5") == "did 5"
        total = {pid: counts([e for e in events if e["pid"] == pid]) for events in [tracer.leave()] for pid in (a.pid, b.pid)}
        assert total == {a.pid: {"do_calls": 2}, b.pid: {"do_calls": 3}}, total
        begin = time.monotonic()
        done = fathom("trace", "-c", "-p", str(a.pid), "--for", "300ms", status=0)
        assert 0.3 <= time.monotonic() - begin < 20 and "&counted" in done.stderr, done.stderr
        a.process.send_signal(signal.SIGSTOP)
        assert fathom("trace", "-c", "-p", str(a.pid), "--for", "100ms", status=0)
        assert wait_for_state(a.pid, "T")
        a.process.send_signal(signal.SIGCONT)
        a.end()
        tracer = Tracer(log, "--only", "do_calls", pids=[b.pid])
        tracer.wait_until_it_records(b)
        b.end()
        assert tracer.process.wait(timeout=60) == 0
        tracer.process.stderr.close()
        with open(log, encoding="utf-8") as f:
            assert json.loads(f.readlines()[-1])["text"] == "status 0"
    # A program that is run can be left, too; its status is that of fathom.
    path = build(folder, "ends.c")
    done = fathom("trace", "-c", "--for", "500ms", "--", path, "slow", status=7)
    assert done.stdout == "begun\nended\n" and "&counted" in done.stderr


@test("attached: refused, and untouched: gs users, who is traced already, who is not there; one of several")
def _(folder):
    with serve(folder, "gs") as server, serve(folder) as other:
        before = server.text()
        said = fathom("trace", "-p", str(server.pid), status=2).stderr.splitlines()
        assert "gs segment" in said[-1], said
        said = fathom("trace", "-p", str(other.pid), "-p", str(server.pid), status=2).stderr.splitlines()
        assert "gs segment" in said[-1], said
        now = server.text()
        assert now == before, [(hex(low + i), before[low][i], now[low][i]) for low in before for i in range(len(before[low]))
                               if low not in now or before[low][i] != now[low][i]][:20]
        assert not mappings(server.pid) and not mappings(other.pid)
        tracer = Tracer(os.path.join(folder, "log"), "-c", pids=[other.pid])
        tracer.wait_until_it_records(other)
        assert "cannot be traced" in fathom("trace", "-p", str(other.pid), status=2).stderr
        tracer.leave()
        server.end()
        other.end()
    assert "no such process" in fathom("trace", "-p", "4194303", status=2).stderr
    assert fathom("trace", "-p", "0", status=2).stderr and fathom("trace", "-p", "x", status=2).stderr


@test("attached: refused, and untouched: a program of 32 bits")
def _(folder):
    building.need_32_bit()
    small = build(folder, "ends.c", "-static", compiler="i686-linux-gnu-gcc", flags=["-O1"], out="small")
    with subprocess.Popen([small, "slow"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        assert fathom("trace", "-p", str(process.pid), status=2).stderr
        assert process.stdout.read() == "ended\n" and process.wait() == 7


@test("attached: a program whose filters end it if it maps code or shares memory goes on, recorded or not")
def _(folder):
    with serve(folder, "filter") as server:
        before = server.text()
        if os.geteuid():
            assert "only root can suspend" in fathom("trace", "-p", str(server.pid), status=2).stderr
        else:
            tracer = Tracer(os.path.join(folder, "log"), "--only", "do_calls", pids=[server.pid])
            tracer.wait_until_it_records(server)
            assert server.say("calls 7") == "did 7"
            assert counts(tracer.leave()) == {"do_calls": 2}
        assert server.text() == before and not mappings(server.pid)
        server.end()


@test("steps through the hook, in a program whose tracer was killed: at each instruction gdb, and fathom in a core, find the callers")
def _(folder):
    for options in SITES, *amount(("-finstrument-functions", "-pg -mfentry", "-pg"), ("-pg -mfentry",)), "-fpatchable-function-entry=5":
        step_through(folder, options.split())


def step_through(folder, options):
    path = build(folder, "stepped.c", "-Wl,-z,now", flags=["-O1", *options])
    for core in glob.glob(os.path.join(folder, "core.*")):
        os.unlink(core)
    script = os.path.join(folder, "step.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"""
# A stub in front of a function is left for it; other slots are in it.
IS_IN_FRONT = {options == [SITES]}
""" + """
import gdb
for line in "set pagination off", "set debuginfod enabled off", "set confirm off", "tbreak *outer", "continue":
    gdb.execute(line)
CHAIN = ["leaf", "outer", "main"]
last, n, wrong, cores = "outer", 0, [], 0
while n < 1000:
    names, frame = [], gdb.newest_frame()
    while frame:
        names.append(frame.name())
        frame = frame.older()
    if names[0] == "main":
        break
    if names[0] in CHAIN:
        last = names[0]
    expected = CHAIN[CHAIN.index(last) + (names[0] not in CHAIN and IS_IN_FRONT):]
    if [name for name in names if name in CHAIN] != expected:
        wrong.append((hex(gdb.newest_frame().pc()), names))
    if names[0] is None:
        gdb.execute("gcore core.%d.%d" % (cores, len(expected)), to_string=True)
        cores += 1
    gdb.execute("stepi", to_string=True)
    n += 1
print("steps", n, wrong)
""")
    tracer = subprocess.Popen([FATHOM, "trace", "--log", os.path.join(folder, "log"), "--", path], stdout=subprocess.PIPE, text=True)
    pid = int(tracer.stdout.readline())
    try:
        tracer.kill()
        tracer.wait()
        done = execute("gdb", "-q", "-nx", "-batch", "-p", str(pid), "-x", script, cwd=folder)
    finally:
        os.kill(pid, signal.SIGKILL)
        tracer.stdout.close()
    found = re.search(r"^steps (\d+) \[\]$", done.stdout, re.M)
    cores = glob.glob(os.path.join(folder, "core.*"))
    # Three calls are recorded, each by 47 instructions and a stub of three; all but the first of these is in no function.
    assert found and int(found[1]) > 140 and len(cores) > 120, (options, len(cores), done.stdout[-3000:], done.stderr[-1000:])
    for core in cores:
        said = fathom("stack", core, status=0)
        names = [name for name in re.findall(r"^#\d+ +\S+ (\w+)", said.stdout, re.M) if name in ("leaf", "outer", "main")]
        assert names == ["leaf", "outer", "main"][3 - int(core.rsplit(".", 1)[1]):] and not said.stderr, (said.stdout, said.stderr)
        assert os.stat(core).st_size < 20 << 20, "the core has the rings, too"
