#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "bounds": nothing hangs, and nothing grows beyond what it may."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import cache  # noqa: E402
import locks  # noqa: E402
import mounts  # noqa: E402
import memory  # noqa: E402
import streams  # noqa: E402
import tap  # noqa: E402

suite = tap.Suite("bounds", only_root="mount a file system, and become another user")
streams.add_all(suite)
locks.add_all(suite)
memory.add_all(suite)
cache.add_keys(suite)
cache.add_bounds(suite)
mounts.add_all(suite)

if __name__ == "__main__":
    sys.exit(suite.run())
