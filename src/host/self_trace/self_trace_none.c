/* SPDX-License-Identifier: MIT */
/* Processes trace themselves on x86-64 and aarch64 only. */
#include "fathom/trace.h"
#include "safe/base/error.h"

fathom_err fathom_trace_start(const char *options, struct fathom_errinfo *reterr)
{
	(void)options;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, "traces on this machine");
}

fathom_err fathom_trace_stop(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, "traces on this machine");
}

int fathom_trace_thread(int change)
{
	(void)change;
	return 0;
}
