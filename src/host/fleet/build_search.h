/* SPDX-License-Identifier: MIT */
/* Finds the file of a build on this machine, or on a debuginfod server. */
#ifndef FATHOM_FLEET_BUILD_SEARCH_H
#define FATHOM_FLEET_BUILD_SEARCH_H

#include "fathom/resolve.h"
#include "host/base/search_paths.h"

/* Where files of builds are looked for. */
struct fathom_build_places {
	struct fathom *session;
	struct fathom_search_paths *paths;
	char **module_dirs; /* NULL-terminated; NULL: none */
};

/*
 * Opens the file of @build, whose module ends with a NUL, or is NULL. On success *@ret_target is
 * the caller's; it is NULL if there is no such file, and *@ret_reason says why.
 * FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_build_search(const struct fathom_build_places *places,
			       const struct fathom_build *build, struct fathom_target **ret_target,
			       enum fathom_reason *ret_reason, struct fathom_errinfo *reterr);

#endif
