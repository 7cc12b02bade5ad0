/* SPDX-License-Identifier: MIT */
/*
 * System calls of a program that carries the tracer inside, where nobody traces it by ptrace(2). An
 * instruction that calls the kernel leads to a stub (host/self_trace/stub_sets.h), which belongs to
 * whoever makes it:
 *
 *	call fathom_trace_syscall_before
 *	the instruction itself
 *	call fathom_trace_syscall_behind
 *	jump after the program's instruction
 *
 * While the kernel runs, the thread has the program's registers, all of them, and nothing of ours
 * is on its stack: a handler of a signal may return, jump elsewhere or end the thread, and a child
 * has the stack that it is given. The functions run on the stack of the program, below what it
 * uses, or on one of ours (hook_stack.h). What has to be known after a call stands in the thread's
 * struct fathom_trace_syscall_state; what a handler has jumped away from is forgotten there when an
 * older call returns.
 */
#ifndef FATHOM_TRACE_SYSCALL_LINKED_H
#define FATHOM_TRACE_SYSCALL_LINKED_H

#include "safe/trace/syscall_ring.h"
#include "trace/syscall_hook.h"
#include "trace/linked.h"

/* Recording of the process's own system calls. */
struct fathom_trace_self_syscalls {
	bool is_on; /* system calls are, as fathom_trace_self_plans say */
	/* Called when the process is about to call exit_group(@status). */
	void (*ends)(int status);
	/*
	 * Called when the process is about to ask in a filter where calls are made: undoes all, if
	 * that is possible, and returns whether it was. NULL: nothing can be undone.
	 */
	bool (*leaves)(void);
};

extern struct fathom_trace_self_syscalls fathom_trace_self_syscalls;

/* Hooks that stubs call; each keeps all registers. */
void fathom_trace_syscall_before(void);
void fathom_trace_syscall_behind(void);

/* Disables recording for the calling thread, whose calls are the tracer's own, or enables it. */
void fathom_trace_syscalls_silence(bool is_silent);

/* Returns where the program goes on after the call of @stub, for fathom_trace_linked_before(). */
uint64_t fathom_trace_syscall_goes_on(uint64_t stub);

/* Returns 1 for fork(), 2 for vfork(), where these are calls of the kernel; 0 for all others. */
unsigned fathom_trace_is_fork(uint64_t number);

/* Finds the words of @call, by the frame pointer and the link register, where there is one. */
void fathom_trace_syscall_find_words(struct fathom_trace_linked_call *call, uint64_t fp,
				     uint64_t lr);

/*
 * Called by fathom_trace_syscall_before() and _behind(): @args are what the program has in the
 * registers of arguments; after the call the first one is the result, in whatever register that
 * is. @stub is where the stub
 * goes on after its first call of the hook.
 */
void fathom_trace_linked_before(const uint64_t args[FATHOM_TRACE_SYSCALL_ARGS], uint64_t number,
				uint64_t sp, uint64_t stub, uint64_t fp, uint64_t lr);
/* Returns where the program goes on. */
uint64_t fathom_trace_linked_behind(const uint64_t args[FATHOM_TRACE_SYSCALL_ARGS], uint64_t sp,
				    uint64_t stub);

#endif
