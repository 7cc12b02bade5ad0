/* SPDX-License-Identifier: MIT */
/* Lets new processes go that nothing is to be reported. */
#ifndef FATHOM_TRACE_RELEASE_CHILD_H
#define FATHOM_TRACE_RELEASE_CHILD_H

#include "host/trace/tasks.h"

/* Returns whether children of what @f traces are let go. */
bool fathom_releases_children(const struct fathom_follow *f);

/*
 * Lets process @tid go, which thread @maker has just made by @event and which is stopped: nobody
 * traces it, and nothing of the runtime is in it. One that uses the memory of @maker until it runs
 * another program records nothing. Returns false if it cannot be let go.
 */
bool fathom_release_child(const struct fathom_follow_task *maker, pid_t tid, int event);

#endif
