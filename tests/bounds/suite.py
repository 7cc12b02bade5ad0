# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to."""
import tap

SUITE = tap.Suite("bounds", only_root="mount a file system, and become another user")
test = SUITE.test
