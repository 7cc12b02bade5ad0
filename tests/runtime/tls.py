# SPDX-License-Identifier: MIT
"""Thread-local variables: each thread's copy, in processes and in their cores."""
import os

from ask import find, refused, run
from building import build_text, core_of, need_32_bit, nm
from finding import address, asked, build, library
from running import Told
from suite import test

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


@test("TLS: each thread's own, of the program and of a library, and none of who has not used it")
def thread_local(folder):
    versions = library(folder)
    with asked(folder) as program:
        told = program.tell("tls")
        for name in ("thread_own", "thread_hidden"):
            records, _ = find(program.pid, name)
            got = {f"{name}:{r['tid']}": address(r) for r in records}
            want = {n: a for n, a in told.items() if n.startswith(name + ":")}
            assert got == want and len(got) == 3, (got, want)
            assert {r["type"] for r in records} == {"tls"}
        records, _ = find(program.pid, "thread_own", "--read", "i32")
        assert sorted(r["value"] for r in records) == [1, 42, 43], records
        program.tell(f"open {versions}")
        want = program.tell("of library_thread_own")["library_thread_own"]
        records, _ = find(program.pid, "library_thread_own", "--read", "i32")
        # Only the thread that has asked for it has a copy.
        assert [(r["tid"], address(r), r["value"]) for r in records] == [(program.pid, want, 7)], records
        program.tell("close")
        program.tell(f"open {library(folder, 'libothers.so')}")
        records, _ = find(program.pid, "library_thread_own")
        assert [(r["address"], r["tid"]) for r in records] == [(None, None)], records


@test("TLS of a file has an offset and no address")
def thread_local_file(folder):
    path = build(folder, "asked", "-ldl", "-pthread")
    (record,), _ = find(path, "thread_own")
    want = nm(path)["thread_own"][0][0]
    assert (record["address"], record["module_address"], record["reason"]) == (None, hex(want), None), record


def threads(folder, *options, **more):
    return build(folder, "threads", "-pthread", *options, source=os.path.join(PROGRAMS, "threads.c"), **more)


def thread_copies(target):
    """{"NAME:TID": address} of the variables of programs/threads.c, {"NAME": address} of what all threads share."""
    records, _ = find(target, ["exported_one", "static_one", "aligned_one", "barrier"])
    return {f"{r['name']}:{r['tid']}" if r["tid"] else r["name"]: address(r) for r in records}


def add_threads(name, compiler, options):
    @test(f"TLS of a program of its own: {name}: each thread's, in the process and in its core")
    def _(folder):
        if "i686" in compiler:
            need_32_bit()
        with Told([threads(folder, *options, compiler=compiler)]) as program:
            assert len(program.places) == 10, program.places
            got = thread_copies(program.pid)
            assert got == program.places, (got, program.places)
            core = core_of(program.pid, folder)
        got = thread_copies(core)
        assert got == program.places, (got, program.places)


for style in (("dynamic", "gcc", []), ("static", "gcc", ["-static"]), ("static PIE", "gcc", ["-static-pie"]),
              ("static, by lld", "clang", ["-static", "-fuse-ld=lld"]),
              ("static, of 32 bit", "i686-linux-gnu-gcc", ["-static"])):
    add_threads(*style)


@test("TLS: the main thread's copy comes first, then the others' by their numbers; --thread chooses one")
def thread_local_first(folder):
    for options in ([], ["-DOWN_STACKS"], ["-DOWN_STACKS", "-static"]):
        check_thread_order(folder, options)


def check_thread_order(folder, options):
    path = threads(folder, *options)
    with Told([path]) as program:
        tids = sorted(int(place.split(":")[1]) for place in program.places if place.startswith("exported_one:"))
        assert len(tids) == 3 and program.pid in tids, tids
        core = core_of(program.pid, folder)

        def check(target):
            records, _ = find(target, "exported_one", "--read", "i32")
            wanted = [program.pid] + [t for t in tids if t != program.pid]
            assert [(r["tid"], r["value"]) for r in records] == [(t, 5 + (t != program.pid)) for t in wanted], records
            for options in (["--first"], ["--limit=1"], [f"--thread={program.pid}"]):
                (record,), _ = find(target, "exported_one", *options, "--read", "i32")
                assert (record["tid"], record["value"], address(record)) == \
                    (program.pid, 5, program.places[f"exported_one:{program.pid}"]), (options, record)
            for tid in tids:
                for name in ("exported_one", "static_one", "aligned_one"):
                    (record,), _ = find(target, name, f"--thread={tid}")
                    assert (record["tid"], address(record)) == (tid, program.places[f"{name}:{tid}"]), record
            (record,), notes = find(target, "exported_one", "--thread=2147483647", status=1)
            assert (record["address"], record["reason"]) == (None, "unmapped"), record
            assert "the thread that was chosen has no copy" in notes, notes

        check(program.pid)
    check(core)
    assert "only processes and cores have threads" in refused("find", f"--thread={program.pid}", path, "exported_one")


@test("TLS: a list of threads in a circle that leaves out its head: each thread once")
def thread_local_circle(folder):
    source = "#include <stdio.h>\n__thread int own_one = 5;\nextern struct list { struct list *next, *prev; } _dl_stack_user;" \
        "\nint main(void) { _dl_stack_user.next->next = _dl_stack_user.next; printf(\"own_one %p\\ndone\\n\", (void *)&own_one);" \
        " fflush(stdout); return getchar(); }"
    with Told([build_text(os.path.join(folder, "circle"), source, "-static")]) as program:
        records, _ = find(program.pid, "own_one", processor_seconds=10)
        assert [(address(r), r["tid"]) for r in records] == [(program.places["own_one"], program.pid)], records[:3]


@test("TLS of a static program without its symbols: not known, and said so")
def thread_local_stripped(folder):
    path = threads(folder, "-static")
    run("objcopy", "--strip-symbol=_dl_stack_user", path)
    with Told([path]) as program:
        (record,), _ = find(program.pid, "exported_one", status=(1,))
        assert (record["address"], record["reason"], record["type"]) == (None, "unsupported", "tls"), record
