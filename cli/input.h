/* SPDX-License-Identifier: MIT */
/* Addresses as people and programs write them, one by one or as a stream. */
#ifndef FATHOM_CLI_INPUT_H
#define FATHOM_CLI_INPUT_H

#include <stdbool.h>

#include "cli/print.h"

struct input_rules {
	struct fathom_target *target;
	const char *section; /* numbers are offsets in it; NULL: none */
	bool decimal;        /* numbers without 0x are decimal, not hexadecimal */
};

/* What the text of an input is, as far as it tells by itself. */
enum input_kind {
	INPUT_READY,     /* a number, or nothing: address or reason holds */
	INPUT_NAME,      /* a symbol */
	INPUT_NAME_PLUS, /* a symbol up to the last "+"; address is the offset */
	INPUT_EITHER     /* a symbol, or else the number address */
};

/* Makes the rules those of the target that @info tells of; exits when it has no sections. */
void input_rules_check(struct input_rules *rules, const struct fathom_target_info *info);

/*
 * Reads @text, without asking anybody. A word that starts with a digit is a number. One that starts
 * with a letter is, if it has hexadecimal digits only, a number when it has more than 7 of them,
 * else a symbol or a number; all others are symbols, with or without "+" and a number. With
 * rules->decimal, words that start with a letter are symbols.
 */
void input_parse(const struct input_rules *rules, const char *text, size_t size, struct input *ret);

/* Looks up the symbols of @n @inputs, all at once: they are INPUT_READY then. Exits on failure. */
void input_resolve(const struct input_rules *rules, struct input *inputs, size_t n);

/*
 * Does the same; a symbol with several addresses, static or overloaded functions, becomes as many
 * inputs, one behind the other. Returns the inputs, which are @inputs or in their place, and how
 * many there are.
 */
struct input *input_resolve_all(const struct input_rules *rules, struct input *inputs, size_t n,
				size_t *ret_n);

/* Says which symbol may have been meant by @in, whose symbol was not found; counts in @count. */
void input_complain(const struct input_rules *rules, const struct input *in, unsigned *count);

/* The number of lines of @text; what follows the last end is one, too. */
size_t input_count_lines(const char *text, size_t size);

#endif
