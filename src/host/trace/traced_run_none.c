/* SPDX-License-Identifier: MIT */
/* Other programs are traced on x86-64 only. */
#include "fathom/trace.h"
#include "host/base/context.h"

static fathom_err refuse(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "other programs are traced on x86-64 only (one that is linked "
			   "with libfathom-trace traces itself)");
}

fathom_err fathom_trace_run(struct fathom *session, char *const *argv,
			    const struct fathom_trace_options *options,
			    struct fathom_trace_result *ret_result, struct fathom_errinfo *reterr)
{
	(void)session;
	(void)argv;
	(void)options;
	(void)ret_result;
	return refuse(reterr);
}

fathom_err fathom_trace_attach(struct fathom *session, const int32_t *pids, size_t n,
			       const struct fathom_trace_options *options,
			       struct fathom_trace_result *ret_result,
			       struct fathom_errinfo *reterr)
{
	(void)session;
	(void)pids;
	(void)n;
	(void)options;
	(void)ret_result;
	return refuse(reterr);
}
