/* SPDX-License-Identifier: MIT */
/* The thread whose wait is described, and what /proc says of its process's threads and children. */
#ifndef FATHOM_STACK_TASK_H
#define FATHOM_STACK_TASK_H

#include "host/base/array.h"
#include "host/base/path.h"
#include "host/stack/sockets.h"
#include "host/stack/wait.h"
#include "safe/base/text.h"

struct fathom_wait_facts {
	struct fathom_sockets sockets;
	/* TIDs: by the innermost namespace's number the one that /proc has. Read if they differ. */
	struct fathom_keyed_array tids;
	bool tids_known;
	unsigned depth; /* PID namespaces from that of /proc to the process's own; 0: unknown */
};

/* One description in progress. */
struct fathom_waiter {
	const struct fathom_wait_source *from;
	const struct fathom_thread_copy *thread;
	struct fathom_wait_facts *facts;
	struct fathom_wait *ret;
	struct fathom_text text; /* of ret */
	uint8_t word;            /* bytes of a pointer of the program */
};

static inline const uint64_t *fathom_waiter_arguments(const struct fathom_waiter *w)
{
	return w->thread->arguments;
}

/* Formats the path of the file @name of the waiting thread, below /proc. */
bool fathom_task_path(const struct fathom_waiter *w, const char *name, struct fathom_path *ret);

/*
 * Returns the TID, as /proc has it, of the thread that is @tid to the process itself; 0 if the
 * process has no such thread.
 */
int32_t fathom_task_find(const struct fathom_waiter *w, uint32_t tid);

/* Returns the PID, as /proc has it, of the child that is @pid to the process; 0 if unknown. */
int32_t fathom_task_find_child(const struct fathom_waiter *w, uint32_t pid);

/*
 * Returns whether the thread is still in the system call of its copy, with the same arguments and
 * the same stack pointer.
 */
bool fathom_task_still_waits(const struct fathom_waiter *w);

#endif
