/* SPDX-License-Identifier: MIT */
/* Stands in for export_perfetto.c in builds without nanopb. */
#include "host/exchange/exporting.h"
#include "safe/base/error.h"

fathom_err fathom_export_perfetto(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	(void)e;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "this build does not write that format");
}
