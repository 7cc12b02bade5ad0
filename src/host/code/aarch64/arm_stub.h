/* SPDX-License-Identifier: MIT */
/*
 * The parts of stubs of aarch64: calls of a hook by code that has not saved its return address.
 *
 *	                                  stack, from sp up
 *	stp x16, x30, [sp, #-frame]!      x16, x30, the rest of the frame
 *	bl  hook                          the same; x30 leads back here
 *	ldp x16, x30, [sp], #frame        nothing
 *
 * Linkers' veneers and the hook may use x16; no other register changes, and no flags. The stub of a
 * slot is such a call and a branch back.
 */
#ifndef FATHOM_CODE_ARM_STUB_H
#define FATHOM_CODE_ARM_STUB_H

#include "host/code/aarch64/arm_instructions.h"
#include "host/code/native.h"

/* Instructions of the call of a hook, and its bytes up to where the hook returns to. */
#define FATHOM_ARM_HOOK_CALL_WORDS 3
#define FATHOM_ARM_HOOK_CALL_BACK  8

/* Writes it, which is to be at @avma; @frame as in fathom_arm_push(). False: @hook is too far. */
bool fathom_arm_put_hook_call(uint64_t avma, uint64_t hook, uint32_t frame,
			      uint32_t words[FATHOM_ARM_HOOK_CALL_WORDS]);

/* Instructions of the stub of a slot. */
#define FATHOM_ARM_SITE_STUB_WORDS (FATHOM_ARM_HOOK_CALL_WORDS + 1)

/* Writes one that goes on at @back. False: @hook or @back is too far. */
bool fathom_arm_put_site_stub(uint64_t avma, uint64_t hook, uint32_t frame, uint64_t back,
			      uint32_t words[FATHOM_ARM_SITE_STUB_WORDS]);

/* Appends the rules of the call of a hook. */
void fathom_arm_describe_hook_call(struct fathom_stub_cfi *c, uint32_t frame);

#endif
