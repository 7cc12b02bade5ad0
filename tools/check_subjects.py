#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Subjects of commits after FIRST, the last with a longer one, have at most 72 columns. Without a repository there are none."""
import os
import shutil
import sys

import suites

LONGEST = 72
FIRST = "18c30906a076e004fa8e4980cfd910569f82ae58"

if not shutil.which("git") or not os.path.exists(os.path.join(suites.TOP, ".git")):
    sys.exit(0)
# A shallow clone lacks it: what is there is checked from the commit that changes are seen from.
begin = FIRST if suites.git("merge-base", "HEAD", FIRST, check=False)[0] == FIRST else suites.base()
long = [line for line in suites.git("log", "--format=%h %s", f"{begin}..HEAD") if len(line.partition(" ")[2]) > LONGEST]
print("\n".join(f"{line}: its subject has more than {LONGEST} columns" for line in long), end="\n" if long else "")
sys.exit(1 if long else 0)
