/* SPDX-License-Identifier: MIT */
/*
 * The general registers of one frame, by the DWARF numbers of the machine's psABI, each known or
 * unknown; and what is particular to a machine.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_REGISTERS_H
#define FATHOM_UNWIND_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* The largest number of registers with a DWARF number: that of aarch64. */
#define FATHOM_REGISTERS 33

struct fathom_registers {
	uint32_t machine; /* EM_ */
	uint64_t pc;
	uint64_t sp;
	uint64_t known;                   /* bit i is set if value[i] is valid */
	uint64_t value[FATHOM_REGISTERS]; /* by the psABI's DWARF number */
};

/* What unwinding needs to know of a machine. */
struct fathom_unwind_arch {
	uint32_t machine;      /* EM_ */
	uint8_t word;          /* bytes in a register */
	uint8_t n;             /* registers with a number below it */
	uint8_t pc;            /* DWARF numbers */
	uint8_t sp;
	uint8_t fp;
	uint64_t callee_saved; /* bit i: register i keeps its value if no rule says otherwise */
	uint64_t pac_mask;     /* bits of a signed return address that are no address; 0: none */
};

/* Returns the description of @machine, an EM_ value; NULL if it is not supported. */
const struct fathom_unwind_arch *fathom_unwind_arch(uint32_t machine);

static inline bool fathom_register_known(const struct fathom_registers *r, uint64_t number)
{
	return number < FATHOM_REGISTERS && (r->known >> number & 1);
}

static inline void fathom_register_set(struct fathom_registers *r, uint8_t number, uint64_t value)
{
	r->value[number] = value;
	r->known |= UINT64_C(1) << number;
}

#endif
