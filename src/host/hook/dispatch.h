/* SPDX-License-Identifier: MIT */
/* From a stub to the hook function. */
#ifndef FATHOM_HOOK_DISPATCH_H
#define FATHOM_HOOK_DISPATCH_H

#include "fathom/hook.h"
#include "host/hook/hooked_site.h"

/*
 * Of functions on the way to a hook function: they must have no site themselves. Their files are
 * compiled so that they touch no vector register (src/host/hook/meson.build).
 */
#define FATHOM_IN_HOOK                                                         \
	__attribute__((no_instrument_function, patchable_function_entry(0, 0), \
		       no_sanitize("address", "thread", "undefined")))

/*
 * The dispatcher's frame on the stack: registers by their DWARF numbers, and more (registers_*.c).
 */
struct fathom_hook_frame;

/* Entry point that stubs call. */
void fathom_hook_entry(void);

/* Calls the hook function of @s; called by fathom_hook_entry(). */
void fathom_hook_dispatch(struct fathom_hook_frame *f, struct fathom_hooked_site *s);

/* Says in @call where the hooked function is called from, by @f, whose stack pointer it sets. */
void fathom_hook_describe(struct fathom_hook_frame *f, const struct fathom_hooked_site *s,
			  struct fathom_hook_call *call);

/* Sets how vectors are saved for hooks of @s. */
void fathom_hook_vectors(struct fathom_hooked_site *s);

/* Returns the gate that the calling thread is in, and in *@ret_thread what it entered by. */
struct fathom_gate *fathom_hook_within(const void **ret_thread);

#endif
