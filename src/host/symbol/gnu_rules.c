/* SPDX-License-Identifier: MIT */
#include "host/symbol/gnu_rules.h"

/* Returns the table from @source of the main (@of_main) or the debug file, or FATHOM_NONE. */
static uint32_t table_from(const struct fathom_symbol_set *set, bool of_main,
			   enum fathom_source source)
{
	for (uint32_t t = 0; t < set->n_tables; t++)
		if ((set->table[t].object == set->main) == of_main &&
		    set->table[t].view.source == (uint8_t)source)
			return t;
	return FATHOM_NONE;
}

struct fathom_gnu_tables fathom_gnu_tables(const struct fathom_symbol_set *set)
{
	struct fathom_gnu_tables tables = {
		.separate = table_from(set, false, FATHOM_SOURCE_SYMTAB),
		.own = table_from(set, true, FATHOM_SOURCE_SYMTAB),
	};

	/* Entry 0 is no symbol. */
	if (tables.own == FATHOM_NONE || set->table[tables.own].view.count < 2)
		tables.own = table_from(set, true, FATHOM_SOURCE_DYNSYM);
	return tables;
}

bool fathom_gnu_same_section(const struct fathom_symbol_set *set, uint32_t table, uint32_t section)
{
	const struct fathom_object *main = set->main;
	const struct fathom_object *o = set->table[table].object;

	if (o == main)
		return true;
	return section < o->n_sections && section < main->n_sections &&
	       str_equal(o->sections[section].header.name, main->sections[section].header.name);
}

bool fathom_gnu_counts(const struct fathom_symtab *t, const struct fathom_symbol *s)
{
	switch (s->type) {
	case STT_NOTYPE:
		/*
		 * The tools take no assembler's mark for a function; those before binutils 2.44
		 * took ".L0 ".
		 */
		return (s->size || s->bind != STB_LOCAL || s->visibility != STV_HIDDEN) &&
		       !fathom_symbol_is_mapping(t, s) && !fathom_symbol_is_fake(t, s);
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	default:
		return false;
	}
}

/* Bytes of a descriptor with an environment pointer, which old compilers state as symbol sizes. */
#define DESCRIPTOR_SIZE 24

/* Returns the section of table @table's object that is section @section of the main file. */
static uint32_t same_section_of(const struct fathom_symbol_set *set, uint32_t table,
				uint32_t section)
{
	const struct fathom_object *o = set->table[table].object;

	return o == set->main
		       ? section
		       : fathom_object_find(o, set->main->sections[section].header.name.data);
}

bool fathom_gnu_place(const struct fathom_symbol_set *set, uint32_t table, struct fathom_symbol *s,
		      uint64_t *ret_svma, struct fathom_symbol_region *ret_region)
{
	const struct fathom_symbol_table *t = &set->table[table];
	const bool relative = t->object->image.type == ET_REL;
	uint64_t svma = s->value;

	if (relative && s->section < t->object->n_sections)
		svma += t->object->sections[s->section].base;
	if (!fathom_symbol_follow(t, svma, ret_svma, ret_region))
		return fathom_symbol_place(t, s, ret_svma, ret_region);
	s->section = same_section_of(set, table, fathom_object_section_at(set->main, *ret_svma));
	s->size = s->size == DESCRIPTOR_SIZE ? 0 : s->size;
	return true;
}

bool fathom_gnu_files_next(struct fathom_gnu_files *f, uint32_t i, const struct fathom_symbol *s)
{
	if (s->type != STT_FILE) {
		f->symbol = true;
		return false;
	}
	f->file = i;
	f->late |= f->symbol;
	return true;
}

uint32_t fathom_gnu_files_of(const struct fathom_gnu_files *f, const struct fathom_symbol *s)
{
	return s->bind == STB_LOCAL || !f->late ? f->file : 0;
}

struct fathom_str fathom_gnu_name(const struct fathom_symtab *t, uint32_t i)
{
	struct fathom_str name = { NULL, 0 };
	struct fathom_symbol s;

	if (i) {
		fathom_symtab_get(t, i, &s);
		name = fathom_symtab_name(t, &s);
		name.data = name.data ? name.data : "";
	}
	return name;
}

/* Looks in one table for the symbol at @svma, which is in section @section. */
static bool scan_table(const struct fathom_symbol_set *set, uint32_t table, uint32_t section,
		       uint64_t svma, struct fathom_symbol_hit *ret)
{
	const struct fathom_symbol_table *t = &set->table[table];
	const bool by_value = t->object->image.type != ET_REL && !t->opd;
	struct fathom_gnu_files files = { 0 };
	uint64_t best_size = 0;
	uint32_t best = 0;
	uint32_t file = 0;

	ret->start = 0;
	for (uint32_t i = 1; i < t->view.count; i++) {
		struct fathom_symbol_region region;
		struct fathom_symbol s;
		uint64_t start;
		uint64_t size;

		fathom_symtab_get(&t->view, i, &s);
		/* Nearly all symbols end here. */
		if (fathom_gnu_files_next(&files, i, &s) ||
		    (by_value && (s.value > svma || s.value < ret->start)) ||
		    (!t->opd && t->object->n_sections && s.section != section))
			continue;
		if (!fathom_gnu_counts(&t->view, &s) ||
		    !fathom_gnu_place(set, table, &s, &start, &region) ||
		    (t->object->n_sections && s.section != section) || start > svma)
			continue;
		size = s.size ? s.size : 1;
		if (start < ret->start || (start == ret->start && size <= best_size))
			continue;
		best = i;
		best_size = size;
		file = fathom_gnu_files_of(&files, &s);
		ret->start = start;
		ret->size = s.size;
	}
	ret->source = t->view.source;
	ret->name = fathom_gnu_name(&t->view, best);
	ret->file = fathom_gnu_name(&t->view, file);
	return best != 0;
}

bool fathom_gnu_scan(const struct fathom_symbol_set *set, uint64_t svma,
		     struct fathom_symbol_hit *ret)
{
	const struct fathom_gnu_tables tables = fathom_gnu_tables(set);
	const uint32_t section = fathom_object_section_at(set->main, svma);

	if (!section && set->main->n_sections)
		return false;
	if (tables.separate != FATHOM_NONE &&
	    fathom_gnu_same_section(set, tables.separate, section) &&
	    scan_table(set, tables.separate, section, svma, ret))
		return true;
	return tables.own != FATHOM_NONE && scan_table(set, tables.own, section, svma, ret);
}
