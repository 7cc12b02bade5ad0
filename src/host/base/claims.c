/* SPDX-License-Identifier: MIT */
#include "host/base/claims.h"

#include <stdbool.h>
#include <stdlib.h>

#include "safe/base/sort.h"

/* A claim in the heap: comparisons stay out of the cache lines of the claims themselves. */
struct started {
	uint64_t order;
	uint64_t end;
};

/* A sweep over all claims, from the lowest address to the highest. */
struct sweep {
	const struct fathom_claim *claims;
	struct fathom_keyed *by_start; /* indexes of claims */
	size_t n;
	size_t next;          /* index in by_start */
	struct started *heap; /* claims that have started; the greatest order is first */
	size_t n_heap;
	struct fathom_claim *out;
	size_t n_out;
};

static bool is_newer(const struct sweep *s, size_t a, size_t b)
{
	return s->heap[a].order > s->heap[b].order;
}

static void swap(struct sweep *s, size_t a, size_t b)
{
	const struct started claim = s->heap[a];

	s->heap[a] = s->heap[b];
	s->heap[b] = claim;
}

/* Adds @claim, unless the first one hides all of it. */
static void push(struct sweep *s, const struct fathom_claim *claim)
{
	size_t i = s->n_heap;

	if (i && s->heap[0].order > claim->order && s->heap[0].end >= claim->end)
		return;
	s->heap[s->n_heap++] = (struct started){ claim->order, claim->end };
	for (; i && is_newer(s, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(s, i, (i - 1) / 2);
}

static void pop(struct sweep *s)
{
	size_t i = 0;

	s->heap[0] = s->heap[--s->n_heap];
	for (size_t child = 1; child < s->n_heap; child = 2 * i + 1) {
		if (child + 1 < s->n_heap && is_newer(s, child + 1, child))
			child++;
		if (!is_newer(s, child, i))
			return;
		swap(s, i, child);
		i = child;
	}
}

/* Appends a stretch, or extends the last one. */
static void put(struct sweep *s, uint64_t order, uint64_t start, uint64_t end)
{
	struct fathom_claim *last = s->n_out ? &s->out[s->n_out - 1] : NULL;

	if (last && last->order == order && last->end == start)
		last->end = end;
	else
		s->out[s->n_out++] = (struct fathom_claim){ start, end, order };
}

/* Each step takes a claim that starts, or drops one that has ended: at most 2 n steps. */
static void run_sweep(struct sweep *s)
{
	uint64_t at = 0;

	for (;;) {
		uint64_t end;

		while (s->n_heap && s->heap[0].end <= at)
			pop(s);
		if (!s->n_heap && s->next == s->n)
			return;
		if (!s->n_heap)
			at = s->by_start[s->next].key;
		while (s->next < s->n && s->by_start[s->next].key <= at)
			push(s, &s->claims[s->by_start[s->next++].value]);
		end = s->heap[0].end;
		if (s->next < s->n && s->by_start[s->next].key < end)
			end = s->by_start[s->next].key;
		if (end > at)
			put(s, s->heap[0].order, at, end);
		at = end > at ? end : at;
	}
}

/* Sorts the claims by start, without the empty ones. */
static void sort_claims(struct sweep *s, const struct fathom_claim *claims, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (claims[i].start < claims[i].end)
			s->by_start[s->n++] = (struct fathom_keyed){ claims[i].start, i };
	fathom_sort_keyed(s->by_start, s->by_start + n, s->n);
}

fathom_err fathom_claims_flatten(const struct fathom_claim *claims, size_t n,
				 struct fathom_claim **ret, size_t *ret_n)
{
	struct sweep s = { .claims = claims };
	struct fathom_claim *fitted;
	fathom_err err = FATHOM_E_MEMORY;

	s.by_start = malloc((2 * n + 1) * sizeof *s.by_start);
	s.heap = malloc((n + 1) * sizeof *s.heap);
	s.out = malloc((2 * n + 1) * sizeof *s.out);
	if (s.by_start && s.heap && s.out) {
		sort_claims(&s, claims, n);
		run_sweep(&s);
		fitted = realloc(s.out, (s.n_out + 1) * sizeof *s.out);
		*ret = fitted ? fitted : s.out;
		*ret_n = s.n_out;
		s.out = NULL;
		err = FATHOM_OK;
	}
	free(s.by_start);
	free(s.heap);
	free(s.out);
	return err;
}
