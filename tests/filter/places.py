# SPDX-License-Identifier: MIT
"""Addresses in memory, of which other lines of the report tell where their modules were: maps, and pairs of a live and a
stated number; also where these lines come later. And when they tell nothing."""
import os
import re
import select
import shutil
import time

import tap

from ask import FATHOM, execute, run
from building import build_id, build_text
from built import Numbers, Report, crash, fixed_steps, steps, waits
from formats import BIAS, FUNCTION, NEXT
from live import backtrace, check_calls, stated
from running import Running, until
from suite import address_of, added, check_names, expected, names_of, need_x86, objects, test

def map_line(path, bias=BIAS, rights="r-xp"):
    """A line of /proc/PID/maps for the code of @path."""
    numbers = Numbers(path)
    start = bias + (numbers.code & ~0xfff)
    return f"{start:x}-{start + numbers.code_size:x} {rights} {numbers.code_offset & ~0xfff:08x} fe:00 11020557                   {path}\n"

def pair_line(path, bias=BIAS):
    next = address_of(path, NEXT)
    return f"{path}(+{next:#x}) [{bias + next:#x}]\n"

def bare(path, bias=BIAS, name=FUNCTION):
    return f"rip {bias + address_of(path, name):#x}\n"

def is_named(log, at=-1, **more):
    """Whether line @at gets the name of FUNCTION."""
    name = names_of(log, **more)[at]
    assert name is None or re.fullmatch(rf"{FUNCTION}\+0x0 .*", name), name
    return name is not None

@test("places: a live address before and after a pair, a map of the kernel's, of gdb's and of perf's: the function there")
def kinds(_):
    library = steps("usual")
    first, next = address_of(library, FUNCTION), address_of(library, NEXT)
    want = expected(library, first)
    numbers = Numbers(library)
    start, offset = BIAS + (numbers.code & ~0xfff), numbers.code_offset & ~0xfff
    tellers = [
        pair_line(library),
        map_line(library),
        "2026-11-27 web-1 | " + map_line(library),
        f"      {start:#x}     {start + numbers.code_size:#x}     {numbers.code_size:#x}     {offset:#x}  r-xp   {library}\n",
        f"{start:#018x} {start + numbers.code_size:#018x} {numbers.code_size:<#18x} {offset:<#18x} r-xp  {library} \n",
        f"prog 3/3: PERF_RECORD_MMAP2 3/3: [{start:#x}({numbers.code_size:#x}) @ {offset:#x} fe:00 11 42]: r-xp {library}\n",
        f"    #1 {BIAS + next - 1:#x}  ({library}+{next - 1:#x})\n",
        f" #3 0x{BIAS + next:016x} ({library}+{next:#x})\n",
        f"#0  0x{BIAS + first:016x} n/a ({library} + {numbers.from_first(first):#x})\n",
        f"#1  0x{BIAS + next:016x} f - {library}\n    [{build_id(library)}]@{BIAS + numbers.first:#x}+{numbers.from_first(next - 1):#x}\n",
        f"#1  0x{BIAS + next:016x} f - {library}\n    [00]@{BIAS + numbers.first:#x}+{numbers.from_first(next - 1):#x}\n",
    ]
    for teller in tellers:
        for log, at in ((bare(library) + teller, 0), (teller + bare(library), -1), (teller + "\n" * 999 + bare(library), -1)):
            name = names_of(log)[at]
            # A build-id that is not the file's refutes it.
            assert (name is None) if "[00]@" in log else name and re.fullmatch(want, name.removesuffix(" (by path)")), (log, name)
    assert names_of(bare(library)) == [None]
    (_, record) = objects(pair_line(library) + bare(library))
    assert (record["base"], record["kind"], record["format"], record["log_module"]) == ("mapped", "exact", "number", library), record

@test("places: what is in no place, in one without code, in a file that was deleted, or below another offset has no name")
def outside(_):
    library = steps("usual")
    numbers = Numbers(library)
    for log in (map_line(library).replace("r-xp", "r--p"), map_line(library).replace("r-xp", "rw-p"), map_line(library)[:-1] + " (deleted)\n",
                map_line(library, BIAS + 0x1000000),
                map_line(library).replace(library, "[vdso]")):
        assert not is_named(log + bare(library)), log
    # The offset counts, not the start.
    moved = map_line(library).replace(f" {numbers.code_offset & ~0xfff:08x} ", f" {(numbers.code_offset & ~0xfff) + 0x1000:08x} ")
    other = names_of(moved + bare(library))[-1]
    assert other is None or not other.startswith(f"{FUNCTION}+0x0"), other

@test("places: reports that contradict each other, and heads, other processes and 64 KiB between them: no name of the wrong one")
def reports(_):
    one, two = steps("usual"), steps("other", "-DMOVED")
    number = bare(one)
    assert is_named(map_line(one) + number) and is_named(number + map_line(one), 0)
    # Between two that contradict each other: of either.
    for second in (map_line(two), map_line(one, BIAS + 0x10000000)):
        log = map_line(one) + number + second
        assert names_of(log)[1] is None, log
        assert is_named(number + map_line(one) + second, 0)
        # Lines in between: it is not one map.
        after = names_of(map_line(one) + ("x" * 99 + "\n") * 60 + second + number)[-1]
        assert after is None or not after.startswith(FUNCTION + "+"), (log, after)
    for head in ("==7==ERROR: AddressSanitizer: SEGV\n", "thread 'main' panicked at src/main.rs:4:5:\n",
                 "# A fatal error has been detected by the Java Runtime Environment:\n", "Program received signal SIGSEGV\n",
                 "Process 4 (p) of user 0 dumped core.\n", "{{{reset}}}\n"):
        assert not is_named(map_line(one) + head + number), head
        assert not is_named(number + head + map_line(one), 0), head
    assert is_named("p[7]: " + map_line(one) + "p[7]: " + number) and not is_named("p[7]: " + map_line(one) + "p[8]: " + number)
    assert is_named(map_line(one) + ("x" * 99 + "\n") * 600 + number) and not is_named(map_line(one) + ("x" * 99 + "\n") * 700 + number)
    # Also through batches of 4 MB: what one batch ends with counts in the next.
    filler = ("x" * 99 + "\n") * ((4 << 20) // 100 - 200)
    for lines in (100, 400, 900):
        log = filler + map_line(one) + ("x" * 99 + "\n") * lines + number
        assert is_named(log) == (lines < 650), lines
    log = filler + map_line(one) + ("x" * 99 + "\n") * 300 + "Program received signal SIGSEGV\n" + number
    assert not is_named(log)

@test("places: reports of several processes, line by line in turn: each number has the name that its own process tells")
def in_turn(_):
    one, two = steps("usual"), steps("other", "-DMOVED")
    far = BIAS + 0x10000000
    for prefixes in ["==7== ", "==8== "], ["web[7]: ", "web[8]: "], ["Nov 27 17:46:01 host a[1]: ", "Nov 27 17:46:01 host b[1]: "]:
        a, b = prefixes
        # One address is of different functions in the two.
        address = BIAS + address_of(one, FUNCTION)
        log = [a + map_line(one), b + map_line(two), a + f"rip {address:#x}\n", b + f"rip {address:#x}\n", b + bare(two), a + bare(one)]
        wanted = [None, None] + [expected(*found, by_path=True) for found in ((one, address - BIAS), (two, address - BIAS), (two, address_of(two, FUNCTION)),
                                                                              (one, address_of(one, FUNCTION)))]
        assert wanted[2].split("\\+")[0] != wanted[3].split("\\+")[0], wanted
        check_names("".join(log), wanted)
        # Numbers before the lines that place them; and as the lines come.
        check_names("".join(log[2:] + log[:2]), wanted[2:] + wanted[:2])
        with Running([FATHOM, "filter", "--no-cache"]) as process:
            for line, want in zip(log, wanted):
                process.send(line)
                got = process.line().partition("  -> ")[2]
                assert re.fullmatch(want or "", got), (line, got, want)
        # A file at another place contradicts its own process alone; a new report of one ends no other.
        assert names_of("".join(log[:2]) + b + map_line(two, far) + b + bare(two, far) + a + bare(one))[-1].startswith(FUNCTION)
        head = f"{b}==8==ERROR: AddressSanitizer: SEGV\n"
        names = names_of("".join(log[:2]) + head + a + bare(one) + b + bare(two))
        assert names[3].startswith(FUNCTION) and names[4] is None, names
    # Of more processes than are kept, the latest ones.
    many = [f"p[{i}]: " + map_line(one, BIAS + i * 0x1000000) for i in range(1, 31)]
    numbers = [f"p[{i}]: " + bare(one, BIAS + i * 0x1000000) for i in range(1, 31)]
    names = names_of("".join(many + numbers[14:]))[30:]
    assert all(name.startswith(FUNCTION) for name in names) and len(names) == 16, names
    assert names_of("".join(many + numbers[:14]))[30:] == [None] * 14

@test("places: a stack that contradicts the place of its frames has no names there, also in frames that nothing else contradicts")
def contradicted(_):
    library = steps("usual")
    first, next = address_of(library, FUNCTION), address_of(library, NEXT)
    stack = "#0  0x{:016x} in ?? ()\n#1  0x{:016x} in ?? ()\n#2  0x{:016x} in ?? ()\n"
    # No call ends there.
    names = names_of(map_line(library) + stack.format(BIAS + first, BIAS + first + 3, BIAS + next), "--all")
    assert names[1:] == ["?? (no-base)"] * 3, names
    # The call of the second leads to "stop", which calls nothing, not to the function of the first.
    names = names_of(map_line(library) + stack.format(BIAS + first, BIAS + next, BIAS + next), "--all")
    assert names[1:] == ["?? (no-base)"] * 3, names
    # gdb says that it is of another library.
    frame = f"#0  0x{BIAS + first:016x} in ?? ()"
    assert is_named(map_line(library) + frame + "\n") and is_named(map_line(library) + f"{frame} from {library}\n")
    assert not is_named(map_line(library) + frame + " from /usr/lib/libother.so\n")


@test("places: gdb's frames of 32 bits; after a handler only the next frame is exact; other lines of maps are no addresses")
def frames_of_gdb(_):
    path = fixed_steps()
    next = address_of(path, NEXT)
    exact, last = expected(path, next), expected(path, next, next - 1)
    check_names(f"#1  0x{next:08x} in ?? ()\n", [last], path)
    check_names(f"#1  <signal handler called>\n#2  0x{next:016x} in ?? ()\n", [None, exact], path)
    check_names(f"#1  <signal handler called>\n#2  crash (n=1) at nr.c:4\n#3  0x{next:016x} in ?? ()\n", [None, None, last], path)
    for rights in ("r--p", "rw-p", "r-xp", ""):
        check_names(f"  {next & ~0xfff:#x}     {next:#x}     {next:#x}     {next:#x}  {rights}   {path}\n", [None], path)


@test("places: a number that is a function's start after a call may be a return address: it has no name; a sanitizer's counts as it says")
def starts(_):
    library = steps("usual")
    next = address_of(library, NEXT)
    number = f"lr {BIAS + next:#x}\n"
    assert names_of(map_line(library) + number) == [None, None]
    header = f"==7==ERROR: AddressSanitizer: x on address 0x1 at pc {BIAS + next:#x} bp 0x1\n"
    want = expected(library, next, next - 1, by_path=True)
    assert re.fullmatch(want, names_of(header + map_line(library))[0])
    # Of another tool nothing is known: the program counter is exact.
    want = expected(library, next, by_path=True)
    assert re.fullmatch(want, names_of(header.replace("AddressSanitizer", "illegal instruction") + map_line(library))[0])


@test("places: the process of a line, behind any prefix; a list of frames is of one process")
def processes(_):
    one = steps("usual")
    number = bare(one)
    for first, second in (("web | ==77== ", "db  | ==78== "), ("==77== ", "2026-11-27 10:00:00 ==78== "), ("", "[   12.345678] other[5]: "),
                          ("a prog[1]: ", "b other[1]: "), ("", "==5== ")):
        assert not is_named(first + map_line(one) + second + number), (first, second)
        assert not first or is_named(first + map_line(one) + first + number), first
    frames = "".join(f"frame[{i}]: {BIAS + address_of(one, FUNCTION) + 1:#x}\n" for i in range(5))
    assert all(name and name.startswith(FUNCTION) for name in names_of(frames + map_line(one))[:5])


@test("places: a frame by file name, of which the report has a file that was deleted, has no name of another one")
def deleted(_):
    library = steps("usual")
    frame = f"C  [{os.path.basename(library)}+{Numbers(library).from_first(address_of(library, NEXT)):#x}]  f+0x1\n"
    gone = map_line(library, BIAS + 0x10000000).replace(library, "/v1/libsteps.so")
    assert names_of(frame + map_line(library))[0]
    assert names_of(frame + gone[:-1] + " (deleted)\n" + map_line(library))[0] is None


@test("places: a file that one map has at two addresses has names at both")
def twice(_):
    library = steps("usual")
    log = map_line(library) + map_line(library, BIAS + 0x1000000) + bare(library) + bare(library, BIAS + 0x1000000)
    assert all(name and name.startswith(f"{FUNCTION}+0x0 ") for name in names_of(log)[2:]), names_of(log)


@test("places: a return address that is after no call there is none of that module; the module keeps its other names")
def no_call(_):
    library = steps("usual")
    next, first = address_of(library, NEXT), address_of(library, "step_10")
    log = (map_line(library) + f"#1  0x{BIAS + first + 1:016x} in ?? ()\n#2  0x{BIAS + next:016x} in ?? ()\n" + pair_line(library))
    names = names_of(log, "--all")
    assert names[1:3] == ["?? (no-base)"] * 2 and names[3].startswith(f"{FUNCTION}+0xfc "), names

@test("places: more mappings than are kept tell nothing; a million lines of maps take memory and time as they are long")
def many(_):
    library = steps("usual")
    other = "".join(f"{0x100000000 + i * 0x2000:x}-{0x100001000 + i * 0x2000:x} r-xp 00000000 fe:00 1   /gone/{i}\n" for i in range(4095))
    assert is_named(other + map_line(library) + bare(library))
    more = "7000000-7001000 r-xp 00000000 fe:00 1   /gone/more\n"
    assert not is_named(other + map_line(library) + more + bare(library))
    # Neither when they are read one after the other.
    with Running([FATHOM, "filter", "--no-cache"]) as process:
        for part, n in (other, 4095), (map_line(library), 1), (more, 1), (map_line(library), 1):
            process.send(part)
            assert not any("  -> " in process.line() for _ in range(n))
        process.send(bare(library) + "\n")
        assert "  -> " not in process.line()
    # A file that one map has at two addresses has names at both, wherever the map is cut.
    with Running([FATHOM, "filter", "--no-cache"]) as process:
        for bias in BIAS, BIAS + 0x1000000:
            process.send(map_line(library, bias))
            process.line()
        for bias in BIAS, BIAS + 0x1000000:
            process.send(bare(library, bias))
            assert f"  -> {FUNCTION}+0x0 " in process.line(), bias
    hostile = "".join(f"{0xfffffffffff00000 - i * 0x1800:x}-{0xffffffffffff0000 - i * 0x1000:x} r-xp ffffffffffff0000 fe:00 1   /gone/{i % 7}\n"
                      for i in range(20000))
    assert set(names_of(hostile + "rip 0xffffffffffff0000\n")) == {None}

@test("places: a module without a path has that of the report's map, if it is the only one")
def paths(_):
    library = steps("usual")
    from_first = Numbers(library).from_first(address_of(library, NEXT))
    frame = f"C  [{os.path.basename(library)}+{from_first:#x}]  f+0x1\n"
    want = expected(library, address_of(library, NEXT), address_of(library, NEXT) - 1, by_path=True)
    check_names(frame + "\n" + map_line(library), [want, None, None])
    check_names(frame + "\n" + map_line(library) + map_line(steps("other", "-DMOVED"), BIAS + 0x10000000), [None] * 4)
    check_names(frame, [None])

@test("places: a report of a program, with its own addresses in memory alone and its map at the end, through a pipe line by line")
def of_a_program(folder):
    need_x86()
    program, report = crash("lld", True), backtrace("lld", True, "report-fd")
    lines = [line for line in report.log.splitlines() if stated(program, line)]
    # Frames as gdb has them, of the same addresses.
    frames = "".join(f"#{i + 1}  {int(re.search(r'.(0x[0-9a-f]+).$', line)[1], 16):#018x} in ?? ()\n" for i, line in enumerate(lines))
    tellers = "\n".join(lines) + "\n"
    wanted = [name for name in names_of(tellers, *program.options)]
    assert all(wanted) and len(wanted) > 5
    assert names_of(frames + tellers, *program.options)[:len(wanted)] == wanted
    assert names_of(tellers + frames, *program.options)[len(wanted):] == wanted
    with Running([FATHOM, "filter", "--no-cache", *program.options]) as process:
        process.send(tellers)
        for want in wanted:
            assert process.line().endswith("  -> " + want)
        for frame, want in zip(frames.splitlines(), wanted):
            process.send(frame + "\n")
            # It is held for what follows, and written without that.
            assert process.line() == f"{frame}  -> {want}"

@test("held: frames wait for their stack, a fatal error log for its end; no longer than a second without input, or 256 KiB")
def held(_):
    library = steps("usual")
    number = bare(library)
    head = "# A fatal error has been detected by the Java Runtime Environment:\n"
    def is_in_time():
        """Whether all happened within the second for which lines are held: then they were. A busy machine may be late."""
        with Running([FATHOM, "filter", "--no-cache"]) as process:
            begun = time.monotonic()
            process.send("before\n" + head + number)
            assert process.line() == "before"
            came_early = select.select([process.process.stdout], [], [], 0.3)[0]
            process.send(map_line(library) + "END.\n")
            lines = [process.line() for _ in range(4)]
            if time.monotonic() - begun >= 1:
                return False
            assert not came_early and lines[0] + "\n" == head
            assert lines[1].startswith(number[:-1] + f"  -> {FUNCTION}+0x0 ")
            assert lines[2] + "\n" == map_line(library) and lines[3] == "END."
            return True
    until(is_in_time, "a run without a break of a second")
    with Running([FATHOM, "filter", "--no-cache"]) as process:
        # Without an end.
        process.send(head + number)
        assert process.line() + "\n" == head and process.line() + "\n" == number
        # A second later nothing counts any more that comes.
        process.send(map_line(library))
        assert process.line() + "\n" == map_line(library)
        # Java says so on standard output, where the log does not follow; lines of other programs that begin with "at".
        for text in (head + "# An error report file with more information is saved as:\n# /tmp/hs_err_pid1.log\n", "\tat com.Foo.bar(Foo.java:1)\n"):
            process.send(text)
            assert "".join(process.line() + "\n" for _ in text.splitlines()) == text
        # Too much.
        process.send(head)
        writer = ("x" * 63 + "\n") * 16
        for _ in range((256 << 10) // len(writer) + 64):
            process.send(writer)
        assert process.line() + "\n" == head
        assert process.is_running()
        process.process.stdin.close()
        process.process.stdout.read()
        assert process.process.wait() == 0

@test("gdb: frames without symbols and its own map: the names that gdb finds in the file that is not stripped")
def gdb(_):
    program = crash("lld", True)
    with waits(program.bare["crash"]) as (process, text):
        done = execute("gdb", "-q", "-nx", "-batch", "-p", process.pid, "-iex", "set debuginfod enabled off", "-ex", "bt", "-ex",
                       "info proc mappings")
    if " r-xp " not in done.stdout:
        raise tap.Skip(f"gdb prints no rights of mappings here: {done.stderr.strip()}")
    # Without symbols: the debug file is nowhere that gdb looks.
    assert re.search(r"^#\d+ +0x\w{16} in \?\? \(\)", done.stdout, re.M), done.stdout
    report = Report(text + done.stdout)
    check_calls(program, report)

@test("perf script without callchains, with its events of mappings: the functions of the same samples by the file with symbols")
def perf(folder):
    need_x86()
    path = build_text(f"{folder}/busy", "#include <time.h>\nint main(int n, char **v)\n{\n\tdo\n\t\tfor (volatile long i = 0; i < 10000000; i++)\n\t\t\t;\n"
                      "\twhile (clock() < CLOCKS_PER_SEC);\n\treturn n > 9 || !v;\n}\n", "-g", "-O1", "-pie", "-fPIE", "-fno-plt")
    whole = shutil.copy(path, f"{folder}/whole")
    run("strip", "-o", path, whole)
    done = execute("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "199", "-o", f"{folder}/data", path)
    if done.returncode or not os.path.exists(f"{folder}/data"):
        raise tap.Skip(f"perf records nothing here: {done.stderr.strip().splitlines()[-1:]}")
    log = run("perf", "script", "-i", f"{folder}/data", "--show-mmap-events", "-F", "comm,pid,tid,time,event,ip,sym,dso")
    default = run("perf", "script", "-i", f"{folder}/data", "--show-mmap-events")
    os.replace(whole, path)
    names = added(log)
    by_default = [name for line, name in zip(default.splitlines(), added(default)) if "[unknown]" in line and f"({path})" in line]
    samples = [name for line, name in zip(log.splitlines(), names) if "[unknown]" in line and f"({path})" in line]
    assert len(samples) > 20, log[:3000]
    right = [name for name in samples if name and re.fullmatch(r"(main\+0x[0-9a-f]+ .*|_\w+\+0x.*) \(by path\)", name)]
    assert by_default == samples, by_default[:5]
    assert len(right) == len(samples) and sum(name.startswith("main+") for name in right) > 20, samples[:5]
