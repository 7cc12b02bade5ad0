/* SPDX-License-Identifier: MIT */
#include "host/jit/gdb_list.h"

#include <stdlib.h>

#include "host/jit/registry_list.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

/* Entries read ahead, from where an earlier walk found them. */
struct ahead {
	const struct fathom_gdb_items *before;
	size_t next; /* index in before, after the last entry found there */
	struct fathom_reader_piece pieces[FATHOM_READER_EACH];
	uint8_t bytes[FATHOM_READER_EACH * FATHOM_GDB_MAX_SIZE];
	size_t at;
	size_t n;
};

/* A walk from entry to entry; Brent's algorithm detects cycles. */
struct walk {
	const struct fathom_reader *remote;
	const struct fathom_gdb_list *list;
	struct ahead *ahead; /* NULL: entries are read one by one */
	uint64_t landmark;   /* an earlier entry */
	uint64_t steps;      /* steps since the landmark */
	uint64_t stretch;    /* steps after which the landmark moves */
};

static bool is_circle(struct walk *w, uint64_t avma)
{
	if (avma == w->landmark)
		return true;
	if (++w->steps == w->stretch) {
		w->landmark = avma;
		w->stretch *= 2;
		w->steps = 0;
	}
	return false;
}

/* Successive entries that may have left since the earlier walk before reading ahead ends. */
#define MAX_LEFT 64

/* Reads ahead from the entry at @avma, if the earlier walk found it. */
static void read_ahead(const struct walk *w, uint64_t avma)
{
	struct ahead *a = w->ahead;
	const struct fathom_gdb_item *items = a->before->items;
	const size_t end = a->before->n - a->next < MAX_LEFT ? a->before->n : a->next + MAX_LEFT;
	size_t i = a->next;

	a->n = 0;
	a->at = 0;
	while (i < end && items[i].avma != avma)
		i++;
	if (i == end)
		return;
	for (; i < a->before->n && a->n < FATHOM_READER_EACH; i++)
		a->pieces[a->n++] =
			(struct fathom_reader_piece){ items[i].avma, w->list->layout.entry };
	a->next = i;
	a->n = w->remote->read_each(w->remote->data, a->pieces, a->n, a->bytes);
}

/* Skips entries that were read ahead but have left. */
static void pass_left(struct ahead *a, uint64_t avma)
{
	size_t at = a->at;

	while (at < a->n && a->pieces[at].avma != avma)
		at++;
	if (at < a->n)
		a->at = at;
}

static bool read_entry(const struct walk *w, uint64_t avma, struct fathom_gdb_entry *ret)
{
	uint8_t bytes[FATHOM_GDB_MAX_SIZE];
	const uint8_t size = w->list->layout.entry;
	struct ahead *a = w->ahead;

	if (a && a->at < a->n)
		pass_left(a, avma);
	else if (a)
		read_ahead(w, avma);
	if (a && a->at < a->n && a->pieces[a->at].avma == avma) {
		fathom_gdb_entry_read(&w->list->layout, a->bytes + a->at++ * size, ret);
		return true;
	}
	if (!fathom_reader_read(w->remote, avma, bytes, size))
		return false;
	fathom_gdb_entry_read(&w->list->layout, bytes, ret);
	return true;
}

/* Continues the walk from the entry at @item->avma. */
static fathom_err walk_entries(struct walk *w, struct fathom_gdb_item *item,
			       struct fathom_gdb_items *items)
{
	for (; item->avma; item->avma = item->entry.next) {
		if (items->n >= FATHOM_MAX_GDB_ENTRIES)
			return FATHOM_E_LIMIT;
		if (is_circle(w, item->avma) || !read_entry(w, item->avma, &item->entry))
			return FATHOM_E_CORRUPT;
		if (!fathom_array_push(items, *item))
			return FATHOM_E_MEMORY;
		item->before = item->avma;
	}
	return FATHOM_OK;
}

fathom_err fathom_gdb_list_walk(const struct fathom_reader *r, const struct fathom_gdb_list *l,
				const struct fathom_gdb_items *before,
				struct fathom_gdb_items *items)
{
	struct ahead ahead = { .before = before };
	struct walk w = { .remote = r,
			  .list = l,
			  .ahead = before && r->read_each ? &ahead : NULL,
			  .stretch = 1 };
	struct fathom_gdb_item item = { .before = l->descriptor, .list = l->descriptor };
	uint8_t bytes[FATHOM_GDB_MAX_SIZE];
	struct fathom_gdb_descriptor d;
	bool is_on = false;

	if (l->registry)
		FATHOM_TRY(fathom_registry_walk(r, l->registry, items, &is_on));
	if (is_on || !l->descriptor)
		return FATHOM_OK;
	if (!fathom_reader_read(r, l->descriptor, bytes, l->layout.descriptor))
		return FATHOM_OK;
	fathom_gdb_descriptor_read(&l->layout, bytes, &d);
	if (d.version != FATHOM_GDB_VERSION)
		return FATHOM_OK;
	item.avma = d.first;
	return walk_entries(&w, &item, items);
}

bool fathom_gdb_items_same(const struct fathom_gdb_items *a, const struct fathom_gdb_items *b)
{
	return a->n == b->n &&
	       (!a->n || memcmp(a->items, b->items, a->n * sizeof(struct fathom_gdb_item)) == 0);
}

/* Returns whether the back link of @i is its predecessor, 0 for the first. */
static bool is_linked(const struct fathom_gdb_item *i)
{
	return i->serial || i->entry.prev == (i->before == i->list ? 0 : i->before);
}

bool fathom_gdb_items_linked(const struct fathom_gdb_items *items)
{
	const struct fathom_gdb_item *item = items->items;

	for (size_t i = 0; i < items->n; i++)
		if (!is_linked(&item[i]) || !item[i].entry.symfile || !item[i].entry.size)
			return false;
	return true;
}

bool fathom_gdb_pair_init(struct fathom_gdb_pair *p, const struct fathom_gdb_items *before,
			  const struct fathom_gdb_items *after)
{
	const struct fathom_gdb_item *items = after->items;

	*p = (struct fathom_gdb_pair){ before, after, NULL };
	if (fathom_gdb_items_same(before, after))
		return true;
	p->sorted = malloc((2 * after->n + 1) * sizeof *p->sorted);
	if (!p->sorted)
		return false;
	for (size_t i = 0; i < after->n; i++)
		p->sorted[i] = (struct fathom_keyed){ items[i].avma, i };
	fathom_sort_keyed(p->sorted, p->sorted + after->n, after->n);
	return true;
}

void fathom_gdb_pair_deinit(struct fathom_gdb_pair *p)
{
	free(p->sorted);
}

bool fathom_gdb_item_stayed(const struct fathom_gdb_pair *p, size_t i)
{
	const struct fathom_gdb_item *was = p->before->items + i;
	const size_t n = p->after->n;

	if (!p->sorted)
		return true;
	for (size_t k = FATHOM_BISECT(n, s, p->sorted[s].key < was->avma);
	     k < n && p->sorted[k].key == was->avma; k++) {
		const struct fathom_gdb_item *is = p->after->items + p->sorted[k].value;

		if (is->list == was->list)
			return is_linked(is) && is->entry.symfile == was->entry.symfile &&
			       is->entry.size == was->entry.size;
	}
	return false;
}
