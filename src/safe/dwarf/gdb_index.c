/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/gdb_index.h"

#define SECTION   ".gdb_index"
#define UNIT_SIZE 16

fathom_err fathom_gdb_index_init(struct fathom_gdb_index *g, const struct fathom_dwarf *dwarf,
				 struct fathom_errinfo *reterr)
{
	const bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const struct fathom_bytes section = dwarf->section[FATHOM_GDB_INDEX];
	struct fathom_cursor c = cur_init(section, swap);
	const uint32_t version = cur_u32(&c);
	const uint32_t units = cur_u32(&c);
	const uint32_t types = cur_u32(&c);
	const uint32_t addresses = cur_u32(&c);
	const uint32_t symbols = cur_u32(&c);

	if (!section.size || version < 4 || version > 9)
		return FATHOM_END;
	if (!cur_ok(&c) || units > types || types > addresses || addresses > symbols ||
	    symbols > section.size)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, 0, "damaged header");
	g->dwarf = dwarf;
	g->units = bytes_slice(section, units, types - units);
	g->ranges = cur_init(bytes_slice(section, addresses, symbols - addresses), swap);
	g->section = section.data;
	return FATHOM_OK;
}

fathom_err fathom_gdb_index_next(struct fathom_gdb_index *g, uint64_t *ret_low, uint64_t *ret_size,
				 uint64_t *ret_unit_off, struct fathom_errinfo *reterr)
{
	while (cur_left(&g->ranges)) {
		const uint64_t at = (uint64_t)(g->ranges.p - g->section);
		const uint64_t low = cur_u64(&g->ranges);
		const uint64_t high = cur_u64(&g->ranges);
		const uint32_t unit = cur_u32(&g->ranges);
		const struct fathom_bytes entry =
			bytes_slice(g->units, (uint64_t)unit * UNIT_SIZE, UNIT_SIZE);

		if (!cur_ok(&g->ranges))
			return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, at,
					   "damaged address area");
		/* Higher indices are those of type units, which have no code. */
		if (!entry.size || low >= high)
			continue;
		*ret_low = fathom_dwarf_address(g->dwarf, low);
		*ret_size = high - low;
		*ret_unit_off = load_u64(entry.data, g->ranges.swap);
		return FATHOM_OK;
	}
	return FATHOM_END;
}
