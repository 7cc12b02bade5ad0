/* SPDX-License-Identifier: MIT */
/* The inside of a session: the options as copied, and what its targets share. */
#ifndef FATHOM_CONTEXT_H
#define FATHOM_CONTEXT_H

#include <pthread.h>

#include "epoch.h"
#include "fathom/session.h"
#include "memory.h"

struct fathom_worker;
struct fathom_debug;

/* Workers (scratch of one thread) that wait to be used again. */
#define FATHOM_IDLE_WORKERS 32

struct fathom {
	struct fathom_memory memory;
	struct fathom_epochs epochs;
	_Atomic(struct fathom_worker *) idle[FATHOM_IDLE_WORKERS];
	pthread_mutex_t debugs_lock; /* never taken to answer */
	struct fathom_debug *debugs; /* whose units can be evicted */
	char **debug_dirs;           /* NULL-terminated */
	char *sysroot;               /* "" for none */
	char *cache_dir;             /* NULL: no cache */
	uint64_t cache_limit;
	uint32_t threads;
	uint32_t flags;
	uint32_t debuginfod_timeout_ms;
	_Atomic uint64_t serials;               /* given to struct fathom_dwarf */
	_Atomic int64_t debuginfod_deadline_ns; /* 0: nothing was asked yet */
	int (*cancelled)(void *data);
	void *cancelled_data;
};

/* Nanoseconds of the monotonic clock. */
int64_t fathom_now_ns(void);

#endif
