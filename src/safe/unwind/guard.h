/* SPDX-License-Identifier: MIT */
/*
 * Guards a walk against cycles: a damaged stack may lead to a frame that was there before.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_GUARD_H
#define FATHOM_UNWIND_GUARD_H

#include "safe/unwind/registers.h"

struct fathom_walk_guard {
	uint64_t pc; /* of a frame some steps ago */
	uint64_t sp;
	size_t power;   /* steps until a later frame takes its place (Brent); 0: none yet */
	size_t length;  /* steps since then */
	unsigned falls; /* how often the stack pointer fell or stayed */
};

/*
 * Returns whether the frame @r, which comes after one whose stack pointer was @sp, shows that the
 * walk is in a cycle. @g is all zero at first. Only steps that may lead back need to be told.
 */
bool fathom_walk_guard_is_cycle(struct fathom_walk_guard *g, const struct fathom_registers *r,
				uint64_t sp);

#endif
