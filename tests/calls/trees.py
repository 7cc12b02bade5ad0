# SPDX-License-Identifier: MIT
"""Random programs whose calls are known, traced with each choice of functions: each parent that is told is the one that calls, or none is told."""
import collections
import json
import os
import random
import re

from ask import fathom, run
from building import build_text
from traced import CLANG, SITES, build, test, trace

GAP = "[...]"
COMPILERS = (("gcc", "-O0"), ("gcc", "-O1"), ("gcc", "-O2"), (CLANG, "-O0"), (CLANG, "-O2"))
HEAD = """#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
static volatile char sink;
void outside(void (*f)(int), int n);
int main(void);
"""
# Functions without sites, with large frames of their own: what they call has a direct caller that nothing records.
OUTSIDE = """#include <string.h>
static volatile char sink;
void outside(void (*f)(int), int n)
{
	char room[700];
	memset(room, n, sizeof room);
	f(n);
	sink += room[n];
}
"""


class Program:
    """Functions f0, f1, ...: each calls later ones, through outside() or by itself, and itself while n > 0."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.calls = []
        while not 40 < len(self.calls) < 1500:
            self.bodies = [self.body(i, 9) for i in range(9)]
            self.last = self.random.randrange(3, 9)
            self.calls = []
            self.enter("main", None, None, self.main)
            self.enter("at_end", None, None, self.at_end)

    def body(self, i, n):
        r = self.random
        steps = [(r.choice(("call", "call", "loop", "out")), r.randrange(i + 1, n)) for _ in range(r.randrange(4)) if i + 1 < n]
        if r.random() < 0.4:
            steps.insert(r.randrange(len(steps) + 1), ("self", i))
        return steps, r.choice((8, 8, 40, 200, 1000))

    def enter(self, name, parent, n, steps):
        """Notes a call, by @parent (a number; None: by the C library; "outside" is no function with a site), and what it calls."""
        number = len(self.calls)
        self.calls.append((name, parent))
        steps(number, n)

    def function(self, i):
        def steps(number, n):
            for kind, j in self.bodies[i][0]:
                for _ in range(3 if kind == "loop" else 1):
                    if kind == "self" and not n:
                        continue
                    by = number
                    if kind == "out":
                        by = len(self.calls)
                        self.calls.append((None, number))
                    self.enter(f"f{j}", by, n - 1 if kind == "self" else n, self.function(j))
        return steps

    def main(self, number, _):
        self.enter("f0", number, 2, self.function(0))
        self.enter("f1", number, 1, self.function(1))

    def at_end(self, number, _):
        self.enter(f"f{self.last}", number, 1, self.function(self.last))

    def text(self):
        lines = [HEAD] + [f"void f{i}(int n);" for i in range(len(self.bodies))]
        for i, (steps, room) in enumerate(self.bodies):
            lines.append(f"NOINLINE void f{i}(int n)\n{{\n\tvolatile char room[{room}];\n\troom[0] = (char)n;")
            for kind, j in steps:
                lines.append({"call": f"\tf{j}(n);", "loop": f"\tfor (volatile int k = 0; k < 3; k++)\n\t\tf{j}(n);", "out": f"\toutside(f{j}, n);",
                              "self": f"\tif (n > 0)\n\t\tf{j}(n - 1);"}[kind])
            lines.append("\tsink += room[0];\n}\n")
        lines.append(f"static void at_end(void)\n{{\n\tf{self.last}(1);\n\tsink++;\n}}\n")
        lines.append("int main(void)\n{\n\tif (atexit(at_end))\n\t\treturn 1;\n\tf0(2);\n\tf1(1);\n\treturn 0;\n}\n")
        return "\n".join(lines)

    def within(self, i):
        """The calls that call @i is within, from the inside on."""
        while i is not None:
            i = self.calls[i][1]
            if i is not None:
                yield i


def make(folder, seed, sites=SITES):
    p = Program(seed)
    compiler, level = COMPILERS[seed % len(COMPILERS)]
    compiler = CLANG if "xray" in sites else compiler
    for name, text in (("tree.c", p.text()), ("outside.c", OUTSIDE)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    other = os.path.join(folder, "outside.o")
    run(compiler, level, "-c", "-o", other, os.path.join(folder, "outside.c"))
    path = build(folder, os.path.join(folder, "tree.c"), other, compiler=compiler, out="tree",
                 flags=(level, *sites.split(), "-fno-optimize-sibling-calls", *(["-fno-ipa-cp"] if compiler == "gcc" else [])))
    return p, path


def check_events(p, told, events, knows, what):
    """Whether @events are the calls @told, of @p, in their order, and what they tell of callers is so. @knows: whether it is
    known where calls end, "always", or but for what outside() calls, "inside"; else it need not be."""
    found = [e for e in events if e["type"] == "call"]
    assert [e["function"] for e in found] == [p.calls[i][0] for i in told], (what, "other calls")
    assert {e["count"] for e in found} <= {1}
    number = {i: k for k, i in enumerate(told)}
    last = {}
    n_direct = n_gaps = 0
    for e, i in zip(found, told):
        outer = [k for k in p.within(i) if k in number]
        makes = p.calls[i][1]
        if e["parent"] is not None:
            # That of the last call at its depth, or above where callers are missing.
            parent = last[e["parent_depth"]]
            assert e["parent_depth"] < e["depth"], (what, e)
            assert parent == (makes if e["parent"] == "direct" else outer[0]), (what, e, p.calls[parent], p.calls[makes])
            n_direct += e["parent"] == "direct"
            n_gaps += e["parent"] == "gap"
        # A caller that is told of is named by the return address, always.
        assert (e["parent"] == "direct") == (makes in number), (what, e, makes)
        if knows and outer and makes not in number:
            assert e["parent"] == "gap" or (knows == "inside" and any(p.calls[k][0] is None for k in p.within(i))), (what, e)
        last[e["depth"]] = i
    return n_direct, n_gaps


def edges(p, told):
    number = set(told)
    return collections.Counter((p.calls[p.calls[i][1]][0], p.calls[i][0]) for i in told if p.calls[i][1] in number)


def check_forms(p, told, file, options, what):
    """Whether paths, graphs and counts that are made of @file with @options are of direct calls, and as many as there were."""
    truth = edges(p, told)
    total = collections.Counter(p.calls[i][0] for i in told)
    rows = [json.loads(line) for line in fathom("trace", "-c", "--json", *options, "--read", file, status=None).stdout.splitlines()]
    assert {r["function"]: r["calls"] for r in rows} == total, (what, rows)
    by_id, found, n = {}, collections.Counter(), collections.Counter()
    for r in map(json.loads, fathom("trace", "--tree", "--json", *options, "--read", file, status=None).stdout.splitlines()):
        by_id[r["id"]] = r["function"]
        n[r["function"]] += r["calls"]
        if r["parent"] is not None and GAP not in (r["function"], by_id[r["parent"]]):
            found[by_id[r["parent"]], r["function"]] += r["calls"]
    del n[GAP]
    assert found == truth and n == total, (what, "tree", found - truth, truth - found)
    found, n = collections.Counter(), collections.Counter()
    for line in fathom("trace", "--export", "collapsed", *options, "--read", file, status=None).stdout.splitlines():
        names, count = line.rsplit(" ", 1)
        names = names.split(";")
        n[names[-1]] += int(count)
        if len(names) > 2 and GAP not in names[-2:]:
            found[names[-2], names[-1]] += int(count)
    assert found == truth and n == total, (what, "collapsed", found - truth, truth - found)
    dot = fathom("trace", "--export", "dot", *options, "--read", file, status=None).stdout
    nodes = dict(re.findall(r'^\t(n\d+) \[label="([^\\"]+)', dot, re.M))
    found = collections.Counter({(nodes[a], nodes[b]): int(k) for a, b, k in re.findall(r'^\t(n\d+) -> (n\d+) \[label="(\d+)"', dot, re.M)})
    assert {e: k for e, k in found.items() if GAP not in e} == truth, (what, "dot", found, truth)


def chosen(p, words):
    """The calls of @p that are told with these words."""
    told = [i for i, (name, _) in enumerate(p.calls) if name]
    names = set(words[1::2])
    if words and words[0] == "--only":
        return [i for i in told if p.calls[i][0] in names]
    if words and words[0] == "--not":
        return [i for i in told if p.calls[i][0] not in names]
    if words and words[0] == "--under":
        return [i for i in told if any(p.calls[k][0] in names for k in (i, *p.within(i)))]
    return told


def check_tree(folder, seed):
    p, path = make(folder, seed)
    log, whole = os.path.join(folder, "log"), os.path.join(folder, "whole")
    names = sorted({name for name, _ in p.calls if name})
    fathom("trace", "-o", whole, "--", path, status=0)
    words = [[]]
    for word in ("--only", "--not"):
        for n in (2, 5):
            words.append([w for name in p.random.sample(names, min(n, len(names) - 1)) for w in (word, name)])
    n_direct = n_gaps = 0
    for options in words:
        told = chosen(p, options)
        file = os.path.join(folder, "file")
        what = (seed, options)
        _, events, _ = trace(path, log=log, options=["--no-fold", *options])
        check_events(p, told, events, None, ("live", *what))
        fathom("trace", "-o", file, *options, "--", path, status=0)
        for name, more in ((file, []), (whole, options)):
            read = [json.loads(line) for line in fathom("trace", "--json", "--no-fold", *more, "--read", name, status=None).stdout.splitlines()]
            found = check_events(p, told, read, "inside" if more else None, ("file", *what))
            n_direct, n_gaps = n_direct + found[0], n_gaps + found[1]
            check_forms(p, told, name, more, what)
    check_levels(p, path, whole, log)
    return n_direct, n_gaps


def check_levels(p, path, whole, log):
    """--under and --depth: what is told has its parents, live and from a file, and both tell the same."""
    for options in (["--under", f"f{p.random.randrange(3)}"], ["--depth", "2"], ["--depth", "3", "--not", "f1"], ["--under", "f0", "--not", "f2"]):
        runs = []
        for is_live in (True, False):
            if is_live:
                events = trace(path, log=log, options=["--no-fold", *options])[1]
            else:
                done = fathom("trace", "--json", "--no-fold", *options, "--read", whole, status=None)
                events = [json.loads(line) for line in done.stdout.splitlines()]
            found = [e for e in events if e["type"] == "call"]
            last = {}
            for e in found:
                if e["parent"] == "direct":
                    parent = last[e["parent_depth"]]
                    assert any(name == e["function"] and by is not None and p.calls[by][0] == parent for name, by in p.calls), (options, e, parent)
                last[e["depth"]] = e["function"]
            runs.append([(e["function"], e["parent"] == "direct") for e in found])
        if "--not" in options:
            continue
        assert runs[0] == runs[1], options
        # What outside() calls, and what is called after main(), may lie deeper on the stack than it is.
        total = collections.Counter(name for name, _ in runs[0])
        if options[0] == "--under":
            assert not collections.Counter(p.calls[i][0] for i in chosen(p, options)) - total, (options, total)
            continue
        outer = {i: [k for k in p.within(i)] for i, (name, _) in enumerate(p.calls) if name}
        least = collections.Counter(p.calls[i][0] for i, by in outer.items() if len(by) < 2 and all(p.calls[k][0] not in (None, "at_end") for k in [i, *by]))
        most = collections.Counter(p.calls[i][0] for i, by in outer.items() if sum(p.calls[k][0] is not None for k in by) < 2)
        assert not least - total and not total - most, (options, total, least, most)


for FIRST in range(0, 50, 10):
    @test(f"trees: --only, --not, --under, --depth of random programs {FIRST} to {FIRST + 9}, live and from files, in each form: who calls, or nobody")
    def _(folder, first=FIRST):
        n_direct = n_gaps = 0
        for seed in range(first, first + 10):
            found = check_tree(folder, seed)
            n_direct, n_gaps = n_direct + found[0], n_gaps + found[1]
        assert n_direct > 1000 and n_gaps > 100, (n_direct, n_gaps)


@test("trees: where returns are recorded, live and in a file, each call is within the innermost one that goes on: its caller, or with a gap")
def _(folder):
    log, file = os.path.join(folder, "log"), os.path.join(folder, "file")
    n_gaps = 0
    for seed, sites in enumerate(5 * ("-finstrument-functions", "-fxray-instrument -fxray-instruction-threshold=1"), 100):
        p, path = make(folder, seed, sites)
        names = sorted({name for name, _ in p.calls if name})
        for word in ("--only", "--not"):
            options = [w for name in p.random.sample(names, 3) for w in (word, name)]
            told = chosen(p, options)
            _, events, _ = trace(path, log=log, options=["--no-fold", "--exits", *options])
            n_gaps += check_events(p, told, events, "always", (seed, sites, options))[1]
            fathom("trace", "--exits", "-o", file, *options, "--", path, status=0)
            read = [json.loads(line) for line in fathom("trace", "--json", "--no-fold", "--read", file, status=None).stdout.splitlines()]
            check_events(p, told, read, "always", (seed, sites, options))
            rows = [json.loads(line) for line in fathom("trace", "--tree", "--json", "--read", file, status=None).stdout.splitlines()]
            # What is below a gap is in its time, and in that of what is above it.
            for r in rows:
                below = sum(b["total_ns"] for b in rows if b["parent"] == r["id"])
                assert r["total_ns"] >= below and (r["function"] != GAP or (r["total_ns"] == below and not r["calls"])), r
    assert n_gaps > 100, n_gaps


@test("trees: text marks a gap, and callers that are not known; calls of stock programs are a list, without those of the dynamic linker")
def _(folder):
    path = build(folder, "callers.c", flags=("-O1", "-finstrument-functions"))

    def shown(*options, program=path):
        text = fathom("trace", *options, "--log", os.path.join(folder, "log"), "--", program, status=0)
        assert text.stdout.startswith("done")
        with open(os.path.join(folder, "log"), encoding="utf-8") as f:
            return [(len(m[1]) // 2, m[2]) for m in re.finditer(r"^FUN +\d+ [\d' ]{13} [\d' ]{7} ( *)(\S.*)$", f.read(), re.M)]
    # main() calls first(); first() calls middle(), which calls last(); then qsort() calls compare(), which calls last().
    lines = shown()
    assert lines[:4] == [(0, "&main"), (1, "&first"), (2, "&middle"), (3, "&last")], lines
    # How deep that is depends on the stack that qsort() uses.
    assert lines[4:] == [(lines[4][0], "[?] &compare"), (lines[4][0] + 1, "&last")] and lines[4][0], lines
    assert shown("--not", "middle", "--not", "compare", "--exits") == [(0, "&main"), (1, "&first"), (2, "[...] &last"), (1, "[...] &last")]
    plain = build(folder, "callers.c", flags=("-O1", "-fno-builtin"), out="plain")
    found = shown(program=plain)
    assert {name.split()[0] for _, name in found} >= {"&__libc_start_main", "&qsort", "&puts"} and not any(depth for depth, _ in found), found
    private = {"&" + m[1] for m in re.finditer(r" (\w+)@+GLIBC_PRIVATE", run("readelf", "--dyn-syms", "-W", *loaded(plain)))}
    assert "&_dl_audit_preinit" in private and not private & {name.split()[0] for _, name in found}, found
    fathom("trace", "--export", "collapsed", "-o", os.path.join(folder, "log"), "--", plain, status=0)
    with open(os.path.join(folder, "log"), encoding="utf-8") as f:
        text = f.read()
    assert "plain;puts 1\n" in text and {line.count(";") for line in text.splitlines()} == {1}, text
    _, events, _ = trace(plain, log=os.path.join(folder, "log"), options=["--calls", "always"])
    assert private & {f"&{e['function']}" for e in events}


@test("trees: a system call is within the function whose return address is among the words of the stack that were seen, else its parent is not known")
def _(folder):
    path, log = build(folder, "callers.c", flags=("-O1", SITES)), os.path.join(folder, "log")

    def told(*options):
        _, events, _ = trace(path, "calls", log=log, options=["--syscalls=getppid", "--no-fold", *options])
        events = [e for e in events if e["type"] == "syscall" or e["function"] in ("main", "near_call", "far_call")]
        return [(e.get("name") or e["function"], e["parent"], e["parent_depth"]) for e in events]
    assert told() == [("main", None, None), ("near_call", "direct", 0), ("getppid", "direct", 1), ("far_call", "direct", 0), ("near_call", "direct", 1),
                      ("getppid", "direct", 2)]
    # The frame of far_call() is larger than what is seen of the stack.
    assert told("--only", "main") == [("main", None, None), ("getppid", "direct", 0), ("getppid", None, None)]
    fathom("trace", "--syscalls=getppid", "--export", "collapsed", "--only", "main", "-o", log, "--", path, "calls", status=0)
    with open(log, encoding="utf-8") as f:
        paths = {line.rsplit(" ", 1)[0].split(";", 1)[1] for line in f}
    assert {"main;getppid", "[...];getppid"} <= paths, paths


RECURSION = """static volatile int sink;
__attribute__((noinline)) void g(int a, int b, int c, int d, int e, int f, int h, int i, int j, int k) { sink += a + b + c + d + e + f + h + i + j + k; }
__attribute__((noinline)) void f(int n) { if (n) f(n - 1); g(n, 2, 3, 4, 5, 6, 7, 8, 9, 10); }
int main(void) { f(6); return 0; }
"""


@test("trees: a recursion whose frames nothing describes: a call by one of it is never put below another that has returned")
def _(folder):
    log = os.path.join(folder, "log")
    for flags in (SITES, "-fno-asynchronous-unwind-tables"), (SITES,), ("-finstrument-functions", "-fno-asynchronous-unwind-tables"):
        path = build_text(os.path.join(folder, "recursion"), RECURSION, "-O2", "-fno-optimize-sibling-calls", *flags, flags=())
        _, events, _ = trace(path, log=log, options=["--no-fold"])
        names = [e["function"] for e in events if e["type"] == "call"]
        assert names == ["main", *["f"] * 7, *["g"] * 7], names
        calls = [e for e in events if e["type"] == "call"]
        # The innermost f() calls g() first: its caller is the one of depth 7, then of 6, ...
        for i, call in enumerate(calls[8:]):
            assert call["parent"] is None or (call["parent"], call["parent_depth"]) == ("direct", 7 - i), (flags, i, call)
        assert "-fno-asynchronous-unwind-tables" in flags or all(c["parent"] == "direct" for c in calls[1:]), calls


COROUTINES = """#include <ucontext.h>
#include <stdlib.h>
static volatile int sink;
static ucontext_t outer, inner;
#define F __attribute__((noinline))
F void leaf_inner(void) { sink++; }
F void leaf_outer(void) { sink++; }
F void works_inner(void) { for (;;) { leaf_inner(); swapcontext(&inner, &outer); sink++; } }
F void begins_inner(void) { works_inner(); sink++; }
F void works_outer(void) { for (int i = 0; i < 5; i++) { leaf_outer(); swapcontext(&outer, &inner); sink++; } }
F void begins_outer(void) { works_outer(); sink++; }
int main(void)
{
	getcontext(&inner);
	inner.uc_stack.ss_sp = malloc(65536);
	inner.uc_stack.ss_size = 65536;
	makecontext(&inner, begins_inner, 0);
	begins_outer();
	return 0;
}
"""


@test("trees: coroutines: what is told of the calls of one stack stays known while another one runs")
def _(folder):
    log, file = os.path.join(folder, "log"), os.path.join(folder, "file")
    path = build_text(os.path.join(folder, "coroutines"), COROUTINES, "-O1", "-fno-omit-frame-pointer", SITES, flags=())
    fathom("trace", "-o", file, "--", path, status=0)
    names = ["main", "begins_outer", "works_outer", "leaf_outer", "begins_inner", "works_inner", "leaf_inner", *4 * ("leaf_outer", "leaf_inner")]
    by = {"begins_outer": "main", "works_outer": "begins_outer", "leaf_outer": "works_outer", "works_inner": "begins_inner", "leaf_inner": "works_inner"}
    for options, gone in ((), ()), (("--not", "main"), ("main",)), (("--not", "begins_inner", "--not", "begins_outer"), ("begins_inner", "begins_outer")):
        done = fathom("trace", "--json", "--no-fold", *options, "--read", file, status=None)
        for events in trace(path, log=log, options=["--no-fold", *options])[1], [json.loads(line) for line in done.stdout.splitlines()]:
            found = [e for e in events if e["type"] == "call"]
            assert [e["function"] for e in found] == [n for n in names if n not in gone], found
            for i, e in enumerate(found):
                around = [c["function"] for c in found[:i] if c["depth"] == e["parent_depth"] and (c["function"] in ("begins_inner", "works_inner", "leaf_inner")) ==
                          (e["function"] in ("begins_inner", "works_inner", "leaf_inner"))]
                want = by.get(e["function"])
                if want is None or want in gone:
                    assert e["parent"] != "direct", (options, e)
                else:
                    assert e["parent"] == "direct" and around[-1] == want, (options, e)


def loaded(path):
    """The C library and the dynamic linker that @path has."""
    return re.findall(r"(/\S*/(?:libc\.so|ld-linux)\S*)", run("ldd", path))
