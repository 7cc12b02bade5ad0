/* SPDX-License-Identifier: MIT */
/*
 * The cursor through which every byte from outside is read.
 *
 * A read past the end yields 0, remembers where that happened, and moves the cursor to its end, so
 * every loop that runs "while bytes are left" ends by itself. Failure sticks: check cur_ok() once
 * per record, before any value read is used as a size, an index or a pointer. cur_sub() gives an
 * inner record a cursor of its own, which cannot leave the record; a failed parent gives a failed
 * child.
 *
 * Safety: as-safe. The functions are inline so that the cursor stays in registers.
 */
#ifndef FATHOM_BASE_CURSOR_H
#define FATHOM_BASE_CURSOR_H

#include "safe/base/bytes.h"

struct fathom_cursor {
	const uint8_t *p;
	const uint8_t *end;
	const uint8_t *bad; /* first byte that could not be read; NULL while all could */
	bool swap;          /* the input's byte order is not this machine's */
};

static inline struct fathom_cursor cur_init(struct fathom_bytes b, bool swap)
{
	static const uint8_t nothing[1];
	const uint8_t *data = b.data ? b.data : nothing;

	return (struct fathom_cursor){ data, data + (b.data ? b.size : 0), NULL, swap };
}

static inline bool cur_ok(const struct fathom_cursor *c)
{
	return !c->bad;
}

static inline void cur_fail(struct fathom_cursor *c)
{
	if (!c->bad)
		c->bad = c->p;
	c->p = c->end;
}

static inline uint64_t cur_left(const struct fathom_cursor *c)
{
	return (uint64_t)(c->end - c->p);
}

/* Returns the next @n bytes, or NULL. After this one check, plain loads from them are safe. */
static inline const uint8_t *cur_take(struct fathom_cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (n > cur_left(c)) {
		cur_fail(c);
		return NULL;
	}
	c->p += n;
	return p;
}

static inline void cur_skip(struct fathom_cursor *c, uint64_t n)
{
	(void)cur_take(c, n);
}

static inline uint8_t cur_u8(struct fathom_cursor *c)
{
	const uint8_t *p = cur_take(c, 1);

	return p ? *p : 0;
}

/* Skips one byte, which must be @wanted. */
static inline void cur_expect(struct fathom_cursor *c, char wanted)
{
	if (cur_u8(c) != (uint8_t)wanted)
		cur_fail(c);
}

static inline uint16_t cur_u16(struct fathom_cursor *c)
{
	const uint8_t *p = cur_take(c, 2);

	return p ? load_u16(p, c->swap) : 0;
}

static inline uint32_t cur_u24(struct fathom_cursor *c)
{
	const uint8_t *p = cur_take(c, 3);

	return p ? load_u24(p, c->swap) : 0;
}

static inline uint32_t cur_u32(struct fathom_cursor *c)
{
	const uint8_t *p = cur_take(c, 4);

	return p ? load_u32(p, c->swap) : 0;
}

static inline uint64_t cur_u64(struct fathom_cursor *c)
{
	const uint8_t *p = cur_take(c, 8);

	return p ? load_u64(p, c->swap) : 0;
}

/* Reads an unsigned value of 1, 2, 4 or 8 bytes; any other size fails the cursor. */
static inline uint64_t cur_uint(struct fathom_cursor *c, unsigned size)
{
	switch (size) {
	case 1:
		return cur_u8(c);
	case 2:
		return cur_u16(c);
	case 4:
		return cur_u32(c);
	case 8:
		return cur_u64(c);
	default:
		cur_fail(c);
		return 0;
	}
}

/*
 * Reads an unsigned LEB128 (DWARF 5, 7.6). Padding (0x80 0x80 ... 0x00) of any length is valid; a
 * value that does not fit 64 bits is not. 98 % of those in .debug_info are one byte, hence the
 * first test.
 */
static inline uint64_t cur_uleb(struct fathom_cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;

	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	while (c->p < c->end) {
		const uint8_t byte = *c->p++;
		const uint64_t bits = byte & 0x7f;

		if (shift < 64)
			value |= bits << shift;
		if (bits && (shift >= 64 || (shift == 63 && bits > 1))) {
			c->p--;
			cur_fail(c);
			return 0;
		}
		if (byte < 0x80)
			return value;
		shift += shift < 64 ? 7 : 0;
	}
	cur_fail(c);
	return 0;
}

static inline int64_t cur_sleb(struct fathom_cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (c->p < c->end) {
		const uint8_t byte = *c->p++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
		if (byte < 0x80) {
			if (shift < 64 && (byte & 0x40))
				value |= UINT64_MAX << shift;
			return (int64_t)value;
		}
	}
	cur_fail(c);
	return 0;
}

static inline void cur_skip_leb(struct fathom_cursor *c)
{
	while (c->p < c->end)
		if (*c->p++ < 0x80)
			return;
	cur_fail(c);
}

/* Skips a NUL-terminated string. */
static inline void cur_skip_str(struct fathom_cursor *c)
{
	while (c->p < c->end)
		if (!*c->p++)
			return;
	cur_fail(c);
}

/* Returns a NUL-terminated string, borrowed from the input. */
static inline struct fathom_str cur_str(struct fathom_cursor *c)
{
	const uint8_t *start = c->p;

	cur_skip_str(c);
	if (!cur_ok(c) || (uint64_t)(c->p - start) > UINT32_MAX)
		return (struct fathom_str){ NULL, 0 };
	return (struct fathom_str){ (const char *)start, (uint32_t)(c->p - start - 1) };
}

/* Splits off the next @n bytes as a cursor of their own and moves past them. */
static inline struct fathom_cursor cur_sub(struct fathom_cursor *c, uint64_t n)
{
	struct fathom_cursor sub = *c;
	const uint8_t *p = cur_take(c, n);

	if (p) {
		sub.p = p;
		sub.end = p + n;
	} else {
		sub = *c;
	}
	return sub;
}

/*
 * Reads an initial length (DWARF 5, 7.4): sets @ret_offset_size to 4 or 8 and returns the length
 * that follows. The reserved values 0xfffffff0 to 0xfffffffe fail the cursor.
 */
static inline uint64_t cur_initial_length(struct fathom_cursor *c, uint8_t *ret_offset_size)
{
	const uint64_t length = cur_u32(c);

	*ret_offset_size = 4;
	if (length < 0xfffffff0)
		return length;
	if (length != 0xffffffff) {
		cur_fail(c);
		return 0;
	}
	*ret_offset_size = 8;
	return cur_u64(c);
}

#endif
