#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""vendor_jit.py [--prefix PREFIX] FOLDER: writes fathom_jit.c and fathom_jit.h there, the publisher of <fathom/jit.h>
alone, for runtimes that carry such code with them. It needs a C17 compiler, the C library, and nothing else:

    cc -std=gnu17 -c fathom_jit.c

The copy's functions have names of their own for the linker, and are hidden: a program may be linked with libfathom, too. With
PREFIX all names of the source have it in place of "fathom": PREFIX_jit_add(), PREFIX_JIT_EVENTS in upper case. One file may
include both headers then."""
import argparse
import glob
import os
import re
import subprocess

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# All of the room, and what it uses of others. The compiler tells if something is missing.
SOURCES = ["src/safe/base/text.c", "src/safe/base/error.c", "src/host/base/array.c", "src/host/base/clock.c", "src/host/base/environment.c", "src/host/base/option_struct.c", "src/host/base/proc_stat_read.c", "src/safe/base/proc_stat.c", "src/safe/jit/registry.c", "src/safe/dwarf/cfi.c", "src/safe/dwarf/cfi_write.c", "src/safe/dwarf/line_write.c",
           "src/safe/base/nops.c", "src/safe/unwind/row.c", "src/safe/unwind/arch/x86_call.c", "src/safe/unwind/arch/x86_ends.c",
           "src/safe/unwind/arch/x86_64.c",
           "src/safe/unwind/arch/aarch64.c"]
HEADERS = ["include/fathom/error.h", "include/fathom/jit.h"]
INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<(fathom/[^>]+)>)\n', re.M)
SYSTEM = re.compile(r"^#include <[^>]+>\n", re.M)
DEFINED = re.compile(r"^static [^=;()]*?\b(\w+)(?:\(|\[| =|;)|^struct (\w+) \{|^#define (\w+)", re.M)


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def names_of(text):
    """What the file @text defines for itself: functions, variables, structs, macros, constants."""
    names = {name for match in DEFINED.findall(text) for name in match if name}
    for body in re.findall(r"^enum (?:\w+ )?\{(.*?)\};", text, re.M | re.S):
        names |= set(re.findall(r"\b([A-Z]\w+)\b(?= *[=,}\n])", re.sub(r"/\*.*?\*/", "", body, flags=re.S)))
    return names


class Writer:
    def __init__(self):
        self.seen, self.parts = set(), []

    def add_includes(self, text):
        """@text with its headers of this project in place of the lines that include them, each once."""
        def expand(match):
            path = match[1] or match[2]
            public = path.startswith("fathom/")
            if path in self.seen or "include/" + path in HEADERS:
                return ""
            self.seen.add(path)
            text = self.add_includes(read(("include/" if public else "src/") + path))
            # Of other public headers nothing is exported here.
            return f'#pragma push_macro("FATHOM_API")\n#undef FATHOM_API\n#define FATHOM_API\n{text}#pragma pop_macro("FATHOM_API")\n' \
                if public else text
        return INCLUDE.sub(expand, text)


def renamed(text, names, suffix):
    for name in names:
        # Members that are called the same keep their names.
        text = re.sub(rf"(?<![\w.>])(?<!->){name}\b(?!\s*;.*\*/)", f"{name}_{suffix}", text)
    return text


# Names of the two files, and of the variable of the environment, are the same in each copy.
NAME = re.compile(r"\b(?!fathom_jit\.[ch]\b|FATHOM_JIT\b)(fathom|FATHOM)_(\w+)")
FUNCTION = re.compile(r"^FATHOM_API [^;(]*?\b(fathom_\w+)\(", re.M)
# What links a copy without a prefix of the caller's.
PRIVATE = "fathom_copy"
HIDDEN = """
/* Functions are visible in the object that has the copy only, unless this is set. */
#ifndef FATHOM_API
#define FATHOM_API __attribute__((visibility("hidden")))
#endif
"""


def with_prefix(text, prefix):
    """@text with @prefix in place of fathom in all names."""
    return NAME.sub(lambda m: f"{prefix if m[1].islower() else prefix.upper()}_{m[2]}", text)


def with_private_names(header, code):
    """Both texts, in which the names for the linker are private; the source calls its functions as before."""
    public = {match[0] for match in NAME.finditer(header)}
    functions = sorted(set(FUNCTION.findall(header)))
    links = "".join(f"#define {name} {PRIVATE}_{name[len('fathom_'):]}\n" for name in functions)
    header = header.replace(HIDDEN, f"{HIDDEN}\n/* Names for the linker, other than libfathom's. */\n{links}", 1)
    return header, NAME.sub(lambda m: m[0] if m[0] in public or m[1].isupper() else f"{PRIVATE}_{m[2]}", code)


def commit():
    """The commit of this checkout, behind a space; nothing if there is none, or no git."""
    try:
        done = subprocess.run(["git", "-C", TOP, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return f" {done.stdout.strip()}" if done.stdout.strip() else ""


def main():
    parser = argparse.ArgumentParser(prog="./dev vendor", description="Writes fathom_jit.c and fathom_jit.h to FOLDER.")
    parser.add_argument("folder", metavar="FOLDER", help="made if it is not there")
    parser.add_argument("--prefix", metavar="PREFIX", help="in place of fathom in all names, for instance vm: vm_jit_add()")
    options = parser.parse_args()
    if options.prefix is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", options.prefix):
        parser.error(f"{options.prefix}: not a name of C")
    head = f"/* SPDX-License-Identifier: MIT */\n/* Made by tools/vendor_jit.py of fathom{commit()}: change it there. */\n"
    sources = SOURCES + sorted(os.path.relpath(path, TOP) for path in glob.glob(os.path.join(TOP, "src/host/publish/*.c")))
    texts = {path: read(path) for path in sources}
    owners = {}
    for path, text in texts.items():
        for name in names_of(text):
            owners.setdefault(name, []).append(path)
    writer = Writer()
    start = head + "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n#include \"fathom_jit.h\"\n"
    own = "#pragma GCC visibility push(hidden)\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
    code = ""
    for path, text in texts.items():
        shared = [name for name in names_of(text) if len(owners[name]) > 1]
        stem = os.path.splitext(os.path.basename(path))[0]
        # The file's own lines are renamed, its headers' are not.
        expanded = INCLUDE.sub(lambda match: f"\0{match[0]}", text)
        lines = [line if line.startswith("\0") else renamed(line, shared, stem) for line in expanded.splitlines(keepends=True)]
        code += f"\n/* {path} */\n" + writer.add_includes("".join(lines).replace("\0", ""))
    # What the C library declares is not hidden.
    system = dict.fromkeys(SYSTEM.findall(code))
    code = start + "".join(system) + own + SYSTEM.sub("", code)
    header = head + HIDDEN + "".join(INCLUDE.sub("", read(path)) for path in HEADERS)
    if options.prefix:
        header, code = with_prefix(header, options.prefix), with_prefix(code, options.prefix)
    else:
        header, code = with_private_names(header, code)
    os.makedirs(options.folder, exist_ok=True)
    for name, text in (("fathom_jit.c", code + "\n#pragma GCC visibility pop\n"), ("fathom_jit.h", header)):
        with open(os.path.join(options.folder, name), "w", encoding="utf-8") as file:
            file.write(text)


main()
