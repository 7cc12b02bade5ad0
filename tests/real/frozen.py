# SPDX-License-Identifier: MIT
"""Stacks of programs that make code, in a state that does not change, beside what the programs say of it themselves; and the
same of their cores, when the programs are gone."""
import json
import os
import re
import signal
import time

from ask import FATHOM, HANG_SECONDS, execute, run
from building import core_of
from jit import Compiling
from running import wait_for_state

# Each function waits in the next, the last one for ever. Before, it may have run so often that it was compiled.
NODE = """
Error.stackTraceLimit = Infinity;
const word = new Int32Array(new SharedArrayBuffer(4));
let sum = 0;
function leaf(last) {
  if (last) console.log(JSON.stringify(new Error().stack.split('\\n').slice(1)));
  Atomics.wait(word, 0, last ? 0 : 1);
  sum++;
}
function middle(n, last) { if (n) middle(n - 1, last); else leaf(last); sum++; }
class Thing { method(n, last) { middle(n, last); sum++; } }
function outer(last) { [1].forEach(() => { new Thing().method(3, last); sum++; }); sum++; }
for (let i = 0; i < Number(process.argv[2]); i++) outer(false);
outer(true);
"""

JAVA = """
public class Frozen {
    static long leaf(int n) throws Exception { Thread.sleep(n); return n + 1; }
    static long inner(int n) throws Exception { return leaf(n) + 1; }
    static long middle(int n) throws Exception { return n > 1000000 ? middle(n - 1) * 3 : inner(n) * 2; }
    static long outer(int n) throws Exception { return middle(n) + 3; }
    public static void main(String[] args) throws Exception { System.out.println("ready"); outer(1000003); }
}
"""

# The loop is within a comparison, which a function of C calls, which another of Lua calls, and so on.
LUA = """
local function compare(a, b) local s = 0 for i = 1, 1e15 do s = s * 0.5 + i end return a < b end
local function outer() table.sort({3, 1, 2}, compare) end
print('ready') io.stdout:flush()
string.gsub("abc", "b", function() outer() end)
"""


def thread_of(target, tid):
    done = execute(FATHOM, "stack", "--json", "--no-cache", "--tid", tid, target, status=(0, 1))
    (thread,) = (json.loads(line) for line in done.stdout.splitlines())
    return thread


def thread_in(running, tid, function):
    """The thread once it is in @function."""
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        thread = thread_of(running.pid, tid)
        if any(f["symbol"] == function for f in thread["frames"]):
            return thread
        time.sleep(0.1)
    raise AssertionError(f"it does not come to {function}: {thread}")


def told(thread):
    return thread["stop"], [(f["pc"], f["sp"], f["symbol"], f["trust"]) for f in thread["frames"]]


def in_its_core(running, tid, folder):
    """The thread of the program, stopped; its core says the same when the program is gone."""
    running.signal(signal.SIGSTOP)
    wait_for_state(running.pid, "T")
    thread = thread_of(running.pid, tid)
    core = core_of(running.pid, folder)
    running.kill()
    stored = thread_of(core, tid)
    assert told(stored) == told(thread), f"{told(stored)}, not {told(thread)}"
    return thread


def check_whole(thread, last, scanned=False):
    assert thread["stop"] == "entry" and thread["frames"][-1]["symbol"] == last, thread
    assert scanned or not any(f["trust"] == "scan" for f in thread["frames"]), thread


def script_of(line):
    """(name, file) of a line of a stack as V8 prints it; the name is "" if the function has none."""
    name, place = re.fullmatch(r" +at (?:(.*) \()?(.*?)\)?", line).groups()
    name = re.sub(r" \[as .*\]$", "", name or "")
    return name.removeprefix("new "), place.rsplit(":", 2)[0]


def is_same_function(symbol, line):
    """Whether a name of V8's perf map, or of one of its builtins, is that of a line of its stack."""
    name, file = script_of(line)
    if file == "<anonymous>":
        return symbol == "Builtins_" + name.replace("Array.f", "ArrayF")
    mapped = re.fullmatch(r"JS:[~^*+](\S*) (.*):\d+:\d+", symbol)
    # Its lines have the class, too, which names of the map lack.
    return mapped and mapped[2] == file and \
        (name == mapped[1] or (name.endswith("." + mapped[1]) if mapped[1] else name in ("", "Object.<anonymous>")))


def frozen_node(folder, rounds, *options):
    """A thread of node in the state that the lines tell of, of the process and of its core."""
    path = os.path.join(folder, "frozen.js")
    with open(path, "w", encoding="ascii") as file:
        file.write(NODE)
    command = ["node", "--perf-basic-prof", "--interpreted-frames-native-stack", *options, path, rounds]
    with Compiling(command, folder, True) as running:
        lines = json.loads(running.line())
        thread_in(running, running.pid, "v8::internal::Builtin_AtomicsWait(int, unsigned long*, v8::internal::Isolate*)")
        thread = in_its_core(running, running.pid, folder)
    check_whole(thread, "_start")
    names = [f["symbol"] for f in thread["frames"]]
    return names[:names.index("Builtins_JSEntryTrampoline")], lines


def check_node(names, lines):
    made = names[next(i for i, name in enumerate(names) if name.startswith("JS:")):]
    assert len(made) == len(lines) and all(map(is_same_function, made, lines)), (made, lines)


def node_interpreted(folder):
    names, lines = frozen_node(folder, 0)
    assert len(lines) > 10 and any(name.startswith("JS:~leaf ") for name in names), names
    check_node(names, lines)


def node_baseline(folder):
    names, lines = frozen_node(folder, 0, "--always-sparkplug", "--no-opt")
    assert any(name.startswith("JS:^leaf ") for name in names), names
    check_node(names, lines)


def node_deoptimized(folder):
    """Compiled functions hold inlined ones, and frames that were taken apart have no call before them."""
    names, lines = frozen_node(folder, 30000, "--no-concurrent-recompilation")
    assert any(name.startswith("JS:*middle ") for name in names), names
    rest = iter(lines)
    for name in (n for n in names if n.startswith("JS:")):
        assert any(is_same_function(name, line) for line in rest), (names, lines)


def java(folder, *options):
    path = os.path.join(folder, "Frozen.java")
    with open(path, "w", encoding="ascii") as file:
        file.write(JAVA)
    run("javac", path, cwd=folder)
    only = [f"-XX:CompileCommand=compileonly,{method}" for method in ("Frozen::*", "java.lang.Thread::sleep")]
    # A small heap makes a small core. The first compiler guesses nothing, so no frame is taken apart.
    command = ["java", "-Xmx32m", "-XX:ReservedCodeCacheSize=32m", "-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:-Inline",
               "-XX:CompileCommand=quiet", *only, *options, "Frozen"]
    with Compiling(command, folder, True) as running:
        assert running.line() == "ready"
        main = int(re.search(r'^"main" .* nid=0x([0-9a-f]+) ', run("jstack", running.pid), re.M)[1], 16)
        thread_in(running, main, "JavaThread::sleep(long)")
        text = re.search(r'^"main" .*\n.*\n((?:\tat .*\n)+)', run("jstack", running.pid), re.M)[1]
        run("jcmd", running.pid, "Compiler.perfmap")
        thread = in_its_core(running, main, folder)
    check_whole(thread, "clone3")
    # "at java.lang.Thread.sleep(java.base@17.0.1/Native Method)", "void java.lang.Thread.sleep(long)"
    wanted = re.findall(r"^\tat ([\w.]+)\(", text, re.M)
    assert wanted == ["java.lang.Thread.sleep", "Frozen.leaf", "Frozen.inner", *["Frozen.middle"] * 4, "Frozen.outer", "Frozen.main"]
    made = [f for f in thread["frames"] if f["source"] == "perf-map"]
    got = [re.fullmatch(r"\S+ ([\w.]+)\(.*\)", f["symbol"])[1] for f in made[:-1]]
    assert got == wanted and made[-1]["symbol"].startswith("StubRoutines"), (got, wanted, made)


def java_with_frame_pointers(folder):
    java(folder, "-XX:+PreserveFramePointer")


def java_without_frame_pointers(folder):
    java(folder, "-XX:-PreserveFramePointer")


def lua_frames(folder, option):
    """The stack of the loop, of the process and of its core: the frame that it runs in, and the others as places in files."""
    path = os.path.join(folder, "loop.lua")
    with open(path, "w", encoding="ascii") as file:
        file.write(LUA)
    with Compiling(["luajit", option, path], folder, True) as running:
        assert running.line() == "ready"
        time.sleep(2)
        thread = in_its_core(running, running.pid, folder)
    check_whole(thread, "_start", scanned=True)
    first, *others = thread["frames"]
    return first, [(f["module"], f["module_address"]) for f in others]


def luajit_trace(folder):
    """The code of a loop runs in the frame of the interpreter: without compiled code the stack is the same, and all of it by
    call frame information."""
    first, frames = lua_frames(folder, "-jon")
    interpreter, wanted = lua_frames(folder, "-joff")
    assert first["module"] is None and interpreter["module"].rpartition("/")[2].startswith("luajit"), (first, interpreter)
    assert len(wanted) >= 10 and frames == wanted, (frames, wanted)


TESTS = [("a stack of node, interpreted: the functions of its own Error.stack, of the process and of its core", node_interpreted),
         ("a stack of node's baseline code: the functions of its own Error.stack, of the process and of its core", node_baseline),
         ("a stack of node that was optimized and deoptimized: whole, and no function but those of its Error.stack", node_deoptimized),
         ("a stack of java with -XX:+PreserveFramePointer: the methods of jstack, of the process and of its core",
          java_with_frame_pointers),
         ("a stack of java without frame pointers: the methods of jstack, of the process and of its core",
          java_without_frame_pointers),
         ("a stack of luajit in a compiled loop: the callers that it has without compiler, of the process and of its core",
          luajit_trace)]
