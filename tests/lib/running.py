# SPDX-License-Identifier: MIT
"""Programs that run while they are asked about, and what /proc says of them."""
import collections
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import threading
import time

import tap

from ask import FATHOM, HANG_SECONDS, execute


class Running:
    """A program with pipes for its standard input and output; it is killed where the block ends."""

    def __init__(self, command, **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True} | options
        self.process = subprocess.Popen([str(word) for word in command], **options)
        self.pid = self.process.pid
        self.threads = []

    def line(self):
        """The next line that it prints, without its end."""
        return self.process.stdout.readline().rstrip("\n")

    def send(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def flood(self, text):
        """Writes @text meanwhile, as far as the program reads it, and throws away what it prints."""
        def write():
            with contextlib.suppress(OSError):
                self.send(text)
        self.threads = [threading.Thread(target=work, daemon=True) for work in (write, self.process.stdout.read)]
        for thread in self.threads:
            thread.start()

    def is_running(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            # What was written to a program that has ended cannot be flushed.
            with contextlib.suppress(BrokenPipeError):
                if pipe:
                    pipe.close()


@contextlib.contextmanager
def in_memory(path):
    """A descriptor of a file in memory only, with the bytes of @path."""
    fd = os.memfd_create("nameless")
    with open(path, "rb") as source, open(fd, "wb") as copy:
        copy.write(source.read())
        copy.flush()
        yield fd


class Told(Running):
    """A program that tells "NAME ADDRESS" lines and then "done", at its start and after each command that it reads;
    @places is what it told at its start: {name: address}."""

    def __init__(self, command, **options):
        super().__init__(command, **options)
        self.places = self._read()

    def _read(self):
        places = {}
        for line in self.process.stdout:
            if line == "done\n":
                return places
            name, address = line.split()
            places[name] = int(address, 16)
        raise AssertionError(f"{self.process.args}: ended early")

    def tell(self, command):
        self.send(command + "\n")
        return self._read()


class Asked(Running):
    """One run of fathom that is asked again and again on its standard input: it keeps what it has read."""

    def __init__(self, target, *options, verb="addr", **more):
        super().__init__([FATHOM, verb, "--json", "--no-cache", *options, target], stderr=subprocess.PIPE, **more)

    def ask(self, word, times=1, answers=1):
        """The records of @word, asked so many times in one batch, with so many answers each."""
        self.send(f"{hex(word) if isinstance(word, int) else word}\n" * times)
        return [json.loads(self.line()) for _ in range(times * answers)]

    def one(self, word):
        return self.ask(word)[0]

    def last(self, word=None):
        """(status, output, complaint) of a last question, or of none."""
        out, complaint = self.process.communicate("" if word is None else f"{hex(word) if isinstance(word, int) else word}\n",
                                                  timeout=HANG_SECONDS)
        return self.process.returncode, out, complaint


class AskedText(Running):
    """The same, with answers as text."""

    def __init__(self, target, *options, verb="addr"):
        super().__init__([FATHOM, verb, *options, target])

    def one(self, word):
        """The lines of one answer, which an empty line ends."""
        self.send(f"{hex(word) if isinstance(word, int) else word}\n")
        return list(iter(self.line, ""))


Mapping = collections.namedtuple("Mapping", "start end rights off path")


def mappings_of(pid):
    """What a process has mapped; a path is "" where there is none."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(None, 5)
            start, end = (int(x, 16) for x in fields[0].split("-"))
            yield Mapping(start, end, fields[1], int(fields[2], 16), fields[5] if len(fields) > 5 else "")


def mapping_of(pid, path):
    """The first mapping of @path, or None."""
    return next((m for m in mappings_of(pid) if m.path == path), None)


def peek(pid, address, size=16):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def state_of(pid):
    """The letter that says what the first thread is doing (proc(5))."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def until(happens, what):
    """What @happens() returns once that is true: it is asked again and again. @what says what did not come, or returns that."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := happens()):
        assert time.monotonic() < deadline, f"it did not come: {what() if callable(what) else what}"
        time.sleep(0.002)
    return found


def wait_for_state(pid, state):
    until(lambda: state_of(pid) == state, lambda: f"{pid} is in state {state_of(pid)}, not {state}")


def name_of(tid):
    with open(f"/proc/{tid}/comm", encoding="utf-8") as comm:
        return comm.read().rstrip("\n")


def wait_for_name(tid, start):
    """Waits until the name of a thread begins so."""
    until(lambda: name_of(tid).startswith(start), lambda: f"{tid} is named {name_of(tid)}, not {start}")


def content(path):
    """The text of a file, as it is now."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _number_in(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))


def tracer_of(pid):
    """The number of the process that traces a thread, or 0. The kernel tells the thread that does."""
    tracer = _number_in(pid, "TracerPid:")
    return _number_in(tracer, "Tgid:") if tracer else 0


def call_of(pid):
    """The number of the system call in which a thread waits; None of one that runs."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as call:
        word = call.read().split()[0]
    return int(word) if word.isdigit() else None


def in_namespaces(*options, then):
    """A command that runs the shell script @then in namespaces of its own, which unshare(1) makes by @options."""
    able = execute("unshare", *options, "true")
    if able.returncode:
        raise tap.Skip(f"namespaces cannot be made here: {able.stderr.strip()}")
    return ["unshare", *options, "sh", "-c", then]


def child_of(pid):
    """The number of the process that @pid, a wrapper, has started, or its own."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int((file.read().split() or [pid])[0])


# What of files the kernel writes into cores (core(5)): what was written (1) and shared (2, 8), ELF headers (10); all
# else of them (4).
NO_HEADERS, HEADERS_ONLY, USUAL, ALL = 0x23, 0x10, 0x33, 0x3f


def dying(*command, core_filter=USUAL):
    """@command so that the kernel writes its core, with such memory in it."""
    script = f'ulimit -c unlimited && echo {core_filter:#x} > /proc/self/coredump_filter && exec "$@"'
    return ["sh", "-c", script, "sh", *command]


def need_kernels_cores():
    """The kernel writes cores into the folder of the program."""
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as pattern:
        if re.match(r"\||.*/", pattern.read()):
            raise tap.Skip("this system gives cores of the kernel to another program (core_pattern)")


def kernels_core(running, folder):
    """Ends @running, which runs dying() in @folder; its core."""
    need_kernels_cores()
    running.signal(signal.SIGABRT)
    running.process.wait()
    (core,) = glob.glob(f"{folder}/core*")
    return core


def core_of_dying(folder, *command, core_filter=USUAL):
    """The core that the kernel writes of a program that ends itself."""
    need_kernels_cores()
    os.makedirs(f"{folder}/here", exist_ok=True)
    execute(*dying(*command, core_filter=core_filter), cwd=f"{folder}/here")
    (core,) = glob.glob(f"{folder}/here/core*")
    os.rename(core, f"{folder}/core")
    return f"{folder}/core"
