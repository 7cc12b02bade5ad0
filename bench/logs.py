# SPDX-License-Identifier: MIT
"""Addresses in logs: fathom filter beside the tool of each format, and beside cat on a log without addresses."""
import os
import random
import re
import shutil
import subprocess

from measure import Bench, Tool

LIBRARY = "/lib/x86_64-linux-gnu/libc.so.6"
FRAMES = 20000
PLAIN_BYTES = 220 << 20


def places(n):
    """Stated addresses within libc's exported functions."""
    out = subprocess.run(["nm", "-D", "-S", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = [(int(start, 16), int(size, 16)) for start, size in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [TW] ", out, re.M)]
    rng = random.Random(9)
    return [start + rng.randrange(size) for start, size in rng.choices([place for place in found if place[1]], k=n)]


def build_id():
    notes = subprocess.run(["readelf", "-n", LIBRARY], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def write(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as log:
        log.writelines(lines)
    return path


def plain(folder):
    """A log without addresses, made once."""
    path = os.path.join(folder, "plain.log")
    if not os.path.exists(path) or os.path.getsize(path) < PLAIN_BYTES:
        rng = random.Random(1)
        words = "the server started connection from 10.0.0.1 port 8080 GET /index.html 200 OK warn thread pool idle".split()
        block = "".join(f"2026-11-27T17:{i % 60:02}:00.{i % 1000:03}Z [info] {' '.join(rng.choices(words, k=9))}\n" for i in range(100000))
        write(folder, "plain.log", [block] * (PLAIN_BYTES // len(block) + 1))
    return path


def log_benches(command, folder):
    base, id = 0x7f8c3e400000, build_id()
    asan = write(folder, "asan.log", (f"    #{i % 64} {base + a:#x}  ({LIBRARY}+{a:#x}) (BuildId: {id})\n" for i, a in enumerate(places(FRAMES))))
    ours = Tool("fathom", [command, "filter", "--no-cache"], r"  -> \w", expect=FRAMES)
    tools = [ours]
    if shutil.which("asan_symbolize"):
        tools.append(Tool("asan_symbolize", ["asan_symbolize"], r"^ *#\d+ 0x\w+ in \w"))
    yield Bench("filter-asan-20k", tools, asan)
    markup = write(folder, "markup.log", ["{{{reset}}}\n", f"{{{{{{module:0:{LIBRARY}:elf:{id}}}}}}}\n", f"{{{{{{mmap:{base:#x}:0x1000000:load:0:rx:0x0}}}}}}\n",
                                          *(f"{{{{{{bt:{1 + i % 64}:{base + a:#x}:pc}}}}}}\n" for i, a in enumerate(places(FRAMES)))])
    yield Bench("filter-markup-20k", [ours, Tool("llvm-symbolizer", ["llvm-symbolizer", "--filter-markup"])], markup)
    yield Bench("filter-plain-220M", [Tool("fathom", [command, "filter"]), Tool("cat", ["cat"]), Tool("grep -c 0x", ["grep", "-cE", "0x[0-9a-f]+"], status=(0, 1))],
                plain(folder))
