/* SPDX-License-Identifier: MIT */
/* For builds without dlopen. */
#include "host/file/debuginfod.h"

fathom_err fathom_debuginfod_find(struct fathom *session, struct fathom_bytes build_id,
				  char **ret_path, struct fathom_errinfo *reterr)
{
	(void)session;
	(void)build_id;
	(void)ret_path;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "this build cannot ask debuginfod servers");
}
