# SPDX-License-Identifier: MIT
"""The ends of stacks of runtimes that no call frame information marks, and stacks that are found by less than all registers."""
import os
import re
import subprocess
import time

from ask import FATHOM, execute, records_of, run
from living import Living
from running import Running
from suite import functions_of, stacks_of

GO = """
package main
%s
import "fmt"
import "os"
import "time"

//go:noinline
func deeper(n int) int { if n > 0 { return deeper(n-1) + 1 }; wait(); return 0 }

func main() {
	for i := 0; i < 4; i++ { go func(n int) { deeper(n) }(i) }
	go func() { for { time.Sleep(time.Hour) } }()
	go func() { os.Stdin.Read(make([]byte, 1)) }()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	deeper(5)
}
"""
C = """
/*
#include <unistd.h>
static int c_deeper(int n) { int r = n ? c_deeper(n - 1) : pause(); __asm__ volatile(""); return r + 1; }
static void c_wait(void) { c_deeper(3); __asm__ volatile(""); }
*/
import "C"
"""
# Blocks its thread without C.
SYSTEM_CALL = """
import "syscall"
"""
WAIT = {"cgo": "func wait() { C.c_wait() }", "without C": "func wait() { syscall.Syscall(syscall.SYS_PAUSE, 0, 0, 0) }"}


def add_go(kind, text):
    def check(folder):
        source = os.path.join(folder, "program.go")
        with open(source, "w", encoding="ascii") as f:
            f.write(GO % text + WAIT[kind])
        environment = dict(os.environ, HOME=folder, GOCACHE=os.path.join(folder, "cache"), GO111MODULE="off", GOFLAGS="",
                           CGO_ENABLED="1" if "\"C\"" in text else "0")
        program = os.path.join(folder, "program")
        run("go", "build", "-o", program, source, env=environment)
        with Running([program], stdin=subprocess.PIPE) as running:
            assert running.line() == "ready"
            time.sleep(0.5)
            threads = stacks_of(running.pid)
            waiting = 0
            for thread in threads:
                names = [name or "??" for name in functions_of(thread)]
                assert thread["stop"] == "entry", (thread["stop"], names)
                # What is no code is no frame.
                assert all(f["module"] for f in thread["frames"]), thread["frames"]
                if "main.deeper" not in names:
                    continue
                waiting += 1
                # From the C function, if there is one, on to the goroutine's first function.
                outer = names[names.index("main.deeper"):]
                assert set(outer[:names.count("main.deeper")]) == {"main.deeper"}, names
                assert re.fullmatch(r"runtime\.goexit(\.abi0)?", outer[-1]), names
                if kind == "cgo":
                    # From Go 1.21 on there are two of that name.
                    last = max(i for i, name in enumerate(names) if name.startswith("runtime.asmcgocall"))
                    assert names[0] == "pause" and last > 1 and names[last + 1] == "runtime.cgocall", names
            assert len(threads) >= 6 and waiting == 5, (len(threads), waiting)
    return f"stacks of Go's goroutines and threads, {kind}: each is whole, in C and behind it", check


LUA = """
io.write("ready\\n") io.flush()
local t, s = {}, 0
for i = 1, 1e12 do
  s = s + math.floor(i / 3) * 1.5 + (i % 7) + math.sin(i) + (2.5 ^ (i % 3))
  t[i % 100] = tostring(s)
end
"""


def luajit_helpers(folder):
    """The helpers of LuaJIT's interpreter are described as if they were called from nowhere."""
    path = os.path.join(folder, "loop.lua")
    with open(path, "w", encoding="ascii") as f:
        f.write(LUA)
    with Running(["luajit", "-joff", path]) as running:
        assert running.line() == "ready"
        found = []
        while len(found) < 300:
            done = execute(FATHOM, "stack", "--json", "--names-only", "--no-cache", running.pid)
            found += [t for t in records_of(done.stdout) if t["frames"]]
    whole = [t for t in found if t["stop"] == "entry"]
    print(f"# {len(whole)} of {len(found)} are whole, {sum('decoded' in {f['trust'] for f in t['frames']} for t in whole)} by a helper's code")
    for thread in whole:
        assert functions_of(thread)[-1] == "_start", functions_of(thread)
    assert len(whole) >= 290, len(whole)


def sbcl_stacks(folder):
    """Lisp runs on a stack that it has mapped itself, above which that of the program goes on."""
    with Running(["sbcl", "--noinform", "--no-userinit", "--eval", '(progn (format t "ready~%") (finish-output) (sb-unix::nanosleep 1000 0))'],
                 cwd=folder) as running:
        assert running.line() == "ready"
        time.sleep(0.5)
        for thread in stacks_of(running.pid):
            assert thread["stop"] == "entry" and "call_into_lisp_" in functions_of(thread), (thread["stop"], functions_of(thread))


def postgres_stacks(folder):
    """Most of its processes sleep in epoll_wait with a timeout, below functions that keep a frame pointer."""
    with Living("postgres", folder) as pid:
        time.sleep(2)
        children = run("pgrep", "-P", pid).split()
        assert len(children) >= 4, children
        for process in (pid, *children):
            thread, = records_of(run(FATHOM, "stack", "--json", "--names-only", "--no-cache", process, status=(0, 1)))
            names = functions_of(thread)
            assert thread["stop"] == "entry" and thread["pause_us"] == 0, (thread["stop"], names)
            assert names[-1] == "_start" and "main" in names and "PostmasterMain" in names, names
            # gdb ends at main; of what it names as a frame some are inlined.
            shown = run("gdb", "-nx", "-batch", "-p", process, "-ex", "bt", status=None)
            frames = re.findall(r"^#\d+ +(?:0x([0-9a-f]+) in|<signal handler called>)", shown, re.M)
            assert len(frames) >= 3 and all(not pc or int(pc, 16) == int(f["pc"], 16) for pc, f in zip(frames, thread["frames"])), (shown, names)
            assert len(thread["frames"]) == len(frames) + 3, (shown, names)


TESTS = [add_go("cgo", C), add_go("without C", SYSTEM_CALL),
         ("300 stacks of luajit's interpreter: none has one frame and claims to be whole", luajit_helpers),
         ("stacks of sbcl, which go on on the program's own: each is whole", sbcl_stacks),
         ("processes of postgres, which a stop would wake: each is whole, gdb's, and not stopped", postgres_stacks)]
