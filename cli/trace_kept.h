/* SPDX-License-Identifier: MIT */
/* Copies of functions of which events tell: those of a run are gone when it is over. */
#ifndef FATHOM_CLI_TRACE_KEPT_H
#define FATHOM_CLI_TRACE_KEPT_H

#include <fathom/fathom.h>

/* All zero, it is empty. */
struct trace_kept {
	struct fathom_trace_function **functions; /* by number; NULL: not seen */
	size_t n;
};

/* Returns the copy of @f. */
const struct fathom_trace_function *trace_kept_function(struct trace_kept *k,
							const struct fathom_trace_function *f);
void trace_kept_deinit(struct trace_kept *k);

#endif
