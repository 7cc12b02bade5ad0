#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "self": programs that have libfathom inside ask for their own names, and print what is wrong."""
import glob
import itertools
import json
import os
import re
import shutil
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import counting  # noqa: E402
import tap  # noqa: E402

from amounts import amount, cells  # noqa: E402
from ask import FATHOM, NOBODY, as_user, execute, run  # noqa: E402
from building import add_link, build_id, keep_debug, need_32_bit, plain, static_libraries  # noqa: E402

TOP = os.path.join(HERE, "..", "..")
PROGRAMS = os.path.join(HERE, "programs")
BUILD = os.environ["BUILD"]
LIBRARY = os.path.join(BUILD, "src", "libfathom.a")
SUITE = tap.Suite("self", "mount or become another user")
test = SUITE.test


def codecs():
    """The libraries that the archive needs, as it says itself."""
    wanted = {"libdeflate": "libdeflate_zlib_decompress", "zlib": "inflateInit2_", "libzstd": "ZSTD_createDStream",
              "liblzma": "lzma_stream_decoder", "liblz4": "LZ4F_createDecompressionContext"}
    names = run("nm", "-u", LIBRARY)
    needed = static_libraries(*(package for package, name in wanted.items() if name in names))
    return [*needed, *(["-liberty"] if "cplus_demangle" in names else [])]


def build(folder, name, *options, sources=None, compiler="gcc"):
    plain(LIBRARY, "")
    path = os.path.join(folder, name)
    sources = [os.path.join(PROGRAMS, s) for s in sources or [f"{name}.c"]]
    run(compiler, "-O1", "-g", "-I", os.path.join(TOP, "include"), *options, "-o", path, *sources, LIBRARY, *codecs(),
        "-ldl", "-lpthread")
    return path


def names(folder, *options, compiler="gcc"):
    return build(folder, "names", "-fno-exceptions", "-fno-rtti", *options, sources=["names.c", "names.cc"],
                 compiler=compiler)


def library(folder, name, *options):
    path = os.path.join(folder, name)
    run("clang" if "-fuse-ld=lld" in options else "gcc", "-O1", "-g", "-shared", "-fPIC", *options, "-o", path, os.path.join(PROGRAMS, "plugin.c"))
    return path


def check(*command, **options):
    done = execute(*command, **options)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines and lines[-1] == "done", \
        f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return lines[:-1]


def loader32(options):
    """What runs a 32-bit program: the cross compiler's C library is where no loader looks."""
    lib = "/usr/i686-linux-gnu/lib"
    if "-static" in options or os.path.exists("/lib/ld-linux.so.2"):
        return []
    return [f"{lib}/ld-linux.so.2", "--library-path", lib]


STYLES = [
    ("PIE", "gcc", ["-pie", "-fPIE"]),
    ("at fixed addresses", "gcc", ["-no-pie", "-fno-pie"]),
    ("static", "gcc", ["-static"]),
    ("static PIE", "gcc", ["-static-pie", "-fPIE"]),
    ("-rdynamic", "gcc", ["-rdynamic"]),
    ("lld", "clang", ["-fuse-ld=lld", "-fPIE"]),
    ("gold", "gcc", ["-fuse-ld=gold"]),
    ("pages of 2 MiB", "gcc", ["-Wl,-z,max-page-size=0x200000"]),
    ("without a build-id", "gcc", ["-Wl,--build-id=none"]),
]


def add_style(name, compiler, options):
    @test(f"every function is named: {name}")
    def _(folder):
        path = names(folder, *options, compiler=compiler)
        check(path)
        check(path, "full")


for style in STYLES:
    add_style(*style)


@test("every function is named: stripped, with a debug file that .gnu_debuglink names")
def debug_link(folder):
    path = names(folder)
    add_link(path, keep_debug(path))
    check(path)
    check(path, "full")
    # The test can fail: without that file static functions have no name.
    os.rename(path + ".debug", path + ".gone")
    done = execute(path)
    assert done.returncode == 1 and "static_code" in done.stdout, done.stdout


@test("every function is named: stripped, with a debug file that the build-id leads to", needs_root=True)
def debug_by_build_id(folder):
    path = names(folder, "-Wl,--build-id")
    number = build_id(path)
    by_id = f"/usr/lib/debug/.build-id/{number[:2]}"
    keep_debug(path)
    assert execute(path, text=False).returncode == 1
    script = (f'mount -t tmpfs none /usr/lib/debug && mkdir -p {by_id} && cp {path}.debug {by_id}/{number[2:]}.debug && '
              f'{path} && exec {path} full')
    done = execute("unshare", "-m", "sh", "-c", script)
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        raise tap.Skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.returncode == 0 and done.stdout == "done\ndone\n", done.stdout + done.stderr


@test("every function is named: stripped, with MiniDebugInfo")
def mini(folder):
    # Names only: its symbols are those of functions.
    path = names(folder, "-Wl,--build-id")
    run("objcopy", "--strip-debug", path, f"{folder}/mini")
    run("xz", "-k", f"{folder}/mini")
    run("strip", path)
    run("objcopy", f"--add-section=.gnu_debugdata={folder}/mini.xz", path)
    check(path)


@test("every function is named: its debug information is compressed")
def compressed(folder):
    for style in ("zlib", "zstd"):
        path = names(folder)
        run("objcopy", f"--compress-debug-sections={style}", path)
        check(path, "full")


@test("every function is named: the program was replaced by another after its start")
def replaced(folder):
    path = names(folder)
    other = os.path.join(folder, "other")
    with open(other + ".c", "w", encoding="ascii") as source:
        source.write("int main(void) { return 3; } int other_code(int x) { return x * 7; }")
    run("gcc", "-g", "-o", other, other + ".c")
    check("sh", "-c", f"exec 9<{path}; mv {other} {path}; exec /proc/self/fd/9")


@test("every function is named: the program was deleted after its start")
def deleted(folder):
    path = names(folder)
    check("sh", "-c", f"exec 9<{path}; rm {path}; exec /proc/self/fd/9")


@test("a function that others were folded into is called as the one whose lines it has")
def folded(folder):
    path = os.path.join(folder, "folded.so")
    sources = [os.path.join(HERE, "..", "fixtures", "src", source) for source in ("folded_a.c", "folded_b.c")]
    run("gcc", "-g", "-O1", "-fno-ipa-icf", "-ffunction-sections", "-fvisibility=protected", "-shared", "-fPIC",
        "-fuse-ld=gold", "-Wl,--icf=all", "-o", path, *sources)
    check(build(folder, "folded"), path)


@test("functions of libc and the vDSO are called as people know them")
def libc_names(folder):
    told = {}
    for line in check(build(folder, "libc", "-fno-builtin")):
        asked, name, address, module = line.split()
        told[asked] = (name, int(address, 16), module)
    for name in ("labs", "printf", "qsort", "__vdso_clock_gettime"):
        assert told[name][0] == name, told[name]
    # IFUNCs: what was chosen for this processor, by the symbols of the debug file.
    module = told["memcpy"][2]
    number = build_id(module)
    debug = f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug"
    if not os.path.exists(debug):
        raise tap.Skip("libc6-dbg is not that of the C library")
    symbols = {}
    for line in run("nm", debug).splitlines():
        fields = line.split()
        if len(fields) == 3:
            symbols.setdefault(int(fields[0], 16), set()).add(fields[2])
    for name, form in (("memcpy", "__mem(cpy|move)_"), ("strlen", "__strlen_")):
        got, address, _ = told[name]
        assert got in symbols[address] and re.match(form, got), f"{got} is none of {symbols[address]}"


def as_addr(record):
    """A record of `fathom addr --json` in the form that programs/random.c prints."""
    fields = [record["module_address"], record["symbol"] or "-", record["linkage_name"] or "-",
              hex(int(record["offset"] or 0)), record["source"] if record["symbol"] else record["reason"]]
    frames = record["frames"]
    # The command shows a frame where nothing is known but the symbol.
    if len(frames) == 1 and not frames[0]["file"]:
        frames = []
    for frame in frames:
        fields += [frame["function"] or "-", frame["file"] or "-", str(frame["line"] or 0), str(frame["column"] or 0)]
    return fields


def add_random(name):
    @test(f"random addresses are answered as `fathom addr` answers them: {name}")
    def _(folder):
        path = os.path.join("/usr/lib/x86_64-linux-gnu", name)
        if not os.path.exists(path):
            raise tap.Skip(f"{path} is not there")
        path = os.path.realpath(path)
        lines = check(build(folder, "random"), name, "3000")
        answered = [line.split("\t") for line in lines]
        records = [json.loads(line) for line in run(
            FATHOM, "addr", "--json", "--no-cache", path, input="\n".join(f[0] for f in answered) + "\n",
            status=(0, 1)).splitlines()]
        assert len(records) == 3000
        deep = 0
        for fields, record in zip(answered, records):
            expected = as_addr(record)
            deep += len(record["frames"]) > 1
            if fields[-1] == "cut":
                continue
            # printf writes 0x0 as 0.
            fields[3] = hex(int(fields[3], 16))
            if fields[6:-1] == ["-", "0", "0"]:
                del fields[5:9]
            assert fields[:-1] == expected, f"{fields}\n{expected}"
        assert deep > 50 or name != "libc.so.6", f"only {deep} with inlined calls: the test shows little"


for library_name in ("libc.so.6", "libstdc++.so.6"):
    add_random(library_name)


def add_cost(how, lookups, least, most):
    def text(functions):
        return "".join(f".globl f{i}\n.type f{i},@function\nf{i}: .fill 15,1,0x90\nret\n.size f{i},16\n" for i in range(functions)) + \
            '.section .note.GNU-stack,"",@progbits\n'

    @test(f"random places among 75,000 functions: from {least} to {most} instructions each, by {how}")
    def _(folder):
        program = build(folder, "many")
        costs = {}
        for functions in (1000, 75000):
            path = f"{folder}/lib{functions}.so"
            run("gcc", "-shared", "-nostdlib", "-o", path, "-x", "assembler", "-", input=text(functions))
            check(program, path, str(functions), how, str(lookups))
            # What happens once in a run, by the clock, is no part of a look-up: then it is counted again.
            for _ in range(3):
                few, many = (counting.instructions([program, path, functions, how, n]) for n in (1, 1 + lookups))
                costs[functions] = (many - few) / lookups
                if costs[functions] < most:
                    break
        assert least < costs[75000] < most, costs


# Names are printed and compared, too: some 800 instructions. A microsecond is 3,000 of them or more.
add_cost("fathom", 2000, 100, 1800)
# What the C library does reads all symbols: the test can fail.
add_cost("dladdr", 4, 100000, 10000000)


@test("libraries that come and go at one address, with build-ids")
def follow_ids(folder):
    check(build(folder, "follow"), library(folder, "one.so", "-Wl,--build-id"),
          library(folder, "two.so", "-DOTHER", "-Wl,--build-id"), "build-ids")


@test("libraries that come and go, linked to an address, by lld, or aligned to 2 MiB")
def follow_styles(folder):
    program = build(folder, "follow")
    for options in (["-Wl,-Ttext-segment=0x10000000"], ["-fuse-ld=lld"], ["-Wl,-z,max-page-size=0x200000"]):
        one, two = (library(folder, name, *more, *options, "-Wl,--build-id")
                    for name, more in (("one.so", []), ("two.so", ["-DOTHER"])))
        if "0x10000000" in options[0]:
            assert re.search(r"LOAD\s+0x0+ 0x0*10000000", run("readelf", "-lW", one)), "it is linked to 0"
        check(program, one, two, "build-ids")


@test("libraries that come and go at one address, without build-ids")
def follow(folder):
    check(build(folder, "follow"), library(folder, "one.so", "-Wl,--build-id=none"),
          library(folder, "two.so", "-DOTHER", "-Wl,--build-id=none"), "no-build-ids")


@test("a library that was replaced by another before it was looked at")
def swapped(folder):
    for user in ([], as_user(NOBODY) if not os.geteuid() else None):
        if user is None:
            break
        one, two = library(folder, "one.so", "-Wl,--build-id"), library(folder, "two.so", "-DOTHER", "-Wl,--build-id")
        os.chmod(folder, 0o777)
        check(*user, build(folder, "swapped"), one, two)


@test("code that the program has made: by its own perf map and its list for GDB, as long as they are there")
def own_jit(folder):
    check(build(folder, "own_jit"))


@test("a library that is marked to stay does not come to be loaded")
def half_loaded(folder):
    half = os.path.join(folder, "half.so")
    run("gcc", "-O1", "-shared", "-fPIC", "-Wl,-z,nodelete", "-o", half, os.path.join(PROGRAMS, "half.c"))
    check(build(folder, "half_loaded"), half, library(folder, "one.so", "-Wl,--build-id"))


@test("a library that is marked to stay is named without a look at its build-id")
def stays(folder):
    program = build(folder, "stays")
    check(program, library(folder, "stays.so", "-Wl,--build-id", "-Wl,-z,nodelete"))
    done = execute(program, library(folder, "goes.so", "-Wl,--build-id"), text=False)
    assert done.returncode == -signal.SIGSYS, done


@test("a library that is unloaded in the middle of a look-up")
def raced(folder):
    check(build(folder, "raced"), library(folder, "one.so", "-Wl,--build-id"))


@test("a library that was looked at from inside of dlopen() is not believed when only its file is mapped there")
def midway(folder):
    path = os.path.join(folder, "resolver.so")
    run("gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", path, os.path.join(PROGRAMS, "resolver.c"))
    check(build(folder, "midway"), path)


@test("what another loader has mapped is not believed to be there for good")
def own_loader(folder):
    one = library(folder, "one.so", "-Wl,--build-id")
    symbol = next(line.split()[0] for line in run("nm", one).splitlines() if line.endswith(" exported_by_one"))
    check(build(folder, "own_loader"), one, "0x" + symbol)


@test("a storm of signals over malloc, dlopen, dlclose, printf and refreshing: all as-safe functions, and they tell the truth")
def storm(folder):
    lines = check(build(folder, "storm"), library(folder, "one.so", "-Wl,--build-id"),
                  library(folder, "two.so", "-DOTHER", "-Wl,--build-id"), "4")
    print("\n".join("# " + line for line in lines))
    counts = {fields[0]: [int(n) for n in fields[1:]] for fields in (line.split() for line in lines[:-1])}
    as_safe = set()
    for path in glob.glob(os.path.join(TOP, "include", "fathom", "*.h")):
        with open(path, encoding="utf-8") as header:
            as_safe |= set(re.findall(r"Safety: as-safe(?:(?!\*/).)*\*/\s*FATHOM_API[^;(]*?(\w+)\s*\(", header.read(), re.S))
    assert set(counts) == as_safe and len(as_safe) >= 10, set(counts) ^ as_safe
    for name, (called, deepest) in counts.items():
        assert called > 500 and 0 < deepest < 8192, (name, called, deepest)
    assert counts["fathom_self_lookup"][1] > 500, "the stack was not measured"
    known, named = (int(word) for word in lines[-1].split()[1::2])
    assert known > 50 and 10 < named < known, (known, named)


def stepped(folder, compiler, source, *options):
    """What a program counts that steps through the code of @source in itself."""
    work = os.path.join(folder, "shapes.o")
    run(compiler, "-D_GNU_SOURCE", "-Dmain=shapes_main", *options, "-Wno-return-type", "-c", "-o", work,
        os.path.join(TOP, "tests", "stacks", "programs", source))
    run("objcopy", "--redefine-sym", "_Z11shapes_mainv=shapes_main", work)
    (line,) = check(build(folder, "stepped", "-Wl,-z,lazy", work, "-lm", "-lstdc++"))
    return dict(zip(line.split()[::2], map(int, line.split()[1::2])))


def add_stepped(compiler, level, pointer):
    @test(f"every instruction, unwound by the program itself: {compiler} {level} {pointer[2:]}")
    def _(folder):
        n = stepped(folder, compiler, "shapes.c", "-DSTEPS_ITSELF", level, pointer)
        assert n["walks"] == n["steps"] >= 20000 and n["calls"] >= 500 and n["wrong"] == 0, n


for cell in cells(("gcc", "clang"), ("-O0", "-O1", "-O2", "-O3", "-Os"), ("-fomit-frame-pointer", "-fno-omit-frame-pointer")):
    add_stepped(*cell)


def add_stepped_exceptions(compiler, level):
    @test(f"every instruction of exceptions, unwound by the program itself: {compiler} {level}")
    def _(folder):
        n = stepped(folder, compiler, "thrown.cc", level)
        assert n["steps"] - 1000 < n["walks"] < n["steps"] and n["walks"] > 60000 and n["thrown"] == 4 and n["wrong"] == 0, n


for cell in itertools.product(("g++", "clang++"), ("-O0", "-O2")):
    add_stepped_exceptions(*cell)


@test("other threads are held and unwound, by several threads at once: the calls that they are in, and they go on")
def others(folder):
    (line,) = check(build(folder, "others"), "300")
    print(f"# {line}")
    assert line.split()[:2] == ["held", "1200"], line


def add_shadow(options):
    @test(f"a shadow of the call stack at any instruction, in two threads: {' '.join(options)}")
    def _(folder):
        plain(LIBRARY, "")
        if "-mavx2" in options:
            tap.need_feature("avx2")
        work = os.path.join(folder, "shadowed.o")
        run("g++", *options, "-g", "-finstrument-functions", "-fno-optimize-sibling-calls", "-c", "-o", work,
            os.path.join(PROGRAMS, "shadowed.cc"))
        path = os.path.join(folder, "shadow")
        run("gcc", *options, "-g", "-I", os.path.join(TOP, "include"), "-o", path, os.path.join(PROGRAMS, "shadow.c"), work, LIBRARY,
            *codecs(), "-lstdc++", "-ldl", "-lpthread")
        (line,) = check(path, library(folder, "one.so"), "2")
        n = dict(zip(line.split()[::2], map(int, line.split()[1::2])))
        print(f"# {line}")
        assert n["samples"] > 500 and n["stable"] > 200 and n["transit"] > 20 and n["nested"] > 20, n
        assert n["frames"] > 4 * n["samples"] and n["torn"] < n["samples"] / 20, n


SHADOWED = (["-O0"], ["-O2"], ["-O3", "-fno-omit-frame-pointer"], ["-O1", "-fcf-protection=full", "-mavx2"])
for shadow_options in amount(SHADOWED, SHADOWED[1::2]):
    add_shadow(shadow_options)


@test("stacks that end or are damaged: an overflow, calls to no code, chains that loop, pages that are not there; libraries that were not prepared")
def corners(folder):
    late = os.path.join(folder, "late.so")
    run("gcc", "-O2", "-shared", "-fPIC", "-o", late, os.path.join(PROGRAMS, "late.c"))
    check(build(folder, "corners"), late)


@test("240 stacks that were overwritten or lost their outer pages are not whole, those of fibers, handlers and threads by hand are")
def ends(folder):
    check(build(folder, "ends", "-Wno-infinite-recursion"))


@test("a stack of 64 calls: instructions for each frame, about as many as libunwind needs, a tenth of what libgcc needs")
def cost_of_frames(folder):
    program = build(folder, "traced", "-fno-optimize-sibling-calls", "-ldl")
    costs = {}
    for tool in ("fathom", "libunwind", "libgcc"):
        frames, = check(program, tool, "2")
        few, many = (counting.instructions([program, tool, rounds]) for rounds in (10, 60))
        costs[tool] = (many - few) / 50 / int(frames)
    print("# instructions for each frame: " + ", ".join(f"{tool} {n:.0f}" for tool, n in costs.items()))
    assert 5 < costs["fathom"] < 1.3 * costs["libunwind"] and 10 * costs["fathom"] < costs["libgcc"], costs


@test("the example of a profiler prints whole stacks")
def profiler(folder):
    path = build(folder, "profile", "-Wall", "-Werror", sources=[os.path.join(TOP, "examples", "profile.c")])
    lines = run(path).splitlines()
    assert len(lines) >= 20 and all(re.fullmatch(r"_start;\S*main;.*main(;work)?(;.*)? 1", line) for line in lines), lines[:5]
    assert sum(line.endswith(";main;work 1") for line in lines) >= 15, lines[:5]


@test("nothing stays open; memory that is not there is not read; a child is named, too")
def quiet(folder):
    check(build(folder, "quiet"))


@test("with another user's rights, as set-user-ID programs have them", needs_root=True)
def set_user(folder):
    for options in (["-Wl,--build-id"], ["-static", "-Wl,--build-id"]):
        path = build(folder, "quiet", *options)
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
        for first in ("", "umount -l /proc && "):
            done = execute("unshare", "-m", "sh", "-c",
                           f"{first}exec {' '.join(as_user(65533, path, 'secure'))}")
            if "unshare:" in done.stderr or "umount:" in done.stderr:
                raise tap.Skip(f"no mount namespace here: {done.stderr.strip()}")
            assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr


@test("where process_vm_readv is forbidden")
def seccomp(folder):
    check(build(folder, "quiet"), "seccomp")


@test("without /proc")
def without_proc(folder):
    if os.geteuid():
        raise tap.Skip("only root can mount")
    for options in (["-Wl,--build-id"], ["-static", "-Wl,--build-id"]):
        path = build(folder, "quiet", *options)
        done = execute("unshare", "-m", "sh", "-c", f"umount -l /proc && ! test -e /proc/self && exec {path}")
        if "unshare" in done.stderr or "umount" in done.stderr:
            raise tap.Skip(f"no mount namespace here: {done.stderr.strip()}")
        assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr


@test("32 bit: the library is built, its tier is proven, every function is named, libraries come and go")
def thirty_two_bit(folder):
    plain(LIBRARY, "")
    # Kept for the next run: it takes half a minute.
    other = os.path.join(BUILD, "i686")
    if not os.path.exists(os.path.join(other, "build.ninja")):
        run("meson", "setup", other, TOP, "--cross-file", os.path.join(TOP, "packaging", "i686.ini"), "-Dcli=false",
            "-Dtests=false", "-Dbuildtype=debug")
    printed = run("ninja", "-C", other, "src/libfathom.a", "src/libfathom-safe.a")
    warnings = [line for line in printed.splitlines() if "warning:" in line]
    assert not warnings, "\n".join(warnings)
    run("python3", os.path.join(HERE, "..", "check_safe_tier.py"), other)
    need_32_bit()
    archive = os.path.join(other, "src", "libfathom.a")
    compiler = ["i686-linux-gnu-gcc", "-O1", "-g", "-I", os.path.join(TOP, "include")]
    for options in (["-pie", "-fPIC"], ["-no-pie", "-fno-pie"], ["-static", "-fno-pie"]):
        path = os.path.join(folder, "names")
        run(*compiler, "-DWITHOUT_CXX", *options, "-o", path, os.path.join(PROGRAMS, "names.c"), archive, "-ldl",
            "-lpthread")
        check(*loader32(options), path)
        check(*loader32(options), path, "full")
    path = os.path.join(folder, "follow")
    run(*compiler, "-o", path, os.path.join(PROGRAMS, "follow.c"), archive, "-ldl", "-lpthread")
    for name, option in (("one.so", []), ("two.so", ["-DOTHER"])):
        run("i686-linux-gnu-gcc", "-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id", *option, "-o",
            os.path.join(folder, name), os.path.join(PROGRAMS, "plugin.c"))
    check(*loader32([]), path, os.path.join(folder, "one.so"), os.path.join(folder, "two.so"), "build-ids")


def check_under_valgrind(*command):
    if not shutil.which("valgrind"):
        raise tap.Skip("valgrind is not installed")
    try:
        check("valgrind", "-q", "--error-exitcode=99", *command)
    except AssertionError as failure:
        # Its own reader gives up before the program starts.
        if "debuginfo reader" in str(failure):
            raise tap.Skip("this valgrind does not read the debug information of this compiler") from failure
        raise


@test("under valgrind")
def under_valgrind(folder):
    check_under_valgrind(build(folder, "quiet"))


@test("under valgrind, with lines")
def names_under_valgrind(folder):
    check_under_valgrind(names(folder), "full")


sys.exit(SUITE.run())
