# SPDX-License-Identifier: MIT
"""Logs of programs too heavy for the suite "filter", beside what they say themselves."""
import json
import os
import re

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


TESTS = [("Go: each frame with a pc of a crash has the function and the line that Go prints, in Go and where C aborts", go)]
