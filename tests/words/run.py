#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "words": what people type for addresses and names, and what the command says to them."""
import json
import os
import random
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, LLVM, run  # noqa: E402
from counting import instructions  # noqa: E402

SUITE = tap.Suite("words", "mount, and change its user")
test = SUITE.test

# Names that could be numbers, and some that could not; each is three bytes of code.
NAMES = ["add", "dead", "abba", "FADE", "a", "beef123", "beef1234", "deadbeefdead", "cafe_1", "xyz", "eight_by"]

FUNCTION = """.globl {0}
.type {0},@function
{0}: nop
nop
ret
.size {0},3
"""


def assemble(folder, text, *options, name="named", start=0x1000):
    """Links @text at @start."""
    path = os.path.join(folder, name)
    with open(path + ".s", "w", encoding="utf-8") as f:
        f.write(text)
    run("gcc", "-c", path + ".s", "-o", path + ".o")
    run("ld", f"-Ttext={start:#x}", "-e", hex(start), *options, "-o", path, path + ".o")
    return path


def named(folder):
    """A file with NAMES, three bytes apart from 0x1000 on."""
    return assemble(folder, "".join(FUNCTION.format(n) for n in NAMES), name="named")


def at(name, offset=0):
    return 0x1000 + 3 * NAMES.index(name) + offset


# What each word is: an address, or why it is none.
BOTH = [
    ("add", at("add")), ("dead", at("dead")), ("abba", at("abba")), ("a", at("a")), ("FADE", at("FADE")),
    ("fade", 0xfade), ("face", 0xface), ("beef123", at("beef123")),
    # More than 7 hexadecimal digits are a number, whoever is called so; with an offset they are a name.
    ("beef1234", 0xbeef1234), ("deadbeefdead", 0xdeadbeefdead), ("DEADBEEF", 0xdeadbeef),
    ("beef1234+0", at("beef1234")), ("beef1234+2", at("beef1234", 2)), ("deadbeefdead+0x1", at("deadbeefdead", 1)),
    ("ffffffff81000000", 0xffffffff81000000), ("ffffffffffffffff", 0xffffffffffffffff),
    ("fffffffffffffffff", "bad-address"), ("10000000000000000", "bad-address"),
    # What starts with a digit is a number, and so is nothing else if it is none.
    ("1000", 0x1000), ("0x1000", 0x1000), ("0X1003", 0x1003), ("0", 0), ("1e", 0x1e), ("00000000000000001003", 0x1003),
    ("1003x", "bad-address"), ("0xzz", "bad-address"), ("0x", "bad-address"), ("1000+1", "bad-address"),
    ("", "bad-address"),
    # Offsets are hexadecimal.
    ("xyz+10", at("xyz", 0x10)), ("xyz+0x10", at("xyz", 0x10)), ("dead+a", at("dead", 10)), ("cafe_1+2", at("cafe_1", 2)),
    ("eight_by", at("eight_by")), ("eight_by+1", at("eight_by", 1)),
    ("xyz+", "no-such-symbol"), ("xyz+g", "no-such-symbol"), ("+10", "no-such-symbol"), ("xyz-1", "no-such-symbol"),
    ("none", "no-such-symbol"), ("none+10", "no-such-symbol"), ("xyz+ffffffffffffffff", "bad-address"),
    (" dead\t", at("dead")),
]
DECIMAL = [
    ("4096", 0x1000), ("0x1003", 0x1003), ("add", at("add")), ("face", "no-such-symbol"), ("10a", "bad-address"),
    ("beef1234", at("beef1234")), ("ffffffff81000000", "no-such-symbol"), ("xyz+10", at("xyz", 10)),
    ("xyz+0x10", at("xyz", 16)), ("dead+a", "no-such-symbol"), ("18446744073709551615", 0xffffffffffffffff),
    ("18446744073709551616", "bad-address"),
]


def answers(path, words, *options, stream=False):
    """The address of each answer of addr, or its reason when it has none."""
    command = [FATHOM, "addr", "--json", *options, path]
    out = run(*command, *([] if stream else words), status=(0, 1), input="".join(w + "\n" for w in words))
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["input"] for r in records] == [w.strip() for w in words], records
    return [int(r["address"], 16) if r["address"] else r["reason"] for r in records]


@test("numbers: each word is what the rule says, as an argument, from a stream and alone")
def words(folder):
    path = named(folder)
    for table, options in ((BOTH, []), (DECIMAL, ["--decimal"])):
        asked, wanted = [w for w, _ in table], [a for _, a in table]
        for got in (answers(path, asked, *options), answers(path, asked, *options, stream=True),
                    [answers(path, [w], *options)[0] for w in asked]):
            wrong = [(w, g, a) for w, g, a in zip(asked, got, wanted) if g != a]
            assert not wrong, f"{options}: (word, got, wanted) {wrong}"


@test("numbers: from a stream line by line, each is what it is in a batch")
def one_by_one(folder):
    path = named(folder)
    with subprocess.Popen([FATHOM, "addr", "--json", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        # More lines than there are passes before an index is made.
        for word, wanted in BOTH * 2:
            program.stdin.write(word + "\n")
            program.stdin.flush()
            record = json.loads(program.stdout.readline())
            got = int(record["address"], 16) if record["address"] else record["reason"]
            assert got == wanted, (word, got, wanted)
        program.stdin.close()


@test("numbers: an offset in a section follows the rule, too; a symbol is no offset")
def section(folder):
    named(folder)
    path = os.path.join(folder, "named.o")
    # "a" is a symbol, and nothing is at 0xfee; 0x10 is in the sixth function.
    wanted = {"0": "add", "3": "dead", "a": "a", "0x4": "dead", "abba": "abba", "fee": None, "10": "beef123"}
    for options in ([], ["-j", ".text"]):
        out = run(FATHOM, "addr", "--json", *options, path, *wanted, status=(0, 1))
        assert [json.loads(line)["symbol"] for line in out.splitlines()] == list(wanted.values()), out


@test("numbers: in a process a name is asked of all its files, else it is an address there")
def process(folder):
    source = os.path.join(folder, "live.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include <stdio.h>\n#include <unistd.h>\nint add(void) { return 1; }\nint fade(void) { return 2; }\n'
                'int main(void) { printf("%p %p\\n", (void *)add, (void *)fade); fflush(stdout); pause(); }\n')
    run("gcc", "-o", source[:-2], source)
    with subprocess.Popen([source[:-2]], stdout=subprocess.PIPE, text=True) as program:
        try:
            add, fade = (int(word, 16) for word in program.stdout.readline().split())
            asked = ["add", "fade", "face", f"{add:x}", f"{fade:#x}", "add+1", "abcdef123456"]
            assert answers(str(program.pid), asked) == [add, fade, 0xface, add, fade, add + 1, 0xabcdef123456]
            assert answers(str(program.pid), asked, stream=True) == [add, fade, 0xface, add, fade, add + 1, 0xabcdef123456]
        finally:
            program.kill()


@test("numbers: disasm reads functions, addresses and bounds by the same rule")
def disassembled(folder):
    path = named(folder)

    def starts(*arguments):
        out = run(FATHOM, "disasm", "--json", path, *arguments, status=(0, 1))
        records = [json.loads(line) for line in out.splitlines()]
        return [int(r["address"], 16) if r["address"] else r["reason"] for r in records]

    function = {n: [at(n), at(n, 1), at(n, 2)] for n in NAMES}
    assert starts("dead") == starts("1003") == starts("0x1004") == starts("--decimal", "4100") == function["dead"]
    assert starts("dead", "1006", "a") == function["dead"] + function["abba"] + function["a"]
    assert starts("add..abba") == starts("1000..1006") == starts("add..dead+3") == function["add"] + function["dead"]
    assert starts("beef1234+1..beef1234+3") == [at("beef1234", 1), at("beef1234", 2)]
    assert starts("none", "dead", "1003x", "1006..1000") == \
        ["no-such-symbol", *function["dead"], "bad-address", "bad-address"]
    assert starts("--decimal", "4096..4099") == function["add"]
    assert starts("." * 300, "a") == ["no-such-symbol", *function["a"]]


@test("numbers: a name may hold dots, which then part no bounds")
def dotted(folder):
    path = assemble(folder, "".join(FUNCTION.format(n) for n in ("_a..b", "_c..d..e", "last")), name="dotted")
    out = run(FATHOM, "disasm", "--json", path, "_a..b", "_a..b.._c..d..e", "_c..d..e..last")
    assert [int(json.loads(line)["address"], 16) for line in out.splitlines()] == \
        [0x1000, 0x1001, 0x1002, 0x1000, 0x1001, 0x1002, 0x1003, 0x1004, 0x1005]


# What it costs.

def many_symbols(folder, names, start=0x1000):
    text = "".join(f".globl {n}\n.type {n},@function\n{n}: .skip 16,0x90\n.size {n},16\n" for n in names)
    return assemble(folder, text, name=names[0], start=start)


@test("numbers: 20,000 bare kernel addresses cost no more than with 0x; so many short words one pass")
def cost(folder):
    base = 0xffffffff81000000
    path = many_symbols(folder, [f"do_thing_{i}" for i in range(20000)], start=base)
    rng = random.Random(9)

    def count(numbers, form):
        return instructions([FATHOM, "addr", "--no-cache", "--threads", "1", path],
                            "".join(format(n, form) + "\n" for n in numbers))

    addresses = [base + rng.randrange(320000) for _ in range(20000)]
    with_0x, bare = count(addresses, "#x"), count(addresses, "x")
    assert bare < with_0x * 1.01, (bare, with_0x)
    short = [rng.randrange(0xa000000, 0x10000000) for _ in range(20000)]
    with_0x, bare = count(short, "#x"), count(short, "x")
    # A pass over the symbols takes some 20 instructions for each of them; one for each word would take 8e9.
    assert bare < with_0x + 20000 * 500 + 20000 * 100, (bare, with_0x)


@test("names: many that begin alike cost no more than many that do not")
def alike(folder):
    def count(names):
        return instructions([FATHOM, "find", "--no-cache", "--threads", "1", many_symbols(folder, names)],
                            "".join(n + "\n" for n in names))

    same, other = count([f"prefixed_{i}" for i in range(4000)]), count([f"_{i}_suffixed" for i in range(4000)])
    assert same < 3 * other, (same, other)


# What names hold, and what reaches the terminal.

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
    done = subprocess.run([FATHOM, "addr", "--no-cache", *options, named(folder)], input=b"\n".join(lines) + b"\n",
                          stdout=subprocess.PIPE, check=False)
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
    done = subprocess.run([*map(str, command)], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
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


# Names that somebody has mistyped.

def told(*arguments, data=""):
    """Standard output and error of a run, as lines."""
    done = subprocess.run([FATHOM, *map(str, arguments)], input=data, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    return done.stdout.splitlines(), done.stderr.splitlines()


def meant(name, other):
    return f"fathom: {name}: no such symbol (did you mean {other}?)"


def compile_text(folder, name, text, *options):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)
    path = os.path.join(folder, name.replace(".", "-"))
    run("g++" if name.endswith("cc") else "gcc", "-o", path, f.name, *options)
    return path


C = """#include <unistd.h>
static int count_words(void) { return 1; }
int count_lines(void) { return count_words(); }
int open_file(void) { return 2; }
int openfile(void) { return 3; }
int main(void) { count_lines(); pause(); }
"""


@test("names: one that is not there: the nearest that is, from addr, find and disasm")
def near(folder):
    path = compile_text(folder, "near.c", C)
    for verb in (["addr"], ["addr", "--json"], ["find"], ["find", "--json"], ["find", "-F"], ["disasm"], ["disasm", "--json"]):
        out, err = told(*verb, "--no-cache", path, "count_word")
        assert err == [meant("count_word", "count_words")], (verb, err)
        assert len(out) == 1 and "no-such-symbol" in out[0], (verb, out)
    for name, other in (("cuont_lines", "count_lines"), ("count_line", "count_lines"), ("count_linse", "count_lines"),
                        # Of two as near, the exported one; then the first in byte order.
                        ("count_wines", "count_lines"), ("opennfile", "open_file"), ("opnfile", "openfile")):
        assert told("addr", path, name)[1] == [meant(name, other)], name
    # What stands behind the name is no part of it.
    assert told("addr", path, "count_word+10")[1] == [meant("count_word", "count_words")]
    for words_ in (["zzzzzzzz"], ["co"], ["mainn", "--json"]):
        assert told("addr", path, *words_)[1] == ([meant("mainn", "main")] if "mainn" in words_ else []), words_


@test("names: only of a name that was typed: not from a stream, not of patterns")
def near_typed(folder):
    path = compile_text(folder, "near.c", C)
    assert told("addr", path, data="count_word\n")[1] == []
    assert told("find", path, data="count_word\n")[1] == []
    for query in ("count_wor*d", "/count_word$/", "count_word@V", "libc:count_word", "near.c:999"):
        assert told("find", path, query)[1] == [], query
    assert told("find", "-E", path, "count_word$")[1] == []
    # A number, or what could be one, was not mistyped.
    assert told("addr", path, "1000x", "fadex")[1] == []
    # A few names only: each is a look at all symbols.
    _, err = told("addr", path, *(f"count_lines{c}" for c in "ghijklmn"))
    assert err == [meant(f"count_lines{c}", "count_lines") for c in "ghij"], err


CXX = """namespace shapes {
struct Circle { int radius(int x) { return x; } int area() const; };
int Circle::area() const { return 3; }
int draw(int, const char *) { return 4; }
}
int draw_all(double) { return 5; }
int main() { shapes::Circle c; return c.area() + c.radius(1); }
"""


@test("names: demangled ones, with parameters or without")
def near_demangled(folder):
    path = compile_text(folder, "near.cc", CXX)
    for name, other in (("shapes::Circle::aera", "shapes::Circle::area() const"), ("shapes::drw", "shapes::draw(int, char const*)"),
                        ("draw_al", "draw_all(double)"), ("shapes::draw(int,char const*", "shapes::draw(int, char const*)"),
                        ("_ZN6shapes6Circle4aeraEv", "_ZNK6shapes6Circle4areaEv")):
        out, err = told("addr", path, name)
        assert err == [meant(name, other)], (name, err)
        # What is said to be meant is there.
        assert run(FATHOM, "addr", path, other), out


@test("names: in a process those of all its files, in the kernel those of kallsyms")
def near_elsewhere(folder):
    path = compile_text(folder, "near.c", C)
    with subprocess.Popen([path]) as program:
        try:
            while os.readlink(f"/proc/{program.pid}/exe") != os.path.realpath(path):
                pass
            # The loader maps libc before main() begins.
            while "libc" not in run("cat", f"/proc/{program.pid}/maps"):
                pass
            _, err = told("addr", program.pid, "count_word", "getenvv")
            assert err == [meant("count_word", "count_words"), meant("getenvv", "getenv")], err
        finally:
            program.kill()
    os.makedirs(os.path.join(folder, "root", "proc"))
    with open(os.path.join(folder, "root", "proc", "kallsyms"), "w", encoding="utf-8") as f:
        f.write("ffffffff81000000 T _text\nffffffff81001000 T do_sys_openat2\nffffffff81002000 t vfs_read\n"
                "ffffffffa0000000 t nf_hook\t[nf_tables]\n")
    for name, other in (("do_sys_opneat2", "do_sys_openat2"), ("vfs_raed", "vfs_read"), ("nfhook", "nf_hook")):
        _, err = told("addr", "--sysroot", os.path.join(folder, "root"), "kernel", name)
        assert meant(name, other) in err, err


# Three files, each with a static function "helper", one of which has a global "both", too.
HELPERS = """static int helper(int x) {{ return x + {0}; }}
int use{0}(int x) {{ return helper(x); }}
{1} int both(int x) {{ return x - {0}; }}
int also{0}(int x) {{ return both(x); }}
"""
ASK_HELPERS = """#include <stdio.h>
int use1(int), use2(int), use3(int), also1(int), also2(int), also3(int);
int main(void) { puts("done"); fflush(stdout);
return getchar() + use1(1) + use2(1) + use3(1) + also1(1) + also2(1) + also3(1); }
"""


def helpers(folder):
    """The program, and {name: its addresses as stated in the file}."""
    path, sources = os.path.join(folder, "helpers"), []
    for number in (1, 2, 3):
        sources.append(os.path.join(folder, f"h{number}.c"))
        with open(sources[-1], "w", encoding="utf-8") as f:
            f.write(HELPERS.format(number, "" if number == 2 else "static"))
    sources.append(os.path.join(folder, "h.c"))
    with open(sources[-1], "w", encoding="utf-8") as f:
        f.write(ASK_HELPERS)
    run("gcc", "-g", "-O0", "-o", path, *sources)
    places = {}
    for line in run("nm", "-n", path).splitlines():
        fields = line.split()
        if len(fields) == 3:
            places.setdefault(fields[2], []).append((int(fields[0], 16), fields[1]))
    assert [t for _, t in places["helper"]] == ["t"] * 3 and sorted(t for _, t in places["both"]) == ["T", "t", "t"]
    return path, {name: [a for a, t in some if name != "both" or t == "T"] for name, some in places.items()}


@test("a name of several static functions is answered for each of them")
def several_locals(folder):
    path, places = helpers(folder)

    def answers(target, *words):
        lines = run(FATHOM, "addr", "--json", "--no-cache", target, *words, status=(0, 1)).splitlines()
        return [(r["input"], int(r["module_address"], 16), r["symbol"]) for r in map(json.loads, lines) if r["symbol"]]

    words = ["main", "helper", "both", "nothing", "helper+2", "use2"]
    wanted = [(w, a + (2 if "+" in w else 0), w.partition("+")[0]) for w in words
              for a in places.get(w.partition("+")[0], [])]
    assert len(wanted) == 9
    assert answers(path, *words) == wanted
    debug = os.path.join(folder, "debug")
    shutil.copy(path, debug)
    run("objcopy", "--only-keep-debug", path, debug + ".debug")
    run("strip", "--strip-debug", f"--add-section=.gnu_debuglink={debug}.debug", debug, status=None)
    assert answers(debug, *words) == wanted
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "done\n"
        assert answers(process.pid, *words) == wanted
        run("gcore", "-o", os.path.join(folder, "core"), process.pid)
        process.kill()
    assert answers(os.path.join(folder, f"core.{process.pid}"), *words) == wanted


@test("of standard input each line has one answer: of several addresses as text, as JSON the first")
def several_locals_stream(folder):
    path, places = helpers(folder)
    words = ["helper", "main", "nothing", "helper+1"]
    text = run(FATHOM, "addr", "--no-cache", path, input="".join(w + "\n" for w in words), status=(0, 1))
    answers = text.split("\n\n")
    assert answers.pop() == "" and len(answers) == len(words), text
    assert [line.split()[0] for line in answers[0].splitlines()] == [hex(a) for a in places["helper"]], text
    assert [line.split()[0] for line in answers[3].splitlines()] == [hex(a + 1) for a in places["helper"]], text
    out = run(FATHOM, "addr", "--json", "--no-cache", path, input="".join(w + "\n" for w in words), status=(0, 1))
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["input"] for r in records] == words, out
    assert int(records[0]["address"], 16) in places["helper"] and records[3]["offset"] == 1, out


sys.exit(SUITE.run())
