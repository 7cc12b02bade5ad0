# SPDX-License-Identifier: MIT
"""Reports that programs really make, each with the program's own record of its calls."""
import itertools
import os
import re
import shutil
import subprocess
import threading

import tap

from ask import execute, run
from building import build_text
from built import Report, crash, elf_kind, sanitized, segments, waits
from running import Running
from suite import address_of, added, check_names, expected, lines_in, need_x86, objects, once, test, undone, filtered

LINKERS = ("bfd", "gold", "lld")


def records_of_ours(program, log, *options):
    """The objects of addresses in the program and its library."""
    return [r for r in objects(log, *program.options, *options) if program.ours(r["log_module"] or "")]


def check_calls(program, report, *options):
    """The functions and lines of the report's frames are those of the calls, inlined ones and all."""
    # The program counter in the header of a sanitizer's report is that of the first frame.
    records = records_of_ours(program, report.log, *options)
    while records and records[0]["base"] == "mapped" and records[0]["format"] == "sanitizer":
        (header, *records) = records
        assert lines_in(header) == lines_in(records[0]), (header, records[0])
    found = [frame for record in records for frame in lines_in(record)]
    assert found[:len(report.calls)] == report.calls, f"{found}\n{report.calls}\n{report.log}"
    return records


# backtrace(3).

@once
def backtrace(linker, pie, how):
    program = crash(linker, pie)
    return Report(run(program.bare["crash"], how))


# PATH(SYMBOL+0xOFFSET) [0xADDRESS]
BACKTRACE = re.compile(r"(\S+?)(?:\((\w*)(?:\+(0|0x[0-9a-f]+))?\))? ?\[(0x[0-9a-f]+)\]")


def stated(program, line):
    """(unstripped file, stated address) of a line of backtrace_symbols(3); None of other modules."""
    path, symbol, offset, live = BACKTRACE.fullmatch(line).groups()
    whole = program.ours(path)
    if not whole:
        return None
    if elf_kind(whole) == 2:
        # The program's own; glibc 2.36 prints nothing else of it.
        return whole, int(live, 16)
    return whole, int(offset, 16) + (address_of(whole, symbol) if symbol else 0)


def check_backtrace(linker, pie, how):
    program, report = crash(linker, pie), backtrace(linker, pie, how)
    assert elf_kind(program.whole["crash"]) == (3 if pie else 2)
    check_calls(program, report)
    lines = [line for line in report.log.splitlines() if stated(program, line)]
    is_exact = False
    wanted = []
    for line in report.log.splitlines():
        if not stated(program, line):
            is_exact = "libc.so.6" in line and "signal" in how and not is_exact
            continue
        whole, address = stated(program, line)
        # _start has no lines.
        if address_of(program.whole["crash"], "_start") <= address < address_of(program.whole["crash"], "_start") + 0x30 \
                and whole == program.whole["crash"]:
            wanted.append(r"_start\+0x[0-9a-f]+ \(by path\)")
        else:
            wanted.append(expected(whole, address, address if is_exact else address - 1, by_path=True))
        is_exact = False
    names = [n for n, line in zip(added(report.log, *program.options), report.log.splitlines()) if line in lines]
    assert len(names) == len(wanted) > 5
    for line, name, want in zip(lines, names, wanted):
        assert re.fullmatch(want, name or ""), f"{line}\n{name}\n{want}"


def add_backtrace(linker, pie, how):
    @test(f"backtrace: {how}, {linker}, {'PIE' if pie else 'no-PIE'}: frames are the program's own record, and addr2line's")
    def _(_):
        check_backtrace(linker, pie, how)


# Each way with each linker, and each kind of program.
for cell, way in zip(itertools.product(LINKERS, (True, False)),
                     itertools.cycle(("report-fd", "signal-symbols", "signal-fd", "report-symbols"))):
    add_backtrace(*cell, way)
add_backtrace("lld", True, "signal-symbols")


@test("backtrace: the frame that a signal interrupted is its first instruction: one byte less is another function")
def interrupted(_):
    program, report = crash("lld", True), backtrace("lld", True, "signal-fd")
    fault = address_of(program.whole["libcrash.so"], "fault")
    lines = report.log.splitlines()
    at = next(i for i, line in enumerate(lines) if stated(program, line) == (program.whole["libcrash.so"], fault))
    assert "libc.so.6" in lines[at - 1], report.log
    names = added(report.log, *program.options)
    assert re.fullmatch(expected(program.whole["libcrash.so"], fault, by_path=True), names[at]), names[at]
    assert names[at].startswith("fault+0x0 "), names[at]


@test("backtrace: each line that is written for itself gets the names that it gets in a file, also after a signal")
def line_by_line(_):
    program, report = crash("lld", True), backtrace("lld", True, "signal-fd")
    with Running([os.environ.get("FATHOM", "fathom"), "filter", "--no-cache", *program.options]) as fathom:
        lines = []
        for line in report.log.splitlines():
            fathom.send(line + "\n")
            lines.append(fathom.line())
    whole = filtered(report.log, *program.options).decode().splitlines()
    wrong = [f"for itself: {a}\nin a file:  {b}" for a, b in zip(lines, whole) if a != b]
    assert not wrong and len(lines) == len(whole), "\n".join(wrong)


@test("backtrace: where libc is not here, the frame that a signal interrupted has its own name, or none")
def interrupted_without_libc(_):
    program, report = crash("lld", True), backtrace("lld", True, "signal-fd")
    fault = address_of(program.whole["libcrash.so"], "fault")
    log = re.sub(r"^\S*/libc\.so\.6", "/gone/libc.so.6", report.log, flags=re.M)
    lines = log.splitlines()
    at = next(i for i, line in enumerate(lines) if stated(program, line) == (program.whole["libcrash.so"], fault))
    assert lines[at - 1].startswith("/gone/"), log
    name = added(log, *program.options)[at]
    assert name is None or name.startswith("fault+0x0 "), name


CONTEXT = """
#include <execinfo.h>
#include <stdlib.h>
#include <ucontext.h>

static char stack[65536];
static ucontext_t first, second;

static int compare(const void *a, const void *b)
{
	void *frames[32];

	backtrace_symbols_fd(frames, backtrace(frames, 32), 1);
	_Exit(a == b);
}

static void work(void)
{
	int numbers[] = { 3, 2, 1 };

	qsort(numbers, 3, sizeof *numbers, compare);
}

int main(void)
{
	getcontext(&second);
	second.uc_stack.ss_sp = stack;
	second.uc_stack.ss_size = sizeof stack;
	second.uc_link = &first;
	makecontext(&second, work, 0);
	return swapcontext(&first, &second);
}
"""


@test("backtrace: on a stack of makecontext(3), whose last frame nothing has called, its module keeps its names")
def context(folder):
    need_x86()
    path = build_text(f"{folder}/context", CONTEXT)
    log = run(path)
    names = dict(zip(log.splitlines(), added(log, "--all")))
    if "libc.so.6" not in log.splitlines()[-1] or "(qsort_r+0x" not in log:
        raise tap.Skip(f"this libc has other frames: {log}")
    for line, name in names.items():
        symbol = re.search(r"\((\w+)\+0x[0-9a-f]+\)", line)
        # Where libc's debug information is there, an inlined copy may stand in front.
        assert not symbol or re.search(rf"(^|inlined into ){symbol[1]}\b", name), f"{line}\n{name}"


@test("a library linked by lld: stated addresses and offsets in the file differ, also without symbols")
def offsets_differ(_):
    for path in (crash("lld", True).bare["libcrash.so"], crash("lld", True).whole["libcrash.so"]):
        assert all(vaddr - offset == 0x1000 for vaddr, offset, is_code in segments(path) if is_code), segments(path)


# Sanitizers.

FRAME = re.compile(r"\s*#(\d+) (?:0x[0-9a-f]+|<null> <null>)\s.*\(([^ ()]+)\+(0x[0-9a-f]+)\).*")


def sanitizer_log(program, how, options="symbolize=0"):
    # Where the command under test is instrumented, tests/run has set all of these; clang's ASan obeys UBSan's, too.
    env = dict(os.environ, **{f"{name}_OPTIONS": f"{options}:log_path=stdout" for name in ("ASAN", "TSAN", "UBSAN")})
    return execute(program.bare[program.names[0]], how, stderr=subprocess.STDOUT, env=env).stdout


def check_sanitizer(program, log, *options):
    """How many frames of the program are what llvm-symbolizer says of the same numbers: all that have lines."""
    names = added(log, *options)
    found = 0
    for line, name in zip(log.splitlines(), names):
        m = FRAME.fullmatch(line)
        whole = m and program.ours(m[2])
        if not whole:
            continue
        text = expected_or_none(whole, int(m[3], 16), "BuildId" not in line)
        if text:
            assert name and re.fullmatch(text, name), f"{line}\n{name}\n{text}"
            found += 1
    return found


def expected_or_none(whole, number, by_path):
    """None where the tools know no line: code that the compiler's libraries brought."""
    try:
        text = expected(whole, number, by_path=by_path)
    except AssertionError:
        return None
    return text if "programs" in text else None


SANITIZED = {
    "gcc": ("gcc", "address"),
    "clang PIE": ("clang", "address", "-fuse-ld=lld"),
    "clang no-PIE": ("clang", "address", "-fuse-ld=lld", "-no-pie"),
}


def first_stack(report):
    """The report's first stack alone, with the same calls."""
    start = report.log.index("    #0 ")
    first = Report("told\n" + report.log[:report.log.index("\n\n", start) + 1])
    first.calls = report.calls
    return first


def add_address(name, how):
    @test(f"AddressSanitizer: {how}, {name}: frames are the program's own record, and llvm-symbolizer's")
    def _(_):
        program = sanitized(*SANITIZED[name])
        report = Report(sanitizer_log(program, how))
        assert "ERROR: AddressSanitizer" in report.log, report.log
        records = check_calls(program, first_stack(report))
        assert {r["kind"] for r in records[1:]} == {"lowered"} and records[0]["kind"] == ("exact" if how == "segv" else "lowered")
        assert check_sanitizer(program, report.log, *program.options) >= 4, report.log
        # gcc's has them since 13.
        assert "BuildId" in report.log or name == "gcc", report.log


for name, how in itertools.product(SANITIZED, ("overflow", "segv")):
    add_address(name, how)


def add_in_handler(name):
    @test(f"AddressSanitizer: a report that is made in a signal's handler, {name}: frames are the program's own record")
    def _(_):
        program = sanitized(*SANITIZED[name])
        report = Report(sanitizer_log(program, "signal-overflow", "symbolize=0:handle_segv=0"))
        assert "heap-buffer-overflow" in report.log and [name for name, _ in report.calls[:3]] == ["overflow", "handler", "fault"]
        check_calls(program, first_stack(report))


add_in_handler("gcc")
add_in_handler("clang PIE")


def add_thread(compiler):
    @test(f"ThreadSanitizer: {compiler}: frames without an address in memory, modules without a path")
    def _(_):
        program = sanitized(compiler, "thread")
        # It can miss a race.
        log = next((log for log in (sanitizer_log(program, "") for _ in range(60)) if "data race" in log), "no data race was found 60 times")
        if "WARNING: ThreadSanitizer" not in log:
            raise tap.Skip(f"ThreadSanitizer does not work here: {log.strip().splitlines()[:1]}")
        folder = os.path.dirname(program.bare["race"])
        assert check_sanitizer(program, log, "--module-dir", folder, *program.options) >= 4, log
        records = records_of_ours(program, log, "--module-dir", folder)
        race = [lines_in(r)[0][0] for r in records]
        assert race[:2] in (["raise_it", "main"], ["raise_it", "work"]), race


add_thread("gcc")
add_thread("clang")


# eu-stack.

def add_eu_stack(linker, pie):
    @test(f"eu-stack of a waiting process, {linker}, {'PIE' if pie else 'no-PIE'}: frames are the program's own record")
    def _(_):
        if not shutil.which("eu-stack"):
            raise tap.Skip("eu-stack is not installed")
        program = crash(linker, pie)
        with waits(program.bare["crash"]) as (process, text):
            done = execute("eu-stack", "-m", "-b", "-p", process.pid)
        if "libcrash.so" not in done.stdout:
            raise tap.Skip(f"eu-stack reads no process here: {done.stderr.strip()}")
        report = Report(text + done.stdout)
        records = check_calls(program, report)
        assert {(r["format"], r["base"]) for r in records} == {("eu-stack", "first-mapping")}
        assert not any(r["by_path"] for r in records), records
        # From where eu-stack says that the library is.
        for record in records:
            whole = program.ours(record["log_module"])
            base = segments(whole)[0][0]
            want = expected_or_none(whole, int(record["text"], 16) + base, False)
            assert not want or re.fullmatch(want, names_at(program, report.log, record["line"])), record


def names_at(program, log, number):
    return added(log, *program.options)[number - 1]


add_eu_stack("lld", True)
add_eu_stack("gold", False)


# The kernel. Lines of programs that end at one time would stand between each other's.

KERNELS_LOG = threading.Lock()


def kernels_lines(pid, command):
    """The line that the kernel has logged of a process that it ended, and the next one."""
    done = execute("dmesg")
    if done.returncode:
        raise tap.Skip(f"the kernel's log cannot be read: {done.stderr.strip()}")
    lines = done.stdout.splitlines() + [""]
    found = [i for i, line in enumerate(lines) if f"{os.path.basename(command)}[{pid}]" in line and " in " in line]
    if not found:
        raise tap.Skip("the kernel has logged nothing of the program (kernel.print-fatal-signals, or too many)")
    return lines[found[-1]:found[-1] + 2]


def add_kernel(how, words):
    @test(f"the kernel's log: {how}: the instruction of a library that lld has linked")
    def _(_):
        program = crash("lld", True)
        with KERNELS_LOG, Running([program.bare["crash"], how]) as process:
            report = Report(process.process.stdout.read())
            process.process.wait()
        line, _ = kernels_lines(process.pid, program.bare["crash"])
        assert words in line, line
        folder = os.path.dirname(program.bare["crash"])
        function, number = report.calls[0]
        whole = program.whole["libcrash.so"]
        check_names(line + "\n", [expected(whole, address_of(whole, function), by_path=True)],
                    "--module-dir", folder, *program.options)
        (record,) = objects(line, "--module-dir", folder, *program.options)
        assert lines_in(record) == [(function, number)], record
        # Before 6.7 the kernel told no offsets.
        base = "file-offset" if re.search(r"\[[0-9a-f]+,[0-9a-f]+\+", line) else "code-mapping"
        assert (record["base"], record["kind"]) == (base, "exact"), record
        assert undone(filtered(line, "--module-dir", folder)) == line.encode()


add_kernel("segv", "segfault at")
add_kernel("trap", "invalid opcode")
