# SPDX-License-Identifier: MIT
"""Programs that tell where they have what (tests/processes/programs), real ones, and what others say of
them: shared by the suites about what runs and what ran."""
import json
import os
import random
import re
import subprocess
import time

from ask import FATHOM, run

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "processes", "programs")


class Told:
    """A running programs/told.c, and what it has told: {name: address}."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        **options)
        self.pid = self.process.pid
        self.places = self._read()

    def _read(self):
        places = {}
        for line in self.process.stdout:
            if line == "done\n":
                return places
            name, address = line.split()
            places[name] = int(address, 16)
        raise AssertionError(f"{self.process.args}: ended early")

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def build(folder, name="told", *options, source="told.c", compiler="gcc"):
    path = os.path.join(folder, name)
    run(compiler, "-O1", "-g", *options, "-o", path, os.path.join(PROGRAMS, source))
    return path


def library(folder, name, *options, compiler="gcc"):
    return build(folder, name, "-shared", "-fPIC", *options, source="library.c", compiler=compiler)


def ask(target, addresses, *options, user=None, env=None):
    """fathom's answers, as records, and what it printed to standard error."""
    command = [FATHOM, "addr", "--json", "--no-cache", *options, str(target), *map(hex, addresses)]
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=60, env=env)
    assert done.returncode in (0, 1), f"{command}: {done.returncode} {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def check_places(target, places, *options, user=None):
    """What is at each of @places, and 2 bytes into it, is called by its name."""
    names = sorted(places)
    for off in (0, 2):
        records, _ = ask(target, [places[n] + off for n in names], *options, user=user)
        got = [(r["symbol"], r["offset"]) for r in records]
        assert got == [(n, off) for n in names], f"{got}, not {names}"
    return records


STYLES = [
    ("gcc, PIE", "gcc", ["-pie", "-fPIE", "-ldl"]),
    ("gcc, at fixed addresses", "gcc", ["-no-pie", "-ldl"]),
    ("static", "gcc", ["-static", "-DPLAIN"]),
    ("static PIE", "gcc", ["-static-pie", "-fPIE", "-DPLAIN"]),
    ("code not separate", "gcc", ["-Wl,-z,noseparate-code", "-ldl"]),
    ("pages of 2 MiB", "gcc", ["-Wl,-z,max-page-size=0x200000", "-ldl"]),
    ("lld", "clang-19", ["-fuse-ld=lld", "-ldl"]),
    ("gold", "gcc", ["-fuse-ld=gold", "-ldl"]),
    ("code at 0x10000000", "gcc", ["-no-pie", "-Wl,-Ttext-segment=0x10000000", "-ldl"]),
    ("lld, segments that share pages", "clang-19", ["-fuse-ld=lld", "-Wl,-z,noseparate-code", "-ldl"]),
]



# Programs of Debian's own, with libraries that have symbols and others that have none.
REAL = {"python3": ["/usr/bin/python3", "-c", "import ssl, sqlite3; input()"],
        "perl": ["perl", "-e", "use POSIX; <STDIN>"]}
RANDOM_ADDRESSES = 10000


class Real:
    """A real program that runs, with its libraries loaded."""

    def __init__(self, name, **options):
        self.process = subprocess.Popen(REAL[name], stdin=subprocess.PIPE, **options)
        self.pid = self.process.pid
        while not any("libsqlite3" in line or "POSIX.so" in line for line in self.maps()):
            time.sleep(0.01)
        time.sleep(0.2)

    def maps(self):
        """The lines of its memory map."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as maps:
            return maps.readlines()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def random_code(maps):
    """Addresses all over the code that is mapped from files."""
    code = []
    for line in maps:
        fields = line.split(None, 5)
        if "x" in fields[1] and len(fields) > 5 and fields[5].startswith("/"):
            code.append([int(x, 16) for x in fields[0].split("-")])
    rng = random.Random(1)
    spans = rng.choices(code, [end - start for start, end in code], k=RANDOM_ADDRESSES)
    return [rng.randrange(start, end) for start, end in spans]


def starts_by_gdb(target, addresses, folder):
    """Where the symbol that gdb names starts, or None, for each address of what the arguments @target say."""
    with open(f"{folder}/commands", "w", encoding="ascii") as commands:
        commands.writelines(f"info symbol {a:#x}\n" for a in addresses)
    out = run("gdb", "-q", "-nx", "-batch", *target, "-x", f"{folder}/commands", status=None)
    lines = [line for line in out.splitlines() if line.startswith("No symbol matches") or " in section " in line]
    found = [re.match(r"\S+(?: \+ (\d+))? in section ", line) for line in lines]
    return [m and a - int(m[1] or 0) for a, m in zip(addresses, found, strict=True)]


def starts_by_elfutils(target, addresses, _):
    out = run("eu-addr2line", "-S", *target, input="".join(f"{a:#x}\n" for a in addresses))
    found = [re.match(r"(?!\(|\?\?)\S+?(?:\+(0x[0-9a-f]+))?$", line) for line in out.splitlines()[::2]]
    return [m and a - int(m[1] or "0", 16) for a, m in zip(addresses, found, strict=True)]


def starts_by_fathom(target, addresses, sources):
    """The same by fathom, where it has the name from one of @sources."""
    out = run(FATHOM, "addr", "--json", "--no-cache", "--names-only", target, status=(0, 1),
              input="".join(f"{a:#x}\n" for a in addresses))
    return [int(r["address"], 16) - r["offset"] if r["source"] in sources else None
            for r in map(json.loads, out.splitlines())]


def check_starts(addresses, ours, theirs):
    different = [(hex(a), o and hex(o), t and hex(t)) for a, o, t in zip(addresses, ours, theirs, strict=True)
                 if o != t]
    assert not different, f"{len(different)} differ: {different[:5]}"
    assert sum(o is not None for o in ours) > RANDOM_ADDRESSES // 3
