#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "kernel": the running kernel, by its own list of symbols, and kernels of our own making,
whose files other tools read."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import files  # noqa: E402, F401  pylint: disable=unused-import
import live  # noqa: E402, F401  pylint: disable=unused-import
import memory  # noqa: E402, F401  pylint: disable=unused-import
import names  # noqa: E402, F401  pylint: disable=unused-import
import symbols  # noqa: E402, F401  pylint: disable=unused-import

from kernel import SUITE  # noqa: E402

sys.exit(SUITE.run())
