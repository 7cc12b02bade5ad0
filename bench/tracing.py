# SPDX-License-Identifier: MIT
"""What recording each call of a program costs, whole process: 4,356,617 calls of one function in itself. Peers' logs hold every
call, too, and returns; -finstrument-functions calls an empty function, and so writes nothing."""
import os
import subprocess

from measure import Bench, Tool

HERE = os.path.dirname(os.path.abspath(__file__))
N = "31"
SITES = "-fpatchable-function-entry=18,16"


def build(folder, name, *flags, compiler="gcc"):
    path = os.path.join(folder, name)
    subprocess.run([compiler, "-O2", "-o", path, os.path.join(HERE, "traced.c"), *flags], check=True)
    return path


def trace_benches(command, folder):
    if os.uname().machine != "x86_64":
        return
    traced = build(folder, "traced", SITES)
    plain = build(folder, "plain")
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
    yield Bench("trace-last", [Tool("fathom", [command, "trace", "--last", "100", "--", traced, N]), Tool("none", [plain, N])])
    yield Bench("trace-text", [Tool("fathom", [command, "trace", "--no-fold", "--log", "/dev/null", "--", traced, N]), Tool("none", [plain, N])])
    yield Bench("trace-idle", [Tool("fathom", [traced, N]), Tool("none", [plain, N]), Tool("instrument", [hook, N])])
    yield Bench("trace-start", [Tool("fathom", [command, "trace", "--log", "/dev/null", "--", traced, "1"]), Tool("none", [plain, "1"]),
                                Tool("uftrace", ["uftrace", "record", "--no-libcall", "-d", out + ".d", fentry, "1"])])
