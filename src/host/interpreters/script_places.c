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
