/* SPDX-License-Identifier: MIT */
/*
 * Unwinds one frame of code that has no call frame information (of aarch64: follow_aarch64.h):
 * follows the instructions from the pc on all ways to the function's returns, and computes what
 * they do to the stack pointer and to saved registers. Values are concrete: registers are known or
 * unknown, as in struct fathom_registers, and words of the stack are read from memory unless an
 * instruction on the way stores them.
 *
 * The compiler is believed in three points: calls return, keep the stack pointer and the
 * callee-saved registers; stores to addresses that are not known do not hit return addresses or
 * saved registers; and calls keep the stack aligned to 16 bytes in all of a function, or nowhere.
 */
#ifndef FATHOM_STACK_FOLLOW_CODE_H
#define FATHOM_STACK_FOLLOW_CODE_H

#include "safe/base/error.h"
#include "safe/unwind/step.h"

struct fathom_stack_code;
struct fathom_follower;

/* Prepares to follow code of @arch, which must outlive *@ret. FATHOM_E_MEMORY. */
fathom_err fathom_follower_create(const struct fathom_unwind_arch *arch,
				  struct fathom_follower **ret, struct fathom_errinfo *reterr);
void fathom_follower_destroy(struct fathom_follower *f);

/*
 * Decodes the instruction at @pc, which @bytes begin with. It is valid until the next call; NULL if
 * the machine has no decoder.
 */
const struct fathom_stack_code *fathom_follower_decode(struct fathom_follower *f,
						       struct fathom_bytes bytes, uint64_t pc);

/* Begins a stack: what all its frames together may cost starts at 0. */
void fathom_follower_begin(struct fathom_follower *f);

/*
 * Makes @r the registers of the caller: pc is the return address, sp lies after it. @is_return
 * says that r->pc is itself a return address, after a call. Returns FATHOM_STOP_NONE, and else
 * leaves @r unchanged: FATHOM_STOP_REGISTER if the ways to a return need a register that is
 * unknown; FATHOM_STOP_UNREADABLE if the return address cannot be read; FATHOM_STOP_NO_RULE if no
 * return is found, two ways disagree on where the return address is, there is more code than the
 * limits allow (FATHOM_MAX_FOLLOWED and others), or there is no decoder;
 * FATHOM_STOP_LIMIT if the frames of this stack have cost FATHOM_MAX_FOLLOW_COST.
 *
 * The caller checks the return address, and remembers what it needs again.
 */
enum fathom_stop fathom_follow_to_return(struct fathom_follower *f,
					 const struct fathom_step_memory *m, bool is_return,
					 struct fathom_registers *r);

/*
 * Does the same from a pc between which and the return nothing branches or calls: otherwise it
 * returns FATHOM_STOP_NO_RULE.
 */
enum fathom_stop fathom_follow_epilogue(struct fathom_follower *f,
					const struct fathom_step_memory *m,
					struct fathom_registers *r);

/* Most different depths of one pc. */
#define FATHOM_MAX_DEPTHS 4

/* How far a register is from the stack pointer at a pc. */
struct fathom_depth {
	uint64_t distance; /* bytes from sp to the register; modulo a word */
	uint32_t gap;      /* the stack was aligned to so many bytes; 0: it was not. Up to so many
			      bytes may be missing in the distance, a multiple of words */
};

/* Notes on a function, by its code. */
struct fathom_depths {
	uint8_t number; /* DWARF number of the register; set by the caller */
	uint8_t n;
	bool is_cut; /* there are more */
	struct fathom_depth items[FATHOM_MAX_DEPTHS];
};

/*
 * Finds how far register ret->number is from the stack pointer at @target, in the function that
 * starts at @start: follows its instructions, without looking at any stack, on the ways to @target
 * that the limits allow, the shortest first. Ways on which a variable is taken from the stack
 * pointer (alloca) tell nothing. There may be several depths, of which one is right, or none.
 */
void fathom_follow_depths(struct fathom_follower *f, const struct fathom_step_memory *m,
			  uint64_t start, uint64_t target, struct fathom_depths *ret);

#endif
