/* SPDX-License-Identifier: MIT */
/* Has the sites of what was loaded into a traced process call the hook. */
#ifndef FATHOM_TRACE_LOAD_H
#define FATHOM_TRACE_LOAD_H

#include "fathom/trace.h"
#include "host/events/named_choices.h"
#include "host/sites/list.h"
#include "host/trace/hook_image.h"
#include "host/trace/program.h"
#include "host/trace/select.h"
#include "host/trace/spans.h"
#include "host/trace/told_code.h"

/* Refusals of struct fathom_trace_result. */
#define FATHOM_LOADER_REFUSALS 8

/* What loading has and knows for all processes of a run. Its caller sees that one thread uses it.
 */
struct fathom_loader {
	struct fathom *session;
	const struct fathom_trace_options *options;
	struct fathom_choices choices;
	struct fathom_selection chosen[FATHOM_CHOICES];
	struct fathom_named_choices named;
	struct fathom_sites_memo memo;
	struct fathom_insider insider;
	/* Takes over @span, whose numbers the program may record from now on. */
	void (*loaded)(void *data, struct fathom_span *span);
	void *data;
	uint64_t next; /* number of a site that is free */
	uint32_t n_functions;
	uint64_t n_sites;
	uint64_t n_calls; /* of libraries, that are recorded */
	uint64_t n_refused[FATHOM_LOADER_REFUSALS];
};

/* Where sites call. */
struct fathom_hooks {
	uint64_t slot;                   /* of the copy of the hooks; 0: none is within reach */
	uint64_t at[FATHOM_HOOK_PLACES]; /* avma of each; 0: none is within reach */
	uint64_t base;                   /* what to subtract from where a call returns to */
};

/* Makes a copy of the hook for sites from @low to @high, which get numbers. */
bool fathom_hooks_make(struct fathom_loader *l, struct fathom_traced *p, uint64_t low,
		       uint64_t high, struct fathom_hooks *ret);

/* Returns what is known of the module with @bias at @path; NULL: nothing. */
struct fathom_loaded_module *fathom_find_loaded(const struct fathom_traced *p, uint64_t bias,
						const char *path);

/*
 * Looks at what is loaded into @p, whose threads are stopped or do not run code of new modules yet.
 * Modules that are gone are forgotten. FATHOM_E_MEMORY; what fathom_trace_sites() returns.
 */
fathom_err fathom_load_modules(struct fathom_loader *l, struct fathom_traced *p,
			       struct fathom_errinfo *reterr);

/* What is loaded into a process that runs. */
struct fathom_found_modules;

/*
 * Finds the sites of @p, whose threads run meanwhile; its text stays as it is. *@ret is to be freed
 * with fathom_load_discard(). Fails as fathom_load_modules() does.
 */
fathom_err fathom_load_find(struct fathom_loader *l, struct fathom_traced *p,
			    struct fathom_found_modules **ret, struct fathom_errinfo *reterr);
/*
 * Has the sites that were found call the hook; the @n threads of the process, @tids, are stopped.
 * FATHOM_E_MEMORY, FATHOM_E_OS.
 */
fathom_err fathom_load_found(struct fathom_found_modules *found, const pid_t *tids, size_t n);
void fathom_load_discard(struct fathom_found_modules *found);

/* Makes the text of @p, whose threads are stopped, what it was; false if that has failed. */
bool fathom_unload(struct fathom_traced *p);

#endif
