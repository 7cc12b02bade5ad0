# SPDX-License-Identifier: MIT
"""Asks a compiler what the headers of the kernel say: the names that they define, and their values on each architecture.

The package's sources are unpacked once, below build/, and `make headers` leaves the headers there that programs include."""
import functools
import os
import re
import subprocess

# Name, EM_ constant, folder of `make headers`, options of the compiler. The bit of an architecture is its place here.
ARCHES = [
    ("x86_64", "EM_X86_64", "x86", ("-m64",)),
    ("i386", "EM_386", "x86", ("-m32",)),
    ("aarch64", "EM_AARCH64", "arm64", ("-m64", "-U__x86_64__", "-D__aarch64__")),
]
PACKAGE = "linux-source-6.12"
ARCHIVE = "/usr/src/linux-source-6.12.tar.xz"
SOURCES = "build/linux"
# What headers of the kernel include of libc, as far as they need it.
STANDINS = {
    "sys/socket.h": "struct sockaddr { unsigned short sa_family; char sa_data[14]; };\ntypedef unsigned short sa_family_t;\n",
    "sys/types.h": "", "sys/ioctl.h": "#include <linux/ioctl.h>\n", "time.h": "", "string.h": "", "unistd.h": "", "endian.h": "", "stdlib.h": "", "netinet/in.h": "", "sys/time.h": "",
    "stdint.h": "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"
                "typedef unsigned long long uint64_t;\ntypedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\n"
                "typedef long long int64_t;\n",
}


def version():
    """Returns the version of the package that the sources are of."""
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE], capture_output=True, text=True,
                          check=True).stdout


def prepare():
    """Unpacks the sources and makes their headers, unless that was done for this version."""
    stamp = os.path.join(SOURCES, "fathom-version")
    if os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == version():
        return
    os.makedirs(SOURCES, exist_ok=True)
    subprocess.run(["tar", "-xJf", ARCHIVE, "-C", SOURCES, "--strip-components=1", "--exclude=*/drivers/*",
                    "--exclude=*/sound/*", "--exclude=*/Documentation/*"], check=True)
    for arch in sorted({arch for _, _, arch, _ in ARCHES}):
        subprocess.run(["make", "-s", "-C", SOURCES, f"ARCH={arch}", f"O={os.path.abspath(SOURCES)}-{arch}", "headers"],
                       check=True)
    folder = os.path.join(SOURCES, "fathom-standins")
    for name, text in STANDINS.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(version())


def include_folder(arch):
    return f"{SOURCES}-{arch[2]}/usr/include"


@functools.cache
def builtin_headers():
    return subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()


def compiler(arch, *options):
    return ["gcc", *arch[3], "-nostdinc", "-w", "-I", include_folder(arch), "-I", f"{SOURCES}/fathom-standins",
            "-isystem", builtin_headers(), *options, "-x", "c", "-"]


def kernel_definitions(path, wanted):
    """Returns the text of a kernel header's plain macros, and of its enumerations with one of the names @wanted."""
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    lines = [f"#ifndef {name}\n#define {name} {value}\n#endif"
             for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]+)$", text, re.M)]
    enums = [body for body in re.findall(r"\benum(?:\s+\w+)?\s*\{([^{}]*)\}", text)
             if set(re.findall(r"\w+", body)) & wanted]
    return "\n".join(lines + [f"enum {{ {body} }};" for body in enums]) + "\n"


def prologue(headers, wanted):
    """Returns what includes @headers, pairs of whether it is the kernel's own, and its name."""
    return "#include <stddef.h>\n#include <linux/types.h>\n" + "".join(
        kernel_definitions(name, wanted) if internal else f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for internal, name in headers)


def names_of(arch, text):
    """Returns the names of macros without parameters, and of enumerators, that @text defines, in their order."""
    out = subprocess.run(compiler(arch, "-E", "-dD"), input=text, capture_output=True, text=True, check=True).stdout
    names = []
    for match in re.finditer(r"^#define (\w+) |\benum(?:\s+\w+)?\s*\{([^{}]*)\}", out, re.M):
        if match[1]:
            names.append(match[1])
        else:
            body = re.sub(r"^#.*$", "", match[2], flags=re.M)
            names += re.findall(r"(?:^|,)\s*(\w+)", body)
    return list(dict.fromkeys(names))


def values_of(arch, text, names):
    """Returns {name: value} of those @names that are constants behind @text; values are of 64 bits, without sign."""
    names = list(names)
    head = text + "#line 1 \"values\"\n"
    while names:
        body = "".join(f"const unsigned long long fathom_value_{i} = (unsigned long long)({name});\n"
                       for i, name in enumerate(names))
        done = subprocess.run(compiler(arch, "-S", "-fmax-errors=0", "-o", "-"), input=head + body, capture_output=True,
                              text=True, check=False)
        if not done.returncode:
            return {names[int(i)]: int(value) & (1 << 64) - 1 for i, value in read_words(done.stdout)}
        bad = {int(line) for line in re.findall(r"^values:(\d+):\d+: (?:error|note: in expansion)", done.stderr, re.M)}
        if not bad:
            raise SystemExit(f"{arch[0]}: {done.stderr}")
        names = [name for i, name in enumerate(names, 1) if i not in bad]
    return {}


def read_words(assembly):
    """Yields (number, value) of each fathom_value_N of an assembler's text, as gcc writes them."""
    for number, body in re.findall(r"^fathom_value_(\d+):\n((?:\t\.(?:quad|long|zero)\t.*\n)+)", assembly, re.M):
        words = re.findall(r"\.(quad|long|zero)\t(-?\d+)", body)
        if not words:
            continue  # the address of a string
        if words[0][0] == "zero":
            yield number, 0
        elif words[0][0] == "quad":
            yield number, int(words[0][1])
        else:
            low, high = (int(word) & 0xffffffff for _, word in words)
            yield number, low | high << 32
