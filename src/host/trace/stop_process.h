/* SPDX-License-Identifier: MIT */
/* Stops all threads of a process at once, and lets them go on. */
#ifndef FATHOM_TRACE_STOP_PROCESS_H
#define FATHOM_TRACE_STOP_PROCESS_H

#include "host/trace/tasks.h"

/* Says why a process cannot be traced: errno was @number. */
fathom_err fathom_seize_fail(struct fathom_errinfo *reterr, int number);

/*
 * Seizes all threads of @p, which become tasks. FATHOM_E_OS, FATHOM_E_NOT_FOUND, FATHOM_E_MEMORY.
 */
fathom_err fathom_process_seize(struct fathom_follow *f, struct fathom_traced *p,
				struct fathom_errinfo *reterr);

/*
 * Stops all tasks of @p. Calls that wait for ever, and that the stop ends, are made once more when
 * they go on. Returns false if something else has happened to one, which was noted, or
 * if one does not stop; then those that have stopped are to be let go, too.
 */
bool fathom_process_stop(struct fathom_follow *f, const struct fathom_traced *p);
/* Lets the tasks of @p go on that were stopped. */
void fathom_process_resume(struct fathom_follow *f, const struct fathom_traced *p);

#endif
