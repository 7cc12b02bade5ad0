#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_traces.py OLD NEW: traces some programs by two builds of the command, by each capture method, and compares the events of
each thread one by one: functions, names of system calls, and lines of strace but for what is random or counts time. Needs root:
processes have the same numbers in a namespace of their own, and no random addresses."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "calls", "programs")
PROGRAMS = {
    "lua": ["lua5.4", os.path.join(WORK, "work.lua")],
    "sqlite3": ["sqlite3", "-batch", ":memory:", f".read {os.path.join(WORK, 'work.sql')}"],
    "bash": ["bash", "-c", "for i in 1 2 3 4 5; do x=$(echo $i | tr 1-9 a-i); [ \"$x\" ] && cd / && cd /usr; done; ls / | sort | head -3"],
    "python3": ["/usr/bin/python3", "-S", "-E", "-c", "import json, re; print(json.dumps(re.findall('[a-z]+', 'some words of a text') * 3))"],
    "redis": ["redis-server", "--version"],
}
CALLS = ["trace", "--no-fold", "--json", "--log"]
# Options that both have: --way is the older name of --method.
METHODS = {
    "functions": [*CALLS],
    "functions, and system calls by ptrace": ["trace", "--syscalls", *CALLS[1:]],
    "functions, and system calls by rewriting": ["trace", "--syscalls", "--way=rewrite", *CALLS[1:]],
    "strace by ptrace": ["strace", "-f", "-o"],
    "strace by rewriting": ["strace", "-f", "--way=rewrite", "-o"],
}
# What no two runs have in common: addresses, random bytes, times, counts of memory.
NOISE = re.compile(r"(&|0x|\b)[0-9a-f]{6,}\b|(getrandom\(\s*|read\(\d+,\s*)\"(\\.|[^\"])*\"|sysinfo\(.*|[su]time=\d+(?: /\* [\d.]+ s \*/)?|st_[amc]time=[^,}]*")


def lines_of(path):
    """(thread, line) of a log of strace, where a call that was interrupted by another thread's is one line."""
    begun = {}
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            tid = line.split()[0]
            if "<unfinished ...>" in line:
                begun[tid] = line.split("<unfinished")[0]
                continue
            if "<..." in line and "resumed>" in line:
                line = begun.pop(tid, "") + line.split("resumed>", 1)[1]
            yield tid, re.sub(r"\s+|,(?= *\))", "", NOISE.sub("_", line))


def events_of(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            e = json.loads(line)
            yield e["tid"], (e["type"], e.get("function") or e.get("name"))


def ask(command, method, words, folder):
    """What each thread did, in its order, and what the program printed."""
    log = os.path.join(folder, "log")
    end = ["--"] if METHODS[method][0] == "trace" else []
    done = subprocess.run(["unshare", "-pf", "--mount-proc", "setarch", "-R", command, *METHODS[method], log, *end, *words], capture_output=True,
                          stdin=subprocess.DEVNULL, cwd="/", env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONHASHSEED": "0"}, check=False)
    threads = collections.defaultdict(list)
    for tid, event in (lines_of if METHODS[method][0] == "strace" else events_of)(log):
        threads[tid].append(event)
    os.unlink(log)
    return threads, (done.stdout, done.returncode)


def left_over(whole, part):
    """What @whole has beside @part, in their order; None if @part is not in it."""
    left, rest = [], iter(whole)
    for wanted in part:
        for event in rest:
            if event == wanted:
                break
            left.append(event)
        else:
            return None
    return left + list(rest)


def main():
    old, new = (os.path.abspath(path) for path in sys.argv[1:3])
    n_events = n_same = 0
    with tempfile.TemporaryDirectory() as folder:
        for program, words in PROGRAMS.items():
            for method in METHODS:
                before, said = ask(old, method, words, folder)
                after, says = ask(new, method, words, folder)
                only = [collections.Counter(), collections.Counter()]
                n_ordered = 0
                for tid in before.keys() | after.keys():
                    left = left_over(before[tid], after[tid])
                    n_ordered += left is not None
                    counts = [collections.Counter(events[tid]) for events in (before, after)]
                    only[0].update(left if left is not None else counts[0] - counts[1])
                    only[1].update(counts[1] - counts[0])
                n = sum(map(len, after.values()))
                n_events += n
                n_same += n - sum(only[1].values())
                print(f"{program}, {method}: {n} events of {len(after)} threads, {n_ordered} of these in the same order; "
                      f"output the same: {said == says}")
                for name, counter in zip(("old", "new"), only):
                    if counter:
                        print(f"  only {name}: {sum(counter.values())}: " + ", ".join(f"{n} {e[1] if isinstance(e, tuple) else e[:60]}" for e, n in counter.most_common(4)))
    print(f"{n_events} events, {n_same} of them the same")


main()
