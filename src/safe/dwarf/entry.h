/* SPDX-License-Identifier: MIT */
/*
 * Reads entries attribute by attribute, straight from .debug_abbrev. This is for attributes that
 * the plans of abbrev.h leave out because no address needs them: where functions and variables are
 * declared, and where variables are.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_ENTRY_H
#define FATHOM_DWARF_ENTRY_H

#include "safe/dwarf/unit.h"

/* The attributes that are read. */
enum fathom_entry_slot {
	FATHOM_ENTRY_DECL_FILE,
	FATHOM_ENTRY_DECL_LINE,
	FATHOM_ENTRY_ENTRY_PC, /* an address, or an offset from the lowest one */
	FATHOM_ENTRY_LINKAGE_NAME,
	FATHOM_ENTRY_LOCATION, /* offset of its bytes in the section */
	FATHOM_ENTRY_NAME,
	FATHOM_ENTRY_ORIGIN,
	FATHOM_ENTRY_SPECIFICATION,
	FATHOM_ENTRY_COUNT
};

struct fathom_entry {
	uint64_t location_size;
	uint32_t present; /* bits of the slots */
	struct fathom_attr attr[FATHOM_ENTRY_COUNT];
};

/* Reads the entry at @off of @unit, up to damage or the bounds of limits.h. */
void fathom_entry_read(const struct fathom_unit *unit, uint64_t off, struct fathom_entry *ret);

static inline const struct fathom_attr *fathom_entry_attr(const struct fathom_entry *entry,
							  enum fathom_entry_slot slot)
{
	return entry->present & (1u << slot) ? &entry->attr[slot] : NULL;
}

/*
 * Finds the address of the variable @entry, *@ret + *@ret_offset. Returns false unless its location
 * is a single address, direct or indexed, perhaps with the variable's offset in it (variables that
 * the compiler has merged).
 */
bool fathom_entry_address(const struct fathom_unit *unit, const struct fathom_entry *entry,
			  uint64_t *ret, uint64_t *ret_offset);

/*
 * Finds the offset of the entry that @entry refers to for what it does not state itself. Returns
 * false if there is none in this unit.
 */
bool fathom_entry_origin(const struct fathom_unit *unit, const struct fathom_entry *entry,
			 uint64_t *ret_off);

#endif
