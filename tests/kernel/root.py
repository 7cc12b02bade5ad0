# SPDX-License-Identifier: MIT
"""A directory that looks like the root of a machine with a kernel of our own making: what /proc and
/sys would say of it, and its files."""
import os
import shutil

from ask import run

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
RELEASE = "6.1.0-test-amd64"
FLAGS = ["-g", "-O2", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-fcf-protection=none",
         "-fno-asynchronous-unwind-tables"]
LINK = 0xFFFFFFFF81000000
# Where KASLR has put the image, and the loader the sections of the module.
KASLR = 0x12C00000
SECTIONS = {".text": 0xFFFFFFFFC0A01000, ".text.unlikely": 0xFFFFFFFFC0A03000,
            ".exit.text": 0xFFFFFFFFC0A04000, ".init.text": 0xFFFFFFFFC0B00000,
            ".rodata.str1.1": 0xFFFFFFFFC0A06000, ".data": 0xFFFFFFFFC0A08000,
            ".bss": 0xFFFFFFFFC0A08040, ".note.gnu.build-id": 0xFFFFFFFFC0A06040}


def nm(path):
    """The symbols of a file: [(value, type, name)]."""
    lines = run("nm", path).splitlines()
    return [(int(value, 16), kind, name) for value, kind, name in
            (line.split() for line in lines if not line.startswith(" "))]


def section_of(path):
    """{symbol: section} of a relocatable file."""
    names, places = {}, {}
    for line in run("readelf", "-SW", path).splitlines():
        if line.strip().startswith("[") and line.strip()[1:3].strip().isdigit():
            number, rest = line.strip()[1:].split("]", 1)
            names[number.strip()] = rest.split()[0]
    for line in run("readelf", "-sW", path).splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[6].isdigit():
            places[fields[7]] = names[fields[6]]
    return places


def notes_of(path, section):
    out = path + ".notes"
    run("objcopy", "--dump-section", f"{section}={out}", path, out + ".unused")
    os.remove(out + ".unused")
    with open(out, "rb") as f:
        data = f.read()
    os.remove(out)
    return data


def build_id(notes):
    """The description of the only note."""
    return notes[16:].hex()


def build_kernel(folder, *options, name="vmlinux"):
    path = os.path.join(folder, name)
    run("gcc", *FLAGS, *options, "-nostdlib", "-static", "-Wl,--build-id=sha1", "-Wl,--no-warn-rwx-segments",
        "-Wl,-T," + os.path.join(PROGRAMS, "kernel.ld"), "-o", path, os.path.join(PROGRAMS, "kernel.c"))
    return path


def build_module(folder, *options, name="my-mod.ko"):
    path = os.path.join(folder, name)
    run("gcc", *FLAGS, *options, "-c", "-o", path + ".o", os.path.join(PROGRAMS, "module.c"))
    run("ld", "-r", "--build-id=sha1", "-o", path, path + ".o")
    os.remove(path + ".o")
    return path


class Root:
    """The root directory below @folder, with the symbols of the kernel and the module, and no file of either."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "root")
        self.vmlinux = build_kernel(folder)
        self.module = build_module(folder)
        self.lines = []
        self.write("proc/sys/kernel/osrelease", RELEASE + "\n")
        self.write("sys/kernel/notes", notes_of(self.vmlinux, ".notes"))
        for value, kind, name in sorted(nm(self.vmlinux), key=lambda s: s[0]):
            # Until Linux 6.15, what is in per-CPU memory was an absolute number.
            self.add(value + KASLR if value >= LINK else value, kind if value >= LINK else "A", name)
        self.load_module()
        self.save()

    def write(self, name, data):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def place(self, path, name):
        """Puts a copy of a file there."""
        to = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(path, to)
        return to

    def add(self, address, kind, name, owner=None):
        self.lines.append(f"{address:016x} {kind} {name}" + (f"\t[{owner}]" if owner else ""))

    def save(self, text=None):
        self.write("proc/kallsyms", text if text is not None else "\n".join(self.lines) + "\n")

    def module_symbols(self, sections=None):
        """[(address, type, name)], without what is freed once the module has started."""
        sections = sections or SECTIONS
        places = section_of(self.module)
        return [(value + sections[places[name]], kind, name) for value, kind, name in nm(self.module)
                if kind != "U" and places[name] != ".init.text"]

    def list_modules(self, *modules):
        """Writes /proc/modules of (name, address, size)."""
        self.write("proc/modules", "".join(f"{name} {size} 0 - Live 0x{address:016x} (OE)\n"
                                           for name, address, size in modules))

    def load_module(self, name="my_mod", sections=None):
        for section, address in (sections or SECTIONS).items():
            self.write(f"sys/module/{name}/sections/{section}", f"0x{address:016x}\n")
        self.write(f"sys/module/{name}/notes/.note.gnu.build-id", notes_of(self.module, ".note.gnu.build-id"))
        for address, kind, symbol in self.module_symbols(sections):
            self.add(address, kind, symbol, name)

    def install(self, vmlinux=True, module=True):
        """Puts the files where packages put them."""
        if vmlinux:
            self.place(self.vmlinux, f"usr/lib/debug/boot/vmlinux-{RELEASE}")
        if module:
            self.place(self.module, f"lib/modules/{RELEASE}/kernel/drivers/my-mod.ko")
            self.write(f"lib/modules/{RELEASE}/modules.dep",
                       "kernel/drivers/other.ko:\nkernel/drivers/my-mod.ko: kernel/drivers/other.ko\n")


def without(path, folder, *options, name):
    """A copy of a file that objcopy has changed."""
    to = os.path.join(folder, name)
    run("objcopy", *options, path, to)
    return to


def compress(tool, path):
    """Replaces a file by a compressed one; its new name."""
    suffix = {"xz": ".xz", "gzip": ".gz", "zstd": ".zst"}[tool]
    run(tool, "-q", "-f", *(["--rm"] if tool == "zstd" else []), path)
    return path + suffix
