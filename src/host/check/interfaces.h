/* SPDX-License-Identifier: MIT */
/*
 * GDB's JIT interfaces of a stopped program (safe/jit/gdb_layout.h): each object that exports
 * __jit_debug_descriptor and __jit_debug_register_code has one. A breakpoint in the function tells
 * when the list changes.
 */
#ifndef FATHOM_CHECK_INTERFACES_H
#define FATHOM_CHECK_INTERFACES_H

#include "host/check/published.h"

struct fathom_interface {
	struct fathom_gdb_list list;
	uint64_t breakpoint; /* avma */
	uint8_t byte;        /* of the code there */
};

struct fathom_interfaces {
	FATHOM_ARRAY_OF(struct fathom_interface);
};

/*
 * Finds the interfaces of all modules of @target, plants breakpoints in new ones with the stopped
 * thread @tid, and adds what is in their lists to @p. Those of modules that are gone are forgotten.
 * Sets *@ret_changed if code was added. FATHOM_E_MEMORY, and what a view fails with.
 */
fathom_err fathom_interfaces_find(struct fathom_interfaces *x, const struct fathom_tracee *t,
				  struct fathom_target *target, pid_t tid,
				  struct fathom_published *p, bool *ret_changed,
				  struct fathom_errinfo *reterr);

/* Returns the interface whose breakpoint is at @avma; NULL if there is none. */
const struct fathom_interface *fathom_interfaces_at(const struct fathom_interfaces *x,
						    uint64_t avma);

/* Takes over what the descriptor of @i says that has changed. FATHOM_E_MEMORY. */
fathom_err fathom_interface_update(const struct fathom_interface *i, const struct fathom_tracee *t,
				   struct fathom_published *p);

/* Takes all breakpoints out of the memory of the stopped thread @tid, a child's. */
void fathom_interfaces_clear(const struct fathom_interfaces *x, pid_t tid);

#endif
