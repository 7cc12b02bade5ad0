#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The storm of signals (tests/self/programs/storm.c) calls every as-safe function of the public headers, and the
manual lists them."""
import glob
import re
import sys

STORM = "tests/self/programs/storm.c"
MANUAL = "docs/man/libfathom.3"


def as_safe(text):
    """Returns the functions whose comments say that they are as-safe."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    for comment, name in re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*FATHOM_API\b[^;(]*?(\w+)\s*\(", text, re.S):
        if re.search(r"^ \* Safety: as-safe\b", comment, re.M):
            yield name


def check(storm, declared):
    """Returns what is wrong with the list of @storm."""
    listed = re.findall(r"^\tSTORMED\((\w+)\),$", storm, re.M)
    for name in sorted(declared - set(listed)):
        yield f"{name} is as-safe, and no handler of the storm calls it"
    for name in sorted(set(listed) - declared):
        yield f"{name} is in the storm, but not as-safe"
    for name in listed:
        if not re.search(rf"\b(?<!call_){name}\(", storm.replace(f"STORMED({name})", "")):
            yield f"call_{name}() does not call {name}()"


with open(STORM, encoding="utf-8") as f:
    source = f.read()
names = set()
for header in glob.glob("include/fathom/*.h"):
    with open(header, encoding="utf-8") as f:
        names |= set(as_safe(f.read()))
with open(MANUAL, encoding="utf-8") as f:
    section = f.read().split(".Sh THREAD AND SIGNAL SAFETY\n")[1].split("\n.Pp\n")[0]
wrong = [f"{name} is as-safe here or in {MANUAL} only" for name in sorted(names ^ set(re.findall(r"^\.Fn (\w+)", section, re.M)))]
wrong += list(check(source, names)) if names else ["no as-safe function was found"]
for line in wrong:
    print(f"{STORM}: {line}")
sys.exit(1 if wrong else 0)
