/* SPDX-License-Identifier: MIT */
/*
 * .debug_names (DWARF 5, 6.1.1): finds the units that define a name.
 *
 * fathom has an address, not a name. But the symbol table gives the linkage name of the function at
 * the address. If there is no .debug_aranges, this index finds its unit with one hash look-up
 * instead of a walk over all units. It yields candidates.
 *
 * Not handled: foreign type units, which have no code.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_NAMES_H
#define FATHOM_DWARF_NAMES_H

#include "safe/base/cursor.h"
#include "safe/dwarf/dwarf.h"

struct fathom_names_search {
	const struct fathom_dwarf *dwarf;
	struct fathom_cursor tables; /* rest of the section */
	struct fathom_str name;
	uint32_t hash;
	/* the current table */
	struct fathom_bytes units;
	struct fathom_bytes hashes;
	struct fathom_bytes string_offsets;
	struct fathom_bytes entry_offsets;
	struct fathom_bytes abbrevs;
	struct fathom_bytes pool;
	uint32_t n_units;
	uint32_t n_buckets;
	uint32_t n_names;
	uint32_t next_name; /* 1-based; 0 if none is left in this table */
	uint8_t offset_size;
	struct fathom_cursor entries; /* of the last name found */
};

/* Starts a search for the units that define @name. */
void fathom_names_init(struct fathom_names_search *s, const struct fathom_dwarf *dwarf,
		       struct fathom_str name);

/* Yields the offset of the next unit. Returns FATHOM_OK, FATHOM_END, or an error. */
fathom_err fathom_names_next(struct fathom_names_search *s, uint64_t *ret_unit_off,
			     struct fathom_errinfo *reterr);

#endif
