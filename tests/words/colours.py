# SPDX-License-Identifier: MIT
"""Colours: which parts of text have them, when, and that all else is as without."""
import contextlib
import os
import pty
import re
import subprocess

import tap
from ask import FATHOM, HANG_SECONDS, execute, records_of
from building import build_text, nm
from named import SUITE
from running import Running

test = SUITE.test

SGR = re.compile(r"\x1b\[[0-9;]*m")
PART = re.compile(r"\x1b\[(\d+)m([^\x1b\n]*)\x1b\[m")
NAME, FILE, REASON = "1", "35", "31"

SOURCE = """#include <stdio.h>
#include <unistd.h>
static inline __attribute__((always_inline)) int inner(int x) { return x * getpid(); }
int outer(int x) { return inner(x) + 1; }
int main(void) { puts("ready"); fflush(stdout); pause(); return outer(3); }
"""


def program(folder):
    return build_text(os.path.join(folder, "program"), SOURCE, "-no-pie")


def plain_and_coloured(*arguments, status=(0, 1), **more):
    """What a run prints, plain, after checking that --color=always adds colours only; and its parts with colours."""
    plain = execute(FATHOM, *arguments, status=status, **more)
    coloured = execute(FATHOM, *arguments, "--color=always", status=plain.returncode, **more)
    assert "\x1b" not in plain.stdout and SGR.sub("", coloured.stdout) == plain.stdout and coloured.stderr == plain.stderr, coloured
    parts = PART.findall(coloured.stdout)
    # Each part is ended in its line, and none is within another.
    assert len(parts) * 2 == coloured.stdout.count("\x1b"), coloured.stdout
    return plain.stdout, parts


def inlined_at(path):
    """The address of the copy of inner() in outer()."""
    records = records_of(execute(FATHOM, "find", "--json", "--inlined", path, "inner").stdout)
    return next(r["address"] for r in records if r["inlined_into"] == "outer")


@test("colours of addr: names, files with lines, reasons")
def addr(folder):
    path = program(folder)
    text, parts = plain_and_coloured("addr", path, inlined_at(path), "0x1", "nothing_such")
    _, name, inner, _, _, outer_name, outer = re.split(r"[ \n]+", text)[:7]
    assert (name, outer_name) == ("inner+0x0", "outer") and ":3:" in inner and ":4:" in outer, text
    assert parts == [(NAME, "inner"), (FILE, inner), (NAME, "outer"), (FILE, outer), (REASON, "(unmapped)"),
                     (REASON, "(no-such-symbol)")], parts


@test("colours of find, of disasm: names where they are, and among operands")
def find_and_disasm(folder):
    path = program(folder)
    text, parts = plain_and_coloured("find", path, "outer", "nothing_such")
    assert (NAME, "outer") in parts and parts[-1] == (REASON, "(no-such-symbol)"), (text, parts)
    text, parts = plain_and_coloured("find", "--inlined", path, "inner")
    assert (NAME, "inner") in parts and (NAME, "outer") in parts and any(kind == FILE for kind, _ in parts), (text, parts)
    for options in ((), ("--bytes",), ("--intel", "--no-lines")):
        text, parts = plain_and_coloured("disasm", *options, path, "outer", "nothing_such")
        names = [t for kind, t in parts if kind == NAME]
        assert names[0] == "outer" and any(name.startswith("getpid") for name in names[1:]), (text, parts)
        assert parts[-1] == (REASON, "(no-such-symbol)") and any(kind == FILE for kind, _ in parts) == ("--no-lines" not in options), parts


@test("colours of stack: names, files, and why a stack ends")
def stack(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("the program of this test runs by itself")
    with Running([program(folder)]) as running:
        assert running.line() == "ready"
        while " in pause" not in execute(FATHOM, "stack", running.pid).stdout:
            pass
        text, parts = plain_and_coloured("stack", running.pid)
        assert (NAME, "main") in parts and any(kind == FILE and ":5" in t for kind, t in parts), (text, parts)
        text, parts = plain_and_coloured("stack", "--max-frames", "1", running.pid)
        assert (REASON, "(limit: more frames than --max-frames)") in parts, (text, parts)


@test("colours of filter: what it adds has them, the log has not, and a mark among names is still found")
def filtered(folder):
    path = program(folder)
    log = f"ordinary line\nat {inlined_at(path)}\n    #0 0x1234 in f (/nowhere/lib.so+0x10)\nlast  -> line\n"
    text, parts = plain_and_coloured("filter", "--all", path, input=log)
    assert {(NAME, "inner"), (NAME, "outer"), (REASON, "(no-file)")} <= set(parts) and len(parts) == 5, (text, parts)
    # A name that, with the blank before it, is the mark: that gets an escape, which is no part of the name.
    marked = os.path.join(folder, "marked")
    execute("objcopy", "--strip-debug", "--redefine-sym", "outer= -> outer", path, marked, status=0)
    at = {name: hex(found[0][0]) for name, found in nm(path).items()}
    text, parts = plain_and_coloured("filter", marked, input=f"{at['main']} {at['outer']}\n")
    assert text == f"{at['main']} {at['outer']}  -> main+0x0;\\x20 -> outer+0x0\n", text
    assert (NAME, "main") in parts, parts


@test("colours of doctor: what is limited")
def doctor(folder):
    path = build_text(os.path.join(folder, "bare"), "int main(void) { return 0; }", flags=["-O1"])
    text, parts = plain_and_coloured("doctor", path, status=1, env={k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"})
    assert parts == [(REASON, "limited")] * sum(line.startswith("limited") for line in text.splitlines()) and parts, parts


@test("colours: a million answers that two threads print have them, too, and JSON never")
def many(folder):
    path = program(folder)
    text, parts = plain_and_coloured("addr", "--names-only", path, input="outer\n" * 100000)
    assert len(parts) == 100000 and set(parts) == {(NAME, "outer")}
    assert execute(FATHOM, "addr", "--json", "--color=always", path, "outer").stdout == execute(FATHOM, "addr", "--json", path, "outer").stdout


def on_terminal(*command, **variables):
    """What a command prints to a terminal. A variable that is None is not there."""
    primary, secondary = pty.openpty()
    env = {k: v for k, v in {**os.environ, "TERM": "xterm", **variables}.items() if v is not None and k != "NO_COLOR"}
    if variables.get("NO_COLOR") is not None:
        env["NO_COLOR"] = variables["NO_COLOR"]
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=secondary, stderr=secondary, env=env)
    os.close(secondary)
    output = b""
    with contextlib.suppress(OSError):
        while True:
            more = os.read(primary, 65536)
            if not more:
                break
            output += more
    process.wait(timeout=HANG_SECONDS)
    os.close(primary)
    return output.decode().replace("\r\n", "\n")


@test("colours by themselves: on a terminal, unless NO_COLOR, TERM or --color say no")
def by_themselves(folder):
    path = program(folder)
    command = (FATHOM, "addr", path, "outer")
    plain = execute(*command).stdout
    coloured = execute(*command, "--color=always").stdout
    assert plain != coloured
    for variables, options, wanted in (
            ({}, (), coloured), ({}, ("--color=auto",), coloured), ({}, ("--color",), coloured), ({}, ("--color=never",), plain),
            ({"NO_COLOR": "1"}, (), plain), ({"NO_COLOR": ""}, (), coloured), ({"NO_COLOR": "1"}, ("--color=always",), coloured),
            ({"TERM": "dumb"}, (), plain), ({"TERM": None}, (), plain), ({"TERM": ""}, (), plain), ({"TERM": "dumb"}, ("--color",), coloured)):
        assert on_terminal(*command, *options, **variables) == wanted, (variables, options)
    # In a pipe there are none, whatever the terminal is.
    assert execute(*command, "--color=auto", env={**os.environ, "TERM": "xterm"}).stdout == plain
    assert execute(*command, "--color=blue", status=2).stderr == "fathom: --color: 'blue' is not always, never or auto\n"
