/* SPDX-License-Identifier: MIT */
/* The gs base leads to the thread's block: no program for Linux uses it otherwise. */
#include "trace/machine.h"

long fathom_trace_call_kernel(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

struct fathom_trace_thread *fathom_trace_own_block(void)
{
	struct fathom_trace_thread *t;

	__asm__ volatile("rdgsbase %0" : "=r"(t));
	return t;
}

void fathom_trace_set_own_block(struct fathom_trace_thread *t)
{
	__asm__ volatile("wrgsbase %0" : : "r"(t) : "memory");
}

void fathom_trace_relax(void)
{
	__asm__ volatile("pause");
}
