/* SPDX-License-Identifier: MIT */
/* For systems without dlopen(3), by which libcurl is opened. */
#include "host/store/backend.h"
#include "safe/base/error.h"

fathom_err fathom_store_http_open(struct fathom *session, const char *place,
				  struct fathom_store_backend **ret, struct fathom_errinfo *reterr)
{
	(void)session;
	(void)place;
	(void)ret;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, "this build asks no HTTP servers");
}
