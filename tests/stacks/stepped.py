# SPDX-License-Identifier: MIT
"""Programs that are run one instruction at a time, and what their steppers count."""
import os
import re

from ask import run
from suite import BUILD, PROGRAMS

GUESSES = ("decoded", "frame-pointer", "scan")
WITHOUT = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")


def step(*arguments, by="stepper"):
    """What the stepper @by counts, and what it shows of walks that differ."""
    out = run(os.path.join(BUILD, "tests", by), "-v", 3, *arguments)
    counts = {name: int(n) for name, n in re.findall(r"^([a-z-]+) (\d+)$", out, re.M)}
    return counts, "".join(line + "\n" for line in out.splitlines() if line.startswith("#"))


def shapes(folder, *compiler):
    path = os.path.join(folder, "shapes")
    run(*compiler, "-D_GNU_SOURCE", "-Wl,-z,lazy", "-o", path, os.path.join(PROGRAMS, "shapes.c"), "-lm")
    return path


ARM = {"gcc": ("aarch64-linux-gnu-gcc",), "clang": ("clang", "--target=aarch64-linux-gnu")}


def step_arm(folder, compiler, *options):
    """What the stepper of aarch64 counts of a static program, run by QEMU."""
    program = shapes(folder, *ARM[compiler], "-DSTEPS_ITSELF", "-static", *options)
    counts, shown = step(os.path.join(folder, "stub"), "qemu-aarch64", program, by="arm_stepper")
    assert counts["walks"] >= 20000 and counts["signals"] == 4 and not counts["lost"], f"{counts}\n{shown}"
    return counts, shown


def check_arm(folder, compiler, *options):
    """Each instruction of the program leads to the frames of the log."""
    counts, shown = step_arm(folder, compiler, *options)
    # The rules of the C library's __wrap_main(), two instructions, are those of _start().
    assert counts["ended-early"] <= 2 and not counts["wrong"], f"{counts}\n{shown}"
    assert counts["same"] == counts["entry"] == counts["walks"] - counts["ended-early"], f"{counts}\n{shown}"
    assert counts["frames"] > 5 * counts["walks"] and counts["found-decoded"] > 100, f"{counts}\n{shown}"


def check_arm_guesses(folder, compiler, *options):
    """Without rules no frame that code is followed to is wrong, and 2 of 1,000 guesses are at most."""
    counts, shown = step_arm(folder, compiler, *options, *WITHOUT)
    assert counts["found-decoded"] >= 15000, counts
    assert not any(counts[f"wrong-{trust}"] for trust in ("registers", "cfi", "signal", "decoded")), f"{counts}\n{shown}"
    found, wrong = (sum(counts[f"{what}-{trust}"] for trust in GUESSES) for what in ("found", "wrong"))
    assert wrong <= found / 500, f"{counts}\n{shown}"
