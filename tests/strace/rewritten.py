# SPDX-License-Identifier: MIT
"""Tests of which instructions that call the kernel are rewritten, and how."""
import collections
import json
import os
import re
import signal
import subprocess

import building
from ask import FATHOM, execute, fathom, run
from running import call_of, name_of, until

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = []


def test(name):
    def decorate(function):
        TESTS.append((name, function))
        return function
    return decorate


INSIDE = os.path.join(os.environ.get("BUILD", ""), "src")
LINKED = {"shared": ["-Wl,--no-as-needed", f"-L{INSIDE}", "-lfathom-trace", "-lfathom", f"-Wl,-rpath,{INSIDE}"],
          "static": ["-static", f"-L{INSIDE}", "-lfathom-trace", "-lfathom", *building.static_libraries(), "-ldl", "-Wl,-e,__fathom_trace_entry"]}

# Shapes of lines.c by the numbers of their descriptors; those whose instructions make the call themselves, beside those to whose midst somebody
# may jump.
with open(os.path.join(HERE, "programs", "lines.c"), encoding="utf-8") as SOURCE:
    SHAPES = {1000 + int(number): name for name, number in re.findall(r'"begin (\w+), (\d+)', SOURCE.read())}
AS_BEFORE = {"moved_38", "relative_constant", "relative_compared", "jumped_over", "no_rules"}


def is_as_before(name):
    return name in AS_BEFORE or name.startswith("inner_")


def shape_of(event):
    """The shape of lines.c that makes a call; None: it is not one's."""
    number = int(event["args"][0]["value"])
    return SHAPES.get(number, "no_rules") if number >= 1000 else None


def build_lines(folder, *flags):
    path = os.path.join(folder, "lines")
    return building.build(path, os.path.join(HERE, "programs", "lines.c"), *flags)


@test("the tracer inside, --way=rewrite: the calls behind lines of all shapes, but those that cannot be rewritten; registers are as untraced")
def _(folder):
    building.plain(os.path.join(INSIDE, "libfathom.so"))
    path, log = build_lines(folder, *LINKED["shared"]), os.path.join(folder, "log")
    alone, traced = (run(path, *words) for words in ((), (f"--strace=--way rewrite --json --log {log}",)))
    assert alone == traced and len(alone.splitlines()) >= 30, traced
    with open(log, encoding="utf-8") as f:
        seen = [shape_of(e) for e in map(json.loads, f) if e.get("name") == "lseek"]
    assert [name for name in seen if name] == [name for name in SHAPES.values() if not is_as_before(name)], seen


# The most bytes before an instruction that are moved.
MOVED = 37


def text_of_libc(folder, *options):
    """The code of libc in a process whose calls are rewritten, as it is and as in the file; instructions of the file, by their place in it."""
    with subprocess.Popen([FATHOM, "strace", "--way=rewrite", *options, "-o", os.path.join(folder, "log"), "sh", "-c", "echo $$; exec sleep 100"],
                          stdout=subprocess.PIPE, text=True) as tracer:
        pid = int(tracer.stdout.readline())
        until(lambda: name_of(pid) == "sleep" and call_of(pid) == 230, "that it sleeps")
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            fields = next(line.split() for line in maps if "libc.so.6" in line and "r-xp" in line)
        low, high = (int(n, 16) for n in fields[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as memory, open(fields[5], "rb") as file:
            memory.seek(low)
            file.seek(int(fields[2], 16))
            now, was = memory.read(high - low), file.read(high - low)
        os.kill(pid, signal.SIGKILL)
        tracer.wait()
    # Addresses of this file are offsets in it.
    base = int(fields[2], 16)
    lines = [re.match(r" *([0-9a-f]+):\t(.*)", line) for line in run("objdump", "-d", "--no-show-raw-insn", fields[5]).splitlines()]
    return now, was, [(int(m[1], 16) - base, m[2].strip()) for m in lines if m]


def leads_elsewhere(now, was, at):
    """Whether the instruction at @at was rewritten, by a short jump or by a long one in place of what is before it."""
    return now[at] == 0xeb or any(now[at - n] == 0xe9 and was[at - n:at] != now[at - n:at] for n in range(5, MOVED + 1))


@test("rewritten calls: of 100 instructions of libc 99 lead elsewhere, and no other byte has changed but padding")
def _(folder):
    now, was, code = text_of_libc(folder)
    sites = [at for at, what in code if what == "syscall"]
    padding = {i for at, what in code if re.match(r"(data16 |cs )*(nop|xchg +%ax,%ax)", what) for i in range(at, at + 16)}
    led = [at for at in sites if leads_elsewhere(now, was, at)]
    assert len(sites) > 400 and len(led) >= 0.99 * len(sites), (len(led), len(sites))
    allowed = {i for at in sites for i in range(at - MOVED, at + 2)} | padding
    changed = {i for i, (a, b) in enumerate(zip(now, was)) if a != b}
    assert changed <= allowed, sorted(map(hex, changed - allowed))[:10]


def led_away(command, log):
    """{shape of lines.c: whether its call was rewritten} in a run of it, whose output is as untraced."""
    alone = execute(*command, status=0).stdout
    traced = fathom("trace", "--syscalls", "--way=rewrite", "--no-functions", "--json", "--no-fold", "--log", log, "--", *command)
    assert alone == traced.stdout, (alone, traced.stdout)
    with open(log, encoding="utf-8") as f:
        calls = [e for e in map(json.loads, f) if e.get("name") == "lseek" and shape_of(e)]
    assert len(calls) == len(alone.splitlines()) >= 30, calls
    return {shape_of(e): e["way"] == "rewrite" for e in calls}


@test("rewritten calls: instructions behind lines of all shapes; registers and memory are as untraced, and what would do harm is not rewritten")
def _(folder):
    for flags in ["-fpie", "-pie"], ["-fno-pie", "-no-pie"]:
        path = build_lines(folder, *flags)
        led = led_away([path], os.path.join(folder, "log"))
        assert ("inner_constant" in led) == ("-no-pie" in flags)
        wrong = {name: is_led for name, is_led in led.items() if is_led == is_as_before(name)}
        assert not wrong, (flags, wrong)
        alone, traced = (execute(*command, path, "step", status=0).stdout
                         for command in ([], [FATHOM, "strace", "--way=rewrite", "-o", os.path.join(folder, "log")]))
        assert alone == traced and alone.count(" 0 elsewhere, stepped\n") == len(led), (flags, traced)


ONE_OF_TWO = """
import ctypes, sys, threading
go = threading.Event()
thread = threading.Thread(target=go.wait)
if sys.argv[2] == "2":
    thread.start()
ctypes.CDLL(sys.argv[1]).run(1, 0)
go.set()
"""


@test("rewritten calls: where other threads run, no instruction is taken away but the one that becomes the jump")
def _(folder):
    library = build_lines(folder, "-fPIC", "-shared", "-Dmain=run")
    led = {n: led_away(["/usr/bin/python3", "-c", ONE_OF_TWO, library, n], os.path.join(folder, "log")) for n in "12"}
    several = {"line_two", "line_three", "line_long", "line_set", "line_called", "jumped_to"}
    assert {name for name in led["1"] if led["1"][name] != led["2"][name]} == several and not any(led["2"][name] for name in several), led
    assert led["2"]["moved_37"] and led["2"]["relative_lea"], led


@test("rewritten calls: instructions whose numbers are left out stay as they are")
def _(folder):
    now, was, code = text_of_libc(folder, "-e", "trace=openat")
    led = collections.defaultdict(list)
    for (_, before), (at, what) in zip(code, code[1:]):
        m = re.fullmatch(r"mov +\$0x([0-9a-f]+),%eax", before)
        if m and what == "syscall":
            led[int(m[1], 16)].append(now[at - 5:at + 2] != was[at - 5:at + 2])
    assert len(led) > 150 and any(led[257]) and not any(any(its) for number, its in led.items() if number != 257), led
