/* SPDX-License-Identifier: MIT */
/*
 * A site that calls a hook function: what its slot, its prefix and its stub hold.
 *
 *	slot	 jmp stub		(5 bytes; the rest of the slot is not run)
 *	stub	 call dispatch
 *		 jmp after the slot	(a return, if the slot begins with the function's return)
 *		 address of the site
 *
 * A slot of less than 5 bytes holds a short jump to the prefix, which holds the long one. A hook is
 * switched by one byte: the long jump's lowest leads to the stub or past its call; the short one's
 * to the prefix or after the slot. A processor sees either value of a single byte, so threads run
 * on, and no breakpoint has to stand there meanwhile.
 *
 * On aarch64 an instruction of the slot is a branch to the stub, or what it was: a processor sees
 * either.
 *
 *	slot	 b stub
 *	stub	 stp x16, x30, [sp, #-16]!; bl dispatch; ldp x16, x30, [sp], #16; b after the slot
 *		 address of the site
 */
#ifndef FATHOM_HOOK_HOOKED_SITE_H
#define FATHOM_HOOK_HOOKED_SITE_H

#include <stdatomic.h>

#include "fathom/trace.h"
#include "host/hook/near_pool.h"
#include "host/patch/text_plan.h"

/* Bytes of a stub; of aarch64 those that are code, and those of its frame. */
#define FATHOM_HOOK_STUB_SIZE 24
#define FATHOM_HOOK_CODE_SIZE 16
#define FATHOM_HOOK_FRAME     16

/* Bytes of a slot that jumps change. */
#define FATHOM_HOOK_JUMP_SIZE 5

struct fathom_gate;

/*
 * A site. It is never freed: a thread may be in its stub. dispatch_*.S has the offsets of the first
 * four members.
 */
struct fathom_hooked_site {
	uint64_t back;                      /* avma after the slot */
	uint64_t vectors_mask;              /* of XSAVEC or XSAVE; 0: FXSAVE */
	uint32_t vectors_size;              /* bytes; 0: none are saved */
	uint32_t is_compacted;              /* XSAVEC */
	_Atomic(struct fathom_gate *) gate; /* of its hook; NULL: it has none */
	uint64_t function;                  /* avma */
	uint64_t avma;                      /* of the slot */
	struct fathom_near_stub stub;       /* avma 0: it has none yet */
	uint64_t prefix;                    /* avma of the long jump of a short slot; else 0 */
	uint8_t place;                      /* enum fathom_site_place */
	bool is_behind_prologue;
	bool is_published; /* unwinders know the stub (aarch64) */
};

/* Returns why @site cannot be hooked, or FATHOM_PATCH_DONE: it can, if a stub is within reach. */
uint8_t fathom_hooked_site_check(const struct fathom_site *site);

/*
 * Returns whether slot and prefix of @site reach the stub at @stub, and its lowest byte can switch
 * it.
 */
bool fathom_hooked_site_reaches(const struct fathom_site *site, uint64_t stub);

/* Changes of sites. */
struct fathom_hook_plans {
	struct fathom_text_plan unused;  /* stubs where nobody runs yet */
	struct fathom_text_plan text;    /* what hooks the sites, switched on or off */
	struct fathom_text_plan toggles; /* what switches them on */
};

/*
 * Makes @s the hooked @site, with s->stub, and adds its changes, by which it @is_on or not; that of
 * the stub to @stubs, one of both plans. False without memory.
 */
bool fathom_hooked_site_place(struct fathom_hooked_site *s, const struct fathom_site *site,
			      bool is_on, struct fathom_text_plan *stubs,
			      struct fathom_hook_plans *plans);

/* Adds the changes of a slot that holds @old, and @on or @off while it is hooked. */
bool fathom_hooked_site_plan(struct fathom_hook_plans *plans, uint64_t avma, const uint8_t *old,
			     const uint8_t *on, const uint8_t *off, size_t size, uint64_t resume,
			     bool is_on);

#endif
