# SPDX-License-Identifier: MIT
"""Bytes in a chosen byte order: what both the ELF and the DWARF assembler write with."""


def uleb(value, pad=0):
    """@value as unsigned LEB128 (DWARF 5, 7.6), of at least @pad bytes."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    while len(out) < pad:
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def sleb(value):
    """@value as signed LEB128 (DWARF 5, 7.6)."""
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


class Out:
    """A growing run of bytes. Numbers are cut to their size, as two's complement demands."""

    def __init__(self, big=False):
        self.order = "big" if big else "little"
        self.bytes = bytearray()

    def __len__(self):
        return len(self.bytes)

    def uint(self, value, size):
        self.bytes += (value & (1 << 8 * size) - 1).to_bytes(size, self.order)
        return self

    def u8(self, value):
        return self.uint(value, 1)

    def u16(self, value):
        return self.uint(value, 2)

    def u32(self, value):
        return self.uint(value, 4)

    def u64(self, value):
        return self.uint(value, 8)

    def uleb(self, value, pad=0):
        return self.raw(uleb(value, pad))

    def sleb(self, value):
        return self.raw(sleb(value))

    def raw(self, data):
        self.bytes += data
        return self

    def cstr(self, text):
        return self.raw(text.encode() if isinstance(text, str) else text).u8(0)

    def align(self, to, fill=0):
        self.bytes += bytes([fill]) * (-len(self.bytes) % to)
        return self

    def patch(self, at, value, size):
        self.bytes[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, self.order)

    def length(self, body, offset_size):
        """An initial length (DWARF 5, 7.4) and the @body that it counts."""
        if offset_size == 8:
            self.u32(0xFFFFFFFF).u64(len(body))
        else:
            self.u32(len(body))
        return self.raw(body)
