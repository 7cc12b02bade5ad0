# SPDX-License-Identifier: MIT
"""A name has one address, whoever asks: what `addr` and `disasm` take a name for is the first match of `find`."""
import glob
import os
import re

import tap

from ask import execute, find, query, run
from building import build_text
from running import Running, mappings_of
from suite import test

# A number, or a name that may be one; what ends with an offset.
NUMBERS = re.compile(r"([0-9].*|[0-9A-Fa-f]+|.*\+(0x)?[0-9A-Fa-f]+)$")
SAMPLE = 40


def names_of(*files):
    """All names in the symbol tables of @files, as linked and demangled."""
    linked = set()
    for path in files:
        lines = run("readelf", "-W", "-s", "--dyn-syms", path, status=None).splitlines()
        linked |= {m[1].split("@")[0] for line in lines if (m := re.match(r"\s*\d+: (?:\S+\s+){6}(\S+)", line))}
    names = linked | set(run("c++filt", input="\n".join(linked)).splitlines())
    return sorted(name for name in names if name and len(name) < 4096 and not NUMBERS.match(name))


def system(name):
    """The library called @name that programs here are linked with."""
    return os.path.realpath(run("gcc", "-print-file-name=" + name).strip())


def ask_all(verb, target, names, *options):
    """{name: record}: one record for each of @names, which stand on standard input."""
    records, _ = query(verb, target, (), *options, input="".join(f"{name}\n" for name in names))
    key = "query" if verb == "find" else "input"
    return {record[key]: record for record in records}


def check(target, names, *options):
    """All @names have one address. Returns what find says of them."""
    found = ask_all("find", target, names, "--first", "--literal", *options)
    asked = ask_all("addr", target, names, "--names-only", *options)
    assert set(found) == set(asked) == set(names), set(found) ^ set(asked)
    differ = [(n, asked[n]["address"], found[n]["address"]) for n in names if asked[n]["address"] != found[n]["address"]]
    assert not differ, f"{len(differ)} of {len(names)}: {differ[:5]}"
    # Instructions are there for functions only; a name with a space would be several.
    if not os.path.exists("/proc/kcore") and target == "kernel":
        return found
    code = [n for n in names if found[n]["type"] == "func" and found[n]["address"] and re.fullmatch(r"\w+", n)]
    for name in code[::max(1, len(code) // SAMPLE)]:
        records, _ = query("disasm", target, name, *options)
        assert records[0]["address"] in (found[name]["address"], None), (name, records[0], found[name])
    return found


@test("one address for a name: addr, disasm and find --first, all names of libraries and of a static program")
def of_files(folder):
    static = build_text(os.path.join(folder, "static"), "#include <stdio.h>\nint main(void) { return puts(\"\"); }", "-static")
    total = 0
    for path in (system("libc.so.6"), system("libstdc++.so.6"), system("libm.so.6"), static):
        found = check(path, names_of(path))
        total += sum(r["address"] is not None for r in found.values())
    assert total > 8000, total


@test("one address for a name: two static functions, an overloaded one, sizeless labels, ends of sections, versions")
def of_kinds(folder):
    path = os.path.join(folder, "kinds")
    parts = []
    for i in range(2):
        source = f"static int twice(int x) {{ return x * {i + 3}; }}\nint (*keep{i})(int) = twice;\n"
        parts.append(build_text(f"{path}{i}.o", source, "-c"))
    text = "namespace n { int f(int x) { return x; } int f(char x) { return x; } }\n" \
           "extern \"C\" int label; asm(\".data\\n.globl label\\nlabel: .long 1\\n.text\"); int main() { return n::f(label); }\n"
    build_text(path, text, *parts, compiler="g++", language="c++")
    found = check(path, [*names_of(path), "n::f", "n::f(char)", "_end", "no_such_name"])
    at = {line.split()[2]: int(line.split()[0], 16) for line in run("nm", path).splitlines() if len(line.split()) == 3}
    assert int(found["n::f"]["address"], 16) == at["_ZN1n1fEc"]
    assert int(found["_end"]["address"], 16) == at["_end"] and int(found["label"]["address"], 16) == at["label"]
    twice = sorted(int(line.split()[0], 16) for line in run("nm", path).splitlines() if line.endswith(" twice"))
    # As text, each static function and each overloaded one has a line; the first is that of find --first.
    for name, wanted in (("twice", twice), ("n::f", [at["_ZN1n1fEc"], at["_ZN1n1fEi"]])):
        lines = execute(os.environ["FATHOM"], "addr", "--no-cache", "--names-only", path, name, status=0).stdout.splitlines()
        assert [int(line.split()[0], 16) for line in lines] == wanted, (name, lines, wanted)
    libc = system("libc.so.6")
    for name in ("memcpy@GLIBC_2.2.5", "memcpy@@GLIBC_2.14", "pthread_cond_wait@GLIBC_2.2.5"):
        (one,), _ = find(libc, name, "--first")
        (other,), _ = query("addr", libc, name, "--names-only")
        assert one["address"] and one["address"] == other["address"], (name, one, other)


@test("one address for a name: a live process and its core, IFUNCs and the threads' variables included")
def of_processes(folder):
    with Running(["python3", "-c", "import sys; print(1, flush=True); sys.stdin.read()"]) as process:
        process.line()
        files = sorted({m.path for m in mappings_of(process.pid) if m.path.startswith("/") and os.path.exists(m.path)})
        names = names_of(*files)
        found = check(process.pid, names)
        assert sum(r["address"] is not None for r in found.values()) > 3000, len(names)
        # What a program gets by the name, not the function that chooses.
        assert found["memchr"]["type"] == "ifunc" and found["memchr"]["address"] != found["memchr"]["resolver"]
        assert found["errno"]["type"] == "tls" and found["errno"]["tid"] == process.pid
        execute("gcore", "-o", f"{folder}/core", process.pid, status=0)
    core = glob.glob(f"{folder}/core*")
    found = check(core[0], names)
    assert sum(r["address"] is not None for r in found.values()) > 3000, len(names)


@test("one address for a name: the kernel, all its names")
def of_the_kernel(_):
    with open("/proc/kallsyms", encoding="utf-8") as lines:
        symbols = [line.split()[:3] for line in lines]
    if not any(int(address, 16) for address, _, _ in symbols):
        raise tap.Skip("the kernel shows no addresses to this user")
    names = sorted({name for _, _, name in symbols if not NUMBERS.match(name)})
    found = check("kernel", names)
    assert all(r["address"] for r in found.values())
