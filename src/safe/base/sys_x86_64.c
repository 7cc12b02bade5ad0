/* SPDX-License-Identifier: MIT */
/* x86-64 (psABI, A.2.1 "Calling Conventions"), and x32, whose long has 32 bits. */
#include "safe/base/sys.h"

long fathom_sys(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
