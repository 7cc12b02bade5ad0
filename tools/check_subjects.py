#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Subjects of new commits, those since suites.base(), have at most 72 columns. Without a repository there are none."""
import os
import shutil
import sys

import suites

LONGEST = 72

if not shutil.which("git") or not os.path.exists(os.path.join(suites.TOP, ".git")):
    sys.exit(0)
long = [line for line in suites.git("log", "--format=%h %s", f"{suites.base()}..HEAD") if len(line.partition(" ")[2]) > LONGEST]
print("\n".join(f"{line}: its subject has more than {LONGEST} columns" for line in long), end="\n" if long else "")
sys.exit(1 if long else 0)
