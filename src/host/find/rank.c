/* SPDX-License-Identifier: MIT */
/*
 * Ranks symbols with one name: first the symbol that the dynamic linker binds, then others that it
 * could bind, then those that it cannot see.
 */
#include <stdlib.h>

#include "host/base/array.h"
#include "host/find/search.h"
#include "host/runtime/link_map.h"

static bool is_tls(const struct fathom_candidate *c)
{
	return c->symbol.type == STT_TLS;
}

/* Groups candidates by place, .dynsym first: only its versions are certain. */
static int compare_places(const void *pa, const void *pb, void *data)
{
	const struct fathom_candidate *a = pa;
	const struct fathom_candidate *b = pb;
	const struct fathom_find *f = data;
	int order = u64_compare(a->query, b->query);

	if (!order)
		order = str_compare(a->name, b->name);
	if (!order)
		order = u64_compare(a->module, b->module);
	if (!order)
		order = u64_compare(is_tls(a), is_tls(b));
	if (!order)
		order = u64_compare(a->svma, b->svma);
	if (!order)
		order = u64_compare(a->table != f->modules[a->module].dynsym->number,
				    b->table != f->modules[b->module].dynsym->number);
	if (!order)
		order = u64_compare(a->table, b->table);
	return order ? order : u64_compare(a->number, b->number);
}

static bool is_one_name(const struct fathom_candidate *a, const struct fathom_candidate *b)
{
	return a->query == b->query && str_equal(a->name, b->name);
}

/* Returns whether @b, after @a and with its name, adds nothing to @a. */
static bool is_same(const struct fathom_candidate *a, const struct fathom_candidate *b)
{
	return a->module == b->module && is_tls(a) == is_tls(b) && a->svma == b->svma &&
	       (!b->version.data || str_equal(a->version, b->version));
}

/* Returns whether a candidate in [@first, @end) makes @c, the next one, redundant. */
static bool is_known(const struct fathom_candidate *first, const struct fathom_candidate *end,
		     const struct fathom_candidate *c)
{
	/* Real files have few versions of a name at one place, so the search back is bounded. */
	for (int i = 0; end > first && i < 16 && is_one_name(end - 1, c); i++)
		if (is_same(--end, c))
			return true;
	return false;
}

/* Returns whether @c is mapped: a partial second mapping holds only some symbols. */
static bool is_there(struct fathom_find *f, const struct fathom_candidate *c)
{
	const struct fathom_find_module *m = &f->modules[c->module];

	return !m->is_part || (!is_tls(c) && fathom_find_is_there(f, m, c->svma));
}

static void drop_known(struct fathom_find *f)
{
	struct fathom_candidate *c = f->candidates.items;
	size_t n = 0;

	for (size_t i = 0; i < f->candidates.n; i++)
		if (!is_known(c, c + n, &c[i]) && is_there(f, &c[i])) {
			if (n != i)
				c[n] = c[i];
			n++;
		}
	f->candidates.n = n;
}

/* Returns whether @c is in a .dynsym. */
static bool is_dynamic(const struct fathom_find *f, const struct fathom_candidate *c)
{
	return c->table == f->modules[c->module].dynsym->number;
}

/* Returns the quality of a candidate among those of its name; lower is better. */
static unsigned quality(const struct fathom_find *f, const struct fathom_candidate *c)
{
	if (c->verdict && c->is_default)
		return 0;
	if (c->verdict || (is_dynamic(f, c) && c->symbol.bind != STB_LOCAL))
		return 1;
	switch (c->symbol.bind) {
	case STB_LOCAL:
		return 4;
	case STB_WEAK:
		return 3;
	default:
		return 2;
	}
}

static int compare_quality(const void *pa, const void *pb, void *data)
{
	const struct fathom_candidate *a = pa;
	const struct fathom_candidate *b = pb;
	const struct fathom_find *f = data;
	int order = u64_compare(quality(f, a), quality(f, b));

	if (!order)
		order = u64_compare(f->modules[a->module].order, f->modules[b->module].order);
	if (!order)
		order = u64_compare(a->module, b->module);
	return order ? order : compare_places(a, b, data);
}

/*
 * Returns whether the dynamic linker would bind @c, one of the @n candidates of its name: a
 * versioned symbol must be the only one of its file that is not hidden.
 */
static bool is_taken(const struct fathom_find *f, const struct fathom_candidate *all, size_t n,
		     const struct fathom_candidate *c)
{
	/* A module outside the scope is searched only if the query names it. */
	if (c->verdict == FATHOM_DLSYM_NO ||
	    (f->modules[c->module].order == FATHOM_NONE && !f->queries[c->query].library.data))
		return false;
	if (c->verdict == FATHOM_DLSYM_YES)
		return true;
	for (size_t i = 0; i < n; i++)
		if (&all[i] != c && all[i].module == c->module && all[i].verdict)
			return false;
	return true;
}

/* Returns whether module @m exports a STB_GNU_UNIQUE symbol called @name. */
static bool has_unique(const struct fathom_find_module *m, struct fathom_str name)
{
	struct fathom_symbol symbol;

	return m->dynsym->number != FATHOM_NONE && fathom_dynsym_find(m->dynsym, name, &symbol) &&
	       symbol.bind == STB_GNU_UNIQUE;
}

/*
 * Returns whether another module's symbol may replace @c, a STB_GNU_UNIQUE symbol: a namespace has
 * only one, the first that was looked up. That is the first in search order, unless its module was
 * loaded before it entered that order, or with RTLD_LOCAL.
 */
static bool is_unclear(const struct fathom_find *f, const struct fathom_candidate *c)
{
	const struct fathom_link *own;

	if (c->symbol.bind != STB_GNU_UNIQUE || !f->process)
		return false;
	own = fathom_link_of(&f->runtime, c->module);
	for (uint32_t i = 0; own && i < f->n_modules; i++) {
		const struct fathom_link *other =
			i == c->module ? NULL : fathom_link_of(&f->runtime, i);

		if (!other || other->space != own->space || !has_unique(&f->modules[i], c->name))
			continue;
		if (f->modules[c->module].order == FATHOM_NONE ||
		    f->modules[i].order == FATHOM_NONE || other < own)
			return true;
	}
	return false;
}

/* Ranks the @n candidates of one name. */
static void rank_name(struct fathom_find *f, struct fathom_candidate *c, size_t n)
{
	size_t taken = n;

	if (n == 1) {
		c->rank = !is_taken(f, c, 1, c) || is_unclear(f, c);
		return;
	}
	qsort_r(c, n, sizeof *c, compare_quality, f);
	/* The order of modules takes precedence over default versions. */
	for (size_t i = 0; i < n; i++)
		if (is_taken(f, c, n, &c[i]) &&
		    (taken == n ||
		     f->modules[c[i].module].order < f->modules[c[taken].module].order))
			taken = i;
	if (taken < n && is_unclear(f, &c[taken]))
		taken = n;
	if (taken < n) {
		const struct fathom_candidate first = c[taken];

		memmove(c + 1, c, taken * sizeof *c);
		c[0] = first;
	}
	for (size_t i = 0; i < n; i++)
		c[i].rank = (uint32_t)i + (taken == n);
}

/* Permutes the @n candidates at @c in place: candidate @from[i] moves to i. Destroys @from. */
static void permute(struct fathom_candidate *c, uint32_t *from, size_t n)
{
	for (uint32_t start = 0; start < n; start++) {
		struct fathom_candidate first;
		uint32_t to = start;

		if (from[start] == start)
			continue;
		first = c[start];
		/* Follows one cycle; moved candidates get their own number. */
		while (from[to] != start) {
			const uint32_t next = from[to];

			c[to] = c[next];
			from[to] = to;
			to = next;
		}
		c[to] = first;
		from[to] = to;
	}
}

/* Sorts the candidates by query with a counting sort. Returns false without memory. */
static bool order_by_query(struct fathom_find *f)
{
	struct fathom_candidate *c = f->candidates.items;
	const size_t n = f->candidates.n;
	struct fathom_u32_array ends = { 0 }; /* end of each query's share; its start at first */
	struct fathom_u32_array from = { 0 };
	const bool done = n <= UINT32_MAX &&
			  fathom_budget_room(&f->budget, &ends, f->n_queries + 2) &&
			  fathom_budget_room(&f->budget, &from, n);
	uint32_t *end = ends.items;

	if (done) {
		memset(end, 0, (f->n_queries + 2) * sizeof *end);
		for (size_t i = 0; i < n; i++)
			end[c[i].query + 1]++;
		for (size_t q = 0; q <= f->n_queries; q++)
			end[q + 1] += end[q];
		for (size_t i = 0; i < n; i++)
			from.items[end[c[i].query]++] = (uint32_t)i;
		permute(c, from.items, n);
	}
	fathom_budget_free(&f->budget, &ends);
	fathom_budget_free(&f->budget, &from);
	return done;
}

/* Sorts the candidates by query, name and place. */
static bool sort(struct fathom_find *f)
{
	struct fathom_candidate *c = f->candidates.items;
	const size_t n = f->candidates.n;
	size_t end;

	/* Searches have many names with few symbols each, or patterns with many. */
	if (!order_by_query(f))
		return false;
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && c[i].query == c[end].query;)
			end++;
		if (end - i > 1)
			qsort_r(c + i, end - i, sizeof *c, compare_places, f);
	}
	return true;
}

fathom_err fathom_find_rank(struct fathom_find *f)
{
	struct fathom_candidate *c = f->candidates.items;
	size_t end;

	if (!f->candidates.n)
		return FATHOM_OK;
	if (!sort(f))
		return FATHOM_E_MEMORY;
	drop_known(f);
	for (size_t i = 0; i < f->candidates.n; i = end) {
		for (end = i + 1; end < f->candidates.n && is_one_name(&c[i], &c[end]);)
			end++;
		rank_name(f, c + i, end - i);
	}
	return FATHOM_OK;
}
