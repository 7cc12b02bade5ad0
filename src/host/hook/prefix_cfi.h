/* SPDX-License-Identifier: MIT */
/*
 * How stacks go through the jumps in prefixes of hooked functions: call frame information of
 * compilers begins after prefixes. It is published as that of JIT code. On aarch64 there are no
 * such jumps, and stubs have rules of their own.
 */
#ifndef FATHOM_HOOK_PREFIX_CFI_H
#define FATHOM_HOOK_PREFIX_CFI_H

#include "host/hook/hooked_site.h"
#include "host/trace/trampoline_cfi.h"

/*
 * Publishes what of the @n @sites, sorted by address, no pool has published. What fails is left
 * out.
 */
void fathom_prefix_cfi_publish(struct fathom_trampoline_cfi *rows,
			       struct fathom_hooked_site *const *sites, size_t n);

#endif
