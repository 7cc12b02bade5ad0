#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of files: no two are the same, and none repeats its folder's, but for the file that the folder is named after.
A unit test is called after what it proves: a file, a public header or a room. A tag is of one struct, enum or union of the library.
No module of the tests has the name of one that many suites import."""
import glob
import os
import re
import subprocess
import sys

ROOTS = ("src", "cli")
# Verbs have a file each in cli/, named as the verb is; they call the room's public functions.
MIRRORED = "arch"


def misnamed_tests(sources):
    """Unit tests that are called after nothing that is there."""
    proven = {os.path.splitext(os.path.basename(path))[0] for path in sources + glob.glob("include/fathom/*.h")}
    proven |= {os.path.basename(os.path.dirname(path)) for path in sources}
    for path in sorted(glob.glob("tests/unit/test_*.c")):
        name = os.path.basename(path)[len("test_"):-len(".c")]
        if name not in proven:
            yield f"{path}: no file, public header or room is called {name}"


# What each machine's own files define for it (registers_x86_64.c and so on).
OF_A_MACHINE = {"struct fathom_hook_frame"}


def doubled_tags(sources):
    """Tags that are defined twice."""
    homes = {}
    for path in sources:
        with open(path, encoding="utf-8") as f:
            tags = re.findall(r"^((?:struct|enum|union) fathom_\w+)\s*\{", f.read(), re.M)
        for tag in tags:
            first = homes.setdefault(tag, path)
            if first != path and tag not in OF_A_MACHINE:
                yield f"{path}: {first} defines {tag}, too"


def hidden_modules():
    """Modules of tests that one of tests/lib, which many suites import, may hide."""
    homes = {os.path.basename(path): path for path in glob.glob("tests/lib/*.py") + glob.glob("tools/*.py")}
    for path in sorted(glob.glob("tests/*/*.py")):
        first = homes.get(os.path.basename(path), path)
        if first != path:
            yield f"{path}: {first} has this name, too"


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *ROOTS],
                            capture_output=True, text=True, check=True).stdout.split()
    sources = [path for path in listed if path.endswith((".c", ".h", ".S")) and os.path.exists(path)]
    wrong = []
    homes = {}
    for path in sources:
        folder, name = os.path.split(path)
        if MIRRORED in folder.split("/"):
            continue
        first = homes.setdefault(name, path)
        if first != path:
            wrong.append(f"{path}: {first} has this name, too")
        stem, room = os.path.splitext(name)[0], os.path.basename(folder)
        if stem != room and room in stem.split("_"):
            wrong.append(f"{path}: repeats the name of its folder")
    wrong += misnamed_tests(sources)
    wrong += hidden_modules()
    wrong += doubled_tags(sources + sorted(glob.glob("include/fathom/*.h")))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
