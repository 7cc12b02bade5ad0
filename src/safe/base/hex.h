/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits, two of which are a byte: build-ids as text. */
#ifndef FATHOM_BASE_HEX_H
#define FATHOM_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of the digit @c, of either case; 16: it is none. */
static inline unsigned fathom_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

/* Writes two lower-case digits for each byte, and a NUL, whose place it returns. */
static inline char *fathom_hex_put(char *to, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = '\0';
	return to;
}

/* Reads @size bytes of twice as many digits at @text; false if it has something else. */
static inline bool fathom_hex_take(const char *text, uint8_t *bytes, size_t size)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < size; i++) {
		const unsigned high = fathom_hex_digit(text[2 * i]);
		const unsigned low = fathom_hex_digit(text[2 * i + 1]);

		wrong |= high | low;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return wrong < 16;
}

#endif
