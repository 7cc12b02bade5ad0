/* SPDX-License-Identifier: MIT */
#include "host/ranks/prefix_tree.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/hash.h"
#include "safe/base/error.h"

/* Bytes of a node, its place in the table of children, and as it is shown, about. */
#define NODE_BYTES (sizeof(struct fathom_merge_node) + sizeof(struct fathom_stack_node) + 48)

/* The most nodes, and the deepest one: their numbers have 32 bits. */
#define MOST_NODES (UINT32_C(1) << 31)

fathom_err fathom_stack_merge_create(struct fathom *session, struct fathom_stack_merge **ret_merge,
				     struct fathom_errinfo *reterr)
{
	struct fathom_stack_merge *m = calloc(1, sizeof *m);
	const struct fathom_merge_node all = { .label = FATHOM_KEY_NEW };

	if (!m || !fathom_array_push(&m->nodes, all)) {
		free(m);
		return fathom_fail_memory(reterr);
	}
	m->session = fathom_acquire(session);
	*ret_merge = m;
	return FATHOM_OK;
}

static void clear_shown(struct fathom_stack_merge *m)
{
	fathom_array_free(&m->shown);
	fathom_arena_deinit(&m->texts);
	m->texts = (struct fathom_arena){ NULL, 0 };
}

void fathom_stack_merge_free(struct fathom_stack_merge *merge)
{
	if (!merge)
		return;
	clear_shown(merge);
	for (size_t i = 0; i < merge->nodes.n; i++)
		free(merge->nodes.items[i].ranges.items);
	fathom_array_free(&merge->nodes);
	fathom_array_free(&merge->path);
	fathom_name_table_deinit(&merge->labels);
	fathom_key_map_deinit(&merge->children);
	fathom_memory_uncount(&merge->session->memory, merge->counted);
	fathom_destroy(merge->session);
	free(merge);
}

static uint64_t add_counts(uint64_t a, uint64_t b)
{
	const uint64_t most = FATHOM_MERGE_MOST;

	return a > most || b > most - a ? most : a + b;
}

static int compare_ranges(const void *pa, const void *pb)
{
	const struct fathom_rank_range *a = pa;
	const struct fathom_rank_range *b = pb;

	return a->first != b->first ? (a->first > b->first) - (a->first < b->first)
				    : (a->last > b->last) - (a->last < b->last);
}

/* Sorts @r, and joins ranges that overlap or follow each other. */
static void join(struct fathom_rank_ranges *r)
{
	size_t n = 0;

	if (!r->n)
		return;
	qsort(r->items, r->n, sizeof *r->items, compare_ranges);
	for (size_t i = 1; i < r->n; i++) {
		struct fathom_rank_range *last = &r->items[n];

		if (r->items[i].first <= (uint64_t)last->last + 1)
			last->last = r->items[i].last > last->last ? r->items[i].last : last->last;
		else
			r->items[++n] = r->items[i];
	}
	r->n = n + 1;
}

/* Counts @size more bytes. FATHOM_E_LIMIT. */
static fathom_err count(struct fathom_stack_merge *m, uint64_t size, struct fathom_errinfo *reterr)
{
	if (!fathom_memory_fits(&m->session->memory, size))
		return fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
				      "the tree does not fit the memory budget");
	fathom_memory_count(&m->session->memory, size);
	m->counted += size;
	return FATHOM_OK;
}

/* Makes room for more ranges: most nodes have one. */
static fathom_err enlarge(struct fathom_stack_merge *m, struct fathom_rank_ranges *r,
			  struct fathom_errinfo *reterr)
{
	const size_t larger = r->cap ? 2 * r->cap : 1;
	void *items;

	FATHOM_TRY(count(m, (larger - r->cap) * sizeof *r->items, reterr));
	items = realloc(r->items, larger * sizeof *r->items);
	if (!items)
		return fathom_fail_memory(reterr);
	r->items = items;
	r->cap = larger;
	return FATHOM_OK;
}

/* Adds @range to @to, mostly one that follows the last one. */
static fathom_err add_range(struct fathom_stack_merge *m, struct fathom_rank_ranges *to,
			    struct fathom_rank_range range, struct fathom_errinfo *reterr)
{
	struct fathom_rank_range *last = to->n ? &to->items[to->n - 1] : NULL;

	if (last && range.first >= last->first && range.first <= (uint64_t)last->last + 1) {
		last->last = range.last > last->last ? range.last : last->last;
		return FATHOM_OK;
	}
	/* Ranks that come again and again take no more room than once; sorting is rare. */
	if (to->n == to->cap) {
		join(to);
		if (to->n >= (to->cap + 1) / 2)
			FATHOM_TRY(enlarge(m, to, reterr));
	}
	to->items[to->n++] = range;
	return FATHOM_OK;
}

/* Adds what @line counts to node @i. */
static fathom_err add_to(struct fathom_stack_merge *m, uint32_t i,
			 const struct fathom_merge_line *line, bool ends,
			 struct fathom_errinfo *reterr)
{
	struct fathom_merge_node *node = &m->nodes.items[i];

	for (size_t k = 0; k < line->ranges.n; k++)
		FATHOM_TRY(add_range(m, &node->ranges, line->ranges.items[k], reterr));
	node->n_threads = add_counts(node->n_threads, line->n_threads);
	node->n_ends = add_counts(node->n_ends, ends ? line->n_threads : line->n_ends);
	return FATHOM_OK;
}

/* Finds the node with @label that @parent has called, which is made if it is new. */
static fathom_err find_child(struct fathom_stack_merge *m, uint32_t parent, uint32_t label,
			     uint32_t *ret, struct fathom_errinfo *reterr)
{
	const struct fathom_merge_node made = { .parent = parent, .label = label };
	uint32_t *number = fathom_key_map_at(&m->children, (uint64_t)parent << 32 | label);

	if (!number)
		return fathom_fail_memory(reterr);
	if (*number == FATHOM_KEY_NEW) {
		if (m->nodes.n == MOST_NODES)
			return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
					   "has more frames than a tree has room for");
		FATHOM_TRY(count(m, NODE_BYTES, reterr));
		if (!fathom_array_push(&m->nodes, made))
			return fathom_fail_memory(reterr);
		*number = (uint32_t)m->nodes.n - 1;
	}
	*ret = *number;
	return FATHOM_OK;
}

/* Adds a thread: all nodes from the outermost frame to the innermost one. */
static fathom_err add_thread(struct fathom_stack_merge *m, const struct fathom_merge_line *line,
			     struct fathom_errinfo *reterr)
{
	uint32_t at = 0;

	FATHOM_TRY(add_to(m, 0, line, false, reterr));
	for (size_t i = line->labels.n; i--;) {
		FATHOM_TRY(find_child(m, at, line->labels.items[i], &at, reterr));
		FATHOM_TRY(add_to(m, at, line, i == 0, reterr));
	}
	return FATHOM_OK;
}

/* Adds a node of another tree, below the last one of the depth above. */
static fathom_err add_branch(struct fathom_stack_merge *m, const struct fathom_merge_line *line,
			     struct fathom_errinfo *reterr)
{
	uint32_t at;

	if (line->depth > m->path.n)
		return fathom_fail(reterr, FATHOM_E_FORMAT, "", 0,
				   "is a node whose caller does not come before it");
	m->path.n = (size_t)line->depth;
	FATHOM_TRY(
		find_child(m, m->path.items[line->depth - 1], line->labels.items[0], &at, reterr));
	FATHOM_TRY(add_to(m, at, line, false, reterr));
	return fathom_array_push(&m->path, at) ? FATHOM_OK : fathom_fail_memory(reterr);
}

static fathom_err add_line(struct fathom_stack_merge *m, const struct fathom_merge_line *line,
			   struct fathom_errinfo *reterr)
{
	switch (line->kind) {
	case FATHOM_MERGE_THREAD:
		m->path.n = 0;
		return add_thread(m, line, reterr);
	case FATHOM_MERGE_ALL:
		m->path.n = 0;
		FATHOM_TRY(add_to(m, 0, line, false, reterr));
		return fathom_array_push(&m->path, 0) ? FATHOM_OK : fathom_fail_memory(reterr);
	case FATHOM_MERGE_BRANCH:
		break;
	}
	return add_branch(m, line, reterr);
}

fathom_err fathom_stack_merge_add(struct fathom_stack_merge *merge, const char *line, size_t size,
				  struct fathom_errinfo *reterr)
{
	struct fathom_bytes bytes = { (const uint8_t *)line, size };
	struct fathom_merge_line read = { .n_threads = 0 };
	const uint64_t before = merge->label_bytes;
	fathom_err err;

	while (bytes.size && memchr(" \t\r\n", bytes.data[bytes.size - 1], 4))
		bytes.size--;
	if (!bytes.size)
		return FATHOM_OK;
	if (size > FATHOM_STACK_MERGE_LINE_MAX)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0, "is a line of more than 256 MiB");
	clear_shown(merge);
	err = fathom_merge_line_read(merge, bytes, &read, reterr);
	if (!err)
		err = count(merge, merge->label_bytes - before, reterr);
	if (!err)
		err = add_line(merge, &read, reterr);
	/* Nodes that follow may be below this one, which is not there. */
	if (err)
		merge->path.n = 0;
	fathom_array_free(&read.ranges);
	fathom_array_free(&read.labels);
	return err;
}

/* Sets what a node shows but its place. False without memory. */
static bool show(struct fathom_stack_merge *m, const struct fathom_merge_node *node,
		 struct fathom_stack_node *ret)
{
	const char *label = node->label == FATHOM_KEY_NEW ? "" : m->labels.items[node->label].text;
	const char *end = strchr(label, FATHOM_MERGE_MODULE);
	const struct fathom_str function = { label, (uint32_t)(end ? end - label : 0) };

	*ret = (struct fathom_stack_node){
		.function = fathom_arena_strdup(&m->texts, function),
		.module = end && end[1] ? end + 1 : NULL,
		.ranges = node->ranges.items,
		.n_ranges = (uint32_t)node->ranges.n,
		.n_threads = node->n_threads,
		.n_ends = node->n_ends,
	};
	for (size_t i = 0; i < node->ranges.n; i++)
		ret->n_ranks +=
			(uint64_t)node->ranges.items[i].last - node->ranges.items[i].first + 1;
	return ret->function != NULL;
}

/* A node in the order of its siblings. */
struct ordered {
	uint32_t parent;
	uint32_t number;
	const struct fathom_stack_node *shown;
};

static int compare_texts(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

/* Compares nodes by their parents, then as siblings are shown. */
static int compare_ordered(const void *pa, const void *pb)
{
	const struct ordered *a = pa;
	const struct ordered *b = pb;
	const struct fathom_stack_node *x = a->shown;
	const struct fathom_stack_node *y = b->shown;

	if (a->parent != b->parent)
		return (a->parent > b->parent) - (a->parent < b->parent);
	if (x->n_ranks != y->n_ranks)
		return (x->n_ranks > y->n_ranks) - (x->n_ranks < y->n_ranks);
	if (x->n_threads != y->n_threads)
		return (x->n_threads > y->n_threads) - (x->n_threads < y->n_threads);
	return strcmp(x->function, y->function) ? strcmp(x->function, y->function)
						: compare_texts(x->module, y->module);
}

/* A node on the way from the root to the one that is put next. */
struct level {
	uint32_t next; /* in the order: the next child */
	uint32_t end;
};

/*
 * Puts the nodes of @order, sorted by parent, into m->shown, each before what it has called.
 * @first: of each node, where its children begin in the order. False without memory.
 */
static bool put_all(struct fathom_stack_merge *m, const struct ordered *order,
		    const uint32_t *first)
{
	struct {
		FATHOM_ARRAY_OF(struct level);
	} way = { NULL, 0, 0 };
	struct fathom_u32_array places = { NULL, 0, 0 }; /* in shown, of what is on the way */
	bool is_done = fathom_array_push(&way, (struct level){ first[0], first[1] }) &&
		       fathom_array_push(&places, 0);

	while (is_done && way.n) {
		struct level *level = &way.items[way.n - 1];
		struct fathom_stack_node node;
		uint32_t number;

		if (level->next == level->end) {
			way.n--;
			places.n--;
			continue;
		}
		number = order[level->next].number;
		node = *order[level->next++].shown;
		node.parent = places.items[places.n - 1];
		node.depth = (uint32_t)way.n;
		is_done =
			fathom_array_push(&m->shown, node) &&
			fathom_array_push(&places, (uint32_t)m->shown.n - 1) &&
			fathom_array_push(&way, (struct level){ first[number], first[number + 1] });
	}
	fathom_array_free(&way);
	fathom_array_free(&places);
	return is_done;
}

/* Sorts the nodes by parents and siblings; @first as above. */
static void sort_nodes(const struct fathom_stack_merge *m, const struct fathom_stack_node *shown,
		       struct ordered *order, uint32_t *first)
{
	const size_t n = m->nodes.n;
	size_t at = 0;

	for (size_t i = 1; i < n; i++)
		order[i - 1] = (struct ordered){ m->nodes.items[i].parent, (uint32_t)i, &shown[i] };
	qsort(order, n - 1, sizeof *order, compare_ordered);
	for (size_t i = 0; i <= n; i++) {
		while (at < n - 1 && order[at].parent < i)
			at++;
		first[i] = (uint32_t)at;
	}
}

static bool show_all(struct fathom_stack_merge *m)
{
	const size_t n = m->nodes.n;
	struct fathom_stack_node *shown = calloc(n, sizeof *shown);
	struct ordered *order = calloc(n, sizeof *order);
	uint32_t *first = calloc(n + 1, sizeof *first);
	bool is_done = shown && order && first;

	for (size_t i = 0; is_done && i < n; i++) {
		join(&m->nodes.items[i].ranges);
		is_done = show(m, &m->nodes.items[i], &shown[i]);
	}
	if (is_done) {
		sort_nodes(m, shown, order, first);
		is_done = fathom_array_room(&m->shown, n) &&
			  fathom_array_push(&m->shown, shown[0]) && put_all(m, order, first);
	}
	free(shown);
	free(order);
	free(first);
	return is_done;
}

fathom_err fathom_stack_merge_nodes(struct fathom_stack_merge *merge,
				    const struct fathom_stack_node **ret_nodes, size_t *ret_n,
				    struct fathom_errinfo *reterr)
{
	if (!merge->shown.n && !show_all(merge)) {
		clear_shown(merge);
		return fathom_fail_memory(reterr);
	}
	*ret_nodes = merge->shown.items;
	*ret_n = merge->shown.n;
	return FATHOM_OK;
}
