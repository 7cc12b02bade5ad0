# SPDX-License-Identifier: MIT
"""The forms of rows, byte for byte: the escapes of ClickHouse's TabSeparated, JSON's, numbers and kinds; columns; options."""
import json

from ask import refused
from building import nm
from suite import ODD_NAME, WITH_MODULE, binary_row, expected, read_binary, resolve, rows_of, test, tsv_escape, world

NO_ID = "00112233445566778899aabbccddeeff00112233"
# What ClickHouse 18.16 and 26 write for these characters, by their documentation of TabSeparated.
ALL_ESCAPES = rb"a\bb\fc\rd\ne\tf\0g\'h\\i"
ALL_PLAIN = "a\bb\fc\rd\ne\tf\0g'h\\i"


@test("TSV: keys come back byte for byte with all of ClickHouse's escapes, and \\N as \\N")
def tsv_keys(_folder):
    for text in (ALL_ESCAPES, b"plain", rb"\'", rb"\\N", rb"\\", "\u00fc \u4e2d".encode(), b"\xff\xfe\x01\x7f", b"", rb"\N"):
        row = NO_ID.encode() + b"\t18446744073709551615\t" + text + b"\n"
        assert resolve("--columns", "build_id,offset,module", *WITH_MODULE, data=row) == row, text


@test("TSV: escapes are read as they mean, in build-id and offset, too")
def tsv_meaning(_folder):
    module = world().modules[0]
    plain = f"{module.build_id}\t{module.text}\t{module.path}\n".encode()
    wanted = resolve("--columns", "function,path", *WITH_MODULE, data=plain)
    assert module.path.encode() in wanted
    first = module.build_id[0]
    odd = f"\\x{ord(first):02x}{module.build_id[1:]}\t\\{hex(module.text)[0]}x{module.text:x}\t\\/{module.path[1:]}\n".encode()
    odd = odd.replace(b"\\0x", b"0x")
    assert resolve("--columns", "function,path", *WITH_MODULE, data=odd) == wanted
    row = f"{NO_ID}\t1\t".encode() + ALL_ESCAPES + b"\n"
    assert json.loads(resolve("--json", "--columns", "module", *WITH_MODULE, data=row)) == {"module": ALL_PLAIN}


@test("TSV: names of files are written with the escapes, in columns and in lists")
def tsv_output(_folder):
    module = world().modules[7]
    (main, _), = nm(module.path)["main"]
    row = f"{module.build_id}\t{main}\t{module.path}\n"
    name = rb"""it\'s\ta \\ "name"\n.c"""
    assert tsv_escape(ODD_NAME).encode() == name
    file, files, inlines = resolve("--columns", "file,files,inlines", *WITH_MODULE, data=row.encode()).rstrip(b"\n").split(b"\t")
    assert file.endswith(b"/" + name), file
    assert files.startswith(b"['/") and files.endswith(name + b"']") and files.count(b"','") == files.count(name) - 1, files
    assert inlines.startswith(b"['") or inlines == b"[]", inlines
    joined = resolve("--columns", "files", "--join", "|", *WITH_MODULE, data=row.encode()).rstrip(b"\n")
    assert joined == file if b"|" not in joined else joined.split(b"|")[-1] == file


@test("lists of one text: --join stands between the items")
def joined(_folder):
    rows = [row for row in rows_of(2000) if len(expected(*row)["inlines"]) == 2][:20]
    data = "".join(f"{m.build_id}\t{a}\t{m.path}\n" for m, a in rows)
    found = resolve("--no-cache", "--debug-dir", world().debug_dir, "--json", "--join", " <- ", "--columns", "functions,inlines,lines", *WITH_MODULE,
                    data=data).splitlines()
    assert len(found) == 20
    for line, row in zip(found, rows):
        wanted = expected(*row)
        assert json.loads(line) == {"functions": " <- ".join(wanted["functions"]), "inlines": " <- ".join(wanted["inlines"]),
                                    "lines": " <- ".join(map(str, wanted["lines"]))}


@test("JSON: escapes of strings, pairs of UTF-16 and halves of them; members in any order; blanks; the last of two counts")
def json_forms(_folder):
    for text, module in ((r"\u0041\u00e9\u4e2d", "A\u00e9\u4e2d"), (r"\ud83d\ude00", "\U0001f600"), (r"\ud83d", "\ufffd"),
                         (r"\ud83dx", "\ufffdx"), (r"\ud83d\u0041", "\ufffdA"), (r"\ude00", "\ufffd"), (r"\"\\\/\b\f\n\r\t", "\"\\/\b\f\n\r\t")):
        line = f'  {{ "module" : "{text}" , "offset":1,\t"build_id":"{NO_ID}", "offset" : "7" }} \r\n'
        found = json.loads(resolve("--format", "json", "--columns", "build_id,module,offset,reason", data=line))
        assert found == {"build_id": NO_ID, "module": module, "offset": "7", "reason": "no-file"}, (text, found)


@test("numbers: decimal, hexadecimal after 0x, up to 2^64 - 1; nothing else is one")
def numbers(_folder):
    good = ["0", "1", "00", "18446744073709551615", "0xffffffffffffffff", "0Xff", "0x1"]
    bad = ["", "-1", "+1", " 1", "1 ", "1.0", "1e3", "ff", "0x", "0xg", "18446744073709551616", "0x10000000000000000", "9" * 400, "\\N", "0b1"]
    for form, rows in (("tsv", lambda n: f"{NO_ID}\t{n}\n"), ("json", lambda n: json.dumps({"build_id": NO_ID, "offset": n.replace("\\N", "")}) + "\n")):
        out = resolve("--format", form, "--output-format", "tsv", "--columns", "reason", data="".join(rows(n) for n in good + bad)).splitlines()
        assert out == ["no-file"] * len(good) + ["bad-address"] * len(bad), (form, out)


@test("kinds and counts: words and numbers; what is none is a bad row")
def kinds(_folder):
    rows = "".join(f"{NO_ID}\t1\t{kind}\t{count}\n" for kind, count in
                   (("exact", 1), ("return", 2), (0, 3), (1, "\\N"), ("\\N", 5), ("2", 1), ("", 1), ("exact", "x"), ("exact", "")))
    out = resolve("--input-columns", "build_id,offset,kind,count", "--columns", "kind,count,reason", data=rows).splitlines()
    assert [line.split("\t")[2] for line in out] == ["no-file"] * 5 + ["bad-row"] * 4
    assert [line.split("\t")[:2] for line in out[:4]] == [["exact", "1"], ["return", "2"], ["0", "3"], ["1", "\\N"]]


@test("binary: numbers and texts of each width, a last row that is cut, a length that cannot be")
def binary(_folder):
    long = "x" * 300
    data = binary_row(NO_ID, 2 ** 64 - 1, long, 1) + binary_row("", 0, "", 0)
    given = ("--format", "binary", "--input-columns", "build_id,offset,module,kind", "--columns", "build_id,offset,module,kind,reason")
    columns = ["build_id", "offset", "module", "kind", "reason"]
    wanted = [{"build_id": NO_ID, "offset": 2 ** 64 - 1, "module": long, "kind": 1, "reason": "no-file"},
              {"build_id": "", "offset": 0, "module": "", "kind": 0, "reason": "bad-build-id"}]
    assert read_binary(resolve(*given, data=data), columns) == wanted
    for cut in range(1, len(binary_row("", 0, "", 0))):
        found = read_binary(resolve(*given, data=data[:-cut]), columns)
        assert found[0] == wanted[0] and [row["reason"] for row in found[1:]] == ["bad-row"], (cut, found)
    lost = b"\xff\xff\xff\xff\x7f" + bytes(100)
    found = read_binary(resolve(*given, data=data + lost, status=2), columns)
    assert found[:2] == wanted and [row["reason"] for row in found[2:]] == ["limit"]


@test("columns, forms and options that there are not are refused, with what is meant")
def refusals(_folder):
    for arguments, words in ((("--columns", "functoin"), "did you mean function"), (("--columns", "file,file"), "given twice"),
                             (("--input-columns", "build_id"), "lacks offset"), (("--input-columns", "offset,line"), "is none of"),
                             (("--format", "csv"), "is none of"), (("--chunks", "out"), "is none of"), (("a.tsv",), "standard input"),
                             (("--deadline", "0"), "seconds")):
        assert words in refused("resolve", *arguments), arguments
    complaint = refused("resolve", "--chunks=in", input="2x\n")
    assert "'2x' is no number of rows" in complaint
    assert "is no number of rows" in refused("resolve", "--chunks=in", input="\n")
    assert "is no number of rows" in refused("resolve", "--chunks=in", input="9" * 30)
