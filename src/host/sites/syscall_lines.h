/* SPDX-License-Identifier: MIT */
/*
 * Instructions before a `syscall` (x86-64), each shorter than a jump, that together give it room.
 * Of the instructions that begin inside the jump nothing is left, so it is allowed only where it is
 * proven that nobody jumps to one of them:
 *
 * - At no byte of the executable segments, whether an instruction begins there or not, does
 *   something like a direct jump, or an operand relative to the instruction, lead there: that is a
 *   superset of all direct jumps, and of all instructions that form the address.
 * - No aligned word of a loaded segment has the address, nor its distance: that is a superset of
 *   the addends of relocations, of what relocations leave in place, and of tables of the compiler.
 *   In a file that cannot be moved no constant in the code has it.
 * - The function has unwind rules and no landing pads, and no indirect jump but to another
 *   function. Nor has any function that it jumps to: those may be parts of it. It is no such part
 *   itself, to which another one could jump by a table: it has a symbol without a dot in its name,
 *   or it is called.
 * - No symbol and no function begins there.
 *
 * The instructions are those that only change registers: none can fault.
 */
#ifndef FATHOM_SITES_SYSCALL_LINES_H
#define FATHOM_SITES_SYSCALL_LINES_H

#include "host/base/array.h"
#include "host/sites/site_work.h"

/* Instructions of two bytes or more that can begin inside the jump. */
#define FATHOM_SYSCALL_INNER_MAX 2

/* Lines of a module that are looked at. */
#define FATHOM_SYSCALL_LINES_MAX 64

struct fathom_syscall_insn_line {
	size_t call;                              /* number of the call that it is before */
	uint64_t inner[FATHOM_SYSCALL_INNER_MAX]; /* svma of those that begin inside the jump */
	uint64_t function; /* svma at which its unwind rules begin; 0: none */
	uint8_t n_inner;   /* at least 1 */
	uint8_t size;      /* bytes of all its instructions */
	bool is_entered;   /* the function is known to be a whole one */
	bool is_refused;
};

struct fathom_syscall_insn_lines {
	FATHOM_ARRAY_OF(struct fathom_syscall_insn_line);
};

/* Returns whether @code, one instruction, does nothing but change registers. */
bool fathom_syscall_insn_line_has(struct fathom_bytes code);

/* Refuses the lines of which somebody may jump to the midst. FATHOM_E_MEMORY. */
fathom_err fathom_syscall_insn_lines_prove(struct fathom_site_work *w,
					   struct fathom_syscall_insn_lines *lines);

#endif
