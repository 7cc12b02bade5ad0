/* SPDX-License-Identifier: MIT */
/*
 * Where the functions of a module start: at symbols of functions, and at FDEs. GCC for aarch64
 * starts the FDE of a patchable function after the NOPs of its entry.
 */
#ifndef FATHOM_SITES_FUNCTIONS_H
#define FATHOM_SITES_FUNCTIONS_H

#include "host/base/array.h"
#include "host/module/module.h"

struct fathom_function {
	uint64_t svma;
	uint64_t end;   /* svma after it; not above that if its size is not known */
	bool is_symbol; /* else an FDE only */
};

struct fathom_functions {
	FATHOM_ARRAY_OF(struct fathom_function); /* sorted by svma, each once */
};

/* Lists the functions of @m; FATHOM_E_MEMORY. */
fathom_err fathom_functions_init(struct fathom_functions *f, struct fathom_module *m);
void fathom_functions_deinit(struct fathom_functions *f);

/* Returns the index of the first function at or after @svma. */
size_t fathom_functions_from(const struct fathom_functions *f, uint64_t svma);

/* Returns the function that starts at @svma, or NULL. */
const struct fathom_function *fathom_functions_at(const struct fathom_functions *f, uint64_t svma);

/* Returns the function whose code holds @svma, by a symbol if there is one; NULL: none. */
const struct fathom_function *fathom_functions_holding(const struct fathom_functions *f,
						       uint64_t svma);

/* Returns the end of @function's code: where it ends, or else where the next one starts. */
uint64_t fathom_functions_end(const struct fathom_functions *f,
			      const struct fathom_function *function);

#endif
