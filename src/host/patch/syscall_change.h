/* SPDX-License-Identifier: MIT */
/* Changes by which system calls of x86-64 lead to stubs (host/sites/syscall_insns.h). */
#ifndef FATHOM_PATCH_SYSCALL_CHANGE_H
#define FATHOM_PATCH_SYSCALL_CHANGE_H

#include "host/patch/text_plan.h"
#include "host/sites/syscall_insns.h"

/* Returns whether call @c of a module in @m with @bias can lead to a stub, and is still there. */
bool fathom_syscall_can_change(const struct fathom_syscall_insn *c, uint64_t bias,
			       struct fathom_text_memory *m);

/* Returns the avma of the jump to the stub of @c: before it, or in its padding. */
uint64_t fathom_syscall_jump(const struct fathom_syscall_insn *c, uint64_t bias);

/*
 * Adds the changes to @plan by which @c leads to @stub. *@ret_fits: nothing is too far. False
 * without memory.
 */
bool fathom_syscall_plan_change(const struct fathom_syscall_insn *c, uint64_t bias, uint64_t stub,
				struct fathom_text_memory *m, struct fathom_text_plan *plan,
				bool *ret_fits);

#endif
