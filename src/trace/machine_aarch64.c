/* SPDX-License-Identifier: MIT */
/* Parts of the runtime that is linked into the program for this processor. */
#include "trace/syscall_linked.h"
#include "trace/machine.h"

/* From where a stub goes on after its first call of the hook to its branch at the end. */
#define TO_BRANCH 20

/* The 26 bits of a branch that count instructions, and how far they are from the highest bit. */
#define OFFSET_MASK  UINT32_C(0x03ffffff)
#define OFFSET_SHIFT 6

/* Bytes of the largest frame: a larger step is none. */
#define LARGEST_FRAME (UINT64_C(1) << 24)

/* Places a function where no instruction is led to the hook. */
#define TRACER_SYSCALLS __attribute__((section("fathom_tracer_syscalls"), noinline))

TRACER_SYSCALLS long fathom_trace_syscall_kernel(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

TRACER_SYSCALLS long fathom_trace_syscall_kernel6(long number, const uint64_t args[6])
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

uint64_t fathom_trace_syscall_goes_on(uint64_t stub)
{
	const uint64_t at = stub + TO_BRANCH;
	const uint32_t op = *(const uint32_t *)at;
	const int32_t offset = (int32_t)((op & OFFSET_MASK) << OFFSET_SHIFT) >> OFFSET_SHIFT;

	return at + (uint64_t)((int64_t)offset * 4);
}

/*
 * Return addresses of the callers: that in the link register, and those of the frame records, each
 * the frame pointer and the return address of a function, to which x29 leads (AAPCS64, 6.4.6).
 */
void fathom_trace_syscall_find_words(struct fathom_trace_linked_call *call, uint64_t fp,
				     uint64_t lr)
{
	uint64_t seen = call->frame.sp;
	uint64_t fault = 0;
	unsigned n = 2;

	while (n + 1 < FATHOM_TRACE_SYSCALL_WORDS && fp >= seen && fp - seen < LARGEST_FRAME &&
	       !(fp & 7)) {
		const uint64_t next = fathom_trace_load(fp, &fault);
		const uint64_t back = fathom_trace_load(fp + 8, &fault);

		if (fault)
			break;
		call->words[n++] = (uint32_t)(fp >> 3);
		call->words[n++] = (uint32_t)back;
		seen = fp + 16;
		/* The outermost function has none. */
		if (!next)
			seen += LARGEST_FRAME;
		fp = next;
	}
	/* Up to the next record, if it can be one. */
	if (fp >= seen && fp - seen < LARGEST_FRAME && !fault)
		seen = fp;
	call->words[0] = (uint32_t)(seen >> 3);
	call->words[1] = (uint32_t)lr;
	call->n_words = n;
	call->flags = FATHOM_TRACE_SYSCALL_FRAMES;
}

unsigned fathom_trace_is_fork(uint64_t number)
{
	(void)number;
	return 0;
}
