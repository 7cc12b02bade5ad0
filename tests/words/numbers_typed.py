# SPDX-License-Identifier: MIT
"""What people type for addresses: numbers, and names that could be some."""
import os
import random

from ask import FATHOM, addr, addr_stream, query
from building import build_text
from counting import instructions
from named import FUNCTION, NAMES, SUITE, assemble, many_symbols, named
from running import Asked, Running


test = SUITE.test


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
    records = addr_stream(path, words, *options) if stream else addr(path, words, *options)[0]
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
    with Asked(path) as fathom:
        # More lines than there are passes before an index is made.
        for word, wanted in BOTH * 2:
            record = fathom.one(word)
            got = int(record["address"], 16) if record["address"] else record["reason"]
            assert got == wanted, (word, got, wanted)


@test("numbers: an offset in a section follows the rule, too; a symbol is no offset")
def section(folder):
    named(folder)
    path = os.path.join(folder, "named.o")
    # "a" is a symbol, and nothing is at 0xfee; 0x10 is in the sixth function.
    wanted = {"0": "add", "3": "dead", "a": "a", "0x4": "dead", "abba": "abba", "fee": None, "10": "beef123"}
    for options in ([], ["-j", ".text"]):
        records, _ = addr(path, wanted, *options)
        assert [r["symbol"] for r in records] == list(wanted.values()), records


@test("numbers: in a process a name is asked of all its files, else it is an address there")
def process(folder):
    source = '#include <stdio.h>\n#include <unistd.h>\nint add(void) { return 1; }\nint fade(void) { return 2; }\n' \
        'int main(void) { printf("%p %p\\n", (void *)add, (void *)fade); fflush(stdout); pause(); }\n'
    path = build_text(os.path.join(folder, "live"), source, flags=())
    with Running([path]) as program:
        add, fade = (int(word, 16) for word in program.line().split())
        asked = ["add", "fade", "face", f"{add:x}", f"{fade:#x}", "add+1", "abcdef123456"]
        for stream in (False, True):
            assert answers(program.pid, asked, stream=stream) == [add, fade, 0xface, add, fade, add + 1, 0xabcdef123456]


@test("numbers: disasm reads functions, addresses and bounds by the same rule")
def disassembled(folder):
    path = named(folder)

    def starts(*arguments):
        records, _ = query("disasm", path, arguments)
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
    records, _ = query("disasm", path, ["_a..b", "_a..b.._c..d..e", "_c..d..e..last"])
    assert [int(r["address"], 16) for r in records] == \
        [0x1000, 0x1001, 0x1002, 0x1000, 0x1001, 0x1002, 0x1003, 0x1004, 0x1005]


# What it costs.

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
    # Some 20 instructions tell a number that has no prefix from a name.
    assert bare < with_0x + 20000 * 40, (bare, with_0x)
    short = [rng.randrange(0xa000000, 0x10000000) for _ in range(20000)]
    with_0x, bare = count(short, "#x"), count(short, "x")
    # A pass over the symbols takes some 20 instructions for each of them; one for each word would take 8e9.
    assert bare < with_0x + 20000 * 900 + 20000 * 100, (bare, with_0x)
