# SPDX-License-Identifier: MIT
"""Tests of programs that have a sandbox of their own, and of what ends the tracer, but not the program."""
import os
import re
import signal
import subprocess
import threading

import strict_seccomp

from ask import FATHOM, HANG_SECONDS, execute, run
from building import need_32_bit

HERE = os.path.dirname(os.path.abspath(__file__))


def signalled(number, *command):
    """Sends @number to the tracer of a program that has said its own, then lets that end: the tracer's status, and what the program has said."""
    code = "echo $$; trap 'echo told; exit 9' TERM HUP; while ! read -r line; do :; done; echo done; exit 5"
    with subprocess.Popen([*command, "sh", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tracer:
        pid = int(tracer.stdout.readline())
        # Until it reads.
        while not re.match(r"0 0x0\b", execute("cat", f"/proc/{pid}/syscall").stdout) and "\nState:\tt" not in execute("cat", f"/proc/{pid}/status").stdout:
            pass
        tracer.send_signal(number)
        if "-o" not in command and "strace" in command:
            # One that is not told is ended.
            ender = threading.Timer(5 if command[0] == "strace" else HANG_SECONDS, os.kill, (pid, signal.SIGKILL))
            ender.start()
            said = tracer.stdout.read()
            ender.cancel()
        else:
            said = tracer.communicate("\n", timeout=HANG_SECONDS)[0]
        return tracer.wait(HANG_SECONDS), said


def ends(folder, program):
    log = os.path.join(folder, "log")
    ways = [], ["--way=rewrite"], ["--seccomp-bpf", "-f"]
    for number in signal.SIGTERM, signal.SIGHUP:
        assert signalled(number, "strace", "-o", log) == (5, "done\n")
        # strace may lose a signal that comes while its program is stopped.
        assert any(signalled(number, "strace") == (-number, "told\n") for _ in range(20))
        for way in ways:
            assert signalled(number, FATHOM, "strace", *way, "-o", log) == (5, "done\n"), (number, way)
            with open(log, encoding="utf-8") as f:
                assert f.read().splitlines()[-1].endswith("+++ exited with 5 +++"), (number, way)
            assert signalled(number, FATHOM, "strace", *way) == (-number, "told\n"), (number, way)
        # It runs on, unrecorded.
        for options in ["--no-functions"], []:
            assert signalled(number, FATHOM, "trace", "--syscalls", "--way=rewrite", *options, "--") == (5, "done\n"), (number, options)
    # Whatever else would end this process, and so the program.
    for number in signal.SIGUSR1, signal.SIGALRM, signal.SIGXFSZ:
        assert signalled(number, FATHOM, "strace", "--way=rewrite", "-o", log) == (5, "done\n"), number


def strict(folder, program):
    path = program(folder, "strict")
    os.chmod(folder, 0o777)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    for what, status in strict_seccomp.kinds().items():
        for user in ([], nobody) if what == "filters" else ([],):
            alone = execute(*user, path, what, status=status)
            log = os.path.join(folder, "log of nobody" if user else "log")
            for options in (["strace", "-f", "-o", log], ["strace", "--seccomp-bpf", "-f", "-o", log], ["strace", "--seccomp-bpf", "-f", "-e", "trace=openat", "-o", log],
                            ["strace", "-f", "--way=rewrite", "-o", log], ["strace", "-f", "--way=rewrite", "-e", "trace=write", "-o", log],
                            ["trace", "--syscalls", "--log", log, "--"], ["trace", "--syscalls", "--way=rewrite", "--log", log, "--"],
                            ["trace", "--syscalls", "--no-functions", "--no-children", "--way=rewrite", "--log", log, "--"]):
                traced = execute(*user, FATHOM, *options, path, what)
                assert (alone.returncode, alone.stdout) == (traced.returncode, traced.stdout), (what, options, alone, traced)
    # What is told: the call that is forbidden, which does not return, and the signal that ends its thread alone.
    log = os.path.join(folder, "log")
    for options in [], ["--seccomp-bpf"], ["--way=rewrite"]:
        execute(FATHOM, "strace", "-f", *options, "-o", log, path, "thread", status=3)
        with open(log, encoding="utf-8") as f:
            lines = f.read().splitlines()
        thread = next(line.split()[0] for line in lines if "PR_SET_SECCOMP, SECCOMP_MODE_STRICT" in line)
        last, end = [line.split(None, 1)[1] for line in lines if line.startswith(thread + " ")][-2:]
        # The kernel says how the process has ended, if that was before anybody has waited for the thread.
        ends = ["+++ killed by SIGKILL +++", *([] if options else ["+++ exited with 3 +++"])]
        assert re.fullmatch(r"(getppid\(|<\.\.\. getppid resumed>)\) += \?", last) and end in ends, (options, lines)


def strict_32(folder, _):
    need_32_bit()
    path = os.path.join(folder, "strict32")
    run("i686-linux-gnu-gcc", "-static", "-O1", "-w", "-D_GNU_SOURCE", "-pthread", "-o", path, os.path.join(HERE, "programs", "strict.c"))
    kinds = strict_seccomp.kinds()
    for what in "prctl", "seccomp", "clock", "thread":
        done = execute(FATHOM, "strace", "-f", "--seccomp-bpf", "-o", os.path.join(folder, "log"), path, what, status=kinds[what])
        assert done.stdout == execute(path, what, status=kinds[what]).stdout, done


# judged.c, and how each run ends.
JUDGED = {"place": 3, "errno": 3, "trap all": -signal.SIGSYS, "few": 7, "few, at the end": 7, "return": 7, "killed": -signal.SIGSYS,
          "default trap": -signal.SIGSYS, "trap": 3, "thread": 3, "all": 3, "vfork": 3, "bad": 3, "library": 3}


def judged(folder, program):
    path, log = program(folder, "judged"), os.path.join(folder, "log")
    for what, status in JUDGED.items():
        alone = execute(path, what, status=status)
        for options in (["strace", "-f", "-o", log], ["strace", "--seccomp-bpf", "-f", "-o", log], ["strace", "-f", "--way=rewrite", "-o", log],
                        ["strace", "--way=rewrite", "-o", log],
                        ["trace", "--syscalls", "--way=rewrite", "--log", log, "--"], ["trace", "--log", log, "--"]):
            traced = execute(FATHOM, *options, path, what)
            assert (alone.returncode, alone.stdout) == (traced.returncode, traced.stdout), (what, options, alone, traced)


def add(test, program):
    """Adds them by @test; @program builds one."""
    for name, function in (
            ("SIGTERM and SIGHUP: with -o the trace goes on, as strace's does; else the program gets them, and the tracer leaves; the program never ends with it",
             ends),
            ("strict seccomp, filters, and what is said of them: all is as without fathom, where fathom has a filter, too", strict),
            ("strict seccomp in a program of 32 bit: as without fathom", strict_32),
            ("filters that ask where a call is made, or let few calls be made: they judge the program as without fathom", judged)):
        test(name)(lambda folder, function=function: function(folder, program))
