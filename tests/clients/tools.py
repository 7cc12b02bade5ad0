# SPDX-License-Identifier: MIT
"""What the tests of clients share: building programs, and the two symbolizers side by side."""
import contextlib
import os
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import ask  # noqa: E402
import tap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
FOLDER = tempfile.mkdtemp(prefix="fathom-clients-")
REAL = shutil.which("llvm-symbolizer")


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed")


def linked(folder, name, program):
    """A link called @name to @program; its path."""
    folder = os.path.join(FOLDER, folder)
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, name)
    # Tests of several threads want the same.
    with contextlib.suppress(FileExistsError):
        os.symlink(program, link)
    return link


def ours(name="llvm-symbolizer"):
    """fathom by the name that clients look for."""
    return linked("ours", name, os.path.abspath(ask.FATHOM))


def theirs(name="llvm-symbolizer"):
    """The real tool by the same name, so that their messages are the same, too."""
    need("llvm-symbolizer")
    return linked("theirs", name, REAL)


OURS = ours()


def environment(**more):
    """The environment without what would change the tools' answers or, of Perl, their order."""
    kept = {k: v for k, v in os.environ.items()
            if not k.endswith("_OPTIONS") and k not in ("LLVM_SYMBOLIZER_OPTS", "DEBUGINFOD_URLS")}
    return {**kept, "LC_ALL": "C", "PERL_HASH_SEED": "0", **more}


def build(name, *steps):
    """Runs @steps, lists of words, in a new folder with all sources; its path."""
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder)
    for source in os.listdir(PROGRAMS):
        shutil.copy(os.path.join(PROGRAMS, source), folder)
    for step in steps:
        need(step[0])
        ask.run(*step, cwd=folder)
    return folder


_once = threading.Lock()
_built = {}


def build_once(name, *steps):
    """The same for several tests: the first one builds."""
    with _once:
        if name not in _built:
            _built[name] = build(name, *steps)
        return _built[name]


def run(tool, arguments, text=b"", cwd=None, **more):
    """What @tool prints and complains, and its status. It is called by its short name."""
    done = ask.execute(os.path.basename(tool), *arguments, text=False, executable=tool, input=text, cwd=cwd,
                       env=environment(**more))
    return done.stdout, done.stderr, done.returncode


def first_difference(real, own):
    """Where two texts part, for people."""
    real, own = real.splitlines(), own.splitlines()
    for i in range(max(len(real), len(own))):
        pair = [lines[i] if i < len(lines) else b"(nothing)" for lines in (real, own)]
        if pair[0] != pair[1]:
            return f"line {i + 1}\nreal {pair[0][:400]!r}\nours {pair[1][:400]!r}"
    return "ends of lines only"
