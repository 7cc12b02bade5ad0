/* SPDX-License-Identifier: MIT */
#include "trace/machine.h"

uint64_t fathom_trace_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
