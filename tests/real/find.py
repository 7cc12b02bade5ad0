# SPDX-License-Identifier: MIT
"""Names in heavy programs of Debian's own: what they and other tools say of them."""
import os
import re
import tempfile
import time

from ask import find, run
from finding import address, dynamic, places
from living import Living
from running import Running

ALLOCATORS = {"jemalloc": ("libjemalloc.so.2", "mallctl"), "tcmalloc": ("libtcmalloc_minimal.so.4", "tc_version")}


def living(name, check):
    def call():
        with tempfile.TemporaryDirectory(prefix="fathom-real-") as folder, Living(name, folder) as pid:
            check(pid)
    return call


def ruby(pid):
    """The seed's names: in libruby, not in the program."""
    records, _ = find(pid, "ruby_version", "--read", "str")
    version = run("ruby", "-e", "print RUBY_VERSION")
    assert [(r["value"], r["rank"], r["type"]) for r in records] == [(version, 0, "object")], records
    assert os.path.basename(records[0]["module"]).startswith("libruby"), records
    records, _ = find(pid, "libruby*:ruby_api_version", "--read", "i32[3]")
    assert records[0]["value"] == [int(x) for x in version.split(".")[:2]] + [0], records
    records, _ = find(pid, "ruby_current_vm_ptr", "--read", "ptr")
    assert int(records[0]["value"], 16) > 4096, records
    assert places(pid, "ruby3.1:ruby_version")["ruby3.1:ruby_version"] == [None]


def node(pid):
    """A name of each kind, beside nm; the exact one by nm's value: node is not position independent."""
    path = os.path.realpath(f"/proc/{pid}/exe")
    known = {}
    for line in run("nm", path).splitlines():
        m = re.match(r"([0-9a-f]+) (\w) (\S+)", line)
        if m:
            known.setdefault(m[3], set()).add(int(m[1], 16))
    names = ["uv_run", "node_module_register", "_ZN4node5StartEiPPc", "main"]
    with open(path, "rb") as file:
        fixed = file.read(18)[16] == 2
    for name in names if fixed else []:
        got = {address(r) for r in find(pid, "node:" + name)[0]}
        assert known[name] <= got and len(got) == len(known[name]), (name, got, known[name])
    # V8 maps its builtins a second time: both places are theirs, and hold the same.
    records, _ = find(pid, "Builtins_JSEntry", "--read", "bytes:64")
    assert len({r["value"] for r in records}) == 1 and records, records
    records, _ = find(pid, "v8::internal::Heap::CollectGarbage*")
    assert records and all("CollectGarbage" in r["linkage_name"] for r in records), records


def java(pid):
    """libjvm is opened with dlopen, RTLD_LOCAL by the launcher; its tables name its own types."""
    records, _ = find(pid, "gHotSpotVMStructs", "--read", "**str")
    assert [os.path.basename(r["module"]) for r in records] == ["libjvm.so"], records
    assert records[0]["value"], records
    assert dynamic(pid, "libjvm*:JNI_CreateJavaVM")["type"] == "func"
    records, _ = find(pid, "malloc")
    assert records[0]["rank"] == 0 and "libc" in records[0]["module"], records


def luajit(pid):
    record = dynamic(pid, "lua_pcall")
    assert "luajit" in record["module"] and record["type"] == "func", record
    records, _ = find(pid, "/^lua_push/")
    text = run("nm", "-D", record["module"])
    assert {r["name"] for r in records if r["module"] == record["module"]} == \
        set(re.findall(r" T (lua_push\w+)", text)), records


def lua(pid):
    record = dynamic(pid, "lua_newstate")
    assert "lua5.4" in record["module"], record
    records, _ = find(pid, "luaL_*")
    assert len({r["name"] for r in records}) > 30


def python(pid):
    record = dynamic(pid, "_PyRuntime")
    assert os.path.basename(record["module"]).startswith(("python3", "libpython3")), record
    records, _ = find(pid, "PyLong_Type", "--read", "+24:*str")
    assert records[0]["value"] == "int", records


def by_gdb(pid, names=("malloc", "qsort", "memcpy", "environ", "strtol", "dlsym", "stdout")):
    """gdb calls dlsym(RTLD_DEFAULT) in the process itself."""
    commands = [x for n in names for x in ("-ex", f"p/x (unsigned long)((void *(*)(void *, const char *))dlsym)(0, \"{n}\")")]
    out = run("gdb", "-q", "-nx", "-batch", "-p", pid, *commands, status=None)
    theirs = [int(m, 16) for m in re.findall(r"^\$\d+ = (0x[0-9a-f]+)", out, re.M)]
    assert len(theirs) == len(names), out
    for name, want in zip(names, theirs, strict=True):
        got = dynamic(pid, name)
        assert got and address(got) == want, (name, got, hex(want))


def preloaded(library, own):
    """An allocator, preloaded into a wrapper that runs the program late: what malloc is there."""
    def call():
        command = ["sh", "-c", f"sleep 1; LD_PRELOAD=/usr/lib/x86_64-linux-gnu/{library} exec perl -e 'sleep 60'"]
        with Running(command) as process:
            start = time.monotonic()
            records, _ = find(process.pid, f"{library}*:{own}", "--wait", "20")
            # At most two seconds after it has come.
            assert records[0]["rank"] == 0 and time.monotonic() - start < 3, records
            assert os.path.basename(dynamic(process.pid, "malloc")["module"]) == os.path.basename(os.path.realpath(
                f"/usr/lib/x86_64-linux-gnu/{library}"))
            by_gdb(process.pid, ("malloc", "free", "calloc", own))
    return call


def tests():
    checks = [("ruby", ruby), ("node", node), ("java", java), ("luajit", luajit), ("lua", lua), ("python3", python)]
    for name, check in checks:
        yield f"names in {name}", living(name, check)
    for name in ("perl", "ruby", "luajit", "lua", "python3", "sqlite3", "node", "java", "gdb"):
        yield f"dlsym's answers in {name}, by gdb's calls", living(name, by_gdb)
    for name, (library, own) in ALLOCATORS.items():
        yield f"{name} preloaded, and a program that a wrapper runs late", preloaded(library, own)
