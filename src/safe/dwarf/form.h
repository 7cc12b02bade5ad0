/* SPDX-License-Identifier: MIT */
/*
 * Attribute forms (DWARF 5, 7.5.5 and 7.5.6): their sizes, and reading raw values. unit.h resolves
 * what a raw value means (a string's text, an indexed address).
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_FORM_H
#define FATHOM_DWARF_FORM_H

#include "safe/base/cursor.h"
#include "safe/dwarf/dwarf.h"

/* Encoding that the size of a form depends on. */
struct fathom_encoding {
	uint8_t version;
	uint8_t address_size; /* 1, 2, 4 or 8 */
	uint8_t offset_size;  /* 4 or 8 */
};

/* fathom_form_class() of forms that have no size of their own. */
enum { FATHOM_FORM_ADDRESS = 0x20, FATHOM_FORM_OFFSET, FATHOM_FORM_REF_ADDR, FATHOM_FORM_VARIES };

/* Returns the bytes of @form, up to 16, or one of the values above. */
static inline uint8_t fathom_form_class(uint64_t form)
{
	extern const uint8_t fathom_form_classes[0x2d];

	if (form < sizeof fathom_form_classes)
		return fathom_form_classes[form];
	return form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt ? FATHOM_FORM_OFFSET
									   : FATHOM_FORM_VARIES;
}

/* Returns the bytes of a form whose size depends on the encoding alone, else -1. */
static inline int fathom_form_size(uint64_t form, struct fathom_encoding e)
{
	const uint8_t class = fathom_form_class(form);

	if (class < FATHOM_FORM_ADDRESS)
		return class;
	switch (class) {
	case FATHOM_FORM_ADDRESS:
		return e.address_size;
	case FATHOM_FORM_OFFSET:
		return e.offset_size;
	case FATHOM_FORM_REF_ADDR:
		/* In DWARF 2 it is as wide as an address. */
		return e.version <= 2 ? e.address_size : e.offset_size;
	default:
		return -1;
	}
}

/*
 * A raw value: a number, an offset, an index; for blocks and strings the offset of their bytes from
 * the start of the section. form is the direct one, never DW_FORM_indirect.
 */
struct fathom_attr {
	uint64_t value;
	uint32_t form; /* 0 if the attribute is absent */
};

/* Skips one value. An unknown form fails the cursor: nothing after it can be found. */
void fathom_form_skip(struct fathom_cursor *c, uint64_t form, struct fathom_encoding e);

/* Reads one value. @section is where the offsets of strings and blocks count from. */
void fathom_form_read(struct fathom_cursor *c, uint64_t form, struct fathom_encoding e,
		      const uint8_t *section, struct fathom_attr *ret);

#endif
