/* SPDX-License-Identifier: MIT */
/* How stacks go through the jumps in prefixes of hooked functions. */
#ifndef FATHOM_HOOK_PREFIX_ROWS_H
#define FATHOM_HOOK_PREFIX_ROWS_H

#include "host/hook/hooked_site.h"
#include "host/trace/code_rows.h"

/*
 * Publishes those of the @n @sites, sorted by address, that have a jump in their prefix. What fails
 * is left out.
 */
void fathom_prefix_rows_publish(struct fathom_code_rows *rows,
				struct fathom_hooked_site *const *sites, size_t n);

#endif
