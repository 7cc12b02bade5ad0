# SPDX-License-Identifier: MIT
"""The crash library under programs that have a report of their own, reset all signals, or make their system calls by
themselves: each ends as without the library, and prints what it prints without it."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import tap

from ask import run
from living import Living
from running import dying

PRELOAD = os.path.join(os.environ["BUILD"], "src", "libfathom-crash.so")
SECONDS = 120

JAVA = """
import java.lang.reflect.Field;
import sun.misc.Unsafe;
public class Crash {
    public static void main(String[] arguments) throws Exception {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        ((Unsafe) field.get(null)).putInt(0L, 1);
    }
}
"""
# The fault is one of C, which Go's runtime hands on to handlers that it has found.
GO = """
package main

// static void crash(void) { *(volatile int *)16 = 1; }
import "C"

func main() { C.crash() }
"""


def end_of(folder, *command, preload, say=""):
    """The wait status of @command, which may leave a core, its output, the crash library's reports, and the cores."""
    where = os.path.join(folder, "with" if preload else "without")
    os.mkdir(where)
    words = [f"LD_PRELOAD={PRELOAD}", f"FATHOM_CRASH=names,file={where}/report.%p"] if preload else []
    # Without memory in it: its presence is what is asked for.
    command = dying("env", *words, *command, core_filter=0)
    with open(os.path.join(where, "output"), "w+", encoding="utf-8", errors="replace") as output:
        with subprocess.Popen(command, cwd=where, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True) as process:
            process.stdin.write(say)
            process.stdin.close()
            _, status = os.waitpid(process.pid, 0)
            process.returncode = 0
        output.seek(0)
        text = output.read()
    reports = []
    for path in sorted(glob.glob(f"{where}/report.*")):
        with open(path, encoding="utf-8") as report:
            reports += re.findall(r"^fathom: .* crashed by (SIG\w+)", report.read(), re.M)
    return status, text, reports, len(glob.glob(f"{where}/core*"))


def same_end(folder, *command, number=None, status=None, reports=(), say=""):
    """What @command prints with the library: as without it, it ends by the signal @number, or with @status."""
    without, plain, none, cores = end_of(folder, *command, preload=False, say=say)
    with_it, text, found, more = end_of(folder, *command, preload=True, say=say)
    assert with_it == without and more == cores and not none, (with_it, without, cores, more, text)
    if number:
        assert os.WIFSIGNALED(with_it) and os.WTERMSIG(with_it) == number, (with_it, text)
    else:
        assert os.waitstatus_to_exitcode(with_it) == status, (with_it, text)
    assert sorted(found) == sorted(reports), (found, text)
    return plain, text


def java(folder):
    """HotSpot's handler hands faults on to the handler that it has found, if there is one."""
    with open(os.path.join(folder, "Crash.java"), "w", encoding="ascii") as file:
        file.write(JAVA)
    run("javac", "-nowarn", "-d", folder, os.path.join(folder, "Crash.java"))
    plain, text = same_end(folder, "java", "-cp", folder, "Crash", number=signal.SIGABRT, reports=["SIGABRT"])
    for own in (plain, text):
        assert "A fatal error has been detected by the Java Runtime Environment" in own and "SIGSEGV" in own
    files = glob.glob(f"{folder}/with*/hs_err_pid*.log")
    assert len(files) == 2
    for path in files:
        with open(path, encoding="utf-8", errors="replace") as file:
            assert re.search(r"^END\.$", file.read(), re.M), path


def node(folder):
    """Node resets all signals when it starts."""
    same_end(folder, "node", "-e", "process.kill(process.pid, 'SIGSEGV'); setTimeout(() => {}, 60000)", number=signal.SIGSEGV,
             reports=["SIGSEGV"])
    shutil.rmtree(f"{folder}/with")
    shutil.rmtree(f"{folder}/without")
    # A child that it has started resets them, too.
    child = ["-c", "kill -SEGV $$"]
    script = f"console.log(require('child_process').spawnSync('sh', {child!r}).signal)"
    plain, text = same_end(folder, "node", "-e", script, status=0, reports=["SIGSEGV"])
    assert plain == text == "SIGSEGV\n", text


def go(folder):
    with open(os.path.join(folder, "crash.go"), "w", encoding="ascii") as file:
        file.write(GO)
    path = os.path.join(folder, "crash")
    run("go", "build", "-o", path, os.path.join(folder, "crash.go"), env=dict(os.environ, GOCACHE=f"{folder}/cache", GO111MODULE="off"))
    plain, text = same_end(folder, path, status=2)
    for own in (plain, text):
        assert "[signal SIGSEGV" in own and "main._Cfunc_crash" in own, own


def python(folder):
    crash = "import ctypes; ctypes.string_at(16)"
    plain, text = same_end(folder, sys.executable, "-X", "faulthandler", "-c", crash, number=signal.SIGSEGV, reports=["SIGSEGV"])
    assert "Fatal Python error: Segmentation fault" in text
    assert re.sub("0x[0-9a-f]+", "", plain) == re.sub("0x[0-9a-f]+", "", text), text


def bash(folder):
    """Subshells and children reset what the shell handles."""
    script = "(kill -SEGV $BASHPID); echo $?; sh -c 'kill -BUS $$'; echo $?; trap 'echo trapped' ILL; kill -ILL $$; kill -ABRT $$"
    plain, text = same_end(folder, "bash", "-c", script, number=signal.SIGABRT, reports=["SIGSEGV", "SIGBUS", "SIGABRT"])
    said = [line for line in text.splitlines() if re.fullmatch(r"\d+|trapped", line)]
    assert said == [line for line in plain.splitlines() if re.fullmatch(r"\d+|trapped", line)] == ["139", "135", "trapped"], text


def postgres(folder):
    """A server process that crashes ends all others: the first one says by what."""
    # Where every user can read it.
    for library in glob.glob(f"{os.path.dirname(PRELOAD)}/libfathom*.so*"):
        if os.path.isfile(library):
            shutil.copy(library, folder)
    for preload in ("", os.path.join(folder, os.path.basename(PRELOAD))):
        where = os.path.join(folder, "with" if preload else "without")
        os.mkdir(where)
        os.chmod(folder, 0o755)
        os.environ |= {"LD_PRELOAD": preload, "FATHOM_CRASH": "names"}
        living = Living("postgres", where)
        del os.environ["LD_PRELOAD"], os.environ["FATHOM_CRASH"]
        lines = []
        with living as pid:
            # It starts after the server has said that it is ready.
            writer = None
            while not writer:
                writer = run("pgrep", "-P", pid, "-f", "walwriter", status=(0, 1)).strip()
            os.kill(int(writer), signal.SIGSEGV)
            for line in living.process.stdout:
                lines.append(line)
                if "terminated by signal" in line:
                    break
        assert f"(PID {writer}) was terminated by signal 11" in lines[-1], lines[-1]
        reports = [line for line in lines if re.search(r" crashed by SIG", line)]
        assert len(reports) == bool(preload) and all(f"({writer}, " in line for line in reports), reports


TESTS = [(f"the crash library under {name}: status, core and its own report as without it", function) for name, function in
         (("java", java), ("node", node), ("go", go), ("python3", python), ("bash", bash), ("postgres", postgres))]
