#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public function's comment ends with Safety:, Memory: and Returns:; as-safe ones are safe. No comment begins with "Has", "What",
"That" or "Who": a function's begins with a verb, a type's with a noun. A comment of several lines begins and ends on lines of its own. No line
of a comment is glued to its asterisk."""
import glob
import re
import sys

SAFETY = re.compile(r"^(as-safe|mt-safe|mt-safe per object|neither)\b")
LINES = ["Safety:", "Memory:", "Returns:"]


def declarations(text):
    """Returns the text without preprocessor lines."""
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def functions(text):
    """Yields (name, comment) of each FATHOM_API declaration."""
    for match in re.finditer(r"/\*\*((?:(?!\*/).)*)\*/\s*FATHOM_API\b([^;(]*?)(\w+)\s*\(", text, re.S):
        yield match.group(3), [line.strip(" *\t") for line in match.group(1).splitlines()]


def check(path):
    text = declarations(open(path, encoding="utf-8").read())
    found = dict(functions(text))
    wrong = []
    for name in re.findall(r"FATHOM_API\b[^;(]*?(\w+)\s*\(", text):
        if name not in found:
            wrong.append(f"{path}: {name} has no comment")
            continue
        starts = [next((i for i, l in enumerate(found[name]) if l.startswith(tag)), None) for tag in LINES]
        if None in starts or starts != sorted(starts):
            wrong.append(f"{path}: {name}: wants the lines {', '.join(LINES)}, in this order")
            continue
        safety = found[name][starts[0]][len("Safety:"):].strip()
        if not SAFETY.match(safety):
            wrong.append(f"{path}: {name}: unknown safety class '{safety}'")
        if safety.startswith("as-safe") and not defined_in_safe(name):
            wrong.append(f"{path}: {name} is as-safe but not defined in src/safe")
    return wrong


def defined_in_safe(name):
    pattern = re.compile(r"^[\w *]*\b" + name + r"\(", re.M)
    return any(pattern.search(open(p, encoding="utf-8").read())
               for p in glob.glob("src/safe/*/*.c"))


def exported():
    """Returns the names that are only in the symbol map or only in the headers."""
    listed = set(re.findall(r"\b(fathom_\w+);", open("src/fathom.map", encoding="utf-8").read()))
    declared = set()
    for path in glob.glob("include/fathom/*.h"):
        declared |= set(re.findall(r"FATHOM_API\b[^;(]*?(\w+)\s*\(",
                                   declarations(open(path, encoding="utf-8").read())))
    return [f"src/fathom.map: {n} is declared but not exported" for n in sorted(declared - listed)] + \
           [f"src/fathom.map: {n} is exported but not declared" for n in sorted(listed - declared)]


def worded(path):
    """Comments of @path that are not plain, and lines that lost the blank behind their asterisk."""
    text = open(path, encoding="utf-8").read()
    for match in re.finditer(r"/\*.*?\*/", text, re.S):
        line = text.count("\n", 0, match.start()) + 1
        first = re.match(r"/\*\*?\s+(?:\*\s+)?(Has|What|That|Who)\b", match[0])
        stands_alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        dangles = re.match(r"/\*+ *[^\s*].*\n", match[0]) if stands_alone else re.search(r"\n[\s*]*/$", match[0])
        if first:
            yield f"{path}:{line}: begins with '{first[1]}'"
        if dangles:
            yield f"{path}:{line}: a comment of several lines begins and ends on lines of its own"
        for i, part in enumerate(match[0].split("\n")):
            if i and re.match(r"\s*\*[^\s*/]", part):
                yield f"{path}:{line + i}: lacks a blank behind the asterisk"


wrong = exported()
for source in sorted(path for root in ("include", "cli", "src") for end in ("h", "c") for path in glob.glob(f"{root}/**/*.{end}", recursive=True)):
    wrong += worded(source)
for header in sorted(glob.glob("include/fathom/*.h")):
    wrong += check(header)
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
