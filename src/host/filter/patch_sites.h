/* SPDX-License-Identifier: MIT */
/*
 * The places of a file whose bytes differ in memory although it is the right file: those that
 * relocations change and, in the kernel and its modules, those that the kernel patches.
 */
#ifndef FATHOM_FILTER_PATCH_SITES_H
#define FATHOM_FILTER_PATCH_SITES_H

#include "host/base/array.h"
#include "host/module/module.h"

struct fathom_patch_sites {
	struct fathom_keyed_array sites; /* svma and bytes of each, sorted */
	bool is_kernel;
	bool is_complete; /* the file has all tables: its bytes prove something */
};

/*
 * Collects the sites of @m, with @is_kernel also those that the kernel patches. Returns
 * FATHOM_E_MEMORY on failure; @ret can be freed in any case.
 */
fathom_err fathom_patch_sites_read(const struct fathom_module *m, bool is_kernel,
				   struct fathom_patch_sites *ret);
void fathom_patch_sites_deinit(struct fathom_patch_sites *p);

/* Marks in @marks, of @size bytes from @svma on, those that may differ. */
void fathom_patch_sites_mark(const struct fathom_patch_sites *p, uint64_t svma, bool *marks,
			     size_t size);

#endif
