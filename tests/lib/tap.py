# SPDX-License-Identifier: MIT
"""Runs tests on a few threads and prints them as TAP, in their order."""
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

# nohup(1) has SIGHUP ignored, and a shell without job control what it runs in the background SIGINT and SIGQUIT: programs of tests
# would inherit that.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


def need_mount_namespaces():
    """Below another root directory, which is no mount, there are none."""
    able = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    if able.returncode:
        raise Skip(f"no mount namespace can be made: {able.stderr.strip()}")


def need_traced_programs():
    """Programs are run below fathom trace, by ptrace(2)."""
    if os.environ.get("WRAPPER") or os.uname().machine != "x86_64":
        raise Skip("programs are traced on x86-64 only, by fathom alone")


def need_feature(name):
    """The processor has a feature that /proc/cpuinfo calls @name."""
    with open("/proc/cpuinfo", encoding="ascii") as info:
        if not any(name in line.split() for line in info if line.startswith("flags")):
            raise Skip(f"this processor has no {name}")


def identifier(name):
    """A short one of the test with this name, which changes with the name."""
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def _line(number, suite, name, outcome):
    """The TAP lines for one result: None passed, Skip, or what failed."""
    head = f"{number} - {suite}: {name}"
    if outcome is None:
        return f"ok {head}"
    if isinstance(outcome, Skip):
        return f"ok {head} # SKIP {outcome}"
    details = "\n".join(f"#   {line}" for line in str(outcome).splitlines())
    return f"not ok {head}\n{details}\n# alone: ./dev test {suite}:{identifier(name)}"


# A test that takes so many seconds is said to.
LONG = 4


def _run(test):
    """The outcome, and how long it took."""
    begun = time.monotonic()
    return _outcome(test), time.monotonic() - begun


def _outcome(test):
    try:
        return test()
    except Skip as skip:
        return skip
    except AssertionError as failure:
        return str(failure) or traceback.format_exc()
    except Exception:  # a broken test is a failed test, the others go on
        return traceback.format_exc()


def run(suite, tests, todo=()):
    """Runs @tests, pairs of a name and a callable that raises AssertionError or Skip; the exit
    status is 1 if one failed that is not named in @todo, {name: reason}."""
    # Of a shell's background, in which it is ignored: some tools let their programs inherit that, others do not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tests = list(tests)
    names = [name for name, _ in tests]
    assert len(set(names)) == len(names), f"{suite}: two tests have one name"
    if os.environ.get("TAP_LIST"):
        print("\n".join(f"{suite}: {name}" for name in names))
        return 0
    bad = 0
    print("TAP version 13")
    print(f"1..{len(tests)}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(_run, (test for _, test in tests))
        for number, (name, (outcome, seconds)) in enumerate(zip(names, outcomes), 1):
            failed = outcome is not None and not isinstance(outcome, Skip)
            line = _line(number, suite, name, outcome)
            if failed and name in todo:
                head, _, rest = line.partition("\n")
                line = f"{head} # TODO {todo[name]}\n{rest}"
            else:
                bad += failed
            print(line, flush=True)
            if seconds >= LONG:
                print(f"# that took {seconds:.0f} s", flush=True)
    return 1 if bad else 0


def chosen(tests):
    """Those of @tests whose name holds one of the command's arguments, or has it as its identifier. Without arguments all or, with
    the environment's PART, a number n, every n-th."""
    wanted = sys.argv[1:]
    if not wanted:
        return list(tests)[::int(os.environ.get("PART", "1"))]
    return [t for t in tests if any(w in t[0] or w == identifier(t[0]) for w in wanted)]


class Suite:
    """Tests, each of which is given a folder of its own. @only_root says what only root can do there."""

    def __init__(self, name, only_root="", parent=None):
        self.name, self.only_root, self.parent = name, only_root, parent
        self.tests = []

    def add(self, name, function, needs_root=False):
        def call():
            if needs_root and os.geteuid():
                raise Skip(f"only root can {self.only_root}")
            with tempfile.TemporaryDirectory(prefix=f"fathom-{self.name}-", dir=self.parent) as folder:
                os.chmod(folder, 0o755)
                function(folder)
        self.tests.append((name, call))

    def test(self, name, needs_root=False):
        """Makes a test of the function that follows."""
        def decorate(function):
            self.add(name, function, needs_root)
            return function
        return decorate

    def run(self):
        return run(self.name, chosen(self.tests))
