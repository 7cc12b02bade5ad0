#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares fathom addr2line with the installed GNU addr2line, byte for byte (see gnu.py).

run.py [NAME]...           the tests whose names hold one of these
run.py --file PATH N [SEED]  one file of the caller's: N random addresses of its functions and N / 10 variables"""
import functools
import itertools
import os
import random
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gnu  # noqa: E402
import ask  # noqa: E402
import tap  # noqa: E402
import toolchain  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def combinations(letters):
    """All ways to give these options, as one argument each."""
    for n in range(len(letters) + 1):
        for chosen in itertools.combinations(letters, n):
            yield ["-" + "".join(chosen)] if chosen else []


EVERY = list(combinations("afiCsp"))
SOME = [["-fi"], ["-afiC"], ["-fip"], ["-apC"], ["-fisC"], ["-s"], ["-afipsC"], []]


def section_addresses(path, most=None, seed=1):
    """Addresses of all loaded sections and two bytes beyond; @most of them, chosen at random."""
    found = []
    for line in ask.run("readelf", "-SW", path).splitlines():
        m = re.match(r"\s*\[\s*\d+\]\s+\S+\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+(\w*)", line)
        if m and "A" in m[3]:
            start = int(m[1], 16)
            found += range(max(0, start - 2), start + int(m[2], 16) + 2)
    if most and len(found) > most:
        found = random.Random(seed).sample(found, most)
    return found


def symbol_addresses(path, n, seed=1):
    """@n addresses at random places of randomly chosen functions of @path, and the starts of
    @n / 10 variables."""
    symbols = {"FUNC": set(), "IFUNC": set(), "OBJECT": set()}
    for line in ask.run("readelf", "-sW", path, gnu.debug_file(path)).splitlines():
        words = line.split()
        if len(words) >= 8 and words[3] in symbols and words[6] not in ("UND", "ABS") and words[2] != "0":
            symbols[words[3]].add((int(words[1], 16), int(words[2], 0)))
    choice = random.Random(seed)
    functions = choice.choices(sorted(symbols["FUNC"] | symbols["IFUNC"]), k=n)
    variables = choice.choices(sorted(symbols["OBJECT"]), k=n // 10)
    return [start + choice.randrange(size) for start, size in functions] + [start for start, _ in variables]


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed")


def compared(test):
    """@test, skipped where GNU's tool is not the version that ours is compatible with."""
    @functools.wraps(test)
    def run():
        need("addr2line", "readelf", ask.LLVM)
        version = ask.run("addr2line", "--version").splitlines()[0]
        if not re.search(r" 2\.4[0-4]\b", version):
            raise tap.Skip(f"fathom answers as GNU addr2line 2.40 to 2.44 does, installed is {version}")
        return test()
    return run


class Builder:
    """Builds the fixtures, each in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def build(self, name, *steps):
        """Runs @steps, lists of words, in a fresh folder; the path of what they leave as "out"."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        for source in os.listdir(os.path.join(HERE, "programs")):
            shutil.copy(os.path.join(HERE, "programs", source), folder)
        for step in steps:
            need(step[0])
            ask.run(*step, cwd=folder)
        return os.path.join(folder, "out")


def gcc(*options, source="mixed.c", out="out", compiler="gcc"):
    return [compiler, *options, "-o", out, source]


def gxx(*options, compiler="g++"):
    return gcc(*options, source="mixed.cc", compiler=compiler)


# alpha, zeta and bz become one function, which is alpha's code.
FOLDED = [os.path.join(HERE, "..", "fixtures", "src", source) for source in ("folded_a.c", "folded_b.c")]


def folded(compiler, linker, *options):
    return [[compiler, "-g", "-ffunction-sections", "-fno-inline", *options, "-fno-pic", "-no-pie", linker, "-Wl,--icf=all",
             "-o", "out", *FOLDED]]


STRIPPED = [["cp", "out", "whole"], ["objcopy", "--only-keep-debug", "whole", "out.debug"],
            ["strip", "out"], ["objcopy", "--add-gnu-debuglink=out.debug", "out"]]
# Name, steps, classes of differences that may occur, how many addresses (None: all of them).
FIXTURES = [
    ("gcc -O0", [gcc("-g", "-O0")], ["first-file"], None),
    ("gcc -O2", [gcc("-g", "-O2")], [], None),
    ("gcc -O2 -g1", [gcc("-g1", "-O2")], [], None),
    ("gcc -O2 DWARF 4", [gcc("-gdwarf-4", "-O2")], [], None),
    ("gcc -O2 DWARF 3", [gcc("-gdwarf-3", "-gstrict-dwarf", "-O2")], [], None),
    ("gcc without debug information", [gcc("-O2")], [], None),
    ("gcc stripped of debug information", [gcc("-g", "-O2"), ["strip", "-g", "out"]], [], None),
    ("gcc stripped of all", [gcc("-g", "-O2"), ["strip", "out"]], [], None),
    ("gcc with a separate debug file", [gcc("-gdwarf-4", "-O2"), *STRIPPED], [], None),
    ("gcc compressed", [gcc("-gdwarf-4", "-gz=zlib", "-O2")], [], None),
    ("gcc static", [gcc("-gdwarf-4", "-O2", "-static")], [], 1500),
    ("gcc LTO", [gcc("-g", "-flto", "-O2")], ["first-file"], None),
    ("gcc split", [gcc("-gdwarf-5", "-gsplit-dwarf", "-O2")], ["split", "variable"], None),
    ("gcc object file", [gcc("-g", "-O2", "-c")], [], None),
    ("gcc object file with sections", [gcc("-g", "-O2", "-c", "-ffunction-sections")], [], None),
    ("gcc relocatable link", [gcc("-gdwarf-4", "-O2", "-c", out="a.o"), gcc("-gdwarf-4", "-O0", "-c", out="b.o",
     source="other.c"), ["ld", "-r", "-o", "out", "a.o", "b.o"]], [], None),
    ("gcc two files", [gcc("-gdwarf-4", "-O2", "-c", "-DNO_MAIN", out="a.o"), gcc("-O0", "-c", out="b.o", source="other.c"),
     ["gcc", "-o", "out", "a.o", "b.o"]], [], None),
    ("gcc assembler", [["gcc", "-g", "-o", "out", "mixed.s"]], [], None),
    ("gcc for i686", [gcc("-g", "-O2", compiler="i686-linux-gnu-gcc")], [], None),
    ("gcc object file for i686", [gcc("-g", "-O2", "-c", compiler="i686-linux-gnu-gcc")], [], None),
    ("g++ -O0", [gxx("-g", "-O0")], [], 800),
    ("g++ -O2", [gxx("-g", "-O2")], ["inlined-name", "history"], 800),
    ("clang -O2", [gcc("-g", "-O2", compiler="clang")], ["rnglistx", "variable"], None),
    ("clang -O2 DWARF 4", [gcc("-gdwarf-4", "-O2", compiler="clang")], [], None),
    ("clang -O0", [gcc("-g", "-O0", compiler="clang")], ["variable"], None),
    ("clang++ -O2", [gxx("-g", "-O2", compiler="clang++")],
     ["rnglistx", "inlined-name", "variable"], 800),
    ("folded by gold, gcc -O0", folded("gcc", "-fuse-ld=gold", "-O0", "-fno-ipa-icf"), [], None),
    ("folded by gold, clang -O2", folded("clang", "-fuse-ld=gold", "-O2"), ["variable"], None),
    ("folded by lld, clang -O2", folded("clang", "-fuse-ld=lld", "-O2"), ["variable"], None),
    ("clang++ -O2 DWARF 4", [gxx("-gdwarf-4", "-O2", compiler="clang++")],
     ["inlined-name"], 800),
]

CORPORA = [
    # Built by clang, its variables are placed by DW_OP_addrx.
    ("fathom", ask.FATHOM, 1000, ["first-file", "variable"]),
    ("libstdc++", toolchain.debug_libstdcxx(), 2000,
     ["first-file", "inlined-name", "history"]),
    ("libc", "/lib/x86_64-linux-gnu/libc.so.6", 1000, ["first-file"]),
]


def fixture_test(builder, name, steps, allowed, most):
    @compared
    def test():
        path = builder.build(re.sub(r"\W", "-", name), *steps)
        comparison = gnu.Comparison(path, section_addresses(path, most))
        comparison.check(allowed)
        comparison.check_options(EVERY if name in ("gcc -O2", "g++ -O2") else SOME, limit=300)
        comparison.check_options([["-afi"], ["-fpC"]], arguments=True, limit=100)
    return test


def corpus_test(path, n, allowed):
    @compared
    def test():
        if not os.path.exists(path):
            raise tap.Skip(f"{path} is not installed")
        with open(path, "rb") as f:
            if re.search(rb"__asan_|__tsan_|__ubsan_", f.read()):
                raise tap.Skip("a sanitizer adds code that has no lines, where GNU's answers depend on what it was asked before")
        comparison = gnu.Comparison(path, symbol_addresses(path, n))
        comparison.check(allowed)
        comparison.check_options([["-afiC"], ["-fips"], []])
    return test


def section_test(builder):
    @compared
    def test():
        path = builder.build("sections", gcc("-g", "-O2", "-c", "-ffunction-sections"))
        for section in (".text", ".text.target", ".rodata", ".data", ".bss"):
            comparison = gnu.Comparison(path, range(300), options=("-j", section))
            comparison.check()
            comparison.check_options(SOME, limit=100)
        path = builder.build("sections-linked", gcc("-gdwarf-4", "-O2"))
        comparison = gnu.Comparison(path, range(600), options=("-j", ".text"))
        comparison.check()
        comparison.check_options(SOME, limit=300)
    return test


def report(path, n, seed):
    """The classes of differences of one file, for people."""
    asked = symbol_addresses(path, n, seed)
    comparison = gnu.Comparison(path, asked)
    print(f"{len(asked)} addresses of {path}: {len(comparison.agreed)} agree, "
          f"{len(comparison.unexplained)} differ without a class, {dict(comparison.classes)}")
    for kind, (address, theirs, ours) in sorted(comparison.examples.items()):
        print(f"{kind}: {address:#x}\n  GNU:    {theirs}\n  fathom: {ours}")
    print("\n".join(comparison.unexplained[:20]))
    comparison.check_options([["-afiC"], ["-fips"], []])
    return 1 if comparison.unexplained else 0


def main():
    if sys.argv[1:2] == ["--file"]:
        sys.exit(report(sys.argv[2], int(sys.argv[3]), int((sys.argv + ["1"])[4])))
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(folder)
        tests = [(name, fixture_test(builder, name, *rest)) for name, *rest in FIXTURES]
        tests += [("sections by name (-j)", section_test(builder))]
        tests += [(f"{n} addresses of {name}", corpus_test(path, n, allowed)) for name, path, n, allowed in CORPORA]
        sys.exit(tap.run("addr2line", tap.chosen(tests)))


if __name__ == "__main__":
    main()
