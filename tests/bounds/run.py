#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "bounds": nothing hangs, and nothing grows beyond what it may."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import cache  # noqa: E402, F401  pylint: disable=unused-import
import locks  # noqa: E402, F401  pylint: disable=unused-import
import memory  # noqa: E402, F401  pylint: disable=unused-import
import mounts  # noqa: E402, F401  pylint: disable=unused-import
import streams  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
