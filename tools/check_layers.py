#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dependency law of ARCHITECTURE.md, over the #include lines of the tree."""
import os
import re
import sys

SAFE = ["src/safe/" + room for room in ("base", "elf", "dwarf", "index", "jit", "trace", "self", "unwind", "cxx", "crash")]


def host(*rooms):
    """Returns the folders of the safe tier and of these rooms of the host tier."""
    return SAFE + ["src/host/" + room for room in rooms]


# What each folder may include, beside itself. Public headers (fathom/...) are in every list.
LAW = {
    "src/safe/base": [],
    "src/safe/elf": ["src/safe/base"],
    "src/safe/dwarf": ["src/safe/base"],
    "src/safe/index": ["src/safe/base"],
    "src/safe/jit": ["src/safe/base"],
    "src/safe/trace": ["src/safe/base"],
    # What is put into traced programs: it imports nothing.
    "src/trace": ["src/safe/trace"],
    # Descriptions of machines: unwind declares them, and includes none of this.
    "src/safe/unwind": ["src/safe/base", "src/safe/elf", "src/safe/dwarf", "src/safe/index", "src/safe/jit"],
    "src/safe/unwind/arch": ["src/safe/base", "src/safe/unwind"],
    "src/safe/self": ["src/safe/base", "src/safe/elf", "src/safe/dwarf", "src/safe/index", "src/safe/jit", "src/safe/unwind"],
    "src/safe/cxx": ["src/safe/base"],
    "src/safe/crash": ["src/safe/base", "src/safe/cxx", "src/safe/elf", "src/safe/dwarf", "src/safe/index", "src/safe/unwind",
                       "src/safe/self"],
    "src/host/base": host(),
    # Bytes of machine code; they see no process.
    "src/host/code": host(),
    "src/host/code/x86_64": host("code"),
    "src/host/code/aarch64": host("code"),
    "src/host/file": host("base"),
    "src/host/symbol": host("base", "file"),
    "src/host/golang": host("base", "file"),
    "src/host/module": host("base", "file", "golang", "symbol"),
    # It reads memory through a reader, whosever that is.
    "src/host/runtime": host("base", "file", "symbol", "module"),
    "src/host/symbolize": host("base", "file", "symbol", "module"),
    "src/host/jit": host("base", "code/x86_64", "file", "symbol", "module", "symbolize"),
    "src/host/space": host("base", "file", "symbol", "module", "symbolize", "jit"),
    "src/host/space/user": host("base", "file", "symbol", "module", "symbolize", "jit", "space"),
    "src/host/space/kernel": host("base", "file", "symbol", "module", "symbolize", "space"),
    "src/host/find": host("base", "file", "symbol", "module", "symbolize", "jit", "runtime", "space",
                          "space/kernel"),
    "src/host/filter": host("base", "file", "symbol", "module", "symbolize", "space", "find", "store"),
    "src/host/filter/formats": host("base", "filter"),
    "src/host/value": host("base", "file", "symbol", "module", "symbolize", "space"),
    "src/host/source": host("base", "file", "symbol", "module", "symbolize", "space"),
    "src/host/disasm": host("base", "file", "symbol", "module", "symbolize", "space"),
    "src/host/self": host("base", "file", "symbol", "module", "symbolize", "space"),
    "src/host/crash": host("base"),
    "src/host/publish": host("base"),
    "src/host/tracer": host("base", "code/x86_64"),
    "src/host/death": host("base", "file", "symbol", "module", "runtime", "space", "space/user", "disasm"),
    "src/host/interpreters": host("base", "file", "symbol", "module", "symbolize", "space"),
    "src/host/stack": host("base", "code/x86_64", "syscalls", "file", "symbol", "module", "symbolize", "jit", "runtime",
                           "space", "space/user", "disasm", "tracer", "death", "interpreters"),
    "src/host/limits": host("base", "file", "symbol", "module", "space", "disasm", "stack", "events"),
    "src/host/check": host("base", "code/x86_64", "file", "symbol", "module", "jit", "space", "disasm", "tracer"),
    "src/host/sites": host("base", "code/x86_64", "code/aarch64", "file", "symbol", "module", "symbolize", "space", "disasm", "stack"),
    "src/host/syscalls": host("base"),
    "src/host/events": host("base", "find", "syscalls"),
    "src/host/patch": host("base", "code/x86_64", "code/aarch64", "tracer", "sites"),
    "src/host/trampoline": host("base", "file", "patch"),
    "src/host/trace": host("base", "code/x86_64", "code/aarch64", "file", "module", "stack", "space", "tracer", "sites", "events", "syscalls", "patch", "trampoline") + ["src/trace"],
    "src/host/self_trace": host("base", "code", "code/x86_64", "code/aarch64", "file", "module", "stack", "space", "sites", "events", "syscalls", "trace", "patch", "trampoline") + ["src/trace"],
    "src/host/profile": host("base", "syscalls", "file", "symbol", "module", "symbolize", "space", "find", "interpreters", "stack", "events",
                             "tracer"),
    "src/host/annotate": host("base", "file", "symbol", "module", "symbolize", "space", "source", "find", "disasm", "stack", "events", "profile"),
    "src/host/exchange": host("base", "file", "symbol", "module", "symbolize", "jit", "space", "space/kernel", "source", "find", "disasm", "stack", "events", "profile"),
    "src/host/page": host("base", "file", "symbol", "module", "symbolize", "space", "find", "stack", "events", "profile", "exchange"),
    "src/host/store": host("base", "file", "symbol", "module", "space"),
    "src/host/fleet": host("base", "file", "symbol", "module", "symbolize", "space", "profile", "store"),
    "src/host/ranks": host("base"),
    "src/host/hook": host("base", "tracer", "code", "code/x86_64", "code/aarch64", "file", "sites", "trace", "patch", "trampoline"),
    "cli": [],
    "cli/compat": ["cli"],
    "cli/compat/addr2line": ["cli", "cli/compat"],
    "cli/compat/llvm": ["cli", "cli/compat"],
    "cli/compat/strace": ["cli", "cli/compat"],
    "include/fathom": [],
}

# Headers of the C library that the safe tier may use: constants and types, no functions but those
# of string.h that its linker test allows.
SAFE_SYSTEM = {"elf.h", "errno.h", "fcntl.h", "poll.h", "signal.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
               "string.h", "sys/syscall.h", "ucontext.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def check(path, folder):
    wrong = []
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, name = match.groups()
            place = f"{path}:{number}"
            if name.startswith("fathom/"):
                continue
            if kind == "<":
                if folder.startswith("src/safe") and name not in SAFE_SYSTEM:
                    wrong.append(f"{place}: the safe tier may not include <{name}>")
                continue
            target = name if name.startswith("cli/") else "src/" + name
            home = os.path.dirname(target)
            if not os.path.exists(target):
                wrong.append(f"{place}: {name} is not written from src/ or cli/ on")
                continue
            if home != folder and home not in LAW[folder]:
                wrong.append(f"{place}: {folder} may not include {target}")
    return wrong


def main():
    wrong = []
    for folder in LAW:
        for name in sorted(os.listdir(folder)):
            if name.endswith((".c", ".h", ".S")):
                wrong += check(os.path.join(folder, name), folder)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
