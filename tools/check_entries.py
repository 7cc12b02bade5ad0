#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the repository holds: no empty file, and nothing in its root but what is listed here."""
import os
import subprocess
import sys

ROOT = {".ci", ".clang-format", ".editorconfig", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
        "NOTICE", "README.md", "bench", "cli", "dev", "docs", "examples", "include", "meson.build", "meson_options.txt",
        "packaging", "page", "python", "src", "tests", "tools"}

files = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")[:-1]
wrong = [f"{file}: is empty: remove it" for file in files if os.path.isfile(file) and not os.path.getsize(file)]
wrong += [f"{entry}: is not an entry of the root that tools/check_entries.py knows" for entry in
          sorted({file.split("/")[0] for file in files} - ROOT)]
print("".join(f"{line}\n" for line in wrong), end="")
sys.exit(bool(wrong))
