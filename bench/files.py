# SPDX-License-Identifier: MIT
"""Addresses of files: Debian's kernel with DWARF, a large C++ program, programs of our own."""
import glob
import os
import random
import re
import shutil
import subprocess
import sys

from addresses import LLVM, addr2line, address_file, eu_addr2line, fathom, functions_of, llvm, one_address, text_of
from measure import Bench, Tool

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
import disk  # noqa: E402
import tap  # noqa: E402


def vmlinux_benches(command, path, folder):
    symbols = functions_of(path)
    many = address_file(folder, "vmlinux", symbols, 100000, 1)
    million = address_file(folder, "vmlinux", symbols, 1000000, 2)
    one = one_address(many)
    cache = os.path.join(folder, "cache")

    def fill():
        if not os.path.isdir(cache):
            subprocess.run([command, "cache", "--cache-dir", cache, "build", path], check=True, stdout=subprocess.DEVNULL)

    cached = ("--cache-dir", cache)
    yield Bench("vmlinux-100k", [fathom(command, path, 100000, "--no-cache"), llvm(path, 100000), addr2line(path, 100000)], many)
    yield Bench("vmlinux-one", one_address_of(command, path, one), runs=21)
    yield Bench("vmlinux-100k-cached", [fathom(command, path, 100000, *cached)], many, before=fill)
    yield Bench("vmlinux-one-cached", [Tool("fathom", [command, "addr", *cached, path, one])], runs=21, before=fill)
    yield Bench("vmlinux-names-1m", [fathom(command, path, 1000000, "--no-cache", "--names-only")], million)
    yield from cold_benches(command, path, folder, one)
    yield from pipe_benches(command, path, million)
    yield from zlib_benches(command, path, folder, symbols)
    yield from growth(command, path, folder, "vmlinux", symbols)


def one_address_of(command, path, one):
    return [Tool("fathom", [command, "addr", "--no-cache", path, one]), Tool(LLVM, [LLVM, "-e", path, one]),
            Tool("addr2line", ["addr2line", "-fi", "-e", path, one]),
            Tool("eu-addr2line", ["eu-addr2line", "-fi", "-e", path, one])]


class Cold(Bench):
    """Nothing of the file is in memory: it is on a file system of its own, mounted anew for each run."""

    def __init__(self, name, disk_of_file, tools):
        super().__init__(name, tools)
        self.disk = disk_of_file

    def check(self, environment):
        return {}

    def sample(self, tool, spawn, environment):
        self.disk.forget()
        os.stat(os.path.join(self.disk.folder, "vmlinux"))
        before = self.disk.counts()
        sample = super().sample(tool, spawn, environment)
        after = self.disk.counts()
        sample.more = f"{after[0] - before[0]} requests, {after[1] - before[1]} KiB"
        return sample


def cold_benches(command, path, folder, one):
    place = os.path.join(folder, "cold")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    try:
        with disk.Disk(place, {"vmlinux": path}) as mounted:
            yield Cold("vmlinux-one-cold", mounted, one_address_of(command, os.path.join(mounted.folder, "vmlinux"), one))
    except tap.Skip as skip:
        print(f"vmlinux-one-cold: {skip}", file=sys.stderr)
    shutil.rmtree(place)


def pipe_benches(command, path, million):
    """The same addresses from a file and through a pipe, each with its `cat`."""
    ask = f"'{command}' addr --no-cache --names-only '{path}'"
    yield Bench("vmlinux-names-1m-pipe", [Tool("fathom", ["sh", "-c", f"cat '{million}' | {ask}"], r"^\n", (0, 1), 1000000),
                                          Tool("fathom-file", ["sh", "-c", f"cat '{million}' >/dev/null; {ask} <'{million}'"],
                                               r"^\n", (0, 1), 1000000)])


def zlib_benches(command, path, folder, symbols):
    """One address with compressed debug sections: 20 spread ones, each alone."""
    packed = os.path.join(folder, "vmlinux.zlib")
    if not os.path.exists(packed):
        subprocess.run(["objcopy", "--compress-debug-sections=zlib", path, packed], check=True)
    cache = os.path.join(folder, "cache-zlib")
    ordered = sorted(symbols)
    for address in [f"{ordered[(2 * i + 1) * len(ordered) // 40][0]:#x}" for i in range(20)]:
        yield Bench("vmlinux-zlib-one", one_address_of(command, packed, address), runs=1)
        yield Bench("vmlinux-zlib-one-cached", [Tool("fathom", [command, "addr", "--cache-dir", cache, packed, address])])


def growth(command, path, folder, label, symbols):
    """The cost of 1, 100, 10,000 and 1,000,000 addresses."""
    for n in (1, 100, 10000, 1000000):
        tools = [fathom(command, path, n, "--no-cache")]
        if n < 1000000:
            tools += [llvm(path, n), addr2line(path, n)]
        yield Bench(f"{label}-grow-{n}", tools, address_file(folder, label, symbols, n, 7))


def cxx_benches(command, path, folder):
    """A large C++ program: deep inlining, long names."""
    many = address_file(folder, "cxx", functions_of(path), 100000, 1)
    yield Bench("cxx-100k-json", [Tool("fathom", [command, "addr", "--no-cache", "--json", path], r"^{", (0, 1), 100000),
                                  Tool(LLVM, [LLVM, "--output-style=JSON", "-e", path], r"^{", expect=100000)], many)
    yield Bench("cxx-100k", [fathom(command, path, 100000, "--no-cache"), llvm(path, 100000)], many)
    yield Bench("cxx-one", one_address_of(command, path, one_address(many)), runs=11)
    # The first row of a new worker, which has the index in a store only.
    store, row = os.path.join(folder, "store"), os.path.join(folder, "row.tsv")
    subprocess.run([command, "store", "build", "--no-cache", store, path], stdout=subprocess.DEVNULL, check=True)
    with open(row, "w", encoding="ascii") as f:
        f.write(f"{build_id_of(path)}\t{int(one_address(many), 16)}\n")
    yield Bench("cxx-store-one", [Tool("fathom", [command, "resolve", "--no-cache", "--store", store], r"\n", expect=1)], row, runs=11)


def random_benches(command, folder):
    """1,000,000 random addresses of all code of node and of libjvm, names only; beside peers 1,000 of them."""
    files = [("node", shutil.which("node"))] + \
        [("libjvm", p) for p in glob.glob("/usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so")]
    for label, path in files:
        if not path:
            continue
        text = [text_of(path)]
        yield Bench(f"{label}-1m", [fathom(command, path, 1000000, "--no-cache", "--names-only")],
                    address_file(folder, f"{label}-random", text, 1000000, 5))
        yield Bench(f"{label}-1k", [fathom(command, path, 1000, "--no-cache", "--names-only"), addr2line(path, 1000, "-af"),
                                    eu_addr2line(path, 1000, "-f", "-S"), llvm(path, 1000, "-s", "--no-inlines")],
                    address_file(folder, f"{label}-random", text, 1000, 5))


def modules_benches(command, folder):
    """One stream over all libraries of the machine, four addresses of each, to one llvm-symbolizer."""
    paths = sorted(p for p in {os.path.realpath(p) for p in glob.glob("/usr/lib/x86_64-linux-gnu/*.so*")} if functions_of(p))
    stdin = os.path.join(folder, "modules")
    with open(stdin, "w", encoding="ascii") as f:
        for turn in range(4):
            for path in paths:
                functions = functions_of(path)
                f.write(f"{path} {functions[turn * len(functions) // 4][0]:#x}\n")
    n = 4 * len(paths)
    yield Bench("modules-stream", [Tool("fathom", [command, "llvm-symbolizer"], r"^\n", expect=n), Tool(LLVM, [LLVM], r"^\n", expect=n)],
                stdin)


MIXED_MODULES, MIXED_ROWS, MIXED_FEW = 50, 1000000, 20000


def build_id_of(path):
    found = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout)
    return found and found[1]


def mixed_benches(command, folder):
    """Rows of the largest libraries of the machine that have build-ids, the first ones most often: to one fathom resolve, warm, from a
    file and through a pipe; some of them beside llvm-symbolizer, which reads all files anew."""
    paths = sorted({os.path.realpath(p) for p in glob.glob("/usr/lib/x86_64-linux-gnu/*.so*")}, key=lambda p: (-os.path.getsize(p), p))
    modules = [(p, build_id_of(p), functions_of(p)) for p in paths[:4 * MIXED_MODULES]]
    modules = [m for m in modules if m[1] and m[2]][:MIXED_MODULES]
    rng = random.Random(11)
    chosen = rng.choices(modules, [1 / (1 + i) for i in range(len(modules))], k=MIXED_ROWS)
    places = [(path, name, start + rng.randrange(16)) for path, name, functions in chosen for start, _ in [rng.choice(functions)]]
    rows, few, requests = (os.path.join(folder, name) for name in ("mixed.tsv", "mixed-few.tsv", "mixed-few"))
    for path, n in ((rows, MIXED_ROWS), (few, MIXED_FEW)):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"{name}\t{address}\t{path_}\n" for path_, name, address in places[:n])
    with open(requests, "w", encoding="ascii") as f:
        f.writelines(f"{path} {address:#x}\n" for path, _, address in places[:MIXED_FEW])
    resolve = [command, "resolve", "--input-columns", "build_id,offset,module", "--columns", "function,file,line,inlines"]
    piped = ["sh", "-c", 'cat | "$@"', "sh"]
    yield Bench("mixed-1M", [Tool("fathom", resolve, r"\n", expect=MIXED_ROWS), Tool("fathom, pipe", piped + resolve, r"\n", expect=MIXED_ROWS)],
                rows)
    yield Bench("mixed-20k", [Tool("fathom", ["sh", "-c", f'exec "$@" < {few}', "sh"] + resolve, r"\n", expect=MIXED_FEW),
                              Tool(LLVM, [LLVM], r"^\n", expect=MIXED_FEW)], requests, runs=3)


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


def small_benches(command, folder):
    """Files that are on every machine, or made here."""
    path = lto_program(folder)
    symbols = functions_of(path)
    yield Bench("lto-one", one_address_of(command, path, f"{sorted(symbols)[len(symbols) // 2][0]:#x}")[:3], runs=11)
    for label, path in (("libc", "/lib/x86_64-linux-gnu/libc.so.6"),
                        ("libstdcxx", "/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6.0.30")):
        stdin = address_file(folder, label, functions_of(path), 10000, 3)
        yield Bench(f"{label}-10k", [fathom(command, path, 10000, "--no-cache"), llvm(path, 10000), addr2line(path, 10000)], stdin)
        yield Bench(f"{label}-one", one_address_of(command, path, one_address(stdin))[:3], runs=11)
