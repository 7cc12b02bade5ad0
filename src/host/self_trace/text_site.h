/* SPDX-License-Identifier: MIT */
/*
 * How a site of a process that changes its own text leads to its stub; each processor has these
 * functions of its own (text_site_x86_64.c and so on).
 */
#ifndef FATHOM_SELF_TRACE_TEXT_SITE_H
#define FATHOM_SELF_TRACE_TEXT_SITE_H

#include "fathom/trace.h"
#include "host/patch/text_plan.h"
#include "host/self_trace/stub_sets.h"
#include "host/trace/patch.h"

/* Words from the stack pointer that the hook records to the CFA. */
extern const uint32_t fathom_text_site_above;

/*
 * Returns why @s cannot be recorded, or FATHOM_PATCH_DONE, and fills in *@ret, but for its stub. Of
 * a function that is recorded after its prologue, or where it calls something of its own, the hook
 * does not know the frame.
 */
enum fathom_patch_refusal fathom_text_site_check(const struct fathom_site *s,
						 struct fathom_stub_site *ret);

/*
 * Adds the change by which @s leads to the stub of @to. Returns the avma that the stub's call of
 * the hook returns to; 0 without memory, or if the stub is too far: *@ret_is_far says so.
 */
uint64_t fathom_text_site_add(const struct fathom_site *s, const struct fathom_stub_site *to,
			      struct fathom_text_plan *plan, bool *ret_is_far);

/* Returns whether @s has a frame that the hook does not know. */
static inline bool fathom_text_site_lacks_frame(const struct fathom_site *s)
{
	return s->kind == FATHOM_SITE_CYG_PROFILE || s->content == FATHOM_SITE_CALL ||
	       s->flags & FATHOM_SITE_BEHIND_PROLOGUE;
}

#endif
