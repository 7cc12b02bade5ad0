/* SPDX-License-Identifier: MIT */
/*
 * Reads the rings of a traced program: puts the events of all threads into the order of time, finds
 * how deep each call is by its stack pointer, and folds what repeats.
 *
 * The program may write anything into the rings, at any time: nothing in them is believed that could
 * lead outside of them.
 */
#ifndef FATHOM_TRACE_RINGS_H
#define FATHOM_TRACE_RINGS_H

#include "host/base/array.h"
#include "safe/base/error.h"
#include "safe/trace/ring.h"

/* An event, as it is told. */
struct fathom_trace_event {
	uint64_t time; /* clock of the processor */
	uint64_t count;
	uint64_t stack; /* bytes in use */
	uint32_t site;  /* as in the record */
	uint32_t depth;
	int32_t tid;
	int32_t pid;
};

typedef void (*fathom_trace_event_fn)(void *data, const struct fathom_trace_event *event);

struct fathom_rings;

/* Reads the rings behind @head; FATHOM_E_MEMORY. */
fathom_err fathom_rings_create(struct fathom_trace_head *head, uint64_t size,
			       struct fathom_rings **ret);
void fathom_rings_destroy(struct fathom_rings *r);

/*
 * Takes what was recorded before @until, a time of the processor's clock, and tells of it; what may
 * still be repeated is kept, unless @is_end. Returns how many records were taken.
 */
uint64_t fathom_rings_take(struct fathom_rings *r, uint64_t until, bool is_end,
			   fathom_trace_event_fn fn, void *data);

/* Returns how many events were lost so far. */
uint64_t fathom_rings_lost(const struct fathom_rings *r);

#endif
