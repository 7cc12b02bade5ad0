/* SPDX-License-Identifier: MIT */
/* The text of aarch64 instructions, by Capstone, which is opened on first use. */
#ifndef FATHOM_DISASM_CAPSTONE_H
#define FATHOM_DISASM_CAPSTONE_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_capstone;

struct fathom_capstone_insn {
	const char *mnemonic; /* valid until the next instruction */
	const char *operands;
	uint32_t writes; /* bits of x0 to x30 */
};

fathom_err fathom_capstone_open(struct fathom_capstone **ret, struct fathom_errinfo *reterr);
void fathom_capstone_close(struct fathom_capstone *c);

/* Decodes the instruction in @bytes; returns false if it is none. */
bool fathom_capstone_decode(struct fathom_capstone *c, const uint8_t bytes[4], uint64_t address,
			    struct fathom_capstone_insn *ret);

#endif
