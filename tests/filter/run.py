#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "filter": addresses in logs, beside what the programs that wrote them have recorded themselves, and other tools."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "debuginfod"), HERE]

import live  # noqa: E402, F401  pylint: disable=unused-import
import crashes  # noqa: E402, F401  pylint: disable=unused-import
import formats  # noqa: E402, F401  pylint: disable=unused-import
import kernel  # noqa: E402, F401  pylint: disable=unused-import
import markup  # noqa: E402, F401  pylint: disable=unused-import
import refused  # noqa: E402, F401  pylint: disable=unused-import
import reversal  # noqa: E402, F401  pylint: disable=unused-import
import asking  # noqa: E402, F401  pylint: disable=unused-import
import debuggers  # noqa: E402, F401  pylint: disable=unused-import
import places  # noqa: E402, F401  pylint: disable=unused-import
import guesses  # noqa: E402, F401  pylint: disable=unused-import
import builds  # noqa: E402, F401  pylint: disable=unused-import
import sources  # noqa: E402, F401  pylint: disable=unused-import
import tools  # noqa: E402, F401  pylint: disable=unused-import
import code_bytes  # noqa: E402, F401  pylint: disable=unused-import
import stored_indexes  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
