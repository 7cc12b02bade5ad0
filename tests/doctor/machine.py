# SPDX-License-Identifier: MIT
"""Limits of the machine and of its user: each is made, and is not there otherwise."""
import os
import re
import shutil

import tap
from ask import FATHOM, NOBODY, as_user, copy_for_all, execute, run
from building import build
from counting import is_instrumented
from suite import ENVIRONMENT, FINE, NO_RIGHTS, REFUSED, doctor, in_root, libraries, need_native, one, records, refused, test

SCOPE = "proc/sys/kernel/yama/ptrace_scope"


@test("a machine on which nothing is wrong: status 0, and each check says what there is", needs_root=True)
def fine(folder):
    status, found = in_root(folder)
    assert status == 0
    assert {check: [(r["state"], r["detail"], r["remedy"]) for r in lines] for check, lines in found.items()} == {
        "processes": [("ok", "those of all users", None)],
        "tracing": [("ok", "processes may be attached to", None)],
        "kernel-names": [("ok", "/proc/kallsyms shows addresses", None)],
        "kernel-memory": [("ok", "/proc/kcore can be read", None)],
        "memory": [("ok", "files of any size can be mapped", None)],
        "cache": [("ok", "/tmp/.cache/fathom: 0 KiB", None)],
        "debug-files": [("ok", "/usr/lib/debug has some", None)],
        "libraries": [("ok", "zlib zstd lzma lz4 iberty nanopb zydis capstone debuginfod", None)],
        "debuginfod": [("off", "no server in DEBUGINFOD_URLS", "set it, for --debuginfod")]}


@test("processes: other users', hidden ones, another user namespace, no /proc", needs_root=True)
def processes(folder):
    for files, detail, remedy in (
            (NO_RIGHTS, "only those of this user", "run as root, or with CAP_SYS_PTRACE"),
            ({"proc/self/status": "CapInh:\t0\nCapEff:\t0000000000080000\n"}, None, None),
            ({"proc/1/stat": None}, "/proc hides those of other users", "run as root, or mount /proc without hidepid"),
            ({"proc/self/uid_map": "0 1000 1\n"}, "only those of this user namespace", "run outside of it"),
            ({"proc/self/status": None, "proc/self/uid_map": None}, "/proc is not mounted: none is seen", "mount -t proc proc /proc")):
        _, found = in_root(folder, files)
        wanted = ("limited", detail, remedy) if detail else ("ok", "those of all users", None)
        assert one(found, "processes") == wanted, (files, found)


@test("tracing: each mode of Yama, with and without CAP_SYS_PTRACE", needs_root=True)
def yama(folder):
    forbids = "kernel.yama.ptrace_scope forbids to trace others than children"
    for mode, rights, remedy in ((0, NO_RIGHTS, None), (1, NO_RIGHTS, "run as root, or sysctl kernel.yama.ptrace_scope=0"), (1, {}, None),
                                 (2, NO_RIGHTS, "run as root, or sysctl kernel.yama.ptrace_scope=0"), (2, {}, None),
                                 (3, {}, "mode 3 stays until the machine is started anew")):
        _, found = in_root(folder, {**rights, SCOPE: f"{mode}\n"})
        assert one(found, "tracing") == (("limited", forbids, remedy) if remedy else ("ok", "processes may be attached to", None)), (mode, found)


@test("tracing: a filter of system calls that refuses ptrace(2)")
def filtered(folder):
    need_native()
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer's own ptrace(2) is refused, too")
    program = build(os.path.join(folder, "filtered"), REFUSED)
    _, found = doctor(command=(program, FATHOM))
    assert one(found, "tracing") == ("limited", "a filter of system calls forbids ptrace(2)",
                                     "run outside of the container, or allow ptrace there"), found


@test("names of the kernel: by kptr_restrict, perf_event_paranoid and CAP_SYSLOG, where /proc/kallsyms shows none", needs_root=True)
def kernel_names(folder):
    hidden = {"proc/kallsyms": "".join(f"0000000000000000 T symbol_{i}\n" for i in range(1000))}
    syslog = {"proc/self/status": "Name:\tfathom\nCapEff:\t0000000400000000\n"}

    def said(restricted, paranoid, rights):
        _, found = in_root(folder, {**hidden, **rights, "proc/sys/kernel/kptr_restrict": f"{restricted}\n",
                                    "proc/sys/kernel/perf_event_paranoid": f"{paranoid}\n"})
        state, detail, remedy = one(found, "kernel-names")
        assert state == "limited", found
        return detail, remedy

    assert said(2, 2, syslog) == ("kernel.kptr_restrict is 2", "sysctl kernel.kptr_restrict=1")
    assert said(2, 2, NO_RIGHTS) == ("kernel.kptr_restrict is 2", "sysctl kernel.kptr_restrict=1, and run as root")
    assert said(1, 0, NO_RIGHTS) == ("kernel.kptr_restrict is 1", "run as root, or with CAP_SYSLOG")
    assert said(0, 2, NO_RIGHTS) == ("kernel.perf_event_paranoid is 2", "run as root, or sysctl kernel.perf_event_paranoid=1")
    assert said(0, 1, NO_RIGHTS) == ("/proc/kallsyms shows no addresses", "run as root, or with CAP_SYSLOG")
    _, found = in_root(folder, {"proc/kallsyms": None})
    assert one(found, "kernel-names") == ("limited", "/proc/kallsyms: No such file or directory",
                                          "run as root, on a kernel with CONFIG_KALLSYMS")
    # What a variable of a processor has before the first address does not count.
    _, found = in_root(folder, {"proc/kallsyms": hidden["proc/kallsyms"] + FINE["proc/kallsyms"]})
    assert one(found, "kernel-names")[0] == "ok"


@test("memory of the kernel: no /proc/kcore", needs_root=True)
def kernel_memory(folder):
    _, found = in_root(folder, {"proc/kcore": None})
    assert one(found, "kernel-memory") == ("limited", "there is no /proc/kcore", "it takes CONFIG_PROC_KCORE")


@test("a user without rights: what this machine says of itself", needs_root=True)
def nobody(folder):
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer writes its reports where this user may not")
    command = copy_for_all(folder)
    done = execute(*as_user(NOBODY, command, "doctor", "--json", "--cache-dir", "/proc/none"), env=ENVIRONMENT, status=1, cwd="/")
    found = {}
    for record in records(done.stdout):
        found.setdefault(record["check"], []).append(record)
    assert one(found, "processes") == ("limited", "only those of this user", "run as root, or with CAP_SYS_PTRACE")
    shown = run(*as_user(NOBODY, "cat", "/proc/kallsyms"), cwd="/")
    state = "ok" if re.search(r"^0*[1-9a-f]", shown, re.M) else "limited"
    assert one(found, "kernel-names")[0] == state, found
    state, detail, remedy = one(found, "kernel-memory")
    assert state == "limited" and ((detail, remedy) == ("/proc/kcore: Permission denied", "run as root") or not os.path.exists("/proc/kcore"))


@test("the cache: its size; no directory; a file; nobody may write; not wanted", needs_root=True)
def cache(folder):
    need_native()
    remedy = "name another directory with --cache-dir"
    where = os.path.join(folder, "cache")
    os.makedirs(where)
    for name, size in (("one", 4096), ("two", 8192), (".three", 1023)):
        with open(os.path.join(where, name), "wb") as f:
            f.write(bytes(size))
    _, found = doctor("--cache-dir", where)
    assert one(found, "cache") == ("ok", f"{where}: 12 KiB", None)
    _, found = doctor("--cache-dir", f"{where}/a/b/c")
    assert one(found, "cache") == ("ok", f"{where}/a/b/c: 0 KiB", None) and not os.path.exists(f"{where}/a")
    for path in (f"{where}/one", f"{where}/one/more"):
        _, found = doctor("--cache-dir", path)
        assert one(found, "cache") == ("limited", f"{path}: Not a directory", remedy)
    _, found = doctor("--no-cache")
    assert one(found, "cache") == ("off", "--no-cache is given", None)
    homeless = {k: v for k, v in ENVIRONMENT.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    _, found = doctor(env=homeless)
    assert one(found, "cache") == ("limited", "there is no directory for it", "set HOME or XDG_CACHE_HOME, or give --cache-dir")
    _, found = in_root(folder, script="mkdir full; mount -t tmpfs -o ro tmpfs full", options="--cache-dir /full/cache")
    assert one(found, "cache") == ("limited", "/full/cache: Read-only file system", remedy)


@test("debug files: none, an empty directory, one that is not there, one more by --debug-dir", needs_root=True)
def debug_files(folder):
    remedy = "install debug packages, or try --debuginfod"
    only = {"usr/lib/debug/.build-id/12/34.debug": None}
    _, found = in_root(folder, only)
    assert one(found, "debug-files") == ("limited", "/usr/lib/debug: No such file or directory", remedy)
    _, found = in_root(folder, only, script="mkdir -p usr/lib/debug/.build-id/12; ln -s /fathom usr/lib/debug/link")
    assert one(found, "debug-files") == ("limited", "/usr/lib/debug is empty", remedy)
    # A directory may be a link.
    _, found = in_root(folder, {**only, "more/.build-id/12/34.debug": ""}, script="ln -s /more usr/lib/debug")
    assert one(found, "debug-files") == ("ok", "/usr/lib/debug has some", None)
    _, found = in_root(folder, {**only, "more/x.debug": ""}, options="--debug-dir /more")
    assert [(r["state"], r["detail"]) for r in found["debug-files"]] == [
        ("limited", "/usr/lib/debug: No such file or directory"), ("ok", "/more has some")]


@test("libraries that are opened when they are needed, and are not installed", needs_root=True)
def missing(folder):
    capstone, zydis = (sorted(n for n in os.listdir(libraries()) if re.fullmatch(p, n))[0]
                       for p in (r"libcapstone\.so\.\d", r"libZydis\.so\.\d+\.\d+"))
    _, found = in_root(folder, without=["libZydis.so.[0-9]*", "libcapstone.so.[0-9]*", "libdebuginfod.so.1"],
                       script="export DEBUGINFOD_URLS=http://127.0.0.1:9")
    assert [(r["state"], r["detail"], r["remedy"]) for r in found["libraries"]] == [
        ("limited", "zydis: not installed, for x86 code", f"install {zydis}"),
        ("limited", "capstone: not installed, for aarch64 code", f"install {capstone}"),
        ("limited", "debuginfod: not installed, for debug files from servers", "install libdebuginfod.so.1"),
        ("ok", "zlib zstd lzma lz4 iberty nanopb", None)]
    assert "debuginfod" not in found


@test("memory: a limit of the address space, which keeps large files out")
def memory(folder):
    need_native()
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer needs all of the address space")
    large = os.path.join(folder, "large")
    shutil.copy(FATHOM, large)
    os.truncate(large, 1 << 30)
    limited = ("sh", "-c", 'ulimit -v 524288 && exec "$@"', "sh", FATHOM)
    _, found = doctor(command=limited)
    assert one(found, "memory") == ("limited", "RLIMIT_AS is 512 MiB: no larger files", "ulimit -v unlimited")
    done = execute(*limited, "addr", large, "main")
    assert done.returncode == 2 and "Cannot allocate memory" in done.stderr, done
    assert execute(FATHOM, "addr", "--no-cache", large, "main").returncode == 0


@test("as text: the words of --json, in columns; usage")
def text(_):
    json_status, found = doctor()
    done = execute(FATHOM, "doctor", env=ENVIRONMENT, status=json_status)
    lines = [r for check in found.values() for r in check]
    assert done.stdout.splitlines() == [
        f"{r['state']:8}{r['check']:14}{r['detail']}" + (f" ({r['remedy']})" if r["remedy"] else "") for r in lines] and not done.stderr
    # Paths have any length.
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "/fathom: " not in line), done.stdout
    assert refused("/bin/true", "/bin/false") == "fathom: doctor: one TARGET is wanted, or none (try 'fathom doctor --help')\n"
    assert refused("no-such-file") == "fathom: no-such-file: No such file or directory (check the path)\n"
    assert refused("--nothing").startswith("fathom: --nothing: is not an option of 'fathom doctor'")
