# SPDX-License-Identifier: MIT
"""Lines of each format, written by hand with numbers of files that readelf and nm know. What a number means follows from the
format alone: each other reading is another function."""
import os
import re
import shutil

from ask import run
from building import build_id, debug_path
from built import Numbers, arm_steps, elf_kind, fixed_steps, steps
from suite import address_of, check_names, expected, function_at, names_of, objects, once, test

# The function that all lines are about; the last instruction before NEXT is its call.
FUNCTION, NEXT = "step_80", "step_81"
# Where the library was.
BIAS = 0x7fcf3d300000


class Lines:
    """Lines of all formats for the first instruction of FUNCTION, or for its last one, a call. Those in @by_id have the
    library's build-id."""

    def __init__(self, library, program):
        self.library, self.program = library, program
        numbers = Numbers(library)
        self.numbers, id = numbers, build_id(library)
        first, next = address_of(library, FUNCTION), address_of(library, NEXT)
        fixed = address_of(program, NEXT)
        base = os.path.basename(library)
        offset, from_first = numbers.offset(first), numbers.from_first(next)
        code = BIAS + (numbers.code & ~0xfff)
        segv = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000008 (pc 0x7f3d671aa760 bp 0x7ffc4fb5bf10 T0)\n"
        module = f"Module {library} with build-id {id}\n"
        frame = f"#1  0x{BIAS + next:016x} {FUNCTION} - {library}\n"
        self.exact = {
            "sanitizer, first frame of a signal": f"{segv}    #0 {BIAS + first:#x}  ({library}+{first:#x})",
            "segfault": f"prog[3056]: segfault at 8 ip {BIAS + first:016x} sp 00007fff1bdd1380 error 6 in "
                        f"{base}[{offset:x},{code:x}+a000] likely on CPU 0 (core 0, socket 0)",
            "segfault of Linux before 6.7": f"prog[3056]: segfault at 8 ip {BIAS + first:016x} sp 00007fff1bdd1380 error 6 in "
                                            f"{base}[{code:x}+{numbers.code_size:x}]",
            "trap": f"traps: prog[3063] trap invalid opcode ip:{BIAS + first:x} sp:7ffc681dfaf0 error:0 in "
                    f"{base}[{offset:x},{code:x}+a000]",
            "coredump, first frame": f"#0  0x{BIAS + first:016x} n/a ({base} + {numbers.from_first(first):#x})",
            "hotspot, problematic frame": f"# C  [{base}+{numbers.from_first(first):#x}]  {FUNCTION}+0x0",
            "hotspot, first native frame": "Native frames: (J=compiled Java code, j=interpreted, Vv=VM code, C=native code)\n"
                                           f"C  [{base}+{numbers.from_first(first):#x}]  {FUNCTION}+0x0",
            "tombstone, first frame": f"      #00 pc {first:016x}  {library} ({FUNCTION})",
        }
        self.returns = {
            "llvm": f" #3 0x{BIAS + next:016x} ({library}+{next:#x})",
            "llvm with a name": f" #3 0x{BIAS + next:016x} f(int (*)(char), (anonymous namespace)::g) ({library}+{next:#x})",
            "backtrace": f"{library}(+{next:#x}) [{BIAS + next:#x}]",
            "backtrace_fd": f"{library}(+{next:#x})[{BIAS + next:#x}]",
            # dladdr(3) finds the function after the call.
            "backtrace_fd with a symbol": f"{library}({NEXT}+0x0)[{BIAS + next:#x}]",
            "backtrace with an earlier symbol": f"{library}(step_10+{next - address_of(library, 'step_10'):#x}) [{BIAS + next:#x}]",
            "hotspot": f"C  [{base}+{from_first:#x}]  {FUNCTION}+0xfc",
            "hotspot, of the machine": f"V  [{base}+{from_first:#x}]  {FUNCTION}+0xfc",
            "coredump": f"#12 0x{BIAS + next:016x} n/a ({base} + {from_first:#x})",
        }
        # printf(3) writes zero without 0x, even with %#tx; and LLVM's demangler suffixes in parentheses.
        self.zero = {"backtrace with a symbol": f"{library}({NEXT}+0) [{BIAS + next:#x}]"}
        self.suffix = {
            "llvm": f" #3 0x{BIAS + next:016x} ns::f(int) (.part.0) ({library}+{next:#x})",
            "llvm, two": f" #3 0x{BIAS + next:016x} ns::f(int) (.isra.0) (.cold) ({library}+{next:#x})",
        }
        # Of programs at fixed addresses.
        self.fixed = {
            "backtrace": f"{program}() [{fixed:#x}]",
            "backtrace_fd": f"{program}[{fixed:#x}]",
            "node": f" 4: {fixed:#x} v8::Function::Call() [{program}]",
            "node without a name": f"12: {fixed:#x}  [{program}]",
        }
        first = address_of(program, FUNCTION)
        self.go_exact = {
            "go, signal": f"[signal SIGSEGV: segmentation violation code=0x1 addr=0x8 pc={first:#x}]",
            "go, signal in C": f"PC={first:#x} m=0 sigcode=1",
        }
        self.go_returns = {
            "go": f"\t/src/x.go:18 +0x59 fp=0xc00006af08 sp=0xc00006aef0 pc={fixed:#x}",
            "go, at a function's start": f"\t/src/x.go:18 fp=0xc00006af08 sp=0xc00006aef0 pc={fixed:#x}",
            "go, of C": f"non-Go function at pc={fixed:#x}",
            "go, of C, without a name": f"\tpc={fixed:#x}",
        }
        # A library of the program's finds the frames of C.
        self.go_lowered = {k: v.replace(f"{fixed:#x}", f"{fixed - 1:#x}") for k, v in self.go_returns.items() if "of C" in k}
        self.lowered = {
            "sanitizer": f"    #1 {BIAS + next - 1:#x}  ({library}+{next - 1:#x})",
            "sanitizer with a name": f"    #11 {BIAS + next - 1:#x} in ns::f(int) ({library}+{next - 1:#x})",
            "tombstone": f"      #01 pc {next - 1:016x}  {library} ({FUNCTION}+251)",
            "tombstone of 32 bits": f"      #01 pc {next - 1:08x}  {library}",
            "tombstone, in an APK": f"      #07 pc {next - 1:016x}  /data/app/base.apk!{base} (offset 0x1000) ({FUNCTION}+251)",
        }
        self.thread = {
            "without a name": f"    #0 <null> <null> ({base}+{next - 1:#x})",
            "with a name": f"    #5 f(int) <null> ({base}+{next - 1:#x})",
        }
        self.by_id = {
            "sanitizer": f"    #1 {BIAS + next - 1:#x}  (/gone/{base}+{next - 1:#x}) (BuildId: {id})",
            "tombstone": f"      #01 pc {next - 1:016x}  /gone/{base} ({FUNCTION}+251) (BuildId: {id})",
            "eu-stack": f"{frame.replace(library, '/gone/' + base)}    [{id}]@{BIAS + numbers.first:#x}+{from_first - 1:#x}",
        }
        self.by_id_returns = {"coredump": f"{module.replace(library, base)}#1  0x{BIAS + next:016x} n/a ({base} + {from_first:#x})"}


@once
def lines():
    return Lines(steps("usual"), fixed_steps())


def wanted(library, kind, by_path=True):
    """The name that all lines of @kind get."""
    first, next = address_of(library, FUNCTION), address_of(library, NEXT)
    address, lowered = {"exact": (first, None), "return": (next, next - 1), "lowered": (next - 1, None),
                        "return of 4": (next, next - 4), "lowered of 4": (next - 4, None)}[kind]
    return expected(library, address, lowered, by_path)


def check(library, texts, kind, *options, by_path=True):
    """The last line of each of @texts is about FUNCTION; what is before it has no address."""
    want, wrong = wanted(library, kind, by_path), []
    for name, text in texts.items():
        log = text + "\n"
        try:
            check_names(log, [None] * (log.count("\n") - 1) + [want], *options)
        except AssertionError as failure:
            wrong.append(f"{name}: {failure}")
    assert not wrong, "\n".join(wrong)


@test("one instruction in all formats: each other reading of its numbers is another function")
def other_readings(_):
    library, program = steps("usual"), fixed_steps()
    numbers = Numbers(library)
    # Code is at another distance in memory, in the file, and as stated.
    first, next = address_of(library, FUNCTION), address_of(library, NEXT)
    readings = {first, numbers.offset(first), numbers.from_first(first)}
    assert len(readings) == 3, readings
    for number, other in [(first - 1, "step_79"), (next, NEXT), (next - 1, FUNCTION)]:
        assert function_at(library, number)[0] == other, number
    # A number of one kind, read as one of another.
    distances = (first - numbers.offset(first), first - numbers.from_first(first), numbers.from_first(first) - numbers.offset(first))
    for distance in distances:
        assert distance >= 0x1000, distances
        for number in (first + distance, first - distance, next + distance, next - distance):
            name = function_at(library, number)[0]
            assert name.startswith("step_") and name != FUNCTION, (distance, number)
    assert function_at(library, first - (numbers.code & ~0xfff))[0] != FUNCTION
    assert elf_kind(program) == 2 and elf_kind(library) == 3
    assert function_at(program, address_of(program, NEXT) - 1)[0] == FUNCTION


def in_dir(path):
    return "--module-dir", os.path.dirname(path)


@test("formats of exact instructions: the function, not the one before")
def exact(_):
    check(steps("usual"), lines().exact, "exact", *in_dir(steps("usual")))


@test("formats of return addresses: the function that called, not the one after its call")
def returns(_):
    check(steps("usual"), lines().returns, "return", *in_dir(steps("usual")))


@test("formats of return addresses in programs at fixed addresses, without offsets")
def fixed_returns(_):
    check(fixed_steps(), lines().fixed, "return")
    check(fixed_steps(), {k: v.replace(fixed_steps(), "steps") for k, v in lines().fixed.items()}, "return", *in_dir(fixed_steps()))


@test("Go: the instruction of a signal, also where its frame has it again; callers; C, whose numbers may be lowered")
def go(_):
    program = fixed_steps()
    exact, text = wanted(program, "exact", False), lines().go_exact["go, signal"]
    frame = f"\t/src/x.go:18 fp=0xc00006af08 sp=0xc00006aef0 pc={address_of(program, FUNCTION):#x}"
    for log in text, lines().go_exact["go, signal in C"]:
        check_names(f"{log}\n\ngoroutine 1 [running]:\nmain.main()\n{frame}\n", [exact, None, None, None, exact], program)
    # Without the signal, a function does not call before it begins.
    check_names(f"goroutine 1 [running]:\nmain.main()\n{frame}\n", [None, None, expected(program, address_of(program, FUNCTION), address_of(program, FUNCTION) - 1, False)], program)
    check(program, lines().go_returns, "return", program, by_path=False)
    check(program, lines().go_lowered, "lowered", program, by_path=False)
    # Neither has an address that the runtime would print so.
    for other in f"x pc={address_of(program, FUNCTION):#x}", f"\tpc={address_of(program, FUNCTION):#x} of it":
        check_names(other + "\n", [expected(program, address_of(program, FUNCTION), None, False)], program)


@test("formats of lowered addresses: the function that called")
def lowered(_):
    check(steps("usual"), lines().lowered, "lowered", *in_dir(steps("usual")))


@test("backtrace_symbols(3) of a return address at a function's start: +0 without 0x")
def zero(_):
    check(steps("usual"), lines().zero, "return", *in_dir(steps("usual")))


@test("names with suffixes in parentheses before the module, as LLVM's demangler has them")
def suffixes(_):
    texts = {k: v.replace(steps("usual"), "/gone/libsteps.so") for k, v in lines().suffix.items()}
    check(steps("usual"), lines().suffix, "return")
    check(steps("usual"), texts, "return", *in_dir(steps("usual")))


@test("frames of ThreadSanitizer: no address in memory, modules without a path")
def thread_frames(_):
    library = steps("usual")
    check(library, lines().thread, "lowered", *in_dir(library))
    with_id = {k: f"{v} (BuildId: {build_id(library)})" for k, v in lines().thread.items()}
    check(library, with_id, "lowered", *in_dir(library), by_path=False)


@test("formats with build-ids: found below the debug directory, wherever the log says that the file was")
def by_build_id(folder):
    library = steps("usual")
    path = debug_path(folder, build_id(library))
    for name in (path, path.removesuffix(".debug")):
        shutil.copy(library, name)
        for texts, kind in ((lines().by_id, "lowered"), (lines().by_id_returns, "return")):
            # No module directory knows it.
            check(library, {k: v.replace("libsteps.so", "libgone.so") for k, v in texts.items()}, kind, "--debug-dir", folder,
                  by_path=False)
        os.remove(name)


# With a blank at their end, and without.
PREFIXES = ["Nov 27 17:46:01 host prog[1234]: ", "2026-11-27T17:46:01.123456+01:00 ", "[ 2505.239092] ", "web-1  | ",
            "E/DEBUG   (12345): ", "#1 worker (a) [b]: ", "11-27 17:46:01.123  1234  1235 F DEBUG   : "]
TIGHT = ["==1234==", "\x1b[31m", "<6>"]


def add_prefixes(name, texts_of, target=lambda: ()):
    @test(f"{name} lines behind any prefix: time stamps, names of processes, colours")
    def _(_):
        log, wrong = [], {}
        for name, text in texts_of(lines()).items():
            # A path is a word: what stands before it without a blank is of it.
            for prefix in PREFIXES + ([] if text.split("\n")[-1].startswith("/") else TIGHT):
                log += [(name, prefix, line == text.split("\n")[-1], line) for line in text.split("\n")]
        names = names_of("".join(f"{prefix}{line}\n" for _, prefix, _, line in log), *in_dir(steps("usual")), *target())
        for (name, prefix, is_last, _), found in zip(log, names):
            # Lines before the last are headers.
            if bool(found) != is_last or (found and not found.startswith(FUNCTION + "+")):
                wrong.setdefault(name, []).append((prefix, found))
        assert not wrong, "\n".join(f"{name}: behind {len(found)} prefixes, such as {found[0]}" for name, found in wrong.items())


def part(texts, *words, has=True):
    return {k: v for k, v in texts.items() if any(word in k for word in words) == has}


add_prefixes("exact", lambda l: part(l.exact, "hotspot", has=False))
add_prefixes("Go's", lambda l: l.go_returns, lambda: [fixed_steps()])
add_prefixes("return address", lambda l: part(l.returns | l.fixed, "hotspot", "node", has=False))
add_prefixes("lowered", lambda l: l.lowered)
add_prefixes("ThreadSanitizer's", lambda l: l.thread)
add_prefixes("hotspot's", lambda l: part(l.exact | l.returns, "hotspot"))
add_prefixes("node's", lambda l: part(l.fixed, "node"))


def by_kinds():
    return ("exact", lines().exact), ("return", lines().returns), ("lowered", lines().lowered)


@test("files that a log names by their last part: in a module directory, or TARGET")
def named_alike(_):
    library = steps("usual")
    for kind, texts in by_kinds():
        gone = {k: v.replace(library, "/gone/libsteps.so") for k, v in texts.items()}
        check(library, gone, kind, library)
        check(library, gone, kind, "--module-dir", "/", *in_dir(library))
        assert names_of("\n".join(gone.values()) + "\n") == [None] * sum(v.count("\n") + 1 for v in gone.values())


@test("files that a log names by a path: below the sysroot, or in a folder with blanks and parentheses")
def paths(folder):
    library = steps("usual")
    spaced = os.path.join(folder, "a (b) dir", "libsteps.so")
    for path in (folder + "/root/gone/libsteps.so", spaced):
        os.makedirs(os.path.dirname(path))
        shutil.copy(library, path)
    for kind, texts in by_kinds():
        texts = {k: v for k, v in texts.items() if library in v}
        assert len(texts) >= 2
        check(library, {k: v.replace(library, "/gone/libsteps.so") for k, v in texts.items()}, kind, "--sysroot", folder + "/root")
        # After the path, a tombstone has other things in parentheses.
        check(library, {k: v.replace(library, spaced) for k, v in part(texts, "tombstone", has=False).items()}, kind)


@test("a debug file without code: names by it are right, or there are none")
def without_code(folder):
    library = steps("usual")
    run("objcopy", "--only-keep-debug", library, f"{folder}/libsteps.so")
    n = 0
    for kind, texts in by_kinds():
        want = wanted(library, kind)
        for name, text in texts.items():
            found = names_of(text.replace(library, "/gone/libsteps.so") + "\n", "--module-dir", folder)[-1]
            assert found is None or re.fullmatch(want, found), (name, found)
            n += found is not None
    assert n >= 12, n


@test("node, and backtrace without an offset: a library that can be anywhere has no names by live addresses alone")
def no_base(_):
    library = steps("usual")
    for line in (f" 4: {BIAS + address_of(library, NEXT):#x} f() [{library}]", f" 4: {address_of(library, NEXT):#x} f() [{library}]",
                 f"{library}() [{address_of(library, NEXT):#x}]", f"{library}[{address_of(library, NEXT):#x}]"):
        assert names_of(line + "\n", "--all") == ["?? (no-base)"], line


@test("hotspot: a list that begins with Java frames: the first native one is a return address")
def hotspot_java(_):
    library = steps("usual")
    numbers, next = Numbers(library), address_of(library, NEXT)
    text = ("Native frames: (J=compiled Java code, j=interpreted, Vv=VM code, C=native code)\n"
            "j  Test.main([Ljava/lang/String;)V+3\n"
            "v  ~StubRoutines::call_stub\n"
            f"V  [libsteps.so+{numbers.from_first(next):#x}]  {FUNCTION}+0xfc\n")
    check_names(text, [None, None, None, expected(library, next, next - 1, by_path=True)], "--module-dir", os.path.dirname(library))


@test("a report of a signal, then one of something else: only the first has an exact first frame")
def two_reports(_):
    library = steps("usual")
    segv = lines().exact["sanitizer, first frame of a signal"]
    next = address_of(library, NEXT)
    other = ("==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000018 at pc 0x7f58b28c3677 bp 0x7ffd380deab0\n"
             f"    #0 {BIAS + next - 1:#x}  ({library}+{next - 1:#x})\n")
    log = segv + "\n" + other
    records = objects(log)
    assert [(r["kind"], r["symbol"]) for r in records] == [("exact", FUNCTION), ("lowered", FUNCTION)], records


@test("coredump: two modules with two builds of one name: each stack has the build of the lines before it")
def two_builds(folder):
    paths = [steps("usual"), steps("other", "-DMOVED")]
    assert build_id(paths[0]) != build_id(paths[1])
    log, wanted = "", []
    for path in paths:
        shutil.copy(path, debug_path(folder, build_id(path)))
        next = address_of(path, NEXT)
        log += (f"Module libsteps.so with build-id {build_id(path)}\n"
                f"#0  0x{BIAS + next:016x} n/a (libsteps.so + {Numbers(path).from_first(next):#x})\n"
                f"#1  0x{BIAS + next:016x} n/a (libsteps.so + {Numbers(path).from_first(next):#x})\n")
        wanted += [None, expected(path, next), expected(path, next, next - 1)]
    check_names(log, wanted, "--debug-dir", folder)


@test("another machine, aarch64: instructions have four bytes, and calls their own form")
def other_machine(_):
    library = arm_steps()
    numbers, first, next = Numbers(library), address_of(library, FUNCTION), address_of(library, NEXT)
    assert len({first, numbers.offset(first), numbers.from_first(first)}) == 3
    check(library, {"sanitizer": f"    #1 0x1  ({library}+{next - 4:#x})",
                    "tombstone": f"      #01 pc {next - 4:016x}  {library} ({FUNCTION}+252)"}, "lowered of 4")
    check(library, {"backtrace": f"{library}(+{next:#x})[0x1]",
                    "backtrace with a symbol": f"{library}({NEXT}+0x0)[0x1]",
                    "hotspot": f"C  [{library}+{numbers.from_first(next):#x}]  {FUNCTION}",
                    "coredump": f"#1  0x{1:016x} n/a ({library} + {numbers.from_first(next):#x})"}, "return of 4")
    check(library, {"tombstone": f"      #00 pc {first:016x}  {library} ({FUNCTION}+0)",
                    "coredump": f"#0  0x{1:016x} n/a ({library} + {numbers.from_first(first):#x})"}, "exact")
    # What is behind no call is refused.
    for line in (f"    #1 0x1  ({library}+{next - 8:#x})", f"{library}(+{next + 4:#x})[0x1]", f"{library}(+{next + 2:#x})[0x1]"):
        assert names_of(f"{line}\n", "--all") == ["?? (build-id-mismatch)"], line
