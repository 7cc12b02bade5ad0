# SPDX-License-Identifier: MIT
"""The form of answers, and how many there may be."""
import json
import os
import re
import struct
import subprocess

from ask import FATHOM, fathom, find, run
from elfasm import SHT_STRTAB, SHT_SYMTAB, Elf
from finding import LIBC, build, library
from running import Asked
from suite import test


@test("standard input: one answer after the other, each ended by an empty line")
def stream(_):
    out = run(FATHOM, "find", "--no-cache", LIBC, input="labs\nnothing_at_all\n\nmemcpy\n", status=(1,))
    blocks = out.split("\n\n")
    assert "labs" in blocks[0] and blocks[1] == "nothing_at_all ?? (no-such-symbol)", blocks
    assert blocks[2] == " ?? (bad-address)" and blocks[3].count("memcpy@") == 2, blocks


@test("the same question a hundred times in one session: the same answer, from tables and from their index")
def again(folder):
    path = library(folder)
    queries = ["versioned", "choose", "retired@V_1", "nothing_like_it", "frame_dummy"]
    want = {q: find(path, q)[0] for q in queries}
    with Asked(path, verb="find") as asked:
        for i in range(100):
            query = queries[i % len(queries)]
            got = asked.ask(query, answers=len(want[query]))
            assert got == want[query], (i, got, want[query])


def many_symbols(path, n):
    """An executable file with @n functions of one byte, called s0000000 and so on."""
    elf = Elf()
    elf.text(0x100000, n)
    names = b"\0" + b"".join(b"s%07d\0" % i for i in range(n))
    entry = struct.Struct("<IBBHQQ").pack
    table = bytes(24) + b"".join(entry(1 + 9 * i, 0x12, 0, 1, 0x100000 + i, 1) for i in range(n))
    strings = elf.section(".strtab", names, SHT_STRTAB)
    elf.section(".symtab", table, SHT_SYMTAB, align=8, link=strings, info=1, entsize=24)
    with open(path, "wb") as file:
        file.write(elf.build())


def count_lines(*command):
    """How many lines of JSON the command prints, the last of them, and what it says on standard error."""
    n, last = 0, None
    with subprocess.Popen([FATHOM, "find", "--json", "--no-cache", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        for last in process.stdout:
            n += 1
        errors = process.stderr.read().decode()
    assert process.returncode == 0, (command, process.returncode, errors)
    return n, json.loads(last)["name"], errors


@test("more than a million matches: a message says that some are left out, and --limit has them all")
def more_than_a_million(folder):
    path = os.path.join(folder, "many")
    many_symbols(path, 1000001)
    n, last, errors = count_lines(path, "s*")
    assert (n, last) == (1000000, "s0999999"), (n, last)
    assert errors.startswith("fathom: s*: more than 1,000,000 matches") and "larger limit" in errors, errors
    assert "--memory" not in errors, errors
    assert count_lines("--limit", "2000000", path, "s*") == (1000001, "s1000000", "")
    assert count_lines("--limit", "7", path, "s*") == (7, "s0000006", "")
    assert count_lines(path, "s0*") == (1000000, "s0999999", ""), "as many as may be are no more than that"


@test("what does not fit the memory budget is an error that names it; what is narrower fits")
def over_budget(folder):
    path = os.path.join(folder, "many")
    many_symbols(path, 200000)
    for memory, query in [("8M", "*"), ("8M", "/^s/"), ("1M", "s00*"), ("40M", "*")]:
        done = fathom("find", "--no-cache", "--memory", memory, path, query)
        assert done.returncode == 2 and not done.stdout, (memory, query, done.returncode, done.stdout[:500])
        assert re.fullmatch(r"fathom: " + re.escape(query) + r": .*memory budget.*narrower.*\(.*--memory\)\n", done.stderr), done
    done = fathom("find", "--no-cache", "--memory", "1M", path, "s0*", "s1*")
    assert done.returncode == 2 and done.stderr.startswith("fathom: all queries together: "), done
    assert count_lines("--memory", "1M", path, "s0*99") == (2000, "s0199999", "")
    assert count_lines("--memory", "10K", path, "s0123456") == (1, "s0123456", "")
    assert count_lines("--memory", "200M", path, "*") == (200000, "s0199999", "")


@test("text lines up: within 80 columns, where the name is not too long for that")
def columns(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    out = run(FATHOM, "find", "--no-cache", path, "main", "hidden_function", "counted", "greeting", "thread_own",
              "asked.c:60")
    starts = set()
    for line in out.splitlines():
        assert len(line) <= 80 or "asked.c:" in line, line
        starts.add((line.index("asked"), 57))
    assert {s for s, _ in starts} == {37}, out
