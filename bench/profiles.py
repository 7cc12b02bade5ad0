# SPDX-License-Identifier: MIT
"""Profiles: what recording costs a program, whole process, beside perf and gperftools; how large the files are; how long a report
takes. Each tool samples 997 times a second. fathom unwinds while it records, perf does so in its report."""
import glob
import json
import os
import shutil
import signal
import subprocess

from measure import Bench, Tool

HZ = "997"
SOURCE = "#include <algorithm>\n#include <functional>\n#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\n" \
         "int main(int argc, char **argv)\n{\n\tstd::map<std::string, std::function<bool(const std::string &)>> all;\n" \
         "\tall[\"re\"] = [](const std::string &s) { return std::regex_search(s, std::regex(\"a(b|c)*d\")); };\n" \
         "\tfor (int i = 1; i < argc; i++)\n\t\tfor (const auto &one : all)\n\t\t\tstd::cout << one.second(argv[i]) << '\\n';\n}\n"
# Two threads that work, as long as two processors are there.
BUSY = "#include <pthread.h>\nstatic void *run(void *data)\n{\n\tfor (volatile long i = 0; i < 1500000000; i++)\n\t\t;\n\treturn data;\n}\n" \
       "int main(void)\n{\n\tpthread_t t;\n\n\tpthread_create(&t, 0, run, 0);\n\trun(0);\n\treturn pthread_join(t, 0);\n}\n"
# A byte goes to and fro between two threads of one processor: two switches each time.
SWITCHES = 100000
PING = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <sched.h>\n#include <unistd.h>\nstatic int a[2], b[2];\n" \
       f"static void *run(void *data)\n{{\n\tchar c;\n\n\tfor (int i = 0; i < {SWITCHES // 2}; i++)\n" \
       "\t\tif (read(a[0], &c, 1) != 1 || write(b[1], &c, 1) != 1)\n\t\t\t_exit(1);\n\treturn data;\n}\n" \
       "int main(void)\n{\n\tpthread_t t;\n\tcpu_set_t one;\n\tchar c = 0;\n\n\tCPU_ZERO(&one);\n\tCPU_SET(sched_getcpu(), &one);\n" \
       "\tif (sched_setaffinity(0, sizeof one, &one) || pipe(a) || pipe(b))\n\t\treturn 1;\n\tpthread_create(&t, 0, run, 0);\n" \
       f"\tfor (int i = 0; i < {SWITCHES // 2}; i++)\n\t\tif (write(a[1], &c, 1) != 1 || read(b[0], &c, 1) != 1)\n\t\t\treturn 1;\n" \
       "\treturn pthread_join(t, 0);\n}\n"
SCRIPT = "function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }\nfor (let i = 0; i < 150; i++) fibonacci(30);\n"
# A usual load.
LOAD = "import os, socket, subprocess, threading, time\n" \
       "def duty():\n\twhile True:\n\t\tend = time.thread_time() + 0.03\n\t\twhile time.thread_time() < end:\n\t\t\tsum(range(1000))\n" \
       "\t\ttime.sleep(0.07)\ndef timer():\n\twhile True:\n\t\ttime.sleep(0.1)\n" \
       "def shell():\n\twhile True:\n\t\tsubprocess.run(['ls', '/usr/lib'], stdout=subprocess.DEVNULL)\n\t\ttime.sleep(0.5)\n" \
       "def ping(s):\n\twhile True:\n\t\ts.recv(1)\n\t\ttime.sleep(0.002)\n\t\ts.send(b'x')\n" \
       "a, b = socket.socketpair()\na.send(b'x')\nfor part in (lambda: ping(a), lambda: ping(b), shell):\n\tif os.fork() == 0:\n\t\tpart()\n" \
       "for _ in range(20):\n\tthreading.Thread(target=timer, daemon=True).start()\nduty()\n"


class Recorded(Bench):
    """Commands that write a profile, @paths by tool: how large it is, and what fathom says of its samples."""

    def __init__(self, name, tools, paths, command):
        super().__init__(name, tools)
        self.paths, self.command = paths, command

    def check(self, environment):
        return {}

    def sample(self, tool, spawn, environment):
        path = self.paths.get(tool.name)
        sample = super().sample(tool, spawn, environment)
        if path:
            sample.more = f"{os.path.getsize(path) / 1024:.0f} KiB"
            if tool.name.startswith("fathom"):
                shown = subprocess.run([self.command, "report", "--json", "--names-only", path], capture_output=True, text=True, check=True)
                head = json.loads(shown.stdout.splitlines()[0])
                sample.answers = head["samples"]
                sample.more += f", {100 * head['whole'] / max(1, head['stacks']):.1f} % of the stacks whole, {head['lost']} lost"
        return sample


class Watched(Bench):
    """Commands that show the machine live, for ten seconds or so, of a usual load: one that has a processor for 30 % of the time, threads
    with timers, two that answer each other, a program each half second. How much of a processor each has taken."""

    def __init__(self, name, tools, folder):
        super().__init__(name, tools, runs=3)
        self.load = os.path.join(folder, "load.py")
        with open(self.load, "w", encoding="ascii") as f:
            f.write(LOAD)

    def check(self, environment):
        return {}

    def sample(self, tool, spawn, environment):
        with subprocess.Popen(["python3", self.load], start_new_session=True) as load:
            sample = super().sample(tool, spawn, environment)
            os.killpg(load.pid, signal.SIGKILL)
        sample.more = f"{100 * sample.cpu_ms / sample.wall_ms:.2f} % of a processor"
        return sample


def compiled(folder, name, text, *flags):
    source, path = os.path.join(folder, name + ".c"), os.path.join(folder, name)
    with open(source, "w", encoding="ascii") as f:
        f.write(text)
    subprocess.run(["gcc", "-O2", "-pthread", "-o", path, source, *flags], check=True)
    return path


def recorders(command, folder, words):
    """Tools that record @words, and the profiles that they write."""
    paths = {name: os.path.join(folder, "profile." + name) for name in ("fathom", "fathom-no-waits", "perf-fp", "perf-dwarf", "gperftools",
                                                                      "bpftrace")}
    record = [command, "record", "-q", "-F", HZ]
    tools = [Tool("fathom", [*record, "-o", paths["fathom"], "--", *words]), Tool("none", words),
             Tool("fathom-no-waits", [*record, "--no-off-cpu", "-o", paths["fathom-no-waits"], "--", *words])]
    if shutil.which("perf"):
        perf = ["perf", "record", "-q", "-F", HZ]
        tools += [Tool("perf-fp", [*perf, "-g", "-o", paths["perf-fp"], "--", *words]),
                  Tool("perf-dwarf", [*perf, "--call-graph", "dwarf,65528", "-o", paths["perf-dwarf"], "--", *words])]
    library = next(iter(glob.glob("/usr/lib/*/libprofiler.so")), None)
    if library:
        tools.append(Tool("gperftools", ["env", f"LD_PRELOAD={library}", f"CPUPROFILE={paths['gperftools']}",
                                         f"CPUPROFILE_FREQUENCY={HZ}", *words]))
    if traces_kernel():
        # It counts stacks of the program alone, not of its children, and writes them as text.
        count = f"profile:hz:{HZ} /pid == cpid/ {{ @[ustack] = count(); }}"
        tools.append(Tool("bpftrace", ["bpftrace", "-q", "-o", paths["bpftrace"], "-e", count, "-c", " ".join((shutil.which(words[0]), *words[1:]))]))
    return tools, paths


def traces_kernel():
    """Whether bpftrace is there, and may trace this kernel."""
    return shutil.which("bpftrace") and not subprocess.run(["bpftrace", "-q", "-e", "BEGIN { exit(); }"], capture_output=True, check=False).returncode


def profile_benches(command, folder):
    # A picture is of a time before it, so that the last of eleven is made after 11.6 s.
    yield Watched("top-machine", [Tool("fathom", [command, "top", "-a", "--json", "--count=11"]),
                                  Tool("fathom-names-only", [command, "top", "-a", "--json", "--names-only", "--count=11"])], folder)
    source = os.path.join(folder, "profiled.cc")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    programs = {"busy": [compiled(folder, "busy", BUSY)], "switches": [compiled(folder, "ping", PING)]}
    clang = next((tool for tool in ("clang++", "clang++-19") if shutil.which(tool)), None)
    if clang:
        programs["clang"] = [clang, "-O2", "-c", "-o", "/dev/null", source]
    if shutil.which("node"):
        script = os.path.join(folder, "profiled.js")
        with open(script, "w", encoding="ascii") as f:
            f.write(SCRIPT)
        programs["node"] = ["node", script]
    for name, words in programs.items():
        tools, paths = recorders(command, folder, words)
        yield Recorded(f"record-{name}", tools, paths, command)
        if name == "clang":
            reports = [Tool("fathom", [command, "report", "--no-cache", paths["fathom"]], r"^ +total .* what calls what$", expect=1)]
            for kind in ("perf-fp", "perf-dwarf"):
                if os.path.exists(paths[kind]):
                    reports.append(Tool(kind, ["perf", "report", "--stdio", "--no-inline", "-i", paths[kind]]))
            yield Bench("report-clang", reports)
