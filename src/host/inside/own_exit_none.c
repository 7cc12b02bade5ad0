/* SPDX-License-Identifier: MIT */
/* For C libraries without on_exit(), as musl: the trace says "ended", with no status. */
#include "host/inside/own_exit.h"

#include <stdlib.h>

#include "host/inside/own_rings.h"

static void at_exit(void)
{
	fathom_own_rings_exit(FATHOM_OWN_NO_STATUS);
}

void fathom_own_exit_follow(void)
{
	(void)atexit(at_exit);
}
