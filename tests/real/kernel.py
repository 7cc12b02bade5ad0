# SPDX-License-Identifier: MIT
"""Debian's own kernel, which QEMU boots with KASLR and modules: fathom runs in it. What the kernel says
of itself, and llvm-symbolizer of its vmlinux, has to be the same."""
import collections
import glob
import json
import os
import re
import shutil
import tempfile

import tap

from ask import FATHOM, llvm, run

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(os.environ.get("BUILD", "build"), "corpus")
LINK = 0xFFFFFFFF81000000
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "ext4", "nf_tables")


def place(path, root, name=None):
    to = os.path.join(root, (name or path).lstrip("/"))
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copy(path, to)


def initramfs(folder, image, release):
    """What the kernel starts with: a shell, fathom with its libraries, and some modules."""
    root = os.path.join(folder, "initramfs")
    for name in ("bin", "proc", "sys", "dev", "share"):
        os.makedirs(os.path.join(root, name))
    place("/bin/busybox", root)
    place(FATHOM, root, "bin/fathom")
    place(os.path.join(HERE, "kernel_init.sh"), root, "init")
    os.chmod(os.path.join(root, "init"), 0o755)
    # Those of the decoder are opened when they are needed.
    decoders = [line.split()[-1] for line in run("/sbin/ldconfig", "-p").splitlines()
                if re.search(r"libZy(dis|core)\.so\.", line)]
    for word in run("ldd", FATHOM).split() + decoders:
        if word.startswith("/"):
            place(os.path.realpath(word), root, word)
    run("depmod", "-b", image, release)
    for module in MODULES:
        for line in run("modprobe", "-d", image, "-S", release, "--show-depends", module).splitlines():
            path = line.split()[1]
            if line.startswith("insmod"):
                place(path, root, os.path.relpath(path, image))
    for path in glob.glob(os.path.join(image, "lib/modules", release, "modules.*")):
        place(path, root, os.path.relpath(path, image))
    run("depmod", "-b", root, release)
    archive = os.path.join(folder, "initramfs.cpio")
    names = run("find", ".", cwd=root)
    with open(archive, "wb") as out:
        run("cpio", "-o", "-H", "newc", "--quiet", input=names, stdout=out, cwd=root)
    return archive


def boot(folder):
    """Boots the kernel; the folder that it shared."""
    package = os.path.join(CORPUS, "linux-image.deb")
    vmlinux = os.path.join(CORPUS, "vmlinux")
    if not os.path.exists(package) or not os.path.exists(vmlinux):
        raise tap.Skip("no kernel was fetched: ./dev real does that")
    image, share = os.path.join(folder, "image"), os.path.join(folder, "share")
    run("dpkg-deb", "-x", package, image)
    release = os.listdir(os.path.join(image, "lib/modules"))[0]
    os.makedirs(os.path.join(share, "debug/boot"))
    # Shared folders do not follow links to what is outside.
    try:
        os.link(vmlinux, os.path.join(share, "debug/boot", f"vmlinux-{release}"))
    except OSError:
        shutil.copy(vmlinux, os.path.join(share, "debug/boot", f"vmlinux-{release}"))
    log = run("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1G", "-nographic", "-no-reboot",
              "-kernel", os.path.join(image, f"boot/vmlinuz-{release}"), "-initrd", initramfs(folder, image, release),
              "-append", "console=ttyS0 quiet panic=-1",
              "-virtfs", f"local,path={share},mount_tag=share,security_model=none,multidevs=remap",
              timeout=900, text=False)
    assert os.path.exists(os.path.join(share, "done")), log.decode(errors="replace")[-3000:]
    return share


def read(share, name):
    with open(os.path.join(share, name), encoding="utf-8") as f:
        return f.read()


def symbols(share):
    """{address: {(name, owner)}} and where the kernel starts."""
    places, start = collections.defaultdict(set), None
    for line in read(share, "kallsyms").splitlines():
        address, _, name = line.split(" ", 2)
        name, _, owner = name.partition("\t")
        places[int(address, 16)].add((name, owner or "[kernel]"))
        if name == "_text":
            start = int(address, 16)
    return places, start


def check_names(places, records, label):
    """All but labels inside of larger functions have a name that kallsyms has there."""
    others = []
    for r in records:
        assert (r["linkage_name"], r["module"]) in places[int(r["address"], 16)] or r["offset"], f"{label}: {r}"
        if r["offset"] or not r["symbol"]:
            others.append(r["address"])
    assert len(others) <= len(records) // 200, f"{label}: {others}"


def check_lines(records, vmlinux, bias):
    """The same frames as llvm-symbolizer's; which alias names the function itself is another matter."""
    for r, peer in zip(records, llvm(vmlinux, [int(r["address"], 16) - bias for r in records]), strict=True):
        mine = [(f["linkage_name"] or f["function"], f["file"], f["line"], f["column"], f["discriminator"])
                for f in r["frames"]]
        assert [f[1:] for f in mine] == [f[1:] for f in peer.frames], f"{mine} {peer.frames}"
        assert [f[0] for f in mine[:-1]] == [f[0] for f in peer.frames[:-1]], f"{mine} {peer.frames}"


def check_found(share, vmlinux, bias):
    """Each name is where the kernel has it, all of its copies, with the size that the file states."""
    wanted, sizes = collections.defaultdict(set), {}
    for line in read(share, "kallsyms").splitlines():
        address, kind, name = line.split(" ", 2)
        name, _, owner = name.partition("\t")
        if kind not in "Aa":
            wanted[name].add((int(address, 16), f"{owner or '[kernel]'}"))
    for line in run("nm", "-S", vmlinux).splitlines():
        fields = line.split()
        if len(fields) == 4:
            sizes[fields[3], int(fields[0], 16) + bias] = int(fields[1], 16)
    found, ranks = collections.defaultdict(set), collections.defaultdict(list)
    sized = 0
    for line in read(share, "found").splitlines():
        m = json.loads(line)
        assert m["name"] and m["source"] == m["table"] == "kallsyms", m
        address = int(m["address"], 16)
        found[m["linkage_name"]].add((address, m["module"]))
        ranks[m["query"]].append(m["rank"])
        if m["module"] == "[kernel]" and (m["linkage_name"], address) in sizes:
            assert m["size"] == sizes[m["linkage_name"], address], m
            sized += 1
    names = set(read(share, "sought").splitlines())
    assert len(names) > 200 and found == {name: wanted[name] for name in names}
    assert sized > 100, sized


def instructions(path, function):
    """[(address, words)] of a function by objdump."""
    out = run("objdump", "-d", "--no-show-raw-insn", "-M", "suffix", f"--disassemble={function}", path)
    lines = re.findall(r"^(ffffffff[0-9a-f]{8}):\t([^<#\n]*)", out, re.M)
    return [(int(address, 16), words.split()) for address, words in lines]


def read_code(share, name):
    return [json.loads(line) for line in read(share, name).splitlines()]


def check_code(share, vmlinux, bias):
    """What runs is what the file has, but where the kernel has patched it; from the file, it is the same."""
    wanted = instructions(vmlinux, "vfs_read")
    code = {int(c["address"], 16) - bias: c for c in read_code(share, "code")}
    same = [a for a, words in wanted if a in code and code[a]["text"].split()[0] == words[0]]
    assert len(wanted) > 100 and len(wanted) * 0.9 < len(same) < len(wanted), (len(wanted), len(same))
    # Whose first instruction is a call in the file is traced by nobody here: a nop.
    assert wanted[0][1][0] == "callq" and code[wanted[0][0]]["text"].startswith("nop"), code[wanted[0][0]]
    for address, words in wanted:
        if address in same and words[0] == "callq" and len(words) == 2 and words[1].startswith("ffffffff"):
            assert int(code[address]["target"], 16) == int(words[1], 16) + bias, code[address]
    called = {c["target_name"] for c in code.values() if c["text"].startswith("call")}
    assert {"rw_verify_area", "kfree"} & called and any("ext4" in (c["target_name"] or "") for c in code.values()), called
    assert not read(share, "code_complaints"), read(share, "code_complaints")
    of_file = read_code(share, "code_of_file")
    assert [(int(c["address"], 16) - bias, c["text"].split()[0]) for c in of_file if "(bad)" not in c["text"]] == \
        [(a, words[0]) for a, words in wanted][:len(of_file)], "code of the file"
    assert "patches its own" in read(share, "file_complaints") and "not the ELF core" in read(share, "unread")


def check_memory(share):
    records = [json.loads(line) for line in read(share, "read").splitlines() if line.startswith("{")]
    banner = next(r for r in records if r["name"] == "linux_banner")
    assert banner["value"] == read(share, "version"), banner
    others = [r for r in records if r["name"] != "linux_banner"]
    assert len(others) > 20 and all(r["module"] == "[jbd2]" and r["value"] is not None for r in others), others[:3]


def debians_kernel():
    with tempfile.TemporaryDirectory(prefix="fathom-kernel-", dir=CORPUS if os.path.isdir(CORPUS) else None) as folder:
        share = boot(folder)
        places, start = symbols(share)
        records = [json.loads(line) for line in read(share, "answers").splitlines()]
        assert len(records) == len(read(share, "asked").splitlines()) > 500
        assert start and start != LINK, f"the kernel was not moved: {start}"
        if "build-id is another" in read(share, "complaints"):
            raise tap.Skip("vmlinux is of another build than the kernel: remove build/corpus to fetch both again")
        check_names(places, records, "with vmlinux")
        check_names(places, [json.loads(line) for line in read(share, "names").splitlines()], "without")
        lines = [r for r in records if r["module"] == "[kernel]" and r["frames"] and r["frames"][0]["line"]]
        assert len(lines) > 300, len(lines)
        check_lines(lines, os.path.join(CORPUS, "vmlinux"), start - LINK)
        vmlinux = os.path.join(CORPUS, "vmlinux")
        check_found(share, vmlinux, start - LINK)
        check_memory(share)
        check_code(share, vmlinux, start - LINK)
        assert sum(r["module"] == "[ext4]" and r["source"] == "symtab" for r in records) > 10


TESTS = [("Debian's kernel, moved by KASLR, with modules, asked from inside", debians_kernel)]
