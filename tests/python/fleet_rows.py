# SPDX-License-Identifier: MIT
"""Rows of many builds: columns in, columns out, as fathom addr answers for each file."""
import json
import os
import random
import shutil

import tap

from ask import FATHOM, addr_stream, run
from building import build_id, build_text, nm
from suite import PYTHON, python, test

SOURCE = """
static volatile int sink;
static inline __attribute__((always_inline)) int leaf%d(int x) { sink = x; return x * %d + sink; }
__attribute__((noinline)) int work%d(int x) { int s = 0;
 for (int k = 0; k < x; k++)
  s += leaf%d(k);
 return s; }
int main(int n, char **v) { (void)v; return work%d(n); }
"""
# A program compares what it is given, columns of a file, with what is expected of each row.
ROWS = """
import json
import fathom.fleet
frame, expected, options = json.load(open(sys.argv[1]))
NAMES = ["function", "linkage_name", "file", "line", "inlined_into", "module_address", "source", "reason"]


def check(found, rows=None):
    for name in NAMES:
        got, wanted = list(found[name]), expected[name] if rows is None else [expected[name][row] for row in rows]
        assert got == wanted, (name, [(g, w) for g, w in zip(got, wanted) if g != w][:3])
"""


def made(folder, **options):
    """The path of a file of [columns, what is expected, options]: rows of three programs, of none, and with what is no build-id."""
    paths = [build_text(os.path.join(folder, f"prog{i}"), SOURCE.replace("%d", str(i + 3)), "-g", "-O2") for i in range(3)]
    rng, rows = random.Random(7), []
    for path in paths:
        addresses = [value + rng.randrange(40) for name, found in nm(path).items() if name.startswith(("work", "main")) for value, _ in found
                     for _ in range(20)] + [0, 1 << 63]
        for kind, more in (("exact", []), ("return", ["--return-addresses"])):
            rows += [(build_id(path), address, path, kind, answer) for address, answer in zip(addresses, addr_stream(path, addresses, *more))]
    rng.shuffle(rows)
    frame = dict(zip(("build", "at", "path", "kind"), map(list, zip(*[row[:4] for row in rows]))))
    answers = [row[4] for row in rows]
    frames = [a["frames"] or [{"function": a["symbol"], "linkage_name": a["linkage_name"], "file": None, "line": None}] for a in answers]
    expected = {name: [f[0][name] for f in frames] for name in ("function", "linkage_name", "file", "line")}
    expected |= {name: [a[name] for a in answers] for name in ("source", "reason")}
    expected["module_address"] = [a["module_address"] and int(a["module_address"], 16) for a in answers]
    expected["inlined_into"] = [[g["function"] for g in f[1:]] for f in frames]

    path = os.path.join(folder, "rows.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump([frame, expected, options], f)
    return path


CALL = 'fathom.fleet.resolve({}, build_id="build", offset="at", module="path", kind="kind", columns=NAMES, **options)'


@test("fleet: a mapping of lists, of arrays of numpy, and without numpy: each row as fathom addr answers; the frame's columns stay")
def _(folder):
    python(folder, ROWS + f"""
found = {CALL.format('frame')}
check(found)
assert {{name: found[name] for name in frame}} == frame
import numpy
check({CALL.format('frame | {"at": numpy.array(frame["at"], "uint64"), "build": numpy.array(frame["build"])}')})
sys.modules["numpy"] = None
found = {CALL.format('frame')}
assert type(found["function"]) is list
check(found)
# The same resolver each time, and another one for other options.
assert len(fathom.fleet._resolvers) == 1
fathom.fleet.resolve({{"build_id": [], "offset": []}}, names_only=True)
assert len(fathom.fleet._resolvers) == 2
""", made(folder))


@test("fleet: a DataFrame of pandas, and a part of one: a DataFrame with its own columns and index")
def _(folder):
    if os.system(f"{PYTHON} -c 'import pandas' 2>/dev/null"):
        raise tap.Skip("pandas is not installed")
    python(folder, ROWS + f"""
import pandas
whole = pandas.DataFrame(frame | {{"at": pandas.Series(frame["at"], dtype="uint64")}})
check({CALL.format('whole')})
part = whole.iloc[5::3]
found = {CALL.format('part')}
assert list(found.index) == list(part.index) and list(found.columns) == [*part.columns, *NAMES]
check(found, list(part.index))
""", made(folder))


@test("fleet: from a store without the files; a child after fork() has a resolver of its own; threads take turns")
def _(folder):
    store = os.path.join(folder, "store")
    path = made(folder, stores=[store], cache=False)
    run(FATHOM, "store", "build", store, *(os.path.join(folder, f"prog{i}") for i in range(3)))
    gone = os.path.join(folder, "gone")
    os.mkdir(gone)
    for i in range(3):
        shutil.move(os.path.join(folder, f"prog{i}"), gone)
    python(folder, ROWS + f"""
def ask():
    check({CALL.format('frame')})


ask()
pid = os.fork()
if not pid:
    ask()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
threads = [threading.Thread(target=ask) for _ in range(4)]
failed = []
threading.excepthook = failed.append
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, failed
""", path)


@test("fleet: what is no build-id, too long or nobody's, has a reason; columns of different lengths and unknown words are refused")
def _(folder):
    python(folder, """
import fathom.fleet
builds = ["00" * 20, "xyz", "ab" * 65, "", None, float("nan"), b"\\1" * 20, "../../etc/passwd", "ab\\0"]
found = fathom.fleet.resolve({"build_id": builds, "offset": list(range(len(builds)))}, cache=False)
assert all(found["function"][i] is None and found["reason"][i] for i in range(len(builds))), found
for options, what in (({"offset": "short"}, "different lengths"), ({"columns": ["name"]}, "columns is one of function"), ({"kind": "kinds"}, "kind is one of exact")):
    try:
        fathom.fleet.resolve({"build_id": builds, "offset": builds, "short": [1], "kinds": ["x"] * len(builds)} | {"offset": list(range(len(builds)))}, **options)
    except ValueError as error:
        assert what in str(error), error
        continue
    raise AssertionError(options)
import numpy
for wrong in ([-1], ["x"], [1 << 64], numpy.array([1.0]), numpy.array([-1]), numpy.array([0xffffffff81000010, None])):
    try:
        fathom.fleet.resolve({"build_id": ["ab" * 20] * len(wrong), "offset": wrong})
    except (OverflowError, TypeError):
        continue
    raise AssertionError(wrong)
try:
    fathom.fleet.resolve({"build_id": ["ab" * 20] * 2, "offset": [1, 2], "path": ["x"]}, module="path")
except ValueError:
    pass
else:
    raise AssertionError("a column is shorter")
# One path in place of a list would be a path of each of its characters.
for options in ({"stores": "/net/indexes"}, {"debug_dirs": b"/usr/lib/debug"}, {"module_dirs": "/lib"}):
    try:
        fathom.fleet.Resolver(**options)
    except TypeError as error:
        assert str(error) == "a list of paths is wanted, not one", error
        continue
    raise AssertionError(options)
# Bytes of any kind, a column of 32 bits, columns that lack values: each build is one.
resolver = fathom.fleet.Resolver(cache=False)
rows = {"build_id": [bytearray(b"\1" * 20), memoryview(b"\1" * 20), "01" * 20] * 50, "offset": numpy.arange(150, dtype="int32"), "path": [float("nan")] * 150}
answers, codes = resolver.answer(rows["build_id"], rows["offset"], rows["path"])
assert {answer.reason for answer in answers} == {"no-file"} and len(codes) == 150
""")
