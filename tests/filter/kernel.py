# SPDX-License-Identifier: MIT
"""Symbols as the kernel prints them."""
import os
import shutil

import tap

from ask import run
from building import build_id, debug_path
from built import compiled, folder_for, link, steps
from formats import FUNCTION, NEXT
from running import Running, wait_for_state
from suite import address_of, check_names, expected, json_frames, names_of, objects, once, test


@once
def twins():
    folder = folder_for("twins")
    return link(os.path.join(folder, "twins"), compiled("twins_one.c", "-fno-pie"), compiled("twins_two.c", "-fno-pie"), "-no-pie")


def sized(path, name):
    """(address, size) of the functions of one name, sorted."""
    lines = (line.split() for line in run("nm", "-S", path).splitlines())
    return sorted((int(words[0], 16), int(words[1], 16)) for words in lines if len(words) == 4 and words[3] == name)


@test("kernel symbols: of two static functions with one name the size tells which; of one size they are both there")
def same_names(_):
    path = twins()
    (one, one_size), (two, two_size) = sized(path, "size")
    assert one_size != two_size
    check_names(f" size+0x8/{one_size:#x}\n size+0x8/{two_size:#x}\n? size+0x8/{two_size + 1:#x}\n",
                [expected(path, one + 8, one + 7), expected(path, two + 8, two + 7), None], path)
    (one, one_size), (two, two_size) = sized(path, "same")
    assert one_size == two_size
    check_names(f"RIP: 0010:same+0x8/{one_size:#x}\n", [f"{expected(path, one + 8)}; {expected(path, two + 8)}"], path)
    records = objects(f"RIP: 0010:same+0x8/{one_size:#x}\n", path)
    assert [int(r["address"], 16) for r in records] == [one + 8, two + 8], records
    assert len({json_frames(r)[0][1] for r in records}) == 2, records


@test("kernel symbols: after a call that ends its function: RIP is the next function, a trace is its caller")
def ends_with_a_call(_):
    path = twins()
    ((address, size),), ((after, after_size),) = sized(path, "ends"), sized(path, "after")
    assert address + size == after
    log = (f"RIP: 0010:after+0x0/{after_size:#x}\n"
           f" ends+{size:#x}/{size:#x}\n"
           f" ? ends+{size:#x}/{size:#x}\n"
           f"[<0>] ends+{size:#x}/{size:#x}\n"
           f"[<ffffffff81000000>] ends+{size:#x}/{size:#x}\n"
           f"pc : after+0x0/{after_size:#x}\n"
           f"lr : ends+{size:#x}/{size:#x}\n"
           f"PC is at after+0x0/{after_size:#x}\n"
           f"LR is at ends+{size:#x}/{size:#x}\n")
    exact, trace = expected(path, after), expected(path, after, after - 1)
    assert "ends" in trace and "after" in exact
    check_names(log, [exact, trace, trace, trace, trace, exact, trace, exact, trace], path)


@test("kernel symbols: several in one line are divided by ;")
def several_symbols(_):
    path = twins()
    ((after, size),), ((_, ends_size),) = sized(path, "after"), sized(path, "ends")
    line = f"BUG: scheduling while atomic: after+0x3/{size:#x} ends+{ends_size:#x}/{ends_size:#x} nothing+0x1/0x2"
    check_names(line + "\n", [f"{expected(path, after + 3, after + 2)}; {expected(path, after, after - 1)}"], path)


@test("kernel symbols: an offset behind the end of its function, as no kernel has it, is none of the function after it")
def behind_the_end(_):
    path = twins()
    ((_, size),) = sized(path, "after")
    for number in (size + 1, 0xffffffffffffffff):
        assert names_of(f" after+{number:#x}/{size:#x}\n", path) == [None], number


@test("kernel symbols: those of a module are in NAME.ko of a module directory, or below its build-id")
def kernel_module(folder):
    library = steps("usual")
    shutil.copy(library, f"{folder}/some.ko")
    shutil.copy(library, debug_path(folder, build_id(library)))
    first, next = address_of(library, FUNCTION), address_of(library, NEXT)
    size = next - first
    log = (f"RIP: 0010:{FUNCTION}+0x0/{size:#x} [some]\n"
           f" {FUNCTION}+{size:#x}/{size:#x} [some]\n"
           f" ? {FUNCTION}+{size:#x}/{size:#x} [other {build_id(library)}]\n"
           f" {FUNCTION}+{size:#x}/{size:#x} [missing]\n")
    check_names(log, [expected(library, first, by_path=True), expected(library, next, next - 1, by_path=True),
                      expected(library, next, next - 1), None], "--module-dir", folder, "--debug-dir", folder)


@test("kernel symbols of the running kernel: addresses are those of /proc/kallsyms")
def running_kernel(_):
    places = {}
    with open("/proc/kallsyms", encoding="ascii") as file:
        for address, _, name in (line.split()[:3] for line in file):
            places.setdefault(name, []).append(int(address, 16))
    if not any(address for found in places.values() for address in found):
        raise tap.Skip("this user may not read where the kernel is")
    with Running(["cat"]) as process:
        # It has read what was there, and waits for more.
        process.send("ready\n")
        assert process.line() == "ready"
        wait_for_state(process.pid, "S")
        try:
            with open(f"/proc/{process.pid}/stack", encoding="ascii") as file:
                log = file.read()
        except OSError as error:
            raise tap.Skip(f"the kernel's stack cannot be read: {error}") from None
    records = objects(log, "kernel")
    lines = log.splitlines()
    assert len(records) == len(lines) > 2, log
    for line, record in zip(lines, records):
        name, _, rest = line.split()[1].partition("+")
        offset, size = (int(number, 16) for number in rest.split("/"))
        assert len(places[name]) > 1 or record["address"] == hex(places[name][0] + offset), (line, record)
        assert (record["symbol"], record["offset"], record["size"]) == (name, offset, size), (line, record)
