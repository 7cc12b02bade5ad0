/* SPDX-License-Identifier: MIT */
#include "cli/top_view.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

/* Nodes of a tree of paths at most; branches of less than one part of so many are left out. */
#define MAX_NODES   ((size_t)1 << 16)
#define LEAST_SHARE 200

/* Functions of one stack at most, with those that are inlined. */
#define MAX_EXPANDED 8192

/* Sums of one function. */
struct function_sums {
	uint64_t self;
	uint64_t total;
	uint32_t seen; /* number of the last cell that has counted it, plus 1 */
};

/* The time that one thread has waited for one reason. */
struct pair {
	uint32_t thread;
	uint32_t reason;
	uint64_t ns;
};

/* A node of the tree of paths. */
struct node {
	uint32_t function;
	uint32_t child; /* the first one; 0: none */
	uint32_t next;  /* sibling */
	uint64_t self;
	uint64_t total;
};

/* A view that is being made. */
struct making {
	const struct top_samples *s;
	const struct top_choice *choice;
	struct top_view *v;
	uint64_t *weights; /* of cells, in the time that is shown */
	struct function_sums *functions;
	struct top_row *threads;
	uint32_t *expanded; /* functions of a stack, the innermost first */
	size_t n_expanded;
	TOP_ARRAY_OF(struct pair) pairs;
	TOP_ARRAY_OF(struct node) nodes;
	uint32_t wanted_thread; /* TOP_NONE: all */
	uint32_t of;            /* function of the paths; TOP_NONE: none */
};

static bool is_wait(const struct top_cell *c)
{
	return c->part == FATHOM_PROFILE_WAITING || c->part == FATHOM_PROFILE_RUNNABLE;
}

/* Copies @text into the view; NULL stays NULL. */
static const char *keep(struct top_view *v, const char *text)
{
	const size_t n = text ? strlen(text) + 1 : 0;
	const size_t room = sizeof v->texts->text;
	struct top_text_block *b = v->texts;
	char *to;

	if (!text)
		return NULL;
	if (!b || room - b->n < n) {
		b = must(malloc(sizeof *b + (n > room ? n - room : 0)));
		b->n = 0;
		b->next = v->texts;
		v->texts = b;
	}
	to = b->text + b->n;
	memcpy(to, text, n);
	b->n += n < room - b->n ? n : room - b->n;
	return to;
}

static struct top_row *add_row(struct top_view *v, enum top_list list)
{
	struct top_rows *rows = &v->lists[list];
	struct top_row *row = TOP_PUSH(rows);

	*row = (struct top_row){ .name = "", .module = "", .reason = "" };
	return row;
}

/* Sums up what cells have weighed from @from to @until. */
static void weigh_window(struct making *m, uint64_t from, uint64_t until)
{
	for (size_t i = 0; i < m->s->n_entries; i++) {
		const struct top_entry *e = top_entry_at(m->s, i);
		const uint64_t begin = e->from > from ? e->from : from;
		const uint64_t end = e->to < until ? e->to : until;

		if (begin < end)
			m->weights[e->cell] +=
				(uint64_t)((double)e->weight * (double)(end - begin) /
					   (double)(e->to - e->from));
	}
}

/* Sums up what cells have weighed since the recording began: all, without what was later. */
static void weigh_all(struct making *m, uint64_t until)
{
	const struct top_samples *s = m->s;

	m->v->span_ns = until - s->began;
	for (size_t i = 0; i < s->cells.n; i++)
		m->weights[i] = s->cells.items[i].weight;
	for (size_t i = 0; i < s->n_entries; i++) {
		const struct top_entry *e = top_entry_at(s, i);
		const uint64_t from = e->from > until ? e->from : until;
		uint64_t later;

		if (e->to <= until)
			continue;
		later = e->to > from ? (uint64_t)((double)e->weight * (double)(e->to - from) /
						  (double)(e->to - e->from))
				     : e->weight;
		m->weights[e->cell] -= later < m->weights[e->cell] ? later : m->weights[e->cell];
	}
}

static void weigh(struct making *m, uint64_t until)
{
	const struct top_samples *s = m->s;
	uint64_t from = until > s->window_ns ? until - s->window_ns : 0;

	if (m->choice->is_all) {
		if (until > s->began)
			weigh_all(m, until);
		return;
	}
	from = from > s->whole_from ? from : s->whole_from;
	from = from > s->first_ns ? from : s->first_ns;
	m->v->span_ns = until > from ? until - from : 0;
	weigh_window(m, from, until);
}

static void expand(struct making *m, uint32_t function)
{
	if (m->n_expanded < MAX_EXPANDED)
		m->expanded[m->n_expanded++] = function;
}

/* Puts the functions of the stack of @c into m->expanded. */
static void expand_stack(struct making *m, const struct top_cell *c)
{
	const struct top_samples *s = m->s;
	const struct top_stack *stack = &s->stacks.items[c->stack];

	m->n_expanded = 0;
	if (c->part == FATHOM_PROFILE_KERNEL_HIDDEN)
		expand(m, s->hidden);
	if (c->part == FATHOM_PROFILE_UNSAMPLED)
		expand(m, s->unsampled);
	for (uint32_t i = 0; i < stack->n; i++) {
		const uint32_t place = s->frames.items[stack->first + i];
		const struct top_place *p = &s->places.items[place];

		if (p->naming != TOP_NAMED)
			expand(m, s->unnamed);
		for (uint32_t k = 0; p->naming == TOP_NAMED && k < p->n_functions; k++)
			expand(m, s->place_functions.items[p->first + k]);
	}
}

/* Returns whether the innermost of the expanded functions is what a thread waits for. */
static bool has_reason(const struct making *m)
{
	return m->n_expanded && top_module_kind(m->s, &m->s->functions.items[m->expanded[0]]) ==
					FATHOM_PROFILE_MODULE_WAITS;
}

/* Adds @ns to the functions of a stack, but for the reason of a wait: that is a row of its own. */
static void add_functions(struct making *m, uint32_t cell, uint64_t ns)
{
	const size_t first = has_reason(m);

	m->v->shown += ns;
	for (size_t i = first; i < m->n_expanded; i++) {
		struct function_sums *f = &m->functions[m->expanded[i]];

		if (i == first)
			f->self += ns;
		if (f->seen != cell + 1)
			f->total += ns;
		f->seen = cell + 1;
	}
}

/* Returns the child of node @parent with @function, and makes it if there is none; 0: no room. */
static uint32_t child_of(struct making *m, uint32_t parent, uint32_t function)
{
	uint32_t child = m->nodes.items[parent].child;

	while (child && m->nodes.items[child].function != function)
		child = m->nodes.items[child].next;
	if (child || m->nodes.n >= MAX_NODES)
		return child;
	child = (uint32_t)m->nodes.n;
	*TOP_PUSH(&m->nodes) =
		(struct node){ .function = function, .next = m->nodes.items[parent].child };
	m->nodes.items[parent].child = child;
	return child;
}

/* Adds a stack to the tree, if it leads through the function of the paths. */
static void add_path(struct making *m, uint64_t ns)
{
	size_t at = m->n_expanded;
	uint32_t node = 0;
	size_t i;

	/* Callers begin at the innermost of several calls, callees at the outermost. */
	for (i = 0; i < m->n_expanded && (m->choice->is_down || at == m->n_expanded); i++)
		if (m->expanded[i] == m->of)
			at = i;
	if (at == m->n_expanded)
		return;
	m->nodes.items[0].total += ns;
	for (size_t left = m->choice->is_down ? at : m->n_expanded - 1 - at; left; left--) {
		uint32_t child;

		at = m->choice->is_down ? at - 1 : at + 1;
		child = child_of(m, node, m->expanded[at]);
		if (!child)
			return;
		node = child;
		m->nodes.items[node].total += ns;
	}
	m->nodes.items[node].self += ns;
}

static bool is_of_time(const struct making *m, const struct top_cell *c)
{
	return m->choice->time == TOP_BOTH || (m->choice->time == TOP_WAITING) == is_wait(c);
}

/* Returns the word for a wait that has no reason, which is a function of its own. */
static uint32_t reason_of(const struct making *m, const struct top_cell *c)
{
	return has_reason(m)                        ? m->expanded[0]
	       : c->part == FATHOM_PROFILE_RUNNABLE ? m->s->no_processor
						    : m->s->no_reason;
}

static void add_cell(struct making *m, uint32_t number)
{
	const struct top_cell *c = &m->s->cells.items[number];
	const uint64_t ns = m->weights[number];
	struct top_row *thread = &m->threads[c->thread];
	const bool is_chosen = m->wanted_thread == TOP_NONE || c->thread == m->wanted_thread;

	*(is_wait(c) ? c->part == FATHOM_PROFILE_RUNNABLE ? &thread->ready : &thread->waited
		     : &thread->self) += ns;
	if (!is_wait(c) && !is_chosen)
		return;
	expand_stack(m, c);
	if (is_wait(c))
		*TOP_PUSH(&m->pairs) = (struct pair){ c->thread, reason_of(m, c), ns };
	if (!is_chosen)
		return;
	*(is_wait(c) ? c->part == FATHOM_PROFILE_RUNNABLE ? &m->v->ready : &m->v->waited
		     : &m->v->running) += ns;
	if (is_of_time(m, c))
		add_functions(m, number, ns);
	/* Ways to a wait are of waits, whatever functions are summed up by. */
	if (m->of != TOP_NONE && (is_of_time(m, c) || (m->n_expanded && m->expanded[0] == m->of)))
		add_path(m, ns);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a;
	const struct pair *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* Makes one pair of equal ones. */
static void fold_pairs(struct making *m)
{
	size_t n = 0;

	if (!m->pairs.n)
		return;
	qsort(m->pairs.items, m->pairs.n, sizeof *m->pairs.items, compare_pairs);
	for (size_t i = 1; i < m->pairs.n; i++) {
		if (compare_pairs(&m->pairs.items[n], &m->pairs.items[i]) == 0)
			m->pairs.items[n].ns += m->pairs.items[i].ns;
		else
			m->pairs.items[++n] = m->pairs.items[i];
	}
	m->pairs.n = n + 1;
}

/* Sums up reasons of waits: those of threads, and how many threads have waited for each. */
static void make_reasons(struct making *m)
{
	const struct top_samples *s = m->s;
	struct top_row *sums = must(calloc(s->functions.n, sizeof *sums));
	uint64_t *most = must(calloc(s->threads.n + 1, sizeof *most));

	fold_pairs(m);
	for (size_t i = 0; i < m->pairs.n; i++) {
		const struct pair *p = &m->pairs.items[i];

		if (p->ns > most[p->thread]) {
			most[p->thread] = p->ns;
			m->threads[p->thread].reason = s->functions.items[p->reason].name;
		}
		if (m->wanted_thread != TOP_NONE && p->thread != m->wanted_thread)
			continue;
		sums[p->reason].self += p->ns;
		sums[p->reason].n_threads++;
	}
	for (size_t i = 0; i < s->functions.n; i++) {
		struct top_row *row;

		if (!sums[i].self)
			continue;
		row = add_row(m->v, TOP_WAITS);
		row->name = keep(m->v, s->functions.items[i].name);
		row->module = keep(m->v, top_module_path(s, &s->functions.items[i]));
		row->self = sums[i].self;
		row->n_threads = sums[i].n_threads;
	}
	free(most);
	free(sums);
}

static void name_row(struct making *m, struct top_row *row, uint32_t function)
{
	const struct top_function *f = &m->s->functions.items[function];

	row->name = keep(m->v, f->name);
	row->linkage_name = keep(m->v, f->linkage_name);
	row->module = keep(m->v, top_module_path(m->s, f));
}

static void make_functions(struct making *m)
{
	for (size_t i = 0; i < m->s->functions.n; i++) {
		struct top_row *row;

		if (!m->functions[i].total)
			continue;
		row = add_row(m->v, TOP_FUNCTIONS);
		name_row(m, row, (uint32_t)i);
		row->self = m->functions[i].self;
		row->total = m->functions[i].total;
	}
}

static void make_threads(struct making *m)
{
	for (size_t i = 0; i < m->s->threads.n; i++) {
		const struct top_thread *t = &m->s->threads.items[i];
		struct top_row *from = &m->threads[i];
		struct top_row *row;

		if (!(from->self + from->waited + from->ready))
			continue;
		row = add_row(m->v, TOP_THREADS);
		*row = *from;
		row->total = from->self + from->waited + from->ready;
		row->name = keep(m->v, t->name);
		row->module = keep(m->v, t->process);
		row->reason = keep(m->v, from->reason ? from->reason : "");
		row->pid = t->pid;
		row->tid = t->tid;
	}
}

/* Adds the rows of @node's branches, the heaviest first, below a row of @depth. */
static void add_branches(struct making *m, uint32_t node, uint32_t depth)
{
	const uint64_t least = m->nodes.items[0].total / LEAST_SHARE;

	for (;;) {
		uint32_t best = 0;
		struct top_row *row;

		for (uint32_t c = m->nodes.items[node].child; c; c = m->nodes.items[c].next)
			if (!best || m->nodes.items[c].total > m->nodes.items[best].total)
				best = c;
		if (!best || m->nodes.items[best].total <= least || depth > 1024)
			return;
		row = add_row(m->v, TOP_PATHS);
		name_row(m, row, m->nodes.items[best].function);
		row->self = m->nodes.items[best].self;
		row->total = m->nodes.items[best].total;
		row->depth = depth;
		m->nodes.items[best].total = 0;
		add_branches(m, best, depth + 1);
	}
}

static void make_paths(struct making *m)
{
	struct top_row *row;

	if (m->of == TOP_NONE || !m->nodes.items[0].total)
		return;
	m->v->paths_total = m->nodes.items[0].total;
	row = add_row(m->v, TOP_PATHS);
	name_row(m, row, m->of);
	row->self = m->nodes.items[0].self;
	row->total = m->nodes.items[0].total;
	add_branches(m, 0, 1);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/* Compares the rows by all else than the key, so that equal ones keep their order. */
static int compare_rest(const struct top_row *a, const struct top_row *b)
{
	int c = compare_numbers(a->self, b->self);

	c = c ? c : compare_numbers(a->total, b->total);
	c = c ? c : strcmp(a->name, b->name);
	c = c ? c : strcmp(a->module, b->module);
	return c ? c : a->tid - b->tid;
}

static int by_self(const void *a, const void *b)
{
	return compare_rest(a, b);
}

static int by_total(const void *a, const void *b)
{
	const struct top_row *x = a;
	const struct top_row *y = b;
	const int c = compare_numbers(x->total, y->total);

	return c ? c : compare_rest(x, y);
}

static int by_waited(const void *a, const void *b)
{
	const struct top_row *x = a;
	const struct top_row *y = b;
	const int c = compare_numbers(x->waited, y->waited);

	return c ? c : compare_rest(x, y);
}

static int by_ready(const void *a, const void *b)
{
	const struct top_row *x = a;
	const struct top_row *y = b;
	const int c = compare_numbers(x->ready, y->ready);

	return c ? c : compare_rest(x, y);
}

static int by_name(const void *a, const void *b)
{
	const struct top_row *x = a;
	const struct top_row *y = b;
	const int c = strcmp(x->name, y->name);

	return c ? c : compare_rest(x, y);
}

static void sort(const struct making *m, enum top_list list)
{
	int (*const by[TOP_N_SORTS])(const void *, const void *) = {
		[TOP_BY_SELF] = by_self,
		[TOP_BY_TOTAL] = list == TOP_THREADS ? by_waited : by_total,
		[TOP_BY_READY] = by_ready,
		[TOP_BY_NAME] = by_name,
	};
	struct top_rows *rows = &m->v->lists[list];

	if (rows->n)
		qsort(rows->items, rows->n, sizeof *rows->items, by[m->choice->sort[list]]);
}

static uint32_t find_thread(const struct top_samples *s, const struct top_choice *choice)
{
	for (size_t i = 0; choice->pid && i < s->threads.n; i++)
		if (s->threads.items[i].pid == choice->pid &&
		    s->threads.items[i].tid == choice->tid)
			return (uint32_t)i;
	/* One that has not been seen: nothing is its. */
	return choice->pid ? (uint32_t)s->threads.n : TOP_NONE;
}

void top_view_make(const struct top_samples *s, const struct top_choice *choice, uint64_t until,
		   struct top_view *ret_view)
{
	struct making m = { .s = s, .choice = choice, .v = ret_view };

	*ret_view = (struct top_view){ .n_unnamed = s->n_to_name };
	m.weights = must(calloc(s->cells.n + 1, sizeof *m.weights));
	m.functions = must(calloc(s->functions.n + 1, sizeof *m.functions));
	m.threads = must(calloc(s->threads.n + 1, sizeof *m.threads));
	m.expanded = must(malloc(MAX_EXPANDED * sizeof *m.expanded));
	m.wanted_thread = find_thread(s, choice);
	m.of = choice->key ? top_function_find(s, choice->module, choice->key) : TOP_NONE;
	*TOP_PUSH(&m.nodes) = (struct node){ .function = m.of };
	weigh(&m, until);
	for (size_t i = 0; i < s->cells.n; i++)
		if (m.weights[i])
			add_cell(&m, (uint32_t)i);
	make_reasons(&m);
	make_functions(&m);
	make_threads(&m);
	make_paths(&m);
	for (int list = 0; list < TOP_PATHS; list++)
		sort(&m, (enum top_list)list);
	free(m.weights);
	free(m.functions);
	free(m.threads);
	free(m.expanded);
	free(m.pairs.items);
	free(m.nodes.items);
}

void top_view_deinit(struct top_view *v)
{
	while (v->texts) {
		struct top_text_block *next = v->texts->next;

		free(v->texts);
		v->texts = next;
	}
	for (int i = 0; i < TOP_N_LISTS; i++)
		free(v->lists[i].items);
	*v = (struct top_view){ .span_ns = 0 };
}
