/* SPDX-License-Identifier: MIT */
#include "trace/machine.h"

uint64_t fathom_trace_ticks(void)
{
	uint32_t low;
	uint32_t high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}
