/* SPDX-License-Identifier: MIT */
/*
 * The notes of a PT_NOTE segment or SHT_NOTE section (System V gABI, "Note Section").
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_NOTE_H
#define FATHOM_ELF_NOTE_H

#include "safe/base/cursor.h"

struct fathom_note {
	struct fathom_bytes name; /* with its NUL */
	struct fathom_bytes desc;
	uint32_t type;
};

/*
 * Reads the note at @c. @align is what its segment states: 8 pads to eight bytes, all else to four.
 * Returns false after the last complete note.
 */
bool fathom_note_next(struct fathom_cursor *c, uint64_t align, struct fathom_note *ret);

/* Returns whether the note is of type @type and belongs to @owner, a C string. */
bool fathom_note_is(const struct fathom_note *n, uint32_t type, const char *owner);

#endif
