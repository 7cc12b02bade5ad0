/* SPDX-License-Identifier: MIT */
/* Names what samples have of the kernel: its functions, as /proc/kallsyms has them now. */
#ifndef FATHOM_PROFILE_RECORD_KERNEL_H
#define FATHOM_PROFILE_RECORD_KERNEL_H

#include "fathom/target.h"
#include "host/profile/perf_event.h"
#include "host/profile/stack_table.h"

struct fathom_record_kernel {
	struct fathom *session;
	struct fathom_target *target; /* NULL: not opened */
	struct fathom_view *view;
	bool is_tried;
	struct fathom_key_map places; /* location by address and kind of pc */
};

/*
 * Writes the frames in the kernel of @r, a sample, called by @caller, a node or 0. *@ret is the
 * innermost; @caller if there are none. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_kernel_walk(struct fathom_record_kernel *k,
				     const struct fathom_perf_record *r,
				     struct fathom_stack_table *table, uint32_t caller,
				     uint32_t *ret);

void fathom_record_kernel_deinit(struct fathom_record_kernel *k);

#endif
