# SPDX-License-Identifier: MIT
"""twig, the language of examples/jit: its three builds, and what its values are, by Python."""
import functools
import os
import threading

from ask import execute, run
from building import plain

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
JIT = os.path.join(TOP, "examples", "jit")
BUILD = os.environ["BUILD"]
BUILDS = ("none", "frames", "reserved")
NEST = os.path.join(HERE, "programs", "nest.twig")
LOCK = threading.Lock()


def built():
    with LOCK:
        return _built()


@functools.lru_cache(maxsize=None)
def _built():
    """The folder with the three builds, and the libraries of programs/."""
    libraries = os.path.join(BUILD, "src")
    plain(os.path.join(libraries, "libfathom.so"))
    folder = os.path.join(BUILD, "proof")
    said = execute(os.path.join(JIT, "build"), folder, libraries, status=0)
    assert not said.stderr, said.stderr
    for compiler, name in (("gcc", "steps.c"), ("g++", "guard.cc")):
        run(compiler, "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", os.path.join(HERE, "programs", name),
            "-o", library(name, folder), "-lgcc_s")
    return folder


def library(name, folder):
    return os.path.join(folder, name.split(".")[0] + ".so")


def twig(build):
    return os.path.join(built(), f"twig-{build}")


def written(folder, text):
    path = os.path.join(folder, "program.twig")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def environment(preload="", consumers=""):
    """Without what FATHOM_JIT says outside."""
    own = {name: value for name, value in os.environ.items() if name != "FATHOM_JIT"}
    if preload:
        own["LD_PRELOAD"] = library(preload, built())
    return own | ({"FATHOM_JIT": consumers} if consumers else {})


def outcome(build, path, **options):
    """(status, lines that it printed, what it complained of)."""
    done = execute(twig(build), path, env=environment(**options))
    return done.returncode, done.stdout.splitlines(), done.stderr


def wrap(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def divide(left, right):
    """Towards zero, as the processor does."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divide,
    "%": lambda a, b: a - b * divide(a, b), "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}
NUMBERS = (0, 1, -1, 2, 7, -13, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40)


def expression(rng, variables, depth):
    """A text and its value; @variables: {name: value}."""
    kind = rng.random()
    if depth == 0 or kind < 0.1:
        if kind < 0.5:
            name = rng.choice(list(variables))
            return name, variables[name]
        number = rng.choice(NUMBERS)
        return str(number), number
    if kind < 0.2:
        text, value = expression(rng, variables, depth - 1)
        return f"(same {text})", value
    operator = rng.choice(list(OPERATORS))
    left, left_value = expression(rng, variables, depth - 1)
    right, right_value = expression(rng, variables, depth - 1)
    if operator in "/%" and not right_value:
        right, right_value = "3", 3
    return f"({operator} {left} {right})", wrap(int(OPERATORS[operator](left_value, right_value)))
