/* SPDX-License-Identifier: MIT */
/* Changes of single bytes (x86-64): a processor sees one before or after, never in part. */
#include "host/patch/own_text.h"

fathom_err fathom_text_put_running(const struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_text_put_unused(plan, now, reterr));
	return fathom_text_synchronize(reterr);
}
