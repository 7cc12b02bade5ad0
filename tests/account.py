#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""account.py [--whole] LOG: what a run of the tests has shown, against the two tables beside this file. Prints TAP.

LOG has a line for each test: the suite, a tab, a line of TAP. Every skip must be in tests/skips. With --whole,
which says that all suites ran, every row of tests/scenarios must be shown by tests that ran and passed, and every
row of tests/skips must be of a test that exists. The rows of the suites "real" and "arm" are held against their own
runs.
"""
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Scenarios (T) and limits (L) of the tools that fathom is measured by; each has a row.
IDS = [f"{group}{n}" for group, n_ids in (("A-T", 8), ("D-T", 11), ("AL", 16), ("DL", 14))
       for n in range(1, n_ids + 1)] + ["B-T11"]
# Of unwinders, and of code that programs make.
IDS += [f"U-{n}" for n in (*range(1, 18), *range(21, 28))] + [f"C-T{n}" for n in range(1, 11)] + ["C-T7b"]
# Of traced calls.
IDS += [f"B-T{n}" for n in (*range(1, 11), 12)] + [f"F-{n}" for n in (*range(1, 16), *range(17, 25))]
LINE = re.compile(r"(ok|not ok)(?: +\d+)?(?: +-)? *(.*)")
DIRECTIVE = re.compile(r"\s+# *(skip|todo)\b:? *(.*)", re.I)

Test = collections.namedtuple("Test", "suite name passed skip")


def read_log(path):
    """The tests of a log. A name does not repeat its suite."""
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            suite, _, rest = line.rstrip("\n").partition("\t")
            word, text = LINE.match(rest).groups()
            found = DIRECTIVE.search(text)
            skip = found[2] or "no reason" if found and found[1].lower() == "skip" else None
            yield Test(suite, (text[:found.start()] if found else text).removeprefix(suite + ": "), word == "ok", skip)


def rows(folder, name, least):
    """Rows of a table: fields between tabs, with # before comments."""
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            fields = line.rstrip("\n").split("\t")
            if line.strip() and not line.startswith("#"):
                assert len(fields) >= least, f"tests/{name}:{number}: {least} fields with tabs between them are wanted"
                yield fields


def pattern(text):
    """A name, in which * stands for anything."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.S)


def covers(row, test):
    suite, name, said = row[:3]
    # An instrumented build runs tests of other suites.
    return (suite in (test.suite, "*") or test.suite == "sanitized") and \
        pattern(name).fullmatch(test.name.removeprefix(suite + ": ")) and pattern(said).fullmatch(test.skip)


def check_skips(tests, folder):
    """Lines about skips that tests/skips does not list."""
    table = list(rows(folder, "skips", 4))
    for test in tests:
        if test.skip is not None and not any(covers(row, test) for row in table):
            yield f"{test.suite}: {test.name}: skipped ({test.skip}), which tests/skips does not list"


def check_skips_exist(tests, folder):
    """Lines about rows of tests/skips that are of no test."""
    suites = {t.suite for t in tests}
    for suite, name, *_ in rows(folder, "skips", 4):
        if suite in suites and not any(t.suite == suite and pattern(name).fullmatch(t.name) for t in tests):
            yield f"tests/skips: {suite}: no test is called {name}"


# Suites that a whole run leaves out.
APART = ("real", "arm")


def listed(suite, script):
    """The tests of the suite that @script, a path from the top, runs; none of them runs."""
    done = subprocess.run([sys.executable, script], cwd=os.path.dirname(HERE), capture_output=True, text=True,
                          env=dict(os.environ, TAP_LIST="1"), check=False)
    assert done.returncode == 0, f"{script} does not list its tests:\n{done.stderr}"
    return [Test(suite, line.removeprefix(f"{suite}: "), True, None) for line in done.stdout.splitlines()]


def listed_apart():
    """The tests of the suites that a whole run leaves out."""
    return [test for suite in APART for test in listed(suite, f"tests/{suite}/run.py")]


def check_identifiers(_, folder):
    """Lines about scenarios that have no row."""
    shown = {row[0] for row in rows(folder, "scenarios", 3)}
    return [f"{missing}: tests/scenarios has no row" for missing in IDS if missing not in shown]


def check_named(tests, folder, suites=None, say=print):
    """Lines about tests in tests/scenarios that did not pass, or are not there. @suites: only those. What a row
    does not show, @say says aloud."""
    by_suite = collections.defaultdict(list)
    for test in tests:
        by_suite[test.suite].append(test)
    for row_id, suite, *names in rows(folder, "scenarios", 3):
        if suite == "-":
            say(f"# {row_id}: no test: {' '.join(names)}")
            continue
        for name in names if suites is None or suite in suites else ():
            found = [t for t in by_suite[suite] if pattern(name).fullmatch(t.name)]
            if not found:
                yield f"{row_id}: {suite}: no test is called {name}"
            yield from (f"{row_id}: {suite}: {t.name} failed" for t in found if not t.passed)
            for test in found:
                if test.skip is not None:
                    say(f"# {row_id}: {suite}: {test.name} was skipped: {test.skip}")


def report(title, wrong):
    wrong = list(wrong)
    print("".join(f"# {line}\n" for line in wrong) + f"{'not ok' if wrong else 'ok'} - {title}")
    return bool(wrong)


def main():
    tests = list(read_log(sys.argv[-1]))
    suites = {t.suite for t in tests}
    failed = report("every skip is listed with its reason", check_skips(tests, HERE))
    if "--whole" in sys.argv:
        failed |= report("every listed skip is of a test that exists", check_skips_exist(tests, HERE))
        failed |= report("every scenario has a row", check_identifiers(tests, HERE))
        failed |= report("every scenario is shown by tests that ran and passed", check_named([*tests, *listed_apart()], HERE))
    for suite in () if "--whole" in sys.argv else suites.intersection(APART):
        failed |= report(f"every scenario of the suite {suite} is shown by tests that passed", check_named(tests, HERE, {suite}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
