# SPDX-License-Identifier: MIT
"""fathom llvm-symbolizer beside the newest llvm-symbolizer: the same input, byte for byte the same output.

Where the real tool leaves something out, ours is accepted beside it only if a witness states it: see
witness.py and docs/reports/oracle-llvm-symbolizer.md."""
import collections
import itertools
import os
import random
import re

import ask
import tools
import witness
from amounts import amount

ALL_OPTIONS = [
    [], ["--no-inlines"], ["--functions=short"], ["-f=none"], ["--functions=linkage", "-C"],
    ["--no-demangle"], ["-demangle=false"], ["--basenames"], ["--relativenames"], ["--pretty-print"],
    ["--print-address"], ["-pa"], ["-aCfi"], ["--verbose"], ["--verbose", "--no-inlines"],
    ["--inlining=false", "--functions=short"], ["--print-source-context-lines=3"],
    ["--print-source-context-lines", "1", "-p"], ["--output-style=GNU"], ["--output-style=GNU", "-ap"],
    ["--output-style", "GNU", "--no-inlines"], ["--output-style=GNU", "--verbose"],
    ["--output-style=JSON"], ["--output-style=JSON", "--no-inlines"],
    ["--output-style=JSON", "--functions=short", "-s"], ["--output-style=JSON", "-f=none"],
    ["--output-style=JSON", "--print-source-context-lines=4"], ["--output-style=JSON", "-p"],
    ["--default-arch=x86_64", "--dsym-hint=x.dSYM", "--no-untag-addresses", "--relative-address",
     "--no-debuginfod", "--cache-size=1000", "--color=never", "--dwp=none", "--inlines"],
]
FEW_OPTIONS = [[], ["--no-inlines"], ["--verbose"], ["--output-style=GNU", "-ap"], ["--output-style=JSON"],
               ["--functions=short"], ["--relativenames"]]


def code_addresses(path, most):
    """Addresses of sections that hold code: all, or @most of them chosen at random."""
    found = []
    for line in ask.run("readelf", "-SW", path).splitlines():
        m = re.match(r"\s*\[\s*\d+\]\s+\S+\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+(\w*)", line)
        if m and "X" in m[3]:
            found += range(int(m[1], 16), int(m[1], 16) + int(m[2], 16))
    return found if len(found) <= most else random.Random(1).sample(found, most)


def symbol_addresses(path, most):
    """The starts of all symbols, and one byte behind each."""
    found = set()
    for line in ask.run("nm", "-a", path, status=None).splitlines() + \
            ask.run("nm", "-D", path, status=None).splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] not in "aANU" and int(words[0], 16):
            found |= {int(words[0], 16), int(words[0], 16) + 1}
    found = sorted(found)
    return found if len(found) <= most else sorted(random.Random(2).sample(found, most))


# LLVM's demangler states the result of a function template also in names of what is declared within it, GNU's does not.
RESULT_OF_TEMPLATE = re.compile(rb"\bvoid (std::__cxx11::basic_string<.*>::_M_construct<.*>\(.*\)::_Guard::)")


def compare(path, arguments, text, cwd, forgive=None, name="llvm-symbolizer", **more):
    """None when both tools, called by @name, answer the same; else what differs. @forgive makes our
    output into what it would be with the gaps of the real one."""
    real = tools.run(tools.theirs(name), arguments, text, cwd, **more)
    own = tools.run(tools.ours(name), arguments, text, cwd, **more)
    real = (RESULT_OF_TEMPLATE.sub(rb"\1", real[0]), *real[1:])
    out = own[0]
    if real[0] != out and forgive:
        out = forgive(real[0], out)
    if real[0] == out and real[1:] == own[1:]:
        return None
    what = tools.first_difference(real[0], out) if real[0] != out else \
        f"status {real[2]} and {own[2]}\nreal {real[1][:400]!r}\nours {own[1][:400]!r}"
    return f"{' '.join(arguments)} ({path}): {what}"


def report(failures):
    failures = [f for f in failures if f]
    assert not failures, f"{len(failures)} differ\n" + "\n".join(failures[:5])


def starts_of(path):
    """What makes up for files of declarations that the real tool leaves out in @path."""
    known = witness.Witness(path)
    return lambda real, own: witness.forgive_starts(known, real, own)


def check_code(path, known, options, most, cwd):
    """All options over code of one file; returns what differs."""
    starts = lambda real, own: witness.forgive_starts(known, real, own)
    code = code_addresses(path, most) + symbol_addresses(path, most)
    assert len(code) > 20
    text = "".join(f"{a:#x}\n" for a in code).encode()
    failures = [compare(path, [*o, "-e", path], text, cwd, starts) for o in options]
    by_line = "".join(f'CODE "{path}" {a:#x}\n' for a in code).encode()
    failures.append(compare(path, ["--demangle", "--inlines", "--default-arch=x86_64"], by_line, cwd))
    shifted = "".join(f"{a + 4096}\n" for a in code).encode()
    failures.append(compare(path, ["--adjust-vma=0x1000", "-a", f"--exe={path}"], shifted, cwd))
    arguments = [f"{a:#x}" for a in code[:40]]
    failures.append(compare(path, ["--obj", path, *arguments], b"", cwd))
    failures.append(compare(path, ["--obj", path, "--output-style=JSON", *arguments], b"", cwd, starts))
    return failures


def check_data(path, known, most, cwd):
    """Some options over its variables."""
    data = symbol_addresses(path, most)
    variables = lambda real, own: witness.forgive_variables(known, data, real, own)
    text = "".join(f"DATA {a:#x}\n" for a in data).encode()
    return [compare(path, [*o, "-e", path], text, cwd, variables)
            for o in ([], ["-a", "--output-style=GNU"], ["--output-style=JSON", "-p"], ["--no-demangle"], ["-s"],
                      ["--relativenames"])]


STRIP_DEBUG = [["objcopy", "--only-keep-debug", "out", "out.debug"], ["strip", "--strip-debug", "out"],
               ["objcopy", "--add-gnu-debuglink=out.debug", "out"]]
# alpha, zeta and bz become one function, which is alpha's code.
FOLDED = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "src", source)
          for source in ("folded_a.c", "folded_b.c")]
FOLD = ["-g", "-ffunction-sections", "-fno-inline", "-fno-pic", "-no-pie", "-Wl,--icf=all", "-o", "out", *FOLDED]
# Name, options of the comparison, steps that leave "out".
FILES = [
    ("C by gcc", ALL_OPTIONS, [["gcc", "-g", "-O2", "-o", "out", "plain.c", "other.c"]]),
    ("C by gcc, not optimised, DWARF 4", FEW_OPTIONS,
     [["gcc", "-gdwarf-4", "-O0", "-o", "out", "plain.c", "other.c"]]),
    ("C by clang", FEW_OPTIONS, [["clang", "-g", "-O2", "-o", "out", "plain.c", "other.c"]]),
    ("C by clang, at fixed addresses", FEW_OPTIONS,
     [["clang-oldest", "-g", "-O1", "-no-pie", "-o", "out", "plain.c", "other.c"]]),
    ("C++ by gcc", ALL_OPTIONS, [["g++", "-g", "-O2", "-o", "out", "shapes.cc"]]),
    ("C++ by gcc, at fixed addresses, DWARF 4", FEW_OPTIONS,
     [["g++", "-gdwarf-4", "-O1", "-no-pie", "-o", "out", "shapes.cc"]]),
    ("C++ by clang", ALL_OPTIONS, [["clang++", "-g", "-O2", "-o", "out", "shapes.cc"]]),
    ("C++ by the oldest clang, not optimised", FEW_OPTIONS, [["clang++-oldest", "-g", "-O0", "-o", "out", "shapes.cc"]]),
    ("a shared library", FEW_OPTIONS, [["g++", "-g", "-O2", "-shared", "-fPIC", "-o", "out", "shapes.cc"]]),
    ("without debug information", FEW_OPTIONS, [["g++", "-O2", "-o", "out", "shapes.cc"]]),
    ("stripped", FEW_OPTIONS, [["g++", "-g", "-O2", "-rdynamic", "-o", "out", "shapes.cc"], ["strip", "out"]]),
    ("functions folded by gold", FEW_OPTIONS, [["gcc", "-O2", "-fno-ipa-icf", "-fuse-ld=gold", *FOLD]]),
    ("functions folded by lld", FEW_OPTIONS, [["clang", "-O1", "-fuse-ld=lld", *FOLD]]),
    ("with a separate debug file", FEW_OPTIONS,
     [["gcc", "-g", "-O2", "-o", "out", "plain.c", "other.c"], *STRIP_DEBUG]),
]


def check_build(name, options, steps):
    folder = tools.build(re.sub(r"\W", "-", name), *steps)
    path, debug_file = (os.path.join(folder, n) for n in ("out", "out.debug"))
    known = witness.Witness(debug_file if os.path.exists(debug_file) else path)
    report(check_code(path, known, options, 3000, folder) + check_data(path, known, 3000, folder))


def check_fathom():
    path = os.path.abspath(ask.FATHOM)
    report(check_code(path, witness.Witness(path), [[], ["--no-inlines"], ["--output-style=JSON"]], amount(4000), None))


def classify(real, own):
    """How two answers differ, line by line: names may be missing, left mangled, or spelled otherwise."""
    pairs = list(itertools.zip_longest(real.split(b"\n"), own.split(b"\n"), fillvalue=b""))
    different = [i for i, (r, o) in enumerate(pairs) if r != o]
    if any(i % 2 for i in different):
        return "places"
    if all(pairs[i][0] == b"??" for i in different):
        return "missing"
    return "mangled" if all(pairs[i][0].startswith(b"_Z") for i in different) else "spelled"


def measure(path, n, seed=1):
    """For people: answers to @n addresses of functions of @path, by both tools; prints how many differ,
    and some of them."""
    functions = {(int(w[1], 16), int(w[2], 0)) for w in map(str.split, ask.run("readelf", "-sW", path).splitlines())
                 if len(w) >= 8 and w[3] in ("FUNC", "IFUNC") and w[6] not in ("UND", "ABS")}
    choice = random.Random(seed)
    addresses = [start + choice.randrange(size) for start, size in
                 choice.choices(sorted(f for f in functions if f[1]), k=n)]
    text = "".join(f"{a:#x}\n" for a in addresses).encode()
    for arguments in ([], ["--no-inlines"], ["--no-demangle"]):
        real, own = (tools.run(t, [*arguments, "-e", path], text)[0].split(b"\n\n")[:-1]
                     for t in (tools.theirs(), tools.OURS))
        assert len(real) == len(own) == n, f"{len(real)} and {len(own)} answers"
        differ = [i for i in range(n) if real[i] != own[i]]
        classes = collections.Counter(classify(real[i], own[i]) for i in differ)
        print(f"{path} {' '.join(arguments)}: {n} answers, {len(differ)} differ: {dict(classes)}")
        for i in differ[:5]:
            print(f"{addresses[i]:#x}: {tools.first_difference(real[i], own[i])}")


REQUESTS = """CODE out 0x%(main)x
DATA out 0x%(table)x
DATA out 0
FRAME out 0
"out" %(main)d
'out' 0%(main)o
CODE "out" 0X%(main)X
FILE:out 0x%(main)x
CODE FILE:"out" 0x%(main)x
BUILDID:abcd 0x10
BUILDID:xyz 0x10
BUILDID:
FILE:
FILE:FILE:out 1
FILE:BUILDID:out 1
FILE:"x 1
out 0b1001
out 0B1
out 0o17
out 017
out 09
out 0x
out 1z
out 0x1ffffffffffffffff
out -1
out xyz
out main
out main+4
out main+0x4
out main + 4
out main+
out main+0x
out main+99999999
out operator+
out main++4
CODE out main
FRAME out main
out
out 0x%(main)x more words
   out   0x%(main)x
\tout 0x%(main)x
out\t0x%(main)x
out 0x%(main)x\t
out 0x%(main)x \tx
 CODE out 1
code out 1
CODE
DATA
FRAME out
"out"0x%(main)x
"" 1
"out" 
"a b" 1
"in\\"l" 1
nosuch 1
nosuch 1
DATA nosuch 1
FRAME nosuch 1
nosuch main
/ 0x10
/nosuch/nosuch 0x10
plain.c 0x10
 

0x10
out 0x%(main)x\r
CODE out 0x%(main)x"""
FIXED_REQUESTS = "0x%(main)x\nDATA 0x%(table)x\nFRAME 0\n main\nnosuch\n\ngarbage\nFILE:out 1\n out 1\n1x\n\"1\" 2\n"


def check_requests():
    folder = tools.build("requests", ["g++", "-gdwarf-4", "-O1", "-o", "out", "shapes.cc"])
    symbols = {line.split()[2]: int(line.split()[0], 16)
               for line in ask.run("nm", os.path.join(folder, "out")).splitlines() if len(line.split()) == 3}
    failures = []
    for style in ([], ["--output-style=GNU"], ["--output-style=JSON"], ["-a"], ["-p"], ["--verbose"],
                  ["--no-inlines"], ["-f=short"], ["-f=none"], ["--output-style=JSON", "--no-inlines"]):
        # The real tool prints an address that it does not have.
        requests = REQUESTS.replace("FRAME out main\n", "") if style == ["-a"] else REQUESTS
        text = (requests % symbols).encode()
        failures.append(compare("requests", style, text, folder))
        fixed = (FIXED_REQUESTS % symbols).encode()
        failures.append(compare("requests", [*style, "-e", "out"], fixed, folder))
    for line in (REQUESTS % symbols).splitlines():
        failures.append(compare("one request", [line], b"", folder))
    report(failures)


COMMAND_LINES = """-e out main
-eout main
-e=out main
--exe out main
--exe=out main
-exe out main
-aCfie out main
-afe out main
-ape out main
-ae=out main
-f=none -e out main
-f none -e out main
-f=short --functions -e out main
--functions=bogus -e out main
--output-style=gnu -e out main
--adjust-vma 0x10 -e out main
--print-source-context-lines 2 -e out main
--print-source-context-lines=0x2 -e out main
--print-source-context-lines=-1 -e out main
-e out -e /bin/true main
-s --relativenames -e out main
--relativenames -s -e out main
-i --no-inlines -e out main
--no-inlines -i -e out main
--no-demangle --demangle -e out main
-e nosuch main
-e / main --output-style=JSON
-e nosuch
--obj= main
--build-id=00 main
@options main
@nosuch
-
-e out out main
--output-style=JSON -e out main nosuch 0 DATA
--adjust-vma=zz --adjust-vma=1 -e out main
--adjust-vma=0xffffffffffffffff -e out main
--print-source-context-lines=-2147483648 -e out main
--print-source-context-lines=-0x5 -e out main
--dsym-hint=x.dSYM --dsym-hint .dSYM --dia -e out main
--dsym-hint=x --dsym-hint=y.dSYM/ -e out main
--bogus -e out main
--help --bogus
-Z -e out main
-ZaY=1 -e out main
-obj=out main
-i=0 -e out main
--inlines=false -e out main
-s=short -e out main
-aps=1 -e out main
--verbose=1 -e out main
--adjust-vma=zz -e out main
--adjust-vma= -e out main
--adjust-vma=-1 --cache-size=x -e out main
--print-source-context-lines=x -e out main
--print-source-context-lines=2147483648 -e out main
--print-source-context-lines=-2147483649 -e out main
--cache-size=x -e out main
--build-id=xx main
--build-id=ab --obj=out main
--build-id=xx --obj=out main
-e
--obj
--help=1""".splitlines()
# What is wrong, where LLVM also says which option may be meant.
WRONG_LINES = """--demangle=false -e out main
--colour=1 -e out main
--demangler -e out main""".splitlines()


def check_command_lines():
    folder = tools.build("options", ["g++", "-gdwarf-4", "-O1", "-o", "out", "shapes.cc"])
    with open(os.path.join(folder, "options"), "w", encoding="ascii") as file:
        file.write("-a '-s'\n\"-e\" o\\ut")
    failures = [compare("command line", line.split(), b"", folder, name=name)
                for line in COMMAND_LINES for name in ("llvm-symbolizer", "llvm-addr2line")]
    failures += [compare("environment", ["-e", "out", "main"], b"", folder, name=name,
                         LLVM_SYMBOLIZER_OPTS="-a '-s'", LLVM_ADDR2LINE_OPTS="-f --verbose")
                 for name in ("llvm-symbolizer", "llvm-addr2line")]
    for line in WRONG_LINES:
        real, own = (tools.run(t, line.split(), b"", folder) for t in (tools.theirs(), tools.OURS))
        if real[0] != own[0] or real[2] != own[2] or bool(real[1]) != bool(own[1]):
            failures.append(f"{line}: real {real} ours {own}")
    report(failures)


def check_build_id():
    # As long as linkers make it: LLVM 22 does not look for the debug file of a shorter one.
    build_id = "abcdef0123" * 4
    debug = f"debug/.build-id/ab/{build_id[2:]}.debug"
    folder = tools.build("build-id", ["gcc", "-g", "-O1", f"-Wl,--build-id=0x{build_id}", "-o", "out", "plain.c",
                                      "other.c"],
                         ["mkdir", "-p", "debug/.build-id/ab"],
                         ["objcopy", "--only-keep-debug", "out", debug],
                         ["strip", "out"])
    path = os.path.join(folder, "out")
    code = code_addresses(path, 400)
    found = ["--debug-file-directory=debug"]
    by_id = "".join(f"BUILDID:AB{build_id[2:]} {a:#x}\nCODE BUILDID:\"{build_id}\" {a:#x}\n" for a in code)
    text = "".join(f"{a:#x}\n" for a in code).encode()
    report([compare(path, found, by_id.encode(), folder),
            compare(path, [*found, "--output-style=JSON"], f"BUILDID:{build_id} main\n".encode(), folder,
                    starts_of(os.path.join(folder, debug))),
            compare(path, [*found, f"--build-id={build_id}"], text, folder),
            compare(path, [*found, "-e", "out"], text, folder)])


def check_missing_build_id():
    """That no file has a build-id is told for each request, in the words of the real tool; a file that
    is there but is none, once."""
    folder = tools.build("missing-build-id", ["mkdir", "-p", "debug/.build-id/ab"],
                         ["cp", "plain.c", "debug/.build-id/ab/cd.debug"])
    requests = "".join(f"{kind}BUILDID:{build_id} {place}\n" for kind in ("", "DATA ", "FRAME ")
                       for build_id in ("0123", "abcd", "abc", "0ABC") for place in ("0", "0x10", "main"))
    failures = []
    for style in ([], ["--output-style=JSON"], ["--output-style=GNU"], ["--no-inlines"]):
        arguments = ["--debug-file-directory=debug", *style]
        failures.append(compare("stream", arguments, requests.encode(), folder))
        failures += [compare("one", [*arguments, f"--build-id={build_id}", "0", "0x10", "main", "DATA 0"], b"",
                             folder) for build_id in ("0123", "abcd", "abc", "a", "00")]
    report(failures)


# As arguments, and one a line: hexadecimal with or without 0x; what starts as a number must be one.
ADDR2LINE_REQUESTS = """main
%(main)x
0x%(main)x
0X%(main)X
0000000%(main)x
main+10
main+0x10
main+010
main+0b1
main+a
main+
+1
0
0x
0X
0xzz
0b1
0o1
1z
%(main)x+1
abc+1
zz
0x-1
ffffffffffffffff
0xffffffffffffffff
10000000000000000
fffffffffffffffff
CODE %(main)x
CODE 0x%(main)x more
DATA %(table)x
DATA 0x%(table)x
DATA table
DATA 0x
FRAME 0

FILE:out %(main)x
out %(main)x""".splitlines()
ADDR2LINE_OPTIONS = [
    [], ["-f"], ["-fi"], ["-fiC"], ["-a"], ["-afi"], ["-p"], ["-apfiC"], ["-s", "-f"], ["--relativenames"],
    ["--verbose", "-f"], ["-f=short"], ["--functions=linkage", "--inlining=true"], ["-f", "--no-inlines", "-i"],
    ["--output-style=LLVM", "-fi"], ["--output-style=JSON", "-fiC"], ["--output-style=JSON"],
    ["--print-source-context-lines=3", "-i"], ["-demangle=true", "-f"]]


def check_addr2line():
    """llvm-addr2line is the same tool with other defaults, and another idea of numbers."""
    folder = tools.build("addr2line", ["clang++", "-g", "-O2", "-o", "out", "shapes.cc"])
    path = os.path.join(folder, "out")
    symbols = {line.split()[2]: int(line.split()[0], 16)
               for line in ask.run("nm", path).splitlines() if len(line.split()) == 3}
    # "DATA table" has no address: with -a the real tool prints what its stack holds.
    requests = [r % symbols for r in ADDR2LINE_REQUESTS if r != "DATA table"]
    failures = [compare("out", ["-e", "out", "DATA table"], b"", folder, name="llvm-addr2line")]
    code = "".join(f"{a:x}\n" for a in code_addresses(path, 2000)).encode()
    starts = starts_of(path)
    for options in ADDR2LINE_OPTIONS:
        both = lambda arguments, text: compare("out", [*options, *arguments], text, folder, starts,
                                               name="llvm-addr2line")
        failures += [both(["-e", "out"], code), both(["-e", "out", *requests], b""),
                     both(["-e", "out"], "\n".join(requests).encode()),
                     both([], "".join(f"out {r}\nFILE:out {r}\n" for r in requests if r).encode()),
                     both(["-e", "out", "--adjust-vma=0x10"], code)]
    report(failures)


def check_addr2line_names():
    """By which names it is called, and that each is the same tool."""
    folder = tools.build_once("protocol", ["g++", "-g", "-O1", "-o", "out", "shapes.cc"])
    for name in ("llvm-addr2line", "llvm-addr2line-19", "llvm-addr2line-19.1"):
        report([compare(name, ["-fie", "out", "main", "nosuch", "0xz"], b"", folder, name=name)])
    arguments = ["-afie", "out", "main", "0", "zz"]
    wanted = tools.run(tools.ours("llvm-addr2line"), arguments, b"", folder)
    assert wanted[0].startswith(b"main\n") and wanted[2] == 0, wanted
    assert tools.run(os.path.abspath(ask.FATHOM), ["llvm-addr2line", *arguments], b"", folder) == wanted
    # GNU's tool answers with all 16 digits.
    gnu = tools.run(tools.ours("x86_64-linux-gnu-addr2line"), arguments, b"", folder)
    assert gnu[0].startswith(b"0x00000000"), gnu
    for option, first in (("--version", b"llvm-addr2line\n"), ("--help", b"Usage: fathom llvm-addr2line ")):
        out, complaints, status = tools.run(tools.ours("llvm-addr2line"), [option])
        assert out.startswith(first) and (complaints, status) == (b"", 0), (out, complaints, status)


def check_absolute_names():
    """clang writes the name of a file as it was given: the real tool does not shorten absolute ones."""
    folder = tools.build("absolute")
    source = os.path.join(folder, "plain.c")
    tools.need("clang")
    ask.run("clang", "-g", "-O0", "-c", "-o", os.path.join(folder, "a.o"), source, cwd="/")
    ask.run("clang", "-g", "-O0", "-o", "out", "a.o", "other.c", cwd=folder)
    real, own = (tools.run(t, ["-s", "-e", "out", "main"], b"", folder)[0] for t in (tools.theirs(), tools.OURS))
    assert own.count(b"\nplain.c:") == 1 and real == own.replace(b"plain.c", source.encode()), \
        tools.first_difference(real, own)


CASES = [(f"llvm-symbolizer on {name}", lambda f=(name, options, steps): check_build(*f))
         for name, options, steps in FILES]
CASES += [
    ("llvm-symbolizer on fathom itself", check_fathom),
    ("llvm-symbolizer: requests of every form", check_requests),
    ("llvm-symbolizer: command lines", check_command_lines),
    ("llvm-symbolizer: files by build-id", check_build_id),
    ("llvm-symbolizer: a build-id that no file has is told each time", check_missing_build_id),
    ("llvm-addr2line: addresses and options", check_addr2line),
    ("llvm-addr2line: all its names", check_addr2line_names),
    ("llvm-symbolizer: absolute names are shortened", check_absolute_names),
]
