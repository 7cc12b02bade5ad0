/* SPDX-License-Identifier: MIT */
#include "host/interpreters/script_places.h"

#include "fathom/answer.h"

/* Returns whether @anchor is in the part of the stack of frame @i. */
static bool holds(const struct fathom_native_frames *f, size_t i, uint64_t anchor)
{
	const uint64_t sp = f->sp_of(f->frames, i);
	const uint64_t outer = i + 1 < f->n ? f->sp_of(f->frames, i + 1) : FATHOM_NO_ADDRESS;

	return sp != FATHOM_NO_ADDRESS && outer != FATHOM_NO_ADDRESS && sp <= anchor &&
	       anchor < outer;
}

/* Returns where the frame record of native frame @i is; FATHOM_NO_ADDRESS: it is not known. */
static uint64_t record_of(const struct fathom_native_frames *f, size_t i)
{
	const uint64_t fp = f->fp_of(f->frames, i);

	/* Code that has none leaves its caller's in the register. */
	return fp != FATHOM_NO_ADDRESS && holds(f, i, fp) ? fp : FATHOM_NO_ADDRESS;
}

size_t fathom_script_keep_executed(struct fathom_interpreters *s,
				   const struct fathom_native_frames *native,
				   struct fathom_script_frame *scripts, size_t n)
{
	bool has_called = false;
	uint64_t last = 0;
	size_t at = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct fathom_script_frame frame = scripts[i];

		if (!frame.in_place) {
			scripts[kept++] = frame;
			continue;
		}
		/* Records ascend, but for those of another runtime. */
		if (frame.anchor < last)
			at = 0;
		last = frame.anchor;
		while (at < native->n && (record_of(native, at) < frame.anchor ||
					  record_of(native, at) == FATHOM_NO_ADDRESS))
			at++;
		if (at < native->n && record_of(native, at) == frame.anchor &&
		    fathom_interpreters_executes(s, native->code_of(native->frames, at), &frame,
						 &has_called))
			scripts[kept++] = frame;
	}
	return kept;
}

/* Returns whether native frame @i is in the loop of @s. */
static bool is_loop(const struct fathom_native_frames *f, size_t i,
		    const struct fathom_script_frame *s)
{
	const uint64_t code = f->code_of(f->frames, i);

	return code - s->loop.code < s->loop.size || code - s->loop.cold < s->loop.cold_size;
}

/* Returns whether a slot of @s is from @low to before @high, if both are known. */
static bool has_slot_in(const struct fathom_script_frame *s, uint64_t low, uint64_t high)
{
	for (size_t k = 0; low != FATHOM_NO_ADDRESS && high != FATHOM_NO_ADDRESS &&
			   k < FATHOM_SCRIPT_SLOTS && s->slots[k];
	     k++)
		if (s->slots[k] >= low && s->slots[k] < high)
			return true;
	return false;
}

/* Returns whether a slot of @s lies in native frame @i, or in that of its callee. */
static bool has_slot(const struct fathom_native_frames *f, size_t i,
		     const struct fathom_script_frame *s)
{
	const uint64_t low = f->sp_of(f->frames, i ? i - 1 : i);
	const uint64_t high = i + 1 < f->n ? f->sp_of(f->frames, i + 1) : FATHOM_NO_ADDRESS;

	return has_slot_in(s, low, high);
}

/* Returns the number of the next native frame from @from on in the loop of @s; else f->n. */
static size_t next_loop(const struct fathom_native_frames *f, size_t from,
			const struct fathom_script_frame *s)
{
	while (from < f->n && !is_loop(f, from, s))
		from++;
	return from;
}

/* Places @n frames that have slots: all of them, or none. */
static bool place_by_slots(const struct fathom_native_frames *native,
			   const struct fathom_script_frame *scripts, size_t n, size_t *places)
{
	size_t at = next_loop(native, 0, scripts);

	for (size_t i = 0; i < n; i++, at = next_loop(native, at + 1, scripts)) {
		if (at == native->n || !has_slot(native, at, &scripts[i]))
			return false;
		places[i] = at;
	}
	return at == native->n;
}

/*
 * Frames that share a loop, and the loops that they may be in. A loop that is not the innermost one
 * must have its group's slot below it; the innermost may have it in a register, which is not known
 * of a thread that sleeps.
 */
struct groups {
	const struct fathom_native_frames *native;
	const struct fathom_script_frame *scripts;
	size_t n; /* of scripts */
	size_t *places;
	size_t low;  /* the first native frame that may be a loop */
	size_t rest; /* the place of groups without a loop, or FATHOM_SCRIPT_NOWHERE */
};

/* Returns the number of the last native frame before @before that is a loop; else that of all. */
static size_t previous_loop(const struct groups *g, size_t before)
{
	while (before > g->low)
		if (is_loop(g->native, --before, g->scripts))
			return before;
	return g->native->n;
}

/* Returns the number of the first frame after the group of frame @i. */
static size_t group_end(const struct groups *g, size_t i)
{
	const uint64_t anchor = g->scripts[i].anchor;

	while (i < g->n && g->scripts[i].anchor == anchor)
		i++;
	return i;
}

/* Returns the number of the first frame of the group that ends before @end. */
static size_t group_start(const struct groups *g, size_t end)
{
	const uint64_t anchor = g->scripts[end - 1].anchor;

	while (end > 0 && g->scripts[end - 1].anchor == anchor)
		end--;
	return end;
}

/* Returns whether a slot of @s shows that native frame @at is its loop. */
static bool is_shown(const struct groups *g, size_t at, const struct fathom_script_frame *s)
{
	const struct fathom_native_frames *f = g->native;
	const size_t inner = previous_loop(g, at);
	const uint64_t low = f->sp_of(f->frames, inner == f->n ? g->low : inner);
	const size_t outer = s->loop.is_below ? at : at + 1;
	const uint64_t high = outer < f->n ? f->sp_of(f->frames, outer) : FATHOM_NO_ADDRESS;

	return has_slot_in(s, low, high);
}

static void put_group(const struct groups *g, size_t i, size_t place)
{
	for (const size_t end = group_end(g, i); i < end; i++)
		g->places[i] = place;
}

/*
 * Places the groups from frame @i on in loops one after the other, from that in native frame @at
 * on. Returns whether each one that has a loop is shown to be in it, where it must be.
 * *@ret_loop: the loop after the last one; f->n: there is none. *@ret_i: the first frame without.
 */
static bool place_in_turn(const struct groups *g, size_t i, size_t at, bool must_first,
			  size_t *ret_loop, size_t *ret_i)
{
	bool must = must_first;

	for (; i < g->n && at < g->native->n; must = true) {
		if (must && !is_shown(g, at, &g->scripts[i]))
			return false;
		put_group(g, i, at);
		at = next_loop(g->native, at + 1, &g->scripts[i]);
		i = group_end(g, i);
	}
	*ret_loop = at;
	*ret_i = i;
	return true;
}

/*
 * Places all groups where more loops are than groups: a loop may be about to end, when its frame
 * has gone. Each must be shown to be in one loop, and in no other; but the innermost group, shown
 * nowhere, is in the innermost loop. False if that cannot be told.
 */
static bool place_the_shown(const struct groups *g)
{
	const struct fathom_native_frames *f = g->native;
	size_t before = f->n;
	size_t at = g->low;
	size_t start;
	size_t i;

	for (size_t end = g->n; end > 0; end = start) {
		start = group_start(g, end);
		do
			before = previous_loop(g, before);
		while (before < f->n && !is_shown(g, before, &g->scripts[start]));
		if (before == f->n && start > 0)
			return false;
		put_group(g, start, before == f->n ? next_loop(f, g->low, g->scripts) : before);
	}
	/* From the other end on, it must come out the same. */
	for (i = 0; i < g->n; i = group_end(g, i), at++) {
		at = next_loop(f, at, g->scripts);
		while (at < g->places[i] && !is_shown(g, at, &g->scripts[i]))
			at = next_loop(f, at + 1, g->scripts);
		if (at != g->places[i])
			return false;
	}
	return true;
}

/*
 * Places the groups if the outer ones are on another stack, as below a fiber: what is left has no
 * part in the outermost loop of this one. *@ret_i: the first frame of those.
 */
static bool place_the_inner(const struct groups *g, size_t first, size_t *ret_i)
{
	size_t loop;
	size_t i;

	if (!place_in_turn(g, 0, first, false, &loop, &i) || loop < g->native->n)
		return false;
	*ret_i = i;
	if (first == g->native->n)
		return true;
	loop = previous_loop(g, g->native->n);
	for (; i < g->n; i = group_end(g, i))
		if (is_shown(g, loop, &g->scripts[i]))
			return false;
	return true;
}

/* Places all groups if each is shown to be in a loop, but the innermost one, which has none yet. */
static bool place_before_the_first(const struct groups *g, size_t first)
{
	const size_t second = group_end(g, 0);
	size_t loop;
	size_t i;

	if (g->low || second == g->n || !place_in_turn(g, second, first, true, &loop, &i) ||
	    i < g->n || loop < g->native->n)
		return false;
	put_group(g, 0, 0);
	return true;
}

/*
 * Places the groups. There are as many loops; or that of the innermost group has not begun, and it
 * is in the innermost native frame; or outer groups are on another stack, or have no loop again
 * yet; or loops are about to end.
 */
static void place_groups(const struct groups *g)
{
	const size_t first = next_loop(g->native, g->low, g->scripts);
	size_t loop;
	size_t i;

	if (place_in_turn(g, 0, first, false, &loop, &i) && i == g->n && loop == g->native->n)
		return;
	if (place_before_the_first(g, first))
		return;
	if (place_the_inner(g, first, &i))
		for (; i < g->n; i++)
			g->places[i] = g->rest;
	else if (!place_the_shown(g))
		for (i = 0; i < g->n; i++)
			g->places[i] = FATHOM_SCRIPT_NOWHERE;
}

/*
 * Places the frames from @i on that have slots, in native frames from *@low on; returns the number
 * of the first that has none, or another base. *@low: the last native frame that was used.
 */
static size_t place_slots(const struct fathom_native_frames *native,
			  const struct fathom_script_frame *scripts, size_t i, size_t n,
			  size_t *places, size_t *low)
{
	const bool has_groups = scripts[i].anchor != 0;
	const uint64_t base = scripts[i].base;
	struct fathom_native_frames inner = *native;
	struct groups g = { &inner, scripts + i, 0, places + i, *low, FATHOM_SCRIPT_NOWHERE };
	size_t end = i;

	while (end < n && scripts[end].loop.size && scripts[end].runtime == scripts[i].runtime &&
	       scripts[end].base == base && (scripts[end].anchor != 0) == has_groups)
		end++;
	g.n = end - i;
	if (base) {
		for (g.rest = *low; g.rest < native->n && !holds(native, g.rest, base);)
			g.rest++;
		inner.n = g.rest < native->n ? g.rest + 1 : 0;
	}
	if (has_groups && inner.n)
		place_groups(&g);
	else if (has_groups || !place_by_slots(native, scripts + i, end - i, places + i))
		for (size_t k = i; k < end; k++)
			places[k] = FATHOM_SCRIPT_NOWHERE;
	for (size_t k = i; k < end; k++)
		if (places[k] != FATHOM_SCRIPT_NOWHERE)
			*low = places[k];
	if (base && inner.n)
		*low = g.rest;
	return end;
}

size_t fathom_script_find_places(const struct fathom_native_frames *native,
				 const struct fathom_script_frame *scripts, size_t n,
				 size_t *places)
{
	size_t first = 0; /* native frame that may hold the next anchor */
	size_t low = 0;   /* native frame that may be the next loop of a group */
	size_t n_lost = 0;
	size_t i = 0;

	while (i < n) {
		const uint64_t anchor = scripts[i].anchor;
		size_t at = first;

		if (i && scripts[i].runtime != scripts[i - 1].runtime)
			at = first = low = 0;
		if (scripts[i].loop.size) {
			i = place_slots(native, scripts, i, n, places, &low);
			first = low;
			continue;
		}
		while (at < native->n && !(anchor && holds(native, at, anchor)))
			at++;
		first = at < native->n ? at + 1 : first;
		low = first;
		for (; i < n && !scripts[i].loop.size && scripts[i].anchor == anchor; i++)
			places[i] = at < native->n ? at : FATHOM_SCRIPT_NOWHERE;
	}
	for (i = 0; i < n; i++)
		n_lost += places[i] == FATHOM_SCRIPT_NOWHERE;
	return n_lost;
}
