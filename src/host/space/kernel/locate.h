/* SPDX-License-Identifier: MIT */
/* A view of the kernel: locates addresses by kallsyms, the list of modules, and files. */
#ifndef FATHOM_KERNEL_LOCATE_H
#define FATHOM_KERNEL_LOCATE_H

#include "host/space/kernel/kernel.h"
#include "host/space/kernel/loaded_modules.h"
#include "host/space/kernel/owners.h"

struct fathom_kernel_view {
	struct fathom_view view;
	struct fathom_kernel *kernel;
	const struct fathom_kernel_image *image; /* NULL: not looked for yet */
	struct fathom_kernel_owners owners;
	struct fathom_kernel_modules modules; /* read on first use */
	struct fathom_kernel_table *table;    /* read on first use; NULL: not yet */
	int64_t began_ns;
	uint64_t until; /* the largest address to look up; UINT64_MAX: unknown */
	bool has_modules;
	bool wants_lines;
};

/* Returns the image of @v; it has no range if the kernel hides addresses. NULL if out of memory. */
const struct fathom_kernel_image *fathom_kernel_view_image(struct fathom_kernel_view *v);

#endif
