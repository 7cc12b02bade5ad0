/* SPDX-License-Identifier: MIT */
/* The gs base leads to the thread's block: no program for Linux uses it otherwise. */
#include "trace/machine.h"

#include <sys/syscall.h>

#include "safe/trace/syscall_ring.h"
#include "trace/recorder.h"

/* Not a thing that rt_sigprocmask() does: it reads the mask, and refuses. */
#define NO_CHANGE (-1)

#define FAULT (-14) /* EFAULT */

long fathom_trace_syscall_kernel(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

struct fathom_trace_thread *fathom_trace_self_block(void)
{
	struct fathom_trace_thread *t;

	__asm__ volatile("rdgsbase %0" : "=r"(t));
	return t;
}

void fathom_trace_set_own_block(struct fathom_trace_thread *t)
{
	__asm__ volatile("wrgsbase %0" : : "r"(t) : "memory");
}

const struct fathom_trace_process *fathom_trace_syscall_process(void)
{
	return (const void *)FATHOM_TRACE_FIXED_PROCESS;
}

const struct fathom_trace_plans *fathom_trace_syscall_plans(void)
{
	return (const void *)FATHOM_TRACE_FIXED_PLANS;
}

bool fathom_trace_is_there(uint64_t avma)
{
	/* No mask is at 0. */
	return fathom_trace_syscall_kernel(SYS_rt_sigprocmask, NO_CHANGE,
					   (long)((avma & ~UINT64_C(7)) | 8), 0, 8) != FAULT;
}
