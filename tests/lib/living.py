# SPDX-License-Identifier: MIT
"""Programs of Debian's own, running, and what other tools say of their addresses."""
import collections
import functools
import os
import random
import re
import subprocess

from amounts import amount
from ask import NOBODY, addr_stream, as_user, run
from building import build_id
from toolchain import newest
from running import Running, mapping_of, mappings_of, peek

JAVA = """public class Wait {
    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        System.in.read();
    }
}
"""
NGINX = """error_log stderr notice;
pid nginx.pid;
events {}
http { access_log off; server { listen unix:nginx.sock; } }
"""
# Each prints "ready" when it has loaded what it will, then waits for its standard input, or for clients that never come.
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
    "php": ["php", "-r", "echo \"ready\\n\"; fgets(STDIN);"],
    "erlang": ["erl", "-noshell", "-eval", "io:format(\"ready~n\"), io:get_line(\"\")."],
    "postgres": ["postgres", "-D", "data", "-k", ".", "-h", ""],
    "nginx": ["/usr/sbin/nginx", "-p", ".", "-c", "nginx.conf", "-g", "daemon off;"],
    "redis": ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", ""],
}
# What says so of those that have other words for it.
READY = {"nginx": "start worker processes"}


def as_nobody(*command):
    """@command, run by a user who is not root: some refuse to run as root."""
    return as_user(NOBODY, *command) if not os.geteuid() else list(command)


def prepare(name, folder):
    """Writes what the program needs into @folder; returns its command."""
    os.chmod(folder, 0o755)
    for file, text in (("Wait.java", JAVA), ("nginx.conf", NGINX)):
        with open(os.path.join(folder, file), "w", encoding="ascii") as source:
            source.write(text)
    command = PROGRAMS[name]
    if name != "postgres":
        return command
    os.mkdir(os.path.join(folder, "data"), 0o700)
    if not os.geteuid():
        os.chown(os.path.join(folder, "data"), NOBODY, NOBODY)
    programs = os.path.dirname(newest("/usr/lib/postgresql/*/bin/postgres"))
    run(*as_nobody(os.path.join(programs, "initdb"), "-A", "trust", "--no-sync", "data"), cwd=folder)
    return as_nobody(os.path.join(programs, command[0]), *command[1:])


class Living(Running):
    """One of the programs, running; entered, its number."""

    def __init__(self, name, folder):
        self.ready = READY.get(name, "ready")
        super().__init__(prepare(name, folder), stderr=subprocess.STDOUT, cwd=folder)

    def __enter__(self):
        for line in self.process.stdout:
            if self.ready in line:
                return self.pid
        raise AssertionError(f"{self.process.args}: ended early")

    def __exit__(self, *_):
        # Those that have other processes below them end these first.
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.communicate()


RANDOM_ADDRESSES = amount(10000, 2000)


def random_places(pid, count, is_wanted):
    """Addresses all over what a process has mapped from files with such permissions."""
    wanted = [(start, end) for start, end, rights, _, path in mappings_of(pid) if is_wanted(rights) and path.startswith("/")]
    rng = random.Random(1)
    spans = rng.choices(wanted, [end - start for start, end in wanted], k=count)
    return [rng.randrange(start, end) for start, end in spans]


def random_code(pid, count=RANDOM_ADDRESSES):
    return random_places(pid, count, lambda permissions: "x" in permissions)


def random_data(pid, count=RANDOM_ADDRESSES):
    return random_places(pid, count, lambda permissions: "r" in permissions and "x" not in permissions)


def programs_of(pid):
    """The paths of the program and its libraries."""
    return sorted({m.path for m in mappings_of(pid) if "x" in m.rights and os.path.exists(m.path)})


def named_data(pid, count=2000):
    """Addresses inside of variables that the symbol tables of a process's files have, and where they start."""
    mapped = [(m.start, m.end) for m in mappings_of(pid) if m.rights[0] == "r"]
    spans = []
    for path in programs_of(pid):
        bias = bias_of(pid, path)
        # The C library's warnings for the linker are in sections that are not loaded.
        spans += sorted({(bias + s.value, s.size) for s in symbols_of(path)
                         if s.type == "OBJECT" and s.size and not s.name.startswith("__evoke_link_warning_")})
    rng = random.Random(2)
    chosen = [start + rng.randrange(size) * rng.randrange(2) for start, size in rng.choices(spans, k=count)]
    found = [a for a in chosen if any(start <= a < end for start, end in mapped)]
    assert len(found) >= 1000, len(found)
    return found


def names_by_gdb(target, addresses, folder):
    """(name, start) of the symbol that gdb has, or None, for each address of what the arguments @target say."""
    with open(f"{folder}/commands", "w", encoding="ascii") as commands:
        commands.write("set print demangle off\nset print asm-demangle off\n")
        commands.writelines(f"info symbol {a:#x}\n" for a in addresses)
    out = run("gdb", "-q", "-nx", "-batch", *target, "-x", f"{folder}/commands", status=None)
    lines = [line for line in out.splitlines() if line.startswith("No symbol matches") or " in section " in line]
    found = [re.match(r"(.+?)(?: \+ (\d+))? in section ", line) for line in lines]
    return [m and (m[1], a - int(m[2] or 0)) for a, m in zip(addresses, found, strict=True)]


def names_by_elfutils(target, addresses, _):
    out = run("eu-addr2line", "-S", *target, input="".join(f"{a:#x}\n" for a in addresses))
    found = [re.match(r"(?!\(|\?\?)(\S+?)(?:\+(0x[0-9a-f]+))?$", line) for line in out.splitlines()[::2]]
    return [m and (m[1], a - int(m[2] or "0", 16)) for a, m in zip(addresses, found, strict=True)]


# How a peer is asked, and which of our sources it has, too: bounds without a name are no symbol, and
# elfutils does not name the stubs of the PLT.
PEERS = {"gdb": (names_by_gdb, ("symtab", "dynsym", "minidebuginfo", "plt")),
         "eu-addr2line": (names_by_elfutils, ("symtab", "dynsym", "minidebuginfo"))}

# Why a peer's answer may be another one, although ours is right.
CLASSES = {
    "stub of an IFUNC": "gdb names the stub by the address of the function that chooses: *ABS*+0x2e350@plt",
    "behind the file": "zeroed data whose pages are not mapped from the file: eu-addr2line knows the file's pages only",
    "mapped twice": "pages that are mapped a second time, as V8 does with its builtins: peers know the program's own "
                    "place of them only; the bytes are the same",
    "variable of another file": "gdb counts from another file's variable of this name, which the program may have copied from "
                                "the library, also in the library",
    "slot of a stub": "gdb makes symbols for the slots of stubs, NAME@got.plt, which no table has",
    "behind the segment": "the peer names what is on the last page behind the segment's end, which no file has",
    "within another symbol": "gdb looks at the nearest symbol before the address only: where that has ended, it does not see the "
                             "one around it, as in __io_vtables of glibc 2.41",
    "symbol without a size": "the peer names what is behind a symbol that states no size, such as __GNU_EH_FRAME_HDR, "
                             "in another section",
}


def is_mapped_twice(pid, record, theirs):
    """Whether the address is in pages that are mapped a second time elsewhere."""
    if theirs is not None or not record["module"]:
        return False
    bias = bias_of(pid, record["module"])
    own = int(record["module_address"], 16) + bias
    address = int(record["address"], 16)
    return own != address and peek(pid, own) == peek(pid, address)


def debug_file(path):
    """The debug file of @path by its build-id, where it would be."""
    number = build_id(path)
    return f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug" if number else ""


Symbol = collections.namedtuple("Symbol", "value size type name")


def bare(name):
    """A name without a version, but with the @plt of stubs."""
    return re.sub(r"@@?(?!plt$).*", "", name)


@functools.lru_cache(None)
def symbols_of(path):
    """All symbols of the tables of a file and of its debug file, as readelf has them."""
    found = []
    for file in filter(os.path.exists, [path, debug_file(path)]):
        for m in re.finditer(r"^ *\d+: ([0-9a-f]+) +(\d+|0x\w+) +(\w+) +\w+ +\w+ +(?!UND)(?:\[.*?\] +)?\S+ (\S+)",
                             run("readelf", "-sW", file, status=None), re.M):
            found.append(Symbol(int(m[1], 16), int(m[2], 0), m[3], bare(m[4])))
    return found


@functools.lru_cache(None)
def symbols_at(path):
    """{value: its symbols}."""
    symbols = collections.defaultdict(list)
    for s in symbols_of(path):
        symbols[s.value].append(s)
    return symbols


@functools.lru_cache(None)
def bias_of(pid, path):
    """What is to be added to the addresses of a file to have those of the process."""
    loads = re.findall(r"^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", run("readelf", "-lW", path), re.M)
    first = mapping_of(pid, path)
    for p_offset, vaddr, size in ([int(x, 16) for x in load] for load in loads):
        if p_offset & ~0xfff <= first.off < p_offset + size:
            return first.start - (vaddr - p_offset + first.off)
    raise AssertionError(f"{path}: {first.off:#x} is in no segment")


def places_elsewhere(pid, path, names):
    """Where other files of the process have variables of these names."""
    return {bias_of(pid, other) + s.value for other in programs_of(pid) if other != path
            for s in symbols_of(other) if s.type == "OBJECT" and s.name in names}


def is_in_file(pid, address):
    """Whether the mapping at the address is one of a file."""
    return any(m.start <= address < m.end and m.path.startswith("/") for m in mappings_of(pid))


def why_mapped(pid, record, _, theirs):
    return "mapped twice" if is_mapped_twice(pid, record, theirs) else None


def why_guessed(pid, record, ours, theirs):
    """The class of a peer's other answer for data."""
    if theirs is None:
        at = int(record["module_address"], 16)
        if ours and any(at - record["offset"] < s.value <= at - s.size and s.size for s in symbols_of(record["module"])):
            return "within another symbol"
        return None if is_in_file(pid, int(record["address"], 16)) else "behind the file"
    value = int(record["module_address"], 16) - (int(record["address"], 16) - theirs[1])
    at = symbols_at(record["module"])[value]
    if ours:
        own = {s.name for s in symbols_at(record["module"])[int(record["module_address"], 16) - record["offset"]]}
        # gdb prints the lower 32 bits of the distance.
        if theirs[1] % 2 ** 32 in {place % 2 ** 32 for place in places_elsewhere(pid, record["module"], own)}:
            return "variable of another file"
    if not at:
        return "slot of a stub" if theirs[0].endswith("@got.plt") else None
    return "symbol without a size" if not ours and all(s.size == 0 for s in at) else None


def is_same(record, ours, theirs):
    """Whether both are the same symbol, or two of one address, as its file's tables have them."""
    if ours is None or theirs is None:
        return ours is theirs
    if ours[1] != theirs[1]:
        return False
    if bare(ours[0]) == bare(theirs[0]):
        return True
    names = {s.name for s in symbols_at(record["module"])[int(record["module_address"], 16) - record["offset"]]}
    return {bare(ours[0]), bare(theirs[0])} <= names


def why_stub(record, ours, theirs):
    """The class of gdb's other name for the stub of a function that is chosen when it is loaded: BFD calls it by the
    address of what chooses, which is where the symbol is."""
    chooser = theirs and re.fullmatch(r"\*ABS\*\+0x(\w+)@plt", theirs[0])
    if not chooser or not ours or ours[1] != theirs[1]:
        return None
    names = {s.name for s in symbols_at(record["module"])[int(chooser[1], 16)]}
    return "stub of an IFUNC" if ours[0].removesuffix("@plt") in names else None


@functools.lru_cache(None)
def segments_of(path):
    """The addresses of a file's segments, as readelf has them: [start, end)."""
    loads = re.findall(r"^ +LOAD +0x\w+ 0x(\w+) 0x\w+ 0x\w+ 0x(\w+)", run("readelf", "-lW", path), re.M)
    return [(int(start, 16), int(start, 16) + int(size, 16)) for start, size in loads]


def why_behind(record, ours):
    """The class of a peer's name for bytes that fill up the last page of a segment."""
    if ours or record["reason"] != "unmapped" or not record["module_address"]:
        return None
    at = int(record["module_address"], 16)
    inside = any(start <= at < end for start, end in segments_of(record["module"]))
    return None if inside else "behind the segment"


def check(title, peer, records, theirs, explain=lambda *_: None, share=0.25):
    """Whether our answers @records and those of a peer have the same symbols, or @explain knows the class of the
    difference; @share of them have names."""
    sources = PEERS[peer][1]
    ours = [(r["linkage_name"], int(r["address"], 16) - r["offset"]) if r["source"] in sources else None for r in records]
    classes, different = collections.Counter(), []
    for record, o, t in zip(records, ours, theirs, strict=True):
        if is_same(record, o, t):
            classes["another name of one address"] += o is not None and bare(o[0]) != bare(t[0])
            continue
        why = why_stub(record, o, t) or why_behind(record, o) or explain(record, o, t)
        classes[why] += 1
        if why not in CLASSES:
            different.append((record, t))
    named = sum(o is not None for o in ours)
    print(f"# {title} beside {peer}: {len(records)} addresses, {named} named" +
          "".join(f", {n} {why}" for why, n in sorted(classes.items(), key=str) if n))
    assert not different, f"{len(different)} differ: " + "\n".join(map(str, different[:5]))
    assert named >= share * len(records), named


def compare(program, peer, folder, explain=lambda *_: None, choose=random_code, share=0.25):
    """Asks us and a peer about addresses that @choose has chosen in a running program. @explain is given its number
    before the rest."""
    with Living(program, folder) as pid:
        addresses = choose(pid)
        ours = addr_stream(pid, addresses, "--names-only")
        theirs = PEERS[peer][0](["-p", pid], addresses, folder)
        check(program, peer, ours, theirs, functools.partial(explain, pid), share)
