# SPDX-License-Identifier: MIT
"""What ran: a snapshot has all three kinds of files, a core what is in its memory."""
import os

import jitfiles

from ask import FATHOM, addr, run
from building import core_of
from suite import PROGRAMS, Dump, Jitted, build, found, register, test


def add_stored(how, store, has_files):
    @test(f"{how}: the same answers when the process is gone")
    def _(folder):
        with Jitted([build(folder)]) as j:
            c = j.code
            j.write(f"{c:x} 100 by map\n{c + 0x80:x} 10 newer\n{c + 0x300:x} 20 far\n{c + 0x308:x} 8 inner\n")
            dump = Dump(folder, j)
            dump.write(jitfiles.load(c, 0x40, 0, "by dump"))
            j.tell(f"mark {dump.path}")
            register(folder, j, jitfiles.relocatable(c, [("by_list", 0, 0x20)]))
            path = os.path.join(folder, "lines.o")
            functions = jitfiles.compiled(path, os.path.join(PROGRAMS, "lines.c"), c + 0x1000)
            j.tell(f"register {path}")
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
