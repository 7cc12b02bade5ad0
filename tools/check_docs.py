#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README.md is short and narrow, and links lead to files. What ARCHITECTURE.md, CONTRIBUTING.md and the pages of rooms name between
backticks is there: files, folders, functions, structs, constants, verbs. What they say of the order of rooms, of the tests, of mutexes and of
other countable things is so."""
import glob
import os
import re
import subprocess
import sys

import check_layers

DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", *sorted(glob.glob("src/**/README.md", recursive=True)), "cli/README.md")
# Words of others, and words that stand for any name.
FOREIGN = {"nm", "exec()", "meson", "clang-format", "area: imperative", "__libc_malloc", "_text", "DW_AT_sibling",
           "#include", "#ifdef", "func@[..]", ".o", ".ko", "svma", "avma", "_off"}
PLACEHOLDERS = {"fathom_<object>_<verb>", "struct fathom_x", "ret_x", "reterr", "int verb_VERB(int argc, char **argv)",
                "fathom: WHAT: WHY (REMEDY)", "_init/_deinit", "_create/_destroy", "_open/_close", "_acquire/_release",
                "Safety:", "Memory:", "Returns:"}
FILE = re.compile(r"[\w.*/-]+\.(?:c|h|S|py|md|map|build|\[ch\])")
# Files of these names are of any room: a placeholder and what it may be.
ANY = (("NAME", "*"), ("VERB", "*"), ("ROOM", "*"), ("x_none", "*_none"), ("/x.", "/*."))


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


class Tree:
    """What the repository has."""

    def __init__(self):
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                                text=True, check=True).stdout.split("\n")
        self.files = [path for path in listed if path and os.path.exists(path)]
        self.folders = {parent for path in self.files for parent in parents(path)}
        code = "".join(read(p) for p in self.files
                       if p.startswith(("src/", "cli/", "include/")) and p.endswith((".c", ".h", ".S")))
        self.code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
        self.words = set(re.findall(r"\w+", self.code))

    def has_file(self, name):
        for what, stands_for in ANY:
            name = name.replace(what, stands_for)
        if "/" in name:
            return any(glob.glob(root + name) for root in ("", "src/"))
        pattern = re.compile(re.escape(name).replace(r"\*", ".*").replace(r"\[ch\]", "[ch]"))
        found = [path for path in self.files if pattern.fullmatch(os.path.basename(path))]
        inside = [path for path in found if path.startswith(("src/", "cli/"))]
        return len(inside or found) == 1 or bool(found) and "*" in name

    def has_folder(self, name):
        return any(folder == name or folder.endswith("/" + name) for folder in self.folders)

    def calls(self, name):
        """Whether a function is so called; one that starts with _ may be the end of a name."""
        return re.search(rf"{'' if name.startswith('_') else chr(92) + 'b'}{re.escape(name)}\(", self.code) is not None


def parents(path):
    while path := os.path.dirname(path):
        yield path


def verbs(path, pattern):
    return set(re.findall(r"\w+", " ".join(re.findall(pattern, read(path), re.M))))


def is_there(token, tree):
    """None where it is, or cannot be looked for, else what is missing."""
    if token in FOREIGN or token in PLACEHOLDERS or token.startswith("/") or "←" in token:
        return None
    if token.startswith("./dev "):
        known = verbs("dev", r"^([\w |-]+)\)")
        return None if token.split()[1] in known else "is no verb of ./dev"
    if token.startswith("fathom "):
        return None if f'"{token.split()[1]}"' in read("cli/main.c") else "is no verb of the command"
    if match := re.fullmatch(r"(struct|enum) (\w+)", token):
        return None if re.search(rf"\b{token} \{{", tree.code) else f"no such {match[1]} is defined"
    if token.endswith("/"):
        return None if tree.has_folder(token[:-1]) else "is no folder"
    if FILE.fullmatch(token):
        return None if tree.has_file(token) else "is not one file, as written from the top or src/ on"
    if "/" in token or token.startswith("."):
        return None if os.path.exists(token) or os.path.exists("src/" + token) or f'"{token}"' in tree.code \
            else "is neither a path nor a section's name in the code"
    if token.endswith("()"):
        return None if tree.calls(token[:-2]) else "is no function of the code"
    if re.fullmatch(r"\w+", token):
        return None if token in tree.words else "is no word of the code"
    return "is of a form that nobody looks for"


def tokens(path):
    """(line number, what stands between backticks) of a document, without its drawings."""
    drawing = False
    for number, line in enumerate(read(path).splitlines(), 1):
        drawing ^= line.startswith("```")
        if not drawing:
            for token in re.findall(r"`([^`]+)`", line):
                yield number, token


def table(path, head):
    """The first column of the table below @head: a list of names for each row."""
    lines = read(path).split(head, 1)[1].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append(re.findall(r"`([^`]+)`", line.split("|")[1]))
    return rows


def check_rooms():
    """The law of includes, as the table of rooms says it: each sees those above it, and what a rule of its own says."""
    rows = table("ARCHITECTURE.md", "| room | what is in it |")
    place = {name.rstrip("/"): number for number, row in enumerate(rows) for name in row}
    for folder, seen in check_layers.LAW.items():
        if not folder.startswith("src/host/"):
            continue
        room = folder.removeprefix("src/host/")
        if room not in place:
            yield f"the table of rooms leaves {room}/ out"
            continue
        for other in (s.removeprefix("src/host/") for s in seen if s.startswith("src/host/")):
            if place.get(other, len(rows)) >= place[room]:
                yield f"tools/check_layers.py lets {room}/ see {other}/, which the table of rooms does not"
    for room in place:
        if "src/host/" + room not in check_layers.LAW:
            yield f"the table of rooms has {room}/, which tools/check_layers.py does not know"


def check_law():
    """The order of folders in the text is that of tools/check_layers.py."""
    text = read("ARCHITECTURE.md")
    stated = re.search(r"The law of includes is `([^`]+)`", text)[1]
    order = [part.split(", ") for part in stated.split(" ← ")]
    place = {name: number for number, names in enumerate(order) for name in names}
    for folder, seen in check_layers.LAW.items():
        own = "host" if folder.startswith("src/host/") else os.path.basename(folder)
        if not folder.startswith("src/"):
            continue
        for other in seen:
            theirs = "host" if other.startswith("src/host/") else os.path.basename(other)
            if own != theirs and place[theirs] >= place[own]:
                yield f"{folder} may include {other}, against the law"


def check_tests(tree):
    """Each folder of tests/ has a row, and each room of src/ is proven by one that is named."""
    rows = [name for row in table("CONTRIBUTING.md", "| folder | what it proves | rooms |") for name in row]
    folders = {p.split("/")[1] for p in tree.files if p.startswith("tests/") and p.count("/") > 1} - {"lib"}
    for folder in sorted(folders - {r.removeprefix("tests/") for r in rows}):
        yield f"tests/{folder} has no row"
    text = read("CONTRIBUTING.md").split("| folder | what it proves | rooms |", 1)[1].split("\n\n", 1)[0]
    proven = {room for line in text.splitlines() for room in re.findall(r"[\w/]+", line.split("|")[3] if line.count("|") > 3 else "")}
    for folder in check_layers.LAW:
        room = folder.removeprefix("src/")
        if folder.startswith("src/") and room not in proven and not any(room.startswith(p + "/") for p in proven):
            yield f"no folder of tests/ is said to prove {room}"


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
           "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "twenty-one", "twenty-two")


def check_counts(tree):
    """Numbers of the text."""
    text = read("ARCHITECTURE.md")
    mutexes = sum(len(re.findall(r"\bpthread_mutex_t \w+;", read(path))) for path in tree.files
                  if path.startswith("src/") and path.endswith((".c", ".h")))
    stated = re.search(r"There\s+are\s+([\w-]+)\s+mutexes", text)
    if not stated or stated[1] != NUMBERS[mutexes]:
        yield f"there are {NUMBERS[mutexes]} mutexes"


# Libraries that are opened when they are needed, and who may include their headers.
DECODERS = {"Zydis/": {"src/host/disasm/x86.h"}, "capstone/": {"src/host/disasm/capstone.c"},
            "zlib.h": {"src/host/file/codec_zlib.h"}, "libdeflate.h": {"src/host/file/codec_zlib.h"},
            "zstd": {"src/host/file/codec_zstd.h"}, "lzma": {"src/host/file/codec_lzma.h"}, "lz4": {"src/host/file/codec_lz4.h"}}


def check_decoders(tree):
    for path in tree.files:
        if path.startswith(("src/", "cli/")) and path.endswith((".c", ".h")):
            for header in re.findall(r"^#include <([^>]+)>", read(path), re.M):
                if any(header.startswith(name) and path not in allowed for name, allowed in DECODERS.items()):
                    yield f"{path} includes <{header}>"


# Of README.md: lines, columns of a line, columns of a table.
README_LINES, README_WIDTH, README_COLUMNS = 150, 120, 5
ARCHITECTURE_LINES = 400


def check_readme():
    lines = read("README.md").splitlines()
    for path, limit in (("README.md", README_LINES), ("ARCHITECTURE.md", ARCHITECTURE_LINES)):
        if (n := read(path).count("\n")) > limit:
            yield f"{path}: {n} lines, not {limit}"
    for number, line in enumerate(lines, 1):
        if len(line) > README_WIDTH:
            yield f"README.md:{number}: {len(line)} columns, not {README_WIDTH}"
        if line.startswith("|") and line.count("|") - 1 > README_COLUMNS:
            yield f"README.md:{number}: a table of more than {README_COLUMNS} columns"


def check_links(tree):
    """Links to files of the repository."""
    for path in tree.files:
        if path.endswith(".md"):
            for link in re.findall(r"\]\(([^)#]+)", read(path)):
                where = os.path.normpath(os.path.join(os.path.dirname(path), link))
                if "://" not in link and not os.path.exists(where):
                    yield f"{path}: {link} is not there"


def check_dev():
    """The verbs that ./dev prints are those that it has."""
    text = read("dev")
    usage, cases = text.split("\nEND\n", 1)
    told = {verb for words in re.findall(r"^  (?=\S)([a-z0-9|-]+)", usage, re.M) for verb in words.split("|")}
    has = {verb for words in re.findall(r"^([a-z*-][a-z0-9 |*-]*)\)", cases.split("\ncase $verb in\n", 1)[-1], re.M) for verb in words.split(" | ")}
    has -= {"*", "help", "--help", "-h"}
    yield from (f"no verb {verb}, which it prints" for verb in sorted(told - has))
    yield from (f"does not print its verb {verb}" for verb in sorted(has - told))


def main():
    tree = Tree()
    wrong = [f"{path}:{number}: `{token}` {why}" for path in DOCUMENTS for number, token in tokens(path)
             if (why := is_there(token, tree))]
    wrong += [f"ARCHITECTURE.md: {why}" for why in [*check_rooms(), *check_law(), *check_counts(tree), *check_decoders(tree)]]
    wrong += [f"CONTRIBUTING.md: {why}" for why in check_tests(tree)]
    wrong += [f"dev: {why}" for why in check_dev()]
    wrong += [*check_readme(), *check_links(tree)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
