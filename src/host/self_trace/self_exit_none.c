/* SPDX-License-Identifier: MIT */
/* For C libraries without on_exit(), as musl: the trace says "ended", with no status. */
#include "host/self_trace/self_exit.h"

#include <stdlib.h>

#include "host/self_trace/self_rings.h"

static void at_exit(void)
{
	fathom_self_trace_rings_exit(FATHOM_SELF_NO_STATUS);
}

void fathom_self_trace_exit_follow(void)
{
	(void)atexit(at_exit);
}
