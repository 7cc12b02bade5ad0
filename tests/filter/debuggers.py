# SPDX-License-Identifier: MIT
"""Frames with live addresses, of gdb and Rust, which are addresses of a TARGET; and the summary of a sanitizer's report."""
import re

import tap

from ask import execute
from building import nm
from built import Numbers, crash, fixed_steps, steps, waits
from formats import FUNCTION, NEXT
from suite import added, address_of, expected, names_of, objects, test


@test("gdb, Rust: frames are return addresses but the first one and what a signal has interrupted")
def kinds(_):
    path = fixed_steps()
    next = address_of(path, NEXT)
    exact, last = expected(path, next), expected(path, next, next - 1)
    lines = [
        (f"#0  0x{next:016x} in ?? ()", exact),
        (f"#1  0x{next:016x} in ?? () from /d/libfoo.so", last),
        ("#2  <signal handler called>", None),
        (f"#3  0x{next:016x} in {NEXT} ()", exact),
        (f"web-1 | #4  0x{next:016x} in {FUNCTION} (n=3) at steps.c:4", last),
        (f"   0:     {next:#x} - <unknown>", last),
        (f"2026-11-27 12:00:00  17:     {next:#x} - std::rt::lang_start", last),
        # Of no format: any number is exact.
        (f"at {next:#x} in f ()", exact),
        (f"7: {next:#x}", exact),
    ]
    log = "".join(line + "\n" for line, _ in lines)
    for (line, want), name in zip(lines, names_of(log, path), strict=True):
        assert name == want if want is None else name and re.fullmatch(want, name), f"{line}\n{name}\n{want}"
    assert [r["format"] for r in objects(log, path)] == ["gdb"] * 4 + ["rust"] * 2 + ["number"] * 2
    # Live addresses are those of no file.
    assert names_of(log) == [None] * len(lines)


@test("gdb: the stack of a waiting process, as TARGET: the names that gdb finds by the file that is not stripped")
def waiting(_):
    program = crash("lld", True)
    with waits(program.bare["crash"]) as (process, _):
        done = execute("gdb", "-q", "-nx", "-batch", "-p", process.pid, "-iex", "set debuginfod enabled off", "-ex", "bt")
        if "libcrash.so" not in done.stdout:
            raise tap.Skip(f"gdb reads no process here: {done.stderr.strip()}")
        names = added(done.stdout, *program.options, process.pid)
    own = set().union(*(nm(path) for path in program.whole.values()))
    found = 0
    for line, name in zip(done.stdout.splitlines(), names):
        m = re.match(r"#\d+ +0x\w{16} in (\?\?|\w+) \(", line)
        # In libc a name can be an alias; gdb has inlined calls, whose lines have no addresses, in front of their function.
        if m and m[1] in own:
            assert name and re.search(rf"(^|inlined into ){m[1]}\b", name), f"{line}\n{name}"
            found += 1
        elif m and "/libcrash.so" in line:
            assert name and re.match(r"\w+", name)[0] in own, f"{line}\n{name}"
            found += 1
    assert found >= 2, done.stdout


@test("perf: callchains: offsets in the file, return addresses but the first of each sample, also through inlined frames and batches")
def callchains(_):
    library = steps("usual")
    numbers, next = Numbers(library), address_of(library, NEXT)
    offset = numbers.offset(next)
    assert offset != next
    exact, last = expected(library, next, by_path=True), expected(library, next, next - 1, by_path=True)
    head = "crash 31011  5212.104321:     250000 cpu-clock:uhH: \n"
    frame = f"\t{offset:16x} [unknown] ({library})\n"
    named = f"\t{offset:16x} {FUNCTION}+0xfc ({library})\n"
    inlined = f"\t{offset:16x} some_step (inlined)\n"
    kernel = "\tffffffff8132a8f1 do_syscall_64+0x71 ([kernel.kallsyms])\n"
    sample = head + frame + named + inlined + named + "\n" + head + kernel + frame + "\n"
    want = [None, exact, last, None, last, None, None, None, last, None]
    for log, wanted in ((sample, want), (sample * 2, want * 2), (head + frame + frame * 3, [None, exact] + [last] * 3)):
        for line, was, name in zip(log.splitlines(), wanted, names_of(log), strict=True):
            assert name == was if was is None else name and re.fullmatch(was, name), f"{line}\n{name}\n{was}"
    # More than a batch of 4 MB.
    count = (5 << 20) // len(frame)
    names = names_of(head + frame * count)
    assert re.fullmatch(exact, names[1]) and all(re.fullmatch(last, name) for name in set(names[2:])) and len(names) == count + 1


@test("sanitizer: the place in the line SUMMARY is that of the first frame")
def summary(_):
    library = steps("usual")
    next = address_of(library, NEXT)
    want = expected(library, next - 1, by_path=True)
    log = f"SUMMARY: AddressSanitizer: heap-buffer-overflow ({library}+{next - 1:#x}) \nSUMMARY: AddressSanitizer: 12 byte(s) leaked in 1 allocation(s).\n"
    names = names_of(log)
    assert re.fullmatch(want, names[0]) and names[1] is None, names
