# SPDX-License-Identifier: MIT
"""Never wrong: files that are another build than the log's are refused, if anything tells that they are."""
import os
import re
import shutil

from ask import run
from building import add_link, build_id, build_text, debug_path
from built import Numbers, crash, steps
from formats import BIAS, FUNCTION, NEXT
from live import backtrace
from suite import address_of, check_names, expected, function_at, names_of, need_x86, objects, test

REFUSED = "?? (build-id-mismatch)"


def with_id(library, path):
    """Lines with the build-id of @library, which the log calls @path."""
    id, next, base = build_id(library), address_of(library, NEXT), os.path.basename(path)
    from_first = Numbers(library).from_first(next)
    return (f"    #1 {BIAS + next - 1:#x}  ({path}+{next - 1:#x}) (BuildId: {id})\n"
            f"      #01 pc {next - 1:016x}  {path} ({FUNCTION}+251) (BuildId: {id})\n"
            f"#1  0x{BIAS + next:016x} {FUNCTION} - {path}\n"
            f"    [{id}]@{BIAS + Numbers(library).first:#x}+{from_first - 1:#x}\n"
            f"Module {base} with build-id {id}\n"
            f"#1  0x{BIAS + next:016x} n/a ({base} + {from_first:#x})\n")


# Which of those lines have a number.
HAVE = (True, True, False, True, False, True)


def when_had(text):
    return [text if has else None for has in HAVE]


def without_id(library, *formats):
    next = address_of(library, NEXT)
    first = address_of(library, FUNCTION)
    known = {"backtrace": f"{library}(+{next:#x})[{BIAS + next:#x}]\n",
             "lowered": f"    #4 {BIAS + next - 1:#x}  ({library}+{next - 1:#x})\n",
             "exact": "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000008 (pc 0x7f3d671aa760 bp 0x7ffc4fb5bf10 T0)\n"
                      f"    #0 {BIAS + first:#x}  ({library}+{first:#x})\n"}
    return "".join(known[name] for name in formats)


@test("refused: a library that was built anew, by its build-id; with --all the reason is said")
def rebuilt(_):
    old, new = steps("usual"), steps("other", "-DMOVED")
    assert build_id(old) != build_id(new)
    # What the old numbers mean in the new file is something else.
    assert function_at(new, address_of(old, NEXT) - 1)[0] != FUNCTION
    log = with_id(old, new)
    options = ("--module-dir", os.path.dirname(new))
    check_names(log, when_had(None), *options)
    check_names(log, when_had(re.escape(REFUSED)), "--all", *options)
    assert {(r["reason"], r["symbol"], len(r["frames"])) for r in objects(log, *options)} == {("build-id-mismatch", None, 0)}


@test("refused: a build-id that differs in one digit, is shorter, or longer")
def nearly(_):
    library = steps("usual")
    id = build_id(library)
    for other in (id[:-1] + "01"[id[-1] == "0"], id[:-2], id + "00", id[2:], "00" * 20):
        log = with_id(library, library).replace(id, other)
        check_names(log, when_had(re.escape(REFUSED)), "--all", "--module-dir", os.path.dirname(library))
    # Digits have no case.
    log = with_id(library, library).replace(id, id.upper())
    assert all((name is not None and "by path" not in name) == has
               for name, has in zip(names_of(log, "--module-dir", os.path.dirname(library)), HAVE))


@test("refused: the file of a log with a build-id has none: its names are by path")
def unproved(_):
    library, bare = steps("usual"), steps("bare", "no-build-id")
    assert address_of(library, NEXT) == address_of(bare, NEXT) + address_of(library, NEXT) - address_of(bare, NEXT)
    assert not build_id(bare)
    log = "".join(line + "\n" for line in with_id(bare, bare).replace("BuildId: ", f"BuildId: {build_id(library)}").replace(
        "[]@", f"[{build_id(library)}]@").replace("build-id \n", f"build-id {build_id(library)}\n").splitlines())
    names = names_of(log, "--module-dir", os.path.dirname(bare))
    # Either is right: who refuses is never wrong.
    for name, has in zip(names, HAVE):
        assert name is None or (has and name.startswith(FUNCTION) and name.endswith("(by path)")), names


@test("refused: without any build-id, a return address that is behind no call: nothing of the module has a name")
def behind_no_call(_):
    old, new = steps("old-bare", "no-build-id"), steps("new-bare", "no-build-id", "-DMOVED")
    assert not build_id(old) and not build_id(new)
    for names in (("backtrace",), ("lowered",), ("exact", "backtrace"), ("backtrace", "exact"), ("lowered", "exact"), ("exact", "lowered")):
        log = without_id(old, *names)
        # It is known as long as the file is what it was.
        assert any(names_of(log)), log
        log = log.replace(old, new)
        found = names_of(log, "--all")
        assert found == [REFUSED if "+0x" in line else None for line in log.splitlines()], (names, found)
        assert not any(names_of(log))


@test("refused: one return address in ten that is behind no call is enough; other modules keep their names")
def one_in_ten(_):
    library, bare = steps("usual"), steps("old-bare", "no-build-id")
    good = without_id(library, "backtrace")
    log = without_id(bare, "backtrace") * 9 + good + f"{bare}(+{address_of(bare, NEXT) + 1:#x})[0x1]\n"
    check_names(log, [re.escape(REFUSED)] * 9 + [expected(library, address_of(library, NEXT), address_of(library, NEXT) - 1, True),
                                                 re.escape(REFUSED)], "--all")


@test("refused: a return address that counts from a symbol, too, if it is behind no call")
def symbols_behind_no_call(_):
    bare = steps("old-bare", "no-build-id")
    assert names_of(f"{bare}({FUNCTION}+0xfc)[0x1]\n") != [None]
    assert names_of(f"{bare}({FUNCTION}+0x10)[0x1]\n") == [None]


@test("refused: without any build-id, a return address that the file does not have: nothing of the module has a name")
def return_addresses_outside(_):
    bare = steps("old-bare", "no-build-id")
    next = address_of(bare, NEXT)
    log = f"{bare}(+{next:#x})[0x1]\n{bare}(+0xffffff)[0x1]\n"
    assert names_of(log, "--all") == [REFUSED, REFUSED]
    assert names_of(log.splitlines(True)[0]) != [None]


@test("refused: a kernel before 6.7 tells the mapping alone: one that is a part of the code, or larger, is no base")
def part_of_code(_):
    library = steps("usual")
    numbers, first = Numbers(library), address_of(library, FUNCTION)
    code = BIAS + (numbers.code & ~0xfff)
    line = "prog[3056]: segfault at 8 ip {:016x} sp 00007fff1bdd1380 error 6 in libsteps.so[{:x}+{:x}]\n"
    options = ("--module-dir", os.path.dirname(library), "--all")
    assert re.fullmatch(expected(library, first, by_path=True), names_of(line.format(BIAS + first, code, numbers.code_size), *options)[0])
    for start, size in ((code, numbers.code_size - 0x1000), (code + 0x1000, numbers.code_size - 0x1000), (code, numbers.code_size + 0x1000)):
        assert names_of(line.format(BIAS + first + 0x1000, start, size), *options) == ["?? (no-base)"]


@test("refused: a file at the log's path that is another build; the debug directory has the right one")
def debug_dir_has_it(folder):
    old, new = steps("usual"), steps("other", "-DMOVED")
    place = f"{folder}/libsteps.so"
    shutil.copy(new, place)
    log = with_id(old, place)
    check_names(log, when_had(re.escape(REFUSED)), "--all", "--module-dir", folder)
    next = address_of(old, NEXT)
    for name, make in (("a debug file", lambda path: run("objcopy", "--only-keep-debug", old, path)),
                       ("the file", lambda path: shutil.copy(old, path))):
        debug = debug_path(f"{folder}/debug", build_id(old))
        make(debug)
        names = names_of(log, "--module-dir", folder, "--debug-dir", f"{folder}/debug")
        lowered, returned = expected(old, next - 1), expected(old, next, next - 1)
        for text, want in zip(names, (lowered, lowered, None, lowered, None, returned)):
            assert text == want or (text and want and re.fullmatch(want, text)), (name, names)


@test("refused: what the debug directory has under a build-id that is not its own")
def lying_debug_dir(folder):
    old, new = steps("usual"), steps("other", "-DMOVED")
    shutil.copy(new, debug_path(folder, build_id(old)))
    log = with_id(old, "/gone/libsteps.so")
    check_names(log, when_had(re.escape(REFUSED)), "--all", "--debug-dir", folder)
    # The next place may have it.
    names = names_of(log, "--debug-dir", folder, "--module-dir", os.path.dirname(old))
    assert [name is not None and name.startswith(FUNCTION) for name in names] == list(HAVE), names


@test("refused: of two files that a log may mean, the one with its build-id, in whichever order they are found")
def second_choice(folder):
    old, new = steps("usual"), steps("other", "-DMOVED")
    dirs = [os.path.dirname(new), os.path.dirname(old)]
    log = with_id(old, new)
    for order in (dirs, dirs[::-1]):
        names = names_of(log, *(word for d in order for word in ("--module-dir", d)))
        assert [name is not None and name.startswith(FUNCTION) for name in names] == list(HAVE), names
        assert not any("by path" in (name or "") for name in names), names
    # The same with TARGET.
    names = names_of(log, old)
    assert [name is not None and name.startswith(FUNCTION) for name in names] == list(HAVE), names
    check_names(log, when_had(re.escape(REFUSED)), "--all", "--module-dir", os.path.dirname(new), new)


@test("refused: a debug file of another build that .gnu_debuglink names: names are those of the file, without lines")
def other_debug_link(folder):
    old, new = steps("usual"), steps("other", "-DMOVED")
    place = f"{folder}/libsteps.so"
    shutil.copy(old, place)
    run("objcopy", "--only-keep-debug", old, f"{folder}/libsteps.debug")
    run("strip", place)
    add_link(place, f"{folder}/libsteps.debug")
    log = f"{place}(+{address_of(old, NEXT):#x})[0x1]\n"
    check_names(log, [expected(old, address_of(old, NEXT), address_of(old, NEXT) - 1, by_path=True)])
    run("objcopy", "--only-keep-debug", new, f"{folder}/libsteps.debug")
    assert names_of(log) == [f"{FUNCTION}+0xfc (by path)"]


@test("refused: a live report, once its library was linked anew by another linker: names are right, or there are none")
def live_report(folder):
    program = crash("lld", True)
    whole, path = program.whole["libcrash.so"], program.bare["libcrash.so"]
    for how in ("report-fd", "signal-fd"):
        report = backtrace("lld", True, how)
        log = report.log.replace(path, f"{folder}/libcrash.so")
        ours = [i for i, line in enumerate(log.splitlines()) if folder in line]
        shutil.copy(whole, f"{folder}/libcrash.so")
        right = names_of(log)
        assert len(ours) >= 3 and all(right[i] for i in ours), right
        for other in ("gold", "bfd"):
            shutil.copy(crash(other, True).whole["libcrash.so"], f"{folder}/libcrash.so")
            found = names_of(log)
            assert all(found[i] in (None, right[i]) for i in ours), (how, other, found, right)


@test("refused: no call of one process is held against a frame of another, line by line in turn; within one it is")
def in_turn(folder):
    need_x86()
    path = build_text(f"{folder}/turn", "int plain(int); int outer(int);\n"
                      "__attribute__((noipa)) int plain(int i) { return i * 5; }\n"
                      "__attribute__((noipa)) int outer(int i) { return plain(i) + 1; }\n"
                      "int main(int argc, char **argv) { (void)argv; return outer(argc) + 1; }\n", "-Wl,--build-id=none", "-fcf-protection=none")
    # A call has five bytes; sanitizers print the last one.
    calls = {m[2]: int(m[1], 16) + 4 for m in re.finditer(r"^ +([0-9a-f]+):\s+call +[0-9a-f]+ <(plain|outer)>$",
                                                         run("objdump", "-d", "--no-show-raw-insn", path), re.M)}
    frames = [(0, address_of(path, "outer")), (0, address_of(path, "plain")), (1, calls["outer"]), (1, calls["plain"])]

    def names(*processes):
        """Those of the frames, as lines of @processes."""
        lines = [f"app[{process}]: #{number} {address:#x}  ({path}+{address:#x})\n" for process, (number, address) in zip(processes, frames)]
        head = "app[9]: ==9==ERROR: AddressSanitizer: SEGV (pc 0x1)\n"
        found = names_of(head + lines[0] + head + "".join(lines[1:]))
        return [name and name.split("+")[0] for name in (found[1], *found[3:])]
    assert names(2, 1, 2, 1) == ["outer", "plain", "main", "outer"], names(2, 1, 2, 1)
    # As frames of one process, main would have called plain.
    assert names(1, 1, 1, 1) == [None] * 4, names(1, 1, 1, 1)
