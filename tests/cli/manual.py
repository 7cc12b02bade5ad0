#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""manual.py INCLUDE MANUALS FOLDER: each public function stands in the synopsis of one page of section 3, as its header
declares it; each page has all its parts; its example is written to FOLDER as NAME.c."""
import glob
import os
import re
import sys

include, manuals, folder = sys.argv[1:]
PARTS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "THREAD AND SIGNAL SAFETY", "EXAMPLE", "SEE ALSO"]
# The overview, and a page about a language of its own.
OTHERS = ["libfathom", "fathom_self_format"]


def words(text):
    return re.sub(r"\s*\*\s*", "*", " ".join(text.split()))


def declared():
    """Yields (name, type, arguments) of each public function."""
    for path in glob.glob(os.path.join(include, "*.h")):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        for kind, name, arguments in re.findall(r"FATHOM_API\s+([^;(]*?)(\w+)\s*\((.*?)\)\s*;", text, re.S):
            yield name, words(kind), [words(a) for a in arguments.split(",")]


def synopses(path):
    """Yields the same of the functions of a page."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split(".Sh SYNOPSIS\n")[1].split("\n.Sh ")[0].splitlines()
    kind = None
    for line in lines:
        if line.startswith(".Ft "):
            kind = line[4:].strip('"')
        elif line.startswith(".Fn "):
            found = re.findall(r'"([^"]*)"|(\S+)', line[4:])
            found = [a or b for a, b in found]
            yield found[0], words(kind), [words(a) for a in found[1:]]


def parts(path):
    with open(path, encoding="utf-8") as f:
        return re.findall(r"^\.Sh (.*)$", f.read(), re.M)


def write_example(name, path):
    with open(path, encoding="utf-8") as f:
        example = f.read().split(".Sh EXAMPLE\n.Bd -literal\n")[1].split("\n.Ed")[0]
    with open(os.path.join(folder, f"{name}.c"), "w", encoding="utf-8") as f:
        f.write(example.replace("\\e", "\\") + "\n")


headers = {name: (kind, arguments) for name, kind, arguments in declared()}
pages = {}
for page in sorted(glob.glob(os.path.join(manuals, "*.3"))):
    name = os.path.basename(page)[:-2]
    if name == OTHERS[0]:
        write_example(name, page)
        continue
    for function, kind, arguments in synopses(page):
        assert function not in pages, f"{function} stands in {pages[function]} and in {name}"
        pages[function] = name
        assert function in headers, f"{name}: no header has {function}"
        assert headers[function] == (kind, arguments), f"{name}: {function}: {kind} {arguments} is not {headers[function]}"
    if name in OTHERS:
        continue
    assert parts(page) == PARTS, f"{name}: {parts(page)}"
    write_example(name, page)
missing = sorted(set(headers) - set(pages))
assert not missing, f"no manual page has {missing}"
