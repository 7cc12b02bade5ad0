# SPDX-License-Identifier: MIT
"""Code that node and java have compiled, beside what they say of it and where they are."""
import bisect
import os
import random
import re
import struct
import subprocess
import time

from ask import addr_stream, execute, run
from running import Running, mappings_of

ADDRESSES = 10000

NODE = """
function hotLeaf(x) { let s = 0; for (let i = 0; i < 1000; i++) { s = (s + x * i) | 0; } return s; }
function hotOuter(n) { let s = 0; for (let i = 0; i < n; i++) s ^= hotLeaf(i); return s; }
for (;;) hotOuter(1000);
"""

JAVA = """
public class Busy {
    static int hotLeaf(int x) { int s = 0; for (int i = 0; i < 1000; i++) s += x * i ^ s >> 3; return s; }
    static long hotOuter(int n, String[] unused) { long s = 0; for (int i = 0; i < n; i++) s ^= hotLeaf(i); return s; }
    public static void main(String[] args) { long s = 0; for (;;) s += hotOuter(1000, args); }
}
"""


class Compiling(Running):
    """A program that compiles code, and its perf map."""

    def __init__(self, command, folder, is_heard=False):
        super().__init__(command, cwd=folder, stdout=subprocess.PIPE if is_heard else subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
        self.map = f"/tmp/perf-{self.pid}.map"

    def __exit__(self, *_):
        super().__exit__()
        if os.path.exists(self.map):
            os.unlink(self.map)


def lines_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = [re.fullmatch(r"(?:0x)?([0-9a-f]+) (?:0x)?([0-9a-f]+) (.*)\n", line) for line in file]
    assert all(found), "a line that is none"
    return [(int(f[1], 16), int(f[2], 16), f[3]) for f in found]


def functions_of(path):
    """The LOAD records of a jitdump that are whole."""
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], struct.unpack_from("<I", data, 8)[0]
    while at + 16 <= len(data):
        id, size, _ = struct.unpack_from("<IIQ", data, at)
        if at + size > len(data):
            break
        assert id in (0, 2, 4), id
        if id == 0:
            start, length = struct.unpack_from("<QQ", data, at + 32)
            found.append((start, length, data[at + 56:data.index(b"\0", at + 56)].decode(errors="replace")))
        at += size
    return found


def check_random(running, source, path, read):
    """Random addresses of code that the file tells of: the last that covers each, by looking through all of them."""
    code = [(m.start, m.end) for m in mappings_of(running.pid) if m.rights[2] == "x" and not m.path]
    starts = [start for start, _ in code]

    def is_code(address):
        at = bisect.bisect(starts, address) - 1
        return at >= 0 and address < code[at][1]

    known = [function for function in read(path) if is_code(function[0])]
    assert len(known) >= 10, f"{len(known)} functions"
    rng = random.Random(3)
    addresses = []
    for _ in range(ADDRESSES):
        start, size, _ = rng.choice(known)
        addresses.append(start + rng.randrange(size + size // 4 + 1))
    addresses = [a for a in addresses if is_code(a)]
    records = addr_stream(running.pid, addresses)
    # What is written while it is asked may be newer.
    late = read(path)
    named = 0
    for address, record in zip(addresses, records, strict=True):
        truth = {next(((n, address - s) for s, z, n in reversed(functions) if s <= address < s + z), (None, None))
                 for functions in (known, late)}
        assert (record["symbol"], record["offset"]) in truth, f"{record}: {truth}"
        assert record["source"] == (source if record["symbol"] else None), record
        named += record["symbol"] is not None
    assert named > ADDRESSES // 2, named


def where_it_is(pid):
    """The address that the first thread is at: gdb stops it for a moment."""
    out = run("gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread 1", "-ex", "printf \"at %lx\\n\", $pc", status=None)
    found = re.search(r"^at ([0-9a-f]+)$", out, re.M)
    assert found, out
    return int(found[1], 16)


def node(folder, *options):
    path = os.path.join(folder, "busy.js")
    with open(path, "w", encoding="ascii") as file:
        file.write(NODE)
    return Compiling(["node", *options, path], folder)


def check_where_it_is(pid, source):
    for _ in range(5):
        (record,) = addr_stream(pid, [where_it_is(pid)])
        assert re.match(r"JS:.?hot(Leaf|Outer) ", record["symbol"] or "") and record["source"] == source, record


def node_perf_map(folder):
    with node(folder, "--perf-basic-prof", "--interpreted-frames-native-stack") as running:
        time.sleep(3)
        check_where_it_is(running.pid, "perf-map")
        check_random(running, "perf-map", running.map, lines_of)


def node_jitdump(folder):
    with node(folder, "--perf-prof") as running:
        time.sleep(3)
        # V8 writes it by pieces: what is in memory only has no names yet.
        check_random(running, "jitdump", os.path.join(folder, f"jit-{running.pid}.dump"), functions_of)


def java_perf_map(folder):
    path = os.path.join(folder, "Busy.java")
    with open(path, "w", encoding="ascii") as file:
        file.write(JAVA)
    with Compiling(["java", path], folder) as running:
        end = time.monotonic() + 60
        hot = []
        while not hot and time.monotonic() < end:
            time.sleep(1)
            # Each time it writes the file anew.
            done = execute("jcmd", running.pid, "Compiler.perfmap")
            if os.path.exists(running.map):
                hot = [line for line in lines_of(running.map) if re.search(r"Busy(\.|::)hotLeaf\(", line[2])]
        assert hot, f"hotLeaf was not compiled: {done.stdout} {done.stderr}"
        (record,) = addr_stream(running.pid, [hot[-1][0]])
        assert record["symbol"] == hot[-1][2], (record, hot)
        check_random(running, "perf-map", running.map, lines_of)


TESTS = [("node's perf map: random addresses, and where it is", node_perf_map),
         ("node's jitdump: random addresses", node_jitdump),
         ("java's perf map: random addresses", java_perf_map)]
