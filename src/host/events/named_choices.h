/* SPDX-License-Identifier: MIT */
/* For what functions are chosen of which only names are known. */
#ifndef FATHOM_EVENTS_NAMED_CHOICES_H
#define FATHOM_EVENTS_NAMED_CHOICES_H

#include "host/base/memory.h"
#include "host/events/choices.h"
#include "host/find/query.h"

/* The queries of all choices, parsed. All zero, there are none. */
struct fathom_named_choices {
	const struct fathom_choices *choices;
	struct fathom_find_query *queries[FATHOM_CHOICES];
	struct fathom_arena arena;
};

/*
 * Parses the queries of @choices, which must outlive it. Those for files and lines select nothing
 * by names: with @refuses_lines they are FATHOM_E_UNSUPPORTED. FATHOM_E_ARGUMENT, FATHOM_E_MEMORY.
 */
fathom_err fathom_named_choices_init(struct fathom_named_choices *n,
				     const struct fathom_choices *choices, bool refuses_lines,
				     struct fathom_errinfo *reterr);
void fathom_named_choices_deinit(struct fathom_named_choices *n);

/*
 * Returns whether the function is wanted that is linked as @linked, in the file @module, and in
 * *@ret_selection for what else it is chosen.
 */
bool fathom_named_choices_want(struct fathom_named_choices *n, const char *linked,
			       const char *module, uint8_t *ret_selection);

#endif
