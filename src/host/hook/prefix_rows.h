/* SPDX-License-Identifier: MIT */
/*
 * How stacks go through the jumps in prefixes of hooked functions: call frame information of
 * compilers begins behind prefixes. It is published as that of JIT code. On aarch64 there are no
 * such jumps, and stubs have rules of their own.
 */
#ifndef FATHOM_HOOK_PREFIX_ROWS_H
#define FATHOM_HOOK_PREFIX_ROWS_H

#include "fathom/jit.h"
#include "host/base/array.h"
#include "host/hook/hooked_site.h"

struct fathom_prefix_rows {
	FATHOM_ARRAY_OF(struct fathom_jit_arena *);
};

/* Publishes what of the @n @sites no pool has published. What fails is left out. */
void fathom_prefix_rows_publish(struct fathom_prefix_rows *rows,
				struct fathom_hooked_site *const *sites, size_t n);
/* Takes back what is not there any more. */
void fathom_prefix_rows_withdraw(struct fathom_prefix_rows *rows);

#endif
