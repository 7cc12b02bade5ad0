/* SPDX-License-Identifier: MIT */
/* Runs independent tasks on several threads, the caller's included. */
#ifndef FATHOM_BASE_POOL_H
#define FATHOM_BASE_POOL_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* One task; @thread numbers the threads of this run from 0. */
typedef void fathom_task_fn(void *data, size_t task, unsigned thread);

/* Most threads of one run. */
#define FATHOM_MAX_THREADS 64

/*
 * Runs tasks 0 to @n - 1, started in that order, on at most @threads threads. Returns when all have
 * ended. Does without threads that cannot be started.
 */
void fathom_pool_run(unsigned threads, size_t n, fathom_task_fn *fn, void *data);

typedef void fathom_watch_fn(void *data);

/* Does the same, and calls @watch every 10 ms while this thread waits for the others. */
void fathom_pool_run_watched(unsigned threads, size_t n, fathom_task_fn *fn, void *data,
			     fathom_watch_fn *watch);

/* Stores the signals that a thread of ours blocks: those that are for the program's own threads. */
void fathom_foreign_signals(sigset_t *ret);

#endif
