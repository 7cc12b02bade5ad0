/* SPDX-License-Identifier: MIT */
/* What fathom find prints: matches, and the values that stand there. */
#ifndef FATHOM_CLI_FIND_PRINT_H
#define FATHOM_CLI_FIND_PRINT_H

#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/out.h"

/* A value that was asked for with a match. */
struct find_value {
	struct fathom_value value;
	bool is_asked;
	uint8_t reason; /* enum fathom_reason: why there is none */
};

/* Exits with status 2 when @type is no type. */
void find_value_check(const char *type);
/* So many values are read at a time: each may have 64 KiB. */
enum { FIND_VALUES = 1024 };

/*
 * Reads the values at matches [@first, @first + @n), of which there are FIND_VALUES at most, where
 * these have addresses; each is to be given to find_value_deinit().
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
