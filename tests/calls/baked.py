# SPDX-License-Identifier: MIT
"""Tests of programs that have the tracer inside: --ftrace, FATHOM_TRACE, fathom_trace_start(), Python."""
import json
import os
import re
import signal
import subprocess
import time

import building
from ask import FATHOM, execute, run
from linking import LIBRARIES, flags
from running import content, until
from traced import PROGRAMS, SITES, build, calls, counts, test


def own(folder, *options, source="own.c", out="own", sites=("-O1", SITES), compiler="gcc"):
    """A program with the tracer in a shared object, or, with -static, in itself."""
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    static = [word for word in options if word.startswith("-static")]
    return build(folder, source, *options, *flags("fathom-trace", *options), *[] if static else [f"-Wl,-rpath,{LIBRARIES}"],
                 "-pthread", flags=sites, out=out, compiler=compiler)


def read(log):
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@test("--ftrace: the example of the document that it comes from, as shared objects, static and static PIE; main sees neither it nor a wrong count")
def _(folder):
    for options in (), ("-static",), ("-static-pie",), ("-no-pie",):
        path = own(folder, *options, source="pause.c", out="pause")
        done = execute(path, "--ftrace", "word", status=0)
        assert done.stdout == "2 word\n", (options, done.stdout)
        lines = done.stderr.splitlines()
        assert lines[0].split() == ["#", "tid", "nanoseconds", "stack", "symbol"], lines
        rest = [(line.split()[0], line[32:]) for line in lines[1:]]
        pairs = 4 * [("FUN", "  &DoStuff"), ("FUN", "    &Pause \xd710'000")]
        assert rest == [("FUN", "&main"), *pairs, ("END", "status 0")], (options, lines)


@test("--ftrace: layers of dashes, --, options behind =, an environment that stays, and nothing that shows the reader")
def _(folder):
    log = os.path.join(folder, "log")
    for options in (), ("-static",), ("-static-pie",):
        path = own(folder, *options)
        env = os.environ | {"WORD": "kept"}
        for given, left in (((), []), (("--ftrace",), []), (("--ftrace", "a", "--ftrace", "b"), ["a", "b"]),
                            (("----ftrace",), ["--ftrace"]), (("------ftrace", "--ftrace"), ["----ftrace"]),
                            (("-----ftrace", "--ftracer", "-ftrace"), ["-----ftrace", "--ftracer", "-ftrace"]),
                            (("--ftrace", "--", "--ftrace", "----ftrace"), ["--", "--ftrace", "----ftrace"]),
                            (("----ftrace=--json",), ["--ftrace=--json"])):
            if os.path.exists(log):
                os.remove(log)
            done = execute(path, "words", *[w + "=--log " + log if w == "--ftrace" else w for w in given], env=env, status=0)
            left = [w + "=--log " + log if w == "--ftrace" and "--" in left else w for w in left]
            expected = " ".join([str(2 + len(left)), "whole", "words", *left])
            assert done.stdout == f"{expected}\nbehind kept 4096\n-1 none 3\n" and not done.stderr, (options, given, done.stdout, done.stderr)
            ours = given[:given.index("--")] if "--" in given else given
            assert os.path.exists(log) == ("--ftrace" in ours), (options, given)
            if os.path.exists(log):
                with open(log, encoding="utf-8") as f:
                    text = f.read()
                assert "&leaf \xd71'000\n" in text and text.endswith(" status 0\n"), text


@test("FATHOM_TRACE: as --ftrace, for programs that pass no flags; 0 is off; wrong words are told, and the program runs")
def _(folder):
    path = own(folder)
    log = os.path.join(folder, "log")
    execute(path, "words", env=os.environ | {"FATHOM_TRACE": f"--json --only 'leaf' --only work --log {log}"}, status=0)
    events = read(log)
    assert calls(events) == [("work", 0, 1), ("leaf", 1, 1000)], events
    done = execute(path, "words", env=os.environ | {"FATHOM_TRACE": "0"}, status=0)
    assert not done.stderr
    done = execute(path, "words", env=os.environ | {"FATHOM_TRACE": "1"}, status=0)
    assert "&main" in done.stderr
    for words in "--nonsense", "--depth", "--depth x", "--clock fast", "--at leaf", "--log /nowhere/log":
        done = execute(path, "words", "--ftrace=" + words, status=0)
        assert done.stderr.startswith("fathom: not traced: ") and done.stderr.count("\n") == 1, done.stderr
        assert done.stdout.startswith("2 whole words\n"), done.stdout
    for word, start in ("--tree", "#       calls"), ("--export collapsed", "own;main"), ("--export chrome", "{"):
        execute(path, "words", f"--ftrace={word} --log {log}", status=0)
        with open(log, encoding="utf-8") as f:
            assert f.read().startswith(start), word
    execute(path, "words", f"--ftrace=-o {log}", status=0)
    told = [json.loads(line) for line in execute(FATHOM, "trace", "--json", "--read", log, status=0).stdout.splitlines()]
    assert counts(told)["leaf"] == 1000


@test("FATHOM_TRACE: an option's word may stand behind =, as on the command's line")
def _(folder):
    path = own(folder)
    log = os.path.join(folder, "log")
    execute(path, "words", env=os.environ | {"FATHOM_TRACE": f"--json --only='leaf' --only=work --calls=never --log={log}"}, status=0)
    events = read(log)
    assert calls(events) == [("work", 0, 1), ("leaf", 1, 1000)], events
    for wrong, why in ("--only=", "a query without a name"), ("--calls=", "has a wrong word"), ("--onl=leaf", "no such option"), ("--only=leaf --json=1", "no such option"):
        done = execute(path, "words", env=os.environ | {"FATHOM_TRACE": f"{wrong} --log {log}"}, status=0)
        assert why in done.stderr and "whole words" in done.stdout, (wrong, done.stderr)


@test("--strace: the calls of strace, of the program only; with --ftrace within their functions; layers of dashes, STRACE, options")
def _(folder):
    file, log = os.path.join(folder, "file"), os.path.join(folder, "log")
    for options in (), ("-static",):
        path = own(folder, *options, source="saves.c", out="saves")

        def ours(*words, env=None):
            done = execute(path, *words, env=os.environ | (env or {}), status=3)
            return done, [line for line in done.stderr.splitlines() if line[:3] in ("SYS", "FUN", "END")]

        execute("strace", "-o", log, path, file, status=3)
        with open(log, encoding="utf-8") as f:
            theirs = [line.split("(")[0] for line in f]
        # The library has used the heap before.
        theirs = [name for name in theirs[theirs.index("creat"):] if name.isidentifier() and name not in ("brk", "getrandom")]
        for words, env in ((file, "--strace"), {}), ((file,), {"STRACE": "1"}), ((file, "--strace=--string-limit 9"), {"STRACE": "0"}):
            done, lines = ours(*words, env=env)
            assert done.stdout == f"2 5\n{file}\n", (words, done.stdout)
            found = [re.search(r"(\w+)\(", line[32:])[1] for line in lines if line.startswith("SYS")]
            found = [name for name in found if name not in ("brk", "getrandom")]
            assert found == theirs and lines[-1][32:] == "status 3" and not any(line.startswith("FUN") for line in lines), (words, lines, theirs)
        _, lines = ours(file, "--strace", "--ftrace")
        assert [line[32:] for line in lines if line.startswith(("FUN", "SYS")) and "fstat" not in line][:6] == [
            "&main", "  &save", f'    creat("{file}", 0644) → 3', '    write(3, u"hello", 5) → 5', "    fsync(3) → 0", "    close(3) → 0"], lines
        done, lines = ours(file, "----strace")
        assert done.stdout == f"3 5\n{file}\n--strace\n" and not lines, done
        _, lines = ours(file, "--ftrace=--syscalls=fsync --no-functions --inject fsync:retval=7")
        assert [line[32:] for line in lines] == ["fsync(3) → 7 (injected)", "status 3"], lines
    done = execute(path, file, "--ftrace=--no-functions", status=3)
    assert done.stderr.startswith("fathom: not traced: --no-functions leaves nothing without --syscalls"), done.stderr


@test("--ftrace: the log is whole when who waits for the program learns of its end, also of one that crashes or is killed; children and threads")
def _(folder):
    path = own(folder)
    log = os.path.join(folder, "log")
    for i in range(60):
        execute(path, "words", f"--ftrace=--log {log}", status=0)
        with open(log, encoding="utf-8") as f:
            assert f.read().endswith(" status 0\n"), i
    # Perhaps a jump to nothing is the oldest use: the last line is who did it.
    done = execute(path, "null", f"--ftrace=--json --log {log}", status=-signal.SIGSEGV)
    events = [e for e in read(log) if e["type"] != "exit"]
    assert [(e["type"], e["function"] or e["text"]) for e in events] == [("call", "main"), ("call", "work"), ("call", "leaf"), ("signal", "SIGSEGV")]
    # The reader follows children: flags for them would make another trace.
    done = execute(path, "pass", "words", "--ftrace", "----ftrace", status=0)
    assert done.stdout == "2 whole words\nbehind - 4096\n-1 none 3\nchild 0\n", done.stdout
    assert "&leaf \xd71'000" in done.stderr and "program " in done.stderr, done.stderr


@test("-c of --ftrace: each function and its calls, as text and as JSON; of a program that crashes, too; with returns, times that add up")
def _(folder):
    log = os.path.join(folder, "log")
    for options in (), ("-static",):
        path = own(folder, *options, source="pause.c", out="pause")
        done = execute(path, "--ftrace=-c", status=0)
        assert done.stderr == "".join(f"{n:>13} {name}\n" for n, name in (
            ("#       calls", "symbol (module)"), ("40'000", "&Pause (pause)"), ("4", "&DoStuff (pause)"), ("1", "&main (pause)"))), done.stderr
        execute(path, env=os.environ | {"FATHOM_TRACE": f"--count --json --only *a* --log {log}"}, status=0)
        rows = [{"function": name, "module": os.path.realpath(path), "calls": n} for name, n in (("Pause", 40000), ("main", 1))]
        assert read(log) == rows, read(log)
        path = own(folder, *options)
        execute(path, "null", f"--ftrace=-c --json --log {log}", status=-signal.SIGSEGV)
        assert {r["function"]: r["calls"] for r in read(log)} == {"main": 1, "work": 1, "leaf": 1}, read(log)
        run(path, "part", "-c --json --log " + log)
        assert {r["function"]: r["calls"] for r in read(log) if r["function"] in ("work", "leaf")} == {"work": 2, "leaf": 20 + 80}, read(log)
    path = build(folder, "pause.c", *flags("fathom-trace"), f"-Wl,-rpath,{LIBRARIES}", out="returns",
                 flags=["-O1", "-minstrument-return=nop5", "-mrecord-return", "-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie"])
    execute(path, f"--ftrace=-c --json --exits --log {log}", status=0)
    rows = {r["function"]: r for r in read(log)}
    assert {name: (r["calls"], r["returns"]) for name, r in rows.items()} == \
        {"main": (1, 1), "DoStuff": (4, 4), "Pause": (40000, 40000)}, rows
    for name, callee in (("main", "DoStuff"), ("DoStuff", "Pause"), ("Pause", None)):
        r = rows[name]
        assert r["self_ns"] == r["total_ns"] - (rows[callee]["total_ns"] if callee else 0), rows
        assert r["min_ns"] <= r["mean_ns"] == r["total_ns"] // r["calls"] and r["p99_ns"] <= r["max_ns"] <= r["total_ns"], rows
        assert r["min_ns"] <= r["p99_ns"], rows
    assert rows["main"]["min_ns"] == rows["main"]["max_ns"] == rows["main"]["total_ns"], rows
    for words in "-c --tree", "-c -o x", "--export dot --count":
        done = execute(path, "--ftrace=" + words, status=0)
        assert done.stderr.startswith("fathom: not traced: -c counts"), done.stderr


def told(events):
    """What calls and signals, and how a process ends: with how often, if it is folded."""
    return [(e["function"] or e["text"], e["count"]) for e in events]


# What `own end` calls.
ENDING = [("main", 1), ("work", 1), ("leaf", 10), ("work", 1), ("leaf", 3)]
UNFOLDED = [(name, 1) for name, n in ENDING for _ in range(n)]


@test("--last of --ftrace: the end of a program that crashes, is killed or fails, to the event, when it is known to have ended; nothing of one that does not")
def _(folder):
    log = os.path.join(folder, "log")
    for options in (), ("-static",):
        path = own(folder, *options)
        for how, status, end in (("aborted", -signal.SIGABRT, ["SIGABRT", "killed by SIGABRT"]), ("killed", -signal.SIGKILL, ["killed by SIGKILL"]),
                                 ("7", 7, ["status 7"]), ("0", 0, None)):
            end = end and [(text, 1) for text in end]
            # More than the rings keep, and what is to be done at calls: they are read all the time.
            for more in "", "--under main", "--at nowhere:stop":
                for fold, whole in ("", ENDING), ("--no-fold", UNFOLDED):
                    for n in 1, 2, 4, 100, 70000:
                        execute(path, "end", how, f"--ftrace=--json --last {n} {fold} {more} --log {log}", status=status)
                        expected = whole[-n:] + end if end else []
                        assert told(read(log)) == expected, (options, how, more, fold, n, read(log))
        execute(path, "null", f"--ftrace=--json --last 1 --log {log}", status=-signal.SIGSEGV)
        assert told(read(log)) == [("leaf", 1), ("SIGSEGV", 1), ("killed by SIGSEGV", 1)], read(log)
    # The lines of text, and counts of the last events.
    done = execute(path, "end", "7", env=os.environ | {"FATHOM_TRACE": "--last 2"}, status=7)
    assert [line[32:].strip() for line in done.stderr.splitlines()] == ["symbol", "&work", "&leaf \xd73", "status 7"], done.stderr
    assert not execute(path, "end", "0", "--ftrace=--last 3", status=0).stderr
    execute(path, "end", "7", f"--ftrace=-c --json --last 3 --log {log}", status=7)
    assert {r["function"]: r["calls"] for r in read(log)} == {"leaf": 13, "work": 1}, read(log)
    for words in "--last", "--last 0", "--last x", "--last 16777217":
        done = execute(path, "end", "7", "--ftrace=" + words, status=7)
        assert done.stderr.startswith("fathom: not traced: ") and done.stderr.count("\n") == 1, (words, done.stderr)


@test("--last of --ftrace: a process whose first thread has ended before; one that its children outlive")
def _(folder):
    log = os.path.join(folder, "log")
    path = own(folder)
    for more in "", "--under work":
        execute(path, "end", "apart", f"--ftrace=--json --last 2 {more} --log {log}", status=7)
        assert told(read(log)) == [("work", 1), ("leaf", 3), ("status 7", 1), ("status 7", 1)], (more, read(log))
        with subprocess.Popen([path, "end", "outlived", f"--ftrace=--json --last 1 {more} --only leaf --log {log}"], stdin=subprocess.PIPE) as program:
            assert program.wait() == -signal.SIGABRT
            expected = [("SIGABRT", 1), ("killed by SIGABRT", 1)]
            events = told(read(log))
            assert events[-2:] == expected and [name for name, _ in events].count("leaf") == (not more), (more, events)
            program.stdin.close()
        assert told(read(log)) == events, more


def ask(pid):
    """Sends SIGUSR1 to the process that traces another one."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        os.kill(next(int(line.split()[1]) for line in f if line.startswith("TracerPid:")), signal.SIGUSR1)


@test("--last of --ftrace: what SIGUSR1 to the reader, --at QUERY:dump and fathom_trace_stop ask for")
def _(folder):
    log = os.path.join(folder, "log")
    path = own(folder)
    for words, parts in (("--last 2", [[("work", 1), ("leaf", n)] for n in (10, 20, 30)]),
                         ("--last 4 --no-fold", 3 * [4 * [("leaf", 1)]]),
                         ("--last 25 --no-fold --under work", [[("work", 1)] + n * [("leaf", 1)] for n in (10, 20)] + [25 * [("leaf", 1)]])):
        expected = []
        with subprocess.Popen([path, "wait", f"--ftrace=--json --not wait_for_line {words} --log {log}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            for part in parts:
                assert program.stdout.readline() == "done\n"
                assert told(read(log)) == expected, (words, read(log))
                time.sleep(0.05)
                ask(program.pid)
                expected += part
                until(lambda: content(log).count("\n") >= len(expected), lambda: content(log))
                assert told(read(log)) == expected, (words, read(log))
                program.stdin.write("\n")
                program.stdin.flush()
            assert program.wait() == 0
        assert told(read(log)) == expected, (words, read(log))
    execute(path, "end", "0", f"--ftrace=--json --last 2 --no-fold --at work:dump --log {log}", status=0)
    assert told(read(log)) == [("main", 1), ("work", 1), ("leaf", 1), ("work", 1)], read(log)
    run(path, "part", "--json --last 2 --not begin --log " + log)
    assert told(read(log)) == [("work", 1), ("leaf", 80)], read(log)
    # Without --last the signal asks for nothing, and ends nothing.
    with subprocess.Popen([path, "wait", f"--ftrace=--json --log {log}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "done\n"
        ask(program.pid)
        program.stdin.close()
        assert program.wait() == 0
    assert counts(read(log)) == {"main": 1, "work": 3, "leaf": 60, "wait_for_line": 3}, counts(read(log))


@test("fathom_trace_start, fathom_trace_stop, fathom_trace_thread: each call of the region and of no other; scopes by thread")
def _(folder):
    log = os.path.join(folder, "log")
    for options in (), ("-static",):
        path = own(folder, *options)
        said = run(path, "part", "--json --log " + log)
        assert said.splitlines() == ["1 0", "not: it is traced already", "once", "1 0"], said
        assert counts(read(log))["leaf"] == 20 + 80, counts(read(log))
        said = run(path, "scopes", "--json --scopes --log " + log)
        assert said == "0 1\n" and counts(read(log)) == {"leaf": 7, "work": 1}, (said, counts(read(log)))


@test("fathom_trace_start, fathom_trace_stop: 30 times while threads run: text is what it was, nobody falls")
def _(folder):
    path = own(folder)
    assert run(path, "toggle", "--log /dev/null", 30) == "0 wrong\n"


@test("single steps through recorded calls, with the tracer inside: at each instruction libgcc and fathom_unwind() find the callers")
def _(folder):
    log = os.path.join(folder, "log")
    cases = (("prefix", SITES), ("slot", "-fpatchable-function-entry=5"), ("fentry", "-pg -mfentry"), ("prologue", "-pg"),
             ("own", "-finstrument-functions"), ("calls", "-DCALLS"), ("calls-directly", "-DCALLS -fno-plt"))
    for name, options in cases:
        path = own(folder, "-Wl,-z,now", "-rdynamic", source="stepped_own.c", out=name, sites=["-O1", *options.split()])
        function = "getppid" if "calls" in name else "leaf"
        # Without ptrace the hook is in the library, and slots alone lead there.
        for method in ("ptrace", "rewrite") if name in ("prefix", "slot") else ("ptrace",):
            done = execute(path, f"--ftrace=--log {log} --lossy --no-fold --method {method} --only {function}", status=0)
            result, steps, outside, lost, lost_own = map(int, done.stdout.split())
            with open(log, encoding="utf-8") as f:
                recorded = f.read().count("&" + function)
            least = 100 if method == "ptrace" else 5
            assert result == 9 and recorded == 3 and steps > 150 and outside > least, (name, method, done.stdout, recorded)
            assert lost == lost_own == 0, (name, method, done.stdout, done.stderr)


@test("library calls of a program with the tracer inside: each of its own, none of the tracer's library")
def _(folder):
    log = os.path.join(folder, "log")
    path = own(folder, "-Wl,-z,now", source="stepped_own.c", out="calls", sites=["-O1", "-DCALLS"])
    done = execute(path, f"--ftrace=--log {log} --no-fold --json", status=0)
    assert done.stdout.startswith("9 "), done.stdout
    found = counts(read(log))
    found = {name: found[name] for name in ("getppid", "sigaction", "printf", "syscall", "pthread_mutex_trylock", "getauxval") if found[name]}
    assert found == {"getppid": 3, "sigaction": 1, "printf": 2}, found


@test("preloaded into a stock program: its calls of libraries are as many as when fathom runs it, and it prints the same")
def _(folder):
    log = os.path.join(folder, "log")
    library = os.path.join(LIBRARIES, "libfathom-trace.so")
    building.plain(library)
    words = ("/usr/bin/sort", "--debug", os.path.join(PROGRAMS, "own.c"))
    env = os.environ | {"LD_PRELOAD": library, "FATHOM_TRACE": f"--json --log {log}", "LD_LIBRARY_PATH": LIBRARIES}
    said = execute(*words, env=env, status=0).stdout
    own_calls = counts([e for e in read(log) if os.path.basename(e["module"] or "") == "sort"])
    done = execute(FATHOM, "trace", "--json", "--log", log, "--", *words, status=0)
    assert said == done.stdout == run(*words)
    expected = counts([e for e in read(log) if os.path.basename(e["module"] or "") == "sort"])
    assert own_calls == expected and sum(own_calls.values()) > 500, (own_calls, expected)


@test("where fathom traces: told once, and the flag is not seen")
def _(folder):
    path = own(folder)
    log = os.path.join(folder, "log")
    done = execute(FATHOM, "trace", "--json", "--log", log, "--", path, "words", "--ftrace", status=0)
    assert done.stdout.startswith("2 whole words\n") and not done.stderr, done
    assert counts(read(log))["leaf"] == 1000


@test("Python: with fathom.ftrace() logs what Debian's own interpreter calls meanwhile, and nothing else; the interpreter goes on")
def _(folder):
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    log = os.path.join(folder, "log")
    program = os.path.join(folder, "program.py")
    with open(program, "w", encoding="utf-8") as f:
        f.write(f"""
import os, math, fathom
os.getpgid(0)
with fathom.ftrace("--json --log {log}"):
    for _ in range(10):
        os.getpgid(0)
os.getpgid(0)
try:
    fathom.stop()
except fathom.Error as e:
    print(e)
try:
    with fathom.ftrace("--nonsense"):
        print("wrong")
except fathom.Error as e:
    print(e)
print(fathom.thread(0), os.waitpid.__name__)


def mappings():
    with open("/proc/self/maps") as maps:
        return len(maps.readlines())


known = []
for i in range(6):
    with fathom.ftrace("--log /dev/null"):
        os.getpgid(0)
    known.append(mappings())
print(known[1:5] == known[2:], known)
""")
    env = os.environ | {"PYTHONPATH": os.path.join(os.environ["BUILD"], "python")}
    done = execute("/usr/bin/python3", program, env=env, status=0)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["this process does not trace itself", "no such option of a trace (fathom_trace(3))", "0 waitpid"], lines
    assert lines[3].startswith("True"), lines
    assert counts(read(log))["getpgid"] == 10, counts(read(log))
