/* SPDX-License-Identifier: MIT */
/*
 * Reads memory of this process that may not be there: a bad pointer, a module that another thread
 * unloads. The kernel copies it (process_vm_readv(2)), which cannot fault.
 *
 * Where that call is forbidden (seccomp, an old kernel), a system call that only reads its argument
 * probes each piece, which is then read directly. That read faults only if another thread unmaps
 * the piece in between.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_BASE_PEEK_H
#define FATHOM_BASE_PEEK_H

#include "safe/base/bytes.h"

/* Reads up to @size bytes at @avma. Returns how many could be read, from the start. */
size_t fathom_peek(uint64_t avma, void *to, size_t size);

/* The step of fathom_peek_pages(), in bytes: no page of any machine is smaller. */
#define FATHOM_PEEK_PAGE 4096
/* Most pages of one call of fathom_peek_pages(). */
#define FATHOM_PEEK_PAGES 16

/* Returns how many of the @n pages from @avma on can be read, up to the first that cannot. */
size_t fathom_peek_pages(uintptr_t avma, size_t n);

/*
 * Reads the NUL-terminated string at @avma into @to, of @cap bytes. Returns false if it does not
 * fit or its end cannot be read.
 */
bool fathom_peek_str(uint64_t avma, char *to, size_t cap, struct fathom_str *ret);

#endif
