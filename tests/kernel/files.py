# SPDX-License-Identifier: MIT
"""Kernels with their files, found by build-id: lines and inlined calls, which other tools read from the
files at the addresses that they state."""
import os
import shutil

from ask import LLVM, run
from kernel import ask, test
from running import AskedText
from root import (KASLR, LINK, RELEASE, Root, SECTIONS, build_id, build_kernel, build_module, compress, nm, notes_of,
                  section_of, without)


def frames(record):
    return [(f["function"], f["file"] and os.path.basename(f["file"]), f["line"]) for f in record["frames"]]


def llvm_frames(path, addresses):
    """What llvm-symbolizer says of @addresses, as the file states them."""
    out = run(LLVM, "--obj=" + path, "--inlines", "--functions=linkage", input="".join(f"{a:#x}\n" for a in addresses))
    answers = []
    for block in out.strip("\n").split("\n\n"):
        lines = block.splitlines()
        places = [line.rsplit(":", 2) for line in lines[1::2]]
        answers.append([(name, os.path.basename(file), int(line) or None)
                        for name, (file, line, _) in zip(lines[::2], places)])
    return answers


def addr2line_frames(path, section, offsets):
    """What addr2line says of @offsets in a section of a relocatable file."""
    answers = []
    for offset in offsets:
        lines = run("addr2line", "-f", "-i", "-j", section, "-e", path, hex(offset)).splitlines()
        places = [line.split(" (")[0].rsplit(":", 1) for line in lines[1::2]]
        answers.append([(name, os.path.basename(file), None if line == "?" else int(line) or None)
                        for name, (file, line) in zip(lines[::2], places)])
    return answers


def code_of(path):
    """[(start, size)] of the functions of a file."""
    out = run("nm", "-S", path)
    fields = [line.split() for line in out.splitlines()]
    return sorted({(int(f[0], 16), int(f[1], 16)) for f in fields if len(f) == 4 and f[2] in "tT"})


def check_image(root):
    """Each instruction byte of the image has the lines that llvm-symbolizer finds in the file."""
    wanted = [a for start, size in code_of(root.vmlinux) for a in range(start, start + size)]
    records, complaint = ask([a + KASLR for a in wanted], root=root.path, stream=True)
    assert complaint == "", complaint
    for address, record, peer in zip(wanted, records, llvm_frames(root.vmlinux, wanted), strict=True):
        assert [f[1:] for f in frames(record)] == [f[1:] for f in peer], f"{address:#x}: {record} {peer}"
        assert [f[0] for f in frames(record)[:-1]] == [f[0] for f in peer[:-1]], f"{address:#x}: {record} {peer}"
        assert (record["module"], record["source"], record["reason"]) == ("[kernel]", "symtab", None), record
        assert int(record["module_address"], 16) == address and record["symbol"] == record["frames"][-1]["function"]
    assert any(len(r["frames"]) == 3 for r in records)
    return records


STAYS = (".text", ".text.unlikely", ".exit.text")


def functions_in(path, section):
    """The offsets in the section of a relocatable file where functions have code, every third."""
    places = section_of(path)
    out = run("nm", "-S", path)
    fields = [line.split() for line in out.splitlines()]
    return [o for f in fields if len(f) == 4 and f[2] in "tT" and places[f[3]] == section
            for o in range(int(f[0], 16), int(f[0], 16) + int(f[1], 16), 3)]


def check_module(root, sections=None, name="my_mod"):
    """Each byte of its code has the lines that addr2line finds at the offset in the section."""
    sections = sections or SECTIONS
    addresses, peers = [], []
    for section in STAYS:
        offsets = functions_in(root.module, section)
        addresses += [sections[section] + o for o in offsets]
        peers += addr2line_frames(root.module, section, offsets)
    records, complaint = ask(addresses, root=root.path, stream=True)
    assert complaint == "" or "vmlinux" in complaint, complaint
    inlined = 0
    for address, record, peer in zip(addresses, records, peers, strict=True):
        assert frames(record) == peer, f"{address:#x}: {record} {peer}"
        assert record["module"] == f"[{name}]" and record["source"] == "symtab", record
        inlined += len(peer) > 1
    assert inlined > 5, inlined
    return records


@test("every byte of the image has the lines that llvm-symbolizer finds without KASLR")
def image(folder):
    root = Root(folder)
    root.install(module=False)
    check_image(root)


@test("data of the image has the size that the file states; between data there is nothing")
def image_data(folder):
    root = Root(folder)
    root.install(module=False)
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    records, _ = ask([at["zeroed"] + 255, at["jiffies"] + 3, at["__bss_stop"] + 1, at["_etext"] + 0x1000, 0x0, 0x1],
                     root=root.path)
    assert [(r["symbol"], r["offset"]) for r in records] == [("zeroed", 255), ("jiffies", 3)] + [(None, None)] * 4
    assert [r["reason"] for r in records[4:]] == ["unmapped"] * 2


PLACES = [f"usr/lib/debug/boot/vmlinux-{RELEASE}", f"usr/lib/debug/lib/modules/{RELEASE}/vmlinux",
          f"usr/lib/debug/usr/lib/modules/{RELEASE}/vmlinux", f"usr/lib/debug/lib/modules/{RELEASE}/vmlinux.debug",
          f"lib/modules/{RELEASE}/vmlinux", f"lib/modules/{RELEASE}/build/vmlinux",
          f"lib/modules/{RELEASE}/vmlinux.debug", f"boot/vmlinux-{RELEASE}"]


@test("the image is found wherever packages put it, and by its build-id")
def image_places(folder):
    root = Root(folder)
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    by_id = build_id(notes_of(root.vmlinux, ".notes"))
    for place in PLACES + [f"usr/lib/debug/.build-id/{by_id[:2]}/{by_id[2:]}.debug"]:
        there = root.place(root.vmlinux, place)
        record, complaint = ask([at["vfs_read"]], root=root.path)
        assert record[0]["frames"][-1]["line"] and complaint == "", f"{place}: {record} {complaint}"
        os.remove(there)
    own = os.path.join(root.path, "own")
    os.makedirs(os.path.join(own, "boot"))
    shutil.copyfile(root.vmlinux, os.path.join(own, "boot", f"vmlinux-{RELEASE}"))
    record, _ = ask([at["vfs_read"]], "--debug-dir", "/own", root=root.path)
    assert record[0]["frames"][-1]["line"], record


@test("an image without lines, and its debug file")
def image_stripped(folder):
    root = Root(folder)
    debug = without(root.vmlinux, folder, "--only-keep-debug", name="vmlinux.debug")
    stripped = without(root.vmlinux, folder, "--strip-debug", name="vmlinux.stripped")
    root.place(stripped, f"boot/vmlinux-{RELEASE}")
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    record = ask([at["vfs_read"] + 1], root=root.path)[0][0]
    assert (record["source"], record["reason"]) == ("symtab", "no-debug-info"), record
    by_id = build_id(notes_of(root.vmlinux, ".notes"))
    root.place(debug, f"usr/lib/debug/.build-id/{by_id[:2]}/{by_id[2:]}.debug")
    check_image(root)


@test("an image of another build is refused: names are the kernel's own")
def image_mismatch(folder):
    root = Root(folder)
    other = build_kernel(folder, "-O1", name="other")
    root.place(other, f"usr/lib/debug/boot/vmlinux-{RELEASE}")
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    record, complaint = ask([at["vfs_read"] + 1], root=root.path)
    record = record[0]
    assert (record["symbol"], record["source"], record["reason"]) == ("vfs_read", "kallsyms", "build-id-mismatch")
    assert record["frames"][0]["line"] is None and "vmlinux" in complaint and "build-id is another" in complaint
    # A right one further on is used all the same.
    root.place(root.vmlinux, f"boot/vmlinux-{RELEASE}")
    record, complaint = ask([at["vfs_read"] + 1], root=root.path)
    assert record[0]["frames"][-1]["line"] and "build-id is another" in complaint


@test("without the kernel's notes nothing is taken for its image")
def no_notes(folder):
    root = Root(folder)
    root.install()
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    for notes in (b"", b"\4\0\0\0", b"\xff" * 40, notes_of(root.vmlinux, ".notes")[:20]):
        root.write("sys/kernel/notes", notes)
        record, complaint = ask([at["vfs_read"] + 1], root=root.path)
        assert (record[0]["source"], record[0]["build_id"]) == ("kallsyms", None), record
        assert "no build-id can be read" in complaint


@test("every byte of a module's sections has the lines that addr2line finds in its file")
def module(folder):
    root = Root(folder)
    root.install()
    records = check_module(root)
    assert all(r["build_id"] == build_id(notes_of(root.module, ".note.gnu.build-id")) for r in records)
    record = ask([SECTIONS[".data"] + 1, SECTIONS[".bss"] + 63], root=root.path)[0]
    assert [(r["symbol"], r["offset"]) for r in record] == [("counter", 1), ("hidden", 63)], record
    record = ask(["mod_helper+1"], root=root.path)[0][0]
    assert record["symbol"] == "mod_helper" and record["frames"][0]["line"], record


def add_compressed(tool):
    @test(f"a module compressed with {tool}")
    def _(folder):
        root = Root(folder)
        root.install()
        path = os.path.join(root.path, f"lib/modules/{RELEASE}/kernel/drivers/my-mod.ko")
        name = os.path.basename(compress(tool, path))
        root.write(f"lib/modules/{RELEASE}/modules.dep", f"kernel/drivers/{name}:\n")
        check_module(root)


for compressor in ("xz", "gzip", "zstd"):
    add_compressed(compressor)


@test("a module is found without modules.dep, and its debug file by path or build-id")
def module_places(folder):
    root = Root(folder)
    root.install()
    os.remove(os.path.join(root.path, f"lib/modules/{RELEASE}/modules.dep"))
    check_module(root)
    own = os.path.join(root.path, f"lib/modules/{RELEASE}/kernel/drivers/my-mod.ko")
    stripped = without(root.module, folder, "--strip-debug", name="stripped.ko")
    shutil.copyfile(stripped, own)
    record = ask([SECTIONS[".text"] + 1], root=root.path)[0][0]
    assert (record["symbol"], record["source"], record["reason"]) == ("mod_work", "symtab", "no-debug-info"), record
    by_id = build_id(notes_of(root.module, ".note.gnu.build-id"))
    for place in (f"usr/lib/debug/lib/modules/{RELEASE}/kernel/drivers/my-mod.ko",
                  f"usr/lib/debug/lib/modules/{RELEASE}/kernel/drivers/my-mod.ko.debug",
                  f"usr/lib/debug/.build-id/{by_id[:2]}/{by_id[2:]}.debug"):
        there = root.place(root.module, place)
        check_module(root)
        os.remove(there)
    os.remove(own)
    root.place(root.module, f"usr/lib/debug/.build-id/{by_id[:2]}/{by_id[2:]}.debug")
    check_module(root)


@test("what /proc/modules lists is found in the files; kallsyms is asked for the rest")
def module_listed(folder):
    root = Root(folder)
    root.install()
    # Since Linux 6.4, a module's memory is in pieces: its size reaches over those of others.
    root.list_modules(("other_mod", SECTIONS[".text"] - 0x1000, 0x100000), ("my_mod", SECTIONS[".text"], 0x4100))
    with_all = check_module(root)
    data = ask([SECTIONS[".data"] + 1, SECTIONS[".bss"] + 1], root=root.path)[0]
    assert [r["symbol"] for r in data] == ["counter", "hidden"], data
    # Nothing of it in kallsyms: the list is enough, but not for what is outside of its range.
    root.lines = root.lines[:-len(root.module_symbols())]
    root.save()
    assert check_module(root) == with_all
    assert [r["symbol"] for r in ask([SECTIONS[".bss"] + 1], root=root.path)[0]] == [None]
    # What is in the range, but in no section, is not the module's.
    root.add(SECTIONS[".text"] + 0x800, "t", "intruder", "bpf")
    root.save()
    record = ask([SECTIONS[".text"] + 0x801, SECTIONS[".text"] + 1], root=root.path)[0]
    assert [(r["symbol"], r["module"]) for r in record] == [("intruder", "[bpf]"), ("mod_work", "[my_mod]")], record


@test("the walk over modules has the image, where it was moved to, and modules with their sections")
def module_walk(folder):
    root = Root(folder)
    root.install()
    root.list_modules(("other_mod", SECTIONS[".text"] - 0x10000, 0x1000), ("my_mod", SECTIONS[".text"], 0x4000))
    said = run(os.path.join(os.environ["BUILD"], "tests", "view"), "modules", f"kernel:{root.path}").splitlines()
    image, module = (line.split() for line in said)
    start = next(int(line.split()[0], 16) for line in root.lines if line.endswith(" _text"))
    assert image == ["[kernel]", f"{KASLR:x}", f"{start:x}"], image
    assert module[:3] == ["[my_mod]", "0", f"{SECTIONS['.text']:x}"], module
    kept = {name: f"{at:x}" for name, at in SECTIONS.items() if not name.startswith((".init", ".data..percpu"))}
    assert dict(word.split("=") for word in module[3:]) == kept, (module, kept)


@test("lists of modules that are damaged, hidden or none")
def module_list_damaged(folder):
    root = Root(folder)
    root.install()
    start, end = SECTIONS[".text"], 2 ** 64 - 1
    for text in ("", "\n\n", "my_mod", "my_mod 16384 0 - Live", f"my_mod x 0 - Live 0x{start:x}",
                 "my_mod 16384 0 - Live 0x0000000000000000", f"my_mod 16384 0 - Live {start:x}",
                 f"my_mod {end} 0 - Live 0x{start:x}", f" 16384 0 - Live 0x{start:x}",
                 f"../my_mod 16384 0 - Live 0x{start:x}\n. 16384 0 - Live 0x{start:x}",
                 f"{'n' * 5000} 16384 0 - Live 0x{start:x}", f"my_mod 16384 0 - Live 0x{'f' * 40}",
                 "".join(f"mod{i} 16384 0 - Live 0x{start:x}\n" for i in range(70000))):
        root.write("proc/modules", text)
        record = ask([start + 1], root=root.path)[0][0]
        assert (record["symbol"], record["source"]) == ("mod_work", "symtab") or \
            (len(text) > 100000 and record["reason"] == "limit"), f"{text[:60]}: {record}"


@test("a module's file of another build is refused")
def module_mismatch(folder):
    root = Root(folder)
    root.install()
    other = build_module(folder, "-O1", name="other.ko")
    root.place(other, f"lib/modules/{RELEASE}/kernel/drivers/my-mod.ko")
    record, complaint = ask([SECTIONS[".text"] + 1, SECTIONS[".text.unlikely"] + 1], root=root.path)
    assert [(r["symbol"], r["source"], r["reason"]) for r in record] == [
        ("mod_work", "kallsyms", "build-id-mismatch"), ("mod_rare", "kallsyms", "build-id-mismatch")], record
    assert "my-mod.ko" in complaint and "build-id is another" in complaint


@test("sections whose addresses are hidden: the module's own names, and why")
def module_hidden(folder):
    root = Root(folder)
    root.install()
    for section in SECTIONS:
        root.write(f"sys/module/my_mod/sections/{section}", "0x0000000000000000\n")
    record, complaint = ask([SECTIONS[".text"] + 1], root=root.path)
    assert (record[0]["symbol"], record[0]["source"], record[0]["reason"]) == ("mod_work", "kallsyms", "no-permission")
    assert "shows no addresses of its sections" in complaint
    for text in ("", "0x", "x", "0xzz", "0x12 34", "0" * 100):
        for section in SECTIONS:
            root.write(f"sys/module/my_mod/sections/{section}", text)
        assert ask([SECTIONS[".text"] + 1], root=root.path)[0][0]["source"] == "kallsyms", text


@test("where the init code of a module was, another may be: it is not named by the first")
def freed_init(folder):
    root = Root(folder)
    root.install()
    start = SECTIONS[".init.text"]
    assert ask([start + 1], root=root.path)[0][0]["symbol"] is None
    # Another build of it, under another name, has its text there.
    other = {**SECTIONS, ".text": start, ".text.unlikely": start + 0x2000, ".exit.text": start + 0x3000,
             ".init.text": start + 0x5000, ".data": start + 0x7000, ".bss": start + 0x7040,
             ".rodata.str1.1": start + 0x8000, ".note.gnu.build-id": start + 0x8040}
    root.load_module("other_mod", other)
    root.save()
    root.place(root.module, f"lib/modules/{RELEASE}/kernel/other_mod.ko")
    root.write(f"lib/modules/{RELEASE}/modules.dep", "kernel/drivers/my-mod.ko:\nkernel/other_mod.ko:\n")
    check_module(root, other, "other_mod")
    check_module(root)


@test("a module that is loaded again elsewhere between questions")
def loaded_again(folder):
    root = Root(folder)
    root.install()
    image = root.lines[:-len(root.module_symbols())]
    moved = {name: address + 0x123000 for name, address in SECTIONS.items()}
    with AskedText("kernel", "--sysroot", root.path) as fathom:
        def question(address):
            return [line.split(maxsplit=1)[1] for line in fathom.one(address)]
        first = question(SECTIONS[".text"] + 0x20)
        assert "module.c:" in first[0], first
        root.lines = image[:]
        root.load_module(sections=moved)
        root.save()
        assert question(moved[".text"] + 0x20) == first
        assert question(SECTIONS[".text"] + 0x20) == ["?? (no-symbols)"]


@test("damaged files: notes, and the kernel's own names")
def damaged_files(folder):
    root = Root(folder)
    root.install()
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    for place in (f"usr/lib/debug/boot/vmlinux-{RELEASE}", f"lib/modules/{RELEASE}/kernel/drivers/my-mod.ko"):
        root.write(place, b"\x7fELF\2\1\1" + b"\xff" * 200)
    record, complaint = ask([at["vfs_read"] + 1, SECTIONS[".text"] + 1], root=root.path)
    assert [(r["symbol"], r["source"]) for r in record] == [("vfs_read", "kallsyms"), ("mod_work", "kallsyms")], record
    assert f"vmlinux-{RELEASE}" in complaint and "my-mod.ko" in complaint, complaint


@test("one by one the same answers as all at once, with files")
def one_by_one(folder):
    root = Root(folder)
    root.install()
    at = {name: value + KASLR for value, _, name in nm(root.vmlinux)}
    wanted = [at["helper"] + 3, at["jiffies"], at["_etext"] + 9, SECTIONS[".text"] + 9, SECTIONS[".bss"] + 1,
              SECTIONS[".init.text"], LINK, 0]
    together, _ = ask(wanted, root=root.path)
    for address, record in zip(wanted, together, strict=True):
        assert ask([address], root=root.path)[0] == [record]
