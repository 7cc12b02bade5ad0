/* SPDX-License-Identifier: MIT */
/*
 * The rings of a process that is traced without ptrace(2): its threads take them themselves. What
 * is mapped for that stays, as threads may be in the midst of an event at any time; each trace has
 * a fresh file behind its rings.
 */
#ifndef FATHOM_INSIDE_OWN_RINGS_H
#define FATHOM_INSIDE_OWN_RINGS_H

#include <sys/types.h>

#include "fathom/trace.h"
#include "host/trace/program_memory.h"

/* Returns this process's rings; head NULL: there are none yet. */
struct fathom_program *fathom_own_rings(void);

/* Makes fresh rings, which the hook uses from the next event of each thread on. */
fathom_err fathom_own_rings_make(const struct fathom_trace_options *options,
				 struct fathom_errinfo *reterr);

/* Lets threads record, for @reader. */
void fathom_own_rings_begin(pid_t reader);

/* The process calls exit(), with @status of waitpid(2), or FATHOM_OWN_NO_STATUS. */
void fathom_own_rings_exit(int status);

/* Stops them from recording. */
void fathom_own_rings_end(void);

/* fathom_trace_thread() of the calling thread. */
int fathom_own_rings_change(int change);

#endif
