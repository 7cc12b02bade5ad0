#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "top": what fathom top shows of programs whose times are known, in the cells of a terminal, as text and as JSON."""
import contextlib
import glob
import json
import math
import os
import pty
import re
import shutil
import signal
import sys
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import tap  # noqa: E402

from ask import FATHOM, NOBODY, as_user, copy_for_all, execute, fathom, refused  # noqa: E402
from building import build  # noqa: E402
from running import Running, state_of, until  # noqa: E402
from terminal import HEAD, Terminal, rows_of  # noqa: E402

SUITE = tap.Suite("top", "record all processes, and become another user")
test = SUITE.test
FREQUENCY = 997
AS_JSON = (FATHOM, "top", "--json", "--no-cache")
# By chance, one of some millions of tests has more.
SIGMAS = 5.5


def program(folder, name, *flags):
    source = os.path.join(HERE, "programs", f"{name}.c")
    return build(os.path.join(folder, name), source, "-pthread", flags=flags or ("-O1", "-g"))


class Loads(Running):
    """The program loads; @tids by the names of its threads."""

    def __init__(self, folder, **options):
        super().__init__([program(folder, "loads")], **options)
        self.tids = {}
        for line in iter(self.line, "ready"):
            name, tid = line.split()
            self.tids[name] = int(tid)


def need_perf(folder):
    done = execute(FATHOM, "record", "-q", "--method=perf-events", "-o", os.path.join(folder, "none"), "--", "true")
    if done.returncode == 2 and "perf" in done.stderr:
        raise tap.Skip(f"perf events cannot be used here: {done.stderr.strip()}")


def numbers(row):
    """The three shares of a row, and the rest of it."""
    assert re.match(r" +\d+\.\d", row[:7]) and row[7] == row[14] == " ", row
    return float(row[1:7]), float(row[8:14]), float(row[15:21]), row[21:].strip()


def running_of(cells):
    """The time on a processor that a picture is of, in seconds, as its head says: threads and span."""
    threads = re.match(r"running (\d+\.\d\d)  waiting (\d+\.\d\d)  ready (\d+\.\d\d)  own +\d+\.\d %  lost \d+", cells[2])
    span = re.match(r"(last|all) (\d+\.\d) s, ", cells[1])
    assert threads and span, cells[:HEAD]
    return float(threads[1]) * float(span[2])


def has_seconds(least):
    return lambda cells: re.match("(last|all) ", cells[1]) and running_of(cells) >= least


def near(share, expected, n, slack=0.02):
    """Whether a share of @n samples is what is expected, as far as chance permits."""
    return abs(share - expected) <= SIGMAS * math.sqrt(expected * (1 - expected) / n) + slack


@test("functions of 75 and 25 % of a thread's time have these shares, in the cells of a terminal of 80 x 24")
def shares(folder):
    need_perf(folder)
    with Loads(folder) as loads, Terminal(folder) as terminal:
        terminal.top("-F", FREQUENCY, "--window=1000", loads.pid)
        cells = terminal.wait(has_seconds(1.5))
        assert re.fullmatch(rf"fathom top  PID {loads.pid} \(loads\) +\d\d:\d\d:\d\d", cells[0]) and len(cells[0]) == 80, cells[0]
        assert cells[1].endswith(f"running; perf-events task-clock {FREQUENCY} Hz"), cells[1]
        assert cells[3] == ">  CPU%  SELF% TOTAL%  FUNCTION", cells[3]
        n = running_of(cells) * FREQUENCY
        found = {numbers(row)[3].split()[0]: numbers(row) for row in rows_of(cells, "FUNCTION")}
        for name, expected in (("heavy", 0.75), ("light", 0.25)):
            assert near(found[name][2] / 100, expected, n), (n, cells)
            assert found[name][3] == f"{name}  loads", found
        # Rows are sorted by their own share; that of a processor is the same of the time that it ran.
        own = [numbers(row)[1] for row in rows_of(cells, "FUNCTION")]
        assert own == sorted(own, reverse=True), own
        running = float(re.match(r"running (\d+\.\d\d)", cells[2])[1])
        for cpu, share, _, _ in found.values():
            assert abs(cpu / 100 - share / 100 * running) <= 0.0011 + 0.006 * share / 100, (cpu, share, running)


@test("threads run, or wait for a pipe, a signal, or a mutex that another one has: as they do")
def threads(folder):
    with Loads(folder) as loads, Terminal(folder) as terminal:
        terminal.top(loads.pid)

        def is_whole(cells):
            rows = {row[31:46].strip(): row for row in rows_of(cells, "THREAD ")}
            return set(loads.tids) <= set(rows) and "mutex" in rows["locked"]
        cells = terminal.wait(is_whole)
        rows = {row[31:46].strip(): row for row in rows_of(cells, "THREAD ")}
        assert {name: int(rows[name][22:29]) for name in loads.tids} == loads.tids, rows
        for name, reason in (("reader", "[read: pipe:["), ("holder", "[pause"), ("locked", "[futex: mutex 0x")):
            run, wait, ready, _ = numbers(rows[name])
            assert (run, ready) == (0, 0) and wait == 100, rows[name]
            assert rows[name][47:].startswith(reason), rows[name]
        run, wait, ready, _ = numbers(rows["burner"])
        assert 99.8 <= run + wait + ready <= 100.2 and run > 0, rows["burner"]
        # Reasons alone, with their whole texts.
        terminal.resize(120, 24)
        terminal.keys("3")
        cells = terminal.wait(lambda c: c[HEAD].startswith(">THREADS") and "owned by" in "".join(c))
        locked = next(row for row in rows_of(cells, "WAITS FOR") if "mutex" in row)
        assert f"owned by {loads.tids['holder']}" in locked, locked


@test("keys: lists, selection, sorting, one thread, paths to callers and callees, freezing, help")
def keys(folder):
    with Loads(folder) as loads, Terminal(folder, 80, 200) as terminal:
        terminal.top("-F", FREQUENCY, loads.pid)
        terminal.wait(lambda cells: {"heavy", "light"} <= set(" ".join(rows_of(cells, "FUNCTION")).split()))
        # By name: own functions stand in this order.
        terminal.keys("s", "s", "1")
        cells = terminal.wait(lambda c: not any("RUN%" in line for line in c) and "burner" in " ".join(rows_of(c, "FUNCTION")) and
                              numbers(c[HEAD + 1])[1] < 50)
        names = [numbers(row)[3].split()[0] for row in rows_of(cells, "FUNCTION")]
        assert names == sorted(names), names
        own = [name for name in names if name in ("burner", "heavy", "light")]
        assert own == ["burner", "heavy", "light"], names
        # Others may have come since.
        terminal.keys("f")
        cells = terminal.wait(lambda c: "FROZEN" in c[0])
        names = [numbers(row)[3].split()[0] for row in rows_of(cells, "FUNCTION")]
        terminal.keys(*["Down"] * names.index("heavy"), "Enter")
        cells = terminal.wait_for("CALLERS OF heavy")
        paths = rows_of(cells, "CALLERS OF")
        assert [row[16:].split()[0] for row in paths[:3]] == ["heavy", "burner", "start_thread"], paths
        assert [len(row[16:]) - len(row[16:].lstrip()) for row in paths[:3]] == [0, 1, 2], paths
        assert all(row[8:14] == " 100.0" for row in paths[:3]), paths
        terminal.keys("f", "d")
        terminal.wait_for("CALLED BY heavy")
        terminal.wait(lambda c: any(row[17:].startswith("own_clock") for row in rows_of(c, "CALLED BY")))
        terminal.keys("Escape")
        terminal.wait(lambda c: "FUNCTION" in c[HEAD])
        # One thread alone: nothing runs in one that waits.
        terminal.keys("2")
        cells = terminal.wait(lambda c: "RUN%" in c[HEAD])
        place = [row[31:46].strip() for row in rows_of(cells, "RUN%")].index("reader")
        terminal.keys(*["Down"] * place, "Enter")
        cells = terminal.wait(lambda c: f", only reader {loads.tids['reader']}" in c[0])
        assert cells[2].startswith("running 0.00  waiting 1.00  ready 0.00  "), cells[2]
        terminal.keys("1")
        assert not rows_of(terminal.wait(lambda c: "FUNCTION" in c[HEAD]), "FUNCTION")
        terminal.keys("Escape", "0")
        terminal.wait(lambda c: "only" not in c[0] and "heavy" in " ".join(c))
        # A picture that is frozen stays, but for the clock and what fathom itself uses.
        terminal.keys("f")
        before = terminal.wait(lambda c: "FROZEN" in c[0])
        after = terminal.wait(lambda c: c[0] != before[0])
        assert before[1] == after[1] and before[3:] == after[3:], (before, after)
        terminal.keys("f", "h")
        terminal.wait_for("fathom top shows where time goes")
        terminal.keys("h", "q")
        terminal.wait(lambda c: terminal.is_main())


@test("a terminal of any size: no line is longer or wrapped, and the last one has the keys")
def sizes(folder):
    with Loads(folder) as loads, Terminal(folder) as terminal:
        terminal.top(loads.pid)
        for columns, lines in ((80, 24), (200, 60), (40, 10), (20, 5), (12, 3), (5, 2), (132, 24), (80, 24)):
            terminal.resize(columns, lines)
            head = rf"fathom top  PID {loads.pid} \(loads\) +\d\d:\d\d:\d\d" if columns >= 80 else "fat"
            last = "Enter paths  Tab list"[:columns - 2] if lines > HEAD else ""
            cells = terminal.wait(lambda c, h=head, e=last, n=lines: re.match(h, c[0]) and c[n - 1].startswith(e))
            assert all(len(line) <= columns for line in cells), cells
        cells = terminal.wait_for("WAITS FOR$")
        titles = [next(i for i, line in enumerate(cells) if word in line) for word in ("FUNCTION", "THREAD ", "WAITS FOR")]
        assert titles[0] == HEAD < titles[1], cells


@test("Ctrl-Z leaves the terminal as it was and fg brings the screen back; Ctrl-C, Ctrl-\\, SIGTERM and q leave it, too")
def leaves(folder):
    with Loads(folder) as loads, Terminal(folder) as terminal:
        before = terminal.settings("before")
        terminal.top(loads.pid)
        assert not terminal.is_main()
        terminal.keys("C-z")
        terminal.wait_for("Stopped")
        assert terminal.is_main() and terminal.settings("stopped") == before
        terminal.type("clear; fg")
        terminal.wait(lambda c: c[0].startswith("fathom top ") and not terminal.is_main())
        for number, how in enumerate(("C-c", "q", "C-\\", "TERM")):
            if number:
                terminal.top(loads.pid)
            if how == "TERM":
                os.kill(pid_of(loads), signal.SIGTERM)
            else:
                terminal.keys(how)
            until(terminal.is_main, terminal.text)
            assert terminal.settings(f"after{number}") == before
            terminal.type("clear; echo status $?")
            terminal.wait_for("status 0")


def pid_of(loads):
    return int(execute("pgrep", "-n", "-f", f"top --no-cache {loads.pid}", status=0).stdout)


@test("a terminal that goes away ends it, also where SIGHUP is ignored")
def hung_up(folder):
    with Loads(folder) as loads:
        with Terminal(folder) as terminal:
            terminal.top(loads.pid, before="trap '' HUP; ")
            own = pid_of(loads)
        until(lambda: not os.path.exists(f"/proc/{own}"), f"{own} has not ended")


@test("the process ends: the last picture stays and says so")
def ends(folder):
    with Terminal(folder) as terminal:
        with Loads(folder) as loads:
            terminal.top(loads.pid)
            terminal.wait(lambda cells: "heavy" in " ".join(rows_of(cells, "FUNCTION")))
        cells = terminal.wait(lambda c: "HAS ENDED" in c[0])
        assert "heavy" in " ".join(rows_of(cells, "FUNCTION")), cells

        def stays(cells):
            """Whether two pictures, a second or more apart, are the same: names may come after the end, samples not."""
            later = terminal.wait(lambda c: c[0][-8:] != cells[0][-8:])
            assert later[1] == cells[1], (cells, later)
            return later[3:] == cells[3:]
        terminal.wait(stays)
        terminal.keys("q")
        until(terminal.is_main, terminal.text)


@test("w writes what was recorded so far, which fathom report reads: the same functions")
def writes(folder):
    with Loads(folder) as loads, Terminal(folder) as terminal:
        terminal.top("-F", FREQUENCY, "--window=1000", loads.pid)
        terminal.wait(has_seconds(1))
        terminal.keys("w")
        terminal.wait_for(r"^written: fathom-top-\d{8}-\d{6}\.profile")
        (path,) = glob.glob(f"{folder}/fathom-top-*.profile")
        assert os.stat(path).st_mode & 0o777 == 0o600
        rows = [json.loads(line) for line in fathom("report", "--json", "--no-cache", path, status=0).stdout.splitlines()]
        head = rows[0]
        total = {row["name"]: row["total"] for row in rows if row["type"] == "row"}
        n = head["samples"]
        assert n > 100 and head["frequency"] == FREQUENCY, head
        assert near(total["heavy"] / head["weight"], 0.75, n) and near(total["light"] / head["weight"], 0.25, n), total


@test("p writes a page of it: that which fathom report makes of the profile that w writes")
def writes_page(folder):
    with Terminal(folder) as terminal:
        with Loads(folder) as loads:
            terminal.top("-F", FREQUENCY, loads.pid)
            terminal.wait(lambda cells: "heavy" in " ".join(rows_of(cells, "FUNCTION")))
        terminal.wait(lambda cells: "HAS ENDED" in cells[0])
        found = {}
        for key, suffix in (("w", "profile"), ("p", "html")):
            terminal.keys(key)
            terminal.wait_for(rf"^written: fathom-top-\d{{8}}-\d{{6}}\.{suffix}")
            (found[key],) = glob.glob(f"{folder}/fathom-top-*.{suffix}")
        assert os.stat(found["p"]).st_mode & 0o777 == 0o600
    fathom("report", "--export=page", "-o", f"{folder}/page.html", "--no-cache", found["w"], status=0)
    with open(found["p"], "rb") as page, open(f"{folder}/page.html", "rb") as expected:
        assert page.read() == expected.read()


HOSTILE = ("\x1b[31m\x1b]0;x\x07", "\x1b[2J\x9b31mend", "\u202e\u200btxet", "\u6f22\u5b57" * 60, "e\u0301" * 200, "a" * 500)


def cells_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@test("names with sequences of terminals, of wide, hidden, combining and very many characters: cells stay where they are")
def hostile(folder):
    path = program(folder, "named")
    for name in HOSTILE:
        with contextlib.ExitStack() as stack:
            named = stack.enter_context(Running([path, name, name]))
            stack.callback(lambda p=named.pid: os.unlink(f"/tmp/perf-{p}.map"))
            assert named.line() == "ready"
            terminal = stack.enter_context(Terminal(folder))
            terminal.top(named.pid)
            cells = terminal.wait(lambda c: any("[jit of " in line for line in c))
            assert all(cells_of(line) <= 80 for line in cells), cells
            assert re.match(r"fathom top  PID \d+ ", cells[0]) and re.search(r"\d\d:\d\d:\d\d$", cells[0]), cells[0]
            assert cells[HEAD] == ">  CPU%  SELF% TOTAL%  FUNCTION", cells
            row = next(line for line in rows_of(cells, "FUNCTION") if "[jit of " in line)
            assert numbers(row)[1] > 0 and not any(unicodedata.category(c).startswith("C") for line in cells for c in line), row
            shown = row[23:].rsplit("  ", 1)[0]
            expected = "".join(c if c.isprintable() and not unicodedata.combining(c) else "\\" for c in name)
            assert shown[:4] == expected[:4] or (shown[0] == "\\" == expected[0]) or "?" in shown, (shown, name)


@test("without UTF-8 every character is one of ASCII")
def ascii_only(folder):
    path = program(folder, "named")
    with Running([path, "gr\u00fc\u00df", "gr\u00fc\u00df\u6f22"]) as named, Terminal(folder) as terminal:
        assert named.line() == "ready"
        terminal.top(named.pid, before="LC_ALL=C ")
        cells = terminal.wait(lambda c: any("gr??" in line for line in c))
        assert "".join(cells).isascii(), cells
        assert any(row[23:].startswith("gr???  [jit of ") for row in rows_of(cells, "FUNCTION")), cells
        os.unlink(f"/tmp/perf-{named.pid}.map")


@test("colours only where NO_COLOR and --color permit them")
def colours(folder):
    with Loads(folder) as loads, Terminal(folder) as terminal:
        for before, words, is_coloured in (("", (), True), ("NO_COLOR=1 ", (), False), ("NO_COLOR=1 ", ("--color=always",), True),
                                           ("", ("--color=never",), False)):
            terminal.top(*words, loads.pid, before=before)
            terminal.wait_for("loads$")
            # Foreground colours of rows: 30 to 37.
            assert bool(re.search(r"\x1b\[(\d+;)*3[0-7]m", terminal.colours())) == is_coloured, (before, words)
            terminal.keys("q")
            until(terminal.is_main, terminal.text)


def read_from(fd):
    with contextlib.suppress(OSError):
        return os.read(fd, 65536)
    return b""


@test("TERM=dumb: a block of plain text each interval, on a terminal; Ctrl-C ends it")
def dumb(folder):
    with Loads(folder) as loads:
        master, slave = pty.openpty()
        # Whoever runs tests in the background may ignore it.
        with Running(["env", "--default-signal=INT", FATHOM, "top", "--no-cache", "--interval=0.2", loads.pid],
                     stdin=slave, stdout=slave, stderr=slave, text=False,
                     env={**os.environ, "TERM": "dumb"}, start_new_session=True) as running:
            os.close(slave)
            text = b""
            while text.count(b"\r\n\r\n") < 3:
                got = read_from(master)
                assert got, text
                text += got
            running.signal(signal.SIGINT)
            while got := read_from(master):
                text += got
            assert running.process.wait() == 0
        os.close(master)
    text = text.decode()
    assert "\x1b" not in text and text.isprintable() is False, text
    blocks = text.replace("\r\n", "\n").split("\n\n")
    for block in blocks[:3]:
        lines = block.split("\n")
        assert re.match(rf"fathom top, \d\d:\d\d:\d\d: PID {loads.pid} \(loads\), the last \d+\.\d s$", lines[0]), lines
        assert "  CPU%  SELF% TOTAL%  FUNCTION" in lines and "THREADS  WAIT%  WAITS FOR" in lines, lines


def pictures(*words, **options):
    return [json.loads(line) for line in fathom("top", "--json", "--no-cache", *words, status=0, **options).stdout.splitlines()]


@test("--json: pictures of known threads; times of threads add up to the sums, and to the time that they are of")
def as_json(folder):
    with Loads(folder) as loads, \
            Running([*AS_JSON, "--window=2", "--interval=0.5", "-F", FREQUENCY, loads.pid]) as running:
        found = []

        def is_whole():
            found.append(json.loads(running.line()))
            of = {t["name"]: t for t in found[-1]["threads"]}
            # One that waits is told four times a second, and when it is first seen.
            return found[-1]["span_ns"] == 2e9 and "mutex" in of["locked"]["reason"] and \
                "heavy" in {f["name"] for f in found[-1]["functions"]} and \
                all(of[name]["waiting_ns"] >= 1.99e9 for name in ("reader", "holder", "locked"))
        until(is_whole, lambda: found[-1])
    assert not any(p["ended"] for p in found) and all(a["time_ms"] < b["time_ms"] for a, b in zip(found, found[1:]))
    last = found[-1]
    of = {t["name"]: t for t in last["threads"]}
    for key in ("running_ns", "waiting_ns", "runnable_ns"):
        assert last[key] == sum(t[key] for t in last["threads"]), key
    for name, tid in loads.tids.items():
        t = of[name]
        assert t["tid"] == tid and t["pid"] == loads.pid and t["process"] == "loads", t
    for name in ("reader", "holder", "locked"):
        assert of[name]["running_ns"] == 0 and of[name]["waiting_ns"] <= 2.001e9, of[name]
    assert any(w["reason"] == of["locked"]["reason"] and w["threads"] == 1 for w in last["waits"]), last["waits"]
    functions = {f["name"]: f for f in last["functions"]}
    assert sum(f["self_ns"] for f in functions.values()) <= last["running_ns"] + len(functions)
    assert functions["heavy"]["linkage_name"] == "heavy" and functions["heavy"]["module"].endswith("/loads")


@test("by polling: the same threads and shares")
def polled(folder):
    with Loads(folder) as loads:
        found = pictures("--count=3", "--interval=1", "--method=polling", loads.pid)[-1]
    assert found["method"] == "polling"
    of = {t["name"]: t for t in found["threads"]}
    assert of["burner"]["running_ns"] > 0 and of["reader"]["running_ns"] == 0
    total = {f["name"]: f["total_ns"] for f in found["functions"]}
    assert total["heavy"] > total["light"] > 0, total


@test("a signal that is ignored from the beginning stays so: nohup")
def ignored(folder):
    with Loads(folder) as loads, Running(["env", "--ignore-signal=HUP", *AS_JSON, "--interval=0.2", loads.pid]) as running:
        assert running.line()
        running.signal(signal.SIGHUP)
        # It would be taken before the second of them.
        assert all(not json.loads(running.line())["ended"] for _ in range(3))
        running.signal(signal.SIGTERM)
        running.process.stdout.read()
        assert running.process.wait() == 0


@test("by polling: a shell that has started it is followed, and it is not")
def of_shell(_):
    with Running(["sh", "-c", '"$@" $$; sleep 1000', "sh", *AS_JSON, "--method=polling", "--interval=0.2"]) as shell:
        until(lambda: json.loads(shell.line())["threads"], "no threads")
        found = [json.loads(shell.line()) for _ in range(3)]
        assert {t["pid"] for p in found for t in p["threads"]} == {shell.pid}, found[-1]["threads"]


@test("a process that ends ends the text, too, with a last picture that says so")
def ended_text(folder):
    with Loads(folder) as loads, Running([*AS_JSON, "--interval=0.2", loads.pid]) as running:
        first = json.loads(running.line())
        assert not first["ended"]
        loads.kill()
        rest = [json.loads(line) for line in running.process.stdout]
        assert [p["reason"] for p in (first, *rest)] == [None] * len(rest) + ["all processes have ended"]
        assert [p["ended"] for p in rest[-1:]] == [True] and not any(p["ended"] for p in rest[:-1])
        assert running.process.wait() == 0


@test("-- PROGRAM: its functions; its output and input are not the terminal's; the end and its status are told")
def program_screen(folder):
    need_perf(folder)
    path = program(folder, "loads")
    os.mkfifo(f"{folder}/never")
    with open(f"{folder}/run", "w", encoding="ascii") as script:
        # A fifo that is open for both never ends.
        script.write("read word; echo read $? $word > input\n"
                     "for i in $(seq 2000); do printf '\\033[2J\\033[Hgarbage %s\\n' $i; echo wrong >&2; done\n"
                     f"{path} <> never & loads=$!\n"
                     "while [ ! -e over ]; do sleep 0.05; done\n"
                     "kill $loads; exit 5\n")
    with Terminal(folder) as terminal:
        before = terminal.settings("before")
        terminal.top("--", "sh", "run")
        cells = terminal.wait(lambda c: "heavy" in " ".join(rows_of(c, "FUNCTION")))
        assert re.fullmatch(r"fathom top  sh +\d\d:\d\d:\d\d", cells[0]), cells[0]
        assert "garbage" not in " ".join(cells) and "wrong" not in " ".join(cells), cells
        with open(f"{folder}/input", encoding="ascii") as found:
            assert found.read() == "read 1\n"
        with open(f"{folder}/over", "w", encoding="ascii"):
            pass
        cells = terminal.wait_for("HAS ENDED: exit status 5")
        assert "heavy" in " ".join(rows_of(cells, "FUNCTION")), cells
        terminal.keys("q")
        until(terminal.is_main, terminal.text)
        assert terminal.settings("after") == before
        terminal.type("clear; echo status $?")
        terminal.type(f"clear; {FATHOM} top --no-cache -- sh -c 'exit 5' < /dev/null > text; echo status $?")
        terminal.wait_for("status 5")


@test("-- PROGRAM: what it writes is in --program-output or nowhere; it reads what is no terminal, and blocks no signal")
def program_streams(folder):
    words = ("sh", "-c", "cat; echo wrong >&2; grep -E 'SigBlk' /proc/self/status; exit 3")
    for more, expected, errors in ((("--program-output", f"{folder}/out"), "given\nwrong\nSigBlk:\t0000000000000000\n", ""),
                                   ((), None, "wrong\n")):
        done = execute(*AS_JSON, *more, "--", *words, input="given\n", status=3)
        assert done.stderr == errors, done
        last = [json.loads(line) for line in done.stdout.splitlines()][-1]
        assert (last["target"], last["ended"], last["exit_status"], last["reason"]) == ("sh", True, 3, "exit status 3"), last
        assert any(t["process"] in ("sh", "cat", "grep") for t in last["threads"]), last["threads"]
        if expected:
            with open(f"{folder}/out", encoding="ascii") as out:
                assert out.read() == expected
    done = execute(FATHOM, "top", "--no-cache", "--", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV and ", has ended: killed by SIGSEGV\n" in done.stdout, done
    done = execute(*AS_JSON, "--", "sh", "-c", "kill -SEGV $$")
    last = json.loads(done.stdout)
    assert (last["exit_status"], last["reason"], last["ended"]) == (None, "killed by SIGSEGV", True), last


@test("-- PROGRAM: whoever quits ends it by SIGTERM; one that does not end is told, and runs on")
def program_ends(folder):
    script = "trap 'echo TERM >> ended; exit 9' TERM; echo > began; while :; do sleep 0.05; done"
    words = (*AS_JSON, "--interval=0.2", "--", "sh", "-c", script)
    with Running(words, cwd=folder) as running:
        until(lambda: os.path.exists(f"{folder}/began"), "it has not begun")
        assert json.loads(running.line())["exit_status"] is None
        running.signal(signal.SIGTERM)
        running.process.stdout.read()
        assert running.process.wait() == 0
        with open(f"{folder}/ended", encoding="ascii") as ended:
            assert ended.read() == "TERM\n"
    script = "trap '' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.05; done"
    with Running((*words[:-1], script), cwd=folder, stderr=-1) as running:
        until(lambda: os.path.exists(f"{folder}/pid"), "it has not begun")
        with open(f"{folder}/pid", encoding="ascii") as file:
            pid = int(file.read())
        running.signal(signal.SIGINT if running.line() else 0)
        assert running.process.stderr.readline() == f"fathom: PID {pid} is to end (Ctrl-C: it runs on)\n"
        running.signal(signal.SIGINT)
        assert running.process.stderr.readline() == f"fathom: PID {pid} has not ended at SIGTERM: it runs on\n"
        assert running.process.wait() == 0 and state_of(pid) not in "ZX"
        os.kill(pid, signal.SIGKILL)


def recorded_file(pid):
    """The file in memory that fathom top @pid records to: each recording has another one."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "fathom-top" in os.readlink(f"/proc/{pid}/fd/{fd}"):
                return os.stat(f"/proc/{pid}/fd/{fd}").st_ino
    return None


@test("-- PROGRAM: a recording that begins anew goes on with it, and its status is told")
def program_anew(folder):
    need_perf(folder)
    path = program(folder, "deep")
    # Tables have room for 4,194,304 frames.
    with Running([*AS_JSON, "--interval=0.2", "--top=3", "-F", 4999, "--names-only", "--", path]) as running:
        running.line()
        first = recorded_file(running.pid)
        until(lambda: recorded_file(running.pid) not in (None, first), "it has not begun anew")
        found = [json.loads(running.line()) for _ in range(3)]
        assert not any(p["ended"] for p in found), found
        running.send("\n")
        last = [json.loads(line) for line in running.process.stdout][-1]
        assert (last["ended"], last["exit_status"], last["target"]) == (True, 7, path), last
        assert running.process.wait() == 7


@test("what cannot be recorded is an error, as that of fathom record; words that are none")
def errors(folder):
    with Running(["true"]) as gone:
        gone.process.wait()
    for word in (gone.pid, 2 ** 22 + 7):
        top, record = refused("top", "--count=1", word), refused("record", "-o", f"{folder}/none", "-p", word)
        assert top == record, (top, record)
    assert refused("top", "x").startswith("fathom: x: is no number of a process")
    assert "either of them" in refused("top", "-a", "1")
    assert "either of them" in refused("top", "-a", "--", "true") and "either of them" in refused("top", "1", "--", "true")
    assert "no -- PROGRAM" in refused("top", "--program-output", f"{folder}/x", "1")
    assert "No such file" in refused("top", "--program-output", f"{folder}/none/x", "--", "true")
    assert execute(FATHOM, "top", "--", f"{folder}/none", status=127).stderr == f"fathom: {folder}/none: there is no such program\n"


@test("without PID: all processes", needs_root=True)
def everything(folder):
    need_perf(folder)
    with Loads(folder) as loads:
        for words in ((), ("-a",)):
            found = pictures("--count=2", "--names-only", *words)[-1]
            assert found["target"] == "all processes" and found["event"] == "cpu-clock"
            assert any(t["tid"] == loads.tids["burner"] for t in found["threads"]), found["threads"]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


@test("a user without rights: the processes of the user, and those alone", needs_root=True)
def without_rights(folder):
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        if int(file.read()) < 1:
            raise tap.Skip("all users may record all processes here (kernel.perf_event_paranoid)")
    tool = copy_for_all(folder)
    path = program(folder, "loads")
    # One of them has ended, and nobody waits for it.
    with Loads(folder) as others, Running(as_user(NOBODY, "sh", "-c", "true & exec sleep 1000")) as parent, \
            Running(as_user(NOBODY, path)) as own:
        until(lambda: any(state_of(pid) == "Z" for pid in children_of(parent.pid)), "no zombie")
        tids = dict(line.split() for line in iter(own.line, "ready"))
        done = execute(tool, "top", "--json", "--no-cache", "--count=2", user=NOBODY, status=0)
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["target"] == "processes of nobody", found["target"]
        seen = {t["tid"] for t in found["threads"]}
        assert int(tids["burner"]) in seen and others.tids["burner"] not in seen, seen
        assert "permi" in execute(tool, "top", "-a", "--count=1", user=NOBODY, status=2).stderr


@test("of two processes one may not be observed: the other is recorded as if it were alone", needs_root=True)
def denied(folder):
    need_perf(folder)
    tool = copy_for_all(folder)
    path = program(folder, "loads")
    with Loads(folder) as others, Running(as_user(NOBODY, path)) as own:
        tids = {int(line.split()[1]) for line in iter(own.line, "ready")}
        words = ("top", "--json", "--no-cache", "--count=1")
        for pids in (f"{others.pid},{own.pid}", f"{own.pid},{others.pid}"):
            alone, both = (json.loads(execute(tool, *words, which, user=NOBODY, status=0).stdout) for which in (own.pid, pids))
            if alone["method"] != "perf-events":
                raise tap.Skip("users without rights may use no perf events here")
            assert both["method"] == "perf-events" and both["threads_left_out"] == len(os.listdir(f"/proc/{others.pid}/task"))
            assert {t["tid"] for t in both["threads"]} <= tids | {own.pid}, both["threads"]


@test("a file whose functions come one after the other is opened for their names once")
def opened_once(folder):
    if not shutil.which("strace"):
        raise tap.Skip("strace is not installed")
    path = program(folder, "phases")
    with Running([path]) as phases, \
            Running(["strace", "-f", "-q", "-e", "trace=openat", "-o", f"{folder}/log", *AS_JSON, "--names-only", "--interval=0.2",
                     "--window=100", phases.pid]) as running:
        first = {}

        def is_whole():
            picture = json.loads(running.line())
            for f in picture["functions"]:
                first.setdefault(f["name"], picture["time_ms"])
            return {f"phase{i}" for i in range(8)} <= set(first)
        until(is_whole, lambda: first)
    batches = {when for name, when in first.items() if name and name.startswith("phase")}
    with open(f"{folder}/log", encoding="utf-8", errors="replace") as log:
        opened = [line for line in log if f'"{path}"' in line]
    # The recorder opens it as the process has it mapped, and may once more where it looks for its build-id.
    assert len(batches) >= 5 and len(opened) <= 3, (first, opened)


@test("its own cost is what the kernel says that it has used")
def own_cost(folder):
    with Loads(folder) as loads, Running([*AS_JSON, "--interval=0.5", loads.pid]) as running:
        found = [json.loads(running.line()) for _ in range(4)]
        with open(f"/proc/{running.pid}/stat", encoding="ascii") as stat:
            ticks = sum(int(word) for word in stat.read().rpartition(")")[2].split()[11:13])
        used = ticks / os.sysconf("SC_CLK_TCK")
        told = sum(b["own_ppm"] / 1e6 * (b["time_ms"] - a["time_ms"]) / 1e3 for a, b in zip(found, found[1:]))
        assert 0 < told <= used + 0.05, (told, used)
        assert state_of(running.pid) != "Z"


sys.exit(SUITE.run())
