/* SPDX-License-Identifier: MIT */
/*
 * Entries and returns at which the program calls a function of its own (-finstrument-functions):
 * the call, or jump at a function's end, is led to a stub, which calls the hook and jumps to what
 * was called. So it is called as before.
 */
#ifndef FATHOM_TRACE_INSTRUMENT_CALLS_H
#define FATHOM_TRACE_INSTRUMENT_CALLS_H

#include "host/trace/load.h"
#include "host/trace/patch.h"

/* Words between the stack pointer at the site and what the hook records as that. */
#define FATHOM_INSTRUMENT_CALL_WORDS 1

/* Stubs that are not used yet, and their copy of the hook. */
struct fathom_instrument_calls {
	struct fathom_hooks hooks;
	uint64_t stub; /* avma of the next */
	size_t left;
};

/* Returns whether @site is a jump, at which the stack is as at the function's entry. */
bool fathom_instrument_call_is_jump(const struct fathom_site *site);

/* Makes @n stubs for calls from @low to @high; false if there is no room within reach. */
bool fathom_instrument_calls_make(struct fathom_loader *l, struct fathom_traced *p, size_t n,
				  uint64_t low, uint64_t high, struct fathom_instrument_calls *ret);

/*
 * Makes the next stub, and adds the change to @plan by which the call at @site leads there. @place:
 * what is known of the frame. *@ret_return is where the stub's call of the hook returns to.
 */
enum fathom_patch_refusal fathom_instrument_calls_patch(struct fathom_instrument_calls *own,
							const struct fathom_tracee *tracee,
							const struct fathom_site *site,
							enum fathom_hook_place place,
							struct fathom_text_plan *plan,
							uint64_t *ret_return);

#endif
