/* SPDX-License-Identifier: MIT */
/* Finds symbols by their linkage names. */
#include "host/symbol/tables.h"

/* Returns whether symbol @k, in full @full, is called @wanted, with or without its version. */
static bool is_called(struct fathom_str full, const struct fathom_placed_contender *k,
		      struct fathom_str wanted)
{
	return str_equal(full, wanted) || str_equal(k->c.name, wanted);
}

/* Returns whether @k is better than @best, which has the same name. */
static bool is_better(const struct fathom_placed_contender *k,
		      const struct fathom_placed_contender *best)
{
	/* The default version answers for a name without one. */
	if (k->c.default_version != best->c.default_version)
		return k->c.default_version;
	return fathom_symbol_preferred(&k->c, &best->c);
}

/* Stores symbol @s of table @t of @set in @ret if it is in the file and called @wanted. */
static bool take_symbol(const struct fathom_symbol_set *set, uint8_t t,
			const struct fathom_symbol *s, struct fathom_str wanted,
			struct fathom_placed_contender *ret)
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
	struct fathom_placed_contender best;
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
			struct fathom_placed_contender k;
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
