/* SPDX-License-Identifier: MIT */
/* Texts that the kernel makes while they are read (proc(5), sysfs(5)), so their size is unknown. */
#ifndef FATHOM_FILE_KERNEL_TEXT_H
#define FATHOM_FILE_KERNEL_TEXT_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

/* Returns whether the first @size bytes of @text are enough. */
typedef bool fathom_text_enough_fn(const char *text, size_t size, void *data);

/*
 * Reads at most @limit bytes of the text at @path into memory from malloc(), never NULL, with a NUL
 * after them. Stops early if @enough, called after each piece unless NULL, says so. Errors:
 * FATHOM_E_OS, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_text_read(const char *path, size_t limit, fathom_text_enough_fn *enough,
			    void *data, char **ret_text, size_t *ret_size,
			    struct fathom_errinfo *reterr);

/* Reads up to @cap bytes of a short text into @to. Returns how many; 0 if it cannot be read. */
size_t fathom_text_read_short(const char *path, void *to, size_t cap);

/* Returns the number of lines; what follows the last line break counts as one, even if empty. */
size_t fathom_text_count_lines(const char *text, size_t size);

#endif
