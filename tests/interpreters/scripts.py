# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to; running scripts that tell their own stacks, and what fathom shows of them."""
import json
import os

import tap

from ask import fathom, records_of
from running import Running, state_of, until

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
SUITE = tap.Suite("interpreters", "make namespaces")
test = SUITE.test


class Script(Running):
    """The script that @command runs in SHAPE; @truth: of each thread that has told of it, its frames."""

    def __init__(self, command, shape, folder, threads=1, env=None, **options):
        super().__init__([*command, shape, folder], env=os.environ | (env or {}), errors="surrogateescape", **options)
        self.truth = {}
        for _ in range(threads):
            tid, frames = json.loads(self.line())
            self.truth[tid] = frames

    def wait(self, pid=None):
        """Until its threads sleep: what they have told is what they do."""
        for tid in self.truth if pid is None else (pid,):
            until(lambda tid=tid: state_of(tid) == "S", lambda tid=tid: state_of(tid))


def stacks(target, *options, status=(0, 1)):
    done = fathom("stack", "--json", *options, target, status=status, encoding="utf-8", errors="surrogateescape")
    return records_of(done.stdout)


def shown(name):
    """A text as JSON has it: bytes that are no UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def script_frames(thread):
    """[function, file, line] of the frames of the script."""
    return [[f["symbol"], *((f["frames"][0]["file"], f["frames"][0]["line"]) if f["frames"] else (None, None))]
            for f in thread["frames"] if f["kind"] == "script"]
