/* SPDX-License-Identifier: MIT */
/*
 * The text of a traced process. While it is stopped, some pages at a time: what is written is in
 * the process once another piece is needed, or fathom_tracee_text_flush() is called.
 */
#ifndef FATHOM_PATCH_TRACEE_TEXT_H
#define FATHOM_PATCH_TRACEE_TEXT_H

#include "host/patch/text_plan.h"
#include "host/tracer/tracee.h"

/* Bytes of text that are read and written at once, at most. */
#define FATHOM_TEXT_WINDOW 8192

struct fathom_tracee_text {
	struct fathom_text_memory memory;
	const struct fathom_tracee *tracee;
	uint64_t avma;
	uint64_t size; /* 0: nothing was read */
	bool is_changed;
	bool runs; /* so what is beside a change may be another's: nothing is kept */
	uint8_t bytes[FATHOM_TEXT_WINDOW];
};

void fathom_tracee_text_init(struct fathom_tracee_text *t, const struct fathom_tracee *tracee);

/* Writes what was changed, and forgets what was read; false if it cannot be written. */
bool fathom_tracee_text_flush(struct fathom_tracee_text *t);

#endif
