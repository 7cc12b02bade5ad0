# SPDX-License-Identifier: MIT
"""How each run of strict.c (suite "strace") ends, on this kernel and processor."""
import os
import signal
import tempfile

from ask import execute
from building import build_text, programs_of_32_bit

# With strict seccomp the kernel forbids a program to read the processor's clock.
CLOCK = """
#include <sys/prctl.h>
#include <x86intrin.h>
int main(void) { prctl(PR_SET_TSC, PR_TSC_SIGSEGV); return (volatile unsigned long long){ __rdtsc() } == 0; }
"""

STRICT = {"prctl": 5, "seccomp": -signal.SIGKILL, "forbidden": -signal.SIGKILL, "group": -signal.SIGKILL, "i386": -signal.SIGKILL, "clock": -signal.SIGSEGV,
          "thread": 3, "first": 0, "inherit": 3, "filters": 3}


def kinds():
    """{what: status} of those that this machine has."""
    found = dict(STRICT)
    if programs_of_32_bit():
        del found["i386"]
    with tempfile.TemporaryDirectory() as folder:
        if execute(build_text(os.path.join(folder, "clock"), CLOCK)).returncode == 0:
            # Some virtual machines let programs read it all the same.
            found["clock"] = 5
    return found
