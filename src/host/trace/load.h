/* SPDX-License-Identifier: MIT */
/* Makes the sites of modules in a traced process call the hook. */
#ifndef FATHOM_TRACE_LOAD_H
#define FATHOM_TRACE_LOAD_H

#include "host/trace/chosen_sites.h"
#include "host/trace/hook_image.h"
#include "host/trace/program.h"

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

/* The modules of a process that runs. */
struct fathom_found_modules;

/*
 * Finds the sites of @p, whose threads run meanwhile; its text stays as it is. *@ret is to be freed
 * with fathom_load_discard(). Fails as fathom_load_modules() does.
 */
fathom_err fathom_load_find(struct fathom_loader *l, struct fathom_traced *p,
			    struct fathom_found_modules **ret, struct fathom_errinfo *reterr);
/*
 * Makes what a killed tracer has changed in the modules that were found what their files have; the
 * threads of the process are stopped. Adds to its n_healed.
 */
void fathom_load_heal(struct fathom_found_modules *found);
/*
 * Makes the sites that were found call the hook; the @n threads of the process, @tids, are stopped.
 * FATHOM_E_MEMORY, FATHOM_E_OS.
 */
fathom_err fathom_load_found(struct fathom_found_modules *found, const pid_t *tids, size_t n);
void fathom_load_discard(struct fathom_found_modules *found);

/*
 * Makes the text of @p, whose threads are stopped, what it was; false if that has failed. @stands:
 * nothing runs that uses this memory.
 */
bool fathom_unload(struct fathom_traced *p, bool stands);

#endif
