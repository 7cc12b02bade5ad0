# SPDX-License-Identifier: MIT
"""Programs that tell where they have what (tests/processes/programs), and questions about them: shared by
the suites about what runs and what ran."""
import json
import os
import subprocess

from ask import FATHOM, run

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "processes", "programs")


class Told:
    """A running program that tells "NAME ADDRESS" lines and then "done", at its start and after each command that
    it reads; @places is what it told at its start: {name: address}."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        **options)
        self.pid = self.process.pid
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
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Asked:
    """One run of fathom addr that is asked about a process again and again: it keeps what it has read."""

    def __init__(self, pid, *options):
        self.process = subprocess.Popen([FATHOM, "addr", "--json", "--no-cache", *options, str(pid)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, address, times=1):
        """The answers to the address, asked so many times in one batch."""
        self.process.stdin.write(f"{address:#x}\n" * times)
        self.process.stdin.flush()
        return [json.loads(self.process.stdout.readline()) for _ in range(times)]

    def one(self, address):
        return self.ask(address)[0]

    def last(self, address):
        """(status, answers, complaint) of a last question."""
        out, complaint = self.process.communicate(f"{address:#x}\n", timeout=60)
        return self.process.returncode, out, complaint

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def build(folder, name="told", *options, source="told.c", compiler="gcc"):
    path = os.path.join(folder, name)
    run(compiler, "-O1", "-g", *options, "-o", path, os.path.join(PROGRAMS, source))
    return path


def library(folder, name, *options, compiler="gcc"):
    return build(folder, name, "-shared", "-fPIC", *options, source="library.c", compiler=compiler)


def ask(target, addresses, *options, user=None, env=None):
    """fathom's answers, as records, and what it printed to standard error."""
    command = [FATHOM, "addr", "--json", "--no-cache", *options, str(target), *map(hex, addresses)]
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=60, env=env)
    assert done.returncode in (0, 1), f"{command}: {done.returncode} {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def check_places(target, places, *options, user=None):
    """What is at each of @places, and 2 bytes into it, is called by its name."""
    names = sorted(places)
    for off in (0, 2):
        records, _ = ask(target, [places[n] + off for n in names], *options, user=user)
        got = [(r["symbol"], r["offset"]) for r in records]
        assert got == [(n, off) for n in names], f"{got}, not {names}"
    return records


STYLES = [
    ("gcc, PIE", "gcc", ["-pie", "-fPIE", "-ldl"]),
    ("gcc, at fixed addresses", "gcc", ["-no-pie", "-ldl"]),
    ("static", "gcc", ["-static", "-DPLAIN"]),
    ("static PIE", "gcc", ["-static-pie", "-fPIE", "-DPLAIN"]),
    ("code not separate", "gcc", ["-Wl,-z,noseparate-code", "-ldl"]),
    ("pages of 2 MiB", "gcc", ["-Wl,-z,max-page-size=0x200000", "-ldl"]),
    ("lld", "clang-19", ["-fuse-ld=lld", "-ldl"]),
    ("gold", "gcc", ["-fuse-ld=gold", "-ldl"]),
    ("code at 0x10000000", "gcc", ["-no-pie", "-Wl,-Ttext-segment=0x10000000", "-ldl"]),
    ("lld, segments that share pages", "clang-19", ["-fuse-ld=lld", "-Wl,-z,noseparate-code", "-ldl"]),
]
