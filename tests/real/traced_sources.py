# SPDX-License-Identifier: MIT
"""python3, perl and redis from Debian's sources, each call beside the log that the program writes of the same run itself."""
import glob
import os
import shutil
import socket
import subprocess
import time

import entered
import tap

from ask import FATHOM, fathom

HEAVY = os.path.join(os.environ["BUILD"], "corpus", "heavy")
# As optimised as such programs are; no part of a function becomes a function that its source does not have.
FLAGS = "-O2 -g0 -w -fpatchable-function-entry=18,16 -finstrument-functions -fno-partial-inlining"
COMMANDS = 1000

WORK_PY = r"""
import json, re
class A:
    def __init__(self, x): self.x = x
    def __lt__(self, other): return self.x < other.x
def squares(n):
    for i in range(n):
        yield i * i
ordered = sorted(A((i * 7919) % 101) for i in range(101))
by_rest = {}
for a in ordered:
    by_rest.setdefault(a.x % 7, []).append(a.x)
try:
    by_rest["no"]
except KeyError as e:
    print(repr(e))
print(sum(squares(50)), json.dumps(by_rest[3][:3]), re.sub(r"a(b+)c", r"<\1>", "xabbbcabc"))
"""

WORK_PL = r"""
my %by; push @{ $by{$_ % 7} }, $_ for map { $_ * 7919 % 101 } 0 .. 100;
my @ordered = sort { $a <=> $b } @{ $by{3} };
eval { die { code => 7 } }; my $code = $@->{code};
(my $text = "xabbbcabc") =~ s/a(b+)c/<$1>/g;
print join(" ", $code, $text, @ordered[0 .. 2]), "\n";
"""


def source_of(name):
    """The folder of the program's source."""
    found = glob.glob(os.path.join(HEAVY, f"{name}-*", ""))
    if not found:
        raise tap.Skip("no source packages could be fetched")
    return found[0]


def make(folder, *words):
    """Runs a step of a build there; its output is kept with it."""
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    assert not done.returncode, (words, done.stdout[-2000:])


def jobs():
    return f"-j{os.cpu_count()}"


def check_calls(path, folder, least):
    """Whether each thread has made the calls that it has logged; at least @least in all."""
    theirs = entered.logs(path, os.path.join(folder, "own"))
    mine = entered.traced(os.path.join(folder, "traced"))
    assert sum(map(len, theirs.values())) >= least, {k: len(v) for k, v in theirs.items()}
    assert mine.keys() == theirs.keys(), (mine.keys(), theirs.keys())
    for tid, expected in theirs.items():
        entered.check_equal(mine[tid], expected)


def traced(folder):
    """The words that trace a program there, and the environment in which it writes its own log."""
    return (["trace", "--no-fold", "--log", os.path.join(folder, "traced"), "--"],
            dict(os.environ, ENTERED=os.path.join(folder, "own"), PYTHONHASHSEED="0"))


def python3(folder):
    make(folder, os.path.join(source_of("Python"), "configure"), "--without-ensurepip", f"CFLAGS={FLAGS}", f"LIBS={entered.hook(folder)}")
    make(folder, "make", jobs(), "python")
    path, (words, env) = os.path.join(folder, "python"), traced(folder)
    done = fathom(*words, path, "-S", "-E", "-B", "-c", WORK_PY, status=0, env=env)
    # 0 + 1 + 4 + ... + 2401; 3, 10 and 17 are the least that leave 3
    assert done.stdout == "KeyError('no')\n40425 [3, 10, 17] x<bbb><b>\n", done.stdout
    check_calls(path, folder, 1000000)


def perl(folder):
    source = os.path.join(folder, "perl")
    shutil.copytree(source_of("perl"), source, symlinks=True)
    make(source, "sh", "Configure", "-des", f"-Doptimize={FLAGS}", "-Dlibs=-lpthread -lm -ldl -lcrypt", f"-Dldflags={entered.hook(folder)}")
    make(source, "make", jobs(), "perl")
    path, (words, env) = os.path.join(source, "perl"), traced(folder)
    done = fathom(*words, path, "-e", WORK_PL, status=0, env=env)
    assert done.stdout == "7 x<bbb><b> 3 10 17\n", done.stdout
    check_calls(path, folder, 10000)


def connected(port):
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except OSError:
            time.sleep(0.02)
    raise AssertionError("redis does not answer")


def redis(folder):
    source = os.path.join(folder, "redis")
    shutil.copytree(source_of("redis"), source, symlinks=True)
    make(source, "make", jobs(), "MALLOC=libc", "USE_SYSTEMD=no", "OPTIMIZATION=-O2", "DEBUG=", f"CFLAGS={FLAGS}",
         f"LDFLAGS={entered.hook(folder)}", "redis-server")
    path, (words, env) = os.path.join(source, "src", "redis-server"), traced(folder)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with subprocess.Popen([FATHOM, *words, path, "--port", str(port), "--save", "", "--dir", folder], env=env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer:
        with connected(port) as s, s.makefile("rb") as answers:
            for i in range(COMMANDS):
                s.sendall(b"SET k%d %d\r\nGET k%d\r\nLPUSH l %d\r\nZADD z %d m%d\r\n" % (i, i, i, i, i, i))
                found = [answers.readline() for _ in range(5)]
                assert found == [b"+OK\r\n", b"$%d\r\n" % len(str(i)), b"%d\r\n" % i, b":%d\r\n" % (i + 1), b":1\r\n"], found
            s.sendall(b'EVAL "local s = 0 for i = 1, 100 do s = s + i end return s" 0\r\n')
            assert answers.readline() == b":5050\r\n"
            s.sendall(b"FLUSHALL ASYNC\r\n")
            assert answers.readline() == b"+OK\r\n"
            s.sendall(b"SHUTDOWN NOSAVE\r\n")
        said = tracer.communicate(timeout=60)[1]
    assert not tracer.returncode, said
    # Its threads for work in the background have entered a few functions, too.
    check_calls(path, folder, 500000)


TESTS = [(f"sources: each call of {program.__name__} is that which it logs itself in the same run", program)
         for program in (python3, perl, redis)]
