/* SPDX-License-Identifier: MIT */
/* Texts that the kernel makes while they are read (proc(5), sysfs(5)): their size is not known. */
#ifndef FATHOM_FILE_KERNEL_TEXT_H
#define FATHOM_FILE_KERNEL_TEXT_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

/* Whether the @size bytes of @text that have been read are enough. */
typedef bool fathom_text_enough_fn(const char *text, size_t size, void *data);

/*
 * Reads the text at @path, at most @limit bytes of it, into memory from malloc(); an empty one is
 * not NULL either. @enough, unless it is NULL, is asked after each piece. FATHOM_E_OS,
 * FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_text_read(const char *path, size_t limit, fathom_text_enough_fn *enough,
			    void *data, char **ret_text, size_t *ret_size,
			    struct fathom_errinfo *reterr);

/* Reads a short one into @to, at most @cap bytes; returns how many, 0 when it cannot be read. */
size_t fathom_text_read_short(const char *path, void *to, size_t cap);

#endif
