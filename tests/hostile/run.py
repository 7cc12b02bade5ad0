#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile files: every fixture cut, flipped and lied about, and allocations that fail. Prints TAP."""
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

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
        subprocess.run(["gcc", *flags, prefix, "-o", path, source], check=True)
        yield name, path
    source = os.path.join(folder, "hostile.cc")
    with open(source, "w", encoding="ascii") as f:
        f.write(CXX_SOURCE)
    path = os.path.join(folder, "c++")
    subprocess.run(["g++", "-O1", "-g", prefix, "-o", path, source], check=True)
    yield "c++", path


COMMITTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "committed")
TOLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "processes", "programs", "told.c")


def build_stored(folder):
    """A core and a snapshot, with the addresses that are asked of them."""
    path = os.path.join(folder, "told")
    subprocess.run(["gcc", "-O1", "-g", f"-ffile-prefix-map={folder}=/work", "-o", path, TOLD, "-ldl"], check=True)
    with subprocess.Popen(["sh", "-c", 'ulimit -c unlimited; echo 0x10 > /proc/self/coredump_filter; exec "$1"', "sh", path],
                          cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        places = [line.split()[1] for line in iter(process.stdout.readline, "done\n")]
        subprocess.run([os.environ["FATHOM"], "snapshot", str(process.pid), f"{folder}/snapshot"], check=True)
        process.send_signal(signal.SIGABRT)
        process.wait()
    places += [hex(int(place, 16) + 3) for place in places]
    # Where the system gives cores to another program, there is none.
    for path in [f"{folder}/snapshot", *glob.glob(f"{folder}/core*")]:
        yield re.sub(r"\W\d+", "", os.path.basename(path)), path, places


def run(case):
    mode, name, path, *addresses = case
    try:
        done = subprocess.run([*WRAPPER, harness, mode, path, *addresses], capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"not ok {{}} - {mode} of {name}\n# no end after {TIMEOUT} s"
    comments = "".join(f"\n{line[:300]}" for line in done.stdout.splitlines() if line.startswith("#"))
    if done.returncode == 0:
        tries = done.stdout.split(": ", 1)[-1].strip()
        return f"ok {{}} - {mode} of {name}\n# {tries}"
    report = "".join(f"\n# {line[:200]}" for line in done.stderr.splitlines()[:15])
    return f"not ok {{}} - {mode} of {name}\n# status {done.returncode}" + (comments + report).replace("{", "{{").replace("}", "}}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        files = list(build_own(folder))
        # Whatever the fixture suite has left is tried as well.
        for path in sorted(glob.glob(os.path.join(build, "fixtures", "hostile", "*"))):
            files.append((os.path.basename(path), path))
        cases = [(mode, name, path) for name, path in files for mode in MODES]
        # Names of D and Ada are demangled by code that knows of no failure to allocate. (Without debug
        # information Ada's are shown as linked: what is cut has another name.)
        cases += [("allocs", name, os.path.join(COMMITTED, name)) for name in ("ada.elf", "d.elf")]
        cases += [(mode, name, path, *places) for name, path, places in build_stored(folder) for mode in MODES]
        print(f"1..{len(cases)}")
        failed = False
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, line in enumerate(pool.map(run, cases), 1):
                print(line.format(number), flush=True)
                failed |= line.startswith("not ok")
    return 1 if failed else 0


sys.exit(main())
