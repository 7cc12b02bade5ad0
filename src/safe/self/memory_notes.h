/* SPDX-License-Identifier: MIT */
/*
 * Notes (gABI, chapter 5) of an object of this process, read from memory by reads that cannot
 * fault.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_MEMORY_NOTES_H
#define FATHOM_SELF_MEMORY_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A note's descriptor. */
struct fathom_memory_note {
	uint64_t avma;
	uint32_t size; /* bytes */
};

/*
 * Finds the note of @owner, whose @owner_size bytes include its NUL, and @type of the object whose
 * ELF header is at @start; false if it has none.
 */
bool fathom_memory_note_find(uintptr_t start, uint64_t bias, const char *owner, size_t owner_size,
			     uint32_t type, struct fathom_memory_note *ret);

#endif
