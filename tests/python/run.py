#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "python": the Python module beside the command, nm and the source of what is asked about; what outlives what; its types, its
document."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE, os.path.join(HERE, "..", "profile")]

import lifetimes  # noqa: E402, F401  pylint: disable=unused-import
import columns  # noqa: E402, F401  pylint: disable=unused-import
import verbs  # noqa: E402, F401  pylint: disable=unused-import
import profiles  # noqa: E402, F401  pylint: disable=unused-import
import records  # noqa: E402, F401  pylint: disable=unused-import
import fleet_rows  # noqa: E402, F401  pylint: disable=unused-import
import documents  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
