# SPDX-License-Identifier: MIT
"""The line that says what a call is at: on a terminal only, after half a second, and gone at the end, however that comes."""
import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
import zlib

import tap
from ask import FATHOM, HANG_SECONDS, execute
from building import build_text, keep_debug
from named import SUITE

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "debuginfod"))
import servers  # noqa: E402

test = SUITE.test

ERASE = "\r\x1b[K"
LINE = re.compile(re.escape(ERASE) + r"fathom: (?:waiting|reading)[^\r\n\x1b]*")


class OnTerminal:
    """A command whose standard error, or all of whose output, is a terminal; what it has written there, and when first."""

    def __init__(self, *command, env=None, stdout=None):
        self.primary, secondary = pty.openpty()
        self.begun, self.first, self.text = time.monotonic(), None, ""
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stdout or secondary,
                                        stderr=secondary, env={**os.environ, "TERM": "xterm", **(env or {})})
        os.close(secondary)

    def read(self):
        """Reads more; False at the end."""
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(self.primary, 65536)
        if data and self.first is None:
            self.first = time.monotonic()
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)

    def end(self):
        """Waits for the end; returns the status and what the screen shows, of which nothing moves up."""
        while self.read():
            pass
        status = self.process.wait(timeout=HANG_SECONDS)
        os.close(self.primary)
        shown = [""]
        for piece in re.split(r"(\r\x1b\[K|\n)", self.text):
            if piece == ERASE:
                shown[-1] = ""
            elif piece == "\n":
                shown.append("")
            else:
                shown[-1] += piece
        return status, "\n".join(shown)


def stripped(folder):
    """A program whose debug file is nowhere."""
    path = build_text(os.path.join(folder, "program"), "int main(void) { return 0; }", flags=["-g", "-Wl,--build-id"])
    os.unlink(keep_debug(path))
    return path


def asking(folder, url):
    return {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": os.path.join(folder, "cache")}


def need_client():
    if os.environ.get("WRAPPER"):
        raise tap.Skip("a build for another machine has no libdebuginfod")


@test("progress: nothing before half a second, one line that changes, nothing of it at the end")
def waiting(folder):
    need_client()
    path = stripped(folder)
    with servers.Stalling() as silent:
        env = asking(folder, silent.url)
        command = (FATHOM, "addr", "--no-cache", "--debuginfod", "--debuginfod-timeout", 2, path, "0x0")
        run = OnTerminal(*command, env=env)
        status, shown = run.end()
        took = time.monotonic() - run.begun
        plain = execute(*command, env={**os.environ, **env})
    lines = LINE.findall(run.text)
    assert run.first - run.begun >= 0.5, run.first - run.begun
    # Each is written once: time passes while nothing changes. A busy machine may leave one out.
    seconds = [int(re.search(r"debuginfod, (\d+) s", line)[1]) for line in lines]
    assert lines == [ERASE + f"fathom: waiting for debuginfod, {n} s (Ctrl-C: go on without)" for n in seconds], lines
    assert seconds and seconds == sorted(set(seconds)) and seconds[-1] <= took, (seconds, took)
    assert status == plain.returncode
    # No colours: --color is for what is found.
    assert sorted(re.sub(r"\x1b\[[0-9]*m", "", shown).splitlines()) == sorted((plain.stdout + plain.stderr).splitlines()), shown


@test("progress: Ctrl-C ends the wait, another one the run; of the line nothing is left")
def interrupted(folder):
    need_client()
    path = stripped(folder)
    with servers.Stalling() as silent:
        command = (FATHOM, "addr", "--no-cache", "--debuginfod", "--debuginfod-timeout", 100 * HANG_SECONDS, path, "0x0")
        run = OnTerminal(*command, env=asking(folder, silent.url))
        while "waiting" not in run.text and run.read():
            pass
        run.process.send_signal(signal.SIGINT)
        status, shown = run.end()
        assert status == 1 and "debuginfod: cancelled" in shown and "waiting" not in shown, (status, shown)


def large(folder):
    """A compressed program that takes seconds to read: its end is some bytes that repeat."""
    path = os.path.join(folder, "large.gz")
    stream = zlib.compressobj(6, zlib.DEFLATED, 31)
    with open(FATHOM, "rb") as f, open(path, "wb") as to:
        program = f.read()
        to.write(stream.compress(program) + stream.flush(zlib.Z_FULL_FLUSH))
        block = stream.compress(program[:6 << 20]) + stream.flush(zlib.Z_FULL_FLUSH)
        to.write(block * 120)
    return path


@test("progress: a run that Ctrl-C ends dies by it, and leaves a clean line")
def ended(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("the wrapper's signals are its own")
    path = large(folder)
    # On a busy machine it may have read all by then.
    for _ in range(20):
        run = OnTerminal(FATHOM, "addr", "--no-cache", path, "main")
        while "reading" not in run.text and run.read():
            pass
        run.process.send_signal(signal.SIGINT)
        status, shown = run.end()
        if status != 0:
            break
        assert " main+0x0" in shown and "reading" not in shown, shown
    assert re.search(r"fathom: reading the file, (\d+) (s|%)", run.text), run.text
    assert status == -signal.SIGINT and shown == "", (status, shown)


@test("progress: a narrow terminal's line is not longer than it is wide")
def narrow(folder):
    need_client()
    with servers.Stalling() as silent:
        command = f"stty cols 20 <&2; exec {FATHOM} addr --no-cache --debuginfod --debuginfod-timeout 4 {stripped(folder)} 0x0"
        run = OnTerminal("sh", "-c", command, env=asking(folder, silent.url))
        run.end()
    assert {line.removeprefix(ERASE) for line in LINE.findall(run.text)} == {"fathom: waiting for"}, run.text


@test("progress: none where standard error is no terminal, or is a dumb one")
def none(folder):
    need_client()
    path = stripped(folder)
    with servers.Stalling() as silent:
        env = asking(folder, silent.url)
        command = (FATHOM, "addr", "--no-cache", "--debuginfod", "--debuginfod-timeout", 1, path, "0x0")
        done = execute(*command, env={**os.environ, **env, "TERM": "xterm"})
        assert "waiting" not in done.stderr + done.stdout and ERASE not in done.stderr
        for terminal in ("dumb", ""):
            run = OnTerminal(*command, env={**env, "TERM": terminal})
            run.end()
            assert "waiting" not in run.text and ERASE not in run.text, run.text
