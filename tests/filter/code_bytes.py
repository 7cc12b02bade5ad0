# SPDX-License-Identifier: MIT
"""Bytes of code that the kernel prints: files made by hand, whose bytes are read from them by their offsets."""
import itertools
import os
import shutil

import tap

from ask import FATHOM, run
from building import nm
from built import folder_for
from live import KERNELS_LOG, kernels_lines
from running import Running
from suite import filtered, names_of, objects, once, test

BEFORE, BYTES = 42, 64
COUNT = itertools.count()

USER = """
	.text
	.globl run
	.type run, @function
run:	.rept 12
	mov $0x11223344, %ecx
	.endr
changed: mov $AMOUNT, %eax
fault:	movl $1, 8(%rax)
	.rept 12
	mov $0x55667788, %edx
	.endr
	ret
	.size run, . - run
	.type outer, @function
outer:	call run
back:	ret
	.size outer, . - outer
"""

# Each place that the kernel patches, and code between them.
MODULE = """
	.text
	.globl fault
	.type fault, @function
fault:	.skip 64, 0xf4
traced:	call __fentry__
	mov $1, %ecx
other:	mov $0x11223344, %eax
keyed:	.byte 0x0f, 0x1f, 0x44, 0, 0
static: call called
	inc %ecx
locked: lock incl (%rdi)
thunk:	call __x86_indirect_thunk_rax
counter: ud2
return:	jmp __x86_return_thunk
plain:	mov $0x55667788, %edx
	.skip 64, 0xf4
	.size fault, . - fault
	.section .altinstr_replacement, "ax"
instead: mov $3, %eax
	.section .altinstructions, "a"
	.long other - ., instead - .
	ALTERNATIVE
	.section __jump_table, "aw"
	.long keyed - ., thunk - .
	.quad 0
	.section .static_call_sites, "aw"
	.long static - ., 0
	.section .smp_locks, "a"
	.long locked - .
	.section .retpoline_sites, "a"
	.long thunk - .
	.section .return_sites, "a"
	.long return - .
	.section __mcount_loc, "a"
	.quad traced
"""
# Members after the two references: cpuid, lengths; with padlen until 5.12, with 32 bits of flags since 6.3.
ALTERNATIVES = {12: ".short 1\n\t.byte 5, 5", 13: ".short 1\n\t.byte 5, 5, 0", 14: ".long 1\n\t.byte 5, 5"}
# What stands there once the kernel has patched it, and the table that says so.
PATCHES = {"other": ("b803000000", ".altinstructions"), "keyed": ("eb09909090", "__jump_table"),
           "static": ("0f1f440000", ".static_call_sites"), "locked": ("3e", ".smp_locks"),
           "thunk": ("0faee8ffd0", ".retpoline_sites"), "return": ("c3cccccccc", ".return_sites"),
           "traced": ("0f1f440000", "__mcount_loc")}

# The image of a kernel: addresses that KASLR moves, a variable of each processor, and tables between symbols.
IMAGE = """
	.text
	.globl _text
_text:	.skip 64, 0xf4
	.type fault, @function
fault:	mov $0x11223344, %ecx
keyed:	.byte 0x0f, 0x1f, 0x44, 0, 0
moved:	mov $_text, %rdi
	movabs $_text, %rsi
each:	mov %gs:each_processor(%rip), %rax
counter: ud2
plain:	mov $0x55667788, %edx
	.skip 64, 0xf4
	.size fault, . - fault
	.set each_processor, 0x1000
instead: mov $3, %eax
	.section .altinstructions, "a"
	.long plain - ., instead - .
	.short 1
	.byte 0, 0
	.data
	.globl __start___jump_table, __stop___jump_table
__start___jump_table:
	.long keyed - ., plain - .
	.quad 0
__stop___jump_table:
	.quad 0
"""


def assembled(text, name, *options, compiler="gcc"):
    """An object made of @text. @options go to the assembler's preprocessor."""
    path = os.path.join(folder_for("code", str(next(COUNT))), name)
    run(compiler, *options, "-x", "assembler-with-cpp", "-c", "-o", path, "-", input=text)
    return path


@once
def library(amount):
    path = os.path.join(folder_for("code", f"library{amount}"), "libcode.so")
    run("gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", "-o", path, assembled(USER, "user.o", f"-DAMOUNT={amount}"))
    return path


def section(path, name):
    """(address, offset, size) of a section, by readelf."""
    for line in run("readelf", "-SW", path).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == name:
            return tuple(int(word, 16) for word in words[3:6])
    raise AssertionError(name)


labels_of = once(nm)


class Code:
    """The bytes of .text as they are in memory."""

    def __init__(self, path):
        self.path = path
        self.address, self.offset, size = section(path, ".text")
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read()[self.offset:self.offset + size])
        self.labels = {name: value - self.address for name, found in labels_of(path).items() for value, _ in found}

    def put(self, label, text, at=0):
        text = bytes.fromhex(text)
        start = self.labels[label] + at
        self.bytes[start:start + len(text)] = text
        return self

    def line(self, label, prefix="[ 12.5] "):
        """The kernel's line of the program counter at @label."""
        at = self.labels[label]
        items = [f"{byte:02x}" for byte in self.bytes[at - BEFORE:at + BYTES - BEFORE]]
        items[BEFORE] = f"<{items[BEFORE]}>"
        return f"{prefix}Code: {' '.join(items)}\n"


def segfault(code, process=123, kind="segfault at 8 ip "):
    at = code.offset + code.labels["fault"]
    return (f"prog[{process}]: {kind}{0x7f0000000000 + at:016x} sp 00007ffc00000000 error 6 "
            f"in libcode.so[{at:x},7f0000001000+1000] likely on CPU 0 (core 0, socket 0)\n")


def frame(code):
    return f"libcode.so(+{code.address + code.labels['back']:#x}) [0x7f0000001234]\n"


def symbols_of(log, path, *options):
    """The symbol of each number, or the reason why it has none."""
    records = objects(log, "--all", "--module-dir", os.path.dirname(path), *options)
    return [r["symbol"] or r["reason"] for r in records]


MISMATCH = "build-id-mismatch"


@test("code bytes: those after a segfault are the file's: another byte refuses it, for this report, a breakpoint does not")
def of_users(_):
    right, twin = library(1), library(2)
    own, other = Code(right), Code(twin)
    assert own.labels == other.labels and own.bytes != other.bytes
    good = segfault(own) + own.line("fault")
    assert symbols_of(good, right) == ["run"] and symbols_of(good, twin) == [MISMATCH]
    assert names_of(good, "--module-dir", os.path.dirname(twin)) == [None, None]
    # Each report for itself, in any order.
    theirs = segfault(other) + other.line("fault")
    assert symbols_of(good + theirs + good, right) == ["run", MISMATCH, "run"]
    assert symbols_of(theirs + good, right) == [MISMATCH, "run"]
    # Frames of the same report, before and after the line.
    log = segfault(own) + frame(own) + other.line("fault") + frame(own)
    assert symbols_of(log, right) == [MISMATCH] * 3
    assert symbols_of(log.replace(other.line("fault"), own.line("fault")), right) == ["run", "outer", "outer"]
    # A breakpoint at any byte; two of them; but no other byte.
    log = ""
    for at in range(-BEFORE, BYTES - BEFORE):
        for byte in "cc", "ab":
            code = Code(right).put("fault", byte, at)
            log += segfault(code) + code.line("fault")
    assert symbols_of(log, right) == ["run", MISMATCH] * BYTES


@test("code bytes: lines without bytes, cut ones, and those of which it is not clear whose they are, refuse nothing")
def unclear(_):
    path = library(1)
    own, other = Code(path), Code(library(2))
    line = other.line("fault")
    for text in ("Code: Unable to access opcode bytes at 0x7f0000001000.\n", "Code: Bad RIP value.\n", "Code: <zz>\n",
                 line.replace("<", "").replace(">", ""), "Status Code: 41 <42>\n", "x" + line.replace("[ 12.5] ", ""),
                 "Code: \n", "other line\n" * 9 + line, segfault(own, 124) + own.line("fault") + own.line("fault") + line,
                 segfault(own, 124) + line + own.line("fault"), "prog[5]: segfault at 0 ip 00007f0000000000 sp 0 error 14\n" + line):
        found = symbols_of(segfault(own) + text, path)
        assert found[0] == "run" and MISMATCH not in found, (text, found)
    # Other lines may stand between.
    assert symbols_of(segfault(own) + "audit: other\n" + line, path) == [MISMATCH]
    # A cut line counts as far as it goes.
    assert symbols_of(segfault(own) + line[:line.index(">") + 2], path) == [MISMATCH]
    assert symbols_of(segfault(own, kind="trap invalid opcode ip:") + line, path) == [MISMATCH]


@test("code bytes: through a pipe line by line: what has been answered stays, later frames of the report are refused")
def by_lines(_):
    path = library(1)
    own, other = Code(path), Code(library(2))
    lines = [segfault(own), other.line("fault"), frame(own), segfault(own), own.line("fault"), frame(own)]
    command = [FATHOM, "filter", "--no-cache", "--module-dir", os.path.dirname(path)]
    with Running(command) as process:
        marks = []
        for line in lines:
            process.send(line)
            marks.append("  -> " in process.line())
    assert marks == [True, False, False, True, False, True], marks


def module(size, *remove):
    path = assembled(MODULE.replace("ALTERNATIVE", ALTERNATIVES[size]), "hand.ko")
    if remove:
        run("objcopy", *(f"--remove-section={name}" for name in remove), path)
    return path


def loaded(path):
    """The code of a module as it is once it is loaded, before it is patched: relocations are resolved."""
    code = Code(path)
    for label in ("traced", "static", "thunk", "return"):
        code.put(label, "33333333", 1)
    return code


def patched(path):
    code = loaded(path)
    for label, (text, _) in PATCHES.items():
        code.put(label, text)
    return code


def oops(code, size=None):
    at = code.labels["counter"] - code.labels["fault"]
    if size is None:
        size = next(s for n, s in sizes(code.path) if n == "fault")
    where = " [hand]" if code.path.endswith(".ko") else ""
    return (f"BUG: unable to handle page fault\nRIP: 0010:fault+{at:#x}/{size:#x}{where}\n{code.line('counter')}"
            f"Call Trace:\n fault+0x45/{size:#x}{where}\n ? fault+0x45/{size:#x}{where}\n---[ end trace ]---\n")


def sizes(path):
    """(name, size) of all symbols, by readelf."""
    lines = (line.split() for line in run("readelf", "-sW", path).splitlines())
    return [(words[7], int(words[2], 0)) for words in lines if len(words) == 8 and words[2].isdigit()]


@test("code bytes: a module of the kernel differs where the kernel patches it, by each table; elsewhere it is another")
def of_modules(_):
    for size in ALTERNATIVES:
        path = module(size)
        assert symbols_of(oops(loaded(path)), path) == ["fault"] * 3
        assert symbols_of(oops(patched(path)), path) == ["fault"] * 3
        for at in (0, 4):
            other = patched(path).put("plain", "ab", at)
            assert symbols_of(oops(other), path) == [MISMATCH] * 3, at
    for label, (text, table) in PATCHES.items():
        path = module(12, table)
        changed = loaded(path).put(label, text)
        assert symbols_of(oops(loaded(path)), path) == ["fault"] * 3, table
        # A relocation may also change this.
        assert symbols_of(oops(changed), path) == [MISMATCH] * 3, table
    # A kprobe, also as a jump.
    for text, wanted in ("cc", "fault"), ("e911223344", "fault"), ("e811223344", MISMATCH):
        assert symbols_of(oops(loaded(path).put("plain", text)), path) == [wanted] * 3, text


@test("code bytes: of the kernel without tables that can be read, or of a file without code, they prove nothing")
def without_tables(_):
    path = module(12)
    other = oops(patched(path).put("plain", "ab"))
    assert symbols_of(other, path) == [MISMATCH] * 3
    # An entry that leads nowhere: its layout is not known.
    broken = assembled(MODULE.replace("ALTERNATIVE", ALTERNATIVES[12] + "\n\t.byte 0"), "hand.ko")
    assert symbols_of(oops(patched(broken).put("plain", "ab")), broken) == [MISMATCH] * 3
    broken = assembled(MODULE.replace("ALTERNATIVE", ALTERNATIVES[12] + "\n\t.short 0, 0"), "hand.ko")
    assert symbols_of(oops(patched(broken).put("plain", "ab")), broken) == ["fault"] * 3
    debug = os.path.join(folder_for("code", "debug"), "hand.ko")
    run("objcopy", "--only-keep-debug", path, debug)
    assert symbols_of(other, debug) == ["fault"] * 3


def image(*options):
    path = os.path.join(folder_for("code", f"image{next(COUNT)}"), "vmlinux")
    run("gcc", "-static", "-no-pie", "-nostdlib", "-Wl,-Ttext=0xffffffff81000000", "-Wl,-Tdata=0xffffffff82000000",
        "-Wl,--section-start=.altinstructions=0xffffffff83000000", "-Wl,-e,0", "-Wl,--build-id=none", "-o", path,
        assembled(IMAGE, "image.o"))
    if options:
        run("objcopy", *options, path)
    return path


def moved(path, by, by_each=None):
    code = Code(path)
    text = code.address + by
    code.put("moved", (text & 0xffffffff).to_bytes(4, "little").hex(), 3)
    code.put("moved", text.to_bytes(8, "little").hex(), 9)
    start = code.labels["each"] + 4
    distance = int.from_bytes(code.bytes[start:start + 4], "little") - (by if by_each is None else by_each)
    return code.put("each", (distance & 0xffffffff).to_bytes(4, "little").hex(), 4)


@test("code bytes: KASLR moves addresses in the kernel's image, all by one multiple of 2 MiB; a stripped image proves nothing")
def of_the_image(_):
    path = image()

    def found(code, of=path):
        return [r["symbol"] or r["reason"] for r in objects(oops(code), "--all", of)]
    for by in (0, 0x200000, 0x22800000, 0x3fe00000):
        assert found(moved(path, by)) == ["fault"] * 3, hex(by)
    for by, each in (0x100000, None), (0x22800001, None), (0x200000, 0x400000), (-0x200000, None), (0x40000000, None):
        assert found(moved(path, by, each)) == [MISMATCH] * 3, (hex(by), each)
    assert found(moved(path, 0x200000).put("keyed", "e911000000")) == ["fault"] * 3
    assert found(moved(path, 0x200000).put("plain", "ab", 2)) == [MISMATCH] * 3
    stripped = image("--strip-symbol=__start___jump_table")
    assert found(moved(stripped, 0x200000).put("plain", "ab", 2), stripped) == ["fault"] * 3


ARM = """
	.text
	.type fault, %function
fault:	mov x1, #1
	mov x2, #2
	nop
	bl elsewhere
counter: brk #0x800
	ret
	.size fault, . - fault
"""


@test("code bytes: words of arm64, at the end of the call trace: NOPs and breakpoints may be others, no other word")
def of_arm(_):
    if not shutil.which("aarch64-linux-gnu-gcc"):
        raise tap.Skip("aarch64-linux-gnu-gcc is not here")
    path = assembled(ARM, "hand.ko", compiler="aarch64-linux-gnu-gcc")
    words = ["d2800021", "d2800042", "d503201f", "94001234", "(d4210000)"]
    for at, word, wanted in ((0, "d2800021", "fault"), (2, "94005678", "fault"), (1, "d4200080", "fault"), (3, "97ffffff", "fault"),
                             (0, "d2800022", MISMATCH), (4, "(d4210020)", "fault"), (4, "(d2800021)", MISMATCH)):
        log = ("Unable to handle kernel NULL pointer dereference\npc : fault+0x10/0x18 [hand]\nlr : fault+0x10/0x18 [hand]\n"
               + "x1 : 0000000000000000 x0 : 0000000000000000\n" * 40 + " fault+0x10/0x18 [hand]\n"
               + f"Code: {' '.join(words[:at] + [word] + words[at + 1:])} \n---[ end trace ]---\n")
        assert symbols_of(log, path) == [wanted] * 3, (at, word)


@test("code bytes: what the running kernel prints of programs that it ends is what their files have")
def of_real_runs(folder):
    path = os.path.join(folder, "fathomcode")
    run("gcc", "-O1", "-g", "-x", "c", "-o", path, "-", input="int main(void) { *(volatile int *)8 = 1; return 0; }\n")
    with KERNELS_LOG, Running([path]) as process:
        process.process.wait()
    lines = kernels_lines(process.pid, path)
    if "Code: " not in lines[1]:
        raise tap.Skip("the kernel has logged nothing of the program: its code")
    log = "\n".join(lines) + "\n"
    (record,) = objects(log, "--all", "--module-dir", folder)
    assert (record["symbol"], record["by_path"]) == ("main", True), record
    run("gcc", "-O1", "-g", "-x", "c", "-o", path, "-", input="int main(void) { *(volatile int *)8 = 2; return 0; }\n")
    (record,) = objects(log, "--all", "--module-dir", folder)
    assert (record["symbol"], record["reason"]) == (None, MISMATCH), record


@test("kernel symbols: sizes are as far as the next symbol, as the kernel prints them; after the last one of a section any")
def printed_sizes(_):
    text = "\t.text\n\t.type f, @function\nf:\t.skip 9, 0xf4\n\t.size f, 9\n\t.p2align 4\n\t.type g, @function\ng:\t.skip 5, 0xf4\n\t.size g, 5\n"
    path = assembled(text, "hand.ko")
    for size, wanted in (9, "f"), (0x10, "f"), (0xf, None), (0x11, None), (8, None), (0x100, None):
        assert symbols_of(f"RIP: 0010:f+0x4/{size:#x} [hand]\n", path) == [wanted or "no-such-symbol"], size
    for size, wanted in (5, "g"), (0x10, "g"), (0xee0, "g"), (4, None):
        assert symbols_of(f"RIP: 0010:g+0x4/{size:#x} [hand]\n", path) == [wanted or "no-such-symbol"], size
    assert filtered(" f+0x5/0x10 [hand]\n", "--module-dir", os.path.dirname(path)).endswith(b"-> f+0x5 (by path)\n")
