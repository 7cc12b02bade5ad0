# SPDX-License-Identifier: MIT
"""The kernel's memory: values and code, by a /proc/kcore of our own making, or by the image's file where
there is none. objdump reads the same code where it was linked."""
import os
import re
import struct

import tap

from ask import NOBODY, fathom, records_of, run
from kernel import at, find, test
from names import symbols_of
from root import KASLR, LINK, Root, SECTIONS, nm

ET_CORE, PT_LOAD, PT_NOTE = 4, 1, 4


def sections_of(path, *names):
    """[(address, bytes)] of sections of a file."""
    found = []
    for line in run("readelf", "-SW", path).splitlines():
        fields = line.split("]", 1)[-1].split()
        if fields and fields[0] in names:
            with open(path, "rb") as f:
                f.seek(int(fields[3], 16))
                data = f.read(int(fields[4], 16))
            found.append((int(fields[2], 16), data if fields[1] != "NOBITS" else bytes(int(fields[4], 16))))
    return found


def core(pieces, kind=ET_CORE, first=0x2000):
    """An ELF core file of [(address, bytes)], as /proc/kcore is laid out."""
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", kind, 62, 1, 0, 64, 0, 0, 64, 56, len(pieces) + 1, 0, 0, 0)
    header += struct.pack("<IIQQQQQQ", PT_NOTE, 0, 0x1000, 0, 0, 16, 0, 4)
    body, off = b"", first
    for address, data in pieces:
        header += struct.pack("<IIQQQQQQ", PT_LOAD, 7, off, address, 0, len(data), len(data), 4096)
        body += data
        off += len(data)
    return header.ljust(first, b"\0") + body


def memory(root, patches=()):
    """What the image has, with some bytes replaced: [(address, bytes)]."""
    pieces = []
    for start, data in sections_of(root.vmlinux, ".text", ".rodata", ".data", ".init.text", ".bss"):
        data = bytearray(data)
        for address, new in patches:
            if start <= address - KASLR < start + len(data):
                data[address - KASLR - start:address - KASLR - start + len(new)] = new
        pieces.append((start + KASLR, bytes(data)))
    return pieces


def disasm(root, *arguments, status=0):
    done = fathom("disasm", "--json", "--no-cache", "--sysroot", root.path, "kernel", *arguments)
    if done.returncode == 2 and "libZydis" in done.stderr:
        raise tap.Skip("libZydis is not installed")
    assert done.returncode == status, f"{arguments}: {done.returncode} {done.stderr}"
    return records_of(done.stdout), done.stderr


def objdump(path, function, shift=KASLR):
    """[(address, bytes, first word)] of a function, moved to where it runs."""
    start, size, *_ = symbols_of(path)[function]
    out = run("objdump", "-d", "-w", "-M", "suffix", f"--start-address={start}", f"--stop-address={start + size}", path)
    found = [(int(a, 16) + shift, b.replace(" ", ""), words.split()[0]) for a, b, words in
             re.findall(r"^([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)", out, re.M)]
    assert found, out
    return found


def told(records):
    return [(at(r), r["bytes"], r["text"].split()[0]) for r in records]


def names_at(root):
    return {name: value + KASLR for value, _, name in nm(root.vmlinux) if value >= LINK}


@test("values are what memory holds now, not what the file has")
def values(folder):
    root = Root(folder)
    root.install()
    places = names_at(root)
    pointer = struct.pack("<Q", places["zeroed"] + 16)
    root.write("proc/kcore", core(memory(root, [(places["jiffies"], struct.pack("<i", -77)), (places["zeroed"], pointer),
                                                (places["zeroed"] + 16, b"text of the kernel\0\7")])))
    for query, kind, value in (("jiffies", "i32", -77), ("banner", "str", "a kernel"),
                               ("zeroed", "ptr->str", "text of the kernel"), ("zeroed", "*+19:u8", 7),
                               ("zeroed", "u32[2]", [places["zeroed"] + 16 & 0xFFFFFFFF, places["zeroed"] + 16 >> 32])):
        records, complaint = find([query], "--read", kind, root=root.path)
        place = sorted(r["reason"] or "" for r in records)
        assert records[0]["value"] == value and place == [""] and complaint == "", f"{kind}: {records} {complaint}"
    # Beyond what the core has.
    records, complaint = find(["banner", "mod_work"], "--read", "bytes:4096", root=root.path)
    assert [r["reason"] for r in records] == ["unmapped"] * 2 and complaint == "", f"{records} {complaint}"


@test("memory goes on in the next segment; what lies between two cannot be read")
def segments(folder):
    root = Root(folder)
    start = SECTIONS[".data"]
    data = bytes(range(64))
    root.write("proc/kcore", core([(start + 32, data[32:40]), (start, data[:32]), (start + 41, data[41:])]))
    read = {}
    for size in (1, 32, 40, 41, 64):
        records, _ = find(["my_mod:counter"], "--read", f"bytes:{size}", root=root.path)
        assert at(records[0]) == start
        read[size] = records[0]["value"]
    assert read == {1: "00", 32: data[:32].hex(), 40: data[:40].hex(), 41: None, 64: None}, read


@test("code is what memory holds: where the kernel has patched itself, the patched code")
def code(folder):
    root = Root(folder)
    for with_file in (False, True):
        if with_file:
            root.install()
        root.write("proc/kcore", core(memory(root)))
        for function in ("do_sys_open", "helper", "vfs_read"):
            wanted = objdump(root.vmlinux, function)
            records, complaint = disasm(root, function, *([] if with_file else ["--no-lines"]))
            assert told(records)[:len(wanted)] == wanted and complaint == "", f"{records} {wanted} {complaint}"
            assert all(r["text"].startswith(("nop", "xchg", "data16", "cs ")) for r in records[len(wanted):]), records
            assert any(r["line"] for r in records) == with_file
        start = names_at(root)["do_sys_open"]
        root.write("proc/kcore", core(memory(root, [(start, b"\x0f\x1f\x44\0\0")])))
        records, _ = disasm(root, "do_sys_open")
        assert records[0]["bytes"] == "0f1f440000" and records[0]["text"].startswith("nopl"), records[0]
    records, _ = disasm(root, "vfs_read")
    assert "do_sys_open" in {r["target_name"] for r in records if r["text"].startswith("call")}, records


@test("slots hold what memory has")
def slots(folder):
    root = Root(folder)
    root.install()
    places = names_at(root)
    call = b"\xff\x14\x25" + struct.pack("<I", places["zeroed"] & 0xFFFFFFFF)
    patches = [(places["helper"], call), (places["zeroed"], struct.pack("<Q", places["do_sys_open"]))]
    root.write("proc/kcore", core(memory(root, patches)))
    records, _ = disasm(root, "helper")
    assert records[0]["target_name"] == "do_sys_open" and "zeroed -> do_sys_open" in records[0]["text"], records[0]
    assert int(records[0]["target"], 16) == places["do_sys_open"]


@test("a module's code, which has no file that could stand in for its memory")
def module_code(folder):
    root = Root(folder)
    root.install()
    start = SECTIONS[".text"]
    code_bytes = b"\x55\x48\x89\xe5\x5d\xc3"
    root.write("proc/kcore", core([(start, code_bytes)]))
    records, _ = disasm(root, f"{start:#x}..{start + 6:#x}")
    assert [r["text"].split()[0] for r in records] == ["pushq", "movq", "popq", "retq"], records
    os.remove(os.path.join(root.path, "proc/kcore"))
    _, complaint = disasm(root, "mod_work", status=2)
    assert "proc/kcore" in complaint and "CONFIG_PROC_KCORE" in complaint, complaint


@test("without /proc/kcore: code by the file, with a note; no slots, no values, no data")
def without_kcore(folder):
    root = Root(folder)
    _, complaint = disasm(root, "vfs_read", status=2)
    assert "proc/kcore" in complaint and "CONFIG_PROC_KCORE" in complaint, complaint
    root.install()
    places = names_at(root)
    for function in ("do_sys_open", "vfs_read", "start_kernel", "setup_once"):
        wanted = objdump(root.vmlinux, function)
        records, complaint = disasm(root, function)
        assert told(records)[:len(wanted)] == wanted, f"{records} {wanted}"
        assert "patches its own" in complaint and "CONFIG_PROC_KCORE" in complaint and "vmlinux" in complaint
    records, _ = disasm(root, "do_sys_open")
    assert "helper" in {r["target_name"] for r in records if r["text"].startswith("call")}, records
    # KASLR has moved what code states: it names nothing, though something is there now.
    stated = places["zeroed"] - KASLR
    root.add(stated, "d", "intruder", "other_mod")
    root.save()
    assert find(["intruder"], root=root.path)[0][0]["address"] == hex(stated)
    records, _ = disasm(root, "where")
    assert not {"zeroed", "intruder"} & {r["target_name"] for r in records}, records
    for name in ("zeroed", "banner", "jiffies"):
        records, complaint = disasm(root, f"{places[name]:#x}..{places[name] + 8:#x}", status=2)
        assert "CONFIG_PROC_KCORE" in complaint and not records, name
    records, complaint = find(["jiffies", "banner"], "--read", "i32", root=root.path)
    assert [(r["reason"], r["value"]) for r in records] == [("no-permission", None)] * 2, records
    assert complaint.count("CONFIG_PROC_KCORE") == 1, complaint
    at_number = next(a + KASLR + data.index(struct.pack("<I", stated & 0xFFFFFFFF), places["where"] - KASLR - a)
                     for a, data in sections_of(root.vmlinux, ".text"))
    root.write("proc/kcore", core(memory(root, [(at_number, struct.pack("<I", places["zeroed"] & 0xFFFFFFFF))])))
    records, complaint = disasm(root, "where")
    assert complaint == "" and any(r["target_name"] == "zeroed" for r in records), records


@test("a /proc/kcore that is not ours to read: what helps", needs_root=True)
def forbidden(folder):
    root = Root(folder)
    os.chmod(root.write("proc/kcore", core(memory(root))), 0o400)
    records, complaint = find(["jiffies"], "--read", "i32", root=root.path)
    assert records[0]["value"] == 1, records
    records, complaint = find(["jiffies"], "--read", "i32", root=root.path, user=NOBODY)
    assert records[0]["reason"] == "no-permission" and "run as root" in complaint, f"{records} {complaint}"


@test("a damaged /proc/kcore: an error, never a wrong value")
def damaged(folder):
    root = Root(folder)
    good = core(memory(root))
    path = os.path.join(root.path, "proc/kcore")

    def asked(wanted, what):
        records, complaint = find(["jiffies"], "--read", "i32", root=root.path)
        assert records[0]["value"] in wanted, f"{what}: {records}"
        return complaint
    for size in list(range(0, 80, 7)) + [120, 200, 0x1000, 0x2000, len(good) - 300]:
        root.write("proc/kcore", good[:size])
        asked((None, 1), size)
    for offset, new in ((16, b"\2"), (4, b"\1"), (4, b"\7"), (5, b"\2"), (32, b"\xff" * 8), (54, b"\1\0"), (56, b"\xff\xff"),
                        (56, b"\0\0"), (32, struct.pack("<Q", 9 << 20))):
        root.write("proc/kcore", good[:offset] + new + good[offset + len(new):])
        complaint = asked((None, 1) if new == b"\xff\xff" else (None,), (offset, new))
        assert "kcore" in complaint or offset in (4, 54, 56), (offset, complaint)
    for number in range(5):
        for field in (8, 16, 32):
            at_field = 64 + 56 * (number + 1) + field
            root.write("proc/kcore", good[:at_field] + b"\xff" * 8 + good[at_field + 8:])
            asked((None, 1), (number, field))
    os.remove(path)
    os.mkfifo(path)
    asked((None,), "a FIFO")
    os.remove(path)
    os.mkdir(path)
    asked((None,), "a directory")
