#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "runtime": what the dynamic linker and libc know of a process, by programs that ask them there."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

import dlsym  # noqa: E402, F401  pylint: disable=unused-import
import ifunc  # noqa: E402, F401  pylint: disable=unused-import
import tls  # noqa: E402, F401  pylint: disable=unused-import

from suite import SUITE  # noqa: E402

sys.exit(SUITE.run())
