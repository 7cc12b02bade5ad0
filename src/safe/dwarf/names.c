/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/names.h"

#include "safe/dwarf/form.h"

#define SECTION ".debug_names"

enum { DW_IDX_compile_unit = 1 };

/* Hashes the case-folded name (DWARF 5, 7.33). Only ASCII is folded. */
static uint32_t hash_name(struct fathom_str name)
{
	uint32_t hash = 5381;

	for (uint32_t i = 0; i < name.size; i++) {
		uint8_t c = (uint8_t)name.data[i];

		if (c >= 'A' && c <= 'Z')
			c = (uint8_t)(c + ('a' - 'A'));
		hash = hash * 33 + c;
	}
	return hash;
}

void fathom_names_init(struct fathom_names_search *s, const struct fathom_dwarf *dwarf,
		       struct fathom_str name)
{
	*s = (struct fathom_names_search){
		.dwarf = dwarf,
		.tables = cur_init(dwarf->section[FATHOM_DEBUG_NAMES], dwarf->swap),
		.name = name,
		.hash = hash_name(name),
		.entries = cur_init((struct fathom_bytes){ NULL, 0 }, dwarf->swap),
	};
}

static struct fathom_bytes take_bytes(struct fathom_cursor *c, uint64_t size)
{
	const uint8_t *p = cur_take(c, size);

	return (struct fathom_bytes){ p, p ? size : 0 };
}

/* Returns entry @i of a table of @size-byte numbers; the caller has checked @i. */
static uint64_t table_get(const struct fathom_names_search *s, struct fathom_bytes table,
			  uint64_t i, uint8_t size)
{
	struct fathom_cursor c = cur_init(bytes_slice(table, i * size, size), s->dwarf->swap);

	return cur_uint(&c, size);
}

/* Opens the next table of the section and finds the name's bucket in it. */
static fathom_err open_table(struct fathom_names_search *s)
{
	const uint64_t length = cur_initial_length(&s->tables, &s->offset_size);
	struct fathom_cursor c = cur_sub(&s->tables, length);
	const uint16_t version = cur_u16(&c);
	uint32_t n_local_types;
	uint32_t n_foreign_types;
	uint32_t abbrev_size;
	struct fathom_bytes buckets;

	cur_skip(&c, 2);
	s->n_units = cur_u32(&c);
	n_local_types = cur_u32(&c);
	n_foreign_types = cur_u32(&c);
	s->n_buckets = cur_u32(&c);
	s->n_names = cur_u32(&c);
	abbrev_size = cur_u32(&c);
	cur_skip(&c, (cur_u32(&c) + UINT64_C(3)) & ~UINT64_C(3)); /* augmentation */
	s->units = take_bytes(&c, (uint64_t)s->n_units * s->offset_size);
	cur_skip(&c, (uint64_t)n_local_types * s->offset_size);
	cur_skip(&c, (uint64_t)n_foreign_types * 8);
	buckets = take_bytes(&c, (uint64_t)s->n_buckets * 4);
	s->hashes = take_bytes(&c, s->n_buckets ? (uint64_t)s->n_names * 4 : 0);
	s->string_offsets = take_bytes(&c, (uint64_t)s->n_names * s->offset_size);
	s->entry_offsets = take_bytes(&c, (uint64_t)s->n_names * s->offset_size);
	s->abbrevs = take_bytes(&c, abbrev_size);
	s->pool = (struct fathom_bytes){ c.p, cur_left(&c) };
	if (!cur_ok(&c) || version != 5)
		return FATHOM_E_CORRUPT;
	s->next_name = s->n_buckets ? (uint32_t)table_get(s, buckets, s->hash % s->n_buckets, 4)
				    : (s->n_names ? 1 : 0);
	return FATHOM_OK;
}

/* Moves to the next entry of this bucket that has the name; false at the end of the bucket. */
static bool find_name(struct fathom_names_search *s)
{
	while (s->next_name && s->next_name <= s->n_names) {
		const uint32_t i = s->next_name - 1;
		uint32_t hash = s->hash;
		struct fathom_str name;

		if (s->n_buckets) {
			hash = (uint32_t)table_get(s, s->hashes, i, 4);
			if (hash % s->n_buckets != s->hash % s->n_buckets)
				break;
		}
		s->next_name++;
		if (hash != s->hash)
			continue;
		name = fathom_bytes_str(s->dwarf->section[FATHOM_DEBUG_STR],
					table_get(s, s->string_offsets, i, s->offset_size));
		if (!name.data || !str_equal(name, s->name))
			continue;
		s->entries = cur_init(
			bytes_from(s->pool, table_get(s, s->entry_offsets, i, s->offset_size)),
			s->dwarf->swap);
		return true;
	}
	s->next_name = 0;
	return false;
}

/* Moves @c to the attributes of abbreviation @code; false if there is none. */
static bool find_abbrev(struct fathom_cursor *c, uint64_t code)
{
	while (cur_left(c)) {
		const uint64_t found = cur_uleb(c);
		uint64_t index;
		uint64_t form;

		if (!found)
			return false;
		cur_skip_leb(c); /* tag */
		if (found == code)
			return cur_ok(c);
		do {
			index = cur_uleb(c);
			form = cur_uleb(c);
			if (form == DW_FORM_implicit_const)
				cur_skip_leb(c);
		} while (cur_ok(c) && (index || form));
	}
	return false;
}

/* Reads one entry of the pool: its unit, FATHOM_END at the end of the series, or an error. */
static fathom_err read_entry(struct fathom_names_search *s, uint64_t *ret_unit_off)
{
	const struct fathom_encoding e = { 5, 8, s->offset_size };
	const uint64_t code = cur_uleb(&s->entries);
	struct fathom_cursor abbrev = cur_init(s->abbrevs, s->dwarf->swap);
	uint64_t unit = 0; /* absent if the table has one unit */

	if (!code)
		return cur_ok(&s->entries) ? FATHOM_END : FATHOM_E_CORRUPT;
	if (!find_abbrev(&abbrev, code))
		return FATHOM_E_CORRUPT;
	for (;;) {
		const uint64_t index = cur_uleb(&abbrev);
		const uint64_t form = cur_uleb(&abbrev);
		struct fathom_attr a = { 0, DW_FORM_implicit_const };

		if (form == DW_FORM_implicit_const)
			a.value = (uint64_t)cur_sleb(&abbrev);
		if (!cur_ok(&abbrev))
			return FATHOM_E_CORRUPT;
		if (!index && !form)
			break;
		if (form != DW_FORM_implicit_const)
			fathom_form_read(&s->entries, form, e, s->pool.data, &a);
		if (index == DW_IDX_compile_unit)
			unit = a.value;
	}
	if (!cur_ok(&s->entries) || unit >= s->n_units)
		return FATHOM_E_CORRUPT;
	*ret_unit_off = table_get(s, s->units, unit, s->offset_size);
	return FATHOM_OK;
}

fathom_err fathom_names_next(struct fathom_names_search *s, uint64_t *ret_unit_off,
			     struct fathom_errinfo *reterr)
{
	const uint8_t *section = s->dwarf->section[FATHOM_DEBUG_NAMES].data;

	for (;;) {
		const uint8_t *at = s->tables.p;
		fathom_err err = FATHOM_END;

		if (cur_left(&s->entries))
			err = read_entry(s, ret_unit_off);
		else if (s->next_name)
			(void)find_name(s);
		else if (cur_left(&s->tables))
			err = open_table(s) < 0 ? FATHOM_E_CORRUPT : FATHOM_END;
		else
			return FATHOM_END;
		if (err == FATHOM_OK)
			return err;
		if (err < 0) {
			cur_fail(&s->tables);
			s->next_name = 0;
			s->entries = s->tables;
			return fathom_fail(reterr, err, SECTION, (uint64_t)(at - section),
					   "damaged name index");
		}
	}
}
