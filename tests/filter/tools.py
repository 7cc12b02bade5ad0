# SPDX-License-Identifier: MIT
"""--style=tool: lines as the tool of their format prints them, beside that tool."""
import glob
import os
import re
import shutil

import tap

from ask import execute, fathom, run
from building import build_id, debug_path
from built import sanitized, steps
from formats import FUNCTION, lines
from kernel import sized, twins
from live import SANITIZED, sanitizer_log
from markup import element, process, where
from suite import address_of, filtered, frames_at, place, test
from formats import BIAS


def styled(log, *options):
    """The lines of @log in the style of their tools."""
    return filtered(log, "--style=tool", *options).decode().splitlines()


def asan_symbolize():
    paths = sorted(glob.glob("/usr/bin/asan_symbolize-*"), key=lambda path: int(path.rpartition("-")[2]))
    if not paths or not shutil.which("llvm-symbolizer"):
        raise tap.Skip("asan_symbolize is not installed")
    return paths[-1]


def add_address(name):
    @test(f"--style=tool: a report of AddressSanitizer, {name}: the lines of asan_symbolize, inlined calls and numbers of frames, too")
    def _(_):
        tool, program = asan_symbolize(), sanitized(*SANITIZED[name])
        bare = sanitizer_log(program, "overflow")
        log = bare
        for file in program.names:
            # It knows no debug files.
            log = log.replace(program.bare[file], program.whole[file])
        theirs = [line.rstrip() for line in run(tool, input=log).splitlines()]
        mine = [line.rstrip() for line in styled(bare, *program.options)]
        assert len(mine) == len(theirs), (mine, theirs)
        others, frames = 0, 0
        for one, other in zip(mine, theirs):
            if re.search(r"crash(_lib)?\.c:", other):
                assert one == other
                frames += 1
            elif not re.match(r"    #\d", other):
                # The summary has the path of the file.
                assert one.replace(program.folder + "/bare/", program.folder + "/whole/") == other
                others += 1
            else:
                assert one.split()[:2] == other.split()[:2], (one, other)
        assert frames >= 6 and others > 20, (frames, others)
        # Some of them are inlined: they have more lines than the log.
        assert len(mine) > len(log.splitlines())


for cell in SANITIZED:
    add_address(cell)


@test("--style=tool: frames of ThreadSanitizer: the name and place before the module")
def thread(_):
    library = steps("usual")
    text = lines().thread["without a name"]
    number = int(re.search(r"\+(0x[0-9a-f]+)\)", text)[1], 16)
    ((function, *at),) = frames_at(library, number)
    found = styled(f"web: {text}\n    #1 <null> <null> (gone.so+0x12)\n{text.replace('#0', '#2')}\n", "--module-dir", os.path.dirname(library))
    assert found == [f"web:     #0 {function} {place(*at)} (libsteps.so+{number:#x})", "    #1 <null> <null> (gone.so+0x12)",
                     f"    #2 {function} {place(*at)} (libsteps.so+{number:#x})"], found


def add_markup(name):
    @test(f"--style=tool: a report of AddressSanitizer in markup, {name}: the lines of llvm-symbolizer")
    def _(folder):
        program = sanitized(*SANITIZED[name])
        log = sanitizer_log(program, "overflow", "symbolize=0:enable_symbolizer_markup=1")
        if "{{{mmap:" not in log:
            raise tap.Skip("this sanitizer prints no markup")
        # It lowers numbers that are lowered already; exact ones are not.
        log = re.sub(r"\{\{\{(bt:\d+:0x[0-9a-f]+)\}\}\}", r"{{{\1:pc}}}", log)
        for file in program.names:
            shutil.copy(program.whole[file], debug_path(folder, build_id(program.whole[file])))
        theirs = execute("llvm-symbolizer", "--filter-markup", f"--debug-file-directory={folder}", input=log).stdout.splitlines()
        mine = styled(log, "--debug-dir", folder)
        ours = re.compile(r"    #\d+\S* +0x[0-9a-f]{16} .* \(.*crash(?:\.so)?\+0x[0-9a-f]+\)")
        with_lines = [line for line in theirs if ours.fullmatch(line) and "<invalid>" not in line]
        assert [line for line in mine if ours.fullmatch(line) and "<invalid>" not in line] == with_lines and len(with_lines) >= 6, (mine, theirs)
        # Elements that tell of modules stay.
        assert [line for line in mine if line.startswith("{{{")] == [line for line in log.splitlines() if re.match(r"\{\{\{(module|mmap|reset)", line)]


add_markup("clang PIE")
add_markup("clang no-PIE")


@test("--style=tool: markup: several elements of a line, what cannot be named, data, callers")
def elements(folder):
    library = steps("usual")
    number = BIAS + address_of(library, FUNCTION)
    log = (process(library) + f"at {element('pc', number)} from {element('pc', number + 1, 'ra')}, {{{{{{data:{number:#x}}}}}}}; {element('pc', 8)}.\n"
           f"{element('bt', number + 1, 11, 'ra')} of {element('bt', 9, 12)}\n")
    options = where(folder, library)
    shutil.copy(library, debug_path(folder, build_id(library)))
    theirs = execute("llvm-symbolizer", "--filter-markup", f"--debug-file-directory={folder}", input=log).stdout.splitlines()
    mine = styled(log, *options)
    # What is in no module that the log tells of stays.
    assert mine[-2:] == [line.replace("[[[", "{{{").replace("]]]", "}}}") for line in theirs[-2:]] and mine[-2].count(FUNCTION) == 3, (mine, theirs)
    gone = log.replace(build_id(library), "0" * 40)
    assert styled(gone, *options)[-2:] == execute("llvm-symbolizer", "--filter-markup", f"--debug-file-directory={folder}", input=gone).stdout.replace(
        "[[[pc:0x8]]]", "{{{pc:0x8}}}").replace("[[[bt:12:0x9]]]", "{{{bt:12:0x9}}}").splitlines()[-2:]


@test("--style=tool: symbols of the kernel: NAME (FILE:LINE ...) MODULE, as decode_stacktrace.sh has them")
def kernel(folder):
    path = twins()
    (one, one_size), (two, two_size) = sized(path, "size")
    shutil.copy(path, os.path.join(folder, "fuse.ko"))

    def at(address):
        return " ".join(f"{file}:{line}" for _, file, line, _ in frames_at(path, address))
    found = styled(f"[ 1.5] RIP: 0010:size+0x8/{one_size:#x}\n"
                   f" ? size+0x8/{two_size:#x} [fuse {build_id(path)}]\n"
                   f"lock: (size+0x8/{two_size:#x} [fuse]) in gone+0x1/0x2 [none]\n", path, "--module-dir", folder)
    assert found == [f"[ 1.5] RIP: 0010:size ({at(one + 8)})", f" ? size ({at(two + 7)}) fuse",
                     f"lock: (size ({at(two + 7)}) fuse) in gone+0x1/0x2 [none]"], found
    (one, size), (two, _) = sized(path, "same")
    assert styled(f"RIP: 0010:same+0x8/{size:#x}\n", path) == [f"RIP: 0010:same ({at(one + 8)}; {at(two + 8)})"]


@test("--style=tool: formats without a tool have names after their lines; another word is refused")
def others(_):
    library = steps("usual")
    for text in lines().returns["backtrace"], lines().returns["llvm"]:
        assert styled(text + "\n", "--module-dir", os.path.dirname(library)) == filtered(text + "\n", "--module-dir", os.path.dirname(library)).decode().splitlines()
    done = fathom("filter", "--style=other", input="", status=2)
    assert done.stderr == "fathom: other: is no style (names or tool)\n", done
