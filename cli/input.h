/* SPDX-License-Identifier: MIT */
/* Addresses as people and programs write them. */
#ifndef FATHOM_CLI_INPUT_H
#define FATHOM_CLI_INPUT_H

#include <stdbool.h>

#include "cli/print.h"

struct input_rules {
	struct fathom_target *target;
	const char *section; /* numbers are offsets in this section; NULL: none */
	bool decimal;        /* numbers without 0x are decimal, not hexadecimal */
};

/* Kinds of inputs, by their text alone. */
enum input_kind {
	INPUT_READY,     /* a number or nothing: address or reason is valid */
	INPUT_NAME,      /* a symbol */
	INPUT_NAME_PLUS, /* a symbol up to the last "+"; address is the offset */
	INPUT_EITHER     /* a symbol, or else the number address */
};

/* Checks the rules against the target of @info; exits if they need sections and it has none. */
void input_rules_check(struct input_rules *rules, const struct fathom_target_info *info);

/*
 * Parses @text without looking up symbols. A word that starts with a digit is a number. A word that
 * starts with a letter and has only hexadecimal digits is a number if it has more than 7 of them,
 * else a symbol or a number. All other words are symbols, with or without "+" and a number. With
 * rules->decimal, all words that start with a letter are symbols.
 */
void input_parse(const struct input_rules *rules, const char *text, size_t size, struct input *ret);

/* Looks up the symbols of @n @inputs at once and makes them INPUT_READY. Exits on failure. */
void input_resolve(const struct input_rules *rules, struct input *inputs, size_t n);

/*
 * Looks up the symbols of @n @inputs, too, but turns a symbol with several addresses (static or
 * overloaded functions) into that many consecutive inputs. Returns the inputs, which may have been
 * reallocated, and their number.
 */
struct input *input_resolve_all(const struct input_rules *rules, struct input *inputs, size_t n,
				size_t *ret_n);

/* Suggests a symbol for @in, whose symbol was not found; @count limits the suggestions. */
void input_complain(const struct input_rules *rules, const struct input *in, unsigned *count);

/*
 * If the symbol of @in was not found because it is only inlined, writes ,"inlined_copies":[...];
 * @count limits the searches.
 */
void input_copies_json(const struct input_rules *rules, const struct input *in, struct out *o,
		       unsigned *count);

/* Returns the number of lines of @text, including one without an end. */
size_t input_count_lines(const char *text, size_t size);

#endif
