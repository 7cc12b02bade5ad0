/* SPDX-License-Identifier: MIT */
/* Where the files of one target are looked for: struct fathom_target_options, as copied. */
#ifndef FATHOM_BASE_SEARCH_PATHS_H
#define FATHOM_BASE_SEARCH_PATHS_H

#include <stdatomic.h>

#include "fathom/target.h"
#include "host/base/context.h"

/* Counted, and holds its session. What is not set is "". */
struct fathom_search_paths {
	_Atomic uint32_t references;
	struct fathom *session;
	char **debug_dirs; /* NULL-terminated */
	char *sysroot;
	bool takes_unverified; /* files of what was stored */
	char *exe;             /* the program of what was stored */
	char *root;            /* what stands for "/" */
};

/* Copies @options, which may be NULL. FATHOM_E_ARGUMENT, FATHOM_E_MEMORY. */
fathom_err fathom_search_paths_create(struct fathom *session,
				      const struct fathom_target_options *options,
				      struct fathom_search_paths **ret,
				      struct fathom_errinfo *reterr);
struct fathom_search_paths *fathom_search_paths_acquire(struct fathom_search_paths *p);
/* Gives a reference back; @p may be NULL. */
void fathom_search_paths_release(struct fathom_search_paths *p);

/* Returns @dirs, or if it is NULL, the debug directories that are searched then. */
const char *const *fathom_debug_dirs(const char *const *dirs);

/* Copies a NULL-terminated list; NULL without memory. */
char **fathom_dirs_copy(const char *const *dirs);
void fathom_dirs_free(char **dirs);

#endif
