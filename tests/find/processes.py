# SPDX-License-Identifier: MIT
"""Names in processes: wherever their files are, whatever happens to them meanwhile, and beside what others say."""
import os
import re
import signal
import time

import tap

from ask import FATHOM, HANG_SECONDS, addr, fathom, find, refused, run
from building import build_text
from finding import Asked, address, asked, build, dynamic, library, places
from running import Running, Told, child_of, in_memory, mappings_of, wait_for_state
from suite import test


@test("static programs: their own symbols, IFUNCs through their slots")
def static_program(folder):
    source = "#include <stdio.h>\n#include <string.h>\nstatic char to[64];\n__attribute__((noinline)) int own(int x)" \
             "{ memcpy(to, \"abcdefgh\", (size_t)x); return to[0]; }\n" \
             "int main(int n, char **v) { printf(\"own 0x%lx\\n\", (long)own); printf(\"memcpy 0x%lx\\ndone\\n\"," \
             "(long)memcpy); fflush(stdout); return own(n) + getchar(); }"
    for kind in ("-static", "-static-pie"):
        path = build_text(os.path.join(folder, "static" + kind), source, "-fno-builtin", kind,
                          "-fPIE" if "pie" in kind else "-fno-pie")
        with Told([path]) as program:
            assert places(program.pid, "own")["own"] == [program.places["own"]], kind
            records, _ = find(program.pid, "memcpy")
            ifuncs = [r for r in records if r["type"] == "ifunc"]
            assert ifuncs and ifuncs[0]["address"], (kind, records)
            # Its address is that of its stub, which jumps to what was chosen.
            (back,), _ = addr(program.pid, [ifuncs[0]["address"]], "--names-only")
            assert re.match(r"(__)?mem(cpy|move)_", back["symbol"]), (kind, back, records)
            assert [r for r in records if r["rank"] == 0] == []


@test("perl: names, types and sizes as readelf has them, addresses by the map, text as perl has it")
def perl(_):
    with Running(["perl", "-e", "$| = 1; print qq(ready\\n); <STDIN>"]) as process:
        process.line()
        names = ["PL_bincompat_options", "Perl_sv_catpv_mg", "Perl_newSVpv"]
        records, _ = find(process.pid, names)
        # The first segment of a PIE or a library is at 0, and is mapped where its file begins.
        bias = next(m.start for m in mappings_of(process.pid) if m.path == records[0]["module"] and m.off == 0)
        for record in records[:len(names)]:
            symbols = run("readelf", "-W", "--dyn-syms", record["module"])
            m = re.search(rf"([0-9a-f]+)\s+(\d+) (\w+)\s+GLOBAL\s+\w+\s+\w+ {record['query']}$", symbols, re.M)
            assert m and int(m[1], 16) == int(record["module_address"], 16) and int(m[2]) == record["size"], record
            assert m[3].lower() == record["type"] and record["rank"] == 0
            assert address(record) == bias + int(m[1], 16), (record, hex(bias))
            (back,), _ = addr(process.pid, [record["address"]])
            assert (back["symbol"], back["offset"]) == (record["query"], 0), back
        # A text of perl's, which it also prints.
        said = run("perl", "-MConfig", "-e", "print join(q( ), Config::bincompat_options())")
        records, _ = find(process.pid, "PL_bincompat_options", "--read", "str")
        assert said and records[0]["value"].strip() == said, (records, said)


def add_python(layout, make, library):
    @test(f"python3, {layout}: _PyRuntime and Py_Version of the right object, and text that a pointer leads to")
    def _(folder):
        command = make(folder)
        script = "import sys; print(sys.hexversion, flush=True); input()"
        with Running([command, "-c", script]) as process:
            version = int(process.line())
            record = dynamic(process.pid, "_PyRuntime")
            assert record["type"] == "object" and record["size"] > 1000, record
            assert os.path.basename(record["module"]).startswith(library), record
            records, _ = find(process.pid, "Py_Version", "--read", "u64")
            assert records[0]["value"] == version and records[0]["module"] == record["module"], records
            records, _ = find(process.pid, "PyType_Type", "--read", "+24:*str")
            assert records[0]["value"] == "type", records


def with_libpython(folder):
    """Python as pyenv builds it: a small PIE, and all else in libpython."""
    version = run("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    source = "int Py_BytesMain(int, char **); int main(int n, char **words) { return Py_BytesMain(n, words); }"
    return build_text(os.path.join(folder, "python"), source, "-pie", f"-l:libpython{version}.so.1.0")


add_python("all in the program", lambda _: "/usr/bin/python3", "python3")


add_python("a PIE with libpython", with_libpython, "libpython3")


@test("addresses by gdb's info address, in a process")
def gdb_addresses(folder):
    with asked(folder) as program:
        names = ["qsort", "labs", "strtol", "getenv", "hidden_function", "main", "counted", "environ"]
        commands = [x for n in names for x in ("-ex", f"info address {n}")]
        out = run("gdb", "-q", "-nx", "-batch", "-p", program.pid, *commands, status=None)
        found = dict(re.findall(r'Symbol "(\w+)" is (?:.*?)(0x[0-9a-f]+)', out))
        assert len(found) > 5, out
        for name, theirs in found.items():
            assert int(theirs, 16) in places(program.pid, name)[name], (name, theirs)


@test("a library that is mapped late is waited for; one that never comes ends with a reason")
def late(folder):
    versions = library(folder)
    with asked(folder) as program:
        # It does not wait until its time is over.
        with Running([FATHOM, "find", "--wait", 100 * HANG_SECONDS, program.pid, "call_indirect"]) as waiting:
            time.sleep(0.3)
            assert waiting.is_running()
            program.tell(f"open {versions}")
            out, _ = waiting.process.communicate(timeout=HANG_SECONDS)
        assert waiting.process.returncode == 0 and "libversions.so" in out, out
        start = time.monotonic()
        records, _ = find(program.pid, "nothing_like_it", "--wait", "1", status=(1,))
        assert records[0]["reason"] == "no-such-symbol" and 0.9 < time.monotonic() - start


@test("a wrapper that runs another program late is waited for, across exec")
def late_exec(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    with Running(["sh", "-c", f"sleep 0.5; exec {path}"]) as process:
        records, _ = find(process.pid, "counted", "--wait", str(100 * HANG_SECONDS), "--read", "i64", status=(0,))
        assert records[0]["value"] == 42, records


@test("a process that ends while it is waited for: a clear error, at once")
def ended(_):
    with Running(["sleep", "0.5"]) as process:
        done = fathom("find", "--wait", 100 * HANG_SECONDS, process.pid, "nothing_like_it")
        assert done.returncode == 2 and "fathom:" in done.stderr, done


@test("a stopped process is answered")
def stopped(folder):
    with asked(folder) as program:
        program.signal(signal.SIGSTOP)
        wait_for_state(program.pid, "T")
        assert places(program.pid, "main")["main"] == [program.places["main"]]
        records, _ = find(program.pid, "thread_own")
        assert records[0]["tid"] == program.pid and records[0]["address"]


@test("under change: libraries that come and go, and the answer is true or there is none")
def changing(folder):
    versions = library(folder)
    names = ["call_indirect", "versioned", "library_thread_own"]
    with asked(folder) as program:
        program.tell(f"global {versions}")
        good = {n: program.default(n) for n in names[:2]}
        program.tell("close")
        script = "".join(f"global {versions}\nclose\n" for _ in range(3000))
        program.flood(script)
        answered = set()
        for _ in range(60):
            records, _ = find(program.pid, names[:2])
            for r in records:
                answered.add(r["rank"])
                if r["address"] and r["rank"] == 0:
                    low = good[r["query"]] & 0xfff
                    assert address(r) & 0xfff == low, (r, good)
        assert answered, answered


@test("a container: another mount and pid namespace, a library that is only there", needs_root=True)
def container(folder):
    tap.need_mount_namespaces()
    inside = os.path.join(folder, "inside")
    there = os.path.join(folder, "there")
    os.mkdir(inside)
    os.mkdir(there)
    path = build(folder, "asked", "-ldl", "-pthread")
    library(inside, "libversions.so")
    script = f"mount --bind {inside} {there} && LD_PRELOAD={there}/libversions.so exec {path}"
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    with Asked(command) as program:
        pid = child_of(program.pid)
        want = program.default("versioned")
        got = dynamic(pid, "versioned")
        assert address(got) == want and got["module"] == f"{there}/libversions.so", got
        for name, place in program.places.items():
            assert place in places(pid, name)[name], name
        assert not os.path.exists(f"{there}/libversions.so")


@test("deleted: the program and a library are gone from the disk, and are found all the same")
def deleted(folder):
    versions = library(folder)
    with asked(folder, env={"LD_PRELOAD": versions}) as program:
        want = program.default("versioned")
        os.unlink(versions)
        os.unlink(os.path.join(folder, "asked"))
        library(folder, "libversions.so", "-O0")
        assert address(dynamic(program.pid, "versioned")) == want
        assert places(program.pid, "main")["main"] == [program.places["main"]]


@test("a program that is only in memory (memfd)")
def memfd(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    with in_memory(path) as fd, Told([f"/proc/self/fd/{fd}"], pass_fds=[fd]) as program:
        for name, place in program.places.items():
            assert place in places(program.pid, name)[name], name


@test("libffi's trampolines: a page of it that is mapped twice does not move it")
def trampolines(_):
    # Debian's libffi is built without trampolines of its own: what they do, the program does itself. The first
    # mapping is below the library, as py-spy's report has it.
    script = ("import ctypes, mmap, os\nF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)\nf = F(lambda x: x)\n"
              "lib = ctypes.CDLL('libffi.so.8')\n"
              "map = ctypes.CDLL(None).mmap\nmap.restype = ctypes.c_void_p\n"
              "map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\n"
              "line = next(l for l in open('/proc/self/maps') if 'libffi' in l and 'r-xp' in l).split()\n"
              "fd = os.open(line[5], os.O_RDONLY)\n"
              # MAP_FIXED_NOREPLACE: what is mapped already stays, and the next place is tried.
              "def place(at):\n"
              "    while map(at, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE | 0x100000, fd,\n"
              "              int(line[2], 16) + 4096) != at:\n"
              "        at += 1 << 16\n"
              "    print(hex(at))\n"
              "place(0x20000000)\n"
              "place(int(line[0].split(chr(45))[1], 16) + (1 << 20) & ~0xffff)\n"
              "print(hex(ctypes.cast(lib.ffi_call, ctypes.c_void_p).value), flush=True)\ninput()\n")
    with Running(["/usr/bin/python3", "-c", script]) as process:
        low, high, want = (int(process.line(), 16) for _ in range(3))
        assert low < want < high, "the page is not on both sides: the test shows nothing"
        got = places(process.pid, "libffi*:ffi_call")["libffi*:ffi_call"]
        # Where a second mapping holds the function, it is that of the same bytes.
        assert got[0] == want and len(got) <= 3, (got, want)
        (back,), _ = addr(process.pid, [want])
        assert (back["symbol"], back["offset"]) == ("ffi_call", 0), back


@test("the number of an ended process, a kernel thread: what and why")
def not_ours(_):
    assert refused("find", 2, "main").startswith("fathom: 2: ")
    assert "no such process" in refused("find", 4194303, "main")
