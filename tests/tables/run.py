#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "tables": what tests/account.py says of runs that are made by hand; which suites prove which files."""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "tools")]

import account  # noqa: E402
import suites  # noqa: E402
import tap  # noqa: E402

SUITE = tap.Suite("tables")
test = SUITE.test
SKIPS = "# a comment\nfirst\tone: *\tno room (*)\tThe machine may have none.\n"


def judge(folder, log, skips=SKIPS, scenarios="S1\tfirst\tthree\n", check=account.check_skips):
    """What @check says of the run @log, with such tables."""
    for name, text in (("log", log), ("skips", skips), ("scenarios", scenarios)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    aloud = []
    options = {"say": aloud.append} if check == account.check_named else {}
    return list(check(list(account.read_log(os.path.join(folder, "log"))), folder, **options)), aloud


def same(got, want):
    assert got == want, f"{got}, not {want}"


@test("lines of TAP: numbers, suites in names, skips")
def lines(folder):
    log = "first\tok 1 - first: one: a\nfirst\tok 2 b # skip why: so\nfirst\tnot ok - c\nfirst\tok - d # SKIP\n"
    with open(f"{folder}/log", "w", encoding="utf-8") as f:
        f.write(log)
    same([tuple(t) for t in account.read_log(f"{folder}/log")],
         [("first", "one: a", True, None), ("first", "b", True, "why: so"), ("first", "c", False, None),
          ("first", "d", True, "no reason")])


@test("a skip is allowed for its suite, name and reason only")
def skips(folder):
    for line, allowed in (("first\tok 1 - one: x # SKIP no room (a)", True), ("first\tok 1 - one: x # SKIP no time", False),
                          ("second\tok 1 - one: x # SKIP no room (a)", False), ("first\tok 1 - two # SKIP no room (a)", False),
                          ("sanitized\tok 1 - first: one: x # SKIP no room (a)", True), ("first\tok 1 - two", True)):
        wrong, _ = judge(folder, line + "\n")
        same(len(wrong), not allowed)
        assert allowed or ("tests/skips" in wrong[0] and line.rpartition("SKIP ")[2] in wrong[0]), wrong


@test("a listed skip must be of a test that exists")
def stale(folder):
    same(judge(folder, "first\tok 1 - one: x\n", check=account.check_skips_exist)[0], [])
    same(judge(folder, "second\tok 1 - one: x\n", check=account.check_skips_exist)[0], [])
    same(judge(folder, "first\tok 1 - two\n", check=account.check_skips_exist)[0], ["tests/skips: first: no test is called one: *"])


@test("a scenario needs tests that exist and passed; its skips are said aloud")
def scenarios(folder):
    for log, want, said in (("first\tok 1 - three", [], []),
                            ("first\tnot ok 1 - three", ["S1: first: three failed"], []),
                            ("first\tok 1 - three # SKIP no room", [], ["# S1: first: three was skipped: no room"]),
                            ("first\tok 1 - threescore", ["S1: first: no test is called three"], []),
                            ("second\tok 1 - three", ["S1: first: no test is called three"], [])):
        got, aloud = judge(folder, log + "\n", check=account.check_named)
        same((got, aloud), (want, said))


@test("each suite in Python lists its tests, and has those that the tables of skips and scenarios name")
def named(_folder):
    with open(os.path.join(HERE, "..", "run"), encoding="utf-8") as f:
        scripts = dict(re.findall(r"^ *suite (\S+) python3 (\S+\.py)$", f.read(), re.M))
    assert len(scripts) > 50, scripts
    scripts.update((suite, f"tests/{suite}/run.py") for suite in account.APART)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tests = [test for found in pool.map(account.listed, *zip(*scripts.items())) for test in found]
    same([*account.check_skips_exist(tests, account.HERE), *account.check_named(tests, account.HERE, set(scripts), lambda _: None)], [])


@test("./dev test SUITE:TEST: a test by its identifier, tests by a part of their name, and a test that fails prints how to run it alone")
def alone(folder):
    suite = os.path.join(folder, "run.py")
    with open(suite, "w", encoding="utf-8") as f:
        f.write(f"import sys\nsys.path.insert(0, {os.path.dirname(tap.__file__)!r})\nimport tap\nSUITE = tap.Suite('first')\n"
                "SUITE.test('one of two')(lambda _: None)\n@SUITE.test('two of two')\ndef _(_):\n    raise AssertionError('so')\nsys.exit(SUITE.run())\n")

    def said(*words):
        return subprocess.run([sys.executable, suite, *words], capture_output=True, text=True, check=False).stdout.splitlines()[1:]
    # Of sha256sum(1).
    same(tap.identifier("two of two"), subprocess.run(["sha256sum"], input="two of two", capture_output=True, text=True, check=True).stdout[:6])
    failed = ["not ok 1 - first: two of two", "#   so", f"# alone: ./dev test first:{tap.identifier('two of two')}"]
    same(said(tap.identifier("two of two")), ["1..1", *failed])
    same(said("one"), ["1..1", "ok 1 - first: one of two"])
    same(said("of")[0], "1..2")
    same(said("none"), ["1..0"])


@test("every identifier has a row, and there are 119 of them")
def identifiers(folder):
    same(len(set(account.IDS)), 119)
    all_rows = "".join(f"{name}\t-\tno such thing\n" for name in account.IDS)
    same(judge(folder, "", scenarios=all_rows, check=account.check_identifiers)[0], [])
    same(judge(folder, "", scenarios=all_rows.replace("AL12\t", "x\t"), check=account.check_identifiers)[0],
         ["AL12: tests/scenarios has no row"])


@test("./dev test --changed: files of rooms, of tests, of documents, and what all depends on")
def changed(_folder):
    known, proves = suites.folders(), suites.table()
    for path, want in (("src/host/find/search.c", {"find", "hostile", "fuzz"}), ("src/host/value/value.c", {"value", "hostile", "fuzz"}),
                       ("cli/compat/addr2line/gnu.c", {"addr2line", "clients", "strace", "cli", "words", "hostile", "fuzz", "musl", "schema"}),
                       ("tests/cores/threads.py", {"cores", "core-stacks"}), ("tests/lib/ask.py", set(known)), ("include/fathom/find.h", set(known)),
                       ("README.md", {"words"}), ("docs/plan.md", set())):
        same(set(suites.proving(path, known, proves)) - ({"real"} if "hostile" in want and len(want) < 10 else set()), want)


@test("./dev test --changed: each file of src and cli is proven by a suite; each suite has its seconds")
def proven(_folder):
    known, proves = suites.folders(), suites.table()
    files = [os.path.relpath(os.path.join(folder, name), suites.TOP) for room in ("src", "cli")
             for folder, _, names in os.walk(os.path.join(suites.TOP, room)) for name in names if name.endswith((".c", ".h", ".S"))]
    assert len(files) > 500
    everywhere = {"hostile", "fuzz", "real"}
    same([path for path in files if not set(suites.proving(path, known, proves)) - everywhere], [])
    seconds = [line.split("\t")[0] for line in suites.read("tests/seconds").splitlines() if not line.startswith("#")]
    same(set(known) - set(seconds), suites.ASKED)


@test("./dev test --changed: a commit that is not there is an error")
def no_commit(_folder):
    done = subprocess.run(["./dev", "test", "--changed", "no-such-commit"], cwd=suites.TOP, capture_output=True, text=True, check=False)
    assert done.returncode and "no-such-commit" in done.stderr, done

sys.exit(SUITE.run())
