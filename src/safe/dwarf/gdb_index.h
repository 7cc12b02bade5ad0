/* SPDX-License-Identifier: MIT */
/*
 * .gdb_index (GDB manual, appendix "Index Section Format", versions 4 to 9). Its address area tells
 * which unit covers an address, for all units. Always little-endian.
 *
 * Not handled: its symbol table.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_GDB_INDEX_H
#define FATHOM_DWARF_GDB_INDEX_H

#include "safe/base/cursor.h"
#include "safe/dwarf/dwarf.h"

struct fathom_gdb_index {
	const struct fathom_dwarf *dwarf;
	struct fathom_bytes units;   /* 16 bytes each: offset, length */
	struct fathom_cursor ranges; /* 20 bytes each: low, high, unit */
	const uint8_t *section;
};

/* Opens the index. Returns FATHOM_OK, an error, or FATHOM_END if no known version is there. */
fathom_err fathom_gdb_index_init(struct fathom_gdb_index *g, const struct fathom_dwarf *dwarf,
				 struct fathom_errinfo *reterr);

/* Yields the next range of the address area, as fathom_aranges_next() does. */
fathom_err fathom_gdb_index_next(struct fathom_gdb_index *g, uint64_t *ret_low, uint64_t *ret_size,
				 uint64_t *ret_unit_off, struct fathom_errinfo *reterr);

#endif
