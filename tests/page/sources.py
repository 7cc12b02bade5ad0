# SPDX-License-Identifier: MIT
"""Source lines and instructions in pages, beside fathom report --annotate and files that are known. run.py runs these."""
import os

from annotated import FILTERS, annotate, header, listing, program, random_lines, weights_of
from ask import FATHOM, execute
from building import build_text
from made_profile import make, same
from page_file import ask, read, write
from suite import test

WHOLE = 1
# By function: what each line and instruction weighs, without those of no weight, and why something is missing.
OF_ALL = """const model = decode(bytes), found = {};
model.sources.fn.forEach((fn, number) => {
    if (given.only && model.functions.name[fn] !== given.only) return;
    const side = model.sources.side[number], view = { ...defaultView(model), ...given.view, fn };
    const rows = weighSource(model, view, side, number), { address, text, head } = model.code;
    found[model.functions.name[fn] + "AB"[side]] = {
        why: model.sources.why[number], kind: model.functions.kind[fn],
        lines: rows.map(({ file, line, text, weight }) => [file, line, text, weight]),
        code: rows.flatMap((row) => row.code.map(({ at, weight }) => [address[at], text[at], row.line, weight, head[at]])) };
});
return found;"""


def profile_of(folder, path, weights, name="profile"):
    """A profile of the program @path with a sample at each address of @weights."""
    lines = [f"sample {n} 0 0 {WHOLE} {weight} {address:#x}@{path}" for n, (address, weight) in enumerate(weights.items())]
    return make(folder, [*header(path), *lines, "end 100000"], name)


def sources_of(path, only=None, **view):
    return ask(path, OF_ALL, {"view": view, "only": only})


def lines_of(found):
    return {(file, line): weight for file, line, _, weight in found["lines"] if weight}


def code_of(found):
    return {address: weight for address, _, _, weight, _ in found["code"] if weight}


def annotated_lines(function):
    """The same of a function that is annotated, with what has no line."""
    found = {(line["file"], line["line"]): line["self"] + line["inlined"] for line in function["source"]
             if not line["inlined_function"] and line["self"] + line["inlined"]}
    return found | ({("", 0): function["no_line"]} if function["no_line"] else {})


@test("source: lines and instructions of each function weigh what the annotation says, with filters, of ranges and threads")
def beside_annotation(folder):
    path = program()
    for seed in range(2):
        lines = list(random_lines(path, seed))
        profile = make(folder, lines)
        for words in FILTERS:
            page = write(folder, *words, profile)
            time = words[words.index("--time") + 1] if "--time" in words else "cpu"
            of_page = sources_of(page, time=time)
            checked = 0
            for function in annotate(profile, "/^/", *words, status=None):
                found = of_page.get(function["name"] + "A")
                if not function["self"] or not found or found["kind"] != 1:
                    continue
                checked += 1
                if "--names-only" not in words:
                    same(lines_of(found), annotated_lines(function))
                if time == "cpu":
                    same(code_of(found), weights_of(function["instruction"]))
            assert checked or time != "cpu" or "--under" in words, words
        page = write(folder, profile)
        for begin, end in ((0, 50), (20, 90), (117, 119)):
            of_page = sources_of(page, **{"from": begin * 1000000, "to": end * 1000000})
            for function in annotate(profile, "/^/", "--from", f"{begin}ms", "--to", f"{end}ms", status=None):
                if function["self"] and function["name"] + "A" in of_page:
                    found = of_page[function["name"] + "A"]
                    same(lines_of(found), annotated_lines(function))
                    same(code_of(found), weights_of(function["instruction"]))


@test("source: the text of each line is the file's, only lines around those with samples are there, inlined code has headings")
def texts(folder):
    path = program()
    with open(path + ".c", encoding="utf-8") as f:
        file = f.read().split("\n")
    hot = next(number for number, text in enumerate(file, 1) if "hot" in text and "sum" not in text and "x * 3" in text)
    addresses = list(listing(path, "spin"))
    profile = profile_of(folder, path, dict.fromkeys(addresses, 5))
    found = sources_of(write(folder, profile))["spinA"]
    for name, line, text, _ in found["lines"]:
        same((name, text), (path + ".c", file[line - 1].replace("\t", "        ")))
    assert hot in [line for _, line, _, weight in found["lines"] if weight]
    # objdump leaves the suffixes of most instructions out.
    assert all(text.startswith(listing(path, "spin")[address].split()[0]) for address, text, *_ in found["code"]), found["code"]
    same(sorted(address for address, *_ in found["code"]), addresses)
    same(found["why"], "")
    profile = profile_of(folder, path, dict.fromkeys(listing(path, "work"), 5))
    division = next(address for address, text in listing(path, "work").items() if text.startswith("div"))
    one = profile_of(folder, path, {division: 5}, "one")
    middle = next(number for number, text in enumerate(file, 1) if "i / (sum" in text)
    same([line for _, line, *_ in sources_of(write(folder, one))["workA"]["lines"]], list(range(middle - 5, middle + 6)))
    found = sources_of(write(folder, profile))
    heads = {head for *_, head in found["workA"]["code"]}
    product = next(number for number, text in enumerate(file, 1) if "0x5bd1e995" in text)
    assert f"mix (hot_lines.c:{product})  x *= 0x5bd1e995;" in heads and "" in heads, heads
    assert all(head.startswith("inlined into work") for *_, head in found["mixA"]["code"]), found["mixA"]


@test("source: what is not there says why: no file, another build, --no-source, light functions; options elsewhere are refused")
def reasons(folder):
    path = program()
    gone = os.path.join(folder, "gone")
    address = next(iter(listing(path, "spin")))
    samples = [f"sample 1 0 0 {WHOLE} 990 {address:#x}@{path}", f"sample 2 0 0 {WHOLE} 4 light@/bin/x!/src/light.c:3",
               f"sample 3 0 0 {WHOLE} 6 other@/bin/x!/src/other.c:7", "end 9"]
    found = sources_of(write(folder, make(folder, header(path) + samples)))
    same(sorted(found), ["otherA", "spinA"])
    same(lines_of(found["otherA"]), {("/src/other.c", 7): 6})
    assert "other.c: " in found["otherA"]["why"], found["otherA"]
    execute("cp", path, gone, status=0)
    moved = make(folder, header(gone) + [line.replace(path, gone) for line in samples], "moved")
    same(sources_of(write(folder, moved))["spinA"]["why"], "")
    build_text(gone, "int main(void) { return 0; }")
    # Names that are not known, too, are one function.
    (other,) = (one for name, one in sources_of(write(folder, moved)).items() if name not in ("otherA",))
    assert "another build" in other["why"], other
    os.remove(gone)
    (other,) = (one for name, one in sources_of(write(folder, moved)).items() if name not in ("otherA",))
    assert "not there" in other["why"], other
    fact = "return decode(bytes).facts.map((map) => map.get('source'));"
    page = write(folder, "--no-source", make(folder, header(path) + samples))
    same((sources_of(page), ask(page, fact)), ({}, ["No source texts and instructions: they were not asked for."] + [None]))
    assert "0.5 % of the weight on a processor or more." in ask(write(folder, make(folder, header(path) + samples)), fact)[0]
    to = os.path.join(folder, "x.html")
    for words, part in ((("--no-source",), "a page only"), (("--intel",), "or a page"), (("--source-dir", folder), "or a page"),
                        (("-o", to, "--no-source", "--intel"), "neither"), (("-o", to, "--hot-first"), "--annotate only")):
        assert part in execute(FATHOM, "report", *words, moved, status=2).stderr, words
    intel = sources_of(write(folder, "--intel", make(folder, header(path) + samples)))["spinA"]
    assert intel["code"] and "%" not in "".join(text for _, text, *_ in intel["code"]), intel


HOSTILE_LINES = ("/* </script><script>alert(1)</script> <img src=x onerror=alert(1)> */",
                 "/* \u202e\u05e9\u05dc\u05d5\u05dd \u2066 */",
                 "/* " + "long " * 2000 + "*/",
                 "\tx += y;\t/* tab \x1b[31m \x07 */", "/* \udcff\udcfe */", "\t" * 2000 + ";")


def hostile_program(folder, *more):
    """A program whose lines would be markup, or cannot be read; and a profile of it."""
    source, path = os.path.join(folder, "hostile.c"), os.path.join(folder, "hostile")
    text = "\n".join(("int main(int x, char **v)", "{", "\tvolatile int y = x;", "\t(void)v;", *HOSTILE_LINES, *more,
                      "\ty = x;\r", "\treturn y;", "}", ""))
    with open(source, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write(text)
    execute("gcc", "-g", "-O0", "-w", "-o", path, source, status=0)
    weights = {address: n + 1 for n, address in enumerate(listing(path, "main"))}
    return source, profile_of(folder, path, weights, "hostile.profile")


@test("source: lines that would be markup, hidden, not UTF-8, of 10 KB or with NUL are text, cut to what a page shows")
def hostile_lines(folder):
    source, profile = hostile_program(folder)
    page = write(folder, profile)
    found = sources_of(page)["mainA"]
    with open(source, encoding="utf-8", errors="replace", newline="") as f:
        file = f.read().split("\n")
    texts_ = {line: text for _, line, text, _ in found["lines"]}
    assert set(range(5, 5 + len(HOSTILE_LINES))) <= set(texts_), texts_
    for line, text in texts_.items():
        expected = ""
        for c in file[line - 1].removesuffix("\r")[:512]:
            expected += " " * (8 - len(expected) % 8) if c == "\t" else c
        same(text, expected + ("…" if len(file[line - 1]) > 512 else ""))
    html = read(page)
    same((html.count("<script"), html.count("alert(1)")), (2, 0))
    # A file with NUL is no text.
    source, profile = hostile_program(folder, "/* a\x00b */")
    found = sources_of(write(folder, profile))["mainA"]
    same((found["why"], {text for _, _, text, _ in found["lines"]}), ("hostile.c: is not a text", {""}))


def assembled(name, body):
    lines = (f"\t.globl {name}", f"\t.type {name}, @function", f"{name}:", *body, "\tret", f"\t.size {name}, . - {name}", "")
    return "\n".join(lines)


@test("source: a function that is too large for a page is left out, and said to be; a page of many functions stays small")
def bounded(folder):
    functions = [assembled(f"f{n}", ["\t.rept 40", f"\taddq $0x{n + 1:x}, %rax", "\tnop", "\t.endr"]) for n in range(150)]
    # All of it is one line.
    large = assembled("large", ["\t.loc 1 7", *(f"\taddq $0x{n:x}, %rax" for n in range(70000))])
    end = '\t.globl main\nmain:\n\tret\n\t.section .note.GNU-stack,"",@progbits\n'
    path = os.path.join(folder, "made")
    build_text(path, '\t.text\n\t.file 1 "large.c"\n' + "".join(functions) + large + end, language="assembler", flags=())
    symbols = (line.split() for line in execute("nm", path, status=0).stdout.splitlines() if " T " in line)
    begin = {name: int(value, 16) for value, _, name in symbols}
    lines = [*header(path), f"sample 0 0 0 {WHOLE} 2000 {begin['large']:#x}@{path}"]
    lines += [f"sample {number} 0 0 {WHOLE} 7 {begin[f'f{number % 150}'] + number // 150 * 6:#x}@{path}"
              for number in range(1, 1500)]
    profile = make(folder, [*lines, "end 100000"])
    page = write(folder, profile)
    found = sources_of(page)
    assert "largeA" not in found and len(found) == 150, sorted(found)
    fact = ask(page, "return decode(bytes).facts[0].get('source');")
    assert "but for 1: they are too many, or too large" in fact, fact
    without = write(folder, "--no-source", profile, name="without.html")
    assert os.path.getsize(page) - os.path.getsize(without) < (2 << 20) * 4 / 3 + 100000


@test("source: two profiles have those of each, of their own builds")
def two_builds(folder):
    path, other = program(), os.path.join(folder, "hot_lines")
    execute("gcc", "-g", "-O1", "-o", other, path + ".c", status=0)
    profiles, expected = [], []
    for number, file in enumerate((path, other)):
        weights = {address: 10 * number + n + 1 for n, address in enumerate(listing(file, "spin"))}
        profiles.append(profile_of(folder, file, weights, f"p{number}"))
        expected.append(weights)
    found = sources_of(write(folder, "--diff", *profiles))
    same([code_of(found["spin" + side]) for side in "AB"], expected)
