#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "kernel": the running kernel, by its own list of symbols, and kernels of our own making,
whose files other tools read."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import tap  # noqa: E402

import files  # noqa: E402
import live  # noqa: E402
import memory  # noqa: E402
import names  # noqa: E402
import symbols  # noqa: E402


SUITE = tap.Suite("kernel")
for part in (live, symbols, files, names, memory):
    for name, function in part.TESTS:
        SUITE.add(name, function)
sys.exit(SUITE.run())
