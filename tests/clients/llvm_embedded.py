# SPDX-License-Identifier: MIT
"""Lines of source files that clang has embedded in the line table (-gembed-source), beside the newest llvm-symbolizer.

The real one reads the file of a caller from the disk even where its text is embedded: what it prints while
the sources are those that were built is what fathom has to print when they have been edited or are gone."""
import os
import re
import shutil

import ask
import tools

from amounts import amount
from llvm_cases import code_addresses, compare, report

CLANG = ["clang", "-gdwarf-5", "-gembed-source", "-g", "-Isub"]
HEADER = """static inline __attribute__((always_inline)) int helper(int x)
{
	int y = x * 3;
	if (y > 10)
		y -= x;
	return y + 1;
}
"""
MAIN = """#include "helper.h"
int
main(int argc, char **argv)
{
	int r = helper(argc);

	r += helper(r);
	return r;
}"""
BUILDS = {"linked": ["-O1"], "relocatable": ["-O1", "-c"], "compressed": ["-O2", "-gz"], "split": ["-O1", "-gsplit-dwarf"]}
NUMBERS = [f"--print-source-context-lines={n}" for n in (1, 3, 9)]
STYLES = [[], ["--output-style=GNU"], ["--output-style=JSON"], ["--verbose"], ["-p"], ["--basenames"], ["--relativenames"],
          ["--no-inlines"], ["-f=none", "-a"], ["--output-style=JSON", "--no-inlines"]]
OPTIONS = [[number] for number in NUMBERS] + [[*style, NUMBERS[1]] for style in STYLES[1:]]


def write_sources(folder, newline="\n", **sources):
    for path, text in {"main.c": MAIN, "sub/helper.h": HEADER, **sources}.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii", newline=newline) as file:
            file.write(text)


def remove_sources(folder):
    os.unlink(os.path.join(folder, "main.c"))
    shutil.rmtree(os.path.join(folder, "sub"))


def requests(path):
    return "".join([f"{a:#x}\n" for a in code_addresses(path, amount(5000))] + ["main\n", "main+3\n"]).encode()


def answers(program, folder, text, name="out"):
    return [tools.run(program, [*options, "-e", name], text, cwd=folder) for options in OPTIONS]


def differences(expected, found):
    return [f"{' '.join(options)}: {tools.first_difference(e[0], f[0])}"
            for options, e, f in zip(OPTIONS, expected, found) if e != f]


def check_build(name, flags, newline):
    folder = os.path.join(tools.FOLDER, f"embedded-{name}-{len(newline)}")
    write_sources(folder, newline)
    ask.run(*CLANG, *flags, "-o", "out", "main.c", cwd=folder)
    assert "source: " in ask.run("llvm-dwarfdump", "--debug-line", "out", cwd=folder)
    text = requests(os.path.join(folder, "out"))
    expected = answers(tools.theirs(), folder, text)
    for options, (out, _, _) in zip(OPTIONS, expected):
        assert b"5 >: \tint r = helper(argc);" in out.replace(b"\\t", b"\t") or "--verbose" in options or \
            "--no-inlines" in options, (options, out)
    report(differences(expected, answers(tools.OURS, folder, text)))
    write_sources(folder, **{"main.c": "wrong\n" * 20, "sub/helper.h": "wrong\n" * 20})
    report(differences(expected, answers(tools.OURS, folder, text)))
    remove_sources(folder)
    report(differences(expected, answers(tools.OURS, folder, text)))
    report([compare(name, ["--no-inlines", *options, "-e", "out"], text, folder) for options in OPTIONS])


def check_embedded():
    for name, flags in BUILDS.items():
        check_build(name, flags, "\n")
    check_build("crlf", BUILDS["linked"], "\r\n")


def check_some():
    """A file without a text has an empty one: its lines are those of the disk."""
    folder = os.path.join(tools.FOLDER, "embedded-some")
    write_sources(folder)
    ask.run(*CLANG, "-O1", "-o", "whole", "main.c", cwd=folder)
    ask.run(*CLANG, "-O1", "-S", "-o", "out.s", "main.c", cwd=folder)
    with open(os.path.join(folder, "out.s"), encoding="ascii") as file:
        assembly = file.read()
    some, n = re.subn(r'(\.file\s.*"helper.h" md5 \w+) source .*', r"\1", assembly)
    assert n == 1, assembly
    with open(os.path.join(folder, "out.s"), "w", encoding="ascii") as file:
        file.write(some)
    ask.run("clang", "-o", "out", "out.s", cwd=folder)
    text = requests(os.path.join(folder, "out"))
    assert text == requests(os.path.join(folder, "whole"))
    shutil.copy(os.path.join(folder, "sub", "helper.h"), folder)  # where --basenames looks for it
    whole = [(out.replace(b'"ModuleName":"whole"', b'"ModuleName":"out"'), *rest)
             for out, *rest in answers(tools.theirs(), folder, text, "whole")]
    report(differences(whole, answers(tools.OURS, folder, text)))
    remove_sources(folder)
    os.unlink(os.path.join(folder, "helper.h"))
    own = answers(tools.OURS, folder, text)
    assert b"7 >: \tr += helper(r);" in own[1][0] and b"int y" not in own[2][0], own[1:3]
    report([compare("some", ["--no-inlines", *options, "-e", "out"], text, folder) for options in OPTIONS])


def check_units():
    """A path means what it meant for the unit of the address."""
    folder = os.path.join(tools.FOLDER, "embedded-units")
    write_sources(folder, **{"other.c": '#include "helper.h"\nint other(int x) { return helper(x); }\n'})
    ask.run(*CLANG, "-O1", "-c", "main.c", cwd=folder)
    write_sources(folder, **{"sub/helper.h": "/* Another one. */\n" + HEADER.replace("x * 3", "x * 7 + 2")})
    ask.run(*CLANG, "-O1", "-c", "other.c", cwd=folder)
    ask.run("clang", "-o", "out", "main.o", "other.o", cwd=folder)
    text = requests(os.path.join(folder, "out")) + b"other\n"
    remove_sources(folder)
    os.unlink(os.path.join(folder, "other.c"))
    out, _, _ = tools.run(tools.OURS, [NUMBERS[0], "-e", "out"], text, cwd=folder)
    assert b"3 >: \tint y = x * 3;" in out and b"4 >: \tint y = x * 7 + 2;" in out and b"2 >: int other(" in out, out
    report([compare("units", ["--no-inlines", *options, "-e", "out"], text, folder) for options in OPTIONS])


def check_damaged():
    """A text whose form is that of a number, or whose place is outside its section, is none."""
    folder = os.path.join(tools.FOLDER, "embedded-damaged")
    write_sources(folder)
    ask.run(*CLANG, "-O1", "-o", "whole", "main.c", cwd=folder)
    remove_sources(folder)
    text = requests(os.path.join(folder, "whole"))
    with open(os.path.join(folder, "whole"), "rb") as file:
        whole = file.read()
    plain = tools.run(tools.OURS, ["-e", "whole"], text, cwd=folder)
    assert b" >: " in tools.run(tools.OURS, [NUMBERS[1], "-e", "whole"], text, cwd=folder)[0]
    content = bytes([0x81, 0x40, 0x1f])  # DW_LNCT_LLVM_source, DW_FORM_line_strp
    assert whole.count(content) == 1
    ask.run("objcopy", "-O", "binary", "--only-section=.debug_line_str", "--set-section-flags", ".debug_line_str=alloc", "whole", "strings",
            cwd=folder)
    with open(os.path.join(folder, "strings"), "rb") as file:
        strings = file.read()
    places = [strings.index(s.encode()).to_bytes(4, "little") for s in (MAIN, HEADER)]
    at = whole.index(content)
    forms = [whole.replace(content, content[:2] + bytes([form])) for form in (0x06, 0x17, 0x0b, 0x0f, 0x21, 0x25, 0xff)]
    outside = whole[:at] + whole[at:at + 200].replace(places[0], b"\xff" * 4).replace(places[1], b"\xf0" * 4) + whole[at + 200:]
    assert sum(x != y for x, y in zip(outside, whole)) >= 6
    for damaged in [*forms, outside]:
        with open(os.path.join(folder, "out"), "wb") as file:
            file.write(damaged)
        out, errors, status = tools.run(tools.OURS, [NUMBERS[1], "-e", "out"], text, cwd=folder)
        assert status == 0 and b" >: " not in out and out.count(b"\n") > 20, (errors, status, out)
        if damaged in (*forms[:2], outside):
            assert out == plain[0], out


CASES = [
    ("llvm-symbolizer: lines of embedded sources", check_embedded),
    ("llvm-symbolizer: lines of files of which some are embedded", check_some),
    ("llvm-symbolizer: two embedded texts of one path", check_units),
    ("llvm-symbolizer: damaged embedded sources", check_damaged),
]
