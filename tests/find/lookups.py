# SPDX-License-Identifier: MIT
"""What tools that look up names in other processes got wrong: which files they search, which sections, what it costs."""
import os
import re
import shutil
import signal
import time

import counting
import tap

from ask import FATHOM, find, run
from building import add_link, add_minidebuginfo, build_id, build_text, debug_path, keep_debug, nm
from finding import address, asked, build, library, places
from running import Told, mapping_of, wait_for_state
from suite import PROGRAMS, test

PLACED = [("gcc, PIE", "gcc", []), ("gcc, at fixed addresses", "gcc", ["-no-pie"]), ("static", "gcc", ["-static"]),
          ("lld", "clang", ["-fuse-ld=lld"]), ("gold", "gcc", ["-fuse-ld=gold"])]
INTERPRETER = """
const char interpreter_version[] = "%s";
static int hidden_state = 7;
int *interpreter_state(void) { return &hidden_state; }
static __attribute__((noinline, used)) int hidden_eval(int x) { return x * 3 + hidden_state; }
int interpreter_eval(int x) { return hidden_eval(x) + 1; }
"""


def interpreter(path, version="3.1.2"):
    return build_text(path, INTERPRETER % version, "-shared", "-fPIC", "-Wl,--build-id")


def base_of(pid, path):
    """Where the first byte of a library, whose first segment is at 0, is mapped; None where it is not."""
    first = mapping_of(pid, path)
    return first and first.start


def value_of(path, name, *options):
    """By nm; of exported ones with -D."""
    return nm(path, *options)[name][0][0]


def add_files():
    """Which files are searched."""
    @test("an interpreter in a library of any name, and in any number of others: as dlsym has it there")
    def _(folder):
        there = {}
        with asked(folder) as program:
            for name, version in (("game-data.bin", "2.7.0"), ("plug-in(1)", "3.0.1"), ("x", "3.1.2")):
                path = interpreter(f"{folder}/{name}", version)
                program.tell(f"open {path}")
                there[program.tell("of interpreter_version")["interpreter_version"]] = (path, version)
                records, _ = find(program.pid, "interpreter_version", "--read", "str")
                assert {address(r): (r["module"], r["value"]) for r in records} == there, (records, there)
            assert len(there) == 3, there

    @test("an interpreter that is the program itself, whatever the program is called")
    def _(folder):
        source = INTERPRETER % "3.8.3" + '#include <stdio.h>\nint main(void) { printf("interpreter_version %p\\n' \
            'interpreter_state %p\\ndone\\n", (void *)interpreter_version, (void *)interpreter_state());\n' \
            'fflush(stdout); return getchar(); }\n'
        with Told([build_text(f"{folder}/editor", source)]) as told:
            records, _ = find(told.pid, "interpreter_version", "--read", "str")
            assert [(address(r), r["value"]) for r in records] == [(told.places["interpreter_version"], "3.8.3")], records
            assert places(told.pid, "hidden_state")["hidden_state"] == [told.places["interpreter_state"]]


def add_debug_files():
    def by_link(_folder, path, debug):
        add_link(path, debug)
        return []

    def by_build_id(folder, path, debug):
        os.rename(debug, debug_path(f"{folder}/debug", build_id(path)))
        return ["--debug-dir", f"{folder}/debug"]

    def mini(_folder, path, debug):
        add_minidebuginfo(path, debug)
        os.remove(debug)
        return []

    for way, put in (("a debug link", by_link), ("its build-id", by_build_id), ("MiniDebugInfo", mini)):
        @test(f"a process: static functions of a stripped library, whose symbols are found by {way}")
        def _(folder, put=put):
            path = interpreter(f"{folder}/interpreter.so")
            value = value_of(path, "hidden_eval")
            debug = keep_debug(path)
            with asked(folder) as program:
                program.tell(f"open {path}")
                # What it exports shows where it is.
                told = program.tell("of interpreter_eval")["interpreter_eval"]
                assert places(program.pid, "hidden_eval")["hidden_eval"] == [None]
            options = put(folder, path, debug)
            with asked(folder) as program:
                program.tell(f"open {path}")
                told = program.tell("of interpreter_eval")["interpreter_eval"]
                records, _ = find(program.pid, "hidden_eval", *options)
                bias = told - value_of(path, "interpreter_eval", "-D")
                assert [address(r) for r in records] == [bias + value], (records, hex(bias + value))


def add_values():
    """Which places are taken for a variable."""
    for style, compiler, options in PLACED:
        @test(f"variables without bytes in the file, behind .tbss, in .lbss and sections of their own: {style}")
        def _(folder, compiler=compiler, options=options):
            path = build(folder, "placed", *options, source=os.path.join(PROGRAMS, "placed.c"), compiler=compiler)
            sections = run("readelf", "-SW", path)
            nobits = re.findall(r"\] (\S+) +NOBITS", sections)
            assert nobits[0] == ".tbss" and {".bss", ".lbss"} < set(nobits), nobits
            with Told([path]) as told:
                names = sorted(n for n in told.places if n.startswith(("in_", "hidden_")))
                told.tell("set")
                records, _ = find(told.pid, names, "--read", "i64")
                assert [(r["query"], address(r)) for r in records] == [(n, told.places[n]) for n in names], records
                want = dict(in_tbss=101, in_bss=102, in_lbss=103, in_own=104, in_own_bss=105, hidden_bss=106)
                assert {r["query"]: r["value"] for r in records} == want, records

        @test(f"a version is what its symbol holds, not a text that looks like one: {style}")
        def _(folder, compiler=compiler, options=options):
            path = build(folder, "placed", *options, source=os.path.join(PROGRAMS, "placed.c"), compiler=compiler)
            with open(path, "rb") as f:
                looks = re.findall(rb"\d\.\d+\.\d+\x00", f.read())
            assert b"3.8.3\0" in looks and b"3.11.2\0" in looks, looks
            with Told([path]) as told:
                for target in (told.pid, path):
                    records, _ = find(target, "library_version", "--read", "str")
                    assert [r["value"] for r in records] == ["3.11.2"], records
                    records, _ = find(target, "version_number", "--read", "u32")
                    assert [r["value"] for r in records] == [0x030b02f0], records
                assert places(told.pid, "library_version")["library_version"] == [told.places["library_version"]]


def add_cost():
    @test("a name that a library exports costs the same among 75,000 others as among 100")
    def _(folder):
        counts = {}
        for n in (100, 75000):
            path = f"{folder}/lib{n}.so"
            text = "".join(f".globl f{i}\n.type f{i},@function\nf{i}: ret\n.size f{i},1\n" for i in range(n)) + '.section .note.GNU-stack,"",@progbits\n'
            run("gcc", "-shared", "-nostdlib", "-Wl,--hash-style=gnu", "-o", path, "-x", "assembler", "-", input=text)
            program = build_text(f"{folder}/p{n}", '#include <stdio.h>\n#include <dlfcn.h>\nint main(int n, char **words) {\n'
                                'void *l = dlopen(words[n - 1], RTLD_NOW | RTLD_GLOBAL);\n'
                                'printf("f77 %p\\ndone\\n", dlsym(l, "f77"));\nfflush(stdout); return getchar(); }\n')
            with Told([program, path]) as told:
                command = [FATHOM, "find", "--no-cache", "--first", "--exported", "--literal", "--threads", "1", str(told.pid), "f77"]
                assert f"{told.places['f77']:x}" in run(*command), hex(told.places["f77"])
                counts[n] = counting.instructions(command)
        # Not an instruction for each: 75,000 more names are no more than a part of all that a run does.
        assert counts[75000] < counts[100] * 1.1 and counts[75000] - counts[100] < 75000, counts


def add_change():
    @test("a process that is stopped while it opens and closes a library: what is mapped is found where it is")
    def _(folder):
        versions = library(folder)
        value = value_of(versions, "call_indirect", "-D")
        there = 0
        with asked(folder) as program:
            program.flood(f"global {versions}\nclose\n" * 20000)
            n = 0
            # On a busy machine the program may have no processor for so long.
            while n < 40 or (there < 3 and n < 4000):
                n += 1
                program.signal(signal.SIGSTOP)
                wait_for_state(program.pid, "T")
                base = base_of(program.pid, versions)
                got = [a for a in places(program.pid, "libversions*:call_indirect")["libversions*:call_indirect"] if a]
                assert got in ([], [base + value] if base else []), (got, base and hex(base))
                there += bool(got)
                program.signal(signal.SIGCONT)
                time.sleep(0.003)
        assert there >= 3, f"the library was there {there} times of {n}: the test shows little"


def add_roots():
    def check(program, path, outside):
        """The names of the library at @path, which is another outside of the process's namespace."""
        told = program.tell("of interpreter_eval")["interpreter_eval"]
        records, _ = find(program.pid, "interpreter_version", "--read", "str")
        assert [(r["module"], r["value"]) for r in records] == [(path, "9.9.9")], records
        assert places(program.pid, "interpreter_eval")["interpreter_eval"] == [told]
        back = run(FATHOM, "addr", "--names-only", "--no-cache", program.pid, hex(told))
        assert "interpreter_eval" in back, back
        assert value_of(outside, "interpreter_eval", "-D") != told & 0xfff, "the two are alike: the test shows nothing"

    def other(path):
        """A library with the same names elsewhere."""
        source = "\n".join(f"int filler{i}(int x) {{ return x + {i}; }}" for i in range(99)) + INTERPRETER % "1.1.1"
        return build_text(path, source, "-shared", "-fPIC", "-Wl,--build-id")

    @test("a file that is mounted over another of the same path, where only the process sees it", needs_root=True)
    def _(folder):
        tap.need_mount_namespaces()
        outside = other(f"{folder}/interpreter.so")
        interpreter(f"{folder}/inside.so", "9.9.9")
        script = f'mount --bind "{folder}/inside.so" "{outside}" && exec "$@"'
        with asked(folder, wrapper=["unshare", "-m", "sh", "-c", script, "sh"]) as program:
            program.tell(f"open {outside}")
            check(program, outside, outside)

    @test("a changed root, below which another file has the path of one outside", needs_root=True)
    def _(folder):
        outside = other(f"{folder}/interpreter.so")
        root = f"{folder}/root"
        for path in ("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            shutil.copy(os.path.realpath(path), root + path)
        os.makedirs(root + folder)
        interpreter(root + outside, "9.9.9")
        with asked(folder, root=root, wrapper=["chroot", root]) as program:
            program.tell(f"open {outside}")
            check(program, root + outside, outside)


for add in (add_files, add_debug_files, add_values, add_cost, add_change, add_roots):
    add()
