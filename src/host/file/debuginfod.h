/* SPDX-License-Identifier: MIT */
/*
 * Asks debuginfod servers (elfutils) for debug files and sources, if the session wants that. All
 * queries of a session share one deadline, and the caller's callback can cancel them.
 */
#ifndef FATHOM_FILE_DEBUGINFOD_H
#define FATHOM_FILE_DEBUGINFOD_H

#include "host/base/context.h"

/* Opens libdebuginfod, which stays open. FATHOM_E_UNSUPPORTED: there is none. */
fathom_err fathom_debuginfod_open(struct fathom_errinfo *reterr);

/*
 * Fetches the debug information for @build_id. On success *@ret_path, which the caller frees, is
 * the file in debuginfod's own cache. Else returns FATHOM_E_NOT_FOUND, FATHOM_E_TIMEOUT,
 * FATHOM_E_CANCELLED, FATHOM_E_OS, or FATHOM_E_UNSUPPORTED if there is no libdebuginfod.
 */
fathom_err fathom_debuginfod_find(struct fathom *session, struct fathom_bytes build_id,
				  char **ret_path, struct fathom_errinfo *reterr);

/*
 * Fetches the source file @source, an absolute path as the debug information spells it, of the
 * program with @build_id; results as above.
 */
fathom_err fathom_debuginfod_find_source(struct fathom *session, struct fathom_bytes build_id,
					 const char *source, char **ret_path,
					 struct fathom_errinfo *reterr);

#endif
