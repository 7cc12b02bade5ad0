/* SPDX-License-Identifier: MIT */
#include "host/trace/spans.h"

#include <stdlib.h>

struct fathom_span *fathom_span_create(void)
{
	return calloc(1, sizeof(struct fathom_span));
}

void fathom_span_destroy(struct fathom_span *span)
{
	if (!span)
		return;
	fathom_sites_free(span->sites);
	fathom_arena_deinit(&span->arena);
	fathom_array_free(&span->functions);
	fathom_array_free(span);
	free(span);
}

static int compare(const void *a, const void *b)
{
	const struct fathom_span_site *x = a;
	const struct fathom_span_site *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

void fathom_span_finish(struct fathom_span *span)
{
	if (!span->n)
		return;
	qsort(span->items, span->n, sizeof *span->items, compare);
	span->first = span->items[0].number;
	span->last = span->items[span->n - 1].number;
}

bool fathom_spans_add(struct fathom_spans *s, struct fathom_span *span)
{
	size_t i;

	if (!fathom_array_room(s, 1)) {
		fathom_span_destroy(span);
		return false;
	}
	for (i = s->n; i && s->items[i - 1]->first > span->first; i--)
		s->items[i] = s->items[i - 1];
	s->items[i] = span;
	s->n++;
	return true;
}

void fathom_spans_deinit(struct fathom_spans *s)
{
	for (size_t i = 0; i < s->n; i++)
		fathom_span_destroy(s->items[i]);
	fathom_array_free(s);
}

const struct fathom_span *fathom_spans_of(const struct fathom_spans *s, uint32_t number)
{
	const size_t k = FATHOM_BISECT(s->n, i, s->items[i]->first <= number);

	return k && s->items[k - 1]->last >= number ? s->items[k - 1] : NULL;
}

/* Finds site @number in the spans. */
static bool find(const struct fathom_spans *s, uint32_t number, struct fathom_span_found *ret)
{
	const struct fathom_span *span = fathom_spans_of(s, number);
	size_t i;

	if (!span)
		return false;
	i = FATHOM_BISECT(span->n, j, span->items[j].number < number);
	if (i == span->n || span->items[i].number != number)
		return false;
	*ret = (struct fathom_span_found){ .function =
						   &span->functions.items[span->items[i].function],
					   .number = number,
					   .place = span->items[i].place,
					   .wishes = span->items[i].wishes,
					   .frame = span->items[i].frame };
	return true;
}

const struct fathom_span_found *fathom_spans_find(struct fathom_spans *s, uint32_t number)
{
	struct fathom_span_found *found = &s->cache[(number ^ number >> 12) % FATHOM_SPAN_CACHE];

	if (found->function && found->number == number)
		return found;
	return find(s, number, found) ? found : NULL;
}
