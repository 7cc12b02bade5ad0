# SPDX-License-Identifier: MIT
"""Writes profiles from docs/profile-format.md alone: of names that make_profile.c has no room for, and of many stacks."""
import os

from profile_file import ABOUT, END, JIT, LOCATION, MAGIC, MODULE, NODE, SAMPLE, SYMBOL, THREAD


def leb(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value):
    data = value.encode(errors="surrogateescape")
    return leb(len(data)) + data


class Writer:
    """Numbers are returned as the format counts: nodes from 1, all others from 0."""

    def __init__(self, unit="ns", frequency=1000):
        self.parts, self.counts, self.ns = [MAGIC], dict.fromkeys((THREAD, MODULE, SYMBOL, LOCATION, NODE), 0), 0
        for key, value in (("unit", unit), ("frequency", str(frequency)), ("event", "task-clock"), ("method", "by hand")):
            self.put(ABOUT, text(key) + text(value))

    def put(self, tag, payload):
        self.parts += [leb(tag), leb(len(payload)), payload]
        if tag in self.counts:
            self.counts[tag] += 1
            return self.counts[tag] - (tag != NODE)
        return None

    def thread(self, pid, tid, name):
        return self.put(THREAD, leb(pid) + leb(tid) + leb(0) + leb(0) + text(name))

    def module(self, path, kind=JIT):
        return self.put(MODULE, leb(kind) + text(path) + leb(0) + leb(0) + leb(0))

    def symbol(self, name, linkage="", file="", line=0):
        return self.put(SYMBOL, leb(1) + text(name) + text(linkage) + text(file) + leb(line))

    def location(self, module, address, symbol):
        return self.put(LOCATION, leb(module + 1) + leb(address) + leb(0) + leb(0) + leb(symbol + 1))

    def node(self, caller, location):
        return self.put(NODE, leb(caller) + leb(location))

    def sample(self, ns, thread, node, weight, part=0, stop=1):
        difference = ns - self.ns
        self.ns = ns
        self.put(SAMPLE, leb(part + 16 * stop) + leb(2 * difference if difference >= 0 else -2 * difference - 1) + leb(thread) + leb(node) + leb(weight))

    def save(self, folder, name="written"):
        """Ends the profile; returns its path."""
        self.put(END, leb(self.ns + 1))
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(b"".join(self.parts))
        return path
