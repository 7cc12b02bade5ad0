/* SPDX-License-Identifier: MIT */
#include "host/page/merged_tree.h"

#include <stdlib.h>

/* Bytes that a node takes, with how it is found and sorted. */
#define NODE_SIZE (sizeof(struct fathom_page_node) + 48)
/* Nodes before their size is compared with the budget. */
#define NODES_UNCHECKED 4096

void fathom_page_tree_init(struct fathom_page_tree *t)
{
	t->no_memory = !fathom_array_push(t, (struct fathom_page_node){ .parent = 0 });
}

uint32_t fathom_page_child(struct fathom_page_tree *t, uint32_t parent, uint32_t function)
{
	uint32_t *number = fathom_key_map_at(&t->children, (uint64_t)parent << 32 | function);

	if (number && *number != FATHOM_KEY_NEW)
		return *number;
	if (t->n >= FATHOM_KEY_NEW || (t->n >= NODES_UNCHECKED && !(t->n & (t->n - 1)) &&
				       !fathom_memory_fits(t->memory, 2 * t->n * NODE_SIZE)))
		t->is_too_large = true;
	if (!number || t->is_too_large ||
	    !fathom_array_push(
		    t, (struct fathom_page_node){ .parent = parent, .function = function })) {
		t->no_memory |= !t->is_too_large;
		return 0;
	}
	*number = (uint32_t)t->n - 1;
	return *number;
}

static int compare(const struct fathom_page_node *a, const struct fathom_page_node *b)
{
	int order = u64_compare(a->parent, b->parent);

	order = order ? order : u64_compare(b->weights[0], a->weights[0]);
	order = order ? order : u64_compare(b->weights[1], a->weights[1]);
	return order ? order : u64_compare(a->function, b->function);
}

static int compare_nodes(const void *a, const void *b)
{
	return compare(*(const struct fathom_page_node *const *)a,
		       *(const struct fathom_page_node *const *)b);
}

/*
 * Numbers the nodes of @sorted, the children of each parent together. A node's number follows from
 * its parent's and the sizes of its siblings' trees; parents come before their children in the
 * order of @t, so that order is followed.
 */
static void number(struct fathom_page_tree *t, struct fathom_page_node **sorted, uint32_t *sizes,
		   const uint32_t *firsts)
{
	for (size_t i = 0; i < t->n; i++) {
		uint32_t next = t->items[i].number + 1;

		for (size_t k = firsts[i]; k < t->n - 1 && sorted[k]->parent == i; k++) {
			sorted[k]->number = next;
			next += sizes[sorted[k] - t->items];
		}
	}
}

static void sum_up(struct fathom_page_tree *t, uint32_t *sizes)
{
	for (size_t i = t->n; i-- > 0;) {
		struct fathom_page_node *n = &t->items[i];

		sizes[i]++;
		if (!i)
			break;
		for (int k = 0; k < 2; k++)
			t->items[n->parent].weights[k] += n->weights[k];
		sizes[n->parent] += sizes[i];
	}
}

void fathom_page_tree_number(struct fathom_page_tree *t)
{
	struct fathom_page_node **sorted = malloc(t->n * sizeof *sorted);
	uint32_t *sizes = calloc(t->n, sizeof *sizes);
	uint32_t *firsts = malloc(t->n * sizeof *firsts);

	if (sorted && sizes && firsts) {
		sum_up(t, sizes);
		for (size_t i = 1; i < t->n; i++)
			sorted[i - 1] = &t->items[i];
		if (t->n > 1)
			qsort(sorted, t->n - 1, sizeof *sorted, compare_nodes);
		for (size_t i = 0; i < t->n; i++)
			firsts[i] = UINT32_MAX;
		for (size_t k = t->n - 1; k-- > 0;)
			firsts[sorted[k]->parent] = (uint32_t)k;
		t->items[0].number = 0;
		number(t, sorted, sizes, firsts);
	} else {
		t->no_memory = true;
	}
	free(sorted);
	free(sizes);
	free(firsts);
}

void fathom_page_tree_put(const struct fathom_page_tree *t, struct fathom_page_column *parents,
			  struct fathom_page_column *functions)
{
	const struct fathom_page_node **by_number = calloc(t->n, sizeof *by_number);

	if (!by_number) {
		parents->no_memory = true;
		return;
	}
	for (size_t i = 0; i < t->n; i++)
		by_number[t->items[i].number] = &t->items[i];
	for (size_t i = 1; i < t->n; i++) {
		fathom_page_put(parents, i - t->items[by_number[i]->parent].number);
		fathom_page_put(functions, by_number[i]->function);
	}
	free(by_number);
}

void fathom_page_tree_deinit(struct fathom_page_tree *t)
{
	fathom_key_map_deinit(&t->children);
	fathom_array_free(t);
}
