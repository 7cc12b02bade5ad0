#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "exports": profiles in the formats of other programs, and as pictures, have the sums per function that the report has."""
import collections
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import pprof_file  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402

from ask import FATHOM, execute  # noqa: E402
from building import build, build_id  # noqa: E402
from made_profile import make, report, same  # noqa: E402

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


READERS = {"speedscope": viewers.Speedscope, "firefox": viewers.Firefox, "perfetto": viewers.Perfetto}


def by_module(rows):
    """Sums by name and the last part of the module's path; code without a name is its module in brackets."""
    found = {}
    for (name, module), value in rows.items():
        module = module.rsplit("/", 1)[-1] if module else None
        name = f"[{module or 'unknown'}]" if name is None else name
        assert (name, module) not in found
        found[name, module] = value
    return found


def check_viewers(path, weights, *words):
    """Speedscope, which knows no modules, Firefox and Perfetto have the sums @weights."""
    read = {form: reader(export(path, form, *words)) for form, reader in READERS.items()}
    for form in ("firefox", "perfetto"):
        stacks = [([(frame.name, frame.module) for frame in sample.stack], sample.weight) for sample in read[form].samples]
        same(sums(stacks), by_module(weights))
    by_name = names_only(weights)
    found = sums([([frame.name for frame in sample.stack], sample.weight) for sample in read["speedscope"].samples])
    same({name: (own, total if by_name[name][1] is not None else None) for name, (own, total) in found.items()}, by_name)
    # Times and threads are the same in both that have them.
    firefox, perfetto = (collections.Counter((s.thread[0], int(s.thread[2]), int(s.thread[3]), s.ns, s.weight,
                                              tuple((f.name, f.file, f.line) for f in s.stack)) for s in read[form].samples)
                         for form in ("firefox", "perfetto"))
    same(firefox, perfetto)
    return read


def tree_of(stacks):
    """{path: weight} of all paths of the stacks, the empty one among them."""
    tree = collections.Counter()
    for stack, weight in stacks:
        for end in range(len(stack) + 1):
            tree[tuple(stack[:end])] += weight
    return tree


INNER, LEFT, ADVANCE = 1180, 10, 7.25


def boxes_of(tree, inside=(), left=0.0):
    """(depth, name, x, width) of the boxes of the paths of @tree that can be seen; siblings are in the order of their names."""
    for path in sorted((path for path in tree if path[:-1] == inside and path), key=lambda path: path[-1].encode()):
        width = tree[path] / tree[()] * INNER
        if width >= .2:
            yield len(path), path[-1], LEFT + left, width
            yield from boxes_of(tree, path, left)
        left += width


def check_picture(path, *words):
    """The flame graph has the boxes of the collapsed stacks, as wide as these weigh."""
    picture = viewers.Picture(export(path, "svg", *words))
    wanted = sorted(boxes_of(tree_of(collapsed(path, *words))))
    bottom = max(box.y for box in picture.boxes)
    found = sorted((round((bottom - box.y) / 17) + 1, box.name, box.x, box.width) for box in picture.boxes)
    same([box[:2] for box in found], [box[:2] for box in wanted])
    assert all(abs(one[k] - other[k]) <= .01 for one, other in zip(found, wanted) for k in (2, 3)), (found, wanted)
    for box in picture.boxes:
        # Text is the name, or its begin; fewer than three characters are none.
        text = box.text[0] if box.text else ""
        assert len(text) * ADVANCE <= box.width - 6 or not text, box
        assert text == box.name or (text[-1:] == "…" and box.name.startswith(text[:-1])) or (not text and box.width < 6 + 4 * ADVANCE), box
    return picture


def check_sums(path, *words):
    """All have the same sums."""
    weights, samples = by_report(path, *words)
    # pprof knows code without a name by its address.
    nameless = {(None if name == "??" else name, module): value for (name, module), value in weights.items()}
    profile, of_weights, of_samples = by_pprof(path, *words)
    same(of_weights, nameless)
    same(of_samples, samples)
    by_name = names_only(weights)
    lines = sums([([unmarked(name) for name in stack[1:]], weight) for stack, weight in collapsed(path, *words)])
    same({name: (own, total if by_name[name][1] is not None else None) for name, (own, total) in lines.items()}, by_name)
    check_viewers(path, weights, *words)
    check_picture(path, *words)
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
    for words, text in ((("--export", "moon"), "is collapsed, pprof, speedscope, firefox, perfetto, svg, svg-bars or page"), (("-o", "x"), "-o goes with --export only"),
                        (("--export", "pprof", "--by", "line"), "--export is of all"),
                        (("--export", "pprof", "--json"), "neither --json nor --top"),
                        (("--export", "collapsed", "-o", folder + "/no/file"), "No such file"),
                        (("--export", "pprof", "-o", "/dev/full"), "No space left"),
                        *((("--export", form, "-o", "/dev/full"), "No space left") for form in ("collapsed", *READERS, "svg", "svg-bars"))):
        done = execute(FATHOM, "report", *words, path, status=2)
        assert text in done.stderr and len(done.stderr.splitlines()) == 1, done
    done = execute(FATHOM, "report", "--export", "pprof", "--only", "nothing", path, status=1)
    assert "no function of it" in done.stderr and not done.stdout, done


def waits_of(seed):
    """Lines of samples of all parts, and (thread, reason, ns, weight) of the waits."""
    rng = random.Random(seed)
    lines = ["about event task-clock", "about unit ns", "thread 7 7 demo", "thread 7 8 worker", "thread 9 9 other"]
    threads = [("demo", "demo", 7, 7), ("worker", "demo", 7, 8), ("other", "other", 9, 9)]
    waits = []
    for number in range(200):
        part, thread, weight = rng.choice((0, 0, 1, 3, 3, 4)), rng.randrange(3), rng.randint(0, 5 * 10**6)
        stack = [f"{rng.choice('abcdef')}@/bin/demo" for _ in range(rng.randint(1, 6))]
        reason = rng.choice(("[futex: mutex 0x10 owned by 7]", "[read: /tmp/a b (fd 3)]", None)) if part == 3 else None
        ns = number * 10**6 + 5
        lines.append(f"sample {ns} {thread} {part} {WHOLE} {weight} " + ";".join(stack + ([f"{reason}@[waits]"] if reason else [])))
        if part >= 3:
            waits.append((threads[thread], reason or ("[waits for a processor]" if part == 4 else "[reason not known]"), ns, weight))
    return [*lines, "end 300000000"], waits


@test("waits: sums of each time; markers and slices, whatever time is asked for, that are the waits")
def waits(folder):
    for seed in range(2):
        lines, expected = waits_of(seed)
        path = make(folder, lines)
        for time in ("cpu", "waiting", "wall"):
            check_sums(path, "--time", time)
            for words, begin, end in (((), 0, 10**12), (("--from", "50ms", "--to", "100ms"), 5 * 10**7, 10**8)):
                read = check_viewers(path, by_report(path, "--time", time, *words)[0], "--time", time, *words)
                inside = collections.Counter((thread, name, ns, weight) for thread, name, ns, weight in expected if begin <= ns < end)
                for form in ("firefox", "perfetto"):
                    found = collections.Counter(((*w.thread[:2], int(w.thread[2]), int(w.thread[3])), w.name, w.end, w.weight)
                                                for w in read[form].waits)
                    same(found, inside)
                firefox = read["firefox"]
                same([w for w in firefox.waits if w.begin != max(0, w.end - w.weight)], [])
                # Slices of a thread never overlap.
                last = collections.Counter()
                for w in read["perfetto"].waits:
                    assert w.begin == max(w.end - w.weight, last[w.thread]), w
                    last[w.thread] = w.end
                on_processor = sum(report(path, "--time", "cpu", *words)["profile"][0]["weight"] for _ in range(time != "waiting"))
                same(sum(map(sum, firefox.cpu_deltas)), on_processor)
        same(viewers.Speedscope(export(path, "speedscope")).units, {"nanoseconds"})


@test("samples in the order of time: equal stacks that follow each other are one for speedscope; Firefox and Perfetto have each, and when")
def times(folder):
    path = make(folder, ["about unit cycles", "about event cycles", "thread 7 7 demo", "thread 7 8 b", "thread 9 9 late",
                         f"sample 5 0 0 {WHOLE} 1 a;b", f"sample 9 1 0 {WHOLE} 2 a", f"sample 7 0 0 {WHOLE} 4 a;b", f"sample 6 0 0 {WHOLE} 8 a",
                         f"sample 8 1 0 {WHOLE} 16 a", f"sample 20 0 0 {WHOLE} 32 a", "thread 7 7 renamed", f"sample 30 3 0 {WHOLE} 64 a",
                         "lost 40 3", "end 50"])
    speedscope = viewers.Speedscope(export(path, "speedscope"))
    assert speedscope.is_each_frame_once
    same([(s.thread, [f.name for f in s.stack], s.weight) for s in speedscope.samples],
         [("demo (7/7)", ["a", "b"], 1), ("demo (7/7)", ["a"], 8), ("demo (7/7)", ["a", "b"], 4), ("demo (7/7)", ["a"], 32),
          ("b (7/8)", ["a"], 18), ("renamed (7/7)", ["a"], 64)])
    same(speedscope.units, {"none"})
    firefox = viewers.Firefox(export(path, "firefox"))
    same([(s.thread, s.ns, s.weight) for s in firefox.samples],
         [(("demo", "demo", "7", "7"), 5, 1), (("demo", "demo", "7", "7"), 6, 8), (("demo", "demo", "7", "7"), 7, 4),
          (("demo", "demo", "7", "7"), 20, 32), (("b", "demo", "7", "8"), 8, 16), (("b", "demo", "7", "8"), 9, 2),
          (("renamed", "renamed", "7", "7"), 30, 64)])
    assert "sampleUnits" not in firefox.meta
    same({entry["label"]: entry["value"] for entry in firefox.meta["extra"][0]["entries"]}, {"event": "cycles", "samples that were lost": 3})
    perfetto = viewers.Perfetto(export(path, "perfetto"))
    same([(s.thread[0], s.ns, s.weight) for s in perfetto.samples],
         [("demo", 5, 1), ("b", 9, 2), ("demo", 7, 4), ("demo", 6, 8), ("b", 8, 16), ("demo", 20, 32), ("renamed", 30, 64)])
    same((perfetto.lost, perfetto.timebase), (3, ("cycles", None)))


@test("a recorded program: inlined functions with files, lines, depth and addresses; build-ids; the symbols that nm has")
def recorded_places(folder):
    source, path, profile = record(folder)
    names = dict(reversed(line.split()[::2]) for line in execute("nm", path, status=0).stdout.splitlines() if len(line.split()) == 3)
    begin = int(names["outer"], 16)
    firefox = viewers.Firefox(export(profile, "firefox"))
    perfetto = viewers.Perfetto(export(profile, "perfetto"))
    speedscope = viewers.Speedscope(export(profile, "speedscope"))
    chain = ["outer", "middle", "innermost"]
    for read in (firefox, perfetto, speedscope):
        found = [sample.stack[-3:] for sample in read.samples if [frame.name for frame in sample.stack[-3:]] == chain]
        assert len(found) > 3, read.samples
        assert {frame.file for stack in found for frame in stack} == {source}
        for stack in found:
            lines = [PROGRAM.splitlines()[frame.line - 1] for frame in stack]
            assert re.search(r"middle\(x\)|sink", lines[0]) and re.search(r"innermost\(x\)|sink", lines[1]), lines
            if read is not speedscope:
                assert len({frame.address for frame in stack}) == 1 and begin <= stack[0].address < begin + 200, stack
            if read is firefox:
                same([frame.depth for frame in stack], [0, 1, 2])
    number = build_id(path)
    lib, = (lib for lib in firefox.libs if lib["path"] == path)
    same((lib["codeId"], lib["breakpadId"]), (number, uuid.UUID(bytes_le=bytes.fromhex(number)[:16]).hex.upper() + "0"))
    assert (path, number) in [perfetto.mapping(iid) for iid in perfetto.tables[19]]
    for thread in firefox.file["threads"]:
        symbols, strings = thread["nativeSymbols"], thread["stringArray"]
        for library, address, name in zip(symbols["libIndex"], symbols["address"], symbols["name"]):
            if firefox.libs[library] is lib:
                same(address, int(names[strings[name]], 16))
    plain = viewers.Speedscope(export(profile, "speedscope", "--names-only"))
    assert not any(frame.line or frame.name == "innermost" for sample in plain.samples for frame in sample.stack)


NAMES = ["a</script><b>", 'quote"\'&amp', "tab\there", "bell\x07\x1b[31m", "bad\udcff\udcc3(", "\u05d0\u05d1\u202egnp.exe", "\u200bzero",
         "\ufffe\uffff", "x" * 500, "\u6f22\u5b57" * 30, "]]>", "{{7*7}}", "U+1F600 \U0001f600"]


@test("names that are not text, or mean something to a format: each file is still one, with these names, and a picture shows no control")
def hostile_names(folder):
    path = make(folder, ["about command <script>alert(1)</script>", "thread 7 7 </title>\udcfe",
                         *(f"sample {i} 0 0 {WHOLE} {i + 1} start;{name}" for i, name in enumerate(NAMES)), "end 100"])
    shown = [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in NAMES]
    for form, reader in READERS.items():
        found = reader(export(path, form))
        same(sorted((s.stack[-1].name, s.weight) for s in found.samples), sorted((name, i + 1) for i, name in enumerate(shown)))
    for form in ("svg", "svg-bars"):
        data = export(path, form)
        picture = viewers.Picture(data)
        assert b"<script" not in data and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", data)
        text = data.decode()
        assert not re.search("[\u200b-\u200f\u202a-\u202e\ufeff\ufffe\uffff\x80-\x9f]", text)
        assert all(len(part) < 420 for box in picture.boxes for part in (box.name, *box.text)), picture.boxes
        names = {box.name for box in picture.boxes}
        expected = {"a</script><b>", 'quote"\'&amp', "tab\\there", "bell\\x07\\x1b[31m", "bad\\xff\\xc3(", "\u05d0\u05d1\\u202egnp.exe",
                    "\\u200bzero", "\\ufffe\\uffff", "x" * 399 + "…", "]]>"}
        assert expected <= names, expected - names
        assert "alert(1)" in picture.title


def contrast(one, other):
    """The contrast ratio of WCAG 2.1."""
    def luminance(colour):
        parts = [value / 255 for value in colour]
        parts = [part / 12.92 if part <= .04045 else ((part + .055) / 1.055) ** 2.4 for part in parts]
        return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2]
    low, high = sorted((luminance(one), luminance(other)))
    return (high + .05) / (low + .05)


def rgb(text):
    return [int(text[i:i + 2], 16) for i in (1, 3, 5)]


@test("pictures: text on each colour of both themes has a contrast of 4.5 at least; colours are those of what is drawn")
def colours(folder):
    path = make(folder, ["about unit ns", "thread 7 7 demo", "file /bin/sh", f"sample 1 0 0 {WHOLE} 5 0x10@/bin/sh;jit@anon",
                         f"sample 2 0 3 {WHOLE} 5 0x10@/bin/sh;[read]@[waits]", "sample 3 0 1 0 7", "lost 4 9", "throttled 4"])
    picture = viewers.Picture(export(path, "svg", "--time", "wall"))
    themes = picture.colours()
    assert themes["light"] != themes["dark"]
    for rules in themes.values():
        text, ground = rgb(rules["text"]["fill"]), rgb(rules[".bg"]["fill"])
        share = float(rules[".s"]["fill-opacity"])
        assert contrast(text, ground) > 7
        for kind in range(5):
            full = rgb(rules[f".k{kind}"]["fill"])
            for colour in (full, [share * a + (1 - share) * b for a, b in zip(full, ground)]):
                assert contrast(text, colour) >= 4.5, (kind, rules, contrast(text, colour))
        # Each two differ, also for those who see no red or green: in blue, or in light.
        kinds = [rgb(rules[f".k{kind}"]["fill"]) for kind in range(5)]
        assert all(one != other for i, one in enumerate(kinds) for other in kinds[i + 1:])
    same({box.name: box.kind for box in picture.boxes},
         {"demo": 4, "[sh]": 0, "jit": 2, "[read]": 3, "[kernel, stack not permitted]": 1})
    for words in ("programs and libraries", "kernel", "JIT code", "waits", "other", "9 samples were lost: they found no room",
                  "the kernel has held samples back 1 time", "the file ends before the recording did"):
        assert words in picture.texts, (words, picture.texts)


@test("pictures: what is too narrow or too high to be seen is left out, counted and said; bars are as long as their weights")
def bounded(folder):
    light = [f"sample {i} 0 0 {WHOLE} {i} main;deep;f{i}" for i in range(1, 900)]
    path = make(folder, ["about unit ns", "thread 7 7 demo", f"sample 1 0 0 {WHOLE} 10000000 main;wide", *light,
                         f"sample 1 0 0 {WHOLE} 5000000 " + ";".join(["g"] * 300), "end 100"])
    picture = viewers.Picture(export(path, "svg"))
    tree = tree_of(collapsed(path))
    narrow = [node for node, weight in tree.items() if node and weight * INNER < .2 * tree[()] and tree[node[:-1]] * INNER >= .2 * tree[()]]
    too_high = [node for node in tree if len(node) == 257]
    assert len(narrow) == 899 and len(too_high) == 1
    same(len(picture.boxes), len(boxes := [node for node in tree if 0 < len(node) < 257 and node not in set(narrow)]))
    assert min(box.width for box in picture.boxes) >= .2 and boxes
    share = 100 * (sum(tree[node] for node in narrow) + 5000000) / tree[()]
    assert f"{len(narrow) + 1} boxes are too narrow or too high to be drawn, with what is above: {share:.2f} % of all" in picture.texts, picture.texts
    bars = viewers.Picture(export(path, "svg-bars"))
    rows = [row for row in report(path)["row"] if row["self"]]
    same([box.name for box in bars.boxes], [row["name"] for row in rows[:20]])
    for box, row in zip(bars.boxes, rows):
        assert abs(box.width - 570 * row["self"] / rows[0]["self"]) <= .01, (box, row)
        assert f"{100 * row['self'] / tree[()]:.2f} %" in box.text[1], (box, row)
    rest = sum(row["self"] for row in rows[20:])
    assert f"{len(rows) - 20} other functions: {100 * rest / tree[()]:.2f} %" in bars.texts, bars.texts


@test("what a format has no place for is said, a line each, if the profile has it")
def no_place(folder):
    bare = make(folder, ["thread 7 7 demo", f"sample 1 0 0 {WHOLE} 5 a", "end 10"], "bare")
    full = make(folder, ["cgroup /x.service", "thread 7 7 demo", "thread 7 8 b", "file /bin/sh 00ff", f"sample 1 0 0 {WHOLE} 5 0x10@/bin/sh;a@y!z.c:3",
                         "end 10"], "full")
    times = "times, but for the order of samples"
    for form, of_bare, of_full in (("collapsed", ["times"], ["times", "threads", "lines", "modules", "build-ids", "cgroups"]),
                                   ("pprof", ["times"], ["times"]), ("speedscope", [times], [times, "modules", "build-ids", "cgroups"]),
                                   ("firefox", [], ["cgroups"]), ("perfetto", [], ["cgroups"]), ("svg", [], []), ("svg-bars", [], [])):
        for path, expected in ((bare, of_bare), (full, of_full)):
            done = execute(FATHOM, "report", "--export", form, path, status=0, text=False)
            same(done.stderr.decode().splitlines(), [f"fathom: {form} has no place for {what}" for what in expected])


@test("samples, or stacks, that do not fit the memory budget: one line that says so, and no half a file")
def budget(folder):
    path = make(folder, ["thread 7 7 demo", f"sample 1 0 0 {WHOLE} 5 a;b", "times 20000", "end 30000"])
    for form in ("speedscope", "firefox"):
        done = execute(FATHOM, "report", "--memory", "1M", "--export", form, path, status=2)
        assert "do not fit the memory budget" in done.stderr and not done.stdout, done
        assert len(READERS[form](export(path, form)).samples) == (1 if form == "speedscope" else 20001)
    # These need no memory for samples.
    same(len(viewers.Perfetto(export(path, "perfetto", "--memory", "1M")).samples), 20001)


@test("perfetto: protoc reads what the reader of these tests does")
def protoc_perfetto(folder):
    data = export(make(folder, lines_of(1)), "perfetto")
    text = subprocess.run(["protoc", "--decode_raw"], input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
    same(len(re.findall(r"^  66 \{", text, re.M)), len(viewers.Perfetto(data).samples) + 1)


if __name__ == "__main__":
    sys.exit(SUITE.run())
