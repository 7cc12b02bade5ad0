/* SPDX-License-Identifier: MIT */
#include "safe/crash/switch_stack.h"

void fathom_switch_stack(void (*call)(void *data), void *data, void *end)
{
	(void)end;
	call(data);
}
