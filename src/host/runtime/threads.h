/* SPDX-License-Identifier: MIT */
/* The threads of a program, as glibc lists them. */
#ifndef FATHOM_RUNTIME_THREADS_H
#define FATHOM_RUNTIME_THREADS_H

#include "host/runtime/runtime.h"

struct fathom_libc_thread {
	uint64_t at; /* avma of its struct pthread, which the control block begins */
	int32_t tid; /* in the program's PID namespace */
};

/*
 * Calls @fn for each thread until it returns false. @module is a static program's module. Skips
 * threads with inconsistent memory. FATHOM_E_UNSUPPORTED: the list is not known; FATHOM_E_MEMORY,
 * also if the list does not fit the budget.
 */
fathom_err fathom_threads_walk(struct fathom_runtime *r, uint32_t module,
			       bool (*fn)(const struct fathom_libc_thread *t, void *data),
			       void *data);

#endif
