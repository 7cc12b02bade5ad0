/* SPDX-License-Identifier: MIT */
/* glibc's read-write locks that threads wait for. */
#ifndef FATHOM_STACK_RWLOCK_H
#define FATHOM_STACK_RWLOCK_H

#include "host/stack/task.h"

/*
 * Describes a wait for the word @expected at @avma if that is of a read-write lock which a writer,
 * or readers, have; else returns false.
 */
bool fathom_rwlock_describe(struct fathom_waiter *w, uint64_t avma, uint32_t expected, bool shared);

#endif
