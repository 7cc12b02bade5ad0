# SPDX-License-Identifier: MIT
"""Programs of Debian's own, running, and what other tools say of their addresses."""
import functools
import json
import os
import random
import re
import subprocess

from ask import FATHOM, run

JAVA = """public class Wait {
    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        System.in.read();
    }
}
"""
# Each prints "ready" when it has loaded what it will, then waits for its standard input.
PROGRAMS = {
    "python3": ["/usr/bin/python3", "-c", "import ssl, sqlite3; print('ready', flush=True); input()"],
    "perl": ["perl", "-e", "use POSIX; $| = 1; print qq(ready\\n); <STDIN>"],
    "node": ["node", "-e", "require('crypto'); console.log('ready'); process.stdin.resume()"],
    "java": ["java", "Wait.java"],
    "luajit": ["luajit", "-e", "print('ready') io.stdout:flush() io.read()"],
    "ruby": ["ruby", "-e", "require 'openssl'; puts 'ready'; STDOUT.flush; gets"],
    "lua": ["lua5.4", "-e", "print('ready') io.stdout:flush() io.read()"],
    "gdb": ["gdb", "-q", "-nx", "-ex", "python print('ready', flush=True)"],
    "sqlite3": ["sqlite3", "-interactive", "-cmd", ".print ready"],
}


class Living:
    """One of the programs, running; entered, its number."""

    def __init__(self, name, folder):
        with open(os.path.join(folder, "Wait.java"), "w", encoding="ascii") as source:
            source.write(JAVA)
        self.process = subprocess.Popen(PROGRAMS[name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd=folder)

    def __enter__(self):
        for line in self.process.stdout:
            if "ready" in line:
                return self.process.pid
        raise AssertionError(f"{self.process.args}: ended early")

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


RANDOM_ADDRESSES = 10000


def random_places(pid, count, is_wanted):
    """Addresses all over what a process has mapped from files with such permissions."""
    wanted = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if is_wanted(fields[1]) and len(fields) > 5 and fields[5].startswith("/"):
                wanted.append([int(x, 16) for x in fields[0].split("-")])
    rng = random.Random(1)
    spans = rng.choices(wanted, [end - start for start, end in wanted], k=count)
    return [rng.randrange(start, end) for start, end in spans]


def random_code(pid, count=RANDOM_ADDRESSES):
    return random_places(pid, count, lambda permissions: "x" in permissions)


def random_data(pid, count=RANDOM_ADDRESSES):
    return random_places(pid, count, lambda permissions: "r" in permissions and "x" not in permissions)


def starts_by_gdb(target, addresses, folder):
    """Where the symbol that gdb names starts, or None, for each address of what the arguments @target say."""
    with open(f"{folder}/commands", "w", encoding="ascii") as commands:
        commands.writelines(f"info symbol {a:#x}\n" for a in addresses)
    out = run("gdb", "-q", "-nx", "-batch", *target, "-x", f"{folder}/commands", status=None)
    lines = [line for line in out.splitlines() if line.startswith("No symbol matches") or " in section " in line]
    found = [re.match(r".+?(?: \+ (\d+))? in section ", line) for line in lines]
    return [m and a - int(m[1] or 0) for a, m in zip(addresses, found, strict=True)]


def starts_by_elfutils(target, addresses, _):
    out = run("eu-addr2line", "-S", *target, input="".join(f"{a:#x}\n" for a in addresses))
    found = [re.match(r"(?!\(|\?\?)\S+?(?:\+(0x[0-9a-f]+))?$", line) for line in out.splitlines()[::2]]
    return [m and a - int(m[1] or "0", 16) for a, m in zip(addresses, found, strict=True)]


# How a peer is asked, and which of our sources it has, too: bounds without a name are no symbol, and
# elfutils does not name the stubs of the PLT.
PEERS = {"gdb": (starts_by_gdb, ("symtab", "dynsym", "minidebuginfo", "plt")),
         "eu-addr2line": (starts_by_elfutils, ("symtab", "dynsym", "minidebuginfo"))}


def peek(pid, address, size=16):
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(address)
        return memory.read(size)


def is_mapped_twice(pid, record, theirs):
    """Whether the address is in pages that are mapped a second time elsewhere, as V8 does with its
    builtins; peers know the program's own place of them only. There the bytes are the same."""
    if theirs is not None or not record["module"]:
        return False
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        start = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(record["module"]))
    with open(record["module"], "rb") as file:
        kind = file.read(18)[16]
    own = int(record["module_address"], 16) + (start if kind == 3 else 0)
    address = int(record["address"], 16)
    return own != address and peek(pid, own) == peek(pid, address)


@functools.lru_cache(None)
def sizes_of_symbols(path):
    """{value: the sizes of all symbols there}, of the tables of a file and of its debug file."""
    sizes, files = {}, [path]
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-nW", path, status=None))
    if build_id:
        files.append(f"/usr/lib/debug/.build-id/{build_id[1][:2]}/{build_id[1][2:]}.debug")
    for file in filter(os.path.exists, files):
        for m in re.finditer(r"^ *\d+: ([0-9a-f]+) +(\d+|0x\w+) +\w+ +\w+ +\w+ +(?!UND)\S+ ",
                             run("readelf", "-sW", file, status=None), re.M):
            sizes.setdefault(int(m[1], 16), set()).add(int(m[2], 0))
    return sizes


@functools.lru_cache(None)
def copied(path):
    """The variables that a program has copied to itself from its libraries."""
    return set(re.findall(r" R_X86_64_COPY +\S+ (\w+)", run("readelf", "-rW", path, status=None)))


def is_guessed(pid, record, theirs):
    """Whether a peer names data by a symbol of the section before that states no size, such as
    __GNU_EH_FRAME_HDR, or by one that no table has: gdb makes them for the slots of stubs. And of a variable that
    the program has copied gdb counts from the copy also what is in the library's own."""
    if theirs is None:
        return False
    value = int(record["module_address"], 16) - (int(record["address"], 16) - theirs)
    if record["symbol"] is not None:
        is_copied = record["linkage_name"] in copied(os.path.realpath(f"/proc/{pid}/exe"))
        return is_copied and record["offset"] < record["size"] or value not in sizes_of_symbols(record["module"])
    return sizes_of_symbols(record["module"]).get(value, {0}) == {0}


def compare(program, peer, folder, explain=lambda pid, record, theirs: False, choose=random_code, least=RANDOM_ADDRESSES // 4):
    """Random addresses of the program: what we and a peer name starts at the same address, or
    @explain knows why not; @least have names."""
    starts_by, sources = PEERS[peer]
    with Living(program, folder) as pid:
        addresses = choose(pid)
        out = run(FATHOM, "addr", "--json", "--no-cache", "--names-only", pid, status=(0, 1),
                  input="".join(f"{a:#x}\n" for a in addresses))
        theirs = starts_by(["-p", pid], addresses, folder)
        records = [json.loads(line) for line in out.splitlines()]
        ours = [int(r["address"], 16) - r["offset"] if r["source"] in sources else None for r in records]
        different = [(record, t and hex(t)) for record, o, t in zip(records, ours, theirs, strict=True)
                     if o != t and not explain(pid, record, t)]
    assert not different, f"{len(different)} differ: {different[:5]}"
    assert sum(o is not None for o in ours) > least, sum(o is not None for o in ours)
