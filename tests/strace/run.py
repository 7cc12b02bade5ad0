#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "strace": system calls, by fathom strace beside strace, and by fathom trace in one log with functions."""
import collections
import difflib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import own_calls  # noqa: E402
import rewritten  # noqa: E402
import sandboxed  # noqa: E402
import strace_versions  # noqa: E402
import tap  # noqa: E402

import ask  # noqa: E402
from ask import FATHOM, execute, run  # noqa: E402
from rewritten import INSIDE, LINKED  # noqa: E402
from running import Running, call_of, tracer_of, until  # noqa: E402

SUITE = tap.Suite("strace")
SITES = "-fpatchable-function-entry=18,16"
CALL = re.compile(r"^(\d+ +)?(\w+)\(.*\) += (-?\w+|\?)", re.S)


CURRENT = threading.local()  # of each test: way, the options for the way by which calls are seen


def test(name, rewritten=False):
    """A test that is left out where programs cannot be traced by fathom; one more where call instructions are @rewritten."""
    def decorate(function):
        def call(folder, way):
            tap.need_traced_programs()
            CURRENT.way = way
            function(folder)
        SUITE.add(name, lambda folder: call(folder, []))
        if rewritten:
            SUITE.add("rewritten: " + name, lambda folder: call(folder, ["--way=rewrite"]))
        return function
    return decorate


def fathom(verb, *words, **more):
    """fathom, by the way that is tested."""
    traces = verb == "trace" and any(word.startswith("--syscalls") or word == "--inject" for word in words)
    return ask.fathom(verb, *(CURRENT.way if traces else []), *words, **more)


def program(folder, name, *flags):
    path = os.path.join(folder, name + ("-sites" if flags else ""))
    building.build(path, os.path.join(HERE, "programs", name + ".c"), "-pthread", *flags)
    return path


def without_random(lines):
    """Lines in which what was read of /dev/urandom is left out."""
    opened, found = set(), []
    hexadecimal = "".join(f"\\\\x{ord(c):02x}" for c in "/dev/urandom")
    for line in lines:
        m = re.search(rf'^openat\(AT_FDCWD.*"(?:/dev/urandom|{hexadecimal})".* = (\d+)', line)
        opened |= {m[1]} if m else set()
        m = re.match(r"(read|close)\((\d+)[,<)]", line)
        if m and m[2] in opened:
            line = f"{m[1]}({m[2]})" if m[1] == "read" else line
            opened -= {m[2]} if m[1] == "close" else set()
        found.append(line)
    return found


def both(folder, options, command, statuses=True, **more):
    """What both tools write with -o: their lines, and their ends."""
    found = []
    for tool, as_other in ((["strace"], strace_versions.as_fathom), ([FATHOM, "strace", *CURRENT.way], strace_versions.as_strace)):
        log = os.path.join(folder, "log")
        done = execute(*tool, "-o", log, *options, *command, **more)
        with open(log, encoding="utf-8", errors="surrogateescape") as f:
            found.append((without_random(map(as_other, f.read().splitlines())), done))
    assert not statuses or found[0][1].returncode == found[1][1].returncode, found
    return found


def alike(line):
    """@line without what differs from run to run: addresses, times, random bytes, what the system has."""
    line = re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", line)
    line = re.sub(r"(pipe|socket):\[\d+\]", r"\1", line)
    line = re.sub(r"/\* \d+ vars \*/", "VARIABLES", line)
    line = re.sub(r"(tv_n?sec|st_[acm]time(?:_nsec)?|stx?_size|uptime|freeram|procs|bufferram|sharedram|rlim_\w+|ru_\w+|si_utime|si_stime)=[^,}]*", r"\1=", line)
    line = re.sub(r"loads=\[[^]]*\]", "loads", line)
    line = re.sub(r'(getrandom\()"[^"]*"\.*', r"\1", line)
    line = re.sub(r"\b(?:(si_pid=)\d+|((?:kill|tgkill|wait4)\()\d+(, \d+)?)", r"\1\2PID", line)
    line = re.sub(r"(clone3?\(.*\) += )\d+$", r"\1PID", line)
    line = re.sub(r"(WEXITSTATUS.* = )\d+$", r"\1PID", line)
    line = re.sub(r"\b(st_ino|stx_ino)=\d+, ", r"\1, ", line)
    line = re.sub(r"\b(set_tid_address|gettid|getpid|getppid|getpgrp|getpgid|getsid|times|time)\((.*)", r"\1", line)
    return re.sub(r" += ", " = ", line)


def numbered(lines):
    """Lines in which processes are called by the order in which they are made, or seen: their numbers are larger than others."""
    seen = {}
    made = [m[0] for m in (re.search(r"(?<=\bclone3[ (]).* = \d+$", line) for line in lines) if m]
    for line in lines[:1] + [f"{text.rsplit(' ', 1)[1]} " for text in made] + lines:
        m = re.match(r"(\d+) ", line)
        if m:
            seen.setdefault(m[1], f"P{len(seen)}")
    pids = re.compile(r"\b(" + "|".join(seen) + r")\b")
    return [pids.sub(lambda m: seen[m[1]], line) for line in lines]


def whole(lines):
    """{process: its lines}, in which what was resumed stands behind what it resumes."""
    begun, found = {}, collections.defaultdict(list)
    for line in lines:
        pid, text = line.split(None, 1)
        if text.endswith(" <unfinished ...>"):
            assert pid not in begun, line
            begun[pid] = text[:-len(" <unfinished ...>")]
        elif text.startswith("<... "):
            name, rest = re.match(r"<\.\.\. (\w+) resumed>(.*)", text).groups()
            assert begun.get(pid, "").startswith(name + "("), (begun, line)
            found[pid].append(re.sub(r" += ", " = ", begun.pop(pid) + rest))
        else:
            found[pid].append(text)
    return {pid: [alike(line) for line in its] for pid, its in found.items()}


def check_equal(theirs, ours, least=0.995):
    """So many of strace's lines are ours, in order. A child's end interrupts its parent anywhere."""
    ends = [[line for line in lines if line.startswith("--- SIGCHLD")] for lines in (theirs, ours)]
    assert bool(ends[0]) == bool(ends[1]), ends
    theirs, ours = ([line for line in lines if not line.startswith("--- SIGCHLD")] for lines in (theirs, ours))
    matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    different = [line for line in difflib.unified_diff(theirs, ours, n=0, lineterm="") if line[:1] in "+-"]
    assert same >= least * max(len(theirs), len(ours)), "\n".join(different[:40])
    return different


CODE = "import os, socket, tempfile, threading, time, json; print(sum(range(10))); os.stat('/'); open('/etc/passwd').read()"
PROGRAMS = {
    "ls": ["ls", "-la", "/usr/lib"],
    "cat": ["cat", "/etc/passwd", "/nowhere"],
    "sort": ["sort", "/etc/passwd"],
    "tar": ["tar", "cf", "/dev/null", "/etc/apt"],
    "sqlite3": ["sqlite3", ":memory:", "create table t(a); insert into t values(1); select * from t;"],
    "python3": ["/usr/bin/python3", "-c", CODE],
    "perl": ["perl", "-e", "use POSIX; print `true`; open F, '<', '/etc/passwd'; print <F>"],
    "lua": ["lua5.4", "-e", "for l in io.lines('/etc/passwd') do print(l) end; os.execute()"],
    "bash": ["bash", "-c", "cd /; echo *; [ -e /etc/passwd ] && read x < /etc/passwd; exit 4"],
}
for NAME, COMMAND in PROGRAMS.items():
    @test(f"{NAME}: the lines of strace, with its usual options and others", rewritten=True)
    def _(folder, command=COMMAND):
        for options in ([], ["-v", "-s", "100"], ["-y"], ["-xx", "-e", "trace=read,write,openat"], ["-x", "-a", "60"])[:3 if CURRENT.way else 5]:
            (theirs, _), (ours, _) = both(folder, options, command, env=os.environ | {"PERL_HASH_SEED": "0"})
            # How often the heap grows depends on where it begins.
            check_equal(*([alike(line) for line in lines if not line.startswith("brk(")] for lines in (theirs, ours)))


@test("columns: lines of strace byte for byte, but for addresses", rewritten=True)
def _(folder):
    (theirs, _), (ours, _) = both(folder, [], ["true"])
    def exact(lines):
        return [re.sub(r"0x[0-9a-f]{5,}", lambda m: "0x" + (len(m[0]) - 2) * "f", line) for line in lines
                if not re.match(r"getrandom|set_tid|execve|brk", line)]
    assert exact(theirs) == exact(ours)


@test("threads and processes: those of strace -f, each in its order, and no line is torn", rewritten=True)
def _(folder):
    path = program(folder, "tree")
    for what in "forks", "vforks", "threads", "execs", "signals":
        (theirs, done), (ours, _) = both(folder, ["-f"], [path, what])
        assert done.returncode == (0 if what == "execs" else 3)
        theirs, ours = (sorted(whole(numbered(lines)).values()) for lines in (theirs, ours))
        assert [len(lines) for lines in theirs] == [len(lines) for lines in ours] or what == "threads", (theirs, ours)
        for one, other in zip(theirs, ours):
            # Whether a thread waits for another is chance.
            one, other = ([line for line in lines if not re.match("futex|mmap|munmap|madvise|mprotect|brk", line)] for lines in (one, other))
            check_equal(one, other, 0.9 if what == "threads" else 0.995)


@test("a word that a thread's end has cleared: what clone stored there is what it returned", rewritten=True)
def _(folder):
    lines, done = both(folder, [], [program(folder, "tree"), "cleared"])[1]
    assert done.returncode == 0, done
    stored = [re.search(r"parent_tid=\[(\d+)\].* = (\d+)$", line) for line in lines if "CLONE_CHILD_CLEARTID" in line]
    assert len(stored) == 1 and stored[0] and stored[0][1] == stored[0][2], lines


@test("ends: statuses, signals and cores are those of the program, for whoever waits, too", rewritten=True)
def _(folder):
    path = program(folder, "tree")
    (theirs, one), (ours, other) = both(folder, [], [path, "dies"], cwd=folder)
    assert one.returncode == other.returncode == -signal.SIGSEGV
    strip = [[re.sub(r"\(core dumped\) ", "", line) for line in map(alike, lines)] for lines in (theirs, ours)]
    check_equal(*strip)
    assert ours[-1].startswith("+++ killed by SIGSEGV ") and ours[-2].startswith("--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x8}")
    assert both(folder, [], ["false"])[1][1].returncode == 1
    done = execute(FATHOM, "strace", "/nowhere/program")
    assert done.returncode == 1 and "/nowhere/program" in done.stderr, done


@test("sets: names, classes, expressions and their opposites select the calls that strace selects")
def _(folder):
    for what in ("openat,close", "%file", "%memory", "%desc", "%process", "%signal", "%network", "/^m", "!%memory,%file", "all", "none", "%stat", "%%stat",
                 "%clock", "%creds", "%pure", "file", "/open|close", "!openat"):
        (theirs, _), (ours, _) = both(folder, ["-e", f"trace={what}"], ["ls", "/"])
        check_equal([what] + [alike(line) for line in theirs], [what] + [alike(line) for line in ours], 1)
    done = execute(FATHOM, "strace", "-e", "trace=opennat", "true", status=1)
    assert done.stderr == "fathom: opennat: there is no such system call, class or expression\n", done.stderr


def folder_of_files(folder):
    """A folder with another that refers to it, for the program "refers"."""
    place = os.path.join(os.path.realpath(folder), "place")
    os.makedirs(place, exist_ok=True)
    link = os.path.join(os.path.realpath(folder), "link")
    if not os.path.lexists(link):
        os.symlink("place", link)
    return place, link


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


@test("-P: the calls that strace chooses by names, descriptors, symbolic links and several paths; which path is meant is said")
def _(folder):
    path = program(folder, "refers")
    place, link = folder_of_files(folder)
    chosen = os.path.join(place, "chosen")
    for options, least in ((["-P", chosen], 40), (["-P", "chosen"], 5), (["--trace-path", chosen, "-y"], 40), (["-P", place], 12),
                           (["-P", "/nowhere", "-P", os.path.join(link, "other")], 4), (["-P", chosen, "-e", "trace=read,openat,poll"], 3),
                           (["-P", chosen, "-e", "inject=read,fsync:error=EIO"], 40), (["-P", "/nowhere"], 1)):
        (theirs, one), (ours, other) = both(folder, options, [path, place])
        check_equal([re.sub(r"f_\w+=\d+", "", alike(line)) for line in theirs], [re.sub(r"f_\w+=\d+", "", alike(line)) for line in ours], 1)
        assert len(ours) >= least and one.stderr == other.stderr.replace("fathom strace:", "strace:"), (options, one, other)
    assert other.stderr == ""
    touch(chosen)
    (_, one), (_, other) = both(folder, ["-P", os.path.join(link, "chosen"), "-e", "trace=none"], ["true"])
    assert other.stderr == one.stderr.replace("strace:", "fathom strace:") == f'fathom strace: Requested path "{link}/chosen" resolved into "{chosen}"\n', other
    (_, _), (_, quiet) = both(folder, ["-qqq", "-P", os.path.join(link, "chosen")], ["true"])
    assert quiet.stderr == "", quiet


def in_order(lines):
    """Lines in which numbers of sockets, ports and processes are called by the order in which they are seen."""
    seen = {}
    return [re.sub(r"\b\d{3,}\b", lambda m: seen.setdefault(m[0], f"N{len(seen)}"), line) for line in lines]


DESCRIPTORS = ["/usr/bin/python3", os.path.join(HERE, "programs", "descriptors.py")]


def begin_with_sockets(lines):
    """The lines from the first socket on, in which numbers are called by their order, those in hexadecimal strings, too."""
    first = next(i for i, line in enumerate(lines) if line.startswith("socket("))
    plain = [re.sub(r"(?:\\x3\d)+", lambda m: "DIGITS " + bytes.fromhex(m[0].replace("\\x", "")).decode() + " ", line) for line in lines[first:]]
    return in_order([alike(re.sub("nl_pad=[^,]*, ", "", line)) for line in plain])


@test("-yy and -e decode-fds=: sockets, devices, pidfds and paths are strace's, also in strings in hexadecimal, and of what calls close and replace")
def _(folder):
    calls = "trace=%network,read,write,openat,close,dup2,pipe2,newfstatat,/^(pidfd|epoll)"
    for options in (["-yy"], ["-y"], ["-yyy", "-xx"], ["-yy", "-x"], ["--decode-fds=socket"], ["--decode-fds=dev"], ["-e", "decode-fds=pidfd"],
                    ["--decode-fds=path,dev"], ["-e", "decode-fd=!path"], ["--decode-fds=all"], ["--decode-fds"], ["--decode-fds=none"]):
        # Two ports are the same now and then, in one of the runs.
        for _ in range(3):
            begun = [begin_with_sockets(lines) for lines, _ in both(folder, [*options, "-e", calls], [*DESCRIPTORS, folder])]
            if begun[0] == begun[1]:
                break
        assert len(begun[1]) > 90
        check_equal(*begun, 1)


@test("-yy: what sockets are is what the program knows of them, to the call that closes them, and after they were connected elsewhere")
def _(folder):
    (_, _), (ours, done) = both(folder, ["-yy", "-e", "trace=%network,close"], [*DESCRIPTORS, folder])
    own, peer = done.stdout.split()
    ends = [m[1] for m in (re.match(r"close\(\d+<TCP:\[(.*)\]>\) = 0", re.sub(" +", " ", line)) for line in ours) if m]
    assert ends[:3] == [f"{own}->{peer}", f"{peer}->{own}", peer], (ends, done.stdout)
    code = ("import socket; s = socket.socket(2, 2); s.bind(('127.0.0.1', 0))\n"
            "for port in 9, 10, 11: s.connect(('127.0.0.1', port)); s.getpeername(); print(*s.getsockname(), *s.getpeername())")
    log = os.path.join(folder, "log")
    done = execute(FATHOM, "strace", "-yy", "-o", log, "-e", "trace=getpeername,close", "/usr/bin/python3", "-c", code, status=0)
    told = re.findall(r"getpeername\(\d+<UDP:\[(.*?)\]>", open(log, encoding="utf-8").read())
    told = list(dict.fromkeys(told))
    assert told == ["{}:{}->{}:{}".format(*line.split()) for line in done.stdout.splitlines()] and len(told) == 3, (told, done.stdout)
    for words in ["-y", "--decode-fds=socket"], ["-e", "decode-fds=none", "-yy"], ["-e", "decode-fds=sockets"]:
        assert execute(FATHOM, "strace", *words, "true").returncode == 1, words


@test("-e read= and -e write=: the bytes that calls move, as strace prints them, of the descriptors that are named, to the last of a mebibyte")
def _(folder):
    path = program(folder, "moves")
    for options in (["-e", "read=all", "-e", "write=all"], ["-e", "read=3,5", "-e", "write=4"], ["-e", "write=!4,5"], ["--read=all", "-y"], ["-e", "w=none", "-e", "r=4"],
                    ["-e", "reads=all", "-z", "-T"], ["--write=all", "-e", "trace=writev,sendmsg"]):
        (theirs, _), (ours, _) = both(folder, options, [path], cwd=folder)
        check_equal(*([re.sub(r"<\d\.\d+>$", "", alike(line)) for line in lines] for lines in (theirs, ours)), 1)
        assert any(line.startswith(" | 0000") for line in ours) == (options[-1] != "r=4"), options
    data = os.path.join(folder, "data")
    with open(data, "wb") as f:
        f.write(bytes(i * 7 % 251 for i in range((1 << 20) + 20)))
    for size in (1 << 20) - 1, 1 << 20, (1 << 20) + 1:
        (theirs, _), (ours, _) = both(folder, ["-e", "read=0", "-e", "trace=read"], ["dd", f"if={data}", f"bs={size}", "count=1", "of=/dev/null", "status=none"])
        assert theirs == ours and len(ours) > 65536
    # More than a record holds is said.
    log = os.path.join(folder, "log")
    execute(FATHOM, "strace", "-o", log, "-e", "read=0", "-e", "trace=read", "dd", "if=/dev/zero", "bs=8M", "count=1", "of=/dev/null", status=0)
    lines = open(log, encoding="utf-8").read().splitlines()
    missing = next(re.match(r" \* (\d+) bytes were not kept$", line) for line in lines if line.startswith(" *"))
    shown = sum(line.startswith(" | ") for line in lines[[line.startswith("read(0") for line in lines].index(True):])
    assert int(missing[1]) + 16 * shown == 8 << 20, (missing, shown)


@test("-e abbrev=, -e verbose= and -e raw=: structures and numbers of the calls that are named, as strace shows them")
def _(folder):
    path = program(folder, "moves")
    refers, (place, _) = program(folder, "refers"), folder_of_files(folder)
    for options in (["-e", "raw=read,openat,exit_group,mmap"], ["-e", "abbrev=none"], ["-e", "abbrev=!execve,newfstatat"], ["-e", "verbose=none"], ["-e", "a=none", "-e", "v=!writev"],
                    ["--verbose=!writev,pipe2"], ["--raw=all"], ["-v", "--abbrev=execve"], ["-e", "abbrev=execve", "-v"], ["-e", "x=%network", "-xx"], ["-e", "raw=all", "-y"]):
        for command in [path], [refers, place]:
            (theirs, _), (ours, _) = both(folder, options, command, cwd=folder)
            plain = [[re.sub(r"(?<=set_tid_address\(ADDRESS\) = ).*|(?<=getpid\(\) = ).*|^process_vm_readv\(0x\w+|f_\w+=\w+| /\* \d{4}-.*? \*/", "", alike(line)) for line in lines]
                     for lines in (theirs, ours)]
            check_equal(*plain, 1)
    touch(os.path.join(place, "chosen"))
    for options in ["-e", "raw=all"], ["-e", "verbose=none"]:
        (theirs, _), (ours, _) = both(folder, ["-P", os.path.join(place, "chosen"), *options], [refers, place])
        check_equal(*([re.sub(r"f_\w+=\w+", "", alike(line)) for line in lines] for lines in (theirs, ours)), 1)
        assert len(ours) > 40


@test("-e quiet=: what strace leaves out; -q, -qq and -qqq are sets of it; a death is always told")
def _(folder):
    place, link = folder_of_files(folder)
    command = ["sh", "-c", "cat /dev/null; exit 3"]
    for options in ([], ["-q"], ["-qq"], ["-e", "quiet=all"], ["-e", "q=exit"], ["-e", "quiet=attach,exit"], ["-e", "silent=path-resolution"], ["--silence=none"],
                    ["-e", "quiet=!exit"], ["--quiet"], ["--quiet=exit"], ["-e", "quiet=personality,thread-execve,superseded"]):
        (theirs, one), (ours, other) = both(folder, ["-f", *options, "-P", link, "-e", "trace=exit_group", "-e", "signal=none"], command)
        strip = [sorted(line.split(None, 1)[1] for line in lines if "exit_group" not in line) for lines in (theirs, ours)]
        assert strip[0] == strip[1], (options, strip)
        said = [re.sub(r"\d+", "N", done.stderr) for done in (one, other)]
        assert said[0] == said[1].replace("fathom strace:", "strace:"), (options, said)
    assert place
    for options in [], ["-qqq"], ["-e", "quiet=all"]:
        (theirs, _), (ours, _) = both(folder, [*options, "-e", "trace=none"], ["sh", "-c", "kill -9 $$"])
        assert theirs == ours == ["+++ killed by SIGKILL +++"], (options, theirs, ours)


@test("trace --path: the same calls in the log of fathom trace, and functions as without it")
def _(folder):
    path = program(folder, "refers")
    place, link = folder_of_files(folder)
    chosen = os.path.join(place, "chosen")
    (theirs, _), _ = both(folder, ["-P", chosen], [path, place])
    names = [line.split("(")[0] for line in theirs if "(" in line]
    for name in chosen, os.path.join(link, "chosen"):
        touch(chosen)
        _, events = stream(folder, [path, place], "--no-functions", "--path", name)
        assert [e["name"] for e in events if e["type"] == "syscall"] == names, (name, events)
    _, events = stream(folder, [program(folder, "saved", SITES, "-O1"), os.path.join(place, "other")], "--path", os.path.join(place, "other"))
    calls = [e["function"] for e in events if e["type"] == "call"]
    assert calls == ["main", "save", "put", "flush"] and {e["name"] for e in events if e["type"] == "syscall"} == {"creat", "write", "fsync", "close"}, events


@test("statuses and signals: -z, -Z, -e status= and -e signal= leave out what strace leaves out", rewritten=True)
def _(folder):
    path = program(folder, "tree")
    for options in (["-z"], ["-Z"], ["-e", "status=failed"], ["-e", "status=successful,unfinished"], ["-e", "signal=SIGUSR1"], ["-e", "signal=!USR1"],
                    ["-e", "signal=none"], ["-qq"], ["-e", "trace=none"]):
        (theirs, _), (ours, _) = both(folder, options, [path, "signals"])
        check_equal([alike(line) for line in theirs], [alike(line) for line in ours], 1)


@test("prefixes: -i, -n, -t, -tt, -ttt, -r and -T have the shapes of strace, and times that are true", rewritten=True)
def _(folder):
    for options in (["-n"], ["-i"], ["-t"], ["-tt"], ["-ttt"], ["-r"], ["-T"], ["-f", "-tt", "-T"], ["-i", "-n", "-r"]):
        before = time.time()
        (theirs, _), (ours, _) = both(folder, options, ["sleep", "0.2"])
        shapes = [[re.sub(r"\d+", "9", re.sub(r"[0-9a-f]{16}", "PC", alike(line))) for line in lines] for lines in (theirs, ours)]
        assert shapes[0] == shapes[1], options
        if options == ["-ttt"]:
            times = [float(line.split()[0]) for line in ours]
            assert times == sorted(times) and before - 0.01 <= times[0] <= times[-1] <= time.time(), (before, times)
        slept = next(line for line in ours if "nanosleep" in line)
        if "-T" in options:
            assert 0.2 <= float(re.search(r"<([\d.]+)>$", slept)[1]) < 100, slept


@test("the instruction pointer of each call is behind its instruction", rewritten=True)
def _(folder):
    path = os.path.join(folder, "static")
    building.build(path, os.path.join(HERE, "programs", "saved.c"), "-static", "-no-pie")
    (theirs, _), (ours, _) = both(folder, ["-i"], [path, os.path.join(folder, "file")])
    # The first is in the tool itself.
    theirs, ours = theirs[1:], ours[1:]
    check_equal([alike(line) for line in theirs], [alike(line) for line in ours], 1)
    assert sum("fsync" in line for line in ours) == 1


@test("summaries: -c and -C count the calls and errors that strace counts; -S sorts; -w takes times by the clock", rewritten=True)
def _(folder):
    row = re.compile(r"^ *([\d.]+) +([\d.]+) +(\d+) +(\d+)(?: +(\d+))? +(\w+)$")
    def table(text):
        return {m[6]: (int(m[4]), int(m[5] or 0)) for m in map(row.match, text) if m}
    (theirs, _), (ours, _) = both(folder, ["-c"], ["ls", "-l", "/usr"])
    assert theirs[:2] == ours[:2] and table(theirs) == table(ours) and len(table(ours)) > 10, set(table(theirs).items()) ^ set(table(ours).items())
    (_, _), (ours, _) = both(folder, ["-C", "-e", "trace=openat"], ["ls", "/"])
    lines = [line for line in ours if line.startswith("openat(")]
    assert lines, ours
    (theirs, _), (ours, _) = both(folder, ["-c", "-S", "name"], ["ls", "/"])
    assert [m[6] for m in map(row.match, theirs) if m] == [m[6] for m in map(row.match, ours) if m]
    (_, _), (ours, _) = both(folder, ["-c", "-w"], ["sleep", "0.3"])
    first = row.match(ours[2])
    assert first[6] == "clock_nanosleep" and 0.3 <= float(first[2]) < 0.6, ours


@test("-U and -S: the columns of a summary, their order, heads, widths and names are strace's; times are true")
def _(folder):
    def plain(lines):
        return [re.sub(r"\d+\.\d\d\d\d\d\d|(?<= )\d+(?= {1,9}\d+( |$))", lambda m: "9" * len(m[0]), line) for line in lines]
    for columns in ("name,calls,errors", "calls", "max-time,min-time,name,calls", "time,calls,name,errors", "shortest,longest,count,error,syscall", "time-total", "time-avg,errors"):
        (theirs, _), (ours, _) = both(folder, ["-c", "-U", columns, "-S", "name"], ["ls", "/", "/nowhere"])
        heads = [lines[:2] + [re.sub(r"\d", " ", lines[-2])] for lines in (theirs, ours)]
        assert heads[0] == heads[1] and len(theirs) == len(ours) and list(map(len, theirs)) == list(map(len, ours)), (columns, theirs, ours)
        if "time" not in columns and "est" not in columns:
            assert theirs == ours, (theirs, ours)
    for order in "time-max", "longest", "min-time", "shortest", "time-avg", "syscall-name", "nothing":
        (theirs, _), (ours, _) = both(folder, ["-c", "-S", order, "-e", "trace=openat,/nowhere|close"], ["true"])
        assert plain(theirs)[:2] == plain(ours)[:2], order
    _, (ours, _) = both(folder, ["-c", "-w", "-U", "min-time,max-time,avg-time,total-time,calls"], ["/usr/bin/python3", "-c", "import time; time.sleep(0.1); time.sleep(3)"])
    least, most, mean, total, calls, name = ours[2].split()
    assert name == "clock_nanosleep" and calls == "2" and 0 < float(least) < float(most) and float(most) >= 0.2, ours
    assert abs(float(least) + float(most) - float(total)) < 1e-5 and abs(int(mean) - 5e5 * float(total)) <= 1, ours
    (theirs, _), (ours, _) = both(folder, ["-c", "-e", "trace=none"], ["true"])
    assert theirs == ours == []
    for words in ["-U", "calls"], ["-c", "-U", "calls,count"], ["-c", "-U", "words"], ["-c", "-U", ""], ["-c", "-S", "words"]:
        assert execute(FATHOM, "strace", *words, "true", status=1).stderr.startswith("fathom: -"), words


@test("-ff writes a file for each process; -E sets and removes variables; -s 0 shows no text; standard error without -o")
def _(folder):
    path = program(folder, "tree")
    for tool, name in (["strace"], "theirs"), ([FATHOM, "strace", *CURRENT.way], "ours"):
        execute(*tool, "-ff", "-o", os.path.join(folder, name), path, "forks", status=3)
    files = {name: sorted(len(open(os.path.join(folder, f), encoding="utf-8").readlines()) for f in os.listdir(folder) if f.startswith(name + "."))
             for name in ("theirs", "ours")}
    assert files["theirs"] == files["ours"] and len(files["ours"]) == 6, files
    for tool in ["strace"], [FATHOM, "strace", *CURRENT.way]:
        done = execute(*tool, "-E", "WORD=x y", "-E", "HOME", "-e", "trace=none", "sh", "-c", "echo $WORD-$HOME", status=0)
        assert done.stdout == "x y-\n" and done.stderr == "+++ exited with 0 +++\n", done
    (theirs, _), (ours, _) = both(folder, ["-s", "0"], ["cat", "/etc/passwd"])
    check_equal([alike(line) for line in theirs], [alike(line) for line in ours], 1)


@test("a process that runs: its calls from then on; Ctrl-C leaves it as it was")
def _(folder):
    log = os.path.join(folder, "log")
    code = "import os\nfor n, _ in enumerate(iter(lambda: os.read(0, 1), b'')):\n    os.stat('/etc'); os.write(1, b'%d\\n' % (n + 1))\n"

    def written():
        with open(log, encoding="utf-8") as file:
            return [int(n) for n in re.findall(r'^write\(1, "(\d+)\\n", \d+\) += \d+$', file.read(), re.M)]
    with Running([sys.executable, "-c", code]) as server:
        def ask(times):
            server.send("x" * times)
            return [server.line() for _ in range(times)]
        assert ask(2) == ["1", "2"]
        with subprocess.Popen([FATHOM, "strace", "-o", log, "-p", str(server.pid)], stderr=subprocess.PIPE, text=True) as tracer:
            until(lambda: tracer_of(server.pid), "the tracer")
            until(lambda: ask(1) and written(), "its calls")
            last = int(ask(5)[-1])
            tracer.send_signal(signal.SIGINT)
            said = tracer.communicate()[1]
        assert tracer.returncode == 0, said
        assert not tracer_of(server.pid) and ask(3) == [str(last + i) for i in (1, 2, 3)]
        server.process.stdin.close()
        assert server.process.wait() == 0
    with open(log, encoding="utf-8") as file:
        asked = [line for line in file if re.match(r'(newfstatat|stat)\(.*"/etc", \{st_mode=S_IFDIR\|0755', line)]
    assert written() == list(range(written()[0], last + 1)) and 3 <= written()[0] and len(written()) >= 6, (written(), last)
    # It may have been attached to between the two.
    assert len(asked) in (len(written()), len(written()) - 1), asked


@test("injection: errors, results, signals and delays come to the calls that strace gives them to", rewritten=True)
def _(folder):
    path = program(folder, "tree")
    for options, command in ((["-e", "inject=openat:error=EACCES:when=3+2"], ["ls", "/"]), (["-e", "fault=openat:when=4"], ["ls", "/"]),
                             (["-e", "inject=write:retval=5:when=1..2"], ["sh", "-c", "echo hello; echo again; echo third"]),
                             (["-e", "inject=openat:signal=WINCH:when=2"], [path, "nothing"]),
                             (["-e", "inject=openat:error=2", "-e", "trace=openat"], ["cat", "/etc/passwd"]),
                             (["-e", "inject=getuid,geteuid:retval=7"], ["id", "-u"])):
        (theirs, one), (ours, other) = both(folder, options, command)
        assert (one.returncode, one.stdout) == (other.returncode, other.stdout), (options, one, other)
        check_equal([alike(line) for line in theirs], [alike(line) for line in ours], 1)
    log = os.path.join(folder, "log")
    execute(FATHOM, "strace", "-f", "-T", "-o", log, "-e", "trace=write", "-e", "inject=write:delay_enter=200ms:when=2", "-e", "inject=write:delay_exit=100000:when=3",
            "sh", "-c", "echo a; echo b; echo c; echo d", status=0)
    times = [float(line.rstrip().rsplit("<", 1)[1][:-1]) for line in open(log, encoding="utf-8") if "write(" in line]
    assert times[0] < 0.1 and 0.2 <= times[1] < 0.3 and times[2] < 0.1 and times[3] < 0.1, times
    for wrong in "inject=openat", "inject=openat:error=ENOTHING", "inject=openat:when=0:error=1", "inject=nothing:error=1", "inject=openat:delay_enter=5h":
        assert execute(FATHOM, "strace", "-e", wrong, "true").returncode == 1, wrong


@test("what fathom strace lacks is an error that says so, and nothing runs")
def _(folder):
    for words in (["-e", "kvm=vcpu"], ["-e", "decode-pids=comm"], ["-e", "read=x"], ["-e", "raw=opennat"], ["-e", "quiet=nothing"], ["-q", "-e", "quiet=exit"], ["--tips"], ["--tips=full"], ["-o", "|cat"], ["-e", "signal=SIGNONE"], ["-X", "word"], []):
        done = execute(FATHOM, "strace", *words, *["sh", "-c", f"echo > {folder}/made"] if words else [], status=1)
        assert done.stderr.startswith("fathom: ") and done.stderr.count("\n") == 1, (words, done.stderr)
        assert not os.path.exists(os.path.join(folder, "made")), words


@test("-u: the program runs with the rights of that user, set-user-ID programs with those of their owner; others than root may not")
def _(folder):
    if os.geteuid():
        raise tap.Skip("only root runs programs as others")
    os.chmod(folder, 0o755)
    for options in ["-e", "trace=%creds"], ["-f", "--seccomp-bpf", "-e", "trace=%creds"]:
        # The filter of strace 6.13 keeps its own setreuid() from being made; the lines are those without it.
        (theirs, one), _ = both(folder, ["-u", "nobody", *(o for o in options if o != "--seccomp-bpf")], ["id"], env=os.environ | {"HOME": "/nowhere"})
        _, (ours, other) = both(folder, ["-u", "nobody", *options], ["id"], statuses=False, env=os.environ | {"HOME": "/nowhere"})
        assert one.stdout == other.stdout and other.stdout.startswith("uid=65534(nobody) gid=65534"), other
        assert [re.sub(r"^\d+ +", "", line) for line in theirs] == [re.sub(r"^\d+ +", "", line) for line in ours] and len(ours) > 4, ours
    code = "import os; print(*os.getresuid(), *os.getresgid(), *os.getgroups(), os.environ['HOME'])"
    for tool in ["strace"], [FATHOM, "strace"]:
        log = os.path.join(folder, "log")
        done = execute(*tool, "-o", log, "-u", "daemon", "-e", "trace=none", "/usr/bin/python3", "-c", code, env=os.environ | {"HOME": "/nowhere"}, status=0)
        assert done.stdout == "1 1 1 1 1 1 1 /nowhere\n", done
    path = os.path.join(folder, "effective")
    building.build(path, os.path.join(HERE, "programs", "effective.c"))
    os.chmod(path, 0o4755)
    assert execute(FATHOM, "strace", "-u", "nobody", "-e", "trace=none", path, status=0).stdout == "65534 0\n"
    done = execute(FATHOM, "strace", "-u", "nobody-here", "true", status=1)
    assert done.stderr == "fathom: nobody-here: there is no such user\n", done
    tool = os.path.join(folder, "my-strace")
    with open(FATHOM, "rb") as source, open(tool, "wb") as f:
        f.write(source.read())
    os.chmod(tool, 0o755)
    done = execute("setpriv", "--reuid=65534", "--clear-groups", tool, "-u", "daemon", "true", status=1)
    assert done.stderr.startswith("fathom: -u: is for root"), done


@test("--seccomp-bpf: the same lines, of threads and children, too; the program does not stop at other calls; it ends with its tracer")
def _(folder):
    path = program(folder, "tree")
    for what in "openat,close", "write", "%file", "!%memory", "none", "all":
        (theirs, _), (ours, _) = both(folder, ["-f", "--seccomp-bpf", "-e", f"trace={what}"], [path, "forks"])
        theirs, ours = (sorted(whole(numbered(lines)).values()) for lines in (theirs, ours))
        for one, other in zip(theirs, ours, strict=True):
            check_equal(one, other)
    (theirs, _), (ours, _) = both(folder, ["-f", "--seccomp-bpf", "-e", "trace=openat", "-e", "inject=openat,close:error=EIO:when=2"], ["cat", "/etc/passwd"])
    check_equal(*[[alike(line) for line in next(iter(whole(numbered(lines)).values()))] for lines in (theirs, ours)])
    # The tracer sleeps until a stop, and the program while it is stopped.
    code = "import os\nfor i in range(10000): os.getppid()"
    # By a process of its own: other tests have children here meanwhile.
    counter = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw)"

    def waits(*options):
        return int(run("/usr/bin/python3", "-c", counter, FATHOM, "strace", "-f", "-o", "/dev/null", "-e", "trace=openat", *options, "/usr/bin/python3", "-c", code))
    # What else the machine does adds waits, and takes none away.
    stopped, filtered = waits(), min(waits("--seccomp-bpf") for _ in range(3))
    assert stopped > 20000 > 4 * filtered, (stopped, filtered)
    with subprocess.Popen([FATHOM, "strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=openat", "sh", "-c", "echo $$; exec sleep 100"],
                          stdout=subprocess.PIPE, text=True) as tracer:
        pid = int(tracer.stdout.readline())
        tracer.kill()
        tracer.wait()
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the program")


HOSTILE = {"path": "a page of a path comes and goes", "unmapped": "a page of a path is unmapped and mapped",
           "buffers": "a page of buffers is unmapped and mapped", "pointers": "every pointer bad", "descriptors": "no descriptors left",
           "root": "another root directory, other rights", "blocked": "all signals blocked, SIGSYS raised", "trap": "a filter that traps",
           "errno": "a filter that answers", "kill": "a filter that kills", "strict": "strict seccomp",
           "otherwise": "code of its own, int $0x80", "vfork": "vfork from threads", "uring": "io_uring",
           "interrupt": "calls that signals interrupt", "gs": "a gs base of its own", "shared": "children that its tracer traces, too"}


def as_untraced(what):
    def compare(folder):
        command = [program(folder, "hostile"), what, folder]
        alone = execute(*command)
        assert alone.returncode == {"descriptors": 7, "strict": 5, "kill": -signal.SIGSYS}.get(what, 3), alone
        log = os.path.join(folder, "log")
        for options in (["strace", "-f", "-o", log], ["strace", "-f", "-k", "-o", log], ["strace", "-f", "--seccomp-bpf", "-e", "trace=openat,getppid", "-o", log],
                        ["trace", "--syscalls", "--log", log, "--"], ["strace", "-f", "--way=rewrite", "-o", log],
                        ["trace", "--syscalls", "--way=rewrite", "--log", log, "--"], ["strace", "-o", log], ["strace", "--way=rewrite", "-o", log],
                        ["trace", "--syscalls", "--no-functions", "--no-children", "--log", log, "--"]):
            # The hook of functions needs the gs base.
            if what == "gs" and options[0] == "trace":
                continue
            traced = execute(FATHOM, *options, *command)
            assert (alone.returncode, alone.stdout) == (traced.returncode, traced.stdout), (options, alone, traced)
    return compare


for WHAT, MEANING in HOSTILE.items():
    test(f"hostile: {MEANING}: it behaves and exits as without fathom")(as_untraced(WHAT))


@test("memory without PROT_READ: what the kernel cannot read is an address", rewritten=True)
def _(folder):
    path = program(folder, "unreadable")
    # What may be run or written only, the processor can read.
    for options, more in ([], []), (["--seccomp-bpf", "-f"], []), *([] if CURRENT.way else [([], ["all"])]):
        found = both(folder, options, [path, *more])
        theirs, ours = ([re.sub(r"^\d+ +", "", alike(line)) for line in lines if "umove" not in line] for lines, _ in found)
        theirs, ours = (lines[next(i for i, line in enumerate(lines) if "PROT_NONE) = 0" in line):] for lines in (theirs, ours))
        check_equal(theirs, ours)
        assert "write(4, ADDRESS, 2) = -1 EFAULT (Bad address)" in ours, ours


@test("-e inject=: errors have the numbers that the kernel's can have, as strace has it")
def _(folder):
    for error, is_taken in ("1", True), ("133", True), ("4095", True), ("4096", False), ("0", False), ("99999999999999999999", False), ("12x", False):
        for tool in ["strace"], [FATHOM, "strace"]:
            done = execute(*tool, "-o", os.path.join(folder, "log"), "-e", f"inject=getppid:error={error}", "true")
            assert (done.returncode == 0) == is_taken, (tool, error, done)


sandboxed.add(test, program)


@test("rewritten calls: threads that are cancelled are unwound, wherever in a call or the hook they are")
def _(folder):
    path = program(folder, "cancelled", "-fexceptions")
    expected = "600 cancelled, 600 cleaned up\n"
    for command in [], [FATHOM, "strace", "-f", "--way=rewrite", "-o", os.path.join(folder, "log")]:
        done = execute(*command, path, "600", status=3)
        assert done.stdout == expected, (command, done.stdout)


@test("rewritten calls: signals interrupt them, handlers call and jump out: each result is right, and each signal is told")
def _(folder):
    path, log = program(folder, "alarms"), os.path.join(folder, "log")
    for command in [], [FATHOM, "strace", "--way=rewrite", "-o", log]:
        assert execute(*command, path, status=3).stdout == "0 1 1 1\n"
    with open(log, encoding="utf-8") as f:
        lines = f.read().splitlines()
    assert not any("unfinished" in line or "resumed" in line for line in lines)
    # What handlers leave by siglongjmp() has no return from the signal.
    signals = sum(line.startswith("--- SIGALRM") for line in lines)
    assert sum(line.startswith('openat(AT_FDCWD, "/dev/zero"') for line in lines) == signals > 100, signals
    assert any("ERESTART" in line for line in lines)


@test("signals that calls unblock: the handler runs in each; lines of many descriptors, and of addresses that are not wanted", rewritten=True)
def _(folder):
    path = program(folder, "waits")
    (theirs, one), (ours, other) = both(folder, [], [path])
    assert one.stdout == other.stdout == "80 -60\n", (one, other)
    check_equal([alike(line) for line in theirs if not line.startswith("brk(")], [alike(line) for line in ours if not line.startswith("brk(")])
    assert sum(line.startswith("--- SIGALRM") for line in ours) == 80


@test("rewritten calls: what is rewritten is not stopped; what is not is seen by ptrace, and says so")
def _(folder):
    path = program(folder, "tree")
    _, events = stream(folder, [path, "threads"], "--no-functions", "--way=rewrite")
    calls = [e for e in events if e["type"] == "syscall"]
    # The older name of each.
    assert [e["method"] for e in calls] == [e["way"] for e in calls]
    ways = {way: {e["name"] for e in calls if e["method"] == way} for way in ("ptrace", "rewrite")}
    assert {"execve", "exit_group", "exit"} < ways["ptrace"] and ways["ptrace"] & {"clone", "clone3"}, ways
    assert {"mmap", "openat", "write", "read", "close"} < ways["rewrite"] and not {"openat", "read", "close"} & ways["ptrace"], ways
    counts = {}
    for line in fathom("trace", "-c", "--json", "--syscalls", "--no-functions", "--way=rewrite", "--", path, "threads").stderr.splitlines():
        row = json.loads(line)
        assert sum(row["methods"].values()) == row["calls"] and row["ways"] == row["methods"], row
        counts[row["function"]] = row["ways"]
    assert counts["execve"] == {"ptrace": 1} and set(counts["mmap"]) == {"rewrite"}, counts
    text = fathom("trace", "-c", "--syscalls", "--no-functions", "--method=rewrite", "--", path, "threads").stderr
    assert re.search(r" &mmap \(\[kernel\], rewrite \d+\)$", text, re.M), text
    for wrong in ("dispatched", ""):
        for name in ("--method", "--way"):
            assert f"{name}: is not ptrace, rewrite or dispatch" in fathom("trace", f"{name}={wrong}", "--", "true", status=2).stderr
    assert execute(FATHOM, "strace", "--method=no", "true").returncode == execute(FATHOM, "strace", "--way=no", "true").returncode == 1


FURTHER = {"openat", "read", "write", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "vmsplice", "sendfile", "copy_file_range", "sendmsg", "recvmsg",
           "sendmmsg", "recvmmsg", "sendto", "recvfrom", "getsockname", "getsockopt", "setsockopt", "poll", "ppoll", "select", "pselect6", "epoll_ctl", "epoll_wait",
           "epoll_pwait", "epoll_pwait2", "ioctl", "rt_sigaction", "rt_sigprocmask", "rt_sigtimedwait", "rt_sigpending", "prlimit64", "statx", "sched_getaffinity",
           "prctl", "futex", "getdents64", "memfd_create", "pipe2", "socketpair"}


def of_further(lines):
    """
    What the program calls for itself, without the names that it makes. What recvmmsg() leaves of its timeout is not told; of what so many
    descriptors say strace -v cuts the end.
    """
    lines = [alike(line) for line in lines if len(line) < 10000 and not re.match(r"(mknod|mknodat|newfstatat|brk|set_tid_address|mmap|getpid|gettid)\(", line)]
    lines = [re.sub(r" /\* \d+-\d[^*]*\*/", "", line) for line in lines]
    # How many blocks the file system gives a new directory is chance.
    lines = [re.sub(r"(S_IFDIR.*\bst_blocks)=\d+", r"\1=", line) for line in lines]
    lines = [re.sub(r" \(left .*\)$", "", line) if line.startswith("recvmmsg(") else line for line in lines]
    return lines[next(i for i, line in enumerate(lines) if line.startswith("writev(")):]


@test("memory that points to memory: buffers, messages, sets, requests and directories of all sizes, at ends of pages, and bad: strace's lines", rewritten=True)
def _(folder):
    path = program(folder, "further")
    for options in [], ["-v", "-s", "7"]:
        found = []
        for tool, as_other in ((["strace"], strace_versions.as_fathom), ([FATHOM, "strace", *CURRENT.way], strace_versions.as_strace)):
            run("rm", "-rf", os.path.join(folder, "many"))
            log = os.path.join(folder, "log")
            execute(*tool, *options, "-o", log, path, folder, status=3)
            with open(log, encoding="utf-8") as f:
                found.append(of_further(list(map(as_other, f.read().splitlines()))))
        different = [(t, o) for t, o in zip(*found) if t != o]
        assert len(found[0]) == len(found[1]) > 130 and not different, different[:5]


@test("rewritten calls: those that point to further memory are recorded without a stop, unless one event has no room or the memory is not there")
def _(folder):
    _, events = stream(folder, [program(folder, "further"), folder], "--no-functions", "--way=rewrite")
    ways = collections.defaultdict(collections.Counter)
    for e in events:
        if e["type"] == "syscall":
            ways[e["name"]][e["way"]] += 1
    # The C library takes an older name where the system has that, too.
    found = {{"pipe": "pipe2", "accept": "accept4"}.get(name, name) for name, its in ways.items() if its["rewrite"]}
    assert FURTHER - found <= {"select"}, FURTHER - found
    stopped = {name: its["ptrace"] for name, its in ways.items() if its["ptrace"]}
    only = {"execve", "arch_prctl", "exit_group"}
    assert only <= set(stopped) and all(ways[name]["rewrite"] == 0 for name in only), stopped
    # Each of these has bad addresses, or more elements than an event has room for.
    hard = {"writev", "sendfile", "sendmsg", "recvmsg", "getsockname", "sendmmsg", "recvmmsg", "poll", "ppoll", "pselect6", "futex"}
    assert set(stopped) - only - {"prlimit64"} <= hard, stopped
    assert ways["readv"] == {"rewrite": 6} and ways["getdents64"] == {"rewrite": 3} and ways["ioctl"]["rewrite"] == 7, ways


def build_inside(folder, name, linked="shared"):
    """A program of tests/lib/programs with the tracer inside."""
    building.plain(os.path.join(INSIDE, "libfathom.so"))
    path = os.path.join(folder, name + "-" + linked)
    run("gcc", "-g", "-O1", "-w", "-o", path, os.path.join(HERE, "..", "lib", "programs", name + ".c"), "-pthread", *LINKED[linked])
    return path


@test("the tracer inside, --way=rewrite, under strace -f -i: what its instruction pointers place in our stubs is what is logged, call by call")
def _(folder):
    paths = {linked: build_inside(folder, "sys", linked) for linked in LINKED}
    beside = os.path.join(folder, "strace")
    every = ("files", 29), ("errors", 16), ("threads", 480), ("crowd", 900), ("processes", 25), ("signals", 35), ("waits", 35)
    for path, word, least in [(paths["shared"], *w) for w in every] + [(paths["static"], *w) for w in every[4:]]:
        # A reader that still has the log open would have this one append to it.
        log = os.path.join(folder, f"log of {os.path.basename(path)} {word}")
        out = run("strace", "-f", "-i", "-o", beside, path, word, "maps", f"--strace=--way rewrite --json --log '{log}'", cwd=folder, status=3)
        ranges = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in out.splitlines()]
        theirs = {tid: own_calls.keys_of(calls) + sorted(c.name for c in left) for tid, (calls, left) in own_calls.of_strace(beside, ranges).items()}
        ours = {(calls or left)[0].task: own_calls.keys_of(calls) + sorted(c.name for c in left) for calls, left in own_calls.of_log(log)}
        n = sum(map(len, ours.values()))
        # Where glibc (2.41) cancels threads stays as it is: what waits there in a program of several threads is not seen.
        assert set(ours) == set(theirs) and n >= 0.7 * least, (word, n, set(ours) ^ set(theirs))
        for tid, calls in ours.items():
            different = [pair for pair in zip(calls, theirs[tid]) if pair[0] != pair[1]]
            assert len(calls) == len(theirs[tid]) and not different, (word, len(calls), len(theirs[tid]), different[:3])
        with open(log, encoding="utf-8") as f:
            notes = [e["text"] for e in map(json.loads, f) if e["type"] == "note"]
        assert len(notes) == 1 and re.fullmatch(r"not seen: calls of \d+ instructions?", notes[0]), notes


@test("the tracer inside, --way=rewrite: each register, flag and vector, the red zone, and the code that handlers return to are kept; each call is told")
def _(folder):
    log, n = os.path.join(folder, "log"), 20000
    for linked in LINKED:
        path = build_inside(folder, "keeps", linked)
        found = re.fullmatch(rf"0 wrong of {n}, (\d+) handled, known\n", run(path, n, f"--strace=--way rewrite -c --json --log {log}"))
        with open(log, encoding="utf-8") as f:
            calls = {r["function"]: r["calls"] for r in map(json.loads, f)}
        # The program asks for its parent itself, too.
        assert found and calls["getppid"] == n + 1 and calls.get("getpgid", 0) == int(found[1]), (found, calls)
        os.remove(log)
    assert re.fullmatch(rf"0 wrong of {n}, \d+ handled, known\n", run(FATHOM, "strace", "--way=rewrite", "-o", "/dev/null", path, n))
    for words in "--stacks", "--inject=getppid:retval=0":
        done = execute(path, 1, f"--strace=--way rewrite {words.replace('=', ' ', 1)}", status=0)
        assert "not traced: " in done.stderr and done.stderr.count("\n") == 1, done.stderr


RUNNERS = """
import os, subprocess, threading
def run():
    for _ in range(8):
        assert subprocess.run(["true"]).returncode == 0
threads = [threading.Thread(target=run) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
"""


@test("processes that threads run at once: none is held up, each is told, by each way and with functions")
def _(folder):
    log = os.path.join(folder, "log")
    for options in ["strace", "-f"], ["strace", "-f", "--way=rewrite"], ["trace", "--syscalls", "--no-functions"], ["trace", "--syscalls", "--way=rewrite"], ["trace"]:
        where = ["-o", log] if options[0] == "strace" else ["--log", log, "--"]
        execute(FATHOM, *options, *where, "/usr/bin/python3", "-c", RUNNERS, status=0)
        with open(log, encoding="utf-8") as f:
            text = f.read()
        assert len(re.findall(r"exited with 0|status 0$", text, re.M)) >= 33, (options, text[-2000:])


for NAME, CHECK in rewritten.TESTS:
    test(NAME)(CHECK)


@test("by name: a link called strace is strace; as a verb, fathom help tells of it", rewritten=True)
def _(folder):
    link = os.path.join(folder, "my-strace")
    os.symlink(FATHOM, link)
    done = execute(link, "-e", "trace=none", "true", status=0)
    assert done.stderr == "+++ exited with 0 +++\n"
    assert run(FATHOM, "strace", "-h").startswith("Usage: fathom strace ")


def stream(folder, path, *options):
    log = os.path.join(folder, "calls")
    done = fathom("trace", "--syscalls", "--json", "--no-fold", "--log", log, *options, "--", *path)
    with open(log, encoding="utf-8") as f:
        return done, [json.loads(line) for line in f]


@test("one stream: each system call stands within the function that makes it, as strace -k says, in threads, too", rewritten=True)
def _(folder):
    path = program(folder, "saved", SITES, "-O1")
    own = {"main", "run", "save", "put", "flush"}
    for words in [], ["threads"]:
        done, events = stream(folder, [path, os.path.join(folder, "file"), *words])
        assert done.returncode == 0
        found, within = collections.defaultdict(list), collections.defaultdict(list)
        for e in events:
            if e["type"] == "call":
                del within[e["tid"]][e["depth"]:]
                within[e["tid"]].append(e["function"])
            if e["type"] == "syscall" and e["name"] in ("creat", "write", "fsync", "close") and within[e["tid"]]:
                assert e["depth"] <= len(within[e["tid"]]), e
                found[e["tid"]].append((e["name"], within[e["tid"]][:e["depth"]]))
        log = os.path.join(folder, "log")
        run("strace", "-f", "-k", "-o", log, "-e", "trace=creat,write,fsync,close", path, os.path.join(folder, "file"), *words)
        theirs, current = collections.defaultdict(list), None
        for line in open(log, encoding="utf-8"):
            m = re.match(r"(\d+) +(?:<\.\.\. )?(\w+)[( ].* = ", line)
            frame = re.match(r" > .*\((\w+)\+", line)
            if m:
                current = (m[2], [])
                theirs[m[1]].append(current)
            elif frame and current and frame[1] in own:
                current[1].insert(0, frame[1])
        theirs = {pid: [c for c in calls if "save" in c[1]] for pid, calls in theirs.items()}
        expected = sorted(calls for calls in theirs.values() if calls)
        assert sorted([(n, [f for f in chain if f in own]) for n, chain in calls] for calls in found.values()) == expected, (found, expected)


@test("one stream: wherever in a page of the stack a call is made, the function that makes it is known", rewritten=True)
def _(folder):
    done, events = stream(folder, [program(folder, "saved", SITES, "-O1"), os.path.join(folder, "file"), "pages"])
    assert done.returncode == 0
    own = [(e["name"], e["depth"], e["parent"]) for e in events if e["type"] == "syscall" and e["name"] in ("creat", "write", "fsync", "close")]
    expected = [(name, depth, "direct") for name, depth in (("creat", 3), ("write", 4), ("fsync", 4), ("close", 3))] * 256
    assert own[-len(expected):] == expected, [wrong for wrong, right in zip(own[-len(expected):], expected) if wrong != right]


def stacks_of(log):
    """[(thread, call, its frames below one another, as written)] of what -k has written with -f; ends and signals are calls, too."""
    found, begun = [], {}
    with open(log, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"(\d+) +(<\.\.\. )?(\w+|---|\+\+\+)(.*)", line)
            if m and line.endswith(" <unfinished ...>\n"):
                begun[m[1]] = m[3]
            elif m:
                assert not m[2] or begun.pop(m[1]) == m[3], line
                found.append((m[1], m[3], []))
            else:
                assert re.match(r" > \S", line), line
                found[-1][2].append(line[3:-1])
    return found


def above_cancellation(frames):
    """Frames without those of glibc 2.41 in which a function that may be cancelled makes its system call."""
    return [frame for frame in frames if not re.search(r"\(__(?:internal_)?syscall_cancel(?:_arch\w*)?\+", frame)]


def functions_of(frames):
    """The functions that frames of fathom strace -k name, from that which is called on, the innermost first; None: without a name."""
    frames = above_cancellation(frames)
    return [m[1] if (m := re.search(r"\(([^+()]+)(?:\(.*\))?\+0x[0-9a-f]+\) \[", frame)) else None for frame in frames]


def place_of(frame):
    """File and offset in it of a line of strace -k."""
    return re.sub(r"\(.*\) \[", " [", frame)


def logged_stacks(folder, tool, *words, options=(), **more):
    log = os.path.join(folder, "stacks")
    execute(*tool, "-f", "-k", "-o", log, *options, *words, **more)
    return stacks_of(log)


def ours_and_theirs(folder, *words, options=(), **more):
    return [logged_stacks(folder, tool, *words, options=options, **more) for tool in ([FATHOM, "strace"], ["strace"])]


@test("-k: at each call of a run the places of strace -k in files, and its names where both have those of the program")
def _(folder):
    path = program(folder, "stacks", "-O1", "-fno-optimize-sibling-calls")
    for command in ([path, "calls"], ["/bin/cat", "/etc/passwd"], ["/usr/bin/perl", "-e", "print sort { print; $a <=> $b } 3, 1, 2"]):
        ours, theirs = ours_and_theirs(folder, *command, status=0)
        # strace's unwinder does not get through the vDSO.
        ours, theirs = ([s for s in stacks if not (s[2] and s[2][0].startswith("[vdso]"))] for stacks in (ours, theirs))
        assert [call for _, call, _ in ours] == [call for _, call, _ in theirs], command
        assert [[place_of(f) for f in frames] for *_, frames in ours] == [[place_of(f) for f in frames] for *_, frames in theirs], command
        for (*_, mine), (*_, others) in zip(ours, theirs):
            for one, other in zip(mine, others):
                assert one == other or not one.startswith(path), (one, other)
    # Not told of all programs: the stacks that are known to be there.
    ours = logged_stacks(folder, [FATHOM, "strace"], path, "calls", status=0)
    chains = [(call, [f for f in functions_of(frames) if f]) for _, call, frames in ours]
    assert ("write", ["write", "tell", "down", "down", "down", "down", "calls", "main"]) in [(c, f[:8]) for c, f in chains], chains
    assert any(c == "write" and f[:3] == ["write", "tell", "compare"] and "qsort_r" in f and f[f.index("qsort_r") + 1:][:2] == ["calls", "main"] for c, f in chains), chains
    assert any(c == "clock_gettime" and f[1:4] == ["clock_gettime", "calls", "main"] for c, f in chains), chains
    signalled = next(f for c, f in chains if c == "---")
    assert signalled[1:4] == ["raise", "calls", "main"], signalled
    handler = next(f for c, f in chains if f[:3] == ["write", "tell", "handle"])
    assert handler[-len(signalled):] == signalled, (handler, signalled)
    assert ours[-1][1] == "+++" and functions_of(ours[-1][2])[0] == "_exit" and ours[-2][1:] == ("exit_group", []), ours[-2:]


@test("-k: the frames are those that fathom stack finds, in all they tell, of the same thread in the same call")
def _(folder):
    path = program(folder, "stacks", "-O1", "-fno-optimize-sibling-calls")
    log = os.path.join(folder, "log")
    for options, words in (([], ["trace", "--json", "--syscalls=read", "--stacks", "--no-functions", "--log", log, "--"]),
                           (["--names-only"], ["strace", "-k", "-e", "trace=read", "-o", log])):
        with subprocess.Popen([FATHOM, *words, path, "blocks"], stdin=subprocess.PIPE) as traced:
            def reading(traced=traced):
                children = sum((open(f"/proc/{traced.pid}/task/{tid}/children", encoding="utf-8").read().split() for tid in os.listdir(f"/proc/{traced.pid}/task")), [])
                return children and open(f"/proc/{children[0]}/syscall", encoding="utf-8").read().startswith("0 0x0 ") and children[0]
            stack = json.loads(fathom("stack", "--json", *options, until(reading, "that it reads"), status=0).stdout)
            traced.communicate(b"x")
        assert traced.returncode == 0 and stack["stop"] == "entry"
        assert [f["symbol"] for f in stack["frames"] if "_syscall_cancel" not in f["symbol"]][:7] == ["read", "wait_for_input", "down", "down", "down", "down", "main"], stack
        with open(log, encoding="utf-8") as f:
            if words[0] == "trace":
                event = [e for e in map(json.loads, f) if e["type"] == "syscall"][-1]
                # Of a trace all are native.
                assert all((frame.pop("kind"), frame.pop("runtime")) == ("native", None) for frame in stack["frames"]), stack
                assert event["frames"] == stack["frames"] and event["stop"] == "entry", (event, stack)
                continue
            told = f.read().rsplit("read(0, ", 1)[1].splitlines()[1:]
        told = told[:len(stack["frames"])]
        assert told == [f' > {f["module"]}({f["symbol"]}+{f["offset"]:#x}) [{f["module_address"]}]' for f in stack["frames"]], (told, stack)


@test("-k: recursion of 300 is cut as strace cuts it; threads have their own stacks; a child's, and that of the program it becomes")
def _(folder):
    path = program(folder, "stacks", "-O1", "-fno-optimize-sibling-calls")
    ours, theirs = ours_and_theirs(folder, path, "deep", options=["-e", "trace=write"], status=0)
    assert [place_of(f) for f in ours[0][2]] == [place_of(f) for f in theirs[0][2]] and ours[0][2][-1] == "too many stack frames", (ours[0][2][-2:], theirs[0][2][-2:])
    by_chain = collections.defaultdict(collections.Counter)
    for tid, call, frames in logged_stacks(folder, [FATHOM, "strace"], path, "threads", options=["-e", "trace=write"], status=0):
        if call == "write":
            by_chain[tid][tuple(f for f in functions_of(frames) if f in ("tell", "down", "first", "second", "main"))] += 1
    assert sorted(map(dict, by_chain.values()), key=str) == [{("tell", "down", "down", "second"): 50}, {("tell", "first"): 50}], by_chain
    found = logged_stacks(folder, [FATHOM, "strace"], path, "forks", path, "deep", options=["-e", "trace=execve,write,wait4"], status=0)
    parent = found[0][0]
    calls = [(tid == parent, call, functions_of(frames)) for tid, call, frames in found if call in ("execve", "write", "wait4")]
    execs = [frames for is_parent, call, frames in calls if call == "execve" and not is_parent]
    assert [frames[:5] for frames in execs] == [["execve", "become", "forks", "main", "__libc_start_call_main"]], execs
    assert [frames[1:4] for is_parent, call, frames in calls if call == "write" and not is_parent] == [["tell", "down", "down"]], calls
    assert any(is_parent and call == "wait4" and "forks" in frames for is_parent, call, frames in calls), calls


@test("-k: code that is loaded, unloaded, and loaded elsewhere or in its place has its own names, also behind a filter")
def _(folder):
    path = program(folder, "stacks", "-O1")
    libraries = []
    for name in "one", "two", "three":
        library = os.path.join(folder, f"lib{name}.so")
        building.build_text(library, f"#include <unistd.h>\nint {name}(void) {{ return write(1, \"{name[0]}\", 1) + 1; }}\nint speak(void) {{ return {name}() + 1; }}",
                            "-shared", "-fPIC", flags=("-O1", "-fno-inline"))
        libraries.append(library)
    for options in ["-e", "trace=write"], ["-e", "trace=write", "--seccomp-bpf"]:
        found = logged_stacks(folder, [FATHOM, "strace"], path, "loads", *libraries, *libraries, options=options, status=0)
        chains = [(functions_of(frames)[1:4], above_cancellation(frames)[1].split("(")[0]) for _, call, frames in found if call == "write"]
        assert chains == [([name, "speak", "loads"], library) for name, library in zip(["one", "two", "three"] * 2, libraries * 2)], (options, chains)


@test("-k: code of no file has callers; once a perf map names it, it has its name")
def _(folder):
    path = program(folder, "stacks", "-O1")
    found = logged_stacks(folder, [FATHOM, "strace"], path, "made", options=["-e", "trace=getppid"], status=0)
    stacks = [frames for _, call, frames in found if call == "getppid"]
    assert len(stacks) == 2 and [functions_of(frames)[1:3] for frames in stacks] == [["made", "main"]] * 2, stacks
    assert re.fullmatch(r"unexpected_backtracing_error \[0x[0-9a-f]+\]", stacks[0][0]), stacks
    assert re.fullmatch(r"\(made_code\+0xb\) \[0x[0-9a-f]+\]", stacks[1][0]), stacks


@test("stacks: the frames of each call are the functions that it stands within; --read and --last tell them; a process that runs")
def _(folder):
    path = program(folder, "saved", SITES, "-O1")
    own = {"main", "run", "save", "put", "flush"}
    for words in [], ["threads"]:
        done, events = stream(folder, [path, os.path.join(folder, "file"), *words], "--stacks")
        assert done.returncode == 0
        within, n = collections.defaultdict(list), 0
        for e in events:
            if e["type"] == "call":
                del within[e["tid"]][e["depth"]:]
                within[e["tid"]].append(e["function"])
            if e["type"] == "syscall" and e["name"] in ("creat", "write", "fsync", "close") and within[e["tid"]]:
                frames = [f["symbol"] for f in e["frames"] if f["symbol"] in own]
                assert frames[::-1] == [f for f in within[e["tid"]][:e["depth"]] if f in own], (e, within)
                n += "save" in frames
        assert n == (400 if words else 4), n
    path = program(folder, "stacks", "-O1", "-fno-optimize-sibling-calls")

    def told(events):
        return [(e["name"], e["stop"], [{k: v for k, v in f.items() if k not in ("pc", "sp", "address")} for f in e["frames"]])
                for e in events if e["type"] == "syscall"]
    _, events = stream(folder, [path, "calls"], "--no-functions", "--stacks")
    trace = os.path.join(folder, "trace")
    fathom("trace", "--syscalls", "--no-functions", "--stacks", "-o", trace, "--", path, "calls", status=0)
    read = [json.loads(line) for line in fathom("trace", "--read", trace, "--json", status=0).stdout.splitlines()]
    assert told(read) == told(events) and len(told(read)) > 20
    signalled = [e for e in read if e["type"] == "signal"]
    assert len(signalled) == 1 and "calls" in [f["symbol"] for f in signalled[0]["frames"]], signalled
    text = fathom("trace", "--read", trace, status=0).stdout
    line = next(i for i, t in enumerate(open(os.path.join(HERE, "programs", "stacks.c"), encoding="utf-8"), 1) if "write(1, &c" in t)
    assert re.search(rf'^SYS .* write\(1, .*\n(?:.*_syscall_cancel(?:_arch)?\+0x.*\n)* > write\+0x.*\n > tell\+0x[0-9a-f]+ \S*/stacks\.c:{line}(:\d+)?\n > compare\+0x', text, re.M), text
    # A file that is cut anywhere tells of what was before.
    with open(trace, "rb") as f:
        whole_file = f.read()
    for size in range(len(whole_file) - 400, len(whole_file), 37):
        with open(trace, "wb") as f:
            f.write(whole_file[:size])
        cut = fathom("trace", "--read", trace, "--json", status=0).stdout.splitlines()
        assert [json.loads(line) for line in cut] == read[:len(cut)], size
    last = fathom("trace", "--syscalls=write", "--no-functions", "--stacks", "--json", "--last", "8", "--", "sh", "-c", f"{path} deep; exit 3").stderr.splitlines()
    assert any(e.get("name") == "write" and len(e["frames"]) == 256 and e["stop"] == "limit" for e in map(json.loads, last)), last
    with subprocess.Popen([path, "blocks"], stdin=subprocess.PIPE) as running:
        log = os.path.join(folder, "log")
        until(lambda: call_of(running.pid) == 0, "that it reads")
        with subprocess.Popen([FATHOM, "strace", "-k", "-f", "-o", log, "-p", str(running.pid)]) as tracer:
            until(lambda: tracer_of(running.pid) == tracer.pid, "the tracer")
            running.communicate(b"x")
            tracer.wait()
    ends = [functions_of(frames) for _, call, frames in stacks_of(log) if call == "+++"]
    assert ends and ends[0][:1] == ["_exit"] and "exit" in ends[0], ends


@test("text: the columns of functions, the seed's arrow, errors by name; results of the kernel as JSON has them", rewritten=True)
def _(folder):
    path = program(folder, "saved", SITES, "-O1")
    file = os.path.join(folder, "foo")
    done = fathom("trace", "--syscalls=creat,write,fsync,close", "--", path, file, status=0)
    lines = [re.sub(r"^(...) +\d+ [ \d']{13} [ \d']{7}", r"\1", line) for line in done.stderr.splitlines()[1:]]
    lines = lines[lines.index("FUN &main"):]
    assert lines == ["FUN &main", "FUN   &save", f'SYS     creat("{file}", 0644) → 3', "FUN     &put", 'SYS       write(3, u"hello", 5) → 5', "FUN     &flush",
                     "SYS       fsync(3) → 0", "SYS     close(3) → 0", "END status 0"], lines
    _, events = stream(folder, ["cat", "/nowhere"], "--no-functions")
    call = next(e for e in events if e["type"] == "syscall" and e["name"] == "openat" and e["result"] == -2)
    assert call["errno"] == "ENOENT" and call["way"] == ("rewrite" if CURRENT.way else "ptrace") and call["function"] is None
    assert call["args"][:2] == [{"name": "dfd", "value": "AT_FDCWD"}, {"name": "filename", "value": '"/nowhere"'}] or call["args"][1]["name"] == "filename", call
    assert events[0]["name"] == "execve" and [e["name"] for e in events if e["type"] == "syscall"][-1] == "exit_group"


@test("--durations: lines have the nanoseconds of each system call, live and of a file; counts have their 99th percentile and their most")
def _(folder):
    trace = os.path.join(folder, "trace")
    command = ["/usr/bin/python3", "-c", "import time\nfor i in range(3): time.sleep(0.05)\ntime.sleep(3)"]
    options = ["--syscalls=clock_nanosleep,exit_group", "--no-functions"]
    def slept(text):
        lines = [line for line in text.splitlines() if line.startswith("SYS")]
        assert lines[-1].endswith("exit_group(0) → ?"), lines
        return [int(re.search(r"clock_nanosleep\(.* → 0 \+([\d']+)$", line)[1].replace("'", "")) for line in lines[:-1]]
    live = slept(fathom("trace", *options, "--durations", "--", *command, status=0).stderr)
    # Python says when a sleep is to end: what a stop before it takes is no part of it.
    assert len(live) == 4 and max(live[:3]) < live[3] and live[3] >= 1e8, live
    fathom("trace", *options, "-o", trace, "--", *command, status=0)
    events = map(json.loads, fathom("trace", "--read", trace, "--json", status=0).stdout.splitlines())
    exact = [e["duration_ns"] for e in events if e.get("name") == "clock_nanosleep"]
    assert slept(fathom("trace", "--read", trace, "--durations", status=0).stdout) == exact
    assert " +" not in fathom("trace", "--read", trace, status=0).stdout
    row = next(json.loads(line) for line in fathom("trace", "--read", trace, "-c", "--json", status=0).stdout.splitlines() if "clock_nanosleep" in line)
    assert row["calls"] == 4 and row["max_ns"] == max(exact) and row["min_ns"] == min(exact) and row["total_ns"] == sum(exact)
    assert max(exact) * 15 / 16 <= row["p99_ns"] <= max(exact), row
    head = fathom("trace", "--read", trace, "-c", status=0).stdout.splitlines()[0]
    assert "p99 ns" in head and "max ns" in head, head


@test("the fsync of the document: the slow call stands out by its time, first of all; injected away, it does not", rewritten=True)
def _(folder):
    path = program(folder, "saved", SITES, "-O1")
    file = os.path.join(folder, "foo")
    # Long beside what a loaded machine may add to any other call.
    slow = ("--inject", "fsync:delay_enter=2s")
    _, events = stream(folder, [path, file], *slow)
    calls = {e["name"]: e["duration_ns"] for e in events if e["type"] == "syscall" and e["name"] in ("creat", "write", "fsync", "close")}
    assert max(calls, key=calls.get) == "fsync" and calls["fsync"] >= 2_000_000_000, calls
    text = fathom("trace", "-c", "--syscalls", *slow, "--", path, file, status=0).stderr.splitlines()
    assert " &fsync (" in text[1] and int(text[1].split()[1].replace("'", "")) >= 2_000_000_000, text[:3]
    cured = ("--inject", "fsync:retval=0", "--inject", "write:delay_enter=2s")
    text = fathom("trace", "-c", "--syscalls", *cured, "--", path, file, status=0).stderr.splitlines()
    assert " &write (" in text[1] and any("&fsync" in line for line in text), text


@test("files: --read tells what the run told; exports have the calls; --last tells of the end of one that fails", rewritten=True)
def _(folder):
    path = program(folder, "saved", SITES, "-O1")
    tree = program(folder, "tree")
    trace = os.path.join(folder, "trace")
    fathom("trace", "--syscalls", "-o", trace, "--", path, os.path.join(folder, "foo"), status=0)
    events = [json.loads(line) for line in fathom("trace", "--read", trace, "--json", status=0).stdout.splitlines()]
    names = [e["name"] for e in events if e["type"] == "syscall"]
    calls = [e["function"] for e in events if e["type"] == "call"]
    assert names[0] == "execve" and names[-1] == "exit_group" and names.count("fsync") == 1 and calls == ["main", "save", "put", "flush"]
    text = fathom("trace", "--read", trace, status=0).stdout
    assert re.search(r"^SYS .* {7}fsync\(3\) → 0$", text, re.M), text
    chrome = json.loads(fathom("trace", "--read", trace, "--export", "chrome", status=0).stdout)
    slices = [e["name"] for e in (chrome["traceEvents"] if isinstance(chrome, dict) else chrome) if e.get("ph") in ("X", "B")]
    assert slices.count("fsync") == 1 and slices.count("flush") == 1, slices
    assert "main;save;flush;fsync " in fathom("trace", "--read", trace, "--export", "collapsed", status=0).stdout
    done = fathom("trace", "--syscalls", "--no-functions", "--last", "2", "--", tree, "dies")
    lines = [line for line in done.stderr.splitlines() if line.startswith(("SYS", "SIG", "END"))]
    assert [line[:3] for line in lines] == ["SYS", "SYS", "SIG", "END"] and 'write(-1, u"some text' in lines[1] and "→ -1 EBADF" in lines[1], done.stderr


@test("a tree of 500 processes: no line is torn, and each process has its END", rewritten=True)
def _(folder):
    path = program(folder, "tree")
    log = os.path.join(folder, "log")
    fathom("trace", "--syscalls", "--no-functions", "--log", log, "--", path, "many", status=3)
    lines = open(log, encoding="utf-8").read().splitlines()[1:]
    # On a busy machine it takes more than ten seconds, whose column is wider.
    shape = re.compile(r"(FUN|SYS|SIG|NEW|END) +(\d+) [ \d']{13,14} [ \d']{7} \S.*$")
    assert all(map(shape.match, lines)), [line for line in lines if not shape.match(line)][:3]
    kinds = collections.Counter(line[:3] for line in lines)
    assert kinds["END"] == 501 and kinds["NEW"] == 500, kinds
    assert sum("/nowhere/0" in line for line in lines) == 500 and sum("exit_group(0) → ?" in line for line in lines) == 500


@test("curl of a server on the loopback interface: strace's lines of its sockets", rewritten=True)
def _(folder):
    class Handler(http.server.BaseHTTPRequestHandler):
        wbufsize = -1  # one answer arrives in one piece

        def do_GET(self):  # pylint: disable=invalid-name
            self.send_response(200)
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"hello\n")

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        (theirs, one), (ours, other) = both(folder, ["-f", "-e", "trace=%network"], ["curl", "-s", url])
        assert one.stdout == other.stdout == "hello\n"
        def calls(lines):
            found = [line for lines in whole(numbered(lines)).values() for line in lines]
            return sorted(re.sub(r"sin_port=htons\(\d+\)|Date: [^\\]*", "", line) for line in found)
        assert check_equal(calls(theirs), calls(ours), 0.9) is not None
    finally:
        server.shutdown()


sys.exit(SUITE.run())
