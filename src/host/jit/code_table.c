/* SPDX-License-Identifier: MIT */
#include "code_table.h"

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

/* Puts out that @claim holds from @start to @end. */
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

/* Lays @claims over each other; *@ret is from malloc(). */
static fathom_err flatten(const struct fathom_claim *claims, size_t n, struct fathom_claim **ret,
			  size_t *ret_n)
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

static void drop_level(struct fathom_code_table *t, unsigned i)
{
	fathom_memory_uncount(t->memory, t->level[i].n * sizeof *t->level[i].claims);
	free(t->level[i].claims);
}

/* Makes one level of the newest two. */
static fathom_err join_levels(struct fathom_code_table *t)
{
	const unsigned below = t->n_levels - 2;
	const size_t n = t->level[below].n;
	const size_t more = t->level[below + 1].n;
	struct fathom_claim *all = malloc((n + more + 1) * sizeof *all);
	struct fathom_claim *joined;
	size_t n_joined;
	fathom_err err;

	if (!all)
		return FATHOM_E_MEMORY;
	memcpy(all, t->level[below].claims, n * sizeof *all);
	memcpy(all + n, t->level[below + 1].claims, more * sizeof *all);
	err = flatten(all, n + more, &joined, &n_joined);
	free(all);
	if (err)
		return err;
	drop_level(t, below);
	drop_level(t, below + 1);
	fathom_memory_count(t->memory, n_joined * sizeof *joined);
	t->level[below].claims = joined;
	t->level[below].n = n_joined;
	t->n_levels--;
	return FATHOM_OK;
}

fathom_err fathom_code_table_add(struct fathom_code_table *t, const struct fathom_claim *claims,
				 size_t n)
{
	struct fathom_claim *level;
	size_t n_level;

	/* What is made of them is at most twice as much, and as much again while levels are joined.
	 */
	if (n > SIZE_MAX / sizeof *claims / 4 ||
	    !fathom_memory_fits(t->memory, 2 * n * sizeof *claims))
		return FATHOM_E_LIMIT;
	/* Only where joining has failed time after time. */
	if (t->n_levels == FATHOM_CODE_LEVELS)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(flatten(claims, n, &level, &n_level));
	if (!n_level) {
		free(level);
		return FATHOM_OK;
	}
	fathom_memory_count(t->memory, n_level * sizeof *level);
	t->level[t->n_levels].claims = level;
	t->level[t->n_levels++].n = n_level;
	while (t->n_levels > 1 && t->level[t->n_levels - 1].n >= t->level[t->n_levels - 2].n / 2)
		FATHOM_TRY(join_levels(t));
	return FATHOM_OK;
}

static const struct fathom_claim *find(const struct fathom_claim *claims, size_t n, uint64_t avma)
{
	size_t low = 0;
	size_t high = n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (claims[mid].end <= avma)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && claims[low].start <= avma ? &claims[low] : NULL;
}

const struct fathom_claim *fathom_code_table_at(const struct fathom_code_table *t, uint64_t avma)
{
	const struct fathom_claim *found = NULL;

	for (unsigned i = t->n_levels; i-- && !found;)
		found = find(t->level[i].claims, t->level[i].n, avma);
	return found;
}

void fathom_code_table_clear(struct fathom_code_table *t)
{
	while (t->n_levels)
		drop_level(t, --t->n_levels);
}
