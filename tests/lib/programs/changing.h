/* SPDX-License-Identifier: MIT */
/*
 * The log that changing.c and jit/programs/racing.c write into memory that they share with asker.c:
 * which code they had where, and when. Times are CLOCK_MONOTONIC's, in ns.
 */
#ifndef CHANGING_H
#define CHANGING_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* The last so many are kept. */
#define RECORDS 4096

/* How a function's name can be known. */
enum kind { KIND_FILE, KIND_GDB, KIND_PERF_MAP, KIND_JITDUMP, N_KINDS };

/* One function while it is loaded. */
struct record {
	uint64_t start;
	uint64_t size;
	uint64_t maybe_from;         /* before this it was not there */
	uint64_t certain_from;       /* from here on it was */
	_Atomic uint64_t certain_to; /* until here; UINT64_MAX: it is */
	_Atomic uint64_t maybe_to;   /* from here on it is gone */
	uint32_t kind;
	char name[28];
};

struct log {
	_Atomic uint64_t n; /* records ever written */
	struct record record[RECORDS];
};

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Logs that @name, of @kind, is at [start, start + size) from now on, and that it was not there
 * before @before.
 */
static inline struct record *write_record(struct log *log, enum kind kind, const void *start,
					  uint64_t size, const char *name, uint64_t before)
{
	const uint64_t n = atomic_load(&log->n);
	struct record *r = &log->record[n % RECORDS];

	/* Until all of it is there, it is never certain. */
	atomic_store(&r->certain_to, 0);
	r->start = (uintptr_t)start;
	r->size = size;
	r->maybe_from = before;
	r->kind = kind;
	snprintf(r->name, sizeof r->name, "%s", name);
	r->certain_from = now();
	atomic_store(&r->maybe_to, UINT64_MAX);
	atomic_store(&r->certain_to, UINT64_MAX);
	atomic_store(&log->n, n + 1);
	return r;
}

#endif
