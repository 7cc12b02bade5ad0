/* SPDX-License-Identifier: MIT */
/* Finds symbols by their linkage names. */
#include "host/symbol/name_search.h"

/* Returns whether symbol @k, in full @full, is called @wanted, with or without its version. */
static bool is_called(struct fathom_str full, const struct fathom_contender *k,
		      struct fathom_str wanted)
{
	return str_equal(full, wanted) || str_equal(k->c.name, wanted);
}

/* Returns whether @k is better than @best, which has the same name. */
static bool is_better(const struct fathom_contender *k, const struct fathom_contender *best)
{
	/* The default version answers for a name without one. */
	if (k->c.default_version != best->c.default_version)
		return k->c.default_version;
	return fathom_symbol_preferred(&k->c, &best->c);
}

/* Stores symbol @s of table @t of @set in @ret if it is in the file and called @wanted. */
static bool take_symbol(const struct fathom_symbol_set *set, uint8_t t,
			const struct fathom_symbol *s, struct fathom_str wanted,
			struct fathom_contender *ret)
{
	const struct fathom_symtab *view = &set->table[t].view;
	const struct fathom_bytes rest = bytes_from(view->strings, s->name);
	struct fathom_symbol_region region;
	struct fathom_str full;
	uint64_t svma;

	/* Nearly all symbols end here, before the end of the name is looked for. */
	if (rest.size < wanted.size || memcmp(rest.data, wanted.data, wanted.size) != 0)
		return false;
	full = fathom_symtab_name(view, s);
	return full.size >= wanted.size && fathom_symbol_place(&set->table[t], s, &svma, &region) &&
	       fathom_symbol_contend(set, t, s, svma, ret) && is_called(full, ret, wanted);
}

/* The look-up of a single name. */
struct single {
	struct fathom_str name;
	uint64_t least; /* bytes of the variable that it must be, unless most is 0 */
	uint64_t most;
	struct fathom_contender best;
	bool found;
};

/* Returns whether symbol @s qualifies, apart from its name. */
static bool may_be(const struct single *w, const struct fathom_symbol *s)
{
	return !w->most || ((s->type == STT_OBJECT || s->type == STT_NOTYPE) &&
			    (!s->size || (s->size >= w->least && s->size <= w->most)));
}

static bool find_single(const struct fathom_symbol_set *set, struct single *w, uint64_t *ret)
{
	for (uint8_t t = 0; t < set->n_tables; t++)
		for (uint32_t i = 0; i < set->table[t].view.count; i++) {
			struct fathom_contender k;
			struct fathom_symbol s;

			fathom_symtab_get(&set->table[t].view, i, &s);
			if (!may_be(w, &s) || !take_symbol(set, t, &s, w->name, &k))
				continue;
			if (!w->found || is_better(&k, &w->best))
				w->best = k;
			w->found = true;
		}
	if (w->found)
		*ret = w->best.svma;
	return w->found;
}

bool fathom_symbols_find(const struct fathom_symbol_set *set, const char *name, uint64_t *ret)
{
	struct single w = { .name = { name, (uint32_t)strlen(name) } };

	return find_single(set, &w, ret);
}

bool fathom_symbols_find_variable(const struct fathom_symbol_set *set, const char *name,
				  uint64_t least, uint64_t most, uint64_t *ret)
{
	struct single w = { .name = { name, (uint32_t)strlen(name) },
			    .least = least,
			    .most = most };

	return find_single(set, &w, ret);
}

/* Makes symbol @i of table @t the match of name @number, if it is called so and the best so far. */
static void consider(const struct fathom_symbol_set *set, uint8_t t, uint32_t i,
		     struct fathom_name_search *search, uint32_t number)
{
	struct fathom_name_match *m;
	struct fathom_contender k;
	struct fathom_symbol s;

	fathom_symtab_get(&set->table[t].view, i, &s);
	if (search->wanted[number].is_found ||
	    !take_symbol(set, t, &s, search->wanted[number].name, &k))
		return;
	if (search->wants_all && s.bind == STB_LOCAL &&
	    !fathom_name_search_add_place(search, number, k.svma))
		return;
	m = fathom_name_search_match(search, number);
	/* A match without a name is new. */
	if (!m || (m->best.c.name.data && !is_better(&k, &m->best)))
		return;
	m->best = k;
	m->svma = k.svma;
	m->is_local = s.bind == STB_LOCAL;
}

void fathom_symbols_search(const struct fathom_symbol_set *set, uint8_t t,
			   struct fathom_name_search *search)
{
	const struct fathom_symtab *view = &set->table[t].view;
	const uint64_t size = view->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const char *strings = (const char *)view->strings.data;

	for (uint32_t i = 0; i < view->count; i++) {
		/* st_name is the first word of 32-bit and of 64-bit entries. */
		const uint32_t off = load_u32(view->entries.data + i * size, view->swap);

		if (!off || off >= view->strings.size)
			continue;
		for (uint32_t k = fathom_name_keys_first(&search->keys, strings + off,
							 view->strings.size - off);
		     k; k = fathom_name_keys_next(&search->keys, k))
			consider(set, t, i, search, search->keys.item[k - 1].value);
	}
}

void fathom_symbols_search_index(const struct fathom_symbol_set *set, uint8_t t,
				 const struct fathom_name_index *x, struct fathom_name_search *s)
{
	for (uint32_t number = 0; number < s->n_wanted; number++)
		for (uint32_t i = fathom_name_index_first(x, s->wanted[number].name); i;
		     i = x->next[i])
			consider(set, t, i, s, number);
}
