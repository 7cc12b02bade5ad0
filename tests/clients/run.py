#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "clients": programs that use symbolizers, with fathom in the place of the one they know;
and fathom beside the real llvm-symbolizer."""
import shutil
import sys

import tools  # finds the modules that the others need
import llvm_cases
import profilers
import protocol
import sanitizers

try:
    status = tools.tap.run("clients", tools.tap.chosen(llvm_cases.CASES + protocol.CASES + sanitizers.CASES +
                                                      profilers.CASES))
finally:
    shutil.rmtree(tools.FOLDER)
sys.exit(status)
