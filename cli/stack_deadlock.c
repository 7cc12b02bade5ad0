/* SPDX-License-Identifier: MIT */
/* Threads that wait for each other in a circle. */
#include <stdlib.h>
#include <string.h>

#include "cli/stack.h"

/* A thread that waits for another, sorted by its number. */
struct waiting {
	int32_t tid;
	int32_t owner;
	bool ends;   /* it waits for a limited time */
	size_t seen; /* the walk that came by, from 1 on; 0: none */
};

struct waits {
	struct waiting *items;
	size_t n;
};

static int compare_waiting(const void *a, const void *b)
{
	const struct waiting *s = a;
	const struct waiting *t = b;

	return s->tid < t->tid ? -1 : s->tid > t->tid;
}

static struct waiting *find_wait(const struct waits *w, int32_t tid)
{
	const struct waiting key = { .tid = tid };

	return w->n ? bsearch(&key, w->items, w->n, sizeof key, compare_waiting) : NULL;
}

/* Returns whether what @t waits for says how much time is left. */
static bool has_limit(const struct fathom_thread *t)
{
	static const char left[] = " s left";
	const size_t size = t->waits_for ? strlen(t->waits_for) : 0;

	return size >= sizeof left && !strcmp(t->waits_for + size - (sizeof left - 1), left);
}

static void list(const struct fathom_stacks *stacks, struct waits *ret)
{
	const size_t n = fathom_stacks_count(stacks);

	ret->items = must(calloc(n + 1, sizeof *ret->items));
	ret->n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_thread *t = fathom_stacks_get(stacks, i);

		if (t->owner)
			ret->items[ret->n++] = (struct waiting){ .tid = t->tid,
								 .owner = t->owner,
								 .ends = has_limit(t) };
	}
	if (ret->n)
		qsort(ret->items, ret->n, sizeof *ret->items, compare_waiting);
}

/* Returns whether the circle that begins at @first is there once more, in a second reading. */
static bool is_still_there(const struct stack *v, struct fathom_target *target,
			   const struct waits *w, const struct waiting *first)
{
	struct fathom_stack_options o = v->options;
	int32_t *tids = must(calloc(w->n, sizeof *tids));
	const struct waiting *at = first;
	struct fathom_stacks *stacks;
	bool is_there;

	o.n_tids = 0;
	o.tids = tids;
	o.stop = FATHOM_STACK_STOP_NEVER;
	o.flags |= FATHOM_STACK_NAMES_ONLY;
	do {
		tids[o.n_tids++] = at->tid;
		at = find_wait(w, at->owner);
	} while (at != first);
	is_there = fathom_stacks_capture(target, &o, &stacks, NULL) == FATHOM_OK;
	if (is_there) {
		for (size_t i = 0; i < o.n_tids && is_there; i++)
			is_there =
				fathom_stacks_get(stacks, i)->owner == find_wait(w, tids[i])->owner;
		fathom_stacks_free(stacks);
	}
	free(tids);
	return is_there;
}

/* Prints "deadlock: 12 waits for 13, 13 for 12". */
static void print_circle(struct out *o, const struct waits *w, const struct waiting *first)
{
	const struct waiting *at = first;
	bool ends = false;

	do {
		ends |= at->ends;
		at = find_wait(w, at->owner);
	} while (at != first);
	out_str(o, ends ? "deadlock until a time limit: " : "deadlock: ");
	do {
		if (at != first)
			out_str(o, ", ");
		out_dec(o, (uint64_t)at->tid);
		out_str(o, at == first ? " waits for " : " for ");
		out_dec(o, (uint64_t)at->owner);
		at = find_wait(w, at->owner);
	} while (at != first);
	out_char(o, '\n');
}

void stack_print_deadlocks(struct stack *v, struct fathom_target *target,
			   const struct fathom_stacks *stacks)
{
	struct waits w;

	list(stacks, &w);
	for (size_t i = 0; i < w.n; i++) {
		struct waiting *at = &w.items[i];

		while (at && !at->seen) {
			at->seen = i + 1;
			at = find_wait(&w, at->owner);
		}
		/* The walk has come to a thread of its own: that is in a circle. */
		if (at && at->seen == i + 1 && is_still_there(v, target, &w, at))
			print_circle(&v->out, &w, at);
	}
	free(w.items);
}
