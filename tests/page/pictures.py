# SPDX-License-Identifier: MIT
"""Small pictures of pages: PNG files (https://www.w3.org/TR/png-3/) of 8 bits without interlace, and their differences."""
import os
import struct
import zlib

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pictures")
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Pixels of a picture that are compared as one: letters of other fonts are the same grey then.
BLOCK = 4


def _chunks(data):
    assert data[:8] == SIGNATURE
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += 12 + size


def _paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def decode(data):
    """(width, height, bytes of red, green and blue by row)."""
    chunks = list(_chunks(data))
    width, height, depth, color, _, _, interlace = struct.unpack(">IIBBBBB", chunks[0][1])
    assert (depth, interlace) == (8, 0) and color in (2, 6)
    size = 3 if color == 2 else 4
    raw = zlib.decompress(b"".join(part for kind, part in chunks if kind == b"IDAT"))
    before, pixels = bytes(width * size), bytearray()
    for y in range(height):
        start = y * (width * size + 1)
        how, row = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        for i in range(len(row) if how else 0):
            left, up, corner = row[i - size] if i >= size else 0, before[i], before[i - size] if i >= size else 0
            row[i] = (row[i] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[how]) & 255
        for x in range(width):
            pixels += row[x * size:x * size + 3]
        before = row
    return width, height, bytes(pixels)


def encode(width, height, pixels):
    rows = b"".join(b"\0" + pixels[y * width * 3:(y + 1) * width * 3] for y in range(height))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
                                for kind, part in parts)


def _blocks(picture):
    width, height, pixels = picture
    sums = {}
    for y in range(height):
        for x in range(width):
            block, at = sums.setdefault((y // BLOCK, x // BLOCK), [0, 0, 0, 0]), (y * width + x) * 3
            for i in range(3):
                block[i] += pixels[at + i]
            block[3] += 1
    return {place: [value / block[3] for value in block[:3]] for place, block in sums.items()}


def difference(one, other):
    """How far the colours of blocks are from each other, from 0 to 255, in the mean; and the share of blocks that differ much."""
    a, b = _blocks(one), _blocks(other)
    apart = [max(abs(x - y) for x, y in zip(a[place], b[place])) if place in a and place in b else 255
             for place in a.keys() | b.keys()]
    return sum(apart) / len(apart), sum(value > 40 for value in apart) / len(apart)


def kept(name):
    with open(os.path.join(FOLDER, name + ".png"), "rb") as f:
        return decode(f.read())


def keep(name, picture):
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name + ".png"), "wb") as f:
        f.write(encode(*picture))
