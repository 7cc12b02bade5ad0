#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seeds.py FOLDER: first inputs for each fuzz target, from small programs of this machine's compilers.

A fuzzer that starts from real sections reaches in minutes what it would not find in days.
"""
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import types
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "golang")]

from cfiasm import DATAREL, EH_HDR, FUNCREL, PCREL, SDATA4, TEXT, ULEB, Frames, header  # noqa: E402
from table import Table  # noqa: E402

SOURCE = """
#include <stdio.h>
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + 1; }
static __attribute__((noinline)) int outer(int x) { for (int i = 0; i < x; i++) x += inner(i); return x; }
int main(int argc, char **argv) { printf("%d %s\\n", outer(argc), argv[0]); return inner(argc); }
"""

# In the order of enum fathom_dwarf_section.
SECTIONS = ["debug_info", "debug_abbrev", "debug_line", "debug_str", "debug_line_str", "debug_str_offsets", "debug_addr",
            "debug_ranges", "debug_rnglists", "debug_aranges", "debug_names", "gdb_index", "debug_cu_index"]

VARIANTS = [
    ("gcc5", ["gcc", "-g", "-O2", "-gdwarf-5"]), ("gcc4", ["gcc", "-g", "-O2", "-gdwarf-4"]),
    ("gcc3", ["gcc", "-g", "-O1", "-gdwarf-3", "-gstrict-dwarf"]), ("gcc2", ["gcc", "-g", "-O0", "-gdwarf-2", "-gstrict-dwarf"]),
    ("clang5", ["clang", "-g", "-O2", "-gdwarf-5", "-gpubnames"]), ("clang4", ["clang", "-g", "-O2", "-gdwarf-4"]),
    ("gcc64", ["gcc", "-g", "-O2", "-gdwarf64"]),
]


def section(path, name):
    out = path + ".section"
    subprocess.run(["objcopy", "-O", "binary", f"--only-section=.{name}", "--set-section-flags", f".{name}=alloc", path, out],
                   capture_output=True)
    try:
        with open(out, "rb") as f:
            return f.read()[:65535]
    except OSError:
        return b""
    finally:
        if os.path.exists(out):
            os.unlink(out)


def packed(*parts):
    return b"".join(struct.pack("<H", len(p)) + p for p in parts)


def write(folder, target, name, data):
    path = os.path.join(folder, target)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as f:
        f.write(data)


def compile_variants(tmp):
    source = os.path.join(tmp, "seed.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    for name, command in VARIANTS:
        for suffix, extra in ((".o", ["-c"]), ("", ["-s"] if name == "gcc2" else [])):
            path = os.path.join(tmp, name + suffix)
            done = subprocess.run([*command, *extra, "-o", path, source], cwd=tmp, capture_output=True)
            if done.returncode == 0:
                yield name + suffix.replace(".", "-"), path


def seed_dwarf(folder, name, path):
    sections = [section(path, s) for s in SECTIONS]
    info, abbrev, line, strings, line_strings = sections[:5]
    if info:
        write(folder, "units", name, b"\0" + packed(*sections))
    if line:
        write(folder, "line", name, b"\0" + packed(strings, line_strings) + line)
    for index in ("debug_aranges", "debug_names", "gdb_index"):
        data = sections[SECTIONS.index(index)]
        if data:
            write(folder, "aranges", f"{name}-{index}", b"\0" + packed(b"outer", strings) + data)
    frames = section(path, "eh_frame")
    if frames:
        write(folder, "cfi", name, b"\4" + struct.pack(">Q", 0x1010) + packed(section(path, "eh_frame_hdr")) + frames)
    del abbrev


def seed_frames(folder):
    """What compilers here do not write: each version, segments, 64-bit DWARF, all letters."""
    for name, big, bits, eh, options, fde in (
            ("v4-segments", False, 64, False, {"augmentation": "", "version": 4, "sizes": (8, 4)}, {"segment": bytes(4)}),
            ("v3-wide", True, 64, False, {"augmentation": "", "version": 3}, {"offset_size": 8}),
            ("v1-narrow", False, 32, False, {"augmentation": "", "version": 1}, {}),
            ("eh-letters", False, 64, True, {"augmentation": "zPLRSBG", "data": bytes([0x50, *bytes(14), 0x1B, 3])}, {"data": bytes(4)}),
            ("eh-wide", False, 64, True, {"encoding": 3}, {"offset_size": 8}),
            ("eh-old", True, 32, True, {"augmentation": "eh", "before": bytes(4)}, {"augmented": False})):
        f = Frames(types.SimpleNamespace(bits=bits, big=big), eh, fde.pop("offset_size", 4))
        cie = f.cie(**options, instructions=b"\x0c\x07\x08\x90\x01")
        for low in (TEXT, TEXT + 0x20):
            f.fde(cie, low, 0x10, 3 if "z" in options.get("augmentation", "z") and eh else 0, **fde)
        f.end()
        write(folder, "cfi", name, bytes([big | (bits == 32) << 1 | eh << 2]) + struct.pack(">Q", TEXT) + packed(b"") + bytes(f.out.bytes))
    # A header that leads to the section: all is relative to it, which fuzz_cfi.c has at 0x800.
    f = Frames(types.SimpleNamespace(bits=64, big=False))
    cie = f.cie("zLR", bytes([FUNCREL | ULEB, PCREL | SDATA4]))
    for low in (TEXT, TEXT + 0x20):
        f.fde(cie, low, 0x10, PCREL | SDATA4, data=b"\x7f")
    for name, flags, table in (("header", 4, DATAREL | SDATA4), ("header-open", 12, PCREL | SDATA4)):
        head = header(f.e, f, (TEXT, TEXT + 0x20), encodings=(PCREL | SDATA4, 3, table))
        write(folder, "cfi", name, bytes([flags]) + struct.pack(">Q", (TEXT + 0x20 + 0x800 - EH_HDR) % 2**64) + packed(head) + bytes(f.out.bytes))


def seed_rows(folder):
    """Call frame instructions of each kind; the head is byte order and machine, alignments, column, encoding."""
    x86_64, i386, aarch64 = bytes([0, 1, 0xF8, 16, 0x1B]), bytes([2, 1, 0xFC, 8, 0]), bytes([4, 4, 0xF8, 30, 0])
    start = b"\x0c\x07\x08\x90\x01"  # def_cfa r7+8, r16 at CFA-8
    plt = b"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"
    for name, head, cie, fde in (
            ("push", x86_64, start, b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x48\xc6\x0c\x07\x08\x41\x0b"),
            ("plt", x86_64, start, b"\x0e\x10\x46\x0e\x18\x4a\x0f" + bytes([len(plt)]) + plt),
            ("rules", x86_64, start, b"\x05\x03\x02\x11\x0c\x7e\x2f\x0d\x03\x14\x0e\x01\x15\x0f\x7f\x07\x00\x08\x01"
             b"\x09\x02\x05\x06\x03\x12\x06\x02\x13\x01\x2e\x10\x02\x04\x03\x04\x00\x04\x04\x00\x00\x00\x00"),
            ("expressions", x86_64, start, b"\x10\x03\x02\x77\x28\x16\x0c\x03\x77\x08\x06\x16\x10\x02\x70\x01\x0f\x03\x77\xa0\x01\x06"),
            ("loop", x86_64, start, b"\x16\x03\x08\x35\x31\x1c\x12\x28\xfa\xff\x96\x16\x06\x03\x2f\xfd\xff"),
            ("set_loc", x86_64, start, b"\x01\x10\x00\x00\x00\x1d\x02\0\0\0\0\0\0\0"),
            ("i386", i386, b"\x0c\x04\x04\x88\x01", b"\x41\x0c\x01\x00\x47\x10\x05\x02\x75\x00\x44\x0f\x03\x75\x7c\x06"),
            ("signed", aarch64, b"\x0c\x1f\x00", b"\x41\x2d\x41\x0e\x20\x9d\x04\x9e\x03\x0a\x42\xdd\xde\x0e\x00\x41\x2d\x41\x0b\x2c"),
            ("nested", aarch64, b"\x0c\x1f\x00", b"\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x41\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x41")):
        write(folder, "rows", name, head + packed(cie) + fde)


def seed_publish(folder):
    """Rules as programs publish them; the head is machine, kind, flags, from, until, frame, record; then events."""
    pushes = bytes([1, 1, 3, 0, 4, 3, 0, 2, 16, 4, 0, 2, 1, 2, 3, 0])
    frames = bytes([1, 1, 6, 0, 3, 7, 0, 0, 4, 9, 0, 0, 1, 8, 0, 0, 0, 2, 6, 0, 1, 10, 0, 0])
    for name, head, rest in (("frame", bytes([0, 1, 0, 4, 16, 4, 0]), b""), ("reserved", bytes([1, 2, 1, 0, 0, 24, 16]), b""),
                             ("pushed", bytes([0, 3, 0, 0, 0, 4, 0]), b""), ("events", bytes([0, 4, 0, 0, 0, 0, 0]), pushes),
                             ("returns", bytes([0, 4, 0, 0, 0, 0, 0]), frames)):
        write(folder, "publish", name, head + rest)


def seed_codecs(folder):
    text = SOURCE.encode() * 20
    write(folder, "codec", "zlib", struct.pack(">Q", len(text)) + zlib.compress(text))
    for name, command in (("gzip", ["gzip", "-c"]), ("xz", ["xz", "-c"]), ("zstd", ["zstd", "-c", "-q"]), ("lz4", ["lz4", "-c", "-q"])):
        out = subprocess.run(command, input=text, capture_output=True).stdout
        write(folder, "codec", name, struct.pack(">Q", len(text)) + out)


def seed_names(folder):
    for i, name in enumerate(["_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                              "_RNvCs1234_7mycrate3foo", "_D3std5stdio8writelnZ", "ada__text_io__put_line__2", "_ZTV3Foo",
                              "_ZN1AC1Ev.cold", "_ZZN3foo3barEvENKUlvE_clEv", "foo.part.0.constprop.1"]):
        write(folder, "demangle", str(i), bytes([i & 1]) + name.encode())


def seed_links(folder, tmp):
    crc = struct.pack("<I", 0x12345678)
    link = b"seed.debug\0\0" + crc
    alt = b"../dwz/seed\0" + bytes(range(20))
    sup = struct.pack("<HB", 5, 0) + b"seed.sup\0" + b"\4abcd"
    symbols = os.path.join(tmp, "gcc5")
    xz = subprocess.run(["xz", "-c", symbols], capture_output=True).stdout[:60000]
    write(folder, "links", "all", packed(link, alt, sup, xz, b""))
    write(folder, "links", "none", packed(b"", b"", b"", b"", b"x" * 10))


def seed_maps(folder, tmp):
    with open(os.path.join(tmp, "gcc5"), "rb") as f:
        header = f.read(1024)
    with open("/proc/self/maps", "rb") as f:
        write(folder, "maps", "self", packed(header) + f.read())
    lines = [b"00400000-00402000 r--p 00000000 fe:00 12 /a b (deleted)", b"00402000-00403000 r-xp 00001000 fe:00 12 /a b (deleted)",
             b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]"]
    write(folder, "maps", "odd", packed(header) + b"\n".join(lines))


DYING = "#include <stdlib.h>\nint main(void) { abort(); }\n"


def without_list(core):
    """@core without NT_FILE, and without what is large: the stack, the heap."""
    data = bytearray(core.replace(b"ELIF\x43\x4f\x52\x45", b"\0\0\0\0\x43\x4f\x52\x45"))
    for i in range(struct.unpack_from("<H", data, 56)[0]):
        header = 64 + 56 * i
        if struct.unpack_from("<Q", data, header + 32)[0] > 0x5000:
            struct.pack_into("<Q", data, header + 32, 0)
    return bytes(data)


def seed_cores(folder, fathom, tmp):
    source = os.path.join(tmp, "dying.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(DYING)
    for name, command in (("64", ["gcc"]), ("static", ["gcc", "-static"]), ("32", ["i686-linux-gnu-gcc", "-static"])):
        for filter in ("0x10", "0x11"):
            work = os.path.join(tmp, f"core-{name}-{filter}")
            os.mkdir(work)
            subprocess.run([*command, "-o", f"{work}/dying", source], check=True)
            subprocess.run(["sh", "-c", f"ulimit -c unlimited; echo {filter} > /proc/self/coredump_filter; exec ./dying"], cwd=work,
                           check=False)
            for core in (f for f in os.listdir(work) if f.startswith("core")):
                with open(os.path.join(work, core), "rb") as f:
                    data = f.read()
                write(folder, "core", f"{name}-{filter}", data[:65536])
                if name != "32":
                    write(folder, "core", f"{name}-{filter}-unlisted", without_list(data)[:65536])
    with subprocess.Popen(["sleep", "100"]) as process:
        subprocess.run([fathom, "snapshot", str(process.pid), f"{tmp}/snapshot"], check=True)
        process.kill()
    with open(f"{tmp}/snapshot", "rb") as f:
        write(folder, "snapshot", "sleep", f.read()[24:])


def seed_disasm(folder, tmp):
    slots = os.path.join(HERE, "..", "disasm", "programs", "slots.c")
    for number, compiler in ((0, "gcc"), (1, "i686-linux-gnu-gcc"), (2, "aarch64-linux-gnu-gcc")):
        for name, options in (("code", ["-O2", "seed.c"]), ("object", ["-O1", "-c", "seed.c"]),
                              ("packed", ["-O2", "-Wl,-z,pack-relative-relocs", slots])):
            path = os.path.join(tmp, f"disasm-{number}-{name}")
            done = subprocess.run([compiler, "-ffreestanding", "-nostdlib", "-shared", "-fPIC", *options, "-o", path],
                                  cwd=tmp, capture_output=True)
            if done.returncode:
                continue
            write(folder, "disasm", f"{number}-{name}", bytes([number | 16]) + section(path, "text"))
            with open(path, "rb") as f:
                write(folder, "disasm", f"{number}-{name}-file", bytes([number | 8 | 16]) + f.read()[:60000])


# As in fuzz_sites.c: what each section is called, and whether it is loaded.
SITE_SECTIONS = (".text", "__patchable_function_entries", "__mcount_loc", "__return_loc", "xray_instr_map", ".symtab", ".strtab",
                 ".rela.dyn", ".eh_frame")

SITES = (
    ("patchable", "gcc -fpatchable-function-entry=18,16 -fcf-protection"), ("entries", "gcc -pg -mfentry -mrecord-mcount -mnop-mcount"),
    ("returns", "gcc -pg -mfentry -mrecord-mcount -minstrument-return=nop5 -mrecord-return"), ("calls", "gcc -pg"),
    ("nops", "gcc -pg -mnop-mcount"), ("profile", "gcc -finstrument-functions"), ("clang", "clang -fpatchable-function-entry=18,16"),
    ("sleds", "clang -fxray-instrument -fxray-instruction-threshold=1"), ("arm", "aarch64-linux-gnu-gcc -fpatchable-function-entry=7,6"),
    ("lines", "gcc -fcf-protection=none"))


def seed_sites(folder, tmp):
    """Each section of an object file, whose words and relocations are made those of the file that the target builds."""
    sys.path[:0] = [os.path.join(HERE, "..", "lib")]
    import elfread
    programs = [os.path.join(HERE, "..", suite, "programs", name) for suite, name in (("trace", "sites.c"), ("strace", "lines.c"))]
    for name, command in SITES:
        source = programs[name == "lines"]
        path = os.path.join(tmp, f"sites-{name}.o")
        compiler, *flags = command.split()
        subprocess.run([compiler, *flags, "-O1", "-fno-pie", "-DSHARED", "-c", source, "-o", path], check=True)
        elf = elfread.ElfFile(path)
        found = {s.name: elf.bytes[s.off:s.off + s.size] if s.type != 8 else b"" for s in elf.sections}
        contents = [bytearray(found.get(s, b"")) for s in SITE_SECTIONS]
        at, bases = 64 + 56, []
        for content in contents:
            bases.append(0x1000 + at)
            at += (len(content) + 7) & ~7
        # Words of tables, which are relative to .text; symbols, all in it.
        for number in (1, 2, 3):
            rela = found.get(".rela" + SITE_SECTIONS[number], b"")
            for off, _, addend in struct.iter_unpack("<QQq", rela):
                struct.pack_into("<Q", contents[number], off, bases[0] + addend)
                contents[7] += struct.pack("<QQq", bases[number] + off, 8, bases[0] + addend)
        # Functions of unwind rules.
        for off, info, addend in struct.iter_unpack("<QQq", found.get(".rela.eh_frame", b"")):
            if info & 0xffffffff == 2:
                struct.pack_into("<i", contents[8], off, bases[0] + addend - (bases[8] + off))
        # Entries of sleds, which are relative to where they stand.
        for off, _, addend in struct.iter_unpack("<QQq", found.get(".relaxray_instr_map", b"")):
            struct.pack_into("<q", contents[4], off, bases[0] + addend - (bases[4] + off))
        for off in range(24, len(contents[5]), 24):
            if contents[5][off + 6] and contents[5][off + 4] & 15 == 2:
                struct.pack_into("<HQ", contents[5], off + 6, 1, bases[0] + struct.unpack_from("<Q", contents[5], off + 8)[0])
        for kind in (0, 1, 2):
            write(folder, "sites", f"{name}-{kind}", bytes([kind | 4 * (name == "arm")]) + packed(*map(bytes, contents)))


def seed_perf_records(folder):
    """As in fuzz_perf_records.c: a program that begins, maps code, forks, is sampled and ends."""
    def record(kind, body, misc=0, trailer=True):
        body += struct.pack("<IIQQ", 7, 7, 100, 3) if trailer else b""
        return struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    name = record(3, struct.pack("<II", 7, 7) + b"program\0", 1 << 13)
    code = record(10, struct.pack("<IIQQQ", 7, 7, 0x400000, 0x1000, 0) + bytes([20, 0, 0, 0]) + bytes(range(20)) + struct.pack("<II", 5, 2) +
                  b"/bin/program\0\0\0\0", 1 << 14)
    fork = record(7, struct.pack("<IIIIQ", 8, 7, 8, 7, 90))
    end = record(4, struct.pack("<IIIIQ", 8, 7, 8, 7, 99))
    count = record(8, struct.pack("<IIQ", 8, 8, 12345))
    lost = record(2, struct.pack("<QQ", 3, 17))
    for flags, more in ((1, b""), (0, struct.pack("<QQQ", 2, 2 ** 64 - 128, 0xffffffff81000000)), (3, struct.pack("<Q", 5))):
        sample = struct.pack("<QIIQQ", 3, 7, 7, 95, 1000000) + (more if flags & 2 else b"") + (more if not flags & 1 else b"")
        sample += struct.pack("<Q", 2) + struct.pack("<17Q", *range(17)) + struct.pack("<Q", 16) + bytes(16) + struct.pack("<Q", 16)
        write(folder, "perf_records", f"program-{flags}",
              bytes([flags]) + packed(name, code, fork, code, record(9, sample, 2, False), lost, end, count))


def seed_rings(folder):
    """As in fuzz_rings.c: records of two threads, with posts between them, and words that are scribbled over them."""
    def record(ring, site, sp, time):
        return bytes([ring << 4 | 0x20]) + (time << 40).to_bytes(8, "big") + bytes([site]) + sp.to_bytes(8, "big")

    look = b"\x03" + (1 << 50).to_bytes(8, "big")
    calls = b"".join(record(0, 2 * (i % 8), 4000 - 4 * (i % 5), 10 * i + 1) for i in range(40))
    returns = b"".join(record(0, 2 * (i % 8) + 1, 4000 - 4 * (i % 5), 10 * i + 5) for i in range(8))
    begin = b"\x62" + bytes([0, 3]) + (0x7000).to_bytes(8, "big")
    other = b"".join(record(1, 6, 3000 + i, 9 * i + 2) for i in range(20))
    end = b"\x92" + bytes([0, 9]) + bytes(8)
    words = b"".join(b"\x40" + (at << 40).to_bytes(8, "big") + b"\xff" * 8 for at in (0, 16, 40, 128, 144, 152, 200))
    def system_call(kind, words, time):
        return b"\x00" + bytes(8) + b"\xf0" + bytes([(len(words) // 2 - 1) << 1 | kind]) + b"".join(w.to_bytes(8, "big") for w in words) + (time << 40).to_bytes(8, "big")

    # getpid(), and openat() of a path; each with its result.
    system = system_call(64, [39, 0x401000, 0x8000, 0], 900) + system_call(1, [3, 77], 901)
    system += system_call(64, [257 | 4 << 32, 0x401000, 0x7f00, 0xffffff9c, 0x5000, 0, 0, 0x5000, 5, 0x7478742e61], 902) + system_call(1, [6, 3], 903)
    for number, flags in enumerate((64, 65, 80, 112)):
        write(folder, "rings", f"system-{number}", bytes([flags]) + calls + look + system + look + system + look)
    for number, flags in enumerate((0, 1, 2, 4, 7, 16, 17, 48)):
        write(folder, "rings", f"calls-{number}", bytes([flags]) + calls + look + returns + begin + other + look + end + look)
        write(folder, "rings", f"words-{number}", bytes([flags]) + calls + words + look + begin + other + words + look)


def seed_trace_file(folder):
    """As in src/host/events/file_format.h: a module, functions, threads; calls, returns, other events, one with a stack; an end."""
    def text(word):
        return bytes([len(word)]) + word

    head = b"\x7fftrace\n" + b"\x00\x01\x05" + b"\x08" + text(b"/bin/m")
    head += b"".join(b"\x10\x00" + text(name) + text(linked) + b"\x80\x01\x10" for name, linked in ((b"main", b""), (b"a::f(int)", b"_ZN1a1fEi")))
    head += b"".join(b"\x18\x02" + bytes([2 * tid]) + text(b"worker") for tid in (1, 2))
    first = b"\x06" + b"\x01\x14\x00\x20" + b"\x11\x14\x01\x08" + b"\x02\x06\x01\x00\x07" + b"\x04\x04"
    second = b"\x0e" + b"\x05\x02\x00\x03\x01\x00" + text(b"SIGUSR1") + b"\x0f\x11\x05\x01\x41" + b"\x03\x09\x01\x00\x22"
    second += b"\x28\x80\x20\x01\x01" + text(b"\xab\xcd") + b"\x41\x00" + text(b"f(int)") + text(b"_Z1fi") + b"\x04\x09\x01\x00\x02"
    second += text(b"g") + text(b"") + text(b"/a.c") + b"\x07\x00\x00\x40" + text(b"f(int)") + text(b"_Z1fi") + text(b"/a.c") + b"\x09\x01\x02\x30"
    second += b"\x30\x01\x02" + b"\x00\x09\x01" + b"\x00\x00\x03" + b"\x05\x02\x00\x03\x01\x00" + text(b"SIGSEGV")
    second += b"\xfc\x20\x01" + b"\x05\x00\x00\x05\x01\x00" + text(b"status 0") + b"\x20\x00\x02\x00\x02\x00\x01"
    for number in range(8):
        write(folder, "trace_file", f"file-{number}", bytes([number]) + head + first + second + (first if number & 1 else b""))


def seed_profile(folder):
    """As in src/host/profile/samples_format.h: each kind of record; and profiles that refer to what there is not."""
    def text(word):
        return bytes([len(word)]) + word

    def record(tag, body):
        return bytes([tag, len(body)]) + body

    head = b"\x7ffprof1\n" + b"".join(record(1, text(key) + text(value)) for key, value in (
        (b"command", b"demo 1"), (b"event", b"task-clock"), (b"unit", b"ns"), (b"frequency", b"997"), (b"kernel-hidden", b"1")))
    head += record(11, text(b"/user.slice")) + record(2, b"\x07\x07\x01\x00" + text(b"demo")) + record(2, b"\x07\x08\x01\x05" + text(b"worker") + b"\x01")
    head += record(3, b"\x01" + text(b"/bin/true") + text(b"\xab\xcd")) + record(3, b"\x03" + text(b"[jit]") + b"\x00")
    head += record(4, b"\x09" + text(b"f(int)") + text(b"_Z1fi") + text(b"/a.c") + b"\x07")
    places = record(5, b"\x01\x80\x20\x00\x00\x00") + record(5, b"\x02\x40\x01\x82\x01\x01") + record(5, b"\x00\x40\x01\x05\x00")
    nodes = record(6, b"\x00\x00") + record(6, b"\x01\x01") + record(6, b"\x02\x01") + record(6, b"\x00\x02")
    samples = record(7, b"\x10\x14\x00\x03\x64") + record(7, b"\x20\x14\x01\x04\x32") + record(7, b"\x11\x13\x00\x02\x0a")
    samples += record(7, b"\x02\x00\x00\x00\x05") + record(8, b"\x20\x02") + record(9, b"\x21") + record(40, b"later")
    waits = record(3, b"\x06" + text(b"[waits]") + b"\x00") + record(4, b"\x00" + text(b"[futex: mutex 0x10]") + b"\x00\x00\x00")
    waits += record(5, b"\x03\x00\x00\x00\x02") + record(6, b"\x01\x03") + record(7, b"\x13\x02\x00\x05\x07") + record(7, b"\x14\x02\x01\x00\x09")
    samples += waits + record(11, text(b""))
    end = record(10, b"\x64")
    wrong = [record(5, b"\x05\x00\x00\x00\x00"), record(6, b"\x09\x00"), record(6, b"\x00\x09"), record(7, b"\x10\x00\x05\x01\x01"),
             record(7, b"\x10\x00\x00\x09\x01"), record(7, b"\x10\x00\x00\x01" + b"\xff" * 9 + b"\x01") * 2, b"\xff" * 11,
             record(2, b"\x07\x09\x01\x05" + text(b"worker") + b"\x02")]
    write(folder, "profile", "whole", b"\x00" + head + places + nodes + samples + end)
    script = record(3, b"\x07" + text(b"[python 3.11]") + b"\x00\x00\x00\x01") + record(4, b"\x01" + text(b"f") + b"\x00" + text(b"/f.py") + b"\x03")
    script += record(5, b"\x03\x40\x00\x00\x02") + record(6, b"\x01\x03") + record(6, b"\x05\x00") + record(7, b"\x10\x02\x00\x06\x04")
    for number in range(4):
        write(folder, "profile", f"script-{number}", bytes([number]) + head + places + nodes + script + end)
    write(folder, "profile", "cut", b"\x01" + head + places + nodes + samples[:-3])
    for number, item in enumerate(wrong):
        write(folder, "profile", f"wrong-{number}", bytes([number]) + head + places + nodes + samples + item + end)


def seed_imports(folder):
    """Profiles of other programs: collapsed stacks, pprof's, .cpuprofile, perf.data with call chains and copies of stacks, and of pipe mode."""
    def record(kind, body, misc=0):
        return struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def attr(sample_type, registers):
        return struct.pack("<IIQQQQQ", 1, 128, 0, 997, sample_type, 4, 1 << 10 | 1 << 18) + bytes(32) + struct.pack("<QI", registers, 64) + bytes(36)

    def records(sample):
        trailer = struct.pack("<IIQ", 7, 7, 1000)
        made = record(3, struct.pack("<II", 7, 7) + b"demo\0\0\0\0" + trailer, 1 << 13)
        made += record(10, struct.pack("<IIQQQ", 7, 7, 0x400000, 0x20000, 0) + bytes(32) + b"/bin/true\0\0\0\0\0\0\0" + trailer)
        made += record(1, struct.pack("<iIQQQ", -1, 0, 2**64 - 2**31, 0x1000000, 2**64 - 2**31) + b"[kernel.kallsyms]_text\0\0" + trailer)
        made += record(7, struct.pack("<IIIIQ", 8, 7, 8, 7, 1500) + trailer)
        made += record(9, struct.pack("<QIIQQ", 0x401000, 7, 7, 2000, 5) + sample, 2) + record(9, struct.pack("<QIIQQ", 0x401004, 8, 8, 1700, 5) + sample, 1)
        return made + record(13, struct.pack("<Q", 3) + trailer) + record(5, bytes(24) + trailer) + record(68, b"")

    chain = struct.pack("<QQQQQQ", 5, 2**64 - 128, 2**64 - 4096 * 1000, 2**64 - 512, 0x401000, 0x401010)
    registers = struct.pack("<Q", 2) + b"".join(struct.pack("<Q", value) for value in (0x7ffe0000, 0x7ffe0000, 0x401000))
    stack = struct.pack("<Q", 64) + struct.pack("<QQ", 0x401010, 0) * 4 + struct.pack("<Q", 64)
    features = struct.pack("<I", 8) + b"host\0\0\0\0"
    ids = record(67, struct.pack("<i", -1) + bytes(range(20)) + b"\x14\0\0\0" + b"/bin/true\0\0\0\0\0\0\0", 1 << 15)
    for name, kind, sample in (("chain", 1 | 2 | 4 | 32 | 256, chain), ("stack", 1 | 2 | 4 | 256 | 4096 | 8192, registers + stack)):
        mask = 1 << 6 | 1 << 7 | 1 << 8
        data, event = records(sample), attr(kind, mask)
        head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 144, 104, 144, 248, len(data), 0, 0) + struct.pack("<QQQQ", 4 | 8, 0, 0, 0)
        end = 248 + len(data) + 32
        sections = struct.pack("<QQQQ", end, len(ids), end + len(ids), len(features))
        write(folder, "imports", f"perf-{name}", head + event + struct.pack("<QQ", 0, 0) + data + sections + ids + features)
        write(folder, "imports", f"pipe-{name}", b"PERFILE2" + struct.pack("<Q", 16) + record(64, event + struct.pack("<Q", 5)) +
              record(80, struct.pack("<Q", 3) + features) + ids + data)
        # Two streams of compressed records, as those of two threads of perf: raw blocks of zstd.
        frame = b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(data) - 256) + struct.pack("<I", len(data) << 3 | 1)[:3] + data
        write(folder, "imports", f"parts-{name}", b"PERFILE2" + struct.pack("<Q", 16) + record(64, event + struct.pack("<Q", 5)) +
              (record(0x66617468, b"") + record(81, frame)) * 2)
    write(folder, "imports", "collapsed", b"demo;main;f;g_[i] 10\r\n\ndemo;main;[unknown];read_[k] 3.6\ndemo-7/8;\\x3b;Loop_[j] 7\n")
    write(folder, "imports", "functions", b"main;a;b 1\nmain 2\n")
    write(folder, "imports", "nodes", b'{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},{"id":2,"callFrame":{"functionName":"f\\u00e9",'
          b'"url":"file:///a.js","lineNumber":3,"columnNumber":1},"hitCount":2}],"startTime":1,"endTime":1e3,"samples":[2,1,2],"timeDeltas":[1,-2,3]}')
    write(folder, "imports", "head", b'{"head":{"functionName":"(root)","id":1,"children":[{"functionName":"a","lineNumber":5,"id":2,"children":[]}]},'
          b'"samples":[2],"timestamps":[5]}')
    write(folder, "imports", "pprof", bytes.fromhex(
        "0a0408011002" "12160a02010212020207" "1a04080110021a0408031001" "1a0c080318808080808080808080012809"
        "220a080110031a0422020801") + b"\x22\x0c\x08\x01\x10\x03\x18\xb4\x24\x22\x04\x08\x05\x10\x0a" + b"\x2a\x04\x08\x05\x10\x01" +
        b"".join(b"\x32" + bytes([len(word)]) + word for word in (b"", b"cpu", b"nanoseconds", b"thread")))


def seed_pclntab(folder):
    """The tables that tests/golang makes, of each layout, size of pointers and byte order."""
    functions = [("main.outer", 96, [(16, "/a.go", 10, -1), (8, "/b.go", 200, 0), (24, "/c.go", 7, 1), (48, "/a.go", 12, -1)],
                  [(4, 0), (88, 40), (4, 0)], [("p.middle", 12), ("p.inner", 16)]),
                 ("main.plain[...]", 32, [(32, "/a.go", 300000, -1)], [(32, 0)], [])]
    for layout in ("1.2", "1.16", "1.18", "1.20"):
        for bits, big in ((64, False), (32, False), (64, True)):
            write(folder, "pclntab", f"{layout}-{bits}-{big}", Table(functions, layout, bits, big).elf.build())


def seed_python(folder):
    """A thread of CPython 3.11 to 3.14 with two functions in one loop, by hand; fuzz_python.c says where the types are."""
    base, code_type, text_type, bytes_type = 0x10000, 0x800, 0xa00, 0xa40
    interpreter, thread, gil, cframe, code, name, table = 0x300, 0x400, 0x200, 0x600, 0xb00, 0xc00, 0xd00
    frames = (0x1000, 0x1100, 0x1200)
    for minor, head, threads, gil_at, native, code_size, line_at, text_size in ((11, 40, 16, 0, 160, 184, 72, 48),
                                                                              (12, 40, 72, 0xf0, 144, 192, 68, 40),
                                                                              (13, 0x2c0, 72, 0xf0, 152, 200, 68, 40),
                                                                              (14, 0x2c0, 72, 0xf0, 152, 200, 68, 40)):
        memory = bytearray(0x1400)

        def put(at, *words, memory=memory):
            for i, word in enumerate(words):
                memory[at + 8 * i:at + 8 * i + 8] = word.to_bytes(8, "little")
        if minor == 13:
            put(0, int.from_bytes(b"xdebugpy", "little"), 0x030d02f0, 0, 0x2c8, 0, head, 0x100, 0, 0, threads, 0, 0, 0, 0, gil_at, 0, 0, 0, 0, 0x100,
                0, 8, 16, 72, 144, native, 0, 0, 0x58, 8, 0, 56, 72, 70, 208, 112, 120, 128, 136, line_at, 0, 0, 0, code_size)
        elif minor == 14:
            put(0, int.from_bytes(b"xdebugpy", "little"), 0x030e02f0, 0, 0x2c8, 0, head, 0x100, 0, 0, threads, 0, 0, 0, 0, 0, gil_at, *[0] * 6, 0x100,
                0, 8, 16, 72, 144, native, 0, 0, 0x58, 8, 0, 56, 72, 70, 64, 0, 208, 112, 120, 128, 136, line_at, 0, 0, 0, code_size)
        elif minor == 12:
            gil_at = 384
        put(head, base + interpreter)
        put(interpreter + threads, base + thread)
        if minor > 11:
            put(interpreter + gil_at, base + gil)
        put(gil, 0, base + thread, 1)
        put(thread + native, 1)
        put(code_type + 32, code_size)
        put(thread + (72 if minor > 12 else 56), base + (frames[0] if minor > 12 else cframe))
        put(cframe, base + frames[0], *((base + frames[0], 0) if minor == 11 else (0,)))
        for frame, previous in zip(frames, (*frames[1:], 0)):
            instruction = base + code + code_size + 2
            if minor == 11:
                put(frame + 32, base + code, 0, base + previous if previous else 0, instruction)
                memory[frame + 68] = frame == frames[1]
            else:
                put(frame, base + code, base + previous if previous else 0)
                put(frame + 56, instruction)
                memory[frame + 70] = 3 if frame == frames[2] else 0
        put(code, 1, base + code_type)
        memory[code + line_at:code + line_at + 4] = (7).to_bytes(4, "little")
        put(code + 112, base + name, 0, base + name, base + table)
        put(name, 1, base + text_type, 5, 0, 1 << 2 | 1 << 5 | 1 << 6)
        memory[name + text_size:name + text_size + 5] = b"named"
        put(table, 1, base + bytes_type, 9)
        memory[table + 32:table + 41] = bytes((0xf0, 2, 0, 1, 1, 0xea, 2, 0x80, 0x11))
        write(folder, "python", f"3.{minor}", bytes((minor - 11,)) + bytes(memory))
    for minor, last_at in ((8, 104), (9, 104), (10, 96)):
        memory, instructions = bytearray(0x1400), 0xe00

        def put_old(at, *words, memory=memory):
            for i, word in enumerate(words):
                memory[at + 8 * i:at + 8 * i + 8] = word.to_bytes(8, "little")
        put_old(32, base + interpreter)
        put_old(interpreter + 8, base + thread)
        put_old(thread + 24, base + frames[0])
        put_old(thread + 176, base + 0x100)
        for frame, previous in zip(frames, (*frames[1:], 0)):
            put_old(frame + 24, base + previous if previous else 0, base + code)
            put_old(frame + last_at, 4)
        put_old(code, 1, base + code_type)
        put_old(code + 40, 7, base + instructions)
        put_old(code + 104, base + name, base + name, base + table)
        put_old(name, 1, base + text_type, 5, 0, 1 << 2 | 1 << 5 | 1 << 6)
        memory[name + 48:name + 53] = b"named"
        put_old(table, 1, base + bytes_type, 6)
        memory[table + 32:table + 38] = bytes((4, 1, 6, 0x80, 2, 3))
        put_old(352, 0, base + thread, 1)
        write(folder, "python", f"3.{minor}", bytes((minor - 4,)) + bytes(memory))


# Of each layout of Lua: of a state: call, end of its stack, its stack, place to jump to, outermost call; main thread; of a call:
# instruction, status, a bit of it; of a Proto: lines, base lines and their number, first line, code, source; size of a node, type of its key.
LUA = {"5.3": (32, 48, 56, 88, 96, 200, 40, 66, 8, 72, None, None, 40, 56, 104, 32, 24),
       "5.4.2": (32, 40, 48, 80, 88, 264, 32, 62, 4, 88, 96, 40, 44, 64, 112, 24, 9),
       "5.4.7": (32, 40, 48, 88, 96, 264, 32, 62, 4, 88, 96, 40, 44, 64, 112, 24, 9)}


def seed_lua(folder):
    """A function of C that a function of a coroutine has called, and the main thread that has resumed it, by hand."""
    base, states, calls, tables, nodes, strings = 0x10000, (0x400, 0x600), 0x800, 0x1000, 0x1200, 0x1800
    closures, protos, ops, globals_at, values = 0xe00, 0xa00, 0xc00, 0x1a00, 0x1d00
    for number, (version, row) in enumerate(LUA.items()):
        ci, last, stack, jump, base_ci, main, op, status, fresh, lines, bases, n_bases, first, code, source, node_size, key_type = row
        memory = bytearray(0x2000)

        def put(at, *words, memory=memory):
            for i, word in enumerate(words):
                memory[at + 8 * i:at + 8 * i + 8] = word.to_bytes(8, "little")
        for i, text in enumerate((b"@a.lua", b"_LOADED", b"_G", b"print")):
            memory[strings + 64 * i + 8], memory[strings + 64 * i + 11] = 4, len(text)
            memory[strings + 64 * i + 24:strings + 64 * i + 24 + len(text)] = text
        for i in range(2):
            put(protos + 256 * i + 24, 8 | 8 << 32)
            put(protos + 256 * i + code, base + ops)
            put(protos + 256 * i + lines, base + 0xd00)
            put(protos + 256 * i + source, base + strings)
            memory[protos + 256 * i + first] = 7 * i
            if bases:
                put(protos + 256 * i + bases, base + 0xd40)
                memory[protos + 256 * i + n_bases] = 1
            memory[closures + 64 * i + 8] = 6
            put(closures + 64 * i + 24, base + protos + 256 * i)
        put(0xd00, *(i | (i + 1) << 32 for i in range(4)))
        put(0xd40, 2 | 40 << 32)
        # By call: its value, type, status; the first two are the coroutine's.
        is_lua = 2 if version == "5.3" else 0
        for i, (value, kind, of) in enumerate(((0x123, 22, 0), (base + closures, 70, fresh | is_lua | 32), (0x456, 22, 0),
                                               (base + closures + 64, 70, fresh | is_lua))):
            put(values + 16 * i, value, kind)
            put(calls + 96 * i, base + values + 16 * i, 0, base + states[i // 2] + base_ci if i % 2 else base + calls + 96 * (i + 1))
            put(calls + 96 * i + op, base + ops + 12)
            memory[calls + 96 * i + status] = of
        for i, at in enumerate(states):
            memory[at + 8] = 8
            put(at + 16, base + values + 64, base + globals_at)
            put(at + ci, base + calls + 192 * i)
            put(at + stack, base + values)
            put(at + last, base + values + 128)
            put(at + jump, base + 0x1e00 + 0x100 * i)
        put(globals_at + main, base + states[1])
        put(globals_at + 64, base + tables)
        for i, (name, value, kind) in enumerate(((1, base + tables + 64, 69), (2, base + tables + 128, 69), (3, 0x123, 22))):
            memory[tables + 64 * i + 8], memory[tables + 64 * i + 11] = 5, 1
            put(tables + 64 * i + 24, base + nodes + 128 * i)
            put(nodes + 128 * i + node_size, value)
            memory[nodes + 128 * i + node_size + 8] = kind
            put(nodes + 128 * i + node_size + 16, base + strings + 64 * name)
            memory[nodes + 128 * i + node_size + key_type] = 68
        # What loops have saved.
        put(0x1e10, base + calls + 96, base + calls + 288, base + states[0])
        for known in (0, 0x80):
            write(folder, "lua", f"{version}-{known}", bytes((number | known,)) + bytes(memory))


# Of each layout of PHP: the instruction that has thrown; code of a function, its size, its file; of a generator: frame, parent, fake.
PHP = {"7.4": (880, 64, 60, 136, 64, 160, 200), "8.1": (880, 72, 68, 144, 56, 152, 184), "8.2": (880, 88, 80, 152, 56, 152, 184),
       "8.3": (880, 80, 76, 144, 56, 152, 184), "8.4": (952, 104, 96, 168, 56, 152, 184)}


def seed_php(folder):
    """A method that a function of C has called, a generator that waits for another one, and a script that is included, by hand."""
    base, calls, ops, functions, texts, own_class, generators = 0x10000, 0x800, 0xa00, 0xc00, 0x1400, 0x1800, 0x1900
    for number, (version, (thrown, code, n_ops, file, frame, parent, fake)) in enumerate(PHP.items()):
        memory = bytearray(0x2000)

        def put(at, *words, memory=memory):
            for i, word in enumerate(words):
                memory[at + 8 * i:at + 8 * i + 8] = word.to_bytes(8, "little")
        put(416, base + 0x1f00)
        put(488, base + calls)
        put(thrown, base + ops + 32)
        for i, text in enumerate((b"method", b"array_map", b"generator", b"Class", b"a.php")):
            put(texts + 64 * i, 0, 0, len(text))
            memory[texts + 64 * i + 24:texts + 64 * i + 24 + len(text)] = text
        put(own_class + 8, base + texts + 3 * 64)
        # By function: its kind, name, class, whether it is of PHP.
        for i, (name, scope) in enumerate(((0, own_class), (1, 0), (2, 0), (None, 0))):
            at = functions + 256 * i
            memory[at] = 1 if name == 1 else 2
            put(at + 8, 0 if name is None else base + texts + 64 * name, base + scope if scope else 0)
            if name != 1:
                put(at + code, base + ops)
                memory[at + n_ops:at + n_ops + 4] = (8).to_bytes(4, "little")
                put(at + file, base + texts + 4 * 64)
        for i in range(8):
            memory[ops + 32 * i + 20] = 8
            put(ops + 32 * i + 24, 7 + i | 73 << 32)
        # By frame: its function, how it is called, its caller.
        for i, (of, info) in enumerate(((0, 8 | 1 << 17), (1, 0), (2, 1 << 17), (None, 8), (3, 1 << 16), (3, 1 << 16 | 1 << 17))):
            at = base + generators + fake if of is None else base + calls + 64 * i
            caller = base + calls + 64 * (i + 1) if i < 5 else 0
            put(at - base, base + ops + 32 * i, 0, 0, 0 if of is None else base + functions + 256 * of, base + generators if of is None else 0,
                info, base + generators + fake if i == 2 else caller)
        put(generators + frame, base + 0x1c00)
        put(generators + parent, base + generators + 0x180)
        put(generators + 0x180 + frame, base + calls + 64 * 2)
        put(0x1c00, base + ops + 32, 0, 0, base + functions + 512)
        # What loops have saved.
        put(0x1f10, base + calls, base + calls + 64 * 2, base + calls + 64 * 4)
        for known in (0, 0x80):
            write(folder, "php", f"{version}-{known}", bytes((number | known,)) + bytes(memory))


# Of each layout of Ruby: main thread and list of the VM; node and list of a ractor, or None; VM and context of a thread, where it
# has its native thread or None; thread and start of a context; size of a frame; lines of code, their size; bytes before a short
# string; path of a class.
RUBY = {(2, 7): (192, 312, None, 24, 32, None, 56, 152, 56, 120, 8, 16, None),
        (3, 0): (40, 8, (568, 304), 32, 40, None, 56, 152, 56, 120, 8, 16, None),
        (3, 1): (40, 8, (568, 304), 32, 40, None, 48, 144, 64, 120, 12, 16, None),
        (3, 2): (40, 8, (568, 304), 32, 48, 40, 48, 152, 64, 112, 12, 24, None),
        (3, 3): (40, 8, (432, 256), 32, 48, 40, 48, 152, 56, 112, 12, 24, None),
        (3, 4): (40, 8, (432, 256), 32, 48, 40, 48, 144, 56, 112, 12, 24, 152)}


# By version: function's SharedFunctionInfo; BytecodeArray's lines, data; BaselineData's code, where the bytecode is; Code's positions,
# start, whether that is the code itself, size; whether a ScopeInfo has a receiver.
V8 = ((24, 32, 54, 8, 16, 24, 96, True, 40, True), (24, 32, 56, 0, 16, 24, 128, True, 40, False),
      (24, 32, 54, 0, 16, 24, 40, False, 56, False), (32, 24, 64, 0, 8, 16, 40, False, 52, False))


def seed_v8(folder):
    """A stack of each V8 with a function of the interpreter, a built-in one and a call of the runtime, by hand: fuzz_v8.c."""
    base = 0x10000
    for number, (shared_at, lines, data, in_baseline, bytecode_at, positions, start, is_inside, size, has_receiver) in enumerate(V8):
        memory = bytearray(0x3000)
        maps = {}

        def put(at, *words, memory=memory):
            for i, word in enumerate(words):
                memory[at + 8 * i:at + 8 * i + 8] = (word % (1 << 64)).to_bytes(8, "little")

        def made(at, type_, *words, maps=maps, put=put, memory=memory):
            map_at = 0x2800 + 0x10 * maps.setdefault(type_, len(maps))
            put(map_at, base + map_at + 1)
            memory[map_at + 12:map_at + 14] = type_.to_bytes(2, "little")
            put(at, base + map_at + 1, *words)
            return base + at + 1

        def text(at, value, wide=False, made=made, memory=memory):
            bytes_ = value.encode("utf-16-le" if wide else "latin-1")
            memory[at + 16:at + 16 + len(bytes_)] = bytes_
            return made(at, 0x20 if wide else 0x28, len(value) << 32)
        smi = lambda n: n % (1 << 32) << 32  # noqa: E731
        context = made(0x1000, 0x109)
        name, file, source = text(0x1040, "f\u00e9\u4e2d", True), text(0x1080, "/f.js"), text(0x10c0, "a\nb\n\nc\n" * 4)
        cons = made(0x1140, 0x29, smi(8), file, text(0x1180, "abc"))
        ends = made(0x11c0, 0x107, smi(4), smi(1), smi(3), smi(4), smi(6))
        script = made(0x1200, 0x102, source, cons, smi(2), 0, 0, 0, ends if number % 2 else smi(0), 0, 0)
        words = [smi(-1)] if has_receiver else []
        scope = made(0x1280, 0x103, smi(0x4170e2 if has_receiver else 0x4171e2), 0, smi(1), name, smi(0), *words, name, smi(-1), name)
        table = made(0x1340, 0x105, smi(8))
        memory[0x1350:0x1358] = bytes((1, 4, 2, 8, 5, 12, 8, 6))
        pieces = made(0x1380, 0x105, smi(4))
        memory[0x1390:0x1394] = bytes((32, 16, 24, 40))
        bytecode = made(0x1400, 0x104, smi(12))
        put(0x1400 + lines, table)
        memory[0x1400 + data:0x1400 + data + 12] = bytes(range(4, 16))
        code = made((0x2000 - start) if is_inside else 0x1500, 0x106)
        at = (0x2000 - start) if is_inside else 0x1500
        if not is_inside:
            put(at + start, base + 0x2000)
        memory[at + size:at + size + 4] = (0x100).to_bytes(4, "little")
        put(at + positions, pieces)
        put((0x1600 if in_baseline else at) + bytecode_at, bytecode)
        if in_baseline:
            made(0x1600, 0x108, code)
        shared = made(0x1700, 0x101, base + 0x1601 if in_baseline else code, scope, 0, script)
        builtin = made(0x1740, 0x101, 0, text(0x1780, "map"), 0, 0)
        functions = []
        for i, of in enumerate((shared, builtin)):
            functions.append(made(0x17c0 + 0x40 * i, 0x200 + i))
            put(0x17c0 + 0x40 * i + shared_at, of)
        for i, frame in enumerate((0x100, 0x180, 0x200)):
            put(frame, base + frame + 0x80, base + 0x2100)
            put(frame - 16, functions[i % 2], context if i < 2 else 50)
            put(frame - 40, smi(data - 1 + 5), bytecode)
            put(frame + 24, functions[0])
        put(0x280, base + 0x2f00, base + 0x2100)
        put(0x278, 6)
        write(folder, "v8", str(number), bytes((number,)) + bytes(memory))


def seed_ruby(folder):
    """A thread of each Ruby with a block, a method of C and a method in two loops, by hand; fuzz_ruby.c says what is where."""
    base, ractor, vm, thread, own_class, context, item = 0x10000, 0x100, 0x400, 0x600, 0x700, 0x800, 0x900
    names, stack, tags = 0x1800, 0x5000, 0x5c00
    for number, (version, row) in enumerate(RUBY.items()):
        main, head, of_ractor, thread_vm, thread_ec, own, ec_thread, ec_start, size, lines, line_size, text, path = row
        for form in ((56, 3, 4), (56, 3, 5), (216, 9, 8)):
            memory = bytearray(0x6000)

            def put(at, *words, memory=memory):
                for i, word in enumerate(words):
                    memory[at + 8 * i:at + 8 * i + 8] = (word % (1 << 64)).to_bytes(8, "little")

            def put_text(at, bytes_, memory=memory, text=text):
                put(at, 5 | (len(bytes_) << 14 if text == 16 else 0), 1, len(bytes_))
                memory[at + text:at + text + len(bytes_)] = bytes_
            put(0x1000, base + own_class, base + vm)
            put(vm + main, base + thread)
            if of_ractor:
                put(vm + head, base + ractor + of_ractor[0])
                put(ractor + of_ractor[0], base + vm + head)
                put(ractor + of_ractor[1], base + thread)
                put(thread, base + ractor + of_ractor[1])
            else:
                put(vm + head, base + thread)
                put(thread, base + vm + head)
            put(thread + 16, base + item)
            put(item, 0xc, base + own_class, 0, 0, base + thread)
            put(thread + thread_vm, base + vm)
            put(thread + thread_ec, base + context)
            if own:
                put(thread + own, base + thread + 64)
            put(context, base + stack, 0x100, base + stack + 0x800 - 5 * size, base + tags)
            put(context + ec_thread, base + thread)
            put(context + ec_start, base + 0x5ff8)
            # Tags from the inside out, of two loops and what has begun them.
            for i, tag in enumerate((tags, tags + 0x100, tags + 0x200)):
                put(tag + 8 * form[1], base + 0x10)
                put(tag + 8 * form[2], base + tag - 16)
                put(tag + form[0], base + tag + 0x100 if i < 2 else 0)
            code, body, method, definition = (0x2000, 0x2100), (0x2200, 0x2400), 0x2600, 0x2700
            for i in range(2):
                put(code[i], 0x1a | 7 << 12, 0, base + body[i])
                put(body[i], 2 - i | 700 << 32, base + 0x3000)
                put(body[i] + 64, base + 0x2800, 0, base + 0x2900 + 64 * i)
                put(body[i] + lines, base + 0x2a00, 0, 3, base + 0x2b00)
                put(body[i] + lines + 48, base + code[1], base + code[1])
            put(method, 0x1a | 6 << 12, 0, base + definition, 2 << 4, base + own_class)
            put(definition, 1, 0, 0, 0, ord("*"))
            put_text(0x2800, b"a.rb")
            put_text(0x2900, b"block in b")
            put_text(0x2940, b"b")
            for i in range(3):
                put(0x2a00 + line_size * i, 7 + i)
            # The first 54 positions are of line 1; the rank of a block and its first bits.
            for i in range(6):
                put(0x2b00 + 8 * i, sum(1 << 7 * k for k in range(9)))
            put(0x2b30, 1, sum((2 if i > 3 else 1) << 9 * i for i in range(7)), 1 << 9, 0, 0, 0, 1 << 7)
            put(own_class, 2, 0)
            if path:
                put(own_class + path, base + 0x2980)
                put_text(0x2980, b"Class")
                memory[own_class + 149] = 1
            put(names, 7, 0, 1, 0, base + names + 0x80)
            put(names + 0x80, base + names + 0xc0)
            put(names + 0xc0, 7, 0, 200, 0, base + names + 0x100)
            put_text(0x29c0, b"*")
            put(names + 0x100 + 16 * ord("*"), base + 0x29c0, ord("*") << 8 | 0xc)
            frames = ((0, 70, 0x22220021), (None, 0, 0x55550083), (1, 400, 0x11110023), (1, 10, 0x11110003))
            for i, (of, pc, flags) in enumerate(frames):
                frame, ep = stack + 0x800 - (5 - i) * size, stack + 0x100 + 0x40 * i
                is_code = of is not None
                put(frame, base + 0x3000 + 8 * pc if is_code else 0, 0, base + code[of] if is_code else 0, 0, base + ep)
                put(ep - 16, 0 if is_code else base + method, base + ep + 0x80 | 1, flags)
            write(folder, "ruby", f"{version[0]}.{version[1]}-{form[0]}-{form[2]}", bytes((number,)) + bytes(memory))


def seed_syscalls(folder):
    """Each call of three machines, with small numbers and pointers into memory that points to itself; and a stored record."""
    memory = b"".join((0x10000 + 8 * i).to_bytes(8, "little") for i in range(1, 20)) + b"\x02\x00\x00\x50" + bytes(range(1, 90)) + bytes(200)
    pointer, number = b"\x01\x08", b"\x00" + bytes(7) + b"\x05"
    for machine in range(3):
        for call in range(0, 470, 1 if machine < 2 else 3):
            head = bytes([0x40 | call & 0x21, 1, machine, call & 255, call >> 8])
            for result in (b"\x10\x00", b"\xfe\xff"):
                write(folder, "syscalls", f"call-{machine}-{call}-{result[0]}",
                      head + (number + pointer + pointer + number + pointer + number if call & 1 else
                              pointer + pointer + number + pointer + pointer + number) + result + bytes(80) + memory)
    stored = b"syscal01" + (62).to_bytes(4, "little") + (1).to_bytes(4, "little") + (1).to_bytes(8, "little") + bytes(8)
    stored += b"".join(n.to_bytes(8, "little") for n in (3, 0x10000, 5, 0, 0, 0, 5))
    stored += (0x10000).to_bytes(8, "little") + (5).to_bytes(4, "little") + bytes(4) + b"hello" + bytes(3)
    for flags in range(8):
        write(folder, "syscalls", f"stored-{flags}", bytes([flags, 33]) + stored)


def seed_jit(folder, tmp):
    sys.path[:0] = [os.path.join(HERE, "..", d) for d in ("lib", "jit")]
    import elfasm
    import jitfiles
    text = b"1000 20 a\n0x0000000000001010 0x00000020 b c\r\n1018 8 \n1000 0 d\n2000 10 _Z1fv\nx\n3000 1"
    write(folder, "perf_map", "lines", b"\x00" + text)
    write(folder, "perf_map", "grown", b"\x03" + text)
    dump = jitfiles.dump_header() + jitfiles.lines(0x1000, [(0, 1, "a.js"), (8, 2, None), (16, 3, "b.js")])
    dump += jitfiles.record(jitfiles.UNWINDING_INFO, bytes(32)) + jitfiles.load(0x1000, 0x20, 0, "first", 5)
    dump += jitfiles.load(0x1010, 0x20, 1, "second", 6) + jitfiles.move(0x1010, 0x2000, 0x20, 1, 7)
    f = Frames(types.SimpleNamespace(bits=64, big=False))
    f.fde(f.cie(encoding=PCREL | SDATA4, instructions=b"\x0c\x07\x08\x90\x01"), TEXT, 0x20, PCREL | SDATA4, instructions=b"\x41\x0e\x10")
    f.end()
    frames = bytes(f.out.bytes) + bytes(20)
    dump += jitfiles.record(jitfiles.UNWINDING_INFO, struct.pack("<QQQ", len(frames), 20, len(frames)) + frames + bytes(-len(frames) % 8))
    dump += jitfiles.load(0x3000, 0x20, 2, "unwound", 8) + jitfiles.record(77, b"unknown") + jitfiles.record(jitfiles.CLOSE, b"", 9)
    write(folder, "jitdump", "whole", b"\xff" + dump)
    write(folder, "jitdump", "grown", b"\x02" + dump)
    base, code = 0x10000, 0x7000
    with open(os.path.join(tmp, "gcc5.o"), "rb") as f:
        compiled = f.read()
    for name, files, changes in [
            ("one", [jitfiles.relocatable(code, [("f", 0, 0x20)])], b""),
            ("three", [jitfiles.relocatable(code, [("f", 0, 0x20)]), jitfiles.loaded(code + 8, [("g", 0, 0x20)]), compiled], b""),
            ("changes", [jitfiles.relocatable(code, [("f", 0, 0x20)]), jitfiles.loaded(code, [("g", 0, 0x20)])],
             b"\x08\x00\x10\x38\x0c\x00\x48\x01")]:
        entries, data = [], b""
        first = base + 24
        for i, file in enumerate(files):
            entries.append((first + 32 * (i + 1) if i + 1 < len(files) else 0, first + 32 * (i - 1) if i else 0,
                            first + 32 * len(files) + len(data), len(file)))
            data += file
        memory = struct.pack("<IIQQ", 1, 1, first, first) + b"".join(struct.pack("<QQQQ", *e) for e in entries) + data
        write(folder, "gdb_jit", name, b"\x00" + struct.pack(">Q", code) + changes.ljust(32, b"\0") + memory)


def registry_file(code, functions):
    """A symbol file as the publisher writes them: .text, .eh_frame, .symtab, .strtab, .fathom.functions, in this order."""
    f = Frames(types.SimpleNamespace(bits=64, big=False))
    cie = f.cie(instructions=b"\x0c\x07\x08\x90\x01")
    for off, size, _ in functions:
        f.fde(cie, code + off, size, instructions=b"\x41\x0e\x10")
    f.end()
    names = b"\0" + b"".join(name.encode() + b"\0" for *_, name in functions)
    symbols, at = bytes(24), 1
    for off, size, name in functions:
        symbols += struct.pack("<IBBHQQ", at, 0x12, 0, 1, code + off, size)
        at += len(name) + 1
    times = b"".join(struct.pack("<QII", 100 + i, 24, len(f[2])) for i, f in enumerate(functions))
    parts = [(8, 6, code, b"", 0, 0), (1, 0, 0, bytes(f.out.bytes), 0, 0), (2, 0, 0, symbols, 4, 24), (3, 0, 0, names, 0, 0),
             (1, 0, 0, times, 0, 16)]
    data, headers = b"", bytes(64)
    for kind, flags, address, content, link, entry in parts:
        size = functions[-1][0] + functions[-1][1] if kind == 8 else len(content)
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, flags, address, 64 + len(data), size, link, 1, 8, entry)
        data += content + bytes(-len(content) % 8)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(data), 0, 64, 0, 0, 64, 6, 0)
    return head + data + headers


def seed_registry(folder):
    """The head, a table, and two symbol files, as in safe/jit/registry.h."""
    base, code, magic = 0x10000, 0x7000, 0x72746a6d6f687466
    files = [registry_file(code, [(0, 0x20, "f"), (0x20, 0x10, "g")]), registry_file(code + 0x100, [(0, 8, "h")])]
    table = base + 72
    at, rows, data = table + 24 + 40 * len(files), b"", b""
    for i, (low, size, file) in enumerate(((code, 0x30, files[0]), (code + 0x100, 8, files[1]))):
        rows += struct.pack("<QQQQQ", low, low + size, at + len(data) + 8, len(file), 7 + i)
        data += struct.pack("<Q", 7 + i) + file
    head = struct.pack("<QIIIIQQQQIII", magic, 1, 72, 40, 0, 2, table, 0, 2**64 - 1, 0, 0, 0).ljust(72, b"\0")
    memory = head + struct.pack("<QQQ", 9, 9 ^ table ^ magic, len(files)) + rows + data
    # What changes: nothing; the table's serial number; that of a file; a row.
    for name, changes in (("still", b""), ("table", b"\x03\x00\x48\x00"), ("file", b"\x06\x00\xb0\x00"), ("row", b"\x05\x00\x60\xff")):
        for flags in (0x78, 0x40):
            write(folder, "registry", f"{name}-{flags:x}", bytes([flags]) + struct.pack(">Q", code) + changes.ljust(32, b"\0") + memory)
    write(folder, "registry", "file-alone", b"\0" + struct.pack(">Q", code) + files[0])


# As in fuzz_registered.c: where the library, its code and its data are.
LIBRARY, LIBRARY_CODE, LIBRARY_DATA = 0x100000000, 0x100000400, 0x100010000


def library_code(targets):
    """The library's functions, each of which refers to one of @targets; the fourth calls code that does, and to three words."""
    code = bytearray(768)

    def refer(at, target):
        code[at:at + 7] = b"\x48\x8d\x05" + struct.pack("<i", target - (LIBRARY_CODE + at + 7))  # lea target(%rip), %rax

    for i, target in enumerate(targets):
        if i != 3:
            refer(64 * i, target)
            continue
        code[64 * i:64 * i + 5] = b"\xe8" + struct.pack("<i", 512 - (64 * i + 5))  # call
        for word in range(3):
            refer(512 + 7 * word, target + 8 * word)
    return bytes(code)


def registered(kind, code):
    """The library's data: five roots, 128 bytes each; what @kind of unwinder has; .eh_frame of three functions at @code."""
    made, frames, size = LIBRARY_DATA + 0x400, LIBRARY_DATA + 0xC00, 0x20
    lows, sections = [code + size * i for i in range(3)], [frames + 0x80 * i for i in range(3)]
    roots, data, fdes, eh_frame = [0] * 80, bytearray(0x800), [], b""
    for low, section in zip(lows, sections):
        f = Frames(types.SimpleNamespace(bits=64, big=False), places=(section, 0))
        f.fde(f.cie(instructions=b"\x0c\x07\x08\x90\x01"), low, size, instructions=b"\x41\x0e\x10\x86\x02")
        f.end()
        fdes.append(f.at[low])
        eh_frame += bytes(f.out.bytes).ljust(0x80, b"\0")

    def put(off, form, *numbers):
        struct.pack_into("<" + form, data, off, *numbers)

    def put_object(off, place, bits=0, next=0):
        put(off, "6Q", 2**64 - 1, 0, 0, place, 0x7f8 | bits, next)

    def put_leaf(off, numbers):
        put(off, "QII", 0, len(numbers), 1)
        for i, number in enumerate(numbers):
            put(off + 16 + 24 * i, "3Q", lows[number], size, made + 0x600 + 48 * number)

    if kind in ("list", "leaf", "tree"):
        roots[0] = made + 0x600 if kind == "list" else made
        for i, section in enumerate(sections):
            put_object(0x600 + 48 * i, section, 0, made + 0x600 + 48 * (i + 1) if kind == "list" and i < 2 else 0)
        if kind == "leaf":
            put_leaf(0, [0, 1, 2])
        elif kind == "tree":
            put(0, "QII4Q", 0, 2, 0, lows[2] - 1, made + 0x100, 2**64 - 1, made + 0x200)
            put_leaf(0x100, [0, 1])
            put_leaf(0x200, [2])
    elif kind == "array":
        # An object of an array, and one that was sorted, and then leads to where it came from.
        roots[16], roots[32] = made, made + 0x100
        put_object(0, made + 0x80, 2)
        put(0x80, "3Q", *sections[:2], 0)
        put_object(0x100, made + 0x180, 3)
        put(0x180, "2Q", made + 0x190, 1)
        put(0x190, "2Q", sections[2], 0)
    elif kind == "llvm":
        roots[48:51] = [made, made + 96, made + 128]
        for i, low in enumerate(lows):
            put(32 * i, "4Q", 0, low, low + size, fdes[i])
    elif kind == "dyn":
        roots[64:66] = [3 << 32 | 1, made]
        for i, (format, base) in enumerate(((4, code), (2, frames))):
            table = 0x200 + 0x40 * i
            put(0x80 * i, "5Q2i6Q", (made + 0x80) * (not i), 0, lows[0], lows[2] + size, 0, format, 0, 0, 0, frames, 3, made + table, 0)
            for j, low in enumerate(lows):
                put(table + 8 * j, "2i", low - base, fdes[j] - frames)
    return struct.pack("<80Q", *roots).ljust(0x400, b"\0") + bytes(data) + eh_frame


def seed_registered(folder):
    code = 0x100008000
    head = b"\x01" + struct.pack(">Q", code) + packed(library_code([LIBRARY_DATA + 128 * i for i in range(5)]))
    for kind in ("list", "array", "leaf", "tree", "llvm", "dyn"):
        memory = registered(kind, code)
        write(folder, "registered", kind, head + bytes(32) + memory)
        # What is registered changes while it is read.
        write(folder, "registered", kind + "-changes", head + b"\x08\x0a\x48\x00\x20\x0c\x85\x77".ljust(32, b"\0") + memory)


def seed_kallsyms(folder):
    with open("/proc/kallsyms", "rb") as f:
        lines = f.read().splitlines(keepends=True)
    write(folder, "kallsyms", "self", b"".join(lines[:20] + lines[-20:]))
    odd = [b"0000000000000000 A fixed_percpu_data", b"ffffffff81000000 T _stext", b"ffffffff81000000 T _text",
           b"ffffffff81000010 t a", b"ffffffff81000020 W b", b"ffffffff81000030 T _etext", b"ffffffff82000000 D d",
           b"ffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]", b"ffffffffc0300000 t bpf_prog_1\t[bpf]",
           b"ffffffffc0000000 t $x.5\t[m]", b"ffffffffc0000040 t work\t[m]", b"ffffffffc0000000 r first\t[m]"]
    write(folder, "kallsyms", "odd", b"\n".join(odd))
    modules = [b"nf_tables 335872 0 - Live 0xffffffffc0a01000 (OE)", b"ext4 983040 2 crc16,mbcache, Live 0xffffffffc03e2000"]
    write(folder, "kallsyms", "modules", b"\n".join(modules))


def seed_index(folder, fathom, tmp):
    cache = os.path.join(tmp, "cache")
    subprocess.run([fathom, "cache", "--cache-dir", cache, "build", os.path.join(tmp, "gcc5")], capture_output=True)
    for name in os.listdir(cache) if os.path.isdir(cache) else []:
        with open(os.path.join(cache, name), "rb") as f:
            write(folder, "index", "gcc5", f.read())


def seed_store(folder, fathom, tmp):
    place = os.path.join(tmp, "store")
    for name in ("gcc5", "gcc4"):
        subprocess.run([fathom, "store", "build", "--no-cache", place, os.path.join(tmp, name)], capture_output=True)
    for where, _, names in os.walk(place):
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                data = f.read()
            write(folder, "store", "whole-" + name[:4], b"\x01" + data)
            # Of one piece: its image, decompressed.
            skeleton, index = struct.unpack_from("<QQ", data, 32)
            image = subprocess.run(["zstd", "-dc"], input=data[192:], capture_output=True, check=True).stdout
            if len(image) == (skeleton + 4095) // 4096 * 4096 + index:
                write(folder, "store", "image-" + name[:4], b"\x02" + packed(image[:skeleton]) + image[-index:])


def seed_package(folder, tmp):
    for version, tool in (("4", "dwp"), ("5", "llvm-dwp")):
        program = os.path.join(tmp, "split" + version)
        subprocess.run(["gcc", "-g", "-O2", f"-gdwarf-{version}", "-gsplit-dwarf", "-o", program, "seed.c"], cwd=tmp, capture_output=True)
        done = subprocess.run([tool, "-e", program, "-o", program + ".dwp"], cwd=tmp, capture_output=True)
        if done.returncode == 0:
            with open(program + ".dwp", "rb") as f:
                write(folder, "package", "v" + version, f.read())


def in_memory(path):
    """The segments of a 64-bit file as they are loaded at 0, and where its dynamic section is."""
    with open(path, "rb") as f:
        data = f.read()
    off, = struct.unpack_from("<Q", data, 32)
    number, = struct.unpack_from("<H", data, 56)
    memory, dynamic = bytearray(), 0
    for i in range(number):
        kind, _, start, address, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", data, off + 56 * i)
        if kind == 1:
            memory.extend(bytes(max(0, address + size - len(memory))))
            memory[address:address + size] = data[start:start + size]
        elif kind == 2:
            dynamic = address
    return bytes(memory), dynamic


def seed_memory(folder, tmp):
    for style in ("gnu", "sysv"):
        library = os.path.join(tmp, style + ".so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-nostdlib", f"-Wl,--hash-style={style},-z,max-page-size=64,-z,norelro",
                        "-o", library, "seed.c"], cwd=tmp, capture_output=True, check=True)
        memory, dynamic = in_memory(library)
        for line in subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout.splitlines():
            if line.endswith(" T main"):
                write(folder, "memory", style, struct.pack(">QQB", dynamic, int(line.split()[0], 16) + 3, 255) + memory)


def seed_format(folder):
    for i, form in enumerate([b"%d %s %x", b"%'20ld|%-8lx|%#b", b"%#.*hhs %hs %#ls", b"%lt %m %G %n%P %H %T", b"%C%c%hhc %hhhd %p %"]):
        write(folder, "format", str(i), b"\x80" + packed(form) + "text \u263a \1".encode())


def seed_logs(folder):
    """The samples of the manual as each format; random lines of four processes."""
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "man", "fathom-filter.1"), encoding="utf-8") as f:
        samples = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", f.read(), re.M)
    for number in range(len(samples)):
        write(folder, "log_format", str(number), bytes([number]) + "".join(samples).encode())
    rng = random.Random(5)
    for number in range(8):
        write(folder, "log_context", str(number), rng.randbytes(200))


def seed_resolve_rows(folder):
    """Rows of each form, good and bad, in the orders of columns that the target knows."""
    ident = "00ff10ab"
    tsv = [f"{ident}\t1\n{ident}\t0xff\n\\N\t\n", f"{ident}\t1\t/a\\tb\\\\\n\t7\tm\\x41\n", f"m\t1\texact\nm\t2\t1\n", f"9\treturn\tm\t3\t{ident}\n"]
    json_rows = (f'{{"build_id":"{ident}","offset":1,"x":[{{"y":"]"}}]}}\n' f'{{"offset":"0x7","module":"\\u0041\\ud83d\\ude00","kind":1,"count":null}}\n'
                 '{"a\n')
    binary = [b"\x08" + ident.encode() + struct.pack("<Q", 7), b"\x08" + ident.encode() + struct.pack("<Q", 7) + b"\x01m",
              b"\x01m" + struct.pack("<Q", 7) + b"\x01", struct.pack("<Q", 9) + b"\x00\x01m" + struct.pack("<Q", 7) + b"\x08" + ident.encode()]
    for order in range(4):
        # The form is the remainder by 3, the order bits 2 and 3.
        heads = {n % 3: n for n in range(order << 2, 256, 16)}
        for form, data in enumerate((tsv[order].encode(), json_rows.encode(), binary[order] * 2)):
            write(folder, "resolve_rows", f"{order}-{form}", bytes([heads[form], 3]) + data)


def main():
    folder, fathom = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as tmp:
        for name, path in compile_variants(tmp):
            seed_dwarf(folder, name, path)
            with open(path, "rb") as f:
                data = f.read()
            write(folder, "elf", name, data)
            write(folder, "file", name, data)
        seed_codecs(folder)
        seed_rows(folder)
        seed_registry(folder)
        seed_publish(folder)
        seed_frames(folder)
        seed_names(folder)
        seed_links(folder, tmp)
        seed_maps(folder, tmp)
        seed_disasm(folder, tmp)
        seed_sites(folder, tmp)
        seed_perf_records(folder)
        seed_rings(folder)
        seed_trace_file(folder)
        seed_profile(folder)
        seed_imports(folder)
        seed_pclntab(folder)
        seed_python(folder)
        seed_lua(folder)
        seed_php(folder)
        seed_ruby(folder)
        seed_v8(folder)
        seed_syscalls(folder)
        seed_kallsyms(folder)
        seed_index(folder, fathom, tmp)
        seed_store(folder, fathom, tmp)
        seed_cores(folder, fathom, tmp)
        seed_jit(folder, tmp)
        seed_registered(folder)
        seed_package(folder, tmp)
        seed_memory(folder, tmp)
        seed_format(folder)
        seed_logs(folder)
        seed_resolve_rows(folder)


main()
