/* SPDX-License-Identifier: MIT */
#include "host/base/epoch.h"

#include <sched.h>

void fathom_epochs_init(struct fathom_epochs *e)
{
	atomic_init(&e->now, 1);
	for (size_t i = 0; i < FATHOM_EPOCH_READERS; i++)
		atomic_init(&e->reader[i], 0);
	atomic_init(&e->retired, NULL);
	atomic_flag_clear(&e->reclaiming);
}

/* Frees what was retired before @oldest. Returns the rest of @list. */
static struct fathom_retired *free_older(struct fathom_retired *list, uint64_t oldest, void *data)
{
	struct fathom_retired *kept = NULL;

	while (list) {
		struct fathom_retired *r = list;

		list = r->next;
		if (r->epoch < oldest) {
			r->free_it(r, data);
		} else {
			r->next = kept;
			kept = r;
		}
	}
	return kept;
}

void fathom_epochs_deinit(struct fathom_epochs *e, void *data)
{
	(void)free_older(atomic_exchange(&e->retired, NULL), UINT64_MAX, data);
}

size_t fathom_epoch_enter(struct fathom_epochs *e)
{
	/* Threads have different stacks, so each starts its search at another place. */
	int here;
	size_t place = ((uintptr_t)&here >> 12) * 31 % FATHOM_EPOCH_READERS;

	for (size_t tries = 0;; tries++) {
		uint64_t empty = 0;
		const uint64_t now = atomic_load(&e->now);

		/*
		 * Sequentially consistent, as the reads of what can be retired must be: either the
		 * reclaiming thread sees the announcement, or the reader sees the pointer removed.
		 */
		if (atomic_compare_exchange_strong(&e->reader[place], &empty, now))
			return place;
		place = (place + 1) % FATHOM_EPOCH_READERS;
		if (tries % FATHOM_EPOCH_READERS == FATHOM_EPOCH_READERS - 1)
			sched_yield();
	}
}

void fathom_epoch_leave(struct fathom_epochs *e, size_t place)
{
	atomic_store_explicit(&e->reader[place], 0, memory_order_release);
}

static void push(struct fathom_epochs *e, struct fathom_retired *r)
{
	r->next = atomic_load(&e->retired);
	while (!atomic_compare_exchange_weak(&e->retired, &r->next, r))
		;
}

void fathom_epoch_retire(struct fathom_epochs *e, struct fathom_retired *r)
{
	/* Readers that enter from now on announce a later epoch. */
	r->epoch = atomic_fetch_add(&e->now, 1);
	push(e, r);
}

void fathom_epoch_reclaim(struct fathom_epochs *e, void *data)
{
	uint64_t oldest = UINT64_MAX;
	struct fathom_retired *list;

	if (atomic_flag_test_and_set(&e->reclaiming))
		return;
	/* Before it looks at the readers: what is retired later is not in this list. */
	list = atomic_exchange(&e->retired, NULL);
	for (size_t i = 0; i < FATHOM_EPOCH_READERS; i++) {
		const uint64_t epoch = atomic_load(&e->reader[i]);

		if (epoch && epoch < oldest)
			oldest = epoch;
	}
	list = free_older(list, oldest, data);
	while (list) {
		struct fathom_retired *next = list->next;

		push(e, list);
		list = next;
	}
	atomic_flag_clear(&e->reclaiming);
}
