#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the rows that fathom reads in call frame information with readelf's.

rows.py ROWS RULES REPORT FILE...: compares all rows of each FILE, as ROWS (tests/unwind/rows.c) prints them, with
`readelf -wF`: address, CFA and the rule of each general register. RULES (tests/unwind/rules.c) compares the table of
unwind rules of each FILE with its rows. Writes a Markdown report; ends with status 1 if anything differs.

readelf prints no row of an FDE without instructions: its rows are those of its CIE. It prints rows without code,
and "u" for what is undefined as for what is not stated. Expressions are compared as such, without their bytes.
"""
import collections
import os
import re
import subprocess
import sys

MACHINES = {
    "Advanced Micro Devices X86-64": ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
                                      "r13", "r14", "r15", "rip"],
    "Intel 80386": ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"],
    "AArch64": [f"x{i}" for i in range(31)] + ["sp"],
}
# Registers that rows do not have: vectors, flags and others, by readelf's names.
DROPPED = re.compile(r"(?:r?\d+|xmm\d+|st\d+|st\(\d\)|mm\d+|[vdzp]\d+|elr|vg|ffr|[er]?flags|mxcsr|fc[wt]w?|r\d+)$")
ENTRY = re.compile(r"([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ (?:CIE .* ra=(\d+)|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))")

RULE = re.compile(r"(?:[cv][+-]\d+|v?exp|s|r\d+)$")

Fde = collections.namedtuple("Fde", "low high rows")


def known_rule(rule):
    assert RULE.match(rule), rule
    return rule


def rules_of(pairs, seen={}):
    """Returns rules as pairs of a number and a rule, sorted; few are different, and each is kept once."""
    rules = tuple(sorted((n, rule) for n, rule in pairs if n is not None and rule != "u"))
    return seen.setdefault(rules, rules)


class Theirs:
    """Returns what readelf prints of @path: {section: {offset of an FDE: Fde}}, each row (low, CFA, rules)."""

    def __init__(self, path):
        head = subprocess.run(["readelf", "-hW", path], capture_output=True, text=True, errors="replace", check=True).stdout
        machine = re.search(r"Machine: +(.*)", head)[1].strip()
        self.numbers = {name: i for i, name in enumerate(MACHINES[machine])}
        self.sections, self.cies, self.n = {}, {}, 0
        self.entry, self.columns, self.rows = None, [], []
        with subprocess.Popen(["readelf", "-wFN", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace", env={**os.environ, "LC_ALL": "C"}) as readelf:
            for line in readelf.stdout:
                self._line(line)
            self._end()
        for section in self.sections.values():
            for off, (match, rows) in section.items():
                section[off] = self._fde(match, rows)
        self.n = sum(len(fde.rows) for section in self.sections.values() for fde in section.values())

    def _line(self, line):
        if line.startswith("Contents of the "):
            self._end()
            self.section = self.sections.setdefault(line.split()[3].replace(".z", "."), {})
            self.name = line.split()[3]
            return
        match = ENTRY.match(line)
        if match:
            self._end()
            self.entry, self.rows, self.columns = match, [], []
        elif line.startswith("   LOC"):
            self.columns = line.split()[1:]
        elif self.columns and line[0] in "0123456789abcdef" and "ZERO terminator" not in line:
            # A rule "r1 (rdx)" has the number and the name of a register.
            self.rows.append([word for word in line.split() if word[0] != "("])

    def _end(self):
        if not self.entry:
            return
        match, self.entry = self.entry, None
        if match[2]:
            self.cies[self.name, int(match[1], 16)] = (int(match[2]), self._named(self.rows, self.columns, int(match[2])))
            return
        key = self.name, int(match[3], 16)
        # A CIE may stand behind its FDE; no linker writes that.
        ra, of_cie = self.cies[key]
        rows = self._named(self.rows, self.columns, ra)
        if not rows:
            rows = [(int(match[4], 16), cfa, rules) for _, cfa, rules in of_cie[-1:]]
        self.section[int(match[1], 16)] = (match, rows)

    def _fde(self, match, rows):
        low, high = int(match[4], 16), int(match[5], 16)
        kept = [row for row, after in zip(rows, [*rows[1:], (high,)]) if row[0] != after[0] and row[0] < high]
        return Fde(low, high, kept)

    def _named(self, rows, columns, ra):
        """Gives rules the numbers of their registers; "u" is left out."""
        numbers = [ra if name == "ra" else self._number(name) for name in columns[1:]]
        out = []
        for low, cfa, *rules in rows:
            assert len(rules) == len(numbers), (low, rules, columns)
            stated = rules_of((n, known_rule(rule)) for n, rule in zip(numbers, rules) if rule != "u")
            name = re.match(r"(\w+)([+-]\d+)$", cfa)
            out.append((int(low, 16), sys.intern(f"r{self._number(name[1])}{name[2]}" if name else cfa), stated))
        return out

    def _number(self, name):
        if name in self.numbers:
            return self.numbers[name]
        assert DROPPED.match(name), name
        return None


class Ours:
    """Returns the same as @command prints it of @path; @wrong has what it could not read."""

    def __init__(self, command, path):
        self.sections, self.wrong, self.n, self.signed = {}, [], 0, 0
        run = subprocess.run([*command, path], capture_output=True, text=True, errors="replace", check=False)
        if run.returncode:
            self.wrong.append(f"status {run.returncode}")
        rows, section = [], {}
        for line in run.stdout.splitlines():
            f = line.split()
            if f[0] == "R":
                self.signed += f[-1] == "signed"
                rules = rules_of((int(rule.partition(":")[0]), rule.partition(":")[2]) for rule in f[3:] if rule != "signed")
                rows.append((int(f[1], 16), sys.intern(f[2]), rules))
            elif f[0] == "F":
                if f[5] != "0":
                    self.wrong.append(line)
                section[int(f[1], 16)] = Fde(int(f[2], 16), int(f[3], 16), rows)
                self.n += len(rows)
                rows = []
            elif f[0] == "section":
                section = self.sections.setdefault(f[1], {})
            elif f[0] != "file" or f[2] != "0":
                self.wrong.append(line)


def differences(ours, theirs):
    """Returns the FDEs that differ, as text."""
    out = list(ours.wrong)
    for name in sorted({*ours.sections, *theirs.sections}):
        mine, other = ours.sections.get(name, {}), theirs.sections.get(name, {})
        for off in sorted({*mine, *other}):
            a, b = mine.get(off), other.get(off)
            if a == b:
                continue
            if not a or not b or a[:2] != b[:2]:
                out.append(f"{name} {off:x}: {a}, readelf has {b}")
                continue
            pairs = zip([*a.rows, None], [*b.rows, None])
            out.append(f"{name} {off:x}: " + next(f"{x}, readelf has {y}" for x, y in pairs if x != y))
    return out


def check(command, path, least, section=".eh_frame"):
    """All rows of the file at @path, as @command prints them, are readelf's, at least @least of them. Returns ours."""
    ours, theirs = Ours(command, path), Theirs(path)
    wrong = differences(ours, theirs)
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:10]])
    assert ours.n == theirs.n >= least, (ours.n, theirs.n, least)
    assert theirs.sections.get(section), f"readelf reads no FDE in {section}"
    return ours


def rules_line(rules, path):
    """The row of the report about the table of rules of @path, and how many rows are wrong in it."""
    printed = subprocess.run([rules, path], capture_output=True, text=True, check=True).stdout
    words = re.search(r"^rows .*", printed, re.M)[0].split()
    at = words.index("kinds")
    n = {k: int(v) for k, v in zip([*words[:at:2], *words[at + 10::2]], [*words[1:at:2], *words[at + 11::2]])}
    other = int(words[at + 9])
    return (f"| {path} | {n['rows']:,} | {n['wrong']:,} | {other:,} | {n['kept']:,} | {n['rules']:,} | {n['bytes'] / n['kept']:.2f} | "
            f"{n['rows'] / n['made'] * 1e3:.0f} |\n", n["wrong"])


def main():
    rows, rules, report, *paths = sys.argv[1:]
    paths = list(dict.fromkeys(map(os.path.realpath, paths)))
    total, wrong, tables = 0, 0, []
    with open(report, "w", encoding="utf-8") as out:
        out.write("# Rows of call frame information: fathom against readelf\n\nMade by `./dev rows`: every row of these files as "
                  "`readelf -wF` has it: address, CFA, rule of each general register. Expressions are compared as such, not "
                  "their bytes.\n\n| file | FDEs | rows | with expressions | FDEs that differ | million rows a second |\n"
                  "|---|---|---|---|---|---|\n")
        found = []
        for path in paths:
            ours, theirs = Ours([rows], path), Theirs(path)
            differ = differences(ours, theirs)
            fdes = sum(map(len, theirs.sections.values()))
            expressions = sum(1 for s in ours.sections.values() for fde in s.values() for _, cfa, rules in fde.rows
                              if cfa == "exp" or any(rule in ("exp", "vexp") for _, rule in rules))
            timed = subprocess.run([rows, "--time", path], capture_output=True, text=True, check=True).stdout.split("time ")[1].split()
            speed = int(timed[0]) / int(timed[1]) * 1e3
            out.write(f"| {path} | {fdes:,} | {theirs.n:,} | {expressions:,} | {len(differ):,} | {speed:.0f} |\n")
            print(f"{path}: {fdes:,} FDEs, {theirs.n:,} rows, {len(differ):,} differ", flush=True)
            found += [f"- {path}: {line}" for line in differ[:10]]
            total, wrong = total + theirs.n, wrong + len(differ)
            line, n_wrong = rules_line(rules, path)
            tables.append(line)
            wrong += n_wrong
        out.write("\nReading is timed on one processor, by its clock, once the pages are there; FDEs and CIEs are read as well.\n")
        out.writelines(f"\n{line}" for line in found)
        out.write("\n## Tables of rules\n\nThe table that `fathom_unwind_table_make()` makes of each file, against its rows: the rule of "
                  "the first and of the last byte of each row leads to the same pc, sp and frame pointer. \"other\" are rows that no rule "
                  "can say. Bytes are those of the table for each row of it, its different rules included.\n\n"
                  "| file | rows | wrong | other | rows of the table | different rules | bytes a row | million rows a second |\n"
                  "|---|---|---|---|---|---|---|---|\n")
        out.writelines(tables)
    print(f"{total:,} rows; {wrong} FDEs differ")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
