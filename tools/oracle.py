#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asks fathom and the tools people use the same questions; every difference gets a class.

oracle.py FATHOM REPORT [--corpus PATH]... [--usr]: asks for 100,000 random function addresses of
each corpus and, with --usr, 200 of every other ELF file under /usr that has symbols. Writes a
Markdown report. Ends with status 1 when agreement with llvm-symbolizer is below 99.9 %, or when a
class has no explanation.
"""
import argparse
import collections
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

LLVM = "llvm-symbolizer"
SEED = 20260101
AGREEMENT = 0.999
AGREEING = ("same", "no name in stripped file", "label inside", "name in dwz file", "constructor variant")

# What each class of differences means, and why fathom's answer is right.
CLASSES = {
    "label inside": "The address is in a sized function; llvm-symbolizer prefers a label that an "
                    "assembler file defines inside it. fathom names the function.",
    "no line, file of symbol": "Nothing says which line this is; llvm-symbolizer shows the name of "
                               "the STT_FILE symbol with line 0, fathom nothing.",
    "name in dwz file": "The inlined function's name stands in the supplementary (dwz) file, which "
                        "llvm-symbolizer does not read; fathom and readelf do.",
    "constructor variant": "The declaration's linkage name (C4, D4: no code has it) against that "
                           "of the variant that was inlined (C1, C2, D0, D1, D2).",
    "only fathom": "llvm-symbolizer has no name here: a PLT stub, bounds from an unwind "
                   "description, MiniDebugInfo, or a symbol it leaves out.",
    "only llvm": "fathom has no name here: llvm-symbolizer names the address after a symbol that "
                 "ended before it or that is no name (a mark of the assembler).",
    "no name in stripped file": "llvm-symbolizer has no function name for a frame that fathom names from the "
                       "debug file's symbol table: it looks at the stripped file's own symbols only.",
    "nearest symbol": "No symbol covers the address; llvm-symbolizer serves the nearest sizeless "
                      "one before it, although an unwind description says it ended.",
}

# The same for GNU addr2line and eu-addr2line. Their answers count only if llvm-symbolizer agrees with fathom;
# docs/reports/oracle-addr2line.md has more, and the comparison of fathom addr2line byte for byte.
PLACE_CLASSES = {
    "directory doubled": "The tool puts the compilation directory before directory 0 of DWARF 5, which is the "
                         "compilation directory: ./iconv/./iconv/x.c.",
    "file differs": "GNU takes file 0 of a DWARF 5 line table until the program sets another; the registers start "
                    "with file 1 (DWARF 5, 6.2.2).",
    "frames differ": "GNU leaves out inlined calls: those whose names dwz moved to the supplementary file, which it "
                     "does not find, and those whose ranges it does not read.",
    "line differs": "The tool does not find the row: the unit or the function that it found for the address before "
                    "reaches this one, too, and is preferred.",
    "only one answers": "The tool has no line: its unit is in a file that it does not find or a form that it does "
                        "not read, or the line table gives line 0, which it does not show.",
}
READELF = "The name is that of the debug file's own symbol table or of a stub, which readelf does not list here."


class Symbols:
    """Returns what readelf says of the symbol tables of a file."""

    def __init__(self, path):
        out = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, errors="replace").stdout
        functions, self.at, self.files = set(), collections.defaultdict(set), set()
        for line in out.splitlines():
            f = line.split()
            if len(f) < 8 or f[6] in ("UND", "Ndx"):
                continue
            if f[3] == "FILE":
                self.files.add(" ".join(f[7:]))
            elif f[6] != "ABS":
                self.at[int(f[1], 16)].add(f[7].split("@")[0])
                if f[3] in ("FUNC", "IFUNC") and int(f[2], 0):
                    functions.add((int(f[1], 16), int(f[2], 0)))
        self.functions = sorted(functions)


def debug_file(path):
    """Returns the separate debug file of path by its build-id, or path itself."""
    out = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, errors="replace").stdout
    match = re.search(r"Build ID: ([0-9a-f]{8,})", out)
    if match:
        candidate = f"/usr/lib/debug/.build-id/{match[1][:2]}/{match[1][2:]}.debug"
        if os.path.exists(candidate):
            return candidate
    return path


def random_addresses(functions, n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        start, size = rng.choice(functions)
        yield start + rng.randrange(size)


def lines_of(command, stdin_path):
    with open(stdin_path, encoding="ascii") as stdin:
        out = subprocess.run(command, stdin=stdin, capture_output=True, text=True, errors="replace").stdout
    return out.splitlines()


def path_key(path):
    return os.path.normpath(path) if path else ""


def base_name(name):
    """Returns a linkage name without the suffixes that compilers give to clones."""
    return re.split(r"\.(?:cold|part|constprop|isra|localalias|lto_priv|llvm|hot|unlikely)\b", name)[0]


VARIANT = re.compile(r"(?<=[A-Za-z0-9_])([CD])[0-5](?=E)")


def classify(llvm, ours, symbols):
    """Returns 'same', or the class of the difference between two answers."""
    theirs = llvm.get("Symbol") or []
    frames = ours["frames"]
    named = any(f.get("FunctionName") for f in theirs)
    if not frames:
        if not named and not any(f.get("FileName") for f in theirs):
            return "neither"
        return "only llvm"
    if not named and not any(f.get("FileName") for f in theirs):
        return "only fathom"
    if len(theirs) != len(frames):
        return "frames"
    inner, our_inner = theirs[0], frames[0]
    if path_key(inner["FileName"]) != path_key(our_inner["file"]) or inner["Line"] != (our_inner["line"] or 0):
        if not inner["Line"] and our_inner["file"] is None and inner["FileName"] in symbols.files:
            return "no line, file of symbol"
        return "line"
    return classify_names(theirs, frames, ours, symbols.at)


def classify_names(theirs, frames, ours, symbols_at):
    for index, (a, b) in enumerate(zip(theirs, frames)):
        name, own = a["FunctionName"], b["linkage_name"] or b["function"] or ""
        if name == own or base_name(name) == base_name(own):
            continue
        if index == len(frames) - 1:
            start = int(a["StartAddress"] or "0", 16)
            own_start = int(ours["address"], 16) - (ours["offset"] or 0)
            names = symbols_at.get(own_start, ())
            if own in names and (start == own_start or (not start and name in names)):
                continue
            if not name:
                return "no name in stripped file"
            if own_start < start and ours["size"]:
                return "label inside"
            return "nearest symbol" if ours["source"] in ("fde", "dwarf") else "symbol"
        if not name:
            return "name in dwz file"
        if VARIANT.sub(r"\1x", name) == VARIANT.sub(r"\1x", own):
            return "constructor variant"
        return "name"
    return "same"


class Report:
    def __init__(self):
        self.counts = collections.Counter()
        self.examples = {}
        self.place_examples = {"addr2line": {}, "eu-addr2line": {}}
        self.readelf_example = None
        self.gnu = collections.Counter()
        self.eu = collections.Counter()
        self.readelf = collections.Counter()
        self.rows = []

    def add_place(self, tool, path, kind, witnessed, example):
        """@witnessed: llvm-symbolizer agrees with fathom."""
        if kind not in ("same", "neither") and not witnessed:
            kind += ", without a witness"
        (self.gnu if tool == "addr2line" else self.eu)[kind] += 1
        if kind not in ("same", "neither"):
            self.place_examples[tool].setdefault(kind, (path, example))

    def add(self, path, kind, example):
        self.counts[kind] += 1
        if kind not in ("same", "neither"):
            self.examples.setdefault(kind, (path, example))


def compare_llvm(report, fathom, path, stdin_path, symbols):
    llvm = lines_of([LLVM, "-e", path, "--output-style=JSON", "--no-demangle"], stdin_path)
    ours = lines_of([fathom, "addr", "--no-cache", "--no-demangle", "--json", path], stdin_path)
    counts = collections.Counter()
    if len(llvm) != len(ours):
        counts["lines of output"] += 1
        report.add(path, "lines of output", (len(llvm), len(ours)))
        return counts, set()
    agreed = set()
    for a, b in zip(map(json.loads, llvm), map(json.loads, ours)):
        kind = classify(a, b, symbols)
        counts[kind] += 1
        if kind in AGREEING:
            agreed.add(b["address"])
        report.add(path, kind, (b["address"], a.get("Symbol"), b["symbol"], b["frames"]))
        if b["source"] in ("symtab", "dynsym", "minidebuginfo"):
            start = int(b["address"], 16) - b["offset"]
            same = b["linkage_name"] in symbols.at.get(start, ())
            report.readelf["same" if same else "differ"] += 1
            if not same and not report.readelf_example:
                report.readelf_example = (path, (b["address"], b["linkage_name"], sorted(symbols.at.get(start, ()))))
    return counts, agreed


def compare_place(file, line, frame):
    """Returns how another tool's file and line compare with ours."""
    if int(line) != (frame["line"] or 0):
        return "line differs"
    if path_key(file) == path_key(frame["file"]):
        return "same"
    # GNU and elfutils put the compilation directory before directory 0 of DWARF 5, which is the
    # compilation directory: ./iconv/./iconv/x.c.
    return "directory doubled" if path_key(file).endswith(path_key(frame["file"])) else "file differs"


def compare_gnu(report, fathom, path, stdin_path, agreed):
    """Asks addr2line -i; returns the innermost file and line, and the number of frames."""
    theirs = lines_of(["addr2line", "-a", "-i", "-e", path], stdin_path)
    ours = lines_of([fathom, "addr", "--no-cache", "--json", path], stdin_path)
    groups, group = [], None
    for line in theirs:
        if line.startswith("0x"):
            group = []
            groups.append(group)
        elif group is not None:
            group.append(re.sub(r" \(discriminator \d+\)$", "", line))
    for group, answer in zip(groups, map(json.loads, ours)):
        frames = [f for f in answer["frames"] if f["file"]]
        nothing = group[0].startswith("??:") or group[0].endswith(":?")
        if nothing or not frames:
            kind = "only one answers" if nothing == bool(frames) else "neither"
            report.add_place("addr2line", path, kind, answer["address"] in agreed, (answer["address"], group, frames))
            continue
        file, _, line = group[0].rpartition(":")
        kind = compare_place(file, line.replace("?", "0"), frames[0])
        if kind == "same" and len(group) != len(frames):
            kind = "frames differ"
        report.add_place("addr2line", path, kind, answer["address"] in agreed, (answer["address"], group, frames))


def compare_eu(report, fathom, path, stdin_path, agreed):
    theirs = lines_of(["eu-addr2line", "-e", path], stdin_path)
    ours = lines_of([fathom, "addr", "--no-cache", "--json", path], stdin_path)
    for line, answer in zip(theirs, map(json.loads, ours)):
        frame = answer["frames"][0] if answer["frames"] and answer["frames"][0]["file"] else None
        if line.startswith("??") or not frame:
            kind = "only one answers" if line.startswith("??") == bool(frame) else "neither"
        else:
            kind = compare_place(*re.match(r"(.*?):(\d+)", line).groups(), frame)
        report.add_place("eu-addr2line", path, kind, answer["address"] in agreed, (answer["address"], line, frame))


def ask(report, fathom, path, n, others):
    symbols = Symbols(debug_file(path))
    if not symbols.functions:
        symbols = Symbols(path)
    if not symbols.functions:
        return
    with tempfile.TemporaryDirectory() as tmp:
        stdin_path = os.path.join(tmp, "addresses")
        with open(stdin_path, "w", encoding="ascii") as f:
            f.writelines(f"{a:#x}\n" for a in random_addresses(symbols.functions, n, SEED))
        counts, agreed = compare_llvm(report, fathom, path, stdin_path, symbols)
        if others:
            compare_gnu(report, fathom, path, stdin_path, agreed)
            with open(stdin_path, encoding="ascii") as f:
                head = list(itertools.islice(f, 1000))
            with open(stdin_path, "w", encoding="ascii") as f:
                f.writelines(head)
            compare_eu(report, fathom, path, stdin_path, agreed)
            report.rows.append((path, counts))
    print(path, dict(counts), flush=True)


ET_REL, ET_EXEC, ET_DYN = 1, 2, 3


def elf_files(top, types=(ET_EXEC, ET_DYN)):
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                with open(path, "rb") as f:
                    head = f.read(18)
            except OSError:
                continue
            if head[:4] == b"\x7fELF" and len(head) == 18 and max(head[16:]) in types and not min(head[16:]):
                yield path


def agreement(counts):
    both = sum(n for kind, n in counts.items() if kind not in ("neither", "only fathom", "only llvm"))
    wrong = sum(counts[k] for k in ("frames", "line", "name", "symbol", "lines of output"))
    return (both - wrong) / both if both else 1.0


def shown(path):
    """Files of the user's own are called by their names."""
    return path if path.startswith(("/usr/", "/lib/")) else os.path.basename(path)


def example_lines(file, example):
    return [f"Example, in {shown(file)}:", "", "```", json.dumps(example, indent=1)[:1500], "```"]


def version_of(tool):
    """The version that the LLVM tool @tool states."""
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"LLVM version (\S+)", said)[1]


def write_report(report, path, command):
    total = sum(report.counts.values())
    out = ["# Oracle: fathom against the tools people use", "",
           f"Made by `{command}`. {total:,} addresses.", "",
           f"Agreement with {LLVM} {version_of(LLVM)} on the number of frames, the innermost file and line, and names "
           f"(by symbol address, clone suffixes aside), where both answer: "
           f"**{100 * agreement(report.counts):.3f} %**.", "",
           "| class | addresses |", "|---|---|"]
    out += [f"| {kind} | {n:,} |" for kind, n in report.counts.most_common()]
    out += ["", "## Large corpora", "", "| file | addresses | agreement |", "|---|---|---|"]
    out += [f"| {shown(p)} | {sum(c.values()):,} | {100 * agreement(c):.3f} % |" for p, c in report.rows]
    for title, counts in (("addr2line -i (large corpora)", report.gnu), ("eu-addr2line (1,000 each)", report.eu),
                          ("readelf -s: the name stands at the start we state", report.readelf)):
        out += ["", f"## {title}", "", "| outcome | addresses |", "|---|---|"]
        out += [f"| {kind} | {n:,} |" for kind, n in counts.most_common()]
    out += ["", "## Differences by class"]
    for kind, (file, example) in sorted(report.examples.items()):
        out += ["", f"### {kind}", "", CLASSES.get(kind, "**Not explained.**"), "",
                *example_lines(file, example)]
    for tool, examples in report.place_examples.items():
        out += ["", f"## Differences from {tool}", "",
                "llvm-symbolizer says what fathom says at each of these but those named otherwise."]
        for kind, (file, example) in sorted(examples.items()):
            out += ["", f"### {tool}: {kind}", "", PLACE_CLASSES.get(kind, "**Not explained.**"), "", *example_lines(file, example)]
    if report.readelf_example:
        out += ["", "## Difference from readelf", "", READELF, "", *example_lines(*report.readelf_example)]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def unexplained_classes(report):
    """Returns the differences that no class explains: somebody must look at the other tool's answers."""
    return [k for k in report.examples if k not in CLASSES] + \
        [f"{tool}: {k}" for tool, e in report.place_examples.items() for k in e if k not in PLACE_CLASSES]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fathom")
    parser.add_argument("report")
    parser.add_argument("--corpus", action="append", default=[])
    parser.add_argument("--usr", action="store_true")
    parser.add_argument("-n", type=int, default=100000)
    args = parser.parse_args()
    report = Report()
    for path in args.corpus:
        ask(report, args.fathom, path, args.n, True)
    if args.usr:
        for path in elf_files("/usr"):
            ask(report, args.fathom, path, 200, False)
    write_report(report, args.report, "./dev oracle")
    unexplained = unexplained_classes(report)
    share = agreement(report.counts)
    print(f"agreement {100 * share:.3f} %, unexplained classes: {unexplained}")
    return 1 if share < AGREEMENT or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
