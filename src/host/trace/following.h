/* SPDX-License-Identifier: MIT */
/*
 * Follows a program, its threads and its children by ptrace(2): gives each thread its ring before
 * it runs, puts the runtime into each program before its first instruction, and posts what happens.
 */
#ifndef FATHOM_TRACE_FOLLOWING_H
#define FATHOM_TRACE_FOLLOWING_H

#include "host/trace/tasks.h"

/*
 * Runs @argv and follows it until all has ended; the calling thread traces. FATHOM_E_NOT_FOUND,
 * FATHOM_E_OS, FATHOM_E_MEMORY.
 */
fathom_err fathom_follow_run(struct fathom_follow *f, char *const *argv,
			     struct fathom_errinfo *reterr);

/* Asks to leave all programs as they were. May be called by another thread. */
void fathom_follow_leave(struct fathom_follow *f);

/* Asks to disable the sites that exceed the rate limit. May be called by another thread. */
void fathom_follow_limit_rate(struct fathom_follow *f);

/* Follows all tasks until all have ended, or were left. */
void fathom_follow_all(struct fathom_follow *f);
/* Handles what was noted. */
void fathom_follow_settle(struct fathom_follow *f);

/* Answers what programs ask. May be called by another thread. */
void fathom_follow_answer(struct fathom_follow *f);

#endif
