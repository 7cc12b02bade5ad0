#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Benchmarks: fathom beside its peers, in turn, in one run.

bench.py FATHOM SPAWN CACHE_DIR [--vmlinux PATH --cxx PATH | --keep] [NAME]...

Every line of output is one result, tab-separated (measure.py has the columns). With --vmlinux or --keep, results are kept in
bench/results/, in one file for each commit; NAMEs are regular expressions. --keep is for those that are the same without PATHs.
"""
import argparse
import csv
import datetime
import glob
import os
import re
import shutil
import subprocess
import sys

import files
import logs
import profiles
import proof
import publish
import python_batch
import running
import stacks
import tracing
from measure import COLUMNS, measure, merge


# Benches by what their names begin with: the others make programs and files first, whether or not they are asked for.
ALONE = ((("filter-",), logs.log_benches), (("mixed-",), files.mixed_benches), (("record-", "report-", "top-"), profiles.profile_benches))


def benches(args, folder):
    for beginnings, some in ALONE:
        if args.names and all(name.startswith(beginnings) for name in args.names):
            yield from some(args.fathom, folder)
            return
    if args.vmlinux:
        yield from files.vmlinux_benches(args.fathom, args.vmlinux, folder)
        yield from files.cxx_benches(args.fathom, args.cxx, folder)
        yield from files.modules_benches(args.fathom, folder)
    else:
        yield from files.small_benches(args.fathom, folder)
    yield from files.mixed_benches(args.fathom, folder)
    yield from logs.log_benches(args.fathom, folder)
    yield from running.process_benches(args.fathom, folder)
    yield from files.random_benches(args.fathom, folder)
    yield from running.find_benches(args.fathom, folder)
    yield from running.perf_map_benches(args.fathom)
    yield from running.disasm_benches(args.fathom, folder)
    yield from running.kernel_benches(args.fathom, folder)
    yield from running.self_benches(args.fathom, folder)
    yield from python_batch.python_benches(args.fathom, args.vmlinux or args.fathom, folder)
    yield from profiles.profile_benches(args.fathom, folder)
    yield from stacks.stack_benches(args.fathom, folder)
    yield from running.unwind_benches(args.fathom, folder)
    yield from running.rule_benches(args.fathom)
    yield from publish.publish_benches(args.fathom, folder)
    yield from proof.proof_benches(args.fathom, folder)
    yield from tracing.trace_benches(args.fathom, folder)
    yield from tracing.system_call_benches(args.fathom, folder)


def commit_of_tree():
    """The commit that is measured; "+" behind it where files differ from it."""
    def git(*command):
        return subprocess.run(["git", *command], capture_output=True, text=True, check=True).stdout.strip()
    return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def keep(rows, commit):
    """Writes the results of @commit, with what an earlier run of the same commit measured and this one did not."""
    os.makedirs("bench/results", exist_ok=True)
    found = glob.glob(f"bench/results/*-{commit}.tsv")
    path = found[0] if found else f"bench/results/{datetime.date.today().isoformat()}-{commit}.tsv"
    measured = {row["bench"] for row in rows}
    if os.path.exists(path):
        with open(path, encoding="ascii") as f:
            rows = [row for row in csv.DictReader(f, delimiter="\t") if row["bench"] not in measured] + rows
    with open(path, "w", encoding="ascii") as f:
        write(rows, f)


def write(rows, out):
    writer = csv.DictWriter(out, COLUMNS, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.3f}".rstrip("0").rstrip(".") if isinstance(v, float) else v for k, v in row.items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fathom")
    parser.add_argument("spawn")
    parser.add_argument("folder")
    parser.add_argument("--vmlinux")
    parser.add_argument("--cxx")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    folder = args.folder
    os.makedirs(folder, exist_ok=True)
    for cache in ("cache", "cache-zlib"):
        shutil.rmtree(os.path.join(folder, cache), ignore_errors=True)
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    commit = commit_of_tree()
    rows = []
    for bench in benches(args, folder):
        if args.names and not any(re.match(n, bench.name) for n in args.names):
            continue
        print(f"# {bench.name}", file=sys.stderr, flush=True)
        rows += measure(bench, commit, args.spawn, environment)
    rows = list(merge(rows))
    write(rows, sys.stdout)
    if args.vmlinux or args.keep:
        keep(rows, commit)
    return 0


sys.exit(main())
