# SPDX-License-Identifier: MIT
"""Reads profiles of pprof, by proto/profile.proto of https://github.com/google/pprof: beside what fathom writes."""
import collections
import gzip

Type = collections.namedtuple("Type", "type unit")
Sample = collections.namedtuple("Sample", "locations values labels")
Mapping = collections.namedtuple("Mapping", "file build_id has_functions has_filenames has_line_numbers has_inline_frames")
Location = collections.namedtuple("Location", "mapping address lines")
Line = collections.namedtuple("Line", "function line")
Function = collections.namedtuple("Function", "name system_name file")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Returns {field: [values]} of a message; values are numbers or bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at:at + value], at + value
        else:
            assert tag & 7 == 0, tag
        found[tag >> 3].append(value)
    return found


def packed(values):
    """Returns the numbers of a repeated field, which are packed or not."""
    numbers = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


class Profile:
    def __init__(self, data):
        top = fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        self.strings = [text.decode() for text in top[6]]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.functions = self.by_id(top[5], lambda f: Function(*(self.text(f, n) for n in (2, 3, 4))))
        self.mappings = self.by_id(top[3], lambda f: Mapping(self.text(f, 5), self.text(f, 6), *(bool(f[n]) for n in (7, 8, 9, 10))))
        self.locations = self.by_id(top[4], self.location)
        self.samples = [self.sample(fields(s)) for s in top[2]]
        self.sample_types = [self.type(t) for t in top[1]]
        self.period_type = self.type(top[11][0])
        self.period, self.duration = top[12][0], top[10][0]
        self.default_type = self.strings[top[14][0]]
        self.comments = [self.strings[n] for n in packed(top[13])]

    def text(self, message, field):
        return self.strings[message[field][0]] if message[field] else ""

    def type(self, data):
        return Type(self.text(fields(data), 1), self.text(fields(data), 2))

    @staticmethod
    def by_id(messages, make):
        found = {}
        for message in map(fields, messages):
            number, = message[1]
            assert number and number not in found
            found[number] = make(message)
        return found

    def location(self, f):
        lines = [Line(self.functions[line[1][0]], line[2][0] if line[2] else 0) for line in map(fields, f[4])]
        return Location(self.mappings[f[2][0]] if f[2] else None, f[3][0] if f[3] else 0, lines)

    def sample(self, f):
        labels = {}
        for label in map(fields, f[3]):
            labels[self.text(label, 1)] = self.text(label, 2) if label[2] else label[3][0] if label[3] else 0
        values = packed(f[2])
        assert len(values) == 2
        return Sample([self.locations[n] for n in packed(f[1])], values, labels)
