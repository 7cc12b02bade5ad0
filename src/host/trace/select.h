/* SPDX-License-Identifier: MIT */
/* The functions that queries select, in a target. */
#ifndef FATHOM_TRACE_SELECT_H
#define FATHOM_TRACE_SELECT_H

#include "fathom/trace.h"
#include "host/base/array.h"

/* Some queries, and what they have selected. */
struct fathom_selection {
	const char *const *queries;
	size_t n_queries;
	bool *has_found;                   /* for each: whether it has ever selected something */
	struct fathom_u64_array addresses; /* that are selected, sorted */
};

/* Fails with FATHOM_E_MEMORY. */
fathom_err fathom_selection_init(struct fathom_selection *s, const char *const *queries,
				 size_t n_queries);
void fathom_selection_deinit(struct fathom_selection *s);

/* Returns whether a query is "FILE:". */
bool fathom_selection_has_files(const struct fathom_selection *s);

/* Finds what the queries select in @target. Fails as fathom_find() does. */
fathom_err fathom_selection_find(struct fathom_selection *s, struct fathom_target *target,
				 struct fathom_errinfo *reterr);

/* Returns whether the function of @site is selected; its answer has lines for "FILE:". */
bool fathom_selection_has(struct fathom_selection *s, const struct fathom_site *site);

#endif
