/* SPDX-License-Identifier: MIT */
/*
 * What the runtime and its reader do in each processor's own way; one file for each
 * (machine_x86_64.c, ticks_x86_64.c and so on). Nothing of the C library is used.
 */
#ifndef FATHOM_TRACE_MACHINE_H
#define FATHOM_TRACE_MACHINE_H

#include <stdint.h>

struct fathom_trace_process;
struct fathom_trace_thread;

/* Reads the processor's clock, by which records have their time. */
uint64_t fathom_trace_ticks(void);

/* Makes system call @number. These are the only ones of the runtime. */
long fathom_trace_call_kernel(long number, long a, long b, long c, long d);

/* Returns the block of the calling thread, or whatever else stands where that is found. */
struct fathom_trace_thread *fathom_trace_own_block(void);

/* Makes @t the block of the calling thread. */
void fathom_trace_set_own_block(struct fathom_trace_thread *t);

/* Lets another thread of the processor go first. */
void fathom_trace_relax(void);

#endif
