# SPDX-License-Identifier: MIT
"""Lines of source after the lines of a log: beside the files, where llvm-symbolizer says that they are."""
import json
import os
import shutil
import subprocess

import servers

from ask import fathom, llvm, records_of, run
from building import build, build_id
from suite import MARK, PROGRAMS, address_of, added, filtered, frames_at, objects, place, reversible, test, undone

# Lines that hold the mark, make one with what stands before them, or look like ours.
TEXT = """\
static inline __attribute__((always_inline)) int inner(const int *p)
{
-> return 0; a comment of old, gone  -> now
\treturn *p + 1; /* a  -> b  ->   -> c */
}
int outer(const int *p);
__attribute__((noinline)) int outer(const int *p)
{
\tint sum = inner(p);  ->
  ->     9  x
\tsum *= inner(p + 1);
\treturn sum;
}
int main(int argc, char **argv)
{
\t(void)argv;
\treturn outer((const int[]){ argc, 2 });
}
"""
# What the compiler reads in their place has the same lines.
OLD = 1_000_000_000


def compiled_text(text):
    return text.replace("-> return 0; a comment of old, gone  -> now", "").replace(");  ->\n  ->     9  x", ");\n")


def made(folder, *flags, name="program"):
    """A program, and the file of its source, of which the lines are TEXT's."""
    os.makedirs(os.path.join(folder, "src"), exist_ok=True)
    source, path = os.path.join(folder, "src", f"{name}.c"), os.path.join(folder, name)
    with open(source, "w", encoding="ascii") as file:
        file.write(compiled_text(TEXT))
    build(path, source, "-Wl,--build-id=sha1", "-fno-ipa-icf", "-fno-ipa-modref", *flags, flags=("-O2", "-g"))
    with open(source, "w", encoding="ascii") as file:
        file.write(TEXT)
    os.utime(source, (OLD, OLD))
    return path


def report(path, address, end="\n"):
    """A report whose program counter is @address of the file."""
    return (f"==1==ERROR: AddressSanitizer: SEGV (pc 0x1){end}"
            f"    #0 {address:#x}  ({path}+{address:#x}) (BuildId: {build_id(path)}){end}")


def addresses_in(path):
    """Addresses, and the frames of each, of which some have an inlined one: (function, file, line, column)."""
    first = address_of(path, "outer")
    addresses = [*range(first, first + 12, 3), address_of(path, "main")]
    found = {address: [frame[:4] for frame in answer.frames] for address, answer in zip(addresses, llvm(path, addresses))}
    assert {len(frames) for frames in found.values()} >= {1, 2}, found
    return found


def inlined_in(path):
    """One of these with an inlined frame, and its frames."""
    return next((address, frames) for address, frames in addresses_in(path).items() if len(frames) == 2)


def main_of(path):
    """The address of main, and the line there."""
    main = address_of(path, "main")
    return main, frames_at(path, main)[0][2]


def around(file, line, n):
    """What is written of @n lines around @line, from the file; a mark in a line has an escape."""
    with open(file, encoding="ascii") as text:
        lines = text.read().split("\n")[:-1]
    first = max(1, line - n // 2)
    width = len(str(first + n - 1))
    shown = [f"  {'>' if i == line else ' '} {i:{width}}" + (f"  {lines[i - 1]}" if lines[i - 1] else "")
             for i in range(first, min(first + n, len(lines) + 1))]
    while any("  -> " in line for line in shown):
        shown = [line.replace("  -> ", "\\x20 -> ", 1) for line in shown]
    return shown


def source_lines(frames, n):
    """All lines that follow the line of an address with @frames."""
    wanted = []
    for function, file, line, column in frames:
        if len(frames) > 1:
            wanted.append(f"{function} {place(file, line, column)}")
        wanted += around(file, line, n)
    return wanted


@test("--source: lines around each frame, in lines of their own that begin with the mark")
def lines_around(folder):
    path = made(folder)
    addresses = addresses_in(path)
    for n, end in ((1, "\n"), (2, "\r\n"), (5, "\r\n"), (40, "\n")):
        log = "".join(report(path, address, end) for address in addresses) + "after" + end
        output = reversible(log, f"--source={n}").decode()
        assert all(line.endswith(end[:-1]) for line in output.split("\n")[:-1]), output
        reports = output.replace("\r", "").removesuffix("after\n").split("==1==ERROR: AddressSanitizer: SEGV (pc 0x1)\n")
        assert reports.pop(0) == "" and len(reports) == len(addresses), output
        for address, text in zip(addresses, reports):
            line, *ours = text.split("\n")[:-1]
            assert line.startswith(f"    #0 {address:#x} "), line
            assert ours == ["  -> " + text for text in source_lines(addresses[address], n)], (address, ours)
    # Five without a number, also with a directory alone, which has the file at another place.
    shutil.move(os.path.join(folder, "src"), os.path.join(folder, "moved"))
    main, line = main_of(path)
    log = report(path, main)
    for options in (("--source",), ()):
        output = reversible(log, *options, "--source-dir", os.path.join(folder, "moved")).decode().split("\n")
        moved = os.path.join(folder, "moved", "program.c")
        assert output[2:] == ["  -> " + text for text in [f"  (source: {moved})", *around(moved, line, 5)]] + [""], output
    output = reversible(log, "--source").decode().split("\n")
    assert output[2:] == ["  ->   (no source: No such file or directory, see --source-dir)", ""], output


@test("--source: a log without an end of its last line, and with lines like ours, can be had back")
def had_back(folder):
    path = made(folder)
    inlined, _ = inlined_in(path)
    ours = filtered(report(path, inlined), "--source=3")
    assert ours.count(b"\n" + MARK) == 8, ours
    for log in (report(path, inlined)[:-1], report(path, inlined)[:-1] + "\r", ours.decode(), ours.decode() * 2,
                "  -> \n" + report(path, inlined) + "  -> f\n  ->   > 3  x\n  ->  -> ", "  ->   > 3  x\r\n" + report(path, inlined, "\r\n")):
        for options in ((), ("--source",), ("--source=3", "--all"), ("--source=1", "--color=never")):
            assert reversible(log, *options), log
    # Lines with colours are cut at the same places.
    for log in (report(path, inlined), ours.decode()):
        coloured = filtered(log, "--source=3", "--color=always")
        plain = filtered(log, "--source=3")
        assert undone(without_colours(coloured)) == undone(plain) == log.encode(), coloured
        assert without_colours(coloured) == plain, coloured
    assert b"  -> \x1b" in filtered(report(path, inlined), "--source=3", "--color=always")


@test("--source: the command of fathom-filter(1) gives a log back that ends with a line break")
def by_command(folder):
    with open(os.path.join(PROGRAMS, "..", "..", "..", "docs", "man", "fathom-filter.1"), encoding="ascii") as file:
        (command,) = [line.strip().replace("\\e", "\\") for line in file if line.startswith("LC_ALL=C sed")]
    path = made(folder)
    inlined, _ = inlined_in(path)
    for end in ("\n", "\r\n"):
        log = report(path, inlined, end) + end.join(("  -> ours", "a  -> b", "", "  ->", "  ->   -> ", "\xff  -> \xff", "  ->   > 3  x")) + end
        output = reversible(log.encode("latin-1"), "--source=3")
        assert output.count(b"\n" + MARK + b"  ") >= 6, output
        assert subprocess.run(["sh", "-c", command], input=output, capture_output=True, check=True).stdout == log.encode("latin-1"), output


def without_colours(output):
    parts = output.split(b"\x1b[")
    return parts[0] + b"".join(part.partition(b"m")[2] for part in parts[1:])


@test("--source: a line with several addresses has the lines of each, under its name")
def several(folder):
    path = made(folder)
    main, _ = main_of(path)
    inlined, frames = inlined_in(path)
    head = "{{{reset}}}{{{module:1:program:elf:%s}}}{{{mmap:0x100000:0x10000:load:1:rx:0x0}}}\n" % build_id(path)
    line = f"{{{{{{pc:{main + 0x100000:#x}:pc}}}}}} {{{{{{pc:{inlined + 0x100000:#x}:pc}}}}}}\n"
    output = reversible(head + line, "--source=3", "--module-dir", folder).decode().split("\n")
    wanted = [text for function, *where in [*frames_at(path, main), *frames]
              for text in (f"{function} {place(*where)}", *around(where[0], where[1], 3))]
    assert len(wanted) == 12 and output[2:] == ["  -> " + text for text in wanted] + [""], output


@test("--source: JSON has the members of fathom addr; two modules have each its own files")
def in_json(folder):
    os.makedirs(os.path.join(folder, "other"))
    paths = [made(folder), made(os.path.join(folder, "other"), name="second")]
    asked = [(path, address) for path in paths for address in addresses_in(path)]
    records = objects("".join(report(*each) for each in asked), "--source=3")
    frames = [record["frames"] for record in records if record["format"] == "sanitizer"]
    assert len(frames) == len(asked)
    theirs = [record["frames"] for path in paths for record in records_of(fathom(
        "addr", "--json", "--no-cache", "--source=3", path, *map(hex, addresses_in(path)), status=0).stdout)]
    assert frames == theirs and all(frame["source_lines"] for each in frames for frame in each), frames
    plain = objects("".join(report(*each) for each in asked))
    assert "source_lines" not in json.dumps(plain)


@test("--source: addresses without a name have no lines; numbers alone have those of the target's files")
def targets(folder):
    path = made(folder, "-no-pie")
    main, line = main_of(path)
    # All numbers with 0x are addresses of the target.
    log = f"rip {main:#x}\n    #1 0x10  (/no/where+0x10)\n"
    output = reversible(log, "--source=1", "--all", path).decode().split("\n")
    (_, name), (_, shown), (_, reason) = [text.split("  -> ", 1) for text in output[:-1]]
    assert name.startswith("main+0x0 ") and reason == "?? (no-file)", output
    assert shown == around(os.path.join(folder, "src", "program.c"), line, 1)[0], output


@test("--source: the file that was compiled comes from a server of debuginfod")
def from_server(folder):
    path = made(folder)
    source = os.path.join(folder, "src", "program.c")
    kept = os.path.join(folder, "kept.c")
    shutil.move(source, kept)
    with open(kept, "rb") as file:
        text = file.read()
    main, line = main_of(path)
    with servers.Recording({f"/buildid/{build_id(path)}/source{source}": text}) as server:
        env = {**os.environ, "DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": os.path.join(folder, "cache")}
        output = reversible(report(path, main), "--source=1", "--debuginfod", env=env).decode().split("\n")
        assert output[2:] == ["  -> " + around(kept, line, 1)[0], ""], output


@test("--source: names that begin with the end of a mark hide none; the style of other tools has no lines")
def refused(folder):
    source = os.path.join(folder, "odd.c")
    with open(source, "w", encoding="ascii") as file:
        file.write('__asm__(".globl \\" -> g\\"\\n.type \\" -> g\\", @function\\n\\" -> g\\": ud2\\n.size \\" -> g\\", 2\\n");\n'
                   "int main(void) { return 0; }\n")
    path = build(os.path.join(folder, "odd"), source, "-Wl,--build-id=sha1", "-no-pie", flags=())
    (value,) = [int(line[:16], 16) for line in run("nm", path).splitlines() if line.endswith(" -> g")]
    log = report(path, value)
    assert added(log)[1] == "\\x20-> g+0x0", added(log)
    assert without_colours(filtered(log, "--color=always")) == filtered(log)
    done = fathom("filter", "--style=tool", "--source", input="", status=2)
    assert done.stderr == "fathom: --source: does not go with --style=tool, which prints lines as other tools do\n" and not done.stdout, done
