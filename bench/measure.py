# SPDX-License-Identifier: MIT
"""Measuring: commands that answer the same question, in turn, in one run; what they cost and what they said."""
import re
import statistics
import subprocess

COLUMNS = ["bench", "tool", "commit", "wall_ms", "min_ms", "max_ms", "cpu_ms", "prepare_ms", "peak_mib", "runs", "answers",
           "fathom_times_faster", "fathom_times_less_cpu", "more"]
RUNS = 5


class Tool:
    """A command, and how to count its answers: the lines of its output that @answer matches, of which there must be
    @expect. @status: what it may end with."""

    def __init__(self, name, command, answer=None, status=(0,), expect=None):
        self.name, self.command, self.answer, self.status, self.expect = name, command, answer, status, expect

    def count(self, stdin, environment):
        """Runs the command once, untimed; the number of its answers."""
        with open(stdin, encoding="ascii") as questions:
            done = subprocess.run(self.command, stdin=questions, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=environment, check=False)
        assert done.returncode in self.status, f"{self.name}: status {done.returncode}: {self.command}"
        if not self.answer:
            return None
        n = len(re.findall(self.answer.encode(), done.stdout, flags=re.M))
        assert self.expect is None or n == self.expect, f"{self.name}: {n} answers, not {self.expect}: {self.command}"
        return n


class Sample:
    def __init__(self, wall_ms, cpu_ms, peak_mib=0.0, prepare_ms=0.0, answers=None, more=""):
        self.wall_ms, self.cpu_ms, self.peak_mib, self.prepare_ms = wall_ms, cpu_ms, peak_mib, prepare_ms
        self.answers, self.more = answers, more


class Bench:
    """Whole processes: from the start of the command to its end, output to /dev/null. @before is called before each run of
    fathom."""

    def __init__(self, name, tools, stdin="/dev/null", runs=RUNS, before=None):
        self.name, self.tools, self.stdin, self.runs, self.before = name, tools, stdin, runs, before

    def check(self, environment):
        """What each tool answers, {name: number}."""
        return {tool.name: tool.count(self.stdin, environment) for tool in self.tools}

    def sample(self, tool, spawn, environment):
        out = subprocess.run([spawn, self.stdin, *tool.command], capture_output=True, text=True, env=environment, check=True)
        wall, user, system, peak, status = map(int, out.stdout.split())
        assert status in tool.status, f"{tool.name}: status {status}: {tool.command}"
        return Sample(wall / 1e6, (user + system) / 1e3, peak / 1024)


class Told(Bench):
    """Programs that measure themselves and print the nanoseconds of their parts, of which @part counts."""

    def __init__(self, name, part, tools, runs=RUNS):
        super().__init__(name, tools, runs=runs)
        self.part = part

    def sample(self, tool, spawn, environment):
        out = subprocess.run(tool.command, capture_output=True, text=True, env=environment, check=True,
                             stdin=subprocess.DEVNULL)
        return Sample(int(out.stdout.split()[self.part]) / 1e6, float("nan"))


class Inside(Bench):
    """Programs that measure look-ups in themselves (self.cc)."""

    def check(self, environment):
        return {}

    def sample(self, tool, spawn, environment):
        out = subprocess.run(tool.command, capture_output=True, text=True, env=environment, check=True)
        wall, cpu, prepared, peak, named = out.stdout.split()
        return Sample(float(wall), float(cpu), float(peak), float(prepared), int(named))


def measure(bench, commit, spawn, environment):
    """Rows of one benchmark: all commands in turn, a round that does not count first."""
    answers = bench.check(environment)
    samples = {tool.name: [] for tool in bench.tools}
    for turn in range(bench.runs + 1):
        for tool in bench.tools:
            if bench.before and tool.name == "fathom":
                bench.before()
            sample = bench.sample(tool, spawn, environment)
            if turn:
                samples[tool.name].append(sample)
    first = samples[bench.tools[0].name]
    for name, own in samples.items():
        median = statistics.median
        walls = [s.wall_ms for s in own]
        said = answers.get(name, own[-1].answers)
        yield {"bench": bench.name, "tool": name, "commit": commit, "wall_ms": median(walls), "min_ms": min(walls),
               "max_ms": max(walls), "cpu_ms": median(s.cpu_ms for s in own), "prepare_ms": median(s.prepare_ms for s in own),
               "peak_mib": median(s.peak_mib for s in own), "runs": len(own), "answers": "" if said is None else said,
               "fathom_times_faster": median(b.wall_ms / a.wall_ms for a, b in zip(first, own)),
               "fathom_times_less_cpu": median(b.cpu_ms / a.cpu_ms if a.cpu_ms else float("nan") for a, b in zip(first, own)),
               "more": own[-1].more}


def merge(rows):
    """Several benches of one name (spread addresses) become one row: the median of their medians."""
    merged = {}
    for row in rows:
        merged.setdefault((row["bench"], row["tool"]), []).append(row)
    for group in merged.values():
        row = dict(group[0])
        for column in ("wall_ms", "cpu_ms", "prepare_ms", "peak_mib", "fathom_times_faster", "fathom_times_less_cpu"):
            row[column] = statistics.median(r[column] for r in group)
        row["min_ms"] = min(r["min_ms"] for r in group)
        row["max_ms"] = max(r["max_ms"] for r in group)
        row["runs"] = sum(r["runs"] for r in group)
        yield row
