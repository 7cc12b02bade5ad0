# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to."""
import os

import tap

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
SUITE = tap.Suite("find", "mount and change its root")
test = SUITE.test
