# SPDX-License-Identifier: MIT
"""fathom resolve as the worker of an engine: one that writes all before it reads, one that waits for each answer, signals, deadlines."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading

import tap
from ask import FATHOM, HANG_SECONDS, execute
from running import until
from suite import WITH_MODULE, expected, rows_of, stats_of, test, tsv_rows, world

ROWS = 1_000_000


@contextlib.contextmanager
def worker(*arguments, env=None):
    """A run with pipes, which is killed if it takes too long: then it has locked up."""
    process = subprocess.Popen([FATHOM, "resolve", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=dict(os.environ, **(env or {})))
    alarm = threading.Timer(HANG_SECONDS, process.kill)
    alarm.start()
    try:
        yield process
    finally:
        alarm.cancel()
        process.kill()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        process.wait()


def send(process, text):
    process.stdin.write(text if isinstance(text, bytes) else text.encode())
    process.stdin.flush()


def given(*more):
    return ("--no-cache", "--debug-dir", world().debug_dir, *WITH_MODULE, "--columns", "offset,function", *more)


def answers_to(rows):
    return b"".join(f"{a}\t{expected(m, a)['function'] or ''}\n".encode() for m, a in rows)


@test("an engine that writes 1,000,000 rows before it reads one, in one block")
def writes_first(_folder):
    rows = rows_of(4000)
    data = "".join(tsv_rows(rows)).encode() * (ROWS // len(rows))
    with worker(*given("--chunks=both")) as process:
        send(process, f"{ROWS}\n")
        for at in range(0, len(data), 1 << 20):
            process.stdin.write(data[at:at + (1 << 20)])
        process.stdin.close()
        out = process.stdout.read()
        assert process.wait() == 0
    assert out == f"{ROWS}\n".encode() + answers_to(rows) * (ROWS // len(rows))


@test("an engine that writes rows one by one, and reads none of their answers for long")
def writes_slowly(_folder):
    rows = rows_of(4000)
    with worker(*given()) as process:
        for line in tsv_rows(rows) * 3:
            os.write(process.stdin.fileno(), line.encode())
        process.stdin.close()
        assert process.stdout.read() == answers_to(rows) * 3


@test("a pause ends a batch: the answer comes, although the input goes on")
def pause(_folder):
    rows = rows_of(4000)
    lines = tsv_rows(rows)
    with worker(*given()) as process:
        for i in range(20):
            send(process, lines[i])
            assert process.stdout.readline() == answers_to(rows[i:i + 1])
        # After many rows a thread reads ahead; it is the same then.
        send(process, "".join(lines))
        for i, row in enumerate(rows):
            assert process.stdout.readline() == answers_to([row]), i
        for i in range(20):
            send(process, lines[i][:20])
            send(process, lines[i][20:])
            assert process.stdout.readline() == answers_to(rows[i:i + 1])
        process.stdin.close()
        assert process.wait() == 0


@test("blocks are answered while the input goes on, empty ones, too; headers come first")
def blocks(_folder):
    rows = rows_of(4000)
    lines = tsv_rows(rows)
    with worker(*given("--chunks=both")) as process:
        for n in (1, 0, 3, 0, 0, 500, 2):
            send(process, f"{n}\n" + "".join(lines[:n]))
            assert process.stdout.readline() == f"{n}\n".encode()
            assert b"".join(process.stdout.readline() for _ in range(n)) == answers_to(rows[:n])
        process.stdin.close()
        assert process.wait() == 0


@test("an input that ends within a block: what was there is answered, and status 2 says so")
def cut_block(_folder):
    rows = rows_of(4000)
    for rest in ("", "1"):
        with worker(*given("--chunks=in")) as process:
            out, errors = process.communicate(("3\n" + "".join(tsv_rows(rows[:2])) if not rest else "1\n" + tsv_rows(rows)[0] + rest).encode())
            assert out == answers_to(rows[:1 if rest else 2]) and process.returncode == 2
            assert errors == b"fathom: standard input: ends within a block (check what the engine sends)\n"


@test("SIGTERM: between blocks it ends the worker, status 0")
def sigterm_idle(_folder):
    rows = rows_of(4000)
    for many in (1, 4000):
        with worker(*given()) as process:
            send(process, "".join(tsv_rows(rows)[:many]))
            assert b"".join(process.stdout.readline() for _ in range(many)) == answers_to(rows[:many])
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_SECONDS) == 0 and process.stdout.read() == b""


@test("SIGTERM: within a block it waits for the rest, answers, and ends; a second one ends it at once")
def sigterm_block(_folder):
    rows = rows_of(4000)
    lines = tsv_rows(rows)
    with worker(*given("--chunks=both")) as process:
        send(process, "3\n" + lines[0])
        assert process.stdout.readline() == b"3\n" and process.stdout.readline() == answers_to(rows[:1])
        process.send_signal(signal.SIGTERM)
        until(lambda: is_taken(process), "SIGTERM is not taken")
        send(process, "".join(lines[1:3]) + "2\n" + "".join(lines[3:5]))
        assert process.stdout.read() == answers_to(rows[1:3]) and process.wait(HANG_SECONDS) == 0
    with worker(*given("--chunks=both")) as process:
        send(process, "3\n" + lines[0])
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        until(lambda: is_taken(process), "SIGTERM is not taken")
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_SECONDS) == -signal.SIGTERM


def has_signal(process, number, *sets):
    """Whether one of these sets of signals, as /proc/PID/status calls them, has signal @number."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
        return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in f if line.startswith(sets))


def is_taken(process):
    """No SIGTERM is pending any more."""
    return not has_signal(process, signal.SIGTERM, "ShdPnd", "SigPnd")


def takes(process, number):
    return has_signal(process, number, "SigCgt", "SigBlk")


def counts(process):
    until(lambda: takes(process, signal.SIGUSR1), "SIGUSR1 is not waited for")
    process.send_signal(signal.SIGUSR1)
    return json.loads(process.stderr.readline())


@test("SIGUSR1: the counts as one line of JSON; rows, equal ones, blocks, modules, reasons; also of a worker that cannot write")
def sigusr1(_folder):
    rows = rows_of(4000)
    with worker(*given("--chunks=in")) as process:
        assert counts(process)["rows"] == 0
        send(process, "3\n" + tsv_rows(rows)[0] * 3 + f"2\n{'ab' * 20}\t1\tx\nz\n")
        for _ in range(5):
            process.stdout.readline()
        found = until(lambda: (c := counts(process))["rows"] == 5 and c, "five rows are not counted")
        assert (found["equal_rows"], found["blocks"], found["modules"], found["opened"], found["missing"]) == (2, 2, 1, 1, 1), found
        assert (found["hits"], found["misses"], found["unresolved"]["no-file"], found["unresolved"]["bad-row"]) == (0, 2, 1, 1), found
        assert found["answered"] == 3 * bool(expected(*rows[0])["function"]) and found["bytes_in"] > 0 and set(found["seconds"]) >= {"wait", "read", "open", "answer", "write"}
        # 65,409 rows of answers do not fit the pipe.
        send(process, f"65409\n{tsv_rows(rows)[0] * 65409}")
        assert counts(process)["blocks"] >= 2
        process.stdin.close()
        assert process.stdout.read() == answers_to(rows[:1]) * 65409


@test("--stats: the same line at the end")
def stats(folder):
    rows = rows_of(4000)
    # All of a file is one batch.
    with open(os.path.join(folder, "rows"), "w+", encoding="utf-8") as f:
        f.write("".join(tsv_rows(rows)))
        f.seek(0)
        found = stats_of(execute(FATHOM, "resolve", *given("--stats"), stdin=f, status=0).stderr)
    answered = [row for row in rows if expected(*row)["function"] or expected(*row)["file"]]
    assert found["rows"] == 4000 and found["blocks"] == 1 and found["modules"] == 20 and found["answered"] == len(answered), found
    assert found["equal_rows"] == 4000 - len({(m.path, a) for m, a in rows})
    assert sum(found["unresolved"].values()) == 4000 - len(answered)


@contextlib.contextmanager
def silent_server():
    """A server that takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


@test("--deadline: rows of builds whose server is silent are 'timeout', those of open ones are answered, and the next block is served")
def deadline(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("a build for another machine has no libdebuginfod")
    rows = rows_of(4000)
    known = next((m, a) for m, a in rows if expected(m, a)["function"] and not m.options)
    line = tsv_rows([known])[0]
    with silent_server() as url:
        with worker("--no-cache", *WITH_MODULE, "--chunks=both", "--columns", "offset,function,reason", "--deadline", "0.3",
                    "--debuginfod-timeout", "600", f"--debuginfod={url}", env={"DEBUGINFOD_CACHE_PATH": folder}) as process:
            send(process, f"1\n{line}")
            assert [process.stdout.readline() for _ in range(2)][1].split(b"\t")[1] == expected(*known)["function"].encode()
            for i in range(2):
                send(process, f"3\n{i:040x}\t7\tx\n{line}{i + 8:040x}\t8\tx\n1\n{line}")
                assert process.stdout.readline() == b"3\n"
                first, second, third = (process.stdout.readline() for _ in range(3))
                assert (first, third) == (b"7\t\ttimeout\n", b"8\t\ttimeout\n"), (first, third)
                # What is open is answered before a file is looked for.
                assert second.split(b"\t")[1] == expected(*known)["function"].encode(), second
                assert process.stdout.readline() == b"1\n"
                assert process.stdout.readline().split(b"\t")[1] == expected(*known)["function"].encode()
