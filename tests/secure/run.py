#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "secure": a program that has more rights than its user obeys nothing from outside, who may read what is
written, and which links are followed. Each test shows first that the same program, without the rights, obeys."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from placed import LINKED, NOBODY, PLAIN, RIGHTS, SITES, SUITE, as_user, build, execute, files_of, libraries, machine_wide, need_set_id, open_folder, run, test  # noqa: E402

import building  # noqa: E402
import links  # noqa: E402,F401 pylint: disable=unused-import
import tap  # noqa: E402

from ask import copy_for_all  # noqa: E402
from running import Running, until  # noqa: E402


def requests(log):
    """(arguments, variables) by which a program is asked for a trace."""
    for name, flag in ("FATHOM_TRACE", "--ftrace"), ("STRACE", "--strace"):
        for words in ("", f"--log {log}", f"-o {log}", f"--export chrome --log {log}"):
            yield (), {name: words or "1"}
            yield (f"{flag}={words}" if words else flag,), {}


def ask(path, log, prefix, arguments, variables):
    """What the program prints, and whether a log was written."""
    if os.path.exists(log):
        os.remove(log)
    words = [f"{name}={value}" for name, value in variables.items()]
    done = execute(*prefix, "env", *words, path, *arguments, "word", status=0)
    return done.stdout, done.stderr, os.path.exists(log)


for _options in LINKED:
    def _traced(folder, options=_options):
        need_set_id(folder)
        tap.need_traced_programs()
        path = build(folder, "words.c", "fathom-trace", *options)
        log = os.path.join(open_folder(folder, "out"), "log")
        # Two dashes more are for another program.
        left = ("----ftrace", "--strace=--log x", "--", "--ftrace")
        PLAIN[0](path)
        for arguments, variables in requests(log):
            out, err, is_written = ask(path, log, PLAIN[1], arguments, variables)
            assert out == "2 2 behind word\n" and bool(err) != is_written, (arguments, variables, out, err, is_written)
        for title, (give, prefix) in RIGHTS.items():
            give(path)
            for arguments, variables in [*requests(log), (left, {})]:
                seen = ask(path, log, prefix, arguments, variables)
                n = 2 + len(arguments)
                expected = " ".join([f"{n} {n} behind", *arguments, "word\n"])
                assert seen == (expected, "", False), (title, arguments, variables, seen)
    test(f"FATHOM_TRACE, STRACE, --ftrace, --strace: obeyed with the rights of the user only, {' '.join(_options) or 'dynamic'}")(_traced)


def outside(folder, kind):
    """outside.c, linked in this way."""
    if kind != "vendored":
        return build(folder, "outside.c", "fathom", *kind)
    building.plain("/bin/true", machine="")
    run("python3", os.path.join(HERE, "..", "..", "tools", "vendor_jit.py"), folder)
    path = os.path.join(folder, "outside-vendored")
    run("gcc", "-O1", "-DVENDORED", "-I", folder, "-o", path, os.path.join(HERE, "programs", "outside.c"), os.path.join(folder, "fathom_jit.c"),
        "-pthread")
    return path


PERF_FILES = 1 << 4 | 1 << 5
USUAL_REGISTRY = 1 << 6


def ask_outside(path, prefix, variables, *arguments):
    """What the program says of itself, and the files of perf that it has left."""
    done = execute(*prefix, "env", *(f"{name}={value}" for name, value in variables.items()), path, *arguments, status=0)
    assert not done.stderr, done
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    with files_of(f"/tmp/perf-{said['pid']}.map", f"/tmp/jit-{said['pid']}.dump") as find:
        return int(said["consumers"]), said.get("cache"), len(find())


for _kind in (), ("-static",), "vendored":
    def _published(folder, kind=_kind):
        need_set_id(folder)
        path = outside(folder, kind)
        home = open_folder(folder, "home")
        has_session = kind != "vendored"
        homes = (({"HOME": home}, f"{home}/.cache/fathom"), ({"HOME": home, "XDG_CACHE_HOME": f"{home}/xdg"}, f"{home}/xdg/fathom"))
        words = "all,-registry"
        PLAIN[0](path)
        for variables, cache in homes:
            consumers, dir_, n = ask_outside(path, ["env", "-u", "XDG_CACHE_HOME", *PLAIN[1]], variables | {"FATHOM_JIT": words})
            assert consumers & PERF_FILES == PERF_FILES and not consumers & USUAL_REGISTRY and n == 2, (consumers, n)
            assert dir_ == (cache if has_session else None), dir_
        # The last ones get their rights when they run already; root's file, run by root.
        late = {"seteuid": [NOBODY], "setegid": [0, NOBODY]}
        for title, (give, prefix) in [*RIGHTS.items(), *((title, (PLAIN[0], [])) for title in late)]:
            give(path)
            for variables, _ in homes:
                consumers, dir_, n = ask_outside(path, prefix, variables | {"FATHOM_JIT": words}, *late.get(title, ()))
                assert not consumers & PERF_FILES and consumers & USUAL_REGISTRY and n == 0, (title, consumers, n)
                assert dir_ == ("none" if has_session else None), (title, dir_)
        assert not os.listdir(home)
    test(f"FATHOM_JIT, HOME, XDG_CACHE_HOME: likewise, {' '.join(_kind) or 'dynamic' if _kind != 'vendored' else 'the two files to vendor'}")(_published)


def everything(folder):
    """All variables, each with a file below @folder; and a program that writes them."""
    return {"FATHOM_TRACE": f"--log {folder}/ftrace", "STRACE": f"--way dispatch --log {folder}/strace", "FATHOM_JIT": "all",
            "FATHOM_CRASH": f"file={folder}/crash", "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache", "DEBUGINFOD_URLS": f"file://{folder}"}


def told(command, prefix, variables):
    """How the program ends, and what it prints."""
    done = execute(*prefix, "env", *(f"{name}={value}" for name, value in variables.items()), *command)
    return done.returncode, done.stdout, done.stderr


@test("the crash handler, preloaded machine-wide: FATHOM_CRASH is obeyed with the rights of the user only, and set-id programs report nothing")
def _(folder):
    need_set_id(folder)
    path = building.build_text(os.path.join(folder, "crasher"), "int main(void) { *(volatile int *)16 = 1; return 0; }")
    out = open_folder(folder, "out")
    wide = machine_wide(folder, "libfathom-crash.so")
    PLAIN[0](path)
    status, _, err = told([path], wide + PLAIN[1], everything(out))
    with open(os.path.join(out, "crash"), encoding="utf-8") as file:
        assert status == -11 and not err and " main" in file.read(), (status, err)
    open_folder(folder, "out")
    status, _, err = told([path], wide + PLAIN[1], {})
    assert status == -11 and " main" in err, (status, err)
    for title, (give, prefix) in RIGHTS.items():
        give(path)
        for variables in {}, everything(out):
            seen = told([path], wide + prefix, variables)
            assert seen == (-11, "", ""), (title, seen)
        assert not os.listdir(out), title


BOTH = ("libfathom-trace.so", "libfathom-crash.so")


@test("su, with both libraries preloaded machine-wide and every variable set, run by another user: as without")
def _(folder):
    need_set_id(folder)
    tap.need_traced_programs()
    out = open_folder(folder, "out")
    wide = machine_wide(folder, *BOTH, pam="su")
    # The same with a program that has no rights: it obeys.
    assert told(["id", "-u"], wide + PLAIN[1], everything(out)) == (0, f"{NOBODY}\n", "")
    assert "ftrace" in os.listdir(out), os.listdir(out)
    open_folder(folder, "out")
    command = ["su", "-", "root", "-s", "/bin/sh", "-c", "id -u"]
    with_none = told(command, wide + PLAIN[1], {})
    assert with_none[:2] == (0, "0\n"), with_none
    assert told(command, wide + PLAIN[1], everything(out)) == with_none
    assert not os.listdir(out)


@test("sudo, likewise")
def _(folder):
    need_set_id(folder)
    if not shutil.which("sudo"):
        raise tap.Skip("sudo is not installed")
    out = open_folder(folder, "out")
    wide = machine_wide(folder, *BOTH, pam="sudo")
    with open(os.path.join(folder, "etc", "sudoers.d", "everybody"), "w", encoding="ascii") as file:
        file.write("ALL ALL=(ALL) NOPASSWD: ALL\n")
    command = ["sudo", "-n", "id", "-u"]
    with_none = told(command, wide + PLAIN[1], {})
    assert with_none[:2] == (0, "0\n"), with_none
    assert told(command, wide + PLAIN[1], everything(out)) == with_none
    assert not os.listdir(out)


@test("cron, with both libraries preloaded machine-wide: a crontab's variables are obeyed with the rights of its user")
def _(folder):
    if not shutil.which("cron", path="/usr/sbin"):
        raise tap.Skip("cron is not installed")
    out = open_folder(folder, "out")
    wide = machine_wide(folder, *BOTH, pam="cron")
    with open(os.path.join(folder, "etc", "cron.d", "job"), "w", encoding="ascii") as file:
        file.write(f"STRACE=--way dispatch --log {out}/strace\n@reboot nobody id -u >{out}/user.new && mv {out}/user.new {out}/user\n")
    # It takes care that it is new: so its pid file and the mark of a boot are.
    with subprocess.Popen(wide + ["sh", "-c", "mount -t tmpfs none /run && exec cron -f"]) as cron:
        try:
            until(lambda: os.path.exists(os.path.join(out, "user")), "the job of cron")
        finally:
            cron.kill()
    with open(os.path.join(out, "user"), encoding="ascii") as file:
        assert file.read() == f"{NOBODY}\n"
    assert {os.stat(os.path.join(out, name)).st_uid for name in os.listdir(out)} == {NOBODY}, os.listdir(out)
    assert os.path.exists(os.path.join(out, "strace"))


# What a command with this capability may do more than its user: look at other users' processes.
CAPABLE = "cap_sys_ptrace+ep"


def command(folder):
    """The command, without rights, and with the capability."""
    plain, capable = copy_for_all(folder), os.path.join(folder, "capable")
    shutil.copy(plain, capable)
    os.chmod(capable, 0o755)
    run("setcap", CAPABLE, capable)
    # Where the command looks for the library that it preloads.
    os.symlink(libraries(folder), os.path.join(folder, "src"))
    return plain, capable


@test("the command with cap_sys_ptrace: it looks at others' processes, and its command line counts")
def _(folder):
    need_set_id(folder)
    tap.need_traced_programs()
    plain, capable = command(folder)
    log = os.path.join(open_folder(folder, "out"), "log")
    path = building.build_text(os.path.join(folder, "traced"), "__attribute__((noinline)) void leaf(void) { __asm__ volatile(\"\"); }\n"
                               "int main(void) { leaf(); return 3; }", flags=("-O1", SITES))
    with Running(["sleep", "1000"]) as sleeping:
        words = ("addr", sleeping.pid, "_start")
        assert "_start" in run(*as_user(NOBODY, capable, *words)) and execute(*as_user(NOBODY, plain, *words)).returncode == 2
    for words in (), ("--syscalls",), ("--way=dispatch", "--syscalls", "--no-functions"):
        execute(*as_user(NOBODY, capable, "trace", *words, "--log", log, "--", path), status=3)
        with open(log, encoding="utf-8") as file:
            text = file.read()
        assert ("&leaf" in text) == ("--no-functions" not in words) and ("exit_group(3)" in text) == bool(words), (words, text)
        os.unlink(log)
    assert execute(*as_user(NOBODY, capable, "strace", "-o", log, "true"), status=0) and os.path.getsize(log)
    assert run(*as_user(NOBODY, capable, "addr", path, "leaf")).split()[1] == "leaf+0x0"


@test("the command with cap_sys_ptrace: PATH, HOME, XDG_CACHE_HOME, DEBUGINFOD_URLS, LLVM_SYMBOLIZER_OPTS and LLVM_ADDR2LINE_OPTS do not count")
def _(folder):
    need_set_id(folder)
    plain, capable = command(folder)
    home, there = open_folder(folder, "home"), open_folder(folder, "bin")
    with open(os.path.join(there, "true"), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexit 7\n")
    os.chmod(os.path.join(there, "true"), 0o755)
    path = os.path.join(folder, "crasher")
    building.build_text(path, "int main(void) { return 0; }")
    run("strip", path)
    variables = {"PATH": f"{there}:{os.environ['PATH']}", "HOME": home, "DEBUGINFOD_URLS": f"file://{folder}", "DEBUGINFOD_CACHE_PATH": f"{home}/cache",
                 "LLVM_SYMBOLIZER_OPTS": "--version", "LLVM_ADDR2LINE_OPTS": "--version"}

    def ask_it(tool, *words, **more):
        # env(1) is to be found before PATH is changed.
        given = [f"{name}={value}" for name, value in variables.items()]
        return execute(*as_user(NOBODY, "env", "-u", "XDG_CACHE_HOME", *given, tool, *words), **more)

    for tool, statuses, is_told in (plain, 7, True), (capable, 0, False):
        for verb in ("trace", "--way=dispatch", "--syscalls", "--no-functions", "--log", "/dev/null", "--"), ("trace", "--log", "/dev/null", "--"), ("strace", "-o", "/dev/null"), ("jit-check", "--"):
            done = ask_it(tool, *verb, "true")
            assert (done.returncode == 7) == (statuses == 7), (tool, verb, done)
        for verb in "llvm-symbolizer", "llvm-addr2line":
            done = ask_it(tool, verb, "-e", path, "0x0", status=0)
            assert ("version" in done.stdout) == is_told, (tool, verb, done)
        done = ask_it(tool, "addr", "--debuginfod", path, "0x0")
        assert ("more rights than its user" in done.stdout + done.stderr) != is_told, done
        ask_it(tool, "cache", "--build", path)
        assert bool(os.listdir(home)) == is_told, (tool, os.listdir(home))
        open_folder(folder, "home")


if __name__ == "__main__":
    sys.exit(SUITE.run())
