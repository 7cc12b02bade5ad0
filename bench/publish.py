# SPDX-License-Identifier: MIT
"""Code that a program publishes: what commits cost for each consumer, and what gdb's attaching costs afterwards."""
import os
import subprocess

from measure import Bench, Inside, Tool
from stacks import Program

HERE = os.path.dirname(os.path.abspath(__file__))
# The first is the usual: gdb, the registry and the unwinders of the process. The other unwinders are loaded for it.
CONSUMERS = {"fathom": "", "nobody": "none", "gdb": "none,gdb", "registry": "none,registry", "libgcc": "none,libgcc", "llvm": "none,llvm",
             "nongnu": "none,nongnu", "perf-map": "none,perf-map", "jitdump": "none,jitdump", "all": "all"}
LOADED = {"llvm": "/usr/lib/x86_64-linux-gnu/libunwind.so.1", "nongnu": "libunwind.so.8"}


def publish_benches(command, folder):
    library = os.path.abspath(os.path.join(os.path.dirname(command), "src"))
    path = os.path.join(folder, "publish")
    subprocess.run(["g++", "-O2", "-o", path, os.path.join(HERE, "publish.cc"), "-I", os.path.join(HERE, "..", "include"), "-L", library,
                    "-lfathom", f"-Wl,-rpath,{library}"], check=True)
    # perf's files stay: each run has its own.
    script = 'FATHOM_JIT=$1 LD_PRELOAD=$2; export FATHOM_JIT LD_PRELOAD; shift 2; "$@"; status=$?; rm -f /tmp/perf-[0-9]*.map /tmp/jit-[0-9]*.dump; exit $status'

    def tools(*words, consumers=CONSUMERS):
        return [Tool(name, ["sh", "-c", script, "sh", value, LOADED.get(name, ""), path, *words]) for name, value in consumers.items()]

    usual = {"fathom": "", "nobody": "none"}
    for rule in ("arena", "own"):
        for n, batch in ((1, 1), (100, 1), (10000, 1), (100000, 1), (10000, 10), (100000, 10), (100000, 1000)):
            yield Inside(f"publish-{rule}-{n}-by-{batch}",
                         tools(str(n), str(batch), rule, consumers=CONSUMERS if (n, batch) == (100000, 1000) else usual))
        for what in ("move", "remove"):
            for n, batch in ((10000, 1), (100000, 10), (100000, 1000)):
                yield Inside(f"publish-{rule}-{what}-{n}-by-{batch}", tools(str(n), str(batch), rule, "0", what, consumers=usual))
        yield Inside(f"publish-{rule}-one-beside-100000", tools("100000", "1000", rule, "0", "one", consumers=usual))
        yield Inside(f"publish-{rule}-backtrace-beside-100000", tools("100000", "1000", rule, "0", "back", consumers=usual))
    yield Inside("publish-own-lines-100000-by-1000", tools("100000", "1000", "own", "4", consumers=usual))
    yield Inside("publish-off-1000000", tools("1", "1", "arena", "0", "off", consumers={"nobody": "none"}))
    for lines in ("0", "4"):
        words = [path, "100000", "1000", "own", lines, "wait"]
        with Program("env", "FATHOM_JIT=", *words) as told, Program("env", "FATHOM_JIT=none", *words) as untold:
            yield Bench(f"publish-attach-100000{'-lines' if lines != '0' else ''}", [
                Tool(name, ["gdb", "-q", "-nx", "-batch", "-p", program.pid, "-ex", "bt"], r"^#0 ")
                for name, program in (("fathom", told), ("nobody", untold))])
