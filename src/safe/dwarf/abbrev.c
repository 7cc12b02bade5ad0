/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/abbrev.h"

#include "safe/base/limits.h"
#include "safe/base/sort.h"

static enum fathom_die_kind kind_of_tag(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_type_unit:
		return FATHOM_DIE_UNIT;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return FATHOM_DIE_SPACE;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return FATHOM_DIE_TYPE;
	case DW_TAG_subprogram:
	case DW_TAG_entry_point:
		return FATHOM_DIE_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return FATHOM_DIE_INLINED;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return FATHOM_DIE_BLOCK;
	default:
		return FATHOM_DIE_OTHER;
	}
}

/* The slot of each attribute plus 1; 0 if the attribute is never read. */
static const uint8_t slots[DW_AT_dwo_name + 1] = {
	[DW_AT_sibling] = FATHOM_AT_SIBLING + 1,
	[DW_AT_name] = FATHOM_AT_NAME + 1,
	[DW_AT_stmt_list] = FATHOM_AT_STMT_LIST + 1,
	[DW_AT_low_pc] = FATHOM_AT_LOW_PC + 1,
	[DW_AT_high_pc] = FATHOM_AT_HIGH_PC + 1,
	[DW_AT_language] = FATHOM_AT_LANGUAGE + 1,
	[DW_AT_comp_dir] = FATHOM_AT_COMP_DIR + 1,
	[DW_AT_abstract_origin] = FATHOM_AT_ORIGIN + 1,
	[DW_AT_specification] = FATHOM_AT_SPECIFICATION + 1,
	[DW_AT_ranges] = FATHOM_AT_RANGES + 1,
	[DW_AT_call_column] = FATHOM_AT_CALL_COLUMN + 1,
	[DW_AT_call_file] = FATHOM_AT_CALL_FILE + 1,
	[DW_AT_call_line] = FATHOM_AT_CALL_LINE + 1,
	[DW_AT_linkage_name] = FATHOM_AT_LINKAGE_NAME + 1,
	[DW_AT_str_offsets_base] = FATHOM_AT_STR_OFFSETS_BASE + 1,
	[DW_AT_addr_base] = FATHOM_AT_ADDR_BASE + 1,
	[DW_AT_rnglists_base] = FATHOM_AT_RNGLISTS_BASE + 1,
	[DW_AT_dwo_name] = FATHOM_AT_DWO_NAME + 1,
};

static unsigned vendor_slot(uint64_t at)
{
	switch (at) {
	case DW_AT_MIPS_linkage_name:
		return FATHOM_AT_LINKAGE_NAME + 1;
	case DW_AT_GNU_dwo_name:
		return FATHOM_AT_DWO_NAME + 1;
	case DW_AT_GNU_dwo_id:
		return FATHOM_AT_DWO_ID + 1;
	case DW_AT_GNU_ranges_base:
		return FATHOM_AT_GNU_RANGES_BASE + 1;
	case DW_AT_GNU_addr_base:
		return FATHOM_AT_ADDR_BASE + 1;
	case DW_AT_GNU_discriminator:
		return FATHOM_AT_DISCRIMINATOR + 1;
	default:
		return 0;
	}
}

#define BIT(slot)     (1u << (slot))
#define CODE_BITS     (BIT(FATHOM_AT_LOW_PC) | BIT(FATHOM_AT_HIGH_PC) | BIT(FATHOM_AT_RANGES))
#define FUNCTION_BITS (BIT(FATHOM_AT_STMT_LIST) - 1) /* all slots that are not the root's alone */

/* The slots that entries of each kind have. Childless entries of kind OTHER have none. */
static const uint32_t slots_of_kind[] = {
	[FATHOM_DIE_OTHER] = BIT(FATHOM_AT_SIBLING),
	[FATHOM_DIE_UNIT] = BIT(FATHOM_AT_COUNT) - 1,
	[FATHOM_DIE_SPACE] = 0,
	[FATHOM_DIE_TYPE] = BIT(FATHOM_AT_SIBLING),
	[FATHOM_DIE_FUNCTION] = FUNCTION_BITS,
	[FATHOM_DIE_ABSTRACT] = FUNCTION_BITS,
	[FATHOM_DIE_INLINED] = FUNCTION_BITS,
	[FATHOM_DIE_BLOCK] = CODE_BITS | BIT(FATHOM_AT_SIBLING),
};

/* Returns the slot of attribute @at if it is one of @wanted, else FATHOM_AT_COUNT. */
static inline enum fathom_slot slot_of(uint32_t wanted, uint64_t at)
{
	const unsigned slot = at < sizeof slots ? slots[at] : vendor_slot(at);

	return slot && (wanted & BIT(slot - 1)) ? (enum fathom_slot)(slot - 1) : FATHOM_AT_COUNT;
}

/* The size of each form under one encoding; VARIES for forms without one. */
struct sizes {
	uint8_t of[0x2d];
};

#define VARIES 0xff

static void init_sizes(struct sizes *s, struct fathom_encoding e)
{
	for (unsigned form = 0; form < sizeof s->of; form++) {
		const int size = fathom_form_size(form, e);

		s->of[form] = size < 0 ? VARIES : (uint8_t)size;
	}
}

static inline unsigned size_of(const struct sizes *s, uint64_t form, struct fathom_encoding e)
{
	int size;

	if (form < sizeof s->of)
		return s->of[form];
	size = fathom_form_size(form, e);
	return size < 0 ? VARIES : (unsigned)size;
}

/* Reads an attribute and its form. Nearly always each takes one byte. */
static inline void read_pair(struct fathom_cursor *c, uint64_t *at, uint64_t *form)
{
	if (c->end - c->p >= 2 && !((c->p[0] | c->p[1]) & 0x80)) {
		*at = c->p[0];
		*form = c->p[1];
		c->p += 2;
	} else {
		*at = cur_uleb(c);
		*form = cur_uleb(c);
	}
}

/* Returns the step that reads an attribute into @slot. */
static struct fathom_step read_step(enum fathom_slot slot, uint64_t form, unsigned size)
{
	const bool plain = size == 1 || size == 2 || size == 4 || size == 8;

	return (struct fathom_step){ plain ? FATHOM_STEP_READ_FIXED : FATHOM_STEP_READ,
				     (uint8_t)slot, (uint16_t)form, plain ? size : 0 };
}

/* Returns the step that skips an attribute of variable size. */
static struct fathom_step skip_step(uint64_t form)
{
	struct fathom_step step = { FATHOM_STEP_SKIP_FORM, 0, (uint16_t)form, 0 };

	if (form == DW_FORM_exprloc || form == DW_FORM_block)
		step.op = FATHOM_STEP_SKIP_BLOCK;
	else if (form == DW_FORM_udata || form == DW_FORM_sdata || form == DW_FORM_ref_udata ||
		 form == DW_FORM_strx || form == DW_FORM_addrx || form == DW_FORM_loclistx ||
		 form == DW_FORM_rnglistx)
		step.op = FATHOM_STEP_SKIP_LEB;
	return step;
}

/*
 * Sets @a->fixed if no attribute is wanted and all are of fixed size, as in most abbreviations.
 * Else returns false and leaves the cursor where it was.
 */
static bool sum_sizes(struct fathom_cursor *c, const struct sizes *sizes, struct fathom_abbrev *a)
{
	struct fathom_cursor here = *c;
	uint32_t fixed = 0;

	while (here.end - here.p >= 2 && (here.p[0] | here.p[1])) {
		const uint8_t form = here.p[1];

		if ((here.p[0] | form) & 0x80 || form >= sizeof sizes->of ||
		    sizes->of[form] == VARIES)
			return false;
		here.p += 2;
		fixed += sizes->of[form];
		if (form == DW_FORM_implicit_const)
			cur_skip_leb(&here);
	}
	if (here.end - here.p < 2 || fixed >= FATHOM_ABBREV_VARIES)
		return false;
	c->p = here.p + 2;
	a->fixed = (uint16_t)fixed;
	return true;
}

/* Compiles the attributes of @a. The cursor stands after its has_children byte. */
static fathom_err read_attributes(struct fathom_cursor *c, struct fathom_abbrevs *t,
				  const struct sizes *sizes, struct fathom_abbrev *a)
{
	struct fathom_step *const first = t->steps + t->n_steps;
	struct fathom_step *const end = t->steps + t->cap_steps;
	struct fathom_step *step = first; /* next one to write */
	const uint32_t wanted =
		a->kind == FATHOM_DIE_OTHER && !a->has_children ? 0 : slots_of_kind[a->kind];
	uint32_t skipped = 0; /* bytes to skip before the next step */
	uint32_t fixed = 0;
	uint32_t present = 0;
	bool varies = false;
	uint64_t at;
	uint64_t form;

	if (!wanted && sum_sizes(c, sizes, a))
		return FATHOM_OK;
	for (read_pair(c, &at, &form); at | form; read_pair(c, &at, &form)) {
		const enum fathom_slot slot = wanted ? slot_of(wanted, at) : FATHOM_AT_COUNT;
		const unsigned size = size_of(sizes, form, t->encoding);

		if (slot == FATHOM_AT_COUNT && size != VARIES) {
			skipped += size;
			fixed += size;
			if (form == DW_FORM_implicit_const)
				cur_skip_leb(c);
			continue;
		}
		if (form > UINT16_MAX)
			return FATHOM_E_CORRUPT;
		if (step - first > FATHOM_MAX_STEPS - 3)
			return FATHOM_E_LIMIT;
		if (end - step < 3)
			return t->cap_steps >= FATHOM_MAX_ABBREV_STEPS ? FATHOM_E_LIMIT
								       : FATHOM_GROW;
		if (slot == FATHOM_AT_SIBLING && form == DW_FORM_ref4 && !varies &&
		    fixed < FATHOM_ABBREV_NO_SIBLING)
			a->sibling = (uint8_t)fixed;
		if (skipped)
			*step++ = (struct fathom_step){ FATHOM_STEP_SKIP, 0, 0, skipped };
		skipped = 0;
		*step = slot == FATHOM_AT_COUNT ? skip_step(form) : read_step(slot, form, size);
		if (form == DW_FORM_implicit_const) {
			const uint64_t off = (uint64_t)(c->p - t->section);

			if (off > UINT32_MAX)
				return FATHOM_E_LIMIT;
			step->op = FATHOM_STEP_CONST;
			step->arg = (uint32_t)off;
			cur_skip_leb(c);
		}
		step++;
		present |= BIT(slot);
		varies |= size == VARIES;
		fixed += size == VARIES ? 0 : size;
	}
	if (!cur_ok(c))
		return FATHOM_E_CORRUPT;
	/* An entry of fixed size of which nothing is read needs no steps. */
	if (skipped && step != first)
		*step++ = (struct fathom_step){ FATHOM_STEP_SKIP, 0, 0, skipped };
	if (a->kind == FATHOM_DIE_FUNCTION &&
	    !(present & (BIT(FATHOM_AT_LOW_PC) | BIT(FATHOM_AT_RANGES))))
		a->kind = FATHOM_DIE_ABSTRACT;
	a->fixed = varies || fixed >= FATHOM_ABBREV_VARIES ? FATHOM_ABBREV_VARIES : (uint16_t)fixed;
	if (skipped && step == first && a->fixed == FATHOM_ABBREV_VARIES) {
		if (step == end)
			return FATHOM_GROW;
		*step++ = (struct fathom_step){ FATHOM_STEP_SKIP, 0, 0, skipped };
	}
	a->n_steps = (uint8_t)(step - first);
	t->n_steps += a->n_steps;
	return FATHOM_OK;
}

static void skip_attributes(struct fathom_cursor *c)
{
	uint64_t at;
	uint64_t form;

	for (read_pair(c, &at, &form); at | form; read_pair(c, &at, &form))
		if (form == DW_FORM_implicit_const)
			cur_skip_leb(c);
}

/* Moves the item at @root of a heap of @n down to its place. */
static void sift_down(struct fathom_abbrev *a, uint32_t root, uint32_t n)
{
	const struct fathom_abbrev item = a[root];
	uint32_t child;

	while ((child = 2 * root + 1) < n) {
		if (child + 1 < n && a[child + 1].code > a[child].code)
			child++;
		if (a[child].code <= item.code)
			break;
		a[root] = a[child];
		root = child;
	}
	a[root] = item;
}

/* Heap-sorts: in place, and n log n in the worst case, which a file may be made for. */
static void sort_by_code(struct fathom_abbrev *a, uint32_t n)
{
	for (uint32_t i = n / 2; i--;)
		sift_down(a, i, n);
	for (uint32_t end = n; end-- > 1;) {
		const struct fathom_abbrev largest = a[0];

		a[0] = a[end];
		a[end] = largest;
		sift_down(a, 0, end);
	}
}

/* Enters @a, whose code takes one byte, into skip[] and pass[]. The first of a code counts. */
static void enter_short(struct fathom_abbrevs *t, const struct fathom_abbrev *a)
{
	const bool other = a->kind == FATHOM_DIE_OTHER;

	if (t->pass[a->code] || t->skip[a->code] ||
	    !(other || a->kind == FATHOM_DIE_TYPE || a->kind == FATHOM_DIE_ABSTRACT))
		return;
	if (!a->has_children && a->fixed < FATHOM_PASS_SIBLING - 1) {
		t->pass[a->code] = (uint16_t)(a->fixed + 1);
		t->skip[a->code] = other ? t->pass[a->code] : 0;
	} else if (a->has_children && a->sibling != FATHOM_ABBREV_NO_SIBLING) {
		t->pass[a->code] = (uint16_t)(FATHOM_PASS_SIBLING + a->sibling + 1);
	}
}

fathom_err fathom_abbrevs_read(const struct fathom_dwarf *dwarf, uint64_t off,
			       struct fathom_encoding encoding, uint64_t last,
			       struct fathom_abbrevs *t, struct fathom_errinfo *reterr)
{
	const struct fathom_bytes section = dwarf->section[FATHOM_DEBUG_ABBREV];
	struct fathom_cursor c = cur_init(bytes_from(section, off), dwarf->swap);
	struct sizes sizes;
	bool ordered = true;
	fathom_err err = FATHOM_OK;

	t->n_abbrevs = 0;
	t->n_steps = 0;
	t->encoding = encoding;
	t->dense = true;
	t->off = off;
	t->section = section.data;
	t->swap = dwarf->swap;
	memset(t->skip, 0, sizeof t->skip);
	memset(t->pass, 0, sizeof t->pass);
	init_sizes(&sizes, encoding);
	if (off >= section.size)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, ".debug_abbrev", off,
				   "abbreviation table outside the section");
	for (;;) {
		const uint64_t at = (uint64_t)(c.p - section.data);
		struct fathom_abbrev a = { .first_step = t->n_steps };
		const uint64_t code = cur_uleb(&c);
		const uint64_t tag = code ? cur_uleb(&c) : 0;
		const uint8_t children = code ? cur_u8(&c) : 0;

		if (!cur_ok(&c) || code > UINT32_MAX || at - off > UINT32_MAX / 2)
			return fathom_fail(reterr, FATHOM_E_CORRUPT, ".debug_abbrev", at,
					   "damaged abbreviation");
		if (!code)
			break;
		if (last && code != last) {
			skip_attributes(&c);
			continue;
		}
		if (t->n_abbrevs == FATHOM_MAX_ABBREVS)
			return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_abbrev", at,
					   "more than 2^20 abbreviations in one table");
		if (t->n_abbrevs == t->cap_abbrevs)
			return FATHOM_GROW;
		a.code = (uint32_t)code;
		a.attributes = (uint32_t)((uint64_t)(c.p - section.data) - off);
		a.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0;
		a.sibling = FATHOM_ABBREV_NO_SIBLING;
		a.kind = (uint8_t)kind_of_tag(tag);
		a.has_children = children != 0;
		err = read_attributes(&c, t, &sizes, &a);
		if (err < 0)
			return fathom_fail(reterr, err, ".debug_abbrev", at,
					   err == FATHOM_E_LIMIT ? "too many attributes"
								 : "damaged abbreviation");
		if (err == FATHOM_GROW)
			return err;
		t->dense &= code == t->n_abbrevs + 1u;
		ordered &= !t->n_abbrevs || t->abbrevs[t->n_abbrevs - 1].code < code;
		t->abbrevs[t->n_abbrevs++] = a;
		if (code < FATHOM_ABBREV_SHORT)
			enter_short(t, &a);
		if (code == last)
			break;
	}
	if (!ordered)
		sort_by_code(t->abbrevs, t->n_abbrevs);
	t->end = (uint64_t)(c.p - section.data);
	return FATHOM_OK;
}

const struct fathom_abbrev *fathom_abbrevs_search(const struct fathom_abbrevs *t, uint64_t code)
{
	const uint32_t low = (uint32_t)FATHOM_BISECT(t->n_abbrevs, i, t->abbrevs[i].code < code);

	return low < t->n_abbrevs && t->abbrevs[low].code == code ? &t->abbrevs[low] : NULL;
}
