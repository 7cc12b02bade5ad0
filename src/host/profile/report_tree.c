/* SPDX-License-Identifier: MIT */
/*
 * The tree from outside to inside. A caller of a profile's node has a lower number, so the branch
 * of each node that leaves need is found from that of its caller, in the order of the numbers: no
 * stack is walked twice, however many samples share it. What lies around the outermost frame (a
 * thread, frames that are missing) differs between leaves, so that those which have it in common
 * are done together.
 */
#include "host/profile/report_tree.h"

#include <stdlib.h>
#include <string.h>

#include "safe/base/error.h"

/* Frames that are looked at for a tree before it is given up. */
#define MOST_STEPS (UINT64_C(1) << 30)
/* Steps before the caller is asked whether to go on. */
#define PACE (1 << 18)
/* Bytes that a branch takes, with its siblings and how it is found. */
#define BRANCH_SIZE (sizeof(struct fathom_report_branch) + 48)
/* Branches before their size is compared with the budget. */
#define BRANCHES_UNCHECKED 4096

/* Refuses to make more of the tree. */
static void give_up(struct fathom_report_tree *t, const char *what, enum fathom_cause cause)
{
	if (t->too_much)
		return;
	t->too_much = what;
	t->cause = cause;
}

uint32_t fathom_report_tree_add(struct fathom_report_tree *t, uint32_t parent, uint32_t row)
{
	struct fathom_memory *m = &t->rows->profile->session->memory;

	if (t->n >= BRANCHES_UNCHECKED && !(t->n & (t->n - 1)) &&
	    !fathom_memory_fits(m, 2 * t->n * BRANCH_SIZE))
		give_up(t, "the tree does not fit the memory budget", FATHOM_CAUSE_BUDGET);
	if (t->n >= FATHOM_KEY_NEW)
		give_up(t, "the tree has too many branches", FATHOM_CAUSE_NONE);
	if (t->too_much)
		return 0;
	if (!fathom_array_push(t, (struct fathom_report_branch){ .parent = parent, .row = row })) {
		t->no_memory = true;
		return 0;
	}
	return (uint32_t)t->n - 1;
}

bool fathom_report_tree_step(struct fathom_report_tree *t)
{
	if (++t->steps > MOST_STEPS)
		give_up(t, "the stacks are too many and too deep", FATHOM_CAUSE_NONE);
	if (!fathom_keeps_pace(&t->pace))
		t->is_cancelled = true;
	return !t->too_much && !t->no_memory && !t->is_cancelled;
}

fathom_err fathom_report_tree_end(struct fathom_report_tree *t, struct fathom_errinfo *reterr)
{
	if (t->is_cancelled)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	if (t->no_memory)
		return fathom_fail_memory(reterr);
	return t->too_much ? fathom_fail_by(reterr, FATHOM_E_LIMIT, t->cause, t->too_much)
			   : FATHOM_OK;
}

void fathom_report_tree_deinit(struct fathom_report_tree *t)
{
	fathom_array_free(t);
}

/* States of a node that are no branches: its stack has not reached what it has to begin with. */
#define OUTSIDE     UINT32_MAX
#define HALF        (UINT32_MAX - 1)
#define LEAST_STATE HALF

struct down {
	struct fathom_report_tree *tree;
	const struct fathom_report_rows *rows;
	const struct fathom_profile_node *nodes;
	struct fathom_key_map children; /* branches by parent and row */
	uint32_t *states;               /* of each node: its branch, OUTSIDE or HALF */
	uint32_t *marks;                /* the run that each node was last needed in */
	struct fathom_u32_array needed; /* nodes of this run */
	uint32_t run;
	uint32_t group; /* branch of this run's group; 0: none */
	uint32_t start; /* state before the outermost frame */
	bool with_of;
};

/* Returns the branch of @row below @parent. */
static uint32_t child(struct down *d, uint32_t parent, uint32_t row)
{
	uint32_t *number = fathom_key_map_at(&d->children, (uint64_t)parent << 32 | row);

	if (!number) {
		d->tree->no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW)
		*number = fathom_report_tree_add(d->tree, parent, row);
	return *number;
}

/* Returns the state after frame @f, which is called in @state. */
static uint32_t call(struct down *d, uint32_t state, const struct fathom_report_frame *f)
{
	if (state == OUTSIDE && f->chosen & FATHOM_REPORT_UNDER)
		state = d->with_of ? HALF : d->group;
	if (state == HALF && f->chosen & FATHOM_REPORT_OF)
		state = d->group;
	if (state >= LEAST_STATE || !(f->chosen & FATHOM_REPORT_WANTED))
		return state;
	/* A module's functions that call each other are one frame. */
	if (d->rows->options->key == FATHOM_REPORT_BY_MODULE && state &&
	    d->tree->items[state].row == f->row)
		return state;
	return child(d, state, f->row);
}

/* Finds the state of node @i from that of its caller. */
static void enter_node(struct down *d, uint32_t i)
{
	const struct fathom_profile_node *n = &d->nodes[i];
	uint32_t state = n->caller ? d->states[n->caller] : d->start;
	uint32_t n_frames;
	const struct fathom_report_frame *frames =
		fathom_report_chain(d->rows, n->location, &n_frames);

	while (n_frames && fathom_report_tree_step(d->tree))
		state = call(d, state, &frames[--n_frames]);
	d->states[i] = state;
}

static int compare_numbers(const void *a, const void *b)
{
	return u64_compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Collects the nodes that the @n @leaves need, in the order of their numbers. */
static bool collect(struct down *d, const struct fathom_report_leaf *leaves, size_t n)
{
	const size_t n_nodes = d->rows->profile->n_nodes;

	d->needed.n = 0;
	d->run++;
	for (size_t i = 0; i < n; i++)
		for (uint32_t node = leaves[i].node; node && d->marks[node] != d->run;
		     node = d->nodes[node].caller) {
			d->marks[node] = d->run;
			if (!fathom_array_push(&d->needed, node))
				return false;
			if (!fathom_report_tree_step(d->tree))
				return true;
		}
	if (d->needed.n < n_nodes / 16) {
		if (d->needed.n)
			qsort(d->needed.items, d->needed.n, sizeof *d->needed.items,
			      compare_numbers);
		return true;
	}
	d->needed.n = 0;
	for (uint32_t node = 1; node < n_nodes; node++)
		if (d->marks[node] == d->run)
			d->needed.items[d->needed.n++] = node;
	return true;
}

/* Adds the weight of a leaf. */
static void add_leaf(struct down *d, const struct fathom_report_leaf *leaf)
{
	const bool has_own = d->rows->has_own;
	uint32_t state = leaf->node ? d->states[leaf->node] : d->start;
	struct fathom_report_branch *b;

	if (state >= LEAST_STATE)
		return;
	if (leaf->part == FATHOM_PROFILE_UNSAMPLED && has_own)
		state = child(d, state, d->rows->unsampled);
	else if (leaf->part == FATHOM_PROFILE_KERNEL_HIDDEN && has_own)
		state = child(d, state, d->rows->hidden);
	/* All its frames were passed over. */
	if (state == d->group || !state)
		return;
	b = &d->tree->items[state];
	b->self += leaf->weight;
	b->self_samples += leaf->n;
}

/* Adds leaves that differ in their nodes only. */
static void add_run(struct down *d, const struct fathom_report_leaf *leaves, size_t n)
{
	const struct fathom_report_rows *r = d->rows;

	d->group = leaves->group == FATHOM_NONE ? 0 : child(d, 0, leaves->group);
	d->start = r->has_under ? OUTSIDE : d->with_of ? HALF : d->group;
	if (leaves->stop != FATHOM_STOP_ENTRY && d->start < LEAST_STATE && r->has_own)
		d->start = child(d, d->start, r->incomplete[leaves->stop]);
	if (!collect(d, leaves, n)) {
		d->tree->no_memory = true;
		return;
	}
	for (size_t i = 0; i < d->needed.n; i++)
		enter_node(d, d->needed.items[i]);
	for (size_t i = 0; i < n && fathom_report_tree_step(d->tree); i++)
		add_leaf(d, &leaves[i]);
}

static int compare_leaves(const void *pa, const void *pb)
{
	const struct fathom_report_leaf *a = pa;
	const struct fathom_report_leaf *b = pb;

	return a->group != b->group ? u64_compare(a->group, b->group)
	       : a->stop != b->stop ? a->stop - b->stop
				    : u64_compare(a->node, b->node);
}

/* Adds what each branch has of its own to all that it is below. */
static void sum_up(struct fathom_report_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		t->items[i].total = t->items[i].self;
		t->items[i].total_samples = t->items[i].self_samples;
	}
	for (size_t i = t->n; i-- > 1;) {
		struct fathom_report_branch *parent = &t->items[t->items[i].parent];

		parent->total += t->items[i].total;
		parent->total_samples += t->items[i].total_samples;
	}
}

fathom_err fathom_report_tree_down(struct fathom_report_tree *t, struct fathom_report_leaf *leaves,
				   size_t n, bool with_of, struct fathom_errinfo *reterr)
{
	const struct fathom_profile *p = t->rows->profile;
	struct down d = { .tree = t,
			  .rows = t->rows,
			  .nodes = p->nodes,
			  .states = calloc(p->n_nodes, sizeof *d.states),
			  .marks = calloc(p->n_nodes, sizeof *d.marks),
			  .with_of = with_of };

	t->pace = fathom_pace_init(p->session, PACE);
	(void)fathom_report_tree_add(t, 0, FATHOM_NONE);
	t->no_memory |= !d.states || !d.marks || !t->n;
	if (n)
		qsort(leaves, n, sizeof *leaves, compare_leaves);
	for (size_t first = 0, end; first < n && fathom_report_tree_step(t); first = end) {
		for (end = first + 1; end < n && leaves[end].group == leaves[first].group &&
				      leaves[end].stop == leaves[first].stop;
		     end++)
			continue;
		add_run(&d, leaves + first, end - first);
	}
	fathom_key_map_deinit(&d.children);
	fathom_array_free(&d.needed);
	free(d.states);
	free(d.marks);
	sum_up(t);
	return fathom_report_tree_end(t, reterr);
}

fathom_err fathom_report_links_make(const struct fathom_report_tree *t,
				    struct fathom_report_links *ret, struct fathom_errinfo *reterr)
{
	struct fathom_report_links l = { .first = calloc(t->n, sizeof *l.first),
					 .next = calloc(t->n, sizeof *l.next) };

	if (!l.first || !l.next) {
		fathom_report_links_deinit(&l);
		return fathom_fail_memory(reterr);
	}
	for (uint32_t i = (uint32_t)t->n; i-- > 1;) {
		l.next[i] = l.first[t->items[i].parent];
		l.first[t->items[i].parent] = i;
	}
	*ret = l;
	return FATHOM_OK;
}

static int compare_texts(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

int fathom_report_row_compare(const struct fathom_report_row *a, const struct fathom_report_row *b)
{
	int order = compare_texts(a->name, b->name);

	order = order ? order : compare_texts(a->module, b->module);
	order = order ? order : compare_texts(a->file, b->file);
	order = order ? order : u64_compare(a->line, b->line);
	order = order ? order : compare_texts(a->linkage_name, b->linkage_name);
	order = order ? order : u64_compare((uint32_t)a->pid, (uint32_t)b->pid);
	return order ? order : u64_compare((uint32_t)a->tid, (uint32_t)b->tid);
}

/* A branch among its siblings. */
struct sibling {
	uint64_t total;
	const struct fathom_report_row *row;
	uint32_t branch;
};

static int compare_siblings(const void *pa, const void *pb)
{
	const struct sibling *a = pa;
	const struct sibling *b = pb;
	const int order = u64_compare(b->total, a->total);

	return order ? order : fathom_report_row_compare(a->row, b->row);
}

fathom_err fathom_report_links_sort(const struct fathom_report_tree *t,
				    struct fathom_report_links *links,
				    struct fathom_errinfo *reterr)
{
	struct {
		FATHOM_ARRAY_OF(struct sibling);
	} all = { .n = 0 };

	for (size_t parent = 0; parent < t->n; parent++) {
		uint32_t *to = &links->first[parent];

		all.n = 0;
		for (uint32_t i = links->first[parent]; i; i = links->next[i]) {
			const struct sibling s = { .total = t->items[i].total,
						   .row = &t->rows->items[t->items[i].row],
						   .branch = i };

			if (!fathom_array_push(&all, s)) {
				fathom_array_free(&all);
				return fathom_fail_memory(reterr);
			}
		}
		if (all.n > 1)
			qsort(all.items, all.n, sizeof *all.items, compare_siblings);
		for (size_t i = 0; i < all.n; i++) {
			*to = all.items[i].branch;
			to = &links->next[all.items[i].branch];
		}
		*to = 0;
	}
	fathom_array_free(&all);
	return FATHOM_OK;
}

void fathom_report_links_deinit(struct fathom_report_links *links)
{
	free(links->first);
	free(links->next);
}

void fathom_report_visit(const struct fathom_report_tree *t,
			 const struct fathom_report_links *links,
			 bool (*enter)(void *data, uint32_t branch),
			 void (*leave)(void *data, uint32_t branch), void *data)
{
	uint32_t i = links->first[0];

	while (i) {
		const bool goes_down = !enter || enter(data, i);

		if (goes_down && links->first[i]) {
			i = links->first[i];
			continue;
		}
		for (; i; i = t->items[i].parent) {
			if (leave)
				leave(data, i);
			if (links->next[i]) {
				i = links->next[i];
				break;
			}
		}
	}
}
