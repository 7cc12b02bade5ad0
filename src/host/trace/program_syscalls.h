/* SPDX-License-Identifier: MIT */
/* System calls that a stopped thread of a traced program makes for us. */
#ifndef FATHOM_TRACE_PROGRAM_SYSCALLS_H
#define FATHOM_TRACE_PROGRAM_SYSCALLS_H

#include "host/trace/program.h"

/* Returns whether @result of a call is -errno. */
bool fathom_program_is_error(long result);
/* Fails with FATHOM_E_OS because of @result. */
fathom_err fathom_program_fail_syscall(struct fathom_errinfo *reterr, const char *what,
				       long result);

/* Makes the program map @size bytes at @at (0: anywhere); returns where, or an error. */
long fathom_program_map(const struct fathom_tracee *t, pid_t tid, uint64_t at, uint64_t size,
			int protection);

/*
 * Lets thread @tid make the calls that are to be made for us, whatever filters of its own say,
 * which may end the program; FATHOM_E_UNSUPPORTED if that is not possible. Filters that we have,
 * too, let us make these calls.
 */
fathom_err fathom_program_suspend_filters(const struct fathom_traced *p, pid_t tid,
					  bool *ret_is_suspended, struct fathom_errinfo *reterr);
void fathom_program_resume_filters(const struct fathom_traced *p, pid_t tid, bool is_suspended);

#endif
