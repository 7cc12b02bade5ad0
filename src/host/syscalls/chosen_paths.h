/* SPDX-License-Identifier: MIT */
/* Which calls refer to chosen paths, as -P of strace(1) chooses them. */
#ifndef FATHOM_SYSCALLS_CHOSEN_PATHS_H
#define FATHOM_SYSCALLS_CHOSEN_PATHS_H

#include "host/syscalls/syscall_format.h"
#include "safe/base/error.h"

/* Chosen paths, each as it was given and as it is without symbolic links. */
struct fathom_chosen_paths {
	char **items;
	size_t n;
};

/* Adds @path; FATHOM_E_MEMORY. */
fathom_err fathom_chosen_paths_add(struct fathom_chosen_paths *p, const char *path);
void fathom_chosen_paths_deinit(struct fathom_chosen_paths *p);

/*
 * Returns whether the call of @record, which thread @tid begins, names one of the paths, or a
 * descriptor that is open for one. Names are compared as they are written.
 */
bool fathom_syscall_refers(struct fathom_syscall_record *record, int32_t tid,
			   const struct fathom_chosen_paths *paths);

#endif
