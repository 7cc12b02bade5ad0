/* SPDX-License-Identifier: MIT */
/*
 * Part of the C source of fathom._fathom (build_ffi.py): limits how often a call that takes long
 * asks Python, because each time waits for the GIL.
 */
#include <time.h>

#define ASK_EVERY_NS INT64_C(100000000)

static int fathom_python_progress(void *data, const struct fathom_progress *p);

static int python_progress(void *data, const struct fathom_progress *p)
{
	static _Thread_local int64_t last_ns;
	struct timespec t;
	int64_t now_ns;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	if (now_ns - last_ns < ASK_EVERY_NS)
		return FATHOM_GO_ON;
	last_ns = now_ns;
	return fathom_python_progress(data, p);
}
