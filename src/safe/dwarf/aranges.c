/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/aranges.h"

void fathom_aranges_init(struct fathom_aranges *a, const struct fathom_dwarf *dwarf)
{
	const struct fathom_bytes section = dwarf->section[FATHOM_DEBUG_ARANGES];

	a->dwarf = dwarf;
	a->sets = cur_init(section, dwarf->swap);
	a->tuples = cur_init((struct fathom_bytes){ NULL, 0 }, dwarf->swap);
	a->section = section.data;
	a->unit_off = 0;
	a->address_size = 8;
}

/* Opens the next set. Its tuples start at a multiple of their size from the set's first byte. */
static void open_set(struct fathom_aranges *a)
{
	const uint8_t *start = a->sets.p;
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(&a->sets, &offset_size);
	struct fathom_cursor set = cur_sub(&a->sets, length);
	const uint16_t version = cur_u16(&set);
	uint8_t segment_size;
	uint64_t tuple;

	a->unit_off = cur_uint(&set, offset_size);
	a->address_size = cur_u8(&set);
	segment_size = cur_u8(&set);
	if (version != 2 || segment_size ||
	    (a->address_size != 8 && a->address_size != 4 && a->address_size != 2)) {
		cur_fail(&set);
		a->address_size = 8;
	} else {
		tuple = 2u * a->address_size;
		cur_skip(&set, (tuple - (uint64_t)(set.p - start) % tuple) % tuple);
	}
	a->tuples = set;
}

fathom_err fathom_aranges_next(struct fathom_aranges *a, uint64_t *ret_low, uint64_t *ret_size,
			       uint64_t *ret_unit_off, struct fathom_errinfo *reterr)
{
	for (;;) {
		const uint8_t *at;

		while (cur_left(&a->tuples) >= 2u * a->address_size) {
			*ret_low = cur_uint(&a->tuples, a->address_size);
			*ret_size = cur_uint(&a->tuples, a->address_size);
			*ret_unit_off = a->unit_off;
			/* A pair of zeros ends the set, but some sets hold one in the middle. */
			if (!*ret_size)
				continue;
			*ret_low = fathom_dwarf_address(a->dwarf, *ret_low);
			return FATHOM_OK;
		}
		if (!cur_left(&a->sets))
			return FATHOM_END;
		at = a->sets.p;
		open_set(a);
		if (!cur_ok(&a->tuples) || !cur_ok(&a->sets)) {
			cur_fail(&a->sets);
			a->tuples = a->sets;
			return fathom_fail(reterr, FATHOM_E_CORRUPT, ".debug_aranges",
					   (uint64_t)(at - a->section), "damaged set of ranges");
		}
	}
}
