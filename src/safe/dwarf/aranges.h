/* SPDX-License-Identifier: MIT */
/*
 * .debug_aranges (DWARF 5, 6.1.2): which unit covers an address.
 *
 * The section may be missing, may leave units out, and may name ranges that linkers dropped. It
 * yields candidates; only the unit itself tells whether it covers the address.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_ARANGES_H
#define FATHOM_DWARF_ARANGES_H

#include "safe/base/cursor.h"
#include "safe/dwarf/dwarf.h"

struct fathom_aranges {
	const struct fathom_dwarf *dwarf;
	struct fathom_cursor sets;   /* rest of the section */
	struct fathom_cursor tuples; /* rest of the current set */
	const uint8_t *section;
	uint64_t unit_off;
	uint8_t address_size;
};

void fathom_aranges_init(struct fathom_aranges *a, const struct fathom_dwarf *dwarf);

/*
 * Yields the next range that is not empty, and its unit. Returns FATHOM_OK, FATHOM_END, or an
 * error, after which the rest of the section cannot be read.
 */
fathom_err fathom_aranges_next(struct fathom_aranges *a, uint64_t *ret_low, uint64_t *ret_size,
			       uint64_t *ret_unit_off, struct fathom_errinfo *reterr);

#endif
