# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to, and the programs that make code."""
import os
import shutil
import time

import building
import jitfiles
import tap

from ask import HANG_SECONDS, addr, find, run
from running import Told

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
# Not in /tmp, which some of them have of their own.
SUITE = tap.Suite("jit", "give files away and make namespaces", parent=os.environ["BUILD"])
test = SUITE.test


def build(folder, source="jitted.c", *options, compiler="gcc"):
    return building.build(os.path.join(folder, source.removesuffix(".c")), os.path.join(PROGRAMS, source), *options,
                          compiler=compiler)


class Jitted(Told):
    """A running programs/jitted.c; what it writes to /tmp is removed."""

    def __init__(self, command, **options):
        super().__init__(command, **options)
        self.map = f"/tmp/perf-{self.pid}.map"
        self.code = self.places["code"]
        self.remove()

    def remove(self):
        for path in (self.map, self.map + ".other"):
            if os.path.lexists(path):
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

    def write(self, text, mode="a"):
        with open(self.map, mode, encoding="utf-8") as file:
            file.write(text)

    def write_part(self, text):
        """Writes what has no end yet: whenever it is read, that is as just now."""
        self.write(text)
        later = time.time() + HANG_SECONDS
        os.utime(self.map, (later, later))

    def __exit__(self, *_):
        super().__exit__()
        self.remove()


class Dump:
    def __init__(self, folder, j):
        self.path = os.path.join(folder, f"jit-{j.pid}.dump")
        self.write(jitfiles.dump_header(j.pid))

    def write(self, data):
        with open(self.path, "ab") as file:
            file.write(data)


def register(folder, j, data, name="symfile"):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return j.tell(f"register {path}")


def tell_in_all_ways(folder, j, lines, listed):
    """Names code by the @lines of a perf map, a jitdump ("by dump"), and two symbol files of GDB's list: one with the
    symbol @listed, and one 4 KiB behind with lines. Returns the jitdump, that file, and {function: (offset, size)}."""
    j.write(lines)
    dump = Dump(folder, j)
    dump.write(jitfiles.load(j.code, 0x40, 0, "by dump"))
    j.tell(f"mark {dump.path}")
    register(folder, j, jitfiles.relocatable(j.code, [(listed, 0, 0x20)]))
    path = os.path.join(folder, "lines.o")
    functions = jitfiles.compiled(path, os.path.join(PROGRAMS, "lines.c"), j.code + 0x1000)
    j.tell(f"register {path}")
    return dump, path, functions


def check(pid, expected, *options):
    """@expected: {address: (symbol, offset, size, source), or None for no name}."""
    records, _ = addr(pid, expected, *options)
    for record, (address, wanted) in zip(records, expected.items(), strict=True):
        got = (record["symbol"], record["offset"], record["size"], record["source"])
        assert got == (wanted or (None, None, None, None)), f"{address:#x}: {got}, not {wanted}"
        assert record["module"] is None and record["module_address"] is None, record
    return records


def gdb_symbols(pid, addresses):
    """What gdb says is at @addresses: "name" or "name + offset", None for nothing."""
    commands = [word for a in addresses for word in ("-ex", f"info symbol {a:#x}")]
    out = run("gdb", "-nx", "-batch", "-p", str(pid), *commands, status=None)
    answers = [line for line in out.splitlines() if " in section " in line or line.startswith("No symbol matches")]
    assert len(answers) == len(addresses), out
    return [None if a.startswith("No symbol") else a.split(" in section ")[0] for a in answers]


def check_with_gdb(pid, addresses):
    records, _ = addr(pid, addresses)
    ours = [r["symbol"] and r["symbol"] + (f" + {r['offset']}" if r["offset"] else "") for r in records]
    theirs = gdb_symbols(pid, addresses)
    assert ours == theirs, f"{ours}\ngdb: {theirs}"


def found(target, query, *options):
    """{name: [(address, size, source)]} of the code that programs have made themselves."""
    records, _ = find(target, query, *options)
    places = {}
    for r in records:
        if r["module"] == "[jit]":
            assert r["type"] == "func" and r["table"] is None and r["module_address"] is None and r["rank"] > 0, r
            places.setdefault(r["linkage_name"], []).append((int(r["address"], 16), r["size"], r["source"]))
    return places
