/* SPDX-License-Identifier: MIT */
/* A ring of the newest events: copies, which outlive the run that has told of them. */
#ifndef FATHOM_EVENTS_LAST_N_H
#define FATHOM_EVENTS_LAST_N_H

#include "fathom/trace.h"
#include "host/events/stack_frames.h"

struct fathom_last_n_event {
	struct fathom_trace_event event;   /* without what stands here */
	char *text;                        /* NULL: none */
	struct fathom_trace_syscall *call; /* likewise */
	struct fathom_trace_stack *stack;  /* likewise */
	char thread[32];
};

/* All zero, it keeps nothing. */
struct fathom_last_n {
	struct fathom_last_n_event *events;
	uint32_t cap;   /* of the ring; 0: there is none */
	uint32_t most;  /* calls that are kept */
	uint64_t first; /* number of the oldest event that is kept */
	uint64_t n;     /* events that were added since the ring was empty */
	uint64_t calls; /* of those that are kept */
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_function *); /* by number; NULL: not seen */
	} functions;
	struct fathom_stack_frames frames; /* of all stacks */
};

/*
 * Makes room for the events of the last @n calls, at least 1, where calls that are folded are one;
 * returns false without memory.
 */
bool fathom_last_n_init(struct fathom_last_n *r, uint32_t n);
void fathom_last_n_deinit(struct fathom_last_n *r);

/* Adds a copy of @e, and forgets what stands before the last calls. False without memory. */
bool fathom_last_n_add(struct fathom_last_n *r, const struct fathom_trace_event *e);
/* Passes all events to @take, the oldest first, and empties the ring. */
void fathom_last_n_give(struct fathom_last_n *r,
			void (*take)(void *data, const struct fathom_trace_event *e), void *data);

#endif
