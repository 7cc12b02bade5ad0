/* SPDX-License-Identifier: MIT */
/* Cgroups of processes that are recorded. */
#ifndef FATHOM_PROFILE_RECORD_CGROUP_H
#define FATHOM_PROFILE_RECORD_CGROUP_H

#include "host/profile/record_threads.h"
#include "host/profile/stack_table.h"

/*
 * Returns the path of the cgroup in @text, the content of /proc/PID/cgroup (cgroups(7)), which it
 * cuts there; NULL without one.
 *
 * The unified hierarchy has it. Where that has only the root, as on machines whose controllers are
 * those of version 1, it is the path that systemd has given, else that of the first controller.
 */
const char *fathom_cgroup_find(char *text);

/*
 * Returns the number in the profile of the cgroup that the process of @thread was in when it was
 * first asked for; FATHOM_TABLE_NONE: it is not known. A process that has ended by then was where
 * its parent is.
 */
uint32_t fathom_record_cgroup(struct fathom_record_threads *threads,
			      struct fathom_stack_table *table,
			      const struct fathom_record_thread *thread);

#endif
