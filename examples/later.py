#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names addresses of a process that has gone, here or on another machine that has the same files:

later.py save PID ADDRESS... >ROWS   while it runs: the file of each address, the address in it, and the file's build-id
later.py name ROWS                   later: the name of each row
"""
import sys

import fathom


def save(pid, *addresses):
    with fathom.open(int(pid)) as target:
        answers = target.addr([int(address, 16) for address in addresses], names_only=True)
    for module, address, build_id in zip(answers.module, answers.module_address, answers.build_id):
        print(f"{module}+{address:#x} {build_id}" if module and address != fathom.NO_ADDRESS else "?? ??")


def name(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.rstrip("\n").rsplit(" ", 1) for line in file]
    numbers = {}
    for number, (place, build_id) in enumerate(rows):
        numbers.setdefault((place.rpartition("+")[0], build_id), []).append(number)
    names = {}
    for (module, build_id), of_module in numbers.items():
        try:
            with fathom.open(f"file:{module}") as target:
                if str(target.info.build_id) != build_id:
                    raise OSError("another build")
                answers = target.addr([int(rows[number][0].rpartition("+")[2], 16) for number in of_module], names_only=True)
            names |= {number: f"{a.symbol}+{a.offset:#x}" for number, a in zip(of_module, answers) if a.symbol}
        except (fathom.Error, OSError) as error:
            print(f"{module}: {error}", file=sys.stderr)
    for number, (place, _) in enumerate(rows):
        print(place, names.get(number, "??"))


{"save": save, "name": name}[sys.argv[1]](*sys.argv[2:])
