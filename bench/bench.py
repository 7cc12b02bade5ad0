#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Benchmarks: fathom beside its peers, in turn, in one run.

bench.py FATHOM SPAWN CACHE_DIR [--small | --vmlinux PATH] [NAME]...

Every line of output is one result, tab-separated: bench, tool, median wall ms, min, max, median CPU
ms, peak MiB, runs, and how often fathom is faster. Results are appended to bench/results/.
"""
import argparse
import glob
import datetime
import os
import random
import re
import shutil
import statistics
import subprocess
import sys

RUNS = 5
LLVM = "llvm-symbolizer-19"


class Bench:
    """Commands that answer the same question; the first is fathom."""

    def __init__(self, name, stdin, commands, runs=RUNS, before=None):
        self.name, self.stdin, self.commands, self.runs, self.before = name, stdin, commands, runs, before


class Told(Bench):
    """Commands that measure themselves: each prints the nanoseconds of its parts, of which @part counts."""

    def __init__(self, name, part, commands, runs=RUNS):
        super().__init__(name, "/dev/null", commands, runs)
        self.part = part


def run_told(part, command, environment):
    out = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, stdin=subprocess.DEVNULL)
    ms = int(out.stdout.split()[part]) / 1e6
    return ms, ms, 0


class Inside(Bench):
    """Programs that measure themselves: they print the milliseconds of 1,000,000 look-ups, those of preparing, MiB."""


def run_inside(command, environment):
    out = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    took, prepared, peak, _ = map(float, out.stdout.split())
    return took, prepared, peak


def run_once(spawn, stdin, command, environment):
    out = subprocess.run([spawn, stdin, *command], capture_output=True, text=True, env=environment, check=True)
    wall, user, system, peak, _ = map(int, out.stdout.split())
    return wall / 1e6, (user + system) / 1e3, peak / 1024


def measure(bench, spawn, environment):
    """Rows of one benchmark: all commands in turn, a warm-up round first."""
    samples = {tool: [] for tool, _ in bench.commands}
    for turn in range(bench.runs + 1):
        for tool, command in bench.commands:
            if bench.before and tool == "fathom":
                bench.before()
            if isinstance(bench, Told):
                sample = run_told(bench.part, command, environment)
            elif isinstance(bench, Inside):
                sample = run_inside(command, environment)
            else:
                sample = run_once(spawn, bench.stdin, command, environment)
            if turn:
                samples[tool].append(sample)
    rows = []
    for tool, runs in samples.items():
        walls = [r[0] for r in runs]
        ratio = statistics.median(b[0] / a[0] for a, b in zip(samples[bench.commands[0][0]], runs))
        rows.append((bench.name, tool, statistics.median(walls), min(walls), max(walls),
                     statistics.median(r[1] for r in runs), statistics.median(r[2] for r in runs), len(runs), ratio))
    return rows


def functions_of(path):
    out = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, errors="replace").stdout
    found = []
    for line in out.splitlines():
        f = line.split()
        if len(f) >= 8 and f[3] in ("FUNC", "IFUNC") and f[6] not in ("UND", "ABS") and int(f[2], 0):
            found.append((int(f[1], 16), int(f[2], 0)))
    return found


def address_file(folder, name, symbols, n, seed):
    path = os.path.join(folder, f"{name}-{n}")
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(n):
            start, size = rng.choice(symbols)
            f.write(f"{start + rng.randrange(size):#x}\n")
    return path


def one_address(path):
    with open(path, encoding="ascii") as f:
        return f.readline().strip()


def growth(fathom, path, folder, label, symbols, peers):
    """The cost of 1, 100, 10,000 and 1,000,000 addresses."""
    for n in (1, 100, 10000, 1000000):
        stdin = address_file(folder, label, symbols, n, 7)
        commands = [("fathom", [fathom, "addr", "--no-cache", path])]
        if n < 1000000:
            commands += peers
        yield Bench(f"{label}-grow-{n}", stdin, commands)


def peers_of(path, addr2line=True):
    peers = [(LLVM, [LLVM, "-e", path])]
    if addr2line:
        peers.append(("addr2line", ["addr2line", "-fi", "-e", path]))
    return peers


def vmlinux_benches(fathom, path, folder):
    symbols = functions_of(path)
    many = address_file(folder, "vmlinux", symbols, 100000, 1)
    million = address_file(folder, "vmlinux", symbols, 1000000, 2)
    one = one_address(many)
    cache = os.path.join(folder, "cache")
    cached = [fathom, "addr", "--cache-dir", cache, path]

    def fill():
        if not os.path.isdir(cache):
            subprocess.run([fathom, "cache", "--cache-dir", cache, "build", path], check=True, stdout=subprocess.DEVNULL)

    yield Bench("vmlinux-100k", many, [("fathom", [fathom, "addr", "--no-cache", path])] + peers_of(path))
    yield Bench("vmlinux-one", "/dev/null",
                [("fathom", [fathom, "addr", "--no-cache", path, one]), (LLVM, [LLVM, "-e", path, one]),
                 ("addr2line", ["addr2line", "-fi", "-e", path, one]), ("eu-addr2line", ["eu-addr2line", "-fi", "-e", path, one])],
                runs=21)
    yield Bench("vmlinux-100k-cached", many, [("fathom", cached)], before=fill)
    yield Bench("vmlinux-one-cached", "/dev/null", [("fathom", cached + [one])], runs=21, before=fill)
    yield Bench("vmlinux-names-1m", million, [("fathom", [fathom, "addr", "--no-cache", "--names-only", path])])
    yield from process_benches(fathom, folder)
    yield from random_benches(fathom, folder)
    yield from find_benches(fathom, folder)
    yield from perf_map_benches(fathom)
    yield from disasm_benches(fathom, folder)
    yield from kernel_benches(fathom, folder)
    yield from self_benches(fathom, folder)
    yield from zlib_benches(fathom, path, folder, symbols)
    yield from growth(fathom, path, folder, "vmlinux", symbols, peers_of(path))


def zlib_benches(fathom, path, folder, symbols):
    """One address with compressed debug sections: 20 spread ones, each alone."""
    packed = os.path.join(folder, "vmlinux.zlib")
    if not os.path.exists(packed):
        subprocess.run(["objcopy", "--compress-debug-sections=zlib", path, packed], check=True)
    cache = os.path.join(folder, "cache-zlib")
    ordered = sorted(symbols)
    spread = [f"{ordered[(2 * i + 1) * len(ordered) // 40][0]:#x}" for i in range(20)]
    for round_name, runs in (("vmlinux-zlib-one", 1), ("vmlinux-zlib-one-cached", 5)):
        for address in spread:
            first = round_name == "vmlinux-zlib-one"
            command = [fathom, "addr", "--no-cache", packed, address] if first else \
                [fathom, "addr", "--cache-dir", cache, packed, address]
            tools = [("fathom", command)]
            if first:
                tools += [(LLVM, [LLVM, "-e", packed, address]), ("addr2line", ["addr2line", "-fi", "-e", packed, address]),
                          ("eu-addr2line", ["eu-addr2line", "-fi", "-e", packed, address])]
            yield Bench(round_name, "/dev/null", tools, runs=runs)


LTO_FILES, LTO_FUNCTIONS = 120, 60


def lto_program(folder):
    """One link-time optimised unit of thousands of functions from many files."""
    program = os.path.join(folder, "lto")
    if os.path.exists(program):
        return program
    sources = os.path.join(folder, "lto-sources")
    os.makedirs(sources, exist_ok=True)
    for i in range(LTO_FILES):
        with open(os.path.join(sources, f"f{i}.c"), "w", encoding="ascii") as f:
            f.write(f"struct s{i} {{ int a, b[{i + 1}]; struct s{i} *next; }};\n")
            for j in range(LTO_FUNCTIONS):
                f.write(f"static inline int h{i}_{j}(int x) {{ for (int k = 0; k < x; k++) x += k * {j}; return x ^ {i}; }}\n"
                        f"static int f{i}_{j}(struct s{i} *p, int x) {{ p->a += h{i}_{j}(x); return h{i}_{j * 7 % (j + 1)}(p->b[0]); }}\n")
            table = ", ".join(f"f{i}_{j}" for j in range(LTO_FUNCTIONS))
            f.write(f"__attribute__((used)) int (*const table{i}[])(struct s{i} *, int) = {{ {table} }};\n")
    with open(os.path.join(sources, "main.c"), "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    names = [os.path.join(sources, n) for n in sorted(os.listdir(sources)) if n.endswith(".c")]
    subprocess.run(["gcc", "-O2", "-g", "-flto=2", "-flto-partition=one", "-fno-ipa-icf", "-o", program, *names], check=True)
    return program


def lto_benches(fathom, folder):
    """One address of a unit of several megabytes."""
    path = lto_program(folder)
    symbols = functions_of(path)
    address = f"{sorted(symbols)[len(symbols) // 2][0]:#x}"
    yield Bench("lto-one", "/dev/null",
                [("fathom", [fathom, "addr", "--no-cache", path, address]), (LLVM, [LLVM, "-e", path, address]),
                 ("addr2line", ["addr2line", "-fi", "-e", path, address])], runs=11)


# A process with some 200 mappings: libraries, and memory without a file between them.
MANY_MAPPINGS = """
import ctypes, mmap, sys, time
import bz2, curses, decimal, lzma, sqlite3, ssl
kept = [mmap.mmap(-1, 4096 * 3) for _ in range(25)]
for i, m in enumerate(kept):
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)) // 4096 * 4096 + 4096), 4096, 1)
print(hex(ctypes.cast(ctypes.CDLL("libsqlite3.so.0").sqlite3_open, ctypes.c_void_p).value + 5), flush=True)
time.sleep(3600)
"""


def process_benches(fathom, folder):
    """The first name in a process, and in its core: a run for one address of it."""
    with subprocess.Popen([sys.executable, "-c", MANY_MAPPINGS], stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            pid = str(process.pid)
            with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                mappings = sum(1 for _ in maps)
            assert 200 <= mappings < 600, mappings
            yield Bench("process-one", "/dev/null",
                        [("fathom", [fathom, "addr", "--no-cache", pid, address]),
                         ("eu-addr2line", ["eu-addr2line", "-f", "-p", pid, address]),
                         ("gdb", ["gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", f"info symbol {address}"])], runs=11)
            subprocess.run(["gcore", "-o", f"{folder}/core", pid], check=True, capture_output=True)
        finally:
            process.kill()
    core = f"{folder}/core.{pid}"
    yield Bench("core-one", "/dev/null",
                [("fathom", [fathom, "addr", "--no-cache", core, address]),
                 ("eu-addr2line", ["eu-addr2line", "-f", f"--core={core}", address]),
                 ("gdb", ["gdb", "-q", "-nx", "-batch", sys.executable, core, "-ex", f"info symbol {address}"])], runs=11)
    os.unlink(core)


def random_benches(fathom, folder):
    """1,000,000 random addresses of all code of node and of libjvm, whole process with names as text; beside peers 1,000 of
    them."""
    files = [("node", shutil.which("node"))] + [("libjvm", p) for p in glob.glob("/usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so")]
    for label, path in files:
        if not path:
            continue
        out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
        start, size = (int(n, 16) for n in re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+)", out).groups())
        stdin = address_file(folder, f"{label}-random", [(start, size)], 1000000, 5)
        yield Bench(f"{label}-1m", stdin, [("fathom", [fathom, "addr", "--no-cache", "--names-only", path])])
        few = address_file(folder, f"{label}-random", [(start, size)], 1000, 5)
        yield Bench(f"{label}-1k", few, [("fathom", [fathom, "addr", "--no-cache", "--names-only", path]),
                                         ("addr2line", ["addr2line", "-f", "-e", path]),
                                         ("eu-addr2line", ["eu-addr2line", "-f", "-S", "-e", path]),
                                         (LLVM, [LLVM, "-s", "--no-inlines", "-e", path])])


def find_benches(fathom, folder):
    """An exact name in node: 180,000 symbols. As library calls (the first, then those that follow), and as a
    command beside nm, which prints all names, and gdb."""
    node = shutil.which("node")
    if not node:
        return
    caller = os.path.join(folder, "find")
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build = os.path.dirname(fathom)
    subprocess.run(["gcc", "-O2", "-o", caller, os.path.join(top, "bench", "find.c"), "-I", os.path.join(top, "include"),
                    "-L", os.path.join(build, "src"), "-lfathom", "-Wl,-rpath," + os.path.abspath(os.path.join(build, "src"))],
                   check=True)
    name = "node_module_register"
    with subprocess.Popen([node, "-e", "console.log('ready'); process.stdin.resume()"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            pid = str(process.pid)
            for label, target in (("file", node), ("process", pid)):
                yield Told(f"find-node-{label}-call", 1, [("fathom", [caller, target, name])])
                yield Told(f"find-node-{label}-first-call", 0, [("fathom", [caller, target, name])])
                yield Told(f"find-node-{label}-one-call", 0, [("fathom", [caller, target, name, "1"])])
            yield Bench("find-node-file", "/dev/null",
                        [("fathom", [fathom, "find", "--no-cache", node, name]), ("nm", ["nm", node]),
                         ("gdb", ["gdb", "-q", "-nx", "-batch", "-ex", f"info address {name}", node])], runs=11)
            yield Bench("find-node-process", "/dev/null",
                        [("fathom", [fathom, "find", "--no-cache", pid, name]),
                         ("gdb", ["gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", f"info address {name}"])], runs=5)
        finally:
            process.kill()


def disassembled(fathom, path, *options):
    """The command that disassembles all of the .text of @path."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    start, size = (int(n, 16) for n in re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+)", out).groups())
    return [fathom, "disasm", "--no-cache", *options, path, f"{start:#x}..{start + size:#x}"]


def disasm_benches(fathom, folder):
    """All of the text of libc, and with lines that of libstdc++, which has its debug information inside."""
    # With a debug file in the system, llvm-objdump takes the code from there, where there is none.
    libc = os.path.join(folder, "libc.so")
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", "--remove-section=.gnu_debuglink",
                    "/lib/x86_64-linux-gnu/libc.so.6", libc], check=True)
    gnu = ["objdump", "-d", "-M", "suffix", "-j", ".text"]
    llvm = ["llvm-objdump-19", "-d", "-j", ".text"]
    yield Bench("libc-disasm", "/dev/null",
                [("fathom", disassembled(fathom, libc, "--no-lines")), ("objdump", [*gnu, libc]), ("llvm-objdump-19", [*llvm, libc])])
    path = "/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6.0.30"
    yield Bench("libstdcxx-disasm-lines", "/dev/null",
                [("fathom", disassembled(fathom, path)), ("objdump", [*gnu, "-C", "-l", path]), ("llvm-objdump-19", [*llvm, "-C", "-l", path])],
                runs=3)


# A process that has memory for code, and says of it in LINES lines of a perf map, a tenth of which are of places used
# again, what is there.
PERF_MAP = """
import ctypes, os, random, sys, time
lines = int(sys.argv[1])
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
code = libc.mmap(None, lines * 64, 5, 0x22, -1, 0)
rng = random.Random(1)
places = list(range(lines))
rng.shuffle(places)
places[lines * 9 // 10:] = [rng.choice(places) for _ in places[lines * 9 // 10:]]
with open(f"/tmp/perf-{os.getpid()}.map", "w") as file:
    for i, place in enumerate(places):
        file.write(f"{code + place * 64:x} 40 LazyCompile:*function{i} /home/user/project/file{i % 977}.js:{i % 1009}\\n")
print(hex(code + places[-1] * 64 + 5), flush=True)
time.sleep(3600)
"""


def perf_map_benches(fathom):
    """The first name of a perf map, whole process: it has to be read once."""
    for label, lines in (("100", 100), ("10k", 10000), ("1m", 1000000)):
        with subprocess.Popen([sys.executable, "-c", PERF_MAP, str(lines)], stdout=subprocess.PIPE, text=True) as process:
            try:
                address = process.stdout.readline().strip()
                yield Bench(f"perf-map-{label}", "/dev/null",
                            [("fathom", [fathom, "addr", "--no-cache", str(process.pid), address])], runs=11)
            finally:
                process.kill()
                os.unlink(f"/tmp/perf-{process.pid}.map")


def kernel_benches(fathom, folder):
    """The running kernel, which takes most of the time to write its list of symbols. perf and others name
    addresses as a part of larger work only."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        code = [line.split() for line in f]
    symbols = [(int(s[0], 16), 1) for s in code if s[1] in "tT" and len(s) == 3 and int(s[0], 16)]
    if not symbols:
        print("kernel-one, kernel-10k: the kernel shows no addresses to this user", file=sys.stderr)
        return
    stdin = address_file(folder, "kernel", symbols, 10000, 4)
    yield Bench("kernel-one", "/dev/null", [("fathom", [fathom, "addr", "--no-cache", "kernel", one_address(stdin)])], runs=11)
    yield Bench("kernel-10k", stdin, [("fathom", [fathom, "addr", "--no-cache", "kernel"])], runs=11)


def self_benches(fathom, folder):
    """In the own process: 1,000,000 look-ups; cpu_ms is what preparing takes. Peers are asked fewer times, and told
    per million."""
    program = os.path.join(folder, "self")
    here = os.path.dirname(os.path.abspath(__file__))
    absl = subprocess.run(["pkg-config", "--libs", "absl_symbolize"], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["g++", "-O2", "-I", os.path.join(here, "..", "include"), "-o", program, os.path.join(here, "self.cc"),
                    os.path.join(os.path.dirname(fathom), "src", "libfathom.a"), "-ldeflate", "-lz", "-lzstd", "-llzma", "-llz4",
                    "-liberty", "-ldl", "-lpthread", *absl], check=True)
    libraries = [("self-libc", "libc.so.6", "20000"), ("self-llvm", "libLLVM.so.19.1", "1000")]
    # One that dlclose() may unload: handlers look at its build-id in memory.
    libraries += [("self-jvm", path, "1000") for path in glob.glob("/usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so")]
    for name, library, peer_lookups in libraries:
        peers = [(tool, [program, tool, "1000", peer_lookups, library]) for tool in ("dladdr", "backtrace_symbols_fd", "absl")]
        yield Inside(f"{name}-warm", None, [("fathom", [program, "fathom", "1000", "1000000", library]),
                                            ("fathom-now", [program, "fathom-now", "1000", "1000000", library]), *peers])
        yield Inside(f"{name}-random", None, [("fathom", [program, "fathom", "1000000", "1000000", library]),
                                              ("fathom-now", [program, "fathom-now", "1000000", "1000000", library])])


def small_benches(fathom, folder):
    yield from disasm_benches(fathom, folder)
    yield from lto_benches(fathom, folder)
    yield from process_benches(fathom, folder)
    yield from random_benches(fathom, folder)
    yield from find_benches(fathom, folder)
    yield from perf_map_benches(fathom)
    yield from kernel_benches(fathom, folder)
    yield from self_benches(fathom, folder)
    for label, path in (("libc", "/lib/x86_64-linux-gnu/libc.so.6"),
                        ("libstdcxx", "/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6.0.30")):
        symbols = functions_of(path)
        stdin = address_file(folder, label, symbols, 10000, 3)
        yield Bench(f"{label}-10k", stdin, [("fathom", [fathom, "addr", "--no-cache", path])] + peers_of(path))
        yield Bench(f"{label}-one", "/dev/null",
                    [("fathom", [fathom, "addr", "--no-cache", path, one_address(stdin)]),
                     (LLVM, [LLVM, "-e", path, one_address(stdin)]),
                     ("addr2line", ["addr2line", "-fi", "-e", path, one_address(stdin)])], runs=11)


def merge(rows):
    """Several benches of one name (spread addresses) become one row: the median of their medians."""
    merged = {}
    for row in rows:
        merged.setdefault((row[0], row[1]), []).append(row)
    for (name, tool), group in merged.items():
        yield (name, tool, statistics.median(r[2] for r in group), min(r[3] for r in group), max(r[4] for r in group),
               statistics.median(r[5] for r in group), max(r[6] for r in group), sum(r[7] for r in group),
               statistics.median(r[8] for r in group))


def kept_results(path, lines):
    """What an earlier run of the day measured and this one, of some benchmarks only, did not."""
    if not os.path.exists(path):
        return []
    measured = {line.split("\t")[0] for line in lines}
    with open(path, encoding="ascii") as f:
        return [line for line in f.read().splitlines()[1:] if line.split("\t")[0] not in measured]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fathom")
    parser.add_argument("spawn")
    parser.add_argument("folder")
    parser.add_argument("--vmlinux")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    folder = args.folder
    os.makedirs(folder, exist_ok=True)
    for cache in ("cache", "cache-zlib"):
        shutil.rmtree(os.path.join(folder, cache), ignore_errors=True)
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    benches = vmlinux_benches(args.fathom, args.vmlinux, folder) if args.vmlinux else small_benches(args.fathom, folder)
    header = "bench\ttool\twall_ms\tmin_ms\tmax_ms\tcpu_ms\tpeak_mib\truns\tfathom_times_faster"
    print(header, flush=True)
    rows = []
    for bench in benches:
        if args.names and not any(re.match(n, bench.name) for n in args.names):
            continue
        rows += measure(bench, args.spawn, environment)
    lines = ["\t".join(str(round(v, 3)) if isinstance(v, float) else str(v) for v in row) for row in merge(rows)]
    print("\n".join(lines))
    if args.vmlinux:
        os.makedirs("bench/results", exist_ok=True)
        path = f"bench/results/{datetime.date.today().isoformat()}.tsv"
        lines = kept_results(path, lines) + lines
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join([header, *lines]) + "\n")
    return 0


sys.exit(main())
