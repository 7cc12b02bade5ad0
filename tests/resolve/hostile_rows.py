# SPDX-License-Identifier: MIT
"""Rows that mean harm or nothing: one answer each, the rows around them untouched, memory bounded."""
import contextlib
import json
import os
import random
import select
import subprocess

from ask import FATHOM
from counting import is_instrumented
from suite import WITH_MODULE, resolve, stats_of, test, world

MIB = 1 << 20


def good():
    module = world().modules[0]
    return f"{module.build_id}\t{module.text + 32}\t{module.path}"


@test("bad rows between good ones: one answer each, in order, with the reason")
def between(folder):
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    module = world().modules[0]
    off = module.text + 32
    bad = [("../../etc/passwd", f"../../etc/passwd\t1\t{module.path}"), ("bad-build-id", f"{module.build_id[:-1]}\t{off}\t{module.path}"),
           ("bad-build-id", f"{'ab' * 65}\t1\t"), ("bad-build-id", f"\t{off}\t"), ("bad-build-id", f"{module.build_id[:-1]}/\t{off}\t"),
           ("no-file", f"{'ab' * 64}\t1\t"), ("no-file", "ab\t1\t"), ("build-id-mismatch", f"{'cd' * 20}\t{off}\t{module.path}"),
           ("bad-address", f"{module.build_id}\t{1 << 64}\t{module.path}"), ("bad-address", f"{module.build_id}\t\t{module.path}"),
           ("unmapped", f"{module.build_id}\t{(1 << 64) - 1}\t{module.path}"),
           ("bad-row", ""), ("bad-row", module.build_id), ("bad-row", f"{good()}\textra"), ("bad-row", "\t" * 40), ("bad-row", f"{good()}\\"),
           ("no-file", f"\t1\t{folder}"), ("no-file", f"\t1\t{fifo}"), ("no-file", "\t1\t/dev/zero"), ("no-file", "\t1\t/proc/self/mem"),
           ("no-file", f"\t1\t{module.path}\\0"), ("no-file", f"{'12' * 20}\t1\t{module.path}\0x"), ("no-file", "\t1\t../../../../etc/passwd"),
           ("no-file", f"\t1\t/{'x/' * 3000}"), ("no-file", f"\t1\t{'x' * 5000}")]
    bad[0] = ("bad-build-id", bad[0][1])
    text = "".join(f"{good()}\n{row}\n" for _, row in bad) + good() + "\n"
    out = resolve("--no-cache", "--columns", "function,reason", *WITH_MODULE, data=text).split("\n")
    assert len(out) == 2 * len(bad) + 2 and out[-1] == "", len(out)
    assert len(set(out[0::2][:-1])) == 1 and out[0].split("\t")[0], out[0]
    assert [line.split("\t") for line in out[1::2][:-1]] == [["", reason] for reason, _ in bad], \
        [(line, wanted) for line, wanted in zip(out[1::2], bad) if line != f"\t{wanted[0]}"]


@test("JSON that is none: one answer for each line")
def bad_json(_folder):
    module = world().modules[0]
    row = json.dumps({"build_id": module.build_id, "offset": module.text + 32, "module": module.path})
    bad = ["", "{", "}", "{}", "[]", "null", row[:-1], row + "}", row + ",", '{"build_id":"ab","offset":1,}', '{"build_id":"ab" "offset":1}',
           '{"build_id":"ab","offset":1,"x":[}', '{"build_id":"ab\\q","offset":1}', '{"build_id":"\\u12","offset":1}', '{build_id:"ab","offset":1}',
           '{"build_id":"ab","offset":1' + ',"x":{"a":' * 1000, '{"x":"' + "\\" * 999, '"' * 99, '{"offset":}', '{"a":{{{]]]}', "\0", "{\0}"]
    text = "".join(f"{row}\n{line}\n" for line in bad)
    out = resolve("--no-cache", "--format", "json", "--columns", "function,reason", data=text).splitlines()
    found = [json.loads(line) for line in out]
    assert len(found) == 2 * len(bad)
    assert all(f["function"] and f["function"] == found[0]["function"] for f in found[0::2])
    # An object without members lacks the row's, and has no offset.
    assert all(f["function"] is None and f["reason"] in ("bad-row", "bad-build-id", "bad-address") for f in found[1::2]), found[1::2]


@test("the last row without its end, and a last byte that is none")
def last_row(_folder):
    for data, n in ((good(), 1), (good() + "\n", 1), (good() + "\n" + good(), 2), ("", 0), ("\n", 1)):
        assert resolve("--columns", "reason", *WITH_MODULE, data=data).count("\n") == n, data


@test("random bytes: as many answers as lines")
def noise(_folder):
    choose = random.Random(5)
    for form in ("tsv", "json"):
        alphabet = bytes(range(256)) if form == "tsv" else b'{}[]",:\\u0dab \n\n'
        data = bytes(choose.choice(alphabet) for _ in range(200000))
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        assert resolve("--format", form, "--output-format", "tsv", "--columns", "reason", data=data).count(b"\n") == lines


def memory_of(pid):
    """The most memory that a process has had, bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return 1024 * next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))


class Fed:
    """fathom resolve, whose input is written by hand."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([FATHOM, "resolve", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@test("a line of 300 MB: one answer, the next row untouched, and memory that does not grow")
def long_line(_folder):
    piece = b"ab" * (MIB // 2)
    for form in ("tsv", "json"):
        with Fed("--no-cache", "--format", form, "--output-format", "tsv", "--columns", "function,reason",
                 *(WITH_MODULE if form == "tsv" else ())) as fed:
            for _ in range(300):
                fed.process.stdin.write(piece)
            module = world().modules[0]
            row = good() if form == "tsv" else json.dumps({"build_id": module.build_id, "offset": module.text + 32, "module": module.path})
            fed.process.stdin.write(b"\n" + row.encode() + b"\n")
            fed.process.stdin.flush()
            first, second = (fed.process.stdout.readline() for _ in range(2))
            assert first == b"\tlimit\n", first
            assert second.split(b"\t")[0] and second != first, second
            peak = memory_of(fed.pid)
            assert is_instrumented(FATHOM) or peak < 100 * MIB, f"{form}: {peak / MIB:.0f} MiB"


@test("200,000 builds that nobody has: an answer each, and 65,536 of them are remembered")
def unknown_builds(_folder):
    choose = random.Random(3)
    with Fed("--no-cache", "--columns", "reason", "--stats") as fed:
        rows = b"".join(b"%040x\t1\n" % choose.getrandbits(160) for _ in range(200000))
        out, errors = fed.process.communicate(rows)
        counts = stats_of(errors.decode())
    assert out == b"no-file\n" * 200000
    assert counts["missing"] == 65536 and counts["misses"] == 200000 and counts["unresolved"] == {"no-file": 200000}, counts


@test("what waits to be answered is bounded: then the input is read no further")
def bounded_queue(_folder):
    row = (good() + "\n").encode()
    piece = row * (MIB // len(row))
    with Fed("--no-cache", "--memory", "64M", *WITH_MODULE) as fed:
        os.set_blocking(fed.process.stdin.fileno(), False)
        written = 0
        # A slow machine may end this early, which proves less.
        while written < 64 * MIB and select.select([], [fed.process.stdin], [], 1)[1]:
            with contextlib.suppress(BlockingIOError):
                written += os.write(fed.process.stdin.fileno(), piece)
        assert written < 64 * MIB, written
        assert is_instrumented(FATHOM) or memory_of(fed.pid) < 128 * MIB, memory_of(fed.pid)
