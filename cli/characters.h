/* SPDX-License-Identifier: MIT */
/* Character classes of the C locale, whatever the current locale. */
#ifndef FATHOM_CLI_CHARACTERS_H
#define FATHOM_CLI_CHARACTERS_H

#include <stdbool.h>

static inline bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the value of @c as a digit of a base up to 36; 36: it is none. */
static inline unsigned digit_of(char c)
{
	if (is_digit(c))
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10 : 36;
}

#endif
