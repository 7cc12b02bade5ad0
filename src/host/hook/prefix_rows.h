/* SPDX-License-Identifier: MIT */
/*
 * How stacks go through the jumps in prefixes of hooked functions: call frame information of
 * compilers begins after prefixes. It is published as that of JIT code. On aarch64 there are no
 * such jumps, and stubs have rules of their own.
 */
#ifndef FATHOM_HOOK_PREFIX_ROWS_H
#define FATHOM_HOOK_PREFIX_ROWS_H

#include "host/hook/hooked_site.h"
#include "host/trace/code_rows.h"

/*
 * Publishes what of the @n @sites, sorted by address, no pool has published. What fails is left
 * out.
 */
void fathom_prefix_rows_publish(struct fathom_code_rows *rows,
				struct fathom_hooked_site *const *sites, size_t n);

#endif
