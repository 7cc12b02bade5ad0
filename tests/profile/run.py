#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "profile": reports of profiles that are made by hand (make_profile.c), beside a model of their own; names and inlined
functions beside addr2line."""
import collections
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from building import build  # noqa: E402
from counting import cost_of  # noqa: E402
from made_profile import make, report, same  # noqa: E402

SUITE = tap.Suite("profile")
test = SUITE.test
WHOLE = 1


def stacks_of(seed):
    """Stacks with recursion, and their weights."""
    rng = random.Random(seed)
    return [([rng.choice("abcdef") for _ in range(rng.randint(1, 12))], rng.randint(1, 1000)) for _ in range(60)]


def lines_of(stacks):
    yield "thread 7 7 demo"
    for number, (stack, weight) in enumerate(stacks):
        yield f"sample {number} 0 0 {WHOLE} {weight} " + ";".join(f"{name}@/bin/demo" for name in stack)
    yield "end 100000"


def rows_by_model(stacks):
    own, total = collections.Counter(), collections.Counter()
    for stack, weight in stacks:
        if not stack:
            continue
        own[stack[-1]] += weight
        for name in set(stack):
            total[name] += weight
    return {name: (own[name], total[name]) for name in total}


def tree_by_model(stacks):
    tree = collections.Counter()
    for stack, weight in stacks:
        for end in range(1, len(stack) + 1):
            tree[tuple(stack[:end])] += weight
    return dict(tree)


def rows_of(found):
    return {row["name"]: (row["self"], row["total"]) for row in found["row"]}


def tree_of(found):
    paths, tree = {0: ()}, {}
    for node in found["node"]:
        path = paths[node["node"]] = (*paths[node["parent"]], node["name"])
        assert node["depth"] == len(path) and path not in tree, node
        tree[path] = node["total"]
    return tree


@test("rows and trees of random stacks are those of a model, in both directions and for some functions only")
def beside_model(folder):
    for seed in range(12):
        stacks = stacks_of(seed)
        path = make(folder, lines_of(stacks))
        found = report(path)
        same(rows_of(found), rows_by_model(stacks))
        same(tree_of(found), tree_by_model(stacks))
        same(tree_of(report(path, "--bottom-up")), tree_by_model([(stack[::-1], weight) for stack, weight in stacks]))
        only = [([name for name in stack if name in "ab"], weight) for stack, weight in stacks]
        found = report(path, "--only", "a", "--only", "b")
        same(rows_of(found), rows_by_model(only))
        same(tree_of(found), tree_by_model(only))
        same(found["profile"][0]["shown"], sum(weight for stack, weight in only if stack))
        without = [([name for name in stack if name not in "cd"], weight) for stack, weight in stacks]
        same(tree_of(report(path, "--not", "[cd]", "--bottom-up")), tree_by_model([(stack[::-1], weight) for stack, weight in without]))
        under = [(stack[stack.index("e"):] if "e" in stack else [], weight) for stack, weight in stacks]
        found = report(path, "--under", "e")
        same(rows_of(found), rows_by_model(under))
        same(tree_of(found), tree_by_model(under))
        same(tree_of(report(path, "--callees", "e")), tree_by_model(under))
        callers = [(stack[:stack.index("e") + 1][::-1] if "e" in stack else [], weight) for stack, weight in stacks]
        same(tree_of(report(path, "--callers", "e")), tree_by_model(callers))


@test("frames of scripts: merged, alone, not at all: rows and trees of random stacks are those of a model; stacks without a script are whole")
def scripts_beside_model(folder):
    modules = {**dict.fromkeys("ab", "/bin/demo"), **dict.fromkeys("rs", "/bin/python"), **dict.fromkeys("XY", "[script of /bin/python]")}
    shown = {"all": "abrsXY", "merged": "abXY", "script": "XY", "native": "abrs"}
    for seed in range(8):
        rng = random.Random(seed)
        stacks = [([rng.choice("abrs" if i % 3 == 0 else "abrsXY") for _ in range(rng.randint(1, 10))], rng.randint(1, 1000))
                  for i in range(60)]
        samples = [f"sample {i} 0 0 {WHOLE} {weight} " + ";".join(f"{name}@{modules[name]}" for name in stack)
                   for i, (stack, weight) in enumerate(stacks)]
        path = make(folder, ["thread 7 7 demo", *samples, "end 100000"])
        for kind, names in shown.items():
            model = [([name for name in stack if name in names or not set("XY") & set(stack)], weight) for stack, weight in stacks]
            # Of these, some are of scripts alone, which real ones never are.
            model = [(stack or ["[stack not complete]"], weight) for stack, weight in model]
            for words, direction in (((), 1), (("--bottom-up",), -1)):
                found = report(path, "--frames", kind, *words)
                same(rows_of(found), rows_by_model(model))
                same(tree_of(found), tree_by_model([(stack[::direction], weight) for stack, weight in model]))
            done = execute(FATHOM, "report", "--no-cache", "--export=collapsed", "--frames", kind, path)
            collapsed = collections.Counter()
            for line in done.stdout.splitlines():
                stack, _, weight = line.rpartition(" ")
                collapsed[tuple(stack.split(";")[1:])] += int(weight)
            wanted = collections.Counter()
            for stack, weight in model:
                wanted[tuple(stack)] += weight
            same(collapsed, wanted)
        same(report(path)["row"], report(path, "--frames=merged")["row"])


@test("branches that are left out: their number, and their weight")
def left_out(folder):
    stacks = stacks_of(100)
    all_weight = sum(weight for _, weight in stacks)
    for direction, words in ((1, ()), (-1, ("--bottom-up",))):
        model = tree_by_model([(stack[::direction], weight) for stack, weight in stacks])
        found = report(make(folder, lines_of(stacks)), "--min", "3", *words)
        same(tree_of(found), {path: weight for path, weight in model.items() if weight >= all_weight * 3 // 100})
        paths = {0: ()}
        for node in found["root"] + found["node"]:
            path = paths[node.get("node", 0)] = (*paths[node["parent"]], node["name"]) if "node" in node else ()
            light = [weight for other, weight in model.items() if other[:-1] == path and weight < all_weight * 3 // 100]
            same((node["branches_left_out"], node["left_out"]), (len(light), sum(light)))


REASONS = ("[futex: mutex 0x10 owned by 7]", "[futex: mutex 0x20 owned by 8]", "[read: /tmp/a b (fd 3)]", None)
TIMES = {"cpu": (0, 1, 2), "waiting": (3, 4), "wall": (0, 1, 2, 3, 4)}


def waits_of(seed):
    """Samples of all parts: the part, the functions, the reason if there is one, and the weight."""
    rng = random.Random(seed)
    for _ in range(200):
        part = rng.choice((0, 1, 2, 3, 3, 3, 4))
        stack = [rng.choice("abcdef") for _ in range(rng.randint(1, 6))] if part not in (2, 4) else []
        yield part, stack, rng.choice(REASONS) if part == 3 else None, rng.randint(1, 1000)


def reason_of(part, reason):
    return "[on a processor]" if part < 3 else "[waits for a processor]" if part == 4 else reason or "[reason not known]"


@test("waits by reason: rows and trees are those of a model, of each time, of some functions and of callers")
def by_reason(folder):
    for seed in range(4):
        samples = list(waits_of(seed))
        lines = ["about unit ns", "thread 7 7 demo"]
        for number, (part, stack, reason, weight) in enumerate(samples):
            frames = [f"{name}@/bin/demo" for name in stack] + ([f"{reason}@[waits]"] if reason else [])
            lines.append(f"sample {number} 0 {part} {WHOLE} {weight} " + ";".join(frames))
        path = make(folder, [*lines, "end 100000"])
        for time, parts in TIMES.items():
            rows, chosen, callers = collections.Counter(), collections.Counter(), collections.Counter()
            for part, stack, reason, weight in samples:
                if part not in parts:
                    continue
                name = reason_of(part, reason)
                rows[name] += weight
                if "a" in stack:
                    chosen[name] += weight
                    callers[(*stack[:stack.index("a") + 1][::-1], name)] += weight
            found = report(path, "--by", "reason", "--time", time)
            same({row["name"]: row["self"] for row in found["row"]}, dict(rows))
            same({row["kind"] for row in found["row"]}, {"reason"})
            same({node["name"]: node["total"] for node in found["node"] if node["depth"] == 1}, dict(rows))
            for words in (("--under", "a"), ("--only", "a")):
                found = report(path, "--by", "reason", "--time", time, *words)
                same({row["name"]: row["self"] for row in found["row"]}, dict(chosen))
            found = report(path, "--by", "reason", "--time", time, "--callers", "a")
            names = {row["name"] for row in found["row"]}
            same({node: weight for node, weight in tree_of(found).items() if node[-1] in names},
                 {node: weight for node, weight in callers.items()})
        # Who waits for one of them: a query in which a colon would end a module's name.
        found = report(path, "--time", "waiting", "--callers", "[[]futex*mutex*")
        same({node["name"]: node["total"] for node in found["node"] if node["depth"] == 1},
             {name: weight for name, weight in rows.items() if name.startswith("[futex")})
        # Without --time, it is of waits.
        same(report(path, "--by", "reason")["profile"][0]["time"], "waiting")
        text = run(FATHOM, "report", "--by", "reason", path)
        heaviest = max((weight, name) for name, weight in rows.items() if name in REASONS)[1]
        assert "  reason\n" in text and f"  {heaviest}\n" in text, text


@test("by cgroup: the sums of its processes; threads and processes say theirs, older profiles none")
def by_cgroup(folder):
    rng = random.Random(5)
    cgroups = [None, "/", "/a.slice/b.service", "/a.slice/\x1b[31mc", "/a.slice/b.service"]
    lines, of_thread = ["about unit ns"], []
    for pid, cgroup in enumerate(cgroups, 1):
        lines += [f"cgroup {cgroup}"] if cgroup else []
        lines += [f"thread {pid} {pid} p{pid}", f"thread {pid} {10 * pid} t{pid}"]
        of_thread += [(pid, cgroup)] * 2
    by_group, by_process = collections.Counter(), collections.Counter()
    for number in range(100):
        thread, weight = rng.randrange(len(of_thread)), rng.randint(1, 100)
        lines.append(f"sample {number} {thread} {rng.choice((0, 3))} {WHOLE} {weight} f@/bin/x;{rng.choice('gh')}@/bin/x")
        by_process[of_thread[thread]] += weight
        by_group[of_thread[thread][1]] += weight
    path = make(folder, [*lines, "end 1000"])
    found = report(path, "--by", "cgroup", "--time", "wall")
    same({row["cgroup"]: row["self"] for row in found["row"]}, dict(by_group))
    same({(row["kind"], row["name"] == row["cgroup"]) for row in found["row"] if row["cgroup"]}, {("cgroup", True)})
    same([row["name"] for row in found["row"] if not row["cgroup"]], ["[cgroup not known]"])
    found = report(path, "--by", "process", "--time", "wall")
    same({(row["pid"], row["cgroup"]): row["self"] for row in found["row"]}, dict(by_process))
    same({(row["pid"], row["cgroup"]) for row in report(path, "--by", "thread")["row"]}, set(by_process))
    text = run(FATHOM, "report", "--by", "cgroup", path)
    assert "  /a.slice/b.service\n" in text and "\x1b" not in text, text


PROGRAM = r"""
static volatile int sink;
static inline __attribute__((always_inline)) void innermost(int x)
{
	sink += x;
}
static inline __attribute__((always_inline)) void middle(int x)
{
	innermost(x);
	sink *= x;
}
__attribute__((noinline)) void outer(int x)
{
	middle(x);
}
int main(void)
{
	outer(3);
	return 0;
}
"""


@test("names, inlined functions and lines of a file are those of addr2line; not those of another build")
def beside_addr2line(folder):
    source, path = os.path.join(folder, "program.c"), os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    build(path, source, flags=("-O2", "-g", "-Wl,--build-id=0xabcdef0123456789"))
    code = run("objdump", "-d", "--no-show-raw-insn", path)
    code = code.split("<outer>:\n")[1].split("\n\n")[0]
    addresses = [int(address, 16) for address in re.findall(r"^ *([0-9a-f]+):", code, re.M)]
    assert len(addresses) > 3
    lines = ["thread 7 7 demo", f"file {path} abcdef0123456789"]
    lines += [f"sample {i} 0 0 {WHOLE} {2 ** i} {address:#x}@{path}" for i, address in enumerate(addresses)]
    profile = make(folder, [*lines, "end 1000"])
    own, total, by_line = collections.Counter(), collections.Counter(), collections.Counter()
    for i, address in enumerate(addresses):
        said = run("addr2line", "-f", "-i", "-e", path, hex(address)).split("\n")
        frames = [(said[k], int(said[k + 1].rsplit(":", 1)[1].split()[0])) for k in range(0, len(said) - 1, 2)]
        own[frames[0][0]] += 2 ** i
        by_line[frames[0]] += 2 ** i
        for name in {name for name, _ in frames}:
            total[name] += 2 ** i
    assert set(total) == {"outer", "middle", "innermost"}, total
    found = report(profile)
    same(rows_of(found), {name: (own[name], total[name]) for name in total})
    assert {row["module"] for row in found["row"]} == {path} and not found["nameless"]
    found = report(profile, "--by", "line")
    same({(row["name"], row["line"]): row["self"] for row in found["row"] if row["self"]}, dict(by_line))
    assert {row["file"] for row in found["row"]} == {source}
    same(rows_of(report(profile, "--names-only")), {"outer": (sum(own.values()), sum(own.values()))})
    lines[1] = f"file {path} 00cdef0123456789"
    found = report(make(folder, [*lines, "end 1000"]))
    same([row["name"] for row in found["row"]], [None])
    same([(module["module"], module["reason"]) for module in found["nameless"]], [(path, "build-id-mismatch")])
    # The same file below another root, and none at its path.
    os.makedirs(folder + "/root" + folder)
    os.rename(path, folder + "/root" + path)
    lines[1] = f"file {path} abcdef0123456789"
    profile = make(folder, [*lines, "end 1000"])
    same([module["reason"] for module in report(profile)["nameless"]], ["no-file"])
    same(rows_of(report(profile, "--sysroot", folder + "/root")), {name: (own[name], total[name]) for name in total})


@test("10,000,000 samples are reported within 256 MB")
def many(folder):
    lines = ["thread 7 7 demo"]
    for i in range(500):
        lines += [f"sample {i} 0 0 {WHOLE} 3 " + ";".join(f"f{i * k % 97}@/bin/demo" for k in range(1, 6)), "times 19999"]
    path = make(folder, [*lines, "end 100000000"])
    for words in ((), ("--bottom-up",)):
        assert "10000000 of 30" in run(FATHOM, "report", *words, path)
        status, _, peak = cost_of(FATHOM, "report", *words, path)
        assert not status and peak < 256 << 20, f"{words}: {peak} bytes"


sys.exit(SUITE.run())
