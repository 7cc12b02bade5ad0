# SPDX-License-Identifier: MIT
"""Streams of questions: read on while a batch is answered, answered at once when few, bounded in what waits."""
import fcntl
import os
import select
import struct
import subprocess
import termios
import time

from ask import FATHOM, HANG_SECONDS, run
from building import build_text
from running import Running
from suite import test

# No step takes so long, but one that waits for ever.
SOURCE = "int outer(int x) { return x + 1; }\nint main(void) { return outer(3); }\n"


def program(folder):
    return build_text(os.path.join(folder, "one"), SOURCE, flags=("-g", "-O0"))


class Stream(Running):
    """A run of fathom addr that reads what write() gives it and writes what nobody reads until read() does."""

    def __init__(self, *command):
        super().__init__([FATHOM, *command], stderr=subprocess.DEVNULL, text=False)
        self.into, self.out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.into, False)
        os.set_blocking(self.out, False)

    def waiting(self):
        """The bytes of answers that nobody has read yet."""
        return struct.unpack("i", fcntl.ioctl(self.out, termios.FIONREAD, b"\0" * 4))[0]

    def write(self, data, seconds=HANG_SECONDS):
        """Writes while the stream takes more within @seconds; how many bytes it took."""
        done = 0
        while done < len(data) and select.select([], [self.into], [], seconds)[1]:
            done += os.write(self.into, data[done:done + 4096])
        return done

    def read(self, size):
        """The next @size bytes of answers."""
        got = b""
        while len(got) < size:
            assert select.select([self.out], [], [], HANG_SECONDS)[0], f"{len(got)} bytes of {size}, and no more"
            more = os.read(self.out, size - len(got))
            assert more, f"{len(got)} bytes of {size}, and then the end"
            got += more
        return got

    def stall(self, question, answer):
        """Asks until fathom waits for somebody to read its answers; how many questions that took."""
        full = fcntl.fcntl(self.out, fcntl.F_GETPIPE_SZ)
        n = 2 * full // len(answer)
        assert self.write(question * n) == n * len(question)
        deadline = time.monotonic() + HANG_SECONDS
        # The end of a page of the pipe may stay free.
        while self.waiting() < full - 4096:
            assert time.monotonic() < deadline, f"only {self.waiting()} bytes of answers came"
            time.sleep(0.01)
        return n


def one_answer(path, question):
    """The answer to one question of a stream."""
    return run(FATHOM, "addr", "--no-cache", path, input=question, text=False)


@test("what comes while a batch is answered is read, and becomes the next")
def _(folder):
    path = program(folder)
    question = b"outer\n"
    answer = one_answer(path, question)
    with Stream("addr", "--no-cache", path) as s:
        n = s.stall(question, answer)
        more = (1 << 20) // len(question)
        assert s.write(question * more) == more * len(question), "it reads nothing while it answers"
        assert s.read((n + more) * len(answer)) == answer * (n + more)


@test("what is read ahead takes no more than its share of the memory budget")
def _(folder):
    path = program(folder)
    question = b"outer\n"
    answer = one_answer(path, question)
    with Stream("addr", "--no-cache", "--memory=16M", path) as s:
        n = s.stall(question, answer)
        took = s.write(question * ((4 << 20) // len(question)), seconds=2)
        # One batch of 256 KiB, what a thread reads at a time, and what the pipe holds.
        assert took <= (256 << 10) + 2 * (64 << 10), f"{took} bytes were read ahead"
        n += took // len(question)
        s.read(n * len(answer))


@test("after many questions a single one is answered at once, too, also one that comes in two parts")
def _(folder):
    path = program(folder)
    question = b"outer\n"
    answer = one_answer(path, question)
    with Stream("addr", "--no-cache", path) as s:
        assert s.write(question) == len(question)
        assert s.read(len(answer)) == answer
        n = s.stall(question, answer)
        assert s.read(n * len(answer)) == answer * n
        for parts in ([question], [question], [question[:3], question[3:]], [question]):
            for part in parts:
                assert s.write(part) == len(part)
                time.sleep(0.05)
            assert s.read(len(answer)) == answer


@test("the last line of a long stream needs no end")
def _(folder):
    path = program(folder)
    answer = one_answer(path, b"outer\n")
    n = 50000
    out = run(FATHOM, "addr", "--no-cache", path, input=b"outer\n" * n + b"outer", text=False)
    assert out == answer * (n + 1), f"{len(out)} bytes, not {len(answer) * (n + 1)}"


@test("when nobody reads the answers any more the run ends, though its input stays open")
def _(folder):
    path = program(folder)
    question = b"outer\n"
    with Stream("addr", "--no-cache", path) as s:
        s.stall(question, one_answer(path, question))
        s.process.stdout.close()
        try:
            s.process.wait(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError("it waits for more questions") from None
        finally:
            s.process.stdout = None


@test("a line longer than a batch is one line")
def _(folder):
    path = program(folder)
    answer = one_answer(path, b"outer\n")
    long = b"x" * (2 << 20)
    with Stream("addr", "--no-cache", "--memory=16M", path) as s:
        n = s.stall(b"outer\n", answer)
        text = b"outer\n" + long + b"\nouter\n"
        s.read(n * len(answer))
        assert s.write(text) == len(text)
        bad = long + b" ?? (bad-address)\n\n"
        assert s.read(2 * len(answer) + len(bad)) == answer + bad + answer
