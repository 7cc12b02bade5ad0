# SPDX-License-Identifier: MIT
"""LLVM's symbolizer markup: live numbers, whose modules and mappings the log tells itself."""
import re
import shutil

import tap

from building import build_id, debug_path
from built import Numbers, sanitized, steps
from formats import BIAS, NEXT
from live import SANITIZED, sanitizer_log
from reversal import peak
from suite import MARK, added, address_of, expected, names_of, objects, test


def process(library, number=2, start=BIAS, name="libsteps.so"):
    """The elements of a process with @library, whose first mapping is at @start."""
    code = Numbers(library).code & ~0xfff
    return (f"{{{{{{module:{number}:{name}:elf:{build_id(library)}}}}}}}\n"
            f"{{{{{{mmap:{start:#x}:0x1000:load:{number}:r:0x0}}}}}}\n"
            f"{{{{{{mmap:{start + code:#x}:0xa000:load:{number}:rx:{code:#x}}}}}}}\n")


def element(tag, number, *rest):
    """An element with @number; of bt, the first of @rest stands before it."""
    before = [str(rest[0])] if tag == "bt" else []
    return "{{{" + ":".join([tag, *before, f"{number:#x}", *rest[len(before):]]) + "}}}"


def where(folder, library):
    """A debug directory that leads to @library by its build-id."""
    path = debug_path(folder, build_id(library)).removesuffix(".debug")
    shutil.copy(library, path)
    return "--debug-dir", folder


@test("markup: a frame's number is exact, a return address or lowered, as it says itself or by the call before it")
def kinds(folder):
    library = steps("usual")
    options = where(folder, library)
    next = address_of(library, NEXT)
    first, last, lowered = expected(library, next), expected(library, next, next - 1), expected(library, next - 1)
    lines = {
        element("pc", BIAS + next): ("exact", first),
        element("pc", BIAS + next, "ra"): ("return", last),
        element("bt", BIAS + next, 0): ("exact", first),
        element("bt", BIAS + next, 0, "ra"): ("return", last),
        element("bt", BIAS + next, 1): ("return", last),
        element("bt", BIAS + next, 1, "ra"): ("return", last),
        element("bt", BIAS + next, 1, "pc"): ("exact", first),
        # What sanitizers print: one less than the return address.
        element("bt", BIAS + next - 1, 1): ("lowered", lowered),
    }
    log = process(library) + "\n".join(lines) + "\n"
    names = names_of(log, *options)
    records = objects(log, *options)
    assert names[:3] == [None] * 3, names
    for line, name, record, (kind, want) in zip(lines, names[3:], records, lines.values(), strict=True):
        assert name and re.fullmatch(want, name), f"{line}\n{name}\n{want}"
        assert (record["kind"], record["base"], record["format"]) == (kind, "mapped", "markup"), record


@test("markup: several elements of a line, behind any prefix; a reset, a number used anew, and mappings over others")
def processes(folder):
    library = steps("usual")
    options = where(folder, library)
    next = address_of(library, NEXT)
    want = expected(library, next)
    line = f"[12.5] web-1 | {element('pc', BIAS + next)} from {element('pc', 2 * BIAS + next)}\n"
    one, other = process(library), process(library, start=2 * BIAS)
    gone = process(library).replace(build_id(library), "0" * 40).replace("libsteps", "gone")
    assert names_of(line, *options) == [None]
    assert re.fullmatch(want, names_of(one + line, *options)[-1])
    assert re.fullmatch(f"{want}; {want}", names_of(one + other + line, *options)[-1])
    assert re.fullmatch(want, names_of(one + "{{{reset}}}\n" + other + line, *options)[-1])
    # The later of two mappings at one place counts.
    assert names_of(one + gone + line, *options)[-1] is None
    assert re.fullmatch(want, names_of(gone + one + line, *options)[-1])
    assert names_of(one + f"{{{{{{mmap:{BIAS:#x}:0x100000:load:77:rx:0x0}}}}}}\n" + line, *options)[-1] is None
    # What one call has read counts in the next: the log is more than a batch.
    assert re.fullmatch(want, names_of(one + "x" * (5 << 20) + "\n" + line, *options)[-1])
    for broken in ("{{{", "{{{module:}}}", "{{{module:2:x:elf}}}", "{{{mmap:0x1:load}}}", "{{{bt:1}}}", "{{{pc:}}}", "{{{reset:}}}", "{{{mmap:1:2:load:9:r:0}}}"):
        assert re.fullmatch(want, names_of(one + broken + "\n" + line, *options)[-1]), broken


@test("markup: with more modules or mappings than are kept, later ones may stand in the place of earlier: no names, until a reset")
def too_many(folder):
    library = steps("usual")
    options = where(folder, library)
    line = element("pc", BIAS + address_of(library, NEXT)) + "\n"
    module = process(library).splitlines(True)[0]
    mapping = "{{{mmap:0x1000:0x1000:load:2:r:0x0}}}\n"
    for more, most in ((module, 4095), (mapping, 1022)):
        assert names_of(process(library) + more * most + line, *options)[-1]
        assert names_of(process(library) + more * (most + 1) + line, *options)[-1] is None
        assert names_of(more * (most + 9) + "{{{reset}}}\n" + process(library) + line, *options)[-1]


@test("markup: 30,000 processes, one after the other: no more than 24 MB of memory, and the last one has its names")
def many_processes(folder):
    library = steps("usual")
    options = where(folder, library)
    next = address_of(library, NEXT)
    others = "".join(f"{{{{{{reset}}}}}}\n{{{{{{module:0:{'long' * 200}{i}:elf:{i:040x}}}}}}}\n{{{{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}}}}\n" for i in range(30000))
    log = others + process(library) + element("pc", BIAS + next) + "\n"
    output, memory = peak(folder, log.encode(), *options)
    name = output.rsplit(MARK, 1)[1].decode().strip()
    # Of names alone, it would be 25 MB more.
    assert re.fullmatch(expected(library, next), name) and memory < 24 << 20, (name, memory)


@test("markup: processes line by line in turn: each number is in the modules of its own process")
def in_turn(folder):
    library = steps("usual")
    options = where(folder, library)
    next = address_of(library, NEXT)
    line, other = element("pc", BIAS + next) + "\n", element("pc", BIAS + next + 0x1000000) + "\n"
    mixed = "".join(f"web[1]: {one}\nweb[2]: {two}\n" for one, two in zip(process(library).splitlines(), process(library, start=BIAS + 0x1000000).splitlines()))
    names = names_of(mixed + f"web[1]: {line}web[2]: {line}web[2]: {other}web[1]: {other}web[2]: {{{{{{reset}}}}}}\nweb[1]: {line}web[2]: {other}", *options)
    want = expected(library, next)
    assert [name and bool(re.fullmatch(want, name)) for name in names[6:]] == [True, None, True, None, None, True, None], names
    # Of more processes than are kept, the last ones.
    many = "".join(f"web[{i}]: {part}\n" for i in range(20) for part in process(library).splitlines())
    named = [name is not None for name in names_of(many + "".join(f"web[{i}]: {line}" for i in reversed(range(20))), *options)]
    assert named[60:] == [True] * 16 + [False] * 4, named


def add_report(name):
    @test(f"markup: a report of AddressSanitizer, {name}: the names of the same report without markup")
    def _(_):
        program = sanitized(*SANITIZED[name])
        plain = sanitizer_log(program, "overflow")
        marked = sanitizer_log(program, "overflow", "symbolize=0:enable_symbolizer_markup=1")
        if "{{{mmap:" not in marked:
            raise tap.Skip("this sanitizer prints no markup")
        frames = [name for line, name in zip(plain.splitlines(), added(plain, *program.options)) if re.match(r"    #\d+ ", line)]
        found = [name for line, name in zip(marked.splitlines(), added(marked, *program.options)) if line.startswith("{{{bt:")]
        assert found == frames and sum(name is not None for name in found) >= 4, (found, frames)


for sanitizer in ("clang PIE", "clang no-PIE"):
    add_report(sanitizer)
