#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "clients": programs that use symbolizers, with fathom in the place of the one they know;
and fathom beside the real llvm-symbolizer.

run.py [NAME]...                the tests whose names hold one of these
run.py --file PATH N [SEED]     no test: both symbolizers on N addresses of functions of one file"""
import shutil
import sys

import tools  # finds the modules that the others need
import llvm_cases
import llvm_data
import llvm_embedded
import profilers
import protocol
import sanitizers

try:
    if sys.argv[1:2] == ["--file"]:
        llvm_cases.measure(sys.argv[2], *map(int, sys.argv[3:]))
        sys.exit(0)
    status = tools.tap.run("clients", tools.tap.chosen(llvm_cases.CASES + llvm_data.CASES + llvm_embedded.CASES + protocol.CASES + sanitizers.CASES +
                                                      profilers.CASES))
finally:
    shutil.rmtree(tools.FOLDER)
sys.exit(status)
