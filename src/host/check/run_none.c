/* SPDX-License-Identifier: MIT */
/* Stands in for run.c on machines whose instructions are not followed. */
#include "fathom/jit_check.h"
#include "safe/base/error.h"

fathom_err fathom_jit_check_run(struct fathom *session, char *const *argv,
				const struct fathom_jit_check_options *options,
				struct fathom_jit_check_result *ret_result,
				struct fathom_errinfo *reterr)
{
	(void)session;
	(void)argv;
	(void)options;
	(void)ret_result;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "made code is followed on x86-64 only");
}
