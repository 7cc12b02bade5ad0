#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the table of the names of system calls from the kernel's headers.

syscalls.py: writes src/host/stack/syscall_names.c from the headers of Debian's packages linux-libc-dev
(x86-64, i386) and linux-libc-dev-arm64-cross, as the preprocessor reads them.
syscalls.py --check: fails if the file differs from what the installed headers say."""
import re
import subprocess
import sys

OUTPUT = "src/host/stack/syscall_names.c"
# Table, EM_ constant, package, folder of headers, header.
MACHINES = [
    ("x86_64", "EM_X86_64", "linux-libc-dev", "/usr/include/x86_64-linux-gnu", "asm/unistd_64.h"),
    ("i386", "EM_386", "linux-libc-dev", "/usr/include/x86_64-linux-gnu", "asm/unistd_32.h"),
    ("aarch64", "EM_AARCH64", "linux-libc-dev-arm64-cross", "/usr/aarch64-linux-gnu/include", "asm/unistd.h"),
]
# Macros of these headers that count or delimit and are no system calls.
NO_CALLS = {"syscalls", "arch_specific_syscall"}

TEXT = """\
/* SPDX-License-Identifier: MIT */
/*
 * Names of system calls, by their numbers. Made by tools/syscalls.py from the kernel's headers as
 * they are in
%s
 * Later kernels have more system calls; x32's are left out. All names stand in one string; the
 * tables have the offset of each, 0 for numbers without a name.
 */
#include "host/stack/syscall_names.h"

#include <elf.h>

/* clang-format off */
static const char names[] =
%s;

%s
/* clang-format on */

const char *fathom_syscall_name(uint32_t machine, int64_t number)
{
	static const struct {
		uint32_t machine;
		uint32_t n;
		const uint16_t *offs;
	} tables[] = {
%s
	};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (tables[i].machine == machine && number >= 0 && number < tables[i].n &&
		    tables[i].offs[number])
			return names + tables[i].offs[number];
	return NULL;
}
"""


def read_numbers(folder, header):
    """Returns {number: name} of a header, whose macros may stand for other macros."""
    out = subprocess.run(["cc", "-E", "-dM", "-nostdinc", "-undef", "-I", folder, "-I", "/usr/include",
                          "-include", header, "-"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         check=True).stdout
    macros = dict(re.findall(r"^#define (__NR\w+) (\S+)$", out, re.M))
    numbers = {}
    for macro, value in macros.items():
        if not macro.startswith("__NR_") or macro[5:] in NO_CALLS:
            continue
        for _ in range(4):
            value = macros.get(value, value)
        number = int(value)
        if number in numbers:
            sys.exit(f"{header}: {number} is {numbers[number]} and {macro[5:]}")
        numbers[number] = macro[5:]
    return numbers


def version_of(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True,
                          check=True).stdout


def filled(items, prefix, width):
    """Returns the items in lines of at most about this width."""
    lines = [prefix]
    for item in items:
        if len(lines[-1]) + len(item) + 1 > width:
            lines.append(prefix)
        lines[-1] += ("" if lines[-1] == prefix else " ") + item
    return lines


def make():
    numbers = {table: read_numbers(folder, header) for table, _, _, folder, header in MACHINES}
    offsets = {}
    size = 1
    for name in sorted({name for of in numbers.values() for name in of.values()}):
        offsets[name] = size
        size += len(name) + 1
    if size > 0xffff:
        sys.exit("offsets do not fit 16 bits")
    strings = "\n".join(['\t"\\0"'] + ['\t"' + "".join(line.split()) + '"' for line in
                                       filled([name + "\\0" for name in offsets], "", 88)])
    tables = []
    rows = []
    for table, machine, _, _, _ in MACHINES:
        of = numbers[table]
        cells = [f"{offsets[of[i]] if i in of else 0}," for i in range(max(of) + 1)]
        tables.append("\n".join([f"static const uint16_t {table}_offs[{max(of) + 1}] = {{", *filled(cells, "\t", 88), "};"]))
        rows.append(f"\t\t{{ {machine}, sizeof {table}_offs / sizeof *{table}_offs, {table}_offs }},")
    packages = "\n".join(f" * - {package} {version_of(package)}"
                         for package in dict.fromkeys(package for _, _, package, _, _ in MACHINES))
    return TEXT % (packages + ".", strings, "\n\n".join(tables), "\n".join(rows))


def main():
    text = make()
    if "--check" in sys.argv:
        with open(OUTPUT, encoding="utf-8") as file:
            return 0 if file.read() == text else f"{OUTPUT} differs from the installed headers"
    with open(OUTPUT, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
