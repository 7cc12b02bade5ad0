/* SPDX-License-Identifier: MIT */
#include "claims.h"

#include <stdbool.h>
#include <stdlib.h>

#include "../../safe/base/sort.h"

/* Claims being laid over each other, from the lowest address to the highest. */
struct sweep {
	const struct fathom_claim *claims;
	struct fathom_keyed *by_start; /* numbers of claims */
	size_t n;
	size_t next;  /* in by_start */
	size_t *heap; /* numbers of those that have started, the newest first */
	size_t n_heap;
	struct fathom_claim *out;
	size_t n_out;
};

static bool is_newer(const struct sweep *s, size_t a, size_t b)
{
	return s->claims[s->heap[a]].order > s->claims[s->heap[b]].order;
}

static void swap(struct sweep *s, size_t a, size_t b)
{
	const size_t claim = s->heap[a];

	s->heap[a] = s->heap[b];
	s->heap[b] = claim;
}

static void push(struct sweep *s, size_t claim)
{
	size_t i = s->n_heap++;

	s->heap[i] = claim;
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

/* Appends that @claim holds from @start to @end. */
static void put(struct sweep *s, const struct fathom_claim *claim, uint64_t start, uint64_t end)
{
	struct fathom_claim *last = s->n_out ? &s->out[s->n_out - 1] : NULL;

	if (last && last->order == claim->order && last->end == start)
		last->end = end;
	else
		s->out[s->n_out++] = (struct fathom_claim){ start, end, claim->order };
}

/* Each step takes a claim that starts, or drops one that has ended: there are at most 2 n. */
static void run_sweep(struct sweep *s)
{
	uint64_t at = 0;

	for (;;) {
		const struct fathom_claim *top;
		uint64_t end;

		while (s->n_heap && s->claims[s->heap[0]].end <= at)
			pop(s);
		if (!s->n_heap && s->next == s->n)
			return;
		if (!s->n_heap)
			at = s->by_start[s->next].key;
		while (s->next < s->n && s->by_start[s->next].key <= at)
			push(s, (size_t)s->by_start[s->next++].value);
		top = &s->claims[s->heap[0]];
		end = top->end;
		if (s->next < s->n && s->by_start[s->next].key < end)
			end = s->by_start[s->next].key;
		if (end > at)
			put(s, top, at, end);
		at = end > at ? end : at;
	}
}

/* Sorts the claims that are not empty by where they start. */
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
