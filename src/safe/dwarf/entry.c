/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/entry.h"

#include "safe/base/limits.h"

/* Returns a cursor over at most @most bytes of @section, from @off and not beyond @end. */
static struct fathom_cursor cursor_at(struct fathom_bytes section, uint64_t off, uint64_t end,
				      uint64_t most, bool swap)
{
	const uint64_t left = off < end ? end - off : 0;

	return cur_init(bytes_slice(section, off, left < most ? left : most), swap);
}

static enum fathom_entry_slot slot_of(uint64_t at)
{
	switch (at) {
	case DW_AT_location:
		return FATHOM_ENTRY_LOCATION;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return FATHOM_ENTRY_LINKAGE_NAME;
	case DW_AT_name:
		return FATHOM_ENTRY_NAME;
	case DW_AT_abstract_origin:
		return FATHOM_ENTRY_ORIGIN;
	case DW_AT_decl_file:
		return FATHOM_ENTRY_DECL_FILE;
	case DW_AT_decl_line:
		return FATHOM_ENTRY_DECL_LINE;
	case DW_AT_entry_pc:
		return FATHOM_ENTRY_ENTRY_PC;
	case DW_AT_specification:
		return FATHOM_ENTRY_SPECIFICATION;
	default:
		return FATHOM_ENTRY_COUNT;
	}
}

/* Reads the value of one attribute; false if the entry ends before it. */
static bool read_value(const struct fathom_unit *unit, struct fathom_cursor *c, uint64_t form,
		       enum fathom_entry_slot slot, struct fathom_entry *ret)
{
	const uint8_t *section = unit->dwarf->section[FATHOM_DEBUG_INFO].data;

	if (slot == FATHOM_ENTRY_COUNT) {
		fathom_form_skip(c, form, unit->header.encoding);
		return cur_ok(c);
	}
	fathom_form_read(c, form, unit->header.encoding, section, &ret->attr[slot]);
	if (!cur_ok(c))
		return false;
	ret->present |= 1u << slot;
	if (slot == FATHOM_ENTRY_LOCATION)
		ret->location_size = (uint64_t)(c->p - section) - ret->attr[slot].value;
	return true;
}

/* Reads the attributes in @list, whose values are at @c. */
static void read_attributes(const struct fathom_unit *unit, struct fathom_cursor list,
			    struct fathom_cursor *c, struct fathom_entry *ret)
{
	for (;;) {
		const uint64_t at = cur_uleb(&list);
		const uint64_t form = cur_uleb(&list);
		const bool is_implicit = form == DW_FORM_implicit_const;
		const int64_t constant = is_implicit ? cur_sleb(&list) : 0;
		const enum fathom_entry_slot slot = slot_of(at);

		if (!cur_ok(&list) || !(at | form))
			return;
		if (!is_implicit) {
			if (!read_value(unit, c, form, slot, ret))
				return;
		} else if (slot != FATHOM_ENTRY_COUNT) {
			ret->attr[slot] =
				(struct fathom_attr){ (uint64_t)constant, (uint32_t)form };
			ret->present |= 1u << slot;
		}
	}
}

void fathom_entry_read(const struct fathom_unit *unit, uint64_t off, struct fathom_entry *ret)
{
	const struct fathom_dwarf *dwarf = unit->dwarf;
	const struct fathom_bytes abbrev = dwarf->section[FATHOM_DEBUG_ABBREV];
	struct fathom_cursor c =
		cursor_at(dwarf->section[FATHOM_DEBUG_INFO], off, unit->header.end_off,
			  FATHOM_MAX_ENTRY_BYTES, dwarf->swap);
	const uint64_t code = cur_uleb(&c);
	const struct fathom_abbrev *a = code ? fathom_abbrevs_find(unit->abbrevs, code) : NULL;

	ret->present = 0;
	if (a && cur_ok(&c))
		read_attributes(unit,
				cursor_at(abbrev, unit->abbrevs->off + a->attributes, abbrev.size,
					  FATHOM_MAX_ATTRIBUTE_BYTES, dwarf->swap),
				&c, ret);
}

bool fathom_entry_address(const struct fathom_unit *unit, const struct fathom_entry *entry,
			  uint64_t *ret, uint64_t *ret_offset)
{
	const struct fathom_attr *a = fathom_entry_attr(entry, FATHOM_ENTRY_LOCATION);
	struct fathom_cursor c;
	uint64_t index;

	switch (a ? a->form : 0) {
	case DW_FORM_exprloc:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		break;
	default: /* a location list (from version 4 on): the variable may move */
		return false;
	}
	c = cur_init(bytes_slice(unit->dwarf->section[FATHOM_DEBUG_INFO], a->value,
				 entry->location_size),
		     unit->dwarf->swap);
	switch (cur_u8(&c)) {
	case DW_OP_addr:
		*ret = cur_uint(&c, unit->header.encoding.address_size);
		break;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		index = cur_uleb(&c);
		if (!cur_ok(&c) || !fathom_unit_indexed_address(unit, index, ret))
			return false;
		break;
	default:
		return false;
	}
	*ret_offset = 0;
	if (cur_left(&c) && cur_u8(&c) != DW_OP_plus_uconst)
		return false;
	if (cur_left(&c))
		*ret_offset = cur_uleb(&c);
	return cur_ok(&c) && !cur_left(&c);
}

bool fathom_entry_origin(const struct fathom_unit *unit, const struct fathom_entry *entry,
			 uint64_t *ret_off)
{
	const struct fathom_attr *a = fathom_entry_attr(entry, FATHOM_ENTRY_ORIGIN);

	if (!a)
		a = fathom_entry_attr(entry, FATHOM_ENTRY_SPECIFICATION);
	return fathom_unit_reference(unit, a, ret_off) == FATHOM_REF_INFO &&
	       *ret_off >= unit->header.die_off && *ret_off < unit->header.end_off;
}
