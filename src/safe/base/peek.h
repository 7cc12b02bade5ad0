/* SPDX-License-Identifier: MIT */
/*
 * Reading memory of this process that may not be there: a bad pointer, a module that another thread
 * unloads. The kernel is asked to copy it (process_vm_readv(2)), which cannot fault.
 *
 * Where that is forbidden (seccomp, an old kernel), each piece is probed with a system call that
 * does nothing but read its argument, and then read: only who unmaps memory between the two can
 * make that fault.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_BASE_PEEK_H
#define FATHOM_BASE_PEEK_H

#include "safe/base/bytes.h"

/* Reads up to @size bytes at @avma; returns how many could be read, from the start. */
size_t fathom_peek(uint64_t avma, void *to, size_t size);

/*
 * Reads the NUL-terminated string at @avma to @to, of @cap bytes; false when it does not fit, or
 * its end cannot be read.
 */
bool fathom_peek_str(uint64_t avma, char *to, size_t cap, struct fathom_str *ret);

#endif
