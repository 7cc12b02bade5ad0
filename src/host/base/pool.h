/* SPDX-License-Identifier: MIT */
/* Running independent tasks on several threads, the caller's included. */
#ifndef FATHOM_BASE_POOL_H
#define FATHOM_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

/* One task; @thread numbers the threads of this run from 0. */
typedef void fathom_task_fn(void *data, size_t task, unsigned thread);

/* The most threads that one run uses. */
#define FATHOM_MAX_THREADS 64

/*
 * Runs tasks 0 to @n - 1, in that order as far as threads are free, on at most @threads threads,
 * and returns when all have ended. Threads that cannot be started are done without.
 */
void fathom_pool_run(unsigned threads, size_t n, fathom_task_fn *fn, void *data);

#endif
