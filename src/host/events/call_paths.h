/* SPDX-License-Identifier: MIT */
/*
 * Counts calls by path: the names of the functions that a call is within, from the outermost one
 * on, below the name of its thread. Threads of the same name share their paths, and so do functions
 * of the same name.
 *
 * Several formats are made of these paths when the trace is over; they share begin, event and free
 * of struct fathom_writer_format.
 *
 * A call whose direct caller is not known is below FATHOM_PATH_GAP, a path that nobody calls: below
 * the innermost call that it is known to be within, else below its thread.
 *
 * A tree may be a million levels deep, and have as many paths: it is walked without recursion.
 */
#ifndef FATHOM_EVENTS_CALL_PATHS_H
#define FATHOM_EVENTS_CALL_PATHS_H

#include "host/base/name_table.h"
#include "host/events/open_calls.h"
#include "host/events/writer.h"

/* No path. */
#define FATHOM_PATH_NONE UINT32_MAX

/* The name of the path that stands for callers which are not known. */
#define FATHOM_PATH_GAP "[...]"

struct fathom_call_path {
	uint64_t calls;
	uint64_t total_ns; /* of its calls, from their begin to their end */
	uint64_t below_ns; /* of that, in the calls of the next level */
	uint64_t mark;     /* the format's own */
	uint32_t name;     /* index in names */
	uint32_t depth;    /* 0: a thread; 1: an outermost call */
	uint32_t parent;   /* index; that of children is larger */
	uint32_t first;    /* child, once sorted */
	uint32_t next;     /* child of the same parent, once sorted */
	bool is_gap;       /* its name is FATHOM_PATH_GAP */
};

struct fathom_call_paths {
	struct {
		FATHOM_ARRAY_OF(struct fathom_call_path);
	} paths;
	struct fathom_name_table names;
	uint32_t first; /* path of a thread, once sorted */
	bool has_times; /* returns have told how long calls were */
	bool no_memory;
	struct fathom_key_map by_place;  /* by parent and name */
	struct fathom_key_map by_number; /* indexes of names, by fathom_trace_function.number */
	struct fathom_open_calls open;
};

void fathom_call_paths_begin(struct fathom_trace_writer *w);
void fathom_call_paths_event(struct fathom_trace_writer *w, const struct fathom_trace_event *e);
void fathom_call_paths_free(struct fathom_trace_writer *w);

/* How children are sorted. */
enum fathom_paths_order {
	FATHOM_PATHS_BY_NAME,
	/* total_ns, or calls without times; the largest first; then by name */
	FATHOM_PATHS_BY_WEIGHT
};

/*
 * Ends the calls that are open, and sorts the paths, which are complete then. Returns NULL without
 * memory, which @w has noted.
 */
struct fathom_call_paths *fathom_call_paths_finish(struct fathom_trace_writer *w,
						   enum fathom_paths_order order);

/*
 * Returns the path that follows @i, parents before children; FATHOM_PATH_NONE after the last one.
 */
uint32_t fathom_call_paths_next(const struct fathom_call_paths *p, uint32_t i);

static inline const char *fathom_call_path_name(const struct fathom_call_paths *p,
						const struct fathom_call_path *path)
{
	return p->names.items[path->name].text;
}

/* Returns the nanoseconds of @path that are spent in no call of the next level. */
static inline uint64_t fathom_call_path_self(const struct fathom_call_path *path)
{
	return path->total_ns > path->below_ns ? path->total_ns - path->below_ns : 0;
}

#endif
