/* SPDX-License-Identifier: MIT */
/* A session: its options, copied, and what its targets share. */
#ifndef FATHOM_BASE_CONTEXT_H
#define FATHOM_BASE_CONTEXT_H

#include <pthread.h>

#include "fathom/compat.h"
#include "fathom/session.h"
#include "host/base/epoch.h"
#include "host/base/memory.h"

struct fathom_call;
struct fathom_worker;
struct fathom_debug;

typedef void fathom_worker_fn(struct fathom_worker *w);

/* Workers (the scratch of one thread) kept for reuse. */
#define FATHOM_IDLE_WORKERS 32

struct fathom {
	struct fathom_memory memory; /* first: fathom_handle_sigbus() */
	_Atomic uint32_t references;
	struct fathom_epochs epochs;
	_Atomic(struct fathom_worker *) idle[FATHOM_IDLE_WORKERS];
	_Atomic(fathom_worker_fn *) destroy_worker; /* of idle workers; NULL if there are none */
	pthread_mutex_t debugs_lock;                /* no answer takes it */
	struct fathom_debug *debugs;                /* those whose units can be evicted */
	char *dwp;       /* the package of split debug files; "" for each file's own */
	char *cache_dir; /* NULL without a cache */
	uint64_t cache_limit;
	uint32_t threads;
	uint32_t flags;
	uint32_t compat; /* flags of struct fathom_compat_options */
	uint32_t debuginfod_timeout_ms;
	_Atomic uint64_t serials;               /* of struct fathom_dwarf, and of answers */
	_Atomic int64_t debuginfod_deadline_ns; /* 0 before the first query */
	int (*progress)(void *data, const struct fathom_progress *p);
	void *progress_data;
	pthread_mutex_t calls_lock; /* of the list; held for no longer than to look at it */
	struct fathom_call *calls;  /* that ask for progress */
};

/* Takes another reference to @session, to be given back with fathom_destroy(). */
struct fathom *fathom_acquire(struct fathom *session);

#endif
