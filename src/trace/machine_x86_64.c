/* SPDX-License-Identifier: MIT */
/*
 * The gs base leads to the thread's block, and is not read: kernels before 5.9, and some
 * processors, have no instruction for that (rdgsbase).
 */
#include "trace/machine.h"

#include <asm/prctl.h>
#include <sys/syscall.h>

#include "safe/trace/syscall_ring.h"
#include "trace/recorder.h"

/* Offsets and the number are those that hook_x86_64.S and hook_macros_x86_64.S have. */
_Static_assert(offsetof(struct fathom_trace_thread, owner) == 0, "");
_Static_assert(offsetof(struct fathom_trace_thread, cursor) == 8, "");
_Static_assert(offsetof(struct fathom_trace_thread, limit) == 16, "");
_Static_assert(offsetof(struct fathom_trace_thread, records) == 24, "");
_Static_assert(offsetof(struct fathom_trace_thread, block) == 80, "");
_Static_assert(FATHOM_TRACE_FOLLOWED == UINT64_C(0xb6d1f00d5eed7ace), "");

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
	uint64_t owner;

	__asm__ volatile("movq %%gs:%c1, %0"
			 : "=r"(owner)
			 : "i"(offsetof(struct fathom_trace_thread, owner)));
	if (owner != FATHOM_TRACE_FOLLOWED)
		return NULL;
	__asm__ volatile("movq %%gs:%c1, %0"
			 : "=r"(t)
			 : "i"(offsetof(struct fathom_trace_thread, block)));
	return t;
}

void fathom_trace_set_own_block(struct fathom_trace_thread *t)
{
	/* In a program that a tracer follows nobody gets here: the tracer does it. */
	(void)fathom_trace_syscall_kernel(SYS_arch_prctl, ARCH_SET_GS, (long)t, 0, 0);
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
