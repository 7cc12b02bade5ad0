#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "words": what people type for addresses and names, and what the command says to them."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import numbers_typed  # noqa: E402, F401  pylint: disable=unused-import
import escapes  # noqa: E402, F401  pylint: disable=unused-import
import typed  # noqa: E402, F401  pylint: disable=unused-import
import messages  # noqa: E402, F401  pylint: disable=unused-import
import readme  # noqa: E402, F401  pylint: disable=unused-import
import colours  # noqa: E402, F401  pylint: disable=unused-import
import progress  # noqa: E402, F401  pylint: disable=unused-import

from named import SUITE  # noqa: E402

sys.exit(SUITE.run())
