/* SPDX-License-Identifier: MIT */
/*
 * Seccomp as a program has it without the filter by which it stops (syscall_filter.h): the kernel
 * refuses strict mode beside a filter, and says that there is one. So the tracer plays strict mode,
 * by a filter that stops at each call that it forbids, and answers what the program asks.
 *
 * If the tracer dies, calls at which a filter stops fail: what is forbidden stays forbidden.
 */
#ifndef FATHOM_TRACE_SECCOMP_TURN_H
#define FATHOM_TRACE_SECCOMP_TURN_H

#include <sys/ptrace.h>

#include "host/trace/tasks.h"

enum fathom_seccomp_turn {
	FATHOM_SECCOMP_GOES_ON, /* the kernel makes the call, or has been told its result */
	FATHOM_SECCOMP_MADE,    /* the call was made, and its thread has stopped after it */
	FATHOM_SECCOMP_ENDED    /* the thread ends */
};

/* Notes in @task, the first one of a program, what it inherits of the calling process. */
void fathom_seccomp_begin(struct fathom_follow_task *task);

/*
 * Takes the stop of @task at a filter, of which @info tells, before its call is made, and sets the
 * result if that is known now.
 */
enum fathom_seccomp_turn fathom_seccomp_take(struct fathom_follow *f,
					     struct fathom_follow_task *task,
					     const struct __ptrace_syscall_info *info,
					     int64_t *ret_result);

#endif
