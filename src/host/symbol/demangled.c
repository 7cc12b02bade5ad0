/* SPDX-License-Identifier: MIT */
/* Finds symbols by their demangled names, as people write them. */
#include "host/base/array.h"
#include "host/base/demangle.h"
#include "host/symbol/name_search.h"

/* Makes the symbol at @svma a match of name @number; @whole: it has its parameters, or none. */
static void add_match(struct fathom_name_search *search, uint32_t number, uint64_t svma, bool whole)
{
	struct fathom_wanted *w = &search->wanted[number];
	const bool is_first = !w->match;
	struct fathom_name_match *m = fathom_name_search_match(search, number);

	if (!m || (m->whole && !whole))
		return;
	m->ambiguous = !is_first && m->whole == whole && (m->ambiguous || m->svma != svma);
	m->whole = whole;
	m->svma = svma;
}

/* Looks up the first @size bytes of @name, a demangled one at @svma, among the wanted names. */
static void look_up(struct fathom_name_search *search, struct fathom_str name, uint32_t size,
		    uint64_t svma)
{
	const struct fathom_str part = { name.data, size };

	for (uint32_t k = fathom_name_keys_first(&search->keys, name.data, size); k;
	     k = fathom_name_keys_next(&search->keys, k)) {
		const uint32_t number = search->keys.item[k - 1].value;

		if (search->wanted[number].is_demangled && !search->wanted[number].is_found &&
		    str_equal(search->wanted[number].name, part))
			add_match(search, number, svma, size == name.size);
	}
}

static void search_symbol(const struct fathom_symbol_set *set, uint8_t table, uint32_t i,
			  struct fathom_bytes_array *text, struct fathom_name_search *search)
{
	const struct fathom_symbol_table *t = &set->table[table];
	struct fathom_symbol_region region;
	struct fathom_contender k;
	struct fathom_symbol symbol;
	struct fathom_str name;
	uint64_t svma;

	fathom_symtab_get(&t->view, i, &symbol);
	name = fathom_symtab_name(&t->view, &symbol);
	if (name.size < 3 || name.data[0] != '_' ||
	    !fathom_symbol_place(t, &symbol, &svma, &region) ||
	    !fathom_symbol_contend(set, table, &symbol, svma, &k))
		return;
	text->n = 0;
	if (fathom_demangle(k.c.name, false, text))
		return;
	name = (struct fathom_str){ text->items, (uint32_t)text->n };
	look_up(search, name, name.size, svma);
	/* Parameters may be left out: any parenthesis may open them. */
	for (uint32_t at = fathom_str_find(name, 0, '('); at < name.size;
	     at = fathom_str_find(name, at + 1, '('))
		look_up(search, name, at, svma);
}

void fathom_symbols_search_demangled(const struct fathom_symbol_set *set,
				     struct fathom_name_search *s)
{
	struct fathom_bytes_array text = { 0 };

	for (uint8_t t = 0; t < set->n_tables; t++)
		for (uint32_t i = 0; i < set->table[t].view.count; i++)
			search_symbol(set, t, i, &text, s);
	fathom_array_free(&text);
}
