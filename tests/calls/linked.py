# SPDX-License-Identifier: MIT
"""Tests of programs by how they are linked, and of what they bring of their own: allocators, resolvers, destructors."""
import glob
import os
import shutil
import signal

import building

from ask import execute, run
from traced import CLANG, SHAPE_CALLS, SITES, build, calls, counts, test, trace


def shape_calls(events):
    return [(name, depth) for name, depth, _ in calls(events, "main", "top", "middle", "leaf")]


for LINKER in ("bfd", "gold", "lld", "mold"):
    @test(f"linked by {LINKER}: sections that nothing uses left out, at link time optimised, static or not: the same calls")
    def _(folder, linker=LINKER):
        # Clang looks for ld.lld behind its own folder; gcc for a program of that name.
        os.symlink(shutil.which("ld.lld"), os.path.join(folder, "ld.lld"))
        found = [f"-B{folder}", f"-fuse-ld={linker}"]
        for compiler, options in (("gcc", ["-pie"]), ("gcc", ["-no-pie", "-fno-pie"]), ("gcc", ["-static"]), ("gcc", ["-static-pie", "-fpie"]),
                                  ("gcc", ["-ffunction-sections", "-Wl,--gc-sections"]), (CLANG, ["-ffunction-sections", "-Wl,--gc-sections"]),
                                  ("gcc", ["-flto", "-fno-ipa-cp"]), (CLANG, ["-flto"])):
            # One compiler's bytecode is not the other's linker's. Gold makes no static-PIE programs, and leaves the tables of sites out
            # with what nothing uses.
            if "-flto" in options and (compiler == "gcc") != (linker != "lld"):
                continue
            if linker == "gold" and {"-static-pie", "-Wl,--gc-sections"} & set(options):
                continue
            path = build(folder, "shapes.c", *found, *options, compiler=compiler, flags=["-O1", SITES])
            # Static-PIE programs that mold 2.37 makes for glibc 2.41 die alone, too.
            if linker == "mold" and "-static-pie" in options and execute(path).returncode == -signal.SIGSEGV:
                continue
            out, events, done = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
            assert out == "45\n", (compiler, options, out)
            assert shape_calls(events) == SHAPE_CALLS, (compiler, options, events, done.stderr)


@test("stripped: names are those of the debug file, or its place in the file")
def _(folder):
    path = build(folder, "shapes.c", flags=["-O1", "-g", SITES])
    places = {name: found[0][0] for name, found in building.nm(path).items()}
    debug = building.keep_debug(path)
    building.add_link(path, debug)
    _, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
    assert shape_calls(events) == SHAPE_CALLS, events
    os.unlink(debug)
    _, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
    found = [e for e in events if e["type"] == "call"]
    known = [places[name] for name, _ in SHAPE_CALLS]
    assert len(found) == len(known), events
    assert [e["depth"] for e in found] == [depth for _, depth in SHAPE_CALLS]
    for e, place in zip(found, known):
        assert e["function"].startswith(f"func@[{place:#x}.."), (e, hex(place))


@test("resolvers of a program are recorded: they run while it is relocated")
def _(folder):
    for options in (["-pie", "-fpie"], ["-no-pie", "-fno-pie"], ["-static"], ["-static-pie", "-fpie"], ["-pie", "-fpie", "-Wl,-z,now"]):
        path = build(folder, "chosen.c", *options, flags=["-O1", SITES])
        out, events, _ = trace(path, log=os.path.join(folder, "log"), options=["--no-fold"])
        # 3 + 2 + 4 + 2
        assert out == "11\n", out
        # Both names are of the same place.
        found = ["resolve" if name == "chosen" else name for name, *_ in calls(events)]
        found = [name for name in found if name in ("resolve", "decide", "main", "other", "one")]
        assert found == ["resolve", "decide", "main", "other", "other"], (options, found)


@test("a program's own malloc(), destructors of threads and of the program: each call, counted by the program too")
def _(folder):
    for compiler, options in (("gcc", []), ("gcc", ["-static"]), (CLANG, [])):
        path = build(folder, "late.c", "-pthread", *options, compiler=compiler, flags=["-O1", "-fno-builtin", SITES])
        out, events, _ = trace(path, log=os.path.join(folder, "log"))
        words = out.split()
        expected = {name: int(n) for name, n in zip(words[::2], words[1::2])}
        # 20 threads, 500 rounds
        assert expected["realloc"] == 10000 and expected["give_back"] == 20, out
        total = counts(events)
        assert {name: total[name] for name in expected} == expected, (compiler, options, total)


@test("allocators that are preloaded: the same calls")
def _(folder):
    libraries = [found for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4") for found in glob.glob(f"/usr/lib/x86_64-linux-gnu/{name}")]
    assert len(libraries) == 2, libraries
    path = build(folder, "twin.c", "-pthread", flags=["-O1", SITES])
    _, events, _ = trace(path, log=os.path.join(folder, "log"))
    expected = counts(events)
    for library in libraries:
        out, events, _ = trace("env", f"LD_PRELOAD={library}", path, log=os.path.join(folder, "log"))
        assert out == run(path), out
        found = counts(e for e in events if e["module"] == path)
        assert {name: found[name] for name in expected} == expected, (library, found, expected)
