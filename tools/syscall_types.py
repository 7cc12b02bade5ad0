# SPDX-License-Identifier: MIT
"""Reads src/host/syscalls/syscalls.txt: what arguments of system calls are, as rows of types, structs and cases."""
import re

from syscall_headers import ARCHES, prologue, values_of

SPECIFICATION = "src/host/syscalls/syscalls.txt"
# Sizes of a long, and the greatest alignment, of the two kinds of layout.
LAYOUTS = [(8, 8), (4, 4)]
WORD = 0xff
RESULT = 6
ARROW = 1 << 16
NUMBERS = {"s": "SIGNED", "u": "UNSIGNED", "x": "HEX", "o": "OCTAL", "z": "SIZE"}
PLAIN = {"addr": ("ADDRESS", WORD), "fd": ("DESCRIPTOR", 4), "atfd": ("DIRECTORY", 4), "pid": ("PID", 4), "uid": ("UID", 4), "uid16": ("UID", 2),
         "signal": ("SIGNAL", 4), "umode": ("PERMISSIONS", 2), "path": ("PATH", WORD), "cstr": ("STRING", WORD)}
FUNCTIONS = {"fn": "FUNCTION", "fnout": "FUNCTION_OUT", "fnboth": "FUNCTION_BOTH"}
# What if() may ask for, as expressions of the headers.
MASKS = {"O_CREAT|O_TMPFILE_BIT": "O_CREAT | (O_TMPFILE & ~O_DIRECTORY)", "O_CREAT": "O_CREAT", "S_IFCHR": "S_IFCHR",
         "1": "1", "MREMAP_BITS": "MREMAP_MAYMOVE | MREMAP_FIXED",
         "CLONE_BITS": "CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_SETTLS | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID"}
MASK_HEADERS = [(False, "linux/fcntl.h"), (False, "linux/stat.h"), (False, "linux/mman.h"), (False, "linux/sched.h")]


class Types:
    """Rows (kind, width, a, b, n) of types, each once; the first is that of nothing."""

    def __init__(self, constants):
        self.constants = {table.name: i for i, table in enumerate(constants)}
        self.tables = constants
        self.rows = [("NONE", 0, 0, 0, 0)]
        self.places = {}
        self.sizes = {}
        self.structs, self.struct_numbers, self.fields = [], {}, []
        self.named, self.functions, self.lists, self.list_places = {}, {}, [], {}
        self.cases, self.case_rows, self.subcalls = {}, [], {}
        found = values_of(ARCHES[0], prologue(MASK_HEADERS, set()), MASKS.values())
        self.masks = {name: found[text] for name, text in MASKS.items()}

    def add(self, row, sizes):
        """Returns the number of a row; @sizes are (size, alignment) of its values in each layout."""
        if row not in self.places:
            self.places[row] = len(self.rows)
            self.rows.append(row)
            self.sizes[self.places[row]] = sizes
        return self.places[row]

    def list_of(self, numbers):
        """Returns the place of a list of types in all lists."""
        key = tuple(numbers)
        if key and key not in self.list_places:
            self.list_places[key] = len(self.lists)
            self.lists += key
        return self.list_places.get(key, 0)

    def parse(self, text):
        """Returns the number of the type that @text describes."""
        if text == "-":
            return 0
        if text in self.named:
            return self.named[text]
        head, inner, suffix = re.fullmatch(r"([a-z]\w*)(?:\((.*)\))?(?::(\w+))?", text).groups()
        if inner is None and suffix is None:
            return self.parse_plain(text)
        parts = split(inner or "")
        if head in ("in", "out", "outs"):
            kind = {"in": "POINTER", "out": "POINTER_OUT", "outs": "POINTER_OUT_ALWAYS"}[head]
            return self.add((kind, WORD, self.parse(parts[0]), 0, 0), word_sizes())
        if head in ("both", "inout"):
            before, after = self.parse(parts[0]), self.parse(parts[1])
            return self.add(("POINTER_BOTH", WORD, after, 0, before | ARROW if head == "inout" else before), word_sizes())
        if head == "array":
            return self.parse_array(parts)
        if head in FUNCTIONS:
            return self.parse_function(head, parts[0], suffix)
        if head == "if":
            return self.add(("IF", int(parts[0][1:]), self.parse(parts[2]), 0, self.masks[parts[1]]), word_sizes())
        if head == "cases":
            return self.add(("CASES", 0, list(self.cases).index(parts[0]) if parts[0] in self.cases else self.promise(parts[0]), 0, 0),
                            word_sizes())
        match = re.fullmatch(r"(flags|enum)(\d|l)?", head)
        width = width_of(match[2] or "4")
        return self.add((match[1].upper(), width, self.constants[parts[0]], 0, 0), number_sizes(width))

    def promise(self, name):
        """Returns the number of cases that come later in the file."""
        self.cases[name] = None
        return list(self.cases).index(name)

    def parse_plain(self, text):
        if text in PLAIN:
            kind, width = PLAIN[text]
            return self.add((kind, width, 0, 0, 0), number_sizes(width))
        if match := re.fullmatch(r"mode(\d)", text):
            return self.add(("MODE", int(match[1]), 0, 0, 0), number_sizes(int(match[1])))
        if match := re.fullmatch(r"pad(l?)(\d+)", text):
            sizes = [((word if match[1] else 1) * int(match[2]), word if match[1] else 1) for word, _ in LAYOUTS]
            return self.add(("PADDING", 0, 0, 0, int(match[2]) + (0x8000 if match[1] else 0)), sizes)
        if text in self.struct_numbers:
            number = self.struct_numbers[text]
            return self.add(("STRUCT", 0, number, 0, 0), self.structs[number][-1])
        match = re.fullmatch(r"([suxoz])([1248l])", text)
        width = width_of(match[2])
        return self.add((NUMBERS[match[1]], width, 0, 0, 0), number_sizes(width))

    def parse_array(self, parts):
        of = self.parse(parts[0])
        source, n = count_of(parts[1])
        sizes = [(size * (n if source == RESULT + 1 else 0), align) for size, align in self.sizes[of]]
        return self.add(("ARRAY", source, of, 0, n), sizes)

    def parse_function(self, head, name, suffix):
        number = self.functions.setdefault(name, len(self.functions))
        width, n, sizes = WORD, 0, word_sizes()
        if suffix and suffix[0] == "b":
            n, sizes = int(suffix[1:]), [(int(suffix[1:]), 1)] * 2
        elif suffix and suffix[0] in "ar":
            n = RESULT if suffix == "r" else int(suffix[1:])
        elif suffix:
            width = width_of(suffix)
            sizes = number_sizes(width)
        return self.add((FUNCTIONS[head], width, number, 0, n), sizes)

    def add_struct(self, name, items):
        """Reads the fields of a struct and lays them out."""
        first, ends, aligns, abbreviated = len(self.fields), [0, 0], [1, 1], any(item[0] == "+" for item in items)
        fields = []
        for item in items:
            field, _, text = item.lstrip("+?").partition(":")
            of = self.parse(text)
            offsets = []
            for layout, (size, align) in enumerate(self.sizes[of]):
                align = min(align, LAYOUTS[layout][1])
                offset = -(-ends[layout] // align) * align
                offsets.append(offset)
                ends[layout] = offset + size
                aligns[layout] = max(aligns[layout], align)
            if text[:3] != "pad":
                fields.append((field, of, *offsets, 2 if item[0] == "?" else item[0] == "+" or not abbreviated))
        self.fields += fields
        sizes = [(-(-end // align) * align, align) for end, align in zip(ends, aligns)]
        self.struct_numbers[name] = len(self.structs)
        self.structs.append((name, first, len(fields), abbreviated, sizes))
        self.parse(name)

    def add_case(self, group, line):
        """Reads one line of cases: (place of its constant, list of types, result)."""
        left, _, right = line.partition("=")
        names, types, result = left.split(), *self.parse_list(right)
        for name in names:
            if name == "default":
                group["default"] = (types, result)
                continue
            rows = [row for row in self.tables[self.constants[group["table"]]].rows if row[1] == name]
            if not rows:
                raise SystemExit(f"{SPECIFICATION}: {group['table']} has no {name}")
            group["rows"] += [(value, bits, types, result) for value, _, bits in rows]

    def parse_list(self, text):
        """Returns the types of a line, and that of the result."""
        left, _, result = text.partition("->")
        return [self.parse(item) for item in left.split()], self.parse(result.strip()) if result.strip() else 0


def width_of(text):
    return WORD if text == "l" else int(text)


def word_sizes():
    return [(word, word) for word, _ in LAYOUTS]


def number_sizes(width):
    return word_sizes() if width == WORD else [(width, width)] * 2


def count_of(text):
    """Returns where a count comes from: argument 0 to 5, the result, or RESULT + 1 for the number itself; and that."""
    if text == "r":
        return RESULT, 0
    return (int(text[1:]), 0) if text[0] == "a" else (RESULT + 1, int(text))


def split(text):
    """Splits at the commas that are in no parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def read(constants):
    """Returns Types, and {call: (types, result, classes)}."""
    types, calls, group = Types(constants), {}, None
    with open(SPECIFICATION, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and line[0] != "#"]
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "struct":
            name, _, fields = rest.partition(" = ")
            types.add_struct(name, fields.split())
        elif word == "type":
            name, _, text = rest.partition(" = ")
            types.named[name] = types.parse(text)
        elif word == "call":
            names, _, shape = rest.partition("=")
            shape, _, classes = shape.partition(" : ")
            of = types.parse_list(shape)
            for name in names.split():
                calls[name] = (*of, classes.split())
        elif word == "subcalls":
            name, _, names = rest.partition(" = ")
            types.subcalls[name] = names.split()
        elif word == "cases":
            name, table, *mask = rest.split()
            group = types.cases[name] = {"table": table, "rows": [], "default": ([], 0), "mask": mask[0] if mask else "0xffffffff"}
        else:
            types.add_case(group, line)
    return types, calls
