/* SPDX-License-Identifier: MIT */
/*
 * Evaluates a filter that the program is about to install (seccomp(2); a classic BPF program,
 * Documentation/networking/filter.rst) for the calls that the runtime makes, and for the place from
 * which it makes those of the program. Everything here is as-safe.
 */
#ifndef FATHOM_TRACE_FILTER_LOOK_H
#define FATHOM_TRACE_FILTER_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* Findings about a filter: bits. */
enum fathom_filter_finding {
	FATHOM_FILTER_ASKS_PLACE = 1,     /* it loads the instruction pointer */
	FATHOM_FILTER_FORBIDS_RETURN = 2, /* rt_sigreturn() */
	FATHOM_FILTER_FORBIDS_ARMING =
		4, /* prctl(PR_SET_SYSCALL_USER_DISPATCH), sigaltstack(), mmap() */
	FATHOM_FILTER_FORBIDS_PROBING = 8,  /* rt_sigprocmask() */
	FATHOM_FILTER_FORBIDS_OTHERS = 16,  /* something else that the runtime calls */
	FATHOM_FILTER_FORBIDS_LEAVING = 32, /* what reports other threads, or disarms one */
	FATHOM_FILTER_FORBIDS_ALL = 62
};

/*
 * Returns whether call @number, with these arguments, would install a filter; *@ret_program is the
 * avma of its struct sock_fprog then.
 */
bool fathom_filter_is_set_by(uint64_t number, const uint64_t args[6], uint64_t *ret_program);

/*
 * Looks at the filter of the struct sock_fprog at @program; 0 where the kernel will refuse it. A
 * call that another result than being made would come of counts as forbidden.
 */
uint32_t fathom_filter_look(uint64_t program);

#endif
