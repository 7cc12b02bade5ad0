#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "debuginfod": debug files from servers, all of them on the loopback interface."""
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "fixtures")]

import ask  # noqa: E402
import elfread  # noqa: E402
import tap  # noqa: E402

import cells_files  # noqa: E402
import servers  # noqa: E402
from building import build_text, keep_debug  # noqa: E402
from cells import C, CXX, Program, check  # noqa: E402
from running import Asked, Running  # noqa: E402

# No run takes so long, but one that does not end.
HANG_SECONDS = ask.HANG_SECONDS
TESTS = []


def test(name):
    return lambda function: TESTS.append((name, function))


def build_id(path):
    elf = elfread.ElfFile(path)
    return elf.raw(elf.section(".note.gnu.build-id"))[16:].hex()


def question(path):
    return f"/buildid/{build_id(path)}/debuginfo"


_building = threading.Lock()


def stripped():
    """A program and its debug file, which is in a folder where nobody looks for it."""
    program = cells_files.separate(Program("debuginfod-stripped", C))
    program.b.call(cells_files.move, "main.debug", "served/main.debug")
    with _building:
        return program.fixture(plain="full")


def with_common_file():
    """Two programs whose debug information is partly in one file of both."""
    program = Program("debuginfod-dwz", CXX, "gcc", ["-O2", "-g", *cells_files.NO_CXX])
    program.linked("twin", "-Wl,-Ttext-segment=0x600000")
    cells_files.prepare_dwz(program, "twin", "unused")
    cells_files.prepare_dwz(program, "main", "full").run(
        "dwz", "-m", "common", "-M", "gone/common", "main", "twin")
    program.b.call(cells_files.move, "common", "served/common")
    with _building:
        return program.fixture(plain="full")


def served(fixture):
    return os.path.join(os.path.dirname(fixture.file), "served")


@contextlib.contextmanager
def environment(url=None):
    """The environment of a run whose client has kept no file from an earlier one."""
    with tempfile.TemporaryDirectory() as folder:
        yield {**{k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD_")},
               "DEBUGINFOD_CACHE_PATH": folder, **({"DEBUGINFOD_URLS": url} if url else {})}


def run(env, *arguments, status=1):
    done = ask.fathom("addr", "--json", "--no-cache", *arguments, env=env, status=status, timeout=HANG_SECONDS)
    return ask.records_of(done.stdout), done.stderr


def probe_of(fixture, name="outer_begin"):
    return hex(dict(fixture.probes())[name])


def check_served(fixture, folder, build_ids):
    """All answers are those from the file with everything in it."""
    with servers.debuginfod(folder, build_ids) as url:
        fixture.options = [f"--debuginfod={url}"]
        check(fixture, with_cache=False)


@test("a stripped program whose debug file Debian's server has")
def from_server():
    fixture = stripped()
    check_served(fixture, served(fixture), [build_id(fixture.file)])


@test("a file that dwz made for several programs, from Debian's server")
def common_from_server():
    fixture = with_common_file()
    common = os.path.join(served(fixture), "common")
    assert elfread.ElfFile(fixture.file).section(".gnu_debugaltlink"), "nothing is common"
    check_served(fixture, served(fixture), [build_id(common)])


@test("without the option nothing is asked, whatever the environment says")
def not_asked():
    fixture = stripped()
    with servers.Recording() as server, environment(server.url) as env:
        answers, _ = run(env, fixture.file, probe_of(fixture), status=0)
        assert answers[0]["reason"] == "no-debug-info", answers
        assert server.asked == [], server.asked
        answers, said = run(env, "--debuginfod", fixture.file, probe_of(fixture), status=0)
        assert answers[0]["reason"] == "no-debug-info", answers
        assert set(server.asked) == {question(fixture.file)}, server.asked
        assert "no debuginfod server has its debug file" in said, said


@test("nothing is asked where the debug file is here")
def not_needed():
    fixture = stripped()
    with servers.Recording() as server, environment(server.url) as env:
        answers, _ = run(env, "--debuginfod", fixture.plain, probe_of(fixture), status=0)
        assert answers[0]["frames"][-1]["line"] and not server.asked, (answers, server.asked)


@test("fathom filter: a module of which only the log's build-id is here, from Debian's server; nothing is asked without the option")
def filtered():
    fixture = stripped()
    address, id = int(probe_of(fixture), 16), build_id(fixture.file)
    ((function, file, line, *_), *_), = [answer.frames for answer in ask.llvm(fixture.plain, [address])]
    log = f"    #1 {0x555500000000 + address:#x}  (/gone/program+{address:#x}) (BuildId: {id})\n"
    with servers.debuginfod(served(fixture), [id]) as url, environment() as env:
        def names(*options):
            return ask.fathom("filter", "--no-cache", *options, input=log, env=env, status=0, timeout=HANG_SECONDS).stdout
        found = names(f"--debuginfod={url}")
        assert found.startswith(f"{log[:-1]}  -> {function}+0x") and f" {file}:{line}" in found, found
        assert "by path" not in found, found
    with servers.Recording() as server, environment(server.url) as env:
        def asked(*options):
            return ask.fathom("filter", "--no-cache", "--all", *options, input=log, env=env, status=0, timeout=HANG_SECONDS).stdout
        assert asked() == log[:-1] + "  -> ?? (no-file)\n" and not server.asked, server.asked
        assert asked("--debuginfod") == log[:-1] + "  -> ?? (no-file)\n" and question(fixture.file) in server.asked, server.asked


@test("a server's file is kept by its client, and asked for once")
def kept():
    fixture = stripped()
    with open(os.path.join(served(fixture), "main.debug"), "rb") as f:
        files = {question(fixture.file): f.read()}
    with servers.Recording(files) as server, environment(server.url) as env:
        first, _ = run(env, "--debuginfod", fixture.file, probe_of(fixture), status=0)
        again, _ = run(env, "--debuginfod", fixture.file, probe_of(fixture), status=0)
        line = fixture.chains["outer_begin"][0][0][2]
        assert first == again and first[0]["frames"][0]["line"] == line, (first, line)
        assert server.asked == [question(fixture.file)], server.asked


@test("find in a process: a static function whose symbols only a server has")
def found_in_a_process():
    source = '#include <stdio.h>\nstatic __attribute__((noinline)) int hidden(int x) { return x * 3; }\n' \
        'int main(void) { printf("%p\\n", (void *)hidden); fflush(stdout); return hidden(getchar()); }\n'
    with tempfile.TemporaryDirectory() as folder:
        path = build_text(os.path.join(folder, "program"), source, "-Wl,--build-id")
        debug = keep_debug(path)
        with open(debug, "rb") as f:
            files = {question(path): f.read()}
        os.unlink(debug)
        with servers.Recording(files) as server, environment(server.url) as env, Running([path]) as process:
            told = int(process.line(), 16)
            for options, want in ([], None), (["--debuginfod"], hex(told)):
                records, _ = ask.find(process.pid, "program:hidden", *options, env=env, timeout=HANG_SECONDS)
                assert [r["address"] for r in records] == [want], (options, records)
            assert question(path) in server.asked, server.asked


@test("a server's file of another build is refused")
def refused():
    fixture = stripped()
    other = os.path.join(os.path.dirname(with_common_file().file), "full")
    with open(other, "rb") as f:
        files = {question(fixture.file): f.read()}
    with servers.Recording(files) as server, environment(server.url) as env:
        answers, said = run(env, "--debuginfod", fixture.file, probe_of(fixture), status=0)
        assert answers[0]["reason"] == "build-id-mismatch", answers
        assert not any(f["line"] for f in answers[0]["frames"]), answers
        assert "its build-id is another" in said, said


@test("a server that is not there")
def unreachable():
    fixture = stripped()
    with servers.refusing() as url, environment(url) as env:
        answers, said = run(env, "--debuginfod", fixture.file, probe_of(fixture), status=0)
        assert answers[0]["reason"] == "no-debug-info", answers
        assert "cannot be reached" in said, said


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"\x7fELF" * 100

for _what, _first in (("that accepts and never answers", b""), ("that stops in the middle", HALF)):
    @test(f"a server {_what}: the deadline ends the run")
    def stalled(first=_first):
        fixture = stripped()
        with servers.Stalling(first) as server, environment(server.url) as env:
            answers, said = run(env, "--debuginfod", "--debuginfod-timeout=1", fixture.file,
                                probe_of(fixture), status=0)
            assert answers[0]["reason"] == "timeout", answers
            assert "did not answer in time" in said and "--debuginfod-timeout" in said, said
            # On a busy machine the server may read it after the deadline.
            assert server.arrived.wait(HANG_SECONDS) and set(server.asked) == {question(fixture.file)}, server.asked


@test("one deadline for all files of a run: when it has passed, nothing more is asked")
def one_deadline():
    fixture = stripped()
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for i in range(5):
            copies.append(os.path.join(folder, str(i)))
            shutil.copy(fixture.file, copies[-1])
            note = elfread.ElfFile(copies[-1]).section(".note.gnu.build-id")
            with open(copies[-1], "r+b") as f:
                f.seek(note.off + 16)
                f.write(bytes([i]))
        with servers.Stalling() as server, environment(server.url) as env:
            out = ask.run(os.path.join(os.environ["BUILD"], "tests", "debuginfod_many"), "1000", probe_of(fixture),
                          *copies, env=env, timeout=HANG_SECONDS)
            assert out.split() == ["timeout"] * 5, out
            assert server.arrived.wait(HANG_SECONDS) and set(server.asked) == {question(copies[0])}, server.asked


@test("Ctrl-C gives up waiting, and the answers come without the server")
def interrupted():
    fixture = stripped()
    with servers.Stalling() as server, environment(server.url) as env:
        with Asked(fixture.file, "--debuginfod", "--debuginfod-timeout=3600", env=env) as asking:
            asking.send(probe_of(fixture) + "\n")
            assert server.arrived.wait(HANG_SECONDS), "the server was not asked"
            asking.signal(signal.SIGINT)
            status, out, said = asking.last()
        assert status == 0, (status, said)
        assert json.loads(out)["reason"] == "timeout", out
        assert "cancelled" in said, said


@test("a server that never answers: signals reach fathom stack --samples while it takes the first sample")
def first_sample():
    source = '#include <stdio.h>\nint main(void) { puts("runs"); fflush(stdout); return getchar(); }\n'
    with tempfile.TemporaryDirectory() as folder:
        path = build_text(os.path.join(folder, "program"), source, "-Wl,--build-id")
        os.unlink(keep_debug(path))
        for number in (signal.SIGTERM, signal.SIGINT):
            with servers.Stalling() as server, environment(server.url) as env, Running([path]) as running:
                assert running.line() == "runs"
                sampling = [ask.FATHOM, "stack", "--no-cache", "--samples=1", "--debuginfod", "--debuginfod-timeout=3600",
                            running.pid]
                with Running(sampling, env=env) as sampler:
                    assert server.arrived.wait(HANG_SECONDS), "the server was not asked"
                    sampler.signal(number)
                    out, _ = sampler.process.communicate(timeout=HANG_SECONDS)
                # The first Ctrl-C gives up waiting for servers only.
                assert sampler.process.returncode == (0 if number == signal.SIGINT else -number), (number, out)
                assert ("main;" in out) == (number == signal.SIGINT), (number, out)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["DEBUGINFOD_CACHE_PATH"] = cache
        failed = tap.run("debuginfod", tap.chosen(TESTS))
    sys.exit(failed)
