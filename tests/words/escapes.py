# SPDX-License-Identifier: MIT
"""What names hold, and what of it reaches the terminal."""
import json
import os
import random
import shutil

from ask import FATHOM, LLVM, execute, fathom, run
from named import SUITE, assemble, named

test = SUITE.test


def hidden_points():
    """By perl's tables of Unicode: what must not reach a terminal as it is."""
    script = r'''no warnings; for (0 .. 0x10ffff) { print "$_\n" if chr =~
        /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/ || ($_ >= 0xfff9 && $_ <= 0xfffb) }'''
    return {int(line) for line in run("perl", "-e", script).split()}


def shown(data, hidden):
    """The text that stands for the bytes @data: Python writes what is no UTF-8 as \\xff."""
    out = []
    for c in data.decode("utf-8", "backslashreplace"):
        code = ord(c)
        if code not in hidden:
            out.append(c)
        elif c in "\n\t":
            out.append({"\n": "\\n", "\t": "\\t"}[c])
        else:
            out.append(f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join(out)


def echoed(folder, lines, *options):
    """What addr answers to names that nothing has: it repeats them."""
    done = fathom("addr", "--no-cache", *options, named(folder), text=False, input=b"\n".join(lines) + b"\n")
    return [line for line in done.stdout.split(b"\n") if line]


def check_echo(folder, lines, hidden):
    for got, line in zip(echoed(folder, lines), lines, strict=True):
        text = got.decode("utf-8")
        assert not any(ord(c) in hidden for c in text), got
        assert text.startswith(shown(line, hidden) + " ?? ("), (line, got)
    for got, line in zip(echoed(folder, lines, "--json"), lines, strict=True):
        assert not any(ord(c) in hidden for c in got.decode("utf-8")), got
        assert json.loads(got)["input"] == line.decode("utf-8", "replace"), (line, got)


@test("escapes: every character of Unicode is printed or escaped as its properties say")
def characters(folder):
    hidden = hidden_points()
    assert {0x1b, 0x7f, 0x80, 0x9b, 0x9f, 0x200b, 0x2028, 0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0xe0041} <= hidden
    assert not {0x20, 0x7e, 0xa0, 0xe9, 0x300, 0x4e00, 0xac00, 0x1f600} & hidden
    points = [p for p in [*range(1, 0x20000), *range(0xe0000, 0xe1010), 0x10ffff, *hidden]
              if p and p != 10 and not 0xd800 <= p < 0xe000]
    check_echo(folder, [b"_x" + chr(p).encode() + b"x_" for p in points], hidden)


@test("escapes: bytes that are no UTF-8, wherever they stand")
def no_utf8(folder):
    rng = random.Random(4)
    parts = ["\u00e9", "\u202e", "\u4e00", "\U0001f600", "\U000e0041", "a" * 17]
    lines = [bytes([b]) for b in range(0x80, 0x100)]
    for _ in range(20000):
        line = bytearray(b"".join(rng.choice(parts).encode() for _ in range(rng.randrange(1, 5))))
        for _ in range(rng.randrange(3)):
            line[rng.randrange(len(line))] = rng.randrange(0x80, 0x100)
        # A cut end, too.
        lines.append(b"_" + bytes(line[:rng.randrange(1, len(line) + 1)]).replace(b"\n", b"") + b"_")
    lines += [b"_" + "\U0001f600".encode()[:n] for n in (1, 2, 3, 4)]
    check_echo(folder, lines, hidden_points())


STEERING = [b"c0\x1b[31m\x01\x7f\r\n\tend", b"c1\xc2\x9b\xc2\x80end", b"raw\x9b\x80end", b"turn\xe2\x80\xae\xe2\x81\xa6end",
            b"none\xff\xed\xa0\x80\xc3end", b'quote"back\\slash', b"wide\xe2\x80\x8b\xef\xbb\xbf", b"cut\xe2\x80",
            "gr\u00fc\u00dfe_\u540d\u524d_\U0001f600".encode()]


def steering(folder):
    """A file of functions that are called so, 16 bytes apart from 0x1000 on: no assembler takes such names."""
    stand_ins = [(b"p%d" % i).ljust(len(n), b"_") for i, n in enumerate(STEERING)]
    text = "".join(f".globl {n}\n.type {n},@function\n{n}: .skip 15,0x90\nret\n.size {n},16\n"
                   for n in (s.decode() for s in stand_ins))
    path = assemble(folder, text, name="steering")
    with open(path, "rb") as f:
        data = f.read()
    for stand_in, name in zip(stand_ins, STEERING):
        assert data.count(b"\0" + stand_in + b"\0") == 1
        data = data.replace(b"\0" + stand_in + b"\0", b"\0" + name + b"\0")
    with open(path, "wb") as f:
        f.write(data)
    return path


def raw(*command, data=b""):
    done = execute(*command, text=False, input=data)
    return done.stdout, done.stderr


@test("escapes: names of symbols and files, in every verb, as text and as JSON")
def names_of_files(folder):
    hidden = hidden_points()
    plain = steering(folder)
    path = os.fsencode(folder) + b"/evil\x1b]0;\xe2\x80\xae\x9b\n.so"
    shutil.copy(plain, path)
    addresses = [f"{0x1000 + 16 * i:#x}" for i in range(len(STEERING))]
    out, _ = raw(FATHOM, "addr", "--no-cache", plain, *addresses)
    assert out.decode().split("\n")[:-1] == [f"{a} {shown(n, hidden)}+0x0" for a, n in zip(addresses, STEERING)], out
    for arguments in (["addr", path, *addresses], ["addr", "--json", path, *addresses], ["find", path, "*"],
                      ["find", "--json", path, "*"], ["disasm", path, *addresses], ["disasm", "--json", path, *addresses],
                      ["disasm", path, path], ["addr", path + b"x", "1"], ["addr", "-j", b"\xc2\x9b", path, "1"],
                      ["find", path, b"/(\x9b/"], ["cache", "build", path], [b"\x9bverb"], ["addr", b"--op\xe2\x80\xaet", path],
                      ["addr", "--memory", b"1\x9b", path], ["find", "--read", b"\x9b", path, "x"], ["addr", "-p", b"\x9b"]):
        if arguments[0] in ("addr", "find", "disasm"):
            arguments.insert(1, "--no-cache")
        out, err = raw(FATHOM, *(os.fsdecode(a) if isinstance(a, bytes) else a for a in arguments))
        assert out + err, arguments
        for text in (out, err):
            seen = text.decode("utf-8").replace("\n", "")
            assert not any(ord(c) in hidden for c in seen), (arguments, text)
        if "--json" in arguments:
            assert all(json.loads(line) for line in out.splitlines()), out
    out, _ = raw(FATHOM, "addr", "--no-cache", "--json", os.fsdecode(path), "1000")
    assert json.loads(out)["module"] == path.decode("utf-8", "replace"), out


@test("escapes: the personalities print the bytes that their tools print")
def personalities(folder):
    path = steering(folder)
    data = "".join(f"{0x1000 + 16 * i:#x}\n" for i in range(len(STEERING))).encode()
    for tool, verb, options in ((LLVM, "llvm-symbolizer", ["--no-demangle", f"--obj={path}"]),
                                (LLVM, "llvm-symbolizer", ["--no-demangle", "--output-style=JSON", f"--obj={path}"]),
                                (LLVM, "llvm-symbolizer", ["--no-demangle", "--output-style=GNU", f"--obj={path}"]),
                                ("addr2line", "addr2line", ["-f", "-e", path])):
        theirs, _ = raw(tool, *options, data=data)
        ours, _ = raw(FATHOM, verb, *options, data=data)
        assert ours == theirs and theirs, (verb, options, ours, theirs)
