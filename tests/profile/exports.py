#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "exports": profiles as collapsed stacks and for pprof have the sums per function that the report has."""
import collections
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import pprof_file  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute  # noqa: E402
from building import build, build_id  # noqa: E402
from made_profile import make, same  # noqa: E402

SUITE = tap.Suite("exports")
test = SUITE.test
WHOLE, NO_RULE = 1, 2


def sums(stacks):
    """(self, total) of each function of (stack, weight), the outermost first; a function counts once for each stack."""
    own, total = collections.Counter(), collections.Counter()
    for stack, weight in stacks:
        own[stack[-1]] += weight
        for function in set(stack):
            total[function] += weight
    return {function: (own[function], total[function]) for function in total}


def by_report(path, *words):
    """{(name, module): (self, total)} of the report's JSON, and the same of numbers of samples."""
    weights, samples = {}, {}
    for line in execute(FATHOM, "report", "--json", "--no-cache", *words, path, status=0).stdout.splitlines():
        row = json.loads(line)
        if row["type"] == "row":
            key = row["name"], row["module"]
            assert key not in weights
            weights[key] = row["self"], row["total"]
            samples[key] = row["self_samples"], row["total_samples"]
    return weights, samples


def names_only(rows):
    """Sums by what collapsed stacks call a function; of names that several modules have, the self weight only: a stack may have two."""
    found = {}
    for (name, module), (own, total) in rows.items():
        name = name or (f"[{module.rsplit('/', 1)[-1]}]" if module else "[unknown]")
        found[name] = (found[name][0] + own, None) if name in found else (own, total)
    return found


def export(path, form, *words):
    done = execute(FATHOM, "report", "--export", form, "--no-cache", *words, path, status=0, text=False)
    return done.stdout


def collapsed(path, *words):
    """The stacks of the export, below the process, and their weights; lines are sorted by path, and none is there twice."""
    stacks = []
    for line in export(path, "collapsed", *words).decode().splitlines():
        names, weight = re.fullmatch(r"(.*) (\d+)", line).groups()
        names = names.split(";")
        stacks.append(([name.replace("\\x3b", ";").replace("\\x20", " ") for name in names], int(weight)))
    paths = [names for names, _ in stacks]
    assert paths == sorted(paths) and len({tuple(names) for names in paths}) == len(paths), paths
    return stacks


def unmarked(name):
    return name.removesuffix("_[k]")


def functions(location):
    """Returns (name, module) of the functions at a location, the innermost first."""
    module = location.mapping.file if location.mapping else None
    return [(line.function.name, module) for line in location.lines] or [(None, module)]


def by_pprof(path, *words):
    """The sums of the export for pprof: weights, and numbers of samples."""
    profile = pprof_file.Profile(export(path, "pprof", *words))
    stacks = [[], []]
    for sample in profile.samples:
        stack = [name for location in reversed(sample.locations) for name in reversed(functions(location))]
        for kind in range(2):
            stacks[kind].append((stack, sample.values[kind]))
    return profile, sums(stacks[1]), sums(stacks[0])


def check_sums(path, *words):
    """All three have the same sums."""
    weights, samples = by_report(path, *words)
    # pprof knows code without a name by its address.
    nameless = {(None if name == "??" else name, module): value for (name, module), value in weights.items()}
    profile, of_weights, of_samples = by_pprof(path, *words)
    same(of_weights, nameless)
    same(of_samples, samples)
    by_name = names_only(weights)
    lines = sums([([unmarked(name) for name in stack[1:]], weight) for stack, weight in collapsed(path, *words)])
    same({name: (own, total if by_name[name][1] is not None else None) for name, (own, total) in lines.items()}, by_name)
    return profile


def lines_of(seed):
    rng = random.Random(seed)
    lines = ["about event task-clock", "about unit ns", "about frequency 1000", "thread 7 7 demo", "thread 7 8 worker", "cgroup /a;b.service",
             "thread 9 9 other"]
    for number in range(80):
        stack = ";".join(f"{name}@/bin/demo" for name in (rng.choice("abcdef") for _ in range(rng.randint(1, 12))))
        part = rng.choice((0, 0, 0, 1))
        lines.append(f"sample {number}000000 {rng.randrange(3)} {part} {rng.choice((WHOLE, WHOLE, NO_RULE))} {rng.randint(1, 1000)} {stack}")
    lines += ["sample 90000000 0 2 0 555", "sample 91000000 0 1 0 77", "sample 92000000 1 0 4 88", f"sample 93000000 1 0 {WHOLE} 99 a@/bin/demo;??@/lib/x.so", "lost 5 3", "end 100000000"]
    return lines


@test("random stacks, hidden, not sampled and not whole ones: the same sums per function in all forms, with filters as well")
def random_stacks(folder):
    for seed in range(3):
        path = make(folder, lines_of(seed))
        for words in ((), ("--only", "a", "--only", "b"), ("--not", "[cd]"), ("--under", "e"), ("--under", "e", "--not", "a"),
                      ("--from", "10ms", "--to", "60ms"), ("--only", "a", "--under", "b")):
            check_sums(path, *words)
    profile = pprof_file.Profile(export(path, "pprof"))
    same([(t.type, t.unit) for t in profile.sample_types], [("samples", "count"), ("cpu", "nanoseconds")])
    same((profile.period_type.type, profile.period, profile.duration, profile.default_type), ("cpu", 1000000, 100000000, "cpu"))
    assert "3 samples were lost" in profile.comments, profile.comments
    by_thread = collections.Counter()
    for sample in profile.samples:
        by_thread[sample.labels["thread"], sample.labels["pid"], sample.labels["tid"]] += sample.values[1]
    expected = collections.Counter()
    threads = [("demo", 7, 7), ("worker", 7, 8), ("other", 9, 9)]
    for line in lines_of(2):
        words = line.split()
        if words[0] == "sample":
            expected[threads[int(words[2])]] += int(words[5])
    same(by_thread, expected)
    same({(sample.labels["pid"], sample.labels.get("cgroup")) for sample in profile.samples}, {(7, None), (9, "/a;b.service")})
    parts = collections.Counter(sample.labels["part"] for sample in profile.samples)
    assert set(parts) == {"sampled", "kernel-hidden", "unsampled"} and parts["unsampled"] == 1, parts


@test("names with semicolons, spaces and digits break no line; functions of equal names are one path")
def names(folder):
    path = make(folder, ["thread 7 7 a b;c 7", f"sample 1 0 0 {WHOLE} 5 operator new[] 2@/a/x;f@/a/y",
                         f"sample 2 0 0 {WHOLE} 7 operator new[] 2@/a/x;f@/a/z", f"sample 3 0 0 {WHOLE} 1 ??;f@/a/z", "end 10"])
    same(collapsed(path), [(["a b;c 7", "[unknown]", "f"], 1), (["a b;c 7", "operator new[] 2", "f"], 12)])
    same(export(path, "collapsed").decode(), "a b\\x3bc\\x207;[unknown];f 1\na b\\x3bc\\x207;operator new[]\\x202;f 12\n")


@test("a deep stack: the weight of what is deeper than 1,024 functions is that of the last one")
def deep(folder):
    path = make(folder, ["thread 7 7 demo", f"sample 1 0 0 {WHOLE} 5 " + ";".join(["f"] * 1500), "end 10"])
    (stack, weight), = collapsed(path)
    same((len(stack), weight), (1025, 5))
    check = pprof_file.Profile(export(path, "pprof"))
    same([len(sample.locations) for sample in check.samples], [1500])


PROGRAM = r"""
#include <stdlib.h>
static volatile unsigned sink;
static inline __attribute__((always_inline)) void innermost(unsigned x)
{
	for (unsigned i = 0; i < x; i++)
		sink += i;
}
static inline __attribute__((always_inline)) void middle(unsigned x)
{
	innermost(x);
	sink *= x;
}
__attribute__((noinline)) void outer(unsigned x)
{
	middle(x);
}
__attribute__((noinline)) void other(unsigned x)
{
	for (unsigned i = 0; i < x; i++)
		sink ^= i;
}
int main(void)
{
	for (int i = 0; i < 300; i++) {
		outer(1000000);
		other(400000);
	}
	return 0;
}
"""


def record(folder):
    source, path, profile = (os.path.join(folder, name) for name in ("program.c", "program", "profile"))
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    build(path, source, flags=("-O2", "-g", "-Wl,--build-id=sha1"))
    done = execute(FATHOM, "record", "-q", "-o", profile, "-e", "task-clock", "--", path)
    if done.returncode == 2 and "perf" in done.stderr:
        raise tap.Skip(f"perf events cannot be used here: {done.stderr.strip()}")
    assert not done.returncode, done
    return source, path, profile


@test("a recorded program: the same sums, inlined functions with their lines, the build-id")
def recorded(folder):
    source, path, name = record(folder)
    profile = check_sums(name)
    check_sums(name, "--not", "middle")
    check_sums(name, "--under", "middle")
    mapping, = (m for m in profile.mappings.values() if m.file == path)
    same(mapping.build_id, build_id(path))
    assert mapping.has_functions and mapping.has_filenames and mapping.has_line_numbers and mapping.has_inline_frames, mapping
    inlined = [x for x in profile.locations.values() if [line.function.name for line in x.lines] == ["innermost", "middle", "outer"]]
    assert inlined and all(line.function.file == source and line.line for x in inlined for line in x.lines), profile.locations
    stacks = collapsed(name)
    chain = ["main", "outer", "middle", "innermost"]
    share = sum(weight for stack, weight in stacks if stack[-4:] == chain) / sum(weight for _, weight in stacks)
    assert share > 0.5, stacks
    # The recorder's privileges decide whether the kernel's functions are there.
    for stack, _ in stacks:
        inside = [name.endswith("_[k]") for name in stack]
        assert inside == sorted(inside) or "[kernel, stack not permitted]" in stack, stack


@test("pprof: protoc reads what the reader of these tests does")
def protoc(folder):
    path = make(folder, lines_of(1))
    data = export(path, "pprof")
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    text = subprocess.run(["protoc", "--decode_raw"], input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
    profile = pprof_file.Profile(data)
    same(len(re.findall(r"^2 \{", text, re.M)), len(profile.samples))
    same(len(re.findall(r"^4 \{", text, re.M)), len(profile.locations))
    same(len(re.findall(r"^5 \{", text, re.M)), len(profile.functions))


@test("go tool pprof: its sums are those of the report")
def go_tool(folder):
    if not shutil.which("go"):
        raise tap.Skip("there is no Go compiler")
    path = make(folder, [line for line in lines_of(2) if "??" not in line])
    out = os.path.join(folder, "out.pb.gz")
    execute(FATHOM, "report", "--export", "pprof", "-o", out, path, status=0)
    done = subprocess.run(["go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=1000", "-nodefraction=0", out], capture_output=True, text=True,
                          check=True)
    found = {}
    for line in done.stdout.splitlines():
        match = re.fullmatch(r" *(\d+)(?:ns)? +\S+% +\S+% +(\d+)(?:ns)? +\S+% +(.*)", line)
        if match:
            found[match[3]] = int(match[1]), int(match[2])
    same(found, names_only(by_report(path)[0]))


@test("what cannot be exported: one line that says why")
def refused(folder):
    path = make(folder, lines_of(3))
    for words, text in ((("--export", "svg"), "is collapsed or pprof"), (("-o", "x"), "-o goes with --export only"),
                        (("--export", "pprof", "--by", "line"), "--export is of all"),
                        (("--export", "pprof", "--json"), "neither --json nor --top"),
                        (("--export", "collapsed", "-o", folder + "/no/file"), "No such file"),
                        (("--export", "pprof", "-o", "/dev/full"), "No space left"),
                        (("--export", "collapsed", "-o", "/dev/full"), "No space left")):
        done = execute(FATHOM, "report", *words, path, status=2)
        assert text in done.stderr and len(done.stderr.splitlines()) == 1, done
    done = execute(FATHOM, "report", "--export", "pprof", "--only", "nothing", path, status=1)
    assert "no function of it" in done.stderr and not done.stdout, done


if __name__ == "__main__":
    sys.exit(SUITE.run())
