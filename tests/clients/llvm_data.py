# SPDX-License-Identifier: MIT
"""Requests that need more than addresses of code in one linked file, beside llvm-symbolizer: variables of
relocatable files, merged and tagged ones, all symbols of a name, a package of split debug files."""
import itertools
import os
import re
import shutil
import subprocess

import ask
import tools

from llvm_cases import compare, report

STYLES = ([], ["--output-style=GNU"], ["--output-style=JSON"], ["--verbose"], ["-a"])
VARIABLES = """int first = 3; __attribute__((used)) static int second[2] = { 4 }; long zero[3];
__attribute__((used)) static char small; const char *const text = "text";
"""
# LLVM would call it by what starts at 0, too.
WITH_CODE = VARIABLES + "int *use(void) { return &second[small + first + first + first]; }\n"
MERGED = """static int first; static int second; static long third; static int fourth[3];
int get(int i) { return first + second + (int)third + fourth[i]; }
void set(int a, int b) { first = a; second = b; third = a + b; fourth[a] = b; }
void _start(void) { set(1, 2); get(1); }
"""
TAGGED = "int tagged = 5; static int other[4] = { 1 }; int use(int i) { return other[i & 3] + tagged; }\n"
TWINS = ["static int twin(int x) { return x * 3 + 1; }\nint one(int x) { return twin(x); }\n",
         "static int twin(int x) { return x * 5 + 2; }\nint one(int);\nint main(int c, char **v) { return twin(c) + one(c); }\n"]
AARCH64 = ["clang", "--target=aarch64-linux-gnu", "-g", "-c"]


def folder_with(name, **sources):
    folder = os.path.join(tools.FOLDER, name)
    os.makedirs(folder)
    for source, text in sources.items():
        with open(os.path.join(folder, f"{source}.c"), "w", encoding="ascii") as file:
            file.write(text)
    return folder


def symbols(folder, path):
    return {w[-1]: int(w[0], 16) for w in map(str.split, ask.run("nm", path, cwd=folder).splitlines()) if len(w) == 3}


def without_places(real, own):
    """@own with the places of @real: of several variables at one address LLVM takes any for the place."""
    pairs = itertools.zip_longest(real.split(b"\n"), own.split(b"\n"), fillvalue=b"")
    return b"\n".join(r if re.fullmatch(rb"\?\?:\?|.*variables\.c:\d", o) else o for r, o in pairs)


def check_relocatable():
    """LLVM lays all sections over each other and takes the largest of what starts last, functions included."""
    folder = folder_with("relocatable", variables=VARIABLES, code=WITH_CODE)
    ask.run("gcc", "-g", "-c", "code.c", cwd=folder)
    own = tools.run(tools.OURS, ["-e", "code.o", "DATA 0"], cwd=folder)[0]
    assert own.startswith(b"zero\n0 24\n") and b"code.c:1" in own, own
    for i, build in enumerate((["gcc", "-g", "-O0"], ["clang", "-g", "-O1", "-fdata-sections"], ["gcc", "-O1"])):
        path = f"out{i}.o"
        ask.run(*build, "-c", "-o", path, "variables.c", cwd=folder)
        text = "".join(f"DATA {path} {a:#x}\n" for a in range(0x20)).encode()
        report([compare(path, style, text, folder, without_places) for style in STYLES])
        # Of each name that nm has: where it is, and none where we have laid the section.
        for name, start in symbols(folder, path).items():
            out = tools.run(tools.OURS, ["-e", path, f"DATA {start:#x}"], cwd=folder)[0].decode().splitlines()
            assert int(out[1].split()[0]) == start, (name, start, out)


def check_merged():
    folder = folder_with("merged", merged=MERGED)
    for version in (4, 5):
        ask.run(*AARCH64, "-O3", f"-gdwarf-{version}", "-mllvm", "-aarch64-enable-global-merge", "merged.c", cwd=folder)
        ask.run("ld.lld", "-o", "out", "merged.o", cwd=folder)
        assert "DW_OP_plus_uconst" in ask.run("llvm-dwarfdump", "out", cwd=folder)
        first = symbols(folder, "out")["first"]
        text = "".join(f"DATA {a:#x}\n" for a in range(first, first + 0x1c)).encode()
        report([compare("merged", [*style, "-e", "out"], text, folder) for style in STYLES])


def check_tagged():
    folder = folder_with("tagged", tagged=TAGGED)
    ask.run("clang", "--target=aarch64-linux-android30", "-fsanitize=hwaddress", "-g", "-O1", "-c", "tagged.c",
            cwd=folder)
    ask.run("ld.lld", "-shared", "-z", "notext", "--unresolved-symbols=ignore-all", "-o", "out", "tagged.o",
            cwd=folder)
    known = symbols(folder, "out")
    assert all(known[name] >> 56 for name in ("tagged", "other")), known
    places = [known[name] & (1 << 56) - 1 for name in ("tagged", "other")]
    text = "".join(f"DATA {a:#x}\n" for place in places for a in range(place, place + 4)).encode()
    report([compare("tagged", [*style, "-e", "out"], text, folder) for style in STYLES])


def check_all_symbols():
    folder = folder_with("twins", a=TWINS[0], b=TWINS[1])
    ask.run("gcc", "-g", "-O0", "-o", "out", "a.c", "b.c", cwd=folder)
    lines = [line.split()[0] for line in ask.run("nm", "out", cwd=folder).splitlines() if line.endswith(" twin")]
    assert len(lines) == 2, lines
    for style in STYLES:
        report([compare("twins", [*style, "-e", "out"], b"twin\ntwin+3\ntwin+0x1000\none\nmain+4\nnothing\n", folder)])
    out = tools.run(tools.OURS, ["-e", "out", "twin"], cwd=folder)[0].decode()
    assert out.count("a.c:1:") == out.count("b.c:1:") == 1, out


def check_package():
    folder = folder_with("package", a=TWINS[0], b=TWINS[1])
    for version in (4, 5):
        ask.run("clang", "-g", "-O0", f"-gdwarf-{version}", "-gsplit-dwarf", "-c", "a.c", "b.c", cwd=folder)
        ask.run("clang", "-o", "out", "a.o", "b.o", cwd=folder)
        ask.run("llvm-dwp", "-e", "out", "-o", "elsewhere.dwp", cwd=folder)
        for name in ("a.dwo", "b.dwo"):
            os.unlink(os.path.join(folder, name))
        known = symbols(folder, "out")
        text = "".join(f"{known[name] + i:#x}\n" for name in ("one", "main") for i in range(8)).encode()
        own, _, _ = tools.run(tools.OURS, ["--dwp=elsewhere.dwp", "-e", "out"], text, cwd=folder)
        assert own.count(b"a.c:2:") == own.count(b"b.c:3:") == 8, own
        report([compare("package", [*style, f"--dwp={path}", "-e", "out"], text, folder)
                for style in STYLES[:3] for path in ("elsewhere.dwp", os.path.join(folder, "elsewhere.dwp"))])


def opened(folder, arguments, requests):
    """How often each file of @folder was opened for @requests, which are asked one after the other."""
    log = os.path.join(folder, "log")
    with subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=openat", "-o", log, os.path.abspath(ask.FATHOM), "llvm-symbolizer",
                           *arguments], cwd=folder, env=tools.environment(),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for request in requests:
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
            answer = b""
            while not answer.endswith(b"\n\n"):
                answer += process.stdout.readline()
            assert b"main" in answer, (request, answer)
        process.stdin.close()
        process.wait()
    counts = {}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            path = line.split('"')[1] if '"' in line else ""
            if path.startswith("m") and "= -1" not in line:
                counts[path] = counts.get(path, 0) + 1
    return counts


def check_modules():
    """Files stay open however many there are; with a limit on memory, those used longest ago are closed."""
    tools.need("strace")
    folder = folder_with("modules", a=TWINS[0], b=TWINS[1])
    ask.run("gcc", "-g", "-O0", "-o", "out", "a.c", "b.c", cwd=folder)
    names = [f"m{i:03}" for i in range(400)]
    for name in names:
        shutil.copy(os.path.join(folder, "out"), os.path.join(folder, name))
    once = opened(folder, [], [f"{name} main" for name in names])
    assert once == dict.fromkeys(names, once[names[0]]), once
    again = opened(folder, [], [f"{name} main" for name in names * 2])
    assert again == once, {n: (once[n], again[n]) for n in names if again[n] != once[n]}
    # What was used last stays: the limit closes all others.
    limited = opened(folder, ["--cache-size=1"], [f"{name} main" for name in ("m000", "m001", "m001", "m000")])
    assert limited == {"m000": 2 * once["m000"], "m001": once["m001"]}, limited


CASES = [
    ("llvm-symbolizer: variables of relocatable files", check_relocatable),
    ("llvm-symbolizer: variables that were merged", check_merged),
    ("llvm-symbolizer: symbols whose addresses have a tag", check_tagged),
    ("llvm-symbolizer: all local symbols of a name", check_all_symbols),
    ("llvm-symbolizer: a package of split debug files elsewhere", check_package),
    ("llvm-symbolizer: 400 modules are opened once each", check_modules),
]
