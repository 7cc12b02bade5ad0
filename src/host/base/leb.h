/* SPDX-License-Identifier: MIT */
/* Numbers as LEB128 without sign (DWARF 5, section 7.6), which cursors read; zigzag for signs. */
#ifndef FATHOM_BASE_LEB_H
#define FATHOM_BASE_LEB_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest number. */
#define FATHOM_LEB_SIZE 10

/* Puts @value at @to; returns its size in bytes. */
static inline size_t fathom_leb_put(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

/* Returns 2x, or -2x - 1 if @x is negative: small numbers of either sign take few bytes. */
static inline uint64_t fathom_zigzag(uint64_t x)
{
	return x << 1 ^ (0 - (x >> 63));
}

static inline uint64_t fathom_unzigzag(uint64_t x)
{
	return x >> 1 ^ (0 - (x & 1));
}

#endif
