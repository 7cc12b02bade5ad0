/* SPDX-License-Identifier: MIT */
/*
 * Asking debuginfod servers (elfutils) for a debug file. Only when the session asks for it; all
 * questions of a session share one deadline, and the caller's callback can give up.
 */
#ifndef FATHOM_FILE_DEBUGINFOD_H
#define FATHOM_FILE_DEBUGINFOD_H

#include "host/base/context.h"

/*
 * Fetches the debug information for @build_id; on success *@ret_path, the caller's to free(), is
 * the file in debuginfod's own cache. FATHOM_E_NOT_FOUND, FATHOM_E_TIMEOUT, FATHOM_E_CANCELLED,
 * FATHOM_E_UNSUPPORTED when there is no libdebuginfod, FATHOM_E_OS.
 */
fathom_err fathom_debuginfod_find(struct fathom *session, struct fathom_bytes build_id,
				  char **ret_path, struct fathom_errinfo *reterr);

#endif
