/* SPDX-License-Identifier: MIT */
/*
 * Unwinding of the calling thread with the trust of each frame: what fathom_unwind() does not tell.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OWN_STACK_H
#define FATHOM_SELF_OWN_STACK_H

#include "fathom/unwind.h"

/* The frames of one walk: arrays of the caller, of @cap elements each. */
struct fathom_own_frames {
	uint64_t *pcs;
	uint8_t *kinds;
	uint8_t *trusts; /* enum fathom_trust */
	size_t cap;
};

/*
 * Unwinds the calling thread from @context, the ucontext_t of a signal handler; as fathom_unwind().
 */
fathom_err fathom_own_stack_from(const struct fathom_self *self, const void *context,
				 const struct fathom_own_frames *frames,
				 struct fathom_unwind_result *ret);

#endif
