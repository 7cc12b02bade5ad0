/* SPDX-License-Identifier: MIT */
/* For builds without dlopen. */
#include "host/file/debuginfod.h"

#define REFUSAL "this build cannot ask debuginfod servers"

fathom_err fathom_debuginfod_open(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, REFUSAL);
}

fathom_err fathom_debuginfod_find(struct fathom *session, struct fathom_bytes build_id,
				  char **ret_path, struct fathom_errinfo *reterr)
{
	(void)session;
	(void)build_id;
	(void)ret_path;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, REFUSAL);
}

fathom_err fathom_debuginfod_find_source(struct fathom *session, struct fathom_bytes build_id,
					 const char *source, char **ret_path,
					 struct fathom_errinfo *reterr)
{
	(void)source;
	return fathom_debuginfod_find(session, build_id, ret_path, reterr);
}
