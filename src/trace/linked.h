/* SPDX-License-Identifier: MIT */
/*
 * The runtime as it is linked into a program that traces itself. On aarch64 sites branch to stubs,
 * each of 4 instructions, which belong to whoever makes them:
 *
 *	stp x16, x30, [sp, #-FATHOM_TRACE_STUB_FRAME]!
 *	bl hook			maybe through a veneer, which may use x16
 *	ldp x16, x30, [sp], #FATHOM_TRACE_STUB_FRAME
 *	b behind the site
 */
#ifndef FATHOM_TRACE_LINKED_H
#define FATHOM_TRACE_LINKED_H

#include "safe/trace/call_ring.h"
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

/* What they know of the process, and what is to be recorded of its system calls. */
extern struct fathom_trace_process fathom_trace_own_process;
extern struct fathom_trace_plans fathom_trace_own_plans;

/*
 * Copies @size bytes of the program's memory, or as many as can be read from @avma on; returns how
 * many. No fault, whatever other threads do meanwhile.
 *
 * Safety: as-safe
 */
uint64_t fathom_trace_copy_memory(void *to, uint64_t avma, uint64_t size);
/* Has fathom_trace_load() read anew: the program, or the kernel, may have changed its memory. */
void fathom_trace_forget_memory(void);

#endif
