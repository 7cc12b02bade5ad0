# SPDX-License-Identifier: MIT
"""The program told.c and its library (lib/programs), which tell where they have what: shared by the
suites about what runs and what ran."""
import os
import re

import building
from ask import addr, run
from running import mapping_of, peek

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def build(folder, name="told", *options, source="told.c", compiler="gcc"):
    return building.build(os.path.join(folder, name), os.path.join(PROGRAMS, source), *options, compiler=compiler)


def library(folder, name, *options, compiler="gcc"):
    return build(folder, name, "-shared", "-fPIC", *options, source="library.c", compiler=compiler)


def vdso_names(pid, folder):
    """{address: its names} of the functions in the image that the kernel maps into @pid, by readelf."""
    mapped = mapping_of(pid, "[vdso]")
    with open(f"{folder}/vdso.so", "wb") as image:
        image.write(peek(pid, mapped.start, mapped.end - mapped.start))
    names = {}
    for value, name in re.findall(r"^ *\d+: ([0-9a-f]+) +\d+ FUNC +(?:GLOBAL|WEAK) +DEFAULT +\d+ (\w+)@",
                                  run("readelf", "--dyn-syms", "-W", f"{folder}/vdso.so"), re.M):
        names.setdefault(mapped.start + int(value, 16), set()).add(name)
    assert len(names) >= 3
    return names


def check_vdso(target, names):
    """What is at each of the addresses is called by one of its names."""
    records, _ = addr(target, names)
    for record, expected in zip(records, names.values(), strict=True):
        assert record["symbol"] in expected and record["offset"] == 0, record
        assert (record["source"], record["module"]) == ("vdso", "[vdso]"), record


def check_places(target, places, *options, user=None):
    """What is at each of @places, and 2 bytes into it, is called by its name."""
    names = sorted(places)
    for off in (0, 2):
        records, _ = addr(target, [places[n] + off for n in names], *options, user=user)
        got = [(r["symbol"], r["offset"]) for r in records]
        assert got == [(n, off) for n in names], f"{got}, not {names}"
    return records


STYLES = [
    ("gcc, PIE", "gcc", ["-pie", "-fPIE", "-ldl"]),
    ("gcc, at fixed addresses", "gcc", ["-no-pie", "-ldl"]),
    ("static", "gcc", ["-static", "-DPLAIN"]),
    ("static PIE", "gcc", ["-static-pie", "-fPIE", "-DPLAIN"]),
    ("code not separate", "gcc", ["-Wl,-z,noseparate-code", "-ldl"]),
    ("pages of 2 MiB", "gcc", ["-Wl,-z,max-page-size=0x200000", "-ldl"]),
    ("lld", "clang", ["-fuse-ld=lld", "-ldl"]),
    ("gold", "gcc", ["-fuse-ld=gold", "-ldl"]),
    ("code at 0x10000000", "gcc", ["-no-pie", "-Wl,-Ttext-segment=0x10000000", "-ldl"]),
    ("lld, segments that share pages", "clang", ["-fuse-ld=lld", "-Wl,-z,noseparate-code", "-ldl"]),
]
