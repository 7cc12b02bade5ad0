# SPDX-License-Identifier: MIT
"""Profiles of heavy programs: nearly all of their stacks end in the entry of a thread, and weigh what the programs have used."""
import os
import shutil
import socket
import subprocess
import time

import tap

from ask import FATHOM, execute
from profile_file import SAMPLED, STOP_ENTRY, Profile

JAVA = """
import java.util.*;
public class Work {
    static long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    public static void main(String[] arguments) {
        long sum = 0;
        Map<String, Integer> seen = new HashMap<>();
        for (int i = 0; i < 40; i++) {
            sum += fibonacci(30);
            for (int k = 0; k < 20000; k++)
                seen.merge("key" + k % 977, 1, Integer::sum);
        }
        System.out.println(sum + seen.size());
    }
}
"""
NODE = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
for (let i = 0; i < 200; i++) { fibonacci(30); JSON.parse(JSON.stringify([...Array(2000).keys()])); }
"""
PYTHON = "import json\nfor i in range(400):\n    json.loads(json.dumps(sorted(range(4000), key=lambda x: -x), indent=1))\n"
CXX = "#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\nint main() { std::regex r(\"a+\"); return std::cout.bad(); }\n"


def needed(*programs):
    for program in programs:
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed")


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check(folder, *command, least=300):
    """Records a program: of its samples, 99 % have the whole stack."""
    path = os.path.join(folder, "profile")
    done = execute(FATHOM, "record", "-q", "-o", path, "--", *command, cwd=folder)
    if done.returncode == 2 and "perf" in done.stderr:
        raise tap.Skip(f"perf events cannot be used here: {done.stderr.strip()}")
    assert done.returncode == 0, done
    check_whole(Profile(path), least)


def check_whole(profile, least):
    sampled = [s for s in profile.samples if s.part == SAMPLED]
    whole = sum(s.stop == STOP_ENTRY for s in sampled)
    assert len(sampled) >= least, len(sampled)
    assert whole >= 0.99 * len(sampled), (whole, len(sampled), profile.lost)


def java(folder):
    needed("java", "javac")
    execute("javac", "-d", folder, written(folder, "Work.java", JAVA), status=0)
    check(folder, "java", "-XX:+PreserveFramePointer", "-cp", folder, "Work")


def node(folder):
    needed("node")
    check(folder, "node", "--perf-basic-prof", written(folder, "work.js", NODE))


def python(folder):
    check(folder, "/usr/bin/python3", written(folder, "work.py", PYTHON))


def perl(folder):
    needed("perl")
    check(folder, "perl", "-e", 'my %h; for my $i (1 .. 3000000) { $h{$i % 977} .= "x" if $i =~ /7+1/ } print length join "", %h;')


def sqlite(folder):
    needed("sqlite3")
    check(folder, "sqlite3", ":memory:", "with recursive n(x) as (select 1 union all select x + 1 from n limit 1500000) "
          "select count(distinct x % 1009), sum(length(printf('%d', x))) from n;")


def gdb(folder):
    needed("gdb")
    check(folder, "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "info functions f.*h.*m", FATHOM, least=200)


def compiler(folder):
    needed("g++")
    check(folder, "g++", "-O2", "-c", "-o", os.path.join(folder, "work.o"), written(folder, "work.cc", CXX))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def redis(folder):
    needed("redis-server", "redis-benchmark")
    path, port = os.path.join(folder, "profile"), str(free_port())
    server = ["redis-server", "--port", port, "--save", "", "--dir", folder, "--daemonize", "no"]
    with subprocess.Popen([FATHOM, "record", "-q", "-o", path, "--", *server], stdout=subprocess.DEVNULL) as recorder:
        deadline = time.monotonic() + 60
        while execute("redis-cli", "-p", port, "ping").stdout.strip() != "PONG":
            assert time.monotonic() < deadline and recorder.poll() is None
            time.sleep(0.1)
        execute("redis-benchmark", "-q", "-p", port, "-n", "100000", "-t", "set,get,lpush,zadd", status=0)
        execute("redis-cli", "-p", port, "shutdown", "nosave")
        assert recorder.wait(60) == 0
    check_whole(Profile(path), 300)


TESTS = [(f"profiles: {name}: 99 % of the stacks are whole", call) for name, call in (
    ("java with -XX:+PreserveFramePointer", java), ("node with --perf-basic-prof", node), ("python3", python), ("perl", perl),
    ("sqlite3", sqlite), ("gdb", gdb), ("g++", compiler), ("redis under load", redis))]
