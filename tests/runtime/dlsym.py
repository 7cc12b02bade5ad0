# SPDX-License-Identifier: MIT
"""What dlsym() and dlvsym() answer in a process is what find puts first there."""
import os
import re
import shutil

import tap

import told
from ask import find, run
from building import build_text, core_of, need_32_bit
from finding import Asked, address, asked, build, dynamic, library, places
from running import Told
from suite import test


DLSYM_NAMES = ["malloc", "free", "memcpy", "strlen", "printf", "environ", "stdout", "main", "pthread_create",
               "dlsym", "qsort", "clock_gettime", "__vdso_clock_gettime", "_rtld_global", "nothing_like_it", "counted",
               "hidden_function", "over_only", "indirect", "versioned", "retired", "call_indirect", "exported_code"]


def check_default(program, names, skip=()):
    """Rank 0 is what dlsym(RTLD_DEFAULT) answers there."""
    for name in names:
        want = program.default(name)
        got = dynamic(program.pid, name)
        # dlsym() calls the resolver; where no slot holds its answer, we say so and no address.
        if got and got["type"] == "ifunc" and got["address"] is None and name in skip:
            assert got["reason"] == "unsupported" and got["resolver"], got
            continue
        assert (got and address(got)) == want, (name, got, want and hex(want))
    # Who wants the first only gets the same, whether all of them have such an answer or not.
    known = [name for name in names if program.default(name)]
    for wanted in (known, names):
        records, _ = find(program.pid, wanted)
        firsts = {r["query"]: r for r in reversed(records)}
        records, _ = find(program.pid, wanted, "--first")
        assert records == [firsts[name] for name in wanted], (records, firsts)


STYLES = [("PIE", "gcc", []), ("fixed addresses", "gcc", ["-no-pie"]), ("exported", "gcc", ["-rdynamic"]),
          ("lld", "clang", ["-fuse-ld=lld"]), ("gold", "gcc", ["-fuse-ld=gold"]),
          ("2 MiB pages", "gcc", ["-Wl,-z,max-page-size=0x200000"]),
          ("noseparate-code", "gcc", ["-Wl,-z,noseparate-code"]),
          ("code at 0x10000000", "gcc", ["-no-pie", "-Wl,-Ttext-segment=0x10000000"]),
          ("lld, segments that share pages", "clang", ["-fuse-ld=lld", "-Wl,-z,noseparate-code"]),
          ("bound at once", "gcc", ["-Wl,-z,now"]), ("bound lazily", "gcc", ["-Wl,-z,lazy"])]


def add_style(name, compiler, options):
    @test(f"dlsym's answers: {name}")
    def _(folder):
        with asked(folder, *options, compiler=compiler) as program:
            check_default(program, DLSYM_NAMES, skip=("memcpy", "strlen"))
            for static, place in program.places.items():
                records, _ = find(program.pid, static)
                assert place in [address(r) for r in records], (static, records)
            told = program.tell("tls")
            for name in ("thread_own", "thread_hidden"):
                records, _ = find(program.pid, name)
                want = {n: place for n, place in told.items() if n.startswith(name + ":")}
                assert {f"{name}:{r['tid']}": address(r) for r in records} == want and len(want) == 3, (records, want)


for style in STYLES:
    add_style(*style)


def add_library_style(name, compiler, options):
    @test(f"a library: {name}: exported, static, thread-local, in two namespaces")
    def _(folder):
        with asked(folder) as program, Told([told.build(folder, "told", "-ldl")]) as two:
            path = library(folder, "libversions.so", *options, compiler=compiler)
            for command in ("open", "space"):
                program.tell(f"{command} {path}")
                for query in ("versioned", "call_indirect"):
                    want = program.tell(f"of {query}")[query]
                    assert want in places(program.pid, f"libversions*:{query}")[f"libversions*:{query}"], query
                if command == "open":
                    want = program.tell("of library_thread_own")["library_thread_own"]
                    assert [address(r) for r in find(program.pid, "library_thread_own")[0]] == [want]
            path = told.library(folder, "lib.so", *options, compiler=compiler)
            first, second = two.tell(f"open {path}"), two.tell(f"space {path}")
            for query in first:
                assert set(places(two.pid, query)[query]) == {first[query], second[query]}, (query, first, second)


for style in [("pages of 2 MiB", "gcc", ["-Wl,-z,max-page-size=0x200000"]),
              ("linked to 0x10000000, as prelink does", "gcc", ["-Wl,-Ttext-segment=0x10000000"]),
              ("lld", "clang", ["-fuse-ld=lld"]),
              ("lld, segments that share pages", "clang", ["-fuse-ld=lld", "-Wl,-z,noseparate-code"]),
              ("gold", "gcc", ["-fuse-ld=gold"])]:
    add_library_style(*style)


@test("dlsym's answers: a function whose address a program at fixed addresses takes is its stub")
def canonical_stub(folder):
    source = '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n' \
        'int (*volatile p)(const char *);\n' \
        'int main(void) { p = puts; printf("puts 0x%lx\\ndone\\n", (unsigned long)dlsym(RTLD_DEFAULT, "puts"));' \
        'fflush(stdout); return getchar(); }\n'
    path = build_text(os.path.join(folder, "s"), source, "-no-pie", "-fno-pic", "-ldl")
    assert re.search(r" [1-9a-f]\w+ +0 FUNC +GLOBAL DEFAULT +UND puts|0{8,}40\w+ +0 FUNC +GLOBAL DEFAULT +UND puts",
                     run("readelf", "-W", "--dyn-syms", path)), "no stub stands for puts"
    with Told([path]) as program:
        got = dynamic(program.pid, "puts")
        assert address(got) == program.places["puts"] and got["source"] == "plt", (got, program.places)


@test("dlsym's answers: what is preloaded comes first, RTLD_LOCAL not at all, RTLD_GLOBAL last")
def interposed(folder):
    over = library(folder, "libover.so", source="over.c")
    versions = library(folder)
    with asked(folder, env={"LD_PRELOAD": over}) as program:
        check_default(program, DLSYM_NAMES, skip=("memcpy", "strlen"))
        records, _ = find(program.pid, "malloc")
        assert os.path.basename(records[0]["module"]) == "libover.so", records
        assert "libc.so.6" in {os.path.basename(r["module"]) for r in records[1:]}
        program.tell(f"open {versions}")
        check_default(program, ["versioned", "retired", "call_indirect"])
        records, _ = find(program.pid, "versioned")
        assert [(r["rank"], r["version"]) for r in records] == [(1, "V_2"), (2, "V_1")], records
        program.tell(f"global {versions}")
        check_default(program, ["versioned", "retired", "call_indirect", "indirect"])
        assert dynamic(program.pid, "versioned")["version"] == "V_2"


@test("dlsym's answers while libraries come and go: never another than the program's own")
def while_loading(folder):
    source = ("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n"
              "int main(int argc, char **argv) { dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);"
              "printf(\"stays 0x%lx\\ndone\\n\", (unsigned long)dlsym(RTLD_DEFAULT, \"stays\")); fflush(stdout);"
              "for (;;) dlclose(dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL)); }")
    path = os.path.join(folder, "loads")
    build_text(path, source, "-ldl")
    stays, goes = (build_text(os.path.join(folder, f"lib{name}.so"), f"int {name}(void) {{ return 1; }}", "-shared", "-fPIC")
                   for name in ("stays", "goes"))
    with Told([path, stays, goes]) as program:
        for _ in range(250):
            (record,), notes = find(program.pid, "stays", "--first", status=0)
            assert address(record) == program.places["stays"], record
            assert record["rank"] == 0 or "at work" in notes, (record, notes)


@test("dlsym's answers in one library, by its name: local ones, and those of another namespace")
def of_library(folder):
    versions = library(folder)
    over = library(folder, "libover.so", "-Wl,--no-as-needed", source="over.c")
    with asked(folder) as program:
        program.tell(f"open {versions}")
        for name in ("versioned", "indirect", "call_indirect"):
            want = program.tell(f"of {name}")[name]
            assert address(dynamic(program.pid, f"libversions*:{name}")) == want, name
        assert dynamic(program.pid, "libversions.so:retired") is None
        assert dynamic(program.pid, f"{folder}/*:call_indirect") is not None
        program.tell(f"space {over}")
        want = program.tell("of malloc")["malloc"]
        assert address(dynamic(program.pid, "libover.so:malloc")) == want
        # A file is called by its soname, too, where that is another.
        moved = os.path.join(folder, "libmoved.so.1.2.3")
        shutil.copy(library(folder, "libtold.so.1", source="versions.c"), moved)
        program.tell(f"open {moved}")
        want = program.tell("of versioned")["versioned"]
        for called in ("libtold.so.1", "libmoved.so.1.2.3", "libtold*", moved):
            assert address(dynamic(program.pid, f"{called}:versioned")) == want, called
        assert dynamic(program.pid, "libtold.so:versioned") is None
        # There are two of libc now, and the program's own answers.
        records, _ = find(program.pid, "libc.so.6:qsort")
        assert len({address(r) for r in records}) == 2, records
        check_default(program, DLSYM_NAMES, skip=("memcpy", "strlen"))


@test("dlvsym's answers: each version")
def dlvsym(folder):
    with asked(folder, env={"LD_PRELOAD": library(folder)}) as program:
        for name, version in [("versioned", "V_1"), ("versioned", "V_2"), ("retired", "V_1"),
                              ("memcpy", "GLIBC_2.2.5"), ("pthread_create", "GLIBC_2.2.5"),
                              ("pthread_create", "GLIBC_2.34"), ("versioned", "V_3"), ("qsort", "GLIBC_2.34")]:
            want = program.tell(f"version {name} {version}")[name] or None
            got = dynamic(program.pid, f"{name}@{version}")
            assert (got and address(got)) == want, (name, version, got, want)


@test("dlvsym's answers: a library without any versions, which is before")
def dlvsym_unversioned(folder):
    plain = os.path.join(folder, "libplain.so")
    build_text(plain, "int versioned(int x) { return -x; }", "-shared", "-fPIC", "-nostdlib")
    with asked(folder, env={"LD_PRELOAD": f"{plain} {library(folder)}"}) as program:
        for version in ("V_1", "V_2"):
            want = program.tell(f"version versioned {version}")["versioned"]
            assert address(dynamic(program.pid, f"versioned@{version}")) == want, version
            assert address(dynamic(program.pid, f"versioned@@{version}")) == want, version


@test("what a namespace has only once: not known where a library with RTLD_LOCAL may have been first")
def unique(folder):
    source = 'inline int only_one = ID; extern "C" int *get_one() { return &only_one; }'
    one, two = (os.path.join(folder, f"lib{i}.so") for i in "12")
    for number, path in enumerate((one, two)):
        build_text(path, source, "-std=c++17", "-shared", "-fPIC", f"-DID={number}", compiler="g++", language="c++", flags=())
    with asked(folder) as program:
        program.tell(f"open {one}")
        program.tell(f"global {two}")
        # dlsym() answers what is in the first, though that is none that it searches.
        assert program.default("only_one") == program.tell("of only_one")["only_one"]
        for query in ("only_one", "lib2.so:only_one"):
            got = dynamic(program.pid, query)
            assert got is None or address(got) == program.default("only_one"), got
    with asked(folder, env={"LD_PRELOAD": f"{one} {two}"}) as program:
        assert address(dynamic(program.pid, "only_one")) == program.default("only_one")


@test("32 bit: names, dlsym's answers and pointers of 4 bytes")
def thirty_two(folder):
    need_32_bit()
    sysroot = "/usr/i686-linux-gnu"
    loader = f"{sysroot}/lib/ld-linux.so.2"
    path = build(folder, "asked", "-ldl", "-pthread", compiler="i686-linux-gnu-gcc")
    with Asked([loader, "--library-path", f"{sysroot}/lib", path]) as program:
        for name, place in program.places.items():
            records, _ = find(program.pid, name)
            assert place in [address(r) for r in records], (name, records)
        check_default(program, ["malloc", "printf", "qsort", "nothing", "main"])
        records, _ = find(program.pid, "first", "--read", "ptr->str")
        assert records[0]["value"] == "first", records
        records, _ = find(program.pid, "first", "--read", "+4:*+8:i32[4]")
        assert records[0]["value"] == [5, 6, 7, 8], records
        told = program.tell("tls")
        records, _ = find(program.pid, "thread_own")
        assert {f"thread_own:{r['tid']}": address(r) for r in records} == \
            {n: a for n, a in told.items() if n.startswith("thread_own:")}, records


@test("a core: names, dlsym's answers, TLS and values, as they were in the process")
def core(folder):
    with asked(folder, env={"LD_PRELOAD": library(folder)}) as program:
        told = program.tell("tls")
        names = [*DLSYM_NAMES, "thread_own", "library_thread_own", "greeting", "first"]
        live, _ = find(program.pid, names)
        values, _ = find(program.pid, "first", "--read", "+8:**str")
        path = core_of(program.pid, folder)
        dead, _ = find(path, names)
        assert dead == live, [pair for pair in zip(dead, live) if pair[0] != pair[1]][:2]
        assert {address(r) for r in dead if r["query"] == "thread_own"} >= \
            {a for n, a in told.items() if n.startswith("thread_own:")}
        assert find(path, "first", "--read", "+8:**str")[0] == values and values[0]["value"] == "second", values
        records, _ = find(path, "greeting", "--read", "str")
        assert records[0]["value"] == "good day", records
