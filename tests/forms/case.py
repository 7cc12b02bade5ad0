# SPDX-License-Identifier: MIT
"""What one test of the suite "forms" is: a file made by hand, and what its standard says of it.

The code of all files is at 0x1000 to 0x1100, of which nobody decodes anything. Expected answers are
lists of frames (function, file, line[, column[, discriminator]]), innermost first, worked out from the
standard, not from any tool's output. Where no name or line is to be found, the answer is the reason instead.
Answers that are about symbols only are dictionaries of what the command has to say in JSON.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import ask  # noqa: E402
from dwarfasm import AT, FORM, LANG, TAG, Dwarf, Line, die  # noqa: E402
from elfasm import Elf  # noqa: E402

TEXT, TEXT_END = 0x1000, 0x1100

CASES = []


class Encoding:
    def __init__(self, name, bits, big, offset_size, machine):
        self.name, self.bits, self.big = name, bits, big
        self.offset_size, self.machine = offset_size, machine

    def dwarf(self, version, suffix=""):
        return Dwarf(version, self.offset_size, self.bits // 8, self.big, suffix)

    def elf(self, dwarf=None, **options):
        elf = Elf(self.bits, self.big, self.machine, **options)
        elf.text(TEXT, TEXT_END - TEXT)
        for name, data in dwarf.finish().items() if dwarf else ():
            elf.section(name, data)
        return elf

    def line(self, version, **options):
        options.setdefault("offset_size", self.offset_size)
        return Line(version, address_size=self.bits // 8, big=self.big, **options)


# Both classes, both byte orders, both widths of DWARF offsets: machines that have them.
ENCODINGS = [Encoding("64-bit little-endian", 64, False, 4, 62),
             Encoding("32-bit big-endian", 32, True, 4, 20),
             Encoding("64-bit big-endian, 64-bit DWARF", 64, True, 8, 22),
             Encoding("32-bit little-endian, 64-bit DWARF", 32, False, 8, 3)]
PLAIN = ENCODINGS[0]


class Case:
    def __init__(self, name, build, llvm, note, reason):
        self.name, self.build, self.llvm, self.note, self.reason = name, build, llvm, note, reason


class Built:
    """@main is the file that is asked; @files stand beside it, {name: bytes}; @want holds the answer
    for each address. Few addresses are looked up in another way than many: all are asked for so many
    times at once as @times says."""

    def __init__(self, main, want, files=None, options=(), times=(1, 20), name="main"):
        self.main = main if isinstance(main, bytes) else main.build()
        self.want, self.options, self.times, self.name = want, options, times, name
        self.files = {name: f if isinstance(f, bytes) else f.build()
                      for name, f in (files or {}).items()}


def case(name, llvm=True, note=None, encodings=None, reason=None, **parameters):
    """Registers the function below as a case. @llvm: True, or in words why llvm-symbolizer is no
    witness for it. @note: what fathom has to say of the file on standard error; @reason: why
    something is missing in every answer. With @encodings the function takes an encoding, else it
    uses PLAIN; it takes @parameters, too."""
    def register(build):
        for e in encodings or [None]:
            full = f"{name}, {e.name}" if e else name
            CASES.append(Case(full, lambda e=e: build(*([e] if e else []), **parameters), llvm, note,
                              reason))
        return build
    return register


def function(low=TEXT, size=0x40, *more, name="f", children=None, label=None):
    """A subprogram with plain forms; @more are further attributes."""
    named = ((AT.name, FORM.string, name),) if name else ()
    return die(TAG.subprogram, *named, (AT.low_pc, FORM.addr, low),
               (AT.high_pc, FORM.data4 if size < 1 << 32 else FORM.data8, size), *more,
               children=children, label=label)


def lines(e, dw, *rows, end=TEXT_END, **options):
    """A line program with one sequence; without @rows, all code is line 10 of a.c."""
    program = e.line(dw.version, **options)
    program.sequence(end, *(rows or [(TEXT, 10)]))
    return dw.raw("debug_line", program.build())


def root(e, dw, *children, attrs=(), stmt_list="default", name="a.c", language=LANG.C_plus_plus,
         low=TEXT, size=TEXT_END - TEXT, tag=TAG.compile_unit, label=None):
    """The root of a unit compiled in /d, its forms as the version has them."""
    if stmt_list == "default":
        stmt_list = lines(e, dw)
    offset = FORM.sec_offset if dw.version >= 4 else \
        FORM.data8 if dw.offset_size == 8 else FORM.data4
    own = [(AT.name, FORM.string, name), (AT.language, FORM.data2, language),
           (AT.comp_dir, FORM.string, "/d")]
    if low is not None:
        # Version 3 and older know the end as an address only.
        own += [(AT.low_pc, FORM.addr, low)]
        own += [(AT.high_pc, FORM.data4, size) if dw.version >= 4 else
                (AT.high_pc, FORM.addr, low + size)]
    if stmt_list is not None:
        own += [(AT.stmt_list, offset, stmt_list)]
    return die(tag, *own, *attrs, children=list(children), label=label)


def one_function(e, dw, *attrs, want="f", unit_attrs=(), unit=None, **options):
    """A file whose only function, made of @attrs, covers 0x1000 to 0x1040 as @want."""
    base = [] if any(a[0] == AT.low_pc or a[0] == AT.ranges for a in attrs) else \
        [(AT.low_pc, FORM.addr, TEXT), (AT.high_pc, FORM.data4, 0x40) if dw.version >= 4 else
         (AT.high_pc, FORM.addr, TEXT + 0x40)]
    f = die(TAG.subprogram, *attrs, *base)
    dw.unit(root(e, dw, f, attrs=unit_attrs, **options), **(unit or {}))
    return Built(e.elf(dw), {TEXT: [(want, "/d/a.c", 10)], TEXT + 0x3F: [(want, "/d/a.c", 10)],
                             TEXT + 0x40: [(None, "/d/a.c", 10)]})


def _matches(got, want):
    """Whether an answer's frames are those wanted; what is left out does not count."""
    return len(got) == len(want) and all(g[:len(w)] == tuple(w) for g, w in zip(got, want))


def _check(who, addresses, answers, want):
    for address, answer in zip(addresses, answers):
        wanted = want[address]
        if isinstance(wanted, dict):
            got = {key: answer.record[key] for key in wanted}
            assert got == wanted, f"{who} at {address:#x}: {got}, wanted {wanted}"
        elif isinstance(wanted, str):
            assert answer.reason == wanted, f"{who} at {address:#x}: {answer}, wanted {wanted}"
        else:
            assert _matches(answer.frames, wanted), f"{who} at {address:#x}: {answer}, wanted {wanted}"


def _check_llvm(case, built, folder):
    wanted = {a: w for a, w in built.want.items() if not isinstance(w, str)}
    answers = ask.llvm(built.name, wanted, cwd=folder)
    try:
        _check("llvm-symbolizer", wanted, answers, wanted)
    except AssertionError:
        if case.llvm is True:
            raise
        return
    assert case.llvm is True, f"llvm-symbolizer agrees, though it is said not to: {case.llvm}"


def _write(built, folder):
    for name, data in {**built.files, built.name: built.main}.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


def check(case):
    """Runs one case: fathom asked in three ways, then llvm-symbolizer."""
    built = case.build()
    with tempfile.TemporaryDirectory(prefix="fathom-forms-") as folder:
        _write(built, folder)
        options = ["--no-cache", *(o.replace("@", folder) for o in built.options)]
        addresses = list(built.want)
        for times in built.times:
            answers = ask.answers(built.name, addresses * times, *options, cwd=folder)
            _check("fathom", addresses * times, answers, built.want)
        answers = ask.answers(built.name, addresses, *options, stream=False, cwd=folder)
        _check("fathom, one shot", addresses, answers, built.want)
        if case.reason:
            assert all(a.reason == case.reason for a in answers), f"{answers}, not {case.reason}"
        if case.note:
            said = ask.complaints(built.name, addresses, *options, cwd=folder)
            assert case.note in said, f"no note of '{case.note}' in: {said}"
        # Where only a part is tried, the witness was asked by the whole run.
        if case.llvm is not None and "EVERY" not in os.environ:
            _check_llvm(case, built, folder)
