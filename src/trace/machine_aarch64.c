/* SPDX-License-Identifier: MIT */
/* What the runtime that is linked into the program does in this processor's way. */
#include "trace/machine.h"

long fathom_trace_call_kernel(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

long fathom_trace_call_kernel6(long number, const uint64_t args[6])
{
	register long x8 __asm__("x8") = number;
	register uint64_t x0 __asm__("x0") = args[0];
	register uint64_t x1 __asm__("x1") = args[1];
	register uint64_t x2 __asm__("x2") = args[2];
	register uint64_t x3 __asm__("x3") = args[3];
	register uint64_t x4 __asm__("x4") = args[4];
	register uint64_t x5 __asm__("x5") = args[5];

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return (long)x0;
}

uint64_t fathom_trace_reserve(uint64_t *cursor, uint64_t n)
{
	uint64_t first, sum;
	uint32_t has_failed;

	/* No other thread writes it: an exclusive store fails if there was an exception. */
	do
		__asm__ volatile("ldxr %0, [%3]\n\tadd %1, %0, %4\n\tstxr %w2, %1, [%3]"
				 : "=&r"(first), "=&r"(sum), "=&r"(has_failed)
				 : "r"(cursor), "r"(n)
				 : "memory");
	while (has_failed);
	return first;
}

uint64_t fathom_trace_thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

void fathom_trace_relax(void)
{
	__asm__ volatile("yield");
}
