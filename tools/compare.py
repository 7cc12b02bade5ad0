#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py OLD NEW [FOLDER]: asks two builds of the command the same, and reports each byte that differs.

Of every ELF file below FOLDER (/usr) it asks random addresses of the segments, as text, as JSON and by both
personalities; the names that these have, by find; and the code of one function. It asks the same of live programs,
their cores and snapshots, and the kernel; of programs and cores also the stacks. If two answers differ, it asks again: the
program may have changed.
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ADDRESSES = 48
NAMES = 8
TRIES = 4


def elf_files(folder):
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(root, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def segments(path):
    """Returns the address ranges of the file's loaded segments, or of the first sections of a relocatable file."""
    with open(path, "rb") as file:
        head = file.read(64)
        order = "<" if head[5] == 1 else ">"
        wide = head[4] == 2
        if len(head) < 64:
            return []
        phoff, = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
        size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
        if not count or count > 64:
            return [(0, 0x4000)]
        file.seek(phoff)
        table = file.read(size * count)
    found = []
    for i in range(len(table) // size if size else 0):
        if wide:
            kind, _, _, vaddr, _, _, memsz, _ = struct.unpack_from(order + "IIQQQQQQ", table, i * size)
        else:
            kind, _, vaddr, _, _, memsz, _, _ = struct.unpack_from(order + "8I", table, i * size)
        if kind == 1 and memsz:
            found.append((vaddr, vaddr + memsz))
    return found


def pick(ranges, seed):
    """Returns addresses of the ranges, equally many from each: half of them where code is likely."""
    source = random.Random(seed)
    return [hex(source.randrange(*source.choice(ranges))) for _ in range(ADDRESSES)] if ranges else []


def ask(command, arguments, text):
    result = subprocess.run([command, *arguments], input=text, capture_output=True, timeout=300, check=False,
                            env={**os.environ, "DEBUGINFOD_URLS": "", "XDG_CACHE_HOME": "/proc/none"})
    return result.returncode, result.stdout, result.stderr


class Comparison:
    def __init__(self, old, new):
        self.old, self.new = old, new
        self.answers = 0
        self.questions = 0
        self.different = []

    def same(self, what, arguments, text=b""):
        """Asks both; what differs once is asked again: something that lives may have changed. Returns the old output."""
        for _ in range(TRIES):
            before = ask(self.old, arguments, text)
            after = ask(self.new, arguments, text)
            if before == after:
                break
        else:
            self.different.append((what, arguments[:4], before, after))
        self.questions += 1
        self.answers += before[1].count(b"\n")
        return before[1]

    def target(self, what, target, addresses, options=()):
        text = "".join(address + "\n" for address in addresses).encode()
        self.same(what, ["addr", *options, target], text)
        answers = self.same(what, ["addr", "--json", *options, target], text)
        self.same(what, ["addr", "--json", "--return-addresses", *options, target], text)
        names = []
        for line in answers.splitlines():
            answer = json.loads(line)
            if answer["linkage_name"] and answer["linkage_name"] not in names:
                names.append(answer["linkage_name"])
        for start in ("", "no_such_"):
            if names:
                asked = [start + name for name in names[:NAMES]]
                self.same(what, ["find", "--json", *options, target, *asked])
                self.same(what, ["find", "--first", *options, target, *asked])
        if names:
            self.same(what, ["disasm", *options, target, names[0]])
            self.same(what, ["disasm", "--json", *options, target, names[-1]])

    def file(self, path):
        addresses = pick(segments(path), path)
        self.target(path, path, addresses)
        text = "".join(address + "\n" for address in addresses).encode()
        self.same(path, ["addr2line", "-afipC", "-e", path], text)
        self.same(path, ["llvm-symbolizer", "--obj=" + path], text)
        data = "".join(f"DATA {address}\n" for address in addresses[:8]).encode()
        self.same(path, ["llvm-symbolizer", "--output-style=JSON", "--obj=" + path], data)

    def stacks(self, what, target):
        self.same(what + ", stacks", ["stack", target])
        self.same(what + ", stacks", ["stack", "--json", target])

    def process(self, pid, what, folder):
        ranges = []
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            for line in maps:
                fields = line.split()
                if "x" in fields[1] and fields[-1] != "[vsyscall]":
                    ranges.append(tuple(int(x, 16) for x in fields[0].split("-")))
        addresses = pick(ranges, what)
        self.target(what, str(pid), addresses)
        self.stacks(what, str(pid))
        core = os.path.join(folder, what)
        subprocess.run(["gcore", "-o", core, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        self.target(what + ", core", f"{core}.{pid}", addresses)
        self.stacks(what + ", core", f"{core}.{pid}")
        subprocess.run([self.old, "snapshot", str(pid), core + ".snap"], check=True)
        self.target(what + ", snapshot", core + ".snap", addresses)

    def kernel(self):
        with open("/proc/kallsyms", encoding="utf-8") as table:
            symbols = [line.split()[0] for line in table if line.split()[1] in "tT"]
        self.target("kernel", "kernel", ["0x" + a for a in random.Random(1).sample(symbols, ADDRESSES)])


PROGRAMS = {
    "node": ["node", "--perf-basic-prof", "-e",
             "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); } f(25); setTimeout(() => {}, 1e9)"],
    "java": ["java", "Sleep.java"],
    "python3": ["python3", "-c", "import ssl, sqlite3, time; time.sleep(1e6)"],
    "perl": ["perl", "-MPOSIX", "-e", "sleep 1000000"],
}
JAVA = "class Sleep { public static void main(String[] a) throws Exception { Thread.sleep(1000000000L); } }\n"


def programs(comparison, folder):
    with open(os.path.join(folder, "Sleep.java"), "w", encoding="utf-8") as file:
        file.write(JAVA)
    for what, command in PROGRAMS.items():
        if not shutil.which(command[0]):
            print(f"left out: {what} is not installed")
            continue
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
            time.sleep(3)
            if what == "java":
                subprocess.run(["jcmd", str(process.pid), "Compiler.perfmap"], stdout=subprocess.DEVNULL, check=True)
            comparison.process(process.pid, what, folder)
            process.kill()


def main():
    old, new = (os.path.abspath(path) for path in sys.argv[1:3])
    folder = sys.argv[3] if len(sys.argv) > 3 else "/usr"
    comparison = Comparison(old, new)
    paths = list(elf_files(folder))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(comparison.file, paths))
    with tempfile.TemporaryDirectory() as scratch:
        programs(comparison, scratch)
    if os.access("/proc/kallsyms", os.R_OK):
        comparison.kernel()
    for what, arguments, before, after in comparison.different:
        print(f"differs: {what}: {' '.join(arguments)}")
        for old_line, new_line in zip((before[1] + before[2]).splitlines(), (after[1] + after[2]).splitlines()):
            if old_line != new_line:
                print(f"  old {old_line[:200]!r}\n  new {new_line[:200]!r}")
                break
    print(f"{len(paths)} files and {len(PROGRAMS)} programs with their cores and snapshots, {comparison.questions} questions, {comparison.answers} lines of answers, "
          f"{len(comparison.different)} different")
    return 1 if comparison.different else 0


sys.exit(main())
