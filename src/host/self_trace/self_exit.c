/* SPDX-License-Identifier: MIT */
#include "host/self_trace/self_exit.h"

#include <stdlib.h>

#include "host/self_trace/self_rings.h"

static void at_exit(int status, void *data)
{
	(void)data;
	fathom_self_trace_rings_exit((status & 0xff) << 8);
}

void fathom_self_trace_exit_follow(void)
{
	(void)on_exit(at_exit, NULL);
}
