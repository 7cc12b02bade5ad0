# SPDX-License-Identifier: MIT
"""The promise that threads ask one target without waiting for each other: the program lockless."""
import os

import tap

from ask import run
from suite import test

LOCKLESS = os.path.join(os.environ["BUILD"], "tests", "lockless")


@test("look-ups in a target that was asked before take no lock, and wait for no thread")
def _(_folder):
    if not os.path.exists(LOCKLESS):
        raise tap.Skip("a sanitizer's allocator takes locks")
    if os.environ.get("WRAPPER"):
        raise tap.Skip("what runs under a wrapper is not counted")
    # The program itself has a symbol table and debug information.
    out = run(LOCKLESS, LOCKLESS)
    assert [line for line in out.splitlines() if line.startswith("ok")] and "not ok" not in out
