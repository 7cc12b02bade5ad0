/* SPDX-License-Identifier: MIT */
/* Finds the file of a build: its index in a store, on this machine, or on a debuginfod server. */
#ifndef FATHOM_FLEET_BUILD_SEARCH_H
#define FATHOM_FLEET_BUILD_SEARCH_H

#include "fathom/resolve.h"
#include "host/base/search_paths.h"
#include "host/store/asked_in_turn.h"

/* Where files of builds are looked for. */
struct fathom_build_places {
	struct fathom *session;
	struct fathom_search_paths *paths;
	char **module_dirs; /* NULL-terminated; NULL: none */
	struct fathom_store_list stores;
	bool puts;       /* indexes of files that are found go into the first store */
	bool needs_file; /* an index of a debug file alone does not serve */
};

/* Where a file was found. */
struct fathom_build_found {
	bool is_stored; /* an index of a store stands for it */
	bool was_put;   /* it was put there now */
};

/*
 * Opens the file of @build, whose module ends with a NUL, or is NULL. On success *@ret_target is
 * the caller's; it is NULL if there is no such file, and *@ret_reason says why.
 * FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_build_search(const struct fathom_build_places *places,
			       const struct fathom_build *build, struct fathom_target **ret_target,
			       enum fathom_reason *ret_reason, struct fathom_build_found *ret_found,
			       struct fathom_errinfo *reterr);

#endif
