# SPDX-License-Identifier: MIT
"""Every fixture of the tests, each of its files damaged in turn: what is asked, and which lies are told."""
import collections
import contextlib
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "forms")]

import elfread  # noqa: E402
import lies  # noqa: E402

BUILD = os.environ["BUILD"]
LIAR = os.path.join(BUILD, "tests", "liar")
WRAPPER = os.environ.get("WRAPPER", "").split()
QUESTIONS = 24
MOST_SECTIONS = 200
TIMEOUT = 900
# Split debug files, packages, debug files beside a program, what several of them share.
SATELLITES = (".dwo", ".dwp", ".debug", ".sup", ".alt", "common")
CHECKED = (".gz", ".xz", ".zst", ".lz4")


class Job:
    """One file that is damaged, @path, while @target is asked."""

    def __init__(self, name, target, path, questions, lines):
        self.name, self.target, self.path, self.questions, self.lines = name, target, path, questions, lines

    def run(self, number=None, verbose=False):
        """(status, what liar printed)."""
        text = "\n".join([*self.questions, *lies.chosen(self.lines, number, self.name), ""])
        command = [*WRAPPER, LIAR, *(["-v"] if verbose else []), str(self.target), self.path]
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", timeout=TIMEOUT,
                                  check=False)
        except subprocess.TimeoutExpired:
            return 1, f"# no end after {TIMEOUT} s"
        return done.returncode, done.stdout + "".join(f"# {line}\n" for line in done.stderr.splitlines()[:20])


def spread(found, n):
    """Up to @n of them, from all over."""
    found = list(found)
    return found if len(found) <= n else [found[i * len(found) // n] for i in range(n)]


def questions(path):
    """Questions about the code of an ELF file, and its symbols where they start."""
    elf = elfread.ElfFile(path)
    relocatable = elf.type == elfread.ET_REL
    symbols = elf.symbols() + elf.symbols(elfread.SHT_DYNSYM)
    of_section = collections.defaultdict(list)
    for x in symbols:
        of_section[x.section].append(x)
    numbers = {id(s): i for i, s in enumerate(elf.sections)}
    places = {}
    for s, low, high in spread(elf.code(), MOST_SECTIONS):
        base = 0 if relocatable else low
        if " " in s.name:
            continue
        inside = [x for x in of_section[numbers[id(s)]] if base <= x.value < base + high - low]
        asked = {base, base + (high - low) // 2, base + high - low - 1}
        for x in spread(sorted(inside, key=lambda x: (x.value, x.name)), QUESTIONS):
            asked |= {x.value, x.value + x.size // 2, x.value + max(x.size, 1) - 1}
        places |= {f"asm {s.name} {a:x}" if relocatable else f"ask {a:x}": None for a in sorted(asked)}
    return spread(places, QUESTIONS) + lies.aliases(symbols)


def of_file(name, target, path, asked=None):
    """The job for one file: an ELF file, or one that is compressed."""
    asked = questions(target) if asked is None else asked
    if not lies.is_elf(path):
        lines = lies.of_stream(path)
    else:
        lines = lies.of_elf(path)
    return Job(name, target, path, asked, lies.untold(lines) if "folded" in name else lines)


def of_folder(name, folder):
    """Jobs for all files in a folder that a test has built."""
    paths = [p for p in sorted(glob.glob(os.path.join(folder, "**"), recursive=True))
             if os.path.isfile(p) and not os.path.islink(p)]
    elves = [p for p in paths if lies.is_elf(p)]
    for path in elves:
        yield of_file(f"{name}/{os.path.relpath(path, folder)}", path, path)
    mains = [p for p in elves if elfread.ElfFile(p).code() and not p.endswith((".o", *SATELLITES))]
    for path in paths:
        if path.endswith(SATELLITES) and path in elves:
            for main in mains[:4]:
                yield of_file(f"{name}/{os.path.relpath(path, folder)} of {os.path.basename(main)}", main, path)
        elif path.endswith(CHECKED):
            plain = os.path.splitext(path)[0]
            if os.path.exists(plain):
                yield of_file(f"{name}/{os.path.relpath(path, folder)}", path, path, questions(plain))


@contextlib.contextmanager
def spoiled(folder):
    """While its files are damaged the folder is not one that is taken for built; then it is as it was."""
    done, saved = os.path.join(folder, ".done"), folder + ".whole"
    shutil.copytree(folder, saved, symlinks=True)
    os.unlink(done)
    try:
        yield
    finally:
        for root, _, names in os.walk(saved):
            for name in names:
                path = os.path.join(root, name)
                to = os.path.join(folder, os.path.relpath(path, saved))
                if not os.path.islink(path) and (not os.path.exists(to) or _read(to) != _read(path)):
                    shutil.copy2(path, to)
        shutil.rmtree(saved)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def fixtures():
    """(name, folder) of each cell that the suite "fixtures" has built."""
    for folder in sorted(glob.glob(os.path.join(BUILD, "fixtures", "*-" + "[0-9a-f]" * 16))):
        if os.path.exists(os.path.join(folder, ".done")):
            yield os.path.basename(folder)[:-17], folder


def forms():
    """The cases of the suite "forms"."""
    import case  # noqa: E402, PLC0415
    for module in glob.glob(os.path.join(HERE, "..", "forms", "cases_*.py")):
        __import__(os.path.basename(module)[:-3])
    return case.CASES


def of_form(case, folder):
    """Jobs for the files of one case."""
    import case as cases  # noqa: E402, PLC0415
    built = case.build()
    cases._write(built, folder)
    main = os.path.join(folder, built.name)
    asked = [f"ask {a:x}" for a in built.want if isinstance(a, int)]
    if lies.is_elf(main):
        asked += lies.aliases(elfread.ElfFile(main).symbols())
    yield of_file(f"{case.name}", main, main, asked)
    for name in built.files:
        path = os.path.join(folder, name)
        if lies.is_elf(path):
            yield of_file(f"{case.name}, {name}", main, path, asked)
