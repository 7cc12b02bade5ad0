/* SPDX-License-Identifier: MIT */
/*
 * A site that calls a hook function: what its slot, its prefix and its stub hold.
 *
 *	slot	 jmp stub		(5 bytes; the rest of the slot is not run)
 *	stub	 call dispatch
 *		 jmp behind the slot	(a return, if the slot begins with the function's return)
 *		 address of the site
 *
 * A slot of less than 5 bytes holds a short jump to the prefix, which holds the long one. A hook is
 * switched by one byte: the long jump's lowest leads to the stub or past its call; the short one's
 * to the prefix or behind the slot. A processor sees either value of a single byte, so threads run
 * on, and no breakpoint has to stand there meanwhile.
 *
 * On aarch64 an instruction of the slot is a branch to the stub, or what it was: a processor sees
 * either.
 *
 *	slot	 b stub
 *	stub	 stp x16, x30, [sp, #-16]!; bl dispatch; ldp x16, x30, [sp], #16; b behind the slot
 *		 address of the site
 */
#ifndef FATHOM_HOOK_HOOKED_SITE_H
#define FATHOM_HOOK_HOOKED_SITE_H

#include <stdatomic.h>

#include "fathom/trace.h"
#include "host/hook/near_code.h"
#include "host/rewrite/text_write.h"

/* Bytes of a stub; of aarch64 those that are code, and those of its frame. */
#define FATHOM_HOOK_STUB_SIZE 24
#define FATHOM_HOOK_CODE_SIZE 16
#define FATHOM_HOOK_FRAME     16

/* Bytes of a slot that jumps change. */
#define FATHOM_HOOK_JUMP_SIZE 5

/* Bytes that switch a site, at most. */
#define FATHOM_HOOK_TOGGLE 4

struct fathom_gate;

/* A site. It is never freed: a thread may be in its stub. the dispatcher knows the first four. */
struct fathom_hooked_site {
	uint64_t behind;                    /* avma behind the slot */
	uint64_t vectors_mask;              /* of XSAVEC or XSAVE; 0: FXSAVE */
	uint32_t vectors_size;              /* bytes; 0: none are saved */
	uint32_t is_compacted;              /* XSAVEC */
	_Atomic(struct fathom_gate *) gate; /* of its hook; NULL: it has none */
	uint64_t function;                  /* avma */
	uint64_t avma;                      /* of the slot */
	struct fathom_near_stub stub;       /* avma 0: it has none yet */
	uint64_t prefix;                    /* avma of the long jump of a short slot; else 0 */
	uint64_t toggle;                    /* avma of what switches it */
	uint8_t toggle_size;                /* bytes of that */
	uint8_t on[FATHOM_HOOK_TOGGLE];     /* its values */
	uint8_t off[FATHOM_HOOK_TOGGLE];
	uint8_t place; /* enum fathom_site_place */
	bool is_behind_prologue;
	bool is_published;                         /* unwinders know the stub (aarch64) */
	uint8_t was[FATHOM_HOOK_JUMP_SIZE];        /* what the slot held; short: 2 bytes */
	uint8_t was_prefix[FATHOM_HOOK_JUMP_SIZE]; /* what the prefix held */
};

/* Returns why @site cannot be hooked, or FATHOM_PATCH_DONE: it can, if a stub is within reach. */
uint8_t fathom_hooked_site_check(const struct fathom_site *site);

/*
 * Returns whether slot and prefix of @site reach the stub at @stub, and its lowest byte can switch
 * it.
 */
bool fathom_hooked_site_reaches(const struct fathom_site *site, uint64_t stub);

/*
 * Makes @s the hooked @site, with s->stub, and adds the writes that hook it, @is_on or not: that of
 * the stub to @stubs, the others to @to. False without memory.
 */
bool fathom_hooked_site_place(struct fathom_hooked_site *s, const struct fathom_site *site,
			      bool is_on, struct fathom_text_writes *stubs,
			      struct fathom_text_writes *to);

/*
 * Returns whether the code at @s, read from @memory, is the hooked one: its module is still there.
 */
bool fathom_hooked_site_is_there(const struct fathom_hooked_site *s, int memory);

/* Adds the writes that make it what it was. */
bool fathom_hooked_site_undo(const struct fathom_hooked_site *s, struct fathom_text_writes *to);

#endif
