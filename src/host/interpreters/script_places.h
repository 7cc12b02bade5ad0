/* SPDX-License-Identifier: MIT */
/*
 * Where frames of scripts belong among native ones. Frames that one loop executes share an anchor,
 * an address of a variable of the loop: they stand before the native frame whose part of the stack
 * holds it, from its stack pointer up to that of its caller. Of those with slots each has one loop.
 */
#ifndef FATHOM_INTERPRETERS_SCRIPT_PLACES_H
#define FATHOM_INTERPRETERS_SCRIPT_PLACES_H

#include "host/interpreters/interpreters.h"

/* The place of a frame that is in no native frame. */
#define FATHOM_SCRIPT_NOWHERE SIZE_MAX

/* The native frames of a thread, the innermost first. */
struct fathom_native_frames {
	const void *frames;
	size_t n;
	/* Returns the stack pointer of frame @i; FATHOM_NO_ADDRESS: not known. */
	uint64_t (*sp_of)(const void *frames, size_t i);
	/* Returns its frame pointer likewise; NULL: none is known. */
	uint64_t (*fp_of)(const void *frames, size_t i);
	/* Returns the avma of its instruction, of a call if it is not the innermost one. */
	uint64_t (*code_of)(const void *frames, size_t i);
};

/*
 * Keeps of the frames in place among the @n @scripts those whose native frames are among @native,
 * and completes them. Returns how many of all are kept, in their order.
 */
size_t fathom_script_keep_executed(struct fathom_interpreters *s,
				   const struct fathom_native_frames *native,
				   struct fathom_script_frame *scripts, size_t n);

/*
 * Sets @places of each of the @n @scripts: the number of the native frame before which it stands,
 * or FATHOM_SCRIPT_NOWHERE. Returns how many are nowhere.
 */
size_t fathom_script_find_places(const struct fathom_native_frames *native,
				 const struct fathom_script_frame *scripts, size_t n,
				 size_t *places);

#endif
