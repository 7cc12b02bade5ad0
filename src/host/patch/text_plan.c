/* SPDX-License-Identifier: MIT */
#include "host/patch/text_plan.h"

#include <stdlib.h>
#include <string.h>

#include "safe/base/bytes.h"

/* Bytes that are compared at once. */
enum { PIECE = 64 };

struct fathom_text_plan *fathom_text_plan_create(void)
{
	struct fathom_text_plan *plan = calloc(1, sizeof *plan);

	if (plan)
		plan->references = 1;
	return plan;
}

void fathom_text_plan_acquire(struct fathom_text_plan *plan)
{
	if (plan)
		plan->references++;
}

void fathom_text_plan_release(struct fathom_text_plan *plan)
{
	if (!plan || --plan->references)
		return;
	fathom_text_plan_clear(plan);
	free(plan);
}

void fathom_text_plan_clear(struct fathom_text_plan *plan)
{
	fathom_array_free(plan);
	fathom_array_free(&plan->bytes);
}

/* Returns the new bytes of @c, or, unless @now, the old ones. */
static char *bytes_of(const struct fathom_text_plan *plan, const struct fathom_text_change *c,
		      bool now)
{
	return plan->bytes.items + c->bytes + (now ? 0 : c->size);
}

bool fathom_text_plan_add(struct fathom_text_plan *plan, uint64_t avma, const void *old,
			  const void *bytes, size_t size, uint64_t resume)
{
	const struct fathom_text_change c = { .avma = avma,
					      .resume = resume,
					      .bytes = plan->bytes.n,
					      .size = (uint32_t)size,
					      .last = FATHOM_TEXT_WHOLE,
					      .stays = !old };

	if (!fathom_array_room(&plan->bytes, 2 * size) || !fathom_array_push(plan, c))
		return false;
	plan->bytes.n += 2 * size;
	memcpy(bytes_of(plan, &c, true), bytes, size);
	memcpy(bytes_of(plan, &c, false), old ? old : bytes, size);
	return true;
}

bool fathom_text_plan_add_steps(struct fathom_text_plan *plan, uint64_t avma, const void *old,
				const void *bytes, size_t size, uint32_t last)
{
	if (size > FATHOM_TEXT_STEPS_SIZE || last >= size ||
	    !fathom_text_plan_add(plan, avma, old, bytes, size, 0))
		return false;
	plan->items[plan->n - 1].last = last;
	return true;
}

void fathom_text_plan_cut(struct fathom_text_plan *plan, size_t n)
{
	if (n < plan->n)
		plan->bytes.n = plan->items[n].bytes;
	plan->n = n;
}

static int compare(const void *a, const void *b)
{
	return u64_compare(((const struct fathom_text_change *)a)->avma,
			   ((const struct fathom_text_change *)b)->avma);
}

void fathom_text_plan_sort(struct fathom_text_plan *plan)
{
	if (plan->n)
		qsort(plan->items, plan->n, sizeof *plan->items, compare);
}

void fathom_text_plan_follow(struct fathom_text_plan *plan, const struct fathom_text_plan *other,
			     bool now)
{
	for (size_t i = 0; i < other->n; i++) {
		const struct fathom_text_change *from = &other->items[i];
		const size_t k = FATHOM_BISECT(plan->n, j, plan->items[j].avma < from->avma);

		if (k < plan->n && plan->items[k].avma == from->avma)
			memcpy(bytes_of(plan, &plan->items[k], true), bytes_of(other, from, now),
			       from->size);
	}
}

bool fathom_text_holds(struct fathom_text_memory *m, uint64_t avma, const void *bytes, size_t size)
{
	uint8_t is[PIECE];
	const uint8_t *expected = bytes;

	for (size_t at = 0; at < size; at += PIECE) {
		const size_t n = size - at < PIECE ? size - at : PIECE;

		if (!m->read(m, avma + at, is, n) || memcmp(is, expected + at, n) != 0)
			return false;
	}
	return true;
}

/* Returns whether @c is to be made, or, unless @now, undone, and can be. */
static bool is_due(const struct fathom_text_plan *plan, const struct fathom_text_change *c,
		   bool now, struct fathom_text_memory *m)
{
	const char *to = bytes_of(plan, c, now);
	const char *from = bytes_of(plan, c, !now);

	if (c->stays)
		return now && !fathom_text_holds(m, c->avma, to, c->size);
	return memcmp(to, from, c->size) != 0 && fathom_text_holds(m, c->avma, from, c->size);
}

size_t fathom_text_plan_count(const struct fathom_text_plan *plan, size_t first, bool now,
			      struct fathom_text_memory *m)
{
	size_t n = 0;

	for (size_t i = first; i < plan->n; i++)
		n += is_due(plan, &plan->items[i], now, m);
	return n;
}

/* How far a change has been made. */
enum state { OLD, HALF, NEW };

/* Returns the bytes of @c in @state, which may be put into @half. */
static const char *bytes_in(const struct fathom_text_plan *plan, const struct fathom_text_change *c,
			    enum state state, char half[FATHOM_TEXT_STEPS_SIZE])
{
	if (state == HALF && c->last != FATHOM_TEXT_WHOLE) {
		memcpy(half, bytes_of(plan, c, true), c->size);
		half[c->last] = bytes_of(plan, c, false)[c->last];
		return half;
	}
	/* Stubs are there before anything leads to them. */
	return bytes_of(plan, c, state == NEW || (c->stays && state == HALF));
}

/* Writes what differs between two states of @c. Counts in *@n what it writes. */
static bool put(const struct fathom_text_plan *plan, const struct fathom_text_change *c,
		enum state before, enum state after, struct fathom_text_memory *m, size_t *n)
{
	char halves[2][FATHOM_TEXT_STEPS_SIZE];
	const char *from = bytes_in(plan, c, before, halves[0]);
	const char *to = bytes_in(plan, c, after, halves[1]);
	/* A pointer is one store. */
	const bool is_whole =
		c->last == FATHOM_TEXT_WHOLE && c->size == sizeof(uint64_t) && !(c->avma % c->size);
	size_t first = 0;
	size_t end = c->size;

	if (c->stays) {
		if (after < before || fathom_text_holds(m, c->avma, to, c->size))
			return true;
		++*n;
		return m->write(m, c->avma, to, c->size);
	}
	if (!memcmp(to, from, c->size))
		return true;
	while (!is_whole && to[end - 1] == from[end - 1])
		end--;
	while (!is_whole && to[first] == from[first])
		first++;
	if (!fathom_text_holds(m, c->avma, from, c->size))
		return true;
	++*n;
	if (m->write(m, c->avma + first, to + first, end - first))
		return true;
	(void)m->write(m, c->avma + first, from + first, end - first);
	return false;
}

/*
 * Takes the changes from @first on from one state to the next, or back; false if one cannot be
 * written, or processors cannot be synchronized: then all are as before.
 */
static bool put_step(const struct fathom_text_plan *plan, size_t first, enum state before,
		     enum state after, struct fathom_text_memory *m)
{
	const bool is_back = after < before;
	const size_t count = plan->n - first;
	size_t n = 0;
	size_t i = 0;

	while (i < count &&
	       put(plan, &plan->items[is_back ? plan->n - 1 - i : first + i], before, after, m, &n))
		i++;
	if (i == count && (!n || !m->synchronize || m->synchronize(m)))
		return true;
	while (i-- > 0)
		(void)put(plan, &plan->items[is_back ? plan->n - 1 - i : first + i], after, before,
			  m, &n);
	return false;
}

bool fathom_text_plan_put(const struct fathom_text_plan *plan, size_t first, bool now,
			  struct fathom_text_memory *m)
{
	const enum state begin = now ? OLD : NEW;
	const enum state end = now ? NEW : OLD;

	if (!put_step(plan, first, begin, HALF, m))
		return false;
	if (put_step(plan, first, HALF, end, m))
		return true;
	(void)put_step(plan, first, HALF, begin, m);
	return false;
}
