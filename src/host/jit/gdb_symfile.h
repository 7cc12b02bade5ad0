/* SPDX-License-Identifier: MIT */
/* A symbol file of GDB's JIT interface, copied out of its process: an ELF file in memory. */
#ifndef FATHOM_JIT_GDB_SYMFILE_H
#define FATHOM_JIT_GDB_SYMFILE_H

#include "host/base/array.h"
#include "host/file/object.h"
#include "safe/jit/gdb_layout.h"

/* Ranges of code (avma). */
struct fathom_gdb_code {
	FATHOM_ARRAY_OF(struct fathom_range);
};

/*
 * Makes an object of the symbol file of @entry, whose bytes are at @pages, from
 * fathom_pages_alloc(). Takes over @pages, also on failure.
 */
fathom_err fathom_gdb_symfile_wrap(struct fathom_memory *m, const struct fathom_gdb_entry *entry,
				   uint8_t *pages, struct fathom_object **ret);

/*
 * Adds to @code where @image has code: its executable sections, or else its executable segments.
 * Returns false without memory.
 */
bool fathom_gdb_symfile_code(const struct fathom_image *image, struct fathom_gdb_code *code);

#endif
