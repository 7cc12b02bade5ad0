#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "ranks": stacks of many processes as one tree, beside a tree that is made here of the same lines."""
import collections
import contextlib
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402

from amounts import amount  # noqa: E402
from ask import FATHOM, execute, run  # noqa: E402
from building import build  # noqa: E402
from running import Running, wait_for_state  # noqa: E402

SUITE = tap.Suite("ranks")
test = SUITE.test
SCRIPT = os.path.join(HERE, "..", "..", "packaging", "engines", "stacks-of-ranks.sh")


def frame(function, module="/usr/lib/app", inlined=()):
    """A frame as fathom stack has it, as far as a tree is concerned."""
    names = [{"function": name, "file": "a.c", "line": 3, "inlined": True} for name in inlined]
    return {"pc": "0x1", "kind": "native", "module": module, "symbol": function,
            "frames": [*names, {"function": function, "file": "a.c", "line": 1, "inlined": False}] if function else [], "reason": None}


def line(rank, frames, stop="entry", tids=None, **members):
    """A thread's line: @frames are frames or names, the innermost first."""
    whole = {"rank": rank, "pid": 7, "tid": 7, **({"tids": tids} if tids else {}), "name": "app",
             "frames": [frame(f) if isinstance(f, str) else f for f in frames], "stop": stop, **members}
    return json.dumps(whole)


def write(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(text + "\n" for text in lines))
    return path


def merged(*files, **options):
    return run(FATHOM, "stack", "--merge", "--json", *files, **options)


def nodes_of(text):
    """{path: (ranks, threads, ends)}, of the root that of all."""
    found, way = {}, []
    for record in map(json.loads, text.splitlines()):
        del way[record.get("depth", 1) - 1:]
        if record["type"] == "node":
            way.append((record["function"], record["module"]))
        ranks = {rank for first, last in record["ranks"] for rank in range(first, last + 1)}
        assert len(ranks) == record["n_ranks"], record
        assert tuple(way) not in found, way
        found[tuple(way)] = (ranks, record["threads"], record.get("ends", 0))
    return found


def tree_of(stacks):
    """The same of (rank, threads, path from the outermost frame on)."""
    found = collections.defaultdict(lambda: [set(), 0, 0])
    for rank, threads, path in stacks:
        for depth in range(len(path) + 1):
            node = found[path[:depth]]
            node[0].add(rank)
            node[1] += threads
            node[2] += threads * (depth == len(path) > 0)
    return {path: tuple(node) for path, node in found.items()}


def by_chance(rng, n_ranks):
    """(lines, stacks) of a parallel program: most ranks do the same."""
    lines, stacks = [], []
    for rank in range(n_ranks):
        for _ in range(rng.randrange(1, 3)):
            usual = ["main", "step", "exchange", "wait"]
            path = usual if rng.random() < 0.9 else [rng.choice("abcd") for _ in range(rng.randrange(1, 6))]
            tids = list(range(rng.randrange(2, 5))) if rng.random() < 0.2 else None
            lines.append(line(rank, path[::-1], tids=tids))
            stacks.append((rank, len(tids or [0]), tuple((name, "app") for name in path)))
    return lines, stacks


@test("nodes, ranks and counts of threads are those of a tree that is made here, of threads one by one and of equal ones")
def truth(folder):
    rng = random.Random(3)
    for _ in range(amount(20, 5)):
        lines, stacks = by_chance(rng, rng.randrange(1, 60))
        got = nodes_of(merged(write(folder, "one", lines)))
        assert got == tree_of(stacks), (got, stacks)


@test("in whatever order files and trees are merged, the same bytes")
def orders(folder):
    rng = random.Random(4)
    lines, _ = by_chance(rng, 120)
    wanted = merged(write(folder, "all", lines))
    for _ in range(amount(20, 6)):
        rng.shuffle(lines)
        parts = [write(folder, f"part{i}", lines[i::9]) for i in range(9)]
        rng.shuffle(parts)
        while len(parts) > 1:
            n = min(rng.randrange(2, 4), len(parts))
            # A part may be a tree already, beside one that has threads.
            parts.append(write(folder, f"tree{rng.random()}", merged(*parts[:n]).splitlines()))
            del parts[:n]
            rng.shuffle(parts)
        got = merged(*parts)
        assert got == wanted, f"{got}\nis not\n{wanted}"


@test("a hundred thousand ranks, in their order, backwards, shuffled and in parts: the same bytes")
def many(folder):
    rng, n = random.Random(5), amount(100000, 30000)
    lines = [line(rank, ["wait", "exchange", "main"] if rank not in (77, 4096) else ["relax", "main"]) for rank in range(n)]
    wanted = merged(write(folder, "all", lines))
    found = nodes_of(wanted)
    main = (("main", "app"),)
    assert found[()] == (set(range(n)), n, 0) and found[(*main, ("relax", "app"))] == ({77, 4096}, 2, 2)
    first = json.loads(wanted.splitlines()[0])
    assert first == {"type": "ranks", "ranks": [[0, n - 1]], "n_ranks": n, "threads": n}, first
    assert merged(write(folder, "backwards", reversed(lines))) == wanted
    rng.shuffle(lines)
    assert merged(write(folder, "shuffled", lines)) == wanted
    trees = [write(folder, f"tree{i}", merged(write(folder, "part", lines[i::7])).splitlines()) for i in range(7)]
    assert merged(*trees) == wanted


@test("branches of the fewest ranks come first, then those of the fewest threads, then by name; inlined functions are frames")
def outliers(folder):
    lines = [*(line(rank, ["wait", "main"]) for rank in range(6)), line(6, [frame("lost", inlined=("inner", "middle")), "main"]),
             line(7, ["b", "main"]), line(8, ["a", "main"], tids=[1, 2]), line(9, ["c", "main"]), line(10, [frame("", "/lib/x.so")]),
             line(11, [{"kind": "script", "module": None, "symbol": "handle", "runtime": "python 3.11",
                        "frames": [{"function": "handle", "file": "/srv/app.py", "line": 4}]}, "main"])]
    done = execute(FATHOM, "stack", "--merge", write(folder, "all", lines))
    assert not done.returncode and done.stdout == """\
12 ranks [0-11], 13 threads

   ranks  threads  who                      what calls what
       1        1  [10]                     ??  x.so
      11       12  [0-9,11]                 main  app
       1        1  [7]                       b  app
       1        1  [9]                       c  app
       1        1  [11]                      handle  app.py
       1        1  [6]                       lost  app
       1        1                             middle  app
       1        1                              inner  app
       1        2  [8]                       a  app
       6        6  [0-5]                     wait  app
""", done.stdout


@test("a stack that is not whole begins with why, one that is not there is that alone")
def incomplete(folder):
    lines = [line(0, ["leaf", "work"], stop="no-rule"), line(1, [], stop="none", reason="no-permission"), line(2, ["main"]),
             line(3, [], stop="none", reason=None)]
    got = nodes_of(merged(write(folder, "all", lines)))
    assert set(got) == {(), (("[not complete: no-rule]", None),), (("[not complete: no-rule]", None), ("work", "app")),
                        (("[not complete: no-rule]", None), ("work", "app"), ("leaf", "app")), (("[no stack: no-permission]", None),),
                        (("[no stack: not known]", None),), (("main", "app"),)}, got


@contextlib.contextmanager
def job(folder, hung, n, **environment):
    """@n processes of solver with ranks, of which those in @hung compute: by rank."""
    path = build(os.path.join(folder, "solver"), os.path.join(HERE, "programs", "solver.c"), flags=("-O1", "-g"))
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(Running([path, int(rank in hung)], env={**os.environ, **environment, "OMPI_COMM_WORLD_RANK": str(rank)}))
                 for rank in range(n)]
        for rank, process in enumerate(ranks):
            assert process.line() == "ready"
            if rank not in hung:
                wait_for_state(process.pid, "S")
        yield ranks


def check_job(text, n, hung):
    found = nodes_of(text)
    leads = {path[-1][0]: ranks for path, (ranks, _, _) in found.items() if path}
    assert leads["main"] == set(range(n)) and leads["relax"] == hung and leads["barrier"] == set(range(n)) - hung, leads
    # The outlier comes before the others.
    order = [json.loads(text)["function"] for text in text.splitlines()[1:]]
    assert order.index("relax") < order.index("barrier")


@test("five processes of which one hangs: it stands out")
def hung(folder):
    with job(folder, {3}, 5) as ranks:
        files = []
        for rank, process in enumerate(ranks):
            done = execute(FATHOM, "stack", "--json", "--rank", rank, process.pid, status=(0, 1))
            assert {json.loads(text)["rank"] for text in done.stdout.splitlines()} == {rank}
            files.append(write(folder, f"rank{rank}", done.stdout.splitlines()))
        check_job(merged(*files), 5, {3})


@test("the script for parallel programs: all ranks of this host, by what starts them; only those of the program")
def script(folder):
    path = f"{os.path.dirname(FATHOM)}:{os.environ['PATH']}"
    os.symlink(FATHOM, os.path.join(folder, "fathom"))
    with job(folder, {1}, 4), Running(["/bin/sleep", 600], env={"OMPI_COMM_WORLD_RANK": "9"}):
        lines = run("/bin/sh", SCRIPT, "solver", env=dict(os.environ, PATH=f"{folder}:{path}"))
        check_job(merged("-", input=lines), 4, {1})
        check_job(merged(input=lines), 4, {1})
        assert not run("/bin/sh", SCRIPT, "no-such-program")
    # mpirun within a job of Slurm: all have the number of the step that has started it, and come to theirs afterwards.
    with job(folder, {2}, 3, SLURM_PROCID="0"):
        check_job(merged(input=run("/bin/sh", SCRIPT, "solver", env=dict(os.environ, PATH=f"{folder}:{path}"))), 3, {2})


@test("what is no such line is refused with its file and number, and nothing is printed")
def refused(folder):
    good = line(0, ["main"])
    for lines, where, what in (
            ([good, "{}"], 2, "is no line of fathom stack"), ([good, "[1]"], 2, "is no object of JSON"), (["x"], 1, "is no object of JSON"),
            ([good[:-1]], 1, "ends too early"), ([good + "1"], 1, "has more than an object of JSON"),
            ([json.dumps({k: v for k, v in json.loads(good).items() if k != "rank"})], 1, "has no rank: fathom stack --json --rank=N"),
            ([line(-1, ["main"])], 1, "a rank is no number from 0"), ([line(1 << 31, ["main"])], 1, "a rank is no number from 0"),
            (["", '{"type":"node","depth":1,"function":"f","module":null,"ranks":[[0,0]],"threads":1,"ends":1}'], 2, "whose caller does not come"),
            (['{"type":"ranks","ranks":[[3,1]],"threads":1}'], 1, "in the wrong order"), (['{"type":"ranks","ranks":[[3]],"threads":1}'], 1, "other than two"),
            (['{"type":"ranks","ranks":[[0,0]],"threads":-1}'], 1, "a count is no number, or negative"), (['{"type":"ranks","ranks":5}'], 1, "is no list of ranges"),
            (['{"type":"ranks","ranks":[[0,0]],"threads":1}', '{"type":"node","depth":2,"function":"f","ranks":[[0,0]],"threads":1}'], 2, "whose caller"),
            ([line(None, ["main"])], 1, "a rank is no number from 0"), ([line("7", ["main"])], 1, "a rank is no number from 0"),
            (['{"type":"ranks","ranks":[["3","5"]],"threads":1}'], 1, "a rank is no number from 0"),
            (['{"type":"ranks","ranks":[[0,0]],"threads":null}'], 1, "a count is no number, or negative"),
            (["\0\0"], 1, "is no object of JSON"), ([good + "\0"], 1, "has more than an object of JSON"),
            ([line(0, [7])], 1, "is no object"), (['{"rank":0,"tid":1,"frames":{},"stop":"entry"}'], 1, "is no list")):
        path = write(folder, "bad", lines)
        done = execute(FATHOM, "stack", "--merge", path)
        assert done.returncode == 2 and not done.stdout and f"{path}:{where}: " in done.stderr and what in done.stderr, (lines, done)
    for words, what in ((("--merge", "/no/such/file"), "/no/such/file: No such file"), (("--merge", folder), "Is a directory"),
                        (("--merge", "--fold", path), "--merge takes files"), (("--merge", "--registers", path), "--merge takes files"),
                        (("--merge", "--tid", "3", path), "--merge takes files"), (("--rank", "3", "1"), "--rank: goes with --json"),
                        (("--json", "--rank", "x", "1"), "is not a number from 0 to 2147483647")):
        done = execute(FATHOM, "stack", *words)
        assert done.returncode == 2 and not done.stdout and what in done.stderr, (words, done)


@test("memory is bounded by --memory: a line of millions of frames, and ranks that nobody joins")
def bounded(folder):
    wide = write(folder, "wide", [json.dumps({"rank": i, "tid": 1, "frames": [{"symbol": f"f{i}_{k}"} for k in range(50000)], "stop": "entry"}) for i in range(20)])
    sparse = write(folder, "sparse", [line(rank, ["main"]) for rank in range(0, 60000, 2)])
    for path in (wide, sparse):
        done = execute("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", FATHOM, "stack", "--merge", "--memory", "200K" if path == sparse else "20M", path)
        assert done.returncode == 2 and not done.stdout and "does not fit the memory budget" in done.stderr, done
    done = execute("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", FATHOM, "stack", "--merge", "/dev/zero")
    assert done.returncode == 2 and not done.stdout and "/dev/zero:1: is a line of more than 256 MiB" in done.stderr, done
    # A rank that comes again and again among many costs no sorting each time.
    again = [line(rank, ["main"]) for rank in range(0, 8190, 2)] + [line(2 * rank, ["main"]) for rank in range(2000)] * amount(10, 3)
    got = json.loads(merged(write(folder, "again", again), processor_seconds=10).splitlines()[0])
    assert got["n_ranks"] == 4095, got


@test("hostile lines: ranges of all ranks, many ranges, deep stacks, long and strange names: bounded, and the tree of what they say")
def hostile(folder):
    wide = ['{"type":"ranks","ranks":[[0,2147483647],[5,9]],"threads":4611686018427387904}'] * 3
    got = json.loads(merged(write(folder, "wide", wide)))
    assert got == {"type": "ranks", "ranks": [[0, 2147483647]], "n_ranks": 1 << 31, "threads": 1 << 62}, got
    ranges = [[i, i] for i in range(0, 200000, 2)]
    random.Random(6).shuffle(ranges)
    got = json.loads(merged(write(folder, "ranges", [json.dumps({"type": "ranks", "ranks": ranges, "threads": 1})])))
    assert got["ranks"] == sorted(ranges) and got["n_ranks"] == 100000
    deep = [line(0, [f"f{i}" for i in range(30000)])]
    got = merged(write(folder, "deep", deep), processor_seconds=20).splitlines()
    assert len(got) == 30001 and json.loads(got[-1])["function"] == "f0" and json.loads(got[1])["function"] == "f29999"
    assert merged(write(folder, "again", got)).splitlines() == got
    names = ["a" * 100000, "\x1b[31m", "gr\u00fc\u00df \u202e", "operator<< <char>", "a\x01b", "\"\\"]
    got = [json.loads(text)["function"] for text in merged(write(folder, "names", [line(0, [name]) for name in names])).splitlines()[1:]]
    # A label has room for 4,095 bytes of a function; what is cut ends so that it can be seen.
    assert sorted(got) == sorted([names[0][:4092] + "...", *names[1:4], "a?b", names[5]]), [name[:40] for name in got]
    # Of a path longer than the kernel has, too, the last part is the module.
    modules = ["/d" * 3000 + "/liblast.so", "libplain.so", "/", "/only/a/folder/"]
    lines = [line(0, [frame("main", module)]) for module in modules]
    got = [json.loads(text)["module"] for text in merged(write(folder, "modules", lines)).splitlines()[1:]]
    assert sorted(got) == sorted(["liblast.so", "libplain.so", "/", "/only/a/folder/"]), got
    text = run(FATHOM, "stack", "--merge", os.path.join(folder, "names"))
    assert "\x1b" not in text and "\u202e" not in text

sys.exit(SUITE.run())
