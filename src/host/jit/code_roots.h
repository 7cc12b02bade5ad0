/* SPDX-License-Identifier: MIT */
/*
 * Finds variables that no symbol names, through the code of functions that have symbols:
 * distributors strip the names of a library's own lists.
 */
#ifndef FATHOM_JIT_CODE_ROOTS_H
#define FATHOM_JIT_CODE_ROOTS_H

#include "host/module/place.h"
#include "safe/base/limits.h"

struct fathom_code_roots {
	uint64_t avma[FATHOM_MAX_CODE_REFERENCES]; /* aligned to 8, each once */
	unsigned n;
};

/*
 * Adds to @ret what the code of the exported function @name of @at refers to relative to itself, in
 * memory that can be written: reads, writes and addresses taken. Instructions are not decoded one
 * after the other, so some may be none: the caller must verify each. Returns whether @at has the
 * function. Does nothing if its machine is not x86-64.
 */
bool fathom_code_roots_find(const struct fathom_module_at *at, const char *name,
			    struct fathom_code_roots *ret);
/* Does the same for the first bytes of the functions that @name calls directly. */
bool fathom_code_roots_find_called(const struct fathom_module_at *at, const char *name,
				   struct fathom_code_roots *ret);

#endif
