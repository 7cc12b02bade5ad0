/* SPDX-License-Identifier: MIT */
/* What the runtime that is linked into the program does in this processor's way. */
#include "trace/machine.h"

/* Its system calls are in the range that is exempt from dispatch (user_dispatch.h). */
__attribute__((section("fathom_own_calls"), noinline)) long fathom_trace_call_kernel6(
	long number, const uint64_t args[6])
{
	register uint64_t r10 __asm__("r10") = args[3];
	register uint64_t r8 __asm__("r8") = args[4];
	register uint64_t r9 __asm__("r9") = args[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

long fathom_trace_call_kernel(long number, long a, long b, long c, long d)
{
	const uint64_t args[6] = { (uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d };

	return fathom_trace_call_kernel6(number, args);
}

uint64_t fathom_trace_thread_pointer(void)
{
	uint64_t fs;

	__asm__("movq %%fs:0, %0" : "=r"(fs));
	return fs;
}
