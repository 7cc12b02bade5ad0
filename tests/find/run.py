#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "find": where names are, by programs that know it and tools that people use."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import answers  # noqa: E402, F401  pylint: disable=unused-import
import files  # noqa: E402, F401  pylint: disable=unused-import
import lines  # noqa: E402, F401  pylint: disable=unused-import
import lookups  # noqa: E402, F401  pylint: disable=unused-import
import names  # noqa: E402, F401  pylint: disable=unused-import
import processes  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
