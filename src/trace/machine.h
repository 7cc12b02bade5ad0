/* SPDX-License-Identifier: MIT */
/*
 * Parts of the runtime and its reader that differ between processors; one file for each
 * (machine_x86_64.c, ticks_x86_64.c and so on). Nothing of the C library is used.
 */
#ifndef FATHOM_TRACE_MACHINE_H
#define FATHOM_TRACE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

struct fathom_trace_plans;
struct fathom_trace_process;
struct fathom_trace_thread;

/* Reads the processor's clock, by which records have their time. */
uint64_t fathom_trace_ticks(void);

/* Makes system call @number for the runtime. */
long fathom_trace_syscall_kernel(long number, long a, long b, long c, long d);
/* The same, with six arguments; where the runtime is linked into the program. */
long fathom_trace_syscall_kernel6(long number, const uint64_t args[6]);

/* Returns the block of the calling thread, or whatever else stands where that is found. */
struct fathom_trace_thread *fathom_trace_self_block(void);

/* Makes @t the block of the calling thread. */
void fathom_trace_set_own_block(struct fathom_trace_thread *t);

/*
 * Makes system call @number for the program, with six arguments; nothing else of what it has in its
 * registers counts.
 */
long fathom_trace_make_call(long number, const uint64_t args[6]);

/* Returns what the hook of system calls knows of its process, and what it is to record. */
const struct fathom_trace_process *fathom_trace_syscall_process(void);
const struct fathom_trace_plans *fathom_trace_syscall_plans(void);

/* Returns whether the page of @avma can be read, which costs a system call. */
bool fathom_trace_is_there(uint64_t avma);

/*
 * Adds @n to *@cursor, and returns what it was, by one step: a handler of a signal comes before or
 * after it.
 */
uint64_t fathom_trace_reserve(uint64_t *cursor, uint64_t n);

/*
 * Returns what tells the calling thread from others of its process: the base of its fs, tpidr_el0.
 */
uint64_t fathom_trace_thread_pointer(void);

/* Lets another thread of the processor go first. */
void fathom_trace_relax(void);

#endif
