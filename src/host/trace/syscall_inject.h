/* SPDX-License-Identifier: MIT */
/* Injections into system calls, as -e inject= of strace(1) writes them. */
#ifndef FATHOM_TRACE_SYSCALL_INJECT_H
#define FATHOM_TRACE_SYSCALL_INJECT_H

#include "host/trace/syscall_set.h"

/* One injection. */
struct fathom_injection {
	struct fathom_syscall_set set;
	int64_t result; /* in place of the call */
	uint64_t delay_enter_ns;
	uint64_t delay_exit_ns;
	int32_t signal;  /* 0: none */
	bool has_result; /* the call is not made */
	/* Of a thread's calls in the set, counted from 1: from @first to @last, each @step-th. */
	uint32_t first;
	uint32_t last;
	uint32_t step;
};

/*
 * Reads
 * SET[:error=NAME|NUMBER][:retval=N][:signal=NAME|NUMBER][:delay_enter=TIME][:delay_exit=TIME]
 * [:when=FIRST[..LAST][+[STEP]]]; times are microseconds, or have a unit s, ms, us or ns.
 * FATHOM_E_ARGUMENT says what cannot be read; FATHOM_E_MEMORY.
 */
fathom_err fathom_injection_read(const char *text, struct fathom_injection *ret,
				 struct fathom_errinfo *reterr);

/* Returns whether the @n-th call of a thread in the set, counted from 1, is meant. */
bool fathom_injection_is_due(const struct fathom_injection *i, uint32_t n);

#endif
