/* SPDX-License-Identifier: MIT */
#include "host/file/section_spans.h"

#include <stdlib.h>

/* A heap of places that have begun: the one with the least number is first. */
struct heap {
	const struct fathom_section_place **items;
	size_t n;
};

static void swap(struct heap *h, size_t a, size_t b)
{
	const struct fathom_section_place *item = h->items[a];

	h->items[a] = h->items[b];
	h->items[b] = item;
}

static bool is_before(const struct heap *h, size_t a, size_t b)
{
	return h->items[a]->section < h->items[b]->section;
}

static void heap_add(struct heap *h, const struct fathom_section_place *place)
{
	size_t i = h->n++;

	h->items[i] = place;
	for (; i && is_before(h, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(h, i, (i - 1) / 2);
}

static void heap_remove_first(struct heap *h)
{
	size_t i = 0;

	h->items[0] = h->items[--h->n];
	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < h->n; child++)
			if (is_before(h, child, least))
				least = child;
		if (least == i)
			return;
		swap(h, i, least);
		i = least;
	}
}

static int compare_low(const void *a, const void *b)
{
	const struct fathom_section_place *x = a;
	const struct fathom_section_place *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Goes on with @section from @low; false without memory. */
static bool add_span(struct fathom_section_spans *spans, uint64_t low, uint32_t section)
{
	struct fathom_section_span *last = spans->n ? &spans->items[spans->n - 1] : NULL;

	if (last && last->low == low) {
		last->section = section;
		return true;
	}
	return (last && last->section == section) ||
	       fathom_array_push(spans,
				 (struct fathom_section_span){ .low = low, .section = section });
}

bool fathom_section_spans_make(struct fathom_section_spans *spans,
			       struct fathom_section_place *places, size_t n)
{
	struct heap open = { .items = calloc(n + 1, sizeof(*open.items)) };
	bool ok = open.items != NULL;
	size_t i = 0;

	qsort(places, n, sizeof *places, compare_low);
	while (ok && (i < n || open.n)) {
		/* To where the first one of those that are open ends, or another begins. */
		uint64_t at = open.n ? open.items[0]->high : places[i].low;

		if (i < n && places[i].low < at)
			at = places[i].low;
		while (open.n && open.items[0]->high <= at)
			heap_remove_first(&open);
		for (; i < n && places[i].low == at; i++)
			heap_add(&open, &places[i]);
		ok = add_span(spans, at, open.n ? open.items[0]->section : 0);
	}
	free(open.items);
	return ok;
}

uint32_t fathom_section_spans_at(const struct fathom_section_spans *spans, uint64_t svma)
{
	const size_t n = FATHOM_BISECT(spans->n, i, spans->items[i].low <= svma);

	return n ? spans->items[n - 1].section : 0;
}
