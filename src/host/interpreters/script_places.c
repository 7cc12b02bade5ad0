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

/* Returns whether native frame @i is in the loop of @s. */
static bool is_loop(const struct fathom_native_frames *f, size_t i,
		    const struct fathom_script_frame *s)
{
	return f->code_of(f->frames, i) - s->loop < s->loop_size;
}

/* Returns whether a slot of @s lies in native frame @i, or in that of its callee. */
static bool has_slot(const struct fathom_native_frames *f, size_t i,
		     const struct fathom_script_frame *s)
{
	const uint64_t low = f->sp_of(f->frames, i ? i - 1 : i);
	const uint64_t high = i + 1 < f->n ? f->sp_of(f->frames, i + 1) : FATHOM_NO_ADDRESS;

	for (size_t k = 0; low != FATHOM_NO_ADDRESS && high != FATHOM_NO_ADDRESS &&
			   k < FATHOM_SCRIPT_SLOTS && s->slots[k];
	     k++)
		if (s->slots[k] >= low && s->slots[k] < high)
			return true;
	return false;
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

/* Places the frames from @i on that have slots; returns the number of the first that has none. */
static size_t place_slots(const struct fathom_native_frames *native,
			  const struct fathom_script_frame *scripts, size_t i, size_t n,
			  size_t *places, size_t *n_lost)
{
	size_t end = i;

	while (end < n && scripts[end].loop_size && scripts[end].runtime == scripts[i].runtime)
		end++;
	if (!place_by_slots(native, scripts + i, end - i, places + i)) {
		*n_lost += end - i;
		for (; i < end; i++)
			places[i] = FATHOM_SCRIPT_NOWHERE;
	}
	return end;
}

size_t fathom_script_find_places(const struct fathom_native_frames *native,
				 const struct fathom_script_frame *scripts, size_t n,
				 size_t *places)
{
	size_t first = 0; /* native frame that may hold the next anchor */
	size_t n_lost = 0;
	size_t i = 0;

	while (i < n) {
		const uint64_t anchor = scripts[i].anchor;
		size_t at = first;

		if (scripts[i].loop_size) {
			i = place_slots(native, scripts, i, n, places, &n_lost);
			continue;
		}
		while (at < native->n && !(anchor && holds(native, at, anchor)))
			at++;
		first = at < native->n ? at + 1 : first;
		for (; i < n && scripts[i].anchor == anchor; i++) {
			places[i] = at < native->n ? at : FATHOM_SCRIPT_NOWHERE;
			n_lost += at == native->n;
		}
	}
	return n_lost;
}
