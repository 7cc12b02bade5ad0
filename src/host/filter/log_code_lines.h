/* SPDX-License-Identifier: MIT */
/* Which numbers of a log are in files that the bytes of code in their reports refute. */
#ifndef FATHOM_FILTER_LOG_CODE_LINES_H
#define FATHOM_FILTER_LOG_CODE_LINES_H

#include "host/filter/log_modules.h"

/* The addresses of a number that counts from a symbol: some of an array. */
struct fathom_log_places_of {
	size_t first;
	size_t n;
};

/* A module that the report refutes with which the lines of the last call end. */
struct fathom_log_refuted {
	struct fathom_str name;
	struct fathom_str build_id;
};

/* Findings of earlier calls. All zero: none. */
struct fathom_log_code_lines {
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_refuted);
	} refuted;
	struct fathom_arena texts; /* of refuted */
	size_t distance;           /* bytes of the log since the last one was found */
};

/*
 * Marks the numbers of @s whose modules have other code than a line of their report, here or of an
 * earlier call. @of_numbers has the index of each number's module; @symbols says which of @places
 * each number has that counts from a symbol. FATHOM_E_MEMORY.
 */
fathom_err fathom_log_check_code(struct fathom_log_code_lines *c, struct fathom_log_scan *s,
				 struct fathom_log_modules *modules, const uint32_t *of_numbers,
				 const struct fathom_log_places_of *symbols, const uint64_t *places,
				 const char *text, size_t size, struct fathom_errinfo *reterr);
void fathom_log_code_lines_deinit(struct fathom_log_code_lines *c);

#endif
