#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "cold": files that are not in memory. What counts then is how often the disk is asked, and for how much:
one address must read neither page by page nor the whole file."""
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import tap  # noqa: E402
from ask import FATHOM, run  # noqa: E402
from disk import Disk  # noqa: E402

# 122 pages of symbols and ranges of units, 1,050 of entries. Functions of it that are all over the file.
LIBRARY = "/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6.0.*"
NAMES = ["_ZNSt6localeC1ERKS_", "_ZNSt13random_device9_M_getvalEv", "_ZSt9terminatev", "_ZNSsC1EPKcRKSaIcE"]
REQUESTS, KIB = 60, 4096

SUITE = tap.Suite("cold")


@SUITE.test(f"one address of a large library takes at most {REQUESTS} requests to the disk, {KIB} KiB")
def one_address(folder):
    [library] = [path for path in glob.glob(LIBRARY) if not path.endswith(".py")]
    addresses = {}
    for line in run("readelf", "-sW", library).splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[7] in NAMES:
            addresses[fields[7]] = fields[1]
    assert sorted(addresses) == sorted(NAMES)
    with Disk(folder, {"library": library}) as disk:
        for name, address in addresses.items():
            disk.forget()
            path = os.path.join(disk.folder, "library")
            os.stat(path)
            before = disk.counts()
            said = run(FATHOM, "addr", "--no-cache", "--no-demangle", path, f"0x{address}")
            after = disk.counts()
            assert said.split()[1] == f"{name}+0x0", said
            requests, kib = after[0] - before[0], after[1] - before[1]
            assert 0 < requests <= REQUESTS and kib <= KIB, f"{name}: {requests} requests, {kib} KiB"


sys.exit(SUITE.run())
