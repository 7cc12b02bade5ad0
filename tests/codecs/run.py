#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "codecs": libfathom.so opens each codec when it meets the first bytes that it reads, and says what it cannot read without.
What a process has loaded is asked of its loader, answers are known from the source."""
import gzip
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from counting import is_instrumented  # noqa: E402

TOP = os.path.join(HERE, "..", "..")
LIBRARY = os.path.join(os.environ["BUILD"], "src", "libfathom.so")
SUITE = tap.Suite("codecs", only_root="enter another root directory")
test = SUITE.test
# Of SOURCE: the function, its file, and the line where it begins.
SOURCE = "\n\n\nint twice(int x)\n{\n\treturn 2 * x;\n}\n\nint main(void)\n{\n\treturn twice(3);\n}\n" + \
    "".join(f"int other_{i}(int argument_{i})\n{{\n\treturn argument_{i} + {i};\n}}\n" for i in range(100))
NAME, LINE = "twice", 5
ANSWER = f"{NAME} one.c:{LINE} reason 0"
# The library that reads each kind: its name, its soname.
SONAMES = {"libdeflate": "libdeflate.so.0", "libz": "libz.so.1", "libzstd": "libzstd.so.1", "liblzma": "liblzma.so.5", "liblz4": "liblz4.so.1"}
SECTIONS = {"zlib": "libdeflate", "zstd": "libzstd"}
FILES = {"gz": "libz", "xz": "liblzma", "zst": "libzstd", "lz4": "liblz4"}
UNSUPPORTED = 8


def need_opened():
    """Builds for another machine or with a sanitizer, and those that have codecs inside, prove nothing here."""
    if os.environ.get("WRAPPER"):
        raise tap.Skip("the programs of this suite run by themselves")
    if is_instrumented(FATHOM):
        raise tap.Skip("the programs of this suite are not instrumented, as the library is")


def library_of(name):
    """The file of a codec on this machine."""
    path = run("gcc", f"-print-file-name={SONAMES[name]}").strip()
    if not os.path.isabs(path):
        raise tap.Skip(f"{SONAMES[name]} is not installed")
    return os.path.realpath(path)


def asks(folder):
    need_opened()
    path = os.path.join(folder, "asks")
    run("gcc", "-O1", "-g", "-D_GNU_SOURCE", "-I", os.path.join(TOP, "include"), "-o", path, os.path.join(HERE, "asks.c"), LIBRARY,
        f"-Wl,-rpath,{os.path.dirname(LIBRARY)}", "-ldl", "-lpthread")
    return path


def compressed(path):
    """The sections that readelf calls compressed: small ones stay as they are."""
    return re.findall(r"\] (\.debug_\w+) .* \w*C\w* +\d+ +\d+ +\d+$", run("readelf", "-SW", path), re.M)


def programs(folder):
    """{kind: path} of one program: as it is, with sections of each kind, with MiniDebugInfo alone, and as compressed files."""
    made = {kind: os.path.join(folder, kind) for kind in ["plain", *SECTIONS, "mini"]}
    with open(os.path.join(folder, "one.c"), "w", encoding="utf-8") as f:
        f.write(SOURCE)
    run("gcc", "-g", "-O0", "-o", made["plain"], "one.c", cwd=folder)
    for kind in SECTIONS:
        run("objcopy", f"--compress-debug-sections={kind}", made["plain"], made[kind])
        assert {".debug_info", ".debug_str"} <= set(compressed(made[kind])), kind
    for kind, (tool, *options) in {"gz": ["gzip", "-c"], "xz": ["xz", "-c"], "zst": ["zstd", "-q", "-c"], "lz4": ["lz4", "-q", "-c"]}.items():
        made[kind] = f"{made['plain']}.{kind}"
        with open(made[kind], "wb") as f:
            subprocess.run([tool, *options, made["plain"]], stdout=f, check=True)
    symbols = os.path.join(folder, "symbols")
    run("objcopy", "--only-keep-debug", "--remove-section=.debug*", made["plain"], symbols)
    run("xz", "-k", symbols)
    run("objcopy", "--strip-all", "--add-section", f".gnu_debugdata={symbols}.xz", made["plain"], made["mini"])
    return made


def told(*command, **options):
    """The lines that a run of asks prints."""
    done = execute(*command, status=0, **options)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def in_root(folder, program, *codecs):
    """A root directory with the program, libfathom, the C library and these codecs, and nothing else. Returns its path."""
    root = os.path.join(folder, "root")
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(os.path.join(root, "lib"))
    os.makedirs(os.path.join(root, "lib64"))
    # What a codec needs itself is there with it, such as libxxhash for liblz4 of Debian 13.
    needed = {soname: path for file in (program, *map(library_of, codecs)) for soname, path in re.findall(r"(\S+) => (/\S+)", run("ldd", file))}
    loader = re.search(r"^\s*(/\S*/ld-\S+)", run("ldd", program), re.M)[1]
    os.makedirs(root + os.path.dirname(loader), exist_ok=True)
    shutil.copy(loader, root + loader)
    for soname, path in needed.items():
        shutil.copy(path, os.path.join(root, "lib", soname))
    for name in codecs:
        shutil.copy(library_of(name), os.path.join(root, "lib", SONAMES[name]))
    shutil.copy(program, os.path.join(root, "asks"))
    return root


def asked_in(root, made, *words):
    """What the program says in that root directory, to which the programs are copied."""
    for kind, path in made.items():
        shutil.copy(path, os.path.join(root, os.path.basename(path)))
        assert kind
    return told("chroot", root, "/asks", *words)


@test("libfathom.so needs the C library and the loader alone")
def needed_libraries(_):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", LIBRARY)))
    assert {name.split(".so")[0] for name in needed} <= {"libc", "ld-linux-x86-64", "ld-linux-aarch64", "ld-linux", "libm", "ld-musl-x86_64"}, needed
    # The names by which it opens others: by no path.
    names = {n for n in re.findall(r"[^\s\"']*\blib(?:z|zstd|lzma|lz4|deflate)\.so\S*", run("strings", LIBRARY)) if "," not in n}
    assert names == set(SONAMES.values()), names


@test("who asks for names only has no codec loaded; who asks for lines has that of the section alone, and the line")
def sections(folder):
    program, made = asks(folder), programs(folder)
    lines = told(program, "codecs", "names", made["plain"], NAME, "lines", made["plain"], NAME, "codecs")
    assert lines == ["codecs:", f"{NAME} ??:0 reason 0", ANSWER, "codecs:"], lines
    for kind, codec in SECTIONS.items():
        library_of(codec)
        lines = told(program, "names", made[kind], NAME, "codecs", "lines", made[kind], NAME, "codecs")
        assert lines == [f"{NAME} ??:0 reason 0", "codecs:", ANSWER, f"codecs: {codec}"], (kind, lines)


@test("a compressed file of each format opens the codec of that format alone; so does MiniDebugInfo")
def files(folder):
    program, made = asks(folder), programs(folder)
    for kind, codec in FILES.items():
        library_of(codec)
        lines = told(program, "names", made["plain"], NAME, "codecs", "lines", made[kind], NAME, "codecs")
        assert lines[1:] == ["codecs:", ANSWER, f"codecs: {codec}"], (kind, lines)
    lines = told(program, "codecs", "names", made["mini"], NAME, "codecs")
    assert lines == ["codecs:", f"{NAME} ??:0 reason 0", "codecs: liblzma"], lines


def missing(soname):
    return f"compressed, and {soname}, which reads it, is not installed (not installed)"


@test("with the C library alone: names come, and each kind says which library it lacks", needs_root=True)
def alone(folder):
    program, made = asks(folder), programs(folder)
    root = in_root(folder, program)
    words = [w for kind in made for w in ("lines", f"/{os.path.basename(made[kind])}", NAME)]
    lines = asked_in(root, made, *words, "lines", "/plain", NAME, "codecs", "ready")
    for kind, soname in {"zlib": "libz.so.1", "zstd": "libzstd.so.1"}.items():
        # One note for each section; the name is there all the same.
        notes = [line for line in lines if line.startswith(f"{kind}: .debug_")]
        assert sorted(notes) == [f"{kind}: {section}: {missing(soname)}" for section in sorted(compressed(made[kind]))], lines
        at = lines.index(notes[-1])
        assert lines[at + 1] == f"{NAME} ??:0 reason {UNSUPPORTED}", lines
    for kind, codec in FILES.items():
        assert lines.count(f"plain.{kind}: : {missing(SONAMES[codec])}") == 1, (kind, lines)
    assert lines.count(f"mini: .gnu_debugdata: {missing('liblzma.so.5')}") == 1, lines
    # The others still answer.
    assert lines.count(ANSWER) == 2 and lines[-2] == "codecs:", lines
    assert {f"{n}={SONAMES[c]}" for n, c in {"zlib": "libz", "zstd": "libzstd", "lzma": "liblzma", "lz4": "liblz4"}.items()} \
        <= set(lines[-1].split()), lines


@test("with one codec there, what it reads is answered as before, and nothing else", needs_root=True)
def one_there(folder):
    program, made = asks(folder), programs(folder)
    kinds = SECTIONS | FILES
    words = [w for kind in kinds for w in ("lines", f"/{os.path.basename(made[kind])}", NAME)]
    # zlib alone reads sections, too, if more slowly.
    reads = {"libdeflate": {"zlib"}, "libz": {"zlib", "gz"}, "libzstd": {"zstd", "zst"}, "liblzma": {"xz"}, "liblz4": {"lz4"}}
    for codec, expected in reads.items():
        lines = asked_in(in_root(folder, program, codec), made, *words, "codecs")
        assert lines.count(ANSWER) == len(expected), (codec, lines)
        for kind in kinds:
            unread = any(line.startswith((f"{kind}: .debug_info: compressed", f"plain.{kind}: : compressed")) for line in lines)
            assert unread == (kind not in expected), (codec, kind, lines)
        assert lines[-1] == f"codecs: {codec}", (codec, lines)


@test("a profile for pprof is compressed where zlib is, and the same bytes as they are without it", needs_root=True)
def written(folder):
    program = asks(folder)
    stacks = os.path.join(folder, "stacks")
    with open(stacks, "w", encoding="utf-8") as f:
        f.writelines(f"shop;main;sell_{i} {i + 1}\n" for i in range(1000))
    packed, opened = told(program, "pprof", stacks, "codecs")
    assert opened == "codecs: libz", opened
    plain, opened = asked_in(in_root(folder, program), {"stacks": stacks}, "pprof", "/stacks", "codecs")
    assert opened == "codecs:" and len(packed) < len(plain) / 2, (opened, len(packed), len(plain))
    assert gzip.decompress(bytes.fromhex(packed)) == bytes.fromhex(plain)


@test("what fathom_feature_get() has opened serves in a root directory that has no library", needs_root=True)
def sandboxed(folder):
    program, made = asks(folder), programs(folder)
    for name in SONAMES:
        library_of(name)
    root = in_root(folder, program)
    shutil.rmtree(os.path.join(root, "lib"))
    kinds = [*SECTIONS, *FILES]
    for kind in kinds:
        shutil.copy(made[kind], os.path.join(root, os.path.basename(made[kind])))
    words = [w for kind in kinds for w in ("lines", f"/{os.path.basename(made[kind])}", NAME)]
    lines = told(program, "ready", "root", root, *words)
    assert lines[1:] == [ANSWER] * len(kinds), lines
    # The test can fail: without it, nothing is there.
    assert ANSWER not in told(program, "root", root, *words)


@test("sixteen threads that need the same codec at once, of one session and of others, are all answered")
def threads(folder):
    program, made = asks(folder), programs(folder)
    for kind in [*SECTIONS, *FILES]:
        for _ in range(5):
            lines = told(program, "threads", made[kind], NAME)
            assert lines == [ANSWER] * 16, (kind, lines)


@test("a constructor, which runs below the loader's lock, gets lines of compressed sections from several threads")
def constructor(folder):
    program, made = asks(folder), programs(folder)
    plugin = os.path.join(folder, "loaded.so")
    run("gcc", "-O1", "-g", "-shared", "-fPIC", "-I", os.path.join(TOP, "include"), "-o", plugin, os.path.join(HERE, "loaded.c"), LIBRARY,
        f"-Wl,-rpath,{os.path.dirname(LIBRARY)}")
    for kind, codec in SECTIONS.items():
        library_of(codec)
        lines = told(program, "codecs", "load", plugin, "codecs", env=os.environ | {"FILE": made[kind], "SYMBOL": NAME})
        assert lines == ["codecs:", f"constructor: line {LINE}", f"codecs: {codec}"], (kind, lines)


@test("a program with more rights than its user opens no codec from where the environment says", needs_root=True)
def more_rights(folder):
    program, made = asks(folder), programs(folder)
    planted = os.path.join(folder, "planted")
    os.mkdir(planted)
    run("gcc", "-shared", "-fPIC", "-x", "c", "-o", os.path.join(planted, SONAMES["libzstd"]), "-",
        input='#include <unistd.h>\n__attribute__((constructor)) static void f(void) { (void)!write(1, "planted\\n", 8); }\n')
    for path in (folder, planted):
        os.chmod(path, 0o755)
    env = os.environ | {"LD_LIBRARY_PATH": planted}
    # The test can fail: with the user's rights alone, what is planted is opened.
    assert "planted" in told(program, "lines", made["zstd"], NAME, env=env)
    os.chown(program, 0, 0)
    os.chmod(program, 0o4755)
    lines = told(program, "lines", made["zstd"], NAME, "codecs", env=env, user=65534)
    assert lines == [ANSWER, "codecs: libzstd"], lines


sys.exit(SUITE.run())
