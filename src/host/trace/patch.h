/* SPDX-License-Identifier: MIT */
/* Has sites call the hook, and undoes it byte for byte. */
#ifndef FATHOM_TRACE_PATCH_H
#define FATHOM_TRACE_PATCH_H

#include "fathom/trace.h"
#include "host/tracee/tracee.h"

/* Why a site cannot be patched. */
enum fathom_patch_refusal {
	FATHOM_PATCH_DONE,
	FATHOM_PATCH_NO_ROOM,   /* the slot is too short, and has no prefix within reach */
	FATHOM_PATCH_CHANGED,   /* the program has other bytes there than the file */
	FATHOM_PATCH_TOO_FAR,   /* no hook within reach */
	FATHOM_PATCH_UNWRITABLE /* its memory cannot be written */
};

/*
 * Has @site of @t, of which no thread runs, call the hook at @hook. *@ret_return is where the call
 * returns to, by which records name the site.
 */
enum fathom_patch_refusal fathom_patch_on(const struct fathom_tracee *t,
					  const struct fathom_site *site, uint64_t hook,
					  uint64_t *ret_return);

/* Gives @site its bytes back. */
bool fathom_patch_off(const struct fathom_tracee *t, const struct fathom_site *site);

#endif
