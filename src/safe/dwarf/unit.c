/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/unit.h"

#include "safe/base/limits.h"

#define SECTION ".debug_info"

fathom_err fathom_unit_header_read(const struct fathom_dwarf *dwarf, uint64_t off,
				   struct fathom_unit_header *ret, struct fathom_errinfo *reterr)
{
	const struct fathom_bytes info = dwarf->section[FATHOM_DEBUG_INFO];
	struct fathom_cursor c = cur_init(bytes_from(info, off), dwarf->swap);
	struct fathom_unit_header h = { .off = off, .type = DW_UT_compile };
	const uint64_t length = cur_initial_length(&c, &h.encoding.offset_size);
	const uint64_t start = (uint64_t)(c.p - info.data);
	uint16_t version;

	if (!cur_ok(&c) || length > cur_left(&c))
		return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, off,
				   "the unit reaches past the end of the section");
	c = cur_sub(&c, length);
	h.end_off = start + length;
	version = cur_u16(&c);
	if (version < 2 || version > 5)
		return fathom_fail(reterr, cur_ok(&c) ? FATHOM_E_UNSUPPORTED : FATHOM_E_CORRUPT,
				   SECTION, off, "unit of an unknown DWARF version");
	h.encoding.version = (uint8_t)version;
	if (version >= 5) {
		h.type = cur_u8(&c);
		h.encoding.address_size = cur_u8(&c);
		h.abbrev_off = cur_uint(&c, h.encoding.offset_size);
	} else {
		h.abbrev_off = cur_uint(&c, h.encoding.offset_size);
		h.encoding.address_size = cur_u8(&c);
	}
	if (h.type == DW_UT_skeleton || h.type == DW_UT_split_compile || h.type == DW_UT_type ||
	    h.type == DW_UT_split_type)
		h.id = cur_u64(&c);
	if (h.type == DW_UT_type || h.type == DW_UT_split_type)
		cur_skip(&c, h.encoding.offset_size);
	if (!cur_ok(&c))
		return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, off,
				   "the unit ends inside its header");
	if (h.encoding.address_size != 8 && h.encoding.address_size != 4 &&
	    h.encoding.address_size != 2)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, off,
				   "unit with an impossible address size");
	h.die_off = (uint64_t)(c.p - info.data);
	*ret = h;
	return FATHOM_OK;
}

bool fathom_unit_end(const struct fathom_dwarf *dwarf, uint64_t off, uint64_t *ret_end_off)
{
	const struct fathom_bytes info = dwarf->section[FATHOM_DEBUG_INFO];
	struct fathom_cursor c = cur_init(bytes_from(info, off), dwarf->swap);
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(&c, &offset_size);

	if (!cur_ok(&c) || length > cur_left(&c))
		return false;
	*ret_end_off = (uint64_t)(c.p - info.data) + length;
	return true;
}

void fathom_die_reader_init(struct fathom_die_reader *r, const struct fathom_unit *unit,
			    uint64_t die_off)
{
	const struct fathom_bytes info = unit->dwarf->section[FATHOM_DEBUG_INFO];
	const uint64_t end = unit->header.end_off;

	r->unit = unit;
	r->section = info.data;
	r->c = cur_init(die_off < end ? bytes_slice(info, die_off, end - die_off)
				      : (struct fathom_bytes){ NULL, 0 },
			unit->dwarf->swap);
	r->passing = false;
	r->depth = 0;
	r->lowest = 0;
	r->ended = false;
}

/* Reads the constant of DW_FORM_implicit_const from the abbreviation. */
static void read_implicit(const struct fathom_abbrevs *t, const struct fathom_step *step,
			  struct fathom_attr *ret)
{
	struct fathom_cursor c = cur_init(
		(struct fathom_bytes){ t->section + step->arg, t->end - step->arg }, t->swap);

	ret->form = DW_FORM_implicit_const;
	ret->value = (uint64_t)cur_sleb(&c);
}

/* Reads a number of 1, 2, 4 or 8 bytes. */
static inline uint64_t read_fixed(struct fathom_cursor *c, uint32_t size)
{
	const uint8_t *p = cur_take(c, size);

	if (!p)
		return 0;
	switch (size) {
	case 1:
		return *p;
	case 2:
		return load_u16(p, c->swap);
	case 4:
		return load_u32(p, c->swap);
	default:
		return load_u64(p, c->swap);
	}
}

static void read_attributes(struct fathom_cursor *c, const struct fathom_die_reader *r,
			    const struct fathom_abbrev *a, struct fathom_die *ret)
{
	const struct fathom_abbrevs *t = r->unit->abbrevs;
	const struct fathom_step *step = t->steps + a->first_step;
	const struct fathom_step *end = step + a->n_steps;

	if (!a->n_steps && a->fixed != FATHOM_ABBREV_VARIES)
		cur_skip(c, a->fixed);
	for (; step < end; step++) {
		struct fathom_attr *attr = &ret->attr[step->slot];

		switch ((enum fathom_step_op)step->op) {
		case FATHOM_STEP_SKIP:
			cur_skip(c, step->arg);
			continue;
		case FATHOM_STEP_SKIP_LEB:
			cur_skip_leb(c);
			continue;
		case FATHOM_STEP_SKIP_BLOCK:
			cur_skip(c, cur_uleb(c));
			continue;
		case FATHOM_STEP_SKIP_FORM:
			fathom_form_skip(c, step->form, t->encoding);
			continue;
		case FATHOM_STEP_READ:
			fathom_form_read(c, step->form, t->encoding, r->section, attr);
			break;
		case FATHOM_STEP_READ_FIXED:
			attr->value = read_fixed(c, step->arg);
			attr->form = step->form;
			break;
		case FATHOM_STEP_CONST:
			read_implicit(t, step, attr);
			break;
		}
		ret->present |= 1u << step->slot;
	}
}

static inline void skip_step(struct fathom_cursor *c, const struct fathom_abbrevs *t,
			     const struct fathom_step *step)
{
	switch ((enum fathom_step_op)step->op) {
	case FATHOM_STEP_SKIP:
	case FATHOM_STEP_READ_FIXED:
		cur_skip(c, step->arg);
		break;
	case FATHOM_STEP_SKIP_LEB:
		cur_skip_leb(c);
		break;
	case FATHOM_STEP_SKIP_BLOCK:
		cur_skip(c, cur_uleb(c));
		break;
	case FATHOM_STEP_SKIP_FORM:
	case FATHOM_STEP_READ:
		fathom_form_skip(c, step->form, t->encoding);
		break;
	case FATHOM_STEP_CONST:
		break;
	}
}

static void skip_attributes(struct fathom_cursor *c, const struct fathom_abbrevs *t,
			    const struct fathom_abbrev *a)
{
	const struct fathom_step *step = t->steps + a->first_step;
	const struct fathom_step *end = step + a->n_steps;

	if (a->fixed != FATHOM_ABBREV_VARIES) {
		cur_skip(c, a->fixed);
		return;
	}
	for (; step < end; step++)
		skip_step(c, t, step);
}

static fathom_err walk_failed(const struct fathom_die_reader *r, const uint8_t *at,
			      struct fathom_errinfo *reterr, const char *what)
{
	return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, (uint64_t)(at - r->section), what);
}

#define PASSED_KINDS                                                          \
	(FATHOM_DIE_BIT(FATHOM_DIE_OTHER) | FATHOM_DIE_BIT(FATHOM_DIE_TYPE) | \
	 FATHOM_DIE_BIT(FATHOM_DIE_ABSTRACT))

/*
 * Returns the entry that the DW_FORM_ref4 at @at refers to in the @size bytes at @unit; NULL unless
 * it is after the reference.
 */
static inline const uint8_t *sibling_at(const uint8_t *at, const uint8_t *unit, uint64_t size,
					bool swap)
{
	const uint64_t off = load_u32(at, swap);

	return off < size && off > (uint64_t)(at - unit) + 3 ? unit + off : NULL;
}

/* Moves from the attributes of an entry to its sibling; false if this is impossible. */
static bool pass_entry(struct fathom_cursor *c, const struct fathom_die_reader *r,
		       const struct fathom_abbrev *a)
{
	const struct fathom_abbrevs *t = r->unit->abbrevs;
	const struct fathom_step *step = t->steps + a->first_step;
	const struct fathom_step *end = step + a->n_steps;
	struct fathom_cursor at = *c;
	const uint8_t *sibling;

	if (!a->has_children)
		return false;
	if (a->sibling != FATHOM_ABBREV_NO_SIBLING) {
		cur_skip(&at, a->sibling);
	} else {
		while (step < end && step->slot != FATHOM_AT_SIBLING)
			skip_step(&at, t, step++);
		if (step == end || step->form != DW_FORM_ref4)
			return false;
	}
	sibling = cur_left(&at) < 4
			  ? NULL
			  : sibling_at(at.p, r->section + r->unit->header.off,
				       r->unit->header.end_off - r->unit->header.off, c->swap);
	if (sibling)
		c->p = sibling;
	return sibling;
}

/*
 * Skips entries that one look in skip[] can skip (abbrev.h). Only used below the root: such entries
 * neither end the walk nor change its depth. A scan spends its time in this loop.
 */
static void skip_plain(struct fathom_cursor *c, const struct fathom_abbrevs *t)
{
	const uint8_t *p = c->p;

	while (p < c->end && *p < FATHOM_ABBREV_SHORT) {
		const uint16_t size = t->skip[*p];

		if (!size || size > c->end - p)
			break;
		p += size;
	}
	c->p = p;
}

/* Does as skip_plain(), by pass[]: skips entries with what is below them. */
static void pass_plain(struct fathom_cursor *c, const struct fathom_die_reader *r)
{
	const uint16_t *pass = r->unit->abbrevs->pass;
	const uint8_t *unit = r->section + r->unit->header.off;
	const uint64_t unit_size = r->unit->header.end_off - r->unit->header.off;
	const uint8_t *end = c->end;
	const uint8_t *p = c->p;

	while (p < end && *p < FATHOM_ABBREV_SHORT) {
		const uint16_t how = pass[*p];

		if (how < FATHOM_PASS_SIBLING) {
			if (!how || how > end - p)
				break;
			p += how;
		} else {
			const uint8_t *at = p + (how - FATHOM_PASS_SIBLING);

			if (end - p < how - FATHOM_PASS_SIBLING + 4 ||
			    !(at = sibling_at(at, unit, unit_size, c->swap)))
				break;
			p = at;
		}
	}
	c->p = p;
}

static inline void skip_below(struct fathom_cursor *c, const struct fathom_die_reader *r)
{
	if (r->passing)
		pass_plain(c, r);
	else
		skip_plain(c, r->unit->abbrevs);
}

fathom_err fathom_die_next(struct fathom_die_reader *r, uint32_t kinds, struct fathom_die *ret,
			   uint32_t *ret_depth, struct fathom_errinfo *reterr)
{
	const struct fathom_abbrevs *t = r->unit->abbrevs;
	struct fathom_cursor c = r->c;
	uint32_t depth = r->depth;
	uint32_t lowest = depth;
	fathom_err err = FATHOM_END;

	if (depth)
		skip_below(&c, r);
	while (!r->ended && c.p < c.end) {
		const uint8_t *at = c.p;
		const uint64_t code = cur_uleb(&c);
		const struct fathom_abbrev *a;

		if (!code) {
			/* Ends a list of children, or is padding after the root. */
			r->ended = depth <= 1;
			depth--;
			lowest = depth < lowest ? depth : lowest;
			if (depth)
				skip_below(&c, r);
			continue;
		}
		a = fathom_abbrevs_find(t, code);
		if (!a) {
			err = walk_failed(r, at, reterr, "entry with an unknown abbreviation");
			break;
		}
		if (kinds & FATHOM_DIE_BIT(a->kind)) {
			ret->off = (uint64_t)(at - r->section);
			ret->present = 0;
			ret->tag = a->tag;
			ret->kind = a->kind;
			ret->has_children = a->has_children;
			read_attributes(&c, r, a, ret);
			err = FATHOM_OK;
		} else if (r->passing && depth && PASSED_KINDS & FATHOM_DIE_BIT(a->kind) &&
			   pass_entry(&c, r, a)) {
			skip_below(&c, r);
			continue;
		} else {
			skip_attributes(&c, t, a);
		}
		if (!cur_ok(&c)) {
			err = walk_failed(r, at, reterr, "entry reaches past the end of its unit");
			break;
		}
		*ret_depth = depth;
		/* If the start has no children, the walk is over after it. */
		r->ended = depth == 0 && !a->has_children;
		depth += a->has_children;
		if (depth > FATHOM_MAX_DIE_DEPTH) {
			err = fathom_fail(reterr, FATHOM_E_LIMIT, SECTION,
					  (uint64_t)(at - r->section), "entries nested too deep");
			break;
		}
		if (err == FATHOM_OK)
			break;
		skip_below(&c, r);
	}
	if (err)
		r->ended = true;
	r->c = c;
	r->depth = depth;
	r->lowest = lowest;
	return err;
}

bool fathom_die_skip_children(struct fathom_die_reader *r, const struct fathom_die *die)
{
	const struct fathom_attr *sibling = fathom_die_attr(die, FATHOM_AT_SIBLING);
	const uint64_t here = (uint64_t)(r->c.p - r->section);
	uint64_t off;

	if (!die->has_children)
		return true;
	if (!sibling || fathom_unit_reference(r->unit, sibling, &off) != FATHOM_REF_INFO ||
	    off <= here || off > here + cur_left(&r->c))
		return false;
	r->c.p = r->section + off;
	r->depth--;
	r->ended = r->depth == 0;
	return true;
}

fathom_err fathom_unit_open(const struct fathom_dwarf *dwarf,
			    const struct fathom_unit_header *header,
			    const struct fathom_abbrevs *abbrevs, struct fathom_unit *ret_unit,
			    struct fathom_die *ret_root, struct fathom_errinfo *reterr)
{
	struct fathom_unit u = {
		.dwarf = dwarf,
		.skeleton = dwarf,
		.lists = dwarf,
		.abbrevs = abbrevs,
		.header = *header,
	};
	struct fathom_die_reader r;
	const struct fathom_attr *a;
	uint32_t depth;
	fathom_err err;

	fathom_die_reader_init(&r, &u, header->die_off);
	err = fathom_die_next(&r, FATHOM_DIE_BIT(FATHOM_DIE_UNIT), ret_root, &depth, reterr);
	FATHOM_TRY(err);
	if (err == FATHOM_END || depth)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, header->die_off,
				   "the unit has no root entry");
	/* Without the attribute, the unit's part starts after the section's first header. */
	u.str_offsets_base =
		header->encoding.version >= 5 ? (header->encoding.offset_size == 8 ? 16 : 8) : 0;
	a = fathom_die_attr(ret_root, FATHOM_AT_STR_OFFSETS_BASE);
	if (a)
		u.str_offsets_base = a->value;
	a = fathom_die_attr(ret_root, FATHOM_AT_ADDR_BASE);
	if (a)
		u.addr_base = a->value;
	/* Without the attribute, the table of lists follows the section's first header. */
	a = fathom_die_attr(ret_root, FATHOM_AT_RNGLISTS_BASE);
	if (a)
		u.rnglists_base = a->value;
	else if (header->type == DW_UT_split_compile || header->type == DW_UT_skeleton)
		u.rnglists_base = header->encoding.offset_size == 8 ? 20 : 12;
	a = fathom_die_attr(ret_root, FATHOM_AT_GNU_RANGES_BASE);
	if (a)
		u.gnu_ranges_base = a->value;
	a = fathom_die_attr(ret_root, FATHOM_AT_LANGUAGE);
	if (a)
		u.language = a->value;
	a = fathom_die_attr(ret_root, FATHOM_AT_DWO_ID);
	if (a)
		u.header.id = a->value;
	(void)fathom_unit_address(&u, fathom_die_attr(ret_root, FATHOM_AT_LOW_PC), &u.low_pc);
	*ret_unit = u;
	return FATHOM_OK;
}

void fathom_unit_split(struct fathom_unit *unit, const struct fathom_unit *skeleton)
{
	unit->skeleton = skeleton->dwarf;
	unit->addr_base = skeleton->addr_base;
	unit->ranges_base = skeleton->gnu_ranges_base;
	if (!unit->dwarf->section[FATHOM_DEBUG_RNGLISTS].size) {
		unit->lists = skeleton->dwarf;
		unit->rnglists_base = skeleton->rnglists_base;
	}
	unit->low_pc = skeleton->low_pc;
}

/* Returns the string of entry @index of the unit's part of .debug_str_offsets. */
static struct fathom_str indexed_string(const struct fathom_unit *unit, uint64_t index)
{
	const uint8_t size = unit->header.encoding.offset_size;
	uint64_t off;
	struct fathom_bytes entry = { NULL, 0 };
	struct fathom_cursor c;

	if (!__builtin_mul_overflow(index, size, &off) &&
	    !__builtin_add_overflow(off, unit->str_offsets_base, &off))
		entry = bytes_slice(unit->dwarf->section[FATHOM_DEBUG_STR_OFFSETS], off, size);
	c = cur_init(entry, unit->dwarf->swap);
	off = cur_uint(&c, size);
	if (!cur_ok(&c))
		return (struct fathom_str){ NULL, 0 };
	return fathom_bytes_str(unit->dwarf->section[FATHOM_DEBUG_STR], off);
}

struct fathom_str fathom_unit_string(const struct fathom_unit *unit, const struct fathom_attr *a)
{
	const struct fathom_dwarf *dwarf = unit->dwarf;

	switch (a ? a->form : 0) {
	case DW_FORM_string:
		return fathom_bytes_str(dwarf->section[FATHOM_DEBUG_INFO], a->value);
	case DW_FORM_strp:
		return fathom_bytes_str(dwarf->section[FATHOM_DEBUG_STR], a->value);
	case DW_FORM_line_strp:
		return fathom_bytes_str(dwarf->section[FATHOM_DEBUG_LINE_STR], a->value);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		if (!dwarf->sup)
			break;
		return fathom_bytes_str(dwarf->sup->section[FATHOM_DEBUG_STR], a->value);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return indexed_string(unit, a->value);
	default:
		break;
	}
	return (struct fathom_str){ NULL, 0 };
}

bool fathom_unit_indexed_address(const struct fathom_unit *unit, uint64_t index, uint64_t *ret)
{
	const uint8_t size = unit->header.encoding.address_size;
	struct fathom_cursor c;
	uint64_t off;

	if (__builtin_mul_overflow(index, size, &off) ||
	    __builtin_add_overflow(off, unit->addr_base, &off))
		return false;
	c = cur_init(bytes_slice(unit->skeleton->section[FATHOM_DEBUG_ADDR], off, size),
		     unit->skeleton->swap);
	*ret = cur_uint(&c, size);
	return cur_ok(&c);
}

bool fathom_unit_address(const struct fathom_unit *unit, const struct fathom_attr *a, uint64_t *ret)
{
	switch (a ? a->form : 0) {
	case DW_FORM_addr:
		*ret = a->value;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return fathom_unit_indexed_address(unit, a->value, ret);
	default:
		return false;
	}
}

enum fathom_ref_kind fathom_unit_reference(const struct fathom_unit *unit,
					   const struct fathom_attr *a, uint64_t *ret_off)
{
	switch (a ? a->form : 0) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (a->value >= unit->header.end_off - unit->header.off)
			return FATHOM_REF_NONE;
		*ret_off = unit->header.off + a->value;
		return FATHOM_REF_INFO;
	case DW_FORM_ref_addr:
		*ret_off = a->value;
		return FATHOM_REF_INFO;
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_GNU_ref_alt:
		*ret_off = a->value;
		return unit->dwarf->sup ? FATHOM_REF_SUP : FATHOM_REF_NONE;
	default:
		return FATHOM_REF_NONE;
	}
}

bool fathom_unit_is_c(const struct fathom_unit *unit)
{
	switch (unit->language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_Mips_Assembler:
		return true;
	default:
		return false;
	}
}

bool fathom_unit_is_flat(const struct fathom_unit *unit)
{
	switch (unit->language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_C_plus_plus_17:
	case DW_LANG_C_plus_plus_20:
	case DW_LANG_Rust:
		return true;
	default:
		return fathom_unit_is_c(unit);
	}
}
