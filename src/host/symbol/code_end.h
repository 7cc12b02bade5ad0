/* SPDX-License-Identifier: MIT */
/*
 * Where a function ends whose size nothing states, by its code: x86-64, i386, aarch64. Code belongs
 * to the function if it follows the code before it, or if that branches to it. After a return or a
 * jump that no branch of the function passes, another function may begin.
 *
 * Calls and system calls are believed to return, except calls before padding that aligns what
 * follows. A place that the code calls is the start of another function.
 */
#ifndef FATHOM_SYMBOL_CODE_END_H
#define FATHOM_SYMBOL_CODE_END_H

#include "safe/base/bytes.h"

/* The most bytes of a function that are followed; what is after them does not belong to it. */
#define FATHOM_MAX_CODE_END 65536

enum fathom_code_machine { FATHOM_CODE_X86_64, FATHOM_CODE_I386, FATHOM_CODE_AARCH64 };

/* Where the flow goes after an instruction. */
enum fathom_step_flow {
	FATHOM_STEP_NEXT,
	FATHOM_STEP_BRANCH, /* to the target, or on */
	FATHOM_STEP_CALL,
	FATHOM_STEP_JUMP, /* to the target, if there is one */
	FATHOM_STEP_END   /* nowhere that the code tells */
};

struct fathom_code_step {
	int64_t distance; /* of the target from the next instruction */
	uint8_t size;     /* bytes; 0: the bytes are no instruction */
	uint8_t flow;     /* enum fathom_step_flow */
	bool has_target;
};

/* Measures the instruction that @code starts with. */
struct fathom_code_step fathom_x86_step(struct fathom_bytes code, bool is64);

/*
 * Returns how many bytes of @code, which starts at @address with a function and ends where the next
 * symbol starts, belong to that function. @is_relocatable says that the linker will still fill in
 * places of other sections.
 */
uint64_t fathom_code_size(enum fathom_code_machine machine, struct fathom_bytes code,
			  uint64_t address, bool is_relocatable);

#endif
