/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits, two of which are a byte: build-ids as text. */
#ifndef FATHOM_BASE_HEX_H
#define FATHOM_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of the digit @c, of lower case as the kernel prints them; 16: it is none. */
static inline unsigned fathom_hex_lower(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* The same of a digit of either case. */
static inline unsigned fathom_hex_digit(char c)
{
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : fathom_hex_lower(c);
}

/* Writes two lower-case digits for each byte, and a NUL, whose place it returns. */
static inline char *fathom_hex_put(char *to, const uint8_t *bytes, uint64_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (uint64_t i = 0; i < size; i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = '\0';
	return to;
}

/* Reads @size bytes of twice as many digits at @text; false if @digit says that one is none. */
static inline bool fathom_hex_take(const char *text, uint8_t *bytes, size_t size,
				   unsigned (*digit)(char))
{
	unsigned wrong = 0;

	for (size_t i = 0; i < size; i++) {
		const unsigned high = digit(text[2 * i]);
		const unsigned low = digit(text[2 * i + 1]);

		wrong |= high | low;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return wrong < 16;
}

#endif
