/* SPDX-License-Identifier: MIT */
#include "host/module/budget.h"

#include "host/module/evict.h"

/* A call that holds at most this much is never refused, even if others have filled the budget. */
#define SMALL_BYTES (UINT64_C(64) << 10)

/* Returns whether @size more bytes fit; decoded units make room. */
static bool fits(struct fathom_budget *b, uint64_t size)
{
	struct fathom_memory *m = &b->session->memory;

	if (fathom_memory_fits(m, size) ||
	    (size <= SMALL_BYTES && atomic_load(&b->counted) <= SMALL_BYTES - size))
		return true;
	fathom_memory_count(m, size);
	fathom_evict(b->session);
	fathom_memory_uncount(m, size);
	if (fathom_memory_fits(m, size))
		return true;
	atomic_store(&b->is_over, true);
	return false;
}

static void count(struct fathom_budget *b, uint64_t size)
{
	fathom_memory_count(&b->session->memory, size);
	atomic_fetch_add(&b->counted, size);
}

bool fathom_budget_take(struct fathom_budget *b, uint64_t size)
{
	if (!fits(b, size))
		return false;
	count(b, size);
	return true;
}

void fathom_budget_give(struct fathom_budget *b, uint64_t size)
{
	fathom_memory_uncount(&b->session->memory, size);
	atomic_fetch_sub(&b->counted, size);
}

bool fathom_budget_enlarge(struct fathom_budget *b, void *items, size_t *cap, size_t n, size_t more,
			   size_t size)
{
	const size_t before = *cap;
	uint64_t bytes;

	if (__builtin_mul_overflow(before + (uint64_t)more, size, &bytes) || !fits(b, bytes) ||
	    !fathom_array_enlarge(items, cap, n, more, size))
		return false;
	count(b, (uint64_t)(*cap - before) * size);
	return true;
}
