/* SPDX-License-Identifier: MIT */
#include "trace/machine.h"

uint64_t fathom_trace_ticks(void)
{
	uint32_t low;
	uint32_t high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

uint64_t fathom_trace_reserve(uint64_t *cursor, uint64_t n)
{
	/* One instruction: no other thread writes it, so it needs no lock. */
	__asm__ volatile("xaddq %0, %1" : "+r"(n), "+m"(*cursor) : : "cc");
	return n;
}

void fathom_trace_relax(void)
{
	__asm__ volatile("pause");
}
