# SPDX-License-Identifier: MIT
"""The kernel that runs here: its own list says what stands where."""
import bisect
import os

import tap

from ask import NOBODY
from kernel import ask, test

SAMPLE = 3000


def kallsyms():
    """[(address, type, name, owner)] of the running kernel."""
    symbols = []
    with open("/proc/kallsyms", encoding="utf-8") as f:
        for line in f:
            address, kind, name = line.rstrip("\n").split(" ", 2)
            name, _, owner = name.partition("\t")
            symbols.append((int(address, 16), kind, name, owner))
    if not any(address for address, _, _, _ in symbols):
        raise tap.Skip("the kernel shows no addresses to this user")
    return symbols


def names_at(symbols):
    """{address: {name}}, of code and of all."""
    code, everything = {}, {}
    for address, kind, name, _ in symbols:
        if kind in "AaUNn" or not address:
            continue
        everything.setdefault(address, set()).add(name)
        if kind in "tTwW":
            code.setdefault(address, set()).add(name)
    return code, everything


def sampled(items):
    return items[::max(1, len(items) // SAMPLE)]


@test("each of thousands of its own lines is answered by a name that the line has")
def own_lines(_):
    _, everything = names_at(kallsyms())
    wanted = sampled(sorted(everything))
    records, _ = ask(wanted, "--names-only", stream=True)
    for address, r in zip(wanted, records, strict=True):
        assert r["linkage_name"] in everything[address] and r["offset"] == 0, f"{address:#x}: {r}"
        assert r["source"] in ("kallsyms", "symtab") and r["reason"] is None, r


@test("a byte into the code of a symbol is of that symbol, unless that has ended")
def inside(_):
    code, everything = names_at(kallsyms())
    starts = sorted(everything)
    wanted = [a for a in sorted(code) if a + 1 not in everything]
    wanted = sampled(wanted)
    records, _ = ask([a + 1 for a in wanted], "--names-only", stream=True)
    missing = 0
    for address, r in zip(wanted, records, strict=True):
        if r["symbol"] is None:
            missing += 1
            continue
        assert r["linkage_name"] in code[address] and r["offset"] == 1, f"{address:#x}: {r}"
        behind = starts[bisect.bisect_right(starts, address)] - address if address != starts[-1] else None
        # Without a vmlinux, a symbol reaches to the next, or ends before.
        assert r["source"] != "kallsyms" or behind is None or 1 < r["size"] <= behind, f"{address:#x}: {r}"
    assert missing <= len(wanted) // 100, f"{missing} of {len(wanted)} have no name"


@test("the last byte before the next symbol is of no later one")
def last_bytes(_):
    code, everything = names_at(kallsyms())
    starts = sorted(everything)
    pairs = [(a, b) for a, b in zip(starts, starts[1:]) if a in code and 1 < b - a < 4096]
    pairs = sampled(pairs)
    records, _ = ask([b - 1 for _, b in pairs], "--names-only", stream=True)
    for (a, b), r in zip(pairs, records, strict=True):
        assert r["symbol"] is None or (r["linkage_name"] in code[a] and r["offset"] == b - 1 - a), f"{b - 1:#x}: {r}"


@test("one by one the same answers as all at once, of this kernel")
def one_by_one(_):
    code, _ = names_at(kallsyms())
    wanted = [a + 1 for a in sorted(code)[:: max(1, len(code) // 12)]] + [0, 1 << 40, 2 ** 64 - 1]
    together, _ = ask(wanted, stream=True)
    for address, record in zip(wanted, together, strict=True):
        alone, _ = ask([address])
        assert alone == [record], f"{alone} and {record}"


@test("the build-id is that of /sys/kernel/notes")
def own_build_id(_):
    symbols = kallsyms()
    if not os.path.exists("/sys/kernel/notes"):
        raise tap.Skip("this kernel has no /sys/kernel/notes")
    text = next(a for a, kind, name, _ in symbols if name == "_stext")
    record = ask([text])[0][0]
    with open("/sys/kernel/notes", "rb") as f:
        assert bytes.fromhex(record["build_id"]) in f.read()
    assert record["module"] == "[kernel]"


@test("nobody is told that addresses are hidden, and what helps", needs_root=True)
def hidden(_):
    address = next(a for a, kind, name, _ in kallsyms() if name == "_stext")
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        if int(f.read()) <= 1:
            with open("/proc/sys/kernel/kptr_restrict", encoding="ascii") as g:
                if int(g.read()) == 0:
                    raise tap.Skip("this kernel hides nothing: kernel.kptr_restrict and perf_event_paranoid allow it")
    records, complaint = ask([address, "_stext"], user=NOBODY)
    assert [r["reason"] for r in records] == ["no-permission"] * 2, records
    assert "/proc/kallsyms" in complaint and "CAP_SYSLOG" in complaint and "kptr_restrict" in complaint, complaint


@test("/proc/kcore is the kernel")
def kcore(_):
    address = next(a for a, kind, name, _ in kallsyms() if name == "_stext")
    assert ask([address], target="/proc/kcore") == ask([address])


@test("a name with an offset is an address")
def by_name(_):
    code, _ = names_at(kallsyms())
    known = {}
    for address, names in code.items():
        for name in names:
            known.setdefault(name, set()).add(address)
    name = next(n for n, places in known.items() if n == "vfs_read" and len(places) == 1)
    record = ask([f"{name}+0x1"])[0][0]
    assert record["linkage_name"] == name and record["offset"] == 1, record
    assert int(record["address"], 16) == next(iter(known[name])) + 1
