# SPDX-License-Identifier: MIT
"""What is asked for in other ways: objects of --json, a TARGET, lines as they come, wrong arguments."""
import json
import os
import re
import select
import time

from ask import FATHOM, HANG_SECONDS, addr, fathom, refused
from building import build_id, core_of
from built import Numbers, crash, fixed_steps, steps, waits
from formats import BIAS, FUNCTION, NEXT, in_dir, lines
from live import backtrace
from running import Running, mappings_of
from suite import (MARK, address_of, added, as_bytes, check_names, expected, filtered, frames_at, json_frames, names_of, need_x86, objects,
                   test)

OWN = {"line", "column", "format", "text", "kind", "base", "log_module", "log_symbol", "by_path", "base_guessed"}


@test("--json: an object for each address, with the members of fathom addr and its own")
def members(_):
    library = steps("usual")
    next = address_of(library, NEXT)
    ((of_addr,), _) = addr(library, [next - 1])
    head = "\u20ac 2026 ".encode()
    line = f"#7 {BIAS + next - 1:#x}  ({library}+{next - 1:#x}) (BuildId: {build_id(library)})"
    (record,) = objects(b"\xff\n\n" + head + line.encode() + b"\n")
    assert set(record) == set(of_addr) | OWN, set(record) ^ (set(of_addr) | OWN)
    number = hex(next - 1)
    want = {"input": number, "address": number, "module": library, "build_id": build_id(library), "module_address": number,
            "symbol": FUNCTION, "linkage_name": FUNCTION, "offset": next - 1 - address_of(library, FUNCTION),
            "size": next - address_of(library, FUNCTION), "reason": None, "line": 3,
            # Bytes, from 1.
            "column": len(head) + line.index(number + ")") + 1,
            "format": "sanitizer", "text": number, "kind": "lowered", "base": "stated", "log_module": library, "log_symbol": None,
            "by_path": False, "base_guessed": False}
    assert {key: record[key] for key in want} == want, record
    assert json_frames(record) == frames_at(library, next - 1), record


FORMATS = {"sanitizer": "sanitizer", "segfault": "segfault", "trap": "segfault", "coredump": "coredump", "hotspot": "hotspot",
           "tombstone": "tombstone", "llvm": "llvm", "backtrace": "backtrace", "node": "node", "eu-stack": "eu-stack"}
BASES = {"sanitizer": "stated", "segfault": "file-offset", "segfault of Linux before 6.7": "code-mapping", "trap": "file-offset",
         "coredump": "first-mapping", "hotspot": "first-mapping", "tombstone": "stated", "llvm": "stated", "backtrace": "stated",
         "backtrace_fd with a symbol": "symbol", "node": "live", "eu-stack": "first-mapping"}


@test("--json: kinds, bases, formats, lines and columns of each format")
def kinds(_):
    of = lines()
    for kind, texts in (("exact", of.exact), ("return", of.returns), ("return", of.fixed), ("lowered", of.lowered), ("lowered", of.by_id)):
        for name, text in texts.items():
            log = f"\n{text}\n"
            (record,) = objects(log, *in_dir(steps("usual")))
            word = re.match(r"[\w-]+", name)[0].removesuffix("_fd")
            base = "live" if texts is of.fixed else "symbol" if "symbol" in name else BASES.get(name, BASES[word])
            assert (record["kind"], record["base"], record["format"]) == (kind, base, FORMATS[word]), (name, record)
            assert record["line"] == log.count("\n"), (name, record)
            line = log.splitlines()[record["line"] - 1]
            assert line[record["column"] - 1:].startswith(record["text"]), (name, line, record)
            if name.startswith("segfault of"):
                continue
            # It is the number that counts, not another of the line.
            digits = int(record["text"], 16)
            library = fixed_steps() if texts is of.fixed else steps("usual")
            numbers = Numbers(library)
            stated = {"stated": digits, "live": digits, "first-mapping": digits + numbers.first, "symbol": None,
                      "file-offset": digits - numbers.code_offset + numbers.code}[base]
            first, next = address_of(library, FUNCTION), address_of(library, NEXT)
            assert stated in (None, {"exact": first, "return": next, "lowered": next - 1}[kind]), (name, record)


@test("--json: columns and lines of all addresses point to their texts, through batches of any size")
def columns(_):
    texts = lines().returns
    report = ("x" * 99 + "\n" + "\n".join(texts.values()) + "\n\r\n") * 1500
    assert len(report) > 1 << 20
    log = as_bytes(report)
    records = objects(log, *in_dir(steps("usual")))
    assert len(records) == 1500 * len(texts), len(records)
    rows = log.split(b"\n")
    for record in records:
        at = record["column"] - 1
        assert rows[record["line"] - 1][at:at + len(record["text"])].decode() == record["text"], record
    assert [r["line"] for r in records] == sorted(r["line"] for r in records)


@test("--json: what has no name has a reason; names of modules with any bytes are JSON")
def reasons(_):
    library = steps("usual")
    log = (b"/gone/lib.so(+0x10)[0x10]\n" + as_bytes(f"p[1]: segfault at 8 ip 0000000000ffffff sp 00000010 error 6 in {library}[ffffff,1000+1000]\n{library}(nothing+0x10)[0x10]\n{library}() [0x10]\n")
           + b"/gone/\xff\"\\\x01\xe2\x82\xac.so(+0x10)[0x10]\n")
    records = objects(log)
    assert [r["reason"] for r in records] == ["no-file", "unmapped", "no-such-symbol", "no-base", "no-file"], records
    assert all(r["symbol"] is None and r["frames"] == [] for r in records)
    assert [r["log_symbol"] for r in records] == [None, None, "nothing", None, None]
    assert "\u20ac.so" in records[4]["log_module"] and '"\\\x01' in records[4]["log_module"], records[4]
    names = names_of(log, "--all")
    assert names == [f"?? ({r['reason']})" for r in records], names
    assert names_of(log) == [None] * 5


# TARGET.

@test("TARGET, a file: any other number with 0x is an exact address of it")
def target_file(_):
    path = fixed_steps()
    first, next = address_of(path, FUNCTION), address_of(path, NEXT)
    want_first, want_next = expected(path, first), expected(path, next)
    log = (f"pc={first:#x} lr={next:#x}\n"
           f"{first:#X}\n"
           f"rip: {first:#018x}, x{first:#x} 1{first:#x} a{first:#x}\n"
           f"{first:#x}g {first:x}\n"
           f"0x12 0x1 0x\n")
    log = log.replace("0X", "0x")
    names = names_of(log, path)
    assert re.fullmatch(f"{want_first}; {want_next}", names[0]), names
    assert re.fullmatch(want_first, names[1]), names
    # What goes on from another number's digits is none.
    assert re.fullmatch(f"{want_first}(; {want_first})?", names[2]), names
    assert names[4] is None, names
    assert "(by path)" not in str(names)
    assert names_of(log) == [None] * 5


@test("TARGET, a file: numbers of lines of a format are what the format says, in their modules")
def target_and_formats(_):
    library, program = steps("usual"), fixed_steps()
    next = address_of(library, NEXT)
    log = f"{library}(+{next:#x})[{address_of(program, FUNCTION):#x}]\n"
    check_names(log, [expected(library, next, next - 1, by_path=True)], program)


def live_symbol(pid, path, name):
    """The address of @name in the process, by nm and its map."""
    numbers = Numbers(path)
    code = next(m for m in mappings_of(pid) if m.path == path and "x" in m.rights)
    return address_of(path, name) - (numbers.code & ~0xfff) + code.start


@test("TARGET, a process that ends: the log goes on without its names, to its last byte")
def ending(_):
    program = crash("lld", True)
    with waits(program.bare["crash"]) as (process, _):
        start = next(m for m in mappings_of(process.pid) if "x" in m[2] and m[4].endswith("/libc.so.6"))[0]
        with Running([FATHOM, "filter", "--no-cache", "--all", process.pid]) as own:
            own.send(f"rip {start + 0x40000:#x}\n")
            assert "  -> " in own.line()
            process.process.kill()
            process.process.wait()
            own.send(f"rip {start + 0x40000:#x}\n")
            assert own.line() == f"rip {start + 0x40000:#x}  -> ?? (no-file)"
            own.process.stdin.close()
            assert own.process.wait() == 0


@test("--maps: a copy of a process's map names its addresses when it has gone; what is not in it, and in no file, has no names")
def saved_map(folder):
    program = crash("lld", True)
    with waits(program.bare["crash"]) as (process, _):
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as source, open(f"{folder}/maps", "w", encoding="utf-8") as copy:
            text = source.read()
            copy.write(text)
        # The vDSO is in no file.
        code = [line.split() for line in text.splitlines() if " r-xp " in line and "[vdso]" not in line]
        starts = [int(words[0].split("-")[0], 16) for words in code]
        log = "".join(f"rip {start + 0x10 * i:#x}\n" for start in starts for i in range(40)) + "at 0x1000\nat 0x7ffffffff000\n"
        live = names_of(log, *program.options, process.pid)
    saved = names_of(log, *program.options, "--maps", f"{folder}/maps")
    assert sum(name is not None for name in saved) > 40
    for line, was, name in zip(log.splitlines(), live, saved, strict=True):
        assert name == (was and f"{was} (by path)"), (line, was, name)
    assert saved[-2:] == [None, None]
    assert f"{folder}/none: No such file or directory" in refused("filter", "--maps", f"{folder}/none")


@test("TARGET, a process and its core: any number with 0x is an address there")
def target_process(folder):
    need_x86()
    program = crash("lld", True)
    # The whole ones: its library is found beside it.
    with waits(program.whole["crash"]) as (process, _):
        wanted, log = [], ""
        for path, name in (("crash", "prog_run"), ("libcrash.so", "overflow"), ("libcrash.so", "report")):
            whole = program.whole[path]
            wanted.append(expected(whole, address_of(whole, name)))
            log += f"worker: at {live_symbol(process.pid, whole, name):#x}\n"
        stack = next(m for m in mappings_of(process.pid) if m.path == "[stack]")
        log += f"sp {stack.start:#x}\n"
        check_names(log, [*wanted, None], process.pid)
        check_names(log, [*wanted, None], "-p", process.pid)
        check_names(log, [*wanted, None], core_of(process.pid, folder))


# Lines as they come.

@test("each line that is written is answered before the next: with names and without, as text and as objects")
def at_once(_):
    frame = lines().returns["backtrace"]
    for more in ((), ("--json",)):
        with Running([FATHOM, "filter", "--no-cache", *more]) as process:
            for i in range(40):
                if more or i % 2:
                    process.send(frame + "\n")
                    line = process.line()
                    assert json.loads(line)["symbol"] == FUNCTION if more else line.startswith(f"{frame}  -> {FUNCTION}+0xfc "), line
                else:
                    process.send(f"nothing {i}\n")
                    assert process.line() == f"nothing {i}"
            assert process.is_running()


@test("a line that is not complete is written once it is, or at the end")
def incomplete(_):
    frame = lines().returns["backtrace"]
    with Running([FATHOM, "filter", "--no-cache"]) as process:
        process.send(f"one\n{frame[:20]}")
        assert process.line() == "one"
        process.send(frame[20:])
        assert not select.select([process.process.stdout], [], [], 0)[0]
        process.send("\ntw")
        assert process.line().startswith(f"{frame}  -> {FUNCTION}+0xfc ")
        process.process.stdin.close()
        assert process.process.stdout.read() == "tw" and process.process.wait() == 0


@test("a log that is appended to: tail -f gets names")
def followed(folder):
    frame = lines().returns["backtrace"]
    with open(f"{folder}/log", "w", encoding="utf-8") as log:
        log.write("first\n")
        log.flush()
        with Running(["tail", "-f", "-n", "+1", log.name]) as tail:
            with Running([FATHOM, "filter", "--no-cache"], stdin=tail.process.stdout) as process:
                assert process.line() == "first"
                log.write(frame + "\n")
                log.flush()
                assert process.line().startswith(f"{frame}  -> {FUNCTION}+0xfc ")


# Status.

@test("status: 0 whatever the log is; 2 for wrong arguments, and a log or output that fails")
def statuses(folder):
    for log in (b"", b"\n", b"nothing", as_bytes(lines().returns["backtrace"]), b"/gone(+0x1)[0x1]\n"):
        filtered(log)
        filtered(log, "--json", "--all")
    two = refused("filter", steps("usual"), fixed_steps())
    assert fixed_steps() in two and "argument" in two, two
    assert "/gone/file" in refused("filter", "/gone/file")
    with open(f"{folder}/text", "w", encoding="utf-8") as file:
        file.write("no program\n")
    assert f"{folder}/text" in refused("filter", f"{folder}/text")
    assert folder in refused("filter", folder)
    assert "999999999" in refused("filter", "-p", "999999999")
    assert "--none" in fathom("filter", "--none", status=2).stderr
    assert "--module-dir" in fathom("filter", "--module-dir", status=2).stderr
    assert "standard input" in refused("filter", stdin=os.open(folder, os.O_RDONLY))
    with open("/dev/full", "w", encoding="ascii") as full:
        assert "standard output" in fathom("filter", input="a\n", stdout=full, status=2).stderr
    shown = fathom("filter", "--help", status=0).stdout
    assert all(word in shown for word in ("fathom filter", "--module-dir", "--all", "--json")), shown


@test("a reader that ends early ends the filter")
def early_end(_):
    with Running([FATHOM, "filter"]) as process:
        process.process.stdout.close()
        begun = time.monotonic()
        while process.is_running():
            try:
                process.send("a\n" * 5000)
            except BrokenPipeError:
                break
            assert time.monotonic() - begun < HANG_SECONDS
        assert process.process.wait() is not None


@test("no log, no files: what a log does not name is not opened")
def named_only(_):
    names = added("nothing\n0x1234\nlibc.so.6+0x10\n(libc.so.6+0x10)\n", "--all")
    assert names == [None] * 5, names
    assert MARK not in filtered(backtrace("lld", True, "report-fd").log.replace("[0x", "[0y").replace("+0x", "+0y"), "--all")
