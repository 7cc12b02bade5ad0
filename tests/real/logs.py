# SPDX-License-Identifier: MIT
"""Logs of programs too heavy for the suite "filter", beside what they say themselves."""
import json
import os
import re
import shutil

from ask import execute, fathom, run

GO = """package main

%s
import ("fmt"; "time")

//go:noinline
func fault(p *int) int { return *p }

%s

//go:noinline
func descend(n int) int {
	if n > 0 { return descend(n-1) + 1 }
	return last(n)
}

func main() {
	go func() { time.Sleep(time.Hour) }()
	time.Sleep(10 * time.Millisecond)
	fmt.Println(descend(3))
}
"""
# Without C: where a call is inlined in a file with C, Go 1.19's debug data has the line of another file, which cgo has made.
PROGRAMS = {
    "go": GO % ("", "func last(n int) int { if n < 0 { return 0 }; return fault(nil) + n }"),
    "c": GO % ('/*\n#include <stdlib.h>\nstatic void fall(int n) { if (n) fall(n - 1); else abort(); }\n*/\nimport "C"',
               "//go:noinline\nfunc last(n int) int { C.fall(3); return fault(nil) }"),
}


def check_frames(program, log):
    """Each frame with a pc has the function and the line that Go has printed; returns how many there are."""
    lines = log.splitlines()
    answers = {r["line"]: r for r in map(json.loads, fathom("filter", "--json", program, input=log, status=0).stdout.splitlines()) if r["format"] == "go"}
    n = 0
    for i, line in enumerate(lines):
        frame = re.fullmatch(r"\t(\S+):(\d+)(?: \+0x[0-9a-f]+)? fp=0x[0-9a-f]+ sp=0x[0-9a-f]+ pc=(0x[0-9a-f]+)", line)
        if not frame:
            continue
        # The arguments, then what is inlined there, have lines of their own before it.
        name = re.fullmatch(r"(.*)\([^()]*\)", lines[i - 1])[1]
        outer = answers[i + 1]["frames"][-1]
        assert answers[i + 1]["text"] == frame[3], (line, answers[i + 1])
        assert (outer["file"].removeprefix("./"), outer["line"]) == (frame[1], int(frame[2])), (line, outer)
        # A panic is named by the statement that makes it.
        assert name == "panic" or outer["function"].removesuffix(".abi0") == name, (name, outer)
        n += 1
    return n


def go(folder):
    for what, text in PROGRAMS.items():
        source, program = os.path.join(folder, "main.go"), os.path.join(folder, "main")
        with open(source, "w", encoding="ascii") as f:
            f.write(text)
        run("go", "build", "-o", program, source, env=dict(os.environ, GOCACHE=f"{folder}/cache", GO111MODULE="off"))
        done = execute(program, env=dict(os.environ, GOTRACEBACK="crash"))
        assert done.returncode < 0, done
        assert check_frames(program, done.stderr) > 20
        if what == "go":
            (header,) = re.findall(r"^\[signal SIGSEGV: .*", fathom("filter", program, input=done.stderr, status=0).stdout, re.M)
            assert header.endswith(f"  -> main.fault+0x0 {source}:7"), header


RUST = """
#[inline(never)]
fn inner(n: usize) -> usize { let v: Vec<usize> = Vec::new(); v[n] }
#[inline(never)]
fn outer(n: usize) -> usize { inner(n + 1) + 1 }
fn main() { std::process::exit((outer(std::env::args().count()) & 1) as i32) }
"""


def rust_frames(log):
    """(address, function without its hash, place) of each frame that Rust prints of a program with symbols; inlined ones have the address
    of their caller's."""
    return [(int(address, 16), re.sub(r"::h[0-9a-f]{16}$", "", name), place)
            for address, name, place in re.findall(r"^ *\d+: +(0x[0-9a-f]+) - (.*)\n(?: +at (.*)\n)?", log, re.M)]


def rust(folder):
    source, whole, bare = (os.path.join(folder, name) for name in ("main.rs", "whole", "bare"))
    with open(source, "w", encoding="ascii") as f:
        f.write(RUST)
    rustc = "/usr/bin/rustc" if os.access("/usr/bin/rustc", os.X_OK) else shutil.which("rustc")
    for level in ("0", "3"):
        run(rustc, "-g", "-C", f"opt-level={level}", "-o", whole, source)
        run("strip", "-o", bare, whole)
        # Both are at one place: the layout is not random.
        told, log = (execute("setarch", "-R", program, env=dict(os.environ, RUST_BACKTRACE="full"), status=101).stderr for program in (whole, bare))
        assert "<unknown>" in log and f"{source}:3:" in told, (log, told)
        found = []
        for line in fathom("filter", "--json", whole, input=log, status=0).stdout.splitlines():
            answer = json.loads(line)
            assert answer["format"] == "rust", answer
            for frame in answer["frames"]:
                place = f"{frame['file']}:{frame['line']}:{frame['column']}" if frame["file"] else ""
                found.append((int(answer["text"], 16), frame["function"], place))
        # Of other files than TARGET the log says nothing: libraries lie above it, and have no names. The last frame has none: 0.
        truth = [frame for frame in rust_frames(told) if 0 < frame[0] < 0x700000000000]
        assert found == truth and len(truth) > 20, (level, len(found), len(truth), found[-2:], truth[-2:])


TESTS = [("Rust: each frame of a panic of a stripped program has the functions and places that the program with symbols prints", rust),
         ("Go: each frame with a pc of a crash has the function and the line that Go prints, in Go and where C aborts", go)]
