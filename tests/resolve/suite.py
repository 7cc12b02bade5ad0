# SPDX-License-Identifier: MIT
"""The suite that all its parts add tests to; the modules that rows are about, and their answers by fathom addr."""
import atexit
import json
import os
import random
import shutil
import struct
import tempfile
import threading

import tap
from ask import FATHOM, addr_stream, execute, records_of, run
from building import build_id, build_text, debug_path, keep_debug

SUITE = tap.Suite("resolve")
test = SUITE.test
MODULES = 20
# The columns that the tests compare, and of which type each is in the binary form.
TYPES = {"build_id": "text", "offset": "u64", "module": "text", "kind": "u8", "count": "u64", "function": "text", "linkage_name": "text",
         "file": "text", "line": "u32", "column": "u32", "inlines": "texts", "functions": "texts", "files": "texts", "lines": "numbers",
         "address": "u64", "path": "text", "source": "text", "reason": "text"}
COLUMNS = ["build_id", "offset", "function", "linkage_name", "file", "line", "column", "inlines", "functions", "files", "lines",
           "source", "reason"]
# Names in the source of the file and in its path have what needs escapes.
ODD_NAME = "it's\ta \\ \"name\"\n.c"


def source(number):
    """A program with functions of its own, and calls that are inlined, two deep."""
    lines = ["static volatile int sink;"]
    for i in range(8):
        lines.append(f"static inline __attribute__((always_inline)) int m{number}_leaf{i}(int x) {{ sink = x; return x * {i + 3} + sink; }}")
        lines.append(f"static inline __attribute__((always_inline)) int m{number}_mid{i}(int x) {{ return m{number}_leaf{i}(x) + {number}; }}")
        lines.append(f"__attribute__((noinline)) int m{number}_f{i}(int x) {{ int s = 0;\n for (int k = 0; k < x; k++)\n"
                     f"  s += m{number}_mid{i}(k) ^ {number * 7 + i};\n return s; }}")
    lines.append(f"int main(int n, char **v) {{ (void)v; return {' + '.join(f'm{number}_f{i}(n)' for i in range(8))}; }}")
    return "\n".join(lines) + "\n"


class Module:
    """A program, its build-id, and addresses of it."""

    def __init__(self, path, options=()):
        self.path, self.options = path, options
        self.build_id = build_id(path)
        words = next(line.replace("[ ", "[").split() for line in run("readelf", "-SW", path).splitlines() if " .text " in line)
        self.text, self.text_off, self.text_size = (int(word, 16) for word in words[3:6])
        self.answers = {}

    def know(self, addresses, kind="exact"):
        """Asks fathom addr for the answers to @addresses."""
        more = ["--return-addresses"] if kind == "return" else []
        new = [a for a in addresses if (a, kind) not in self.answers]
        if new:
            self.answers |= {(a, kind): r for a, r in zip(new, addr_stream(self.path, new, *self.options, *more))}


class World:
    """All modules, in a folder; one of them is stripped, and has its debug file by its build-id."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-resolve-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.debug_dir = os.path.join(self.folder, "debug")
        self.modules = []
        for number in range(MODULES):
            path = os.path.join(self.folder, f"m{number}")
            if number == 7:
                text = os.path.join(self.folder, ODD_NAME)
                with open(text, "w", encoding="utf-8") as f:
                    f.write(source(number))
                run("gcc", "-O2", "-g", "-o", path, text)
            else:
                build_text(path, source(number), flags=("-O2", "-g") if number % 2 else ("-O1", "-g"))
            if number == 3:
                debug = keep_debug(path)
                shutil.move(debug, debug_path(self.debug_dir, build_id(path)))
            self.modules.append(Module(path, ("--debug-dir", self.debug_dir) if number == 3 else ()))
        os.makedirs(self.debug_dir, exist_ok=True)


_world = []
_lock = threading.RLock()


def world():
    with _lock:
        if not _world:
            _world.append(World())
        return _world[0]


def rows_of(n, seed=1, kind="exact"):
    """@n rows (module, address), shuffled, of all modules; some addresses are outside of all code."""
    choose = random.Random(seed)
    rows = []
    for _ in range(n):
        module = choose.choice(world().modules)
        address = module.text + choose.randrange(-16, module.text_size + 16)
        rows.append((module, address))
    with _lock:
        for module in world().modules:
            module.know({a for m, a in rows if m is module}, kind)
    return rows


def inline_text(frame):
    place = "" if not frame["file"] else f" {frame['file']}" + (f":{frame['line']}" if frame["line"] else "") + \
        (f":{frame['column']}" if frame["line"] and frame["column"] else "")
    return (frame["function"] or "??") + place


def expected(module, address, kind="exact"):
    """The row for an address, by fathom addr --json."""
    record = module.answers[address, kind]
    frames = record["frames"] or ([{"function": record["symbol"], "linkage_name": record["linkage_name"], "file": None, "line": None,
                                    "column": None}] if record["symbol"] else [])
    first = frames[0] if frames else {"function": None, "linkage_name": None, "file": None, "line": None, "column": None}
    return {"build_id": module.build_id, "offset": address, "function": first["function"], "linkage_name": first["linkage_name"],
            "file": first["file"], "line": first["line"], "column": first["column"], "inlines": [inline_text(f) for f in frames[1:]],
            "functions": [f["function"] or "??" for f in frames], "files": [f["file"] or "" for f in frames],
            "lines": [f["line"] or 0 for f in frames], "source": record["source"], "reason": record["reason"]}


def without_null(row):
    """As the forms without null have it."""
    return {k: ("" if TYPES[k] == "text" else 0) if v is None else v for k, v in row.items()}


# Forms, read and written independently of fathom.

ESCAPES = {"b": "\b", "f": "\f", "r": "\r", "n": "\n", "t": "\t", "0": "\0", "'": "'", "\\": "\\"}


def tsv_unescape(text):
    out, at = [], 0
    while at < len(text):
        if text[at] == "\\":
            out.append(ESCAPES[text[at + 1]])
            at += 2
        else:
            assert text[at] not in "\b\f\r\n\t\0'", text
            out.append(text[at])
            at += 1
    return "".join(out)


def tsv_escape(text):
    names = {v: k for k, v in ESCAPES.items()}
    return "".join("\\" + names[c] if c in names else c for c in text)


def array_items(text):
    """The items of an array as ClickHouse writes it: ['a','b\\'c'] or [1,2]."""
    assert text[0] == "[" and text[-1] == "]", text
    items, at = [], 1
    while at < len(text) - 1:
        if text[at] == "'":
            end = at + 1
            while text[end] != "'":
                end += 2 if text[end] == "\\" else 1
            items.append(tsv_unescape(text[at + 1:end]))
            at = end + 1
        else:
            end = at
            while text[end] not in ",]":
                end += 1
            items.append(int(text[at:end]))
            at = end
        assert text[at] in ",]", text
        at += text[at] == ","
    return items


def read_tsv(text, columns):
    rows = []
    assert text.endswith("\n") or not text
    for line in text.split("\n")[:-1]:
        cells = line.split("\t")
        assert len(cells) == len(columns), (line, columns)
        row = {}
        for column, cell in zip(columns, cells):
            kind = TYPES[column]
            row[column] = array_items(cell) if kind in ("texts", "numbers") else None if cell == "\\N" else \
                tsv_unescape(cell) if kind == "text" or column in ("offset", "count", "kind", "address") else int(cell)
        rows.append(row)
    return rows


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def uleb(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def text(self):
        size = self.uleb()
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def number(self, form):
        size = struct.calcsize(form)
        self.at += size
        return struct.unpack(form, self.data[self.at - size:self.at])[0]


def read_binary(data, columns, n=None):
    b = Bytes(data)
    rows = []
    while b.at < len(data) if n is None else len(rows) < n:
        row = {}
        for column in columns:
            kind = TYPES[column]
            row[column] = b.text() if kind == "text" else [b.text() for _ in range(b.uleb())] if kind == "texts" else \
                [b.number("<I") for _ in range(b.uleb())] if kind == "numbers" else b.number({"u8": "<B", "u32": "<I", "u64": "<Q"}[kind])
        rows.append(row)
    return rows


def uleb(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def binary_row(build, offset, module=None, kind=None):
    text = lambda s: uleb(len(s.encode())) + s.encode()  # noqa: E731
    return text(build) + struct.pack("<Q", offset) + (text(module) if module is not None else b"") + (bytes([kind]) if kind is not None else b"")


def tsv_rows(rows):
    return [f"{m.build_id}\t{a}\t{tsv_escape(m.path)}\n" for m, a in rows]


WITH_MODULE = ("--input-columns", "build_id,offset,module")


def options():
    return ("--no-cache", "--debug-dir", world().debug_dir, "--columns", ",".join(COLUMNS))


def resolve(*arguments, data="", status=0, **more):
    """What fathom resolve prints, as bytes or text like @data."""
    done = execute(FATHOM, "resolve", *arguments, input=data, text=isinstance(data, str), status=status, **more)
    return done.stdout


def same(found, wanted, what=""):
    """All rows are equal, and so many."""
    assert len(found) == len(wanted), f"{what}: {len(found)} rows, not {len(wanted)}"
    for i, (f, w) in enumerate(zip(found, wanted)):
        assert f == w, f"{what}: row {i}: {f}\nnot {w}"


def stats_of(text):
    """The counts in the last line of standard error."""
    return json.loads(text.splitlines()[-1])


