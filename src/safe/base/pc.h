/* SPDX-License-Identifier: MIT */
/* The address to look up for a pc: the only place that subtracts 1 from return addresses. */
#ifndef FATHOM_BASE_PC_H
#define FATHOM_BASE_PC_H

#include "fathom/answer.h"

/* Returns the address to look up for @address of @kind; for a return address, one in its call. */
static inline uint64_t fathom_pc_subtract(uint64_t address, uint8_t kind)
{
	return address - (kind == FATHOM_PC_RETURN && address != 0);
}

#endif
