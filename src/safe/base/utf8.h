/* SPDX-License-Identifier: MIT */
/* UTF-8 (RFC 3629, section 3). */
#ifndef FATHOM_BASE_UTF8_H
#define FATHOM_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of one character at most. */
#define UTF8_MOST 4

/* Writes @point, at most 0x10ffff, to @to; returns how many bytes it has. */
static inline size_t utf8_encode(uint32_t point, char to[UTF8_MOST])
{
	size_t n = 0;

	if (point < 0x80) {
		to[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		to[n++] = (char)(0xc0 | point >> 6);
	} else {
		if (point < 0x10000) {
			to[n++] = (char)(0xe0 | point >> 12);
		} else {
			to[n++] = (char)(0xf0 | point >> 18);
			to[n++] = (char)(0x80 | (point >> 12 & 0x3f));
		}
		to[n++] = (char)(0x80 | (point >> 6 & 0x3f));
	}
	to[n++] = (char)(0x80 | (point & 0x3f));
	return n;
}

#endif
