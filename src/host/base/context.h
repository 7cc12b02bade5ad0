/* SPDX-License-Identifier: MIT */
/* The inside of a session: the options as copied, and what its targets share. */
#ifndef FATHOM_BASE_CONTEXT_H
#define FATHOM_BASE_CONTEXT_H

#include <pthread.h>

#include "fathom/session.h"
#include "host/base/epoch.h"
#include "host/base/memory.h"

struct fathom_worker;
struct fathom_debug;

typedef void fathom_worker_fn(struct fathom_worker *w);

/* Workers (scratch of one thread) that wait to be used again. */
#define FATHOM_IDLE_WORKERS 32

struct fathom {
	struct fathom_memory memory; /* first: fathom_handle_sigbus() */
	struct fathom_epochs epochs;
	_Atomic(struct fathom_worker *) idle[FATHOM_IDLE_WORKERS];
	_Atomic(fathom_worker_fn *) destroy_worker; /* of those; NULL: there are none */
	pthread_mutex_t debugs_lock;                /* never taken to answer */
	struct fathom_debug *debugs;                /* whose units can be evicted */
	char **debug_dirs;                          /* NULL-terminated */
	char *sysroot;                              /* "" for none */
	char *exe;       /* the program of what was stored; "" for none */
	char *dwp;       /* the package of split debug files; "" for that of each file */
	char *cache_dir; /* NULL: no cache */
	uint64_t cache_limit;
	uint32_t threads;
	uint32_t flags;
	uint32_t debuginfod_timeout_ms;
	_Atomic uint64_t serials;               /* given to struct fathom_dwarf */
	_Atomic int64_t debuginfod_deadline_ns; /* 0: nothing was asked yet */
	int (*cancelled)(void *data);
	void *cancelled_data;
};

/*
 * Copies a struct of options, which starts with its size, from a caller's header to ours of @known
 * bytes: what the caller's does not have is zero. False when it has more than ours, and sets it.
 */
bool fathom_options_copy(const void *from, void *to, size_t known);

/* Whether the @n reserved fields of options are zero. */
bool fathom_options_reserved(const uint64_t *reserved, size_t n);

/* Nanoseconds of the monotonic clock. */
int64_t fathom_now_ns(void);

#endif
