/* SPDX-License-Identifier: MIT */
/*
 * Changes while threads run (x86-64): what leads elsewhere is a single byte, which a processor sees
 * before or after, never in part.
 */
#include "host/patch/own_text.h"

#include <errno.h>

/* mov $1, %eax; ret, and mov $2, %eax; ret */
const uint32_t fathom_text_probes[2][2] = { { 0x000001b8, 0x0000c300 },
					    { 0x000002b8, 0x0000c300 } };

static fathom_err put_plan(const struct fathom_text_plan *plan, bool now,
			   struct fathom_text_memory *m, struct fathom_errinfo *reterr)
{
	if (!fathom_text_plan_count(plan, 0, now, m))
		return FATHOM_OK;
	if (!fathom_text_is_seen(m))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "writes to /proc/self/mem have no effect here");
	return fathom_text_put(plan, now, m, reterr);
}

fathom_err fathom_text_put_running(const struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr)
{
	struct fathom_own_text text;
	fathom_err err;

	if (!fathom_own_text_open(&text))
		return fathom_text_fail(reterr, errno, "/proc/self/mem cannot be opened");
	text.memory.synchronize = fathom_text_synchronize;
	err = put_plan(plan, now, &text.memory, reterr);
	fathom_own_text_close(&text);
	return err;
}
