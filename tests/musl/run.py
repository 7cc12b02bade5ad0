#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "musl": the tree, built by musl-gcc without the optional libraries. Its command answers as the command under test does,
passes the tests of addr, find and stack, and the two files to vendor work in programs of musl.

MUSL: the folder of that build, and all tests run. Without it, it is below BUILD, and of those of find a part runs."""
import functools
import json
import os
import re
import sys
import time
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from building import build, nm  # noqa: E402
from running import Running  # noqa: E402

SUITE = tap.Suite("musl")
test = SUITE.test

MUSL = os.environ.get("MUSL") or os.path.join(os.environ["BUILD"], "musl")
COMMAND = os.path.join(MUSL, "fathom")
PARTS = ("fathom", "src/libfathom.a", "src/libfathom.so.0.1.0", "src/libfathom-crash.so", "src/libfathom-trace.so.0.1.0")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wvla", "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wpointer-arith",
            "-Wimplicit-fallthrough", "-Wundef", "-Wcast-align", "-Wwrite-strings", "-Werror")
LINKED = {"musl": ("musl-gcc", ()), "musl, static": ("musl-gcc", ("-static",)), "glibc": ("gcc", ()), "glibc, static": ("gcc", ("-static",))}

# What the build lacks, and the tests that need it: (suite, name) with * for anything.
LACKS = {
    "no demangler": [("addr", "--no-demangle *"), ("find", "demangled names: *"), ("find", "tags of the ABI: *"), ("find", "thousands of names, *"),
                     ("find", "file:line: paths match by whole parts, *"), ("find", "inlined copies: *")],
    "no decompressor": [("addr", "a compressed file *"), ("addr", "compressed files *"), ("find", "debug files and MiniDebugInfo: *"),
                        ("find", "* whose symbols are found by MiniDebugInfo")],
    "no disassembler": [("find", "one address for a name: all *"), ("find", "one address for a name: addr, *"),
                        ("find", "one address for a name: two *"), ("find", "one address for a name: a live *"),
                        ("words", "-p PID and -e FILE name *")],
}
# Tests of find that are quick, and each about something else.
FEW = ("standard input: *", "a library with versions: *", "without section headers, *", "relocatable files: *", "static programs: *",
       "an interpreter that is the program itself, *")

LOCK = threading.Lock()


def is_one(name, pattern):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name)


@functools.cache
def compiled():
    """What the build says, or why there is none."""
    done = execute(os.path.join(TOP, "tools", "musl"), MUSL)
    if not done.returncode:
        done = execute("ninja", "-C", MUSL, *PARTS)
    return done


def need_build():
    with LOCK:
        done = compiled()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr


@test("the library and the command: musl-gcc compiles them without a warning")
def _(_):
    need_build()
    assert "ld-musl" in run("readelf", "-lW", COMMAND), "the command is not of musl"


def functions_of(path, most=3000):
    """Names and addresses of functions of @path, at most so many."""
    found = [(name, value) for name, places in nm(path).items() for value, kind in places if kind in "tTwWi"]
    found += [(name, value) for name, places in nm(path, "-D").items() for value, kind in places if kind in "TWi"]
    found = sorted(set(found))
    return found[::max(1, len(found) // most)]


def both(verb, path, words):
    """What both commands print for @words: first the one under test, then that of musl."""
    need_build()
    options = ("--json", "--no-cache") + (("--no-demangle",) if verb == "addr" else ())
    said = [run(command, verb, *options, path, input="".join(f"{word}\n" for word in words), status=(0, 1)) for command in (FATHOM, COMMAND)]
    return [text.splitlines() for text in said]


def check_same(path, needed):
    functions = functions_of(path)
    assert len(functions) >= needed, (path, len(functions))
    places = [hex(value + step) for _, value in functions for step in (0, 1, 7)]
    ours, theirs = both("addr", path, places)
    assert len(ours) == len(places) and ours == theirs, next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), "lines lack")
    named = [json.loads(line) for line in theirs[::3]]
    assert sum(answer["symbol"] is not None for answer in named) >= 0.95 * len(named), f"{path}: few names"
    ours, theirs = both("find", path, [name for name, _ in functions if name.isidentifier()])
    assert len(ours) >= len(functions) / 2 and ours == theirs, \
        next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), "lines lack")


for _title, (_compiler, _options) in LINKED.items():
    def _same(folder, compiler=_compiler, options=_options):
        path = build(os.path.join(folder, "waits"), os.path.join(HERE, "programs", "waits.c"), *options, compiler=compiler)
        check_same(path, 4)
        (answer,) = [json.loads(line) for line in run(COMMAND, "addr", "--json", "--no-cache", path, "outer").splitlines()]
        line = 1 + next(i for i, text in enumerate(open(os.path.join(HERE, "programs", "waits.c"), encoding="ascii")) if " outer(" in text)
        frame = answer["frames"][0]
        assert (frame["function"], os.path.basename(frame["file"]), line <= frame["line"] <= line + 1) == ("outer", "waits.c", True), answer
    SUITE.add(f"addr and find, a program: the answers of the command under test: {_title}", _same)


@test("addr and find, the C libraries of both kinds: the answers of the command under test")
def _(folder):
    for path, needed in (("/usr/lib/x86_64-linux-musl/libc.so", 1000), ("/usr/lib/x86_64-linux-gnu/libc.so.6", 700)):
        # Its debug file may be compressed; musl has none.
        if "gnu" in path:
            copy = os.path.join(folder, os.path.basename(path))
            run("objcopy", "-R", ".note.gnu.build-id", "-R", ".gnu_debuglink", path, copy)
            path = copy
        check_same(path, needed)


def stack_of(command, pid):
    (thread,) = [json.loads(line) for line in run(command, "stack", "--json", "--no-cache", str(pid), status=(0, 1)).splitlines()]
    return [(f["symbol"], f["frames"][-1]["line"] if f["frames"] else None, f["trust"]) for f in thread["frames"]]


for _title, (_compiler, _options) in LINKED.items():
    def _stacks(folder, compiler=_compiler, options=_options):
        need_build()
        path = build(os.path.join(folder, "waits"), os.path.join(HERE, "programs", "waits.c"), *options, compiler=compiler)
        with Running([path]) as program:
            assert program.line() == "there"
            # On a busy machine it may still be in fflush().
            until = time.monotonic() + 600
            while stack_of(COMMAND, program.pid)[0][0] != "inner" and time.monotonic() < until:
                time.sleep(0.05)
            ours, theirs = (stack_of(command, program.pid) for command in (FATHOM, COMMAND))
            address = nm(path)["outer"][0][0]
            assert [frame[0] for frame in theirs[:3]] == ["inner", "outer", "main"], theirs
            # Behind main() musl has no rules, and the build no disassembler; debug files of glibc may be compressed.
            assert ours[:3] == theirs[:3], (ours, theirs)
            if compiler == "gcc":
                assert [f[2] for f in ours] == [f[2] for f in theirs] and theirs[-1][0] == "_start", (ours, theirs)
            if "-static" in options:
                (answer,) = [json.loads(line) for line in run(COMMAND, "addr", "--json", str(program.pid), hex(address)).splitlines()]
                assert answer["symbol"] == "outer", answer
    SUITE.add(f"stack: a running program, whose stack is known: {_title}", _stacks)


def vendored(folder):
    run("python3", os.path.join(TOP, "tools", "vendor_jit.py"), folder)


@test("the two files to vendor: musl-gcc compiles them without a warning")
def _(folder):
    vendored(folder)
    for level in ("-O0", "-O2"):
        done = execute("musl-gcc", "-std=c17", level, *WARNINGS, "-c", "fathom_jit.c", "-o", "fathom_jit.o", cwd=folder)
        assert done.returncode == 0 and not done.stderr, done.stderr


for _title in ("musl", "musl, static"):
    def _published(folder, options=LINKED[_title][1]):
        need_build()
        vendored(folder)
        run("musl-gcc", "-std=gnu17", "-g", "-O1", "-Wl,--eh-frame-hdr", *options, "-I", folder, "-o", "published", os.path.join(HERE, "programs", "published.c"),
            os.path.join(HERE, "programs", "find_object.c"), "fathom_jit.c", cwd=folder)
        path = os.path.join(folder, "published")
        # libgcc goes through the made code, once, to main(); its result is that of the made code.
        walked, result = run(path).splitlines()
        assert walked.split()[1:] == ["1", "1"] and result == "43", (walked, result)
        with Running([path, "wait"]) as program:
            made = int(program.line().split()[0], 16)
            for command in (FATHOM, COMMAND):
                names = [name for name, _, _ in stack_of(command, program.pid)]
                assert names[:3] == ["walk", "made_of_musl", "main"], (command, names)
                (answer,) = [json.loads(line) for line in run(command, "addr", "--json", str(program.pid), hex(made + 4)).splitlines()]
                assert (answer["symbol"], int(answer["offset"], 0) if isinstance(answer["offset"], str) else answer["offset"]) == ("made_of_musl", 4), answer
                (found,) = [json.loads(line) for line in run(command, "find", "--json", str(program.pid), "made_of_musl").splitlines()]
                assert int(found["address"], 16) == made, found
            text = run("gdb", "-q", "-nx", "-batch", "-p", str(program.pid), "-ex", "bt")
            assert re.findall(r"^#\d+ .*?(\w+) \(", text, re.M)[:3] == ["walk", "made_of_musl", "main"], text
    SUITE.add(f"the two files to vendor: libgcc, gdb and fathom go through published code: {_title}", _published)


def environment():
    return dict(os.environ, FATHOM=COMMAND, BUILD=MUSL, XDG_CACHE_HOME=os.path.join(MUSL, "test-cache"))


def lacking(suite, name):
    for why, tests in LACKS.items():
        if any(suite == of and is_one(name, pattern) for of, pattern in tests):
            raise tap.Skip(f"the build has {why}")


def outcomes(text, suite):
    """{name: (passed, details)} of TAP."""
    found = {}
    name = ""
    for line in text.splitlines():
        m = re.match(r"(ok|not ok) \d+ (?:- )?" + suite + r": (.*?)(?: in \d+ms)?(?: # .*)?$", line)
        if m:
            name = m[2]
            found[name] = (m[1] == "ok", [])
        elif name and line.startswith("#"):
            found[name][1].append(line)
    return found


def add_suite(suite, names, command):
    """Tests of another suite, which @command runs once for all of them."""
    lock = threading.Lock()

    @functools.cache
    def run_all():
        need_build()
        done = execute(*command, env=environment(), cwd=TOP)
        return outcomes(done.stdout, suite), done.stderr

    for name in names:
        def one(_, name=name):
            lacking(suite, name)
            with lock:
                found, errors = run_all()
            assert name in found, f"{suite} did not run it: {errors}"
            assert found[name][0], "\n".join(found[name][1])
        SUITE.add(f"{suite}: {name}", one)


for _file in ("addr", "stack", "words"):
    with open(os.path.join(HERE, "..", "cli", f"{_file}.bats"), encoding="utf-8") as _text:
        _names = re.findall(rf'^@test "{_file}: (.*)" {{$', _text.read(), re.M)
    add_suite(_file, _names, ("bats", "--tap", os.path.join(HERE, "..", "cli", f"{_file}.bats")))

_find = os.path.join(HERE, "..", "find", "run.py")
_names = [_line.removeprefix("find: ") for _line in run("python3", _find, env=dict(os.environ, TAP_LIST="1")).splitlines()]
_names = [_name for _name in _names if os.environ.get("MUSL") or any(is_one(_name, _few) for _few in FEW)]
add_suite("find", _names, ("python3", _find, *_names))

if __name__ == "__main__":
    sys.exit(SUITE.run())
