/* SPDX-License-Identifier: MIT */
/* Threads whose stacks are equal, as one block. */
#include <stdlib.h>
#include <string.h>

#include "cli/stack.h"

/* A thread in the order of folding. */
struct entry {
	const struct fathom_thread *thread;
	const struct kernel_stack *kernel;
	size_t i;     /* its number among all */
	size_t first; /* the lowest number in its block */
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares two texts, either of which may be NULL. */
static int compare_texts(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : compare_numbers(a != NULL, b != NULL);
}

static int compare_kernel(const struct kernel_stack *a, const struct kernel_stack *b)
{
	if (!a || !b)
		return compare_numbers(a != NULL, b != NULL);
	if (a->failed || b->failed)
		return compare_texts(a->failed, b->failed);
	return compare_texts(a->text, b->text);
}

/*
 * Orders by what equal stacks have in common: their pcs, their ends, and their frames in the
 * kernel.
 */
static int compare_stacks(const struct entry *a, const struct entry *b)
{
	const struct fathom_thread *s = a->thread;
	const struct fathom_thread *t = b->thread;
	int order = compare_numbers(s->n_frames, t->n_frames);

	order = order ? order : compare_numbers(s->n_left_out, t->n_left_out);

	for (size_t i = 0; i < s->n_frames && !order; i++) {
		order = compare_numbers(s->frames[i].pc.address, t->frames[i].pc.address);
		order = order ? order : compare_numbers(s->frames[i].trust, t->frames[i].trust);
	}
	order = order ? order : compare_numbers(s->stop, t->stop);
	order = order ? order : compare_numbers(s->reason, t->reason);
	order = order ? order : compare_texts(s->failed, t->failed);
	/* Each thread that died stands for itself. */
	order = order ? order : compare_numbers((uintptr_t)s->died, (uintptr_t)t->died);
	return order ? order : compare_kernel(a->kernel, b->kernel);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *s = a;
	const struct entry *t = b;
	const int order = compare_stacks(s, t);

	return order ? order : compare_numbers(s->i, t->i);
}

static int compare_places(const void *a, const void *b)
{
	const struct entry *s = a;
	const struct entry *t = b;
	const int order = compare_numbers(s->first, t->first);

	return order ? order : compare_numbers(s->i, t->i);
}

/* Sorts the entries so that equal stacks stand together, each block where its first thread is. */
static void sort_blocks(struct entry *entries, size_t n)
{
	qsort(entries, n, sizeof *entries, compare_entries);
	for (size_t i = 0; i < n; i++)
		entries[i].first = i && compare_stacks(&entries[i - 1], &entries[i]) == 0
					   ? entries[i - 1].first
					   : entries[i].i;
	qsort(entries, n, sizeof *entries, compare_places);
}

/* Leaves in @to what it has in common with @t. */
static void keep_common(struct fathom_thread *to, const struct fathom_thread *t)
{
	if (compare_texts(to->name, t->name) != 0)
		to->name = NULL;
	if (to->state != t->state)
		to->state = 0;
	if (to->owner != t->owner)
		to->owner = 0;
	if (compare_texts(to->waits_for, t->waits_for) != 0)
		to->waits_for = NULL;
	if (compare_texts(to->syscall, t->syscall) != 0) {
		to->syscall = NULL;
		to->waits_for = NULL;
	}
	if (to->signal != t->signal || to->fault_address != t->fault_address) {
		to->signal = 0;
		to->fault_address = FATHOM_NO_ADDRESS;
	}
	if (to->pause_ns < t->pause_ns)
		to->pause_ns = t->pause_ns;
	to->was_restarted |= t->was_restarted;
	to->registers.n = 0;
}

/* Prints the @n entries, which are one block. */
static void print_block(struct stack *v, const struct entry *entries, size_t n, int32_t *tids,
			void (*print)(struct stack *v, const struct stack_block *b))
{
	struct stack_block b = {
		.thread = *entries->thread, .tids = tids, .n = n, .kernel = entries->kernel
	};

	for (size_t i = 0; i < n; i++)
		tids[i] = entries[i].thread->tid;
	for (size_t i = 1; i < n; i++)
		keep_common(&b.thread, entries[i].thread);
	print(v, &b);
}

void stack_for_each_block(struct stack *v, const struct fathom_stacks *stacks,
			  void (*print)(struct stack *v, const struct stack_block *b))
{
	const size_t n = fathom_stacks_count(stacks);
	struct entry *entries = must(calloc(n + 1, sizeof *entries));
	int32_t *tids = must(calloc(n + 1, sizeof *tids));

	for (size_t i = 0; i < n; i++) {
		const struct fathom_thread *t = fathom_stacks_get(stacks, i);

		entries[i] = (struct entry){ .thread = t, .i = i, .first = i };
		entries[i].kernel =
			v->kernel ? kernel_stacks_find(&v->kernel_stacks, t->tid) : NULL;
	}
	if (v->fold)
		sort_blocks(entries, n);
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		while (end < n && entries[end].first == entries[i].first)
			end++;
		print_block(v, entries + i, end - i, tids, print);
	}
	free(entries);
	free(tids);
}
