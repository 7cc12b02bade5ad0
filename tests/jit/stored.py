# SPDX-License-Identifier: MIT
"""What ran: a snapshot has all three kinds of files, a core what is in its memory."""
import os

from ask import FATHOM, addr, run
from building import core_of
from suite import Jitted, build, found, tell_in_all_ways, test


def add_stored(how, store, has_files):
    @test(f"{how}: the same answers when the process is gone")
    def _(folder):
        with Jitted([build(folder)]) as j:
            c = j.code
            lines = f"{c:x} 100 by map\n{c + 0x80:x} 10 newer\n{c + 0x300:x} 20 far\n{c + 0x308:x} 8 inner\n"
            dump, _, functions = tell_in_all_ways(folder, j, lines, "by_list")
            off, size = functions["outer"]
            addresses = list(range(c - 8, c + 0x340, 4)) + list(range(c + 0x1000 + off - 2, c + 0x1000 + off + size + 2))
            living, _ = addr(j.pid, addresses)
            assert {r["source"] for r in living} == {None, "perf-map", "jitdump", "gdb-jit"}
            names = found(j.pid, "jit:*")
            assert set(names) == {"by_list", "newer", "far", "inner", "outer", "twice"}, names
            stored = store(j.pid, folder)
            if not has_files:
                os.unlink(j.map)
                os.unlink(dump.path)
            check_stored(folder, stored, addresses, living, names, has_files)


def check_stored(folder, stored, addresses, living, names, has_files):
    records, notes = addr(stored, addresses)
    assert "changes" not in notes, notes
    for then, now in zip(living, records, strict=True):
        if then["source"] == "gdb-jit" or has_files and then["symbol"] is None:
            assert now == then, (then, now)
        elif has_files:
            assert all(now[k] == then[k] for k in ("symbol", "offset", "size", "source")), (then, now)
        else:
            assert now["symbol"] is None, now
    kept = {name: places for name, places in names.items() if has_files or places[0][2] == "gdb-jit"}
    assert found(stored, "jit:*") == kept, kept
    # What is kept of it again is as good.
    run(FATHOM, "snapshot", stored, f"{folder}/again")
    assert found(f"{folder}/again", "jit:*") == kept, kept
    again, _ = addr(f"{folder}/again", addresses)
    assert [(r["symbol"], r["offset"]) for r in again] == [(r["symbol"], r["offset"]) for r in records]


def by_snapshot(pid, folder):
    run(FATHOM, "snapshot", pid, f"{folder}/snapshot")
    return f"{folder}/snapshot"


add_stored("a snapshot", by_snapshot, True)
add_stored("a core, and what the process wrote is still there", core_of, True)
add_stored("a core, GDB's list only", core_of, False)
