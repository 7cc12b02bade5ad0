#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""table.py [RESULTS]...: writes files of bench/results/, the newest without an argument, as docs/numbers.md, and some rows of the
first as the picture docs/numbers.svg. All rows of a file must be of one commit. Sections that the first file has no rows of come from
the next ones, and say of which commit they are."""
import csv
import glob
import html
import math
import os
import sys

# Benchmark, what it is in words; the order of the table.
ROWS = [
    ("vmlinux-100k", "100,000 random function addresses of `vmlinux`: functions, lines, inlined callers"),
    ("vmlinux-100k-cached", "the same, index cache on disk"),
    ("cxx-100k-json", "100,000 of ceph-osd (C++, 16 MB of code), as JSON"),
    ("cxx-100k", "the same, as text"),
    ("vmlinux-one", "one address of `vmlinux`, whole process"),
    ("vmlinux-one-cached", "the same, index cache on disk"),
    ("vmlinux-one-cold", "the same, nothing of the file in memory"),
    ("cxx-one", "one address of ceph-osd"),
    ("vmlinux-names-1m", "1,000,000 addresses of `vmlinux`, names only"),
    ("vmlinux-zlib-one", "one address, debug sections compressed (zlib), median of 20 spread ones"),
    ("vmlinux-zlib-one-cached", "the same, index cache on disk"),
    ("node-1k", "1,000 random addresses of node's code, names only"),
    ("libjvm-1k", "the same of libjvm"),
    ("modules-stream", "one stream over all libraries of a machine, four addresses of each"),
    ("process-one", "one address of a process with some 200 mappings"),
    ("core-one", "one address of its core"),
    ("libc-disasm", "libc's text disassembled, without bytes"),
    ("libstdcxx-disasm-lines", "libstdc++'s text, with source lines"),
]
# The same for what has other peers.
MORE_ROWS = [
    ("self-libc-hot", "100,000 look-ups of 64 addresses of libc in the own process, as handlers do them; fathom-now is `fathom_self_lookup_now()`"),
    ("self-llvm-hot", "10,000 in libLLVM"),
    ("self-jvm-hot", "10,000 in libjvm, which may be unloaded: handlers read its build-id in memory each time"),
    ("self-libc-random", "1,000,000 look-ups of 1,000,000 random addresses of libc"),
    ("self-llvm-random", "the same of libLLVM"),
    ("self-jvm-random", "the same of libjvm"),
    ("unwind-warm-1", "1,000,000 frames of the own stack, 68 deep, warm: milliseconds are nanoseconds a frame"),
    ("unwind-warm-8", "the same by 8 threads, each"),
    ("unwind-first", "the first trace after preparing"),
    ("rules-node", "the table of unwind rules of node"),
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
# Stacks: eu-stack and gdb stop the process for as long as they take.
STACK_ROWS = [
    ("stack-32-threads", "stacks of 32 threads that sleep, 50 frames each, names only, whole process"),
    ("stack-32-threads-lines", "the same with lines and inlined callers"),
    ("stack-1-threads", "of 1 thread"),
    ("stack-2000-threads", "of 2,000 threads, 13 frames each"),
    ("stack-core", "of a core of 5 threads with 225 frames"),
    ("stack-node", "of node that waits"),
    ("stack-java", "of java that sleeps"),
    ("stack-python3", "of python3 with 8 threads"),
    ("stack-perl", "of perl that sleeps"),
    ("stack-gdb", "of gdb at its prompt"),
    ("stack-busy", "pause of a thread that runs, median (3 threads on 2 processors)"),
    ("stack-1-threads-all", "pause of a thread by `--stop=all`, median, of 1 thread"),
    ("stack-32-threads-all", "of 32 threads"),
    ("stack-2000-threads-all", "of 2,000 threads"),
]
# Profiles: gperftools samples one process, without waits; perf-dwarf copies 64 KiB of the stack.
PROFILE_ROWS = [
    ("record-clang", "a C++ file compiled by clang, recorded"),
    ("record-node", "node that computes"),
    ("record-busy", "two threads that compute, on two processors"),
    ("record-switches", "100,000 switches between two threads on one processor"),
    ("report-clang", "the report of the first, as text; perf's without inlined functions"),
]
PROFILE_TOOLS = ["fathom", "fathom-no-waits", "none", "perf-fp", "perf-dwarf", "gperftools"]
# Logs: cat and grep name nothing.
LOG_ROWS = [
    ("filter-asan-20k", "a report of ASan with 20,000 frames of libc, named"),
    ("filter-markup-20k", "the same in LLVM's markup"),
    ("filter-plain-220M", "a log of 220 MB without addresses"),
]
LOG_TOOLS = ["fathom", "asan_symbolize", "llvm-symbolizer", "cat", "grep -c 0x"]
# Publishing: the usual consumers, nobody, and each alone.
PUBLISH_ROWS = [
    ("publish-arena-100000-by-1000", "100,000 functions published in 100 commits, one rule for all"),
    ("publish-own-100000-by-1000", "the same, each with a rule of its own"),
    ("publish-own-lines-100000-by-1000", "the same, with 4 lines each"),
    ("publish-own-100-by-1", "100 functions in commits of one, each with its rule"),
    ("publish-own-10000-by-1", "10,000"),
    ("publish-own-100000-by-1", "100,000"),
    ("publish-own-one-beside-100000", "2,000 commits that remove or add one function of 100,000 with rules"),
    ("publish-arena-one-beside-100000", "the same, one rule for all"),
    ("publish-own-backtrace-beside-100000", "1,000 traces by `backtrace()` beside 100,000 rules; the first, which sorts them, is its preparing"),
    ("publish-off-1000000", "1,000,000 functions added where nobody is told"),
    ("publish-attach-100000", "gdb attaches, with the names of 100,000 functions"),
    ("publish-attach-100000-lines", "the same, with their lines"),
]
PUBLISH_TOOLS = ["fathom", "nobody", "gdb", "libgcc", "perf-map", "jitdump", "all"]
STACK_TOOLS = ["fathom", "eu-stack", "gdb"]
MORE_TOOLS = ["fathom", "fathom-now", "dladdr", "backtrace_symbols_fd", "absl", "fathom-probe", "unw_backtrace", "unw_step",
              "backtrace", "llvm", "frame-pointer", "nm", "gdb"]
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


def known(text):
    return text and not math.isnan(float(text))


# The picture: what is drawn of which benchmark, and by whom.
PICTURE = [
    ("vmlinux-100k", "100,000 addresses of the kernel", ("llvm-symbolizer-19", "addr2line")),
    ("vmlinux-one", "one address of it", ("llvm-symbolizer-19", "addr2line", "eu-addr2line")),
    ("stack-java", "the stacks of a java process", ("eu-stack", "gdb")),
    ("find-node-process", "a name in a running node", ("gdb",)),
    ("unwind-warm-1", "1,000,000 frames of the own stack", ("unw_backtrace", "backtrace", "unw_step")),
]
# Widths and heights in units of the picture, about a pixel each.
LABEL, PLOT, VALUE, BAR, GAP = 330, 300, 210, 17, 14
STYLE = """text { font: 13px sans-serif; fill: #1f2328 } .peer { fill: #8c959f } .fathom { fill: #0969da }
.work { font-weight: bold }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .peer { fill: #6e7681 } .fathom { fill: #4493f8 } }"""


def more_of(row):
    """What else is known of a run."""
    parts = [f"prepared in {milliseconds(row['prepare_ms'])}"] if float(row["prepare_ms"]) else []
    return ", ".join(parts + ([row["more"]] if row["more"] else []))


def times_of(row):
    ratios = [f"{float(row[c]):.1f}" if known(row[c]) else "–" for c in ("fathom_times_faster", "fathom_times_less_cpu")]
    return "" if row["tool"] == "fathom" else " / ".join(ratios)


def table_of(results, rows, tools):
    """A line for each work and tool."""
    lines = []
    for bench, words in rows:
        if (bench, "fathom") not in results:
            continue
        for tool in tools:
            row = results.get((bench, tool))
            if row:
                cpu = milliseconds(row["cpu_ms"]) if known(row["cpu_ms"]) else "–"
                peak = f"{float(row['peak_mib']):.0f} MiB" if float(row["peak_mib"]) else "–"
                lines.append(f"| {words} | {tool} | {milliseconds(row['wall_ms'])} | {cpu} | {peak} | {times_of(row)} "
                             f"| {more_of(row)} |")
                words = ""
    head = ["| work | tool | time | processor time | memory | longer than fathom | more |", "|---|---|---|---|---|---|---|"]
    return head + lines if lines else []


def picture_of(results):
    """The rows of PICTURE as SVG: the longer the bar, the longer it took, ten times for each 60 units."""
    drawn = []
    y = GAP
    for bench, words, tools in PICTURE:
        rows = [results[bench, tool] for tool in ("fathom", *tools) if (bench, tool) in results]
        least = min(float(row["wall_ms"]) for row in rows)
        drawn.append(f'<text class="work" x="0" y="{y + 13}">{html.escape(words)}</text>')
        for row in rows:
            width = 12 + PLOT / 5 * math.log10(float(row["wall_ms"]) / least)
            kind = "fathom" if row["tool"] == "fathom" else "peer"
            times = "" if kind == "fathom" else f", {float(row['fathom_times_faster']):.1f} times as long"
            drawn.append(f'<text x="{LABEL - 10}" y="{y + 13}" text-anchor="end">{row["tool"]}</text>'
                         f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{width:.0f}" height="{BAR - 4}"/>'
                         f'<text x="{LABEL + width + 8:.0f}" y="{y + 13}">{milliseconds(row["wall_ms"])}{times}</text>')
            y += BAR + 4
        y += GAP
    width = LABEL + PLOT + VALUE
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}">\n'
            f"<style>{STYLE}</style>\n" + "\n".join(drawn) + "\n</svg>\n")


HEAD = """# Numbers

Medians on 2 cores, by `./dev bench`, which fetches Debian's `vmlinux` and `ceph-osd` with DWARF: wall time, processor time and
peak memory. The tools ran in turn. {rows} of commit {commit}: [{path}](../{path}). "Longer than fathom" is how
many times as long a tool took by wall time / by processor time.
"""
SECTIONS = (("Files, processes, cores", ROWS, TOOLS), ("The calling process, names", MORE_ROWS, MORE_TOOLS),
            ("Stacks", STACK_ROWS, STACK_TOOLS), ("Profiles", PROFILE_ROWS, PROFILE_TOOLS), ("Addresses in logs", LOG_ROWS, LOG_TOOLS),
            ("Publishing JIT code", PUBLISH_ROWS, PUBLISH_TOOLS))


def read(path):
    """The commit and the rows of a file: {(benchmark, tool): row}."""
    with open(path, encoding="ascii") as f:
        rows = list(csv.DictReader(f, delimiter="\t"))
    commits = {row["commit"] for row in rows}
    if len(commits) != 1:
        sys.exit(f"{path}: rows of {len(commits)} commits: {', '.join(sorted(commits))}")
    return commits.pop(), {(row["bench"], row["tool"]): row for row in rows}


def main():
    paths = sys.argv[1:] or [max(glob.glob("bench/results/*.tsv"), key=os.path.getmtime)]
    files = [(path, *read(path)) for path in paths]
    path, commit, results = files[0]
    lines = [HEAD.format(rows="Where no other is named, rows are" if len(files) > 1 else "All rows are", commit=commit, path=path)]
    for title, works, tools in SECTIONS:
        for path, commit, rows in files:
            table = table_of(rows, works, tools)
            if table:
                of = [] if rows is results else [f"Of commit {commit}: [{path}](../{path}).", ""]
                lines += [f"## {title}", "", *of, *table, ""]
                break
    with open("docs/numbers.md", "w", encoding="utf-8") as f:
        f.write("\n".join(lines).rstrip() + "\n")
    with open("docs/numbers.svg", "w", encoding="utf-8") as f:
        f.write(picture_of(results))


main()
