/* SPDX-License-Identifier: MIT */
/* The threads of a program, as glibc lists them. */
#ifndef FATHOM_RUNTIME_THREADS_H
#define FATHOM_RUNTIME_THREADS_H

#include "host/runtime/runtime.h"

struct fathom_thread {
	uint64_t at; /* avma of its struct pthread, which the control block begins */
	int32_t tid; /* as the program knows it */
};

/*
 * Calls @fn for each thread until it returns false. Of a static program, @module is its module. A
 * thread whose memory contradicts itself is left out. FATHOM_E_UNSUPPORTED: the list is not known;
 * FATHOM_E_MEMORY, also where the list does not fit the budget.
 */
fathom_err fathom_threads_walk(struct fathom_runtime *r, uint32_t module,
			       bool (*fn)(const struct fathom_thread *t, void *data), void *data);

#endif
