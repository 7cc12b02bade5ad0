#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""package_lists.py PREFIX DEBIAN MAP: prints what is wrong with the lists of DEBIAN (packaging/debian) beside what is installed in PREFIX:
files that no package has, or two; patterns without a file; and version nodes of MAP that the file of symbols lacks."""
import fnmatch
import glob
import os
import re
import subprocess
import sys


def patterns(debian):
    """(list, pattern): of an installed path, from the prefix on."""
    for path in sorted(glob.glob(f"{debian}/*.install") + glob.glob(f"{debian}/*.manpages")):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                yield os.path.basename(path), line.split()[0].removeprefix("usr/")


def is_there(path, pattern):
    """As a shell's words, which no component ends: a folder stands for what is in it."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def main():
    prefix, debian, map_file = sys.argv[1:]
    files = subprocess.run(["find", prefix, "!", "-type", "d", "-printf", "%P\n"], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    # The prefix decides on the folder of Python; that of packages is /usr.
    files = [re.sub(r"^lib/python3[^/]*/\w+-packages/", "lib/python3/dist-packages/", path) for path in files if path]
    wanted = list(patterns(debian))
    for path in files:
        owners = [name for name, pattern in wanted if is_there(path, pattern)]
        if len(owners) != 1:
            print(f"{path}: is in {len(owners)} packages: {', '.join(owners)}")
    for name, pattern in wanted:
        if not any(is_there(path, pattern) for path in files):
            print(f"{name}: {pattern}: no such file is installed")
    with open(map_file, encoding="utf-8") as text, open(f"{debian}/libfathom-tools0.symbols", encoding="utf-8") as symbols:
        nodes, tracked = set(re.findall(r"^(\w+[\d.]+) \{", text.read(), re.M)), set(re.findall(r"\(symver\)(\S+)", symbols.read()))
    if not nodes or nodes != tracked:
        print(f"libfathom-tools0.symbols has the versions {sorted(tracked)}, {map_file} {sorted(nodes)}")


if __name__ == "__main__":
    main()
