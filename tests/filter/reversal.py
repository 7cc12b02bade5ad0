# SPDX-License-Identifier: MIT
"""The log can be had back from what is written, whatever bytes it has; and hostile logs end no run, and cost little."""
import hashlib
import itertools
import os
import random
import subprocess
import threading

import tap

from amounts import amount
from ask import FATHOM, HANG_SECONDS
from building import build, build_text
from built import fixed_steps, folder_for, steps
from counting import is_instrumented
from formats import FUNCTION, NEXT, in_dir, lines
from suite import MARK, PROGRAMS, address_of, added, as_bytes, filtered, names_of, once, reversible, run_bytes, test, undone


def all_lines():
    """Lines of all formats that have names, in bytes."""
    library = lines()
    return [text.encode() for texts in (library.exact, library.returns, library.zero, library.suffix, library.fixed, library.lowered,
                                        library.thread, library.by_id, library.by_id_returns) for text in texts.values()]


def options():
    return in_dir(steps("usual"))


@test("reversal: what undoes it finds the last mark of each line, and knows no other")
def undoing(_):
    for output, log in [(b"", b""), (b"\n", b"\n"), (b"a\nb", b"a\nb"), (b"a  -> f\n", b"a\n"), (b"a  -> f\r\n", b"a\r\n"),
                        (b"a  -> b  -> \n", b"a  -> b\n"), (b"a  -> f", b"a"), (b"a  ->", b"a  ->"), (b"a\r  -> f", b"a\r"),
                        (b"a   -> f\n", b"a \n"), (b"a  -> f\n  -> x\n\nb", b"a\n\nb"), (b"a  -> f\n  -> x", b"a"),
                        (b"a  -> f\r\n  ->   x\r\nb", b"a\r\nb"), (b"  -> x  -> \n  -> y  -> f", b"  -> x\n  -> y")]:
        assert undone(output) == log, (output, undone(output))


@test("reversal: lines that hold the mark, or parts of it, with names and without")
def marks(_):
    frame = lines().returns["backtrace"]
    for end in ("\n", "\r\n"):
        for line in ("  -> ", "a  -> b", "  ->   -> ", "a  -> b  -> c", "  ->", " -> ", "   -> ", "a  -> " + "b" * 70000, "x  ->\t"):
            for last in (line, line + frame, frame + line + end):
                log = f"{line}{end}{line}{frame}{end}{frame}{end}{frame}{line}{end}{line} {frame}{end}{last}"
                output = reversible(log, *options())
                assert output.count(f"-> {FUNCTION}+0xfc ".encode()) >= 2, output
    # Without addresses a mark is all that such a line gets; others get nothing.
    assert filtered("a  -> b\nc\r\nd  -> \r\n", *options()) == b"a  -> b  -> \nc\r\nd  ->   -> \r\n"


@test("reversal: a line with names ends as it ended: with LF, CRLF, CR, or with nothing")
def ends(_):
    frame = lines().returns["backtrace"]
    for end in ("\n", "\r\n", "", "\r", "\n\r", "\r\r\n", "\n\n", "\0\n"):
        output = reversible(frame + end, *options())
        # What is between the address and the end is part of the line.
        if end != "\r" and not end.startswith("\r\r"):
            assert output.startswith((frame + ("\0" if end[:1] == "\0" else "") + f"  -> {FUNCTION}+0xfc ").encode()), output
        assert output.endswith(as_bytes(end.replace("\0", "").replace("\r\r", "\r")) if "\r" not in end or "\n" in end else b""), output


@test("reversal: names of files that hold the mark, line breaks or escapes change nothing")
def hostile_names(folder):
    path = build_text(f"{folder}/libodd.so", "\n".join(
        f'#line 7 "{name}.c"\n__attribute__((noinline)) void odd_{i}(void) {{ __builtin_trap(); }}'
        for i, name in enumerate(("a  -> b", "a  ->   -> b", "a\\nb", "a\\rb", "a\\033[31mb", "  -> ", "a\\n  -> b", "  ->")))
        + '\n__asm__(".globl \\"f  -> g\\"\\n.type \\"f  -> g\\", @function\\n\\"f  -> g\\": ud2\\n.size \\"f  -> g\\", 2\\n");\n',
        "-shared", "-fPIC")
    log = ""
    for i in range(8):
        log += f"==1==ERROR: AddressSanitizer: SEGV (pc 0x1)\n    #0 0x1  ({path}+{address_of(path, f'odd_{i}'):#x})\n"
    last = [value for value, name in symbols_with_blanks(path) if name == "f  -> g"]
    log += f"==1==ERROR: AddressSanitizer: SEGV (pc 0x1)\n    #0 0x1  ({path}+{last[0]:#x})\n"
    output = reversible(log)
    assert output.count(b"\n") == log.count("\n") and output.count(MARK) == 9, output
    assert not set(b"\r\x1b") & set(output), output
    names = names_of(log)[1::2]
    assert all(name.startswith(f"odd_{i}+0x0 ") for i, name in enumerate(names[:8])), names


def symbols_with_blanks(path):
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        if line[:1] != " ":
            yield int(line[:16], 16), line[19:]


def random_log(seed, n):
    """Lines of all kinds, cut and joined."""
    random_ = random.Random(seed)
    known = all_lines()
    noise = [bytes(range(256)), b"\xe2\x82", "\u20ac\U0001f600".encode(), b"\0\0", b"\x1b[31mred\x1b[0m\x1b]0;title\a", MARK, b"  ->",
             b"0x", b" pc ", b"#0 0x", b"(+0x1)[0x1]", b"[0x", b")", b"\xff" * 9, b" ip ", b" with build-id ", b"Module ", b"+0x"]
    made = []
    for _ in range(n):
        parts = [random_.choice(known) if random_.random() < 0.5 else random_.choice(noise) if random_.random() < 0.7
                 else random_.randbytes(random_.randrange(40)) for _ in range(random_.randrange(4))]
        line = b"".join(parts)
        if random_.random() < 0.2:
            line = line[:random_.randrange(len(line) + 1)]
        made.append(line + random_.choice([b"\n", b"\n", b"\r\n", b"", b"\n\n"]))
    return b"".join(made)


@test("reversal: random bytes among lines of all formats, from a file")
def random_bytes(folder):
    path = f"{folder}/log"
    n = 0
    for seed in range(6):
        log = random_log(seed, 1500)
        with open(path, "wb") as file:
            file.write(log)
        for more in ((), ("--all",), ("--all", fixed_steps()), ("--source=2",)):
            with open(path, "rb") as file:
                output = subprocess.run([FATHOM, "filter", "--no-cache", *options(), *more], stdin=file, capture_output=True,
                                        timeout=HANG_SECONDS, check=True).stdout
            assert undone(output) == log, (seed, more)
            n += output.count(b"-> " + FUNCTION.encode())
    assert n > 1500, n


def in_pieces(log, pieces, *more):
    """What fathom writes of @log that comes through a pipe in such pieces."""
    with subprocess.Popen([FATHOM, "filter", "--no-cache", *options(), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def write():
            with process.stdin as pipe:
                at = 0
                for size in pieces:
                    os.write(pipe.fileno(), log[at:at + size])
                    at += size
                    if at >= len(log):
                        break

        writer = threading.Thread(target=write)
        writer.start()
        output = process.stdout.read()
        writer.join()
        assert process.wait() == 0
    return output


@test("reversal: through a pipe in odd pieces, with the same names as from a file")
def odd_pieces(_):
    random_ = random.Random(5)
    # Each module of these is proved by its build-id, or was never shown to be another.
    log = b"\r\n".join(all_lines() * 3) + b"\n" + random_log(99, 100)
    sizes = {"bytes": [1] * len(log), "7": [7] * len(log), "odd": [random_.choice((1, 2, 3, 99, 4097)) for _ in range(len(log))]}
    good = b"\r\n".join(all_lines() * 3) + b"\n"
    whole = added(good, *options())
    assert sum(name is not None for name in whole) >= 80, whole
    for name, pieces in sizes.items():
        assert undone(in_pieces(log, pieces)) == log, name
        output = in_pieces(good, pieces)
        assert output == filtered(good, *options()), name


# In a long run a line of 100 MB, and a log of 1 GB.
LINE_MB, LOG_MB = amount(100, 5), amount(1024, 32)


@test(f"reversal: a line of {LINE_MB} MB, with an address at its start, at its end, or with none")
def long_line(_):
    frame = lines().returns["backtrace"].encode()
    n = LINE_MB << 20
    for line in (b"x" * n, MARK * (n // len(MARK)), frame + b" " * n, b" " * n + frame, b"\0" * n):
        log = frame + b"\n" + line + b"\r\n" + frame + b"\n" + line
        output = reversible(log, *options())
        assert output.count(f"-> {FUNCTION}+0xfc".encode()) >= 2, len(output)


@test("reversal: a batch that ends between any two lines, or within one, has the names of one batch")
def between_batches(folder):
    # Batches have 4 MB: the same report is before their end, in the midst of it, and behind it.
    report = b"\n".join(all_lines()) + b"\n"
    want = added(report * 3, *options())[:-1]
    for filler in ((4 << 20) - len(report) // 2, (4 << 20) - len(report) - 1, (4 << 20) - 1):
        log = b"y" * (filler - 1) + b"\n" + report * 3
        with open(f"{folder}/log", "wb") as file:
            file.write(log)
        with open(f"{folder}/log", "rb") as file:
            output = subprocess.run([FATHOM, "filter", "--no-cache", *options()], stdin=file, capture_output=True, check=True).stdout
        assert undone(output) == log
        names = [line.rpartition(MARK)[2].decode() if MARK in line else None for line in output.split(b"\n")]
        assert names[1:-1] == want, filler


# Hostile.

@test("hostile: modules that are devices, pipes, folders and the like have no names, and nothing waits for them")
def no_modules(folder):
    os.mkfifo(f"{folder}/fifo")
    os.symlink("loop", f"{folder}/loop")
    with open(f"{folder}/empty", "wb"):
        pass
    with open(f"{folder}/short", "wb") as file:
        file.write(b"\x7fELF")
    os.truncate(f"{folder}/short", 1 << 40)
    for module in ("/dev/zero", "/dev/full", "/dev/random", "/dev/stdin", "/proc/self/fd/0", "/proc/self/mem", "/proc/kmsg", "/dev/tty",
                   f"{folder}/fifo", folder, "/", "..", "../../..", "../" * 1500 + "dev/zero", f"{folder}/loop", f"{folder}/empty",
                   f"{folder}/short", "/" + "x" * 5000, f"{steps('usual')}/", "/proc/self/exe/x", "", "./", ".", "%s%n%p"):
        log = (f"{module}(+0x10)[0x10]\n"
               f"    #1 0x10  ({module}+0x10)\n"
               f"    #0 0x10  ({module}+0x10) (BuildId: ../../../zero)\n"
               f"#1  0x0000000000000010 n/a ({module} + 0x10)\n"
               f"      #01 pc 0000000000000010  {module}\n"
               f"C  [{module}+0x10]  x+0x1\n"
               f" 1: 0x10 x [{module}]\n"
               f"segfault at 0 ip 10 sp 0 error 6 in {module}[10,0+1000]\n")
        for name in names_of(log, "--all", "--module-dir", folder):
            assert name is None or name.startswith("?? ("), (module, name)


@test("hostile: a module's name with a NUL is not that of the file before the NUL")
def name_with_nul(_):
    line = lines().returns["backtrace"].replace("libsteps.so(", "libsteps.so\0x(")
    assert line.count("\0") == 1
    assert names_of(line + "\n") == [None]


@test("hostile: numbers that are too large, too long, or no numbers")
def odd_numbers(_):
    library = steps("usual")
    first = address_of(library, FUNCTION)
    for number in ("0xffffffffffffffff", f"0x1{first:016x}", f"0x{first:017x}", "0xg", "-0x1", "0x" + "f" * 1000,
                   f"0xffffffff{first:08x}"):
        bare = number.removeprefix("0x")
        for line in (f"{library}(+{number})[{number}]", f"    #0 0x1  ({library}+{number})", f"    #1 0x1  ({library}+{number})",
                     f"#1  0x{1:016x} n/a (libsteps.so + {number})", f"      #01 pc {bare}  {library}", f"      #00 pc {bare}  {library}",
                     f"C  [libsteps.so+{number}]  x", f"# C  [libsteps.so+{number}]  x", f" 1: {number} x [{fixed_steps()}]",
                     f"segfault at 0 ip {bare} sp 0 error 6 in libsteps.so[{bare},{bare}+1000]",
                     f"segfault at 0 ip {bare} sp 0 error 6 in libsteps.so[1000+{bare}]", f"{library}({NEXT}+{number})[0x1]"):
            for name in names_of(line + "\n", "--all", *options()):
                assert name is None or name.startswith("?? ("), (line, name)


@once
def peak_program():
    if is_instrumented(FATHOM) or os.environ.get("WRAPPER"):
        raise tap.Skip("an instrumented build needs more")
    return build(os.path.join(folder_for("peak"), "peak"), os.path.join(PROGRAMS, "..", "..", "bounds", "programs", "peak.c"))


def peak(folder, log, *more):
    """Asserts that the run of @log ends well; returns its output and its peak of memory in bytes."""
    with open(f"{folder}/log", "wb") as file:
        file.write(log)
    # A small program starts it: the peak of a child begins with its parent's.
    with open(f"{folder}/log", "rb") as source:
        output = run_bytes(peak_program(), f"{folder}/peak", FATHOM, "filter", "--no-cache", *more, stdin=source, status=0)
    assert undone(output) == log
    with open(f"{folder}/peak", encoding="ascii") as file:
        return output, int(file.read()) << 10


def texts_and_bytes(size):
    """Pieces of a log of @size bytes or a bit more: texts and binaries of this machine, random bytes, lines of all formats, by turns."""
    random_ = random.Random(1)
    paths = sorted(os.path.join(home, name) for top in ("/usr/include", "/usr/lib", "/usr/share") for home, _, names in os.walk(top) for name in names)
    paths = [path for path in random_.sample(paths, 4000) if os.path.isfile(path) and os.access(path, os.R_OK)]
    known = b"\n".join(all_lines()) + b"\n"
    for i in itertools.count():
        with open(paths[i % len(paths)], "rb") as file:
            texts = file.read(4 << 20)
        for piece in (texts, b"\r\n", random_.randbytes(1 << 12), known, random_log(i, 20)):
            yield piece
            size -= len(piece)
        if size <= 0:
            break
    # The last line has no end.
    yield b"0x1"


@test(f"reversal: {LOG_MB} MB of texts, binaries, random bytes and lines of all formats: each byte is there, in less than 200 MB of memory")
def large_log(folder):
    sent, back = hashlib.sha256(), hashlib.sha256()
    names = 0
    # Where an instrumented build needs more, nothing is said of memory.
    is_bounded = not is_instrumented(FATHOM) and not os.environ.get("WRAPPER")
    measuring = (peak_program(), f"{folder}/peak") if is_bounded else ()
    with subprocess.Popen([*measuring, FATHOM, "filter", "--no-cache", *options()], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def write():
            with process.stdin as pipe:
                for piece in texts_and_bytes(LOG_MB << 20):
                    sent.update(piece)
                    pipe.write(piece)

        writer = threading.Thread(target=write)
        writer.start()
        # A line is cut with the end of the one before it: it may be dropped, with that end.
        rest = b""
        while got := process.stdout.read(8 << 20):
            names += got.count(MARK + FUNCTION.encode())
            whole, end, rest = (rest + got).rpartition(b"\n")
            back.update(undone(whole))
            rest = end + rest
        back.update(undone(rest))
        writer.join()
        assert process.wait() == 0
    assert sent.digest() == back.digest() and names > LOG_MB, names
    if is_bounded:
        with open(f"{folder}/peak", encoding="ascii") as file:
            peak_kb = int(file.read())
        assert peak_kb < 200 << 10, peak_kb


@test("hostile: 200,000 names of modules: no more than 200 MB of memory")
def many_modules(folder):
    log = b"".join(b"/no/where/lib%d.so(+0x%x)[0x7f%x]\n" % (i, i, i) for i in range(200000))
    output, memory = peak(folder, log, "--all")
    assert output.count(b"  -> ?? (no-file)\n") == 200000 and memory < 200 << 20, memory


@test("hostile: 200,000 modules with build-ids that no line uses: no more than 200 MB of memory")
def many_build_ids(folder):
    log = b"".join(b"Module lib%d.so with build-id %040x\n" % (i, i) for i in range(200000))
    output, memory = peak(folder, log, "--all")
    assert output == log and memory < 200 << 20, memory


@test("hostile: 10 MB of addresses in one line: no more than 200 MB of memory")
def many_addresses(folder):
    for part in (b"(+0x1)[0x1]", b"step_80+0x1/0xfc ", b"0x1234 ", b"#0 0x1 (", b"[0x"):
        _, memory = peak(folder, part * ((10 << 20) // len(part)) + b"\n", fixed_steps())
        assert memory < 200 << 20, (part, memory)


@test("hostile: 200,000 kernel symbols, most of them in no file: no more than 200 MB of memory")
def many_symbols(folder):
    log = b"".join(b" nothing_%d+0x1/0x2\n" % (i % 70000) for i in range(200000)) + b"RIP: 0010:step_80+0x0/0xfc\n"
    output, memory = peak(folder, log, fixed_steps())
    assert output.endswith(b"\n") and output.count(b"  -> step_80+0x0 ") == 1 and output.count(MARK) == 1
    assert memory < 200 << 20, memory
