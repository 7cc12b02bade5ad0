/* SPDX-License-Identifier: MIT */
/* Printing for fathom find: matches and the values at their addresses. */
#ifndef FATHOM_CLI_FIND_PRINT_H
#define FATHOM_CLI_FIND_PRINT_H

#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/out.h"

/* The value at a match. */
struct find_value {
	struct fathom_value value;
	bool is_asked;
	uint8_t reason; /* enum fathom_reason: why there is no value */
};

/* Exits with status 2 if @type does not parse. */
void find_value_check(const char *type);
/* Values read at a time; each may have 64 KiB. */
enum { FIND_VALUES = 1024 };

/*
 * Reads the values at those of the matches [@first, @first + @n) that have addresses. @n is at most
 * FIND_VALUES. Free each value with find_value_deinit().
 */
void find_values_read(struct find_value *values, struct fathom_target *target,
		      const struct fathom_matches *matches, size_t first, size_t n,
		      const char *type);
void find_value_deinit(struct find_value *v);

void find_print_text(struct out *o, const char *query, const struct fathom_match *m,
		     const struct find_value *v);
void find_print_json(struct out *o, const char *query, const struct fathom_match *m,
		     const struct find_value *v);

#endif
