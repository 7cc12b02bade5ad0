/* SPDX-License-Identifier: MIT */
#include "entry.h"

/* Of one byte each (DWARF 5, 7.7.1). */
enum { OP_ADDR = 0x03, OP_ADDRX = 0xa1, OP_GNU_ADDR_INDEX = 0xfb };

static struct fathom_cursor abbrev_cursor(const struct fathom_unit *unit, uint64_t off)
{
	return cur_init(bytes_from(unit->dwarf->section[FATHOM_DEBUG_ABBREV], off),
			unit->dwarf->swap);
}

/* Reads the head of a declaration; returns its code, 0 at the end of the table. */
static uint64_t read_head(struct fathom_cursor *c, uint64_t *ret_tag)
{
	const uint64_t code = cur_uleb(c);

	*ret_tag = code ? cur_uleb(c) : 0;
	if (code)
		cur_skip(c, 1);
	return cur_ok(c) ? code : 0;
}

/* Reads an attribute's name, form and, if the form has one, constant; false at their end. */
static bool read_pair(struct fathom_cursor *c, uint64_t *at, uint64_t *form, int64_t *constant)
{
	*at = cur_uleb(c);
	*form = cur_uleb(c);
	*constant = *form == DW_FORM_implicit_const ? cur_sleb(c) : 0;
	return cur_ok(c) && (*at || *form);
}

static void skip_pairs(struct fathom_cursor *c)
{
	uint64_t at;
	uint64_t form;
	int64_t constant;

	while (read_pair(c, &at, &form, &constant))
		;
}

void fathom_abbrev_places_read(const struct fathom_unit *unit, struct fathom_abbrev_places *t)
{
	const uint8_t *section = unit->dwarf->section[FATHOM_DEBUG_ABBREV].data;
	struct fathom_cursor c = abbrev_cursor(unit, unit->header.abbrev_off);
	uint64_t code;
	uint64_t tag;

	t->abbrev_off = unit->header.abbrev_off;
	memset(t->places, 0, t->n * sizeof *t->places);
	for (const uint8_t *at = c.p; (code = read_head(&c, &tag)) != 0; at = c.p) {
		if (code <= t->n && !t->places[code - 1])
			t->places[code - 1] = (uint64_t)(at - section);
		skip_pairs(&c);
	}
}

/* Moves @c to the attributes of the declaration of @code. */
static bool find_declaration(const struct fathom_unit *unit, const struct fathom_abbrev_places *t,
			     uint64_t code, struct fathom_cursor *c, uint64_t *ret_tag)
{
	uint64_t found;

	if (t && code <= t->n) {
		*c = abbrev_cursor(unit, t->places[code - 1]);
		return read_head(c, ret_tag) == code;
	}
	*c = abbrev_cursor(unit, unit->header.abbrev_off);
	while ((found = read_head(c, ret_tag)) != 0 && found != code)
		skip_pairs(c);
	return found != 0;
}

static enum fathom_entry_slot slot_of(uint64_t at)
{
	switch (at) {
	case DW_AT_location:
		return FATHOM_ENTRY_LOCATION;
	case DW_AT_low_pc:
		return FATHOM_ENTRY_LOW_PC;
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
	case DW_AT_specification:
		return FATHOM_ENTRY_SPECIFICATION;
	default:
		return FATHOM_ENTRY_COUNT;
	}
}

/* Reads the attributes that @declaration lists from @c. */
static void read_attributes(const struct fathom_unit *unit, struct fathom_cursor declaration,
			    struct fathom_cursor *c, bool wanted, struct fathom_entry *ret)
{
	const uint8_t *section = unit->dwarf->section[FATHOM_DEBUG_INFO].data;
	uint64_t at;
	uint64_t form;
	int64_t constant;

	while (cur_ok(c) && read_pair(&declaration, &at, &form, &constant)) {
		const enum fathom_entry_slot slot = wanted ? slot_of(at) : FATHOM_ENTRY_COUNT;
		struct fathom_attr *attr = &ret->attr[slot];

		if (slot != FATHOM_ENTRY_COUNT)
			ret->present |= 1u << slot;
		if (form == DW_FORM_implicit_const) {
			if (slot != FATHOM_ENTRY_COUNT)
				*attr = (struct fathom_attr){ (uint64_t)constant, (uint32_t)form };
		} else if (slot == FATHOM_ENTRY_COUNT) {
			fathom_form_skip(c, form, unit->header.encoding);
		} else {
			fathom_form_read(c, form, unit->header.encoding, section, attr);
		}
		if (slot == FATHOM_ENTRY_LOCATION)
			ret->location_size = (uint64_t)(c->p - section) - attr->value;
	}
}

fathom_err fathom_entry_read(const struct fathom_unit *unit, const struct fathom_abbrev_places *t,
			     uint64_t off, uint64_t tag, struct fathom_entry *ret)
{
	const struct fathom_bytes info = unit->dwarf->section[FATHOM_DEBUG_INFO];
	const uint64_t end = unit->header.end_off;
	struct fathom_cursor declaration;
	struct fathom_cursor c = cur_init(off < end ? bytes_slice(info, off, end - off)
						    : (struct fathom_bytes){ NULL, 0 },
					  unit->dwarf->swap);
	const uint64_t code = cur_uleb(&c);

	ret->off = off;
	ret->tag = 0;
	ret->present = 0;
	if (cur_ok(&c) && code) {
		if (!find_declaration(unit, t, code, &declaration, &ret->tag))
			return FATHOM_E_CORRUPT;
		read_attributes(unit, declaration, &c, !tag || ret->tag == tag, ret);
	}
	ret->next_off = (uint64_t)(c.p - info.data);
	return cur_ok(&c) ? FATHOM_OK : FATHOM_E_CORRUPT;
}

bool fathom_entry_address(const struct fathom_unit *unit, const struct fathom_entry *entry,
			  uint64_t *ret)
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
	default: /* in version 4 and later, a list: it is not always there */
		return false;
	}
	c = cur_init(bytes_slice(unit->dwarf->section[FATHOM_DEBUG_INFO], a->value,
				 entry->location_size),
		     unit->dwarf->swap);
	switch (cur_u8(&c)) {
	case OP_ADDR:
		*ret = cur_uint(&c, unit->header.encoding.address_size);
		return cur_ok(&c) && !cur_left(&c);
	case OP_ADDRX:
	case OP_GNU_ADDR_INDEX:
		index = cur_uleb(&c);
		return cur_ok(&c) && !cur_left(&c) && fathom_unit_indexed_address(unit, index, ret);
	default:
		return false;
	}
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
