/* SPDX-License-Identifier: MIT */
/*
 * Attribute forms (DWARF 5, 7.5.5 and 7.5.6): their sizes, and reading the raw value of one. What a
 * raw value means (a string's text, an indexed address) is resolved by unit.h.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_FORM_H
#define FATHOM_FORM_H

#include "../base/cursor.h"
#include "dwarf.h"

/* What the size of a form depends on. */
struct fathom_encoding {
	uint8_t version;
	uint8_t address_size; /* 1, 2, 4 or 8 */
	uint8_t offset_size;  /* 4 or 8 */
};

/* Bytes of a form whose size the encoding alone determines, else -1. */
int fathom_form_size(uint64_t form, struct fathom_encoding e);

/*
 * A value as it stands in the unit: a number, an offset, an index, or for blocks and strings the
 * offset of their bytes from the start of the section. form is the real one (never indirect).
 */
struct fathom_attr {
	uint64_t value;
	uint32_t form; /* 0: the attribute is absent */
};

/* Skips one value. An unknown form fails the cursor: nothing after it can be found. */
void fathom_form_skip(struct fathom_cursor *c, uint64_t form, struct fathom_encoding e);

/* Reads one value; @section is where the offsets of strings and blocks count from. */
void fathom_form_read(struct fathom_cursor *c, uint64_t form, struct fathom_encoding e,
		      const uint8_t *section, struct fathom_attr *ret);

#endif
