# SPDX-License-Identifier: MIT
"""What this suite's programs are built as. Everything is built once, by the first test that needs it."""
import atexit
import contextlib
import os
import re
import shutil
import tempfile

import elfread
import tap
import toolchain

from ask import execute, run
from building import add_link, build_id, debug_path
from running import Running, wait_for_state
from suite import PROGRAMS, need_x86, once

FOLDER = tempfile.mkdtemp(prefix="fathom-filter-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
# No instruction before the first, no gap between functions, none moved away.
FLAGS = ("-O1", "-g", "-fcf-protection=none", "-falign-functions=1", "-fno-toplevel-reorder", "-fno-reorder-functions")
SONAME = "-Wl,-soname,libcrash.so"


def source(name):
    return os.path.join(PROGRAMS, name)


def folder_for(*parts):
    path = os.path.join(FOLDER, *parts)
    os.makedirs(path, exist_ok=True)
    return path


@once
def compiled(name, *options):
    """An object of the source @name."""
    path = os.path.join(folder_for("objects"), f"{name}-{'-'.join(o.strip('-') for o in options)}.o".replace("/", "-"))
    run("gcc", *FLAGS, *options, "-c", "-o", path, source(name))
    return path


def link(path, *words, linker="bfd", build_id="sha1", compiler="gcc"):
    run(compiler, f"-fuse-ld={linker}", f"-Wl,--build-id={build_id}", "-o", path, *words)
    return path


def segments(path):
    """(vaddr, offset, is code) of what is loaded, by readelf."""
    return [(int(m[2], 16), int(m[1], 16), "E" in m[3])
            for m in re.finditer(r"^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x\w+ ([RWE ]+?) +0x", run("readelf", "-lW", path), re.M)]


class Numbers:
    """What one address of a file, as stated there, is elsewhere."""

    def __init__(self, path):
        self.path, loads = path, segments(path)
        self.first = loads[0][0] & ~0xfff
        ((self.code, self.code_offset, _),) = [load for load in loads if load[2]]
        (size,) = re.findall(r"^ +LOAD +0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x(\w+) [RW ]*E +0x", run("readelf", "-lW", path), re.M)
        # Whole pages are mapped.
        self.code_size = (self.code % 0x1000 + int(size, 16) + 0xfff) & ~0xfff

    def offset(self, address):
        """From the start of the file."""
        return address - self.code + self.code_offset

    def from_first(self, address):
        """From where the first mapping is."""
        return address - self.first


class Program:
    """A program and its library. They run without symbols; @whole has them before those were taken."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        self.whole = {name: os.path.join(folder, "whole", name) for name in names}
        self.bare = {name: os.path.join(folder, "bare", name) for name in names}
        self.debug_dir = os.path.join(folder, "debug")
        self.options = []

    def take_symbols(self, by_link):
        """Debug files come beside the programs, or below debug_dir."""
        self.options = [] if by_link else ["--debug-dir", self.debug_dir]
        folder_for(self.folder, "bare")
        for name in self.names:
            shutil.copy(self.whole[name], self.bare[name])
            debug = os.path.join(self.folder, "bare", name + ".debug") if by_link \
                else debug_path(self.debug_dir, build_id(self.whole[name]))
            run("objcopy", "--only-keep-debug", self.whole[name], debug)
            run("strip", self.bare[name])
            if by_link:
                add_link(self.bare[name], debug)

    def ours(self, path):
        """The unstripped file of what a log calls @path, or None."""
        return self.whole.get(os.path.basename(path))


@once
def crash(linker, pie):
    """crash.c and its library, linked by @linker; debug files of bfd's by links, of others by build-ids."""
    need_x86()
    folder = folder_for(f"crash-{linker}-{pie}")
    program = Program(folder, ("crash", "libcrash.so"))
    folder_for(folder, "whole")
    link(program.whole["libcrash.so"], compiled("crash_lib.c", "-fPIC"), "-shared", SONAME, linker=linker)
    link(program.whole["crash"], compiled("crash.c", "-fPIE" if pie else "-fno-pie"), program.whole["libcrash.so"],
         "-pie" if pie else "-no-pie", "-Wl,-rpath,$ORIGIN", linker=linker)
    program.take_symbols(linker == "bfd")
    return program


@once
def newest_clang():
    """The newest clang that has the libraries of its sanitizers."""
    path = toolchain.newest("/usr/lib/llvm-*/bin/clang")
    if not os.path.exists(run(path, "-print-file-name=libclang_rt.asan-x86_64.a").strip()):
        raise tap.Skip(f"{path} has no libraries of sanitizers")
    return path


@once
def sanitized(compiler, sanitizer, *options):
    """crash.c and its library with a sanitizer, or race.c."""
    need_x86()
    command = newest_clang() if compiler == "clang" else compiler
    folder = folder_for(f"{sanitizer}-{compiler}{''.join(options)}")
    flags = ["-O1", "-g", f"-fsanitize={sanitizer}", "-Wl,--build-id=sha1"]
    folder_for(folder, "whole")
    if sanitizer == "thread":
        program = Program(folder, ("race",))
        words = [*flags, *options, "-o", program.whole["race"], source("race.c"), "-pthread"]
        able = execute(command, *words)
        if able.returncode:
            raise tap.Skip(f"{command} cannot build for -fsanitize=thread: {able.stderr.splitlines()[:1]}")
    else:
        program = Program(folder, ("crash", "libcrash.so"))
        run(command, *flags, "-fPIC", "-shared", "-o", program.whole["libcrash.so"], source("crash_lib.c"), SONAME, *options)
        run(command, *flags, "-o", program.whole["crash"], source("crash.c"), program.whole["libcrash.so"], "-Wl,-rpath,$ORIGIN",
            *options)
    program.take_symbols(compiler == "gcc")
    return program


@contextlib.contextmanager
def waits(path):
    """A program of crash() that has told its calls and waits: the process, and what it told."""
    with Running([path, "wait"]) as process:
        text = "".join(iter(process.process.stdout.readline, "told\n")) + "told\n"
        wait_for_state(process.pid, "S")
        yield process, text


class Report:
    """What a program wrote: its own record of its calls, innermost first, and what follows."""

    def __init__(self, text):
        head, told, self.log = text.partition("told\n")
        assert told, text
        self.calls = [(line.split()[1], int(line.split()[2])) for line in head.splitlines() if line.startswith("call ")]


@once
def steps(name, *options):
    """libsteps.so, built with @options, in a folder called @name: by lld, so that addresses and offsets differ; its first
    address is 0x2000."""
    moved = [o for o in options if o.startswith("-D")]
    path = os.path.join(folder_for("steps", name), "libsteps.so")
    return link(path, compiled("steps.c", "-fPIC", *moved), "-shared", "-nostdlib", "-Wl,--image-base=0x2000", linker="lld",
                build_id="none" if "no-build-id" in options else "sha1")


@once
def fixed_steps():
    """The same functions in a program at fixed addresses."""
    return link(os.path.join(folder_for("steps"), "steps"), compiled("steps.c", "-DPROGRAM", "-fno-pie"), "-no-pie", linker="lld")


@once
def arm_steps():
    """libsteps.so for aarch64."""
    if not shutil.which("aarch64-linux-gnu-gcc"):
        raise tap.Skip("aarch64-linux-gnu-gcc is not installed")
    flags = [flag for flag in FLAGS if "cf-protection" not in flag]
    path = os.path.join(folder_for("steps", "arm"), "libsteps.so")
    run("aarch64-linux-gnu-gcc", *flags, "-fPIC", "-c", "-o", path + ".o", source("steps.c"))
    run("ld.lld", "-shared", "--image-base=0x20000", "-o", path, path + ".o")
    return path


def elf_kind(path):
    """e_type: 2 at fixed addresses, 3 not."""
    return elfread.ElfFile(path).type
