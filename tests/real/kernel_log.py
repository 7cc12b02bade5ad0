# SPDX-License-Identifier: MIT
"""What Debian's kernel prints when a module oopses, warns and hangs in it, below QEMU and with KASLR. The names that fathom
adds have to be those of the kernel's own scripts, decode_stacktrace.sh and faddr2line, with the same files."""
import glob
import json
import os
import random
import re
import shutil
import tempfile

import tap

from ask import FATHOM, run
from kernel import CORPUS, HERE, place

VMLINUX = os.path.join(CORPUS, "vmlinux")
MISMATCH = "build-id-mismatch"
FRAME = re.compile(r"(RIP: 0010:)?([\w.]+)\+0x([0-9a-f]+)/(0x[0-9a-f]+)(?: \[(\w+)\])?$")


# NAME (FILE:LINE ...) MODULE
PLACES = re.compile(r"([\w.]+) \((.*)\) ?(\w*)$")


def built(folder, name, *options):
    """The module of kernel_faults.c, built with the headers of the kernel's release."""
    (headers,) = glob.glob(os.path.join(CORPUS, "headers/usr/src/linux-headers-*-common"))
    (release,) = set(glob.glob(os.path.join(CORPUS, "headers/usr/src/linux-headers-*"))) - {headers}
    with open(os.path.join(release, "Makefile"), "w", encoding="ascii") as file:
        file.write(f"include {os.path.abspath(headers)}/Makefile\n")
    to = os.path.join(folder, name)
    os.makedirs(to)
    shutil.copy(os.path.join(HERE, "kernel_faults.c"), to)
    with open(os.path.join(to, "Kbuild"), "w", encoding="ascii") as file:
        file.write(f"obj-m := kernel_faults.o\nccflags-y := {' '.join(options)}\n")
    run("make", "-C", release, f"M={to}", "modules")
    return to


def serial_log(folder, module):
    """The lines that the kernel prints, from the module's first fault on."""
    image, root = os.path.join(folder, "image"), os.path.join(folder, "root")
    run("dpkg-deb", "-x", os.path.join(CORPUS, "linux-image.deb"), image)
    for name in ("proc", "dev"):
        os.makedirs(os.path.join(root, name))
    place("/bin/busybox", root)
    place(os.path.join(HERE, "kernel_faults_init.sh"), root, "init")
    place(os.path.join(module, "kernel_faults.ko"), root, "kernel_faults.ko")
    os.chmod(os.path.join(root, "init"), 0o755)
    archive = os.path.join(folder, "root.cpio")
    with open(archive, "wb") as out:
        run("cpio", "-o", "-H", "newc", "--quiet", input=run("find", ".", cwd=root), stdout=out, cwd=root)
    (kernel,) = glob.glob(os.path.join(image, "boot/vmlinuz-*"))
    log = run("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1G", "-nographic", "-no-reboot", "-kernel", kernel,
              "-initrd", archive, "-append", "console=ttyS0 panic=-1", timeout=900, text=False).decode(errors="replace")
    log = log.replace("\r", "")
    assert "Kernel panic - not syncing: Fatal exception in interrupt" in log, log[-3000:]
    (offset,) = re.findall(r"Kernel Offset: (0x[0-9a-f]+)", log)
    assert int(offset, 16) % 0x200000 == 0 and int(offset, 16), "the kernel was not moved"
    return log[log.index("sample: BUG:"):].splitlines()


def asked(lines, module):
    """The objects of --json for @lines."""
    out = run(FATHOM, "filter", "--json", "--module-dir", module, VMLINUX, input="\n".join(lines) + "\n")
    return [r for r in map(json.loads, out.splitlines()) if r["format"] == "kernel"]


def is_sample(lines, record):
    return "sample: " in lines[record["line"] - 1]


def lowered(frame):
    """The symbol as scripts shall be asked for it: a place within the call."""
    counter, name, offset, size, _ = frame.groups()
    return f"{name}+{int(offset, 16) - (0 if counter else 1):#x}/{size}"


def without_detail(text):
    return re.sub(r" \(discriminator \d+\)", "", text)


def decoded(folder, module, frames):
    """The files and lines of each frame, by decode_stacktrace.sh; it takes numbers as they are."""
    text = "".join(f" {lowered(f)}{f' [{f[5]}]' if f[5] else ''}\n" for f in frames)
    out = run("bash", os.path.join(folder, "decode_stacktrace.sh"), VMLINUX, "/none", module, input=text, timeout=1800)
    found = [PLACES.search(without_detail(line)) for line in out.splitlines()]
    assert len(found) == len(frames), out
    return [(f[1], f[2].split(), f[3]) if f else (None, [], None) for f in found]


def in_style(module, frames):
    """The same by --style=tool, of the frames as the kernel prints them."""
    text = "".join(f"{f[0]}\n" for f in frames)
    out = run(FATHOM, "filter", "--style=tool", "--module-dir", module, VMLINUX, input=text)
    found = [PLACES.search(line) for line in out.splitlines()]
    return [(f[1], f[2].split(), f[3]) if f else (None, [], None) for f in found]


def by_faddr2line(folder, path, frames):
    """(function, file:line) of all functions at each frame, innermost first, by faddr2line."""
    out = run("bash", os.path.join(folder, "faddr2line"), path, *map(lowered, frames), status=None, timeout=1800)
    found = {}
    for part in without_detail(out).split("\n\n"):
        head, *rest = part.strip().splitlines() or [""]
        found[head.rstrip(":")] = [tuple(re.sub(r"^\(inlined by\) ", "", line.strip()).split(" at ")) for line in rest]
    return [found.get(lowered(f)) for f in frames]


def frames_of(lines, records):
    """{(frame, counter): (match, record)} of all different frames of the reports."""
    found = {}
    for record in records:
        if is_sample(lines, record):
            continue
        text = lines[record["line"] - 1]
        match = FRAME.search(text)
        assert match and match[2] == record["log_symbol"], text
        found[match[0]] = match, record
    return list(found.values())


def place_of(frame):
    return f"{frame['file']}:{frame['line']}"


def name_of(frame):
    """The function as the scripts have it: debug information knows nothing of gcc's copies."""
    return re.sub(r"\.(isra|constprop|part|cold)\b.*", "", frame["linkage_name"] or frame["function"] or "")


def same_place(mine, theirs):
    """Scripts shorten paths."""
    file, _, line = theirs.rpartition(":")
    return mine.rpartition(":")[2] == line and mine.rpartition(":")[0].endswith(file.lstrip("./"))


def is_in_padding(match, record, line):
    """A guess of the kernel's at the end of the padding after a function: no symbol of the file covers it."""
    return f"? {match[0]}" in line and int(match[3], 16) == int(match[4], 16) and not record["symbol"]


def check_frames(folder, module, lines, records):
    """All frames of all reports beside both scripts."""
    found = frames_of(lines, records)
    matches = [match for match, _ in found]
    by_script = decoded(folder, module, matches)
    functions = {}
    for path, name in ((VMLINUX, None), (os.path.join(module, "kernel_faults.ko"), "kernel_faults")):
        own = [match for match in matches if match[5] == name]
        functions |= dict(zip((match[0] for match in own), by_faddr2line(folder, path, own)))
    wrong, compared, named, padding, n_styled = [], 0, 0, 0, 0
    for (match, record), (name, places, owner), (styled, own, own_owner) in zip(found, by_script, in_style(module, matches), strict=True):
        mine = [place_of(f) for f in record["frames"] if f["line"]]
        if len(mine) != len(places) or not all(map(same_place, mine, places)):
            wrong.append(f"{match[0]}: {mine} decode_stacktrace.sh: {places}")
        # A symbol without a place stays as it is.
        if own and (styled != name or own_owner != owner or len(own) != len(places) or not all(map(same_place, own, places))):
            wrong.append(f"{match[0]}: {styled, own, own_owner} in style, decode_stacktrace.sh: {name, places, owner}")
        n_styled += bool(own)
        compared += len(places)
        theirs = functions[match[0]]
        if is_in_padding(match, record, lines[record["line"] - 1]):
            padding += 1
        elif theirs:
            named += len(theirs)
            if list(map(name_of, record["frames"])) != [name for name, _ in theirs]:
                wrong.append(f"{match[0]}: {record['frames']} faddr2line: {theirs}")
    assert n_styled > len(found) * 3 // 4, n_styled
    print(f"# {len(found)} frames, {n_styled} in its style, {compared} lines by decode_stacktrace.sh, {named} functions by faddr2line, {len(wrong)} differ; "
          f"{padding} guesses in padding have no function", flush=True)
    assert padding < 6, padding
    return found, wrong


def changed_bits(lines):
    """The lines, with one bit of each sample's code changed, near the counter."""
    numbers = random.Random(1)
    for i, line in enumerate(lines):
        if i and "sample: " in lines[i - 1]:
            head, _, code = line.partition("Code: ")
            items = code.split()
            at = numbers.choice(range(20, 42))
            items[at] = f"{int(items[at], 16) ^ 1 << numbers.randrange(8):02x}"
            line = f"{head}Code: {' '.join(items)}"
        yield line


def check_code(lines, right, changed):
    """The right kernel and module are never refused, another build of the module is."""
    records = asked(lines, right)
    refused = [r for r in records if r["reason"] == MISMATCH]
    samples = [r for r in records if is_sample(lines, r) and r["symbol"] and not r["reason"]]
    assert not refused, refused[:3]
    others = [r for r in asked(list(changed_bits(lines)), right) if is_sample(lines, r) and r["reason"] == MISMATCH]
    print(f"# {len(samples)} places of running code with a name, none refused; of {len(others)} another bit is", flush=True)
    assert len(samples) > 2000 and len(others) > 2000, (len(samples), len(others))
    of_module = [r for r in asked(lines, changed) if r["log_module"] == "kernel_faults"]
    counters = [r for r in of_module if "RIP: " in lines[r["line"] - 1]]
    assert len(counters) >= 7 and all(r["reason"] == MISMATCH for r in counters), counters
    # The report of blocked tasks has no code.
    assert {r["log_symbol"] for r in of_module if r["reason"] != MISMATCH} == {"fault_sleep", "hang"}
    return records


def kernels_log():
    if not glob.glob(os.path.join(CORPUS, "headers/usr/src/linux-headers-*")) or not os.path.exists(os.path.join(CORPUS, "scripts")):
        raise tap.Skip("no headers of the kernel were fetched: ./dev real does that")
    with tempfile.TemporaryDirectory(prefix="fathom-kernel-", dir=CORPUS) as folder:
        right, changed = built(folder, "right"), built(folder, "changed", "-DCHANGED")
        lines = serial_log(folder, right)
        records = check_code(lines, right, changed)
        found, wrong = check_frames(os.path.join(CORPUS, "scripts"), right, lines, records)
        assert len(found) > 40 and not wrong, "\n".join(wrong)
        words = {match[2] for match, _ in found}
        assert {"fault_oops", "fault_warn", "fault_bug", "fault_sleep", "on_timer", "mutex_lock"} <= words, words
        assert any("? " in lines[r["line"] - 1] for _, r in found), "no guesses"


TESTS = [("Debian's kernel: the log of a module that oopses, warns and hangs, beside decode_stacktrace.sh and faddr2line", kernels_log)]
