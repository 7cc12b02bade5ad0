/* SPDX-License-Identifier: MIT */
/*
 * A filter of system calls (seccomp(2)) by which a program stops for its tracer at the calls of a
 * set only. Without a tracer these calls fail, so such a program must end with it.
 */
#ifndef FATHOM_TRACE_SYSCALL_FILTER_H
#define FATHOM_TRACE_SYSCALL_FILTER_H

#include <linux/filter.h>

#include "host/trace/syscall_set.h"

/* The most instructions of a filter. */
#define FATHOM_SYSCALL_FILTER_SIZE 4096

/* Data of stops at this filter, and of those at the filter of strict mode. */
#define FATHOM_SYSCALL_FILTER_DATA 0xfa70
#define FATHOM_STRICT_FILTER_DATA  0xfa71

/* Instructions of the filter of strict mode. */
#define FATHOM_STRICT_FILTER_SIZE 16

struct fathom_syscall_filter {
	struct sock_fprog program;
	struct sock_filter code[FATHOM_SYSCALL_FILTER_SIZE];
};

/*
 * Makes a filter that stops at the calls of @set, and at all of machines that have no table, but
 * not at those that the @exempt first bytes of the runtime make at its fixed place.
 */
void fathom_syscall_filter_make(const struct fathom_syscall_set *set, uint64_t exempt,
				struct fathom_syscall_filter *ret);
/* A filter that stops at all calls but those of strict mode (PR_SET_SECCOMP(2const)). */
extern const struct sock_filter fathom_strict_filter[FATHOM_STRICT_FILTER_SIZE];

#endif
