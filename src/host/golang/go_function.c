/* SPDX-License-Identifier: MIT */
#include "host/golang/go_function.h"

#include <stdlib.h>

/* Calls inlined into each other, at most; Go's compiler stops far earlier. */
#define MOST_DEPTH 32

/* Runs of a list, by more than any function has. */
#define MOST_RUNS (1u << 18)

/* More calls than are inlined into any function. */
#define MOST_CALLS (INT32_C(1) << 20)

void fathom_go_decoded_deinit(struct fathom_go_decoded *d)
{
	for (int i = 0; i < FATHOM_GO_LISTS; i++)
		fathom_array_free(&d->lists[i]);
	fathom_array_free(&d->positions);
	fathom_array_free(&d->nodes);
	fathom_array_free(&d->ranges);
	fathom_array_free(&d->numbers);
}

/* Reads the list at @off. */
static fathom_err read_list(struct fathom_go_decoded *d, const struct fathom_pclntab *t,
			    uint32_t off, struct fathom_go_run_array *ret)
{
	struct fathom_go_runs r = fathom_go_runs_init(t, &d->function, off);

	ret->n = 0;
	for (; d->runs_left && ret->n < MOST_RUNS && r.high < d->end && fathom_go_runs_next(&r);
	     d->runs_left--)
		if (!fathom_array_push(ret, ((struct fathom_go_run){ r.high, r.value })))
			return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

/* Finds the value of list @i at @pc; lowers *@high to where it ends. False: it has none. */
static bool value_at(const struct fathom_go_decoded *d, enum fathom_go_list i, uint64_t pc,
		     uint64_t *high, int32_t *ret)
{
	const struct fathom_go_run_array *list = &d->lists[i];
	const size_t at = FATHOM_BISECT(list->n, k, list->items[k].high <= pc);

	if (at == list->n)
		return false;
	*high = list->items[at].high < *high ? list->items[at].high : *high;
	*ret = list->items[at].value;
	return true;
}

/* Finds the position of @pc, whose call is an index of the tree or negative. */
static bool position_at(const struct fathom_go_decoded *d, uint64_t pc,
			struct fathom_go_position *ret, int32_t *ret_call)
{
	*ret = (struct fathom_go_position){ .low = pc, .high = d->end, .call = FATHOM_NONE };
	*ret_call = -1;
	return value_at(d, FATHOM_GO_FILES, pc, &ret->high, &ret->file) &&
	       value_at(d, FATHOM_GO_LINES, pc, &ret->high, &ret->line) &&
	       (d->function.inlined == FATHOM_GO_NO_VALUES ||
		value_at(d, FATHOM_GO_CALLS, pc, &ret->high, ret_call));
}

/* Returns where the node of call @index is kept; NULL without memory. */
static uint32_t *number_of(struct fathom_go_decoded *d, int32_t index)
{
	const size_t wanted = (size_t)index + 1;
	const size_t n = d->numbers.n;

	if (wanted > n) {
		if (!fathom_array_room(&d->numbers, wanted - n))
			return NULL;
		/* A tree is not larger than its function, unless it is a lie. */
		d->runs_left -= d->runs_left < (wanted - n) / 4 ? d->runs_left : (wanted - n) / 4;
		for (size_t i = n; i < wanted; i++)
			d->numbers.items[i] = FATHOM_NONE;
		d->numbers.n = wanted;
	}
	return &d->numbers.items[index];
}

/*
 * Finds the node of call @index, and makes it and its callers where they are new. @depth: of calls
 * that are being made. FATHOM_END: the tree is damaged.
 */
static fathom_err node_of(struct fathom_go_decoded *d, const struct fathom_pclntab *t,
			  int32_t index, unsigned depth, uint32_t *ret)
{
	struct fathom_go_node node = { .parent = FATHOM_NONE };
	struct fathom_go_position at;
	uint32_t *number;
	int32_t caller;

	if (index >= MOST_CALLS || depth == MOST_DEPTH)
		return FATHOM_END;
	number = number_of(d, index);
	if (!number)
		return FATHOM_E_MEMORY;
	*ret = *number;
	if (*ret != FATHOM_NONE)
		return FATHOM_OK;
	if (!fathom_pclntab_call(t, &d->function, index, &node.call) ||
	    !position_at(d, node.call.parent_pc, &at, &caller))
		return FATHOM_END;
	node.file = at.file;
	node.line = at.line;
	if (caller >= 0) {
		const fathom_err err = node_of(d, t, caller, depth + 1, &node.parent);

		if (err)
			return err;
	}
	/* Go inlines no function into itself. */
	for (uint32_t k = node.parent; k != FATHOM_NONE; k = d->nodes.items[k].parent)
		if (d->nodes.items[k].call.name_off == node.call.name_off)
			return FATHOM_END;
	*ret = (uint32_t)d->nodes.n;
	if (!fathom_array_push(&d->nodes, node))
		return FATHOM_E_MEMORY;
	d->numbers.items[index] = *ret;
	return FATHOM_OK;
}

/* Reads all positions, as far as the lists go. */
static fathom_err read_positions(struct fathom_go_decoded *d, const struct fathom_pclntab *t)
{
	struct fathom_go_position p;
	int32_t call;

	FATHOM_TRY(read_list(d, t, d->function.file, &d->lists[FATHOM_GO_FILES]));
	FATHOM_TRY(read_list(d, t, d->function.line, &d->lists[FATHOM_GO_LINES]));
	FATHOM_TRY(read_list(d, t, d->function.inlined, &d->lists[FATHOM_GO_CALLS]));
	for (uint64_t pc = d->function.entry; pc < d->end; pc = p.high) {
		if (!position_at(d, pc, &p, &call))
			return FATHOM_OK;
		if (call >= 0 && d->function.has_unknown_tree)
			continue;
		if (call >= 0) {
			const fathom_err err = node_of(d, t, call, 0, &p.call);

			if (err < 0)
				return err;
			if (err)
				continue;
		}
		if (!fathom_array_push(&d->positions, p))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Returns whether @name is that of a function within one called @outer, as in "main.f.func1". */
static bool is_closure_of(struct fathom_str name, struct fathom_str outer)
{
	return name.size > outer.size && memcmp(name.data, outer.data, outer.size) == 0 &&
	       name.data[outer.size] == '.';
}

/*
 * Returns whether the call of the position at hand is where it is said to be. Where the compiler
 * has moved its instruction away, as in functions that set up a package, another one is there,
 * which is of the callee, too.
 */
static bool is_called_there(const struct fathom_go_decoded *d, const struct fathom_pclntab *t,
			    const struct fathom_go_position *p)
{
	const struct fathom_go_node *n = &d->nodes.items[p->call];
	const struct fathom_str outer =
		n->parent == FATHOM_NONE
			? d->function.name
			: fathom_pclntab_name(t, d->nodes.items[n->parent].call.name_off);
	struct fathom_str file;

	if (n->file != p->file || n->line != p->line)
		return true;
	/* Wrappers that the compiler makes have one position for all, closures one line maybe. */
	file = fathom_pclntab_file(t, &d->function, p->file);
	return (file.size && file.data[0] == '<') ||
	       is_closure_of(fathom_pclntab_name(t, n->call.name_off), outer);
}

/* Leaves out the positions of calls that are not where they are said to be. */
static void drop_strayed(struct fathom_go_decoded *d, const struct fathom_pclntab *t)
{
	const struct fathom_go_node *nodes = d->nodes.items;
	struct fathom_go_position *p = d->positions.items;
	size_t n = 0;

	for (size_t i = 0; i < d->positions.n; i++)
		if (p[i].call != FATHOM_NONE && !is_called_there(d, t, &p[i]))
			d->nodes.items[p[i].call].line = -1;
	for (size_t i = 0; i < d->positions.n; i++) {
		uint32_t k = p[i].call;

		while (k != FATHOM_NONE && nodes[k].line > 0)
			k = nodes[k].parent;
		if (k == FATHOM_NONE)
			p[n++] = p[i];
	}
	d->positions.n = n;
}

/* Makes the lists of calls, and counts the ranges that each may have. */
static uint32_t link_nodes(struct fathom_go_decoded *d)
{
	struct fathom_go_node *nodes = d->nodes.items;
	uint32_t n = 0;

	for (size_t i = 0; i < d->nodes.n; i++) {
		nodes[i].first_child = nodes[i].next_sibling = FATHOM_NONE;
		nodes[i].n_ranges = 0;
	}
	/* The last is linked first: lists are in the order of their calls. */
	for (size_t i = d->nodes.n; i--;) {
		uint32_t *first = nodes[i].parent == FATHOM_NONE
					  ? &d->first_node
					  : &nodes[nodes[i].parent].first_child;

		nodes[i].next_sibling = *first;
		*first = (uint32_t)i;
	}
	for (size_t i = 0; i < d->positions.n; i++)
		for (uint32_t k = d->positions.items[i].call; k != FATHOM_NONE; k = nodes[k].parent)
			nodes[k].n_ranges++;
	for (size_t i = 0; i < d->nodes.n; i++) {
		nodes[i].first_range = n;
		n += nodes[i].n_ranges;
		nodes[i].n_ranges = 0;
	}
	return n;
}

/* Fills in the ranges of each call; those that touch are joined. */
static fathom_err make_ranges(struct fathom_go_decoded *d)
{
	const uint32_t n = link_nodes(d);
	struct fathom_go_node *nodes = d->nodes.items;

	d->ranges.n = 0;
	if (!fathom_array_room(&d->ranges, n))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < d->positions.n; i++) {
		const struct fathom_go_position *p = &d->positions.items[i];

		for (uint32_t k = p->call; k != FATHOM_NONE; k = nodes[k].parent) {
			struct fathom_range *r = d->ranges.items + nodes[k].first_range;

			if (nodes[k].n_ranges && r[nodes[k].n_ranges - 1].high == p->low)
				r[nodes[k].n_ranges - 1].high = p->high;
			else
				r[nodes[k].n_ranges++] = (struct fathom_range){ p->low, p->high };
		}
	}
	return FATHOM_OK;
}

fathom_err fathom_go_decode(struct fathom_go_decoded *d, const struct fathom_pclntab *t, uint32_t i)
{
	const bool is_old = t->layout == FATHOM_GO_1_2;
	fathom_err err = FATHOM_OK;

	d->positions.n = d->nodes.n = d->ranges.n = d->numbers.n = 0;
	d->first_node = FATHOM_NONE;
	if (!fathom_pclntab_function(t, i, &d->function))
		return FATHOM_END;
	d->end = fathom_pclntab_end(t, &d->function);
	/* Which list tells of calls was another one in each version. */
	if (!is_old || !d->function.has_unknown_tree)
		err = read_positions(d, t);
	if (err)
		return err;
	drop_strayed(d, t);
	return make_ranges(d);
}
