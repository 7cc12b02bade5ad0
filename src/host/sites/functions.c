/* SPDX-License-Identifier: MIT */
#include "host/sites/functions.h"

#include <stdlib.h>

/* Adds a function if it is not known not to be code; false without memory. */
static bool add(struct fathom_functions *f, uint64_t svma, uint64_t end, bool is_symbol)
{
	return fathom_array_push(f, (struct fathom_function){ svma, end, is_symbol });
}

static bool add_symbol(struct fathom_functions *f, const struct fathom_symbol_table *t,
		       const struct fathom_symbol *s)
{
	struct fathom_symbol_region region;
	uint64_t svma;
	uint64_t room;

	if ((s->type != STT_FUNC && s->type != STT_GNU_IFUNC) || s->section == SHN_UNDEF ||
	    !fathom_symbol_place(t, s, &svma, &region) || !region.code)
		return true;
	room = region.high - svma;
	return add(f, svma, svma + (s->size < room ? s->size : room), true);
}

static bool add_symbols(struct fathom_functions *f, const struct fathom_symbol_set *set)
{
	for (uint32_t i = 0; i < set->n_tables; i++) {
		const struct fathom_symbol_table *t = &set->table[i];

		for (uint32_t k = 0; k < t->view.count; k++) {
			struct fathom_symbol s;

			fathom_symtab_get(&t->view, k, &s);
			if (!add_symbol(f, t, &s))
				return false;
		}
	}
	return true;
}

static bool add_fde(const struct fathom_fde *fde, void *data)
{
	return fde->low >= fde->high || add(data, fde->low, fde->high, false);
}

/* Orders functions by their starts; of one start symbols come first, then the longest. */
static int compare(const void *pa, const void *pb)
{
	const struct fathom_function *a = pa;
	const struct fathom_function *b = pb;
	int order = u64_compare(a->svma, b->svma);

	if (!order)
		order = u64_compare(b->is_symbol, a->is_symbol);
	return order ? order : u64_compare(b->end, a->end);
}

/* Makes one function of all that start together: an FDE may know the end that a symbol lacks. */
static void merge(struct fathom_functions *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct fathom_function *last = n ? &f->items[n - 1] : NULL;

		if (!last || last->svma != f->items[i].svma)
			f->items[n++] = f->items[i];
		else if (last->end <= last->svma)
			last->end = f->items[i].end;
	}
	f->n = n;
}

fathom_err fathom_functions_init(struct fathom_functions *f, struct fathom_module *m)
{
	*f = (struct fathom_functions){ 0 };
	if (!fathom_array_room(f, 1) || !add_symbols(f, &m->symbols))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_unwind_tables_walk(&m->unwind, false, add_fde, f));
	FATHOM_TRY(fathom_unwind_tables_walk(&m->unwind, true, add_fde, f));
	qsort(f->items, f->n, sizeof *f->items, compare);
	merge(f);
	return FATHOM_OK;
}

void fathom_functions_deinit(struct fathom_functions *f)
{
	fathom_array_free(f);
}

size_t fathom_functions_from(const struct fathom_functions *f, uint64_t svma)
{
	return FATHOM_BISECT(f->n, i, f->items[i].svma < svma);
}

const struct fathom_function *fathom_functions_at(const struct fathom_functions *f, uint64_t svma)
{
	const size_t i = fathom_functions_from(f, svma);

	return i < f->n && f->items[i].svma == svma ? &f->items[i] : NULL;
}

/* How many functions that start before an address are looked at: they are rarely nested. */
#define MAX_NESTED 16

const struct fathom_function *fathom_functions_holding(const struct fathom_functions *f,
						       uint64_t svma)
{
	const size_t n = FATHOM_BISECT(f->n, i, f->items[i].svma <= svma);
	const struct fathom_function *fde = NULL;

	for (size_t i = n; i > 0 && n - i < MAX_NESTED; i--) {
		const struct fathom_function *k = &f->items[i - 1];

		if (svma != k->svma && svma >= k->end)
			continue;
		if (k->is_symbol)
			return k;
		if (!fde)
			fde = k;
	}
	return fde;
}

uint64_t fathom_functions_end(const struct fathom_functions *f,
			      const struct fathom_function *function)
{
	const size_t next = (size_t)(function - f->items) + 1;

	if (function->end > function->svma)
		return function->end;
	return next < f->n ? f->items[next].svma : UINT64_MAX;
}
