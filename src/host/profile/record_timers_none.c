/* SPDX-License-Identifier: MIT */
/* Machines whose programs are not followed by ptrace(2): they are polled. */
#include "host/profile/record_timers.h"

fathom_err fathom_record_timers_create(struct fathom_recording *r,
				       struct fathom_record_timers **ret,
				       struct fathom_errinfo *reterr)
{
	(void)r;
	*ret = NULL;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "programs get CPU timers on x86-64 only: --method=polling");
}

void fathom_record_timers_ask(struct fathom_record_timers *t, int32_t tid, uint64_t ran_ns)
{
	(void)t;
	(void)tid;
	(void)ran_ns;
}

fathom_err fathom_record_timers_failed(const struct fathom_record_timers *t)
{
	(void)t;
	return FATHOM_OK;
}

uint64_t fathom_record_timers_destroy(struct fathom_record_timers *t)
{
	(void)t;
	return 0;
}
