/* SPDX-License-Identifier: MIT */
/* Changes the text of a traced process, a piece at a time, and knows how to undo that. */
#ifndef FATHOM_TRACE_PATCHES_H
#define FATHOM_TRACE_PATCHES_H

#include "host/base/array.h"
#include "host/tracer/tracee.h"

/* Bytes of a patch, at most. */
#define FATHOM_PATCH_BYTES 16

/* Bytes that were changed, as they were. */
struct fathom_patch {
	uint64_t avma;
	uint8_t size;
	uint8_t bytes[FATHOM_PATCH_BYTES];
};

/* The changes of a module, sorted by address. Copies of a process share it. */
struct fathom_patches {
	uint32_t references;
	FATHOM_ARRAY_OF(struct fathom_patch);
};

/* Returns NULL without memory. */
struct fathom_patches *fathom_patches_create(void);
void fathom_patches_acquire(struct fathom_patches *patches);
void fathom_patches_release(struct fathom_patches *patches);

/* Bytes of text that are read and written at once, at most. */
#define FATHOM_TEXT_WINDOW (UINT64_C(1) << 16)

/* A piece of text, which is written back as a whole. size 0: none. */
struct fathom_text_window {
	const struct fathom_tracee *tracee;
	struct fathom_patches *patches; /* what is changed is added to them; NULL: nowhere */
	uint64_t avma;
	uint64_t size;
	uint8_t bytes[FATHOM_TEXT_WINDOW];
	uint8_t was[FATHOM_TEXT_WINDOW];
};

/*
 * Returns the bytes from @low to @high, to be changed; NULL: they cannot be read, or what was
 * changed before not be written. The window may be another one then.
 */
uint8_t *fathom_text_at(struct fathom_text_window *w, uint64_t low, uint64_t high);
/* Writes the window back; false if it cannot be written, or without memory. */
bool fathom_text_put_back(struct fathom_text_window *w);

/* Writes what @patches say was there before. */
bool fathom_patches_undo(const struct fathom_patches *patches, const struct fathom_tracee *tracee);

#endif
