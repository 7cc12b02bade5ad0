# SPDX-License-Identifier: MIT
"""Makes ELF files with a .gopclntab, of any layout (Go 1.2, 1.16, 1.18, 1.20), size of pointers and byte order.

A function is (name, size, runs, frames, calls): runs are (size, file, line, call) of its code, one after the other; frames are
(size, bytes that the stack pointer is moved); calls are (name, offset of the instruction that has the caller's position)."""
import elfasm
from out import Out, uleb

MAGICS = {"1.2": 0xfffffffb, "1.16": 0xfffffffa, "1.18": 0xfffffff0, "1.20": 0xfffffff1}
TEXT, TABLE, DATA, TREES = 0x1000, 0x10000, 0x40000, 0x30000


def values(pairs, quantum=1):
    """A list of runs: (size, value)."""
    out, last = b"", -1
    for size, value in pairs:
        change = value - last
        out += uleb(change << 1 if change >= 0 else -change * 2 - 1) + uleb(size // quantum)
        last = value
    return out + b"\0"


class Table:
    def __init__(self, functions, layout, bits=64, big=False, quantum=1, gap=0):
        self.layout, self.pointer, self.big, self.quantum, self.gap = layout, bits // 8, big, quantum, gap
        self.is_old, self.is_distance = layout == "1.2", layout in ("1.18", "1.20")
        self.names, self.files, self.lists = Out(big), Out(big), Out(big).u8(0)
        self.trees, self.numbers, self.offsets = Out(big), [], {}
        self.functions, self.rest = functions, {}
        self.elf = elfasm.Elf(bits, big, {True: elfasm.EM_PPC64, False: elfasm.EM_X86_64 if bits == 64 else elfasm.EM_386}[big])
        self.bytes = (self.made_old() if self.is_old else self.made()).bytes
        text = sum(f[1] + gap for f in functions)
        self.elf.text(TEXT, text)
        self.elf.section(".gopclntab", self.bytes, flags=elfasm.SHF_ALLOC, addr=TABLE, align=32)
        self.elf.section(".rodata", bytes(self.trees.bytes) or b"\0", flags=elfasm.SHF_ALLOC, addr=TREES, align=8)
        self.elf.section(".data", self.module_data() if self.is_distance else bytes(64), flags=elfasm.SHF_ALLOC | elfasm.SHF_WRITE,
                         addr=DATA, align=8)

    def word(self, out, value):
        return out.uint(value, self.pointer)

    def name(self, name):
        if name not in self.offsets:
            self.offsets[name] = len(self.names)
            self.names.cstr(name)
        return self.offsets[name]

    def file(self, name):
        """The number of a file in the one unit; those of 1.2 begin with 1."""
        if name not in self.numbers:
            self.numbers.append(name)
        return self.numbers.index(name) + self.is_old

    def list(self, pairs):
        at = len(self.lists)
        self.lists.raw(values(pairs, self.quantum))
        return at

    def tree(self, calls):
        """Where the tree of a function's calls is among all."""
        at = len(self.trees.align(8))
        for name, at_pc in calls:
            if self.layout == "1.20":
                self.trees.u32(0).u32(self.name(name)).u32(at_pc).u32(0)
            else:
                self.trees.u32(0xffff).u32(0).u32(0).u32(self.name(name)).u32(at_pc)
        return at

    def function(self, entry, f, lists):
        """What the table has of one function, given where its lists are."""
        name, _, _, _, calls = f
        out, start = Out(self.big), entry - TEXT
        out.u32(start) if self.is_distance else self.word(out, entry)
        out.u32(self.name(name)).u32(0).u32(0).u32(lists[0]).u32(lists[1]).u32(lists[2])
        if self.is_old:
            return out.u32(0).u32(0)
        out.u32(3).u32(0)
        if self.layout == "1.20":
            out.u32(0)
        out.u8(0).u8(0).u8(0).u8(4)
        out.u32(0).u32(0).u32(lists[3])
        tree = self.tree(calls) if calls else None
        if self.is_distance:
            return out.u32(0xffffffff).u32(0xffffffff).u32(0xffffffff).u32(0xffffffff if tree is None else tree)
        return out, tree

    def each(self):
        """(entry, function, where its lists are) of all."""
        at = TEXT
        for f in self.functions:
            _, size, runs, frames, _ = f
            lists = [self.list(frames), self.list([(n, self.file(file)) for n, file, _, _ in runs]), self.list([(n, line) for n, _, line, _ in runs]),
                     self.list([(n, call) for n, _, _, call in runs])]
            yield at, f, lists
            at += size + self.gap

    def head(self):
        return Out(self.big).u32(MAGICS[self.layout]).u8(0).u8(0).u8(self.quantum).u8(self.pointer)

    def made(self):
        functions, index = Out(self.big), Out(self.big)
        entry_size = 4 if self.is_distance else self.pointer
        base = (2 * len(self.functions) + 1) * entry_size + 7 & ~7
        for f in self.functions:
            self.name(f[0])
        for entry, f, lists in list(self.each()):
            functions.align(8)
            index.uint(entry - TEXT if self.is_distance else entry, entry_size).uint(base + len(functions), entry_size)
            made = self.function(entry, f, lists)
            if self.is_distance:
                functions.raw(made.bytes)
                continue
            out, tree = made
            functions.raw(out.bytes)
            # Pointers, aligned in memory: the table begins at a multiple of 8, and so does what follows the index.
            if self.pointer == 8:
                functions.align(8)
            for pointer in (0, 0, 0, 0 if tree is None else TREES + tree):
                self.word(functions, pointer)
        end = TEXT + sum(f[1] + self.gap for f in self.functions)
        index.uint(end - TEXT if self.is_distance else end, entry_size)
        cus = Out(self.big)
        for name in self.numbers:
            cus.u32(len(self.files))
            self.files.cstr(name)
        n_words = 8 if self.is_distance else 7
        parts, at = [], 8 + n_words * self.pointer
        for part in (self.names, cus, self.files, self.lists):
            at += -at % 8
            parts.append(at)
            at += len(part)
        at += -at % 8
        parts.append(at)
        self.parts = parts
        out = self.head()
        for value in [len(self.functions), len(self.numbers)] + ([TEXT] if self.is_distance else []) + parts:
            self.word(out, value)
        for part in (self.names, cus, self.files, self.lists, index, functions):
            out.align(8).raw(part.bytes)
        return out

    def made_old(self):
        """All in one: every offset is one from the start of the table."""
        made = list(self.each())
        index_size = (2 * len(made) + 1) * self.pointer + 4
        names_at = 8 + self.pointer + index_size
        for f in self.functions:
            self.name(f[0])
        lists_at = names_at + len(self.names)
        functions_at = lists_at + len(self.lists)
        functions_at += -functions_at % 8
        functions, index = Out(self.big), Out(self.big)
        offsets = {name: off + names_at for name, off in self.offsets.items()}
        self.offsets = offsets
        for entry, f, lists in made:
            functions.align(8)
            self.word(index, entry)
            self.word(index, functions_at + len(functions))
            functions.raw(self.function(entry, f, [at + lists_at for at in lists]).bytes)
        self.word(index, TEXT + sum(f[1] + self.gap for f in self.functions))
        files_at = functions_at + len(functions.align(8))
        index.u32(files_at)
        texts_at = files_at + 4 * (len(self.numbers) + 1)
        table, texts = Out(self.big).u32(len(self.numbers) + 1), Out(self.big)
        for name in self.numbers:
            table.u32(texts_at + len(texts))
            texts.cstr(name)
        out = self.word(self.head(), len(made)).raw(index.bytes).raw(self.names.bytes).raw(self.lists.bytes).align(8)
        return out.raw(functions.bytes).raw(table.bytes).raw(texts.bytes)

    def module_data(self):
        """runtime.moduledata, as far as it is read: pointers to the parts, the start of the text, and of data of functions."""
        words = [0] * 48
        words[0] = TABLE
        words[1], words[4], words[7], words[10] = (TABLE + part for part in self.parts[:4])
        words[22] = TEXT
        words[40 if self.layout == "1.20" else 38] = TREES
        out = Out(self.big)
        for value in words:
            self.word(out, value)
        return out.bytes

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.elf.build())
        return path
