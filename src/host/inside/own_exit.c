/* SPDX-License-Identifier: MIT */
#include "host/inside/own_exit.h"

#include <stdlib.h>

#include "host/inside/own_rings.h"

static void at_exit(int status, void *data)
{
	(void)data;
	fathom_own_rings_exit((status & 0xff) << 8);
}

void fathom_own_exit_follow(void)
{
	(void)on_exit(at_exit, NULL);
}
