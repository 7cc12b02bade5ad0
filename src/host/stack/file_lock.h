/* SPDX-License-Identifier: MIT */
/* Holders of file locks that threads wait for. */
#ifndef FATHOM_STACK_FILE_LOCK_H
#define FATHOM_STACK_FILE_LOCK_H

#include "host/stack/task.h"

/* Kinds of locks, as /proc/locks has them. */
enum fathom_lock_kind { FATHOM_LOCK_FLOCK, FATHOM_LOCK_POSIX, FATHOM_LOCK_OFD };

/*
 * Appends " held by process 12" if the kernel says who holds the lock of @kind that descriptor @fd
 * waits for.
 */
void fathom_file_lock_describe(struct fathom_waiter *w, int32_t fd, enum fathom_lock_kind kind);

#endif
