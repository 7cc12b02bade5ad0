/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "safe/crash/handler_frame.h"

enum fathom_frame_move fathom_handler_frame_move(int number, const siginfo_t *info, void *context,
						 uintptr_t handler, uint64_t mask)
{
	(void)number, (void)info, (void)context, (void)handler, (void)mask;
	return FATHOM_FRAME_STAYS;
}
