# SPDX-License-Identifier: MIT
"""Asks GNU addr2line and fathom addr2line the same, and explains where they differ.

A difference is explained only by evidence that GNU is wrong: by GNU itself, when it answers
otherwise as soon as it is asked for nothing else, or by llvm-symbolizer, when it says the same as
fathom. docs/reports/oracle-addr2line.md describes the classes."""
import collections
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import ask  # noqa: E402

GNU = ["addr2line"]
OURS = [ask.FATHOM, "addr2line"]

Frame = collections.namedtuple("Frame", "name path line discriminator")
PLACE = re.compile(rb"(.*):(\d+|\?)(?: \(discriminator (\d+)\))?")


def ask_tool(tool, path, addresses, *options, arguments=False):
    """What @tool prints for @addresses, given on standard input or as arguments."""
    texts = [f"{a:#x}" for a in addresses]
    done = ask.execute(*tool, *options, "-e", path, *(texts if arguments else []), text=False,
                       input=b"" if arguments else "".join(t + "\n" for t in texts).encode())
    assert done.returncode == 0, f"{tool[0]} {options}: status {done.returncode}: {done.stderr}"
    return done.stdout


def parse(record):
    """The frames of one answer as printed with -f and -i."""
    frames = []
    for name, place in zip(record[::2], record[1::2]):
        path, line, discriminator = PLACE.fullmatch(place).groups()
        frames.append(Frame(name, path, line, discriminator))
    return frames


def answers(tool, path, addresses, *options):
    """The frames of each address. With -a each answer starts with its address on a line."""
    digits = 16 if ask_tool(tool, path, [0], "-a", *options).index(b"\n") == 18 else 8
    records = []
    expected = iter(addresses)
    wanted = next(expected, None)
    for line in ask_tool(tool, path, addresses, "-afi", *options).split(b"\n")[:-1]:
        # A function could be called like an address, but not like the next one at its place.
        if wanted is not None and line == b"0x%0*x" % (digits, wanted & (16 ** digits - 1)) and \
                (not records or len(records[-1]) % 2 == 0):
            records.append([])
            wanted = next(expected, None)
        else:
            records[-1].append(line)
    assert len(records) == len(addresses), f"{len(addresses)} addresses, {len(records)} answers"
    return [parse(r) for r in records]


def same_path(one, other):
    """Whether two tools' paths name one file, however much of what is before it they print."""
    parts = [[p for p in os.path.normpath(path).split(b"/") if p not in (b"", b"..")] for path in (one, other)]
    short, long = sorted(parts, key=len)
    return long[-len(short):] == short


def same_place(ours, llvm):
    _, path, line = llvm[:3]
    if path is None or path == "??":
        return ours.path == b"??"
    return same_path(ours.path, path.encode()) and ours.line == (b"%d" % line if line else b"?")


def confirmed(evidence, address, frames, llvm, outermost=False):
    """Whether llvm-symbolizer says the same: as many calls, each at the same place, and the same
    names of inlined functions; that of the @outermost, which GNU may take from the symbol table by
    a rule of its own, is only compared when asked for. Where dwz has moved names away, gdb is asked."""
    end = len(frames) - (not outermost)
    names = [o[0] for o in llvm.frames]
    if evidence.has_supplement and (outermost or None in names[:end]):
        names = evidence.gdb_names(address)
    return len(frames) == len(llvm.frames) and \
        all(same_place(f, o) for f, o in zip(frames, llvm.frames)) and \
        [f.name for f in frames[:end]] == [(n or "??").encode() for n in names[:end]]


DEBUG = "/usr/lib/debug/.build-id"


def debug_file(path):
    """Where Debian keeps the debug information of @path; @path itself when it has no build-id."""
    match = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", ask.run("readelf", "-nW", path, status=None))
    debug = f"{DEBUG}/{match[1]}/{match[2]}.debug" if match else path
    return debug if os.path.exists(debug) else path


DUMP = "llvm-dwarfdump"
FILE_ENTRY = re.compile(r"file_names\[ *(\d+)\]:\n\s+name: \"(.*)\"\n")
DECLARED = re.compile(r"DW_TAG_variable\n((?:\s+DW_AT_.*\n)*)")


def attribute(text, name):
    match = re.search(rf'{name}\s+\("?([^"\n]*?)"?\)\n', text)
    return match and match[1]


class Evidence:
    """What other tools know of one file."""

    def __init__(self, path, llvm_path):
        self.path = path
        self.llvm_path = llvm_path

    def declared(self, address, symbol):
        """Where the variable @symbol at @address is declared, as the LLVM tools read it: "file:line".
        In .dwo files llvm-symbolizer does not look for variables, there their names have to do."""
        place = ask.run(ask.LLVM, f"--obj={self.llvm_path}", f"DATA {address:#x}").splitlines()[2]
        if re.search(r":[1-9]\d*$", place):
            return {place}
        # Without the scope before the name and the number behind it.
        return self.split_variables.get(re.sub(r".*\.(?=\D)|\.\d+$", "", symbol), set())

    @functools.cached_property
    def split_variables(self):
        """The variables in .dwo files by name: where they are declared."""
        places = {}
        for dwo in self.split_files:
            files = dict(FILE_ENTRY.findall(ask.run(DUMP, "--debug-line", dwo)))
            for entry in DECLARED.findall(ask.run(DUMP, "--debug-info", dwo)):
                name, number, line = (attribute(entry, f"DW_AT_{a}") for a in ("name", "decl_file", "decl_line"))
                if number:
                    places.setdefault(name, set()).add(f"{files[str(int(number, 0))]}:{line}")
        return places

    @functools.cached_property
    def split_files(self):
        roots = ask.run(DUMP, "--debug-info", self.path).split("DW_TAG_")
        return [os.path.join(attribute(r, "DW_AT_comp_dir"), attribute(r, "_dwo_name"))
                for r in roots if "_dwo_name" in r]

    @functools.cached_property
    def forms(self):
        return set(re.findall(r"DW_FORM_\w+", ask.run("readelf", "--debug-dump=abbrev", self.path)))

    @functools.cached_property
    def has_supplement(self):
        """Whether dwz has moved names and functions to a file that others share."""
        return ".gnu_debugaltlink" in ask.run("readelf", "-SW", self.llvm_path, debug_file(self.path))

    @functools.cached_property
    def without_memory(self):
        """The symbols of .tbss, which takes no memory where its address is."""
        symbols = ask.run("readelf", "-sW", self.path)
        section = re.search(r"\[ *(\d+)\] \.tbss ", ask.run("readelf", "-SW", self.path))
        return {line.split()[-1].encode() for line in symbols.splitlines() if section and line.split()[6:7] == [section[1]]}

    def gdb_names(self, address):
        """The names of the functions at @address, inlined ones first."""
        walk = (f"b = gdb.block_for_pc({address:#x})", "while b and b.superblock:",
                "    if b.function: print('@', b.function.linkage_name)", "    b = b.superblock")
        out = ask.run("gdb", "-nx", "-batch", "-ex", "python exec(" + repr("\n".join(walk)) + ")", self.path)
        return [line[2:] for line in out.splitlines() if line.startswith("@ ")]


def shape(gnu, ours):
    """What differs between two answers, as the set of classes that look so."""
    if len(gnu) != len(ours):
        return {"calls"}
    found = set()
    for depth, (g, o) in enumerate(zip(gnu, ours)):
        if g.name != o.name:
            found.add("inlined-name" if depth == 0 and len(ours) > 1 else "name")
        if g.path != o.path:
            found.add("first-file" if depth == 0 else "path")
        if (g.line, g.discriminator) != (o.line, o.discriminator):
            found.add("line")
    return found


def is_declared_there(evidence, address, frame, symbol):
    """Whether other tools, too, find the variable at @address declared at the place of @frame."""
    places = (place.rsplit(":", 1) for place in evidence.declared(address, symbol))
    return any(same_place(frame, (symbol, path, int(line))) for path, line in places)


def explain_variable(evidence, address, gnu, ours, llvm):
    """The classes of a difference about data: see explain()."""
    if len(ours) != 1 or not is_declared_there(evidence, address, ours[0], llvm.frames[0][0]):
        return None
    if gnu[0].path == b"??":
        return {"variable"}
    return {"declaration"} if address == 0 else None


def one_of_all(name):
    """The mangled name of a constructor or destructor, with no number of which."""
    return re.sub(rb"([CD])[0-5](?=[EI])", rb"\1", name)


def explain(evidence, address, gnu, ours, llvm, options=()):
    """The classes of one difference, or None when it has no explanation."""
    alone = answers(GNU, evidence.path, [address], *options)[0]
    history = {"history"} if alone != gnu else set()
    if alone == ours:
        return history
    if shape(alone, ours) <= {"first-file", "line"} and llvm.frames and not llvm.frames[0][2]:
        return explain_variable(evidence, address, alone, ours, llvm)
    kinds = shape(alone, ours)
    if [f._replace(name=one_of_all(f.name)) for f in alone] == [f._replace(name=one_of_all(f.name)) for f in ours] and \
            confirmed(evidence, address, ours, llvm):
        return {"unified-name"} | history
    if kinds == {"name"} and alone[0].name in evidence.without_memory:
        return {"thread-local"} | history
    for_names = kinds == {"name"} and evidence.has_supplement
    if not confirmed(evidence, address, ours, llvm, for_names) or \
            confirmed(evidence, address, alone, llvm, for_names):
        return None
    if kinds == {"first-file"}:
        return kinds | history
    if evidence.has_supplement:
        return {"supplement"}
    if kinds <= {"inlined-name", "first-file"}:
        return kinds | history
    if evidence.split_files:
        return {"split"}
    if "DW_FORM_rnglistx" in evidence.forms:
        return {"rnglistx"}
    return None


class Comparison:
    """Compares the answers for many addresses of one file."""

    def __init__(self, path, addresses, llvm_path=None, options=()):
        self.evidence = Evidence(path, llvm_path or path)
        self.path = path
        self.llvm_path = llvm_path or path
        self.options = options
        self.classes = collections.Counter()
        self.examples = {}
        self.unexplained = []
        self.agreed = list(addresses)
        # What GNU answers depends on what it was asked before: without the differing addresses
        # others may come to differ.
        for _ in range(6):
            if not self.compare():
                return
        raise AssertionError("the differences do not come to an end")

    def compare(self):
        """Moves addresses that differ from agreed to a class; whether there were any."""
        gnu = answers(GNU, self.path, self.agreed, *self.options)
        ours = answers(OURS, self.path, self.agreed, *self.options)
        differ = [i for i in range(len(gnu)) if gnu[i] != ours[i]]
        if not differ:
            return False
        llvm = ask.llvm(self.llvm_path, [self.agreed[i] for i in differ])
        for i, truth in zip(differ, llvm):
            self.file(self.agreed[i], gnu[i], ours[i], truth)
        gone = set(differ)
        self.agreed = [a for i, a in enumerate(self.agreed) if i not in gone]
        return True

    def file(self, address, gnu, ours, llvm):
        kinds = explain(self.evidence, address, gnu, ours, llvm, self.options)
        if kinds is None:
            self.unexplained.append(f"{address:#x}\n  GNU:    {gnu}\n  fathom: {ours}\n  LLVM:   {llvm.frames}")
            return
        for kind in kinds:
            self.classes[kind] += 1
            self.examples.setdefault(kind, (address, gnu, ours))

    def check(self, allowed=()):
        """Fails when a difference has no explanation, or one that is not among those @allowed."""
        assert not self.unexplained, \
            f"{len(self.unexplained)} differences without a class:\n" + "\n".join(self.unexplained[:5])
        # Debian 13's compilers and binutils: see docs/reports/oracle-addr2line.md.
        strange = set(self.classes) - set(allowed) - {"unified-name", "thread-local"}
        assert not strange, "\n".join(f"{k}: {self.examples[k]}" for k in strange)

    def check_options(self, combinations, arguments=False, limit=None):
        """The whole output is the same, byte for byte, for each of the option @combinations."""
        for options in combinations:
            asked = self.agreed[:limit]
            outputs = [ask_tool(tool, self.path, asked, *options, *self.options, arguments=arguments)
                       for tool in (GNU, OURS)]
            if outputs[0] != outputs[1]:
                lines = [o.split(b"\n") for o in outputs]
                first = next(i for i, pair in enumerate(zip(*lines)) if pair[0] != pair[1])
                raise AssertionError(f"{options}: line {first + 1}: GNU {lines[0][first]}, fathom {lines[1][first]}")
