/* SPDX-License-Identifier: MIT */
/* A view of the kernel: what it has where, by kallsyms, by its list of modules, and by files. */
#ifndef FATHOM_TARGET_KERNEL_LOCATE_H
#define FATHOM_TARGET_KERNEL_LOCATE_H

#include "host/target/kernel/kernel.h"
#include "host/target/kernel/loaded_modules.h"
#include "host/target/kernel/owners.h"

struct fathom_kernel_view {
	struct fathom_view view;
	struct fathom_kernel *kernel;
	const struct fathom_kernel_image *image; /* NULL: not asked for yet */
	struct fathom_kernel_owners owners;
	struct fathom_kernel_modules modules; /* read when first asked for */
	struct fathom_kernel_table *table;    /* the same; NULL: not yet */
	int64_t began_ns;
	uint64_t until; /* the largest address that will be asked for; UINT64_MAX: any may */
	bool has_modules;
	bool wants_lines;
};

/* Returns the image of @v, which is nowhere in a kernel that shows no addresses; NULL: no memory.
 */
const struct fathom_kernel_image *fathom_kernel_view_image(struct fathom_kernel_view *v);

#endif
