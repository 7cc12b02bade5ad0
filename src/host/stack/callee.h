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

/* The code at a pc, which some call has led to. */
struct fathom_callee {
	struct fathom_view *view;
	const struct fathom_unwind_arch *arch;
	const struct fathom_callee_machine *machine;
	const struct fathom_step_memory *memory;
	struct fathom_follower *follower; /* whose decoder is used */
	uint64_t pc;
	bool is_found; /* the rest is known */
	struct fathom_place place;
	uint64_t start;   /* avma of its symbol; FATHOM_NO_ADDRESS: it has none */
	bool is_part;     /* that symbol is of a part of a function, such as func.cold */
	unsigned decoded; /* instructions of functions that end with jumps, so far */
};

/* Returns the row of @machine, EM_ of elf.h: x86-64, i386 or aarch64. */
const struct fathom_callee_machine *fathom_callee_machine(uint32_t machine);

/*
 * Returns whether the call before @return_address can have led to @c, of which the first six
 * members are set. Where an indirect call leads to nobody knows, unless it is by a slot. Another
 * one leads to a function that starts at the symbol of @c, or without symbols a little before @c;
 * or to one that jumps there at its end, or to where nobody knows.
 */
bool fathom_callee_is_called(struct fathom_callee *c, uint64_t return_address);

#endif
