# SPDX-License-Identifier: MIT
"""Reads src/host/syscalls/constants.txt and makes the tables of constants of it (tools/syscall_tables.py)."""
import fnmatch
import glob
import os
import re

from syscall_headers import ARCHES, include_folder, names_of, prologue, values_of

SPECIFICATION = "src/host/syscalls/constants.txt"
ALL = (1 << len(ARCHES)) - 1


class Table:
    """A table as it is specified, then as it is: rows of (value, name, bits of architectures)."""

    def __init__(self, name, unknown, items):
        self.name, self.unknown, self.items = name, unknown, items
        self.rows = []


def read_groups():
    """Yields (headers, tables) of the specification."""
    headers, tables = [], []
    with open(SPECIFICATION, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    for line in lines:
        if line.startswith("from "):
            if tables:
                yield headers, tables
            words = line.split()[1:]
            headers, tables = [(bool(i) and words[i - 1] == "kernel", word) for i, word in enumerate(words) if word != "kernel"], []
            continue
        name, unknown, equals, *items = line.split()
        if equals != "=":
            raise SystemExit(f"{SPECIFICATION}: {line}")
        tables.append(Table(name, "" if unknown == "-" else unknown, items))
    yield headers, tables


def expand(item, known):
    """Returns the (name in the headers, name that is shown) that an item stands for."""
    if "*" in item:
        return [(name, name) for name in known if fnmatch.fnmatchcase(name, item)]
    name, _, shown = item.partition(">")
    return [(name, shown or name)]


def left_out(table, name):
    return any(item[0] == "-" and fnmatch.fnmatchcase(name, item[1:]) for item in table.items)


def fill(table, known, values):
    """Makes the rows of @table; @values has {name: value} for each architecture."""
    done = set()
    for item in table.items:
        if item[0] == "-":
            continue
        if item.startswith("0:"):
            table.rows.append((0, item[2:], ALL))
            continue
        found = []
        for name, shown in expand(item.rstrip("?"), known):
            if name in done or "*" in item and left_out(table, name):
                continue
            of = {bit: arch[name] for bit, arch in enumerate(values) if name in arch}
            if not of and "*" not in item:
                print("MISSING", table.name, name)
            for value in dict.fromkeys(of.values()):
                found.append((value, shown, sum(1 << bit for bit in of if of[bit] == value)))
            done.add(name)
        table.rows += sorted(found, key=lambda row: row[0]) if "*" in item else found
    if not table.rows:
        raise SystemExit(f"{SPECIFICATION}: {table.name} is empty")


def wanted_names(tables, known):
    return list(dict.fromkeys(name for table in tables for item in table.items if item[0] != "-" and item[:2] != "0:"
                              for name, _ in expand(item.rstrip("?"), known)))


def read_tables():
    """Returns all tables of the specification, and that of requests of ioctl(2)."""
    result = []
    for headers, tables in read_groups():
        plain = {name for table in tables for item in table.items for name in re.findall(r"\w+", item)}
        text = prologue(headers, plain)
        globs = any("*" in item for table in tables for item in table.items)
        known = list(dict.fromkeys(name for arch in ARCHES for name in names_of(arch, text))) if globs else []
        wanted = wanted_names(tables, known)
        values = [values_of(arch, text, wanted) for arch in ARCHES]
        for table in tables:
            fill(table, known, values)
        result += tables
    return result + [read_requests()]


def request_headers(arch):
    """Yields the headers that may define requests of ioctl(2), by their names below the folder of headers."""
    folder = include_folder(arch)
    for pattern in ("asm/ioctls.h", "asm/sockios.h", "linux/sockios.h", "linux/fs.h", "asm-generic/*io*s.h", "linux/*.h",
                    "linux/*/*.h", "asm/*.h", "drm/*.h", "misc/*.h", "mtd/*.h", "scsi/*.h", "sound/*.h", "xen/*.h"):
        for path in sorted(glob.glob(f"{folder}/{pattern}")):
            yield os.path.relpath(path, folder)


# Names of the general headers that are no requests.
NO_REQUEST = re.compile(r"SNDCTL_TMR_(START|STOP|CONTINUE)|TIOCPKT_.*|TIOCSER_.*|FIOSETOWN|.*_IOCTL_BASE|.*_IOC_MAGIC|SIOC(DEV)?PRIVATE|SIOCPROTOPRIVATE|SNAPSHOT_IOC_MAXNR|SOCK_IOC_TYPE|BLOCK_URING_CMD_.*|SIOCGSTAMP(NS)?|PPPIOCGIDLE|DMA_BUF_SET_NAME|"
                        r"VIDIOC_SUBDEV_\w*(STD|EDID|DV_TIMINGS(_CAP)?)|PTP_MASK_.*|_?ASM.*|_?LINUX.*")


# What headers of requests use without including it.
REQUESTS_NEED = ("linux/ioctl.h", "linux/time.h", "linux/fiemap.h", "linux/blktrace_api.h", "linux/filter.h", "asm/termbits.h")
# Headers whose requests are plain numbers, from 0x300 on, and the beginnings of their names.
PLAIN_REQUESTS = {"linux/loop.h": "LOOP_", "linux/vt.h": "VT_", "linux/kd.h": "(?:GIO|PIO|KD[A-Z]|KI)", "linux/cdrom.h": "(?:CDROM|DVD)",
                  "linux/hdreg.h": "HDIO_"}


def requests_of(arch, header):
    """Returns {name: value} of the requests that a header defines."""
    path = os.path.join(include_folder(arch), header)
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S).replace("\\\n", " ")
    if header.endswith(("ioctls.h", "sockios.h")):
        # Not what is only another name for a request.
        names = re.findall(r"^\s*#\s*define\s+(\w+)\s+(?![A-Z]\w*\s*$)\S", text, re.M)
    else:
        names = re.findall(r"^\s*#\s*define\s+(\w+)\s+(?:_S?|DRM_)IO(?:R|W|WR|RW)?\s*\(", text, re.M)
        if header in PLAIN_REQUESTS:
            names += re.findall(rf"^\s*#\s*define\s+({PLAIN_REQUESTS[header]}\w*)\s+0x0?[3-9A-Fa-f]\w\w+\s*$", text, re.M)
    names = [name for name in names if not NO_REQUEST.fullmatch(name)]
    if not names:
        return {}
    try:
        return values_of(arch, "typedef unsigned long uintptr_t;\n" + prologue([(False, name) for name in (*REQUESTS_NEED, header)], set()), names)
    except SystemExit:
        return {}


def read_requests():
    """Returns the table of requests of ioctl(2), sorted by value, then by name."""
    found = {}
    for bit, arch in enumerate(ARCHES):
        of = {}
        for header in request_headers(arch):
            for name, value in requests_of(arch, header).items():
                of.setdefault(value & 0xffffffff, set()).add(name)
        for value, names in of.items():
            for name in names:
                found[value, name] = found.get((value, name), 0) | 1 << bit
    table = Table("ioctl", "", [])
    table.rows = [(value, name, bits) for (value, name), bits in sorted(found.items())]
    return table
