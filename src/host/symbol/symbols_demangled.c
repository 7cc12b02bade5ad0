/* SPDX-License-Identifier: MIT */
/* Finding a symbol by its demangled name, as people write it. */
#include "../base/demangle.h"
#include "../base/memory.h"
#include "symbols.h"

/* Names that are not mangled do not hold these. */
static bool looks_demangled(const char *name)
{
	return strpbrk(name, "(:<") != NULL;
}

struct search {
	const struct fathom_symbol_set *set;
	struct fathom_str wanted;
	struct fathom_array text; /* the name being compared */
	uint64_t svma;
	bool whole; /* what was found has exactly the name that is wanted */
	bool found;
	bool ambiguous; /* several functions have it but for their parameters */
};

/* Whether @name is what is wanted; *@ret_whole: with its parameters, or without any. */
static bool matches(const struct search *s, struct fathom_str name, bool *ret_whole)
{
	*ret_whole = str_equal(name, s->wanted);
	return *ret_whole || (name.size > s->wanted.size && name.data[s->wanted.size] == '(' &&
			      memcmp(name.data, s->wanted.data, s->wanted.size) == 0);
}

static void look_at(struct search *s, uint8_t table, uint32_t i)
{
	const struct fathom_symbol_table *t = &s->set->table[table];
	struct fathom_symbol_region region;
	struct fathom_contender k;
	struct fathom_symbol symbol;
	struct fathom_str name;
	uint64_t svma;
	bool whole;

	fathom_symtab_get(&t->view, i, &symbol);
	name = fathom_symtab_name(&t->view, &symbol);
	if (name.size < 3 || name.data[0] != '_' ||
	    !fathom_symbol_place(t, &symbol, &svma, &region) ||
	    !fathom_symbol_contend(s->set, table, &symbol, svma, &k))
		return;
	s->text.n = 0;
	if (fathom_demangle(k.c.name, false, &s->text))
		return;
	name = (struct fathom_str){ s->text.data, (uint32_t)s->text.n };
	if (!matches(s, name, &whole) || (s->whole && !whole))
		return;
	s->ambiguous = s->found && s->whole == whole && (s->ambiguous || s->svma != svma);
	s->found = true;
	s->whole = whole;
	s->svma = svma;
}

bool fathom_symbols_find_demangled(const struct fathom_symbol_set *set, const char *name,
				   uint64_t *ret)
{
	struct search s = { .set = set, .wanted = { name, (uint32_t)strlen(name) } };

	if (!looks_demangled(name))
		return false;
	for (uint8_t t = 0; t < set->n_tables; t++)
		for (uint32_t i = 0; i < set->table[t].view.count; i++)
			look_at(&s, t, i);
	fathom_array_deinit(&s.text);
	if (!s.found || s.ambiguous)
		return false;
	*ret = s.svma;
	return true;
}
