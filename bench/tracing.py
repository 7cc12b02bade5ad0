# SPDX-License-Identifier: MIT
"""What recording each call of a program costs, whole process: 4,356,617 calls of one function in itself. Peers' logs hold every
call, too, and returns; -finstrument-functions calls an empty function, and so writes nothing."""
import os
import shutil
import subprocess

from measure import Bench, Told, Tool

HERE = os.path.dirname(os.path.abspath(__file__))
N = "31"
SITES = "-fpatchable-function-entry=18,16"


def build(folder, name, *flags, compiler="gcc", source="traced.c"):
    path = os.path.join(folder, name)
    subprocess.run([compiler, "-O2", "-o", path, os.path.join(HERE, source), *flags], check=True)
    return path


def served(folder, n, pause_us=0):
    """A program of @n functions, which four threads call for ever, with pauses between rounds."""
    name = f"served-{n}-{pause_us}"
    source = os.path.join(folder, name + ".c")
    with open(source, "w", encoding="ascii") as f:
        f.write("#include <pthread.h>\n#include <unistd.h>\n#define F(n) __attribute__((noinline)) void f##n(void) { __asm__ volatile(\"\"); }\n")
        f.writelines(f"F({i})\n" for i in range(n))
        f.write("static void (*const all[])(void) = {\n" + "".join(f"f{i},\n" for i in range(n)) + "};\n")
        f.write("static void *run(void *data)\n{\n\tfor (;;" + (f" usleep({pause_us})" if pause_us else "") + ")\n\t\tfor (unsigned i = 0; i < sizeof all / sizeof *all; i++)\n\t\t\tall[i]();\n"
                "\treturn data;\n}\nint main(void)\n{\n\tpthread_t t;\n\n\tfor (int i = 0; i < 3; i++)\n\t\tpthread_create(&t, 0, run, 0);\n"
                "\treturn !run(0);\n}\n")
    path = os.path.join(folder, name)
    subprocess.run(["gcc", "-O1", "-pthread", SITES, "-o", path, source], check=True)
    return path


def trace_benches(command, folder):
    if os.uname().machine != "x86_64":
        return
    traced = build(folder, "traced", SITES)
    plain = build(folder, "plain")
    clock = build(folder, "clock", "-DCLOCK")
    hook = build(folder, "hook", "-finstrument-functions", "-DHOOK")
    fentry = build(folder, "fentry", "-pg", "-mfentry")
    xray = build(folder, "xray", "-fxray-instrument", "-fxray-instruction-threshold=1", compiler="clang-19")
    out = os.path.join(folder, "out")
    basic = f"patch_premain=true xray_mode=xray-basic xray_logfile_base={folder}/xray. xray_naive_log_func_duration_threshold_us=0 verbosity=0"
    peers = [Tool("none", [plain, N]), Tool("instrument", [hook, N]), Tool("uftrace", ["uftrace", "record", "--no-libcall", "-d", out + ".d", fentry, N]),
             Tool("xray-basic", ["sh", "-c", f'XRAY_OPTIONS="$1" "$2" {N} && rm -f {folder}/xray.*', "sh", basic, xray])]
    library = os.path.join(os.path.dirname(os.path.abspath(command)), "src")
    own = build(folder, "own", SITES, "-DOWN", f"-I{HERE}/../include", f"-L{library}", "-lfathom", f"-Wl,-rpath,{library}")
    # A hook that counts: off, on, and where it needs no vectors saved; -finstrument-functions calls two that do nothing.
    for mode in "off", "on", "bare":
        yield Bench(f"hook-{mode}", [Tool("fathom", [own, N, mode]), Tool("none", [plain, N]), Tool("instrument", [hook, N])])
    yield Bench("trace-file", [Tool("fathom", [command, "trace", "-o", out, "--", traced, N]), *peers])
    yield Bench("trace-file-sparse", [Tool("fathom", [command, "trace", "--clock", "sparse", "-o", out, "--", traced, N]), Tool("none", [plain, N])])
    # What a call costs where nobody writes: the hook alone, beside the clock that it reads.
    for name in "full", "sparse", "none":
        yield Bench(f"trace-last-{name}", [Tool("fathom", [command, "trace", "--last", "100", "--clock", name, "--", traced, N]), Tool("none", [plain, N]),
                                           Tool("clock", [clock, N])])
    # What N calls take, by the program's own clock, if it has the tracer inside: that changes its text, or is attached to.
    told = build(folder, "told", SITES, "-DTOLD")
    preload = f"LD_PRELOAD={library}/libfathom-trace.so"
    for name in "full", "none":
        yield Told(f"trace-inside-{name}", 0, [*(Tool(tool, ["env", preload, f"FATHOM_TRACE=--last 100 --clock {name} --log /dev/null --method {method}", told, N])
                                                 for tool, method in (("fathom", "rewrite"), ("fathom-ptrace", "ptrace"))), Tool("none", [told, N])])
    yield Bench("trace-pipe", [Tool("fathom", ["sh", "-c", '"$@" 2>&1 >/dev/null | cat >/dev/null', "sh", command, "trace", "--no-fold", "--", traced, N]),
                               Tool("none", [plain, N])])
    attached = build(folder, "attached", f"-I{HERE}/../include", f"-L{library}", "-lfathom", f"-Wl,-rpath,{library}", source="attached.c")
    for n in 1, 100, 3000, 30000:
        path = served(folder, n)
        # How long its four threads stand still, and how long it takes until their calls are recorded.
        yield Told(f"trace-attach-stop-{n}", 0, [Tool("fathom", [attached, path])])
        yield Told(f"trace-attach-{n}", 1, [Tool("fathom", [attached, path])])
    # Threads that rest stop at once: what is left is the changing of so many sites.
    for n in 1, 3000, 30000:
        yield Told(f"trace-attach-resting-{n}", 0, [Tool("fathom", [attached, served(folder, n, 20000)])])
    yield Bench("trace-text", [Tool("fathom", [command, "trace", "--no-fold", "--log", "/dev/null", "--", traced, N]), Tool("none", [plain, N])])
    yield Bench("trace-idle", [Tool("fathom", [traced, N]), Tool("none", [plain, N]), Tool("instrument", [hook, N])])
    yield Bench("trace-start", [Tool("fathom", [command, "trace", "--log", "/dev/null", "--", traced, "1"]), Tool("none", [plain, "1"]),
                                Tool("uftrace", ["uftrace", "record", "--no-libcall", "-d", out + ".d", fentry, "1"])])


CALLS = "20000"
# strace takes half a millisecond for each stack.
STACKS = "4000"
REQUESTS = "5000"

# Runs redis-server below a tracer, and has it answer requests: $1 its folder, $2 their number, then the tracer's words.
REDIS = """folder=$1; requests=$2; shift 2
"$@" redis-server --port 0 --unixsocket "$folder/socket" --save '' --dir "$folder" &
for i in $(seq 1000); do redis-cli -s "$folder/socket" ping && break; done
redis-benchmark -s "$folder/socket" -n "$requests" -t get,set
redis-cli -s "$folder/socket" shutdown nosave
wait"""


def perf_tools(out, calls, words):
    """perf trace, with and without stacks, unless a first run lacks calls: its log must hold all @calls of getppid()."""
    if not shutil.which("perf"):
        return
    for name, options in ("perf-trace", []), ("perf-trace-fp", ["--call-graph", "fp"]), ("perf-trace-dwarf", ["--call-graph", "dwarf"]):
        tool = Tool(name, ["sh", "-c", 'out=$1; n=$2; shift 2; perf trace -m 4096 -o "$out" "$@" && [ "$(grep -c "getppid(" "$out")" = "$n" ]', "sh", out, calls, *options, *words])
        if not subprocess.run(tool.command, capture_output=True, check=False).returncode:
            yield tool


def system_call_benches(command, folder):
    """What system calls cost that are traced: CALLS of them, and whole programs. All logs hold every call of the set."""
    if os.uname().machine != "x86_64":
        return
    asking = build(folder, "asking", source="asking.c")
    out = os.path.join(folder, "out")

    def tools(words, *options):
        yield Tool("fathom", [command, "strace", "-f", "-o", out, *options, *words])
        yield Tool("none", words)
        yield Tool("strace", ["strace", "-f", "-o", out, *options, *words])
        yield Tool("fathom-rewrite", [command, "strace", "-f", "--method=rewrite", "-o", out, *options, *words])
        chosen = ["--syscalls=" + options[1].removeprefix("trace=")] if options else []
        yield Tool("fathom-dispatch", [command, "trace", "--method=dispatch", "--no-functions", *chosen, "--log", out, "--", *words])
        yield Tool("fathom-seccomp", [command, "strace", "-f", "--seccomp-bpf", "-o", out, *options, *words])
        yield Tool("strace-seccomp", ["strace", "-f", "--seccomp-bpf", "-o", out, *options, *words])

    def with_stacks(words):
        yield Tool("fathom", [command, "strace", "-f", "-k", "-o", out, *words])
        yield Tool("none", words)
        yield Tool("fathom-alone", [command, "strace", "-f", "-o", out, *words])
        yield Tool("strace", ["strace", "-f", "-k", "-o", out, *words])

    def redis(name, *tracer):
        return Tool(name, ["sh", "-c", REDIS, "sh", os.path.abspath(folder), REQUESTS, *tracer])

    perf = list(perf_tools(out, CALLS, [asking, CALLS]))
    yield Bench("syscalls-plain", [*tools([asking, CALLS]), *(tool for tool in perf if tool.name == "perf-trace")])
    yield Bench("syscalls-stacks", [*with_stacks([asking, STACKS]), *(tool for tool in perf_tools(out, STACKS, [asking, STACKS]) if tool.name != "perf-trace")])
    yield Bench("syscalls-stacks-file", [Tool("fathom", [command, "trace", "--syscalls", "--no-functions", "--stacks", "-o", out, "--", asking, STACKS]), Tool("none", [asking, STACKS])])
    yield Bench("syscalls-stacks-python3", list(with_stacks(["/usr/bin/python3", "-c", "print()"])))
    if shutil.which("redis-server"):
        yield Bench("syscalls-redis", [redis("fathom", command, "strace", "-f", "-o", out), redis("none", "env"), redis("strace", "strace", "-f", "-o", out),
                                       redis("fathom-stacks", command, "strace", "-f", "-k", "-o", out)])
    yield Bench("syscalls-path", list(tools([asking, CALLS, "/etc/passwd"])))
    yield Bench("syscalls-left-out", list(tools([asking, CALLS], "-e", "trace=openat")))
    # What the calls alone take, by the program's own clock.
    for name, words, options in (("plain", [], []), ("path", ["/etc/passwd"], []), ("left-out", [], ["-e", "trace=openat"])):
        yield Told(f"syscalls-cost-{name}", 0, [tool for tool in tools([asking, CALLS, *words], *options) if tool.name in ("fathom-rewrite", "fathom-dispatch", "fathom-seccomp", "none", "strace-seccomp")])
    yield Bench("syscalls-file", [Tool("fathom", [command, "trace", "--syscalls", "--no-functions", "-o", out, "--", asking, CALLS]), Tool("none", [asking, CALLS])])
    yield Bench("syscalls-find", list(tools(["find", "/usr/share/doc", "-name", "nothing"])))
    yield Bench("syscalls-tar", list(tools(["tar", "cf", "/dev/null", "/usr/share/perl"])))
    yield Bench("syscalls-python3", list(tools(["/usr/bin/python3", "-c", "print()"])))
