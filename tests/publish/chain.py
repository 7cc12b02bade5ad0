# SPDX-License-Identifier: MIT
"""The chain of made functions that programs/publisher.h publishes, and what a stack of it must show."""
import functools
import os
import re
import threading

from ask import run
from building import plain

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
BUILD = os.environ["BUILD"]
LIBRARIES = os.path.join(BUILD, "src")

N = 12
KINDS = ["framed", "pushing", "reserving", "copied"]
NAMES = [f"made_{i}_{KINDS[i % 4]}" for i in range(N)]
# The innermost first: each made function is called by go(), those with a reserved frame pointer through shim(), which is
# one frame with them.
CHAIN = [name for made in reversed(NAMES) for name in (made, "go")] + ["main"]
NONGNU = "libunwind.so.8"
LLVM = "/usr/lib/x86_64-linux-gnu/libunwind.so.1"


LOCK = threading.Lock()


def program(name, *options):
    with LOCK:
        return built(name, *options)


@functools.lru_cache(maxsize=None)
def built(name, *options):
    plain(os.path.join(LIBRARIES, "libfathom.so"))
    folder = os.path.join(BUILD, "publish")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + "".join(options).replace("/", "_"))
    run("g++", "-O2", "-g", "-fcf-protection=none", "-Wall", "-Wextra", os.path.join(HERE, "programs", name + ".cc"), "-o", path,
        "-I", os.path.join(TOP, "include"), "-L", LIBRARIES, "-lfathom", f"-Wl,-rpath,{LIBRARIES}", "-rdynamic", "-pthread",
        *options)
    return path


def environment(consumers=""):
    return {name: value for name, value in os.environ.items() if name != "FATHOM_JIT"} | (
        {"FATHOM_JIT": consumers} if consumers else {})


def functions_of(text):
    """The functions that gdb's or lldb's backtrace @text names."""
    gdb = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(", text, re.M)
    return gdb or re.findall(r"frame #\d+: 0x[0-9a-f]+ (?:\S+`)?(\w+)", text)


def check_chain(functions, what):
    """From the first function of the chain on, exactly CHAIN, once each."""
    assert NAMES[-1] in functions, f"{what}: the chain is not there: {functions}"
    at = functions.index(NAMES[-1])
    assert functions[at:at + len(CHAIN)] == CHAIN, f"{what}: {functions[at:]}, expected {CHAIN}"
    assert "??" not in functions, f"{what}: {functions}"


def told(mode, *words, consumers="", command=None):
    """What publisher.cc prints in @mode: {first word: [the rest]}."""
    said = {}
    for line in run(*(command or [program("publisher")]), mode, *words, env=environment(consumers)).splitlines():
        key, _, rest = line.partition(" ")
        said.setdefault(key, []).append(rest)
    assert said["made"] == NAMES[::-1]
    return said


def storm(mode, *words, consumers="", command=None):
    """What storm.cc prints in @mode."""
    text = run(*(command or [program("storm")]), mode, *words, env=environment(consumers))
    return dict(line.split() for line in text.splitlines())
