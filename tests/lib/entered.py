# SPDX-License-Identifier: MIT
"""Logs that programs built with -finstrument-functions write of themselves (programs/entered.c), beside what was traced."""
import array
import bisect
import collections
import glob
import os
import re

import building

from ask import run

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "entered.c")
# What a compiler adds to the name of a function of which it makes another.
CLONE = re.compile(r"\.(constprop|isra|part|cold|lto_priv|llvm)\b.*")


def hook(folder, compiler="gcc"):
    """The object to link such programs with."""
    path = os.path.join(folder, "entered.o")
    run(compiler, "-c", "-O1", "-fPIC", "-o", path, SOURCE)
    return path


class Functions:
    """The functions of a program, by place behind main()."""

    def __init__(self, path):
        symbols = building.nm(path)
        start = symbols["main"][0][0]
        self.names = {}
        for name, found in symbols.items():
            for value, kind in found:
                if kind in "tTwWi":
                    self.names.setdefault(value - start, set()).add(name)
        self.places = sorted(self.names)

    def entered(self, function, code):
        """Names of the function at @code that says that @function was entered; None if that is inlined there."""
        place = self.places[bisect.bisect_right(self.places, code) - 1]
        names = self.names[place]
        if place == function or {CLONE.sub("", n) for n in names} & {CLONE.sub("", n) for n in self.names[function]}:
            return names
        return None


def logs(path, prefix):
    """{thread: names of each function that it has entered} of the program at @path, from the files @prefix.TID."""
    functions, seen, found = Functions(path), {}, {}
    for name in glob.glob(glob.escape(prefix) + ".*"):
        words = array.array("Q")
        with open(name, "rb") as f:
            while True:
                piece = f.read(1 << 20)
                words.frombytes(piece)
                # The file is sparse: zeroes follow.
                if not piece or not any(words[-2:]):
                    break
        start, entries = words[0], []
        for i in range(2, len(words), 2):
            pair = words[i], words[i + 1]
            if not pair[0]:
                break
            if pair not in seen:
                seen[pair] = functions.entered(pair[0] - start, pair[1] - start)
            if seen[pair]:
                entries.append(seen[pair])
        found[int(name.rsplit(".", 1)[1])] = entries
    return found


def traced(log):
    """{thread: name of each function that it has entered}, of a log of `fathom trace --no-fold`."""
    found = collections.defaultdict(list)
    with open(log, encoding="utf-8") as f:
        for line in f:
            if line.startswith("FUN"):
                found[int(line[3:].split(maxsplit=1)[0])].append(line.split("&", 1)[1].rstrip("\n"))
    return found


def check_equal(found, expected):
    """Whether the calls of a thread that were traced are those of its own log."""
    for i, (name, names) in enumerate(zip(found, expected)):
        assert name in names, f"call {i}: {name} instead of {names}, behind {found[max(i - 3, 0):i]}"
    assert len(found) == len(expected), (len(found), len(expected))
