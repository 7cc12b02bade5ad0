/* SPDX-License-Identifier: MIT */
/*
 * The rings of a process that is traced without ptrace(2): its threads take them themselves. What
 * is mapped for that stays, as threads may be in the midst of an event at any time; each trace has
 * a fresh file for its rings.
 */
#ifndef FATHOM_SELF_TRACE_SELF_RINGS_H
#define FATHOM_SELF_TRACE_SELF_RINGS_H

#include <sys/types.h>

#include "fathom/trace.h"
#include "host/trace/program_memory.h"

/* Returns this process's rings; head NULL: there are none yet. */
struct fathom_program *fathom_self_trace_rings(void);

/* Makes fresh rings, which the hook uses from the next event of each thread on. */
fathom_err fathom_self_trace_rings_make(const struct fathom_trace_options *options,
					struct fathom_errinfo *reterr);

/* Lets threads record, for @reader. */
void fathom_self_trace_rings_begin(pid_t reader);

/* The process calls exit(), with @status of waitpid(2), or FATHOM_SELF_NO_STATUS. */
void fathom_self_trace_rings_exit(int status);

/* Stops them from recording. */
void fathom_self_trace_rings_end(void);

/* fathom_trace_thread() of the calling thread. */
int fathom_self_trace_rings_change(int change);

#endif
