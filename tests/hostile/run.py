#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile files. Prints TAP.

A few files of each kind are cut, flipped and lied about in every way that the program hostile knows, and allocations
fail. In every file of every fixture, and in what processes leave and say, lies are told of the kinds in lies.py, some
of them (LIES=all: all of them). What counts as wrong is in truth.h, which lies can be told from truth in lies.py;
deadlines, memory and messages are watched by liar.c.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import every  # noqa: E402
import live  # noqa: E402
import tap  # noqa: E402
from ask import run as run_tool  # noqa: E402

# So many lies are told in a file of a fixture, of a form, and of what a process leaves.
EVERY = int(os.environ.get("EVERY", "1"))
EACH = (None, None, None) if os.environ.get("LIES") == "all" else (60, 20, 200 // EVERY)
FORMS_TOGETHER = 100
MODES = ("cuts", "lies", "flips", "allocs")
TIMEOUT = 300
WRAPPER = os.environ.get("WRAPPER", "").split()
build = os.environ["BUILD"]
harness = os.path.join(build, "tests", "hostile")

SOURCE = """
#include <stdio.h>
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + 1; }
__attribute__((noinline)) int outer(int x) { for (int i = 0; i < x; i++) x += inner(i); return x; }
int main(int argc, char **argv) { printf("%d %s\\n", outer(argc), argv[0]); return inner(argc); }
"""

CXX_SOURCE = """
#include <string>
namespace space { template <class T> struct shape { T grow(T by) { return by + by; } static T make(const char *s); }; }
template <class T> T space::shape<T>::make(const char *s) { shape x; return x.grow(T(s)); }
int main(int argc, char **argv) { return (int)space::shape<std::string>::make(argv[argc - 1]).size(); }
"""

# What this test builds itself: one file of each kind that is read by other code.
OWN = {
    "plain": ["-O2", "-g"], "dwarf4": ["-O2", "-g", "-gdwarf-4"], "dwarf2": ["-O1", "-g", "-gdwarf-2"],
    "zlib": ["-O2", "-g", "-gz=zlib"], "zdebug": ["-O2", "-g", "-gz=zlib-gnu"], "object.o": ["-O2", "-g", "-c"],
    "object-zlib.o": ["-O2", "-g", "-c", "-gz"], "stripped": ["-O2", "-s"], "large": ["-O0", "-g3", "-static"],
}


def build_own(folder):
    # Every run tries the same bytes.
    prefix = f"-ffile-prefix-map={folder}=/work"
    source = os.path.join(folder, "hostile.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    for name, flags in OWN.items():
        path = os.path.join(folder, name)
        run_tool("gcc", *flags, prefix, "-o", path, source)
        yield name, path
    source = os.path.join(folder, "hostile.cc")
    with open(source, "w", encoding="ascii") as f:
        f.write(CXX_SOURCE)
    path = os.path.join(folder, "embedded")
    run_tool("clang", "-O1", "-g", "-gdwarf-5", "-gembed-source", prefix, "-o", path, os.path.join(folder, "hostile.c"))
    yield "embedded", path
    path = os.path.join(folder, "c++")
    run_tool("g++", "-O1", "-g", prefix, "-o", path, source)
    yield "c++", path


COMMITTED = os.path.join(HERE, "..", "fixtures", "committed")


def build_stored(folder):
    """A core and a snapshot, with the addresses that are asked of them."""
    places, *paths = live.leave_dump(folder)
    places = [hex(place + off) for off in (0, 3) for place in places.values()]
    for path in paths:
        yield re.sub(r"\W\d+", "", os.path.basename(path)), path, places


def run(case):
    mode, _, path, *addresses = case
    try:
        done = subprocess.run([*WRAPPER, harness, mode, path, *addresses], capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"no end after {TIMEOUT} s") from None
    comments = "\n".join(line[2:300] for line in done.stdout.splitlines() if line.startswith("#"))
    report = "\n".join(line[:200] for line in done.stderr.splitlines()[:15])
    assert done.returncode == 0, f"status {done.returncode}\n{comments}\n{report}"


def tell(jobs, number):
    """Runs the jobs; all that they complained of becomes one failure."""
    faults, jobs = [], list(jobs)
    for job in jobs:
        status, out = job.run(number)
        if status:
            faults.append(f"{job.name}: {out}")
    assert not faults, "\n".join(faults)
    assert jobs, "nothing was asked"


# Lies that were believed once, by the fixtures in whose files: all of these are told each time.
BELIEVED = {
    "lines_without_entries__an_assembly_file": r"^cut s \w+ file$",  # the last byte of the section headers, too
    "more_than_65_280_sections": r"\.symtab_shndx\.",
}


def believed_once(name, folder):
    """Jobs that tell only such lies."""
    for job in every.of_folder(name, folder):
        job.lines = [line for line in job.lines if re.search(BELIEVED[name], line)]
        if job.lines:
            yield job


def tell_fixture(name, folder):
    with every.spoiled(folder):
        tell(every.of_folder(name, folder), EACH[0])
        if name in BELIEVED:
            tell(believed_once(name, folder), None)


def tell_forms(cases):
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="fathom-hostile-") as folder:
            tell(every.of_form(case, folder), EACH[1])


def tell_live(make):
    with tempfile.TemporaryDirectory(prefix="fathom-hostile-") as folder, make(folder) as jobs:
        tell(jobs, EACH[2])


def notices(old, new, complaint):
    """What cannot be told from truth, said to be such, is found: or nothing that liar says holds."""
    with tempfile.TemporaryDirectory(prefix="fathom-hostile-") as folder:
        (path,) = [path for name, path in build_own(folder) if name == "plain"]
        with open(path, "rb") as file:
            data = file.read()
        lines = [f"write s {found.start():x} {new.hex()} another-word" for found in re.finditer(re.escape(old), data)]
        assert len(old) == len(new) and lines
        status, out = every.Job("plain", path, path, every.questions(path), lines).run()
        assert status == 1 and complaint in out, out
        with open(path, "rb") as file:
            assert file.read() == data, "the file is not whole again"


def tests():
    yield "a wrong name is noticed", lambda: notices(b"\0outer\0", b"\0inner\0", "a wrong name")
    yield "a wrong file is noticed", lambda: notices(b"hostile.c\0", b"hostilX.c\0", "a place that is wrong")
    for make in live.ALL:
        yield f"lies in {make.__name__.replace('_', ' ')}", lambda make=make: tell_live(make)
    # Those that the suite "fixtures" has built.
    for name, folder in list(every.fixtures())[::EVERY]:
        yield f"lies in {name}", lambda name=name, folder=folder: tell_fixture(name, folder)
    forms = every.forms()[::EVERY]
    for i in range(0, len(forms), FORMS_TOGETHER):
        part = forms[i:i + FORMS_TOGETHER]
        yield f"lies in forms {i} to {i + len(part) - 1}", lambda part=part: tell_forms(part)


def thorough(folder):
    """Cases for the program hostile."""
    files = list(build_own(folder))
    # Whatever the fixture suite has left is tried as well.
    for path in sorted(glob.glob(os.path.join(build, "fixtures", "hostile", "*"))):
        files.append((os.path.basename(path), path))
    yield from ((mode, name, path) for name, path in files for mode in MODES)
    # Names of D and Ada are demangled by code that knows of no failure to allocate. (Without debug
    # information Ada's are shown as linked: what is cut has another name.)
    yield from (("allocs", name, os.path.join(COMMITTED, name)) for name in ("ada.elf", "d.elf"))
    yield from ((mode, name, path, *places) for name, path, places in build_stored(folder) for mode in MODES)


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = [(f"{case[0]} of {case[1]}", lambda case=case: run(case)) for case in thorough(folder)]
        return tap.run("hostile", tap.chosen([*tests(), *cases]))


sys.exit(main())
