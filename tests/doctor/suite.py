# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to, how they ask fathom doctor, and a root directory whose /proc says what a test wants."""
import os
import shlex
import shutil

import tap
from ask import FATHOM, execute, fathom, records_of, run
from counting import is_instrumented

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
# Runs a command where ptrace(2) is refused.
REFUSED = os.path.join(HERE, "..", "lib", "programs", "refused.c")
SUITE = tap.Suite("doctor", only_root="mount, and run programs as other users")
test = SUITE.test
MEMBERS = ["check", "state", "detail", "remedy", "module", "build_id"]
# No server is asked that the environment happens to name.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD_")}


def need_native():
    if os.environ.get("WRAPPER"):
        raise tap.Skip("the command runs in another root directory, or below a filter, by itself")


def records(output):
    """The objects of --json, each of which has all members."""
    found = records_of(output)
    for record in found:
        assert list(record) == MEMBERS, record
        assert record["state"] in ("ok", "limited", "off"), record
    return found


def doctor(*arguments, env=None, command=(FATHOM,), **more):
    """(status, {check: its records}) of one run, whose status fits them."""
    done = execute(*command, "doctor", "--json", *arguments, env=env or ENVIRONMENT, status=(0, 1), **more)
    return checked(done)


def checked(done):
    found = {}
    lines = records(done.stdout)
    for record in lines:
        found.setdefault(record["check"], []).append(record)
    assert done.returncode == any(record["state"] == "limited" for record in lines), done
    return done.returncode, found


def one(found, check):
    """(state, detail, remedy) of the only record of a check."""
    record, = found[check]
    return record["state"], record["detail"], record["remedy"]


# A root directory.

# What a machine has on which nothing is wrong.
FINE = {
    "proc/self/status": "Name:\tfathom\nCapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\n",
    "proc/self/uid_map": "         0          0 4294967295\n",
    "proc/1/stat": "1 (init) S\n",
    "proc/kallsyms": "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n",
    "proc/kcore": "",
    "proc/sys/kernel/kptr_restrict": "0\n",
    "proc/sys/kernel/perf_event_paranoid": "2\n",
    "usr/lib/debug/.build-id/12/34.debug": "",
    "tmp/nothing": "",
}
NO_RIGHTS = {"proc/self/status": "Name:\tfathom\nCapEff:\t0000000000000000\n"}


def libraries():
    """The folder of shared libraries of this machine's kind."""
    return f"/usr/lib/{run('gcc', '-print-multiarch').strip()}"


def in_root(folder, files=None, without=(), script="", options="", status=(0, 1)):
    """What doctor says in a root directory that has FINE, and @files in place of its files; None: without such a file. @without:
    libraries that are not there. @script runs before."""
    need_native()
    tap.need_mount_namespaces()
    if is_instrumented(FATHOM):
        raise tap.Skip("a sanitizer needs /proc as it is")
    root = os.path.join(folder, "root")
    shutil.rmtree(root, ignore_errors=True)
    for path, text in (FINE | (files or {})).items():
        if text is not None:
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
    shutil.copy(FATHOM, os.path.join(root, "fathom"))
    from_here = [libraries()] + (["/usr/lib64"] if os.path.isdir("/usr/lib64") else [])
    for path in from_here:
        os.makedirs(root + path, exist_ok=True)
    os.symlink("usr/lib", root + "/lib")
    os.symlink("usr/lib64", root + "/lib64")
    lines = ["set -e", *(f"mount --bind {path} {root}{path}" for path in from_here),
             *(f"for f in {root}{libraries()}/{name}; do mount --bind /dev/null $f; done" for name in without),
             f"cd {root}", script,
             f"exec chroot . /fathom doctor --json {options}"]
    env = {"HOME": "/tmp", "PATH": os.environ["PATH"]}
    return checked(execute("unshare", "-m", "sh", "-c", "\n".join(lines), env=env, status=status))


def quoted(*words):
    return " ".join(shlex.quote(str(word)) for word in words)


def refused(*arguments, **options):
    done = fathom("doctor", *arguments, status=2, env=ENVIRONMENT, **options)
    return done.stderr
