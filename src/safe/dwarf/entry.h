/* SPDX-License-Identifier: MIT */
/*
 * Entries read attribute by attribute, straight from .debug_abbrev: for what the plans of abbrev.h
 * leave out because nothing on the way from an address to its line needs it, which is where
 * functions and variables are declared, and where variables are.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ENTRY_H
#define FATHOM_ENTRY_H

#include "unit.h"

/* The attributes that are read. */
enum fathom_entry_slot {
	FATHOM_ENTRY_DECL_FILE,
	FATHOM_ENTRY_DECL_LINE,
	FATHOM_ENTRY_LINKAGE_NAME,
	FATHOM_ENTRY_LOCATION, /* the offset of its bytes in the section */
	FATHOM_ENTRY_LOW_PC,
	FATHOM_ENTRY_NAME,
	FATHOM_ENTRY_ORIGIN,
	FATHOM_ENTRY_SPECIFICATION,
	FATHOM_ENTRY_COUNT
};

struct fathom_entry {
	uint64_t off;
	uint64_t next_off; /* of the entry that follows, whether below it or beside it */
	uint64_t tag;      /* 0: no entry but the end of a list of children */
	uint64_t location_size;
	uint32_t present; /* bits of the slots */
	struct fathom_attr attr[FATHOM_ENTRY_COUNT];
};

/*
 * Where the abbreviations of one table stand, so that reading many entries does not look for each
 * of them. The array is the caller's; codes that do not fit are looked for.
 */
struct fathom_abbrev_places {
	uint64_t abbrev_off; /* of the table */
	uint64_t *places;    /* of code i + 1, in .debug_abbrev; 0: not there */
	size_t n;
};

/* Fills in @t for the table of @unit, as far as its array reaches. */
void fathom_abbrev_places_read(const struct fathom_unit *unit, struct fathom_abbrev_places *t);

/*
 * Reads the entry at @off of @unit; the attributes of entries whose tag is not @tag (0: any) are
 * skipped. @t may be NULL. FATHOM_E_CORRUPT when the entry is damaged.
 */
fathom_err fathom_entry_read(const struct fathom_unit *unit, const struct fathom_abbrev_places *t,
			     uint64_t off, uint64_t tag, struct fathom_entry *ret);

static inline const struct fathom_attr *fathom_entry_attr(const struct fathom_entry *entry,
							  enum fathom_entry_slot slot)
{
	return entry->present & (1u << slot) ? &entry->attr[slot] : NULL;
}

/*
 * The address of the variable @entry: of locations, only a single address, direct or indexed, is
 * one. False for all others.
 */
bool fathom_entry_address(const struct fathom_unit *unit, const struct fathom_entry *entry,
			  uint64_t *ret);

/*
 * The offset of the entry that @entry refers to for what it does not state itself; false when that
 * is nowhere in this unit.
 */
bool fathom_entry_origin(const struct fathom_unit *unit, const struct fathom_entry *entry,
			 uint64_t *ret_off);

#endif
