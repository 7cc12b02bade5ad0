/* SPDX-License-Identifier: MIT */
/*
 * Checks that a call can have led to a pc. A return address that a frame pointer or a scan finds is
 * believed only then. x86 and aarch64.
 */
#ifndef FATHOM_STACK_CALLEE_H
#define FATHOM_STACK_CALLEE_H

#include "host/stack/follow_code.h"
#include "host/space/target.h"
#include "safe/unwind/step.h"

/* How code of a machine leads on (callee_machine.h). */
struct fathom_callee_machine;

/* Entries of the caches; powers of two. */
enum { FATHOM_CALLEE_STARTS = 1024, FATHOM_CALLEE_VERDICTS = 256 };

/* The start of the symbol at a pc. */
struct fathom_callee_start {
	uint64_t pc;
	uint64_t start; /* avma; FATHOM_NO_ADDRESS: there is no symbol */
	bool is_set;
	bool is_part; /* the symbol is of a part of a function, such as func.cold */
};

/* Whether a call of @target can lead to @pc. */
struct fathom_callee_verdict {
	uint64_t pc;
	uint64_t target;
	uint64_t age;
	bool is;
};

/*
 * Answers that are asked for again, as stacks of one process share most of their pcs: a search for
 * a symbol reads all symbols of a file, a verdict decodes functions. Zero-initialized. Starts hold
 * as long as the modules of the view, verdicts as long as code is not read anew: it sets @age.
 */
struct fathom_callee_cache {
	uint64_t age;
	struct fathom_callee_start starts[FATHOM_CALLEE_STARTS];
	struct fathom_callee_verdict verdicts[FATHOM_CALLEE_VERDICTS];
};

/* The code at a pc, which some call has led to. */
struct fathom_callee {
	struct fathom_view *view;
	struct fathom_callee_cache *cache;
	const struct fathom_unwind_arch *arch;
	const struct fathom_callee_machine *machine;
	const struct fathom_step_memory *memory;
	struct fathom_follower *follower; /* whose decoder is used */
	uint64_t pc;
	unsigned decoded; /* instructions of functions that end with jumps, so far */
};

/* Returns the row of @machine, EM_ of elf.h: x86-64, i386 or aarch64. */
const struct fathom_callee_machine *fathom_callee_machine(uint32_t machine);

/*
 * Returns whether the call before @return_address can have led to @c, of which all members
 * but the last are set. Where an indirect call leads to nobody knows, unless it is by a slot.
 * Another one leads to a function that starts at the symbol of @c, or without symbols a little
 * before @c; or to one that jumps there at its end, or to where nobody knows.
 */
bool fathom_callee_is_called(struct fathom_callee *c, uint64_t return_address);

#endif
