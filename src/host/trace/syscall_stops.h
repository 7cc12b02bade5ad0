/* SPDX-License-Identifier: MIT */
/*
 * System calls of threads that are traced by ptrace(2): each stops when it begins and when it has
 * ended, and what its text needs of the program's memory is copied then.
 */
#ifndef FATHOM_TRACE_SYSCALL_STOPS_H
#define FATHOM_TRACE_SYSCALL_STOPS_H

#include "host/trace/tasks.h"

/* Lets thread @tid go on, with @signal if it is not 0: to its next system call, if those count. */
void fathom_follow_resume(const struct fathom_follow *f, pid_t tid, int signal);

/* Bytes of the longest text of a signal. */
#define FATHOM_SIGNAL_TEXT 512

/*
 * Writes what is told of signal @number, which thread @tid is about to take: its name, with all
 * that the kernel says of it in the texts of strace(1).
 */
void fathom_follow_signal_text(const struct fathom_follow *f, pid_t tid, int number,
			       char text[FATHOM_SIGNAL_TEXT]);

/*
 * Takes the stop of @tid at a system call, and lets it go on, unless it is held up: then
 * fathom_follow_resume_due() does.
 */
void fathom_follow_take_syscall(struct fathom_follow *f, pid_t tid);

/* Lets those go on that were held up for long enough. */
void fathom_follow_resume_due(struct fathom_follow *f);

/*
 * Takes the stop in which thread @tid has become another program; @is_first: nothing was told
 * before, not even that this call begins.
 */
void fathom_follow_take_exec(struct fathom_follow *f, pid_t tid, bool is_first);

/* Thread @tid is to take signal @number. If that was injected, has it come from the kernel. */
void fathom_follow_take_injected(const struct fathom_follow *f, pid_t tid, int number);
/* Reports the call that @task will not return from, if it is in one, and forgets it. */
void fathom_follow_end_syscall(struct fathom_follow *f, struct fathom_follow_task *task);

#endif
