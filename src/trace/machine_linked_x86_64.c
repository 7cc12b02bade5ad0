/* SPDX-License-Identifier: MIT */
/* Parts of the runtime that is linked into the program for this processor. */
#include <sys/syscall.h>

#include "trace/syscall_linked.h"
#include "trace/machine.h"

/* From where a stub goes on after its first call of the hook to the distance of its last jump. */
#define TO_DISTANCE 29

/* Its system calls are in the range that is exempt from dispatch (user_dispatch.h). */
__attribute__((section("fathom_tracer_syscalls"), noinline)) long fathom_trace_syscall_kernel6(
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

long fathom_trace_syscall_kernel(long number, long a, long b, long c, long d)
{
	const uint64_t args[6] = { (uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d };

	return fathom_trace_syscall_kernel6(number, args);
}

uint64_t fathom_trace_thread_pointer(void)
{
	uint64_t fs;

	__asm__("movq %%fs:0, %0" : "=r"(fs));
	return fs;
}

uint64_t fathom_trace_syscall_goes_on(uint64_t stub)
{
	int32_t distance;

	__builtin_memcpy(&distance, (const char *)stub + TO_DISTANCE, sizeof distance);
	return stub + TO_DISTANCE + sizeof distance + (uint64_t)(int64_t)distance;
}

/* Words of the stack. */
void fathom_trace_syscall_find_words(struct fathom_trace_linked_call *call, uint64_t fp,
				     uint64_t lr)
{
	const uint64_t sp = call->frame.sp;

	(void)fp;
	(void)lr;
	call->flags = 0;
	call->n_words = fathom_trace_stack_words(sp);
	for (uint32_t i = 0; i < call->n_words; i++)
		call->words[i] = (uint32_t)((const uint64_t *)sp)[i];
}

unsigned fathom_trace_is_fork(uint64_t number)
{
	return number == SYS_fork ? 1 : number == SYS_vfork ? 2 : 0;
}
