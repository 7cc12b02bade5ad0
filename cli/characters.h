/* SPDX-License-Identifier: MIT */
/* Kinds of characters as the C locale has them, whatever the locale is. */
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
