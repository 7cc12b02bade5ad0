/* SPDX-License-Identifier: MIT */
/* How code of one machine leads on: a row for each, which callee.c asks. */
#ifndef FATHOM_STACK_CALLEE_MACHINE_H
#define FATHOM_STACK_CALLEE_MACHINE_H

#include "host/stack/callee.h"

struct fathom_stack_code;

struct fathom_callee_machine {
	/* Finds where the call before @pc leads; false: only the registers knew. */
	bool (*find_target)(const struct fathom_callee *c, uint64_t pc, uint64_t *ret);
	/*
	 * If @*target is a stub that jumps on, makes it what that jumps to and returns true.
	 * *@ret_unknown is set if nobody knows.
	 */
	bool (*pass_stub)(const struct fathom_callee *c, uint64_t *target, bool *ret_unknown);
	/* Decodes the instruction at @avma, which @bytes begin with; false if it is none. */
	bool (*decode)(const struct fathom_callee *c, struct fathom_bytes bytes, uint64_t avma,
		       struct fathom_stack_code *ret);
};

extern const struct fathom_callee_machine fathom_callee_x86;
extern const struct fathom_callee_machine fathom_callee_aarch64;

bool fathom_callee_read_code(const struct fathom_callee *c, uint64_t avma, uint8_t *to,
			     size_t size);

#endif
