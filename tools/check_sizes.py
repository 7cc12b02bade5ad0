#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No file above 1,200 lines but generated ones, no function above 120, in C and in Python; half of those in C are below 15.
Prints the longest functions with --top."""
import ast
import glob
import json
import subprocess
import sys

MAX_FILE = 1200
MAX_FUNCTION = 120
MAX_MEDIAN = 15
# Written by tools/syscall_tables.py.
GENERATED = {"src/host/syscalls/syscall_rows.c", "src/host/syscalls/constant_rows.c"}


def sources():
    return sorted(p for pattern in ("src/**/*.[ch]", "cli/**/*.[ch]", "include/**/*.h", "tests/**/*.[ch]",
                                    "bench/*.c", "examples/*.c", "tests/**/*.py", "tools/*.py", "bench/*.py", "python/**/*.py", "examples/*.py")
                  for p in glob.glob(pattern, recursive=True))


def python_functions(paths):
    for path in paths:
        with open(path, encoding="utf-8") as source:
            tree = ast.parse(source.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield node.end_lineno - node.lineno + 1, path, node.name


def c_functions(paths):
    out = subprocess.run(["ctags", "--output-format=json", "--fields=+ne", "--kinds-C=f", "-f", "-", *paths],
                         capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        tag = json.loads(line)
        if "end" in tag:
            yield tag["end"] - tag["line"] + 1, tag["path"], tag["name"]


paths = sources()
wrong = []
for path in paths:
    lines = sum(1 for _ in open(path, encoding="utf-8"))
    if lines > MAX_FILE and path not in GENERATED:
        wrong.append(f"{path}: {lines} lines")
in_c = sorted(c_functions(p for p in paths if not p.endswith(".py")), reverse=True)
found = in_c + sorted(python_functions(p for p in paths if p.endswith(".py")), reverse=True)
wrong += [f"{path}: {name}: {length} lines" for length, path, name in found if length > MAX_FUNCTION]
median = in_c[len(in_c) // 2][0]
if median >= MAX_MEDIAN:
    wrong.append(f"the median of all functions in C is {median} lines")
if "--top" in sys.argv:
    print(f"{len(in_c)} functions in C, median {median} lines")
    for length, path, name in sorted(found, reverse=True)[:10]:
        print(f"{length:5} {path}: {name}")
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
