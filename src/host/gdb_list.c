/* SPDX-License-Identifier: MIT */
#include "gdb_list.h"

#include "../safe/base/limits.h"

/* A walk from entry to entry; circles are found by Brent's method. */
struct walk {
	const struct fathom_remote *remote;
	const struct fathom_gdb_list *list;
	uint64_t landmark; /* an entry that was passed */
	uint64_t steps;    /* since then */
	uint64_t stretch;  /* so many steps, and the landmark moves on */
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

static bool read_entry(const struct walk *w, uint64_t avma, struct fathom_gdb_entry *ret)
{
	uint8_t bytes[FATHOM_GDB_MAX_SIZE];

	if (!fathom_remote_read(w->remote, avma, bytes, w->list->layout.entry))
		return false;
	fathom_gdb_entry_read(&w->list->layout, bytes, ret);
	return true;
}

fathom_err fathom_gdb_list_walk(const struct fathom_remote *r, const struct fathom_gdb_list *l,
				struct fathom_array *items)
{
	struct walk w = { .remote = r, .list = l, .stretch = 1 };
	struct fathom_gdb_item item = { .before = l->descriptor, .list = l->descriptor };
	uint8_t bytes[FATHOM_GDB_MAX_SIZE];
	struct fathom_gdb_descriptor d;

	if (!fathom_remote_read(r, l->descriptor, bytes, l->layout.descriptor))
		return FATHOM_OK;
	fathom_gdb_descriptor_read(&l->layout, bytes, &d);
	if (d.version != FATHOM_GDB_VERSION)
		return FATHOM_OK;
	for (item.avma = d.first; item.avma; item.avma = item.entry.next) {
		if (items->n == FATHOM_MAX_GDB_ENTRIES)
			return FATHOM_E_LIMIT;
		if (is_circle(&w, item.avma) || !read_entry(&w, item.avma, &item.entry))
			return FATHOM_E_CORRUPT;
		if (!fathom_array_reserve(items, sizeof item, 1))
			return FATHOM_E_MEMORY;
		((struct fathom_gdb_item *)items->data)[items->n++] = item;
		item.before = item.avma;
	}
	return FATHOM_OK;
}

bool fathom_gdb_items_same(const struct fathom_array *a, const struct fathom_array *b)
{
	return a->n == b->n &&
	       (!a->n || memcmp(a->data, b->data, a->n * sizeof(struct fathom_gdb_item)) == 0);
}

/* Whether @i says itself what it comes behind: 0 for the first. */
static bool is_linked(const struct fathom_gdb_item *i)
{
	return i->entry.prev == (i->before == i->list ? 0 : i->before);
}

bool fathom_gdb_item_stayed(const struct fathom_array *before, size_t i,
			    const struct fathom_array *after)
{
	const struct fathom_gdb_item *was = (const struct fathom_gdb_item *)before->data + i;
	const struct fathom_gdb_item *is = after->data;

	if (fathom_gdb_items_same(before, after))
		return true;
	for (size_t k = 0; k < after->n; k++)
		if (is[k].avma == was->avma && is[k].list == was->list)
			return is_linked(&is[k]) && is[k].entry.symfile == was->entry.symfile &&
			       is[k].entry.size == was->entry.size;
	return false;
}
