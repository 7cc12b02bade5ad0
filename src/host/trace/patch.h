/* SPDX-License-Identifier: MIT */
/* Makes the bytes by which sites call the hook. */
#ifndef FATHOM_TRACE_PATCH_H
#define FATHOM_TRACE_PATCH_H

#include <stdbool.h>

#include "fathom/trace.h"

/* Why a site is not recorded. */
enum fathom_patch_refusal {
	FATHOM_PATCH_DONE,
	FATHOM_PATCH_NO_ROOM,  /* the slot is too short, and has no prefix within reach */
	FATHOM_PATCH_CHANGED,  /* the program has other bytes there than the file */
	FATHOM_PATCH_TOO_FAR,  /* no hook within reach */
	FATHOM_PATCH_NO_FRAME, /* where the return address lies is not known */
	FATHOM_PATCH_REFUSALS
};

/* Returns the first byte of @site that may change, and in *@ret_end what is behind the last. */
uint64_t fathom_patch_range(const struct fathom_site *site, uint64_t *ret_end);

/*
 * Makes @site call the hook at @hook. @bytes are those of its range. *@ret_return is where the call
 * returns to, by which records name the site.
 */
enum fathom_patch_refusal fathom_patch_site(const struct fathom_site *site, uint64_t hook,
					    uint8_t *bytes, uint64_t *ret_return);

/*
 * Makes @bytes, those of the range of @site, what the file has: somebody was killed who had changed
 * them, perhaps while he wrote, so that only a part of them is his. Returns whether they were not.
 */
bool fathom_patch_heal(const struct fathom_site *site, uint8_t *bytes);

#endif
