# SPDX-License-Identifier: MIT
"""How much tests try: a long run (./dev test --long) all, every other one a part, which takes half of the time."""
import itertools
import os

IS_LONG = bool(os.environ.get("LONG"))


def amount(long, short=None):
    """@long in a long run; else @short, or without it a fifth."""
    if IS_LONG:
        return long
    return short if short is not None else max(1, long // 5)


def cells(*factors):
    """All combinations of the settings of three or more factors; if the run is not long, a half, in which any two settings meet."""
    found = itertools.product(*(enumerate(f) for f in factors))
    return [tuple(setting for _, setting in cell) for cell in found if IS_LONG or sum(i for i, _ in cell) % 2 == 0]
