/* SPDX-License-Identifier: MIT */
/*
 * Selects the events that the caller of a run or of a reading gets: calls of chosen functions and
 * below them, down to a depth, between start and stop. Repeated calls become one event.
 */
#ifndef FATHOM_EVENTS_EVENT_FILTER_H
#define FATHOM_EVENTS_EVENT_FILTER_H

#include "fathom/trace.h"
#include "host/base/array.h"

/* A bit beside the FATHOM_TRACE_AT_ actions for which a function was chosen. */
#define FATHOM_SELECT_UNDER (1u << 7)

/* The last call at some depth. */
struct fathom_event_filter_call {
	const struct fathom_trace_function *function;
	uint32_t depth;
	uint32_t parent_depth;
	uint32_t told_depth; /* of the innermost one around it that was reported */
	uint8_t parent;      /* enum fathom_trace_parent, among all that were recorded */
	uint8_t told_parent; /* likewise, among those that were reported */
	bool is_told;
};

/* The calls that a thread may be within on one of its stacks; sorted by depth. */
struct fathom_event_filter_calls {
	uint8_t stack_number;
	FATHOM_ARRAY_OF(struct fathom_event_filter_call);
};

/* The state of one thread. All zero at first. */
struct fathom_event_filter_thread {
	/*
	 * A call that may be repeated, count 0: none; and room for the next one, so that what was
	 * just written is not copied: a copy waits for it.
	 */
	struct fathom_trace_event slots[2];
	uint8_t kept;  /* the slot of that call */
	bool is_under; /* within a call whose calls are wanted */
	uint8_t under_stack;
	uint32_t under_depth;
	struct {
		FATHOM_ARRAY_OF(struct fathom_event_filter_calls);
	} stacks;
};

/* Events that are passed on at once. */
#define FATHOM_EVENT_FILTER_BATCH 256

struct fathom_event_filter {
	const struct fathom_trace_options *options;
	bool is_on;   /* between "start" and "stop" */
	bool is_over; /* the caller wants no more */
	size_t n_events;
	struct fathom_trace_event events[FATHOM_EVENT_FILTER_BATCH];
};

/* Returns the call that was kept because it may be repeated; its count is 0 if there is none. */
static inline struct fathom_trace_event *fathom_event_filter_kept(
	struct fathom_event_filter_thread *t)
{
	return &t->slots[t->kept];
}

/* Returns room for the next event of @t, as long as nothing is taken. */
static inline struct fathom_trace_event *fathom_event_filter_room(
	struct fathom_event_filter_thread *t)
{
	return &t->slots[!t->kept];
}

/* @options must outlive it. */
void fathom_event_filter_init(struct fathom_event_filter *s,
			      const struct fathom_trace_options *options);
void fathom_event_filter_thread_deinit(struct fathom_event_filter_thread *t);

/*
 * Takes a call or a return of a function that was chosen for @selection. What is its parent among
 * all that were recorded becomes what it is among those that were reported. @e is the room for the
 * next event, or the caller's own.
 */
void fathom_event_filter_take(struct fathom_event_filter *s, struct fathom_event_filter_thread *t,
			      struct fathom_trace_event *e, uint8_t selection);
/* Takes a call that is not to be reported: others may be within it. */
void fathom_event_filter_pass_over(struct fathom_event_filter_thread *t,
				   struct fathom_trace_event *e);
/* Reports another event. */
void fathom_event_filter_report(struct fathom_event_filter *s, struct fathom_event_filter_thread *t,
				const struct fathom_trace_event *e);
/* Reports the call that was kept because it might be repeated. */
void fathom_event_filter_report_kept(struct fathom_event_filter *s,
				     struct fathom_event_filter_thread *t);
/* Forgets the calls of @t, whose numbers are those of another thread now. */
void fathom_event_filter_begin_anew(struct fathom_event_filter *s,
				    struct fathom_event_filter_thread *t);
/* Passes on what was told. With @is_all, nothing more has come for now. */
void fathom_event_filter_flush(struct fathom_event_filter *s, bool is_all);

#endif
