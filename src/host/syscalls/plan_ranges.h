/* SPDX-License-Identifier: MIT */
/*
 * The ranges of plans (safe/trace/syscall_ring.h), by the types of syscalls.txt, and for what its
 * functions read by tables here. A range may hold more than the text needs, never less: after the
 * call nothing can be read any more.
 */
#ifndef FATHOM_SYSCALLS_PLAN_RANGES_H
#define FATHOM_SYSCALLS_PLAN_RANGES_H

#include "host/syscalls/syscall_format.h"
#include "host/syscalls/syscall_types.h"
#include "safe/trace/syscall_ring.h"

/* The most ranges of one call. */
#define FATHOM_PLAN_RANGES 24

/* A run of capture ranges that is being made. */
struct fathom_plan_making {
	struct fathom_trace_plans *plans;
	const struct fathom_syscall_options *options;
	uint32_t machine;
	uint32_t number; /* of the call */
	unsigned argument;
	unsigned n_types; /* arguments of the call */
	unsigned n;
	bool names_files;
	bool is_alone; /* what cannot be said of an argument is left out */
	bool is_late;  /* the argument is read after the call */
	bool is_both;  /* it is read before the call and after it */
	struct fathom_capture_range ranges[FATHOM_PLAN_RANGES];
};

/* Returns the bytes of a string that are recorded, with the one after those that are shown. */
uint16_t fathom_plan_string_size(const struct fathom_syscall_options *o);

/* Adds what the argument points to; false if no range can say it, or there is no room. */
bool fathom_plan_add_string(struct fathom_plan_making *m, enum fathom_trace_when when,
			    uint16_t most);
bool fathom_plan_add_pointed(struct fathom_plan_making *m, enum fathom_trace_when when,
			     uint16_t type);
/* The same for an argument whose text a function makes. */
bool fathom_plan_add_function(struct fathom_plan_making *m, const struct fathom_type *type);
/* Adds what is read for a result of type @type. */
bool fathom_plan_add_result(struct fathom_plan_making *m, uint16_t type);

/* Stores the ranges in the plans, as @ret; not recorded if there is no room for them. */
void fathom_plan_end_run(struct fathom_plan_making *m, struct fathom_trace_run *ret);

#endif
