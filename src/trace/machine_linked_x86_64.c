/* SPDX-License-Identifier: MIT */
/* What the runtime that is linked into the program does in this processor's way. */
#include "trace/machine.h"

/* Its system calls are in the range that is exempt from dispatch (user_dispatch.h). */
__attribute__((section("fathom_own_calls"), noinline)) long fathom_trace_call_kernel(long number,
										     long a, long b,
										     long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

uint64_t fathom_trace_thread_pointer(void)
{
	uint64_t fs;

	__asm__("movq %%fs:0, %0" : "=r"(fs));
	return fs;
}
