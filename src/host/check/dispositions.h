/* SPDX-License-Identifier: MIT */
/*
 * The program's handlers of SIGTRAP and SIGSEGV. The kernel sets such a signal to its default
 * action, and unblocks it, when an instruction raises it while it is blocked or ignored; it does so
 * too for the steps, breakpoints and faults that only we want. So what the program asks for is
 * remembered, and set again.
 */
#ifndef FATHOM_CHECK_DISPOSITIONS_H
#define FATHOM_CHECK_DISPOSITIONS_H

#include "host/tracer/tracee.h"

/* Argument of rt_sigaction(2): handler, flags, restorer, mask. */
struct fathom_disposition {
	uint64_t words[4];
	bool is_set; /* to a handler that stays, or to be ignored */
};

struct fathom_dispositions {
	struct fathom_disposition trap;
	struct fathom_disposition fault;
};

/* Takes note that the program has set @number to the @action that it had in memory. */
void fathom_dispositions_take(struct fathom_dispositions *d, uint64_t number,
			      const struct fathom_disposition *action);

/* Sets again what the kernel has reset; stopped thread @tid had the signal. */
void fathom_dispositions_repair(const struct fathom_dispositions *d, const struct fathom_tracee *t,
				pid_t tid);

#endif
