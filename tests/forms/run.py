#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "forms": every construct of DWARF that fathom reads, on files made by hand."""
import os
import sys

import case
import cases_forms  # noqa: F401
import cases_files  # noqa: F401
import cases_frames  # noqa: F401
import cases_indexes  # noqa: F401
import cases_lines  # noqa: F401
import cases_ranges  # noqa: F401
import cases_relocations  # noqa: F401
import cases_symbols  # noqa: F401
import cases_units  # noqa: F401

sys.path.insert(0, case.os.path.join(case.os.path.dirname(case.__file__), "..", "lib"))
import tap  # noqa: E402

# Variants of one form follow each other, 2 or 4: of each form some other one.
CASES = case.CASES[::int(os.environ.get("EVERY", "1")) | 1]
sys.exit(tap.run("forms", tap.chosen([(c.name, lambda c=c: case.check(c)) for c in CASES])))
