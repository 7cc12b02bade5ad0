# SPDX-License-Identifier: MIT
"""Tests of programs that have the tracer inside: --ftrace, FATHOM_TRACE, fathom_trace_start(), Python."""
import json
import os
import signal
import subprocess
import sys

import building
from ask import FATHOM, execute, run
from traced import PROGRAMS, SITES, TOP, build, calls, counts, test

LIBRARIES = os.path.join(os.environ["BUILD"], "src")


def flags(*words):
    """What pkg-config says for a program that is linked with the library, before it is installed."""
    env = os.environ | {"PKG_CONFIG_PATH": os.path.join(os.environ["BUILD"], "meson-uninstalled")}
    return run("pkg-config", *words, "--cflags", "--libs", "fathom-trace", env=env).split()


def own(folder, *options, source="own.c", out="own"):
    """A program with the tracer in a shared object, or, with -static, in itself."""
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    static = [word for word in options if word.startswith("-static")]
    return build(folder, source, *options, *flags(*["--static"] if static else []), *[] if static else [f"-Wl,-rpath,{LIBRARIES}"],
                 "-pthread", out=out)


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


@test("where another one traces: told once, and the flag is not seen")
def _(folder):
    path = own(folder)
    log = os.path.join(folder, "log")
    done = execute(FATHOM, "trace", "--json", "--log", log, "--", path, "words", "--ftrace", status=0)
    assert done.stdout.startswith("2 whole words\n") and not done.stderr, done
    assert counts(read(log))["leaf"] == 1000
    done = execute("strace", "-f", "-o", "/dev/null", path, "words", "--ftrace", status=0)
    assert done.stdout.startswith("2 whole words\n") and not done.stderr, done


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
""")
    env = os.environ | {"PYTHONPATH": os.path.join(TOP, "python"), "LD_LIBRARY_PATH": LIBRARIES}
    done = execute(sys.executable, program, env=env, status=0)
    assert done.stdout.splitlines() == ["this process does not trace itself", "no such option of a trace (fathom_trace(3))", "0 waitpid"], \
        done.stdout
    assert counts(read(log))["getpgid"] == 10, counts(read(log))
