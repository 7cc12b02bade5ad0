/* SPDX-License-Identifier: MIT */
/* A process that traces itself: the reader attaches to it, as to any other. */
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "host/trace/own_way.h"
#include "trace/recorder.h"

/* AT_HWCAP2: programs may read the gs base (arch/x86/include/uapi/asm/hwcap2.h). */
#define HWCAP2_FSGSBASE 2

fathom_err fathom_own_way_prepare(const struct fathom_trace_options *options,
				  struct fathom_errinfo *reterr)
{
	(void)options;
	(void)reterr;
	return FATHOM_OK;
}

fathom_err fathom_own_way_begin(pid_t reader, struct fathom_errinfo *reterr)
{
	(void)reterr;
	/* Yama wants to be told; without it, this fails. */
	if (reader)
		(void)prctl(PR_SET_PTRACER, reader, 0, 0, 0);
	return FATHOM_OK;
}

fathom_err fathom_own_way_read(struct fathom *session, pid_t pid,
			       const struct fathom_trace_options *options,
			       struct fathom_own_ending *ending, struct fathom_errinfo *reterr)
{
	struct fathom_trace_result result = { .size = sizeof result };
	const int32_t pids[] = { pid };

	/* It holds the process at its end (FATHOM_TRACE_HOLD_ENDS). */
	(void)ending;
	return fathom_trace_attach(session, pids, 1, options, &result, reterr);
}

fathom_err fathom_own_way_end(struct fathom_errinfo *reterr)
{
	(void)reterr;
	return FATHOM_OK;
}

int fathom_trace_thread(int change)
{
	struct fathom_trace_thread *t;
	int before;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return 0;
	__asm__ volatile("rdgsbase %0" : "=r"(t));
	/* Where there is no such block, the program uses gs itself, and is not traced. */
	if (!t || t->self != t)
		return 0;
	before = t->first + t->change;
	t->change += change;
	/* The hook asks next. */
	if (change)
		t->limit = 0;
	return before;
}
