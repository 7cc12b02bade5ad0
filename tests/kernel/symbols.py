# SPDX-License-Identifier: MIT
"""Kernels without files: what their list of symbols alone can say, and what it must not."""
import os

from ask import FATHOM, refused, run
from counting import cost_of
from kernel import ask, test
from running import AskedText
from root import KASLR, LINK, Root, SECTIONS, nm


def places(root):
    """{name: where it is} of the kernel's image."""
    return {name: value + KASLR for value, _, name in nm(root.vmlinux) if value >= LINK}


def sizes(root):
    """{name: (where it is, size)} of functions, as the linker has it."""
    out = run("nm", "-S", root.vmlinux)
    fields = [line.split() for line in out.splitlines()]
    return {f[3]: (int(f[0], 16) + KASLR, int(f[1], 16)) for f in fields if len(f) == 4 and f[2] in "tT"}


def named(root, addresses, *options):
    return [r["symbol"] for r in ask(addresses, *options, root=root.path)[0]]


@test("each byte of a function is called by its name; where KASLR has put it is no matter")
def functions(folder):
    root = Root(folder)
    for name, (start, size) in sizes(root).items():
        if "ksys" in name:
            continue
        records, complaint = ask(range(start, start + size), root=root.path, stream=True)
        for off, r in enumerate(records):
            assert (r["symbol"], r["offset"], r["source"]) == (name, off, "kallsyms"), r
            assert (r["reason"], r["module"], r["module_address"]) == ("no-debug-info", "[kernel]", None), r
        assert "no vmlinux" in complaint and "--debug-dir" in complaint, complaint


@test("of several names the exported one without underscores is served")
def aliases(folder):
    root = Root(folder)
    start = places(root)["vfs_read"]
    # vfs_read, ksys_read, __ksys_read and a local ksys: the shorter of the first two.
    assert named(root, [start, start + 1]) == ["vfs_read", "vfs_read"]


@test("data is named where it starts only, and marks name nothing behind them")
def data_and_marks(folder):
    root = Root(folder)
    at = places(root)
    assert named(root, [at["jiffies"], at["zeroed"]]) == ["jiffies", "zeroed"]
    inside = [at["zeroed"] + 1, at["zeroed"] + 100, at["jiffies"] + 3, at["_etext"] + 1, at["_etext"] + 0x10000,
              at["_end"] + 1, at["_end"] + 0x100000]
    names = named(root, inside)
    assert names == [None] * len(inside), names
    # Between the image and the modules nothing is known.
    assert named(root, [at["_end"] + (SECTIONS[".text"] - at["_end"]) // 2, SECTIONS[".text"] - 1]) == [None, None]


@test("offsets in per-CPU memory are no addresses")
def per_cpu(folder):
    root = Root(folder)
    records, _ = ask([0, 1, 4, 0x15D00, LINK], root=root.path)
    assert [(r["symbol"], r["module"]) for r in records] == [(None, None)] * 5
    assert [r["reason"] for r in records[:4]] == ["unmapped"] * 4
    assert ask(["this_cpu"], root=root.path)[0][0]["reason"] == "no-such-symbol"


@test("what is not of the image is named with its owner")
def owners(folder):
    root = Root(folder)
    root.add(0xFFFFFFFFC0201000, "t", "ftrace_trampoline", "__builtin__ftrace")
    root.add(0xFFFFFFFFC0205000, "t", "kprobe_insn_page", "__builtin__kprobes")
    root.add(0xFFFFFFFFC0300040, "t", "bpf_prog_6deef7357e7b4530_sd_fw_egress", "bpf")
    root.add(0xFFFFFFFFC0300100, "t", "bpf_prog_6deef7357e7b4530_sd_fw_ingress", "bpf")
    root.save()
    records, _ = ask([0xFFFFFFFFC0201010, 0xFFFFFFFFC0205FFF, 0xFFFFFFFFC03000FF, 0xFFFFFFFFC0300100,
                      SECTIONS[".text"] + 4], root=root.path)
    assert [(r["module"], r["symbol"]) for r in records] == [
        ("[__builtin__ftrace]", "ftrace_trampoline"),
        ("[__builtin__kprobes]", "kprobe_insn_page"),
        ("[bpf]", "bpf_prog_6deef7357e7b4530_sd_fw_egress"),
        ("[bpf]", "bpf_prog_6deef7357e7b4530_sd_fw_ingress"),
        ("[my_mod]", "mod_work")], records
    # Behind the page of a trampoline, and behind that of the last program, nobody knows.
    assert named(root, [0xFFFFFFFFC0202000, 0xFFFFFFFFC0204FFF, 0xFFFFFFFFC0206000, 0xFFFFFFFFC0301000]) == [None] * 4


@test("a module's code ends with its page when no code of it follows")
def module_ends(folder):
    root = Root(folder)
    stop = SECTIONS[".exit.text"]
    assert named(root, [stop, stop + 0xFFF, stop + 0x1000]) == ["mod_stop", "mod_stop", None]
    # Data follows, which was not code before either.
    assert named(root, [SECTIONS[".data"], SECTIONS[".data"] + 1]) == ["counter", None]


@test("lines in any order, lines that are damaged, and lines that are none")
def damaged(folder):
    root = Root(folder)
    at = places(root)
    addresses = [at["do_sys_open"] + 3, at["vfs_read"], SECTIONS[".text"] + 1]
    before = ask(addresses, root=root.path)[0]
    start = at["do_sys_open"]
    bad = ["", " ", "x", "zzzz t bad", f"{start + 1:x}", f"{start + 1:x} ", f"{start + 1:x} t", f"{start + 1:x} t ",
           f"{start + 1:017x} t wrong", f"{start + 1:x}  wrong", f"-{start + 1:x} t wrong", f"{start + 1:x} t bad\t[",
           f"{start + 1:x} t bad\t[x", f"{start + 1:x} t bad\tx]", f"{start + 1:x} t bad\t[]",
           f"{start + 1:x} U undefined", f"{start + 1:x} a absolute", f"{start + 1:x} t $x.5", f"{start + 1:x} t .Ltmp5",
           f"{start + 1:x} t bad\t[{'o' * 300}]", f"{start + 1:X} t UPPER"]
    first, rest = [l for l in root.lines if l.endswith(" _text")], [l for l in root.lines if not l.endswith(" _text")]
    root.save("\n".join(first + bad + rest[::-1] + bad))
    assert ask(addresses, root=root.path)[0] == before


@test("addresses that are all zero are hidden")
def zeros(folder):
    root = Root(folder)
    addresses = [places(root)["vfs_read"], SECTIONS[".text"], 0]
    root.save("".join(f"{0:016x}{line[16:]}\n" for line in root.lines))
    records, complaint = ask([*addresses, "vfs_read"], root=root.path)
    assert [(r["reason"], r["symbol"], r["module"]) for r in records] == [("no-permission", None, None)] * 4, records
    assert "shows no addresses" in complaint and "CAP_SYSLOG" in complaint and "sysctl" in complaint, complaint
    root.install()
    records, _ = ask(addresses, root=root.path)
    assert [r["reason"] for r in records] == ["no-permission"] * 3, records


@test("without kallsyms, or with one that is none, the target is not opened")
def no_kallsyms(folder):
    root = Root(folder)
    os.remove(os.path.join(root.path, "proc/kallsyms"))
    assert "proc/kallsyms: " in refused("addr", "--sysroot", root.path, "kernel", "0x1")
    for text in ("", "\n", "no symbols here\n", f"{LINK:x} T start_kernel\n"):
        root.save(text)
        complaint = refused("addr", "--sysroot", root.path, "kernel", "0x1")
        assert "proc/kallsyms: has no _text" in complaint, complaint
    assert "the kernel has no sections" in refused("addr", "--sysroot", Root(folder).path, "-j", ".text", "kernel", "0x1")


@test("a million symbols: seconds and memory stay within bounds")
def million(folder):
    root = Root(folder)
    lines = [f"{LINK + KASLR:016x} T _text"]
    lines += [f"{LINK + KASLR + 16 * i:016x} t function_number_{i:07}" for i in range(1, 1000000)]
    root.save("\n".join(lines) + "\n")
    address = LINK + KASLR + 16 * 777777 + 5
    record = ask([address], root=root.path, processor_seconds=15)[0][0]
    assert (record["symbol"], record["offset"]) == ("function_number_0777777", 5), record
    records, _ = ask([address, SECTIONS[".text"], *[LINK + KASLR + 16 * i for i in range(1, 5000)]], root=root.path,
                     stream=True, processor_seconds=15)
    assert records[0] == record and records[1]["symbol"] is None
    assert [r["symbol"] for r in records[2:]] == [f"function_number_{i:07}" for i in range(1, 5000)]
    status, _, peak = cost_of(FATHOM, "addr", "--sysroot", root.path, "kernel", *[hex(address)] * 20)
    assert status == 0 and peak < 600 << 20, (status, peak)


@test("modules that come and go between questions are seen")
def come_and_go(folder):
    root = Root(folder)
    at = places(root)
    address = SECTIONS[".text"] + 1
    image = root.lines[:-len(root.module_symbols())]
    with AskedText("kernel", "--sysroot", root.path, "--names-only") as fathom:
        def question(address):
            (answer,) = fathom.one(address)
            return answer.split(maxsplit=1)[1].strip()
        assert question(address) == "mod_work+0x1"
        root.lines = image[:]
        root.save()
        assert question(address) == "?? (no-symbols)"
        root.add(SECTIONS[".text"], "t", "another", "other_mod")
        root.save()
        assert question(address) == "another+0x1"
        assert question(at["do_sys_open"]) == "do_sys_open+0x0"


@test("snapshots are of processes")
def no_snapshot(folder):
    root = Root(folder)
    assert "snapshots are taken of" in refused("snapshot", "--sysroot", root.path, "kernel", f"{folder}/snapshot")
