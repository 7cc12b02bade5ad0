#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "disasm": what objdump says of the same code, what the linker says of the same addresses, and what
running programs say of themselves."""
import glob
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import tap  # noqa: E402

import objdump  # noqa: E402
from ask import FATHOM, addr, execute, fathom, query, run  # noqa: E402
from building import core_of  # noqa: E402
from running import Running  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
LIBC_32 = "/usr/i686-linux-gnu/lib/libc.so.6"
LIBC_ARM = "/usr/aarch64-linux-gnu/lib/libc.so.6"
ARM = "aarch64-linux-gnu-"
SUITE = tap.Suite("disasm")
test = SUITE.test

# A number that happens to be the address of a function.
NUMBERS = """
.type one, @function; .type two, @function
.text
.globl one
one: nop; ret; .size one, .-one
two:
    movl $PLACE, %eax
    cmpq $PLACE, %rdi
    movq .Lnumber(%rip), %rdx
    call *%rax
    ret
    .size two, .-two
.section .rodata
    .zero 16
.Lnumber:
    .quad PLACE
"""

# A local function that fills its section.
TWINS = """
.type twin, @function
.text
.balign 16
twin: .rept 15; nop; .endr; ret; .size twin, .-twin
"""

# Two functions that call what a register holds. Into one of them code comes back from another section.
COLD = """
.globl open_ended, closed
.type one, @function; .type two, @function; .type open_ended, @function; .type closed, @function
.text
one: nop; ret; .size one, .-one
two: nop; ret; .size two, .-two
open_ended:
    testl %edi, %edi
    jne cold
    leaq one(%rip), %rax
back:
    call *%rax
    ret
    .size open_ended, .-open_ended
closed:
    testl %edi, %edi
    jne cold_without_return
    leaq one(%rip), %rax
    call *%rax
    ret
    .size closed, .-closed
.section .text.unlikely, "ax"
    .zero 64, 0x90
cold:
    leaq two(%rip), %rax
    jmp back
cold_without_return:
    ud2
"""


# Functions that call what a register holds behind a label, to which something else leads than a branch in the code
# before: a table of distances, one of addresses, a jump out of the function, a second piece outside, an address.
LABELS = """
.macro function name
.globl \\name
.type \\name, @function
\\name:
.endm
.text
function one
    nop; ret; .size one, .-one
function two
    nop; ret; .size two, .-two
function distances
    leaq two(%rip), %rbx
    leaq .Ldistances(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    addq %rdx, %rax
    jmp *%rax
.Lfirst:
    leaq one(%rip), %rbx
.Lsecond:
    call *%rbx
    ret
    .size distances, .-distances
function addresses
    leaq two(%rip), %rbx
    jmp *.Laddresses(,%rdi,8)
.Lthird:
    leaq one(%rip), %rbx
.Lfourth:
    call *%rbx
    ret
    .size addresses, .-addresses
function jumps
    leaq one(%rip), %rbx
.Lback:
    call *%rbx
    ret
    jmp .Loutside
    .size jumps, .-jumps
function pieces
    testl %edi, %edi
    jne .Lpiece
    leaq one(%rip), %rbx
.Lagain:
    call *%rbx
    ret
    .size pieces, .-pieces
function takes
    leaq two(%rip), %rbx
    leaq .Ltaken(%rip), %rax
    jmp *%rax
    leaq one(%rip), %rbx
.Ltaken:
    call *%rbx
    ret
    .size takes, .-takes
function part
    leaq one(%rip), %rbx
.Lpart:
    call *%rbx
    ret
    leaq two(%rip), %rbx
    jmp .Lpart
    .size part, .-part
function straight
    leaq one(%rip), %rbx
    call *%rbx
    ret
    .size straight, .-straight
.section .text.unlikely, "ax"
    .zero 64, 0x90
.Loutside:
    leaq two(%rip), %rbx
    jmp .Lback
.Lpiece:
    cmpl $1, %edi
    jne .Lother
    ud2
.Lother:
    leaq two(%rip), %rbx
    jmp .Lagain
.section .rodata
.Ldistances:
    .long .Lfirst - .Ldistances, .Lsecond - .Ldistances
.Laddresses:
    .quad .Lthird, .Lfourth
"""


def build(folder, *options, name="shapes", source="shapes.c", compiler="gcc"):
    return building.build(os.path.join(folder, name), os.path.join(PROGRAMS, source), *options, compiler=compiler,
                          flags=("-O2", "-g"))


def ask(target, *arguments, status=0):
    """fathom's lines as (text, error)."""
    done = fathom("disasm", "--no-cache", target, *arguments, status=status)
    return done.stdout, done.stderr


def records(target, *arguments, status=0):
    return query("disasm", target, arguments, status=status)[0]


def texts(target, *arguments):
    return [r["text"] for r in records(target, "--no-lines", *arguments)]


def expect(lines, *patterns):
    """Each pattern is a regular expression for the whole of some line, in this order."""
    left = iter(lines)
    for pattern in patterns:
        assert any(re.fullmatch(pattern, line) for line in left), f"no line {pattern!r} (in this order) in\n" + "\n".join(lines)


# -- the same words as objdump

def alternative(theirs, ours):
    """The second of two encodings of one instruction, which assemblers choose by a suffix: no word of the language."""
    return re.sub(r"^(\S+)\.s( *)", lambda m: m[1] + m[2].ljust(7 - len(m[1])), theirs).split() == ours.split()


def far_ahead(theirs, ours):
    """A negative distance from rip, which objdump prints as a huge positive one in Intel's syntax."""
    match = re.search(r"\[rip\+0x(f{8}[0-9a-f]{8})\]", theirs)
    return match and theirs.replace(match[0], f"[rip-{2**64 - int(match[1], 16):#x}]") == ours


def unsized(theirs, ours):
    """Loads by absolute address into eax, whose size objdump does not state in Intel's syntax."""
    return re.sub(r"(?:D?WORD|BYTE|QWORD) PTR ((?:[d-g]s):0x)", r"\1", ours) == theirs


def written_otherwise(theirs, ours):
    """What binutils 2.44 writes out: a shift by one, the operand of xlat, and the segment of lea, which means nothing, with
    its operand."""
    plain = re.sub(r"^(sa[lr]|sh[lr]|ro[lr]|rc[lr])([bwlq]? +)\$1,", r"\1\2", theirs)
    plain = re.sub(r"^(sa[lr]|sh[lr]|ro[lr]|rc[lr])( .*),1$", r"\1\2", plain)
    plain = re.sub(r"^xlat .*", "xlat", plain)
    plain = re.sub(r"^(leal? .*?)%?([cdefgs]s):", r"\2 \1", plain)
    return plain.split() == re.sub(r"^((?:sa|sh|ro|rc)[lr] .*),1$", r"\1", ours).split()


AGREEMENTS = [
    ("libc, AT&T", LIBC, "suffix", [], {"alternative encodings": alternative, "written out": written_otherwise}, 400),
    ("libc, Intel", LIBC, "intel", ["--intel"], {"negative distances": far_ahead, "written out": written_otherwise}, 1000),
    ("libc of i386, AT&T", LIBC_32, "suffix", [], {"written out": written_otherwise}, 9000),
    ("libc of i386, Intel", LIBC_32, "intel", ["--intel"], {"sizes": unsized, "written out": written_otherwise}, 10000),
]


def add_agreement(name, path, words, options, classes, most):
    @test(f"agrees with objdump: {name}")
    def _(_folder):
        theirs = objdump.gnu("objdump", path, "-M", words, "-j", ".text")
        ours = objdump.ours(path, objdump.section(path), *options)
        found = objdump.differences(theirs, ours, classes)
        assert None not in found, f"{len(found[None])} of {len(theirs)} unexplained: {found[None][:5]}"
        assert len(theirs) > 300000 and sum(map(len, found.values())) <= most, {k: len(v) for k, v in found.items()}


for agreement in AGREEMENTS:
    add_agreement(*agreement)


# Two words for one condition.
CONDITIONS = {"b.cs": "b.hs", "b.cc": "b.lo"}


@test("aarch64: where branches go, as objdump says, over libc's text")
def branches_of_aarch64(_folder):
    theirs = objdump.gnu(ARM + "objdump", LIBC_ARM, "-j", ".text")
    ours = objdump.ours(LIBC_ARM, objdump.section(LIBC_ARM))
    words = (r"(?:b|bl|b\.\w+|cbn?z|tbn?z|adrp?)\t", r"(?:b|bl|b\.\w+|cbn?z|tbn?z|adrp?) ")
    compared = 0
    for address, (text, _) in theirs.items():
        own, _ = ours.get(address, ("", None))
        # What is data for objdump, by mapping symbols, is not compared.
        if not re.match(words[0], text):
            continue
        assert re.match(words[1], own), f"{address:#x}: {text} {own}"
        name = text.split("\t")[0]
        place = int(re.search(r"([0-9a-f]+)$", text)[1], 16)
        assert CONDITIONS.get(name, name) == own.split()[0] and int(re.search(r"0x([0-9a-f]+)$", own)[1], 16) == place, f"{address:#x}: {text} {own}"
        compared += 1
    assert compared > 20000, compared


# -- names

@test("a file: calls, slots by their relocations, data")
def a_file(folder):
    lines = texts(build(folder), "use")
    expect(lines, r"leaq   -?0x\w+\(%rip\),%rax        # 0x\w+ \(on_signal\)",
           r"movq   %rax,0x\w+\(%rip\)        # 0x\w+ \(handler\)", r"callq  0x\w+ \(puts@plt\)",
           r"callq  0x\w+ \(helper\)", r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(handler\)")


@test("a file without lazy stubs: slots are named by what the loader will put there")
def without_plt(folder):
    expect(texts(build(folder, "-fno-plt"), "use"), r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(puts\)")


@test("a file: packed relocations (DT_RELR) name slots as others do, over words of the bitmap")
def packed(folder):
    for option in ("nopack-relative-relocs", "pack-relative-relocs"):
        path = build(folder, "-pie", "-fPIE", f"-Wl,-z,{option}", name=option, source="slots.c")
        assert ("(RELR)" in run("readelf", "-d", path)) == (option == "pack-relative-relocs")
        called = re.findall(r"callq  \*.* \((slots.*)\)", "\n".join(texts(path, "all")))
        # As slots.c fills them in.
        assert called == ["slots -> one", "slots+0x8 -> two", "slots+0x1f0 -> one", "slots+0x1f8 -> two",
                          "slots+0x200 -> one", "slots+0x278 -> two"], called


@test("a stub of the PLT")
def a_stub(folder):
    path = build(folder, "-fcf-protection=none", "-Wl,-z,lazy")
    stub = next(r for r in records(path, "use") if r["target_name"] == "puts@plt")
    expect(texts(path, stub["target"]), r"jmpq   \*0x\w+\(%rip\)        # 0x\w+ \(puts\)")


@test("constants: those that are addresses of the program")
def constants(folder):
    path = build(folder, "-no-pie", "-fno-pie")
    expect(texts(path, "use"),
           r"movq   \$0x\w+,0x\w+\(%rip\)        # 0x\w+ \(handler\), 0x\w+ \(on_signal\)|"
           r"movl   \$0x\w+,%edi        # 0x\w+ \(greeting\)", r"callq  0x\w+ \(puts@plt\)")
    for record in records(path, "use"):
        assert "$0x3e8" not in record["text"] or record["target"] is None, record


@test("numbers are not taken for addresses where code has none")
def numbers(folder):
    source = os.path.join(folder, "numbers.s")
    with open(source, "w", encoding="ascii") as f:
        f.write(NUMBERS)
    for options, are_addresses in (("-shared", False), ("-no-pie", True)):
        path = os.path.join(folder, "numbers")
        place = 0x1000
        for _ in range(2):
            run("gcc", "-nostdlib", options, "-e", "one", f"-Wa,--defsym,PLACE={place}", "-o", path, source)
            place = next(int(line.split()[0], 16) for line in run("nm", path).splitlines() if line.endswith(" one"))
        found = records(path, "two")
        assert [f"${place:#x}" in r["text"] for r in found[:2]] == [True, True], found
        # The number, the number in memory, a call of each.
        names = [r["target_name"] for r in found if r["target_name"]]
        assert names == (["one", "one", "one", "one"] if are_addresses else []), f"{options}: {names}"


@test("what comes back from the cold part of a function may have other values in registers")
def from_elsewhere(folder):
    source = os.path.join(folder, "cold.s")
    with open(source, "w", encoding="ascii") as f:
        f.write(COLD)
    path = os.path.join(folder, "cold")
    run("gcc", "-nostdlib", "-shared", "-o", path, source)
    run("gcc", "-c", "-o", path + ".o", source)
    assert texts(path + ".o", "open_ended")[-2:] == ["callq  *%rax", "retq"], texts(path + ".o", "open_ended")
    assert texts(path, "open_ended")[-2:] == ["callq  *%rax", "retq"], texts(path, "open_ended")
    expect(texts(path, "closed"), r"callq  \*%rax        # 0x\w+ \(one\)")


@test("behind a label that no branch shows, registers may have other values")
def labels(folder):
    source = os.path.join(folder, "labels.s")
    with open(source, "w", encoding="ascii") as f:
        f.write(LABELS)
    path = os.path.join(folder, "labels")
    run("gcc", "-nostdlib", "-no-pie", "-Wl,-e,one", "-o", path, source)
    run("gcc", "-c", "-o", path + ".o", source)
    for target in (path, path + ".o"):
        for function in ("distances", "addresses", "jumps", "pieces", "takes", "part"):
            assert "callq  *%rbx" in texts(target, function), f"{function}: {texts(target, function)}"
        expect(texts(target, "straight"), r"callq  \*%rbx        # 0x\w+ \(one\)")
    # The same where only the first instructions of a function are asked for, or without its start.
    for function, first in (("part", 0), ("distances", -3)):
        start = int(records(path, function)[first]["address"], 16)
        some = texts(path, f"{start:#x}..{start + 9:#x}")
        assert len(some) == 2 and some[-1] == "callq  *%rbx", f"{function}: {some}"


@test("Intel's syntax")
def intel(folder):
    expect(texts(build(folder), "--intel", "use"), r"lea    rax,\[rip[+-]0x\w+\]        # 0x\w+ \(on_signal\)",
           r"call   0x\w+ \(puts@plt\)", r"call   QWORD PTR \[rip\+0x\w+\]        # 0x\w+ \(handler\)")


@test("a relocatable file: the names of relocations, never those of what stands there")
def relocatable(folder):
    for options in ([], ["-mcmodel=large", "-fno-pic"], ["-fno-pic"], ["-ffunction-sections"]):
        path = build(folder, "-c", *options, name="shapes.o")
        found = records(path, "use")
        names = {r["target_name"] for r in found}
        assert {"puts", "helper", "handler"} <= names, f"{options}: {names}"
        # What objdump -r says of each instruction with a relocation.
        told = {}
        section = ".text.use" if "-ffunction-sections" in options else ".text"
        for line in run("objdump", "-r", "-j", section, path).splitlines():
            match = re.match(r"([0-9a-f]{16}) R_X86_64_\w+ +(\S+)", line)
            if match:
                told[int(match[1], 16)] = re.sub(r"[+-]0x[0-9a-f]+$", "", match[2])
        checked = 0
        for r in found:
            start = int(r["address"], 16)
            symbols = [told[a] for a in range(start, start + len(r["bytes"]) // 2) if a in told]
            if symbols and not symbols[0].startswith("."):
                assert r["target_name"] and r["target_name"].split("+")[0] == symbols[0], f"{options}: {r} {symbols}"
                checked += 1
        assert checked >= 2, f"{options}: {told}"
    expect(texts(build(folder, "-c", name="shapes.o"), "use"), "callq  puts")


@test("a place before a symbol is named in records as in texts")
def before(folder):
    source = os.path.join(folder, "before.s")
    with open(source, "w", encoding="ascii") as f:
        f.write(".type early, @function\nearly: movl table-8(%rip), %eax\nret\n.size early, .-early\n")
    run("gcc", "-c", "-o", source + ".o", source)
    record = records(source + ".o", "early")[0]
    assert record["text"].endswith("(table-0x8)") and record["target_name"] == "table-0x8", record


@test("a running process: a slot is named by what its memory holds")
def a_process(folder):
    path = build(folder, "-fno-plt", "-Wl,-z,now")
    with Running([path]) as process:
        process.line()
        lines = texts(process.pid, "use")
        expect(lines, r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(puts\)",
               r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(handler -> on_signal\)")
        # The name is that of the address that is there: of the library, not of the slot.
        record = next(r for r in records(process.pid, "use") if r["target_name"] == "puts")
        (answer,), _ = addr(process.pid, [record["target"]])
        assert answer["symbol"] == "puts" and "libc" in answer["module"] and answer["offset"] == 0, answer
        # Before the assignment the variable was empty: the file does not know its contents.
        expect(texts(path, "use"), r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(handler\)")


@test("a hostile file: packed relocations in 30,000 tables over the same bytes take no longer than one")
def packed_tables(folder):
    n, words = 30000, 500000
    text = 64 + 56
    table = text + 64
    sections = table + 8 * words
    size = sections + 64 * (n + 2)
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0x1000 + text, 64, sections, 0, 64, 56, 1, 64, n + 2, 0)
    path = os.path.join(folder, "tables")
    with open(path, "wb") as file:
        file.write(b"\x7fELF\2\1\1" + bytes(9) + header)
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, size, size, 4096))
        # An empty bitmap each: no entry is ever made of it.
        file.write(64 * b"\x90" + words * struct.pack("<Q", 1) + bytes(64))
        file.write(struct.pack("<IIQQQQIIQQ", 0, 1, 6, 0x1000 + text, text, 64, 0, 0, 16, 0))
        file.write(n * struct.pack("<IIQQQQIIQQ", 0, 19, 2, 0x9000, table, 8 * words, 0, 0, 8, 8))
    out = run(FATHOM, "disasm", path, hex(0x1000 + text), processor_seconds=10)
    assert "nop" in out, out


@test("a core and a snapshot: code from the files, slots from what is kept of the memory")
def cores(folder):
    path = build(folder, "-fno-plt", "-Wl,-z,now")
    snapshot = os.path.join(folder, "snapshot")
    with Running([path]) as process:
        process.line()
        alive = records(process.pid, "use")
        core = core_of(process.pid, folder)
        run(FATHOM, "snapshot", process.pid, snapshot)
    assert records(core, "use") == alive
    expect(texts(core, "use"), r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(handler -> on_signal\)")
    # A snapshot has no memory: what a slot held is not known, what the code says is.
    kept = records(snapshot, "use")
    assert [(r["address"], r["bytes"]) for r in kept] == [(r["address"], r["bytes"]) for r in alive]
    expect(texts(snapshot, "use"), r"callq  0x\w+ \(helper\)", r"callq  \*0x\w+\(%rip\)        # 0x\w+ \(handler\)")
    assert not any(r["target_name"] == "puts" for r in kept)


def aarch64(folder, *options, name="shapes"):
    return build(folder, "-Wl,--emit-relocs", *options, name=name, compiler=ARM + "gcc")


def relocations(tool, path, of=".rela.text"):
    """(address, type, value of the symbol, its name, addend) of each in the table called @of."""
    inside = False
    for line in run(tool, "-rW", path).splitlines():
        if line.startswith("Relocation section"):
            inside = f"'{of}'" in line
        match = re.match(r"([0-9a-f]{16}) +[0-9a-f]{16} (\S+) +([0-9a-f]{16}) (\S+)(?: ([+-]) ([0-9a-f]+))?$", line)
        if inside and match:
            addend = int(match[6] or "0", 16) * (-1 if match[5] == "-" else 1)
            yield int(match[1], 16), match[2], int(match[3], 16), match[4].split("@")[0], addend


@test("aarch64: pairs of adrp and add, ldr, str lead where the linker says")
def pairs(folder):
    compared, followed_pairs, left = 0, 0, 0
    for options in (["-O0"], ["-O1"], ["-O2"], ["-O3", "-fno-schedule-insns"], ["-static", "-O2"]):
        path = aarch64(folder, *options)
        bounds = objdump.section(path)
        ours = {int(r["address"], 16): r for r in records(path, f"{bounds[0]:#x}..{bounds[1]:#x}")}
        for address, kind, value, name, addend in relocations(ARM + "readelf", path):
            match = re.fullmatch(r"R_AARCH64_(ADD_ABS_LO12_NC|LDST\d+_ABS_LO12_NC|CALL26|JUMP26|LD64_GOT_LO12_NC)", kind)
            # An absolute symbol, such as _nl_current_LC_CTYPE_used, is a number: no address.
            if not match or address not in ours or value < 4096:
                continue
            record = ours[address]
            direct = match[1] in ("CALL26", "JUMP26")
            # What is not followed has no name, which is no wrong one. A linker may make a call of
            # a weak function that is nowhere into a nop, and a load of a slot into an addition.
            if record["target"] is None or (direct and record["text"] == "nop"):
                left += not direct
                continue
            if match[1] == "LD64_GOT_LO12_NC":
                assert record["target_name"].split("+")[0] == name or int(record["target"], 16) == value, f"{options}: {name} {record}"
            elif not (direct and "@plt" in (record["target_name"] or "")):
                assert int(record["target"], 16) == value + addend, f"{options}: {kind} {name} {value + addend:#x} {record}"
            compared += 1
            followed_pairs += not direct
    assert compared > 2000 and left < followed_pairs / 10, f"{compared} compared, {followed_pairs} pairs followed, {left} left"


@test("aarch64: a function of a small program, all of it followed")
def followed(folder):
    lines = texts(aarch64(folder), "use")
    expect(lines, r"add +x\d+, x\d+, #0x\w+        // 0x\w+ \((?:on_signal|greeting)\)", r"bl     0x\w+ \(puts@plt\)",
           r"bl     0x\w+ \(helper\)", r"blr    x\d+        // 0x\w+ \(handler\)")
    for r in records(aarch64(folder), "use"):
        if re.match(r"add .*, #0x\w+( |$)", r["text"]) and "sp" not in r["text"]:
            assert r["target_name"], r


@test("aarch64: a call that does not return brings nothing to the label behind it")
def without_return(folder):
    source = os.path.join(folder, "ends.s")
    path = os.path.join(folder, "ends")
    for jump, known in (("cbnz x0, .Lother", False), ("cbnz x1, .Lother", True)):
        with open(source, "w", encoding="ascii") as f:
            f.write(f"""
.globl ends, number
.type ends, %function; .type number, %object
.text
ends:
    mov x19, x0
    {jump if not known else "nop"}
    adrp x19, number
    {jump if known else "nop"}
    ldr x0, [x19, #:lo12:number]
    bl stop
.Lother:
    ldr x0, [x19, #:lo12:number]
    ret
    .size ends, .-ends
stop: brk #0
.data
    .zero 16
number: .quad 1
    .size number, 8
""")
        run(ARM + "gcc", "-nostdlib", "-shared", "-Wl,-Bsymbolic", "-o", path, source)
        names = [r["target_name"] for r in records(path, "ends") if r["text"].startswith("ldr")]
        assert names == ["number", "number" if known else None], f"{jump}: {names}"


@test("what the kernel answers is in registers that no operand tells")
def system_calls(folder):
    load = {"gcc": "leaq one(%rip), %rax", ARM + "gcc": "adrp x0, one\nadd x0, x0, :lo12:one"}
    through = {"gcc": "call *%rax", ARM + "gcc": "blr x0"}
    for compiler, calls in (("gcc", ["syscall", "int $0x80", "nop"]), (ARM + "gcc", ["svc #0", "hvc #0", "nop"])):
        for call in calls:
            source = os.path.join(folder, "calls.s")
            with open(source, "w", encoding="ascii") as f:
                f.write(f".globl one, two\n.type one, %function\n.type two, %function\n.text\n"
                        f"one: nop\nret\n.size one, .-one\n"
                        f"two: {load[compiler]}\n{call}\n{through[compiler]}\nret\n.size two, .-two\n".replace(
                            "%function", "@function" if compiler == "gcc" else "%function"))
            path = os.path.join(folder, "calls")
            run(compiler, "-nostdlib", "-shared", "-Wl,-Bsymbolic", "-o", path, source)
            last = [r for r in records(path, "two") if r["text"].startswith(("call", "blr"))][-1]
            assert last["target_name"] == ("one" if call == "nop" else None), f"{call}: {last}"


@test("aarch64: a relocatable file")
def relocatable_aarch64(folder):
    path = build(folder, "-c", name="shapes.o", compiler=ARM + "gcc")
    expect(texts(path, "use"), "bl     puts", r"bl     0x\w+ \(helper\)")
    told = {}
    for line in run(ARM + "objdump", "-r", "-j", ".text", path).splitlines():
        match = re.match(r"([0-9a-f]{16}) R_AARCH64_\w+ +([^\s+]+)(\+0x\w+)?$", line)
        if match and not match[2].startswith("."):
            told[int(match[1], 16)] = match[2]
    checked = 0
    for r in records(path, "use"):
        name = told.get(int(r["address"], 16))
        if name:
            assert r["target_name"] and r["target_name"].split("+")[0] == name, f"{r} {name}"
            checked += 1
    assert checked >= 4, told


# -- what is asked for

@test("functions are found by demangled names, and without parameters: of several the first")
def demangled(folder):
    path = build(folder, name="overloads", source="overloads.cc", compiler="g++")
    for name in ("shapes::area(int, int)", "_ZN6shapes4areaEii"):
        out, _ = ask(path, "--no-lines", name)
        assert out.startswith("shapes::area(int, int):\n"), out
    assert ask(path, "--no-lines", "shapes::only")[0].startswith("shapes::only(int):\n")
    assert ask(path, "--no-lines", "shapes::area")[0].startswith("shapes::area(int):\n")
    assert "shapes::are ?? (no-such-symbol)" in ask(path, "shapes::are", status=1)[0]
    assert ask(path, "--no-lines", "--no-demangle", "shapes::only")[0].startswith("_ZN6shapes4onlyEi:\n")


@test("a function, an address in it, and bounds give what they should")
def asked(folder):
    path = build(folder)
    whole = records(path, "use")
    size = next(int(f[2]) for f in (line.split() for line in run("readelf", "-sW", path).splitlines()) if f and f[-1] == "use")
    assert sum(len(r["bytes"]) for r in whole) // 2 == size
    assert records(path, "use+3") == whole and records(path, whole[-1]["address"]) == whole
    assert records(path, f"use..{whole[4]['address']}") == whole[:4]
    assert records(path, f"{whole[2]['address']}..use+{size:#x}") == whole[2:]
    assert [r["line"] for r in whole if r["line"]] and {os.path.basename(r["file"]) for r in whole if r["file"]} == {"shapes.c"}
    stripped = os.path.join(folder, "stripped")
    run("strip", "-o", stripped, path)
    run("objcopy", "--remove-section", ".eh_frame", "--remove-section", ".eh_frame_hdr", stripped)
    assert records(stripped, whole[0]["address"])[:1][0]["bytes"] == whole[0]["bytes"]
    assert len(records(stripped, whole[0]["address"])) == 16


@test("functions of one name behind each other have a heading each")
def same_name(folder):
    source = os.path.join(folder, "twins.s")
    with open(source, "w", encoding="ascii") as f:
        f.write(TWINS)
    run("as", "-o", os.path.join(folder, "1.o"), source)
    run("as", "-o", os.path.join(folder, "2.o"), source)
    path = os.path.join(folder, "twins")
    run("ld", "-shared", "-o", path, os.path.join(folder, "1.o"), os.path.join(folder, "2.o"))
    start = min(int(line.split()[0], 16) for line in run("nm", path).splitlines() if line.endswith(" t twin"))
    for first, name in ((start, "twin:"), (start + 1, "twin+0x1:")):
        shown = ask(path, f"{first:#x}..{start + 32:#x}")[0].splitlines()
        assert [line for line in shown if line.endswith(":")] == [name, "twin:"], shown


@test("lines agree with addr, each is shown once")
def lines(folder):
    path = build(folder)
    found = records(path, "use")
    answers, _ = addr(path, [r["address"] for r in found], status=0)
    for r, a in zip(found, answers):
        assert (r["file"], r["line"]) == (a["frames"][0]["file"], a["frames"][0]["line"]), f"{r} {a}"
    shown = [int(m[1]) for m in re.finditer(r"^ +(\d+)  0x", ask(path, "use")[0], re.M)]
    expected = [r["line"] for b, r in zip([{"line": None}, *found], found) if r["line"] and r["line"] != b["line"]]
    assert shown == expected, f"{shown} {expected}"
    assert ask(path, "use")[0].startswith("use:\n  ")


@test("the end of memory, names that are not there, files that are no code")
def refused(folder):
    path = build(folder)
    out, _ = ask(path, "nosuch", "0x99999999", "use..0", status=1)
    assert out.splitlines() == ["nosuch ?? (no-such-symbol)", "", "0x99999999 ?? (unmapped)", "", "use..0 ?? (bad-address)"], out
    debug = os.path.join(folder, "only.debug")
    run("objcopy", "--only-keep-debug", path, debug)
    assert "(unmapped)" in ask(debug, "use", status=1)[0]
    _, err = ask("/etc/os-release", "main", status=2)
    assert err.startswith("fathom: /etc/os-release: ") and err.count("\n") == 1
    assert "no FUNCTION" in ask(path, status=2)[1]
    # Record without JSON's null address is no record.
    (record,) = records(path, "nosuch", status=1)
    assert record["reason"] == "no-such-symbol" and record["address"] is None and record["text"] is None


@test("code of other machines, and a library that is not there, are told")
def unsupported(folder):
    path = build(folder)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    data[18] = 243  # EM_RISCV
    other = os.path.join(folder, "other")
    with open(other, "wb") as f:
        f.write(data)
    assert "only code for x86 and aarch64" in ask(other, "use", status=2)[1]


@test("a decoder that is not installed is named")
def without_library(folder):
    if os.geteuid():
        raise tap.Skip("only root can mount something over a library")
    path = build(folder)
    (library,) = glob.glob("/usr/lib/x86_64-linux-gnu/libZydis.so.*.*.*.*")
    done = execute("unshare", "-m", "sh", "-c",
                   f"mount --bind /dev/null {library} && exec {FATHOM} disasm {path} use")
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        raise tap.Skip(f"nothing can be mounted here: {done.stderr}")
    assert done.returncode == 2 and not done.stdout
    assert re.fullmatch(r"fathom: libZydis\.so\.\d+\.\d+: .* is not installed \(install the package that has it\)\n", done.stderr), done.stderr


@test("bytes are shown on demand")
def shown_bytes(folder):
    path = build(folder)
    out, _ = ask(path, "--bytes", "--no-lines", "on_signal")
    first = records(path, "on_signal")[0]
    spaced = " ".join(re.findall("..", first["bytes"]))
    assert out.splitlines()[1].startswith(f"  {first['address']}  {spaced} "), out


sys.exit(SUITE.run())
