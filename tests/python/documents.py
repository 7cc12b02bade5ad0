# SPDX-License-Identifier: MIT
"""Types and documents."""
import os
import re

from ask import execute
from building import build
from running import Running
from suite import MODULE, PYTHON, TOP, need_module, program, python, test

TYPED = """
import array

import fathom
import numpy

with fathom.open("x") as target:
    answer: fathom.Answer = target.addr(5)
    answers: fathom.Answers = target.addr(numpy.zeros(3, numpy.uint64))
    answers = target.addr(array.array("Q"), return_addresses=b"")
    name: str | None = answers.symbol[0] or answers[0].frames[0].function
    codes: memoryview = answers.symbol.codes
    tid: int = target.stack(stop="never")[0].frames[0].pc
    died: fathom.Death | None = target.stack()[0].died
    place: str | None = died.fault.place if died and died.fault else None
    matches: list[fathom.Match] = target.find("a", "b", regex=True)[:]
with fathom.profile("x", debug_dirs=["y"]) as profile, fathom.Session().profile("z", resolve=False) as other:
    weights: memoryview = profile.samples.weight
    part: str | None = profile.samples.part[0] or profile.samples[0].part
    symbol: str | None = profile.frames(profile.samples[0].node)[0].symbol or profile.locations.symbol[5]
    report: fathom.Report = profile.report(by="line", only="a", exclude=["b"], tree="callers", of="c")
    row: fathom.ReportRow | None = report.tree[0].row
    self_weight: int = report.rows[0].self + report.sums.weight + (row.total if row else 0)
    change: float = profile.diff(other, per="count", counts=(1, 2)).rows[0].change
    jump: int | None = profile.annotate("a", intel=True, source_dirs=["b"])[0].instructions[0].jump
    profile.export("y", "pprof", time="wall")
recorded: fathom.Recorded = fathom.record("x", ["a", b"b"], seconds=0.5, event="cycles", until=lambda: True)
returncode: int | None = fathom.Session().record("x", pids=[1, 2], method="polling").returncode or recorded.returncode
with fathom.recording("x", pids=5, waits=False) as going:
    pass
result: fathom.Recorded | None = going.result
try:
    with fathom.ftrace("--log x"):
        pass
except fathom.Error as e:
    code: int = e.code
"""


def mypy(folder, text):
    path = os.path.join(folder, "typed.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    env = os.environ | {"MYPYPATH": MODULE}
    return execute(PYTHON, "-m", "mypy", "--strict", "--cache-dir", os.path.join(folder, "cache"), path, env=env, status=(0, 1)).stdout


@test("mypy accepts programs that use the module rightly, and finds each wrong use")
def _(folder):
    need_module()
    said = mypy(folder, TYPED)
    assert "Success" in said, said
    wrong = ("fathom.open(1.5)", "target.addr('main')", "target.stack(stop='sometimes')", "target.nothing()", "len(answer)",
             "answers.symbol.codes = 5", "answer.symbol.upper()", "died.fault", "fathom.Answer.address = 1", "target.find(5)",
             "profile.report(by='colour')", "profile.report(time='tea')", "profile.diff(5)", "profile.annotate(5)", "profile.export('y', 'moon')",
             "fathom.profile(5)", "report.tree[0].row.name", "profile.samples.weight = weights",
             "fathom.record('x', 5)", "fathom.record('x', ['a'], event='tea')", "fathom.recording('x', ['a'])")
    said = mypy(folder, TYPED + "\n".join(wrong) + "\n")
    first = TYPED.count("\n") + 1
    assert {int(n) for n in re.findall(r"typed\.py:(\d+): error", said)} == set(range(first, first + len(wrong))), said


@test("the stubs are what the module has: stubtest")
def _(folder):
    need_module()
    # The private files have no stubs, and are taken as their own.
    with open(os.path.join(folder, "allowed"), "w", encoding="utf-8") as f:
        f.write("fathom\\._.*\n")
    env = os.environ | {"PYTHONPATH": MODULE, "MYPYPATH": MODULE}
    done = execute(PYTHON, "-m", "mypy.stubtest", "--allowlist", "allowed", "--ignore-unused-allowlist", "fathom", env=env, cwd=folder,
                   status=(0, 1))
    assert done.returncode == 0, done.stdout


@test("each example of docs/python.md prints what it says")
def _(folder):
    build(os.path.join(folder, "crash"), os.path.join(TOP, "examples/tour/crash.c"), flags=("-g", "-O2"))
    build(os.path.join(folder, "deadlock"), os.path.join(TOP, "examples/tour/deadlock.c"), "-pthread", flags=("-O2",))
    with open(os.path.join(TOP, "docs/python.md"), encoding="utf-8") as f:
        text = f.read()
    # Examples go on where the one before them ended.
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) > 5 and all(block.startswith(">>> ") for block in blocks)
    with open(os.path.join(folder, "examples.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(blocks))
    python(folder, """
import doctest
failed, tried = doctest.testfile("examples.txt", module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
sys.exit(1 if failed or not tried else 0)
""", cwd=folder)


@test("the example names module and offset of addresses whose process has gone")
def _(folder):
    path = program(folder)
    example = os.path.join(TOP, "examples/later.py")
    env = os.environ | {"PYTHONPATH": MODULE}
    rows = os.path.join(folder, "rows")
    with Running([path]) as running:
        assert running.line() == "good day"
        pcs = python(folder, """
target = fathom.open(int(sys.argv[1]))
print(target.address("twice") + 1, *(frame.pc for frame in target.stack()[0].frames))
""", str(running.process.pid)).split()
        saved = execute(PYTHON, example, "save", str(running.process.pid), *map(hex, map(int, pcs)), env=env, status=0).stdout
    with open(rows, "w", encoding="utf-8") as f:
        f.write(saved)
    assert len(saved.splitlines()) == len(pcs) and saved.splitlines()[0].startswith(path), saved
    named = execute(PYTHON, example, "name", rows, env=env, status=0).stdout.splitlines()
    assert len(named) == len(pcs) and named[0] == f"{path}+{int(pcs[0]):#x} twice+0x1", named
    assert any(" main+0x" in line for line in named), named
