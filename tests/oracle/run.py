#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "oracle": a sample of what `./dev oracle` asks, of files that every Debian has."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "..", "tools")]

import ask  # noqa: E402
import oracle  # noqa: E402
import tap  # noqa: E402

SAMPLE = 5000
# One with a separate debug file that dwz has shortened, one with C++ and lines in itself, one without debug
# information.
CORPORA = ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6", "/usr/bin/python3"]


def compare(path):
    """Every answer is that of llvm-symbolizer, addr2line, eu-addr2line and readelf, or of a difference that
    tools/oracle.py explains."""
    if not os.path.exists(path):
        raise tap.Skip(f"{path} is not installed")
    report = oracle.Report()
    oracle.ask(report, ask.FATHOM, os.path.realpath(path), SAMPLE, True)
    assert sum(report.counts.values()) == SAMPLE, dict(report.counts)
    assert oracle.agreement(report.counts) >= oracle.AGREEMENT, (dict(report.counts), report.examples)
    # At least one tool has a say about nearly each address.
    assert report.counts["same"] >= 0.9 * SAMPLE, dict(report.counts)
    unexplained = oracle.unexplained_classes(report)
    assert not unexplained, {k: report.examples.get(k, report.place_examples) for k in unexplained}
    return None


sys.exit(tap.run("oracle", tap.chosen([(f"{SAMPLE} addresses of {os.path.basename(path)}", lambda p=path: compare(p))
                                       for path in CORPORA])))
