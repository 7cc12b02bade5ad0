#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "resolve": rows of build-ids and offsets, beside fathom addr and llvm-symbolizer on each module."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import truth  # noqa: E402, F401  pylint: disable=unused-import
import forms  # noqa: E402, F401  pylint: disable=unused-import
import hostile_rows  # noqa: E402, F401  pylint: disable=unused-import
import workers  # noqa: E402, F401  pylint: disable=unused-import
import opened  # noqa: E402, F401  pylint: disable=unused-import
import engines  # noqa: E402, F401  pylint: disable=unused-import
import stores  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
