/* SPDX-License-Identifier: MIT */
/*
 * Which memory of the program is recorded of a system call: the ranges that a plan's capture
 * ranges (safe/trace/syscall_ring.h) stand for, as arguments and memory say. They are found first,
 * so that an event has room for them, then copied.
 */
#ifndef FATHOM_TRACE_SYSCALL_RANGES_H
#define FATHOM_TRACE_SYSCALL_RANGES_H

#include <stdbool.h>

#include "safe/trace/syscall_ring.h"
#include "trace/syscall_hook.h"

/* A range that is to be recorded. */
struct fathom_trace_range {
	uint64_t avma;
	uint64_t size; /* FATHOM_TRACE_ENTRIES_BIT: of the lengths that are recorded of it */
};

/* The time at which ranges are found. */
enum fathom_trace_time {
	FATHOM_TRACE_TIME_BEFORE, /* the call */
	FATHOM_TRACE_TIME_AFTER,
	FATHOM_TRACE_TIME_TRIED /* before it, to know what there may be after it */
};

struct fathom_trace_ranges {
	const struct fathom_trace_plans *plans;
	const struct fathom_trace_syscall_frame *frame;
	enum fathom_trace_time time;
	bool has_failed;   /* the call */
	bool leaves_out;   /* what cannot be had: nobody else records the call */
	uint64_t known[2]; /* pages that can be read */
	uint64_t left;     /* bytes of buffers that the call has filled and that are not recorded */
	uint64_t bytes;    /* of the event, so far */
	uint32_t n;
	struct fathom_trace_range items[FATHOM_TRACE_RANGES];
};

/* Prepares @r for the call of @frame, in whose event there are @bytes already. */
void fathom_trace_ranges_init(struct fathom_trace_ranges *r, const struct fathom_trace_plans *plans,
			      const struct fathom_trace_syscall_frame *frame,
			      enum fathom_trace_time time, uint64_t bytes);

/*
 * Finds the ranges of @run. Before the call, returns false if one cannot be read, or if there is no
 * room for all. After it, and where there is no tracer, leaves such ranges out, or what cannot be
 * read of their ends.
 */
bool fathom_trace_ranges_find(struct fathom_trace_ranges *r, const struct fathom_trace_run *run);

/* Returns the run of @plan for the arguments of @frame, with is_recorded 0 if there is none. */
const struct fathom_trace_run *fathom_trace_run_of(const struct fathom_trace_plans *plans,
						   const struct fathom_trace_plan *plan,
						   const struct fathom_trace_syscall_frame *frame);

#endif
