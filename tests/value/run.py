#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "value": what find --read says of variables, by their source and by programs that change them."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import running  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute, fathom, find, query as ask, records_of  # noqa: E402
from building import build_text, need_32_bit  # noqa: E402
from finding import LIBC, asked, build  # noqa: E402

SUITE = tap.Suite("value")
test = SUITE.test


@test("values in a file: numbers, text, arrays, bytes, by what the source says")
def file_values(folder):
    path = build(folder, "asked", "-ldl", "-pthread", "-no-pie")
    for query, kind, want in [("greeting", "str", "good day"), ("counted", "i64", 42), ("counted", "u8[8]", [42] + 7 * [0]),
                              ("first", "ptr->str", "first"), ("first", "+16:i64[4]", [1, -2, 3, -4]),
                              ("first", "*+0:bytes:5", "6669727374"), ("first", "+8:*str" , None),
                              ("first", "+8:**str", "second"), ("first", "+8:*+16:i64", 5),
                              ("first", "+8:*+0x30:f64", -0.5), ("first", "+48:f64", 1.5),
                              ("first", "+56:f32", -2.25), ("first", "+60:i8", -128), ("first", "+60:u8", 128),
                              ("greeting_pointer", "*str:4", "good"), ("greeting_pointer", "ptr->+5:str", "day"),
                              ("first", "+8:ptr->ptr->+1:str:2", "ec")]:
        records, _ = find(path, query, "--read", kind)
        if want is not None:
            assert records[0]["value"] == want, (query, kind, records)


@test("values in a process: as it is now, and a reason where nothing is")
def process_values(folder):
    with asked(folder) as program:
        for number in (7, -5, 2**62):
            program.tell(f"set {number}")
            records, _ = find(program.pid, "counted", "--read", "i64")
            assert records[0]["value"] == number, records
        records, _ = find(program.pid, "first", "--read", "+8:**str")
        assert records[0]["value"] == "second", records
        for kind in ("**str", "*+0x7fffffffffff:u8", "-0x7000000000000000:u8"):
            records, _ = find(program.pid, "counted", "--read", kind, status=(1,))
            assert (records[0]["value"], records[0]["reason"]) == (None, "unmapped"), (kind, records)


def opens_of_map(folder, pid, *queries):
    """How often the command opens the map of the process to read values, by strace, and how many there are."""
    log = os.path.join(folder, "opens")
    # What looks for leaks traces, too, and cannot be traced.
    done = execute("strace", "-f", "-qq", "-e", "trace=openat", "-o", log, FATHOM, "find", "--no-cache", "--json",
                   "--read", "u8", pid, *queries, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    if "PTRACE_TRACEME" in done.stderr:
        raise tap.Skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode in (0, 1), done
    with open(log, encoding="ascii", errors="replace") as file:
        opens = sum('/maps"' in line for line in file)
    values = [record["value"] for record in records_of(done.stdout)]
    return opens, sum(v is not None for v in values)


@test("values of many matches: the map is read once for a thousand of them")
def one_map(folder):
    with asked(folder) as program:
        one, n = opens_of_map(folder, program.pid, "counted")
        assert one >= 2 and n == 1, (one, n)
        opens, n = opens_of_map(folder, program.pid, "libc.so*:str*", "libc.so*:mem*", "counted", "greeting", "first")
        assert n > 100 and opens == one, (opens, one, n)
        opens, n = opens_of_map(folder, program.pid, "libc.so*:*")
        assert n > 2000 and opens <= one + n / 500, (opens, one, n)


@test("values while a process runs one program after another, of 64 and of 32 bits: each as its program has it")
def other_programs(folder):
    """Each program has 500 pointers at the same places as the other, and runs that after a moment."""
    need_32_bit()
    paths = [os.path.join(folder, name) for name in ("wide", "narrow")]
    source = """
#include <unistd.h>
__asm__(".section .values, \\"aw\\", @progbits\\n.altmacro\\n"
	".macro place i\\n.globl p\\\\i\\np\\\\i:\\n.long LOW, HIGH\\n.type p\\\\i, @object\\n.size p\\\\i, 8\\n.endm\\n"
	".set n, 0\\n.rept 500\\nplace %n\\n.set n, n+1\\n.endr\\n.text\\n");
int main(int argc, char **argv)
{
	usleep(2000);
	execl(argv[argc - 1], argv[argc - 1], argv[0], (char *)0);
	return 1;
}"""
    for path, compiler, low, high in ((paths[0], "gcc", "0x22222222", "0x11111111"),
                                      (paths[1], "i686-linux-gnu-gcc", "0x33333333", "0x33333333")):
        build_text(path, source.replace("LOW", low).replace("HIGH", high), "-static", "-no-pie",
                   "-Wl,--section-start=.values=0x20000000", compiler=compiler)
    seen, reasons = {}, {}
    with running.Running(paths) as process:
        for _ in range(150):
            records, _ = find(process.pid, "p[0-9]*", "--read", "ptr", status=(0, 1, 2))
            for r in records:
                if r["type"] == "object":
                    seen[r["value"]] = seen.get(r["value"], 0) + 1
                    reasons[r["reason"]] = reasons.get(r["reason"], 0) + 1
        assert process.is_running()
    good = {"0x1111111122222222", "0x33333333"}
    assert good <= set(seen) <= good | {None}, (seen, reasons)
    assert set(reasons) <= {None, "changed"}, (seen, reasons)


FLIPPING = """
#include <stdio.h>
#include <string.h>
#include <time.h>
volatile unsigned long words[512];
struct pair { struct pair *other; char name[64]; } a = { &a, "aaaa" }, b = { &b, "bbbb" };
struct pair *volatile current = &a;
int main(void)
{
	struct timespec pause = { 0, 30000 };
	puts("done");
	fflush(stdout);
	for (unsigned i = 0;; i++) {
		const int letter = "ab"[i % 2];
		struct pair *p = i % 2 ? &b : &a;
		for (int k = 0; k < 512; k++)
			words[k] = i % 2;
		/* Who is not pointed to may have any name. */
		memset(p->name, letter, 60);
		current = p;
		memset((i % 2 ? &a : &b)->name, 'x', 60);
		/* What comes back within one reading, in less than a microsecond, can be mixed in two. */
		nanosleep(&pause, NULL);
	}
}
"""


@test("values that change while they are read: all of one moment, or that they changed")
def torn(folder):
    path = os.path.join(folder, "flipping")
    build_text(path, FLIPPING, flags=["-O2"])
    with running.Told([path]) as program:
        for query, kind in (("words", "u64[512]"), ("current", "*+8:str")):
            seen = set()
            with running.Asked(program.pid, "--first", "--read", kind, verb="find") as fathom:
                n = 0
                # Both, however seldom the program has a processor.
                while n < 2000 or (len(seen - {"changed"}) < 2 and n < 1000000):
                    n += 1
                    record = fathom.one(query)
                    value = record["value"]
                    seen.add("changed" if value is None else str(value[0]))
                    if value is None:
                        assert record["reason"] == "changed", record
                        continue
                    # The program may stand in the midst of them: new ones, then old ones.
                    turns = sum(x != y for x, y in zip(value, value[1:]))
                    assert turns == 0 if query == "current" else turns <= 1, (query, turns, value)
                    assert query != "current" or value[0] in "ab", record
            assert len(seen - {"changed"}) == 2, (query, seen)


@test("a program that maps a file of another machine keeps its own layout, for values and instructions")
def other_machine(folder):
    other = build_text(os.path.join(folder, "other.so"), "int other(void) { return 1; }", "-shared", "-fPIC", "-nostdlib",
                       compiler="i686-linux-gnu-gcc")
    path = build_text(os.path.join(folder, "maps"), f"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
const char *text = "told";
int main(void)
{{
	int fd = open("{other}", O_RDONLY);
	mmap((void *)0x10000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	mmap((void *)0x10001000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0x1000);
	printf("main 0x%lx\\ndone\\n", (unsigned long)main);
	fflush(stdout);
	return getchar();
}}""")
    with running.Told([path]) as program:
        (record,), _ = find(program.pid, "text", "--read", "*str")
        assert record["value"] == "told", record
        live, stored = ([record["text"].split()[0] for record in ask("disasm", target, ["main"])[0][:3]]
                        for target in (program.pid, path))
        assert live == stored, (live, stored)


@test("values: what is no type, or too large, is refused with its place")
def bad_types(_):
    for kind, part in [("u31", "u31"), ("u32[", "number and ]"), ("bytes:", "number of bytes"), ("", "--read"),
                       ("u64[8193]", "65,536"), ("u8[0]", "65,536"), ("str:65537", "65,536"), ("*" * 17 + "u8", "16 hops"),
                       ("u8 ", "follow"), ("+:u8", "+:u8"), ("u32[99999999999999999999]", "number"), ("ptr->", "--read")]:
        done = fathom("find", "--read", kind, LIBC, "labs")
        assert done.returncode == 2 and part in done.stderr and not done.stdout, (kind, done)


sys.exit(SUITE.run())
