/* SPDX-License-Identifier: MIT */
/*
 * NOPs, and the instructions that mark where indirect branches may lead, by their bytes (Intel SDM
 * volume 2, "NOP", and its recommended multi-byte forms; Arm ARM, C6.2, HINT).
 */
#ifndef FATHOM_BASE_NOPS_H
#define FATHOM_BASE_NOPS_H

#include "safe/base/bytes.h"

/* Bytes of a landing mark: endbr64 on x86, bti on aarch64. */
#define FATHOM_LANDING 4

/*
 * Code is of aarch64, or else of x86-64 or i386: nobody asks about other machines.
 *
 * Returns the size of the NOP that @code starts with; 0: it is none.
 */
uint8_t fathom_nop_size(bool is_aarch64, struct fathom_bytes code);

/* Returns the bytes of all NOPs that @code starts with, up to @most. */
uint64_t fathom_nops_size(bool is_aarch64, struct fathom_bytes code, uint64_t most);

/* Returns whether @code starts with a mark that a function may start with. */
bool fathom_is_landing(bool is_aarch64, struct fathom_bytes code);

/* Returns FATHOM_LANDING if @code starts with such a mark, else 0. */
static inline uint8_t fathom_landing_size(bool is_aarch64, struct fathom_bytes code)
{
	return fathom_is_landing(is_aarch64, code) ? FATHOM_LANDING : 0;
}

#endif
