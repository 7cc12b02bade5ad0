/* SPDX-License-Identifier: MIT */
/* Fills in the public struct fathom_errinfo. */
#ifndef FATHOM_BASE_ERROR_H
#define FATHOM_BASE_ERROR_H

#include "fathom/error.h"

/* Internal, beside the public values: the end was reached, or nothing is there. Not an error. */
enum { FATHOM_END = 1 };

#define FATHOM_TRY(expr)                        \
	do {                                    \
		const fathom_err err_ = (expr); \
		if (err_ < 0)                   \
			return err_;            \
	} while (0)

/*
 * Notes a failure in @info (which may be NULL) and returns @err, so that callers can write
 * `return fathom_fail(...)`. @section and @what are static texts.
 */
fathom_err fathom_fail(struct fathom_errinfo *info, fathom_err err, const char *section,
		       uint64_t offset, const char *what);

/* As fathom_fail(), for a failure that has a cause but no place in a file. */
fathom_err fathom_fail_by(struct fathom_errinfo *info, fathom_err err, enum fathom_cause cause,
			  const char *what);

/* Fails for lack of memory: FATHOM_E_MEMORY. */
fathom_err fathom_fail_memory(struct fathom_errinfo *info);

/* Refuses options that hold what this version does not know: FATHOM_E_ARGUMENT. */
fathom_err fathom_fail_options(struct fathom_errinfo *info);

#endif
