#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "doctor": what limits answers here, each limit made for real or in a root directory that has it."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "debuginfod"), HERE]

import machine  # noqa: E402, F401  pylint: disable=unused-import
import targets  # noqa: E402, F401  pylint: disable=unused-import
import asked  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
