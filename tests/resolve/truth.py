# SPDX-License-Identifier: MIT
"""Rows of many modules: row for row what fathom addr says of each module, in each form and in blocks of any size."""
import json
import os

from ask import llvm, records_of, run
from building import build_id, build_text, debug_path, section
from suite import COLUMNS, WITH_MODULE, binary_row, expected, options, read_binary, read_tsv, resolve, rows_of, same, source, test, tsv_rows, without_null, world


def as_tsv(row):
    """Offsets of TSV come back as texts."""
    return without_null(row) | {"offset": str(row["offset"])}


@test("TSV: 4,000 shuffled rows of 20 modules equal fathom addr on each, row for row")
def tsv(_folder):
    rows = rows_of(4000)
    found = read_tsv(resolve(*options(), *WITH_MODULE, data="".join(tsv_rows(rows))), COLUMNS)
    same(found, [as_tsv(expected(*row)) for row in rows])
    assert sum(len(row["inlines"]) == 2 for row in found) > 100


@test("TSV: with --nulls what is not known is \\N")
def nulls(_folder):
    rows = rows_of(300)
    text = resolve(*options(), *WITH_MODULE, "--nulls", data="".join(tsv_rows(rows)))
    for line, row in zip(text.split("\n"), rows):
        cells = dict(zip(COLUMNS, line.split("\t")))
        wanted = expected(*row)
        for column in ("function", "file", "line", "column", "source", "reason"):
            assert (cells[column] == "\\N") == (wanted[column] is None), (column, cells, wanted)


@test("JSONEachRow: 4,000 shuffled rows equal fathom addr, null for what is not known")
def json_rows(_folder):
    rows = rows_of(4000)
    data = "".join(json.dumps({"offset": a, "module": m.path, "build_id": m.build_id, "other": [1, {"x": "}\""}]}) + "\n" for m, a in rows)
    same(records_of(resolve(*options(), "--format", "json", data=data)), [expected(*row) for row in rows])


@test("binary: 4,000 shuffled rows equal fathom addr")
def binary(_folder):
    rows = rows_of(4000)
    data = b"".join(binary_row(m.build_id, a, m.path) for m, a in rows)
    same(read_binary(resolve(*options(), *WITH_MODULE, "--format", "binary", data=data), COLUMNS), [without_null(expected(*row)) for row in rows])


@test("one form in, another one out")
def mixed_forms(_folder):
    rows = rows_of(200)
    text = "".join(tsv_rows(rows))
    same(records_of(resolve(*options(), *WITH_MODULE, "--json", data=text)), [expected(*row) for row in rows])
    same(read_binary(resolve(*options(), *WITH_MODULE, "--output-format", "binary", data=text.encode()), COLUMNS),
         [without_null(expected(*row)) for row in rows])


@test("return addresses: by an option, and by a column, which counts more")
def returns(_folder):
    rows = rows_of(1000, 2, "return")
    wanted = [as_tsv(expected(*row, "return")) for row in rows]
    same(read_tsv(resolve(*options(), *WITH_MODULE, "--return-addresses", data="".join(tsv_rows(rows))), COLUMNS), wanted)
    for word in ("return", "1"):
        text = "".join(line.rstrip("\n") + f"\t{word}\n" for line in tsv_rows(rows))
        same(read_tsv(resolve(*options(), "--input-columns", "build_id,offset,module,kind", data=text), COLUMNS), wanted, word)
    exact = [as_tsv(expected(*row)) for row in rows_of(1000, 2)]
    text = "".join(line.rstrip("\n") + "\texact\n" for line in tsv_rows(rows))
    same(read_tsv(resolve(*options(), "--return-addresses", "--input-columns", "build_id,offset,module,kind", data=text), COLUMNS), exact)
    assert exact != wanted
    # Both kinds of one address in one batch.
    text = "".join(line.rstrip("\n") + f"\t{kind}\n" for line in tsv_rows(rows) for kind in ("exact", "return"))
    found = read_tsv(resolve(*options(), "--input-columns", "build_id,offset,module,kind", data=text), COLUMNS)
    same(found, [row for both in zip(exact, wanted) for row in both])


def in_blocks(lines, size):
    return [lines[i:i + size] for i in range(0, len(lines), size)]


@test("blocks of 1, 7 and 65,409 rows: the same rows, each block after its number of rows")
def blocks(_folder):
    rows = rows_of(4000)
    wanted = [as_tsv(expected(*row)) for row in rows]
    for size, times in ((1, 1), (7, 1), (65409, 17)):
        lines = tsv_rows(rows) * times
        parts = in_blocks(lines, size)
        data = "".join(f"{len(part)}\n{''.join(part)}" for part in parts)
        plain = resolve(*options(), *WITH_MODULE, "--chunks=in", data=data)
        both = resolve(*options(), *WITH_MODULE, "--chunks=both", data=data)
        out = plain.splitlines(keepends=True)
        same(read_tsv("".join(out[:len(rows)]), COLUMNS), wanted, size)
        assert out == out[:len(rows)] * times, size
        assert both == "".join(f"{len(part)}\n{''.join(part)}" for part in in_blocks(out, size)), size


@test("blocks of the binary form, and of JSON")
def other_blocks(_folder):
    rows = rows_of(500)
    parts = in_blocks(rows, 100)
    data = b"".join(b"%d\n" % len(part) + b"".join(binary_row(m.build_id, a, m.path) for m, a in part) for part in parts)
    out = resolve(*options(), *WITH_MODULE, "--format", "binary", "--chunks=both", data=data)
    for part in parts:
        head, _, out = out.partition(b"\n")
        assert int(head) == len(part)
        size = len(resolve(*options(), *WITH_MODULE, "--format", "binary", data=b"".join(binary_row(m.build_id, a, m.path) for m, a in part)))
        same(read_binary(out[:size], COLUMNS), [without_null(expected(*row)) for row in part])
        out = out[size:]
    assert not out
    text = "".join(f"{len(part)}\n" + "".join(json.dumps({"build_id": m.build_id, "offset": str(a), "module": m.path}) + "\n" for m, a in part)
                   for part in parts)
    lines = resolve(*options(), "--format", "json", "--chunks=both", data=text).splitlines()
    at = 0
    for part in parts:
        assert lines[at] == str(len(part))
        # Numbers in quotes come back in quotes.
        same([json.loads(line) for line in lines[at + 1:at + 1 + len(part)]],
             [expected(*row) | {"offset": str(row[1])} for row in part])
        at += 1 + len(part)


@test("one thread and two: the same bytes")
def threads(_folder):
    data = "".join(tsv_rows(rows_of(4000)) * 5)
    one, two = (resolve(*options(), *WITH_MODULE, "--threads", n, data=data) for n in (1, 2))
    assert one == two and one.count("\n") == 20000


@test("3,000 rows equal llvm-symbolizer: linkage names, files, lines, inlined calls")
def beside_llvm(_folder):
    rows = [(m, a) for m, a in rows_of(4000) if m.text <= a < m.text + m.text_size and not m.options][:3000]
    found = read_tsv(resolve("--no-cache", "--no-demangle", "--columns", "functions,files,lines", *WITH_MODULE, data="".join(tsv_rows(rows))),
                     ["functions", "files", "lines"])
    by_module = {}
    for module, address in rows:
        by_module.setdefault(module.path, []).append(address)
    theirs = {path: dict(zip(addresses, llvm(path, addresses))) for path, addresses in by_module.items()}
    compared = 0
    for (module, address), row in zip(rows, found):
        frames = [(None if name == "??" else name, file, line or None) for name, file, line in zip(row["functions"], row["files"], row["lines"])]
        other = [frame[:3] for frame in theirs[module.path][address].frames]
        # Code of the C library's start files has no lines; llvm-symbolizer then names the symbol's file.
        if other and other[0][2]:
            assert frames == other, f"{module.path} {address:#x}: {frames}\nnot {other}"
            compared += 1
    assert compared > 2000, compared


@test("offsets in the file: the same answers as of the addresses; of a debug file alone there are none")
def file_offsets(folder):
    rows = [(m, a) for m, a in rows_of(4000) if m.text <= a < m.text + m.text_size]
    lines = "".join(f"{m.build_id}\t{a - m.text + m.text_off:#x}\t{m.path}\n" for m, a in rows)
    assert all(section(m.path, ".text").off == m.text_off for m in world().modules)
    columns = [c for c in COLUMNS if c != "offset"]
    found = read_tsv(resolve("--no-cache", "--debug-dir", world().debug_dir, "--columns", ",".join(columns), "--file-offsets", *WITH_MODULE,
                             data=lines), columns)
    same(found, [{k: v for k, v in as_tsv(expected(*row)).items() if k != "offset"} for row in rows])
    module = world().modules[3]
    row = f"{module.build_id}\t{module.text_off + 64}\n"
    given = ("--no-cache", "--debug-dir", world().debug_dir, "--columns", "function,reason")
    assert resolve(*given, "--file-offsets", data=row) == "\tno-file\n"
    # Other tools leave the headers of the program in the debug file.
    other = os.path.join(folder, "whole")
    build_text(other, source(30), flags=("-O1", "-g"))
    ident = build_id(other)
    run("eu-strip", "-f", debug_path(folder, ident), other, "-o", os.path.join(folder, "stripped"))
    text = section(other, ".text")
    for more, off, wanted in (((), text.addr + 64, True), (("--file-offsets",), text.off + 64, False)):
        out = resolve("--no-cache", "--debug-dir", folder, "--columns", "function,reason", *more, data=f"{ident}\t{off}\n")
        assert out.split("\t")[0] != "" if wanted else out == "\tno-file\n", (more, out)
    named = f"{module.build_id}\t{module.text + 64}\n"
    assert resolve(*given, data=named).split("\t")[0] != ""
    assert resolve(*given, "--file-offsets", *WITH_MODULE, data=f"{module.build_id}\t{1 << 40}\t{module.path}\n") == "\tunmapped\n"


@test("a stripped program: its debug file serves by its build-id, with the program and without")
def by_build_id(_folder):
    module = world().modules[3]
    rows = [(m, a) for m, a in rows_of(4000) if m is module and m.text <= a < m.text + m.text_size]
    alone = read_tsv(resolve("--no-cache", "--debug-dir", world().debug_dir, "--columns", "function,line,inlines",
                             data="".join(f"{m.build_id.upper()}\t{a}\n" for m, a in rows)), ["function", "line", "inlines"])
    wanted = [without_null(expected(*row)) for row in rows]
    named = [(f, w) for f, w in zip(alone, wanted) if w["line"]]
    same([f for f, _ in named], [{k: w[k] for k in ("function", "line", "inlines")} for _, w in named])
    assert len(named) > 50
