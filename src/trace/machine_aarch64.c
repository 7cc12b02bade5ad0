/* SPDX-License-Identifier: MIT */
/* The runtime is linked into the program, so the thread's block has a thread-local variable. */
#include "trace/machine.h"
#include "trace/linked.h"

struct fathom_trace_process fathom_trace_own_process;

/* hook_aarch64.S reads it, too. */
_Thread_local struct fathom_trace_thread *fathom_trace_own_thread
	__attribute__((tls_model("initial-exec")));

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

struct fathom_trace_thread *fathom_trace_own_block(void)
{
	return fathom_trace_own_thread;
}

void fathom_trace_set_own_block(struct fathom_trace_thread *t)
{
	fathom_trace_own_thread = t;
}

void fathom_trace_relax(void)
{
	__asm__ volatile("yield");
}
