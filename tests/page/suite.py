# SPDX-License-Identifier: MIT
"""The suite "page", of which run.py has the tests of profiles, and traces.py those of traces."""
import tap

SUITE = tap.Suite("page")
test = SUITE.test
