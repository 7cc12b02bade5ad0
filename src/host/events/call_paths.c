/* SPDX-License-Identifier: MIT */
#include "host/events/call_paths.h"

#include <stdlib.h>

/* The sort key of a path. */
struct rank {
	uint64_t weight;
	const char *name;
	uint32_t parent;
	uint32_t path;
};

/* Returns the path of @name below @parent; FATHOM_PATH_NONE without memory. */
static uint32_t path_of(struct fathom_call_paths *p, uint32_t parent, uint32_t name)
{
	const bool is_thread = parent == FATHOM_PATH_NONE;
	const struct fathom_call_path path = {
		.name = name,
		.parent = parent,
		.depth = is_thread ? 0 : p->paths.items[parent].depth + 1
	};
	uint32_t *number = fathom_key_map_at(&p->by_place, (uint64_t)parent << 32 | name);

	if (!number)
		return FATHOM_PATH_NONE;
	if (*number != FATHOM_KEY_NEW)
		return *number;
	if (p->paths.n == FATHOM_PATH_NONE || !fathom_array_push(&p->paths, path))
		return FATHOM_PATH_NONE;
	*number = (uint32_t)p->paths.n - 1;
	return *number;
}

/* Returns the index of the name of @f; FATHOM_KEY_NEW without memory. */
static uint32_t name_of(struct fathom_call_paths *p, const struct fathom_trace_function *f)
{
	uint32_t *name = fathom_key_map_at(&p->by_number, f->number);

	if (!name)
		return FATHOM_KEY_NEW;
	if (*name == FATHOM_KEY_NEW)
		*name = fathom_name_table_add(&p->names, f->name);
	return *name;
}

static void begin_thread(void *data, struct fathom_open_thread *t)
{
	struct fathom_call_paths *p = data;
	const uint32_t name = fathom_name_table_add(&p->names, *t->name ? t->name : "??");

	t->mark = name == FATHOM_KEY_NEW ? FATHOM_PATH_NONE : path_of(p, FATHOM_PATH_NONE, name);
	p->no_memory |= t->mark == FATHOM_PATH_NONE;
}

/* Returns the path of unknown callers below @parent; FATHOM_PATH_NONE without memory. */
static uint32_t gap_of(struct fathom_call_paths *p, uint32_t parent)
{
	const uint32_t name = fathom_name_table_add(&p->names, FATHOM_PATH_GAP);
	const uint32_t gap = name == FATHOM_KEY_NEW ? FATHOM_PATH_NONE : path_of(p, parent, name);

	if (gap != FATHOM_PATH_NONE)
		p->paths.items[gap].is_gap = true;
	return gap;
}

/* Returns the path that call @c begins below. */
static uint32_t parent_of(struct fathom_call_paths *p, const struct fathom_open_thread *t,
			  const struct fathom_open_call *c)
{
	switch (c->parent) {
	case FATHOM_TRACE_PARENT_DIRECT:
		return c[-1].mark;
	case FATHOM_TRACE_PARENT_GAP:
		return gap_of(p, c[-1].mark);
	default:
		return c->is_outermost ? t->mark : gap_of(p, t->mark);
	}
}

static void begin_call(void *data, const struct fathom_open_thread *t, struct fathom_open_call *c,
		       const struct fathom_trace_event *e)
{
	struct fathom_call_paths *p = data;
	const uint32_t parent = parent_of(p, t, c);
	const uint32_t name = name_of(p, e->function);

	c->mark = name == FATHOM_KEY_NEW || parent == FATHOM_PATH_NONE ? FATHOM_PATH_NONE
								       : path_of(p, parent, name);
	if (c->mark == FATHOM_PATH_NONE)
		p->no_memory = true;
	else
		p->paths.items[c->mark].calls += e->count;
}

static void end_call(void *data, const struct fathom_open_thread *t,
		     const struct fathom_open_call *c, uint64_t ns)
{
	struct fathom_call_paths *p = data;

	(void)t;
	p->paths.items[c->mark].total_ns += ns;
}

static const struct fathom_open_calls_user user = { begin_thread, begin_call, end_call };

void fathom_call_paths_begin(struct fathom_trace_writer *w)
{
	struct fathom_call_paths *p = calloc(1, sizeof *p);

	w->state = p;
	w->no_memory |= !p;
	if (p)
		p->open = (struct fathom_open_calls){ .user = &user, .data = p };
}

void fathom_call_paths_event(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct fathom_call_paths *p = w->state;

	p->has_times |= e->type == FATHOM_TRACE_RETURN && e->duration_ns;
	w->no_memory |= !fathom_open_calls_take(&p->open, e) || p->no_memory;
}

void fathom_call_paths_free(struct fathom_trace_writer *w)
{
	struct fathom_call_paths *p = w->state;

	if (!p)
		return;
	fathom_array_free(&p->paths);
	fathom_name_table_deinit(&p->names);
	fathom_key_map_deinit(&p->by_place);
	fathom_key_map_deinit(&p->by_number);
	fathom_open_calls_deinit(&p->open);
	free(p);
}

/* Sums up what children are to their parents, and all calls of a thread, or a gap, to its path. */
static void sum_up(struct fathom_call_paths *p)
{
	for (size_t i = p->paths.n; i--;) {
		const struct fathom_call_path *path = &p->paths.items[i];
		struct fathom_call_path *parent;

		if (path->parent == FATHOM_PATH_NONE)
			continue;
		parent = &p->paths.items[path->parent];
		parent->below_ns += path->total_ns;
		if (!parent->depth || parent->is_gap)
			parent->total_ns += path->total_ns;
	}
}

/* Compares siblings, which follow each other; threads have the largest parent. */
static int compare(const void *a, const void *b)
{
	const struct rank *x = a;
	const struct rank *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Makes the ranks of all paths, unsorted; returns NULL without memory. */
static struct rank *rank_all(const struct fathom_call_paths *p, enum fathom_paths_order order)
{
	struct rank *ranks = malloc((p->paths.n + 1) * sizeof *ranks);

	for (size_t i = 0; ranks && i < p->paths.n; i++) {
		const struct fathom_call_path *path = &p->paths.items[i];
		const uint64_t weight = p->has_times ? path->total_ns : path->calls;

		ranks[i] = (struct rank){ .weight = order == FATHOM_PATHS_BY_WEIGHT ? weight : 0,
					  .name = fathom_call_path_name(p, path),
					  .parent = path->parent,
					  .path = (uint32_t)i };
	}
	return ranks;
}

/* Links children in the order of @ranks. */
static void link_all(struct fathom_call_paths *p, const struct rank *ranks)
{
	p->first = FATHOM_PATH_NONE;
	for (size_t i = 0; i < p->paths.n; i++)
		p->paths.items[i].first = FATHOM_PATH_NONE;
	for (size_t i = p->paths.n; i--;) {
		const uint32_t parent = ranks[i].parent;
		uint32_t *first =
			parent == FATHOM_PATH_NONE ? &p->first : &p->paths.items[parent].first;

		p->paths.items[ranks[i].path].next = *first;
		*first = ranks[i].path;
	}
}

struct fathom_call_paths *fathom_call_paths_finish(struct fathom_trace_writer *w,
						   enum fathom_paths_order order)
{
	struct fathom_call_paths *p = w->state;
	struct rank *ranks;

	fathom_open_calls_finish(&p->open);
	sum_up(p);
	ranks = rank_all(p, order);
	if (!ranks) {
		w->no_memory = true;
		return NULL;
	}
	qsort(ranks, p->paths.n, sizeof *ranks, compare);
	link_all(p, ranks);
	free(ranks);
	return p;
}

uint32_t fathom_call_paths_next(const struct fathom_call_paths *p, uint32_t i)
{
	const struct fathom_call_path *path = &p->paths.items[i];

	if (path->first != FATHOM_PATH_NONE)
		return path->first;
	while (path->next == FATHOM_PATH_NONE && path->parent != FATHOM_PATH_NONE)
		path = &p->paths.items[path->parent];
	return path->next;
}
