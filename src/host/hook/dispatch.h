/* SPDX-License-Identifier: MIT */
/* From a stub to the hook function. */
#ifndef FATHOM_HOOK_DISPATCH_H
#define FATHOM_HOOK_DISPATCH_H

#include "fathom/hook.h"
#include "host/hook/hooked_site.h"

/*
 * Of functions on the way to a hook function: they must have no site themselves, and touch no
 * vector register.
 */
#define FATHOM_IN_HOOK                                                         \
	__attribute__((no_instrument_function, patchable_function_entry(0, 0), \
		       no_sanitize("address", "thread", "undefined"),          \
		       target("general-regs-only")))

/* What dispatch_x86_64.S has on the stack. */
struct fathom_hook_frame {
	uint64_t registers[FATHOM_HOOK_REGISTERS]; /* by their DWARF numbers; rsp is not set */
	uint64_t flags;
	uint64_t stub;   /* return address into the stub */
	uint64_t caller; /* the function's own return address, unless it is behind a prologue */
};

/* What stubs call. */
void fathom_hook_entry(void);

/* Calls the hook function of @s; called by fathom_hook_entry(). */
void fathom_hook_dispatch(struct fathom_hook_frame *f, struct fathom_hooked_site *s);

/* Sets how vectors are saved for hooks of @s. */
void fathom_hook_vectors(struct fathom_hooked_site *s);

/* Returns the gate that the calling thread is in, and in *@ret_thread what it entered by. */
struct fathom_gate *fathom_hook_within(const void **ret_thread);

#endif
