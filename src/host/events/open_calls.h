/* SPDX-License-Identifier: MIT */
/*
 * Finds out from events when calls end.
 *
 * A call begins with its event, at a depth. It ends when its thread
 *
 *	- returns from that depth, or a lower one;
 *	- calls at that depth, or a lower one: its return was not recorded;
 *	- ends, or begins anew, as a program that another one has replaced (execve(2)).
 *
 * All others end with the trace, each at the time of the last event of its thread. Depths may be
 * left out: the callers there were not recorded, or not told. A call folded with those that
 * followed it is one.
 *
 * Where the event says who the parent is, all that is deeper than the parent has ended. Where it
 * does not, the call is the innermost one, and belongs to none of those that are open. As long as
 * nothing but calls of libraries is reported, nothing is known of callers: then all others have
 * ended.
 *
 * A thread is known by its process and its number. If it ends and another one has its number, that
 * one is a thread of its own.
 */
#ifndef FATHOM_EVENTS_OPEN_CALLS_H
#define FATHOM_EVENTS_OPEN_CALLS_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/base/key_map.h"

/*
 * The most calls of one thread that are open at the same time. In a deeper recursion, each call
 * ends when the next one begins: as if the callers of both were the same, even one that is not
 * the parent.
 */
#define FATHOM_OPEN_CALLS_MAX (1u << 20)

/* A call that has not ended. */
struct fathom_open_call {
	uint64_t ns; /* when it began */
	uint32_t depth;
	uint32_t mark;  /* the user's own */
	uint32_t count; /* likewise */
	uint8_t parent; /* enum fathom_trace_parent: what the open call before this one is */
	uint8_t stack_number;
	bool is_outermost; /* nothing is around it */
};

/*
 * Returns the name of the slice that stands around @c, as its direct caller is not known: there is
 * a gap between it and what is around that slice, or what is around it may have ended. NULL: none.
 */
static inline const char *fathom_open_call_mark(const struct fathom_open_call *c)
{
	if (c->parent == FATHOM_TRACE_PARENT_UNKNOWN)
		return c->is_outermost ? NULL : "[?]";
	return c->parent == FATHOM_TRACE_PARENT_GAP ? "[...]" : NULL;
}

struct fathom_open_thread {
	char *name;  /* never NULL */
	uint64_t ns; /* of its last event */
	int32_t pid;
	int32_t tid;
	uint32_t mark;       /* the user's own; kept when another thread has the number */
	uint32_t generation; /* threads that had this number before */
	bool is_over;
	struct {
		FATHOM_ARRAY_OF(struct fathom_open_call); /* the outermost first */
	} calls;
};

/* Functions that are called, with @data, as events are taken. Each may be NULL. */
struct fathom_open_calls_user {
	/* Thread @t is new. */
	void (*thread)(void *data, struct fathom_open_thread *t);
	/* Call @c begins by @e, the last of @t->calls. */
	void (*begin)(void *data, const struct fathom_open_thread *t, struct fathom_open_call *c,
		      const struct fathom_trace_event *e);
	/* Call @c ends at @t->ns, after @ns nanoseconds. */
	void (*end)(void *data, const struct fathom_open_thread *t,
		    const struct fathom_open_call *c, uint64_t ns);
};

struct fathom_open_calls {
	const struct fathom_open_calls_user *user;
	void *data;
	bool has_sites; /* a function with a site was reported */
	struct {
		FATHOM_ARRAY_OF(struct fathom_open_thread);
	} threads;
	struct fathom_key_map by_id;
};

/*
 * Takes an event. Returns its thread, where ns is the time of the event, or of the one before if
 * that is later. It is valid until the next event. Returns NULL without memory.
 */
const struct fathom_open_thread *fathom_open_calls_take(struct fathom_open_calls *o,
							const struct fathom_trace_event *e);
/* Ends all calls: the trace is over. */
void fathom_open_calls_finish(struct fathom_open_calls *o);
void fathom_open_calls_deinit(struct fathom_open_calls *o);

#endif
