# SPDX-License-Identifier: MIT
"""Profiles that are made of lines (make_profile.c)."""
import os

from ask import execute

MAKE = os.path.join(os.environ["BUILD"], "tests", "make_profile")


def make(folder, lines, name="profile"):
    """Makes a profile of @lines; returns its path."""
    path = os.path.join(folder, name)
    done = execute(MAKE, input=("\n".join(lines) + "\n").encode(), text=False)
    assert not done.returncode, done.stderr
    with open(path, "wb") as f:
        f.write(done.stdout)
    return path


def same(one, other):
    assert one == other, f"{one}\nis not\n{other}"
