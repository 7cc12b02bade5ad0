#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the tables of system calls and of constants from the kernel's sources, and from what syscalls.txt and constants.txt in
src/host/syscalls say of arguments.

syscall_tables.py: writes src/host/syscalls/{constant_rows.c,constant_tables.h,syscall_rows.c,syscall_functions.h} from Debian's package
linux-source-6.12, which it unpacks below build/.
syscall_tables.py --check: fails if these files differ from what it would write."""
import glob
import os
import re
import sys

import syscall_constants
import syscall_types
from syscall_headers import ARCHES, PACKAGE, SOURCES, prepare, version

FOLDER = "src/host/syscalls"
TABLES = {"x86_64": ("arch/x86/entry/syscalls/syscall_64.tbl", {"common", "64"}),
          "i386": ("arch/x86/entry/syscalls/syscall_32.tbl", {"i386"}),
          "aarch64": ("scripts/syscall.tbl", {"common", "64", "renameat", "rlimit", "memfd_secret"})}
OWN_FOLDER = {"x86_64": "arch/x86", "i386": "arch/x86", "aarch64": "arch/arm64"}
CLASSES = ("file", "desc", "memory", "network", "process", "signal", "ipc", "creds", "clock", "pure", "stat", "lstat", "fstat",
           "stat_like", "statfs", "fstatfs", "statfs_like")
# clone() differs by configuration; the definition for x86-64 is the last, that for the others the first.
LAST = {("clone", "x86_64")}


def read_table(arch):
    """Returns {number: (name, entry point)} of an architecture."""
    path, abis = TABLES[arch]
    calls = {}
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if len(words) >= 3 and words[1] in abis:
                calls[int(words[0])] = (words[2], words[3] if len(words) > 3 else "sys_ni_syscall")
    return calls


def read_definitions():
    """Returns {name of a function: [(file, [(type, name)])]} of all SYSCALL_DEFINEn of the sources."""
    found = {}
    pattern = re.compile(r"\bSYSCALL(?:32)?_DEFINE[0-6]\s*\(\s*(\w+)\s*((?:,[^()]*)?)\)", re.S)
    for path in sorted(glob.glob(f"{SOURCES}/**/*.c", recursive=True)):
        name = os.path.relpath(path, SOURCES)
        if name.startswith("arch/") and not name.startswith(("arch/x86/", "arch/arm64/")):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if "SYSCALL" not in text:
            continue
        for match in pattern.finditer(re.sub(r"/\*.*?\*/", " ", text, flags=re.S)):
            parts = [" ".join(part.split()) for part in match[2].split(",")[1:]]
            pairs = [(clean(parts[i]), parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
            found.setdefault(match[1], []).append((name, pairs))
    return found


def clean(kind):
    """Returns a C type without what only the kernel's checkers read."""
    kind = " ".join(re.sub(r"\b__user\b", " ", kind).replace("*", " * ").split())
    return kind.replace("* *", "**").replace("* *", "**")


def arguments_of(arch, name, entry, definitions):
    """Returns [(type, name)] of a call; None if no source has it."""
    wanted = entry.removeprefix("sys_")
    found = definitions.get(wanted, []) if wanted != "ni_syscall" else []
    if not found:
        return None
    own = [pairs for path, pairs in found if path.startswith(OWN_FOLDER[arch])]
    general = [pairs for path, pairs in found if not path.startswith("arch/")]
    if (name, arch) in LAST:
        return general[-1]
    return (own or general or [None])[0]


# Types by C types, and by the names of arguments.
BY_TYPE = [(r"const char \*", r".*(name|path|type|dir)\w*", "path"), (r"const char \*", r".*", "cstr"), (r".*\*", r".*", "addr"),
           (r"(unsigned )?int", r"(\w*_)?fd", "fd"), (r"(int|s32|pid_t|key_t|clockid_t|timer_t|mqd_t|key_serial_t)", r".*", "s4"),
           (r"(unsigned( int)?|u32|__u32|uid_t|gid_t|qid_t|unsigned int)", r".*flags", "x4"),
           (r"(unsigned( int)?|u32|__u32|uid_t|gid_t|qid_t|umode_t)", r".*", "u4"), (r"(long|loff_t|off_t)", r".*", "sl"),
           (r"size_t", r".*", "zl"), (r".*", r".*", "xl")]


def default_type(types, kind, name):
    for of_type, of_name, text in BY_TYPE:
        if re.fullmatch(of_type, kind) and re.fullmatch(of_name, name):
            return types.parse(text)
    return types.parse("xl")


class Names:
    """All names in one string."""

    def __init__(self):
        self.places, self.size = {"": 0}, 1

    def add(self, name):
        if name not in self.places:
            self.places[name] = self.size
            self.size += len(name) + 1
        return self.places[name]

    def text(self, variable):
        lines, line = [], ""
        for name in self.places:
            item = name.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + "\\0"
            if len(line) + len(item) > 88:
                lines.append(line)
                line = ""
            line += item
        return f"const char {variable}[] =\n" + "\n".join(f'\t"{line}"' for line in [*lines, line]) + ";\n"


def filled(cells, width=92):
    lines = [""]
    for cell in cells:
        if len(lines[-1]) + len(cell) + 1 > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + cell
    return "\n".join("\t" + line for line in lines)


HEAD = """\
/* SPDX-License-Identifier: MIT */
/*
 * %s
 * Made by tools/syscall_tables.py from Debian's %s,
 * version %s.
 */
"""


def head(text):
    return HEAD % (text, PACKAGE, version())


def write_constants(tables, names):
    """Returns constant_tables.h and constant_rows.c."""
    ids = "".join(f"\tFATHOM_CONSTANTS_{table.name.upper()},\n" for table in tables)
    header = head("Numbers of the tables of constants.") + f"""\
#ifndef FATHOM_SYSCALLS_CONSTANT_TABLES_H
#define FATHOM_SYSCALLS_CONSTANT_TABLES_H

enum fathom_constant_table {{
{ids}\tFATHOM_CONSTANTS_TABLES
}};

#endif
"""
    rows, places = [], []
    for table in tables:
        places.append(f"{{ {len(rows)}, {len(table.rows)}, {names.add(table.unknown)} }},")
        rows += [f"{{ 0x{value:x}, {names.add(name)}, {bits} }}," for value, name, bits in table.rows]
    source = head("Constants, by table.") + f"""\
#include "host/syscalls/constant_names.h"

/* clang-format off */
{names.text("fathom_constant_names")}
const struct fathom_constant fathom_constant_rows[] = {{
{filled(rows)}
}};

const struct fathom_constant_place fathom_constant_places[] = {{
{filled(places)}
}};
/* clang-format on */
"""
    return header, source


def classes_of(name, types, numbers, result, stated):
    """Returns the bits of the classes that a call is in."""
    kinds = {types.rows[number][0] for number in numbers} | {types.rows[result][0]}
    inner = {types.rows[types.rows[number][2]][0] for number in numbers if types.rows[number][0] == "IF"}
    found = set(stated)
    if "PATH" in kinds | inner:
        found.add("file")
    # Sockets are a class of their own.
    if kinds & {"DESCRIPTOR", "DIRECTORY"} and "network" not in found:
        found.add("desc")
    return sum(1 << CLASSES.index(name) for name in found)


class Rows:
    """The rows of all calls: each once, whatever its architectures and numbers are."""

    def __init__(self, types, calls, names):
        self.types, self.calls, self.names = types, calls, names
        self.rows, self.places, self.arguments, self.argument_places = ["{ 0 },"], {}, [], {}

    def arguments_at(self, pairs):
        key = tuple(pairs)
        if key and key not in self.argument_places:
            self.argument_places[key] = len(self.arguments)
            self.arguments += [f"{{ {self.names.add(name)}, {self.names.add(kind)} }}," for kind, name in pairs]
        return self.argument_places.get(key, 0)

    def add(self, name, arch, pairs):
        """Returns the number of the row of a call with these arguments."""
        known = pairs is not None
        pairs = pairs if known else [("unsigned long", f"arg{i}") for i in range(6)]
        numbers, result, stated = self.calls.get(f"{name}@{arch}") or self.calls.get(name, (None, 0, []))
        if numbers is None:
            numbers = [default_type(self.types, kind, argument) for kind, argument in pairs]
        elif not known:
            pairs = pairs[:len(numbers)]
        # What selects may be followed by fewer or more types than the kernel's function has arguments.
        last = numbers and self.types.rows[numbers[-1]][0] == "CASES"
        if not last and len(numbers) > len(pairs):
            pairs = (pairs + [("unsigned long", f"arg{i}") for i in range(6)])[:len(numbers)]
        classes = classes_of(name, self.types, numbers, result, stated)
        row = (f"{{ {self.names.add(name)}, {self.arguments_at(pairs)}, {self.types.list_of(numbers)}, {result}, "
               f"{len(pairs)}, {len(numbers)}, 0x{classes:x} }},")
        if row not in self.places:
            self.places[row] = len(self.rows)
            self.rows.append(row)
        return self.places[row]


def write_types(types, names):
    """Returns the C text of types, structs and cases."""
    lists, cases, groups = types, [], []
    for group in types.cases.values():
        default = group["default"]
        groups.append(f"{{ {len(cases)}, {len(group['rows'])}, {lists.list_of(default[0])}, {len(default[0])}, {default[1]}, {group['mask']} }},")
        cases += [f"{{ 0x{value:x}, {lists.list_of(of)}, {result}, {len(of)}, {bits} }}," for value, bits, of, result in group["rows"]]
    rows = [f"{{ FATHOM_KIND_{kind}, {width}, {a}, 0x{n:x} }}," for kind, width, a, _, n in types.rows]
    structs = [f"{{ {first}, {n}, {{ {sizes[0][0]}, {sizes[1][0]} }}, {int(short)} }}," for _, first, n, short, sizes in types.structs]
    fields = [f"{{ {names.add(name)}, {of}, {{ {a}, {b} }}, {int(shown)} }}," for name, of, a, b, shown in types.fields]
    sizes = [f"{{ {', '.join(str(size) for size, _ in types.sizes.get(i, [(0, 1)] * 2))} }}," for i in range(len(types.rows))]
    parts = [("struct fathom_type fathom_types", rows), ("uint16_t fathom_type_sizes", sizes),
             ("uint16_t fathom_type_lists", [f"{i}," for i in types.lists]),
             ("struct fathom_type_struct fathom_type_structs", structs), ("struct fathom_type_field fathom_type_fields", fields),
             ("struct fathom_case fathom_cases", cases), ("struct fathom_case_group fathom_case_groups", groups)]
    return "\n".join(f"const {name}[]{'[2]' if 'sizes' in name else ''} = {{\n{filled(cells)}\n}};\n" for name, cells in parts)


def subcall_rows(rows, subcalls, definitions):
    """Returns the C text of the rows of calls that one call of i386 stands for, by their numbers in it."""
    text = ""
    for name, names in subcalls.items():
        cells = [0 if call == "-" else rows.add(call, "i386", arguments_of("i386", call, f"sys_{call}", definitions)) for call in names]
        text += f"const uint16_t fathom_{name}_rows[] = {{\n{filled([f'{cell},' for cell in cells])}\n}};\nconst uint32_t fathom_{name}_rows_n = {len(cells)};\n\n"
    return text


def write_calls(types, calls):
    """Returns syscall_functions.h and syscall_rows.c."""
    names, definitions = Names(), read_definitions()
    rows = Rows(types, calls, names)
    numbers, tables = [], []
    for bit, (arch, machine, _, _) in enumerate(ARCHES):
        table = read_table(arch)
        cells = [rows.add(table[i][0], arch, arguments_of(arch, *table[i], definitions)) if i in table else 0
                 for i in range(max(table) + 1)]
        numbers.append(f"static const uint16_t {arch}_rows[] = {{\n{filled([f'{cell},' for cell in cells])}\n}};\n")
        tables.append(f"\t{{ {machine}, {len(cells)}, {arch}_rows }},")
    subcalls = subcall_rows(rows, types.subcalls, definitions)
    body = write_types(types, names)
    declared = "".join(f"fathom_decode_fn fathom_decode_{name};\n" for name in types.functions)
    functions = "".join(f"\tfathom_decode_{name},\n" for name in types.functions)
    places = "".join(f"\tFATHOM_TYPE_{name.upper()} = {types.places['STRUCT', 0, i, 0, 0]},\n"
                     for i, (name, *_) in enumerate(types.structs))
    header = head("The functions and structs that syscalls.txt names.") + f"""\
#ifndef FATHOM_SYSCALLS_CALL_FUNCTIONS_H
#define FATHOM_SYSCALLS_CALL_FUNCTIONS_H

#include "host/syscalls/syscall_types.h"

{declared}
/* Types of structs. */
enum {{
{places}}};

#endif
"""
    numbers = "\n".join(numbers)
    tables = "\n".join(tables)
    source = head("System calls, their arguments, and the types of these.") + f"""\
#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/syscall_table.h"

/* clang-format off */
{names.text("fathom_syscall_names")}
const struct fathom_syscall fathom_syscall_rows[] = {{
{filled(rows.rows)}
}};

const struct fathom_syscall_argument fathom_syscall_arguments[] = {{
{filled(rows.arguments)}
}};

{body}
fathom_decode_fn *const fathom_decode_functions[] = {{
{functions}}};

{subcalls}{numbers}
const struct fathom_syscall_table fathom_syscall_tables[FATHOM_SYSCALL_TABLES] = {{
{tables}
}};
/* clang-format on */
"""
    return header, source


def make():
    prepare()
    constants = syscall_constants.read_tables()
    types, calls = syscall_types.read(constants)
    tables, rows = write_constants(constants, Names())
    functions, call_rows = write_calls(types, calls)
    return {"constant_tables.h": tables, "constant_rows.c": rows, "syscall_functions.h": functions, "syscall_rows.c": call_rows}


def main():
    wrong = []
    for name, text in make().items():
        path = os.path.join(FOLDER, name)
        if "--check" in sys.argv:
            with open(path, encoding="utf-8") as file:
                wrong += [] if file.read() == text else [f"{path} is not what {PACKAGE} {version()} makes"]
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return "\n".join(wrong) or 0


if __name__ == "__main__":
    sys.exit(main())
