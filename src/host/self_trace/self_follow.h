/* SPDX-License-Identifier: MIT */
/*
 * The reader of a process that fills its rings itself, and of its children: it learns of threads by
 * the rings that they take, and of ends by asking the kernel.
 */
#ifndef FATHOM_SELF_TRACE_SELF_FOLLOW_H
#define FATHOM_SELF_TRACE_SELF_FOLLOW_H

#include "host/self_trace/capture_method.h"
#include "host/trace/program_memory.h"
#include "host/trace/site_ranges.h"

/* The process to read, and what for. */
struct fathom_self_trace_follow {
	struct fathom_program *program;
	struct fathom_site_range *span; /* taken over; NULL: there are no sites */
	pid_t pid;
	const struct fathom_trace_options *options;
	struct fathom_self_trace_talk *talk;
	const char *note; /* to be told first; NULL: nothing is */
};

/* Reads until the processes have ended or control wants to leave. FATHOM_E_MEMORY. */
fathom_err fathom_self_trace_follow(const struct fathom_self_trace_follow *f,
				    struct fathom_errinfo *reterr);

#endif
