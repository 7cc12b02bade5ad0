/* SPDX-License-Identifier: MIT */
#include "host/publish/plan.h"

#include <stdlib.h>
#include <string.h>

#include "host/publish/frame_image.h"
#include "host/publish/registry_table.h"
#include "host/publish/unwinders.h"
#include "safe/base/error.h"

/* Offsets within an image have 32 bits: the code of a leaf spans less. */
#define MOST_SPAN (UINT64_C(1) << 30)
/* Functions of a leaf. */
#define MOST_CAPACITY ((size_t)1 << 24)

static uint64_t low_of(const struct fathom_jit_leaf *l)
{
	return l->entries[0]->low;
}

/*
 * Returns the number of the leaf that @low belongs to: the last that begins at or before it, or 0.
 */
static size_t leaf_of(const struct fathom_jit_registry *r, uint64_t low)
{
	const size_t n = FATHOM_BISECT(r->leaves.n, i, low_of(r->leaves.items[i]) <= low);

	return n ? n - 1 : 0;
}

struct fathom_jit_entry *fathom_jit_find(const struct fathom_jit_registry *r, uint64_t low)
{
	const struct fathom_jit_leaf *l;
	size_t i;

	if (!r->leaves.n)
		return NULL;
	l = r->leaves.items[leaf_of(r, low)];
	i = FATHOM_BISECT(l->n, k, l->entries[k]->low < low);
	return i < l->n && l->entries[i]->low == low ? l->entries[i] : NULL;
}

uint64_t fathom_jit_next(const struct fathom_jit_registry *r, const struct fathom_jit_entry *e)
{
	const size_t leaf = leaf_of(r, e->low);
	const struct fathom_jit_leaf *l = r->leaves.items[leaf];
	const size_t i = FATHOM_BISECT(l->n, k, l->entries[k]->low <= e->low);
	uint64_t next = e->arena->high;

	if (i < l->n)
		next = l->entries[i]->low;
	else if (leaf + 1 < r->leaves.n)
		next = low_of(r->leaves.items[leaf + 1]);
	return next < e->arena->high ? next : e->arena->high;
}

/* By address; what goes before what comes. */
static int compare_changes(const void *a, const void *b)
{
	const struct fathom_jit_entry *x = ((const struct fathom_jit_change *)a)->entry;
	const struct fathom_jit_entry *y = ((const struct fathom_jit_change *)b)->entry;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (int)y->leaves - (int)x->leaves;
}

/* Mostly they are sorted already: a compiler's memory grows. */
static void sort_changes(struct fathom_jit_change_array *c)
{
	for (size_t i = 1; i < c->n; i++)
		if (compare_changes(&c->items[i - 1], &c->items[i]) > 0) {
			qsort(c->items, c->n, sizeof *c->items, compare_changes);
			return;
		}
}

/* Appends a leaf of @n functions. */
static bool push_leaf(struct fathom_jit_plan *p, struct fathom_jit_entry *const *entries, size_t n)
{
	struct fathom_jit_leaf *l = calloc(1, sizeof *l + n * sizeof *entries);

	if (!l || !fathom_array_push(&p->leaves, l)) {
		free(l);
		return false;
	}
	l->commit = p->commit;
	l->n = n;
	memcpy(l->entries, entries, n * sizeof *entries);
	return true;
}

/* Returns how many of the @n functions at @entries, @wanted or fewer, one leaf may span. */
static size_t within_span(struct fathom_jit_entry *const *entries, size_t n, size_t wanted)
{
	size_t i = 1;

	while (i < n && i < wanted && fathom_jit_high(entries[i]) - entries[0]->low < MOST_SPAN)
		i++;
	return i;
}

/*
 * Cuts the functions of p->work into leaves. Where all that is new is at the end, as with memory
 * that grows, leaves are left full; elsewhere in equal parts, with room for more.
 */
static bool cut(struct fathom_jit_plan *p, bool grows)
{
	const size_t n = p->work.n;
	const size_t parts = (n + p->capacity - 1) / p->capacity;
	const size_t wanted = !parts || grows ? p->capacity : (n + parts - 1) / parts;
	size_t some;

	for (size_t i = 0; i < n; i += some) {
		some = within_span(p->work.items + i, n - i, wanted);
		if (!push_leaf(p, p->work.items + i, some))
			return false;
	}
	return true;
}

/* Appends @e to p->work; false if it overlaps the function before. */
static bool append(struct fathom_jit_plan *p, struct fathom_jit_entry *e)
{
	const struct fathom_jit_entry *before = NULL;

	if (p->work.n) {
		before = p->work.items[p->work.n - 1];
	} else if (p->leaves.n) {
		const struct fathom_jit_leaf *l = p->leaves.items[p->leaves.n - 1];

		before = l->entries[l->n - 1];
	}
	if (before && fathom_jit_high(before) > e->low)
		return false;
	p->work.items[p->work.n++] = e;
	return true;
}

/* Merges the changes [from, to) with leaf @l, which may be NULL. */
static fathom_err merge(struct fathom_jit_plan *p, struct fathom_jit_leaf *l,
			const struct fathom_jit_change_array *c, size_t from, size_t to)
{
	const size_t n = l ? l->n : 0;
	size_t k = 0;
	bool grows = true;

	p->work.n = 0;
	if (!fathom_array_room(&p->work, n + to - from) || (l && !fathom_array_push(&p->gone, l)))
		return FATHOM_E_MEMORY;
	for (size_t i = from; i < to || k < n;) {
		struct fathom_jit_entry *e;

		/* Entries of the leaf stand before new ones at the same address. */
		if (k < n && (i == to || c->items[i].entry->leaves ||
			      l->entries[k]->low <= c->items[i].entry->low)) {
			e = l->entries[k++];
			if (e->leaves) {
				i += i < to && c->items[i].entry == e;
				grows = false;
				continue;
			}
		} else {
			e = c->items[i].entry;
			p->bad = c->items[i].number;
			i++;
			grows = grows && k == n;
		}
		if (!append(p, e))
			return FATHOM_E_ARGUMENT;
	}
	p->last_is_new = true;
	return cut(p, grows) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Appends leaf @l as it is; FATHOM_E_ARGUMENT if a new one reaches into it. */
static fathom_err keep(struct fathom_jit_plan *p, struct fathom_jit_leaf *l)
{
	if (p->last_is_new && p->leaves.n) {
		const struct fathom_jit_leaf *before = p->leaves.items[p->leaves.n - 1];

		if (fathom_jit_high(before->entries[before->n - 1]) > low_of(l))
			return FATHOM_E_ARGUMENT;
	}
	p->last_is_new = false;
	return fathom_array_push(&p->leaves, l) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Withdraws leaf @l of the plan: its functions are in another one. */
static bool replace(struct fathom_jit_plan *p, struct fathom_jit_leaf *l)
{
	if (l->commit != p->commit)
		return fathom_array_push(&p->gone, l);
	free(l);
	return true;
}

/* Makes one leaf of two neighbours where both fit; in place. */
static bool join_neighbours(struct fathom_jit_plan *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->leaves.n; i++) {
		struct fathom_jit_leaf *a = kept ? p->leaves.items[kept - 1] : NULL;
		struct fathom_jit_leaf *b = p->leaves.items[i];
		struct fathom_jit_leaf *both;

		if (!a || a->n + b->n > p->capacity ||
		    fathom_jit_high(b->entries[b->n - 1]) - low_of(a) >= MOST_SPAN) {
			p->leaves.items[kept++] = b;
			continue;
		}
		both = calloc(1, sizeof *both + (a->n + b->n) * sizeof *both->entries);
		if (!both || !fathom_array_room(&p->gone, 2)) {
			free(both);
			memmove(p->leaves.items + kept, p->leaves.items + i,
				(p->leaves.n - i) * sizeof *p->leaves.items);
			p->leaves.n -= i - kept;
			return false;
		}
		both->commit = p->commit;
		both->n = a->n + b->n;
		memcpy(both->entries, a->entries, a->n * sizeof *a->entries);
		memcpy(both->entries + a->n, b->entries, b->n * sizeof *b->entries);
		(void)replace(p, a);
		(void)replace(p, b);
		p->leaves.items[kept - 1] = both;
	}
	p->leaves.n = kept;
	return true;
}

/*
 * Merges leaves until there are few enough, and makes room for more. Code that is far apart cannot
 * be merged: a limit ends the search for it.
 */
static bool limit_leaves(struct fathom_jit_plan *p)
{
	while (p->leaves.n > FATHOM_JIT_MOST_LEAVES && p->capacity < MOST_CAPACITY) {
		if (!join_neighbours(p))
			return false;
		if (p->leaves.n > FATHOM_JIT_MOST_LEAVES * 3 / 4)
			p->capacity *= 2;
	}
	return true;
}

/* Returns where the changes that belong to leaf @leaf end. */
static size_t end_of_group(const struct fathom_jit_registry *r,
			   const struct fathom_jit_change_array *c, size_t from, size_t leaf)
{
	size_t to = from + 1;

	if (leaf + 1 >= r->leaves.n)
		return c->n;
	while (to < c->n && c->items[to].entry->low < low_of(r->leaves.items[leaf + 1]))
		to++;
	return to;
}

static fathom_err make_leaves(const struct fathom_jit_registry *r,
			      const struct fathom_jit_change_array *c, struct fathom_jit_plan *p)
{
	size_t next = 0;
	size_t to;

	for (size_t i = 0; i < c->n; i = to) {
		const size_t leaf = leaf_of(r, c->items[i].entry->low);

		p->bad = c->items[i].number;
		to = end_of_group(r, c, i, leaf);
		while (next < leaf)
			FATHOM_TRY(keep(p, r->leaves.items[next++]));
		FATHOM_TRY(merge(p, leaf < r->leaves.n ? r->leaves.items[leaf] : NULL, c, i, to));
		next = leaf + 1;
	}
	while (next < r->leaves.n)
		FATHOM_TRY(keep(p, r->leaves.items[next++]));
	return limit_leaves(p) ? FATHOM_OK : FATHOM_E_MEMORY;
}

fathom_err fathom_jit_plan_make(struct fathom_jit_registry *r,
				struct fathom_jit_change_array *changes,
				struct fathom_jit_plan *ret)
{
	fathom_err err;

	*ret = (struct fathom_jit_plan){ .capacity = r->capacity, .commit = r->n_commits + 1 };
	sort_changes(changes);
	err = make_leaves(r, changes, ret);
	if (err)
		fathom_jit_plan_cancel(r, ret);
	return err;
}

static void free_plan(struct fathom_jit_plan *p)
{
	fathom_array_free(&p->leaves);
	fathom_array_free(&p->gone);
	fathom_array_free(&p->work);
}

void fathom_jit_plan_cancel(struct fathom_jit_registry *r, struct fathom_jit_plan *p)
{
	for (size_t i = 0; i < p->leaves.n; i++)
		if (p->leaves.items[i]->commit == p->commit)
			fathom_jit_leaf_free(r, p->leaves.items[i]);
	free_plan(p);
}

/* Bytes of replaced leaves that are kept: with nongnu's libunwind, and for our own readers. */
#define MOST_GONE_TABLES ((size_t)16 << 20)
#define MOST_GONE        ((size_t)256 << 10)

static size_t bytes_of(const struct fathom_jit_leaf *l)
{
	return sizeof *l + l->n * sizeof *l->entries + (size_t)l->gdb.size;
}

/*
 * Frees replaced leaves, the oldest first, if there are many. nongnu's libunwind reads tables
 * without a lock, so a thread may be about to read what has just been replaced; so do readers of
 * the registry, of whom those inside say that they read.
 */
static void trim_gone(struct fathom_jit_registry *r)
{
	const size_t most = fathom_jit_wants_tables(r) ? MOST_GONE_TABLES
			    : r->table                 ? MOST_GONE
						       : 0;
	const uint64_t unread = fathom_jit_last_unread(r);
	struct fathom_jit_leaf **link = &r->gone;
	size_t kept = 0;

	if (most && r->gone_bytes <= most)
		return;
	while (*link && (kept < most / 2 || (*link)->commit > unread)) {
		kept += bytes_of(*link);
		link = &(*link)->next;
	}
	r->gone_bytes = kept;
	for (struct fathom_jit_leaf *l = *link, *next; l; l = next) {
		next = l->next;
		fathom_jit_leaf_free(r, l);
	}
	*link = NULL;
}

/* Takes @l, which was replaced, out of use. */
static void retire(struct fathom_jit_registry *r, struct fathom_jit_leaf *l)
{
	l->commit = r->n_commits;
	l->next = r->gone;
	r->gone = l;
	r->gone_bytes += bytes_of(l);
}

void fathom_jit_plan_apply(struct fathom_jit_registry *r, struct fathom_jit_plan *p)
{
	const struct fathom_jit_leaves before = r->leaves;

	r->n_commits = p->commit;
	for (size_t i = 0; i < p->gone.n; i++)
		retire(r, p->gone.items[i]);
	trim_gone(r);
	r->leaves = p->leaves;
	r->capacity = p->capacity;
	p->leaves = before;
	free_plan(p);
}
