/* SPDX-License-Identifier: MIT */
#include "abbrev.h"

#include "../base/limits.h"

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

/* The slot of attribute @at in a root, or FATHOM_AT_COUNT. */
static enum fathom_slot unit_slot(uint64_t at)
{
	switch (at) {
	case DW_AT_stmt_list:
		return FATHOM_AT_STMT_LIST;
	case DW_AT_comp_dir:
		return FATHOM_AT_COMP_DIR;
	case DW_AT_language:
		return FATHOM_AT_LANGUAGE;
	case DW_AT_str_offsets_base:
		return FATHOM_AT_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return FATHOM_AT_ADDR_BASE;
	case DW_AT_rnglists_base:
		return FATHOM_AT_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return FATHOM_AT_GNU_RANGES_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return FATHOM_AT_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return FATHOM_AT_DWO_ID;
	default:
		return FATHOM_AT_COUNT;
	}
}

static enum fathom_slot function_slot(uint64_t at)
{
	switch (at) {
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return FATHOM_AT_LINKAGE_NAME;
	case DW_AT_abstract_origin:
		return FATHOM_AT_ORIGIN;
	case DW_AT_specification:
		return FATHOM_AT_SPECIFICATION;
	case DW_AT_call_file:
		return FATHOM_AT_CALL_FILE;
	case DW_AT_call_line:
		return FATHOM_AT_CALL_LINE;
	case DW_AT_call_column:
		return FATHOM_AT_CALL_COLUMN;
	case DW_AT_GNU_discriminator:
		return FATHOM_AT_DISCRIMINATOR;
	default:
		return FATHOM_AT_COUNT;
	}
}

/* The slot that attribute @at of an entry of @kind is read into, or FATHOM_AT_COUNT. */
static enum fathom_slot slot_of(enum fathom_die_kind kind, uint64_t at)
{
	if (kind == FATHOM_DIE_OTHER || kind == FATHOM_DIE_SPACE)
		return FATHOM_AT_COUNT;
	if (at == DW_AT_sibling)
		return FATHOM_AT_SIBLING;
	if (kind == FATHOM_DIE_TYPE)
		return FATHOM_AT_COUNT;
	switch (at) {
	case DW_AT_low_pc:
		return FATHOM_AT_LOW_PC;
	case DW_AT_high_pc:
		return FATHOM_AT_HIGH_PC;
	case DW_AT_ranges:
		return FATHOM_AT_RANGES;
	case DW_AT_name:
		return kind == FATHOM_DIE_BLOCK ? FATHOM_AT_COUNT : FATHOM_AT_NAME;
	default:
		return kind == FATHOM_DIE_UNIT    ? unit_slot(at)
		       : kind == FATHOM_DIE_BLOCK ? FATHOM_AT_COUNT
						  : function_slot(at);
	}
}

/* Appends @step, joining runs of skipped bytes; false when the storage is full. */
static bool add_step(struct fathom_abbrevs *t, struct fathom_abbrev *a, struct fathom_step step)
{
	struct fathom_step *last = a->n_steps ? &t->steps[t->n_steps - 1] : NULL;

	if (step.op == FATHOM_STEP_SKIP && last && last->op == FATHOM_STEP_SKIP) {
		last->arg += step.arg;
		return true;
	}
	if (step.op == FATHOM_STEP_SKIP && !step.arg)
		return true;
	if (t->n_steps == t->cap_steps)
		return false;
	t->steps[t->n_steps++] = step;
	a->n_steps++;
	return true;
}

/* Compiles the attributes of @a; the cursor stands behind its has_children byte. */
static fathom_err read_attributes(struct fathom_cursor *c, struct fathom_abbrevs *t,
				  struct fathom_abbrev *a)
{
	uint64_t fixed = 0;
	bool varies = false;

	for (;;) {
		const uint64_t at = cur_uleb(c);
		const uint64_t form = cur_uleb(c);
		const uint64_t const_off = (uint64_t)(c->p - t->section);
		struct fathom_step step = { .form = (uint16_t)form };
		enum fathom_slot slot;
		int size;

		if (!cur_ok(c) || form > UINT16_MAX)
			return FATHOM_E_CORRUPT;
		if (form == DW_FORM_implicit_const)
			cur_skip_leb(c);
		if (!at && !form)
			break;
		if (a->n_steps == UINT16_MAX)
			return FATHOM_E_LIMIT;
		slot = slot_of((enum fathom_die_kind)a->kind, at);
		size = fathom_form_size(form, t->encoding);
		varies |= size < 0;
		fixed += size > 0 ? (uint64_t)size : 0;
		if (slot != FATHOM_AT_COUNT && form == DW_FORM_implicit_const) {
			if (const_off > UINT32_MAX)
				return FATHOM_E_LIMIT;
			step.op = FATHOM_STEP_CONST;
			step.arg = (uint32_t)const_off;
		} else if (slot != FATHOM_AT_COUNT) {
			step.op = FATHOM_STEP_READ;
		} else if (size >= 0) {
			step.op = FATHOM_STEP_SKIP;
			step.arg = (uint32_t)size;
		} else {
			step.op = FATHOM_STEP_SKIP_FORM;
		}
		step.slot = (uint8_t)slot;
		if (!add_step(t, a, step))
			return t->n_steps >= FATHOM_MAX_ABBREV_STEPS ? FATHOM_E_LIMIT : FATHOM_GROW;
	}
	a->fixed = varies || fixed >= FATHOM_ABBREV_VARIES ? FATHOM_ABBREV_VARIES : (uint16_t)fixed;
	return FATHOM_OK;
}

/* Shell sort: tables whose codes are not in order are rare and small. */
static void sort_by_code(struct fathom_abbrev *a, uint32_t n)
{
	for (uint32_t gap = n / 2; gap; gap /= 2) {
		for (uint32_t i = gap; i < n; i++) {
			const struct fathom_abbrev item = a[i];
			uint32_t j = i;

			for (; j >= gap && a[j - gap].code > item.code; j -= gap)
				a[j] = a[j - gap];
			a[j] = item;
		}
	}
}

fathom_err fathom_abbrevs_read(const struct fathom_dwarf *dwarf, uint64_t off,
			       struct fathom_encoding encoding, struct fathom_abbrevs *t,
			       struct fathom_errinfo *reterr)
{
	const struct fathom_bytes section = dwarf->section[FATHOM_DEBUG_ABBREV];
	struct fathom_cursor c = cur_init(bytes_from(section, off), dwarf->swap);
	bool ordered = true;
	fathom_err err = FATHOM_OK;

	t->n_abbrevs = 0;
	t->n_steps = 0;
	t->encoding = encoding;
	t->dense = true;
	t->off = off;
	t->section = section.data;
	t->swap = dwarf->swap;
	if (off >= section.size)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, ".debug_abbrev", off,
				   "abbreviation table outside the section");
	for (;;) {
		const uint64_t at = (uint64_t)(c.p - section.data);
		struct fathom_abbrev a = { .first_step = t->n_steps };
		const uint64_t code = cur_uleb(&c);
		const uint64_t tag = code ? cur_uleb(&c) : 0;
		const uint8_t children = code ? cur_u8(&c) : 0;

		if (!cur_ok(&c) || code > UINT32_MAX)
			return fathom_fail(reterr, FATHOM_E_CORRUPT, ".debug_abbrev", at,
					   "damaged abbreviation");
		if (!code)
			break;
		if (t->n_abbrevs == FATHOM_MAX_ABBREVS)
			return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_abbrev", at,
					   "more than 2^20 abbreviations in one table");
		if (t->n_abbrevs == t->cap_abbrevs)
			return FATHOM_GROW;
		a.code = (uint32_t)code;
		a.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0;
		a.kind = (uint8_t)kind_of_tag(tag);
		a.has_children = children != 0;
		err = read_attributes(&c, t, &a);
		if (err < 0)
			return fathom_fail(reterr, err, ".debug_abbrev", at,
					   err == FATHOM_E_LIMIT ? "too many attributes"
								 : "damaged abbreviation");
		if (err == FATHOM_GROW)
			return err;
		t->dense &= code == t->n_abbrevs + 1u;
		ordered &= !t->n_abbrevs || t->abbrevs[t->n_abbrevs - 1].code < code;
		t->abbrevs[t->n_abbrevs++] = a;
	}
	if (!ordered)
		sort_by_code(t->abbrevs, t->n_abbrevs);
	t->end = (uint64_t)(c.p - section.data);
	return FATHOM_OK;
}

const struct fathom_abbrev *fathom_abbrevs_search(const struct fathom_abbrevs *t, uint64_t code)
{
	uint32_t low = 0;
	uint32_t high = t->n_abbrevs;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;

		if (t->abbrevs[mid].code < code)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n_abbrevs && t->abbrevs[low].code == code ? &t->abbrevs[low] : NULL;
}
