# SPDX-License-Identifier: MIT
"""fathom llvm-symbolizer as a co-process, and given what nobody should give it."""
import os
import random
import select
import signal
import subprocess

import ask
import tools

PATIENCE = ask.HANG_SECONDS  # seconds until an answer that does not come has failed


class Coprocess:
    """A symbolizer at the other end of two pipes."""

    def __init__(self, tool, *arguments, cwd=None):
        self.process = subprocess.Popen([os.path.basename(tool), *arguments], executable=tool, cwd=cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=0, env=tools.environment())

    def send(self, text):
        self.process.stdin.write(text)

    def is_quiet(self):
        return not select.select([self.process.stdout], [], [], 0)[0]

    def answer(self, end=b"\n\n"):
        """What comes, up to @end."""
        text = b""
        while not text.endswith(end):
            assert select.select([self.process.stdout], [], [], PATIENCE)[0], f"no answer, only {text!r}"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"no more, only {text!r}"
            text += more
        return text

    def close(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        self.process.stdout.close()
        return rest, self.process.wait(PATIENCE)


def program():
    return tools.build_once("protocol", ["g++", "-g", "-O1", "-o", "out", "shapes.cc"])


REQUESTS = [b"CODE out main", b"out 0x0", b"", b"DATA out 0x0", b"FRAME out 0", b"garbage", b"nosuch 0x1",
            b'CODE "out" 0xffffffffffffffff', b"out table", b"out main"]


def check_at_once():
    """Every request is answered before the next one is sent, with what the real tool says."""
    folder = program()
    both = [Coprocess(tool, "--demangle", "--inlines", cwd=folder) for tool in (tools.theirs(), tools.OURS)]
    for request in REQUESTS * 3:
        for tool in both:
            tool.send(request + b"\n")
        real, own = (tool.answer() for tool in both)
        assert real == own, f"{request}: {tools.first_difference(real, own)}"
    for tool in both:
        assert tool.close() == (b"", 0)


def check_parts():
    """Two requests and a half are two answers; the rest of the third brings the third."""
    tool = Coprocess(tools.OURS, "-e", "out", cwd=program())
    tool.send(b"main\nmain\nma")
    text = tool.answer()
    while text.count(b"\n\n") < 2:
        text += tool.answer()
    assert text.count(b"\n\n") == 2 and tool.is_quiet(), text
    tool.send(b"in")
    tool.send(b"\n")
    assert tool.answer() * 2 == text
    tool.send(b"main")
    rest, status = tool.close()
    assert rest * 2 == text and status == 0, "the last line needs no newline"


def check_json_at_once():
    tool = Coprocess(tools.OURS, "--output-style=JSON", cwd=program())
    for request in REQUESTS * 2:
        tool.send(request + b"\n")
        line = tool.answer(b"\n")
        assert line.startswith(b"{") and line.count(b"\n") == 1 and tool.is_quiet(), line
    assert tool.close() == (b"", 0)


STRANGE = {
    "NULs": b"out main\0 after\nou\0t main\n\0\nout \0main\nout main\n",
    "no newline at the end": b"out main\nout main",
    "only newlines": b"\n\n\n",
    "carriage returns": b"out main\r\n\r\nout main \r\r\n",
    "huge numbers": b"\n".join(b"out " + n for n in (
        b"0xffffffffffffffff", b"0x10000000000000000", b"18446744073709551615", b"18446744073709551616",
        b"0x" + b"0" * 300 + b"1", b"9" * 500, b"-1", b"0x8000000000000000", b"main+0xffffffffffffffff",
        b"main+99999999999999999999999")) + b"\n",
    "quotes that stay open": b"\"out main\n'out main\nCODE \"out main\n\"\n'\n",
    "bytes that are no text": b"out \xff\xfe\n\xc3\x28 1\nout main\n",
    "format directives": b"%s%n%d 1\nout %s%n\n",
}


def check_strange(text):
    """Odd input is answered as the real tool answers it."""
    folder = program()
    for arguments in ([], ["-e", "out"], ["--output-style=GNU"]):
        real, own = (tools.run(tool, arguments, text, folder) for tool in (tools.theirs(), tools.OURS))
        assert real == own, f"{arguments}: {tools.first_difference(real[0], own[0])}\n{real[1:]}\n{own[1:]}"


def check_garbage():
    """Random bytes: one answer for each line, and the real request behind them has its own."""
    folder = program()
    wanted = tools.run(tools.OURS, [], b"out main\n", folder)[0]
    for seed in range(3):
        junk = random.Random(seed).randbytes(200000) + b"\n"
        out, _, status = tools.run(tools.OURS, [], junk + b"out main\n", folder)
        assert status == 0 and out.endswith(b"\n\n" + wanted), f"seed {seed}: {status} {out[-300:]!r}"
        assert out.count(b"\n\n") == junk.count(b"\n") + 1, f"seed {seed}: {len(out)} bytes"


def check_long_lines():
    """A line of a megabyte is one request, as any other."""
    folder = program()
    wanted = tools.run(tools.OURS, [], b"out main\n", folder)[0]
    million = b"x" * 1000000
    for line in (million, million + b" 1", b"out 0x" + b"1" * 1000000, b"out " + million, b'"' + million,
                 b"BUILDID:" + b"a" * 1000000 + b" 1", b" " * 1000000, b"out main" + b" " * 1000000,
                 b"FILE:" * 200000):
        out, _, status = tools.run(tools.OURS, [], line + b"\nout main\n", folder)
        assert status == 0 and out.count(b"\n\n") == 2 and out.endswith(wanted), f"{line[:40]}: {out[:200]!r}"


def check_lost_output():
    """A reader that has gone is no error, a full disk is."""
    folder = program()
    tool = Coprocess(tools.OURS, cwd=folder)
    tool.process.stdout.close()
    for _ in range(2):
        try:
            tool.send(b"out main\n" * 1000)
        except BrokenPipeError:
            break
    try:
        tool.process.stdin.close()
    except BrokenPipeError:
        pass
    assert tool.process.wait(PATIENCE) in (0, -signal.SIGPIPE)
    with open("/dev/full", "wb") as full:
        done = ask.execute(tools.OURS, text=False, input=b"out main\n", stdout=full, cwd=folder)
    assert done.returncode > 0 and b"No space left" in done.stderr, done
    done = ask.execute("sh", "-c", '"$0" >&-', tools.OURS, text=False, input=b"out main\n", cwd=folder)
    assert done.returncode > 0 and b"standard output" in done.stderr, done


CASES = [
    ("protocol: each request is answered at once", check_at_once),
    ("protocol: lines that come in parts", check_parts),
    ("protocol: JSON is answered at once", check_json_at_once),
    ("protocol: garbage", check_garbage),
    ("protocol: lines of a megabyte", check_long_lines),
    ("protocol: output that nobody takes", check_lost_output),
]
CASES += [(f"protocol: {name}", lambda t=text: check_strange(t)) for name, text in STRANGE.items()]
