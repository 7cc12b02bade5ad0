/* SPDX-License-Identifier: MIT */
/*
 * Reads the rings of a traced program: puts the events of all threads into the order of time, finds
 * how deep each call is by its stack pointer, and folds what repeats.
 *
 * The program may write anything into the rings, at any time: nothing in them is believed that
 * could lead outside of them.
 */
#ifndef FATHOM_TRACE_RINGS_H
#define FATHOM_TRACE_RINGS_H

#include "host/base/array.h"
#include "safe/base/error.h"
#include "safe/trace/ring.h"

/* An event, as it is told. */
struct fathom_trace_event {
	uint64_t ns; /* since the beginning */
	uint64_t count;
	uint64_t stack; /* bytes in use */
	uint32_t site;  /* as in the record */
	uint32_t depth;
	int32_t tid;
	int32_t pid;
};

typedef void (*fathom_trace_event_fn)(void *data, const struct fathom_trace_event *event);

struct fathom_rings;

/* A moment by the clock of the processor, and by nanoseconds since the beginning. */
struct fathom_trace_moment {
	uint64_t ticks;
	uint64_t ns;
};

/*
 * Reads the rings behind @head, which begin at @begin. @pid is the program, whose first thread has
 * begun with the stack pointer @sp. FATHOM_E_MEMORY; FATHOM_E_CORRUPT.
 */
fathom_err fathom_rings_create(struct fathom_trace_head *head, uint64_t size,
			       const struct fathom_trace_moment *begin, int32_t pid, uint64_t sp,
			       struct fathom_rings **ret);
void fathom_rings_destroy(struct fathom_rings *r);

/*
 * Takes what was recorded before @until, which is not before that of the last call, and tells of
 * it; what may still be repeated is kept, unless @is_end. Returns how many records were taken.
 */
uint64_t fathom_rings_take(struct fathom_rings *r, const struct fathom_trace_moment *until,
			   bool is_end, fathom_trace_event_fn fn, void *data);

/* Returns how many events were lost so far. */
uint64_t fathom_rings_lost(const struct fathom_rings *r);

#endif
