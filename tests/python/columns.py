# SPDX-License-Identifier: MIT
"""Buffers in, columns out."""
import os

from ask import FATHOM
from building import nm
from suite import program, python, test

# 3,000 addresses over the code of the file, of which some have no name; as a file, with lines and inlined calls.
ASKED = """
import numpy
target = fathom.Session(cache=False).open(sys.argv[1])
start, end = target.address("_start"), target.address("main")
low, high = min(start, end) - 4096, max(start, end) + 300000
addresses = numpy.linspace(low, high, 3000).astype(numpy.uint64)
answers = target.addr(addresses)
assert len(answers) == 3000
"""


@test("columns are what the rows have, of names, files, lines and numbers; what is unknown is none")
def _(folder):
    python(folder, ASKED + """
rows = list(answers)
assert sum(row.symbol is None for row in rows) > 10 and sum(len(row.frames) > 1 for row in rows) > 100
for name in ("symbol", "linkage_name", "module", "build_id", "source", "reason"):
    assert list(getattr(answers, name)) == [getattr(row, name) for row in rows], name
for name in ("function", "file"):
    assert list(getattr(answers, name)) == [getattr(row.frames[0], name) if row.frames else None for row in rows], name
for name in ("line", "column"):
    assert list(getattr(answers, name)) == [getattr(row.frames[0], name) or 0 if row.frames else 0 for row in rows], name
for name in ("address", "offset", "size"):
    assert list(getattr(answers, name)) == [getattr(row, name) or 0 for row in rows], name
assert list(answers.module_address) == [fathom.NO_ADDRESS if row.module_address is None else row.module_address for row in rows]
assert list(answers.address) == addresses.tolist()
""", FATHOM)


@test("each text of a column has one code: as many as there are different ones")
def _(folder):
    python(folder, ASKED + """
for name in ("symbol", "file", "function"):
    column = getattr(answers, name)
    assert len(column.texts) == len(set(column.texts)) == len({text for text in column if text}), name
    codes = numpy.asarray(column.codes)
    assert codes.dtype == numpy.int32 and codes.max() == len(column.texts) - 1 and codes.min() == -1
    texts = numpy.array([*column.texts, None], object)
    assert texts[codes].tolist() == list(column), name
assert answers.symbol[5] == list(answers.symbol)[5] and answers.symbol[2:4] == list(answers.symbol)[2:4]
""", FATHOM)


@test("columns of numbers are the library's memory, not a copy, which nobody can write to")
def _(folder):
    python(folder, ASKED + """
for name in ("address", "module_address", "offset", "size", "line"):
    one, other = (numpy.asarray(getattr(answers, name)) for _ in range(2))
    assert numpy.shares_memory(one, other), name
    assert not one.flags.writeable and not one.flags.owndata, name
# The columns of one row lie beside each other.
step = numpy.asarray(answers.offset).strides[0]
assert step == numpy.asarray(answers.size).strides[0] and step > 8
""", FATHOM)


@test("the memory of arrays of numpy, array and memoryview is read where it is; rows of every second number are theirs")
def _(folder):
    path = program(folder)
    twice = nm(path)["twice"][0][0]
    python(folder, """
import numpy
from fathom import _target
from fathom._fathom import ffi
target = fathom.open(sys.argv[1])
twice = int(sys.argv[2])
numbers = numpy.array([twice, 1, twice + 1, 2], numpy.uint64)
plain = array.array("Q", numbers.tolist())
for own, address in ((numbers, numbers.ctypes.data), (plain, plain.buffer_info()[0]), (memoryview(plain), plain.buffer_info()[0])):
    with _target.numbers_of(own) as pointer:
        assert int(ffi.cast("uintptr_t", pointer)) == address
for same in (numbers, plain, memoryview(plain), plain.tolist(), (n for n in plain)):
    assert list(target.addr(same).symbol) == ["twice", None, "twice", None], same
assert list(target.addr(numbers[::2]).offset) == [0, 1]
assert list(target.addr(numbers[::-1]).address) == numbers[::-1].tolist()
assert target.addr(numbers[0]).symbol == "twice" and target.addr(twice).offset == 0
for nothing in ([], numpy.zeros(0, numpy.uint64)):
    none = target.addr(nothing)
    assert len(none) == len(none.symbol) == len(none.offset) == len(none.line) == 0 and list(none) == []
# A return address stands after its call: of the function before.
assert target.addr(twice, return_addresses=True).symbol != "twice"
kinds = numpy.array([1, 0, 0, 0], bool)
for given in (kinds, bytes(kinds), kinds.tolist()):
    assert list(target.addr(numbers, return_addresses=given).symbol)[1:3] == [None, "twice"], given
    assert target.addr(numbers, return_addresses=given)[0].symbol != "twice"
assert [a.symbol == "twice" for a in target.addr(numbers, return_addresses=True)] == [False, False, True, False]
""", path, str(twice))


@test("what is no buffer of uint64 is refused: signed, short, of two dimensions, negative, bytes; kinds of another number")
def _(folder):
    python(folder, """
import numpy
target = fathom.open(sys.argv[1])
for wrong in (numpy.zeros(2, numpy.int64), numpy.zeros(2, numpy.uint32), numpy.zeros((2, 2), numpy.uint64), b"12345678", numpy.zeros(2),
              numpy.zeros(2, ">u8"), "main", None, 1.5, ["main"]):
    try:
        target.addr(wrong)
    except TypeError:
        continue
    raise AssertionError(wrong)
for wrong in ([-1], [2 ** 64], -1, 2 ** 64):
    try:
        target.addr(wrong)
    except OverflowError:
        continue
    raise AssertionError(wrong)
for kinds in (b"1", [0, 0, 0], numpy.zeros(2, numpy.int64)):
    try:
        target.addr([1, 2], return_addresses=kinds)
    except ValueError:
        continue
    raise AssertionError(kinds)
try:
    target.addr([1, 2], return_addresses=b"\\7\\7")
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.ARGUMENT
else:
    raise AssertionError("kind 7")
""", os.path.realpath("/bin/true"))


@test("a column of rows whose size is no multiple of its numbers', as where pointers have 32 bits, has the same values")
def _(folder):
    python(folder, """
import struct
from fathom._answers import strided
from fathom._fathom import ffi
rows = ffi.from_buffer(b"".join(struct.pack("=IQ", i, 5 * i) for i in range(4)))
assert list(strided(rows, rows, 4, 12, 0, "I")) == [0, 1, 2, 3]
assert list(strided(rows, rows, 4, 12, 4, "Q")) == [0, 5, 10, 15]
""")
