/* SPDX-License-Identifier: MIT */
/* Changes of single instructions stop nobody (aarch64). */
#include "host/hook/stop_others.h"

fathom_err fathom_text_put_stopped(struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr)
{
	fathom_text_plan_sort(plan);
	return fathom_text_put_running(plan, now, reterr);
}
