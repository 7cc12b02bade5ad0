/* SPDX-License-Identifier: MIT */
/*
 * Units of .debug_info (DWARF 5, 7.5.1) and the entries (DIEs) in them.
 *
 * A unit is opened in three steps, and the caller can stop after each: its header, its
 * abbreviations (abbrev.h), and its root, which has the bases that other attributes need. Then a
 * reader walks its entries.
 *
 * Not handled: the contents of type units; references by signature (they lead to types, which name
 * no function).
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_UNIT_H
#define FATHOM_DWARF_UNIT_H

#include "safe/dwarf/abbrev.h"

struct fathom_unit_header {
	uint64_t off;        /* offset in .debug_info */
	uint64_t die_off;    /* offset of its root */
	uint64_t end_off;    /* offset after it */
	uint64_t abbrev_off; /* offset in .debug_abbrev */
	uint64_t id;         /* dwo_id of a skeleton or split unit, signature of a type unit */
	struct fathom_encoding encoding;
	uint8_t type; /* DW_UT_; DW_UT_compile for DWARF 2 to 4 */
};

/* Reads the header at @off. The error names what is wrong and where. */
fathom_err fathom_unit_header_read(const struct fathom_dwarf *dwarf, uint64_t off,
				   struct fathom_unit_header *ret, struct fathom_errinfo *reterr);

/* Finds the end of the unit at @off, of unknown versions, too. Returns false if it is damaged. */
bool fathom_unit_end(const struct fathom_dwarf *dwarf, uint64_t off, uint64_t *ret_end_off);

/* One entry. An attribute is valid if the bit of its slot is set in present. */
struct fathom_die {
	uint64_t off;
	uint32_t present;
	uint16_t tag;
	uint8_t kind;
	bool has_children;
	struct fathom_attr attr[FATHOM_AT_COUNT];
};

static inline const struct fathom_attr *fathom_die_attr(const struct fathom_die *die,
							enum fathom_slot slot)
{
	return die->present & (1u << slot) ? &die->attr[slot] : NULL;
}

/* A unit ready for reading: only views, cheap to copy. */
struct fathom_unit {
	const struct fathom_dwarf *dwarf;
	/* has the indexed addresses and the ranges outside a .dwo; is dwarf but in split units */
	const struct fathom_dwarf *skeleton;
	const struct fathom_abbrevs *abbrevs;
	struct fathom_unit_header header;
	uint64_t low_pc; /* base address of its range lists */
	uint64_t str_offsets_base;
	uint64_t addr_base;
	const struct fathom_dwarf
		*lists; /* whose .debug_rnglists: dwarf, but the skeleton in old split units */
	uint64_t rnglists_base;
	uint64_t ranges_base;     /* added to offsets in .debug_ranges; 0 but in split units */
	uint64_t gnu_ranges_base; /* skeletons: the ranges_base of the split unit */
	uint64_t language;        /* DW_LANG_, 0 if not stated */
};

/*
 * Reads the root entry of @header into @ret_root and prepares @ret_unit from it. For a split unit,
 * fathom_unit_split() must then copy the bases of its skeleton.
 */
fathom_err fathom_unit_open(const struct fathom_dwarf *dwarf,
			    const struct fathom_unit_header *header,
			    const struct fathom_abbrevs *abbrevs, struct fathom_unit *ret_unit,
			    struct fathom_die *ret_root, struct fathom_errinfo *reterr);

/* Copies what only its skeleton states to the split unit @unit. */
void fathom_unit_split(struct fathom_unit *unit, const struct fathom_unit *skeleton);

/* A walk over entries, in the order of the section. */
struct fathom_die_reader {
	const struct fathom_unit *unit;
	struct fathom_cursor c;
	const uint8_t *section;
	bool passing;   /* set by the caller: see fathom_die_reader_init() */
	uint32_t depth; /* of the next entry; the root is 0 */
	/* Lowest depth since the previous entry: entries at it or deeper get no more children. */
	uint32_t lowest;
	bool ended;
};

/*
 * Starts a walk over the entry at @die_off, which must lie in the unit, and what is below it. If
 * the caller then sets passing, entries of the kinds OTHER, TYPE and ABSTRACT below the start are
 * skipped with what is below them, as far as DW_AT_sibling allows; they must not be asked for.
 */
void fathom_die_reader_init(struct fathom_die_reader *r, const struct fathom_unit *unit,
			    uint64_t die_off);

/* The kinds that fathom_die_next() returns: bits of enum fathom_die_kind. */
#define FATHOM_DIE_BIT(kind) (1u << (kind))

/*
 * Reads the next entry of @kinds into @ret. Entries of other kinds are skipped, but not what is
 * below them. @ret_depth is its depth below the start. Returns FATHOM_OK, FATHOM_END at the end of
 * the walk, or an error.
 */
fathom_err fathom_die_next(struct fathom_die_reader *r, uint32_t kinds, struct fathom_die *ret,
			   uint32_t *ret_depth, struct fathom_errinfo *reterr);

/*
 * Skips what is below @die, the last entry read, by its DW_AT_sibling. Returns false if it has none
 * that leads forward inside the unit: then the walk goes on through its children.
 */
bool fathom_die_skip_children(struct fathom_die_reader *r, const struct fathom_die *die);

/* Returns the text of a string attribute; data is NULL if it is absent or damaged. */
struct fathom_str fathom_unit_string(const struct fathom_unit *unit, const struct fathom_attr *a);

/* Reads an address attribute, direct or indexed; false if it is absent or damaged. */
bool fathom_unit_address(const struct fathom_unit *unit, const struct fathom_attr *a,
			 uint64_t *ret);

/* Reads address @index of the unit's part of .debug_addr. */
bool fathom_unit_indexed_address(const struct fathom_unit *unit, uint64_t index, uint64_t *ret);

/* Kinds of targets of a reference. */
enum fathom_ref_kind {
	FATHOM_REF_NONE, /* absent, outside, or by signature */
	FATHOM_REF_INFO, /* an offset in .debug_info of the same file */
	FATHOM_REF_SUP,  /* an offset in .debug_info of the supplementary file */
};

enum fathom_ref_kind fathom_unit_reference(const struct fathom_unit *unit,
					   const struct fathom_attr *a, uint64_t *ret_off);

/* Returns whether the unit's language is C or assembly, which link functions as they are named. */
bool fathom_unit_is_c(const struct fathom_unit *unit);

/*
 * Returns whether compilers of the unit's language describe code below types and functions seldom
 * (C++: members of local classes) or never (C). A search that skips both then finds most of it.
 */
bool fathom_unit_is_flat(const struct fathom_unit *unit);

#endif
