/* SPDX-License-Identifier: MIT */
/* The code of the C function that executes scripts: also what the compiler has set apart of it. */
#ifndef FATHOM_INTERPRETERS_LOOP_CODE_H
#define FATHOM_INTERPRETERS_LOOP_CODE_H

#include "host/interpreters/provider.h"

/* Finds the loop whose symbol is @name; false if there is none, or it says no size. */
bool fathom_loop_code_named(const struct fathom_runtime_found *f, const char *name,
			    struct fathom_script_loop *ret);

/*
 * Finds the loop that has no symbol, by its code: of what the function @name of the module calls,
 * and these call, and so on three times, it is by far the largest, and jumps by a table. False if
 * there is none.
 */
bool fathom_loop_code_called(const struct fathom_runtime_found *f, const char *name,
			     struct fathom_script_loop *ret);

/* Finds the cold part of @loop, if it has one. */
void fathom_loop_code_find_cold(const struct fathom_runtime_found *f,
				struct fathom_script_loop *loop);

#endif
