# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to, how they ask fathom filter, and what other tools say of the same addresses."""
import os
import re
import tempfile
import threading

import tap

from ask import execute, fathom, llvm, records_of
from building import nm

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
SUITE = tap.Suite("filter")
test = SUITE.test
MARK = b"  -> "


def once(function):
    """@function, called once for each argument, by whichever thread asks first."""
    lock, results = threading.Lock(), {}

    def ask(*key):
        with lock:
            if key not in results:
                results[key] = function(*key)
            return results[key]
    return ask


def need_x86():
    """Programs that run by themselves are for this machine."""
    if os.environ.get("WRAPPER") or os.uname().machine != "x86_64":
        raise tap.Skip("the programs of this suite run by themselves, on x86-64")


def as_bytes(log):
    return log if isinstance(log, bytes) else log.encode()


def filtered(log, *options, **more):
    """What fathom filter writes of @log, a file: bytes. It has nothing to say on standard error. Through a pipe a report would end
    where this process has no processor for a second."""
    with tempfile.TemporaryFile() as file:
        file.write(as_bytes(log))
        file.seek(0)
        done = fathom("filter", "--no-cache", *options, stdin=file, text=False, status=0, **more)
    assert not done.stderr, done.stderr
    return done.stdout


def objects(log, *options, **more):
    """The objects of --json, one for each address."""
    return records_of(filtered(log, "--json", *options, **more).decode())


def undone(output):
    """The log that @output is of: each line is cut at its last mark. One that begins with it is not the log's."""
    lines = output.split(b"\n")
    for i, line in enumerate(lines):
        end = b"\r" if line.endswith(b"\r") and i + 1 < len(lines) else b""
        lines[i] = line[:len(line) - len(end)].rpartition(MARK)[0] + end if MARK in line else line
        if line.rfind(MARK) == 0:
            lines[i] = None
    return b"\n".join(line for line in lines if line is not None)


def added(log, *options, **more):
    """What fathom filter adds to each line of @log, None for nothing; all else is as it was."""
    output = filtered(log, *options, **more)
    assert undone(output) == as_bytes(log), output[:2000]
    return [line.rpartition(MARK)[2].rstrip(b"\r").decode() if MARK in line else None for line in output.split(b"\n")]


def names_of(log, *options, **more):
    """The same for lines that each end with LF."""
    names = added(log, *options, **more)
    assert names.pop() is None
    return names


def reversible(log, *options, **more):
    """Asserts that @log can be had back; returns what fathom wrote."""
    output = filtered(log, *options, **more)
    back = undone(output)
    if back != as_bytes(log):
        at = next((i for i, (a, b) in enumerate(zip(back, as_bytes(log))) if a != b), min(len(back), len(log)))
        raise AssertionError(f"{len(log)} bytes went in, {len(back)} came back; at {at}: {back[at - 40:at + 80]!r}")
    return output


# What other tools say.

@once
def functions_of(path):
    """(address, name) of all functions of a file, by nm, sorted."""
    return sorted((value, name) for name, found in nm(path).items() for value, kind in found if kind in "tT")


def function_at(path, address):
    """The last function that begins at or before @address, and the distance."""
    value, name = max((f for f in functions_of(path) if f[0] <= address), default=(None, None))
    return name, None if value is None else address - value


def address_of(path, name):
    (found,) = [value for value, n in functions_of(path) if n == name]
    return found


@once
def frames_at(path, address):
    """(function, file, line, column) of each frame at @address, innermost first, by llvm-symbolizer."""
    (answer,) = llvm(path, [address])
    return [frame[:4] for frame in answer.frames]


def json_frames(record):
    return [(f["linkage_name"] or f["function"], f["file"], f["line"], f["column"]) for f in record["frames"]]


def lines_in(record):
    """(function, line) of each frame."""
    return [(f["function"], f["line"]) for f in record["frames"]]


def place(file, line, column):
    return f"{file}:{line}" + (f":{column}" if column else "")


def expected(path, address, lowered=None, by_path=False):
    """The text of @address of the unstripped file @path, as a regular expression. @lowered: where the instruction is looked
    for, if not there. The offset in an inlined function is not known to the tools that we ask."""
    frames = frames_at(path, address if lowered is None else lowered)
    name, distance = function_at(path, address if lowered is None else lowered)
    (function, *where), outer = frames[0], frames[1:]
    if outer:
        offset = "0x[0-9a-f]+"
    else:
        assert name == function, (name, frames)
        offset = f"{distance + (0 if lowered is None else address - lowered):#x}"
    text = re.escape(f"{function}+") + offset + re.escape(f" {place(*where)}")
    for function, *where in outer:
        text += re.escape(f", inlined into {function} {place(*where)}")
    return text + re.escape(" (by path)" if by_path else "")


def check_names(log, wanted, *options, **more):
    """Asserts that the lines of @log get the names @wanted, regular expressions; None: nothing."""
    names = names_of(log, *options, **more)
    lines = as_bytes(log).decode().splitlines()
    assert len(names) == len(wanted) == len(lines), (len(names), len(wanted), len(lines))
    wrong = [f"{line}\n   has {name}\n   not {want}" for line, name, want in zip(lines, names, wanted)
             if (name is None) != (want is None) or (want is not None and not re.fullmatch(want, name))]
    assert not wrong, "\n".join(wrong)


def run_bytes(*command, **more):
    return execute(*command, text=False, **more).stdout
