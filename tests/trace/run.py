#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "trace": sites of function entries and returns, beside objdump, in programs of both compilers; NOPs and
records that lie; running programs."""
import collections
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import tap  # noqa: E402

import truth  # noqa: E402
from ask import fathom, query, refused, run  # noqa: E402
from running import Running  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
SOURCE = os.path.join(PROGRAMS, "sites.c")
ARM = "aarch64-linux-gnu-"
SUITE = tap.Suite("trace")
test = SUITE.test

LINKS = {
    "PIE": ["-fpie", "-pie"],
    "fixed": ["-fno-pie", "-no-pie"],
    "static": ["-fno-pie", "-static"],
    "static PIE": ["-fpie", "-static-pie"],
    "shared": ["-fpic", "-shared", "-DSHARED"],
}
ALL = tuple(LINKS)
FIXED = ("fixed", "static")


def ask(path, *words, status=(0, 1)):
    """The sites, and the line of the only module."""
    records, _ = query("trace", path, list(words), "--sites", status=status)
    return ([r for r in records if r["type"] == "site"],
            {r["module"]: r for r in records if r["type"] == "module"})


def places(sites):
    return {(int(s["address"], 16), s["size"], s["prefix_size"], s["place"]) for s in sites}


def same(found, expected, what):
    assert found == expected, f"{what}: only fathom: {sorted(found - expected)}; missing: {sorted(expected - found)}"


def check_bytes(listing, sites):
    """The bytes of each slot and prefix are those of the file."""
    code = {}
    for instructions in listing.functions.values():
        for i in instructions:
            code.update({i.address + k: i.code[2 * k:2 * k + 2] for k in range(i.size)})
    for s in sites:
        address, entry = int(s["address"], 16), int(s["function_address"], 16)
        slot = "".join(code[address + k] for k in range(s["size"]))
        prefix = "".join(code.get(entry - s["prefix_size"] + k, "??") for k in range(s["prefix_size"]))
        assert s["bytes"] == slot, s
        assert s["prefix"] == prefix or "?" in prefix, s


def check_functions(path, sites):
    names = truth.symbols(path)
    for s in sites:
        assert s["linkage_name"] in names[int(s["function_address"], 16)], s


Shape = collections.namedtuple("Shape", "name compiler flags links kind truth stripped")

# How many bytes slot and prefix have: -fpatchable-function-entry=N,M.
def patchable_shape(compiler, total, before, *flags, links=("PIE",)):
    name = f"{compiler} -fpatchable-function-entry={total},{before} {' '.join(flags)}".strip()
    options = (f"-fpatchable-function-entry={total},{before}", *flags)
    return Shape(name, compiler, options, links, "patchable",
                 lambda listing: truth.patchable(listing, total - before, before), True)


def shape(compiler, flags, kind, found, links=("PIE",), stripped=True):
    return Shape(f"{compiler} {flags}", compiler, flags.split(), links, kind, found, stripped)


SHAPES = [
    patchable_shape("gcc", 18, 16, links=ALL),
    patchable_shape("gcc", 5, 0, links=("PIE", "fixed")),
    patchable_shape("gcc", 11, 9, "-fcf-protection", links=("PIE", "static")),
    patchable_shape("gcc", 16, 14, "-O0"),
    patchable_shape("gcc", 5, 0, "-fcf-protection", "-O0", links=("shared",)),
    patchable_shape("gcc", 300, 200, "-falign-loops=32"),
    patchable_shape("clang", 18, 16, links=ALL),
    patchable_shape("clang", 5, 0, "-fcf-protection", links=("PIE", "fixed")),
    patchable_shape("clang", 18, 16, "-fcf-protection=branch", "-O0", links=("shared",)),
    patchable_shape("clang", 3, 0, "-fuse-ld=lld"),
    patchable_shape("clang", 18, 16, "-fuse-ld=lld", "-Wl,-z,pack-relative-relocs", "-Wl,--gc-sections",
                    "-ffunction-sections"),
    patchable_shape("clang", 40, 20),
    shape("gcc", "-pg", "mcount", truth.hooked, ALL, False),
    shape("gcc", "-pg -O0", "mcount", truth.hooked, ("PIE", "fixed")),
    shape("gcc", "-pg -fcf-protection -fstack-clash-protection -mavx2", "mcount", truth.hooked),
    shape("gcc", "-pg -mfentry", "fentry", truth.hooked, ("fixed", "static PIE", "shared"), False),
    shape("gcc", "-pg -mfentry -fcf-protection -Wl,-z,now", "fentry", truth.hooked),
    shape("gcc", "-pg -mfentry -fno-plt", "fentry", truth.hooked),
    shape("gcc", "-pg -mfentry -mrecord-mcount -w", "mcount-loc", truth.hooked, ("PIE", "fixed", "static")),
    shape("gcc", "-pg -mrecord-mcount -w", "mcount-loc", truth.hooked, ("PIE", "static")),
    shape("gcc", "-pg -mfentry -mrecord-mcount -mnop-mcount", "mcount-loc", truth.empty_calls, FIXED),
    shape("gcc", "-pg -mfentry -mnop-mcount", "nop", truth.empty_calls, FIXED),
    shape("gcc", "-pg -mnop-mcount", "mcount-nop", truth.empty_calls, FIXED, False),
    shape("gcc", "-pg -mnop-mcount -O0", "mcount-nop", truth.empty_calls, ("fixed",)),
    shape("gcc", "-pg -mfentry -minstrument-return=nop5 -mrecord-return -w", "return-loc", truth.returns,
          ("PIE", "fixed", "static")),
    shape("gcc", "-pg -mfentry -minstrument-return=nop5 -mrecord-return -w -O0", "return-loc", truth.returns, ("fixed",)),
    shape("gcc", "-finstrument-functions", "cyg-profile", truth.hooked, ("PIE", "static", "shared"), False),
    shape("clang", "-pg", "mcount", truth.hooked, ("PIE", "fixed", "shared")),
    shape("clang", "-pg -O0", "mcount", truth.hooked),
    shape("clang", "-pg -mfentry", "fentry", truth.hooked, ("PIE", "fixed", "shared")),
    shape("clang", "-finstrument-functions", "cyg-profile", truth.hooked, ("PIE", "fixed")),
    shape("clang", "-finstrument-functions -O0", "cyg-profile", truth.hooked),
    shape("clang", "-fxray-instrument -fxray-instruction-threshold=1", "xray",
          lambda listing: truth.sleds(listing.path, 11), ("PIE", "fixed")),
    shape("clang", "-fxray-instrument -fxray-instruction-threshold=1 -fcf-protection -O0", "xray",
          lambda listing: truth.sleds(listing.path, 11)),
]


def built(folder, kind, link):
    path = os.path.join(folder, link.replace(" ", "-"))
    building.build(path, SOURCE, *LINKS[link], *kind.flags, compiler=kind.compiler, flags=("-O2",))
    return path


def of_kind(sites, kind):
    return [s for s in sites if s["kind"] == kind]


def check_shape(kind, link):
    def check(folder):
        path = built(folder, kind, link)
        listing = truth.Listing(path)
        expected = kind.truth(listing)
        assert len(expected) >= 8, expected
        sites, modules = ask(path, status=0)
        sites = of_kind(sites, kind.kind)
        same(places(sites), expected, path)
        check_bytes(listing, sites)
        check_functions(path, sites)
        module, = modules.values()
        assert not module["refused"], module
        # Stripped static programs do not name what they call.
        if not kind.stripped and link.startswith("static"):
            return
        run("strip", path)
        same(places(of_kind(ask(path, status=0)[0], kind.kind)), expected, "stripped")
    return check


for entry in SHAPES:
    for how in entry.links:
        SUITE.add(f"{entry.name}: {how}", check_shape(entry, how))


ARM_SHAPES = [
    ("gcc -fpatchable-function-entry=7,6", "patchable", lambda k: truth.patchable(k, 4, 24)),
    ("gcc -fpatchable-function-entry=7,6 -mbranch-protection=standard", "patchable", lambda k: truth.patchable(k, 4, 24)),
    ("gcc -fpatchable-function-entry=2 -static", "patchable", lambda k: truth.patchable(k, 8, 0)),
    ("gcc -fpatchable-function-entry=3,1 -O0", "patchable", lambda k: truth.patchable(k, 8, 4)),
    ("gcc -pg", "mcount", lambda k: truth.hooked(k, 4)),
    ("gcc -pg -mbranch-protection=standard", "mcount", lambda k: truth.hooked(k, 4)),
    ("gcc -finstrument-functions", "cyg-profile", lambda k: truth.hooked(k, 4)),
]


def check_arm(flags, kind, expected):
    def check(folder):
        path = os.path.join(folder, "arm")
        compiler, *options = flags.split()
        building.build(path, SOURCE, *options, compiler=ARM + compiler, flags=("-O2",))
        listing = truth.Listing(path, ARM)
        wanted = expected(listing)
        found = places(of_kind(ask(path, status=0)[0], kind))
        if "-O0" in options:
            longer = truth.longer(listing, 8)
            wanted = {(at, size, *rest) for at, size, *rest in found if 8 < size <= longer.get(at, 0)} | \
                {w for w in wanted if not any(8 < f[1] <= longer.get(w[0], 0) and f[0] == w[0] for f in found)}
        same(found, wanted, path)
        run(ARM + "strip", path)
        same(places(of_kind(ask(path, status=0)[0], kind)), wanted, "stripped")
    return check


for words, which, wanted_places in ARM_SHAPES:
    SUITE.add(f"aarch64: {words}", check_arm(words, which, wanted_places))


@test("aarch64: objects of clang: patchable entries, and sleds that are not linked")
def _(folder):
    path = os.path.join(folder, "arm.o")
    run("clang", "--target=aarch64-linux-gnu", "-O2", "-DSHARED", "-fpatchable-function-entry=7,6",
        "-mbranch-protection=standard", "-nostdinc", "-isystem", "/usr/aarch64-linux-gnu/include", "-isystem",
        run("clang", "-print-resource-dir").strip() + "/include", "-c", "-o", path, SOURCE)
    sites, _ = ask(path, status=0)
    expected = truth.patchable(truth.Listing(path, ARM), 4, 24)
    same({(int(s["module_address"], 16), *place[1:]) for s in sites for place in places([s])}, expected, path)


@test("relocatable files: patchable entries, recorded calls and their relocations")
def _(folder):
    for flags, kind, slots in (("-fpatchable-function-entry=18,16", "patchable", lambda k: truth.patchable(k, 2, 16)),
                               ("-pg -mfentry -mrecord-mcount", "mcount-loc", None), ("-pg", "mcount", None)):
        path = os.path.join(folder, "one.o")
        run("gcc", "-O2", "-fno-pie", "-DSHARED", "-c", *flags.split(), "-o", path, SOURCE)
        sites, _ = ask(path, status=0)
        found = {int(s["module_address"], 16) for s in sites if s["kind"] == kind}
        listing = truth.Listing(path)
        if slots:
            expected = {place[0] for place in slots(listing)}
        else:
            expected = {next(i.address for i in listing.code(name) if i.text.startswith("call"))
                        for name in listing.starts}
        same(found, expected, flags)


@test("several objects of several shapes in one program")
def _(folder):
    objects = []
    expected = set()
    for number, (compiler, total, before) in enumerate((("gcc", 18, 16), ("clang", 18, 16), ("gcc", 5, 0),
                                                         ("gcc", 12, 2), ("clang", 9, 0))):
        text = "".join(f"int f{number}_{i}(int a) {{ return a * {i + 2}; }}\n" for i in range(4))
        objects.append(os.path.join(folder, f"{number}.o"))
        run(compiler, "-O2", "-c", f"-fpatchable-function-entry={total},{before}", "-x", "c", "-", "-o", objects[-1],
            input=text)
        expected |= {(f"f{number}_{i}", total - before, before) for i in range(4)}
    path = building.build_text(os.path.join(folder, "mixed"), "int main(void) { return 0; }", *objects)
    sites, _ = ask(path, status=0)
    same({(s["function"], s["size"], s["prefix_size"]) for s in sites}, expected, path)


@test("a loop at the start whose head are NOPs is not part of the slot")
def _(folder):
    text = """
    int spin(int *flag) { for (;;) { __asm__ volatile("nop; nop; nop"); if (*flag) return 1; } }
    int other(int a) { return a; }
    int main(int argc, char **argv) { return other(argc); }
    """
    path = building.build_text(os.path.join(folder, "spin"), text, "-fpatchable-function-entry=2",
                               flags=("-O2", "-fno-align-loops"))
    sites, _ = ask(path, "spin", "other", status=0)
    assert [s["size"] for s in sites] == [2, 2], sites


@test("NOPs that merely look right are not found: in data, in the middle, at labels, before loops")
def _(folder):
    source = os.path.join(PROGRAMS, "planted.c")
    for options in ("-O0", "-O2", "-O2 -fno-omit-frame-pointer", "-O2 -fcf-protection -falign-loops=16"):
        for extra in ([], ["-static"], ["-no-pie", "-fno-pie"]):
            path = building.build(os.path.join(folder, "planted"), source, *options.split(), *extra, flags=())
            sites, _ = ask(path, status=1)
            assert not sites, (options, extra, sites)


@test("in a program of -pg -mnop-mcount only its own NOPs are found")
def _(folder):
    source = os.path.join(PROGRAMS, "planted.c")
    for options in ("-O0", "-O2", "-O2 -mfentry"):
        path = building.build(os.path.join(folder, "planted"), source, "-pg", "-mnop-mcount", "-fno-pie", "-no-pie",
                              *options.split(), flags=())
        sites, _ = ask(path)
        listing = truth.Listing(path, whole=True)
        for s in sites:
            code = listing.code(s["function"])
            first = next(i.address for i in code if i.code == "0f1f440000")
            assert int(s["address"], 16) == first, s
        names = {s["function"] for s in sites}
        assert names == {"behind_the_prologue", "in_the_middle", "before_a_loop", "main"}, (options, names)


@test("no site in the stock libraries and programs, where such NOPs are padding")
def _(_folder):
    for path in ("/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3", "/lib64/ld-linux-x86-64.so.2",
                 "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"):
        sites, modules = ask(path, status=1)
        module, = modules.values()
        assert not sites and module["functions"] > 100, (path, sites, module)
        assert module["flag"] == "-fpatchable-function-entry=18,16", module


def poke(path, name, number, word):
    """Replaces a word of the table @name."""
    place = building.section(path, name)
    with open(path, "r+b") as f:
        f.seek(place.off + 8 * number)
        f.write(struct.pack("<Q", word))


def lies(path, table, kind, wrong):
    """Each word of @wrong, in place of the first, is refused for its reason; the others stay."""
    before, _ = ask(path, status=0)
    place = building.section(path, table)
    with open(path, "rb") as f:
        f.seek(place.off)
        first, = struct.unpack("<Q", f.read(8))
    for what, word, reason in wrong:
        copy = shutil.copy(path, path + ".lie")
        poke(copy, table, 0, word)
        sites, modules = ask(copy, status=0)
        module, = modules.values()
        assert module["refused"] == {reason: 1}, (what, hex(word), module)
        lost = places(of_kind(before, kind)) - places(of_kind(sites, kind))
        assert len(lost) == 1 and places(sites) <= places(before) | places(of_kind(sites, "fentry")), (what, first, lost)


def listing_of(folder, *flags):
    path = os.path.join(folder, "honest")
    building.build(path, SOURCE, "-fno-pie", "-no-pie", *flags, flags=("-O2",))
    return path, truth.Listing(path, whole=True)


@test("records that lie: __patchable_function_entries")
def _(folder):
    path, listing = listing_of(folder, "-fpatchable-function-entry=18,16")
    code = listing.code("large")
    data = building.nm(path)["sink"][0][0]
    padding = next(i.address for i in listing.code("_start") if "nop" in i.text)
    lies(path, "__patchable_function_entries", "patchable", [
        ("null", 0, "not-code"), ("the end", (1 << 64) - 1, "not-code"), ("data", data, "not-code"),
        ("an instruction", code[4].address, "other-code"), ("another function", listing.code("_start")[0].address,
                                                            "other-code"),
        ("the stack", 0x7ffffffff000, "not-code"), ("padding", padding, "no-slot")])


@test("records that lie: __patchable_function_entries without FDEs and symbols")
def _(folder):
    path, listing = listing_of(folder, "-fpatchable-function-entry=18,16", "-fno-asynchronous-unwind-tables",
                               "-fno-unwind-tables", "-fcf-protection")
    expected = truth.patchable(listing, 2, 16)
    run("strip", path)
    same(places(ask(path, status=0)[0]), expected, "by the landing marks")
    lies(path, "__patchable_function_entries", "patchable", [("null", 0, "not-code")])


@test("records that lie: __mcount_loc and __return_loc")
def _(folder):
    path, listing = listing_of(folder, "-pg", "-mfentry", "-mrecord-mcount", "-minstrument-return=nop5",
                               "-mrecord-return")
    calls = [i for i in listing.code("large") if i.text.startswith("call")]
    wrong = [("null", 0, "not-code"), ("a later call", calls[1].address, "other-code"),
             ("inside an instruction", calls[0].address + 1, "other-code"),
             ("another instruction", listing.code("tail")[1].address, "other-code"),
             ("a stub", listing.functions["mcount@plt" if "mcount@plt" in listing.functions else "__fentry__@plt"][0].address,
              "no-function")]
    lies(path, "__mcount_loc", "mcount-loc", [w for w in wrong if w[0] != "a stub"])
    lies(path, "__return_loc", "return-loc", [w for w in wrong if w[0] != "a stub"])


@test("records that lie: xray_instr_map")
def _(folder):
    path = os.path.join(folder, "xray")
    building.build(path, SOURCE, "-fxray-instrument", "-fxray-instruction-threshold=1", compiler="clang", flags=("-O2",))
    place = building.section(path, "xray_instr_map")
    before, _ = ask(path, status=0)
    for off, value, reason in ((0, 0, "not-code"), (0, 1, None), (8, 1 << 40, "no-function"), (16, 1, "other-code")):
        copy = shutil.copy(path, path + ".lie")
        with open(copy, "r+b") as f:
            f.seek(place.off + off)
            f.write(bytes([value]) if off == 16 else struct.pack("<Q", value))
        sites, modules = ask(copy, status=0)
        module, = modules.values()
        assert sum(module["refused"].values()) == 1 and len(sites) == len(before) - 1, (off, value, module)
        assert reason is None or reason in module["refused"], (off, value, module)


@test("patchable entries and recorded calls in one program")
def _(folder):
    path, listing = listing_of(folder, "-pg", "-mfentry", "-mrecord-mcount", "-fpatchable-function-entry=6")
    sites, _ = ask(path, status=0)
    for kind in ("patchable", "mcount-loc"):
        same({int(s["function_address"], 16) for s in of_kind(sites, kind)}, set(listing.starts.values()), kind)
    ends = [(int(s["address"], 16), int(s["address"], 16) + s["size"]) for s in sites]
    assert all(end <= start for (_, end), (start, _) in zip(ends, ends[1:])), ends


@test("a process: sites of the program and of a library that it has loaded, where they are")
def _(folder):
    library = os.path.join(folder, "libsites.so")
    building.build(library, SOURCE, *LINKS["shared"], "-fpatchable-function-entry=18,16", flags=("-O2",))
    program = building.build(os.path.join(folder, "opener"), os.path.join(PROGRAMS, "opener.c"),
                             "-fpatchable-function-entry=2", "-ldl", flags=("-O2",))
    with Running([program, library]) as p:
        run_at, leaf_at, own_at = (int(word, 16) for word in p.line().split())
        sites, modules = ask(p.pid, status=0)
        found = {(s["function"], int(s["address"], 16), s["size"], s["prefix_size"], s["changed"]) for s in sites}
        assert {("run", run_at, 2, 16, False), ("leaf", leaf_at, 2, 16, False), ("own", own_at, 2, 0, False)} <= found, found
        assert modules[library]["sites"] == 9 and modules[program]["sites"] == 2, modules
        assert any("libc.so" in path and m["flag"] for path, m in modules.items()), modules
        core = building.core_of(p.pid, folder)
        p.send("replace\n")
        assert p.line() == "2"
        changed = [s for s in ask(p.pid, status=0)[0] if s["changed"]]
        assert [(s["function"], s["bytes"]) for s in changed] == [("own", "9090")], changed
        same({(s["address"], s["function"]) for s in ask(core, status=0)[0]}, {(s["address"], s["function"]) for s in sites},
             "the core")


@test("text: a line for each site, what has none and the flag to build with, the sum")
def _(folder):
    path = building.build(os.path.join(folder, "some"), SOURCE, "-fpatchable-function-entry=18,16", flags=("-O2",))
    done = fathom("trace", "--sites", path, status=0)
    lines = done.stdout.splitlines()
    listing = truth.Listing(path)
    assert f"{hex(listing.starts['leaf'])} leaf patchable 2 prefix 16" in lines, lines
    assert lines[-1] == "10 sites: 10 patchable" and len(lines) == 11, lines
    done = fathom("trace", "--sites", "/bin/true", status=1)
    assert done.stdout.splitlines() == ["no sites in /bin/true: build with -fpatchable-function-entry=18,16", "0 sites"], done


@test("queries: a name, a pattern, a line; one that has no site, one that does not exist")
def _(folder):
    path = building.build(os.path.join(folder, "some"), SOURCE, "-fpatchable-function-entry=18,16", flags=("-O2", "-g"))
    sites, _ = ask(path, "leaf", "l*", status=0)
    assert [s["function"] for s in sites if s["query"] == "leaf"] == ["leaf"], sites
    assert {s["function"] for s in sites if s["query"] == "l*"} == {"leaf", "local", "large", "loop"}, sites
    with open(SOURCE, encoding="ascii") as f:
        line = next(n for n, text in enumerate(f, 1) if "return leaf(b) + leaf(a);" in text)
    sites, _ = ask(path, f"sites.c:{line}", status=0)
    assert {s["function"] for s in sites} == {"local"}, sites
    done = fathom("trace", "--sites", path, "_start", "nobody", status=1)
    records, _ = query("trace", path, ["_start", "leaf"], "--sites", status=1)
    assert records[0].keys() == records[1].keys() and records[0]["reason"] == "no-site", records
    assert done.stdout.splitlines()[:2] == ["?? _start (no-site)", "?? nobody (no-such-symbol)"], done.stdout


@test("the kernel, a missing file, a missing option: refused in one line")
def _(_folder):
    assert "--sites" in refused("trace")
    refused("trace", "--sites", "/nonexistent")
    refused("trace", "--sites", "kernel")


sys.exit(SUITE.run())
