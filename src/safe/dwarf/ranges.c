/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/ranges.h"

#include "safe/base/limits.h"

enum form { FORM_PAIR, FORM_RANGES, FORM_RNGLISTS, FORM_END };

/* Returns the largest address of @size bytes. */
static uint64_t max_address(uint8_t size)
{
	return size >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

static bool is_tombstone(const struct fathom_ranges *r, uint64_t address)
{
	return address >= max_address(r->unit->header.encoding.address_size) - 1;
}

/* Looks list @index up in the offset table of .debug_rnglists. */
static bool indexed_list(const struct fathom_unit *unit, uint64_t index, uint64_t *ret)
{
	const uint8_t size = unit->header.encoding.offset_size;
	struct fathom_cursor c;
	uint64_t off;

	if (__builtin_mul_overflow(index, size, &off) ||
	    __builtin_add_overflow(off, unit->rnglists_base, &off))
		return false;
	c = cur_init(bytes_slice(unit->lists->section[FATHOM_DEBUG_RNGLISTS], off, size),
		     unit->lists->swap);
	off = cur_uint(&c, size);
	return cur_ok(&c) && !__builtin_add_overflow(off, unit->rnglists_base, ret);
}

/* Points @r at the list of @a. If it is not there, fathom_ranges_next() reports the damage. */
static void open_list(struct fathom_ranges *r, const struct fathom_attr *a)
{
	const struct fathom_unit *unit = r->unit;
	const struct fathom_dwarf *dwarf = unit->dwarf;
	struct fathom_bytes section;
	uint64_t off = a->value;
	bool found = true;

	if (unit->header.encoding.version >= 5) {
		r->form = FORM_RNGLISTS;
		dwarf = unit->lists;
		section = dwarf->section[FATHOM_DEBUG_RNGLISTS];
		if (a->form == DW_FORM_rnglistx)
			found = indexed_list(unit, a->value, &off);
	} else {
		r->form = FORM_RANGES;
		dwarf = unit->skeleton;
		section = dwarf->section[FATHOM_DEBUG_RANGES];
		found = !__builtin_add_overflow(off, unit->ranges_base, &off);
	}
	r->section = section.data;
	r->c = cur_init(found ? bytes_from(section, off) : (struct fathom_bytes){ NULL, 0 },
			dwarf->swap);
	if (!cur_left(&r->c))
		r->section = r->c.p;
}

uint64_t fathom_ranges_allowed(const struct fathom_dwarf *dwarf,
			       const struct fathom_dwarf *skeleton)
{
	return FATHOM_MAX_RANGES + dwarf->section[FATHOM_DEBUG_RNGLISTS].size +
	       skeleton->section[FATHOM_DEBUG_RNGLISTS].size +
	       skeleton->section[FATHOM_DEBUG_RANGES].size;
}

/* Reads DW_AT_high_pc: an address, or an offset from r->low. */
static bool read_high(struct fathom_ranges *r, const struct fathom_attr *high)
{
	switch (high->form) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
		return !__builtin_add_overflow(r->low, high->value, &r->high);
	default:
		return fathom_unit_address(r->unit, high, &r->high);
	}
}

bool fathom_ranges_of_die(struct fathom_ranges *r, const struct fathom_unit *unit,
			  const struct fathom_die *die, uint64_t *left)
{
	const struct fathom_attr *high = fathom_die_attr(die, FATHOM_AT_HIGH_PC);
	const struct fathom_attr *list = fathom_die_attr(die, FATHOM_AT_RANGES);

	r->unit = unit;
	r->base = unit->low_pc;
	r->left = left;
	if (list) {
		open_list(r, list);
		return true;
	}
	r->form = FORM_PAIR;
	return high && fathom_unit_address(unit, fathom_die_attr(die, FATHOM_AT_LOW_PC), &r->low) &&
	       read_high(r, high) && r->low < r->high;
}

/* Reads one entry of .debug_ranges; sets FORM_END at the end of the list. */
static bool next_pair(struct fathom_ranges *r, uint64_t *low, uint64_t *high)
{
	const uint8_t size = r->unit->header.encoding.address_size;
	const uint64_t begin = cur_uint(&r->c, size);
	const uint64_t end = cur_uint(&r->c, size);

	if (!begin && !end) {
		r->form = FORM_END;
		return false;
	}
	if (begin == max_address(size)) {
		r->base = end;
		return false;
	}
	*low = r->base + begin;
	*high = r->base + end;
	return !is_tombstone(r, r->base) && !is_tombstone(r, begin);
}

static bool next_entry(struct fathom_ranges *r, uint64_t *low, uint64_t *high)
{
	const struct fathom_unit *unit = r->unit;
	const uint8_t size = unit->header.encoding.address_size;
	struct fathom_cursor *c = &r->c;
	bool found = true;

	switch (cur_u8(c)) {
	case DW_RLE_end_of_list:
		r->form = FORM_END;
		return false;
	case DW_RLE_base_addressx:
		if (!fathom_unit_indexed_address(unit, cur_uleb(c), &r->base))
			cur_fail(c);
		return false;
	case DW_RLE_base_address:
		r->base = cur_uint(c, size);
		return false;
	case DW_RLE_startx_endx:
		found = fathom_unit_indexed_address(unit, cur_uleb(c), low);
		found &= fathom_unit_indexed_address(unit, cur_uleb(c), high);
		break;
	case DW_RLE_startx_length:
		found = fathom_unit_indexed_address(unit, cur_uleb(c), low);
		*high = *low + cur_uleb(c);
		break;
	case DW_RLE_offset_pair:
		*low = r->base + cur_uleb(c);
		*high = r->base + cur_uleb(c);
		if (is_tombstone(r, r->base))
			return false;
		break;
	case DW_RLE_start_end:
		*low = cur_uint(c, size);
		*high = cur_uint(c, size);
		break;
	case DW_RLE_start_length:
		*low = cur_uint(c, size);
		*high = *low + cur_uleb(c);
		break;
	default:
		found = false;
	}
	if (!found)
		cur_fail(c);
	return found && !is_tombstone(r, *low);
}

fathom_err fathom_ranges_next(struct fathom_ranges *r, uint64_t *ret_low, uint64_t *ret_high,
			      struct fathom_errinfo *reterr)
{
	const bool lists = r->form == FORM_RNGLISTS;
	uint64_t low = 0;
	uint64_t high = 0;

	if (r->form == FORM_PAIR) {
		r->form = FORM_END;
		*ret_low = fathom_dwarf_address(r->unit->skeleton, r->low);
		*ret_high = *ret_low + (r->high - r->low);
		return is_tombstone(r, r->low) ? FATHOM_END : FATHOM_OK;
	}
	while (r->form != FORM_END) {
		const uint8_t *at = r->c.p;
		const bool found = lists ? next_entry(r, &low, &high) : next_pair(r, &low, &high);

		if (!cur_ok(&r->c)) {
			r->form = FORM_END;
			return fathom_fail(reterr, FATHOM_E_CORRUPT,
					   lists ? ".debug_rnglists" : ".debug_ranges",
					   (uint64_t)(at - r->section), "damaged range list");
		}
		if (!*r->left) {
			r->form = FORM_END;
			return fathom_fail(
				reterr, FATHOM_E_LIMIT, lists ? ".debug_rnglists" : ".debug_ranges",
				(uint64_t)(at - r->section), "lists of ranges are too long");
		}
		--*r->left;
		if (found && low < high) {
			*ret_low = fathom_dwarf_address(r->unit->skeleton, low);
			*ret_high = *ret_low + (high - low);
			return FATHOM_OK;
		}
	}
	return FATHOM_END;
}
