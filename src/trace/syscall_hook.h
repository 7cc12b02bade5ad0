/* SPDX-License-Identifier: MIT */
/*
 * System calls of a program, whose `syscall` instructions lead here (x86-64). A call that has a
 * plan (safe/trace/syscall_ring.h) is made and recorded here; of any other, nothing is done here:
 * its stub makes it, where the program's filter stops it for the tracer.
 *
 * The stub of an instruction:
 *
 *	lea 1f(%rip), %rcx
 *	movabs $fathom_trace_syscall_entry, %r11
 *	jmp *%r11
 * 1:	syscall
 *	jmp after
 *
 * %rcx and %r11 are what the kernel changes anyway. The hook has a stack of its own for each
 * thread: that of the program may be as small as it likes, and is not touched. No handler of a
 * signal runs on it: the tracer brings the thread out of the hook first.
 */
#ifndef FATHOM_TRACE_SYSCALL_HOOK_H
#define FATHOM_TRACE_SYSCALL_HOOK_H

#include <stdint.h>

#include "safe/trace/syscall_ring.h"

/* From `syscall` in a stub to where its jump has the distance, and to the end. */
#define FATHOM_TRACE_STUB_JUMP 3
#define FATHOM_TRACE_STUB_END  7

/* Bytes of the hook's stack of a thread. */
#define FATHOM_TRACE_HOOK_STACK 8192

/* There is no stub: the call, or call of i386, was dispatched (user_dispatch.h). */
#define FATHOM_TRACE_STUB_NONE 0
#define FATHOM_TRACE_STUB_I386 1
/* The stub is known to who calls fathom_trace_syscall_begin() (syscall_linked.h). */
#define FATHOM_TRACE_STUB_LINKED 2

/* The frame of the hook on its stack; the stack pointer points to it while the kernel runs. */
struct fathom_trace_syscall_frame {
	uint64_t rbp;
	const struct fathom_trace_run *run; /* ranges of its plan */
	uint64_t begin;  /* number of the first record of the event before the call */
	uint64_t behind; /* where the program goes on */
	uint64_t args[6];
	uint64_t rax;  /* number, then result */
	uint64_t stub; /* its `syscall`, or one of the numbers below */
	uint64_t flags;
	uint64_t sp;
};

/* The call of FATHOM_TRACE_STUB_LINKED, with its words and enum fathom_trace_syscall_flag. */
struct fathom_trace_linked_call {
	struct fathom_trace_syscall_frame frame; /* the first member */
	uint32_t n_words;
	uint32_t flags;
	uint32_t words[FATHOM_TRACE_SYSCALL_WORDS];
};

/*
 * Records the call that @f describes, before it is made; returns 0 if that is left to the stub.
 *
 * Safety: as-safe
 */
int fathom_trace_syscall_begin(struct fathom_trace_syscall_frame *f);
/* Records how it has ended. */
void fathom_trace_syscall_end(struct fathom_trace_syscall_frame *f);
/* Finds the run of call @number again, for who has not kept it. */
void fathom_trace_syscall_find_run(struct fathom_trace_syscall_frame *f, uint64_t number);

/*
 * Returns the 8 bytes, or the byte, at @address; 0 and 1 in *@ret_fault if they cannot be read: the
 * tracer, which sees the fault first, has the function go on at fathom_trace_load_fault.
 */
uint64_t fathom_trace_load(uint64_t address, uint64_t *ret_fault);
uint64_t fathom_trace_load_byte(uint64_t address, uint64_t *ret_fault);

/*
 * Returns how many words of the stack from @sp on are recorded, an even number: all, or those in
 * its page if the next one cannot be read, where a stack begins.
 */
uint32_t fathom_trace_stack_words(uint64_t sp);

/* Returns the length that the entry of a directory at @avma says it has; 0: it cannot be read. */
uint64_t fathom_trace_entry_length(uint64_t avma);

#endif
