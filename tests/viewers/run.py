#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "viewers": the viewers themselves have the sums of the report: Firefox's profiler, by its command, and speedscope, from its file
in chromium without a network. VIEWERS is where npm has put them (./dev viewers)."""
import base64
import collections
import contextlib
import json
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("lib", "profile", "page")]

import tap  # noqa: E402

from ask import execute, fathom  # noqa: E402
from browser import browser, key, requests  # noqa: E402
from building import build  # noqa: E402
from made_profile import make, report, same  # noqa: E402
from running import until  # noqa: E402

SUITE = tap.Suite("viewers")
test = SUITE.test

VIEWERS = os.environ["VIEWERS"]
PROFILER = (f"{VIEWERS}/.bin/node", f"{VIEWERS}/@firefox-devtools/profiler-cli/dist/profiler-cli.js")
NAMES = ("main", "parse", "std::map<int, a b>::at(int)", "f()", "</script>", "\u00fc\u6f22\u202ex", "a;b", "idle")


def random_profile(folder, seed):
    """A profile of three threads of two processes, whose stacks call themselves, too."""
    rng = random.Random(seed)
    lines = ["about event task-clock", "about unit ns", "about frequency 1000", "thread 7 7 demo", "thread 7 8 worker", "thread 9 9 other"]
    for number in range(200):
        stack = ";".join(f"{rng.choice(NAMES)}@/bin/demo".replace(" ", "_").replace("a;b", "a.b") for _ in range(rng.randint(1, 12)))
        lines.append(f"sample {number + 1}000000 {rng.randrange(3)} 0 1 {rng.randint(1000, 2000000)} {stack}")
    return make(folder, lines + ["end 300000000"])


def recorded_profile(folder):
    path = build(os.path.join(folder, "imported"), os.path.join(HERE, "..", "profile", "programs", "imported.c"), "-pthread", "-O1", "-g")
    profile = os.path.join(folder, "recorded")
    if execute(*fathom_record(profile, path)).returncode:
        raise tap.Skip("perf events cannot be used here")
    return profile


def fathom_record(profile, path):
    return (os.environ["FATHOM"], "record", "-q", "-F", "997", "-o", profile, "--", path)


def sums_of(profile, *words):
    """{function: (self, total)} of the report, in nanoseconds. What is in several modules is one."""
    found = collections.defaultdict(lambda: [0, 0])
    for row in report(profile, "--top", "0", *words)["row"]:
        if row["name"]:
            found[row["name"]][0] += row["self"]
            found[row["name"]][1] += row["total"]
    return found


class Profiler:
    """Firefox's profiler, which has loaded a file."""

    def __init__(self, folder, path):
        # Nothing is asked for over the network.
        self.environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": f"{folder}/session", "PROFILER_CLI_NO_SYMBOLICATE": "1"}
        self.path = path

    def ask(self, *words, status=0):
        return execute(*PROFILER, *words, env=self.environment, status=status)

    def __enter__(self):
        # It gives up after half a second, and goes on to start all the same.
        self.ask("load", self.path, status=None)
        until(lambda: self.ask("thread", "list", "--json", status=None).returncode == 0, "it does not start")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AssertionError):
            self.ask("stop")

    def threads(self):
        return json.loads(self.ask("thread", "list", "--json", "--limit", "0").stdout)["threads"]

    def functions(self, thread):
        words = ("thread", "functions", "--json", "--include-idle", "--limit", "0", "--thread", thread["threadHandle"])
        return json.loads(self.ask(*words).stdout)["functions"]


def near(ours, theirs):
    """Whether milliseconds of a viewer, sums of rounded numbers, are our nanoseconds."""
    return abs(ours - theirs * 1e6) <= 1000 + 1e-6 * ours


def check_firefox(folder, profile):
    """Each function has the same sums in Firefox's profiler; {thread: functions} of it."""
    path = f"{folder}/profile.json"
    fathom("report", "--no-cache", "--export", "firefox", "-o", path, profile, status=0)
    theirs = collections.defaultdict(lambda: [0, 0])
    with Profiler(folder, path) as profiler:
        threads = profiler.threads()
        found = {(thread["pid"], thread["tid"]): profiler.functions(thread) for thread in threads}
    for function in (function for functions in found.values() for function in functions):
        theirs[function["name"]][0] += function["selfSamples"]
        theirs[function["name"]][1] += function["totalSamples"]
    ours = sums_of(profile)
    for name, (own, total) in ours.items():
        assert near(own, theirs[name][0]) and near(total, theirs[name][1]), (name, own, total, theirs[name])
    return threads


@test("Firefox's profiler: each function has the self and total time of the report, each thread its numbers")
def firefox(folder):
    threads = check_firefox(folder, random_profile(folder, 1))
    assert sorted((t["name"], t["pid"], t["tid"]) for t in threads) == [("demo", "7", "7"), ("other", "9", "9"), ("worker", "7", "8")], threads


@test("Firefox's profiler: a recorded program, with threads, a child and the kernel")
def firefox_recorded(folder):
    threads = check_firefox(folder, recorded_profile(folder))
    assert len(threads) == 3 and len({t["pid"] for t in threads}) == 2, threads


UNITS = {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}
# The profile that speedscope shows, and the rows of its table of functions: total and self time, and the name.
TITLE = r"return (document.body.innerText.match(/^(.*) \((\d+)\/(\d+)\)$/m) || []).slice(1)"
ROWS = "return Array.from(document.querySelectorAll('tr'), (row) => Array.from(row.children, (cell) => cell.textContent))"


def nanoseconds(text):
    """(time, half of its last digit) of a cell such as "1.25ms (3%)"."""
    found = re.match(r"(\d+)(?:\.(\d+))?(ns|\u00b5s|ms|s)\b", text)
    assert found, text
    unit = UNITS[found[3]]
    return float(f"{found[1]}.{found[2] or 0}") * unit, .51 * unit / 10 ** len(found[2] or "")


def shown(driver, number):
    """The name of profile @number of the file, from 1, and its rows, once they are shown."""
    found = []

    def look():
        title, rows = driver.execute_script(TITLE), driver.execute_script(ROWS)
        found[:] = [title, rows[rows.index(["Total", "Self", "Symbol Name"]) + 1:] if ["Total", "Self", "Symbol Name"] in rows else []]
        return title and int(title[1]) == number and found[1]
    until(look, lambda: driver.page_source[:2000])
    return found[0][0], int(found[0][2]), found[1]


def speedscope_rows(driver, folder, path):
    """{thread: {function: [(total, self)]}}, as speedscope has them of the file @path: lines of one function are rows of their own."""
    with open(path, "rb") as f:
        content = base64.b64encode(f.read()).decode()
    script = os.path.join(folder, "loaded.js")
    with open(script, "w", encoding="ascii") as f:
        f.write(f"speedscope.loadFileFromBase64('made.speedscope.json', '{content}');\n")
    driver.get(f"file://{VIEWERS}/speedscope/dist/release/index.html#localProfilePath={script}")
    until(lambda: driver.execute_script(TITLE), lambda: driver.page_source[:2000])
    # The table of functions; then that of the next profile.
    key(driver, "3")
    profiles, n, number = {}, 1, 0
    while number < n:
        number += 1
        if number > 1:
            key(driver, "n")
        name, n, rows = shown(driver, number)
        profiles[name] = collections.defaultdict(list)
        for total, own, function in rows:
            profiles[name][function].append((nanoseconds(total), nanoseconds(own)))
    return profiles


def check_speedscope(folder, profile):
    """Each function has the same sums in speedscope; {thread: functions} of it."""
    path = f"{folder}/made.speedscope.json"
    fathom("report", "--no-cache", "--export", "speedscope", "-o", path, profile, status=0)
    # All rows are to be in the window: others are no elements.
    with browser(1600, 20000) as driver:
        profiles = speedscope_rows(driver, folder, path)
        _, errors = requests(driver)
    assert not [line for line in errors if "SEVERE" in line], errors
    for name, (own, total) in sums_of(profile).items():
        for ours, column in ((total, 0), (own, 1)):
            cells = [row[column] for rows in profiles.values() for row in rows[name]]
            # Two lines of a function may call each other.
            if not column and any(len(rows[name]) > 1 for rows in profiles.values()):
                continue
            assert abs(ours - sum(time for time, _ in cells)) <= sum(slack for _, slack in cells), (name, ours, cells)
    return profiles


@test("speedscope: each function has the self and total time of the report")
def speedscope(folder):
    profiles = check_speedscope(folder, random_profile(folder, 2))
    same(list(profiles), ["demo (7/7)", "worker (7/8)", "other (9/9)"])
    assert all(len(cells) == 1 for rows in profiles.values() for cells in rows.values() if cells), profiles
    assert len(sums_of(f"{folder}/profile")) == len(NAMES)


@test("speedscope: a recorded program, with threads, a child and the kernel")
def speedscope_recorded(folder):
    profiles = check_speedscope(folder, recorded_profile(folder))
    assert len(profiles) == 3, list(profiles)


sys.exit(SUITE.run())
