# SPDX-License-Identifier: MIT
"""The index cache on disk: which files share an index, when one is written, and what bounds it. What an index
must not change, the answers, is compared with a run that has none."""
import json
import os
import shutil
import struct
import subprocess
import time

import tap

from ask import FATHOM, NOBODY, run
from building import section
from suite import test

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
HOUR, DAY = 3600, 86400
SOURCE = """static inline __attribute__((always_inline)) int triple(int x)
{
	return x * 3;
}
int outer(int x)
{
	return triple(x) + 1;
}
int main(void) { return outer(3); }
"""
# The offset of flags in the header of an index, and the flag of one that holds all there is.
FLAGS_OFF, COMPLETE = 24, 1


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def program(folder, name="one", *options, source=SOURCE):
    path = os.path.join(folder, name)
    write(path + ".c", source)
    run("gcc", "-g", "-O0", "-Wl,--build-id", *options, "-o", path, path + ".c")
    return path


def many_units(folder, n, *options):
    """A program of so many units with a function each."""
    sources = []
    for i in range(n):
        sources.append(os.path.join(folder, f"unit{i}.c"))
        body = "".join(f"\tx = x * {k + 3} + {i};\n" for k in range(40))
        write(sources[-1], f"int unit{i}(int x)\n{{\n{body}\treturn x;\n}}\n" + ("int main(void) { return 0; }\n" * (i == 0)))
    path = os.path.join(folder, "many")
    run("gcc", "-g", "-O0", "-Wl,--build-id", *options, "-o", path, *sources)
    return path


def addresses(path):
    """Each address of the functions of our source."""
    names = ("triple", "outer", "main", "unit")
    lines = [line.split() for line in run("nm", "-S", "--defined-only", path).splitlines()]
    starts = [(int(w[0], 16), int(w[1], 16)) for w in lines if len(w) == 4 and w[3].startswith(names)]
    assert starts, lines
    return [hex(a) for start, size in starts for a in range(start, start + size)]


def ask(path, questions, *options, status=(0, 1), **more):
    return run(FATHOM, "addr", "--json", *options, path, input="\n".join(questions) + "\n", status=status, **more)


def truth(path, questions):
    return ask(path, questions, "--no-cache")


def named(text, path, by):
    """The answers, as if they had been asked of @by."""
    return text.replace(json.dumps(path), json.dumps(by))


class Cache:
    """A directory for indexes."""

    def __init__(self, folder, name="cache"):
        self.dir = os.path.join(folder, name)
        self.option = f"--cache-dir={self.dir}"

    def all(self):
        return sorted(os.listdir(self.dir)) if os.path.isdir(self.dir) else []

    def path(self):
        """The path of the only index."""
        names = self.all()
        assert len(names) == 1 and names[0].endswith(".fidx"), names
        return os.path.join(self.dir, names[0])

    def build(self, path):
        """What cache build says of it."""
        return json.loads(run(FATHOM, "cache", "--json", self.option, "build", path))

    def total(self):
        return sum(os.path.getsize(os.path.join(self.dir, name)) for name in self.all())


def place(path, name):
    """(offset, size) of a section in the file."""
    found = section(path, name)
    return found.off, found.size


def erase_debug_info(path, times=None):
    """Overwrites it in place: without the index there are no lines. With @times the file has these afterwards."""
    with open(path, "r+b") as file:
        for name in (".debug_info", ".debug_line"):
            off, size = place(path, name)
            file.seek(off)
            file.write(b"\xff" * size)
    if times:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace_bytes(path, old, new):
    """Edits the file in place, as sed does; how many places."""
    assert len(old) == len(new)
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "r+b") as file:
        file.write(data.replace(old, new))
    return data.count(old)


def later_copy(path, to):
    """A copy as cp makes it, of another time."""
    shutil.copyfile(path, to)
    os.utime(to, (time.time() - DAY, time.time() - DAY))
    return to


def is_complete(path):
    with open(path, "rb") as file:
        return bool(struct.unpack("I", file.read(FLAGS_OFF + 4)[FLAGS_OFF:])[0] & COMPLETE)


@test("a plain copy has the index of what it is a copy of")
def _(folder):
    cache, path = Cache(folder), program(folder)
    questions = addresses(path)
    expected = truth(path, questions)
    assert cache.build(path)["bytes"] > 0
    index = os.stat(cache.path())
    copy = later_copy(path, os.path.join(folder, "copy"))
    assert cache.build(copy) == {"module": copy, "bytes": 0, "functions": 0, "complete": True}
    assert named(ask(copy, questions, cache.option), copy, path) == expected
    # What is known of the copy now is enough: its debug information is not read.
    erase_debug_info(copy, os.stat(copy))
    assert truth(copy, questions) != named(expected, path, copy)
    assert named(ask(copy, questions, cache.option), copy, path) == expected
    assert os.stat(cache.path()).st_ino == index.st_ino


@test("copies of a file and of its debug file have one index, too, and others have not")
def _(folder):
    cache, path = Cache(folder), program(folder)
    questions = addresses(path)
    debug = path + ".debug"
    run("objcopy", "--only-keep-debug", path, debug)
    run("strip", path)
    run("objcopy", f"--add-gnu-debuglink={debug}", path)
    expected = truth(path, questions)
    assert f'"{path}.c"' in expected
    cache.build(path)
    elsewhere = os.path.join(folder, "elsewhere")
    os.mkdir(elsewhere)
    copy = later_copy(path, os.path.join(elsewhere, "copy"))
    bare = truth(copy, questions)
    assert ask(copy, questions, cache.option) == bare, "answers of a debug file that is not there"
    later_copy(debug, os.path.join(elsewhere, "one.debug"))
    assert cache.build(copy)["bytes"] == 0
    assert named(ask(copy, questions, cache.option), copy, path) == expected


@test("a stripped copy has an index of its own, and takes none away")
def _(folder):
    cache, path = Cache(folder), program(folder, "one", "-rdynamic")
    questions = addresses(path)
    stripped = os.path.join(folder, "stripped")
    run("strip", "-g", "-o", stripped, path)
    bare = os.path.join(folder, "bare")
    run("strip", "-o", bare, path)
    expected = {p: truth(p, questions) for p in (path, stripped, bare)}
    assert len({named(text, p, path) for p, text in expected.items()}) == 3
    for p in expected:
        cache.build(p)
    before = {name: os.stat(os.path.join(cache.dir, name)).st_ino for name in cache.all()}
    assert len(before) == 3, before
    for _ in range(2):
        for p, text in expected.items():
            assert ask(p, questions, cache.option) == text, p
            assert cache.build(p)["bytes"] == 0
    assert before == {name: os.stat(os.path.join(cache.dir, name)).st_ino for name in cache.all()}


def edited(name, edit):
    @test(f"what was edited and kept its build-id and all sizes has its own answers: {name}")
    def _(folder):
        cache, path = Cache(folder), program(folder)
        questions = addresses(path)
        old = truth(path, questions)
        cache.build(path)
        copy = os.path.join(folder, "edited")
        shutil.copyfile(path, copy)
        edit(copy)
        assert os.path.getsize(copy) == os.path.getsize(path), "the test shows nothing"
        assert place(copy, ".note.gnu.build-id") == place(path, ".note.gnu.build-id")
        expected = truth(copy, questions)
        assert named(expected, copy, path) != old, "the test shows nothing"
        assert ask(copy, questions, cache.option) == expected
        cache.build(copy)
        assert ask(copy, questions, cache.option) == expected
        assert ask(path, questions, cache.option) == old


edited("another name in the symbol table", lambda path: run("objcopy", "--redefine-sym=outer=inner", path))
edited("another name in the debug information", lambda path: replace_bytes(path, b"triple\0", b"treble\0"))
edited("another source file", lambda path: replace_bytes(path, b"one.c\0", b"two.c\0"))
edited("no debug information", erase_debug_info)


@test("a file that was edited in place has its own answers")
def _(folder):
    cache, path = Cache(folder), program(folder)
    questions = addresses(path)
    cache.build(path)
    assert replace_bytes(path, b"triple\0", b"treble\0") > 0
    os.utime(path, (time.time() + DAY, time.time() + DAY))
    expected = truth(path, questions)
    assert '"treble"' in expected
    assert ask(path, questions, cache.option) == expected


@test("the places of one index are enough for any number of copies")
def _(folder):
    cache, path = Cache(folder), program(folder)
    questions = addresses(path)[:3]
    expected = truth(path, questions)
    cache.build(path)
    copies = [later_copy(path, os.path.join(folder, f"copy{i}")) for i in range(80)]
    assert cache.build(copies[-1])["bytes"] == 0
    for _ in range(2):
        for copy in copies:
            assert named(ask(copy, questions, cache.option), copy, path) == expected
    cache.path()


@test("where nothing can be noted in the index its answers are given all the same", needs_root=True)
def _(folder):
    cache, path = Cache(folder), program(folder)
    questions = addresses(path)
    expected = truth(path, questions)
    cache.build(path)
    copy = later_copy(path, os.path.join(folder, "copy"))
    for p in (folder, cache.dir):
        os.chmod(p, 0o755)
    os.chmod(cache.path(), 0o444)
    before = os.stat(cache.path())
    out = ask(copy, questions, cache.option, user=NOBODY)
    assert named(out, copy, path) == expected
    assert os.stat(cache.path()).st_mtime_ns == before.st_mtime_ns


@test("without a build-id a copy is another file")
def _(folder):
    cache, path = Cache(folder), program(folder, "one", "-Wl,--build-id=none")
    questions = addresses(path)
    expected = truth(path, questions)
    cache.build(path)
    copy = later_copy(path, os.path.join(folder, "copy"))
    assert cache.build(copy)["bytes"] > 0
    assert len(cache.all()) == 2
    assert named(ask(copy, questions, cache.option), copy, path) == expected


def store(*arguments):
    run(os.path.join(os.environ["BUILD"], "tests", "store"), *arguments)


def age(cache, name, seconds):
    when = time.time() - seconds
    os.utime(os.path.join(cache.dir, name), (when, when))


@test("of the indexes those used longest ago are removed until the rest is within the limit")
def _(folder):
    cache = Cache(folder)
    paths = [program(folder, f"p{i}", source=SOURCE.replace("outer", f"outer{i}")) for i in range(5)]
    names = []
    for path in paths[:4]:
        before = set(cache.all())
        cache.build(path)
        names += set(cache.all()) - before
    size = os.path.getsize(os.path.join(cache.dir, names[0]))
    for name, days in zip(names, (9, 8, 7, 6)):
        age(cache, name, days * DAY)
    # The oldest is used, and so is not the oldest any more.
    ask(paths[0], ["main"], cache.option)
    store(cache.dir, str(3 * size + size // 2), paths[4])
    left = set(cache.all())
    assert left & set(names) == {names[0], names[3]}, (names, left)
    assert len(left) == 3 and cache.total() <= 3 * size + size // 2
    # An index that is larger than the limit is not kept; the others go before it.
    store(cache.dir, "1", program(folder, "last", source=SOURCE.replace("outer", "last")))
    assert cache.all() == [], cache.all()


@test("what a writer that died has left is removed after an hour, and nothing else is")
def _(folder):
    cache, path = Cache(folder), program(folder)
    os.mkdir(cache.dir, 0o700)
    for name, seconds in (("a.fidx.AbCdEf", HOUR + 60), ("b.fidx.AbCdEf", HOUR - 60), ("other", 9 * DAY)):
        write(os.path.join(cache.dir, name), "x" * 5000)
        age(cache, name, seconds)
    cache.build(path)
    left = cache.all()
    assert [n for n in left if n.endswith(".fidx")] and len(left) == 3, left
    assert "b.fidx.AbCdEf" in left and "other" in left, left


def clocked(folder, step):
    """The environment of a run whose clock is so many milliseconds later at each look."""
    if os.environ.get("WRAPPER"):
        raise tap.Skip("what runs under a wrapper has a clock of its own")
    path = os.path.join(folder, "clock.so")
    if not os.path.exists(path):
        run("gcc", "-shared", "-fPIC", "-o", path, os.path.join(PROGRAMS, "clock.c"))
    # A sanitizer's library has to come first, which it checks.
    return os.environ | {"LD_PRELOAD": path, "STEP_MS": str(step), "ASAN_OPTIONS": "verify_asan_link_order=0"}


@test("a run that decoded for more than 100 ms stores it, and one of 100 ms does not")
def _(folder):
    cache, path = Cache(folder), program(folder)
    expected = truth(path, ["main"])
    # The clock is looked at before and after each of two steps: opening the units, and decoding.
    for step, n in ((50, 0), (51, 1)):
        out = ask(path, ["main"], "--threads=1", cache.option, env=clocked(folder, step))
        assert out == expected
        assert len(cache.all()) == n, f"{step} ms: {cache.all()}"
    assert ask(path, ["main"], cache.option) == expected


@test("what nobody asked for is decoded for a second at most, and the rest is not lost")
def _(folder):
    path = many_units(folder, 12, "-gz")
    questions = ["unit3", "unit11+4"]
    expected = truth(path, addresses(path))
    sizes = []
    for step in (60, 150):
        cache = Cache(folder, f"cache{step}")
        ask(path, questions, "--threads=1", cache.option, env=clocked(folder, step))
        # A look at the clock for each of 12 units: 0.7 s or 1.8 s.
        assert is_complete(cache.path()) == (step == 60), step
        assert ask(path, addresses(path), cache.option) == expected
        sizes.append(os.path.getsize(cache.path()))
    assert sizes[1] < sizes[0], sizes


@test("processes that store at once, and others that read meanwhile, leave every answer as it is")
def _(folder):
    cache, path = Cache(folder), many_units(folder, 30, "-gz")
    questions = addresses(path)
    expected = truth(path, questions)
    command = [FATHOM, "addr", "--json", cache.option, path]
    for turn in range(6):
        builders = [subprocess.Popen([*command, "--cache=build", f"unit{turn * 4 + i}"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for i in range(2)]
        builders += [subprocess.Popen([FATHOM, "cache", cache.option, "build", path],
                                      stdout=subprocess.DEVNULL) for _ in range(2)]
        while any(b.poll() is None for b in builders):
            assert ask(path, questions, cache.option) == expected
        assert [b.returncode for b in builders] == [0] * 4
        assert is_complete(cache.path())
        assert ask(path, questions, cache.option) == expected
        os.unlink(cache.path())


@test("on a full disk an index is whole or not there, and the answers are what they are", needs_root=True)
def _(folder):
    tap.need_mount_namespaces()
    path = many_units(folder, 30, "-gz")
    questions = addresses(path)
    expected = truth(path, questions)
    cache = Cache(folder)
    cache.build(path)
    pages = (os.path.getsize(cache.path()) + 4095) // 4096
    write(os.path.join(folder, "questions"), "\n".join(questions) + "\n")
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    write(os.path.join(folder, "script"), f"""set -u
mount -t tmpfs -o size="$1" none {disk}
{FATHOM} addr --json --cache=build --cache-dir={disk} {path} <{folder}/questions >{folder}/answers 2>{folder}/said
echo $?
find {disk} -type f -printf '%f '
echo
{FATHOM} addr --json --cache-dir={disk} {path} <{folder}/questions | cmp - {folder}/answers >&2
{FATHOM} cache --cache-dir={disk} build {path} >/dev/null 2>&1
echo $?
find {disk} -type f -printf '%f '
""")
    results = set()
    for n in (1, 2, 3, pages // 2, pages - 2, pages - 1, pages + 1):
        out = run("unshare", "-m", "sh", os.path.join(folder, "script"), f"{n * 4096}").split("\n")
        with open(os.path.join(folder, "answers"), encoding="utf-8") as file:
            assert file.read() == expected, n
        with open(os.path.join(folder, "said"), encoding="utf-8") as file:
            said = file.read()
        # A question without an answer is among them: the status is 0 or 1 whatever the disk does.
        fits = n > pages
        results.add(fits)
        assert out[0] in ("0", "1") and out[2] == ("0" if fits else "2"), (n, out)
        assert out[1].split() == out[3].split() == ([os.path.basename(cache.path())] if fits else []), (n, out)
        assert fits == (said == "") and (fits or "No space left on device" in said), (n, said)
    assert results == {True, False}
