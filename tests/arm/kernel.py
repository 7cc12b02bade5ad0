# SPDX-License-Identifier: MIT
"""Debian's kernel for aarch64, which QEMU boots with two processors: there text changes while threads run it."""
import os
import shutil

import tap

from ask import run

IMAGE = os.path.join(os.environ["BUILD"], "corpus", "linux-image.deb")


def archive_of(folder, programs, libraries, commands):
    """What the kernel starts with: @programs, of which init runs @commands, and @libraries of theirs."""
    root = os.path.join(folder, "root")
    for name in "dev", "lib":
        os.makedirs(os.path.join(root, name))
    for path in programs:
        shutil.copy(path, root)
    for path in libraries:
        shutil.copy(path, os.path.join(root, "lib"))
    with open(os.path.join(root, "commands"), "w", encoding="utf-8") as f:
        f.write("".join(f"{line}\n" for line in commands))
    archive = os.path.join(folder, "initramfs.cpio")
    with open(archive, "wb") as out:
        run("cpio", "-o", "-H", "newc", "--quiet", input=run("find", ".", cwd=root), stdout=out, cwd=root)
    return archive


def boot(folder, programs, libraries, commands):
    """{command: lines that it has written} of @commands, which run one after the other."""
    if not os.path.exists(IMAGE):
        raise tap.Skip("no kernel was fetched")
    image = os.path.join(folder, "image")
    run("dpkg-deb", "-x", IMAGE, image)
    kernel = next(name for name in os.listdir(os.path.join(image, "boot")) if name.startswith("vmlinuz"))
    text = run("qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "cortex-a72", "-smp", "2", "-m", "1500", "-nic", "none", "-nographic", "-no-reboot",
               "-kernel", os.path.join(image, "boot", kernel), "-initrd", archive_of(folder, programs, libraries, commands),
               "-append", "console=ttyAMA0 rdinit=/init quiet panic=-1", timeout=1500, text=False).decode(errors="replace")
    assert "\ndone\r\n" in text or "\ndone\n" in text, text[-2000:]
    found = {}
    for part in text.replace("\r", "").split("== ")[1:]:
        lines = part.split("\n=\n")[0].split("\n")
        found[lines[0]] = lines[1:]
    return found
