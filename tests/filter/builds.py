# SPDX-License-Identifier: MIT
"""Never wrong, many times: reports of many builds of one library, whose functions are elsewhere in each, named with another build."""
import itertools
import os
import random
import re

from ask import run
from building import build_id
from built import folder_for
from formats import BIAS
from guesses import FUNCTIONS, source
from suite import names_of, need_x86, once, test

# `./dev real` asks for all 10,000 reports of 200 builds.
REPORTS = int(os.environ.get("FATHOM_REPORTS", "500"))
BUILDS = max(REPORTS // 50, 2)
OF_EACH = REPORTS // BUILDS
LEAST_FRAMES = 4


@once
def object_file():
    """The object that all builds are linked of."""
    need_x86()
    folder = folder_for("builds")
    with open(f"{folder}/tree.c", "w", encoding="ascii") as file:
        file.write(source(4))
    run("gcc", "-g", "-O1", "-w", "-fPIC", "-ffunction-sections", "-falign-functions=1", "-c", "-o", f"{folder}/tree.o", f"{folder}/tree.c")
    return f"{folder}/tree.o"


class Build:
    """A library of the same functions in an order of its own."""

    def __init__(self, number, id):
        object, self.dir = object_file(), folder_for("builds", f"{number}-{id}")
        order = [f"f{i}" for i in range(FUNCTIONS)]
        random.Random(number).shuffle(order)
        with open(f"{self.dir}/order", "w", encoding="ascii") as file:
            file.write("\n".join(order) + "\n")
        path = f"{self.dir}/libtree.so"
        run("gcc", "-shared", "-fuse-ld=lld", f"-Wl,--symbol-ordering-file={self.dir}/order", f"-Wl,--build-id={id}", "-o", path, object)
        self.id = build_id(path)
        self.returns = returns_of(path)

    def stack(self, numbers):
        """(function, return address) of frames, each called by the next one."""
        frames, callee = [], numbers.choice(sorted(self.returns))
        while len(frames) < 12 and callee in self.returns:
            address, next = numbers.choice(self.returns[callee])
            # Fewer frames than that may be explained by another build, by chance (limits.md).
            if len(frames) < LEAST_FRAMES and next not in self.returns and next != "by a pointer":
                continue
            frames.append((callee, address))
            # By a pointer anything may be called.
            callee = numbers.choice(sorted(self.returns)) if next == "by a pointer" else next
        return frames[::-1]

    def report(self, numbers, path):
        """Lines of a stack in one format, and the function of each."""
        log = []
        id = f" (BuildId: {self.id})" if self.id else ""
        format, stack = numbers.randrange(4), self.stack(numbers)
        for i, (_, stated) in enumerate(stack, 1):
            log.append((f"    #{i} {BIAS + stated - 1:#x}  ({path}+{stated - 1:#x}){id}", f"{path}(+{stated:#x}) [{BIAS + stated:#x}]",
                        f"      #{i:02} pc {stated - 1:016x}  {path}{id}", f" #{i} 0x{BIAS + stated:016x} ({path}+{stated:#x})")[format])
        return "".join(line + "\n" for line in log), [function for function, _ in stack]


def returns_of(path):
    """{function: [(address, callee)]} of all places of f0 and the like to which calls return, by objdump."""
    found, function, callee = {}, None, None
    for line in run("objdump", "-d", "--no-show-raw-insn", path).splitlines():
        if m := re.fullmatch(r"[0-9a-f]+ <(\w+)>:", line):
            function, callee = m[1], None
        elif m := re.match(r" +([0-9a-f]+):\t(\S+)(?:.*<(\w+)>)?", line):
            if callee and re.fullmatch(r"f\d+", function):
                found.setdefault(function, []).append((int(m[1], 16), callee))
            callee = (m[3] or "by a pointer") if m[2] == "call" else None
    assert len(found) == FUNCTIONS
    return found


@once
def builds(id):
    return [Build(number, id) for number in range(BUILDS)]


@test(f"refused: {BUILDS * OF_EACH} reports of {BUILDS} builds, with another build, with build-ids and without: no name of code that did not report; with their own each name")
def many(_):
    numbers, named, refused = random.Random(7), 0, 0
    for i, id in itertools.product(range(BUILDS), ("sha1", "none")):
        build, other = builds(id)[i], builds(id)[(i + 1) % BUILDS]
        # Each report of a path of its own: what one refutes is no help to the next.
        reports = [build.report(numbers, f"/gone/{k}/libtree.so") for k in range(OF_EACH)]
        log, functions = "".join(text for text, _ in reports), [name for _, names in reports for name in names]
        own = names_of(log, "--module-dir", build.dir)
        assert [name and name.partition("+")[0] for name in own] == functions, (i, id, own[:20])
        found = names_of(log, "--module-dir", other.dir)
        wrong = [(name, function) for name, function in zip(found, functions) if name and name.partition("+")[0] != function]
        assert not wrong, (i, id, wrong[:5])
        named += sum(name is not None for name in found)
        refused += found.count(None)
    print(f"# {refused} refused, {named} named")
    assert refused > 100 * named
