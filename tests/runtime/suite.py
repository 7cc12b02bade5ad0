# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to."""
import tap

SUITE = tap.Suite("runtime")
test = SUITE.test
