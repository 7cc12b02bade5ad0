/* SPDX-License-Identifier: MIT */
#include "safe/self/table.h"

void fathom_self_publish(struct fathom_self *self, const struct fathom_self_place *places,
			 uint32_t n)
{
	const uint32_t generation = atomic_load_explicit(&self->generation, memory_order_relaxed);
	struct fathom_self_table *t =
		atomic_load_explicit(&self->tables[(generation + 1) & 1], memory_order_relaxed);
	uintptr_t word[FATHOM_SELF_WORDS];

	/* Release stores: a reader that sees one of them also sees that its generation is over. */
	for (uint32_t i = 0; i < n; i++) {
		memcpy(word, &places[i], sizeof word);
		for (size_t k = 0; k < FATHOM_SELF_WORDS; k++)
			atomic_store_explicit(&t->rows[i].word[k], word[k], memory_order_release);
		atomic_store_explicit(&t->lows[i], places[i].low, memory_order_release);
	}
	atomic_store_explicit(&t->n, n, memory_order_release);
	/* Sequentially consistent: the host reads the count of readers after it. */
	atomic_store(&self->generation, generation + 1);
}
