/* SPDX-License-Identifier: MIT */
/* Has the sites of what was loaded into a traced process call the hook. */
#ifndef FATHOM_TRACE_LOAD_H
#define FATHOM_TRACE_LOAD_H

#include "fathom/trace.h"
#include "host/events/choices.h"
#include "host/sites/list.h"
#include "host/trace/program.h"
#include "host/trace/select.h"
#include "host/trace/spans.h"

/* Refusals of struct fathom_trace_result. */
#define FATHOM_LOADER_REFUSALS 8

/* What loading has and knows for all processes of a run. Its caller sees that one thread uses it.
 */
struct fathom_loader {
	struct fathom *session;
	const struct fathom_trace_options *options;
	struct fathom_choices choices;
	struct fathom_selection chosen[FATHOM_CHOICES];
	struct fathom_sites_memo memo;
	/* Takes over @span, whose numbers the program may record from now on. */
	void (*loaded)(void *data, struct fathom_span *span);
	void *data;
	uint64_t next; /* number of a site that is free */
	uint32_t n_functions;
	uint64_t n_sites;
	uint64_t n_refused[FATHOM_LOADER_REFUSALS];
};

/*
 * Looks at what is loaded into @p, whose threads are stopped or do not run code of new modules yet.
 * Modules that are gone are forgotten. FATHOM_E_MEMORY; what fathom_trace_sites() returns.
 */
fathom_err fathom_load_modules(struct fathom_loader *l, struct fathom_traced *p,
			       struct fathom_errinfo *reterr);

#endif
