/* SPDX-License-Identifier: MIT */
/* Names what samples have of the kernel: its functions, as /proc/kallsyms has them now. */
#ifndef FATHOM_PROFILE_RECORD_KERNEL_H
#define FATHOM_PROFILE_RECORD_KERNEL_H

#include "fathom/target.h"
#include "host/profile/perf_event.h"
#include "host/profile/stack_table.h"

/* A system call, by the function that enters it. */
struct fathom_record_entry {
	char name[32];
};

struct fathom_record_kernel {
	struct fathom *session;
	struct fathom_target *target; /* NULL: not opened */
	struct fathom_view *view;
	bool is_tried;
	/* Samples are of a file: modules may lie elsewhere now, and name nothing. */
	bool is_past;
	struct fathom_key_map places; /* location by address and kind of pc */
	struct fathom_key_map roles;  /* by address: what its function says of a wait */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_entry);
	} entries;
};

/* Reads the names of the kernel's functions, which takes long; else the first look-up does. */
fathom_err fathom_record_kernel_prepare(struct fathom_record_kernel *k);

/*
 * Writes the frames in the kernel of @r, a sample, called by @caller, a node or 0. *@ret is the
 * innermost; @caller if there are none. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_kernel_walk(struct fathom_record_kernel *k,
				     const struct fathom_perf_record *r,
				     struct fathom_stack_table *table, uint32_t caller,
				     uint32_t *ret);

/*
 * Writes to @to, of @size bytes, what the thread of @r waits for, a sample of a switch: the system
 * call or what else has called the scheduler, in brackets. *@ret_is_disk: and that for a disk, as
 * the kernel counts such waits. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_kernel_reason(struct fathom_record_kernel *k,
				       const struct fathom_perf_record *r, char *to, size_t size,
				       bool *ret_is_disk);

void fathom_record_kernel_deinit(struct fathom_record_kernel *k);

#endif
