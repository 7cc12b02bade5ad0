/* SPDX-License-Identifier: MIT */
#include "host/publish/registry_table.h"

#include <stdlib.h>

#include "safe/jit/registry.h"

/*
 * Bytes of replaced tables that are kept for readers outside, and how many at least. A reader of
 * another process may wait for a processor between two reads.
 */
#define MOST_GONE_BYTES ((size_t)256 << 10)
#define FEWEST_GONE     64

struct fathom_jit_table {
	struct fathom_jit_table *next;
	uint64_t commit; /* that replaced it */
	struct fathom_registry_table published;
};

static struct fathom_registry_head *head(void)
{
	return &fathom_registry_own;
}

/* Returns the bytes of a table of @n rows. */
static size_t size_of(uint64_t n)
{
	return sizeof(struct fathom_jit_table) + (size_t)n * sizeof(struct fathom_registry_row);
}

struct fathom_jit_table *fathom_jit_table_make(struct fathom_jit_registry *r,
					       const struct fathom_jit_leaves *leaves)
{
	struct fathom_jit_table *t = malloc(size_of(leaves->n));

	if (!t)
		return NULL;
	t->next = NULL;
	t->commit = 0;
	atomic_init(&t->published.serial, ++r->serial);
	atomic_init(&t->published.check,
		    r->serial ^ (uintptr_t)&t->published ^ FATHOM_REGISTRY_MAGIC);
	t->published.n = leaves->n;
	for (size_t i = 0; i < leaves->n; i++) {
		const struct fathom_jit_leaf *l = leaves->items[i];

		t->published.rows[i] = (struct fathom_registry_row){
			.low = l->image.low,
			.high = l->image.high,
			.file = (uintptr_t)fathom_jit_file_of(l),
			.size = l->gdb.size,
			.serial = l->serial,
		};
	}
	return t;
}

void fathom_jit_table_free(struct fathom_jit_table *t)
{
	free(t);
}

void fathom_jit_table_publish(struct fathom_jit_registry *r, struct fathom_jit_table *t)
{
	/* Sequentially consistent: a reader that was not seen in readers[] is led to the new one.
	 */
	atomic_store(&head()->table, (uintptr_t)&t->published);
	if (r->table) {
		r->table->commit = r->n_commits + 1;
		r->table->next = r->gone_tables;
		r->gone_tables = r->table;
	}
	r->table = t;
}

void fathom_jit_tables_trim(struct fathom_jit_registry *r)
{
	struct fathom_jit_table **link = &r->gone_tables;
	const uint64_t unread = r->idle[0] < r->idle[1] ? r->idle[0] : r->idle[1];

	for (size_t n = 0, bytes = 0;
	     *link && (n < FEWEST_GONE || bytes < MOST_GONE_BYTES || (*link)->commit > unread);
	     n++) {
		bytes += size_of((*link)->published.n);
		link = &(*link)->next;
	}
	while (*link) {
		struct fathom_jit_table *t = *link;

		*link = t->next;
		atomic_store(&t->published.serial, 0);
		atomic_store(&t->published.check, 0);
		free(t);
	}
}

void fathom_jit_table_widen(uint64_t low, uint64_t high)
{
	if (low < atomic_load(&head()->low))
		atomic_store(&head()->low, low);
	if (high > atomic_load(&head()->high))
		atomic_store(&head()->high, high);
}

void fathom_jit_sequence_rise(struct fathom_jit_registry *r)
{
	(void)r;
	(void)atomic_fetch_add(&head()->sequence, 1);
}

uint64_t fathom_jit_last_unread(struct fathom_jit_registry *r)
{
	struct fathom_registry_head *h = head();
	const uint32_t other = (atomic_load(&h->epoch) & 1) ^ 1;

	for (uint32_t i = 0; i < 2; i++)
		if (!atomic_load(&h->readers[i]))
			r->idle[i] = r->n_commits;
	/* New readers count themselves in the other one, so that this one comes to 0. */
	if (r->idle[other] == r->n_commits)
		(void)atomic_fetch_add(&h->epoch, 1);
	return r->idle[0] < r->idle[1] ? r->idle[0] : r->idle[1];
}

void fathom_jit_table_forget_readers(void)
{
	atomic_store(&head()->readers[0], 0);
	atomic_store(&head()->readers[1], 0);
}

void fathom_jit_block_free(uint64_t *block)
{
	__atomic_store_n(block, 0, __ATOMIC_RELEASE);
	free(block);
}
