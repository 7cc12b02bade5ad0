#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""table.py: writes the newest file of bench/results/ into README.md as its table of numbers."""
import csv
import glob
import re

# Benchmark, what it is in words; the order of the table.
ROWS = [
    ("vmlinux-100k", "100,000 random function addresses of `vmlinux`: functions, lines, inlined callers"),
    ("vmlinux-100k-cached", "the same, index cache on disk"),
    ("vmlinux-one", "one address of it, whole process"),
    ("vmlinux-one-cached", "the same, index cache on disk"),
    ("vmlinux-names-1m", "1,000,000 addresses of it, names only"),
    ("process-one", "one address of a process with some 200 mappings"),
    ("core-one", "one address of its core"),
    ("libc-disasm", "libc's text disassembled, every address named"),
    ("libstdcxx-disasm-lines", "libstdc++'s text, with source lines"),
    ("vmlinux-zlib-one", "one address, debug sections compressed (zlib), median of 20 spread ones"),
    ("vmlinux-zlib-one-cached", "the same, index cache on disk"),
]
# The same for what has other peers.
MORE_ROWS = [
    ("self-libc-warm", "1,000,000 warm look-ups in libc of the own process, as handlers do them; fathom-now is `fathom_self_lookup_now()` (peers: per million)"),
    ("self-llvm-warm", "the same in libLLVM"),
    ("self-llvm-random", "the same at 1,000,000 random addresses"),
    ("self-jvm-warm", "the same in libjvm, which may be unloaded: handlers read its build-id in memory each time"),
    ("self-jvm-random", "the same at 1,000,000 random addresses"),
    ("node-1m", "1,000,000 random addresses of node's code, names only, whole process"),
    ("libjvm-1m", "the same of libjvm"),
    ("find-node-process-call", "an exact name in a running node, library call, warm"),
    ("find-node-process-one-call", "the same, the first call, for the first match only: what dlsym would answer"),
    ("find-node-process-first-call", "the same, for all matches"),
    ("find-node-file", "an exact name in node's file, whole process"),
    ("find-node-process", "an exact name in a running node, whole process"),
    ("perf-map-1m", "the first name of a perf map of 1,000,000 lines"),
    ("kernel-one", "one address of the running kernel, without its vmlinux"),
]
MORE_TOOLS = ["fathom", "fathom-now", "dladdr", "backtrace_symbols_fd", "absl", "nm", "gdb"]
TOOLS = ["fathom", "llvm-symbolizer-19", "addr2line", "eu-addr2line", "gdb", "objdump", "llvm-objdump-19"]


def milliseconds(text):
    value = float(text)
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    if value < 0.1:
        return f"{value * 1000:.1f} us"
    if value < 1:
        return f"{value:.2f} ms"
    return f"{value:.0f} ms" if value >= 20 else f"{value:.1f} ms"


def cell(row, fathom):
    if not row:
        return "–"
    text = milliseconds(row["wall_ms"])
    if float(row["peak_mib"]):
        text += f", {float(row['peak_mib']):.0f} MiB"
    if row is not fathom:
        text += f" ({float(row['fathom_times_faster']):.1f}x)"
    return text


def table_of(results, rows, tools):
    lines = ["| work | " + " | ".join(tools) + " |", "|---|" + "---|" * len(tools)]
    for bench, words in rows:
        fathom = results.get((bench, "fathom"))
        if fathom:
            lines.append(f"| {words} | " + " | ".join(cell(results.get((bench, t)), fathom) for t in tools) + " |")
    return lines


def main():
    newest = sorted(glob.glob("bench/results/*.tsv"))[-1]
    with open(newest, encoding="ascii") as f:
        results = {(r["bench"], r["tool"]): r for r in csv.DictReader(f, delimiter="\t")}
    lines = table_of(results, ROWS, TOOLS) + [""] + table_of(results, MORE_ROWS, MORE_TOOLS)
    with open("README.md", encoding="utf-8") as f:
        text = f.read()
    day = re.search(r"(\d{4}-\d\d-\d\d)", newest)[1]
    table = f"<!-- numbers: by bench/table.py from bench/results/{day}.tsv -->\n" + "\n".join(lines) + "\n<!-- end -->"
    with open("README.md", "w", encoding="utf-8") as f:
        f.write(re.sub(r"<!-- numbers.*?<!-- end -->", lambda _: table, text, flags=re.S))


main()
