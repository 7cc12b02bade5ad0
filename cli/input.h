/* SPDX-License-Identifier: MIT */
/* Addresses as people and programs write them, one by one or as a stream. */
#ifndef FATHOM_INPUT_H
#define FATHOM_INPUT_H

#include "print.h"

struct input_rules {
	struct fathom_target *target;
	const char *section; /* numbers are offsets in it; NULL: none */
	bool hex;            /* digits only are hexadecimal, too */
};

/* Makes the rules those of the target that @info tells of; exits when it has no sections. */
void input_rules_check(struct input_rules *rules, const struct fathom_target_info *info);

/* Reads @text: 0x..., digits, or a symbol with or without +offset. */
void input_parse(const struct input_rules *rules, const char *text, size_t size, struct input *ret);

/* The number of lines of @text; what follows the last end is one, too. */
size_t input_count_lines(const char *text, size_t size);

#endif
