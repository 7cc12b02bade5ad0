# SPDX-License-Identifier: MIT
"""What runs: processes, their cores, code that they make, the kernel, the calling process; names and instructions."""
import glob
import os
import re
import shutil
import subprocess
import sys

from addresses import address_file, fathom, one_address, text_of
from measure import Bench, Inside, Sample, Told, Tool

HERE = os.path.dirname(os.path.abspath(__file__))

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
OPEN = r"sqlite3_open"


def process_benches(command, folder):
    """The first name in a process, and in its core: a run for one address of it."""
    with subprocess.Popen([sys.executable, "-c", MANY_MAPPINGS], stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            pid = str(process.pid)
            with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                mappings = sum(1 for _ in maps)
            assert 200 <= mappings < 600, mappings
            yield Bench("process-one", [
                Tool("fathom", [command, "addr", "--no-cache", pid, address], OPEN, expect=1),
                Tool("eu-addr2line", ["eu-addr2line", "-f", "-p", pid, address], OPEN, expect=1),
                Tool("gdb", ["gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", f"info symbol {address}"], OPEN, expect=1)], runs=11)
            subprocess.run(["gcore", "-o", f"{folder}/core", pid], check=True, capture_output=True)
        finally:
            process.kill()
    core = f"{folder}/core.{pid}"
    yield Bench("core-one", [
        Tool("fathom", [command, "addr", "--no-cache", core, address], OPEN, expect=1),
        Tool("eu-addr2line", ["eu-addr2line", "-f", f"--core={core}", address], OPEN, expect=1),
        Tool("gdb", ["gdb", "-q", "-nx", "-batch", sys.executable, core, "-ex", f"info symbol {address}"], OPEN, expect=1)], runs=11)
    os.unlink(core)


def find_benches(command, folder):
    """An exact name in node: 180,000 symbols. As library calls (the first, then those that follow), and as a
    command beside nm, which prints all names, and gdb."""
    node = shutil.which("node")
    if not node:
        return
    caller = os.path.join(folder, "find")
    build = os.path.abspath(os.path.dirname(command))
    subprocess.run(["gcc", "-O2", "-o", caller, os.path.join(HERE, "find.c"), "-I", os.path.join(HERE, "..", "include"),
                    "-L", os.path.join(build, "src"), "-lfathom", "-Wl,-rpath," + os.path.join(build, "src")], check=True)
    name = "node_module_register"
    said = rf"\b{name}\b"
    with subprocess.Popen([node, "-e", "console.log('ready'); process.stdin.resume()"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            pid = str(process.pid)
            for label, target in (("file", node), ("process", pid)):
                yield Told(f"find-node-{label}-call", 1, [Tool("fathom", [caller, target, name])])
                yield Told(f"find-node-{label}-first-call", 0, [Tool("fathom", [caller, target, name])])
                yield Told(f"find-node-{label}-one-call", 0, [Tool("fathom", [caller, target, name, "1"])])
            yield Bench("find-node-file", [
                Tool("fathom", [command, "find", "--no-cache", node, name], said, expect=1), Tool("nm", ["nm", node], said),
                Tool("gdb", ["gdb", "-q", "-nx", "-batch", "-ex", f"info address {name}", node], said, expect=1)], runs=11)
            yield Bench("find-node-process", [
                Tool("fathom", [command, "find", "--no-cache", pid, name], said, expect=1),
                Tool("gdb", ["gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", f"info address {name}"], said, expect=1)])
        finally:
            process.kill()


def disassembled(command, path, *options):
    """The command that disassembles all of the .text of @path."""
    start, size = text_of(path)
    return Tool("fathom", [command, "disasm", "--no-cache", *options, path, f"{start:#x}..{start + size:#x}"], r"^  +0x")


def disasm_benches(command, folder):
    """All of the text of libc, and with lines that of libstdc++, which has its debug information inside. Nobody prints
    the bytes."""
    # With a debug file in the system, llvm-objdump takes the code from there, where there is none.
    libc = os.path.join(folder, "libc.so")
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", "--remove-section=.gnu_debuglink",
                    "/lib/x86_64-linux-gnu/libc.so.6", libc], check=True)
    instruction = r"^ *[0-9a-f]+:\t"
    gnu = ["objdump", "-d", "-M", "suffix", "--no-show-raw-insn", "-j", ".text"]
    llvm = ["llvm-objdump-19", "-d", "--no-show-raw-insn", "-j", ".text"]
    yield Bench("libc-disasm", [disassembled(command, libc, "--no-lines"), Tool("objdump", [*gnu, libc], instruction),
                                Tool("llvm-objdump-19", [*llvm, libc], r"^ *[0-9a-f]+: +\t")])
    path = "/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6.0.30"
    yield Bench("libstdcxx-disasm-lines", [
        disassembled(command, path), Tool("objdump", [*gnu, "-C", "-l", path], instruction),
        Tool("llvm-objdump-19", [*llvm, "-C", "-l", path], r"^ *[0-9a-f]+: +\t")])


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


def perf_map_benches(command):
    """The first name of a perf map, whole process: it has to be read once."""
    for label, lines in (("100", 100), ("10k", 10000), ("1m", 1000000)):
        with subprocess.Popen([sys.executable, "-c", PERF_MAP, str(lines)], stdout=subprocess.PIPE, text=True) as process:
            try:
                address = process.stdout.readline().strip()
                yield Bench(f"perf-map-{label}", [Tool("fathom", [command, "addr", "--no-cache", str(process.pid), address],
                                                       rf"function{lines - 1} ", expect=1)], runs=11)
            finally:
                process.kill()
                os.unlink(f"/tmp/perf-{process.pid}.map")


def kernel_benches(command, folder):
    """The running kernel, which takes most of the time to write its list of symbols. perf and others name
    addresses as a part of larger work only."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        code = [line.split() for line in f]
    symbols = [(int(s[0], 16), 1) for s in code if s[1] in "tT" and len(s) == 3 and int(s[0], 16)]
    if not symbols:
        print("kernel-one, kernel-10k: the kernel shows no addresses to this user", file=sys.stderr)
        return
    stdin = address_file(folder, "kernel", symbols, 10000, 4)
    yield Bench("kernel-one", [Tool("fathom", [command, "addr", "--no-cache", "kernel", one_address(stdin)])], runs=11)
    yield Bench("kernel-10k", [fathom(command, "kernel", 10000, "--no-cache")], stdin, runs=11)


# Look-ups of each tool: as many for all of them, so few that the slowest ends.
SELF_LOOKUPS = {"libc.so.6": 100000, "libLLVM.so.19.1": 10000, "libjvm.so": 10000}


def self_benches(command, folder):
    """In the own process: 64 addresses again and again, which is what a profile has, so that caches work."""
    program = os.path.join(folder, "self")
    absl = subprocess.run(["pkg-config", "--libs", "absl_symbolize"], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["g++", "-O2", "-I", os.path.join(HERE, "..", "include"), "-o", program, os.path.join(HERE, "self.cc"),
                    os.path.join(os.path.dirname(command), "src", "libfathom.a"), "-ldeflate", "-lz", "-lzstd", "-llzma", "-llz4",
                    "-liberty", "-ldl", "-lpthread", *absl], check=True)
    # The last is one that dlclose() may unload: handlers look at its build-id in memory.
    libraries = [("self-libc", "libc.so.6"), ("self-llvm", "libLLVM.so.19.1")]
    libraries += [("self-jvm", path) for path in glob.glob("/usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so")]
    for name, library in libraries:
        n = str(SELF_LOOKUPS[os.path.basename(library)])
        tools = ("fathom", "fathom-now", "dladdr", "backtrace_symbols_fd", "absl")
        yield Inside(f"{name}-hot", [Tool(tool, [program, tool, "64", n, library]) for tool in tools])
        yield Inside(f"{name}-random", [Tool(tool, [program, tool, "1000000", "1000000", library]) for tool in tools[:2]])


UNWIND_TOOLS = ("fathom", "fathom-probe", "unw_backtrace", "backtrace", "llvm", "unw_step")


def unwind_benches(command, folder):
    """The calling thread's stack, 60 functions deep: 1,000,000 frames, so that milliseconds are nanoseconds a frame.
    The processor's time counts: threads wait for each other where there are fewer processors."""
    programs = []
    for options in ([], ["-fno-omit-frame-pointer"]):
        programs.append(os.path.join(folder, "unwind" + "".join(options)))
        subprocess.run(["g++", "-O2", *options, "-I", os.path.join(HERE, "..", "include"), "-o", programs[-1],
                        os.path.join(HERE, "unwind.cc"), os.path.join(os.path.dirname(command), "src", "libfathom.a"), "-ldeflate",
                        "-lz", "-lzstd", "-llzma", "-llz4", "-liberty", "-ldl", "-lpthread"], check=True)
    plain, with_frames = programs
    for threads in (1, 2, 4, 8):
        tools = [Tool(tool, [plain, tool, "60", "1000000", str(threads)]) for tool in UNWIND_TOOLS[:None if threads == 1 else 4]]
        tools.append(Tool("frame-pointer", [with_frames, "frame-pointer", "60", "1000000", str(threads)]))
        yield Inside(f"unwind-warm-{threads}", tools)
    yield Inside("unwind-first", [Tool(tool, [plain, tool, "60", "0", "1"]) for tool in UNWIND_TOOLS])


class RuleTables(Inside):
    """The program that compares tables of rules, which times how it makes them (tests/unwind/rules.c)."""

    def sample(self, tool, spawn, environment):
        out = subprocess.run(tool.command, capture_output=True, text=True, env=environment, check=True).stdout
        n = {name: int(re.search(rf" {name} (\d+)", " " + out.splitlines()[-1])[1]) for name in ("rows", "kept", "bytes", "made")}
        return Sample(n["made"] / 1e6, n["made"] / 1e6, answers=n["rows"], more=f"{n['rows'] / n['made'] * 1e3:.1f} million rows a second, "
                      f"{n['bytes'] / n['kept']:.2f} bytes a row")


def rule_benches(command):
    for name, path in (("libc", "/usr/lib/x86_64-linux-gnu/libc.so.6"), ("node", "/usr/bin/node")):
        program = os.path.join(os.path.dirname(command), "tests", "rules")
        if os.path.exists(path) and os.path.exists(program):
            yield RuleTables(f"rules-{name}", [Tool("fathom", [program, os.path.realpath(path)])])
