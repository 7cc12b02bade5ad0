# SPDX-License-Identifier: MIT
"""Limits of one target: lines, files, and the right to attach to a process."""
import os
import shutil

import tap
from ask import FATHOM, NOBODY, as_user, copy_for_all, execute, run
from building import add_link, build, build_id, build_text, core_of, keep_debug
from counting import is_instrumented
from running import Running, call_of, until
from suite import ENVIRONMENT, HERE, PROGRAMS, REFUSED, doctor, need_native, one, test

# By x86-64 and by aarch64.
CLOCK_NANOSLEEP = (230, 115)
WAITS = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts("ready"); fflush(stdout); pause(); return 0; }\n'


def waiting(folder, name="waits", *options, flags=("-O1", "-g", "-Wl,--build-id")):
    return build_text(os.path.join(folder, name), WAITS, *options, flags=flags)


def lines_of(found):
    return [(r["state"], r["detail"], r["remedy"], r["module"], r["build_id"]) for r in found["lines"]]


@test("lines of a file: it has them; compiled without -g, with and without a build-id; a debug file of another build")
def lines(folder):
    path = waiting(folder)
    _, found = doctor(path)
    assert lines_of(found) == [("ok", "1 module has them", None, None, None)] and "attach" not in found and "files" not in found
    plain = waiting(folder, "plain", flags=["-O1", "-Wl,--build-id"])
    _, found = doctor(plain)
    number = build_id(plain)
    assert len(number) == 40
    assert lines_of(found) == [("limited", f"{plain}: no-debug-info", f"install the debug package, build-id {number}", plain, number)]
    bare = waiting(folder, "bare", flags=["-O1", "-Wl,--build-id=none"])
    _, found = doctor(bare)
    assert lines_of(found) == [("limited", f"{bare}: no-debug-info", "compile it with -g", bare, None)]
    # The link leads to the debug file of another program.
    other = waiting(folder, "other", flags=["-O1", "-g", "-Wl,--build-id=0x1234"])
    wrong = waiting(folder, "wrong", flags=["-O1", "-g", "-Wl,--build-id=0x5678"])
    debug = keep_debug(other)
    run("strip", "--strip-debug", wrong)
    add_link(wrong, debug)
    _, found = doctor(wrong)
    remedy = "install the debug package of exactly this version"
    assert lines_of(found) == [("limited", f"{wrong}: build-id-mismatch", remedy, wrong, "5678")]
    assert one(found, "files") == ("limited", f"{debug}: debug file refused: its build-id is another", remedy)


@test("lines of a process: each module without them once, by its path, with the package that dpkg names")
def packages(folder):
    need_native()
    if not shutil.which("dpkg-query"):
        raise tap.Skip("this system has no dpkg")
    with Running(["/bin/sleep", "1000"]) as running:
        until(lambda: call_of(running.pid) in CLOCK_NANOSLEEP, "that it sleeps")
        _, found = doctor("--debug-dir", folder, running.pid)
        mapped = {line.split(None, 5)[5].strip() for line in open(f"/proc/{running.pid}/maps", encoding="utf-8") if line.count("/")}
    # Without any lines, as debug files of this machine are found.
    limited = {r["module"]: r["remedy"] for r in found["lines"] if r["state"] == "limited"}
    assert limited and list(limited) == sorted(limited) and set(limited) <= mapped, (limited, mapped)
    sleep = os.path.realpath("/bin/sleep")
    assert limited[sleep] == f"install the debug package of coreutils, build-id {build_id(sleep)}", limited
    for path, remedy in limited.items():
        owners = execute("dpkg-query", "-S", path).stdout or execute("dpkg-query", "-S", path.removeprefix("/usr")).stdout
        assert f"debug package of {owners.split(':')[0]}," in remedy, (path, owners, remedy)


@test("a process: it may be attached to; another process traces it; a filter forbids it")
def attach(folder):
    need_native()
    path = waiting(folder)
    with Running([path]) as running:
        assert running.line() == "ready"
        _, found = doctor(running.pid)
        assert one(found, "attach") == ("ok", f"process {running.pid} may be attached to", None)
        assert "files" not in found
        filtered = build(os.path.join(folder, "filtered"), REFUSED)
        if not is_instrumented(FATHOM):
            _, found = doctor(running.pid, command=(filtered, FATHOM))
            assert one(found, "attach") == ("limited", f"process {running.pid}: a filter of system calls forbids ptrace(2)",
                                            "run outside of the container, or allow ptrace there")
    tracer = build(os.path.join(folder, "traced"), os.path.join(PROGRAMS, "traced.c"))
    with Running([tracer]) as running:
        pid = running.line()
        _, found = doctor(pid)
        assert one(found, "attach") == ("limited", f"process {pid}: /proc/{running.pid}: this process traces the thread already",
                                        "end the process that traces it")


@test("a process of one's own that Yama forbids to attach to", needs_root=True)
def yama(folder):
    need_native()
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer's library would have to come first")
    command, mode = copy_for_all(folder), os.path.join(folder, "ptrace_scope")
    library = build(os.path.join(folder, "yama.so"), os.path.join(HERE, "..", "stacks", "programs", "yama.c"), "-D_GNU_SOURCE", "-shared",
                    "-fPIC", f'-DYAMA_MODE_FILE="{mode}"')
    with open(mode, "w", encoding="ascii") as f:
        f.write("1\n")
    with Running(as_user(NOBODY, waiting(folder)), cwd="/") as running:
        assert running.line() == "ready"
        plain = as_user(NOBODY, "env", f"XDG_CACHE_HOME={folder}", command)
        _, found = doctor(running.pid, command=plain, cwd="/")
        assert one(found, "attach")[0] == "ok", found
        # The library refuses ptrace(2), too: what Yama itself lets through, with another answer.
        _, found = doctor(running.pid, command=as_user(NOBODY, "env", f"LD_PRELOAD={library}", f"XDG_CACHE_HOME={folder}", command), cwd="/")
        assert one(found, "attach") in (
            ("limited", f"process {running.pid}: kernel.yama.ptrace_scope forbids to trace others than children",
             "run as root, or sysctl kernel.yama.ptrace_scope=0"),
            ("limited", f"process {running.pid}: a filter of system calls forbids ptrace(2)",
             "run outside of the container, or allow ptrace there")), found


@test("files of a process: deleted and replaced ones; of a core, one that is gone")
def files(folder):
    need_native()
    gone = shutil.copy(waiting(folder), os.path.join(folder, "gone"))
    with Running([gone]) as running:
        assert running.line() == "ready"
        _, found = doctor(running.pid)
        assert "files" not in found
        core = core_of(running.pid, folder)
        os.unlink(gone)
        _, found = doctor(running.pid)
        if os.geteuid() == 0:
            record, = found["files"]
            assert (record["state"], record["detail"], record["remedy"], record["module"]) == \
                ("limited", f"{gone}: has been deleted or replaced", "restart the process", gone), found
            # Root still reads what is mapped.
            assert all(r["module"] != gone for r in found["lines"])
    _, found = doctor(core)
    assert "attach" not in found
    assert [(r["detail"], r["remedy"]) for r in found["files"] if gone in r["detail"]] == [
        (f"{gone}: No such file or directory", "if it is elsewhere, name the directory above it with --sysroot")], found


@test("a library that this user may not read: its lines lack for want of permission", needs_root=True)
def unreadable(folder):
    need_native()
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer writes its reports where this user may not")
    command, library = copy_for_all(folder), os.path.join(folder, "libclosed.so")
    build_text(library, "int closed(void) { return 1; }", flags=["-g", "-shared", "-fPIC", "-Wl,--build-id"])
    program = waiting(folder, "waits", f"-Wl,--no-as-needed,-rpath,{folder}", library)
    command = as_user(NOBODY, "env", f"XDG_CACHE_HOME={folder}", command)
    with Running(as_user(NOBODY, program), cwd="/") as running:
        assert running.line() == "ready"
        _, found = doctor(running.pid, command=command, cwd="/")
        assert all(r["module"] != library for r in found["lines"]) and "files" not in found, found
        os.chmod(library, 0o600)
        _, found = doctor(running.pid, command=command, cwd="/")
        assert [(r["detail"], r["remedy"], r["build_id"]) for r in found["lines"] if r["module"] == library] == [
            (f"{library}: no-permission", "run as a user who may read it", build_id(library))], found
        assert one(found, "files") == ("limited", f"{library}: Permission denied", "run as a user who may read it"), found
        # Root may.
        _, found = doctor(running.pid)
        assert all(r["module"] != library for r in found["lines"]) and "files" not in found, found


@test("the kernel: without its debug file it has no lines", needs_root=True)
def kernel(folder):
    if not os.path.exists("/proc/kallsyms"):
        raise tap.Skip("there is no /proc/kallsyms")
    _, found = doctor("--sysroot", "/", "--debug-dir", folder, "kernel")
    details = [r["detail"] for r in found["lines"]]
    assert details and ("the kernel: no-debug-info" in details or all(r["module"] for r in found["lines"] if r["state"] == "limited")), found
