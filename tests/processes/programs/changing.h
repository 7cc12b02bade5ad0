/* SPDX-License-Identifier: MIT */
/*
 * What programs/changing.c writes into memory that it shares with asker.c: which code it had where,
 * and when. Times are CLOCK_MONOTONIC's, in ns.
 */
#ifndef CHANGING_H
#define CHANGING_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* The last so many are kept. */
#define RECORDS 4096

/* One function while it is loaded. */
struct record {
	uint64_t start;
	uint64_t size;
	uint64_t maybe_from;         /* before this it was not there */
	uint64_t certain_from;       /* from here on it was */
	_Atomic uint64_t certain_to; /* until here; UINT64_MAX: it is */
	_Atomic uint64_t maybe_to;   /* from here on it is gone */
	char name[32];
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

#endif
