# SPDX-License-Identifier: MIT
"""Builds programs for tests, and says what other tools say of files."""
import functools
import os
import re
import tempfile

import elfread
import tap
from ask import run


def plain(library, machine="x86_64"):
    """Skips unless programs can run by themselves, with @library for @machine (any, if ""), not instrumented."""
    if os.environ.get("WRAPPER"):
        raise tap.Skip("the programs of this suite run by themselves")
    if machine and os.uname().machine != machine:
        raise tap.Skip("the programs of this suite are for x86-64")
    if re.search(r"\b__(asan|tsan|ubsan)_", run("nm", "-u", library) + run("nm", "-uD", library, status=None)):
        raise tap.Skip("the programs of this suite are not instrumented, as the library is")


@functools.cache
def programs_of_32_bit():
    """None if the kernel runs programs of i386; else its refusal."""
    with tempfile.TemporaryDirectory() as folder:
        path = build_text(os.path.join(folder, "program"), "int main(void) { return 0; }", "-static", compiler="i686-linux-gnu-gcc")
        try:
            run(path)
        except OSError as error:
            return error
    return None


def need_32_bit():
    """Skips unless the kernel runs programs of i386."""
    error = programs_of_32_bit()
    if error:
        raise tap.Skip(f"this kernel does not run 32-bit programs: {error}")


def build(path, source, *options, compiler="gcc", flags=("-O1", "-g")):
    """@path, compiled and linked from the file @source."""
    run(compiler, *flags, *options, "-o", path, source)
    return path


def build_text(path, text, *options, compiler="gcc", language="c", flags=("-O1", "-g")):
    """@path, compiled and linked from @text."""
    run(compiler, *flags, "-o", path, "-x", language, "-", "-x", "none", *options, input=text)
    return path


def static_libraries(*packages):
    """What a program needs that is linked with archives of @packages, or with those of all that fathom is."""
    packages = packages or ("libdeflate", "zlib", "libzstd", "liblzma", "liblz4")
    return run("pkg-config", "--static", "--libs", *packages).split()


def nm(path, *options):
    """{name: [(value, kind)]} of what is defined, without versions."""
    found = {}
    for line in run("nm", *options, path, status=None).splitlines():
        m = re.match(r"([0-9a-f]+) (\w) (\S+)", line)
        if m and m[2] not in "UNna":
            found.setdefault(m[3].split("@")[0], []).append((int(m[1], 16), m[2]))
    return found


def strip_headers(path):
    """Takes the section headers out of an ELF file of 64 bits: e_shoff, e_shnum and e_shstrndx become 0."""
    with open(path, "r+b") as f:
        f.seek(0x28)
        f.write(bytes(8))
        f.seek(0x3c)
        f.write(bytes(4))


def section(path, name):
    """A section of an ELF file, with its addr, off and size."""
    found = elfread.ElfFile(path).section(name)
    assert found, f"{path}: there is no {name}"
    return found


def build_id(path):
    """By readelf, or "" without one."""
    found = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-nW", path, status=None))
    return found[1] if found else ""


def debug_path(folder, number):
    """Where a debug file with the build-id @number has to be below @folder; its directory is made."""
    path = os.path.join(folder, ".build-id", number[:2], number[2:] + ".debug")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def keep_debug(path):
    """Takes symbols and debug information out of @path, but for what it exports; returns the path of the debug file."""
    run("objcopy", "--only-keep-debug", path, path + ".debug")
    run("strip", path)
    return path + ".debug"


def add_link(path, debug):
    """Adds a .gnu_debuglink to @debug."""
    run("objcopy", f"--add-gnu-debuglink={debug}", path, cwd=os.path.dirname(path))


def add_minidebuginfo(path, debug):
    """Adds the symbols of the file @debug to @path as .gnu_debugdata."""
    mini = path + ".mini"
    run("objcopy", "--strip-debug", debug, mini)
    run("xz", "-f", mini)
    run("objcopy", f"--add-section=.gnu_debugdata={mini}.xz", path)
    os.remove(mini + ".xz")


def core_of(pid, folder):
    """The core of a living process that gdb writes."""
    run("gcore", "-o", os.path.join(folder, "core"), pid)
    return os.path.join(folder, f"core.{pid}")
