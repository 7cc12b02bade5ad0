# SPDX-License-Identifier: MIT
"""Tests of hooks of a program's own functions, and of changes of its own code: <fathom/hook.h>."""
import ctypes
import os
import re
import subprocess

import building
from amounts import amount
from ask import FATHOM, execute
from traced import CLANG, PROGRAMS, SITES, build, test

LIBRARIES = os.path.join(os.environ["BUILD"], "src")
INCLUDE = os.path.join(PROGRAMS, "..", "..", "..", "include")


def program(folder, *options, source="hooks.c", compiler="gcc", flags=("-O1", SITES), out="hooks"):
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    return build(folder, source, *options, f"-I{INCLUDE}", "-rdynamic", f"-L{LIBRARIES}", "-lfathom", f"-Wl,-rpath,{LIBRARIES}", "-pthread",
                 compiler=compiler, flags=("-g", *flags), out=out)


# As the source has it: top(3) is middle(3) + 3 + middle(6), and middle(n) is leaf(n) + leaf(n + 1) * 2, where leaf(n) is n + 1.
RESULT = 4 + 5 * 2 + 3 + 7 + 8 * 2
ENTRIES = ["top(3) < calls", "middle(3) < top", "leaf(3) < middle", "leaf(4) < middle", "middle(6) < top", "leaf(6) < middle", "leaf(7) < middle"]

# Flags, and what the compiler leaves in main's place; clang knows no function without a site among those of -pg and XRay.
SHAPES = [
    ("gcc", ("-O1", SITES)), ("gcc", ("-O2", SITES, "-fcf-protection=full")), ("gcc", ("-O1", "-fpatchable-function-entry=5")),
    ("gcc", ("-O1", "-fpatchable-function-entry=9,0", "-static-libgcc")), ("gcc", ("-O1", "-fpatchable-function-entry=7,5")),
    ("gcc", ("-O1", "-pg")), ("gcc", ("-O1", "-pg", "-mfentry")), ("gcc", ("-O1", "-pg", "-mfentry", "-mrecord-mcount")),
    ("gcc", ("-O1", "-fno-pie", "-no-pie", "-pg", "-mnop-mcount", "-mrecord-mcount")),
    ("gcc", ("-O1", "-fno-pie", "-no-pie", "-pg", "-mfentry", "-mnop-mcount", "-mrecord-mcount")),
    (CLANG, ("-O1", SITES)), (CLANG, ("-O1", "-fpatchable-function-entry=5")), (CLANG, ("-O1", "-pg", "-mfentry")),
    (CLANG, ("-O1", "-fxray-instrument", "-fxray-instruction-threshold=1")),
]


@test("hooks: each shape of an entry: the calls, with arguments and callers, until switched off, switched on, removed; and the text is what it was")
def _(folder):
    for compiler, flags in SHAPES:
        path = program(folder, compiler=compiler, flags=flags)
        done = execute(path, "calls", "0", env=os.environ | {"GMON_OUT_PREFIX": os.path.join(folder, "gmon")}, cwd=folder, status=0)
        lines = done.stdout.splitlines()
        # Functions of the test itself have sites, too, where the compiler has no way to leave them out.
        wanted = [line for line in lines[1:] if line[0] == "=" or line.split()[1].split("(")[0] in ("top", "middle", "leaf")]
        # The caller's name is not known where it is static.
        heads = [line.replace("(null)", "calls") for line in wanted]
        expected = [f"0 {e} right" for e in ENTRIES] + [f"= {RESULT}", f"= {RESULT}", "0 leaf(1) < calls right", "= 2", f"= {RESULT} changed same"]
        assert heads == expected, (compiler, flags, lines)


@test("hooks: returns, where sites record them, with the value that is returned")
def _(folder):
    for compiler, flags in ("gcc", ("-O1", "-fno-pie", "-no-pie", "-pg", "-mfentry", "-mrecord-mcount", "-minstrument-return=nop5", "-mrecord-return")), \
                           (CLANG, ("-O1", "-fxray-instrument", "-fxray-instruction-threshold=1")):
        path = program(folder, compiler=compiler, flags=flags)
        lines = execute(path, "calls", "2", "middle", cwd=folder, status=0).stdout.splitlines()
        both = ["0 middle(3) < top right", f"1 middle({4 + 5 * 2}) < top right", "0 middle(6) < top right", f"1 middle({7 + 8 * 2}) < top right"]
        assert lines == ["3 0" if len(lines) and lines[0] == "3 0" else "2 0", *both, f"= {RESULT}", f"= {RESULT}", "= 2", f"= {RESULT} changed same"], lines


@test("hooks: queries choose functions; programs that may not have memory that was writable and is executable have hooks, too")
def _(folder):
    path = program(folder)
    for query, names in ("leaf", ["leaf"]), ("mid*", ["middle"]), ("nothing_such", []):
        lines = execute(path, "calls", "0", query, status=0).stdout.splitlines()
        assert lines[0] == f"{len(names)} 0", lines
        told = [line.split()[1].split("(")[0] for line in lines[1:] if line[0] == "0"]
        assert set(told) == set(names), (query, lines)
        assert lines[-1] == f"= {RESULT} {'changed' if names else 'same'} same", lines
    # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: memory that was writable can never be executed.
    libc = ctypes.CDLL(None, use_errno=True)

    def deny():
        assert libc.prctl(65, 1, 0, 0, 0) == 0
    if libc.prctl(66, 0, 0, 0, 0) < 0:
        return
    done = subprocess.run([path, "calls", "0", "leaf"], capture_output=True, text=True, preexec_fn=deny, check=False)
    assert done.returncode == 0 and done.stdout.splitlines()[1] == "0 leaf(3) < middle right", done


@test("hooks: gdb has the names of functions that lie between hooked ones, and the callers at jumps in front of these")
def _(folder):
    # Without debug information it has names by sections alone.
    path = program(folder, source="between.c", flags=("-O1", "-g0", "-fpatchable-function-entry=7,5"))
    text = execute("gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break between", "-ex", "run", "-ex", "bt",
                   "-ex", "x/i between", "-ex", "break *(second - 5)", "-ex", "continue", "-ex", "bt", path, status=0).stdout
    lines = [re.sub("0x[0-9a-f]+ in ", "", line) for line in text.splitlines() if line[0:1] == "#"]
    assert [line.split()[1] for line in lines] == ["between", "main", "??", "main"], text
    assert "<between>:" in text and "\n3\n" not in text, text


@test("hooks: 100 threads x 20,000 calls: each is counted once")
def _(folder):
    path = program(folder)
    # Each call of top() has seven, of functions with sites.
    calls = 20000 // 7
    out = execute(path, "sums", "100", str(calls), status=0).stdout
    assert out == f"{100 * calls * 7}\n", out


@test(f"hooks: added, switched and removed {amount(100)} times while four threads call: no call after that, no wrong result, and the text is what it was")
def _(folder):
    for flags in ("-O1", SITES), ("-O1", "-fpatchable-function-entry=5"):
        path = program(folder, flags=flags)
        out = execute(path, "toggle", str(amount(100)), status=0).stdout
        assert out == "0 wrong\n", out


@test(f"hooks: {amount(7813) * 128:,} sites switched under load, at each offset of a cache line, slots of five bytes and of two")
def _(folder):
    path = program(folder, source="lines.c", out="lines")
    slots = [v % 64 for name, found in building.nm(path).items() if name[0] == "f" and name[1:].isdigit() for v, _ in found]
    assert sorted(slots) == sorted(2 * list(range(64))), slots
    # 128 sites in each of the rounds.
    out = execute(path, str(amount(7813)), status=0).stdout
    assert out == "128\n0 wrong\n", out


@test("hooks: random registers, flags, vectors, masks and x87 are equal behind a hook function that spoils them all")
def _(folder):
    path = program(folder)
    out = execute(path, "registers", "2000", status=0).stdout
    assert out == "0 wrong of 2000\n", out


@test("hooks: libgcc finds the hooked function and its callers from the hook function")
def _(folder):
    for compiler, flags in (("gcc", ("-O1", SITES)), ("gcc", ("-O1", "-pg")), (CLANG, ("-O1", SITES, "-fno-omit-frame-pointer"))):
        path = program(folder, compiler=compiler, flags=flags)
        out = execute(path, "stack", "0", "leaf", cwd=folder, status=0).stdout
        assert out == 4 * "leaf middle top main \n", (flags, out)


@test("hooks: single steps through a hooked call: at each instruction libgcc, fathom_unwind() and gdb find the callers")
def _(folder):
    path = program(folder)
    out = execute(path, "steps", status=0).stdout
    assert out == "6 0 0 stepped\n", out
    script = os.path.join(folder, "step.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write("""
import gdb
for line in "set pagination off", "set debuginfod enabled off", "break some", "run sums 1 1", "delete":
    gdb.execute(line)
CHAIN = ["leaf", "middle", "top", "some"]
deep, wrong, n = 0, [], 0
while n < 5000:
    names, frame = [], gdb.newest_frame()
    while frame:
        names.append(frame.name())
        frame = frame.older()
    if "some" not in names:
        break
    own = [name for name in names if name in CHAIN]
    n += 1
    deep += own == CHAIN
    if own != CHAIN[4 - len(own):]:
        wrong.append((hex(gdb.newest_frame().pc()), names))
    gdb.execute("stepi", to_string=True)
print("steps", "enough" if 500 < n < 5000 and deep > 300 else (n, deep), wrong)
""")
    env = os.environ | {"LD_LIBRARY_PATH": LIBRARIES}
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", script, path], capture_output=True, text=True, env=env, check=False)
    assert "\nsteps enough []\n" in done.stdout, (done.stdout[-2000:], done.stderr[-2000:])


@test("hooks: a hook function's own calls are not hooked; a second hook finds the sites taken; a child of fork() has its own")
def _(folder):
    path = program(folder)
    lines = execute(path, "corners", status=0).stdout.splitlines()
    # leaf() is hooked: of middle() and top(), with `probed`, there are three more sites.
    assert lines == ["1 2 3 1", "2 0 2", "2 0 0 2"], lines


@test("hooks: a program that is traced, with more than one thread, is told so, and is unchanged")
def _(folder):
    path = program(folder)
    log = os.path.join(folder, "log")
    done = subprocess.run([FATHOM, "trace", "--only", "nobody", "--log", log, "--", path, "toggle", "1"], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("not: "), done
    assert "ptrace" in done.stdout and done.stdout.endswith("\n0 wrong\n") and done.returncode == 0, done


@test("code that a program changes: exit() becomes a breakpoint, which is reported; functions are rewritten while threads call them")
def _(folder):
    path = program(folder)
    done = subprocess.run([path, "morph"], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "0\ntrap at exit\n" and done.returncode == 7, done
    out = execute(path, "rewrite", "100", status=0).stdout
    assert out == "0 wrong\n", out
