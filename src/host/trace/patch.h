/* SPDX-License-Identifier: MIT */
/* Plans the changes by which sites call the hook. */
#ifndef FATHOM_TRACE_PATCH_H
#define FATHOM_TRACE_PATCH_H

#include "fathom/trace.h"
#include "host/patch/text_plan.h"

/* Why a site is not recorded. */
enum fathom_patch_refusal {
	FATHOM_PATCH_DONE,
	FATHOM_PATCH_NO_ROOM,  /* the slot is too short, and has no prefix within reach */
	FATHOM_PATCH_CHANGED,  /* the program has other bytes there than the file */
	FATHOM_PATCH_TOO_FAR,  /* no hook within reach */
	FATHOM_PATCH_NO_FRAME, /* where the return address lies is not known */
	FATHOM_PATCH_NO_MEMORY,
	FATHOM_PATCH_REFUSALS
};

/*
 * Returns whether calls of @site come from a stub in NOPs before the function, of *@ret_size bytes
 * at *@ret_avma.
 */
bool fathom_patch_stub(const struct fathom_site *site, uint64_t *ret_avma, uint64_t *ret_size);

/* Returns whether @m has the bytes that the file has at @site. */
bool fathom_patch_is_clean(const struct fathom_site *site, struct fathom_text_memory *m);

/*
 * Returns whether a hook that @site itself calls would return into the midst of an instruction,
 * when the bytes are as before again: threads may be in the hook then. Such a site leads to a stub
 * elsewhere.
 */
bool fathom_patch_needs_stub(const struct fathom_site *site);

/* Adds the changes to @plan by which @site, which is not a call, jumps to @to. */
enum fathom_patch_refusal fathom_patch_jump(const struct fathom_site *site, uint64_t to,
					    struct fathom_text_plan *plan);

/*
 * Adds the changes to @plan by which @site, which needs no stub elsewhere, calls the hook at @hook.
 * *@ret_return is where the call returns to, by which records name the site.
 */
enum fathom_patch_refusal fathom_patch_site(const struct fathom_site *site, uint64_t hook,
					    struct fathom_text_plan *plan, uint64_t *ret_return);

/*
 * Makes the bytes of @site what the file has: somebody was killed who had changed them, perhaps
 * while he wrote, so that only a part of them is his. Returns whether they were not.
 */
bool fathom_patch_heal(const struct fathom_site *site, struct fathom_text_memory *m);

#endif
