/* SPDX-License-Identifier: MIT */
#include "table.h"

#include "../base/sort.h"

/* After so many generations during one search nobody is waited for. */
#define MAX_TRIES 16

/*
 * The number of the first @n lows of @t that are at or before @avma. They are acquired, as is all
 * that is read of a table: the generation, read after them, is then not from before.
 */
static uint32_t count_lows(const struct fathom_self_table *t, uint32_t n, uintptr_t avma)
{
	uint32_t first = 0;

	while (n > 1) {
		const uint32_t half = n / 2;
		const uintptr_t low =
			atomic_load_explicit(&t->lows[first + half - 1], memory_order_acquire);

		/* Compiles to a conditional move: the branch would be a coin toss. */
		first = low <= avma ? first + half : first;
		n -= half;
	}
	return first + (n && atomic_load_explicit(&t->lows[first], memory_order_acquire) <= avma);
}

static struct fathom_self_place read_row(const struct fathom_self_row *row)
{
	uintptr_t word[FATHOM_SELF_WORDS];
	struct fathom_self_place p;

	for (size_t i = 0; i < FATHOM_SELF_WORDS; i++)
		word[i] = atomic_load_explicit(&row->word[i], memory_order_acquire);
	memcpy(&p, word, sizeof p);
	return p;
}

bool fathom_self_find_place(const struct fathom_self *self, uintptr_t avma,
			    struct fathom_self_place *ret)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		const uint32_t generation =
			atomic_load_explicit(&self->generation, memory_order_acquire);
		const struct fathom_self_table *t =
			atomic_load_explicit(&self->tables[generation & 1], memory_order_acquire);
		const uint32_t n = atomic_load_explicit(&t->n, memory_order_acquire);
		const uint32_t count = count_lows(t, n, avma);
		struct fathom_self_place p = { 0 };

		if (count)
			p = read_row(&t->rows[count - 1]);
		if (atomic_load_explicit(&self->generation, memory_order_acquire) != generation)
			continue;
		*ret = p;
		return avma >= p.low && avma < p.high;
	}
	return false;
}

void fathom_self_publish(struct fathom_self *self, const struct fathom_self_place *places,
			 uint32_t n)
{
	const uint32_t generation = atomic_load_explicit(&self->generation, memory_order_relaxed);
	struct fathom_self_table *t =
		atomic_load_explicit(&self->tables[(generation + 1) & 1], memory_order_relaxed);
	uintptr_t word[FATHOM_SELF_WORDS];

	/* Released, each: who sees one of them sees that the generation is not its own any more. */
	for (uint32_t i = 0; i < n; i++) {
		memcpy(word, &places[i], sizeof word);
		for (size_t k = 0; k < FATHOM_SELF_WORDS; k++)
			atomic_store_explicit(&t->rows[i].word[k], word[k], memory_order_release);
		atomic_store_explicit(&t->lows[i], places[i].low, memory_order_release);
	}
	atomic_store_explicit(&t->n, n, memory_order_release);
	atomic_store_explicit(&self->generation, generation + 1, memory_order_release);
}

const struct fathom_self_symbol *fathom_self_symbol_at(const struct fathom_self_module *m,
						       uint64_t svma)
{
	uint64_t bucket = 0;
	uint32_t first;
	size_t n;

	if (svma >= m->base)
		bucket = ((svma - m->base) >> m->shift) + 1;
	bucket = bucket < m->n_buckets ? bucket : m->n_buckets - 1;
	first = m->buckets[bucket];
	n = first + fathom_upper_bound(m->starts + first, m->buckets[bucket + 1] - first, svma);
	if (!n || m->winners[n - 1] == FATHOM_SELF_NONE)
		return NULL;
	return &m->symbols[m->winners[n - 1]];
}
