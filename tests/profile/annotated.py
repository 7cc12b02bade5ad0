#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "annotated": instructions and source lines of functions (fathom report --annotate), of profiles that are made by hand,
beside objdump, addr2line and the report; and of a program that is recorded."""
import collections
import functools
import json
import os
import random
import re
import shutil
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from building import build, build_text  # noqa: E402
from counting import instructions  # noqa: E402
from made_profile import make, report, same  # noqa: E402
from recording import record  # noqa: E402

SUITE = tap.Suite("annotated")
test = SUITE.test
WHOLE = 1
SOURCE = os.path.join(HERE, "programs", "hot_lines.c")
KEPT = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
LOCK = threading.Lock()
FUNCTIONS = ("leaf", "work", "again", "spin", "main")
JUMP = re.compile(r"j\w+\s+([0-9a-f]+) <(\w+)(\+0x[0-9a-f]+)?>")


def program():
    """A program with its source beside it, which is compiled once."""
    if os.uname().machine != "x86_64":
        raise tap.Skip("the programs of this suite are for x86-64")
    path = os.path.join(KEPT.name, "hot_lines")
    with LOCK:
        if not os.path.exists(path):
            build(path, shutil.copy(SOURCE, KEPT.name), flags=("-O2", "-g"))
    return path


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path))[1]


@functools.cache
def listing(path, function):
    """{address: text} of the instructions of @function, by objdump."""
    (symbol,) = (line for line in run("readelf", "-sW", path).splitlines() if line.endswith(f" {function}"))
    value, size = int(symbol.split()[1], 16), int(symbol.split()[2], 0) or 1 << 20
    text = run("objdump", "-d", "--no-show-raw-insn", path)
    body = re.search(rf"^[0-9a-f]+ <{function}>:\n((?: .*\n)+)", text, re.MULTILINE)[1]
    found = {int(address, 16): what for address, what in re.findall(r"^ +([0-9a-f]+):\t(.*)$", body, re.MULTILINE)}
    # Padding after it is none of it.
    return {address: what for address, what in found.items() if address - value < size}


@functools.cache
def chains(path, function):
    """{address: [(function, file, line)]}, the innermost first, by addr2line."""
    addresses = [hex(address) for address in listing(path, function)]
    found, chain = {}, None
    lines = run("addr2line", "-a", "-f", "-i", "-e", path, *addresses).splitlines()
    while lines:
        if lines[0].startswith("0x"):
            chain = found.setdefault(int(lines.pop(0), 16), [])
            continue
        name, place = lines[:2]
        del lines[:2]
        file, line = place.split(" (")[0].rsplit(":", 1)
        chain.append((name, file, int(line) if line.isdigit() else 0))
    return found


def annotate(path, query, *words, status=0):
    """The functions that are annotated: each a dict with its own members and lists of what follows it, by type."""
    found = []
    for line in execute(FATHOM, "report", "--json", "--no-cache", "--annotate", query, *words, path, status=status).stdout.splitlines():
        record_ = json.loads(line)
        if record_["type"] == "annotated":
            found.append(record_ | {"code": [], "source": [], "instruction": []})
            same(record_["function"], len(found) - 1)
        else:
            found[-1][record_["type"]].append(record_)
    return found


def text_of(path, query, *words):
    return run(FATHOM, "report", "--no-cache", "--annotate", query, *words, path)


def header(path):
    return ["about event task-clock", "about unit ns", "thread 7 7 demo", f"file {path} {build_id(path)}"]


def weights_of(records):
    return {int(i["address"], 16): i["self"] + i["inlined"] for i in records if i["self"] + i["inlined"]}


def each_instruction(path, function):
    """A profile with one sample at each instruction of @function, called by main, and their weights by address."""
    call = next(address for address, text in listing(path, "main").items() if text.startswith("call"))
    after = min(address for address in listing(path, "main") if address > call)
    weights = {address: 100 + number for number, address in enumerate(listing(path, function))}
    lines = header(path) + [f"sample {number} 0 0 {WHOLE} {weight} <{after:#x}@{path};{address:#x}@{path}"
                            for number, (address, weight) in enumerate(weights.items())]
    return lines + ["end 100000"], weights, call


@test("a sample at each instruction of a function: weights, lines and inlined functions are those of objdump and addr2line")
def every_instruction(folder):
    path = program()
    lines, weights, call = each_instruction(path, "work")
    profile = make(folder, lines)
    (work,) = annotate(profile, "work")
    same([int(i["address"], 16) for i in work["instruction"]], list(listing(path, "work")))
    same(weights_of(work["instruction"]), weights)
    same(work["elsewhere"], 0)
    inner = collections.Counter()
    for i in work["instruction"]:
        chain = chains(path, "work")[int(i["address"], 16)]
        same((i["file"], i["line"] or 0), chain[-1][1:])
        same(i["self"] if len(chain) == 1 else i["inlined"], weights[int(i["address"], 16)])
        if len(chain) > 1:
            same((i["inlined_function"], i["inlined_file"], i["inlined_line"]), chain[0])
            inner[chain[0]] += i["inlined"]
    assert {name for name, _, _ in inner} == {"mix", "twice"} or {name for name, _, _ in inner} == {"mix"}, inner
    same({(line["inlined_function"], line["file"], line["line"]): line["inlined"] for line in work["source"]
          if line["inlined_function"] and line["inlined"]}, dict(inner))
    (main,) = annotate(profile, "main")
    same({int(i["address"], 16): i["total"] for i in main["instruction"] if i["total"]}, {call: sum(weights.values())})
    same(weights_of(main["instruction"]), {})


@test("source lines: their own weights, those of inlined functions, of all that is below, and their texts")
def lines_of(folder):
    path = program()
    lines, weights, _ = each_instruction(path, "work")
    (work,) = annotate(make(folder, lines), "work")
    with open(SOURCE, encoding="utf-8") as f:
        texts = f.read().split("\n")
    own, inlined = collections.Counter(), collections.Counter()
    for address, weight in weights.items():
        chain = chains(path, "work")[address]
        (own if len(chain) == 1 else inlined)[chain[-1][2]] += weight
    rows = [line for line in work["source"] if not line["inlined_function"]]
    same({line["line"]: line["self"] for line in rows if line["self"]}, {line: weight for line, weight in own.items() if line})
    same({line["line"]: line["inlined"] for line in rows if line["inlined"]}, dict(inlined))
    same({line["line"]: line["total"] for line in rows if line["total"]},
         {line: weight for line, weight in (own + inlined).items() if line})
    same(work["no_line"], own[0])
    for line in work["source"]:
        same((line["text"], line["source_origin"]), (texts[line["line"] - 1], "file"))
    # Lines between those with code are there, too, and say so.
    numbers = [line["line"] for line in rows]
    same(numbers, list(range(numbers[0], numbers[-1] + 1)))
    assert not next(line for line in rows if texts[line["line"] - 1] == "")["has_code"]


@test("an inlined function: its own lines, and the instructions of the function that it is in")
def inlined_function(folder):
    path = program()
    lines, weights, _ = each_instruction(path, "work")
    (mix,) = annotate(make(folder, lines), "mix")
    own = {address: weight for address, weight in weights.items() if chains(path, "work")[address][0][0] == "mix"}
    assert len(own) > 4
    same(weights_of(mix["instruction"]), own)
    same([(code["name"], code["inlined_here"]) for code in mix["code"]], [("work", True)])
    same({line["line"] for line in mix["source"] if line["self"]}, {chains(path, "work")[address][0][2] for address in own})
    for i in mix["instruction"]:
        names = [name for name, _, _ in chains(path, "work")[int(i["address"], 16)]]
        same(i["outside"], "mix" not in names)
    text = text_of(make(folder, lines), "mix")
    assert "inlined into work at 0x" in text and "      ...\n" in text, text


def record_bytes(tag, *parts):
    """A record of a profile: numbers below 128 and texts."""
    body = b"".join(bytes([part]) if isinstance(part, int) else bytes([len(part)]) + part for part in parts)
    return bytes([tag, len(body)]) + body


@test("two builds of one path, of which one has no samples in the time that is asked for")
def two_builds(folder):
    profile = os.path.join(folder, "builds")
    with open(profile, "wb") as f:
        f.write(b"\x7ffprof1\n" + record_bytes(1, b"unit", b"ns") + record_bytes(1, b"event", b"task-clock") + record_bytes(2, 1, 1, 0, 0, b"a"))
        for build in (1, 2):
            f.write(record_bytes(3, 1, b"/nonexistent/app", bytes(4 * [build]), 0, 0))
        f.write(record_bytes(4, 2, b"hot", b"", b"/src/a.c", 7) + record_bytes(4, 2, b"hot", b"", b"/src/a.c", 8))
        for module in (1, 2):
            f.write(record_bytes(5, module, 64, 0, 0, module) + record_bytes(6, 0, module - 1))
        # The first one waits, the second one runs.
        f.write(record_bytes(7, 3 + 16, 2, 0, 1, 100) + record_bytes(7, 16, 2, 0, 2, 10) + record_bytes(10, 5))
    (hot,) = annotate(profile, "hot")
    same((hot["self"], {line["line"]: line["self"] for line in hot["source"]}), (10, {7: 0, 8: 10}))
    assert text_of(profile, "hot").startswith("function:  hot\n")


def random_lines(path, seed):
    """Stacks of return addresses and instructions of all functions, of all parts."""
    rng = random.Random(seed)
    places = [(function, address) for function in FUNCTIONS for address in listing(path, function)]
    yield from header(path)
    for number in range(120):
        part = rng.choice((0, 0, 0, 1, 2, 3, 4))
        stack = [f"<{rng.choice(places)[1] + 1:#x}@{path}" for _ in range(rng.randint(0, 6))] + [f"{rng.choice(places)[1]:#x}@{path}"]
        if part == 3:
            stack.append("[futex]@[waits]")
        yield f"sample {number}000000 0 {part} {rng.choice((1, 4))} {rng.randint(1, 1000)} " + ("" if part == 2 else ";".join(stack))
    yield "end 1000000000"


FILTERS = ((), ("--not", "mix"), ("--not", "leaf", "--not", "work"), ("--only", "again", "--only", "mix"), ("--only", "main"),
           ("--under", "again"), ("--under", "work", "--not", "twice"), ("--under", "mix"), ("--from", "20ms", "--to", "90ms"),
           ("--time", "waiting"), ("--time", "wall"), ("--names-only",), ("--time", "wall", "--only", "work"))


@test("random stacks, with each filter: functions have the weights of the report, and so have their instructions and lines together")
def beside_report(folder):
    path = program()
    for seed in range(3):
        profile = make(folder, random_lines(path, seed))
        for words in FILTERS:
            rows = {(row["name"], row["module"]): row for row in report(profile, *words)["row"] if row["kind"] == "function"}
            found = annotate(profile, "/^/", *words, status=None)
            same([(f["name"], f["module"]) for f in found], list(rows))
            for f in found:
                row = rows[f["name"], f["module"]]
                same([f[key] for key in ("self", "total", "self_samples", "total_samples")],
                     [row[key] for key in ("self", "total", "self_samples", "total_samples")])
                at = f["instruction"]
                same(sum(i["self"] + i["inlined"] for i in at) + f["elsewhere"], f["self"] + f["inlined"])
                own = [line for line in f["source"] if not line["inlined_function"]]
                same(sum(line["self"] + line["inlined"] for line in own) + f["no_line"], f["self"] + f["inlined"])
                assert max([i["total"] for i in at], default=0) <= f["total"]
                assert all(i["total"] >= i["self"] + i["inlined"] for i in at if "--only" not in words)


@test("a function that calls itself: each sample counts once for a call and a line, however often the stack has it")
def recursion(folder):
    path = program()
    calls = [address for address, text in listing(path, "again").items() if re.match(r"call +[0-9a-f]+ <again>", text)]
    assert calls, listing(path, "again")
    after = min(address for address in listing(path, "again") if address > calls[0])
    lines = header(path)
    for depth in range(1, 6):
        lines.append(f"sample {depth} 0 0 {WHOLE} {10 ** depth} " + f"<{after:#x}@{path};" * depth + f"{calls[0]:#x}@{path}")
    (again,) = annotate(make(folder, [*lines, "end 100"]), "again")
    all_weight = sum(10 ** depth for depth in range(1, 6))
    same([(i["self"], i["total"]) for i in again["instruction"] if i["total"]], [(all_weight, all_weight)])
    same([line["total"] for line in again["source"] if line["total"]], [all_weight])
    same((again["self"], again["total"]), (all_weight, all_weight))


def follow(lines, source, target):
    """Whether a line is drawn from row @source to row @target: both ends reach the code, and one column joins them."""
    first, last = min(source, target), max(source, target)
    for lane in range(len(lines[source])):
        column = "".join(line[lane] for line in lines[first:last + 1])
        if (re.fullmatch(r"[/+|][|+]*[\\+|]", column) and re.fullmatch(r"[-+]*>", lines[target][lane + 1:]) and
                re.fullmatch(r"[-+]*[->]", lines[source][lane + 1:])):
            return True
    return False


@test("jumps: their targets are those of objdump, and each is drawn up to its target")
def jumps(folder):
    path = program()
    for function in ("work", "again", "spin"):
        wanted = {}
        for address, text in listing(path, function).items():
            jump = JUMP.match(text)
            if jump:
                wanted[address] = (int(jump[1], 16), jump[2] == function)
        assert len(wanted) >= 2, function
        lines, _, _ = each_instruction(path, function)
        profile = make(folder, lines)
        (found,) = annotate(profile, function)
        same({int(i["address"], 16): int(i["target"], 16) for i in found["instruction"] if i["text"].startswith("j") and i["target"]},
             {address: to for address, (to, _) in wanted.items()})
        same({int(i["address"], 16): int(i["jump"], 16) for i in found["instruction"] if i["jump"]},
             {address: to for address, (to, is_own) in wanted.items() if is_own})
        # The columns of weights are as wide as in the heading.
        text = text_of(profile, function).split("% samples\n", 1)[1].splitlines()
        rows = {}
        for number, line in enumerate(text):
            row = re.match(r"[\d. ]{24}([-/\\|+> ]*?) +([0-9a-f]+)  [a-z]", line)
            if row and int(row[2], 16) in listing(path, function):
                rows[int(row[2], 16)] = number
        same(len(rows), len(listing(path, function)))
        width = max(arrow.end() for arrow in (re.match(r".{24}[-/\\|+ ]*>(?= )", text[number]) for number in rows.values()) if arrow) - 24
        lanes = [line[24:24 + width].ljust(width) for line in text]
        for address, (to, is_own) in wanted.items():
            if is_own and to != address:
                assert follow(lanes, rows[address], rows[to]), f"{address:x} to {to:x} is not drawn:\n" + "\n".join(text)


@test("the hottest lines first; few rows of long functions, all on request; a heading as written by hand")
def as_text(folder):
    path = program()
    division = next(address for address, text in listing(path, "work").items() if text.startswith("div"))
    first = min(listing(path, "work"))
    profile = make(folder, header(path) + [f"sample 1 0 0 {WHOLE} 3000000 {division:#x}@{path}", f"sample 2 0 0 {WHOLE} 1000000 {first:#x}@{path}",
                                           f"sample 3 0 0 {WHOLE} 1000000 main@/bin/demo", "end 100"])
    text = text_of(profile, "work")
    same(text.split("\n\n")[0].splitlines(), [
        "function:  work", f"module:    {path}", f"file:      {KEPT.name}/hot_lines.c", "event:     task-clock, 5.000 ms in 3 samples",
        "self:      4.000 ms, 80.00 %, 2 samples", "total:     4.000 ms, 80.00 %, 2 samples"])
    assert re.search(rf"^  75.00   75.00       1 [-/\\|+> ]* {division:x}  divl ", text, re.MULTILINE), text
    assert "      ...\n" in text
    shown = re.findall(r"^[\d. ]{24}[-/\\|+> ]* ([0-9a-f]+)  [a-z(]", text, re.MULTILINE)
    assert 8 < len(shown) < len(listing(path, "work")), shown
    whole = text_of(profile, "work", "--all-lines")
    assert "..." not in whole
    same([int(a, 16) for a in re.findall(r"^[\d. ]{24}[-/\\|+> ]* ([0-9a-f]+)  [a-z(]", whole, re.MULTILINE)], list(listing(path, "work")))
    rows = text_of(profile, "work", "--hot-first").split("% samples\n", 1)[1].splitlines()[1:]
    line_of = {address: chain[-1][2] for address, chain in chains(path, "work").items()}
    same([re.sub(r" +", " ", row).strip()[:24].split(" ", 4)[:4] for row in rows], [
        ["75.00", "75.00", "1", str(line_of[division])], ["75.00", "75.00", "1", f"{division:x}"],
        ["25.00", "25.00", "1", str(line_of[first])], ["25.00", "25.00", "1", f"{first:x}"]])
    coloured = text_of(profile, "work", "--color=always")
    assert "\x1b[1;31m  75.00\x1b[m" in coloured and "\x1b" not in text


@test("a file of another build, one that is not there, one without code, JIT code, waits: no instructions, and why")
def no_code(folder):
    path = program()
    other = build(os.path.join(folder, "hot_lines"), SOURCE, "-DOTHER", "-Wl,--build-id=0x0123456789", flags=("-O2", "-g"))
    first = min(listing(path, "work"))
    same(min(listing(other, "work")), first)
    debug = os.path.join(folder, "debug", ".build-id", build_id(path)[:2])
    os.makedirs(debug)
    run("objcopy", "--only-keep-debug", path, f"{debug}/{build_id(path)[2:]}.debug")

    def reasons(module, identity, *words, query="/^/"):
        lines = ["thread 7 7 demo", f"file {module} {identity}", f"sample 1 0 0 {WHOLE} 5 {first:#x}@{module}", "end 10"]
        (found,) = annotate(make(folder, lines), query, *words)
        same((found["instruction"], found["elsewhere"]), ([], 5))
        return found["name"], found["reason"], [code["reason"] for code in found["code"]]
    same(reasons(other, build_id(path)), (None, "the file is of another build than the one that was recorded", []))
    same(reasons("/no/such/file", build_id(path)), (None, "the file is not there", []))
    same(reasons("/no/such/file", build_id(path), "--debug-dir", f"{folder}/debug"), ("work", None, ["the file that has its names has no code"]))
    with open(SOURCE, encoding="utf-8") as f:
        texts = f.read().split("\n")
    lines = ["thread 7 7 demo", f"sample 1 0 0 {WHOLE} 5 loop@/bin/jit!{SOURCE}:10", f"sample 2 0 0 {WHOLE} 7 loop@/bin/jit!{SOURCE}:11",
             f"sample 3 0 0 {WHOLE} 9 loop@/bin/jit", f"sample 4 0 3 {WHOLE} 9 loop@/bin/jit;[futex]@[waits]", "end 10"]
    profile = make(folder, lines)
    (found,) = annotate(profile, "loop")
    same((found["instruction"], found["reason"]), ([], "JIT code: its instructions are gone"))
    same([(line["line"], line["self"], line["text"]) for line in found["source"]],
         [(number, weight, texts[number - 1]) for number, weight in ((10, 5), (11, 7))])
    same(found["no_line"], 9)
    text = text_of(profile, "loop")
    assert "code:      none (JIT code: its instructions are gone)\n" in text and re.search(r"^  33.33 .* 1 +11     x ", text, re.MULTILINE), text
    (found,) = annotate(profile, "/futex/", "--time", "waiting")
    same((found["reason"], found["self"]), ("a wait, no code", 9))


@test("sources: the path that the compiler wrote, --source-dir, embedded ones; a file that is missing or other says so")
def sources(folder):
    source = os.path.join(folder, "built", "hot_lines.c")
    os.mkdir(os.path.dirname(source))
    shutil.copy(SOURCE, source)
    path = build(os.path.join(folder, "program"), source, flags=("-O2", "-gdwarf-5"), compiler="clang")
    embedded = build(os.path.join(folder, "embedded"), source, flags=("-O2", "-gdwarf-5", "-gembed-source"), compiler="clang")

    def lines(file, *words):
        profile = make(folder, header(file) + [f"sample 1 0 0 {WHOLE} 5 {min(listing(file, 'spin')):#x}@{file}", "end 10"])
        (found,) = annotate(profile, "spin", *words)
        return {(line["text"], line["source_origin"], line["source_proven"], line["source_reason"]) for line in found["source"] if line["self"]}
    ((text, origin, proven, reason),) = lines(path)
    assert text in ("\twhile (n--)", "{", "__attribute__((noinline, noclone)) unsigned spin(unsigned n)"), text
    same((origin, proven, reason), ("file", True, None))
    shutil.move(source, f"{folder}/hot_lines.c")
    ((found, origin, _, reason),) = lines(path)
    same((found, origin), (None, None))
    assert "No such file" in reason, reason
    same(lines(path, "--source-dir", folder), {(text, "source-dir", True, None)})
    same(lines(embedded), {(text, "embedded", True, None)})
    profile = make(folder, header(path) + [f"sample 1 0 0 {WHOLE} 5 {min(listing(path, 'spin')):#x}@{path}", "end 10"])
    assert re.search(r"hot_lines.c \(no source: .*No such file.*, see --source-dir\)\n", text_of(profile, "spin"))
    with open(source, "w", encoding="ascii") as f:
        f.write("int other;\n")
    ((found, _, _, reason),) = lines(path)
    assert found is None and "MD5 differs" in reason, reason


ODD = r"""
	.globl sized, unsized, behind
	.type sized, @function
	.type unsized, @function
	.type behind, @function
	.text
sized:
	movabsq $0x1122334455667788, %rax
	nop
	ret
	.size sized, . - sized
	.skip 8, 0xcc
unsized:
	movabsq $0x1122334455667788, %rdx
	nop
	nop
	ret
behind:
	ret
	.size behind, 0x7fffffffffff
	.section .note.GNU-stack, "", @progbits
"""


@test("samples within instructions, between functions, beyond the file, at functions without a size or with a false one")
def odd_addresses(folder):
    program()
    assembly = os.path.join(folder, "odd.s")
    with open(assembly, "w", encoding="ascii") as f:
        f.write(ODD)
    path = build_text(os.path.join(folder, "odd"), "int main(void) { return 0; }", assembly)
    start = min(listing(path, "sized"))
    unsized = min(listing(path, "unsized"))
    behind = min(listing(path, "behind"))
    lines = header(path)
    places = {start: 1, start + 3: 2, start + 9: 4, start + 10: 8, start + 14: 16, unsized + 5: 32, unsized + 11: 64, behind: 128,
              0x7ffffffff000: 256, 2 ** 64 - 1: 512}
    lines += [f"sample {number} 0 0 {WHOLE} {weight} {address:#x}@{path}" for number, (address, weight) in enumerate(places.items())]
    profile = make(folder, [*lines, "end 100"])
    found = {f["name"]: f for f in annotate(profile, "/^/")}
    same(weights_of(found["sized"]["instruction"]), {start: 7, start + 10: 8})
    assert [int(i["address"], 16) for i in found["unsized"]["instruction"]][:3] == [unsized, unsized + 10, unsized + 11]
    same(weights_of(found["unsized"]["instruction"]), {unsized: 32, unsized + 11: 64})
    same((found["behind"]["instruction"], found["behind"]["elsewhere"]), ([], 128))
    same([code["reason"] for code in found["behind"]["code"]], ["the function is larger than 4 MiB"])
    same(sum(f["self"] for f in found.values()), sum(places.values()))
    same(found[None]["elsewhere"], found[None]["self"])
    same(found[None]["reason"], "no symbol says where the function begins")
    text_of(profile, "/^/")


def large(folder, n, times):
    """A program whose function big has @n instructions, of 8 bytes each, and a profile with samples at some thousand of them."""
    text = f"void big(void) {{ __asm__ volatile(\".rept {n}\\n movl $1, -128(%rsp)\\n .endr\"); }}\nint main(void) {{ big(); return 0; }}"
    path = build_text(os.path.join(folder, f"large{n}"), text, "-Wl,--build-id")
    (first, size) = next((int(line.split()[1], 16), int(line.split()[2], 0)) for line in run("readelf", "-sW", path).splitlines()
                         if line.endswith(" big"))
    lines = header(path)
    for number in range(1000):
        lines += [f"sample {number} 0 0 {WHOLE} 3 {first + 1 + size * number // 1001:#x}@{path}", f"times {times}"]
    return make(folder, [*lines, "end 100000000"], name=f"profile{n}")


@test("a function of 1 MB with 1,000,000 samples; a small budget has none; twice the code takes twice the work")
def large_function(folder):
    program()
    profile = large(folder, 131072, 999)
    (found,) = annotate(profile, "big")
    same(sum(i["self"] for i in found["instruction"]), 3000000)
    assert len(found["instruction"]) > 131072
    # Memory for less than that is not exceeded.
    (found,) = annotate(profile, "big", "--memory", "100M")
    same(([code["reason"] for code in found["code"]], found["instruction"], found["elsewhere"]),
         (["its instructions do not fit the memory budget"], [], 3000000))
    counted = [instructions([FATHOM, "report", "--no-cache", "--annotate", "big", large(folder, n, 9)]) for n in (4096, 8192)]
    assert counted[1] < 2.3 * counted[0], counted


@test("a loop in a recorded program: its line has the samples, by the instructions that objdump has for it")
def recorded(folder):
    path = program()
    record(folder, path, "60000000", options=("--no-off-cpu",))
    profile = os.path.join(folder, "profile")
    (spin,) = annotate(profile, "spin")
    with open(SOURCE, encoding="utf-8") as f:
        (hot,) = (number for number, line in enumerate(f, 1) if "/* hot */" in line)
    assert spin["self_samples"] > 20, spin["self_samples"]
    same(sum(i["self"] for i in spin["instruction"]), spin["self"])
    hot_line = next(line for line in spin["source"] if line["line"] == hot)
    by_line = collections.Counter()
    for i in spin["instruction"]:
        by_line[chains(path, "spin")[int(i["address"], 16)][-1][2]] += i["self"]
    same(hot_line["self"], by_line[hot])
    assert hot_line["self"] > spin["self"] / 2, by_line
    (row,) = (row for row in report(profile)["row"] if row["name"] == "spin")
    same(row["self"], spin["self"])


@test("what is wrong, and what helps: no such function, other forms, options without it")
def wrong(folder):
    profile = make(folder, ["thread 7 7 demo", f"sample 1 0 0 {WHOLE} 5 work@/bin/demo", "end 10"])

    def says(status, *words):
        done = execute(FATHOM, "report", *words, profile, status=status)
        same(done.stdout, "")
        return done.stderr
    same(says(1, "--annotate", "nothing"), "fathom: nothing: it has no function of that name ('fathom report' lists its functions)\n")
    assert "no samples" in says(1, "--annotate", "work", "--from", "1s")
    assert "go with --annotate only" in says(2, "--hot-first")
    assert "neither --diff nor --export" in says(2, "--annotate", "work", "--export", "collapsed")
    assert "without --by" in says(2, "--annotate", "work", "--by", "line")
    many = make(folder, ["thread 7 7 demo", *(f"sample {i} 0 0 {WHOLE} {i + 1} f{i}@/bin/demo" for i in range(50)), "end 100"])
    same([f["name"] for f in annotate(many, "/^f/", "--top", "3")], ["f49", "f48", "f47"])
    assert text_of(many, "/^f/").endswith("\n[30 other functions: see --top]\n")


if __name__ == "__main__":
    sys.exit(SUITE.run())
