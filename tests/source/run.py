#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "source": lines of source around answers, beside the files themselves and llvm-symbolizer."""
import hashlib
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "debuginfod")]

import servers  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, NOBODY, copy_for_all, execute, fathom, records_of, run  # noqa: E402
from building import build_id, core_of, nm, plain  # noqa: E402
from running import Running, wait_for_state  # noqa: E402

SUITE = tap.Suite("source")
test = SUITE.test
# A time before any file of these tests, and one after all of them.
OLD, FUTURE = 1_000_000_000, 4_000_000_000


def made(folder, *flags, compiler="gcc", name="nested"):
    """The program, compiled from copies of its sources in @folder/src, which are older than it."""
    os.makedirs(os.path.join(folder, "src"), exist_ok=True)
    for file in ("nested.c", "nested.h"):
        path = os.path.join(folder, "src", file)
        shutil.copyfile(os.path.join(HERE, "programs", file), path)
        os.utime(path, (OLD, OLD))
    program = os.path.join(folder, name)
    run(compiler, "-g", "-O2", *flags, "-o", program, os.path.join(folder, "src", "nested.c"))
    return program


def source_of(folder, name="nested.c"):
    return os.path.join(folder, "src", name)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def addresses_of(program, *names):
    """Every fourth address of functions."""
    symbols = [line.split() for line in run("nm", "-S", program).splitlines()]
    return [hex(int(start, 16) + at) for start, size, _, name in (s for s in symbols if len(s) == 4) if name in names
            for at in range(0, int(size, 16), 4)]


def asked(program, *words, options=(), status=0, **more):
    return records_of(fathom("addr", "--json", "--no-cache", *options, program, *words, status=status, **more).stdout)


def said(program, *words, options=(), **more):
    return fathom("addr", "--no-cache", *options, program, *words, status=0, **more).stdout


def frame_of(program, word, *options, **more):
    return asked(program, word, options=options or ("--source",), **more)[0]["frames"][0]


def expect(frame, path, line, n, **members):
    """@frame has @n lines around @line of @path, which is read here by itself."""
    text = lines_of(path)
    first = max(1, line - n // 2)
    want = [{"line": i, "text": text[i - 1]} for i in range(first, min(first + n, len(text) + 1))]
    assert frame["line"] == line and frame["source_lines"] == want, (frame, want)
    assert frame["source_reason"] is None, frame
    for member, value in members.items():
        assert frame[f"source_{member}"] == value, (member, frame)


def refused(frame, reason):
    assert frame["source_lines"] is None and frame["source_file"] is None and frame["source_origin"] is None, frame
    assert re.search(reason, frame["source_reason"]), (reason, frame)


def llvm_lines(text):
    """Of each frame in llvm-symbolizer's output: (number, marked, text) of its lines."""
    frames = []
    for line in text.split("\n"):
        place = re.fullmatch(r"\S+:\d+:\d+", line)
        shown = re.fullmatch(r" *(\d+) (>| ): ?(.*)", line)
        if place:
            frames.append([])
        elif shown and frames:
            number, mark, rest = shown.groups()
            frames[-1].append((int(number), mark == ">", rest))
    return frames


@test("lines and marks beside llvm-symbolizer, of functions and inlined calls, by gcc and clang")
def beside_llvm(folder):
    for compiler in ("gcc", "clang"):
        program = made(folder, compiler=compiler, name=compiler)
        addresses = addresses_of(program, "outer", "plain")
        for n in (1, 2, 3, 5, 8, 40):
            theirs = llvm_lines(run("llvm-symbolizer", f"--print-source-context-lines={n}", "-e", program, *addresses))
            records = asked(program, *addresses, options=(f"--source={n}",))
            frames = [frame for record in records for frame in record["frames"]]
            ours = [[(line["line"], line["line"] == frame["line"], line["text"]) for line in frame["source_lines"] or []]
                    for frame in frames]
            theirs = [[(number, marked, text.removeprefix(" ")) for number, marked, text in frame] for frame in theirs]
            ours = [[(number, marked, text.removeprefix(" ")) for number, marked, text in frame] for frame in ours]
            assert ours == theirs and any(len(r["frames"]) > 2 for r in records), (compiler, n, ours, theirs)


@test("as text: numbers, the mark, after each inlined caller its own lines; colours mark the line")
def as_text(folder):
    program = made(folder)
    text = lines_of(source_of(folder))
    line = text.index("\treturn *p * 5;") + 1
    entry = hex(nm(program)["plain"][0][0])
    assert text[line - 3] == "__attribute__((noinline)) int plain(const int *p)" and line == 7, line
    out = said(program, entry, options=("--source=3",)).split("\n")
    first = int(out[0].rpartition(":")[0].rpartition(":")[2])
    shown = [f"    {'> ' if i == first else '  '}{i}  {text[i - 1]}" for i in (first - 1, first, first + 1)]
    assert out == [out[0], *shown, ""], out
    nested = next(a for a in addresses_of(program, "outer") if len(frame := asked(program, a)[0]["frames"]) > 2 and frame)
    blocks = re.split(r"\n(?=  inlined into )", said(program, nested, options=("--source=1",)))
    frames = asked(program, nested)[0]["frames"]
    assert len(blocks) == len(frames), blocks
    for block, frame in zip(blocks, frames):
        code = lines_of(frame["file"])[frame["line"] - 1]
        assert block.rstrip("\n").split("\n")[1:] == [f"    > {frame['line']}  {code}"], (block, frame)
    coloured = said(program, entry, options=("--source=1", "--color=always")).split("\n")[1]
    assert coloured == f"    \x1b[1m> {first}  {text[first - 1]}\x1b[m", coloured


@test("embedded sources, when the files are gone or were changed")
def embedded(folder):
    program = made(folder, "-gdwarf-5", "-gembed-source", compiler="clang")
    entry = hex(nm(program)["plain"][0][0])
    kept = os.path.join(folder, "kept.c")
    shutil.copyfile(source_of(folder), kept)
    line = frame_of(program, entry)["line"]
    for change in ("as it was", "other", "gone"):
        if change == "other":
            with open(source_of(folder), "w", encoding="ascii") as file:
                file.write("other\n" * 99)
        elif change == "gone":
            shutil.rmtree(os.path.join(folder, "src"))
        expect(frame_of(program, entry, "--source=4"), kept, line, 4, origin="embedded", file=None, proven=True, newer=False)


@test("--source-dir: with as many of the path's directories as there are; before the path itself; .. cannot leave it")
def directories(folder):
    program = made(folder)
    entry = hex(nm(program)["plain"][0][0])
    line = frame_of(program, entry)["line"]
    gone = os.path.join(folder, "gone")
    os.rename(os.path.join(folder, "src"), gone)
    refused(frame_of(program, entry), "^No such file or directory$")
    assert "(no source: No such file or directory, see --source-dir)" in said(program, entry, options=("--source",))
    last = f"/{os.path.basename(folder)}/src/nested.c"
    tried = os.path.join(folder, "tried")
    os.makedirs(tried)
    refused(frame_of(program, entry, f"--source-dir={tried}"), "^No such file or directory$")
    for at in ("/nested.c", "/src/nested.c", last, source_of(folder)):
        path = tried + at
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(os.path.join(gone, "nested.c"), path)
        os.utime(path, (OLD, OLD))
        expect(frame_of(program, entry, "--source-dir", tried), path, line, 5, origin="source-dir", file=path, newer=False)
        assert f"\n    (source: {path})\n" in said(program, entry, options=("--source-dir", tried))
    # The first directory that has it wins, also over the path itself.
    os.rename(gone, os.path.join(folder, "src"))
    other = os.path.join(folder, "other")
    os.makedirs(other)
    shutil.copyfile(source_of(folder), os.path.join(other, "nested.c"))
    expect(frame_of(program, entry, "--source-dir", other, "--source-dir", tried), source_of(folder), line, 5,
           file=os.path.join(other, "nested.c"))
    # A path with .. and a relative one are looked for in the directory, and nowhere else.
    for spelled in ("../../up/nested.c", "./src/../src/nested.c", "src/nested.c"):
        run("gcc", "-g", "-O2", f"-fdebug-prefix-map={folder}/src={os.path.dirname(spelled)}", f"-ffile-prefix-map={folder}/src={os.path.dirname(spelled)}",
            f"-fdebug-prefix-map={os.getcwd()}=.", "-o", program, source_of(folder))
        entry = hex(nm(program)["plain"][0][0])
        assert frame_of(program, entry)["file"].endswith(spelled), frame_of(program, entry)
        refused(frame_of(program, entry, cwd=folder), "^is a relative path$")
        expect(frame_of(program, entry, "--source-dir", tried, cwd=folder), source_of(folder), line, 5, origin="source-dir")


@test("a debuginfod server: asked for the source by the build-id, and only if that is wanted")
def from_server(folder):
    program = made(folder, "-Wl,--build-id=sha1")
    entry = hex(nm(program)["plain"][0][0])
    line = frame_of(program, entry)["line"]
    kept = os.path.join(folder, "kept.c")
    shutil.move(source_of(folder), kept)
    with open(kept, "rb") as file:
        text = file.read()
    path = f"/buildid/{build_id(program)}/source{source_of(folder)}"
    for files, works in (({path: text}, True), ({}, False)):
        cache = os.path.join(folder, f"cache-{works}")
        with servers.Recording(files) as server:
            env = {**os.environ, "DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": cache}
            refused(frame_of(program, entry, env=env), "^No such file or directory$")
            assert server.asked == [], server.asked
            frame = frame_of(program, entry, "--source=5", "--debuginfod", env=env)
            # Clients may write a slash as %2F.
            assert [asked.replace("%2F", "/") for asked in server.asked if "source" in asked] == [path], server.asked
            if works:
                expect(frame, kept, line, 5, origin="debuginfod", newer=False, proven=False)
            else:
                refused(frame, "^No such file or directory$")


@test("the MD5 in line tables: another file is never shown, the right one is found elsewhere")
def md5(folder):
    program = made(folder, "-gdwarf-5", compiler="clang")
    entry = hex(nm(program)["plain"][0][0])
    with open(source_of(folder), "rb") as file:
        right = file.read()
    assert hashlib.md5(right).hexdigest() in run("llvm-dwarfdump", "--debug-line", program)
    frame = frame_of(program, entry)
    line = frame["line"]
    # A file that is proven is not called newer.
    os.utime(source_of(folder), (FUTURE, FUTURE))
    expect(frame_of(program, entry), source_of(folder), line, 5, origin="file", proven=True, newer=False)
    with open(source_of(folder), "ab") as file:
        file.write(b"\n")
    os.utime(source_of(folder), (OLD, OLD))
    refused(frame_of(program, entry), "^not the file that was compiled: its MD5 differs$")
    assert "(no source: not the file that was compiled: its MD5 differs, see --source-dir)" in said(program, entry, options=("--source",))
    for name, text in (("wrong", right + b" "), ("right", right)):
        os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, name, "nested.c"), "wb") as file:
            file.write(text)
    dirs = [f"--source-dir={os.path.join(folder, name)}" for name in ("wrong", "right")]
    refused(frame_of(program, entry, dirs[0]), "wrong/nested.c: not the file that was compiled")
    found = os.path.join(folder, "right", "nested.c")
    expect(frame_of(program, entry, *dirs), found, line, 5, origin="source-dir", file=found, proven=True)


@test("a file that is newer than the program is told as such, once")
def newer(folder):
    program = made(folder)
    words = addresses_of(program, "plain", "outer")
    assert "newer" not in said(program, *words, options=("--source",))
    os.utime(source_of(folder), (FUTURE, FUTURE))
    out = said(program, *words, options=("--source",))
    assert out.count(f"    (source: {source_of(folder)}, newer than the program: its lines may differ)\n") == 1 and out.count("newer") == 1, out
    files = {(frame["file"], frame["source_newer"], frame["source_proven"])
             for record in asked(program, *words, options=("--source",)) for frame in record["frames"]}
    assert files == {(source_of(folder), True, False), (source_of(folder, "nested.h"), False, False)}, files


def with_source(program, entry, path, content):
    with open(path, "wb") as file:
        file.write(content)
    os.utime(path, (OLD, OLD))
    return frame_of(program, entry, "--source=3"), said(program, entry, options=("--source=3",))


@test("files that are no texts, or not whole: refused with the reason, never waited for")
def no_texts(folder):
    program = made(folder)
    entry = hex(nm(program)["plain"][0][0])
    path = source_of(folder)

    def replace(make):
        if os.path.isdir(path):
            os.rmdir(path)
        else:
            os.unlink(path)
        make(path)
        return frame_of(program, entry)

    refused(replace(os.mkfifo), "^is not a regular file$")
    refused(replace(lambda p: os.symlink("/dev/zero", p)), "^is not a regular file$")
    refused(replace(lambda p: os.symlink(p, p)), "^Too many levels of symbolic links$")
    refused(replace(os.mkdir), "^is a directory$")
    refused(with_source_of(replace, b""), "^is empty$")
    refused(with_source_of(replace, b"\n" * 50 + b"\0"), "^is not a text$")
    refused(with_source_of(replace, b"a\nb\n"), "^the file has fewer lines: it is another one, or was changed$")
    refused(replace(lambda p: sparse(p, (64 << 20) + 1)), "^is larger than 64 MiB$")


def with_source_of(replace, content):
    def make(path):
        with open(path, "wb") as file:
            file.write(content)
    return replace(make)


def sparse(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


@test("a file that may not be read: the reason")
def not_allowed(folder):
    if os.getuid():
        raise tap.Skip("only root can become another user")
    program = made(folder)
    os.chmod(folder, 0o755)
    os.chmod(source_of(folder), 0)
    entry = hex(nm(program)["plain"][0][0])
    done = execute(copy_for_all(folder), "addr", "--json", "--no-cache", "--source", program, entry, user=NOBODY, status=0)
    refused(records_of(done.stdout)[0]["frames"][0], "^Permission denied$")


@test("lines of every kind: ends, tabs, escapes of terminals, bytes that are not UTF-8, megabytes")
def every_line(folder):
    program = made(folder)
    entry = hex(nm(program)["plain"][0][0])
    path = source_of(folder)
    line = frame_of(program, entry)["line"]
    before = b"x\n" * (line - 1)
    for content, text, shown in (
            (b"a\tb\n", "a\tb", "a\tb"),
            (b"last", "last", "last"),
            (b"cr\r\n", "cr", "cr"),
            (b"", None, None),
            (b"\n", "", ""),
            (b"\x1b[31mred\x07\x0c\r!\n", "\x1b[31mred\x07\x0c\r!", r"\x1b[31mred\x07\x0c\x0d!"),
            ("\u202egr\u00fc\u00df\n".encode(), "\u202egr\u00fc\u00df", r"\u202egr" + "\u00fc\u00df"),
            (b"\xff\xc3(\n", "\ufffd\ufffd(", r"\xff\xc3(")):
        frame, out = with_source(program, entry, path, before + content)
        if text is None:
            refused(frame, "fewer lines")
            continue
        assert {"line": line, "text": text} in frame["source_lines"], (content, frame)
        assert f"\n    > {line}  {shown}".rstrip(" ") + "\n" in out and "\x1b" not in out, (content, out)
    # A line is cut at 4,096 bytes or up to three before, where a character begins.
    for character, whole in ((b"y", 4096), ("\u20ac".encode(), 4095)):
        frame, out = with_source(program, entry, path, before + character * (1 << 20) + b"\nz\n")
        cut = character.decode() * (whole // len(character))
        assert frame["source_lines"][1] == {"line": line, "text": cut, "cut": True}, frame["source_lines"][1]["text"][-9:]
        assert f"> {line}  {cut} ...\n" in out


@test("processes and cores: lines of each module, in stacks, too")
def processes(folder):
    plain(os.path.join(os.environ["BUILD"], "src", "libfathom.so"))
    program = made(folder, "-gdwarf-5", compiler="clang")
    with Running([program]) as running:
        assert running.line() == "14"
        wait_for_state(running.pid, "S")
        live = fathom("stack", "--json", "--source=3", str(running.pid), status=(0, 1)).stdout
        text = fathom("stack", "--source=3", str(running.pid), status=(0, 1)).stdout
        core = core_of(running.pid, folder)
    for out in (live, fathom("stack", "--json", "--source=3", "--exe", program, core, status=(0, 1)).stdout):
        frames = [frame for f in records_of(out)[0]["frames"] for frame in f["frames"] if frame["function"] == "main"]
        code = lines_of(source_of(folder))
        expect(frames[0], source_of(folder), code.index("\treturn getchar() == EOF;") + 1, 3, origin="file", proven=True)
        pc = next(f["pc"] for f in records_of(out)[0]["frames"] if any(frame["function"] == "main" for frame in f["frames"]))
    want = code.index("\treturn getchar() == EOF;") + 1
    assert f"\n        > {want}  \treturn getchar() == EOF;\n" in text, text
    record = asked(core, pc, options=("--source=3", "--return-addresses", "--exe", program))[0]
    frame = next(frame for frame in record["frames"] if frame["function"] == "main")
    expect(frame, source_of(folder), want, 3, proven=True)


@test("thousands of answers: each file is read once, in the order of the questions")
def once(folder):
    program = made(folder)
    words = addresses_of(program, "outer", "plain") * 500
    log = os.path.join(folder, "opens")
    done = execute("strace", "-f", "-qq", "-e", "trace=openat", "-o", log, FATHOM, "addr", "--no-cache", "--json", "--source=2", program,
                   input="\n".join(words) + "\n", env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    if "PTRACE_TRACEME" in done.stderr:
        raise tap.Skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    records = records_of(done.stdout)
    assert [record["input"] for record in records] == words
    assert all(frame["source_lines"] for record in records for frame in record["frames"] if frame["file"])
    with open(log, encoding="ascii", errors="replace") as file:
        opened = [line for line in file if "/nested." in line]
    assert len(opened) == 2, opened


def runs_by_llvm(path):
    """(address, text) of each line that llvm-objdump -S prints before an instruction."""
    found, line = [], None
    for text in run("llvm-objdump", "-d", "-S", "--no-show-raw-insn", "-j", ".text", path).splitlines():
        instruction = re.match(r" +([0-9a-f]+):", text)
        if text.startswith(";"):
            line = text[1:].strip()
        elif instruction and line is not None:
            found.append((int(instruction[1], 16), line))
            line = None
    return found


@test("disasm: a line before each run of instructions of one line, beside llvm-objdump -S")
def disassembled(folder):
    for compiler in ("gcc", "clang"):
        program = made(folder, compiler=compiler, name=compiler)
        theirs = dict(runs_by_llvm(program))
        for function in ("plain", "outer", "main"):
            records = records_of(fathom("disasm", "--json", "--no-cache", "--source", program, function, status=0).stdout)
            before, runs = (None, None), 0
            for record in records:
                place, address = (record["file"], record["line"]), int(record["address"], 16)
                begins = "source_lines" in record
                assert begins == (record["line"] is not None and place != before), record
                # The tool prints none where a function, or what follows instructions without a line, goes on with the same one.
                assert begins == (address in theirs) or (begins and before[1] is None), (record, theirs)
                if begins:
                    expect(record, record["file"], record["line"], 1, origin="file", file=record["file"])
                if address in theirs:
                    assert record["source_lines"][0]["text"].strip() == theirs[address], (record, theirs[address])
                    runs += 1
                before = place
            assert runs >= (1 if function == "plain" else 4), (compiler, function, records)


@test("disasm: as text, the lines stand below the names of their files; a reason is printed once for each file")
def disassembled_text(folder):
    program = made(folder)
    whole = fathom("disasm", "--no-cache", program, "outer", "plain", status=0).stdout.split("\n")
    for n in (1, 3):
        out = fathom("disasm", "--no-cache", f"--source={n}", program, "outer", "plain", status=0).stdout.split("\n")
        assert [line for line in out if not line.startswith("  ; ")] == whole, out
        # Each number in the column of lines has its line before it.
        file, block, runs = None, [], 0
        for text in out:
            number = re.match(r" {0,5}(\d+)  0x", text)
            if text.startswith("  ; "):
                block.append(text[4:])
            elif re.match(r"  /", text):
                file = text.strip()
            elif number:
                line, code = int(number[1]), lines_of(file)
                first = max(1, line - n // 2)
                last = first + n - 1
                assert block == [f"{'>' if i == line else ' '} {i:{len(str(last))}}" + (f"  {code[i - 1]}" if code[i - 1] else "")
                                 for i in range(first, min(last, len(code)) + 1)], (block, line, n)
                block, runs = [], runs + 1
            else:
                assert not block, text
        assert runs >= 6, out
    assert fathom("disasm", "--no-cache", "--source", program, "outer", status=0).stdout == \
        fathom("disasm", "--no-cache", "--source=1", program, "outer", status=0).stdout
    gone = os.path.join(folder, "gone")
    os.rename(os.path.join(folder, "src"), gone)
    out = fathom("disasm", "--no-cache", "--source", program, "outer", status=0).stdout
    reason = "  ; (no source: No such file or directory, see --source-dir)\n"
    files = len(re.findall(r"^  /", out, re.M))
    assert out.count(reason) == out.count("  ; ") == files < len(re.findall(r"^ {0,5}\d+  0x", out, re.M)), out
    out = fathom("disasm", "--no-cache", "--source-dir", gone, program, "plain", status=0).stdout
    path = os.path.join(gone, "nested.c")
    assert out.split("\n")[1:4] == [f"  {source_of(folder)}", f"  ; (source: {path})", f"  ; > 7  {lines_of(path)[6]}"], out
    done = fathom("disasm", "--source", "--no-lines", program, "main", status=2)
    assert done.stderr == "fathom: --source: does not go with --no-lines, which leaves lines out\n" and not done.stdout, done


@test("options that are wrong, or have nothing to print, are refused")
def options(folder):
    program = made(folder)
    for words, part in ((("--source=0",), "'0' is not a number from 1 to 1000000"), (("--source=x",), "'x' is not a number"),
                        (("--source", "--names-only"), "--source: does not go with --names-only")):
        done = fathom("addr", *words, program, "main", status=2)
        assert part in done.stderr and not done.stdout, (words, done)
    for wrong, part in ((os.path.join(folder, "none"), "No such file or directory"), (program, "Not a directory")):
        done = fathom("addr", "--source-dir", wrong, program, "main", status=0)
        assert done.stderr == f"fathom: --source-dir: {wrong}: {part} (check the path)\n" and "    > " in done.stdout, done
    done = fathom("stack", "--source", "--samples", "3", str(os.getpid()), status=2)
    assert "--source: does not go with --samples" in done.stderr, done


sys.exit(SUITE.run())
