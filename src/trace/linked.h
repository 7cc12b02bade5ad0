/* SPDX-License-Identifier: MIT */
/*
 * The runtime as it is linked into a program that traces itself. Sites lead to stubs, which belong
 * to whoever makes them. On x86-64 there stands where the function was entered, or is left:
 *
 *	call hook		maybe through a jump
 *	jmp after the site	a return, if the site is one
 *
 * On aarch64:
 *
 *	stp x16, x30, [sp, #-FATHOM_TRACE_STUB_FRAME]!
 *	bl hook			maybe through a veneer, which may use x16
 *	ldp x16, x30, [sp], #FATHOM_TRACE_STUB_FRAME
 *	b after the site
 */
#ifndef FATHOM_TRACE_LINKED_H
#define FATHOM_TRACE_LINKED_H

#include "safe/trace/syscall_ring.h"
#include "trace/syscall_hook.h"
#include "trace/recorder.h"

/* Bytes of a stub's frame: its two registers, and room for four of the hook's. */
#define FATHOM_TRACE_STUB_FRAME 48

/*
 * The hooks: with the clock read at each event, at one in 64, and never. The number of a site is
 * the lowest 32 bits of where its call returns to.
 */
void fathom_trace_hook_full(void);
void fathom_trace_hook_sparse(void);
void fathom_trace_hook_none(void);

/* Bytes that are read of the program's memory at once. */
#define FATHOM_TRACE_WINDOW 256

/*
 * The program's memory, as it was read last: whatever else the program does to it, reading is no
 * fault. The handler of a signal may read meanwhile: n_reads tells.
 */
struct fathom_trace_window {
	uint64_t avma;
	uint64_t size; /* bytes that could be read */
	uint64_t n_reads;
	unsigned char bytes[FATHOM_TRACE_WINDOW];
};

/* As the kernel has it (struct sigaction of include/uapi/asm-generic/signal.h, and of x86's). */
struct fathom_program_action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/* Actions of a process for its signals, from 1 on (program_signals.h). */
#define FATHOM_PROGRAM_SIGNALS 64
struct fathom_program_actions {
	struct fathom_program_action actions[FATHOM_PROGRAM_SIGNALS];
};

/*
 * Memory of a thread with a ring: too large for thread-local variables of a library that is loaded
 * by dlopen(3), whose room the C library bounds.
 */
struct fathom_trace_extra {
	struct fathom_trace_window window;
};

/* Returns that of the calling thread, or NULL. */
struct fathom_trace_extra *fathom_trace_self_extra(void);

/* The process, and the plans of what to record of its system calls. */
extern struct fathom_trace_process fathom_trace_self_process;
extern struct fathom_trace_plans fathom_trace_self_plans;

/* Returns whether the program filters its calls (seccomp(2)): the runtime makes none of its own. */
bool fathom_trace_is_filtered(void);
/* Returns whether rt_sigprocmask() may be called all the same. */
bool fathom_trace_may_probe(void);
/*
 * Called after call @number with these first arguments: if that has made the program filter its
 * calls, of which was @found (enum fathom_filter_finding) before, notes it. Under a strict filter
 * not even the processor's clock may be read (PR_SET_SECCOMP(2const)): nothing is recorded any
 * more.
 */
void fathom_trace_note_filter(uint64_t number, uint64_t first, uint64_t second, uint32_t found,
			      int64_t result);

/*
 * Copies @size bytes of the program's memory, or as many as can be read from @avma on; returns how
 * many. No fault, whatever other threads do meanwhile.
 *
 * Safety: as-safe
 */
uint64_t fathom_trace_copy_memory(void *to, uint64_t avma, uint64_t size);
/*
 * Reads, or changes, @size bytes of the program's memory; false if that is not possible for all of
 * them. Once the program filters its calls, this is as if the program did it itself.
 *
 * Safety: as-safe
 */
bool fathom_trace_read_memory(void *to, uint64_t avma, uint64_t size);
bool fathom_trace_write_memory(uint64_t avma, const void *from, uint64_t size);
/*
 * Empties the cache of fathom_trace_load(): the program, or the kernel, may have changed its
 * memory.
 */
void fathom_trace_forget_memory(void);

#endif
