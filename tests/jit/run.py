#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "jit": programs say what code they have made; fathom has to say the same of it, as long as it is true."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import chained  # noqa: E402, F401  pylint: disable=unused-import
import gdb_interface  # noqa: E402, F401  pylint: disable=unused-import
import jitdumps  # noqa: E402, F401  pylint: disable=unused-import
import meanwhile  # noqa: E402, F401  pylint: disable=unused-import
import names  # noqa: E402, F401  pylint: disable=unused-import
import located  # noqa: E402, F401  pylint: disable=unused-import
import perf_maps  # noqa: E402, F401  pylint: disable=unused-import
import stored  # noqa: E402, F401  pylint: disable=unused-import
import unwound  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
