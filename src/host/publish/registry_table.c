/* SPDX-License-Identifier: MIT */
#include "host/publish/registry_table.h"

#include <stdlib.h>
#include <string.h>

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

static struct fathom_registry_row row_of(const struct fathom_jit_leaf *l)
{
	return (struct fathom_registry_row){
		.low = l->image.low,
		.high = l->image.high,
		.file = (uintptr_t)fathom_jit_file_of(l),
		.size = l->gdb.size,
		.serial = l->serial,
	};
}

/*
 * Writes the rows of @leaves. Those at both ends that are in the table before, too, are copied from
 * it: a commit changes few leaves, and looking at each would cost more than the rest of it.
 */
static void put_rows(const struct fathom_jit_registry *r, const struct fathom_jit_leaves *leaves,
		     struct fathom_registry_row *to)
{
	const struct fathom_jit_leaves *old = &r->leaves;
	const size_t most = !r->table ? 0 : leaves->n < old->n ? leaves->n : old->n;
	size_t first = 0;
	size_t last = 0;

	while (first < most && leaves->items[first] == old->items[first])
		first++;
	while (last < most - first &&
	       leaves->items[leaves->n - 1 - last] == old->items[old->n - 1 - last])
		last++;
	if (first)
		memcpy(to, r->table->published.rows, first * sizeof *to);
	for (size_t i = first; i < leaves->n - last; i++)
		to[i] = row_of(leaves->items[i]);
	if (last)
		memcpy(to + leaves->n - last, r->table->published.rows + old->n - last,
		       last * sizeof *to);
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
	put_rows(r, leaves, t->published.rows);
	return t;
}

void fathom_jit_table_free(struct fathom_jit_table *t)
{
	free(t);
}

/* Keeps @t, which was replaced in this commit, for a while. */
static void retire(struct fathom_jit_registry *r, struct fathom_jit_table *t)
{
	t->commit = r->n_commits + 1;
	if (r->n_gone_tables++)
		r->last_gone_table->next = t;
	else
		r->gone_tables = t;
	r->last_gone_table = t;
	r->gone_table_bytes += size_of(t->published.n);
}

void fathom_jit_table_publish(struct fathom_jit_registry *r, struct fathom_jit_table *t)
{
	/*
	 * Sequentially consistent: a reader that was not seen in readers[] is led to the new one.
	 */
	atomic_store(&head()->table, (uintptr_t)&t->published);
	if (r->table)
		retire(r, r->table);
	r->table = t;
}

void fathom_jit_tables_trim(struct fathom_jit_registry *r)
{
	const uint64_t unread = r->idle[0] < r->idle[1] ? r->idle[0] : r->idle[1];
	struct fathom_jit_table *t;

	while (r->n_gone_tables > FEWEST_GONE && r->gone_table_bytes > MOST_GONE_BYTES &&
	       r->gone_tables->commit <= unread) {
		t = r->gone_tables;
		r->gone_tables = t->next;
		r->n_gone_tables--;
		r->gone_table_bytes -= size_of(t->published.n);
		atomic_store(&t->published.serial, 0);
		atomic_store(&t->published.check, 0);
		/* Before whatever the next owner of the memory writes. */
		atomic_thread_fence(memory_order_release);
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
	/* Before whatever the next owner of the memory writes. */
	atomic_thread_fence(memory_order_release);
	free(block);
}
