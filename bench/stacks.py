# SPDX-License-Identifier: MIT
"""Stacks of processes and cores, beside eu-stack and gdb, with names only: eu-stack has nothing else without options. And
how long each thread was stopped."""
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from measure import Bench, Sample, Tool

HERE = os.path.dirname(os.path.abspath(__file__))
FRAME = r"^#\d+ +0x"


class Pauses(Bench):
    """The time from the request to stop to the release, of each thread: the median of a run stands in the column of
    wall time."""

    def check(self, environment):
        return {}

    def sample(self, tool, spawn, environment):
        out = subprocess.run(tool.command, capture_output=True, text=True, env=environment, check=False)
        assert out.returncode in tool.status, f"status {out.returncode}: {tool.command}"
        pauses = sorted(json.loads(line)["pause_us"] for line in out.stdout.splitlines())
        stopped = [p for p in pauses if p]
        p99 = stopped[min(len(stopped) - 1, len(stopped) * 99 // 100)] if stopped else 0
        return Sample((statistics.median(stopped) if stopped else 0) / 1e3, float("nan"), answers=len(pauses),
                      more=f"{len(stopped)} stopped, p99 {p99} us, longest {pauses[-1]} us")


class Program:
    """A running program, which has said "ready"."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = str(self.process.pid)

    def __enter__(self):
        assert "ready" in self.process.stdout.readline(), self.process.args
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def live(command, name, pid, runs=5, with_gdb=True):
    """All stacks of a process, from the start of the tool to its end."""
    tools = [Tool("fathom", [command, "stack", "--no-cache", "--names-only", pid], FRAME, (0, 1)),
             Tool("eu-stack", ["eu-stack", "-p", pid], FRAME, (0, 1))]
    if with_gdb:
        tools.append(Tool("gdb", ["gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", "thread apply all bt"], r"^#\d+ "))
    return Bench(name, tools, runs=runs)


# Programs that wait, and say when they do.
HEAVY = {
    "node": ["node", "-e", "console.log('ready'); process.stdin.resume()"],
    "python3": [sys.executable, "-c", "import threading, time\nfor _ in range(7):\n  threading.Thread(target=time.sleep, args=(3600,),"
                " daemon=True).start()\nprint('ready', flush=True)\ntime.sleep(3600)"],
    "perl": ["perl", "-e", "$| = 1; print qq(ready\\n); sleep 3600"],
    "gdb": ["gdb", "-q", "-nx", "-ex", "echo ready\\n"],
}
JAVA = "public class Ready { public static void main(String[] a) throws Exception { System.out.println(\"ready\"); Thread.sleep(3600000); } }"


def heavy_benches(command, folder):
    programs = dict(HEAVY)
    if shutil.which("java"):
        source = os.path.join(folder, "Ready.java")
        with open(source, "w", encoding="ascii") as f:
            f.write(JAVA)
        programs["java"] = ["java", source]
    for name, words in programs.items():
        if shutil.which(words[0]):
            with Program(*words) as program:
                yield live(command, f"stack-{name}", program.pid)


def stack_benches(command, folder):
    program = os.path.join(folder, "stacks")
    subprocess.run(["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-fno-inline", "-pthread", "-o", program, os.path.join(HERE, "stacks.c")],
                   check=True)
    for threads, depth, runs in ((1, 50, 11), (32, 50, 11), (2000, 10, 3)):
        with Program(program, str(threads), str(depth)) as asleep:
            # gdb takes minutes for 2,000 threads on a busy machine.
            yield live(command, f"stack-{threads}-threads", asleep.pid, runs, threads < 2000)
            if threads == 32:
                yield Bench("stack-32-threads-lines", [
                    Tool("fathom", [command, "stack", "--no-cache", asleep.pid], FRAME, (0, 1)),
                    Tool("eu-stack", ["eu-stack", "-s", "-i", "-p", asleep.pid], FRAME, (0, 1))])
            yield Pauses(f"stack-{threads}-threads-all", [
                Tool("fathom", [command, "stack", "--no-cache", "--names-only", "--json", "--stop=all", asleep.pid],
                     status=(0, 1))], runs=runs)
    with Program(program, "3", "20", "busy") as busy:
        yield Pauses("stack-busy", [Tool("fathom", [command, "stack", "--no-cache", "--names-only", "--json", busy.pid],
                                         status=(0, 1))], runs=51)
    with Program(program, "5", "40") as asleep:
        subprocess.run(["gcore", "-o", f"{folder}/stacks", asleep.pid], check=True, capture_output=True)
    core = glob.glob(f"{folder}/stacks.*")[0]
    yield Bench("stack-core", [
        Tool("fathom", [command, "stack", "--no-cache", "--names-only", core], FRAME, (0, 1)),
        Tool("eu-stack", ["eu-stack", f"--core={core}", "-e", program], FRAME, (0, 1)),
        Tool("gdb", ["gdb", "-q", "-nx", "-batch", program, core, "-ex", "thread apply all bt"], r"^#\d+ ")], runs=11)
    os.unlink(core)
    yield from heavy_benches(command, folder)
