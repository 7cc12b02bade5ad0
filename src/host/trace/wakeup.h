/* SPDX-License-Identifier: MIT */
/*
 * Wakes a thread that waits for the threads it traces (waitpid(2)): a child of it, which shares our
 * memory and waits for the wakeup, ends.
 */
#ifndef FATHOM_TRACE_WAKEUP_H
#define FATHOM_TRACE_WAKEUP_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

struct fathom_wakeup {
	pid_t pid;   /* of the child; 0: there is none */
	pid_t maker; /* the process that has made it */
	_Atomic uint32_t is_sent;
	void *stack;
};

/* Starts the child for the calling thread. Without memory, or children, there is none. */
void fathom_wakeup_start(struct fathom_wakeup *w);
/* Sends it; may be called by any thread, and before it is started. */
void fathom_wakeup_send(struct fathom_wakeup *w);
/* Ends the child, on the thread that has started it. */
void fathom_wakeup_stop(struct fathom_wakeup *w);

#endif
