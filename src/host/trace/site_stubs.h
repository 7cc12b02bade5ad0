/* SPDX-License-Identifier: MIT */
/*
 * Stubs that sites lead to. Of entries and returns at which the program calls a function of its own
 * (-finstrument-functions, -pg) the call, or jump at a function's end, is led to a stub, which
 * calls the hook and jumps to what was called: so it is called as before. Others jump to one where
 * the hook could not return into the site itself (fathom_patch_needs_stub()).
 */
#ifndef FATHOM_TRACE_SITE_STUBS_H
#define FATHOM_TRACE_SITE_STUBS_H

#include "host/trace/load.h"
#include "host/trace/patch.h"

/* Words between the stack pointer at the site and what the hook records as that. */
#define FATHOM_SITE_STUB_WORDS 1

/* Stubs that are not used yet, and their copy of the hook. */
struct fathom_site_stubs {
	struct fathom_hooks hooks;
	uint64_t stub; /* avma of the next */
	size_t left;
};

/*
 * Returns whether @site, at which something is called, is a jump, at which the stack is as at the
 * function's entry.
 */
bool fathom_site_stubs_is_jump(const struct fathom_site *site);

/* Makes @n stubs for sites from @low to @high; false if there is no room within reach. */
bool fathom_site_stubs_make(struct fathom_loader *l, struct fathom_traced *p, size_t n,
			    uint64_t low, uint64_t high, struct fathom_site_stubs *ret);

/*
 * Makes the next stub, and adds the changes to @plan by which @site leads there. @place:
 * what is known of the frame. *@ret_return is where the stub's call of the hook returns to.
 */
enum fathom_patch_refusal fathom_site_stubs_patch(struct fathom_site_stubs *own,
						  const struct fathom_tracee *tracee,
						  const struct fathom_site *site,
						  enum fathom_hook_place place,
						  struct fathom_text_plan *plan,
						  uint64_t *ret_return);

#endif
