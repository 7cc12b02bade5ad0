/* SPDX-License-Identifier: MIT */
/* What fathom find prints: matches, and the values that stand there. */
#ifndef FATHOM_FIND_PRINT_H
#define FATHOM_FIND_PRINT_H

#include <fathom/fathom.h>

#include "out.h"

/* A value that was asked for with a match. */
struct find_value {
	struct fathom_value value;
	bool is_asked;
	uint8_t reason; /* enum fathom_reason: why there is none */
};

/* Exits with status 2 when @type is no type. */
void find_value_check(const char *type);
/* Reads the value at the match, if that has an address. */
void find_value_read(struct find_value *v, struct fathom_target *target,
		     const struct fathom_match *m, const char *type);
void find_value_deinit(struct find_value *v);

void find_print_text(struct out *o, const char *query, const struct fathom_match *m,
		     const struct find_value *v);
void find_print_json(struct out *o, const char *query, const struct fathom_match *m,
		     const struct find_value *v);

#endif
