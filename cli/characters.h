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

#endif
